"""Several mechanisms on one workload, each selected in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Outcome", "compare_mechanisms", "ratios"]


@dataclass(frozen=True)
class Outcome:
    """What came of one mechanism with one kind of noise.

    Attributes
    ----------
    mechanism, noise : str
    rmse, weighted_rmse, max_stddev : float or None
        In records at the specification's budget; None where it does not apply.
    lower_bound_rmse : float or None
        The weighted RMSE below which it is proved that no strategy with this noise comes.
    ratio_to_best, ratio_to_lower_bound : float or None
        Of the weighted RMSE, to the least of all rows, and to the largest lower bound for the same noise.
    seconds, peak_memory_mb : float or None
        Of selection, in a process of its own, the start of Python included in memory but not in time.
    note : str
        Why it does not apply; empty where it does.
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

    def as_dict(self) -> dict[str, object]:
        """Return the figures as JSON has them."""
        return asdict(self)


def compare_mechanisms(
    spec: Path,
    mechanisms: Sequence[str],
    noises: Sequence[str],
    time_limit: float,
    report: Callable[[int, int, str], None] | None = None,
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
    """
    found = []
    pairs = [(mechanism, noise) for noise in noises for mechanism in mechanisms]
    for number, (mechanism, noise) in enumerate(pairs):
        if report is not None:
            report(number, len(pairs), f"{mechanism} ({noise})")
        found.append(_outcome(spec, mechanism, noise, time_limit))
    return ratios(found)


def _outcome(spec: Path, mechanism: str, noise: str, time_limit: float) -> Outcome:
    command = [sys.executable, "-m", "matrixdp", "select", str(spec.absolute())]
    command += ["--mechanism", mechanism, "--noise", noise, "--json"]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=time_limit, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        passed = time.perf_counter() - started
        return Outcome(mechanism, noise, seconds=passed, note=f"not within {time_limit:g} s (--time-limit)")
    if done.returncode != 0:
        return Outcome(mechanism, noise, note=_reason(done.stderr, done.returncode))
    figures = json.loads(done.stdout)
    return Outcome(
        mechanism,
        noise,
        rmse=figures["rmse"],
        weighted_rmse=figures["weighted_rmse"],
        max_stddev=figures["max_stddev"],
        lower_bound_rmse=figures["lower_bound_rmse"],
        seconds=figures["seconds"],
        peak_memory_mb=figures["peak_memory_mb"],
    )


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
    known = [row.weighted_rmse for row in outcomes if row.weighted_rmse is not None]
    bounds: dict[str, float] = {}
    for row in outcomes:
        if row.lower_bound_rmse is not None:
            bounds[row.noise] = max(bounds.get(row.noise, 0.0), row.lower_bound_rmse)
    completed = []
    for row in outcomes:
        figures = asdict(row)
        if row.weighted_rmse is not None:
            figures["ratio_to_best"] = row.weighted_rmse / min(known)
            if bounds.get(row.noise, 0.0) > 0.0:
                figures["ratio_to_lower_bound"] = row.weighted_rmse / bounds[row.noise]
        completed.append(Outcome(**figures))
    return sorted(completed, key=lambda row: (row.weighted_rmse is None, row.weighted_rmse or 0.0))
