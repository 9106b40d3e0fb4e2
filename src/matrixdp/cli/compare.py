"""The command ``compare``."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, final

import typer
from rich.console import Console
from rich.console import Group as Lines
from rich.measure import Measurement
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from matrixdp.cli.app import guarded
from matrixdp.cli.console import figure
from matrixdp.cli.options import Spec, check_picture, noise_name
from matrixdp.cli.tables import console
from matrixdp.errors import SpecificationError
from matrixdp.noise import noise_named
from matrixdp.selection.mechanisms.table import MECHANISMS, DataDependent

if TYPE_CHECKING:
    from rich.live import Live as Screen

    from matrixdp.privacy import Budget

Mechanisms = Annotated[
    str | None,
    typer.Option(
        "--mechanisms", metavar="A,B,...", help="Only these, separated by commas.", show_default="all"
    ),
]
NoisesOption = Annotated[
    str,
    typer.Option(
        "--noise",
        parser=partial(noise_name, ("auto", "both")),
        metavar="<auto|gaussian|laplace|both>",
        help="auto: Laplace for pure differential privacy (epsilon alone), both for epsilon with delta, "
        "Gaussian for rho and mu.",
    ),
]
TimeLimit = Annotated[
    float,
    typer.Option(
        "--time-limit",
        min=1.0,
        metavar="SECONDS",
        help="For all mechanisms together; the quickest come first.",
    ),
]
TimeLimitEach = Annotated[
    float, typer.Option("--time-limit-each", min=1.0, metavar="SECONDS", help="For each mechanism.")
]
Why = Annotated[bool, typer.Option("--why", help="Say why mechanisms do not apply, or did not finish.")]
Picture = Annotated[
    Path | None,
    typer.Option("--picture", metavar="FILE", help="Draw the errors: PNG, SVG or PDF by its ending."),
]
PublicTable = Annotated[
    Path | None,
    typer.Option(
        "--public-table",
        metavar="FILE",
        help="Simulate mechanisms whose error depends on the data (dawa) on this table. Its EXACT "
        "ANSWERS ARE COMPUTED, so the output is NOT PRIVATE: never give a confidential table.",
        show_default=False,
    ),
]
Simulations = Annotated[
    int,
    typer.Option("--simulations", min=2, max=100_000, metavar="N", help="How often, with --public-table."),
]


@guarded
def compare(
    spec: Spec,
    mechanisms: Mechanisms = None,
    noise: NoisesOption = "auto",
    time_limit: TimeLimit = 180.0,
    time_limit_each: TimeLimitEach = 60.0,
    why: Why = False,
    picture: Picture = None,
    public_table: PublicTable = None,
    simulations: Simulations = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare the expected error of mechanisms, without the data.

    Every mechanism selects its strategy in a process of its own; the errors are at the specification's
    budget. Mechanisms that do not apply are named, and --why gives the reasons. The specification's own
    table is never read; a table that is given as --public-table is, and must be public.
    """
    from matrixdp.cli.console import unit_in_words
    from matrixdp.cli.options import specification_with_budget
    from matrixdp.errors import SpecificationError
    from matrixdp.sources import open_source

    written, budget = specification_with_budget(spec)
    names = _mechanisms(mechanisms)
    if picture is not None:
        check_picture(picture)
    if public_table is not None:
        open_source(str(public_table))
    kinds = _noises(noise, budget)
    limits = Limits(time_limit, time_limit_each)
    with Live() as live:
        rows = compare_mechanisms(spec, names, kinds, limits, live.report, public_table, simulations)
    if picture is not None:
        parameters = budget.as_dict() | budget.unit.as_dict()
        figures = ", ".join(f"{name} {value}" for name, value in parameters.items() if name != "unit")
        draw_comparison(rows, picture, f"{written.workload.queries:,} queries; {figures}")
    if as_json:
        printed = {
            "queries": written.workload.queries,
            "privacy": budget.as_dict(),
            "time_limit": time_limit,
            "time_limit_each": time_limit_each,
            "public_table": None if public_table is None else str(public_table),
            "mechanisms": [row.as_dict() for row in rows],
        }
        typer.echo(json.dumps(printed))
        return
    print_comparison(rows, why=why or all(row.rmse is None for row in rows))
    if picture is not None:
        typer.echo(f"drawn: {picture}")
    typer.echo(f"unit: {unit_in_words(budget.unit)}")
    if all(row.rmse is None for row in rows):
        raise SpecificationError.at(
            ("--mechanisms",), "none that applies, see above", "at least one that applies"
        )


