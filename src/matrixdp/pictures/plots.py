"""Pictures of answers and strategies: rows and lines with their intervals, small multiples, heat maps."""

from __future__ import annotations

import datetime as dt
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.figures import UNRELIABLE, Figures, Presentation, decimals_of
from matrixdp.answers.shown import Shown
from matrixdp.answers.titles import heads, titles, whole_set
from matrixdp.display import harmless
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import needing
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import Array
from matrixdp.plans import Plan
from matrixdp.queries import (
    AllRanges,
    Changes,
    Chosen,
    DenseGroup,
    Group,
    Identity,
    Predicates,
    Prefix,
    Stacked,
    Suffix,
    Total,
)
from matrixdp.selection.selection import Selection
from matrixdp.texts import ENGLISH, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# How pictures look: one small palette, which a page can map to its own colours.

#: Text and axes; lines behind them; bands; a lower bound.
INK, GRID, BAND, LEAST = "#24292f", "#d8dee4", "#9ec5e8", "#00785a"
#: Of lines, in their order: distinguishable in grey and with a weakness for colours (after Okabe and Ito).
SERIES = ("#0b5ea8", "#b35900", "#00785a", "#8f3f97", "#6b5b00", "#a8324a", "#3d3d3d", "#007a99")

#: What the colours become on a dark page: text and lines lighter, areas darker.
DARK = {
    INK: "#e6edf3", GRID: "#3a424b", BAND: "#33658f", LEAST: "#4fc3a1",
    "#0b5ea8": "#7cb8f2", "#b35900": "#f0a35e", "#8f3f97": "#d99be0", "#6b5b00": "#d6c45a",
    "#a8324a": "#f08a9e", "#3d3d3d": "#b8c0c8", "#007a99": "#5cc8e6",
}  # fmt: skip

_LONGEST = 30


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches.

    Raises
    ------
    SpecificationError
        If matplotlib is not installed.
    """
    with needing("matplotlib", "pictures", "picture"):
        from matplotlib.figure import Figure
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
    axes.set_xlabel(plain(unit))
    quiet(axes, grid="x")


def shortened(text: str, longest: int = _LONGEST) -> str:
    r"""Return a label that is short and not read as a formula.

    Examples
    --------
    >>> shortened("a" * 40), shortened("$x$ and $y$")
    ('aaaaaaaaaaaaaaaaaaaaaaaaaaaaa…', '\\$x\\$ and \\$y\\$')
    """
    line = " ".join("".join(mark if harmless(mark) else " " for mark in text).split())
    short = line if len(line) <= longest else f"{line[: longest - 1]}…"
    return plain(short)


def plain(text: str) -> str:
    """Return a text that is not read as a formula."""
    return text.replace("$", r"\$")


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
    days : tuple of date
        Where each place lies in time, at its first day or, for counts up to it, its last; empty for axes
        that are no time.
    """

    name: str
    labels: tuple[str, ...]
    kind: Kind
    values: tuple[str, ...] = ()
    days: tuple[dt.date, ...] = ()

    @property
    def size(self) -> int:
        """The number of places."""
        return len(self.labels)

    @property
    def ordered(self) -> bool:
        """Whether a line may join neighbouring places."""
        return self.kind in ("cumulative", "values")

    @property
    def continuous(self) -> bool:
        """Whether a line is drawn along it, rather than a row for each place."""
        dated = bool(self.days) and self.size > 1  # a single day is a point
        return self.kind == "cumulative" or (self.ordered and (dated or self.size > _MOST_BARS))


def axes_of(domain: Domain, group: Group, say: Words = ENGLISH) -> tuple[Axis, ...]:
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
        _axis(domain[name], predicates, say)
        for name, predicates in group.sets.items()
        if not isinstance(predicates, Total) and predicates.count(domain[name].size) > 1
    )


