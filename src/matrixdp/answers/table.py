"""The columns of a table of answers, built from codes: text is made for distinct values alone.

A row is a query: its group, one column for each attribute that the table asks about (null where the query
does not ask about it, which is a total), for attributes of numbers or days two more with where the values
begin and end, the text of explicit queries, the estimate, its standard deviation and the ends of its
interval. Values are categories in the order of the domain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Self, final

import numpy as np
import pyarrow as pa

from matrixdp.answers.titles import head, heads, unique
from matrixdp.domain import Attribute, Domain
from matrixdp.domain.rules import Bounds
from matrixdp.exact.linear import Array
from matrixdp.language.periods import known_after
from matrixdp.queries import (
    DenseGroup,
    Group,
    Identity,
    Predicates,
    ProductGroup,
    Spans,
    Total,
)
from matrixdp.texts import ENGLISH, Words

#: Rows of a batch, and of a row group of a file.
BATCH_ROWS = 1 << 20
#: The columns of numbers, in order.
FIGURES = ("estimate", "stddev", "lower", "upper")
#: The same of very many answers: the ends of an interval lie a margin below and above the estimate.
MARGINS = ("estimate", "stddev", "margin")
LEVEL = "level"
"""The column of answers at several levels of areas that says at which."""
PUBLISHED = "published"
"""The column of a series that says after which period an answer was published."""

BOUND = b"bound"
"""The key of a field's metadata that tells the columns of where values begin, ``from``, and end, ``to``."""
FIGURE = b"figure"
"""The key of a field's metadata that says which of `FIGURES` its column holds."""
OWN = b"own"
"""The key of a field's metadata that tells the columns of a statistic of its own from those of attributes."""
TITLE = b"title"
"""The key of a field's metadata that says what readers call its column."""
OF = b"of"
"""The key of a field's metadata that says of what: figures of the same belong together."""

REMARKS = {
    PUBLISHED: "The last period that was over when the answer was published",
    "warning": "What to know before the row is used",
    "binning": "The most by which the estimate may be off because numbers are known by their bins alone",
    "confidence": "The confidence that the values listed are those with the most records",
    "group": "The query group",
}
"""Columns of statistics that hold neither figures nor what a row is of, and what they say."""

