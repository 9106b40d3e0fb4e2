"""Counting a relation in DuckDB: encode once into a table of small codes, then group by packed positions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial

import duckdb
import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.sources.database import connect
from matrixdp.sources.guard import guarded
from matrixdp.sources.lookups import attribute_codes
from matrixdp.sources.persons import bounded, id_columns, id_expressions
from matrixdp.sources.requests import OUT_OF_DOMAIN, Request, strides
from matrixdp.sources.source import Marginal
from matrixdp.sources.sql import (
    code_expression,
    column_kind,
    identifier,
    missing_expression,
    value_expression,
)

__all__ = ["Groups", "Read", "check", "count", "encode", "groups"]

Read = Callable[[duckdb.DuckDBPyConnection], duckdb.DuckDBPyRelation]
"""Returns the codes of a table, as `encode` makes them, in a database that it is given."""

Groups = tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64]]
"""The attributes of a marginal, the row-major positions of its cells that hold records, and their counts."""

_CODES = "codes"
_COUNTING = "count the table"
_CODE_TYPES = ((8, "UTINYINT"), (16, "USMALLINT"), (32, "UINTEGER"), (64, "BIGINT"))


def encode(
    relation: duckdb.DuckDBPyRelation,
    request: Request,
    encoders: Domain,
    columns: Sequence[str] | None = None,
) -> duckdb.DuckDBPyRelation:
    """Return the codes of the records in the domain as a relation that is not yet computed.

    It has one column ``c0``, ``c1``, ... an attribute that is in some subset, in the order of the domain.
    The encoders are the attributes that say how each column is read: the domain's own ones, or `Coded` for
    columns that hold codes already. The columns are the table's names of those of the relation, where these
    differ. Where the request bounds what a person contributes, the last column is the place of each record,
    whatever it is called, and the records are those that `bounded` takes. Where it counts records that are
    out of domain, these are there too, and columns say which are `inside` and which in each of the counts.
    """
    person = request.unit.id
    held = relation.columns if person is None else relation.columns[:-1]
    names = list(held if columns is None else columns)
    if columns is None:
        request.check_columns(names)
    kinds = {name: column_kind(str(type_)) for name, type_ in zip(names, relation.types, strict=False)}
    own = {name: identifier(column) for name, column in zip(names, held, strict=True)}
    values, codes, read = [], [], {}
    encoders = encoders.readings
    for i, (name, rule) in enumerate(request.rules(kinds, encoders).items()):
        column = encoders[name].column
        values.append(f"{value_expression(rule, own[column], kinds[column])} AS v{i}")
        code = code_expression(rule, f"v{i}", kinds[column])
        if rule.null is not None:
            values.append(f"{missing_expression(rule, own[column], kinds[column])} AS m{i}")
            code = f"CASE WHEN m{i} THEN {rule.null} ELSE {code} END"
        other = request.out_of_domain.code(name)
        codes.append(f"{code if other is None else f'coalesce({code}, {other})'} AS c{i}")
        read[name] = f"c{i}"
    own_codes = attribute_codes(request.domain, request.out_of_domain, read)
    inside = " AND ".join(f"{code} IS NOT NULL" for code in own_codes.values())
    used = [
        f"CAST({own_codes[name]} AS {_code_type(request.domain[name].size)}) AS c{position}"
        for position, name in enumerate(request.used)
    ]
    used = used or ["CAST(0 AS UTINYINT) AS c0"]
    counted = request.out_of_domain.counts
    if counted or person is not None:
        used += [f"{inside} AS inside", *_outside(request, own_codes, inside)]
    if person is not None:
        values += [
            *id_expressions(person, own[person], kinds[person]),
            f"{identifier(relation.columns[-1])} AS place",
        ]
        codes += [*id_columns(), "place"]
        used += ["id_text", "id_number", "place"]
    encoded = relation.project(", ".join(values)).project(", ".join(codes))
    if not counted and person is None:
        encoded = encoded.filter(inside)
    return encoded.project(", ".join(used))


def _outside(request: Request, codes: Mapping[str, str], inside: str) -> list[str]:
    """Return one column for each count of records out of domain: whether a record is in it."""
    return [
        f"{f'NOT ({inside})' if name is None else f'{codes[name]} IS NULL'} AS out{place}"
        for place, name in enumerate(request.out_of_domain.counts)
    ]


def count(
    request: Request, read: Read, reading: str = "read the table", hint: str = ""
) -> Iterator[Marginal]:
    """Count the marginals of a request in a database of our own, where `read` makes what `encode` returns.

    The hint is what is told besides where counting fails.
    """
    found = groups(request, read, reading, hint)
    return ((subset, request.array(subset, keys, counts)) for subset, keys, counts in found)


def check(request: Request, read: Read) -> None:
    """Refuse what the columns of a table make impossible; `read` is given what has them and no records."""
    with _checking().cursor() as connection:
        guarded(lambda: bounded(read(connection), request), "read the table")


def groups(
    request: Request, read: Read, reading: str = "read the table", hint: str = "", threads: int | None = None
) -> Iterator[Groups]:
    """Count the cells that hold records of each marginal; what is impossible is raised by the call."""
    connection = connect(threads)
    try:
        encoded = guarded(lambda: bounded(read(connection), request), reading)
    except BaseException:
        connection.close()
        raise
    return _marginals(connection, encoded, request, hint)


@cache
def _checking() -> duckdb.DuckDBPyConnection:
    """Return a database that never holds a record: making one takes longer than what it is asked."""
    return connect(threads=1)


def _marginals(
    connection: duckdb.DuckDBPyConnection, encoded: duckdb.DuckDBPyRelation, request: Request, hint: str
) -> Iterator[Groups]:
    try:
        guarded(lambda: encoded.create(_CODES), _COUNTING, hint)
        counted = request.out_of_domain.counts
        inside = " WHERE inside" if counted else ""
        position = {name: index for index, name in enumerate(request.used)}
        for subset in request.subsets:
            steps = zip(subset, strides(request.shape(subset)), strict=True)
            key = " + ".join(f"CAST(c{position[name]} AS BIGINT) * {step}" for name, step in steps)
            # Every name in the statement is made here; none comes from the table or its user.
            query = f"SELECT {key or '0'} AS key, count(*) AS n FROM {_CODES}{inside} GROUP BY key"  # noqa: S608
            yield subset, *guarded(partial(_groups, connection, query), _COUNTING)
        if counted:
            columns = ", ".join(f"count(*) FILTER (out{place})" for place in range(len(counted)))
            query = f"SELECT {columns} FROM {_CODES}"  # noqa: S608
            numbers = guarded(lambda: connection.execute(query).fetchone(), _COUNTING)
            yield OUT_OF_DOMAIN, np.arange(len(counted)), np.array(numbers, dtype=np.int64)
    finally:
        connection.close()


def _groups(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    columns = connection.execute(query).fetchnumpy()
    return np.asarray(columns["key"], dtype=np.int64), np.asarray(columns["n"], dtype=np.int64)


def _code_type(size: int) -> str:
    return next(name for bits, name in _CODE_TYPES if size <= 2**bits)
