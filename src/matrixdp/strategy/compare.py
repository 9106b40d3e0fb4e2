"""Every mechanism on one workload, each in a process of its own: its errors, and how long it takes."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any, final

from matrixdp.answers.figures import reliable
from matrixdp.display import Displayed, Preview, counted, figure
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError, SpecificationError, explained, within
from matrixdp.exact.resources import peak_memory_mb
from matrixdp.forms import describe_value, unknown_name
from matrixdp.measure.calibration import drawn_variances, least_drawn
from matrixdp.noise import NOISES, natural_noise, noise_named
from matrixdp.privacy import Budget, Unit
from matrixdp.queries import Workload
from matrixdp.queries.workload import budget_shares
from matrixdp.selection.auto import select
from matrixdp.selection.registry import MECHANISMS, OF_JOINT_NOISE, DataDependent, Mechanism
from matrixdp.selection.selection import Selection
from matrixdp.sources import Source, open_source
from matrixdp.strategy.strategy import Strategy
from matrixdp.strategy.strategy import select as select_for

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A mechanism is not begun with less time than this, in seconds.
_LEAST_TIME = 0.5
#: Of the time for all, each mechanism has at least this share as long as there is some.
_LEAST_SHARE = 0.05
#: What most mechanisms import.
_IMPORTED = ["matrixdp.strategy.compare", "matrixdp.mechanisms", "matrixdp.strategy", "scipy.optimize"]


@dataclass(frozen=True)
class Outcome:
    """What came of one mechanism with one kind of noise; figures are None where it does not apply.

    Errors are in records at the budget. ``lower_bound_rmse`` is the weighted RMSE below which it is proved
    that no strategy with this noise comes, joint noise aside; ``ratio_to_best`` is to the least
    weighted RMSE of the rows whose error is promised; ``reliable`` is the share of counts of the public table
    whose standard error is at most a third of them, with simulated noise; seconds and memory are those of a
    process of its own, the start of Python included in memory but not in time; ``note`` says why it does not
    apply, or what was simulated; ``chosen`` which mechanism ``auto`` chose; ``unfinished`` that time ran out.
    """

    mechanism: str
    noise: str
    rmse: float | None = None
    weighted_rmse: float | None = None
    max_stddev: float | None = None
    lower_bound_rmse: float | None = None
    ratio_to_best: float | None = None
    ratio_to_lower_bound: float | None = None
    reliable: float | None = None
    seconds: float | None = None
    peak_memory_mb: float | None = None
    note: str = ""
    chosen: str = ""
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


Report = Callable[[str, Sequence[Outcome]], None]
"""Is called with what is being done, and what came of it so far."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Displayed):
    """What came of every mechanism, best first; those that do not apply come last.

    Attributes
    ----------
    workload : Workload
    budget : Budget
        At which errors are.
    outcomes : tuple of Outcome
        One for each mechanism and noise.
    """

    workload: Workload
    budget: Budget
    outcomes: tuple[Outcome, ...]

    @property
    def applies(self) -> list[Outcome]:
        """The outcomes of mechanisms that came to a strategy."""
        return [row for row in self.outcomes if row.rmse is not None]

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain values for JSON."""
        rows = [asdict(row) for row in self.outcomes]
        return {"queries": self.workload.queries, "privacy": self.budget.as_dict(), "mechanisms": rows}

    def plot(self) -> Figure:
        """Draw the RMSE of every mechanism that applies as bars, with the lower bounds as lines.

        Where queries have weights, bars are the weighted RMSE, which the bounds are for; points are the RMSE.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        SpecificationError
            If no mechanism applies, or matplotlib is not installed.
        """
        if not self.applies:
            raise SpecificationError.at((), "no mechanism that applies", "at least one", code="not-supported")
        told = f"{self.workload.queries:,} queries; {self.budget.words}"
        return draw_comparison(self.applies, told)

    def _lines(self) -> tuple[str, str]:
        tried = counted(len({row.mechanism for row in self.outcomes}), "mechanism")
        queries = counted(self.workload.queries, "query", "queries")
        return f"Comparison of {tried} on {queries}", f"standard errors at {self.budget.words}"

    def _preview(self) -> Preview:
        columns = error_columns(self.outcomes)
        rows = list(zip(*columns.values(), strict=True))
        return Preview(tuple(columns), rows, len(rows), frozenset(range(2, len(columns))))


def compare(
    workload: Workload,
    budget: Budget,
    *,
    mechanisms: Iterable[str] | None = None,
    noise: str = "auto",
    time_limit: float = 180.0,
    time_limit_each: float = 60.0,
    public_table: object = None,
    simulations: int = 20,
    out_of_domain: OutOfDomain | object = None,
    progress: Report | None = None,
) -> Comparison:
    """Compare the expected error of mechanisms, without the data.

    Every mechanism selects its strategy in a process of its own, which ends when its time does. In a script,
    call it below ``if __name__ == "__main__":``, as whatever starts processes.

    Parameters
    ----------
    workload : Workload
        What is asked. Where entries ask for shares of the budget, mechanisms are compared at the weights with
        which `select` reaches them.
    budget : Budget
        At which errors are compared.
    mechanisms : iterable of str, optional
        The names of those to compare, ``auto`` among them; all where it is left out.
    noise : {"auto", "both", "gaussian", "laplace"}
        ``auto``: Laplace for pure differential privacy, both for epsilon with delta, Gaussian for rho and mu.
    time_limit, time_limit_each : float
        In seconds: for all mechanisms together, half of it for ``auto`` and the rest for the others, the
        quickest first; and for each one.
    public_table : object, optional
        A table that is PUBLIC, a path, an address or in memory: mechanisms whose error depends on the data
        are simulated on it. Its EXACT ANSWERS ARE COMPUTED: never give a confidential table.
    simulations : int
        How often.
    out_of_domain : OutOfDomain, or what a specification says, optional
        What becomes of records of the public table that are out of domain.
    progress : callable, optional
        Is called with what is being done, and the outcomes so far.

    Returns
    -------
    Comparison

    Raises
    ------
    SpecificationError
        If there is no such mechanism or noise.
    SourceError
        If the public table cannot be read, or not by other processes.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": range(20)}), mdp.product(age="prefix"))
    >>> found = mdp.compare(workload, mdp.Budget(rho=0.1), mechanisms=["identity", "auto"])
    >>> [row.mechanism for row in found.outcomes], found.outcomes[1].ratio_to_best > 1.1
    (['auto', 'identity'], True)
    """
    with within("mechanisms"):
        names = named(mechanisms)
    pairs = [(name, own) for name in names for own in _noises(noise, budget)]
    with within("out_of_domain"):
        rule = OutOfDomain.from_spec(workload.domain, out_of_domain)
    if public_table is not None:
        source = open_source(public_table)
        _check_handed_over(public_table)
        known_unit(source, workload.domain, rule, budget.unit)
    if any(budget_shares(workload)):
        workload = select_for(workload, budget=budget).workload  # whose weights give entries their shares
    contest = _Contest(workload, budget, time_limit, time_limit_each, public_table, simulations, rule)
    limited(dict, time_limit_each, "")  # what starts processes has imported everything when time begins
    rows = contest.run(pairs, progress or (lambda _what, _rows: None))
    return Comparison(workload, budget, tuple(rows))


def known_unit(source: Source, domain: Domain, rule: OutOfDomain, unit: Unit) -> Unit:
    """Return a privacy unit as a public table knows it: without an id where the table has none.

    Raises
    ------
    SourceError
        If the table lacks columns of the domain, or an id beside `per`.
    """
    source.check(domain, rule, Unit())
    try:
        source.check(domain, rule, unit)
    except SourceError:
        if unit.per:
            raise
        return Unit(unit.records)
    return unit


def _check_handed_over(table: object) -> None:
    """Reject a table that no other process can get, such as a query of a database."""
    try:
        ForkingPickler.dumps(table)
    except Exception:  # noqa: BLE001 - each kind of table fails in its own way
        found = f"a {type(table).__name__}, which no other process can read"
        expected = "a path, an address or a table in memory"
        raise SourceError.at(("public_table",), found, expected, code="wrong-type") from None


def named(mechanisms: Iterable[str] | None) -> list[str]:
    """Return the mechanisms that are asked for, in the order in which they are tried."""
    if isinstance(mechanisms, str):
        raise SpecificationError.at((), describe_value(mechanisms), "a list of names", code="wrong-type")
    names = {*MECHANISMS, "auto"} if mechanisms is None else set(mechanisms)
    for name in names - {"auto", *MECHANISMS}:
        raise SpecificationError(unknown_name((), name, "a mechanism", MECHANISMS))
    if not names:
        raise SpecificationError.at((), "nothing", "names of mechanisms", code="empty")
    return [name for name in (*MECHANISMS, "auto") if name in names]


def _noises(noise: str, budget: Budget) -> list[str]:
    if noise == "auto" and budget.kind != "approx":
        return [natural_noise(budget).name]
    if noise in ("auto", "both"):
        return [name for name, other in NOISES.items() if other.honours(budget)]
    return [noise_named(noise).name]


@dataclass(frozen=True)
class _Contest:
    """What is compared, and how long it may take, in seconds: all mechanisms together, and each."""

    workload: Workload
    budget: Budget
    together: float
    each: float
    public_table: object
    simulations: int
    out_of_domain: OutOfDomain

    def run(self, pairs: Sequence[tuple[str, str]], report: Report) -> list[Outcome]:
        """Select with mechanisms and noises, one after the other, and return the outcomes, best first.

        Half of the time is kept for ``auto`` with the first noise. The others come before it, the quickest
        first, and what one leaves of its share goes to those that follow. In the end what did not finish is
        tried again, with at least twice its time.
        """
        found: dict[tuple[str, str], Outcome] = {}
        tried: dict[tuple[str, str], float] = {}
        ends = time.perf_counter() + self.together

        def left() -> float:
            return ends - time.perf_counter()

        def attempt(pair: tuple[str, str], seconds: float, *, proves: bool = False) -> None:
            report(f"{pair[0]} ({pair[1]}), {len(found)} of {len(pairs)} tried", ratios([*found.values()]))
            tried[pair] = min(seconds, self.each)
            outcome = self._outcome(*pair, tried[pair], bounded=proves or pair[0] == "auto")
            found[pair] = found[pair] if proves and outcome.unfinished else outcome

        autos = [pair for pair in pairs if pair[0] == "auto"]
        others = [pair for pair in pairs if pair[0] != "auto"]
        kept = self.together / 2 if autos else 0.0
        for following, pair in zip(reversed(range(len(others))), others, strict=True):
            share = left() - kept
            least = min(_LEAST_SHARE * self.together, share - _LEAST_TIME * following)
            attempt(pair, max(share / (following + 1), least, min(share, _LEAST_TIME)))
        for place, pair in enumerate(autos):
            attempt(pair, 0.0 if place else left())
            same = (found[pair].chosen, pair[1])
            if same in found and found[same].unfinished:
                note = "the strategy that auto chose, with its time"
                found[same] = replace(found[pair], mechanism=same[0], note=note)
        again = [pair for pair in pairs if found[pair].unfinished and tried[pair] < self.each]
        while again:
            pair = again.pop(0)
            if left() >= 2 * tried[pair]:
                attempt(pair, max(2 * tried[pair], left() / (len(again) + 1)))
                again += [pair] if found[pair].unfinished and tried[pair] < self.each else []
        # One bound holds for all strategies with a noise; where auto does not prove it the quickest one does.
        for noise in {pair[1] for pair in others} - {pair[1] for pair in autos}:
            proving = [pair for pair, one in found.items() if pair[1] == noise and not one.data_dependent]
            quick = [pair for pair in proving if found[pair].seconds and found[pair].rmse]
            if quick:
                attempt(min(quick, key=lambda pair: found[pair].seconds or 0.0), left(), proves=True)
        return ratios(list(found.values()))

    def _outcome(self, mechanism: str, noise: str, seconds: float, *, bounded: bool) -> Outcome:
        listed = None if mechanism == "auto" else MECHANISMS[mechanism]
        nothing = Outcome(mechanism, noise, data_dependent=isinstance(listed, DataDependent))
        if seconds < _LEAST_TIME:
            note = f"not begun within {self.together:g} s for all mechanisms"
            return replace(nothing, note=note, unfinished=True)
        if isinstance(listed, Mechanism) and noise_named(noise).norm not in listed.norms:
            return replace(nothing, note="selects for the other noise alone")
        task: Callable[[], dict[str, Any]] = partial(
            _selected,
            self.workload,
            self.budget,
            mechanism,
            noise,
            bounded,
            self.public_table,
            self.out_of_domain,
        )
        if isinstance(listed, DataDependent):
            own = listed.noises[0]
            if noise_named(noise) not in listed.noises:
                return replace(nothing, note=f"adds {own.title} noise alone")
            if self.public_table is None:
                return replace(
                    nothing, note="its error depends on the table: needs a public one (--public-table)"
                )
            given = self.budget, self.simulations, self.out_of_domain
            task = partial(_simulated, mechanism, self.workload, self.public_table, *given)
        note = f"not within {self.each:g} s"
        if seconds < self.each:
            note = f"not within {seconds:.1f} s, its share of {self.together:g} s for all"
        return replace(nothing, **limited(task, seconds, note))


def limited(task: Callable[[], dict[str, Any]], seconds: float, note: str) -> dict[str, Any]:
    """Return what a task returns in a process of its own, or a note on why it does not in that time."""
    # A server that has imported everything starts a process in a moment, where there is one.
    method = "forkserver" if "forkserver" in get_all_start_methods() else "spawn"
    context: Any = get_context(method)
    context.set_forkserver_preload(_IMPORTED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answered, args=(theirs, task))
    started = time.perf_counter()
    with theirs:
        process.start()
    try:
        if not ours.poll(seconds):
            return {"seconds": time.perf_counter() - started, "note": note, "unfinished": True}
        with suppress(EOFError):
            found: dict[str, Any] = ours.recv()
            return found
        process.join()
        killed = process.exitcode is not None and process.exitcode < 0
        return {"note": "out of memory, or killed" if killed else "ended without an answer"}
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def _answered(pipe: Connection, task: Callable[[], dict[str, Any]]) -> None:
    """Send what a task returns, or why it failed; what it prints is not shown."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        found = task()
    except Exception as error:  # noqa: BLE001 - whatever it is, the next mechanism is tried
        found = {"note": explained(error)}
    pipe.send(found)


