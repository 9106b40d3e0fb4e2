"""Pictures of answers and strategies: bands, bars with their intervals, heat maps with their error."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.table import FIGURES, is_key
from matrixdp.answers.titles import head, titles
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import SpecificationError
from matrixdp.exact import MeasuredMatrix
from matrixdp.plan import Plan
from matrixdp.queries import AllRanges, DenseGroup, Group, Identity, Predicates, Prefix, Suffix, Total
from matrixdp.selection.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# How pictures look: one small palette, which a page can map to its own colours.

#: Text and axes; lines behind them; bands; a bound.
INK, GRID, BAND, BOUND = "#24292f", "#d8dee4", "#9ec5e8", "#b3261e"
#: Of lines, in their order: distinguishable in grey and with a weakness for colours (after Okabe and Ito).
SERIES = ("#0b5ea8", "#b35900", "#00785a", "#8f3f97", "#6b5b00", "#a8324a", "#3d3d3d", "#007a99")

_LONGEST = 22


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches.

    Raises
    ------
    SpecificationError
        If matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        expected = "an installation with it: pip install 'matrixdp[pictures]'"
        raise SpecificationError.at(("picture",), "no matplotlib", expected, code="missing-library") from None
    return Figure(figsize=(width, height), layout="constrained")


def quiet(axes: Axes, *, grid: Literal["", "x", "y"] = "y") -> None:
    """Give axes no more lines than are needed to read them."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["bottom", "left"]].set_color(INK)
    axes.tick_params(colors=INK, labelsize=9)
    axes.xaxis.label.set(color=INK, fontsize=10)
    axes.yaxis.label.set(color=INK, fontsize=10)
    axes.title.set(color=INK, fontsize=10)
    if grid:
        axes.grid(axis=grid, color=GRID, linewidth=0.6)
        axes.set_axisbelow(True)


def rows_of(axes: Axes, labels: Sequence[str], unit: str, longest: int = _LONGEST) -> None:
    """Let axes have a row for each label, the first at the top, and along them what is counted in a unit."""
    axes.set_yticks(range(len(labels)), [shortened(label, longest) for label in labels])
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    quiet(axes, grid="x")


def shortened(text: str, longest: int = _LONGEST) -> str:
    r"""Return a label that is short and not read as a formula.

    Examples
    --------
    >>> shortened("a" * 30), shortened("$x$ and $y$")
    ('aaaaaaaaaaaaaaaaaaaaa…', '\\$x\\$ and \\$y\\$')
    """
    line = " ".join("".join(mark if mark.isprintable() else " " for mark in text).split())
    short = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return short.replace("$", r"\$")


def label_places(labels: Sequence[str], most: int) -> tuple[list[int], list[str]]:
    """Return places, evenly spread and the last among them, and what they are called.

    Examples
    --------
    >>> label_places(["a", "b", "c", "d", "e"], 3)
    ([0, 2, 4], ['a', 'c', 'e'])
    """
    step = max(1, math.ceil((len(labels) - 1) / max(most - 1, 1)))
    places = list(range(len(labels) - 1, -1, -step))[::-1]
    return places, [shortened(labels[place], 14) for place in places]


# The axes of a query group: what varies along them, in which order, and what each place is called.

Kind = Literal["cumulative", "values", "ranges", "categories"]


@final
@dataclass(frozen=True)
class Axis:
    """One axis of a query group.

    Attributes
    ----------
    name : str
        The attribute, or what the queries are.
    labels : tuple of str
        What each place is called: for cumulative counts the value up to which, or from which, they count.
    kind : {"cumulative", "values", "ranges", "categories"}
        Cumulative counts; the values of a numeric attribute in their order; every interval of values, first
        by their lower ends; or anything else.
    values : tuple of str
        What the values are called of which intervals are made; empty for other axes.
    """

    name: str
    labels: tuple[str, ...]
    kind: Kind
    values: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.labels)

    @property
    def ordered(self) -> bool:
        """Whether a line may join neighbouring places."""
        return self.kind in ("cumulative", "values")


