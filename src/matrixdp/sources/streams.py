"""Lazy frames whose engine hands over rows in batches, Polars and Ibis; DuckDB counts them as they come."""

import re
from collections.abc import Callable, Iterator
from typing import Any, final

import duckdb
import pyarrow as pa

from matrixdp.errors import SourceError
from matrixdp.sources.columns import plain
from matrixdp.sources.counting import Read, count, encode
from matrixdp.sources.guard import guarded
from matrixdp.sources.requests import Request
from matrixdp.sources.source import FAILED, ComputedSource, Marginal

__all__ = ["IbisSource", "PolarsSource", "read_batches"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

_READING = "read the table"
_RELIABLE = (1, 44, 2)
"""The oldest Polars that was seen to end a stream with the error that an engine failed with.

1.34 to 1.36 swallow it, so that one record could cut the table short.
"""


@final
class PolarsSource(ComputedSource):
    """A lazy frame of Polars, run once by its streaming engine: only a few batches of it are in memory."""

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        import polars as pl

        if tuple(map(int, re.findall(r"\d+", pl.__version__)[:3])) < _RELIABLE:
            raise SourceError(
                f"Polars {pl.__version__} does not reliably tell of a lazy frame that fails on a record; "
                f"collect it first, or use Polars {'.'.join(map(str, _RELIABLE))} or newer"
            )
        schema = guarded(self._table.collect_schema, _READING)
        request.check_columns(schema.names())
        chosen = self._table.select(pl.selectors.by_name(*request.columns))
        # Arrow has no such integers; numbers are compared as doubles all the same.
        wide = [name for name in request.columns if str(schema[name]) in ("Int128", "UInt128")]
        chosen = chosen.with_columns(pl.selectors.by_name(*wide).cast(pl.Float64))
        held = guarded(lambda: pl.DataFrame(schema=chosen.collect_schema()).to_arrow().schema, _READING)

        def batches() -> Iterator[Any]:
            for frame in chosen.collect_batches(engine="streaming"):
                yield from frame.to_arrow().to_batches()

        return _count(request, held, batches)


@final
class IbisSource(ComputedSource):
    """A table of Ibis: its engine hands over the columns that are asked for, in batches."""

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        request.check_columns(guarded(lambda: self._table.columns, _READING))
        chosen = guarded(lambda: self._table.select(*request.columns), _READING)
        held = guarded(lambda: chosen.schema().to_pyarrow(), _READING)
        # An engine that does not go with this version of Ibis says so now, and nothing is spent.
        guarded(lambda: list(chosen.limit(0).to_pyarrow_batches()), _READING)
        return _count(request, held, chosen.to_pyarrow_batches)


def read_batches(request: Request, schema: Any, batches: Iterator[Any]) -> Read:
    """Return what reads batches with the columns of a request, in its order and of the types of a schema."""
    # Positions instead of names: DuckDB does not tell upper from lower case.
    fields = [(f"a{i}", plain(arrow.nulls(0, field.type)).type) for i, field in enumerate(schema)]
    own = arrow.schema(fields)
    plainly = (_batch(batch, own) for batch in batches)

    def read(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        records = connection.from_arrow(arrow.RecordBatchReader.from_batches(own, plainly))
        return encode(records, request, request.domain, request.columns)

    return read


def _batch(batch: Any, schema: Any) -> Any:
    return arrow.record_batch([plain(column) for column in batch.columns], schema=schema)


def _count(request: Request, schema: Any, batches: Callable[[], Iterator[Any]]) -> Iterator[Marginal]:
    read = guarded(lambda: read_batches(request, schema, _started(batches)), _READING)
    return count(request, read, hint=FAILED)


def _started(batches: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Run the engine when its first batch is asked for, not before."""
    yield from batches()
