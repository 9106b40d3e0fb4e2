"""Arrow columns, made such that DuckDB reads every one of their records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from matrixdp.domain.rules import Kind
from matrixdp.mapped import may_hold

arrow: Any = pa
parquet: Any = pq
"""PyArrow, whose own types are incomplete."""

_BATCH = 2**18
_FAR = 10**18
"""Microseconds, about 30,000 years."""
PLACE = arrow.field("place", arrow.int64())
"""The column with the place of each record in the table, where it is asked for."""

LISTED = arrow.dictionary(arrow.int32(), arrow.large_string())
"""The type of columns of texts that `listed` returns."""


def plain(array: Any) -> Any:
    """Return a column with what DuckDB does not read replaced by what it reads.

    Bytes of texts that are not UTF-8 become U+FFFD, as in CSV files; DuckDB would reject the whole table.
    """
    if arrow.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if arrow.types.is_float16(array.type):
        return array.cast(arrow.float32())
    if arrow.types.is_timestamp(array.type):
        return _microseconds(array)
    if not is_text(array.type):
        return array
    try:
        array.validate(full=True)
    except arrow.ArrowInvalid:
        view = arrow.types.is_string_view(array.type)
        held = array.cast(arrow.binary_view() if view else arrow.large_binary()).to_pylist()
        texts = [None if text is None else text.decode(errors="replace") for text in held]
        return arrow.array(texts, type=array.type)
    return array


def plain_type(held: Any) -> Any:
    """Return the type that `plain` gives columns of a type."""
    return plain(arrow.nulls(0, held)).type


def _microseconds(array: Any) -> Any:
    """Return timestamps in microseconds; DuckDB would reject the table for one that it has none for.

    What is smaller is left out, and what is beyond all years that have a text stays beyond them.
    """
    if isinstance(array, arrow.ChunkedArray):
        array = array.combine_chunks()
    unit, kind = array.type.unit, arrow.timestamp("us", array.type.tz)
    if unit == "us":
        return array
    held = array.cast(arrow.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    if unit == "ns":
        values = held // 1000
    else:
        factor = {"s": 10**6, "ms": 10**3}[unit]
        values = np.clip(held, -_FAR // factor, _FAR // factor) * factor
    return arrow.array(values, mask=array.is_null().to_numpy(zero_copy_only=False)).cast(kind)


def listed(column: Any) -> Any:
    """Return a column of texts as the list of those that it holds, and the place of each in that list."""
    if not arrow.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    texts = plain(column.dictionary).cast(arrow.large_string())
    return arrow.DictionaryArray.from_arrays(column.indices.cast(arrow.int32()), texts)


def stream(types: Sequence[Any], parts: Iterable[tuple[int, Iterable[list[Any]]]], placed: bool) -> Any:
    """Return columns of some types, many records at a time, as a stream of batches.

    The parts of a table are given with the place of the first record of each. Where records are to be
    `placed` the batches have one more column, with the place of each.
    """
    schema = arrow.schema([(f"a{i}", held) for i, held in enumerate(types)])
    schema = schema.append(PLACE) if placed else schema

    def batches() -> Iterator[Any]:
        for first, part in parts:
            for columns in part:
                if placed:
                    end = first + len(columns[0])
                    columns, first = [*columns, arrow.array(np.arange(first, end))], end
                yield arrow.record_batch(columns, schema=schema)

    return arrow.RecordBatchReader.from_batches(schema, batches())


def read_parquet(
    files: Sequence[str],
    wanted: Sequence[str],
    placed: bool = False,
    near: tuple[str, str, str] | None = None,
) -> tuple[list[list[str]], dict[str, Any]]:
    """Return the columns of each of some Parquet files, and streams of the wanted ones, their texts `LISTED`.

    There is one stream for all files in which these are of the same types, by the first of them. There is
    none where DuckDB reads every value itself: all files have the same types, none that of texts or of
    timestamps in other units than microseconds, and no two names differ in case alone. Where records are to
    be `placed` the streams have one more column, with the place of each record among those of all files.
    Streams of texts leave out row groups whose values of a column are all below what is `near`, or above.
    """
    told: list[list[str]] = []
    alike: dict[tuple[Any, ...], list[tuple[int, str]]] = {}
    written = [parquet.read_metadata(file) for file in files]
    starts = accumulate((one.num_rows for one in written), initial=0)
    for file, one, first in zip(files, written, starts, strict=False):
        held = one.schema.to_arrow_schema()
        told.append(held.names)
        types = tuple(_type(one.schema, held, name) for name in wanted)
        alike.setdefault(types, []).append((first, file))
    plainly = not any(_is_changed(getattr(own, "value_type", own)) for types in alike for own in types)
    names = {name for header in told for name in header}
    if plainly and len(alike) == 1 and not placed and len({*map(str.casefold, names)}) == len(names):
        return told, {}
    streams = {}
    for types, own in alike.items():
        parts = [(first, _columns(file, wanted, types, near)) for first, file in own]
        kept = [LISTED if is_text(held) else plain_type(held) for held in types]
        streams[own[0][1]] = stream(kept, parts, placed)
    return told, streams


def parquet_kinds(files: Sequence[str], wanted: Sequence[str]) -> dict[str, Kind] | None:
    """Return the kinds of wanted columns of Parquet files, from the types in their footers.

    None unless each stands in every file once, and is of the same common kind in all of them: what others
    hold, DuckDB says.
    """
    found: dict[str, Kind] = {}
    for file in files:
        held = parquet.read_schema(file)
        for name in wanted:
            type_ = held.field(name).type if held.names.count(name) == 1 else None
            kind = next((kind for is_kind, kind in _KINDS if type_ and is_kind(type_)), None)
            if kind is None or found.setdefault(name, kind) is not kind:
                return None
    return found


def _type(written: Any, held: Any, name: str) -> Any:
    """Return the type of a column; an enumeration of Parquet's own holds texts, as DuckDB reads it."""
    if held.names.count(name) != 1:
        return arrow.null()
    own = held.field(name).type
    leaves = (written.column(i) for i in range(len(written.names))) if own == arrow.binary() else ()
    listed = any(leaf.path == name and leaf.logical_type.type == "ENUM" for leaf in leaves)
    return arrow.string() if listed else own


