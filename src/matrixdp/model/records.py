"""Integer records of a mixture of products, tables that are counted on them, their values, and files.

Records are stratified: every component and every value has its share.

The numbers of records of the components, and in each component those of the values of each attribute, are
the mixture's, rounded up or down. Within a component the columns are permuted independently, which is what a
product is. A table that is counted on such records is integer, non-negative and consistent with every other,
and nearer to the mixture than one of records that are drawn independently.
"""

from __future__ import annotations

import json
import math
import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property, singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from matrixdp.answers.table import FIGURES, AnswerColumns, plain_schema
from matrixdp.domain import Attribute, Bins, Categorical, Dates, Domain
from matrixdp.domain.encoding import encode_value
from matrixdp.errors import SpecificationError, StorageError, TooLargeError
from matrixdp.exact.linear import Array
from matrixdp.forms import describe_value
from matrixdp.model.folder import NOT_PRIVATE, Progress, promise, write_all
from matrixdp.model.tables import MAX_CELLS, Mixture, codes_of
from matrixdp.queries import Group
from matrixdp.selection.starting_points import Generator, generator
from matrixdp.storage.archive import OR_FORCE, arrow_writer, entry, partial_folder, sync_files, sync_folder

if TYPE_CHECKING:
    from matrixdp.model.model import Model

Counts = NDArray[np.int64]
Codes = NDArray[Any]

SYNTHETIC = (
    "SYNTHETIC: no record is that of a person. The records are made from a model of noisy tables, so tables "
    "that are counted on them are biased, and how attributes go together that were not measured together is "
    "the model's guess."
)
"""What is said of the records of every model."""
#: Records that are made at once.
CHUNK_ROWS = 1 << 18
#: More are not made; it is the most that NumPy draws from without replacement.
MAX_ROWS = 999_999_999
_FORMAT, _VERSION = "matrixdp records", 1
_ENDINGS = (".parquet", ".csv")


def systematic(shares: Array, totals: Counts, offsets: Array) -> Counts:
    """Return whole numbers with given sums: each share of its total, rounded up or down.

    Parameters
    ----------
    shares : ndarray, shape (rows, n)
        Non-negative; those of a row sum to 1.
    totals : ndarray, shape (rows,)
        What the whole numbers of a row sum to.
    offsets : ndarray, shape (rows,)
        Where rounding begins, from 0 up to but not 1. If they are uniform, the expected numbers are the
        shares' own (systematic sampling).

    Examples
    --------
    >>> systematic(np.array([[0.5, 0.25, 0.25]]), np.array([10]), np.array([0.6]))
    array([[5, 3, 2]])
    """
    edges = np.cumsum(shares, axis=1)
    edges *= (totals / edges[:, -1])[:, None]
    np.floor(edges + offsets[:, None], out=edges)
    np.minimum(edges, totals[:, None], out=edges)
    edges[:, -1] = totals
    ends: Counts = edges.astype(np.int64)
    ends[:, 1:] -= ends[:, :-1].copy()
    return ends