def _selected(
    workload: Workload,
    budget: Budget,
    mechanism: str,
    noise: str,
    bounded: bool,
    table: object,
    rule: OutOfDomain,
) -> dict[str, Any]:
    """Select a strategy, and return its errors; a lower bound where it is wanted, or costs no more."""
    started = time.perf_counter()
    own, drawn = noise_named(noise), partial(drawn_variances, budget=budget)
    chosen = partial(select, workload, mechanism=mechanism, noise=own, neighbours=budget.neighbours)
    found = chosen(unit=budget.unit, bounded=bounded, drawn=drawn)
    found = found.priced(drawn(found.plan), least_drawn(own, budget))
    scale, bound = own.error_scale(budget), found.certificate.lower_bound
    squares = {"rmse": found.total_squared_error, "weighted_rmse": found.weighted_squared_error}
    squares |= {} if bound is None else {"lower_bound_rmse": bound}
    figures: dict[str, Any] = {
        name: math.sqrt(square / workload.queries / scale) for name, square in squares.items()
    }
    figures["max_stddev"] = math.sqrt(found.max_variance / scale)
    figures |= {"chosen": found.mechanism} if mechanism == "auto" else {}
    if table is not None:
        figures["reliable"] = _reliable(found, table, budget, rule)
    return figures | {"peak_memory_mb": peak_memory_mb(), "seconds": time.perf_counter() - started}