def _axis(attribute: Attribute, predicates: Predicates, say: Words) -> Axis:
    if isinstance(predicates, Chosen):
        whole = _axis(attribute, predicates.predicates, say)
        if whole.kind != "ranges":
            labels = tuple(whole.labels[place] for place in predicates.positions)
            days = tuple(whole.days[place] for place in predicates.positions if whole.days)
            return replace(whole, labels=labels, days=days)
    names = tuple(attribute.label(code) for code in range(attribute.size))
    unit = attribute.told.get("unit", "")
    title = f"{attribute.title} ({unit})" if unit else attribute.title
    ends = attribute.ends
    timed = ends is not None and ends.low.dtype.kind == "M" and len(ends.low) == attribute.size
    first, last = (tuple(own.tolist()) for own in (ends.low, ends.high)) if ends and timed else ((), ())
    if isinstance(predicates, Prefix):
        return Axis(say("at_most", title=title), names, "cumulative", days=last)
    if isinstance(predicates, Suffix):
        return Axis(say("at_least", title=title), names, "cumulative", days=first)
    if isinstance(predicates, Identity):
        return Axis(title, names, "values" if attribute.numeric else "categories", days=first)
    texts = tuple(predicates.describe(attribute))
    if isinstance(predicates, AllRanges):
        return Axis(title, texts, "ranges", names)
    name, days = heads(attribute, (predicates,))[1], ()
    if timed:
        spans = predicates.spans(attribute.size)
        periods = spans.whole.all() or isinstance(predicates, Changes)
        if periods and (np.diff(spans.last) > 0).all():
            apart = spans.whole.all() and (spans.first[1:] > spans.last[:-1]).all()
            days = tuple(first[code] for code in (spans.first if apart else spans.last))
    return Axis(name, texts, "values" if days else "categories", days=days)


def joined(axes: tuple[Axis, ...]) -> tuple[str, ...]:
    """Return the labels of all combinations of places, row-major.

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
#: Widths of pictures in inches: on a page, beside a table there, and on a phone.
WIDE, BESIDE, NARROW = 6.4, 5.0, 3.7

_COLOURS = "cividis"
#: Cells that are written in, and marks along an axis, at most.
WRITTEN, _MARKS = 60, 12
#: Standard errors that differ by less are all but the same.
_ALIKE = 1.02

Form = Literal["rows", "lines", "panels", "heat map", "triangles"]

#: Rows in their own order, and rows by size that are all drawn; of more the largest are.
_MOST_BARS, _MOST_NAMED = 40, 60
_MOST_LINES, _MOST_PANELS, _MOST_TRIANGLES = 6, 12, 6
_MOST_CELLS = 400
_MOST_PLACES = 1_000


@final
@dataclass(frozen=True, eq=False)
class Answered:
    """The answers of one group, or the figures of one statistic, with all that a picture of them needs.

    Parameters
    ----------
    axes : tuple of Axis
        Without those of one place.
    estimates, stddevs, lower, upper : ndarray
        One for each query, row-major; NaN where a figure is unknown. ``lower`` and ``upper`` are the ends of
        the intervals.
    unit : str
        Of the figures.
    counts : bool
        Whether the figures are counts.
    dates : bool
        Whether the figures are days, counted from 1970 as matplotlib does.
    hidden : ndarray, optional
        Which figures are suppressed.
    say : Words
        The words around figures.
    measures : str
        What the figures are of.
    exact : Figures, optional
        The same before they were rounded, where the others are, for texts.
    """

    axes: tuple[Axis, ...]
    estimates: Array
    stddevs: Array
    lower: Array
    upper: Array
    unit: str = "records"
    counts: bool = True
    dates: bool = False
    hidden: NDArray[np.bool_] | None = None
    say: Words = ENGLISH
    measures: str = "records"
    exact: Figures | None = None

    @classmethod
    def of(cls, axes: tuple[Axis, ...], values: Array, **told: Any) -> Answered:
        """Return the same from all figures in one array, shape (4, n)."""
        estimates, stddevs, lower, upper = values
        return cls(axes, estimates, stddevs, lower, upper, **told)

    @property
    def form(self) -> Form:
        """Which picture is drawn."""
        return form_of(self.axes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of places on each axis."""
        return tuple(axis.size for axis in self.axes)

    @property
    def lined(self) -> bool:
        """Whether estimates are joined by lines."""
        return any(axis.continuous for axis in self.axes)

    @property
    def bars(self) -> bool:
        """Whether rows are bars, which begin at zero, rather than points."""
        rows = self.axes[_along(self.axes)].size if self.form == "panels" else self.estimates.size
        return self.counts and not self.lined and (rows <= _MOST_BARS or rows > _MOST_NAMED)

    @property
    def figures(self) -> Figures:
        """The same with the digits of its errors, for texts."""
        if self.exact is not None:
            return replace(self.exact, hiding=self.hidden)
        values = np.array([self.estimates, self.stddevs, self.lower, self.upper])
        least = np.nanmin(np.where(self.stddevs > 0, self.stddevs, np.inf), initial=np.inf)
        none, rules = np.zeros(values.shape[1], dtype=bool), Presentation(language=self.say.language)
        decimals = decimals_of(float(least))
        return Figures(values, self.measures, decimals, none, rules=rules, hiding=self.hidden)

    def without(self, hidden: Sequence[bool] | NDArray[np.bool_]) -> Answered:
        """Return the same without suppressed figures."""
        mask = np.array(hidden, dtype=bool)
        names = ("estimates", "stddevs", "lower", "upper")
        blank: dict[str, Any] = {name: np.where(mask, math.nan, getattr(self, name)) for name in names}
        return replace(self, hidden=mask, **blank)