@final
class StratifiedRecords:
    """Records of a mixture: their codes, in chunks, in a random order.

    Parameters
    ----------
    mixture : Mixture
    rows : int
        How many, from 0 to `MAX_ROWS`.
    seed : int
        Of the rounding and of the order: the same seed, the same records.

    Raises
    ------
    SpecificationError
        If the number of records or the seed is none.

    References
    ----------
    W. G. Madow, On the theory of systematic sampling II, Annals of Mathematical Statistics, 1949.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> factors = {"sex": np.eye(2), "smokes": np.array([[0.75, 0.25], [0.5, 0.5]])}
    >>> mixture = Mixture(domain, 100.0, np.array([0.6, 0.4]), factors)
    >>> [chunk] = StratifiedRecords(mixture, 100, seed=0).chunks()
    >>> np.histogram2d(chunk["sex"], chunk["smokes"], bins=2)[0]
    array([[45., 15.],
           [20., 20.]])
    """

    def __init__(self, mixture: Mixture, rows: int, seed: int) -> None:
        if type(rows) is not int or not 0 <= rows <= MAX_ROWS:
            expected = f"a number of records, from 0 to {MAX_ROWS:,}"
            raise SpecificationError.at(("rows",), describe_value(rows), expected, code="out-of-range")
        check_seed(seed)
        self.mixture, self.rows, self.seed = mixture, rows, seed

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.mixture.domain

    @cached_property
    def sizes(self) -> Counts:
        """The number of records of each component, shape (K,)."""
        offset = generator(self.seed).spawn(3)[0].random(1)
        return np.asarray(systematic(self.mixture.weights[None], np.array([self.rows]), offset)[0])

    @cached_property
    def values(self) -> Mapping[str, Counts]:
        """For each attribute that is free the number of records with each value, each of shape (K, size)."""
        random = generator(self.seed).spawn(3)[1]
        return {
            name: systematic(shares, self.sizes, random.random(len(shares)))
            for name, shares in self.mixture.factors.items()
        }

    def chunks(self) -> Iterator[dict[str, Codes]]:
        """Yield the records, `CHUNK_ROWS` at once: for each attribute their codes, in domain order.

        All of them together are in a uniformly random order: what a chunk gets of a component, and of its
        values, is drawn without replacement from what is left.
        """
        random, domain = generator(self.seed).spawn(3)[2], self.domain
        sizes, values = self.sizes.copy(), {name: own.copy() for name, own in self.values.items()}
        left = self.rows
        while left:
            rows = min(CHUNK_ROWS, left)
            taken = sizes.copy() if rows == left else random.multivariate_hypergeometric(sizes, rows)
            order = random.permutation(rows)
            codes = {}
            for name, own in values.items():
                part = own if rows == left else _drawn(own, taken, random)
                codes[name] = _permuted(part, taken, random)[order]
                values[name] = own - part
            sizes -= taken
            left -= rows
            yield {name: codes_of(domain, name, codes) for name in domain.names}


def check_seed(seed: object) -> None:
    """Refuse what is no seed."""
    if type(seed) is not int or not 0 <= seed < 2**63:
        expected = "an integer from 0 to 2^63 - 1"
        raise SpecificationError.at(("seed",), describe_value(seed), expected, code="out-of-range")


def _drawn(values: Counts, taken: Counts, random: Generator) -> Counts:
    """Return how many records of each value a chunk gets, given how many of each component."""
    found = np.zeros_like(values)
    for component in np.flatnonzero(taken):
        found[component] = random.multivariate_hypergeometric(values[component], taken[component])
    return found


def _permuted(values: Counts, taken: Counts, random: Generator) -> Codes:
    """Return codes, one component after the other, in a random order within each."""
    size = values.shape[1]
    codes = np.repeat(np.tile(np.arange(size), len(values)), values.ravel())
    end = 0
    for count in taken[taken > 0].tolist():
        random.shuffle(codes[end : end + count])
        end += count
    return codes.astype(np.int16 if size < 2**15 else np.int32)


# Answers as they are counted on records, only a part of which is in memory.


def counted(groups: Sequence[Group], records: StratifiedRecords) -> list[Array]:
    """Return the answers to each group's queries on records, flat, row-major.

    Raises
    ------
    TooLargeError
        If the tables to count have more than `MAX_CELLS` cells together.
    """
    domain = records.domain
    shapes = {group.attributes: tuple(domain[name].size for name in group.attributes) for group in groups}
    cells = sum(math.prod(shape) for shape in shapes.values())
    if cells > MAX_CELLS:
        remedy = "ask for fewer attributes, or for fewer tables at once"
        raise TooLargeError(f"tables of {cells} cells would be counted; at most {MAX_CELLS} are: {remedy}")
    tables = {names: np.zeros(math.prod(shape), dtype=np.int64) for names, shape in shapes.items()}
    for codes in records.chunks():
        rows = len(next(iter(codes.values())))
        for names, shape in shapes.items():
            places = np.zeros(rows, dtype=np.int64)
            for name, size in zip(names, shape, strict=True):
                places *= size
                places += codes[name]
            tables[names] += np.bincount(places, minlength=math.prod(shape))
    counts = {names: own.reshape(shapes[names]).astype(np.float64) for names, own in tables.items()}
    return [group.answers(counts[group.attributes]).ravel() for group in groups]