def _mechanisms(given: str | None) -> list[str]:
    from matrixdp.errors import SpecificationError
    from matrixdp.forms import unknown_name
    from matrixdp.selection.mechanisms.table import MECHANISMS

    if given is None:
        return list(MECHANISMS)
    names = [name.strip() for name in given.split(",") if name.strip()]
    for name in names:
        if name != "auto" and name not in MECHANISMS:
            raise SpecificationError(unknown_name(("--mechanisms",), name, "a mechanism", MECHANISMS))
    if not names:
        raise SpecificationError.at(("--mechanisms",), "nothing", "names separated by commas")
    return list(dict.fromkeys(names))


def _noises(noise: str, budget: Budget) -> list[str]:
    from matrixdp.noise import NOISES, natural_noise

    if noise == "auto" and budget.kind != "approx":
        return [natural_noise(budget).name]
    if noise in ("auto", "both"):
        return [name for name, other in NOISES.items() if other.honours(budget)]
    return [noise]


# Several mechanisms on one workload, each selected in a process of its own.

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


# The table of a comparison: as it grows, and at its end.

_WIDEST = 1000
_TITLES = ("RMSE", "largest stddev", "to best", "to bound", "s", "MB")


def comparison_table(rows: Sequence[Outcome]) -> Table:
    """Return the rows that apply as a table; names are broken where the screen is narrow, never figures."""
    aside = weighted(rows)
    table = Table(header_style="bold", box=None, padding=(0, 1, 0, 0))
    table.add_column("mechanism", overflow="fold")
    table.add_column("noise", no_wrap=True)
    for title in ("RMSE", "weighted RMSE", *_TITLES[1:]) if aside else _TITLES:
        table.add_column(title.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in rows:
        if row.rmse is None:
            continue
        errors = [row.rmse, *([row.weighted_rmse] if aside else []), row.max_stddev]
        texts = [
            *map(figure, errors),
            *map(_ratio, (row.ratio_to_best, row.ratio_to_lower_bound)),
            *("-" if spent is None else f"{spent:.{digits}f}" for spent, digits in _spent(row)),
        ]
        table.add_row(Text(row.label.replace(" ", "\n")), row.noise, *texts)
    return table


def _spent(row: Outcome) -> tuple[tuple[float | None, int], ...]:
    return ((row.seconds, 1), (row.peak_memory_mb, 0))


def _ratio(ratio: float | None) -> str:
    return figure(ratio) if ratio is None or ratio >= 100 else f"{ratio:.3f}"


def print_comparison(rows: Sequence[Outcome], *, why: bool) -> None:
    """Print the table, what its columns mean, and which mechanisms are not in it."""
    screen = console()
    if any(row.rmse is not None for row in rows):
        table = comparison_table(rows)
        # a narrower screen breaks lines itself: nothing is left out
        needed = Measurement.get(screen, screen.options.update(max_width=_WIDEST), table).maximum
        Console(highlight=False, width=max(screen.width, needed)).print(table)
        named = "weighted RMSE" if weighted(rows) else "RMSE"
        screen.print(
            f"to best: ratio of the {named} to the least promised one of either noise. to bound: ratio to "
            "the lower bound for the same noise, below which no strategy comes."
        )
    for row in rows:
        if row.note and (why or row.rmse is not None):
            note = row.note.removeprefix(f"{row.mechanism}: ")
            screen.print(Text(f"{row.mechanism} ({row.noise}): {note}"))
    if not why:
        for words, unfinished in {"did not finish": True, "do not apply": False}.items():
            missing = [row for row in rows if row.rmse is None and row.unfinished == unfinished]
            if missing:
                screen.print(Text(f"{words} (--why says why): {_listed(missing)}"))


def _listed(rows: Sequence[Outcome]) -> str:
    """Return the names of mechanisms, each once; with the noise where it is not so for every noise."""
    noises: dict[str, list[str]] = {}
    for row in rows:
        noises.setdefault(row.mechanism, []).append(row.noise)
    most = max(map(len, noises.values()))
    texts = [name if len(own) == most else f"{name} ({', '.join(own)})" for name, own in noises.items()]
    return ", ".join(texts)


@final
class Live:
    """The table while it grows, where both output and errors go to a terminal; silent elsewhere.

    Examples
    --------
    >>> with Live() as live:
    ...     live.report("identity (gaussian), 1 of 9", 0.0, [])
    """

    def __init__(self) -> None:
        self._screen: Screen | None = None
        self._lock = threading.Lock()

    def report(self, label: str, _share: float | None, rows: Sequence[Outcome]) -> None:
        """Show what is being done, below what came of it so far."""
        if self._screen is None:
            return
        working = Spinner("dots", text=Text(label))
        shown = any(row.rmse is not None for row in rows)
        self._screen.update(Lines(comparison_table(rows), working) if shown else working)

    def __enter__(self) -> Live:
        from rich.live import Live as Screen

        errors = Console(stderr=True, highlight=False)
        if errors.is_terminal and console().is_terminal:
            self._screen = Screen(console=errors, transient=True, vertical_overflow="crop")
            self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._screen is not None:
            self._screen.stop()


# Pictures of comparisons, drawn with matplotlib where it is installed.

_COLOURS = {"gaussian": "#3465a4", "laplace": "#ce5c00"}
_OTHER_COLOUR = "#4e9a06"


def draw_comparison(rows: Sequence[Outcome], path: Path, title: str) -> None:
    """Draw the RMSE of every mechanism that applies as bars, with the lower bounds as lines.

    Where queries have weights, bars are the weighted RMSE, which the bounds are for, and points the other.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.ticker import NullFormatter, ScalarFormatter
    except ImportError:
        raise SpecificationError.at(
            ("--picture",), "no matplotlib", "an installation with it: pip install 'matrixdp[pictures]'"
        ) from None
    applies = [row for row in rows if row.weighted_rmse is not None]
    if not applies:
        raise SpecificationError.at(("--picture",), "no mechanism that applies", "at least one")
    aside = weighted(applies)
    figure = Figure(figsize=(8.0, 1.6 + 0.32 * len(applies)), layout="constrained")
    axes = figure.add_subplot()
    values = [float(row.weighted_rmse or 0.0) for row in applies]
    labels = [f"{row.label} ({row.noise})" for row in applies]
    colours = {row.noise: _COLOURS.get(row.noise, _OTHER_COLOUR) for row in applies}
    bars = axes.barh(range(len(values)), values, color=[colours[row.noise] for row in applies])
    for bar, row in zip(bars, applies, strict=True):
        if row.data_dependent:
            bar.set(hatch="///", alpha=0.5)
    if aside:
        plain = [float(row.rmse or 0.0) for row in applies]
        axes.scatter(
            plain, range(len(plain)), marker="D", s=18, zorder=3.5, label="RMSE, unweighted",
            facecolor="white", edgecolor="black",
        )  # fmt: skip
    axes.set_yticks(range(len(values)), labels)
    axes.invert_yaxis()
    for place, (value, row) in enumerate(zip(values, applies, strict=True)):
        axes.annotate(
            f"{value:.4g}",
            (max(value, float(row.rmse or 0.0)), place),
            (5, 0),
            textcoords="offset points",
            va="center",
            zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85},
        )
    for noise, colour in colours.items():
        bounds = [row.lower_bound_rmse for row in applies if row.noise == noise and row.lower_bound_rmse]
        if bounds:
            axes.axvline(
                max(bounds), color=colour, linestyle="--", zorder=3, label=f"lower bound, {noise} noise"
            )
    if axes.get_legend_handles_labels()[0]:
        figure.legend(loc="outside lower center", ncols=3, frameon=False)
    if max(values) > 20 * min(values):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.12, y=0.01)
    axes.set_xlabel("weighted RMSE in records, which is minimized" if aside else "RMSE in records")
    axes.set_title(title, fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
