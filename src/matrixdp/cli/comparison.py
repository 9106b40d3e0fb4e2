"""Several mechanisms on one workload, each selected in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from matrixdp.noise import noise_named
from matrixdp.selection.mechanisms.table import MECHANISMS, DataDependent

__all__ = [
    "Limit",
    "Limits",
    "Outcome",
    "Report",
    "compare_mechanisms",
    "quickest_first",
    "ratios",
    "weighted",
]

#: The mechanisms by how long they take to select, the quickest first; others come after `auto`.
_QUICKEST = (
    *(
        "identity",
        "wavelet",
        "hierarchical",
        "hb",
        "hb-product",
        "quadtree",
        "singular-value",
        "fourier-thresholds",
    ),
    *("residualplanner", "residualplanner-plus", "workload", "greedy-h", "datacube", "l2-approximation"),
    *(
        "residual",
        "querysmasher",
        "fourier",
        "opt-kron",
        "eigen-query",
        "weighted-product",
        "opt-m",
        "opt-0",
        "dense",
        "auto",
    ),
    *("generalized-marginals", "hdmm", "opt-plus"),
)
#: Those that take long wherever they apply.
_SLOWEST = ("low-rank", "exponential-smoothing", "rotation", "min-sensitivity", "min-error", "coa", "dawa")
#: A mechanism is not begun with less time than this, in seconds.
_LEAST_TIME = 0.5

#: What is taken over from ``select``, or from why it failed.
_FIGURES = (
    "rmse",
    "weighted_rmse",
    "max_stddev",
    "lower_bound_rmse",
    "seconds",
    "peak_memory_mb",
    "note",
    "unfinished",
)


@dataclass(frozen=True)
class Outcome:
    """What came of one mechanism with one kind of noise; figures are None where it does not apply.

    Errors are in records at the specification's budget. ``lower_bound_rmse`` is the weighted RMSE below which
    it is proved that no strategy with this noise comes; ``ratio_to_best`` is to the least weighted RMSE of
    the rows whose error is promised; seconds and memory are those of a process of its own, the start of
    Python included in memory but not in time; ``note`` says why it does not apply, or what was simulated;
    ``unfinished`` that time ran out.
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
    unfinished: bool = False
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


Report = Callable[[str, float | None, Sequence[Outcome]], None]
"""Is called with what is being done, the share that is done, and what came of it so far."""


@dataclass(frozen=True)
class Limits:
    """How long a comparison may take, in seconds: all mechanisms together, and each.

    Examples
    --------
    >>> Limits(180.0, 60.0).now(left=20.0).seconds
    20.0
    """

    together: float
    each: float

    def now(self, left: float) -> Limit:
        """Return the limit of the next mechanism where so much is left for all."""
        if left < self.each:
            return Limit(left, f"not within what was left of {self.together:g} s for all (--time-limit)")
        return Limit(self.each, f"not within {self.each:g} s (--time-limit-each)")


@dataclass(frozen=True)
class Limit:
    """How long one mechanism may take, in seconds, and what is said if it takes longer."""

    seconds: float
    note: str


def compare_mechanisms(
    spec: Path,
    mechanisms: Sequence[str],
    noises: Sequence[str],
    limits: Limits,
    report: Report,
    public_table: Path | None,
    simulations: int,
) -> list[Outcome]:
    """Select with every mechanism and noise, and return what came of each, best first.

    The quickest mechanisms come first, so that a limit for all together leaves out the slowest. Of a public
    table, on which mechanisms whose error depends on the table are simulated, exact answers are computed.
    """
    found: list[Outcome] = []
    pairs = [(mechanism, noise) for mechanism in quickest_first(mechanisms) for noise in noises]
    started = time.perf_counter()
    for number, (mechanism, noise) in enumerate(pairs):
        report(f"{mechanism} ({noise}), {number + 1} of {len(pairs)}", number / len(pairs), ratios(found))
        listed = MECHANISMS[mechanism] if mechanism != "auto" else None
        left = limits.together - (time.perf_counter() - started)
        if left < _LEAST_TIME:
            note = f"not begun within {limits.together:g} s for all mechanisms (--time-limit)"
            depends = isinstance(listed, DataDependent)
            found.append(Outcome(mechanism, noise, note=note, unfinished=True, data_dependent=depends))
        elif isinstance(listed, DataDependent):
            found.append(_simulated(spec, listed, noise, limits.now(left), public_table, simulations))
        else:
            found.append(_outcome(spec, mechanism, noise, limits.now(left)))
    return ratios(found)