def answered_group(domain: Domain, group: Group, values: Array, **told: Any) -> Answered:
    """Return the answers of a query group as pictures need them.

    Several sets of periods of one attribute, such as the year to date and twelve months, are along an axis of
    their own, so that each is a line.

    Parameters
    ----------
    values : ndarray, shape (4, n)
        Estimates, standard errors and the ends of intervals, row-major.
    told : object
        What else `Answered` takes.
    """
    say = told.get("say", ENGLISH)
    made = Answered.of(axes_of(domain, group, say), values, **told)
    if isinstance(group, DenseGroup):
        return made
    asked = {name: own for name, own in group.sets.items() if own.count(domain[name].size) > 1}
    for place, (name, own) in enumerate(asked.items()):
        kinds = [
            (part.title(domain[name].size, say) or say("values"), _axis(domain[name], chosen, say))
            for part, chosen in _members(own, domain[name].size)
        ]
        if kinds and len(made.axes) == len(asked):
            return _apart(made, place, kinds)
    return made


def _members(predicates: Predicates, size: int) -> Iterator[tuple[Predicates, Predicates]]:
    """Yield the sets that stand on top of one another, each with what is asked of it."""
    whole, start = whole_set(predicates), 0
    positions = predicates.positions if isinstance(predicates, Chosen) else range(predicates.count(size))
    for part in whole.sets if isinstance(whole, Stacked) else ():
        count = part.count(size)
        inside = tuple(place - start for place in positions if start <= place < start + count)
        if inside:
            yield part, Chosen(part, inside)
        start += count


def _apart(made: Answered, place: int, kinds: Sequence[tuple[str, Axis]]) -> Answered:
    """Return answers with several sets of periods, one after the other at an axis, on axes of their own."""
    days = sorted({day for _, axis in kinds for day in axis.days})
    starts = [days.index(axis.days[0]) if axis.days else -1 for _, axis in kinds]
    whole = zip(starts, kinds, strict=True)
    if not all(
        start >= 0 and axis.days == tuple(days[start : start + axis.size]) for start, (_, axis) in whole
    ):
        return made
    longest = max((axis for _, axis in kinds), key=lambda axis: axis.size)
    time = replace(longest, name=made.axes[place].name, labels=tuple(map(str, days)), days=tuple(days))
    kind = Axis(made.axes[place].name, tuple(name for name, _ in kinds), "categories")
    axes = (*made.axes[:place], kind, time, *made.axes[place + 1 :])
    shape = tuple(axis.size for axis in axes)

    def spread(values: Array) -> Array:
        parts = np.split(
            values.reshape(made.shape), np.cumsum([axis.size for _, axis in kinds])[:-1], axis=place
        )
        found = np.full(shape, np.nan)
        for number, (start, part) in enumerate(zip(starts, parts, strict=True)):
            np.moveaxis(found, place, 0)[number].swapaxes(0, place)[start : start + part.shape[place]] = (
                part.swapaxes(0, place)
            )
        return found.ravel()

    names = ("estimates", "stddevs", "lower", "upper")
    figures: dict[str, Any] = {name: spread(getattr(made, name)) for name in names}
    hidden = None if made.hidden is None else spread(made.hidden.astype(float)) == 1
    return replace(made, axes=axes, exact=None, hidden=hidden, **figures)


