"""Tables in memory: frames that narwhals takes, mappings of arrays, and DuckDB relations.

A table is handed to DuckDB as Arrow columns, without copies where the engine allows it; the codes of a DuckDB
relation are computed by its own connection.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, lru_cache, partial
from typing import Any, final

import duckdb
import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Coded, Domain, encode_value, person_id
from matrixdp.domain.rules import Kind, Listed, Rule, Texts, number_text
from matrixdp.errors import SourceError
from matrixdp.forms import is_unicode
from matrixdp.sources import engines
from matrixdp.sources.base import FAILED, ComputedSource, Marginal, OrderedSource, Request, guarded
from matrixdp.sources.columns import arrow, is_text, listed, plain, plain_type, stream
from matrixdp.sources.counting import LISTED, Read, check, count, encode
from matrixdp.sources.sql import DUCKDB

_SHORTER = ("ns", "ps", "fs", "as")
"""The units of NumPy whose moments are no Python objects."""


_NEVER = ("c", "m", "S", "V")
"""The kinds of NumPy of which no attribute reads a value: complex numbers, durations, bytes, structures."""


@final
class FrameSource(OrderedSource):
    """A table in memory: pandas, Polars, PyArrow and others of that kind."""

    counts_slices = True

    def __init__(self, frame: Any) -> None:
        self._frame: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)

    def check_columns(self, request: Request) -> None:
        """Reject a frame that lacks columns, or has some that cannot be read."""
        check(request, read_frame(request, guarded(lambda: self._frame.head(0))))

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        few = guarded(lambda: len(self._frame)) <= engines.FEW
        return count(request, read_frame(request, self._frame), few=few)


@final
class ArraysSource(OrderedSource):
    """A mapping of names to one-dimensional arrays or lists of equal length, or a structured array."""

    counts_slices = True

    def __init__(self, arrays: Mapping[str, Any] | np.ndarray[Any, Any]) -> None:
        if isinstance(arrays, np.ndarray):
            arrays = {name: arrays[name] for name in arrays.dtype.names or ()}
        self._arrays = arrays

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        few = max(self._check_lengths(request), default=0) <= engines.FEW
        return count(request, partial(_encoded, request, lambda name: _array(self._arrays[name])), few=few)

    def check_columns(self, request: Request) -> None:
        """Reject arrays of which one is missing, longer than the others, or cannot be read."""
        self._check_lengths(request)
        check(request, partial(_encoded, request, lambda name: _array(self._arrays[name], empty=True)))

    def _check_lengths(self, request: Request) -> set[int]:
        request.check_columns(self._arrays)
        arrays = [self._arrays[name] for name in request.columns]
        if any(getattr(one, "ndim", 1) != 1 for one in arrays):
            raise SourceError("the arrays of the table must have one dimension", code="wrong-size")
        lengths = guarded(lambda: set(map(len, arrays)))
        if len(lengths) > 1:
            raise SourceError("the arrays of the table must have one length", code="wrong-size")
        return lengths


@final
class RelationSource(ComputedSource):
    """A DuckDB relation; its own connection encodes it, and nothing is written there."""

    counts_slices = True

    def check_columns(self, request: Request) -> None:
        """Reject a relation that lacks columns, or has some that cannot be read."""
        guarded(lambda: encode(self._table, request))

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        reader = guarded(lambda: encode(self._table, request).to_arrow_reader())
        return count(request, lambda connection: connection.from_arrow(reader), hint=FAILED, few=True)


def _array(values: Any, *, empty: bool = False) -> Any:
    """Return an array for `_encoded`; where it is to be empty, none of its values is looked at."""
    kind = getattr(getattr(values, "dtype", None), "kind", "")
    if kind in _NEVER:
        return arrow.nulls(0 if empty else len(values), arrow.binary())
    if not isinstance(values, np.ndarray):
        return [] if empty else list(values)
    held = values[:0] if empty else values
    if kind in "biuf" and values.dtype.itemsize <= 8:
        return arrow.array(held)
    if kind == "M" and np.datetime_data(values.dtype)[0] in _SHORTER:
        held = held.astype("datetime64[us]")
    return held.tolist()


def read_frame(request: Request, frame: Any) -> Read:
    """Return a reader of a frame in memory of any engine; missing columns are rejected here."""
    held: nw.DataFrame[Any] = guarded(lambda: nw.from_native(frame, eager_only=True))
    request.check_columns(guarded(lambda: list(held.columns)))
    return partial(_encoded, request, partial(_column, held))


def _column(frame: nw.DataFrame[Any], name: str) -> Any:
    series = frame[name]
    own = getattr(series.to_native(), "dtype", None)
    if str(own).startswith("Sparse"):
        series = nw.from_native(series.to_native().sparse.to_dense(), series_only=True)
    if series.dtype in (nw.Int128, nw.UInt128):
        # Arrow has no such integers; numbers are compared as doubles all the same.
        series = series.cast(nw.Float64())
    if _holds_objects(series):
        return series.to_list()
    if series.dtype == nw.Unknown and series.implementation.is_pandas_like() and "pyarrow" not in str(own):
        # Complex numbers, periods, intervals: their type alone has them rejected, as bytes are.
        return arrow.nulls(len(series), arrow.binary())
    return series.to_arrow()


def _encoded(
    request: Request, column: Callable[[str], Any], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """Return the codes of the columns that a function returns: Arrow arrays, or lists of Python objects."""
    columns, coded = [], set()
    for attribute in request.domain.readings:
        values = column(attribute.column)
        if isinstance(values, list):
            coded.add(attribute.name)
            values = _codes(attribute, values)
        columns.append(plain(values))
    if request.unit.id is not None:
        ids = column(request.unit.id)
        objects = isinstance(ids, list)
        columns.append(arrow.array(map(person_numbers(), ids), arrow.int64()) if objects else plain(ids))
        columns.append(arrow.array(np.arange(len(ids))))
    if request.listed is not None:
        # before the place, which is the last
        values, texts_alone = column(request.listed.column), isinstance(request.listed.rule(Kind.TEXT), Texts)
        if isinstance(values, list):
            found = (
                _written(value) if isinstance(value, str) or not texts_alone else None for value in values
            )
            values = arrow.array(found, arrow.large_string())
        texts = plain(values)
        columns.insert(len(request.domain.readings), texts)
    held = arrow.table(columns, names=[f"a{position}" for position in range(len(columns))])
    return encode_codes(request, held, coded, connection)


def encode_codes(
    request: Request, held: Any, coded: Collection[str], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """Return the codes of Arrow columns, one for each of the domain's readings, the id and the place.

    Those of the attributes that are `coded` hold codes already. Columns have positions for names, as DuckDB
    does not tell upper from lower case.
    """
    readings = request.domain.readings
    encoders = [
        Coded(own.name, own.raw_size) if own.name in coded else own.read_from(None) for own in readings
    ]
    names = (*readings.names, *([LISTED] * (request.listed is not None)), *filter(None, [request.unit.id]))
    return encode(connection.from_arrow(held), request, Domain(encoders), names)


def person_numbers() -> Callable[[object], int | None]:
    """Return a function that numbers persons by raw id as they appear; None where an id names nobody."""
    known: dict[str | float, int] = {}

    def number(value: object) -> int | None:
        person = person_id(value)
        return None if person is None else known.setdefault(person, len(known))

    return number


def _written(value: object) -> str | None:
    """Return the text that a Python object is listed by; None where it is no value."""
    found = person_id(value)
    if isinstance(value, str) and found is not None:
        text = str.__str__(value)
        return text if is_unicode(text) else None
    return number_text(found) if isinstance(found, float) else found


def _holds_objects(series: nw.Series[Any]) -> bool:
    """Return whether the values are Python objects, which may differ in type from one record to the next."""
    if series.dtype == nw.Object:
        return True
    if not series.implementation.is_pandas_like():
        return False
    dtype = getattr(series.to_native(), "dtype", None)
    categories = getattr(getattr(dtype, "categories", None), "dtype", None)
    # Texts that pandas holds as Python objects may have no form in UTF-8.
    return any(str(d) == "object" or getattr(d, "storage", None) == "python" for d in (dtype, categories))


def _codes(attribute: Attribute, values: Sequence[object]) -> Any:
    """Return the codes of Python objects, null where one is out of domain."""

    def code(value: object) -> int | None:
        try:
            return encode_value(attribute, value)
        except Exception:  # noqa: BLE001  whatever a value does, it is its own record's affair
            return None

    known = lru_cache(None, typed=True)(code)
    # An object of another type, even one derived from these, may do anything when it is compared.
    found = ((known if type(value) in (str, int, float, bool) else code)(value) for value in values)
    return arrow.array(found, type=arrow.int64())


# Texts become codes by their dictionaries: what stands in many records is encoded once a batch.
#
# How a text becomes a code is the same expression that DuckDB evaluates for every other column.

#: The most texts of a batch that are looked up among those of earlier ones, rather than computed again.
_FEW = 2**12
#: The most texts of one column whose codes are remembered.
_MOST_KNOWN = 2**16


def encode_batches(
    request: Request, schema: Any, batches: Iterable[Any], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """Return the codes of record batches with the columns of a request, and the place of each if it is asked.

    Texts may be dictionaries. Batches are read when the relation is counted, and once.
    """
    position = {name: place for place, name in enumerate(request.columns)}
    readings = request.domain.readings
    read = [(position[own.column], own.rule(Kind.TEXT)) for own in readings]
    read = [(place, rule if is_text(schema.types[place]) else None) for place, rule in read]
    coded = [own.name for own, (_, rule) in zip(readings, read, strict=True) if rule is not None]
    if request.listed is not None:
        read.append((position[request.listed.column], None))
    if request.unit.id is not None:
        # Behind all others stand the id and the place.
        read += [(len(request.columns) - 1, None), (len(request.columns), None)]
    fields = [arrow.int64() if rule else plain_type(schema.types[place]) for place, rule in read]

    def codes() -> Iterator[list[Any]]:
        with closing(engines.connect_to_kept()) as kept:
            changed = [(place, _coder(rule, kept) if rule else plain) for place, rule in read]
            for batch in batches:
                yield [change(batch.column(place)) for place, change in changed]

    return encode_codes(request, stream(fields, [(0, codes())], placed=False), coded, connection)


def _coder(rule: Rule, connection: duckdb.DuckDBPyConnection) -> Callable[[Any], NDArray[np.int64]]:
    """Return a function for the codes of a column of texts, which may be a dictionary; -1 out of domain."""
    values, code = DUCKDB.named(rule, '"text"', "VARCHAR", 0)
    # DuckDB reads a long list of values anew each time; mostly texts stand as they are listed
    as_listed: dict[str, int] = {}
    if isinstance(rule, Listed | Texts) and not rule.trim and not any(rule.folded) and rule.missing is None:
        as_listed = {text: code for code, text in enumerate(rule.texts) if text}
    few = max(_FEW, len(as_listed))
    known = dict(as_listed)

    def computed(texts: Any) -> NDArray[np.int64]:
        held = connection.from_arrow(arrow.table({"text": texts})).project(", ".join(values))
        codes = held.project(f"coalesce(CAST({code} AS BIGINT), -1) AS code").fetchnumpy()
        return np.asarray(codes["code"])

    def remembered(texts: list[str]) -> NDArray[np.int64]:
        if len(known) > _MOST_KNOWN + 2 * few:
            known.clear()
            known.update(as_listed)
        new = [text for text in texts if text not in known]
        if new:
            found = computed(arrow.array(new, arrow.large_string()))
            known.update(zip(new, found.tolist(), strict=True))
        return np.fromiter(map(known.__getitem__, texts), np.int64, len(texts))

    missing = cache(lambda: computed(arrow.nulls(1, arrow.large_string())))

    def codes(column: Any) -> NDArray[np.int64]:
        column = listed(column)
        texts = column.dictionary
        found = computed(texts) if len(texts) > few else remembered(texts.to_pylist())
        if not column.null_count:
            return np.asarray(found[column.indices.to_numpy()])
        # What is missing stands behind all texts.
        places: NDArray[np.int32] = column.indices.fill_null(len(texts)).to_numpy()
        return np.append(found, missing())[places]

    return codes


# Lazy frames whose engine hands over rows in batches, Polars and Ibis; DuckDB counts them as they come.

_RELIABLE = (1, 44, 2)
"""The oldest Polars that was seen to end a stream with the error that an engine failed with.

