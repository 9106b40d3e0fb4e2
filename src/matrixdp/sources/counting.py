"""Counting a relation in DuckDB: encode once into a table of small codes, then group by packed positions."""

import tempfile
from collections.abc import Iterator, Mapping
from functools import partial

import duckdb
import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.sources.guard import guarded
from matrixdp.sources.requests import Kind, Request, strides
from matrixdp.sources.source import Marginal, Progress
from matrixdp.sources.sql import code_expression, column_kind, identifier, value_expression

__all__ = ["check_relation", "connect", "count", "encode"]

CODES = "codes"
COUNTING = "count the table"


def connect() -> duckdb.DuckDBPyConnection:
    """Return a database in memory, which may spill to the temporary folder and downloads nothing."""
    return duckdb.connect(
        ":memory:",
        config={
            "temp_directory": tempfile.gettempdir(),
            "autoinstall_known_extensions": False,
        },
    )


def check_relation(request: Request, types: Mapping[str, str]) -> dict[str, Kind]:
    """Check that a relation has the columns that are asked for.

    Parameters
    ----------
    request : Request
        The marginals that are asked for.
    types : mapping of str to str
        The DuckDB type of each column.

    Returns
    -------
    dict of str to Kind
        What the column of each attribute holds.

    Raises
    ------
    SourceError
        If a column is missing or has a type that cannot be encoded.
    """
    request.check_columns(types)
    kinds = {name: column_kind(types[name]) for name in request.domain.names}
    request.check_kinds(kinds, types)
    return kinds


def encode(
    relation: duckdb.DuckDBPyRelation,
    request: Request,
    encoders: Domain,
    columns: Mapping[str, str],
    kinds: Mapping[str, Kind],
) -> duckdb.DuckDBPyRelation:
    """Return the codes of the records that are in the domain, as a relation that is not yet computed.

    Parameters
    ----------
    relation : DuckDBPyRelation
        The raw table.
    request : Request
        The marginals that are asked for.
    encoders : Domain
        The attributes that say how each column is read, in the order of the domain: its own ones, or `Coded`
        for columns that hold codes already.
    columns : mapping of str to str
        The relation's column for each attribute.
    kinds : mapping of str to Kind
        What these columns hold.

    Returns
    -------
    DuckDBPyRelation
        One column ``c0``, ``c1``, ... an attribute that is in some subset, in the order of the domain.
    """
    attributes = tuple(enumerate(encoders))
    values = [
        f"{value_expression(a, identifier(columns[a.name]), kinds[a.name])} AS v{i}" for i, a in attributes
    ]
    codes = []
    for i, attribute in attributes:
        code = code_expression(attribute, f"v{i}", kinds[attribute.name])
        other = request.out_of_domain.code(attribute.name)
        codes.append(f"{code if other is None else f'coalesce({code}, {other})'} AS c{i}")
    inside = " AND ".join(f"c{i} IS NOT NULL" for i, _ in attributes)
    used = [
        f"CAST(c{request.domain.index(name)} AS {_code_type(request.domain[name].size)}) AS c{position}"
        for position, name in enumerate(request.used)
    ]
    encoded = relation.project(", ".join(values)).project(", ".join(codes)).filter(inside)
    return encoded.project(", ".join(used) or "CAST(0 AS UTINYINT) AS c0")


def count(
    connection: duckdb.DuckDBPyConnection,
    encoded: duckdb.DuckDBPyRelation,
    request: Request,
    progress: Progress | None,
) -> Iterator[Marginal]:
    """Count the marginals, and close the connection at the end.

    Parameters
    ----------
    connection : DuckDBPyConnection
        A database in memory of our own, to which `encoded` belongs.
    encoded : DuckDBPyRelation
        The codes, as `encode` returns them.
    request : Request
        The marginals that are asked for.
    progress : callable, optional
        Is called with the number of marginals done and of all.

    Yields
    ------
    tuple of (tuple of str, numpy.ndarray)
        Each subset with its counts.
    """
    try:
        guarded(lambda: encoded.create(CODES), COUNTING)
        position = {name: index for index, name in enumerate(request.used)}
        for done, subset in enumerate(request.subsets, start=1):
            steps = strides(request.shape(subset))
            terms = [
                f"CAST(c{position[name]} AS BIGINT) * {step}"
                for name, step in zip(subset, steps, strict=True)
            ]
            # Every name in the statement is made here; none comes from the table or its user.
            query = f"SELECT {' + '.join(terms) or '0'} AS key, count(*) AS n FROM {CODES} GROUP BY key"  # noqa: S608
            groups = guarded(partial(_groups, connection, query), COUNTING)
            yield subset, request.array(subset, *groups)
            if progress is not None:
                progress(done, len(request.subsets))
    finally:
        connection.close()


def _groups(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    columns = connection.execute(query).fetchnumpy()
    return np.asarray(columns["key"], dtype=np.int64), np.asarray(columns["n"], dtype=np.int64)


def _code_type(size: int) -> str:
    for bits, name in ((8, "UTINYINT"), (16, "USMALLINT"), (32, "UINTEGER")):
        if size <= 2**bits:
            return name
    return "BIGINT"
