"""Relations of DuckDB in one database of the tests, which takes longer to make than to be asked."""

from functools import cache
from typing import Any

import duckdb


@cache
def _database() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def relation(table: Any) -> duckdb.DuckDBPyRelation:
    """Return an Arrow table as a relation of a connection of its own."""
    return _database().cursor().from_arrow(table)


def read_csv(path: object) -> duckdb.DuckDBPyRelation:
    """Return a CSV file, read as DuckDB infers it, as a relation of a connection of its own."""
    return _database().cursor().read_csv(str(path))