def answered_statistic(shown: Shown, unit: str) -> Answered:
    """Return a statistic as pictures need it: of a CDF the shares, of any other the estimates.

    Parameters
    ----------
    shown : Shown
        As readers see it.
    unit : str
        Of the estimates.
    """
    say, keys, cumulated = shown.say, shown.keys, "share" in shown.figures
    axes = tuple(_axis_of_key(shown, key.name, cumulated and key == keys[-1]) for key in keys)
    if math.prod(axis.size for axis in axes) != len(shown.table):
        rows = zip(*(shown.texts(key.name) for key in keys), strict=True)
        called = ", ".join(map(shown.head, keys))
        axes = (Axis(called, tuple(map(", ".join, rows)), "categories"),)
    figures = shown.figures["share" if cumulated else ""]
    axes = tuple(axis for axis in axes if axis.size > 1)
    told = {"unit": say("share") if cumulated else unit, "measures": figures.measures, "say": say}
    return Answered.of(axes, figures.shown, counts=False, dates=figures.dates, exact=figures, **told)


def _axis_of_key(shown: Shown, key: str, cumulated: bool) -> Axis:
    """Return the axis of a key of a statistic; the last one of a CDF is drawn at the ends of its values."""
    title = shown.head(shown.table.schema.field(key))
    labels, ends = tuple(dict.fromkeys(shown.texts(key))), shown.ends_of(key)
    first, last = ([], []) if ends is None else (list(dict.fromkeys(own.to_pylist())) for own in ends)
    days = tuple(last) if shown.dated(key) and len(last) == len(labels) else ()
    if not cumulated:
        if len(first) == len(days) and all(low > high for low, high in zip(first[1:], last, strict=False)):
            days = tuple(first)  # one period after the other
        return Axis(
            title, labels, "values" if days and days == tuple(sorted(days)) else "categories", days=days
        )
    texts = tuple(shown.say.number(own) if isinstance(own, float) else str(own) for own in last)
    return Axis(shown.say("at_most", title=title), labels if days else texts, "cumulative", days=days)