def axes_of(domain: Domain, group: Group) -> tuple[Axis, ...]:
    """Return the axes of a query group, row-major; those of one place alone are left out.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> domain = Domain({"sex": ["female", "male"], "age": range(3)})
    >>> (group,) = product(sex="identity", age="prefix").expand(domain)
    >>> [(axis.name, axis.kind, axis.labels) for axis in axes_of(domain, group)]
    [('sex', 'categories', ('female', 'male')), ('age, at most', 'cumulative', ('0', '1', '2'))]
    """
    if isinstance(group, DenseGroup):
        texts = group.content.describe(domain, group.attributes)
        return (Axis("query", tuple(texts), "categories"),)
    return tuple(
        _axis(domain[name], predicates)
        for name, predicates in group.sets.items()
        if not isinstance(predicates, Total) and predicates.count(domain[name].size) > 1
    )


def _axis(attribute: Attribute, predicates: Predicates) -> Axis:
    names = tuple(attribute.label(code) for code in range(attribute.size))
    if isinstance(predicates, Prefix):
        return Axis(f"{attribute.name}, at most", names, "cumulative")
    if isinstance(predicates, Suffix):
        return Axis(f"{attribute.name}, at least", names, "cumulative")
    if isinstance(predicates, Identity):
        return Axis(attribute.name, names, "values" if attribute.numeric else "categories")
    texts = tuple(predicates.describe(attribute))
    if isinstance(predicates, AllRanges):
        return Axis(attribute.name, texts, "ranges", names)
    return Axis(head(attribute, (predicates,)), texts, "categories")


