"""Arrow columns, made such that DuckDB reads every one of their records."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["plain", "read_parquet"]

arrow: Any = pa
parquet: Any = pq
"""PyArrow, whose own types are incomplete."""

_BATCH = 2**16


def plain(array: Any) -> Any:
    """Return a column with what DuckDB does not read replaced by what it reads.

    Bytes of texts that are not UTF-8 become U+FFFD, as in CSV files; DuckDB would refuse the whole table.
    """
    if arrow.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if arrow.types.is_float16(array.type):
        return array.cast(arrow.float32())
    if not _is_text(array.type):
        return array
    try:
        array.validate(full=True)
    except arrow.ArrowInvalid:
        view = arrow.types.is_string_view(array.type)
        held = array.cast(arrow.binary_view() if view else arrow.large_binary()).to_pylist()
        texts = [None if text is None else text.decode(errors="replace") for text in held]
        return arrow.array(texts, type=array.type)
    return array


def read_parquet(files: Sequence[str], wanted: Sequence[str]) -> tuple[list[str], list[Any]]:
    """Return the names of all columns of Parquet files, and streams of the wanted ones.

    There is one stream for all files in which these are of the same types. Where no wanted column holds
    texts there is none, as DuckDB reads every value of the other types.
    """
    schemas = [parquet.read_schema(file) for file in files]
    names: Counter[str] = Counter()
    alike: dict[tuple[Any, ...], list[str]] = {}
    for file, schema in zip(files, schemas, strict=True):
        names |= Counter(schema.names)
        types = tuple(schema.field(n).type if schema.names.count(n) == 1 else arrow.null() for n in wanted)
        alike.setdefault(types, []).append(file)
    if not any(_is_text(getattr(held, "value_type", held)) for types in alike for held in types):
        return list(names.elements()), []
    return list(names.elements()), [_stream(own, wanted, types) for types, own in alike.items()]


def _stream(files: Sequence[str], wanted: Sequence[str], types: Sequence[Any]) -> Any:
    # Positions instead of names: DuckDB does not tell upper from lower case.
    fields = [(f"a{i}", plain(arrow.nulls(0, held)).type) for i, held in enumerate(types)]
    schema = arrow.schema(fields)
    # Read as they are; put together from other parts, dictionaries are checked by PyArrow.
    listed = [name for name, held in zip(wanted, types, strict=True) if arrow.types.is_dictionary(held)]
    return arrow.RecordBatchReader.from_batches(schema, _batches(files, wanted, schema, listed))


def _batches(
    files: Sequence[str], wanted: Sequence[str], schema: Any, listed: Sequence[str]
) -> Iterator[Any]:
    for file in files:
        with parquet.ParquetFile(file, read_dictionary=listed) as held:
            present = [name for name in wanted if name in held.schema_arrow.names]
            for batch in held.iter_batches(_BATCH, columns=present):
                columns = [
                    plain(batch.column(name)) if name in present else arrow.nulls(batch.num_rows)
                    for name in wanted
                ]
                yield arrow.record_batch(columns, schema=schema)


def _is_text(held: Any) -> bool:
    types = arrow.types
    return bool(types.is_string(held) or types.is_large_string(held) or types.is_string_view(held))