#: What spreadsheets take for formulas, and what are numbers and ranges of them.
_FORMULA, _NUMBERS = re.compile(r"[=+@\t\r-]"), re.compile(r"[-+]?[\d.,]+( ?- ?-?[\d.,]+)?")
_NAME = pa.dictionary(pa.int32(), pa.utf8())
_VALUE = pa.dictionary(pa.int32(), pa.utf8(), ordered=True)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema whose texts are plain ones.

    Examples
    --------
    >>> plain_schema(pa.schema([("group", pa.dictionary(pa.int32(), pa.utf8()))])).field("group").type
    DataType(string)
    """
    return pa.schema([(f.name, pa.utf8() if pa.types.is_dictionary(f.type) else f.type) for f in schema])


def row_in_words(asked: Iterable[tuple[str, str]], none: str) -> str:
    """Return what a row asks as words, given its columns and texts; `none` where there are none.

    Examples
    --------
    >>> row_in_words([("sex", "f"), ("query", "age 0-17")], "total"), row_in_words([], "total")
    ('sex f, age 0-17', 'total')
    """
    return ", ".join(text if name == "query" else f"{name} {text}" for name, text in asked) or none


def figure_of(field: pa.Field) -> str:
    """Return which of `FIGURES` a column holds; nothing where it holds none.

    Examples
    --------
    >>> figure_of(pa.field("stddev", pa.float64())), figure_of(pa.field("sex", pa.utf8()))
    ('stddev', '')
    """
    named = field.name if field.name in FIGURES else ""
    figure: bytes = (field.metadata or {}).get(FIGURE, named.encode())
    return figure.decode()


def subject_of(field: pa.Field) -> str:
    """Return what the figures of a column are of; nothing for the statistic, or the answers, themselves.

    Examples
    --------
    >>> subject_of(pa.field("share_stddev", pa.float64(), metadata={FIGURE: b"stddev", OF: b"share"}))
    'share'
    """
    subject: bytes = (field.metadata or {}).get(OF, b"")
    return subject.decode()


def heading(field: pa.Field, say: Words, confidence: str = "") -> str:
    """Return what readers call a column: its title, or the word for it; intervals begin with a confidence.

    Examples
    --------
    >>> from matrixdp.texts import words_in
    >>> [heading(pa.field(name, pa.float64()), words_in("en")) for name in ("sex", "stddev", "lower")]
    ['sex', 'standard error', 'from']
    """
    figure, title = figure_of(field), (field.metadata or {}).get(TITLE)
    if title and BOUND in field.metadata:  # of titled attributes: "Age (from)"
        end = field.metadata[BOUND].decode()
        word = say("lower" if end == "from" else "upper")
        return f"{title.decode().removesuffix(f' ({end})')} ({word})"
    if not figure:
        known = field.name in REMARKS or OWN in (field.metadata or {})
        return title.decode() if title else say(field.name) if known else field.name
    word = say("level_from", confidence=confidence) if confidence and figure == "lower" else say(figure)
    return f"{subject_words(subject_of(field), say)} {word}".strip()


def subject_words(subject: str, say: Words) -> str:
    """Return what readers call what figures are of, beside the statistic itself."""
    return say(subject) if subject == "share" else subject


def is_key(field: pa.Field) -> bool:
    """Return whether a column of a statistic says what its rows are of, rather than a figure or a remark.

    Examples
    --------
    >>> is_key(pa.field("sex", pa.utf8())), is_key(pa.field("stddev", pa.float64()))
    (True, False)
    """
    own = field.metadata or {}
    return not figure_of(field) and BOUND not in own and field.name not in REMARKS


@final
@dataclass(eq=False)
class _Asked:
    """What is asked of an attribute: the texts in the order of the domain, and the columns of each set.

    These are the places of the texts and, of numbers and days, where the ranges begin and where they end.
    """

    texts: pa.Array
    columns: dict[Hashable, list[pa.Array]]
    #: Which rows of which set were written last, and their columns: the next ones often have the same.
    latest: tuple[Hashable, list[pa.Array]] = (None, [])

    @cached_property
    def types(self) -> list[pa.DataType]:
        """The types of the columns."""
        return [column.type for column in next(iter(self.columns.values()))]


@final
class AnswerColumns:
    """The columns of the answers to some query groups.

    ``schema`` has them, ``columns`` those of the attributes that are asked about, and ``bounds`` the two of
    each attribute of numbers or days that say where values begin and end: where another column has the name
    of an attribute, its own gets the ending ``_attribute``. With ``levels`` the column of an attribute that
    is asked about at one of its levels alone has the name of the level. Bounds are null for totals and for
    what is no range; the end belongs to the range but where the domain has half-open bins ``[a, b)``. Of a
    series, given as its attribute and the numbers of periods that were over at each publication, the last
    column says which publication an answer came with. With ``at``, an attribute and the level of it
    that each group asks, as `levels_of` returns, a second column has these.

    Examples
    --------
    >>> from matrixdp.language import marginals
    >>> from matrixdp.queries import Workload
    >>> workload = Workload(Domain({"sex": ["female", "male"], "code": 3}), marginals([0, 1]))
    >>> columns = AnswerColumns(workload.domain, workload.groups)
    >>> columns.schema.names
    ['group', 'sex', 'code', 'code_from', 'code_to', 'estimate', 'stddev', 'lower', 'upper']
    >>> batch = next(columns.batches(2, np.array([5.0, 7.0, 8.0]), np.ones(3), 2.0))
    >>> batch.drop_columns(["stddev", "lower", "upper"]).to_pylist()[1]
    {'group': 'code', 'sex': None, 'code': '1', 'code_from': 1, 'code_to': 1, 'estimate': 7.0}
    """

    def __init__(
        self,
        domain: Domain,
        groups: Sequence[Group],
        *,
        levels: bool = False,
        series: tuple[str, tuple[int, ...]] | None = None,
        margins: bool = False,
        at: tuple[str, Sequence[str]] | None = None,
    ) -> None:
        self._domain = domain
        self.at = at
        self.figures = MARGINS if margins else FIGURES
        self._series = series
        self._groups = tuple(groups)
        sets: dict[str, dict[Hashable, Predicates]] = {}
        for group in self._groups:
            for name, (predicates, key, _) in _asked(group).items():
                sets.setdefault(name, {}).setdefault(key, predicates)
        self._asked = {name: _read(domain[name], sets[name]) for name in domain.names if name in sets}
        places: dict[str, int] = {}
        self._places = [places.setdefault(group.name, len(places)) for group in self._groups]
        self._names = pa.array(list(places), pa.utf8())
        self._explicit = any(isinstance(group, DenseGroup) for group in self._groups)
        called = {n: heads(domain[n], sets[n].values()) if levels else (n, n) for n in self._asked}
        self.columns: dict[str, str] = {}
        self.bounds: dict[str, tuple[str, str]] = {}
        titles = {name: title for name, (own, title) in called.items() if title != own}
        self.schema = self._schema({name: own for name, (own, _) in called.items()}, titles)

    def _schema(self, heads: dict[str, str], titles: dict[str, str]) -> pa.Schema:
        """Name the columns of the attributes, and return all columns."""
        taken = {"group", "query", *self.figures, *([] if self._series is None else [PUBLISHED])}
        taken |= set() if self.at is None else {LEVEL}
        for name, column in heads.items():
            while column in taken or (column != heads[name] and column in heads.values()):
                column += "_attribute"
            taken.add(column)
            self.columns[name] = column
        fields = [pa.field("group", _NAME, nullable=False)]
        fields += [] if self.at is None else [pa.field(LEVEL, _NAME, nullable=False)]
        for name, asked in self._asked.items():
            told = {TITLE: titles[name]} if name in titles else {}
            fields.append(pa.field(self.columns[name], _VALUE, metadata=told))
            if len(asked.types) == 1:
                continue
            pair = (f"{name}_from", f"{name}_to")
            while not taken.isdisjoint(pair):
                pair = (f"{pair[0]}_value", f"{pair[1]}_value")
            taken.update(pair)
            self.bounds[name] = pair
            for own, kind, end in zip(pair, asked.types[1:], ("from", "to"), strict=True):
                titled = {TITLE: f"{titles[name]} ({end})"} if name in titles else {}
                fields.append(pa.field(own, kind, metadata={BOUND: end, **titled}))
        if self._explicit:
            fields.append(pa.field("query", pa.utf8()))
        fields += [pa.field(name, pa.float64(), nullable=False) for name in self.figures]
        if self._series is not None:
            fields.append(pa.field(PUBLISHED, _VALUE))
        return pa.schema(fields)

    @cached_property
    def _nulls(self) -> dict[pa.DataType, pa.Array]:
        """As many nulls of each type as a batch can have: one array of them for all attributes."""
        rows = min(BATCH_ROWS, max((group.queries for group in self._groups), default=0))
        kinds = {kind for asked in self._asked.values() for kind in asked.types}
        return {kind: pa.nulls(rows, kind) for kind in kinds}

    def texts(self, name: str) -> list[str]:
        """Return the texts of an attribute's column, in order."""
        texts: list[str] = self._asked[name].texts.to_pylist()
        return texts

    def batches(
        self, position: int, estimates: Array, variances: Array, quantile: float | Array, first: int = 0
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows of the group at a place, in order, with the ends of intervals ``quantile`` apart.

        Of as many queries as there are estimates, from the query ``first`` on.
        """
        group = self._groups[position]
        texts = None
        if isinstance(group, DenseGroup):
            texts = group.content.describe(self._domain, group.attributes)
        asked = _asked(group)
        for start in range(first, first + len(estimates), BATCH_ROWS):
            stop = min(start + BATCH_ROWS, first + len(estimates))
            own = slice(start - first, stop - first)
            estimate = estimates[own]
            deviation = np.sqrt(variances[own])
            width = (quantile if isinstance(quantile, float) else quantile[own]) * deviation
            count = stop - start
            arrays = [_coded(pa.array(np.full(count, self._places[position], np.int32)), self._names)]
            if self.at is not None:
                arrays.append(pa.array([self.at[1][position]] * count, _NAME))
            for name, known in self._asked.items():
                codes, *bounds = self._columns(known, asked.get(name), start, stop)
                arrays += [_coded(codes, known.texts, ordered=True), *bounds]
            if self._explicit:
                arrays.append(pa.nulls(count, pa.utf8()) if texts is None else pa.array(texts[start:stop]))
            ends = (width,) if self.figures == MARGINS else (estimate - width, estimate + width)
            figures = (estimate, deviation, *ends)
            arrays.extend(pa.array(figure, pa.float64()) for figure in figures)
            if self._series is not None:
                arrays.append(self._published(group, *self._series, start, stop))
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _published(
        self, group: Group, name: str, published: tuple[int, ...], start: int, stop: int
    ) -> pa.DictionaryArray:
        """Return with which publication of a series the answers in some rows came."""
        attribute = self._domain[name]
        known = np.searchsorted(published, known_after(group, name, attribute.size) + 1)
        repeats = 1
        if isinstance(group, ProductGroup) and name in group.attributes:
            repeats = math.prod(group.counts[group.attributes.index(name) + 1 :])
        codes = known[np.arange(start, stop) // repeats % len(known)]
        labels = pa.array([attribute.label(number - 1) for number in published], pa.utf8())
        return _coded(pa.array(codes, pa.int32()), labels, ordered=True)

    def _columns(
        self, known: _Asked, repeats: tuple[Predicates, Hashable, int] | None, start: int, stop: int
    ) -> list[pa.Array]:
        """Return the columns of an attribute in some rows, given the set and how often each of it repeats."""
        if repeats is None:
            return [self._nulls[kind].slice(0, stop - start) for kind in known.types]
        _, key, stride = repeats
        columns = known.columns[key]
        rows = key, stride, start % (stride * len(columns[0])), stop - start
        if rows != known.latest[0]:
            first = start // stride
            places = np.repeat(np.arange(first, -(-stop // stride)) % len(columns[0]), stride)
            places = places[start - first * stride :][: stop - start]
            known.latest = rows, [column.take(pa.array(places)) for column in columns]
        return known.latest[1]


def without_formulas(table: pa.Table) -> pa.Table:
    """Return a table for spreadsheets: a quote stands before texts that they would take for formulas.

    Examples
    --------
    >>> table = without_formulas(pa.table({"=x": ["=1+1", "-5", "@a", "a-b", None]}))
    >>> table.column_names, table.column(0).to_pylist()
    (["'=x"], ["'=1+1", '-5', "'@a", 'a-b', None])
    """
    columns = []
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_dictionary(column.type):
            column = pa.chunked_array([[quoted(text) for text in column.to_pylist()]], pa.utf8())
        columns.append(column)
    return pa.Table.from_arrays(columns, names=[quoted(name) for name in table.column_names])


def quoted(text: str | None) -> Any:
    """Return a text, with a quote before what spreadsheets would take for a formula."""
    starts = text is not None and _FORMULA.match(text) and not _NUMBERS.fullmatch(text)
    return f"'{text}" if starts else text


def row_groups(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Join small batches, of each level of areas, so that a file of many small groups has few row groups."""
    pending: dict[str | None, list[pa.RecordBatch]] = {}
    for batch in batches:
        level = level_of(batch)
        held = pending.setdefault(level, [])
        if held and sum(one.num_rows for one in held) + batch.num_rows > BATCH_ROWS:
            yield pa.Table.from_batches(pending.pop(level)).cast(schema)
        pending.setdefault(level, []).append(batch)
    for held in pending.values():
        yield pa.Table.from_batches(held).cast(schema)


def level_of(rows: pa.RecordBatch | pa.Table) -> str | None:
    """Return the level of areas that some answers are about, all of them one."""
    level: str | None = rows.column(LEVEL)[0].as_py() if LEVEL in rows.schema.names else None
    return level


def levels_of(domain: Domain, groups: Sequence[Group]) -> tuple[str, list[str]] | None:
    """Return the first attribute that groups ask at one of its levels, and at which level each asks it.

    Its own name stands for its values, ``total`` for all of them together, and ``other`` for other sets.

    Examples
    --------
    >>> from matrixdp.language import marginals, product
    >>> from matrixdp.queries import Workload
    >>> areas = {"categories": ["a", "b", "c"], "levels": {"county": {"x": ["a", "b"], "y": ["c"]}}}
    >>> asked = marginals(0, at={"tract": ["total", "county", "tract"]})
    >>> workload = Workload(Domain({"tract": areas}), asked)
    >>> levels_of(workload.domain, workload.groups)
    ('tract', ['total', 'county', 'tract'])
    >>> levels_of(workload.domain, workload.groups[2:])
    """
    for attribute in domain:
        other = unique([*(level.name for level in attribute.codebook.levels), "other"])[-1]
        found: dict[int, str] = {}  # groups share their sets
        levels: list[str] = []
        for group in groups if attribute.codebook.levels else ():
            own = group.sets.get(attribute.name) if isinstance(group, ProductGroup) else None
            if own is None or isinstance(own, Total):
                levels.append("total" if attribute.name not in group.attributes or own else other)
            elif isinstance(own, Identity):
                levels.append(attribute.name)
            else:
                if id(own) not in found:
                    named = head(attribute, (own,))
                    found[id(own)] = other if named == attribute.name else named
                levels.append(found[id(own)])
        if not {attribute.name, "total", other}.issuperset(levels):
            return attribute.name, levels
    return None


def _read(attribute: Attribute, sets: dict[Hashable, Predicates]) -> _Asked:
    """Return the texts of predicate sets in the order of the attribute's values, and their columns."""
    size = attribute.size
    texts = {key: predicates.describe(attribute) for key, predicates in sets.items()}
    spans = {key: predicates.spans(size) for key, predicates in sets.items()}
    order: dict[str, tuple[int, int]] = {}
    for key, own in spans.items():
        # what is not known, and a total beside values, comes last
        total = (own.first == 0) & (own.last == size - 1) & [text == "all" for text in texts[key]]
        first = np.where((own.first < 0) | total, size, own.first)
        for text, *ends in zip(texts[key], first.tolist(), own.last.tolist(), strict=True):
            order.setdefault(text, (ends[0], ends[1]))
    ranks = {text: rank for rank, text in enumerate(sorted(order, key=order.__getitem__))}
    columns = {}
    for key, own in spans.items():
        codes = pa.array([ranks[text] for text in texts[key]], pa.int32())
        columns[key] = [codes, *([] if attribute.ends is None else _bounds(attribute.ends, own))]
    return _Asked(pa.array(list(ranks), pa.utf8()), columns)


def _bounds(ends: Bounds, spans: Spans) -> Iterator[pa.Array]:
    """Yield where the ranges of a set begin, and where they end, null for what is no range."""
    known = spans.whole & (spans.last < len(ends.low))
    for values, codes in ((ends.low, spans.first), (ends.high, spans.last)):
        small = values.dtype.kind == "i" and max(abs(int(values[0])), abs(int(values[-1]))) < 2**31
        own = values[np.where(known, codes, 0)].astype(np.int32 if small else values.dtype)
        yield pa.array(own, mask=~known)


def _asked(group: Group) -> dict[str, tuple[Predicates, Hashable, int]]:
    """Return for each attribute that is asked about its set, the key, and how often each query repeats."""
    if isinstance(group, DenseGroup):
        return {}
    axes = zip(group.attributes, group.predicates, group.sizes, strict=True)
    return {
        name: (predicates, predicates.text_key(size), math.prod(group.counts[axis + 1 :]))
        for axis, (name, predicates, size) in enumerate(axes)
        if not isinstance(predicates, Total)
    }


def _coded(codes: pa.Array, labels: pa.Array, *, ordered: bool = False) -> pa.DictionaryArray:
    # the codes are made above, so their range is not checked again
    return pa.DictionaryArray.from_arrays(codes, labels, ordered=ordered, safe=False)


# Several tables of answers as one: their rows below one another, under all of their columns.


def joined(tables: Sequence[tuple[str, pa.Table]], column: str) -> pa.Table:
    """Return tables below one another, each with its name in a first column.

    What is asked stands before the figures; a column that a table does not have is null in its rows. Where a
    column is of several types it becomes text, numbers aside.

    Parameters
    ----------
    tables : sequence of (str, pyarrow.Table)
        Names and tables.
    column : str
        What the column of the names is called.

    Examples
    --------
    >>> ages = pa.table({"sex": ["female"], "estimate": [41.5]})
    >>> both = joined([("mean age", ages), ("people", pa.table({"estimate": [7]}))], "statistic")
    >>> both.column_names, both["sex"].to_pylist(), both["estimate"].to_pylist()
    (['statistic', 'sex', 'estimate'], ['female', None], [41.5, 7.0])
    """
    types: dict[str, pa.Field] = {}
    for _, table in tables:
        for field in table.schema:
            types[field.name] = _common(types.get(field.name), field)
    behind = (*FIGURES, "warning", PUBLISHED)
    names = sorted(types, key=lambda name: behind.index(name) if name in behind else -1)
    first = column
    while first in types:
        first += "_name"
    schema = pa.schema([(first, pa.utf8()), *(types[name] for name in names)])
    parts = [schema.empty_table()]
    for own, table in tables:
        cast = table.cast(pa.schema([types[name] for name in table.column_names]))
        parts.append(cast.add_column(0, first, pa.array([own] * len(cast), pa.utf8())))
    return pa.concat_tables(parts, promote_options="default")


def _common(known: pa.Field | None, other: pa.Field) -> pa.Field:
    """Return the field of both columns, with the metadata of the first."""
    text = pa.types.is_dictionary(other.type) or pa.types.is_null(other.type)
    own = pa.field(other.name, pa.utf8() if text else other.type, metadata=other.metadata)
    if known is None or known.type == own.type:
        return known or own
    numbers = all(pa.types.is_integer(one.type) or pa.types.is_floating(one.type) for one in (known, own))
    return known.with_type(pa.float64() if numbers else pa.utf8())


# One estimate with its standard error and its interval.


@final
@dataclass(frozen=True)
class Estimated:
    """An estimate of a number of records.

    Attributes
    ----------
    estimate, stddev : float
        With its standard error, in records.
    lower, upper : float
        The ends of its interval, of the confidence of the release.

    Examples
    --------
    >>> print(Estimated.within(17.2, 46.8, 1.96))
    17 ± 92
    >>> print(Estimated.within(3.0, 1.0, 0.0))
    3 ± 0
    >>> print(Estimated.within(1461.02, 0.25, 1.96))
    1,461 ± 1
    """

    estimate: float
    stddev: float
    lower: float
    upper: float

    @classmethod
    def within(cls, estimate: float, stddev: float, multiplier: float) -> Self:
        """Return an estimate with an interval of `multiplier` standard errors to either side."""
        half = multiplier * stddev
        return cls(estimate, stddev, estimate - half, estimate + half)

    def as_dict(self) -> dict[str, float]:
        """Return it as JSON has it."""
        return asdict(self)

    def text(self, say: Words) -> str:
        """Return it as people write it: counts are whole, and half the interval is rounded up."""
        half = math.ceil((self.upper - self.lower) / 2 - 1e-9)
        return f"{say.number(self.estimate, 0)} \N{PLUS-MINUS SIGN} {say.number(half)}"

    def __str__(self) -> str:
        return self.text(ENGLISH)
