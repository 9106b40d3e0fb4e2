"""Tables that narwhals takes, DuckDB relations, and mappings of arrays.

A table in memory is handed to DuckDB as Arrow columns, without copies where the engine allows it; the codes
of a DuckDB relation are computed by its own connection; a lazy frame is counted by its own engine, and only
counts leave it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

import duckdb
import narwhals as nw
import numpy as np
import pyarrow as pa

from matrixdp.domain import Attribute, Coded, Domain, OutOfDomain, encode_value
from matrixdp.errors import SourceError
from matrixdp.sources.counting import check_relation, connect, count, encode
from matrixdp.sources.guard import guarded
from matrixdp.sources.lazy import LazySource
from matrixdp.sources.requests import Request
from matrixdp.sources.source import Marginal, Progress, Source

__all__ = ["ArraysSource", "EagerSource", "RelationSource", "frame_source"]

READING = "read the table"
_Columns = tuple[dict[str, Any], dict[str, Attribute]]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""


def frame_source(table: object) -> Source:
    """Return the source for a table that is not a path.

    Parameters
    ----------
    table : object
        Anything that narwhals takes, a DuckDB relation, or a mapping of names to arrays.

    Raises
    ------
    SourceError
        If it is none of these.
    """
    if isinstance(table, Mapping):
        return ArraysSource(table)
    if isinstance(table, np.ndarray) and table.dtype.names:
        return ArraysSource({name: table[name] for name in table.dtype.names})
    if isinstance(table, nw.DataFrame | nw.LazyFrame):
        table = table.to_native()
    if isinstance(table, duckdb.DuckDBPyRelation):
        return RelationSource(table)
    frame: Any = guarded(lambda: nw.from_native(table, pass_through=True), READING)
    if isinstance(frame, nw.DataFrame):
        return EagerSource(frame)
    if isinstance(frame, nw.LazyFrame):
        return LazySource(frame)
    raise SourceError(
        f"a {type(table).__name__} is not a table; give a path, a pandas, Polars or PyArrow table, a lazy "
        "frame of Polars, Dask, PySpark or Ibis, a DuckDB relation, or a mapping of names to arrays"
    )


@final
class EagerSource:
    """A table in memory: pandas, Polars, PyArrow and others of that kind.

    Parameters
    ----------
    frame : narwhals.DataFrame
        The table.
    """

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        self._frame = frame

    def marginals(
        self,
        domain: Domain,
        subsets: Sequence[tuple[str, ...]],
        out_of_domain: OutOfDomain,
        progress: Progress | None = None,
    ) -> Iterator[Marginal]:
        """Count the records in every cell of some marginals; see `Source.marginals`."""
        request = Request(domain, tuple(tuple(subset) for subset in subsets), out_of_domain)
        names = guarded(lambda: list(self._frame.columns), READING)
        request.check_columns(names)
        return _count_columns(lambda: self._columns(domain), request, progress)

    def _columns(self, domain: Domain) -> _Columns:
        columns: dict[str, Any] = {}
        encoders: dict[str, Attribute] = {}
        for attribute in domain:
            series = self._frame[attribute.name]
            if _holds_objects(series):
                columns[attribute.name] = _codes(attribute, series.to_list())
                encoders[attribute.name] = Coded(attribute.name, attribute.size)
            else:
                columns[attribute.name] = _plain(series.to_arrow())
        return columns, encoders


@final
class ArraysSource:
    """A mapping of names to one-dimensional arrays or lists of equal length.

    Parameters
    ----------
    arrays : mapping of str to sequence
        The columns.
    """

    def __init__(self, arrays: Mapping[str, Any]) -> None:
        self._arrays = arrays

    def marginals(
        self,
        domain: Domain,
        subsets: Sequence[tuple[str, ...]],
        out_of_domain: OutOfDomain,
        progress: Progress | None = None,
    ) -> Iterator[Marginal]:
        """Count the records in every cell of some marginals; see `Source.marginals`."""
        request = Request(domain, tuple(tuple(subset) for subset in subsets), out_of_domain)
        request.check_columns(self._arrays)
        lengths = guarded(lambda: {len(self._arrays[name]) for name in domain.names}, READING)
        if len(lengths) > 1:
            raise SourceError("the arrays of the table must have one length")
        return _count_columns(lambda: self._columns(domain), request, progress)

    def _columns(self, domain: Domain) -> _Columns:
        columns: dict[str, Any] = {}
        encoders: dict[str, Attribute] = {}
        for attribute in domain:
            values = self._arrays[attribute.name]
            if isinstance(values, np.ndarray) and values.dtype.kind in "biuf" and values.dtype.itemsize <= 8:
                columns[attribute.name] = _plain(arrow.chunked_array([arrow.array(np.ravel(values))]))
            else:
                listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
                columns[attribute.name] = _codes(attribute, listed)
                encoders[attribute.name] = Coded(attribute.name, attribute.size)
        return columns, encoders


@final
class RelationSource:
    """A DuckDB relation; its own connection encodes it, and nothing is written there.

    Parameters
    ----------
    relation : DuckDBPyRelation
        The table.
    """

    def __init__(self, relation: duckdb.DuckDBPyRelation) -> None:
        self._relation = relation

    def marginals(
        self,
        domain: Domain,
        subsets: Sequence[tuple[str, ...]],
        out_of_domain: OutOfDomain,
        progress: Progress | None = None,
    ) -> Iterator[Marginal]:
        """Count the records in every cell of some marginals; see `Source.marginals`."""
        request = Request(domain, tuple(tuple(subset) for subset in subsets), out_of_domain)
        names = list(self._relation.columns)
        request.check_columns(names)
        types = {name: str(kind) for name, kind in zip(names, self._relation.types, strict=True)}
        kinds = check_relation(request, types)
        own = {name: name for name in domain.names}
        reader = guarded(
            lambda: encode(self._relation, request, domain, own, kinds).to_arrow_reader(), READING
        )
        connection = connect()
        return count(connection, guarded(lambda: connection.from_arrow(reader), READING), request, progress)


def _count_columns(
    read: Callable[[], _Columns], request: Request, progress: Progress | None
) -> Iterator[Marginal]:
    domain = request.domain
    columns, coded = guarded(read, READING)
    encoders = Domain([coded.get(attribute.name, attribute) for attribute in domain])
    # Positions instead of names: DuckDB does not tell upper from lower case.
    names = {name: f"a{position}" for position, name in enumerate(domain.names)}
    held = guarded(
        lambda: arrow.table([columns[name] for name in domain.names], names=list(names.values())), READING
    )
    connection = connect()
    try:
        relation = guarded(lambda: connection.from_arrow(held), READING)
        types = {name: str(kind) for name, kind in zip(domain.names, relation.types, strict=True)}
        kinds = check_relation(request, types)
        encoded = guarded(lambda: encode(relation, request, encoders, names, kinds), READING)
    except BaseException:
        connection.close()
        raise
    return count(connection, encoded, request, progress)


def _holds_objects(series: nw.Series[Any]) -> bool:
    """Return whether the values are Python objects, which may differ in type from one record to the next."""
    if series.dtype == nw.Object:
        return True
    native = series.to_native()
    if not series.implementation.is_pandas_like():
        return False
    dtype = getattr(native, "dtype", None)
    listed = getattr(getattr(dtype, "categories", None), "dtype", None)
    return any(str(name) == "object" for name in (dtype, listed))


def _codes(attribute: Attribute, values: Sequence[object]) -> Any:
    """Return the codes of Python objects, null where one is out of domain."""
    known: dict[tuple[type, object], int | None] = {}
    codes: list[int | None] = []
    for value in values:
        if not isinstance(value, str | int | float):
            codes.append(encode_value(attribute, value))
            continue
        key = type(value), value
        if key not in known:
            known[key] = encode_value(attribute, value)
        codes.append(known[key])
    return arrow.chunked_array([arrow.array(codes, type=arrow.int64())])


def _plain(array: Any) -> Any:
    """Return a column with the types that DuckDB does not read replaced by those that it reads."""
    chunked = array if isinstance(array, arrow.ChunkedArray) else arrow.chunked_array([array])
    if arrow.types.is_dictionary(chunked.type):
        chunked = chunked.cast(chunked.type.value_type)
    return chunked.cast(arrow.float32()) if arrow.types.is_float16(chunked.type) else chunked