def _columns(
    file: str, wanted: Sequence[str], types: Sequence[Any], near: tuple[str, str, str] | None
) -> Iterator[list[Any]]:
    texts = [name for name, held in zip(wanted, types, strict=True) if is_text(held)]
    with parquet.ParquetFile(file, read_dictionary=texts) as held:
        ends = {} if near is None else {near[0]: (near[1], near[2])}
        every = range(held.num_row_groups)
        groups = [group for group in every if may_hold(held.metadata.row_group(group), ends)]
        for batch in held.iter_batches(_BATCH, row_groups=groups, columns=wanted):
            yield [_as(batch.column(name), own) for name, own in zip(wanted, types, strict=True)]


def _as(column: Any, held: Any) -> Any:
    """Return a column of a type; the bytes of an enumeration are the texts that they are."""
    if not is_text(held):
        return plain(column)
    if arrow.types.is_dictionary(column.type) and column.type.value_type == arrow.binary():
        column = arrow.DictionaryArray.from_arrays(column.indices, column.dictionary.view(arrow.string()))
    elif column.type == arrow.binary():
        column = column.view(arrow.string())
    return listed(column)


def is_text(held: Any) -> bool:
    """Return whether a column of an Arrow type holds texts; a dictionary does where its values are texts."""
    types = arrow.types
    if types.is_dictionary(held):
        return is_text(held.value_type)
    return bool(types.is_string(held) or types.is_large_string(held) or types.is_string_view(held))


def _is_changed(held: Any) -> bool:
    return is_text(held) or (arrow.types.is_timestamp(held) and held.unit != "us")


_KINDS = (
    (is_text, Kind.TEXT),
    (arrow.types.is_integer, Kind.INTEGER),
    (arrow.types.is_float32, Kind.FLOAT),
    (arrow.types.is_float64, Kind.FLOAT),
    (arrow.types.is_boolean, Kind.BOOLEAN),
    (arrow.types.is_date32, Kind.DATE),
)
