"""The database that evaluates expressions: it holds nothing, and reads and writes no file."""

from __future__ import annotations

import os
from functools import lru_cache

import duckdb

from matrixdp.domain.scalars import SETTINGS


def cursor() -> duckdb.DuckDBPyConnection:
    """Return a connection to the database."""
    return _database(os.getpid()).cursor()


@lru_cache(maxsize=1)
def _database(process: int) -> duckdb.DuckDBPyConnection:  # noqa: ARG001 - a child has one of its own
    return duckdb.connect(":memory:", config=SETTINGS)


@lru_cache(maxsize=1024)
def constant(sql: str, kind: str) -> object:
    """Return the value of an expression without attributes, as a type of SQL; None for no such value."""
    try:
        with cursor() as connection:
            return connection.sql(f"SELECT TRY_CAST(({sql}) AS {kind})").fetchall()[0][0]
    except duckdb.Error:
        return None
