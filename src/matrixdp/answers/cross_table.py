"""Cross tables: rows by columns with totals, row groups for a third attribute, panels for more.

Totals are answers of their own, from the same measurement: their standard errors are exact, and a marginal
that was published has the same figures here.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.figures import Figures, Presentation, decimals_of
from matrixdp.answers.inference import Inference
from matrixdp.answers.publication import PublishedTable
from matrixdp.answers.result_table import ResultTable
from matrixdp.answers.shown import Shown
from matrixdp.answers.table import is_key
from matrixdp.answers.titles import heads, unique
from matrixdp.display import Preview
from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError, UnsupportedQueryError, WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.forms import describe_value, unknown_name
from matrixdp.queries import Identity, Predicates, ProductGroup, Sets, Total
from matrixdp.queries.groups import asked_attributes

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


MOST_COLUMNS = 12
"""An attribute with more values does not stand in the columns unless it is asked for."""
MAX_CELLS = 100_000
"""A cross table has at most this many figures, totals included."""
_MOST_DEFAULT = 3
_MOST_ENTRIES = 4_000_000


@final
@dataclass(frozen=True)
class Cell:
    """One figure of a cross table, as readers see it.

    Attributes
    ----------
    text : str
        The figure; ``F`` where it is suppressed, ``-`` where it does not exist.
    value : float or None
        The number that the text says.
    margin : str
        Half of its interval, rounded up, or the ends of one that is longer to one side; nothing where there
        is none.
    grade : str
        The letter of its quality; nothing where it has no standard error.
    lower, upper : float or None
        The ends of its interval, rounded outward.
    """

    text: str
    value: float | None = None
    margin: str = ""
    grade: str = ""
    lower: float | None = None
    upper: float | None = None


@final
@dataclass(frozen=True)
class Row:
    """A row of a cross table.

    Attributes
    ----------
    label : str
        The value of the attribute in the rows, of the row groups, or ``Total``.
    cells : tuple of Cell
        One for each column; none for the head of a row group without totals.
    group : bool
        Whether it is the head of a row group, with the totals of the group.
    total : bool
        Whether it is the total of all rows.
    """

    label: str
    cells: tuple[Cell, ...]
    group: bool = False
    total: bool = False


@final
@dataclass(frozen=True)
class Panel:
    """One of the small multiples of a cross table: its rows, and what they are of where there are several.

    Attributes
    ----------
    label : str
        Such as ``region North``; nothing where there is one panel.
    rows : tuple of Row
        Of all columns of the table.
    """

    label: str
    rows: tuple[Row, ...]


@final
@dataclass(frozen=True)
class Axis:
    """An attribute of a cross table.

    Attributes
    ----------
    name : str
        What layouts call it.
    title : str
        What its values are headed by.
    labels : tuple of str
        Its values in order, ``Total`` first where there are totals.
    total : bool
        Whether there are.
    ordered : bool
        Whether its values are numbers or dates.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    total: bool = False
    ordered: bool = False

    @property
    def size(self) -> int:
        """The number of values, without the total."""
        return len(self.labels) - self.total