def counted_table(domain: Domain, groups: Sequence[Group], records: StratifiedRecords) -> pa.Table:
    """Return the same as a table: the columns of answers, with ``count`` in place of the figures.

    Counts are integers where every query of the table counts records, and are not weighted.
    """
    columns = AnswerColumns(domain, groups)
    answers = counted(groups, records)
    whole = all(bool((own == np.rint(own)).all()) for own in answers)
    batches = [
        batch
        for position, own in enumerate(answers)
        for batch in columns.batches(position, own, np.zeros_like(own), 0.0)
    ]
    table = pa.Table.from_batches(batches, schema=columns.schema)
    counts = table.column(FIGURES[0]).cast(pa.int64() if whole else pa.float64())
    field = pa.field("count", counts.type)
    return table.drop_columns(list(FIGURES)).append_column(field, counts)


# From the codes of records to values: what answers call them, or what a table of the domain has.

_OTHERWISE = "values that a table of the domain has; without it, records in the words of the answers"


@dataclass(frozen=True)
class _Column:
    """A column of records: of which attribute, and its value for each code; texts in the domain's order."""

    name: str
    attribute: str
    values: pa.Array


@final
class RecordColumns:
    """The columns of records of a domain.

    Parameters
    ----------
    domain : Domain
    values : {'labels', 'data'}
        With ``labels`` there is a column for each attribute, under its name: categories, bins, weeks, months
        and quarters as texts, as the answers have them; numbers, years and hours as integers, days as dates;
        missing values as what they are called where the column is text, and else as null. With ``data`` the
        columns are those that the domain is read from, and each value is one that is read as that value of
        the attribute: of a bin its middle (an integer where its edges are; of a bin without an end the other
        end or one beside it), of weeks, months, quarters and years the first day, of days of the week and
        hours one that there is; missing values are null. Attributes that follow from others have no column.
    levels : bool
        With ``labels``, whether there is a column for each level too, under the names of its attribute and
        its own: ``county state``.

    Raises
    ------
    SpecificationError
        If `values` is neither, or levels are asked for with ``data``; or with ``data`` if two attributes are
        read from one column, one is derived from columns of its own, or a value cannot be written.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "pay": {"edges": [0, 10, 50]}})
    >>> codes = {"sex": np.array([1, 0]), "pay": np.array([0, 1])}
    >>> RecordColumns(domain).batch(codes).to_pylist()
    [{'sex': 'male', 'pay': '[0, 10)'}, {'sex': 'female', 'pay': '[10, 50)'}]
    >>> RecordColumns(domain, "data").batch(codes).to_pylist()
    [{'sex': 'male', 'pay': 5}, {'sex': 'female', 'pay': 30}]
    """

    def __init__(self, domain: Domain, values: str = "labels", *, levels: bool = False) -> None:
        if values not in ("labels", "data"):
            found = describe_value(values)
            raise SpecificationError.at(("values",), found, "labels or data", code="unknown-name")
        if levels and values == "data":
            found, expected = "levels with `data`", "levels with `labels` alone"
            raise SpecificationError.at(("levels",), found, expected, code="conflict")
        self.values = values
        self._columns = tuple(_labelled(domain, levels) if values == "labels" else _read(domain))
        self.schema = pa.schema([(own.name, own.values.type) for own in self._columns])

    def batch(self, codes: Mapping[str, Codes]) -> pa.RecordBatch:
        """Return records, given the codes of each attribute."""
        arrays = [own.values.take(pa.array(codes[own.attribute])) for own in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _labelled(domain: Domain, levels: bool) -> Iterator[_Column]:
    """Yield a column for each attribute and, if asked for, for each of its levels."""
    taken = set(domain.names)
    for attribute in domain:
        yield _Column(attribute.name, attribute.name, _shown(attribute))
        for level in attribute.codebook.levels if levels else ():
            labels = level.labels(attribute)
            texts: dict[int, str | None] = dict.fromkeys(range(attribute.size))  # null where it is skipped
            for label, (_, codes) in zip(labels, level.groups, strict=True):
                texts |= dict.fromkeys(codes, label)
            name = f"{attribute.name} {level.name}"
            while name in taken:
                name += "*"
            taken.add(name)
            yield _Column(name, attribute.name, _ordered(list(texts.values()), labels))


def _shown(attribute: Attribute) -> pa.Array:
    """Return the values of an attribute as answers show them; numbers and days as such."""
    codes = range(attribute.size)
    plain = not attribute.codebook.labels and attribute.numeric and not isinstance(attribute, Bins)
    if plain:
        values = [None if code == attribute.null_code else attribute.value(code) for code in codes]
        if isinstance(attribute, Dates) and attribute.by == "day":
            return pa.array([day and date.fromisoformat(str(day)) for day in values], pa.date32())
        if all(isinstance(value, int | None) for value in values):
            return pa.array(values, pa.int64())
    labels = [attribute.label(code) for code in codes]
    return _ordered(labels, labels)


def _ordered(texts: Sequence[str | None], order: Sequence[str | None]) -> pa.DictionaryArray:
    """Return texts as places in their order; None is null."""
    known = pa.array(list(dict.fromkeys(text for text in order if text is not None)), pa.utf8())
    return pa.DictionaryArray.from_arrays(pc.index_in(pa.array(texts, pa.utf8()), known), known, ordered=True)


def _read(domain: Domain) -> Iterator[_Column]:
    """Yield a column for each attribute that is read from one, of values that are read as its own."""
    owners: dict[str, str] = {}
    for attribute in domain:
        derivation, path = attribute.codebook.derivation, ("values", attribute.name)
        if derivation is not None and derivation.columns:
            found = "an attribute that is derived from columns of its own, which a model does not know"
            raise SpecificationError.at(path, found, _OTHERWISE, code="not-supported")
        if derivation is not None:
            continue
        other = owners.setdefault(attribute.column, attribute.name)
        if other != attribute.name:
            found = f"the column {attribute.column!r}, which {other!r} is read from too"
            raise SpecificationError.at(path, found, _OTHERWISE, code="not-supported")
        yield _Column(attribute.column, attribute.name, _written(attribute))


def _written(attribute: Attribute) -> pa.Array:
    """Return for each code a value that is read as it."""
    values: list[Any] = []
    for code in range(attribute.size):
        tried = (None,) if code == attribute.null_code else _candidates(attribute, code)
        fitting = [one for one in tried if encode_value(attribute, one) == code]
        if not fitting:
            found = f"{attribute.label(code)!r}, which no value is written for"
            raise SpecificationError.at(("values", attribute.name), found, _OTHERWISE, code="not-supported")
        values.append(fitting[0])
    kinds = {type(value) for value in values}
    if str in kinds:
        return _ordered(values, values)
    types = {datetime: pa.timestamp("us"), date: pa.date32(), float: pa.float64()}
    return pa.array(values, next((own for kind, own in types.items() if kind in kinds), pa.int64()))


@singledispatch
def _candidates(attribute: Attribute, code: int) -> Sequence[Any]:
    """Return values that may be read as a code that is not that of missing values, the best first."""
    return (attribute.value(code),)


@_candidates.register
def _(attribute: Categorical, code: int) -> Sequence[Any]:
    return (attribute.categories[code],)


@_candidates.register
def _(attribute: Bins, code: int) -> Sequence[Any]:
    low, high = attribute.edges[code : code + 2]
    if math.isinf(low) and math.isinf(high):
        return (0,)
    if math.isinf(high):
        return _whole_or_not(low)
    if math.isinf(low):
        return (*_whole_or_not(high - 1), math.nextafter(high, -math.inf))
    middle = low / 2 + high / 2
    whole = float(low).is_integer() and float(high).is_integer()
    return (*([math.floor(middle)] if whole else []), middle, low)


def _whole_or_not(value: float) -> tuple[float, ...]:
    return (int(value),) if float(value).is_integer() and abs(value) < 2**53 else (value,)


@_candidates.register
def _(attribute: Dates, code: int) -> Sequence[Any]:
    first, last = attribute.first, attribute.last
    if attribute.by == "hour":
        return [datetime.combine(first, time(code))]
    if attribute.by == "weekday":
        return [first + timedelta(days=days) for days in range(min(7, (last - first).days + 1))]
    days = range(first.toordinal(), last.toordinal() + 1)
    place = bisect_left(days, code, key=lambda day: encode_value(attribute, date.fromordinal(day)) or 0)
    return [date.fromordinal(days[place])]


# Records as files, and beside them what they are.


def beside(path: Path) -> Path:
    """Return the file that says what a file of records is.

    Examples
    --------
    >>> beside(Path("people.csv")).name
    'people.csv.json'
    """
    return path.with_name(f"{path.name}.json")


def write_records(
    model: Model,
    path: Path,
    records: StratifiedRecords,
    columns: RecordColumns,
    force: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Write records to a file that appears whole or not at all, and what they are to another beside it.

    Parameters
    ----------
    model : Model
        What the records are of.
    path : Path
        A name that ends in ``.parquet`` or ``.csv``. Beside it, with the ending ``.json`` more, comes what
        the records are: that they are synthetic, how many, from which seed, by which model of which
        measurement, what is promised, and the file's digest.
    records : StratifiedRecords
    columns : RecordColumns
    force : bool
        Whether files of these names may be replaced.
    progress : callable, optional
        Is called with the number of records written and of all.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    SpecificationError
        If the name has another ending.
    StorageError
        If a file is there already, or none can be written.
    """
    if path.suffix.lower() not in _ENDINGS:
        found, expected = describe_value(path.name), "a name that ends in .parquet or .csv"
        raise SpecificationError.at(("out",), found, expected, code="unknown-name")
    for name in (path, beside(path)):
        if os.path.lexists(name) and not (force and name.is_file()):
            raise StorageError(f"{name}: is there already; {OR_FORCE}", "file-exists")
    with partial_folder(path, "partial") as folder:
        partial = folder / path.name
        _write(model, partial, records, columns, progress)
        record = {
            "format": _FORMAT,
            "format_version": _VERSION,
            "synthetic": SYNTHETIC,
            **promise(model),
            "rows": records.rows,
            "seed": records.seed,
            "values": columns.values,
            "columns": columns.schema.names,
            "model": {"method": model.method, "accepted": model.accepted, "made": dict(model.made)},
            "files": {path.name: entry(partial)},
        }
        text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False)
        beside(partial).write_text(text + "\n", "utf-8", "backslashreplace")
        sync_files(folder)
        partial.replace(path)
        beside(partial).replace(beside(path))
        sync_folder(path.parent)
    return path


def _write(
    model: Model, path: Path, records: StratifiedRecords, columns: RecordColumns, progress: Progress | None
) -> None:
    mark = SYNTHETIC if model.private else f"{NOT_PRIVATE}. {SYNTHETIC}"
    schema = columns.schema.with_metadata({b"matrixdp": mark.encode()})
    if path.suffix.lower() == ".csv":
        schema = plain_schema(schema)
    tables = (pa.Table.from_batches([columns.batch(codes)]).cast(schema) for codes in records.chunks())
    sink = arrow_writer(path, schema, compression="zstd", compression_level=1)
    write_all(sink, tables, records.rows, progress)
