"""The picture of a query group's answers: a band, bars with their intervals, or a heat map with its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.pictures.axes import Axis, joined
from matrixdp.pictures.heat import draw_heat_map, draw_triangles
from matrixdp.pictures.style import BAND, INK, SERIES, label_places, new_figure, quiet, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Answered", "Form", "draw_answers", "form_of"]

Array = NDArray[np.float64]
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
