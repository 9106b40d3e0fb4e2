"""The command ``compare``: every mechanism on one workload, each in a process of its own."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.console import Group as Lines
from rich.spinner import Spinner
from rich.text import Text
from typer import Option

import matrixdp as mdp
from matrixdp.cli.app import JsonOption, explained, guarded, wrong
from matrixdp.cli.console import peak_memory_mb, say, selection_figures, unit_in_words
from matrixdp.cli.options import (
    PICTURES,
    PictureOption,
    Spec,
    check_output,
    noise_name,
    one_round,
    warn,
    with_budget,
)
from matrixdp.cli.tables import Column, console, print_columns, table_of
from matrixdp.display import figure
from matrixdp.errors import SpecificationError
from matrixdp.forms import unknown_name
from matrixdp.noise import NOISES, natural_noise, noise_named
from matrixdp.selection.auto import select
from matrixdp.selection.registry import MECHANISMS, DataDependent, Mechanism
from matrixdp.sources import open_source


@guarded
def compare(
    spec: Spec,
    mechanisms: Annotated[
        str | None, Option(metavar="A,B,...", help="Only these, separated by commas.", show_default="all")
    ] = None,
    noise: Annotated[
        str,
        Option(
            parser=partial(noise_name, ("auto", "both")),
            metavar="<auto|gaussian|laplace|both>",
            help="auto: Laplace for pure differential privacy (epsilon alone), both for epsilon with delta, "
            "Gaussian for rho and mu.",
        ),
    ] = "auto",
    time_limit: Annotated[
        float,
        Option(
            min=1.0,
            metavar="SECONDS",
            help="For all mechanisms together: half for auto, the rest for the others, the quickest first.",
        ),
    ] = 180.0,
    time_limit_each: Annotated[float, Option(min=1.0, metavar="SECONDS", help="Limit for each one.")] = 60.0,
    why: Annotated[bool, Option("--why", help="Say why mechanisms do not apply, or did not finish.")] = False,
    picture: PictureOption = None,
    public_table: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Simulate mechanisms whose error depends on the data (dawa, privbayes) on this table. "
            "Its EXACT ANSWERS ARE COMPUTED, so the output is NOT PRIVATE: never give a confidential table.",
        ),
    ] = None,
    simulations: Annotated[
        int, Option(min=2, max=100_000, metavar="N", help="How often, with --public-table.")
    ] = 20,
    as_json: JsonOption = False,
) -> None:
    """Compare the expected error of mechanisms, without the data.

    Every mechanism selects its strategy in a process of its own; the errors are at the specification's
    budget. Mechanisms that do not apply are named, and --why gives the reasons. The specification's own
    table is never read; a table that is given as --public-table is, and must be public.
    """
    written, budget = with_budget(spec)
    warn(one_round(written))
    pairs = [(name, own) for name in named(mechanisms) for own in _noises(noise, budget)]
    check_output("--picture", picture, endings=PICTURES)
    if public_table is not None:
        open_source(str(public_table))
    comparison = Comparison(spec, time_limit, time_limit_each, public_table, simulations)
    limited(dict, time_limit_each, "")  # what starts processes has imported everything when time begins
    with live() as report:
        rows = comparison.run(pairs, report)
    queries = written.workload.queries
    if picture is not None:
        parameters = budget.as_dict() | budget.unit.as_dict()
        figures = ", ".join(f"{name} {value}" for name, value in parameters.items() if name != "unit")
        draw_comparison(rows, picture, f"{queries:,} queries; {figures}")
    applies = any(row.rmse is not None for row in rows)
    if as_json:
        printed = {
            "queries": queries,
            "privacy": budget.as_dict(),
            "time_limit": time_limit,
            "time_limit_each": time_limit_each,
            "public_table": None if public_table is None else str(public_table),
            "mechanisms": [asdict(row) for row in rows],
        }
        typer.echo(json.dumps(printed))
    else:
        print_comparison(rows, why=why or not applies)
        if picture is not None:
            typer.echo(f"drawn: {picture}")
        typer.echo(f"unit: {unit_in_words(budget.unit)}")
    if not applies:
        raise wrong("--mechanisms", "none that applies, see above", "one that applies", "not-supported")


def named(given: str | None) -> list[str]:
    """Return the mechanisms that are asked for, in the order in which they are tried."""
    if given is None:
        return [*MECHANISMS, "auto"]
    names = {name.strip() for name in given.split(",") if name.strip()}
    for name in names - {"auto", *MECHANISMS}:
        unknown = unknown_name(("--mechanisms",), name, "a mechanism", MECHANISMS)
        raise SpecificationError(unknown, "unknown-name")
    if not names:
        raise wrong("--mechanisms", "nothing", "names separated by commas", "empty")
    return [name for name in (*MECHANISMS, "auto") if name in names]


def _noises(noise: str, budget: mdp.Budget) -> list[str]:
    if noise == "auto" and budget.kind != "approx":
        return [natural_noise(budget).name]
    if noise in ("auto", "both"):
        return [name for name, other in NOISES.items() if other.honours(budget)]
    return [noise]


#: A mechanism is not begun with less time than this, in seconds.
_LEAST_TIME = 0.5
#: Of the time for all, each mechanism has at least this share as long as there is some.
_LEAST_SHARE = 0.05
#: What most mechanisms import.
_IMPORTED = ["matrixdp.cli.compare", "matrixdp.mechanisms", "matrixdp.strategy", "scipy.optimize"]


@dataclass(frozen=True)
class Outcome:
    """What came of one mechanism with one kind of noise; figures are None where it does not apply.

    Errors are in records at the specification's budget. ``lower_bound_rmse`` is the weighted RMSE below which
    it is proved that no strategy with this noise comes; ``ratio_to_best`` is to the least weighted RMSE of
    the rows whose error is promised; seconds and memory are those of a process of its own, the start of
    Python included in memory but not in time; ``note`` says why it does not apply, or what was simulated;
    ``chosen`` which mechanism ``auto`` chose; ``unfinished`` that time ran out.
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