@final
@dataclass(frozen=True, eq=False, repr=False)
class CrossTable:
    """A table as offices print it: rows by columns. It prints its first rows.

    Attributes
    ----------
    title, unit : str
        Of the table, as `PublishedTable` has them.
    axes : tuple of Axis
        The attributes from the outermost: small multiples, row groups, rows, columns.
    figures : Figures
        Of every place, along the axes; absent where there is none.
    confidence : float
        Of the intervals.
    wide : bool
        Whether the last attribute is in the columns; else there is one column, and the last is in the rows.
    """

    title: str
    unit: str
    axes: tuple[Axis, ...]
    figures: Figures
    confidence: float
    wide: bool

    @property
    def presentation(self) -> Presentation:
        """What readers see of figures."""
        return self.figures.rules

    @property
    def column_axis(self) -> Axis | None:
        """The attribute in the columns."""
        return self.axes[-1] if self.wide else None

    @property
    def row_axes(self) -> tuple[Axis, ...]:
        """The attributes in the rows: that of the row groups, where there is one, and that within them."""
        stop = len(self.axes) - self.wide
        return self.axes[max(0, stop - 2) : stop]

    @property
    def columns(self) -> tuple[str, ...]:
        """The headings of the columns of figures."""
        return self.axes[-1].labels if self.wide else (self.unit,)

    @property
    def stub(self) -> str:
        """The heading of the rows' labels."""
        return ", ".join(axis.title for axis in self.row_axes)

    @property
    def corner(self) -> str:
        """The same with what the columns are by, for where there is no line above them."""
        say = self.presentation.say
        return say("by", first=self.stub, rest=self.axes[-1].title) if self.wide else self.stub

    @cached_property
    def panels(self) -> tuple[Panel, ...]:
        """The small multiples, one where the table has at most three attributes."""
        outer = self.axes[: len(self.axes) - self.wide - len(self.row_axes)]
        shape = tuple(len(axis.labels) for axis in outer)
        cells = self._cells
        found = []
        for place in np.ndindex(*shape):
            words = [f"{axis.title} {axis.labels[own]}" for axis, own in zip(outer, place, strict=True)]
            found.append(Panel(", ".join(words), tuple(self._rows(cells[place]))))
        return tuple(found)

    def _rows(self, cells: NDArray[np.object_]) -> Iterator[Row]:
        """Yield the rows of one panel, whose cells lie along row groups, rows and columns."""
        inner = self.row_axes[-1]
        if len(self.row_axes) == 1:
            for place, label in enumerate(inner.labels):
                yield Row(label, tuple(cells[place]), total=inner.total and not place)
            return
        outer = self.row_axes[0]
        for place, label in enumerate(outer.labels):
            whole = outer.total and not place
            yield Row(label, tuple(cells[place, 0]) if inner.total else (), group=True, total=whole)
            for own in range(inner.total, len(inner.labels)):
                yield Row(inner.labels[own], tuple(cells[place, own]))

    @cached_property
    def _cells(self) -> NDArray[np.object_]:
        """The cells of all places, along panels, row groups, rows and columns."""
        own, found = self.figures, np.empty(self.figures.values.shape[1], dtype=object)
        texts = own.texts("estimate"), own.shown.T.tolist(), own.margins(), own.letters
        for place, (text, values, margin, letter) in enumerate(zip(*texts, strict=True)):
            value, _, low, high = (None if math.isnan(one) else one for one in values)
            found[place] = Cell(text, value, margin, letter, low, high)
        columns = len(self.axes[-1].labels) if self.wide else 1
        return found.reshape(*(len(axis.labels) for axis in self.axes[: len(self.axes) - self.wide]), columns)

    def lines(self, panel: Panel, *, margins: bool = False) -> list[list[str]]:
        """Return the rows of a panel as texts: labels, and figures with quality or half their intervals."""
        nested = len(self.row_axes) > 1
        found = []
        for row in panel.rows:
            label = row.label if row.group or not nested else f"  {row.label}"
            texts = [f"{own.text} {own.margin if margins else own.grade}".rstrip() for own in row.cells]
            # what stands in place of a figure has neither
            texts = [
                t if own.value is not None else own.text for t, own in zip(texts, row.cells, strict=True)
            ]
            found.append([label, *(texts or [""] * len(self.columns))])
        return found

    def __repr__(self) -> str:
        return self._preview().text()

    def _repr_html_(self) -> str:
        return self._preview().html()

    def _preview(self) -> Preview:
        """Return the first rows of all panels."""
        empty = [""] * len(self.columns)
        rows = []
        for panel in self.panels:
            rows += [[panel.label, *empty]] if panel.label else []
            rows += self.lines(panel)
        numeric = frozenset(range(1, len(self.columns) + 1))
        return Preview((self.corner, *self.columns), rows, len(rows), numeric)

    def _labels(self) -> tuple[list[str], list[list[str]]]:
        """Return the headings of all columns, and of each row its labels from the outermost."""
        outer = self.axes[: len(self.axes) - self.wide]
        names = list(unique((*(axis.title for axis in outer), *self.columns)))
        return names, [list(labels) for labels in itertools.product(*(axis.labels for axis in outer))]

    def to_arrow(self) -> pa.Table:
        """Return what readers see as a table of numbers: a column for each heading, null where there is none.

        Panels, row groups and rows are columns of labels, ``Total`` among them.
        """
        names, labels = self._labels()
        keys = [pa.array(own) for own in zip(*labels, strict=True)]
        figures = self._cells.reshape(-1, len(self.columns)).T
        arrays = [pa.array([cell.value for cell in own], pa.float64()) for own in figures]
        return pa.Table.from_arrays([*keys, *arrays], names=names)

    def to_pandas(self) -> pd.DataFrame:
        """Return the same as a pandas data frame."""
        return ResultTable(self.to_arrow()).to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the same as a Polars data frame."""
        return ResultTable(self.to_arrow()).to_polars()

    def to_csv(self) -> str:
        """Return the same as CSV, with what stands in place of figures that are not shown."""
        names, labels = self._labels()
        figures = self._cells.reshape(-1, len(self.columns))
        made = io.StringIO()
        writer = csv.writer(made, lineterminator="\n")
        writer.writerow(names)
        for own, cells in zip(labels, figures, strict=True):
            texts = [cell.text if cell.value is None else f"{cell.value:.12g}" for cell in cells]
            writer.writerow([*own, *texts])
        return made.getvalue()


# What stands in a cross table, before it is laid out: the attributes of a table with the figures along them.


def cross_table(
    inference: Inference,
    published: PublishedTable,
    presentation: Presentation,
    layout: Sequence[str] | None = None,
) -> CrossTable:
    """Return a table as rows by columns, with totals where each value is counted at most once.

    Parameters
    ----------
    inference : Inference
        What the figures follow from.
    published : PublishedTable
        A query group or a statistic.
    presentation : Presentation
        What readers see of figures.
    layout : sequence of str, optional
        The attributes from the outermost: small multiples, row groups, rows, columns. Where it is left out,
        the attribute with the fewest values is in the columns, one of `MOST_COLUMNS` at most and of
        categories rather than numbers or dates; the longest, numbers and dates first, is in the rows.

    Raises
    ------
    WorkloadError
        If the table has no attributes to cross, or the layout does not name each of them once.
    TooLargeError
        If there are more than `MAX_CELLS` figures.
    MatrixDPError
        If a statistic does not follow from the measurement.
    """
    found = _grid(inference, published, presentation)
    if found is None:
        expected = "a table with a column for each attribute"
        raise WorkloadError.at(("cross",), f"{published.title!r}", expected, code="not-supported")
    axes, figures, places = found
    order, wide = _default_order(axes) if layout is None else _order(axes, layout, published.title)
    own = tuple(axes[place] for place in order)
    figures = figures.take(places.transpose(order).ravel())
    return CrossTable(published.title, published.unit, own, figures, inference.confidence, wide)


def default_cross_table(
    inference: Inference, published: PublishedTable, presentation: Presentation
) -> CrossTable | None:
    """Return the cross table of a table of two or three attributes; None for others, and for large ones."""
    count = len(_attributes(published))
    if not 2 <= count <= _MOST_DEFAULT:
        return None
    try:
        return cross_table(inference, published, presentation)
    except (TooLargeError, WorkloadError):
        return None


def _attributes(published: PublishedTable) -> list[str]:
    """Return the names of the attributes that a table could be crossed by."""
    group, statistic = published.group, published.statistic
    if isinstance(group, ProductGroup):
        return list(asked_attributes(group))
    table = None if statistic is None else statistic.published
    return [] if table is None else [field.name for field in table.schema if is_key(field)]


_Grid = tuple[tuple[Axis, ...], Figures, NDArray[np.intp]]
"""The attributes of a table, its figures, and which of them stands at each place along the attributes."""


def _grid(inference: Inference, published: PublishedTable, rules: Presentation) -> _Grid | None:
    if published.group is None:
        assert published.statistic is not None
        if published.statistic.refusal is not None:
            raise published.statistic.refusal
        assert published.statistic.published is not None
        shown = Shown(published.statistic.published, published.measures, rules)
        return _of_statistic(inference.domain, shown)
    names = _attributes(published)
    if not isinstance(published.group, ProductGroup) or not names:
        return None
    return _of_group(inference, published, published.group, names, rules)


def _check_size(shape: Sequence[int]) -> None:
    if math.prod(shape) > MAX_CELLS:
        found = f"{math.prod(shape):,} figures"
        raise TooLargeError.at(("cross",), found, f"at most {MAX_CELLS:,}, totals included")


def _of_group(
    inference: Inference, one: PublishedTable, group: ProductGroup, names: Sequence[str], rules: Presentation
) -> _Grid:
    """Return the figures of a query group with its totals, each of which is an answer of its own."""
    domain = inference.domain
    sizes = dict(zip(group.attributes, group.sizes, strict=True))
    counts = tuple(group.sets[name].count(sizes[name]) for name in names)
    wholes = {name: _whole(group.sets[name], sizes[name]) for name in names}
    _check_size([count + (wholes[name] is not None) for name, count in zip(names, counts, strict=True)])
    inner = inference.figures(group)
    figures = inner.reshape(4, *counts)
    try:
        figures = _with_totals(inference, group, figures, wholes)
    except UnsupportedQueryError:
        wholes = dict.fromkeys(names)
    axes = []
    for name in names:
        own, attribute = group.sets[name], domain[name]
        labels = ([rules.say("total")] if wholes[name] is not None else []) + own.describe(attribute)
        ordered = attribute.ends is not None
        axes.append(Axis(*heads(attribute, (own,)), tuple(labels), wholes[name] is not None, ordered))
    known = decimals_of(float(inner[1][inner[1] > 0].min(initial=np.inf)))
    values, places = figures.reshape(4, -1), np.arange(figures[0].size).reshape(figures.shape[1:])
    made = Figures(values, one.measures, known, np.zeros(values.shape[1], dtype=bool), rules=rules)
    return tuple(axes), made, places


def _with_totals(
    inference: Inference, group: ProductGroup, figures: Array, wholes: Mapping[str, Predicates | None]
) -> Array:
    """Return figures along the attributes of a group with totals before them, where there are such."""
    totalled = [name for name, whole in wholes.items() if whole is not None]
    shape = [count + (name in totalled) for name, count in zip(wholes, figures.shape[1:], strict=True)]
    found = np.full((4, *shape), np.nan)
    for kept in itertools.product(*([False, True] if name in totalled else [True] for name in wholes)):
        places = tuple(
            slice(int(name in totalled), None) if own else slice(0, 1)
            for name, own in zip(wholes, kept, strict=True)
        )
        if all(kept):
            own_figures = figures
        else:
            summed = {name: wholes[name] for name, own in zip(wholes, kept, strict=True) if not own}
            own_figures = inference.figures(_summed(group, summed))
        found[:, *places] = own_figures.reshape(4, *found[0][places].shape)
    return found


def _summed(group: ProductGroup, wholes: Mapping[str, Predicates | None]) -> ProductGroup:
    """Return a group with the sums of the predicates on some attributes in their places."""
    predicates = tuple(wholes.get(name) or own for name, own in group.sets.items())
    return replace(group, predicates=predicates, weight=1.0, query_weights=None)


def _whole(predicates: Predicates, size: int) -> Predicates | None:
    """Return the query that counts what any of a set's does, where none counts what another does.

    Examples
    --------
    >>> from matrixdp.queries import Prefix
    >>> _whole(Identity(), 3), _whole(Sets(((0, 1), (3,))), 5), _whole(Prefix(), 3)
    (Total(), Sets(sets=((0, 1, 3),)), None)
    """
    count = predicates.count(size)
    if count < 2 or count * size > _MOST_ENTRIES:
        return None
    if isinstance(predicates, Identity):
        return Total()
    rows = predicates.rows(size)
    asked = rows.sum(axis=0)
    if not (np.isin(rows, (0.0, 1.0)).all() and (asked <= 1).all()):
        return None
    return Total() if asked.all() else Sets((tuple(np.flatnonzero(asked).tolist()),))


def _of_statistic(domain: Domain, shown: Shown) -> _Grid | None:
    """Return the figures of a statistic along what its rows are of; None where rows are not told by that."""
    if not shown.keys or shown.main is None or shown.main.dates:
        return None
    axes, codes = [], []
    for field in shown.keys:
        column = shown.table.column(field.name).combine_chunks().dictionary_encode()
        order = {value: place for place, value in enumerate([*column.dictionary.to_pylist(), None])}
        listed = [order[value] for value in column.to_pylist()]
        texts = dict(zip(listed, shown.texts(field.name), strict=True))
        used, own = np.unique(listed, return_inverse=True)
        numeric = not pa.types.is_string(column.dictionary.type)
        ordered = numeric or (field.name in domain and domain[field.name].ends is not None)
        labels = tuple(texts[code] for code in used.tolist())
        axes.append(Axis(field.name, shown.head(field), labels, ordered=ordered))
        codes.append(own)
    shape = [len(axis.labels) for axis in axes]
    _check_size(shape)
    places, found = np.ravel_multi_index(codes, shape), np.full(math.prod(shape), -1)
    if len(np.unique(places)) < len(places):
        return None
    found[places] = np.arange(len(places))
    return tuple(axes), shown.main, found.reshape(shape)


# Which attribute stands where.


def _default_order(axes: Sequence[Axis]) -> tuple[list[int], bool]:
    """Return the places of the attributes from the outermost, and whether the last is in the columns."""
    size = {place: (axis.ordered, axis.size) for place, axis in enumerate(axes)}
    left = list(size)
    narrow = [place for place in left if axes[place].size <= MOST_COLUMNS] if len(left) > 1 else []
    columns = [min(narrow, key=size.__getitem__)] if narrow else []
    left = [place for place in left if place not in columns]
    rows = max(left, key=size.__getitem__)
    left.remove(rows)
    return [*left, rows, *columns], bool(columns)


def _order(axes: Sequence[Axis], layout: Sequence[str], title: str) -> tuple[list[int], bool]:
    """Return the same as a user says it."""
    names = [axis.name for axis in axes]
    if isinstance(layout, str) or not all(isinstance(name, str) for name in layout):
        expected = "a list of attributes"
        raise WorkloadError.at(("cross",), describe_value(layout), expected, code="wrong-type")
    for name in layout:
        if name not in names:
            raise WorkloadError(unknown_name(("cross",), name, f"an attribute of the table {title!r}", names))
    if sorted(layout) != sorted(names):
        expected = f"each of {', '.join(names)} once, the outermost first and that of the columns last"
        raise WorkloadError.at(("cross",), ", ".join(layout), expected)
    return [names.index(name) for name in layout], len(layout) > 1