1.34 to 1.36 swallow it, so that one record could cut the table short.
"""


@final
class PolarsSource(ComputedSource):
    """A lazy frame of Polars, run once by its streaming engine: only a few batches of it are in memory."""

    counts_slices = True

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        import polars as pl

        if tuple(map(int, re.findall(r"\d+", pl.__version__)[:3])) < _RELIABLE:
            told = f"Polars {pl.__version__} does not reliably tell of a lazy frame that fails on a record"
            cure = f"collect it first, or use Polars {'.'.join(map(str, _RELIABLE))} or newer"
            raise SourceError(f"{told}; {cure}", code="not-supported")
        schema = guarded(self._table.collect_schema)
        request.check_columns(schema.names())
        chosen = self._table.select(pl.selectors.by_name(*request.columns))
        # Arrow has no such integers; numbers are compared as doubles all the same.
        wide = [name for name in request.columns if str(schema[name]) in ("Int128", "UInt128")]
        chosen = chosen.with_columns(pl.selectors.by_name(*wide).cast(pl.Float64))
        held = guarded(lambda: pl.DataFrame(schema=chosen.collect_schema()).to_arrow().schema)

        def batches() -> Iterator[Any]:
            for frame in chosen.collect_batches(engine="streaming"):
                yield from frame.to_arrow().to_batches()

        return _count_batches(request, held, batches)


@final
class IbisSource(ComputedSource):
    """A table of Ibis: its engine hands over the columns that are asked for, in batches."""

    counts_slices = True

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        request.check_columns(guarded(lambda: self._table.columns))
        chosen = guarded(lambda: self._table.select(*request.columns))
        held = guarded(lambda: chosen.schema().to_pyarrow())
        # An engine that does not go with this version of Ibis says so now, and nothing is spent.
        guarded(lambda: list(chosen.limit(0).to_pyarrow_batches()))
        return _count_batches(request, held, chosen.to_pyarrow_batches)


def _count_batches(request: Request, schema: Any, batches: Callable[[], Iterator[Any]]) -> Iterator[Marginal]:
    # The engine runs when its first batch is asked for, not before.
    held = (batch for run in (batches,) for batch in run())
    return count(request, partial(encode_batches, request, schema, held), hint=FAILED)