def joined(axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """Return what each combination of places is called, row-major.

    Examples
    --------
    >>> sex = Axis("sex", ("female", "male"), "categories")
    >>> joined((sex, Axis("old", ("no", "yes"), "categories")))
    ('female, no', 'female, yes', 'male, no', 'male, yes')
    """
    return tuple(map(", ".join, itertools.product(*(axis.labels for axis in axes))))


# Pictures of answers.

#: Answers of a group that is drawn, at most.
MAX_DRAWN = 1_000_000
Array = NDArray[np.float64]

_COLOURS, _THOUSANDS = "cividis", "{x:,g}"
#: Cells that are written in, and marks along an axis, at most.
_WRITTEN, _MARKS = 60, 12
#: Standard errors that differ by less are all but the same.
_ALIKE = 1.02

Form = Literal["bars", "band", "heat map", "triangles", "sorted"]

_MOST_BARS, _MOST_LINES, _MOST_TRIANGLES = 40, 6, 6
_MOST_CELLS = 400
_MOST_RANKS = 1_000


@final
@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of one group, with all that a picture of them needs.

    Parameters
    ----------
    axes : tuple of Axis
        Without those of one place.
    estimates, stddevs, halves : ndarray
        One for each query, row-major: in records. ``halves`` are half the lengths of the intervals.
    """

    axes: tuple[Axis, ...]
    estimates: Array
    stddevs: Array
    halves: Array

    @property
    def form(self) -> Form:
        """Which picture is drawn."""
        return form_of(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of places on each axis."""
        return tuple(axis.size for axis in self.axes)


def form_of(axes: Sequence[Axis]) -> Form:
    """Return which picture answers over some axes get.

    Examples
    --------
    >>> age = Axis("age", tuple(map(str, range(100))), "cumulative")
    >>> sex = Axis("sex", ("female", "male"), "categories")
    >>> form_of([age]), form_of([sex, age]), form_of([sex]), form_of([sex, sex]), form_of([age, age])
    ('band', 'band', 'bars', 'heat map', 'heat map')
    """
    ranges = [axis for axis in axes if axis.kind == "ranges"]
    if ranges:
        others = math.prod(axis.size for axis in axes if axis.kind != "ranges")
        return "triangles" if len(ranges) == 1 and others <= _MOST_TRIANGLES else "sorted"
    if len(axes) <= 1:
        if axes and axes[0].ordered and (axes[0].kind == "cumulative" or axes[0].size > _MOST_BARS):
            return "band"
        return "bars" if not axes or axes[0].size <= _MOST_BARS else "sorted"
    sizes = [axis.size for axis in axes]
    ordered = [axis.size for axis in axes if axis.ordered]
    if len(ordered) == 1 and math.prod(sizes) // ordered[0] <= _MOST_LINES:
        return "band"
    if max(math.prod(sizes[:-1]), sizes[-1]) <= _MOST_CELLS:
        return "heat map"
    return "sorted"


def draw_answers(answered: Answered, title: str = "") -> Figure:
    """Return the picture of a group's answers, under a title if there is one."""
    figure = _drawn(answered)
    if title:
        figure.suptitle(shortened(title, 60), color=INK, fontsize=11)
    return figure


def _drawn(answered: Answered) -> Figure:
    match answered.form:
        case "bars":
            return _bars(answered)
        case "band":
            return _band(answered)
        case "heat map":
            return _heat_map(answered)
        case "triangles":
            return _triangles(answered)
        case "sorted":
            return _sorted(answered)


def _front(answered: Answered, values: Array, place: int) -> Array:
    """Return values with one axis last and the others, as one, before it."""
    return np.moveaxis(values.reshape(answered.shape), place, -1).reshape(-1, answered.shape[place])


def _bars(answered: Answered) -> Figure:
    labels = joined(answered.axes) if answered.axes else ("all",)
    figure = new_figure(6.4, 0.9 + 0.24 * len(labels))
    axes = figure.add_subplot()
    places = np.arange(len(labels))
    axes.barh(places, answered.estimates, color=BAND, height=0.72)
    axes.errorbar(
        answered.estimates, places, xerr=answered.halves, fmt="none", ecolor=INK, elinewidth=1.2, capsize=2.5
    )
    axes.margins(y=0.02)
    axes.axvline(0, color=INK, linewidth=0.8)
    if answered.axes:
        axes.set_ylabel(shortened(answered.axes[0].name, 30))
    axes.xaxis.set_major_formatter(_THOUSANDS)
    rows_of(axes, labels, "records")
    return figure


def _band(answered: Answered) -> Figure:
    place = next(i for i, axis in enumerate(answered.axes) if axis.ordered)
    along = answered.axes[place]
    others = answered.axes[:place] + answered.axes[place + 1 :]
    lines, halves = (_front(answered, values, place) for values in (answered.estimates, answered.halves))
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    # of a long axis places at equal distances are drawn, the last among them
    every = -(-along.size // _MOST_RANKS)
    x = np.arange(along.size)[::-1][::every][::-1]
    lines, halves = lines[:, x], halves[:, x]
    step: Literal["mid"] | None = "mid" if along.size <= 120 else None
    shape = "default" if step is None else "steps-mid"
    drawn = []
    for line, half, colour in zip(lines, halves, SERIES, strict=False):
        axes.fill_between(x, line - half, line + half, step=step, color=colour, alpha=0.28, linewidth=0)
        drawn += axes.plot(x, line, color=colour, linewidth=1.3, drawstyle=shape)
    axes.set_xticks(*label_places(along.labels, 8))
    axes.set_xlabel(shortened(along.name, 50) + (f" (one of every {every} values)" if every > 1 else ""))
    axes.set_ylabel("records")
    axes.margins(x=0.01)
    axes.yaxis.set_major_formatter(_THOUSANDS)
    quiet(axes)
    if others:
        title = shortened(", ".join(axis.name for axis in others), 40)
        # a legend leaves out what begins with an underscore
        names = [shortened(name) for name in joined(others)]
        labels = [f"\N{HAIR SPACE}{name}" if name.startswith("_") else name for name in names]
        written: dict[str, Any] = {"fontsize": 9, "title_fontsize": 9, "frameon": False, "labelcolor": INK}
        legend = figure.legend(drawn, labels, loc="outside right upper", title=title, **written)
        legend.get_title().set_color(INK)
    return figure


def _sorted(answered: Answered) -> Figure:
    """Draw the estimates by size: of many answers without an order of their own."""
    order = np.argsort(-answered.estimates, kind="stable")
    ranks = np.unique(np.linspace(0, len(order) - 1, min(_MOST_RANKS, len(order))).round().astype(np.intp))
    line, half = answered.estimates[order[ranks]], answered.halves[order[ranks]]
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    axes.fill_between(ranks + 1, line - half, line + half, color=SERIES[0], alpha=0.28, linewidth=0)
    axes.plot(ranks + 1, line, color=SERIES[0], linewidth=1.3)
    axes.axhline(0, color=INK, linewidth=0.8)
    axes.set_xlabel(f"{len(order):,} answers, the largest first")
    axes.set_ylabel("records")
    axes.margins(x=0.01)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(_THOUSANDS)
    quiet(axes)
    return figure


def draw_statistic(table: pa.Table, unit: str, title: str = "") -> Figure:
    """Return the picture of a statistic: a point with its interval for each row, or the band of a CDF.

    Parameters
    ----------
    table : pyarrow.Table
        What a method such as `Release.mean` returns.
    unit : str
        Of the estimates.
    """
    figure = _curves(table) if "share_lower" in table.column_names else _points(table, unit)
    if title:
        figure.suptitle(shortened(title, 60), color=INK, fontsize=11)
    return figure


def _points(table: pa.Table, unit: str) -> Figure:
    """Draw a row for each estimate; without an order of their own the largest first, where they are many."""
    keys = [field.name for field in table.schema if is_key(field)]
    rows = [
        (", ".join(str(row[key]) for key in keys if row[key] is not None) or "all", *map(row.get, FIGURES))
        for row in table.to_pylist()
    ]
    dates = any(isinstance(row[1], dt.date) for row in rows)
    if len(rows) > _MOST_BARS and not dates:
        rows.sort(key=lambda row: math.inf if row[1] is None else -row[1])
    shown = rows[:_MOST_BARS]
    figure = new_figure(6.4, 0.9 + 0.24 * len(shown))
    axes = figure.add_subplot()
    for place, (_, estimate, _, low, high) in enumerate(shown):
        if low is not None and high is not None:
            axes.plot([low, high], [place, place], color=BAND, linewidth=5, solid_capstyle="butt")
        if estimate is not None:
            axes.plot([estimate], [place], "o", color=SERIES[0], markersize=4.5)
    if not dates:
        axes.xaxis.set_major_formatter(_THOUSANDS)
    more = "" if len(shown) == table.num_rows else f", {len(shown)} of {table.num_rows:,}"
    rows_of(axes, [row[0] for row in shown], f"{unit}{more}", 30)
    return figure


def _curves(table: pa.Table) -> Figure:
    """Draw the shares of a CDF in their bands, a curve for each stratum."""
    keys = [field.name for field in table.schema if is_key(field)]
    along, strata = keys[-1], keys[:-1]
    curves: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        curves.setdefault(", ".join(str(row[key]) for key in strata), []).append(row)
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    for (name, rows), colour in zip(curves.items(), itertools.cycle(SERIES), strict=False):
        x = range(len(rows))
        share, low, high = (
            [math.nan if row[column] is None else row[column] for row in rows]
            for column in ("share", "share_lower", "share_upper")
        )
        axes.fill_between(x, low, high, color=colour, alpha=0.28, linewidth=0)
        axes.plot(x, share, color=colour, linewidth=1.3, label=shortened(name))
    labels = [str(row[along]).rpartition("-")[2] for row in next(iter(curves.values()))]
    axes.set_xticks(*label_places(labels, 8))
    axes.set_xlabel(shortened(f"{along}, at most", 50))
    axes.set_ylabel("share of records")
    axes.margins(x=0.01)
    quiet(axes)
    if strata:
        written: dict[str, Any] = {"fontsize": 9, "frameon": False, "labelcolor": INK}
        figure.legend(loc="outside right upper", **written)
    return figure


# Heat maps of estimates, beside one of their standard errors where these differ.


def _heat_map(answered: Answered) -> Figure:
    """Draw estimates by two axes, or by combinations of some and another, and their standard errors."""
    rows, columns = answered.axes[:-1], answered.axes[-1]
    values = (answered.estimates, answered.stddevs, answered.halves)
    estimates, stddevs, halves = (own.reshape(-1, columns.size) for own in values)
    count, width = estimates.shape
    written = count * width <= _WRITTEN and width <= 8
    panels = [(_title("estimate", stddevs), estimates)]
    if not alike(stddevs):
        panels.append(("standard error", stddevs))
    below = width > 12 or (written and width > 3)
    down, across = (len(panels), 1) if below else (1, len(panels))
    figure = new_figure(6.4, down * min(max(1.1 + 0.26 * count, 1.9), 5.0))
    x = (shortened(columns.name, 40), label_places(columns.labels, 6 if below else 4))
    name = shortened(", ".join(axis.name for axis in rows), 30)
    marks = label_places(joined(rows), 2 * _MARKS if below else _MARKS)
    for place, (title, own) in enumerate(panels):
        axes = figure.add_subplot(down, across, place + 1)
        y = (name if below or place == 0 else "", marks)
        norm = _norm(own, stddevs) if place == 0 else None
        image = _draw_map(axes, own, title, x, y, norm=norm, aspect="auto")
        if written:
            texts = [f"{value:.4g}" for value in own.flat]
            if place == 0:
                texts = [f"{a:,.0f} ±{b:,.0f}" for a, b in zip(own.flat, halves.flat, strict=True)]
            _write(axes, image.to_rgba(own), texts)
    return figure


def _triangles(answered: Answered) -> Figure:
    """Draw the answers for every interval of values by its two ends: one triangle for each other place."""
    [place] = (i for i, axis in enumerate(answered.axes) if axis.kind == "ranges")
    axis, others = answered.axes[place], answered.axes[:place] + answered.axes[place + 1 :]
    estimates, stddevs = (_front(answered, own, place) for own in (answered.estimates, answered.stddevs))
    titles = [shortened(name) or _title("estimate", stddevs) for name in joined(others)]
    panels = list(zip(titles, estimates, strict=True))
    if not alike(stddevs):
        panels.append(("standard error, the largest", stddevs.max(axis=0)))
    across = min(len(panels), 2)
    down = math.ceil(len(panels) / across)
    figure = new_figure(6.4, 2.9 * down)
    norm = _norm(estimates, stddevs)
    x, y = (
        (shortened(f"{axis.name}, {end}", 30), label_places(axis.values, most))
        for end, most in (("to", 3), ("from", 6))
    )
    for number, (title, values) in enumerate(panels):
        square = np.full((len(axis.values), len(axis.values)), np.nan)
        square[np.triu_indices(len(square))] = values
        axes = figure.add_subplot(down, across, number + 1)
        own = norm if number < len(estimates) else None
        _draw_map(axes, square, title, x, y, norm=own, origin="lower")
    return figure


Marked = tuple[str, tuple[list[int], list[str]]]
"""What an axis is called, and its marks."""


def _draw_map(axes: Axes, values: Array, title: str, x: Marked, y: Marked, **shown: Any) -> AxesImage:
    """Draw numbers as colours, with what the colours mean beside them."""
    image = axes.imshow(values, cmap=_COLOURS, interpolation="none", **shown)
    axes.set_yticks(*y[1])
    axes.set_xticks(*x[1])
    axes.set(xlabel=x[0], ylabel=y[0], title=title)
    quiet(axes, grid="")
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, format=_THOUSANDS)
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)
    return image