@dataclass(frozen=True)
class Comparison:
    """What is compared, and how long it may take, in seconds: all mechanisms together, and each."""

    spec: Path
    together: float
    each: float
    public_table: Path | None
    simulations: int

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
            quick = [pair for pair, one in found.items() if pair[1] == noise and one.seconds and one.rmse]
            if quick:
                attempt(min(quick, key=lambda pair: found[pair].seconds or 0.0), left(), proves=True)
        return ratios(list(found.values()))

    def _outcome(self, mechanism: str, noise: str, seconds: float, *, bounded: bool) -> Outcome:
        listed = None if mechanism == "auto" else MECHANISMS[mechanism]
        nothing = Outcome(mechanism, noise, data_dependent=isinstance(listed, DataDependent))
        if seconds < _LEAST_TIME:
            note = f"not begun within {self.together:g} s for all mechanisms (--time-limit)"
            return replace(nothing, note=note, unfinished=True)
        if isinstance(listed, Mechanism) and noise_named(noise).norm not in listed.norms:
            return replace(nothing, note="selects for the other noise alone")
        task: Callable[[], dict[str, Any]] = partial(selected, self.spec, mechanism, noise, bounded)
        if isinstance(listed, DataDependent):
            own = listed.noises[0]
            if noise_named(noise) not in listed.noises:
                return replace(nothing, note=f"adds {own.title} noise alone; use --noise {own}")
            if self.public_table is None:
                needed = "its error depends on the table: needs a public one (--public-table FILE)"
                return replace(nothing, note=needed)
            task = partial(simulated, self.spec, mechanism, self.public_table, self.simulations)
        note = f"not within {self.each:g} s (--time-limit-each)"
        if seconds < self.each:
            note = f"not within {seconds:.1f} s, its share of {self.together:g} s for all (--time-limit)"
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
    try:
        process.start()
        theirs.close()
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
        found = {"note": explained(error)[0]}
    pipe.send(found)


def selected(spec: Path, mechanism: str, noise: str, bounded: bool) -> dict[str, Any]:
    """Select a strategy, and return its errors; a lower bound where it is wanted, or costs no more."""
    started = time.perf_counter()
    written, budget = with_budget(spec)
    selection = select(
        written.workload,
        mechanism=mechanism,
        noise=noise_named(noise),
        neighbours=budget.neighbours,
        bounded=bounded,
    )
    figures = selection_figures(mdp.Strategy(selection), budget)
    kept = ("rmse", "weighted_rmse", "max_stddev", "lower_bound_rmse", "peak_memory_mb")
    found = {name: figures[name] for name in kept} | {"seconds": time.perf_counter() - started}
    return found | ({"chosen": figures["mechanism"]} if mechanism == "auto" else {})