def _reliable(found: Selection, table: object, budget: Budget, rule: OutOfDomain) -> float:
    """Return the share of counts of a public table that are reliable, in one simulated release."""
    unit = known_unit(open_source(table), found.workload.domain, rule, budget.unit)
    own = budget.of_unit(unit)
    release = Strategy(found, "").measure(table, own, out_of_domain=rule, seed_not_private=0).reconstruct()
    groups = [one.group for one in release.tables if one.group is not None] or list(found.workload)
    estimates, analysis = release.measurement.estimates, release.analysis
    good = sum(reliable(estimates.answers(group), analysis.variances(group)) for group in groups)
    return good / sum(group.queries for group in groups)


def _simulated(
    mechanism: str, workload: Workload, table: object, budget: Budget, simulations: int, rule: OutOfDomain
) -> dict[str, Any]:
    """Simulate a mechanism whose error depends on the table on a public one. Exact answers are computed."""
    started = time.perf_counter()
    found = MECHANISMS[mechanism]
    assert isinstance(found, DataDependent)
    result = found.simulate(workload, table, budget, simulations, rule)
    note = (
        f"simulated {simulations} times on the public table, whose exact answers were computed: NOT PRIVATE. "
        f"RMSE ± {result.rmse_standard_error:.2g} (Monte Carlo standard error); other tables may have other "
        "errors"
    )
    return {
        "rmse": result.rmse,
        "weighted_rmse": result.weighted_rmse,
        "max_stddev": result.max_rmse,
        "rmse_standard_error": result.rmse_standard_error,
        "simulations": simulations,
        "seconds": time.perf_counter() - started,
        "peak_memory_mb": peak_memory_mb(),
        "note": note,
    }