def alike(stddevs: Array) -> bool:
    """Return whether standard errors are all but the same.

    Examples
    --------
    >>> alike(np.array([1.0, 1.01])), alike(np.array([1.0, 2.0]))
    (True, False)
    """
    return bool(stddevs.max() <= _ALIKE * stddevs.min())


def _title(name: str, stddevs: Array) -> str:
    """Return the title of a map, with the standard error where that is all but the same everywhere."""
    return f"{name} (standard error {stddevs.max():.3g})" if alike(stddevs) else name


def _norm(estimates: Array, stddevs: Array) -> Normalize:
    """Return a scale that is linear within the noise; above it logarithmic, where counts differ widely."""
    from matplotlib.colors import Normalize, SymLogNorm

    low, high = min(0.0, float(estimates.min())), float(estimates.max())
    threshold = 2 * float(np.median(stddevs))
    if threshold > 0 and high > 100 * threshold:
        return SymLogNorm(linthresh=threshold, vmin=low, vmax=high)
    return Normalize(low, high if high > low else low + 1.0)


def _write(axes: Axes, colours: Array, texts: Sequence[str]) -> None:
    """Write a text into every cell."""
    light = colours[..., :3] @ np.array([0.2126, 0.7152, 0.0722]) > 0.45
    for (row, column), text in zip(np.ndindex(*light.shape), texts, strict=True):
        colour = "#000000" if light[row, column] else "#ffffff"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


