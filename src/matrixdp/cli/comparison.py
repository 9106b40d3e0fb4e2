"""Several mechanisms on one workload, each selected in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from matrixdp.selection.table import MECHANISMS, DataDependent

__all__ = ["Outcome", "compare_mechanisms", "ratios"]

#: What is taken over from ``select``, or from why it failed.
_FIGURES = ("rmse", "weighted_rmse", "max_stddev", "lower_bound_rmse", "seconds", "peak_memory_mb", "note")


@dataclass(frozen=True)
class Outcome:
    """What came of one mechanism with one kind of noise.

    Attributes
    ----------
    mechanism, noise : str
    rmse, weighted_rmse, max_stddev : float or None
        In records at the specification's budget; None where it does not apply.
    lower_bound_rmse : float or None
        The weighted RMSE below which it is proved that no strategy with this noise comes: the largest bound
        that any mechanism proved for it.
    ratio_to_best, ratio_to_lower_bound : float or None
        Of the weighted RMSE, to the least of all rows whose error is promised, and to the largest lower bound
        for the same noise; the bounds say nothing about errors that depend on the table.
    seconds, peak_memory_mb : float or None
        Of selection (or of all simulations), in a process of its own, the start of Python included in memory
        but not in time.
    note : str
        Why it does not apply; empty where it does, but for a simulation, which it describes.
    data_dependent : bool
        Whether the error depends on the table, so that it was simulated on a public one.
    simulations : int or None
        How many runs the figures come from.
    rmse_standard_error : float or None
        Monte Carlo standard error of ``rmse``.
    """

    mechanism: str
    noise: str
    rmse: float | None = None
    weighted_rmse: float | None = None
    max_stddev: float | None = None
    lower_bound_rmse: float | None = None
    ratio_to_best: float | None = None
    ratio_to_lower_bound: float | None = None
    seconds: float | None = None
    peak_memory_mb: float | None = None
    note: str = ""
    data_dependent: bool = False
    simulations: int | None = None
    rmse_standard_error: float | None = None

    @property
    def label(self) -> str:
        """The mechanism as tables name it.

        Examples
        --------
        >>> Outcome("dawa", "laplace", data_dependent=True).label
        'dawa (data-dependent, simulated)'
        """
        return f"{self.mechanism} (data-dependent, simulated)" if self.data_dependent else self.mechanism

    def as_dict(self) -> dict[str, object]:
        """Return the figures as JSON has them."""
        return asdict(self)


def compare_mechanisms(
    spec: Path,
    mechanisms: Sequence[str],
    noises: Sequence[str],
    time_limit: float,
    report: Callable[[int, int, str], None] | None = None,
    public_table: Path | None = None,
    simulations: int = 20,
) -> list[Outcome]:
    """Select with every mechanism and noise, and return what came of each, best first.

    Parameters
    ----------
    spec : Path
        The specification, with a budget.
    mechanisms : sequence of str
    noises : sequence of str
    time_limit : float
        Seconds for each selection.
    report : callable, optional
        Called with how many are done, of how many, and which is next.
    public_table : Path, optional
        What mechanisms whose error depends on the table are simulated on. Its exact answers are computed.
    simulations : int
        How often.
    """
    found = []
    pairs = [(mechanism, noise) for noise in noises for mechanism in mechanisms]
    for number, (mechanism, noise) in enumerate(pairs):
        if report is not None:
            report(number, len(pairs), f"{mechanism} ({noise})")
        listed = MECHANISMS[mechanism] if mechanism != "auto" else None
        if isinstance(listed, DataDependent):
            found.append(_simulated(spec, listed, noise, time_limit, public_table, simulations))
        else:
            found.append(_outcome(spec, mechanism, noise, time_limit))
    return ratios(found)


def _outcome(spec: Path, mechanism: str, noise: str, time_limit: float) -> Outcome:
    command = ["matrixdp", "select", str(spec.absolute())]
    command += ["--mechanism", mechanism, "--noise", noise, "--json", "--ignore-targets"]
    found = _printed(command, time_limit)
    return replace(Outcome(mechanism, noise), **{key: found[key] for key in _FIGURES if key in found})


def _simulated(
    spec: Path, mechanism: DataDependent, noise: str, time_limit: float, table: Path | None, simulations: int
) -> Outcome:
    nothing = Outcome(mechanism.name, noise, data_dependent=True)
    if noise not in mechanism.noises:
        own = mechanism.noises[0]
        return replace(nothing, note=f"adds {own.capitalize()} noise alone; use --noise {own}")
    if table is None:
        return replace(
            nothing, note="its error depends on the table: needs a public one (--public-table FILE)"
        )
    command = ["matrixdp.cli.simulation", mechanism.name, str(spec.absolute()), str(table), str(simulations)]
    return replace(nothing, **_printed(command, time_limit))


def _printed(command: list[str], time_limit: float) -> dict[str, Any]:
    """Return what a module prints as JSON in a process of its own, or a note on why it failed."""
    command = [sys.executable, "-m", *command]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=time_limit, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        passed = time.perf_counter() - started
        return {"seconds": passed, "note": f"not within {time_limit:g} s (--time-limit)"}
    if done.returncode != 0:
        return {"note": _reason(done.stderr, done.returncode)}
    printed: dict[str, Any] = json.loads(done.stdout)
    return printed


def _reason(text: str, status: int) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return "out of memory, or killed" if status < 0 else f"failed with status {status}"
    return lines[-1].removeprefix("Error: ")


def ratios(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return outcomes with their ratios, sorted by error; what does not apply comes last.

    Parameters
    ----------
    outcomes : sequence of Outcome

    Examples
    --------
    >>> worse = Outcome("a", "gaussian", weighted_rmse=3.0)
    >>> rows = ratios([worse, Outcome("b", "gaussian", weighted_rmse=2.0)])
    >>> [(row.mechanism, row.ratio_to_best) for row in rows]
    [('b', 1.0), ('a', 1.5)]
    """
    known = [
        row.weighted_rmse for row in outcomes if row.weighted_rmse is not None and not row.data_dependent
    ]
    known = known or [row.weighted_rmse for row in outcomes if row.weighted_rmse is not None]
    bounds: dict[str, float] = {}
    for row in outcomes:
        if row.lower_bound_rmse is not None:
            bounds[row.noise] = max(bounds.get(row.noise, 0.0), row.lower_bound_rmse)
    completed = []
    for row in outcomes:
        figures = asdict(row)
        if row.weighted_rmse is not None:
            figures["ratio_to_best"] = row.weighted_rmse / min(known)
            if bounds.get(row.noise, 0.0) > 0.0 and not row.data_dependent:
                figures["lower_bound_rmse"] = bounds[row.noise]
                figures["ratio_to_lower_bound"] = row.weighted_rmse / bounds[row.noise]
        completed.append(Outcome(**figures))
    return sorted(completed, key=lambda row: (row.weighted_rmse is None, row.weighted_rmse or 0.0))