def ratios(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return outcomes with their ratios, sorted by error; what does not apply comes last.

    Examples
    --------
    >>> worse = Outcome("a", "gaussian", weighted_rmse=3.0)
    >>> rows = ratios([worse, Outcome("b", "gaussian", weighted_rmse=2.0)])
    >>> [(row.mechanism, row.ratio_to_best) for row in rows]
    [('b', 1.0), ('a', 1.5)]
    """
    known = [row for row in outcomes if row.weighted_rmse is not None]
    # those whose error is promised come before those that were simulated
    _, best = min(((row.data_dependent, row.weighted_rmse or 0.0) for row in known), default=(False, 0.0))
    bounds: dict[str, float] = {}
    for row in outcomes:
        bounds[row.noise] = max(bounds.get(row.noise, 0.0), row.lower_bound_rmse or 0.0)
    completed = []
    for row in sorted(known, key=lambda row: row.weighted_rmse or 0.0):
        error, bound = row.weighted_rmse or 0.0, bounds[row.noise]
        row = replace(row, ratio_to_best=error / best)
        joint = not {row.mechanism, row.chosen}.isdisjoint(OF_JOINT_NOISE)
        if bound > 0.0 and not (row.data_dependent or joint):
            row = replace(row, lower_bound_rmse=bound, ratio_to_lower_bound=error / bound)
        completed.append(row)
    return [*completed, *(row for row in outcomes if row.weighted_rmse is None)]


def weighted(outcomes: Iterable[Outcome]) -> bool:
    """Return whether weights make the error that is minimized another than the RMSE, for any row.

    Examples
    --------
    >>> weighted([Outcome("a", "gaussian", rmse=12.98, weighted_rmse=14.25)])
    True
    """
    errors = [(row.rmse, row.weighted_rmse) for row in outcomes]
    return any(a is not None and b is not None and abs(a - b) > 1e-9 * abs(b) for a, b in errors)


def error_columns(outcomes: Sequence[Outcome]) -> dict[str, list[str]]:
    """Return the outcomes of mechanisms that apply as columns of texts."""
    rows = [row for row in outcomes if row.rmse is not None]
    found = {
        "mechanism": [row.label for row in rows],
        "noise": [row.noise for row in rows],
        "RMSE": [figure(row.rmse) for row in rows],
    }
    known = [row.reliable for row in rows]
    judged = {"reliable": ["-" if own is None else f"{own:.0%}" for own in known]} if any(known) else {}
    if weighted(rows):
        found["weighted RMSE"] = [figure(row.weighted_rmse) for row in rows]
    return found | {
        "largest stddev": [figure(row.max_stddev) for row in rows],
        "to best": [_ratio(row.ratio_to_best) for row in rows],
        "to bound": [_ratio(row.ratio_to_lower_bound) for row in rows],
        **judged,
        "s": ["-" if row.seconds is None else f"{row.seconds:.1f}" for row in rows],
        "MB": ["-" if row.peak_memory_mb is None else f"{row.peak_memory_mb:.0f}" for row in rows],
    }


def _ratio(ratio: float | None) -> str:
    return figure(ratio) if ratio is None or ratio >= 100 else f"{ratio:.3f}"


def draw_comparison(applies: Sequence[Outcome], title: str) -> Figure:
    """Draw the errors of mechanisms that apply; see `Comparison.plot`."""
    from matrixdp.pictures.plots import INK, SERIES, new_figure, quiet

    aside = weighted(applies)
    drawn = new_figure(8.0, 1.6 + 0.32 * len(applies))
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    axes = drawn.add_subplot()
    values = [row.weighted_rmse or 0.0 for row in applies]
    plain = [row.rmse or 0.0 for row in applies]
    places = range(len(values))
    colours = dict(zip(dict.fromkeys(row.noise for row in applies), SERIES, strict=False))
    bars = axes.barh(places, values, color=[colours[row.noise] for row in applies])
    for bar, row in zip(bars, applies, strict=True):
        if row.data_dependent:
            bar.set(hatch="///", alpha=0.5)
    if aside:
        axes.plot(plain, places, "D", markersize=4, label="RMSE, unweighted", color="white", mec=INK)
    axes.set_yticks(places, [f"{row.label} ({row.noise})" for row in applies])
    axes.invert_yaxis()
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85}
    for place, value, other in zip(places, values, plain, strict=True):
        end = max(value, other), place
        axes.annotate(f"{value:.4g}", end, (5, 0), textcoords="offset points", va="center", bbox=box)
    for noise, colour in colours.items():
        bounds = [row.lower_bound_rmse for row in applies if row.noise == noise and row.lower_bound_rmse]
        if bounds:
            label = f"lower bound, {noise} noise"
            axes.axvline(max(bounds), color=colour, linestyle="--", zorder=3, label=label)
    if axes.get_legend_handles_labels()[0]:
        drawn.legend(loc="outside lower center", ncols=3, frameon=False)
    if max(values) > 20 * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12, y=0.01)
    axes.set_xlabel("weighted RMSE in records, which is minimized" if aside else "RMSE in records")
    axes.set_title(title, fontsize="medium")
    quiet(axes, grid="")
    return drawn