def quickest_first(mechanisms: Iterable[str]) -> list[str]:
    """Return names of mechanisms in the order in which they are tried.

    Examples
    --------
    >>> quickest_first(["coa", "a-strangers", "hdmm", "identity"])
    ['identity', 'hdmm', 'a-strangers', 'coa']
    """
    order = {name: place for place, name in enumerate(_QUICKEST)}
    order |= {name: len(_QUICKEST) + 1 + place for place, name in enumerate(_SLOWEST)}
    return sorted(mechanisms, key=lambda name: order.get(name, len(_QUICKEST)))


def _outcome(spec: Path, mechanism: str, noise: str, limit: Limit) -> Outcome:
    command = ["matrixdp", "select", str(spec.absolute())]
    command += ["--mechanism", mechanism, "--noise", noise, "--json", "--ignore-targets"]
    found = _printed(command, limit)
    return replace(Outcome(mechanism, noise), **{key: found[key] for key in _FIGURES if key in found})


def _simulated(
    spec: Path, mechanism: DataDependent, noise: str, limit: Limit, table: Path | None, simulations: int
) -> Outcome:
    nothing = Outcome(mechanism.name, noise, data_dependent=True)
    own = mechanism.noises[0]
    if noise_named(noise) not in mechanism.noises:
        return replace(nothing, note=f"adds {own.title} noise alone; use --noise {own}")
    if table is None:
        return replace(
            nothing, note="its error depends on the table: needs a public one (--public-table FILE)"
        )
    command = ["matrixdp.cli.simulation", mechanism.name, str(spec.absolute()), str(table), str(simulations)]
    return replace(nothing, **_printed(command, limit))


def _printed(command: list[str], limit: Limit) -> dict[str, Any]:
    """Return what a module prints as JSON in a process of its own, or a note on why it failed."""
    command = [sys.executable, "-m", *command]
    started = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit.seconds, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        passed = time.perf_counter() - started
        return {"seconds": passed, "note": limit.note, "unfinished": True}
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

    Examples
    --------
    >>> worse = Outcome("a", "gaussian", weighted_rmse=3.0)
    >>> rows = ratios([worse, Outcome("b", "gaussian", weighted_rmse=2.0)])
    >>> [(row.mechanism, row.ratio_to_best) for row in rows]
    [('b', 1.0), ('a', 1.5)]
    """
    # those whose error is promised come before those that were simulated
    known = [(row.data_dependent, row.weighted_rmse) for row in outcomes if row.weighted_rmse is not None]
    bounds: dict[str, float] = {}
    for row in outcomes:
        bounds[row.noise] = max(bounds.get(row.noise, 0.0), row.lower_bound_rmse or 0.0)
    completed = []
    for row in outcomes:
        error, bound = row.weighted_rmse, bounds[row.noise]
        if error is not None:
            row = replace(row, ratio_to_best=error / min(known)[1])
            if bound > 0.0 and not row.data_dependent:
                row = replace(row, lower_bound_rmse=bound, ratio_to_lower_bound=error / bound)
        completed.append(row)
    return sorted(completed, key=lambda row: (row.weighted_rmse is None, row.weighted_rmse or 0.0))


def weighted(outcomes: Iterable[Outcome]) -> bool:
    """Return whether weights make the error that is minimized another than the RMSE, for any row.

    Examples
    --------
    >>> weighted([Outcome("a", "gaussian", rmse=12.98, weighted_rmse=14.25)])
    True
    """
    errors = [(row.rmse, row.weighted_rmse) for row in outcomes]
    return any(a is not None and b is not None and abs(a - b) > 1e-9 * abs(b) for a, b in errors)