# The picture of a strategy: what is measured at which share of the privacy cost, and its errors.

_BARS, _MATRICES = 12, 3
#: Rows or columns of a matrix that is drawn, at most.
_LARGEST = 2_000


def cost_shares(plan: Plan) -> dict[tuple[str, ...], float]:
    """Return the share that each measured marginal has of the privacy cost, the largest first.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"]}), mdp.marginals(1))
    >>> cost_shares(mdp.select(workload, mechanism="identity").selection.plan)
    {('sex',): 1.0}
    """
    shares: defaultdict[tuple[str, ...], float] = defaultdict(float)
    for part in plan.parts:
        shares[part.attributes] += plan.noise.share(part, part.variance)
    total = math.fsum(shares.values())
    ordered = sorted(shares.items(), key=lambda pair: -pair[1])
    return {attributes: share / total for attributes, share in ordered}


def draw_strategy(selection: Selection, scale: float) -> Figure:
    """Return the picture of a selection, with variances at privacy cost 1 divided by a scale."""
    shares = cost_shares(selection.plan)
    errors = [selection.analysis.group(group) for group in selection.workload]
    matrices = _matrices(selection.plan)
    bars = min(len(shares), _BARS + 1), min(len(errors), _BARS)
    heights = [0.9 + 0.24 * bars[0], 1.2 + 0.24 * bars[1], *([2.3] if matrices else [])]
    figure = new_figure(6.4, sum(heights))
    grid = figure.add_gridspec(len(heights), max(len(matrices), 1), height_ratios=heights)
    _draw_shares(figure.add_subplot(grid[0, :]), shares)
    rows = []
    groups = selection.workload.groups
    for title, group, error in zip(titles(groups), groups, errors, strict=True):
        rows.append((title, math.sqrt(error.total / group.queries / scale), math.sqrt(error.largest / scale)))
    _draw_errors(figure.add_subplot(grid[1, :]), sorted(rows, key=lambda row: -row[1]))
    for place, (name, matrix) in enumerate(matrices):
        _draw_matrix(figure.add_subplot(grid[2, place]), name, matrix)
    return figure