def form_of(axes: Sequence[Axis]) -> Form:
    """Return which picture answers over some axes get.

    Examples
    --------
    >>> age = Axis("age", tuple(map(str, range(100))), "cumulative")
    >>> sex = Axis("sex", ("female", "male"), "categories")
    >>> form_of([age]), form_of([sex, age]), form_of([sex]), form_of([sex, sex]), form_of([age, age])
    ('lines', 'lines', 'rows', 'panels', 'heat map')
    """
    cells = math.prod(axis.size for axis in axes)
    ranges = [axis.size for axis in axes if axis.kind == "ranges"]
    if ranges:
        return "triangles" if len(ranges) == 1 and cells // ranges[0] <= _MOST_TRIANGLES else "rows"
    if not axes:
        return "rows"
    along = axes[_along(axes)]
    others = cells // along.size
    if sum(axis.continuous for axis in axes) < 2:
        if along.continuous and others <= _MOST_LINES:
            return "lines"
        if others == 1:
            return "rows"
        if others <= _MOST_PANELS and (along.continuous or along.size <= _MOST_NAMED):
            return "panels"
    named = len(axes) == 2 or any(axis.ordered for axis in axes)
    return "heat map" if named and max(cells // axes[-1].size, axes[-1].size) <= _MOST_CELLS else "rows"


def _along(axes: Sequence[Axis]) -> int:
    """Return the place of the axis that a line or the rows of a panel run along."""
    return max(range(len(axes)), key=lambda place: (axes[place].continuous, axes[place].size, -place))


def draw_answers(answered: Answered, title: str = "", width: float = WIDE) -> Figure:
    """Return the picture of a group's answers in a width in inches, under a title if there is one."""
    draw = {
        "rows": _rows,
        "lines": _lines,
        "panels": _panels,
        "heat map": _heat_map,
        "triangles": _triangles,
    }[answered.form]
    figure = draw(answered, width)
    if title:
        figure.suptitle(shortened(title, int(9 * width)), color=INK, fontsize=11)
    return figure


def _front(answered: Answered, values: Array, place: int) -> Array:
    """Return values with one axis last and the others, as one, before it."""
    return np.moveaxis(values.reshape(answered.shape), place, -1).reshape(-1, answered.shape[place])


def _split(answered: Answered) -> tuple[Axis, tuple[Axis, ...], list[Array]]:
    """Return the axis that lines or rows run along, the others, and estimates and ends by these."""
    place = _along(answered.axes)
    others = answered.axes[:place] + answered.axes[place + 1 :]
    figures = (answered.estimates, answered.lower, answered.upper)
    return answered.axes[place], others, [_front(answered, own, place) for own in figures]


def mark(axis: XAxis | YAxis, inches: float, answered: Answered, *, dates: bool = False) -> None:
    """Give an axis as many marks as fit; of days at the first of months, quarters or years."""
    from matplotlib import dates as days
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    say = answered.say
    if dates:
        calendar: Any = days  # without types of its own
        locator = calendar.AutoDateLocator(minticks=2, maxticks=max(3, int(inches / 0.55)))
        locator.intervald[calendar.MONTHLY] = [1, 2, 3, 4, 6, 12]  # or nothing fits just below two years
        axis.set_major_locator(locator)
        formats = ["", "%Y", "%b %Y", "%d %b %Y", "%d %b %Y", "%d %b %Y"]
        formatter = calendar.ConciseDateFormatter(locator, offset_formats=formats)
        marked, offset, names = formatter.format_ticks, formatter.get_offset, say("months_short").split()
        named = dict(zip(ENGLISH("months_short").split(), names, strict=True))

        def spoken(text: str) -> str:
            return re.sub("[A-Z][a-z]+", lambda month: named.get(month[0], month[0]), text)

        def named_days(values: Sequence[float]) -> list[str]:
            # of one day alone matplotlib would say the time
            one = [calendar.num2date(day).strftime("%b %Y") for day in values[:1]]
            return list(map(spoken, marked(values) if len(values) > 1 else one))

        formatter.format_ticks = named_days
        formatter.get_offset = lambda: spoken(offset()) if len(locator()) > 1 else ""
        axis.set_major_formatter(formatter)
        axis.get_offset_text().set(color=INK, fontsize=9)
        return
    axis.set_major_locator(MaxNLocator(nbins=max(2, int(inches / 0.9)), steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: written(value, say, answered.measures)))


def written(value: float, say: Words, measures: str = "") -> str:
    """Return the mark of an axis with all digits that it has.

    Examples
    --------
    >>> written(1234.5, ENGLISH), written(0.125, ENGLISH, "share"), written(20.0, ENGLISH)
    ('1,234.5', '12.5%', '20')
    """
    digits = f"{100 * value if measures == 'share' else value:.8f}".rstrip("0").partition(".")[2]
    return say.percent(value, len(digits)) if measures == "share" else say.number(value, len(digits))


def _order(sizes: Array) -> NDArray[np.intp]:
    """Return which rows are drawn: few in their own order; else the largest first, those without one last."""
    if len(sizes) <= _MOST_BARS:
        return np.arange(len(sizes))
    found = np.argsort(-sizes, kind="stable")
    return found if len(found) <= _MOST_NAMED else found[:_MOST_BARS]


def _rows(answered: Answered, width: float) -> Figure:
    """Draw a row for each answer: bars of counts where they are few, else points, with their intervals."""
    labels = joined(answered.axes) if answered.axes else (answered.say("all"),)
    longest = _longest(width)
    order = _order(answered.estimates)
    figure = new_figure(width, 0.9 + _pitch(len(order)) * len(order))
    axes = figure.add_subplot()
    own = [figures[order] for figures in (answered.estimates, answered.lower, answered.upper)]
    _draw_rows(axes, own, answered)
    axes.set_ylabel(shortened(", ".join(axis.name for axis in answered.axes), 40), loc="top")
    unit = answered.unit
    if len(order) < len(labels):
        counted = answered.say.number(len(labels))
        unit = answered.say("largest_shown", unit=unit, shown=len(order), number=counted)
    rows_of(axes, [labels[place] for place in order], unit, longest)
    mark(axes.xaxis, width - 1.8, answered, dates=answered.dates)
    if len(order) > _MOST_BARS:
        axes.tick_params(axis="x", top=True, labeltop=True)
    return figure


def _longest(width: float) -> int:
    return 40 if width >= WIDE else 30 if width > NARROW else 20


def _pitch(rows: int) -> float:
    """Return how many inches a row takes."""
    return 0.24 if rows <= _MOST_BARS else 0.165


def _draw_rows(axes: Axes, figures: Sequence[Array], answered: Answered) -> None:
    estimates, lower, upper = figures
    places = np.arange(len(estimates))
    if answered.bars:
        axes.barh(places, estimates, color=BAND, height=0.72)
        axes.hlines(places, lower, upper, color=INK, linewidth=1.4)
        axes.axvline(0, color=INK, linewidth=0.8)
    else:
        thickness = 20 * _pitch(len(places))
        axes.hlines(places, lower, upper, color=BAND, linewidth=thickness)
        axes.plot(estimates, places, "o", color=SERIES[0], markersize=thickness)
    axes.margins(y=0.5 / max(len(places), 1))
    if answered.hidden is not None:
        for place in np.flatnonzero(np.isnan(estimates)).tolist():
            where = axes.get_yaxis_transform()
            axes.text(0.01, place, UNRELIABLE, transform=where, va="center", fontsize=8, color=INK)


def _lines(answered: Answered, width: float) -> Figure:
    """Draw a line in the band of its intervals for each place of the other axes."""
    along, others, figures = _split(answered)
    figure = new_figure(width, 3.6 if width >= WIDE else 3.2)
    axes = figure.add_subplot()
    drawn = _draw_lines(axes, along, figures, width - 1, answered)
    axes.set_ylabel(plain(answered.unit))
    if others:
        title = shortened(", ".join(axis.name for axis in others), 40)
        # a legend leaves out what begins with an underscore
        names = [shortened(name) for name in joined(others)]
        labels = [f"\N{HAIR SPACE}{name}" if name.startswith("_") else name for name in names]
        place: dict[str, Any] = {"loc": "outside right upper"}
        if width < WIDE:
            place = {"loc": "outside upper left", "ncols": 2}
        written: dict[str, Any] = {"fontsize": 9, "title_fontsize": 9, "frameon": False, "labelcolor": INK}
        legend = figure.legend(drawn, labels, title=title, **place, **written)
        legend.get_title().set_color(INK)
    return figure


def _draw_lines(
    axes: Axes, along: Axis, figures: Sequence[Array], inches: float, answered: Answered
) -> list[Any]:
    # of a long axis places at equal distances are drawn, the last among them
    every = -(-along.size // _MOST_PLACES)
    kept = np.arange(along.size)[::-1][::every][::-1]
    lines, lower, upper = (own[:, kept] for own in figures)
    x = np.asarray(along.days, "datetime64[D]")[kept] if along.days else kept
    step: Literal["mid"] | None = "mid" if along.size <= 120 and not along.days else None
    shape: dict[str, Any] = {"drawstyle": "default" if step is None else "steps-mid"}
    if along.days and len(kept) <= _MOST_BARS:
        shape |= {"marker": "o", "markersize": 3}
    drawn = []
    for line, low, high, colour in zip(lines, lower, upper, itertools.cycle(SERIES), strict=False):
        axes.fill_between(x, low, high, step=step, color=colour, alpha=0.28, linewidth=0)
        drawn += axes.plot(x, line, color=colour, linewidth=1.3, **shape)
    if along.days:
        mark(axes.xaxis, inches, answered, dates=True)
    else:
        longest = max(len(shortened(label, 14)) for label in along.labels)
        axes.set_xticks(*label_places(along.labels, max(2, min(8, int(inches / (0.09 * longest + 0.2))))))
    name = shortened(along.name, int(8 * inches))
    axes.set_xlabel(answered.say("every", title=name, every=every) if every > 1 else name, loc="left")
    mark(axes.yaxis, 4, answered)
    axes.margins(x=0.01)
    quiet(axes)
    return drawn


def _panels(answered: Answered, width: float) -> Figure:
    """Draw small multiples, which share their axes: one for each place of all axes but the longest."""
    along, others, figures = _split(answered)
    names = joined(others)
    most = 3 if width > NARROW else 2
    across = 2 if len(names) == 4 else min(len(names), most)
    down = math.ceil(len(names) / across)
    order = np.arange(along.size) if along.continuous else _order(np.nansum(figures[0], axis=0))
    height = 1.7 if along.continuous else 0.5 + _pitch(len(order)) * len(order)
    figure = new_figure(width, 0.5 + down * height)
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    inches = (width - (0.8 if along.continuous else 1.6)) / across
    for place, axes in enumerate(grid.flat):
        if place >= len(names):
            axes.set_visible(False)
            continue
        if along.continuous:
            _draw_lines(axes, along, [own[place : place + 1] for own in figures], inches, answered)
            axes.set_xlabel("")
        else:
            _draw_rows(axes, [own[place, order] for own in figures], answered)
            labels = [shortened(along.labels[row], _longest(width)) for row in order]
            axes.set_yticks(range(len(labels)), labels)
            mark(axes.xaxis, inches, answered, dates=answered.dates)
            quiet(axes, grid="x")
        axes.set_title(shortened(names[place], max(8, int(11 * inches))), fontsize=9, color=INK)
        axes.tick_params(labelbottom=place + across >= len(names), labelsize=8)
    if not along.continuous:
        grid[0, 0].invert_yaxis()
    side, below = (answered.unit, along.name) if along.continuous else (along.name, answered.unit)
    figure.supxlabel(shortened(below, 50), fontsize=9, color=INK)
    if along.continuous:
        figure.supylabel(shortened(side, 30), fontsize=9, color=INK)
    else:
        grid[0, 0].set_ylabel(shortened(side, 30), fontsize=9, color=INK, loc="top")
    return figure


def draw_statistic(shown: Shown, unit: str, title: str = "") -> Figure:
    """Return the picture of a statistic, as `answered_statistic` reads it, without what has no bounds."""
    answered, main = answered_statistic(shown, unit), shown.main
    return draw_answers(answered if main is None else answered.without(main.unbounded), title)


# Heat maps of estimates, beside one of their standard errors where these differ.


def _heat_map(answered: Answered, width: float) -> Figure:
    """Draw estimates by two axes, or by combinations of some and another, and their standard errors."""
    rows, columns = answered.axes[:-1], answered.axes[-1]
    estimates, stddevs = (own.reshape(-1, columns.size) for own in (answered.estimates, answered.stddevs))
    count, across = estimates.shape
    texted = count * across <= WRITTEN and across <= (8 if width >= WIDE else 3)
    panels = [(_title(answered.say, stddevs), estimates)]
    if not alike(stddevs):
        panels.append((answered.say("stddev"), stddevs))
    below = width < WIDE or across > 12 or (texted and across > 3)
    shape = (len(panels), 1) if below else (1, len(panels))
    named = count <= _MOST_NAMED
    each = 0.9 + 0.16 * count if named and count > 2 * _MARKS else min(max(1.1 + 0.26 * count, 1.9), 5.0)
    figure = new_figure(width, shape[0] * each)
    most = int(width) if below else 4
    x = (shortened(columns.name, 40), label_places(columns.labels, max(2, most)))
    name = shortened(", ".join(axis.name for axis in rows), 30)
    marks = label_places(joined(rows), count if named else 2 * _MARKS)
    for place, (title, own) in enumerate(panels):
        axes = figure.add_subplot(*shape, place + 1)
        y = (name, marks) if below or place == 0 else ("", (marks[0], []))
        norm = _norm(own, stddevs) if place == 0 else None
        image = _draw_map(axes, own, title, x, y, answered, norm=norm, aspect="auto")
        if count > 2 * _MARKS:
            axes.tick_params(axis="y", labelsize=7)
        if texted:
            figures = answered.figures
            texts = figures.texts("stddev")
            if place == 0:
                pairs = zip(figures.texts("estimate"), figures.margins(), strict=True)
                texts = [f"{text} {margin}".rstrip() for text, margin in pairs]
            _write(axes, image.to_rgba(own), texts)
    return figure


def _triangles(answered: Answered, width: float) -> Figure:
    """Draw the answers for every interval of values by its two ends: one triangle for each other place."""
    [place] = (i for i, axis in enumerate(answered.axes) if axis.kind == "ranges")
    axis, others = answered.axes[place], answered.axes[:place] + answered.axes[place + 1 :]
    estimates, stddevs = (_front(answered, own, place) for own in (answered.estimates, answered.stddevs))
    titles = [shortened(name) or _title(answered.say, stddevs) for name in joined(others)]
    panels = list(zip(titles, estimates, strict=True))
    if not alike(stddevs):
        panels.append((answered.say("largest_error"), np.fmax.reduce(stddevs, axis=0)))
    across = min(len(panels), 2) if width >= WIDE else 1
    down = math.ceil(len(panels) / across)
    figure = new_figure(width, 2.5 * down)
    norm = _norm(estimates, stddevs)
    x, y = (
        (shortened(f"{axis.name}, {answered.say(end)}", 30), label_places(axis.values, most))
        for end, most in (("upper", 3), ("lower", 6))
    )
    for number, (title, values) in enumerate(panels):
        square = np.full((len(axis.values), len(axis.values)), np.nan)
        square[np.triu_indices(len(square))] = values
        axes = figure.add_subplot(down, across, number + 1)
        own = norm if number < len(estimates) else None
        _draw_map(axes, square, title, x, y, answered, norm=own, origin="lower")
    return figure


Marked = tuple[str, tuple[list[int], list[str]]]
"""What an axis is called, and its marks."""


def _draw_map(
    axes: Axes, values: Array, title: str, x: Marked, y: Marked, answered: Answered, **shown: Any
) -> AxesImage:
    """Draw numbers as colours, with what the colours mean beside them."""
    from matplotlib.ticker import FuncFormatter

    marks = FuncFormatter(lambda value, _: written(value, answered.say, answered.measures))
    image = axes.imshow(values, cmap=_COLOURS, interpolation="none", **shown)
    axes.set_yticks(*y[1])
    axes.set_xticks(*x[1])
    axes.set(xlabel=x[0], ylabel=y[0], title=title)
    quiet(axes, grid="")
    bar = axes.figure.colorbar(image, ax=axes, fraction=0.05, pad=0.02, format=marks)
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
    return bool(np.nanmax(stddevs) <= _ALIKE * np.nanmin(stddevs))


def _title(say: Words, stddevs: Array) -> str:
    """Return the title of a map, with the standard error where that is all but the same everywhere."""
    title = say("estimate")
    error = say.number(float(np.nanmax(stddevs)), digits=3)
    return say("with_error", title=title, error=error) if alike(stddevs) else title


def _norm(estimates: Array, stddevs: Array) -> Normalize:
    """Return a scale that is linear within the noise; above it logarithmic, where counts differ widely."""
    from matplotlib.colors import Normalize, SymLogNorm

    low, high = min(0.0, float(np.nanmin(estimates))), float(np.nanmax(estimates))
    threshold = 2 * float(np.nanmedian(stddevs))
    if threshold > 0 and high > 100 * threshold:
        return SymLogNorm(linthresh=threshold, vmin=low, vmax=high)
    return Normalize(low, high if high > low else low + 1.0)


def _write(axes: Axes, colours: Array, texts: Sequence[str]) -> None:
    """Write a text into every cell."""
    light = colours[..., :3] @ np.array([0.2126, 0.7152, 0.0722]) > 0.45
    for (row, column), text in zip(np.ndindex(*light.shape), texts, strict=True):
        colour = "#010101" if light[row, column] else "#ffffff"
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
    errors = selection.errors
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


def draw_accuracies(
    rows: Sequence[tuple[str, float, float | None]],
    straight: float | None,
    width: float = WIDE,
    say: Words = ENGLISH,
) -> Figure:
    """Return the errors of groups as points: the largest of them, where there are more than 30.

    Parameters
    ----------
    rows : sequence of (str, float, float or None)
        The title of a group, the root mean square of its standard errors, and what no strategy is below.
    straight : float, optional
        The standard error of noise on every query.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator

    shown = sorted(rows, key=lambda row: -row[1])[:_MOST]
    figure = new_figure(width, 1.3 + 0.24 * len(shown))
    axes = figure.add_subplot()
    errors = [row[1] for row in shown]
    axes.plot(errors, range(len(shown)), "o", color=SERIES[0], label=say("legend_rmse"))
    known = [(row[2], place) for place, row in enumerate(shown) if row[2] is not None]
    if known:
        thick: dict[str, Any] = {"markersize": 10, "markeredgewidth": 2}
        axes.plot(*zip(*known, strict=True), "|", color=LEAST, label=say("head_least"), **thick)
    if straight is not None:
        axes.axvline(straight, color=INK, linestyle="--", linewidth=1.2, label=say("head_straight"))
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if width >= WIDE else (1.0,)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: written(value, say)))
    axes.xaxis.set_minor_formatter("")
    axes.margins(x=0.08, y=0.04)
    unit = say("axis_errors" if len(shown) == len(rows) else "axis_errors_some", number=say.number(len(rows)))
    rows_of(axes, [row[0] for row in shown], unit, 30 if width >= WIDE else 20)
    columns = 3 if width >= WIDE else 1
    figure.legend(loc="outside upper center", ncols=columns, fontsize=8.5, frameon=False, labelcolor=INK)
    return figure