def simulated(spec: Path, mechanism: str, public_table: Path, simulations: int) -> dict[str, Any]:
    """Simulate a mechanism whose error depends on the table on a public one. Exact answers are computed."""
    started = time.perf_counter()
    written, budget = with_budget(spec)
    found = MECHANISMS[mechanism]
    assert isinstance(found, DataDependent)
    result = found.simulate(written.workload, public_table, budget, simulations, written.out_of_domain)
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
        if bound > 0.0 and not row.data_dependent:
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


# The table of a comparison: as it grows, and at its end.


def _columns(rows: Sequence[Outcome]) -> list[Column]:
    """Return the rows that apply as columns."""
    rows = [row for row in rows if row.rmse is not None]
    found = {"RMSE": [figure(row.rmse) for row in rows]}
    if weighted(rows):
        found["weighted RMSE"] = [figure(row.weighted_rmse) for row in rows]
    found |= {
        "largest stddev": [figure(row.max_stddev) for row in rows],
        "to best": [_ratio(row.ratio_to_best) for row in rows],
        "to bound": [_ratio(row.ratio_to_lower_bound) for row in rows],
        "s": ["-" if row.seconds is None else f"{row.seconds:.1f}" for row in rows],
        "MB": ["-" if row.peak_memory_mb is None else f"{row.peak_memory_mb:.0f}" for row in rows],
    }
    return [
        Column("mechanism", [row.label.replace(" ", "\n") for row in rows]),
        Column("noise", [row.noise for row in rows], whole=True),
        *(Column(name.replace(" ", "\n"), texts, number=True, whole=True) for name, texts in found.items()),
    ]


def _ratio(ratio: float | None) -> str:
    return figure(ratio) if ratio is None or ratio >= 100 else f"{ratio:.3f}"


def print_comparison(rows: Sequence[Outcome], *, why: bool) -> None:
    """Print the table, what its columns mean, and which mechanisms are not in it."""
    if any(row.rmse is not None for row in rows):
        print_columns(console(), _columns(rows), plain=True)
        minimized = "weighted RMSE" if weighted(rows) else "RMSE"
        say(
            f"to best: ratio of the {minimized} to the smallest one, simulations apart. to bound: ratio to "
            "the lower bound for the same noise."
        )
    for row in rows:
        if row.note and (why or row.rmse is not None):
            say(f"{row.mechanism} ({row.noise}): {row.note.removeprefix(f'{row.mechanism}: ')}")
    for words, unfinished in {"did not finish": True, "do not apply": False}.items():
        missing = [row for row in rows if row.rmse is None and row.unfinished == unfinished]
        if missing and not why:
            say(f"{words} (--why says why): {_listed(missing)}")


def _listed(rows: Sequence[Outcome]) -> str:
    """Return the names of mechanisms, each once; with the noise where it is not so for every noise."""
    noises: dict[str, list[str]] = {}
    for row in rows:
        noises.setdefault(row.mechanism, []).append(row.noise)
    most = max(map(len, noises.values()))
    return ", ".join(
        name if len(own) == most else f"{name} ({', '.join(own)})" for name, own in noises.items()
    )


@contextmanager
def live() -> Iterator[Report]:
    """Yield what shows the table while it grows, where output and errors go to a terminal; silent elsewhere.

    Examples
    --------
    >>> with live() as report:
    ...     report("identity (gaussian), 1 of 9", [])
    """
    errors = Console(stderr=True, highlight=False)
    if not (errors.is_terminal and console().is_terminal):
        yield lambda *_: None
        return
    from rich.live import Live

    with Live(console=errors, transient=True, vertical_overflow="crop") as screen:

        def report(label: str, rows: Sequence[Outcome]) -> None:
            """Show what is being done, below what came of it so far."""
            working = Spinner("dots", text=Text(label))
            shown = any(row.rmse is not None for row in rows)
            screen.update(Lines(table_of(_columns(rows), plain=True), working) if shown else working)

        yield report


def draw_comparison(rows: Sequence[Outcome], path: Path, title: str) -> None:
    """Draw the RMSE of every mechanism that applies as bars, with the lower bounds as lines.

    Where queries have weights, bars are the weighted RMSE, which the bounds are for, and points the other.
    """
    from matrixdp.pictures.plots import INK, SERIES, new_figure, quiet

    applies = [row for row in rows if row.weighted_rmse is not None]
    if not applies:
        raise wrong("--picture", "no mechanism that applies", "at least one", "not-supported")
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
    drawn.savefig(path, dpi=150)