def _draw_shares(axes: Axes, shares: dict[tuple[str, ...], float]) -> None:
    named = [(", ".join(attributes) or "total", share) for attributes, share in shares.items()]
    rest = named[_BARS:]
    if rest:
        named = [*named[:_BARS], (f"{len(rest):,} more", math.fsum(share for _, share in rest))]
    axes.barh(range(len(named)), [100 * share for _, share in named], color=BAND, height=0.72)
    axes.set_title("measured, by share of the privacy cost")
    rows_of(axes, [name for name, _ in named], "%")


def _draw_errors(axes: Axes, rows: Sequence[tuple[str, float, float]]) -> None:
    shown = rows[:_BARS]
    places = range(len(shown))
    axes.plot([row[1] for row in shown], places, "o", color=SERIES[0], label="root mean square")
    axes.plot([row[2] for row in shown], places, "|", color=INK, markersize=9, label="largest")
    axes.set_xlim(left=0)
    more = "" if len(rows) == len(shown) else f", the largest of {len(rows):,} groups"
    axes.set_title(f"standard errors{more}")
    axes.legend(fontsize=8, frameon=False, labelcolor=INK)
    rows_of(axes, [row[0] for row in shown], "records")


def _draw_matrix(axes: Axes, name: str, matrix: Array) -> None:
    largest = float(np.abs(matrix).max())
    axes.imshow(matrix, aspect="auto", cmap="PuOr", vmin=-largest, vmax=largest, interpolation="none")
    axes.set_title(shortened(f"{name}: {matrix.shape[0]} x {matrix.shape[1]}", 26))
    axes.set_xlabel("cell")
    axes.set_ylabel("row")
    quiet(axes, grid="")


