"""What a statement's groups count in a table, and what DuckDB counts when it executes the statement."""

from collections import Counter
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa

from matrixdp.domain import Domain, encode_value
from matrixdp.queries import Group
from matrixdp.statements import SqlQuery, read
from matrixdp.statements.translation import translate

Row = tuple[object, ...]


def counts(domain: Domain, table: pa.Table, group: Group) -> np.ndarray:
    """Return the true answers to a group: its rows on the counts of its cells."""
    cells = dict.fromkeys(product(*(range(domain[name].size) for name in group.attributes)), 0)
    for record in table.select(list(domain.names)).to_pylist():
        codes = tuple(encode_value(domain[name], record[name]) for name in domain.names)
        if None not in codes:
            cells[tuple(codes[domain.index(name)] for name in group.attributes)] += 1
    return group.rows() @ np.array(list(cells.values()), dtype=float)


def ours(domain: Domain, table: pa.Table, query: SqlQuery) -> list[Row]:
    """Return the result of a statement, in the order of its columns."""
    answers = [counts(domain, table, group) for group in query.groups]
    keys = iter(query.keys.columns)
    columns: list[list[object]] = []
    for column in query.columns:
        if column.aggregate is None:
            columns.append(next(keys).to_pylist())
        else:
            places = query.places[column.aggregate]
            columns.append(
                [
                    0 if place < 0 else int(answers[group][place])
                    for group, place in zip(places.groups, places.queries, strict=True)
                ]
            )
    return list(zip(*columns, strict=True))


def executed(connection: duckdb.DuckDBPyConnection, text: str) -> Counter[Row]:
    """Return what DuckDB answers, sums of nothing as 0."""
    found = connection.sql(text)
    sums = {place for place, name in enumerate(found.columns) if name.startswith("total")}
    rows = found.fetchall()
    return Counter(tuple(0 if v is None and i in sums else v for i, v in enumerate(row)) for row in rows)


def agreed(domain: Domain, table: pa.Table, connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Check that both count the same; the last column counts all records, and DuckDB has no empty groups."""
    mine = ours(domain, table, translate(read(text), domain))
    theirs = executed(connection, text)
    assert Counter(row for row in mine if row[-1] or row in theirs) == theirs
