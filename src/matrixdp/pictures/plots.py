"""The picture of a query group's answers: a band, bars with their intervals, or a heat map with its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.titles import titles
from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.pictures.style import (
    BAND,
    BOUND,
    INK,
    SERIES,
    Axis,
    joined,
    label_places,
    new_figure,
    quiet,
    shortened,
)
from matrixdp.plan import Plan
from matrixdp.selection.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

# Heat maps of estimates, beside one of their standard errors where these differ.

#: Answers of a group that is drawn, at most.
MAX_DRAWN = 1_000_000
Array = NDArray[np.float64]

_COLOURS = "cividis"
#: Cells that are written in, and marks along an axis, at most.
_WRITTEN, _MARKS = 60, 12
#: Standard errors that differ by less are all but the same.
_ALIKE = 1.02


def draw_heat_map(rows: Axis, columns: Axis, estimates: Array, stddevs: Array, *, halves: Array) -> Figure:
    """Return estimates by two axes as a heat map, and their standard errors as another."""
    count, width = estimates.shape
    written = count * width <= _WRITTEN and width <= 8
    panels = [("estimate", estimates)]
    if not alike(stddevs):
        panels.append(("standard error", stddevs))
    below = width > 12 or (written and width > 3)
    grid = (len(panels), 1) if below else (1, len(panels))
    tall = min(max(1.1 + 0.26 * count, 1.9), 5.0)
    figure = new_figure(6.4, tall * grid[0])
    for place, (name, values) in enumerate(panels):
        axes = figure.add_subplot(*grid, place + 1)
        norm = _norm(values, stddevs) if place == 0 else None
        image = axes.imshow(values, aspect="auto", cmap=_COLOURS, norm=norm, interpolation="none")
        axes.set_yticks(*label_places(rows.labels, 2 * _MARKS if below else _MARKS))
        axes.set_xticks(*label_places(columns.labels, 6 if below else 4))
        axes.set_xlabel(shortened(columns.name, 40))
        if below or place == 0:
            axes.set_ylabel(shortened(rows.name, 30))
        axes.set_title(_titled(name, stddevs, panels))
        quiet(axes, grid="")
        _scale(figure, image, axes)
        if written:
            texts = [f"{value:.4g}" for value in values.flat]
            if place == 0:
                texts = [f"{a:,.0f} ±{b:,.0f}" for a, b in zip(values.flat, halves.flat, strict=True)]
            _write(axes, image.to_rgba(values), texts)
    return figure


def draw_triangles(axis: Axis, names: Sequence[str], estimates: Array, stddevs: Array) -> Figure:
    """Return the answers for every interval of values by its two ends: one triangle for each name."""
    size = len(axis.values)
    first, last = np.triu_indices(size)
    panels = [
        (shortened(name) or "estimate", own) for name, own in zip(names or ("",), estimates, strict=True)
    ]
    largest = stddevs.max(axis=0)
    if not alike(stddevs):
        panels.append(("standard error, the largest", largest))
    across = min(len(panels), 2)
    down = math.ceil(len(panels) / across)
    figure = new_figure(6.4, 2.9 * down)
    norm = _norm(estimates, stddevs)
    for place, (name, values) in enumerate(panels):
        axes = figure.add_subplot(down, across, place + 1)
        square = np.full((size, size), np.nan)
        square[first, last] = values
        own = norm if place < len(estimates) else None
        image = axes.imshow(square, cmap=_COLOURS, norm=own, interpolation="none", origin="lower")
        axes.set_yticks(*label_places(axis.values, 6))
        axes.set_xticks(*label_places(axis.values, 3))
        axes.set_xlabel(shortened(f"{axis.name}, to", 30))
        axes.set_ylabel(shortened(f"{axis.name}, from", 30))
        axes.set_title(_titled(name, stddevs, panels) if len(estimates) == 1 else name)
        quiet(axes, grid="")
        _scale(figure, image, axes)
    return figure


def alike(stddevs: Array) -> bool:
    """Return whether standard errors are all but the same.

    Examples
    --------
    >>> alike(np.array([1.0, 1.01])), alike(np.array([1.0, 2.0]))
    (True, False)
    """
    return bool(stddevs.max() <= _ALIKE * stddevs.min())


def _titled(name: str, stddevs: Array, panels: Sequence[object]) -> str:
    return f"{name} (standard error {stddevs.max():.3g})" if len(panels) == 1 else name


def _norm(estimates: Array, stddevs: Array) -> Normalize:
    """Return a scale that is linear within the noise; above it logarithmic, where counts differ widely."""
    from matplotlib.colors import Normalize, SymLogNorm

    low, high = min(0.0, float(estimates.min())), float(estimates.max())
    threshold = 2 * float(np.median(stddevs))
    if threshold > 0 and high > 100 * threshold:
        return SymLogNorm(linthresh=threshold, vmin=low, vmax=high)
    return Normalize(low, high if high > low else low + 1.0)


def _scale(figure: Figure, image: object, axes: Axes) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.ticker import StrMethodFormatter

    assert isinstance(image, ScalarMappable)
    numbers = StrMethodFormatter("{x:,g}")
    bar = figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, format=numbers)
    bar.ax.tick_params(colors=INK, labelsize=8)
    bar.outline.set_visible(False)


def _write(axes: Axes, colours: Array, texts: Sequence[str]) -> None:
    """Write a text into every cell."""
    light = colours[..., :3] @ np.array([0.2126, 0.7152, 0.0722]) > 0.45
    for (row, column), text in zip(np.ndindex(*light.shape), texts, strict=True):
        colour = "#000000" if light[row, column] else "#ffffff"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color=colour)


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
    if any(axis.kind == "ranges" for axis in axes):
        others = math.prod(axis.size for axis in axes if axis.kind != "ranges")
        single = sum(axis.kind == "ranges" for axis in axes) == 1
        return "triangles" if single and others <= _MOST_TRIANGLES else "sorted"
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
            rows, columns = answered.axes[:-1], answered.axes[-1]
            name = ", ".join(axis.name for axis in rows)
            shape = (-1, columns.size)
            own = Axis(name, joined(rows), rows[0].kind if len(rows) == 1 else "categories")
            return draw_heat_map(
                own, columns, *(a.reshape(shape) for a in (answered.estimates, answered.stddevs)),
                halves=answered.halves.reshape(shape),
            )  # fmt: skip
        case "triangles":
            place = next(i for i, axis in enumerate(answered.axes) if axis.kind == "ranges")
            others = tuple(axis for i, axis in enumerate(answered.axes) if i != place)
            panels = [_front(answered, values, place) for values in (answered.estimates, answered.stddevs)]
            return draw_triangles(answered.axes[place], joined(others), *panels)
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
    axes.set_yticks(places, [shortened(label) for label in labels])
    axes.invert_yaxis()
    axes.margins(y=0.02)
    axes.axvline(0, color=INK, linewidth=0.8)
    axes.set_xlabel("records")
    if answered.axes:
        axes.set_ylabel(shortened(answered.axes[0].name, 30))
    _thousands(axes.xaxis)
    quiet(axes, grid="x")
    return figure


def _band(answered: Answered) -> Figure:
    place = next(i for i, axis in enumerate(answered.axes) if axis.ordered)
    along = answered.axes[place]
    others = tuple(axis for i, axis in enumerate(answered.axes) if i != place)
    lines, halves = (_front(answered, values, place) for values in (answered.estimates, answered.halves))
    names = joined(others) if others else ("",)
    figure = new_figure(6.4, 3.6)
    axes = figure.add_subplot()
    # of a long axis places at equal distances are drawn, the last among them
    every = -(-along.size // _MOST_RANKS)
    x = np.arange(along.size)[::-1][::every][::-1]
    lines, halves = lines[:, x], halves[:, x]
    style = "steps-mid" if along.size <= 120 else "default"
    step: Literal["mid"] | None = "mid" if along.size <= 120 else None
    drawn = []
    for line, half, colour in zip(lines, halves, SERIES, strict=False):
        axes.fill_between(x, line - half, line + half, step=step, color=colour, alpha=0.28, linewidth=0)
        drawn += axes.plot(x, line, color=colour, linewidth=1.3, drawstyle=style)
    axes.set_xticks(*label_places(along.labels, 8))
    axes.set_xlabel(shortened(along.name, 50) + (f" (one of every {every} values)" if every > 1 else ""))
    axes.set_ylabel("records")
    axes.margins(x=0.01)
    _thousands(axes.yaxis)
    quiet(axes)
    if others:
        title = shortened(", ".join(axis.name for axis in others), 40)
        # a legend leaves out what begins with an underscore
        labels = [f"\N{HAIR SPACE}{name}" if name.startswith("_") else name for name in map(shortened, names)]
        legend = figure.legend(
            drawn,
            labels,
            loc="outside right upper",
            title=title,
            fontsize=9,
            title_fontsize=9,
            frameon=False,
            labelcolor=INK,
        )
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
        _thousands(axis)
    quiet(axes)
    return figure


def _thousands(axis: object) -> None:
    from matplotlib.axis import Axis as Drawn
    from matplotlib.ticker import StrMethodFormatter

    assert isinstance(axis, Drawn)
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))


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
    shares: dict[tuple[str, ...], float] = {}
    for part in plan.parts:
        shares[part.attributes] = shares.get(part.attributes, 0.0) + plan.noise.share(part, part.variance)
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
    rows = sorted(
        zip(
            titles(selection.workload.groups),
            (math.sqrt(e.total / g.queries / scale) for e, g in zip(errors, selection.workload, strict=True)),
            (math.sqrt(e.largest / scale) for e in errors),
            strict=True,
        ),
        key=lambda row: -row[1],
    )
    _draw_errors(figure.add_subplot(grid[1, :]), rows)
    for place, (name, matrix) in enumerate(matrices):
        _draw_matrix(figure.add_subplot(grid[2, place]), name, matrix)
    return figure


def _draw_shares(axes: Axes, shares: dict[tuple[str, ...], float]) -> None:
    named = [(", ".join(attributes) or "total", share) for attributes, share in shares.items()]
    rest = named[_BARS:]
    if rest:
        named = [*named[:_BARS], (f"{len(rest):,} more", math.fsum(share for _, share in rest))]
    places = range(len(named))
    axes.barh(places, [100 * share for _, share in named], color=BAND, height=0.72)
    axes.set_yticks(places, [shortened(name) for name, _ in named])
    axes.invert_yaxis()
    axes.set_title("measured, by share of the privacy cost")
    axes.set_xlabel("%")
    quiet(axes, grid="x")


def _draw_errors(axes: Axes, rows: Sequence[tuple[str, float, float]]) -> None:
    shown = rows[:_BARS]
    places = range(len(shown))
    axes.plot([row[1] for row in shown], places, "o", color=SERIES[0], label="root mean square")
    axes.plot([row[2] for row in shown], places, "|", color=INK, markersize=9, label="largest")
    axes.set_yticks(places, [shortened(row[0]) for row in shown])
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    more = "" if len(rows) == len(shown) else f", the largest of {len(rows):,} groups"
    axes.set_title(f"standard errors{more}")
    axes.set_xlabel("records")
    axes.legend(fontsize=8, frameon=False, labelcolor=INK)
    quiet(axes, grid="x")


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
            plain = isinstance(matrix, IdentityMatrix | CenteredMatrix)
            if not plain and max(matrix.rows, matrix.columns) <= _LARGEST:
                found.setdefault(matrix.digest(), (", ".join(block.attributes), matrix))
        if len(found) >= _MATRICES:
            break
    chosen = list(found.values())[:_MATRICES]
    return [(name, matrix.written()) for name, matrix in chosen]


# The picture of a release's accuracy: its errors between what is possible and what is naive.

_MOST = 30


def draw_accuracies(rows: Sequence[tuple[str, float, float, float | None]], straight: float | None) -> Figure:
    """Return the errors of groups as points: the largest of them, where there are more than 30.

    Parameters
    ----------
    rows : sequence of (str, float, float, float or None)
        The title of a group, the root mean square of its standard errors, the largest of them, and what no
        strategy is below.
    straight : float, optional
        The standard error of noise on every query.
    """
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    shown = sorted(rows, key=lambda row: -row[1])[:_MOST]
    places = range(len(shown))
    figure = new_figure(6.4, 1.3 + 0.24 * len(shown))
    axes = figure.add_subplot()
    axes.plot(
        [row[1] for row in shown],
        places,
        "o",
        color=SERIES[0],
        label="RMSE of this release",
    )
    known = [(row[3], place) for place, row in enumerate(shown) if row[3] is not None]
    if known:
        values, at = zip(*known, strict=True)
        axes.plot(
            values,
            at,
            "|",
            color=BOUND,
            markersize=10,
            markeredgewidth=2,
            label="lower bound",
        )
    if straight is not None:
        axes.axvline(
            straight,
            color=INK,
            linestyle="--",
            linewidth=1.2,
            label="noise on the workload",
        )
    axes.set_yticks(places, [shortened(row[0], 30) for row in shown])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.margins(x=0.08, y=0.04)
    more = "" if len(shown) == len(rows) else f", the largest of {len(rows):,}"
    axes.set_xlabel(f"standard error in records{more}")
    figure.legend(loc="outside upper center", ncols=3, fontsize=8.5, frameon=False, labelcolor=INK)
    quiet(axes, grid="x")
    return figure