def _matrices(plan: Plan) -> list[tuple[str, Array]]:
    """Return the integer matrices with the largest parts, written out, and what they are on."""
    parts = sorted(plan.parts, key=lambda part: -plan.noise.share(part, part.variance))
    found: dict[str, tuple[str, MeasuredMatrix]] = {}
    for part in parts:
        for block in part.blocks:
            matrix = block.matrix
            plain = matrix.kind in ("identity", "centered")
            if not plain and max(matrix.rows, matrix.columns) <= _LARGEST:
                found.setdefault(matrix.digest(), (", ".join(block.attributes), matrix))
        if len(found) >= _MATRICES:
            break
    chosen = list(found.values())[:_MATRICES]
    return [(name, matrix.written()) for name, matrix in chosen]


# The picture of a release's accuracy: its errors between what is possible and what is naive.

_MOST = 30


def draw_accuracies(rows: Sequence[tuple[str, float, float | None]], straight: float | None) -> Figure:
    """Return the errors of groups as points: the largest of them, where there are more than 30.

    Parameters
    ----------
    rows : sequence of (str, float, float or None)
        The title of a group, the root mean square of its standard errors, and what no strategy is below.
    straight : float, optional
        The standard error of noise on every query.
    """
    from matplotlib.ticker import LogLocator

    shown = sorted(rows, key=lambda row: -row[1])[:_MOST]
    figure = new_figure(6.4, 1.3 + 0.24 * len(shown))
    axes = figure.add_subplot()
    errors = [row[1] for row in shown]
    axes.plot(errors, range(len(shown)), "o", color=SERIES[0], label="RMSE of this release")
    known = [(row[2], place) for place, row in enumerate(shown) if row[2] is not None]
    if known:
        thick: dict[str, Any] = {"markersize": 10, "markeredgewidth": 2}
        axes.plot(*zip(*known, strict=True), "|", color=BOUND, label="lower bound", **thick)
    if straight is not None:
        axes.axvline(straight, color=INK, linestyle="--", linewidth=1.2, label="noise on the workload")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(_THOUSANDS)
    axes.xaxis.set_minor_formatter("")
    axes.margins(x=0.08, y=0.04)
    more = "" if len(shown) == len(rows) else f", the largest of {len(rows):,}"
    rows_of(axes, [row[0] for row in shown], f"standard error in records{more}", 30)
    figure.legend(loc="outside upper center", ncols=3, fontsize=8.5, frameon=False, labelcolor=INK)
    return figure
