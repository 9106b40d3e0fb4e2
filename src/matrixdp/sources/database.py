"""DuckDB as this package runs it: in memory, with what the environment grants it."""

from __future__ import annotations

import os
import re
import weakref
from contextlib import ExitStack
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from matrixdp.errors import SourceError
from matrixdp.exact.memory import granted_memory
from matrixdp.exact.threads import processors
from matrixdp.locks import private_folder

if TYPE_CHECKING:
    import duckdb

__all__ = ["FEW", "THREADS", "connect", "connect_to_kept", "settings"]

THREADS = "MATRIXDP_THREADS"
"""The variable of the environment with the number of threads that DuckDB uses."""

FEW = 2**16
"""So many records one thread counts sooner than a database is made."""


def connect(threads: int | None = None) -> duckdb.DuckDBPyConnection:
    """Return a database in memory; it downloads nothing.

    What it spills goes to a folder of its own that nobody else can open, and that goes with it. Where no
    threads are given, they are those of the environment, else one for each processor. Arrow, which reads what
    the database counts, gets no more than there are processors.

    Raises
    ------
    SourceError
        If the environment holds something else than a size or a number of threads.
    StorageError
        If the temporary folder cannot be written to.

    Examples
    --------
    >>> with connect(threads=1) as connection:
    ...     connection.sql("SELECT current_setting('threads')").fetchall()
    [(1,)]
    """
    import duckdb
    import pyarrow as pa

    config = settings(threads)
    if threads is None:
        pa.set_cpu_count(min(pa.cpu_count(), processors()))
        config.setdefault("threads", processors())
    with ExitStack() as stack:
        folder = stack.enter_context(private_folder())
        connection = duckdb.connect(config=config | {"temp_directory": str(folder)})
        weakref.finalize(connection, stack.pop_all().close)
    return _without_progress(connection)


def connect_to_kept() -> duckdb.DuckDBPyConnection:
    """Return a connection to a database of one thread that this process keeps: nothing is written there.

    Making a database takes longer than counting a few records, whose columns stay where they are.

    Raises
    ------
    SourceError
        As for `connect`.

    Examples
    --------
    >>> with connect_to_kept() as connection:
    ...     connection.sql("SELECT current_setting('threads')").fetchall()
    [(1,)]
    """
    return _without_progress(_kept(*settings(threads=1).items()).cursor())


@lru_cache(maxsize=1)
def _kept(*config: tuple[str, Any]) -> duckdb.DuckDBPyConnection:
    import duckdb

    return duckdb.connect(config=dict(config))


if hasattr(os, "register_at_fork"):
    # A copy of the process has none of the database's threads, and crashes when it ends and waits for them.
    os.register_at_fork(before=_kept.cache_clear)


def _without_progress(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    # How long it takes is a function of the table. In notebooks that cannot show a bar there is none, and
    # DuckDB refuses to have the setting changed.
    if connection.execute("SELECT current_setting('enable_progress_bar')").fetchall() != [(False,)]:
        connection.execute("SET enable_progress_bar = false")
    return connection


def settings(threads: int | None = None) -> dict[str, str | bool | int | float | list[str]]:
    """Return how DuckDB is set up, with what the environment grants; `SourceError` as for `connect`."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "temp_directory": "",
        "autoinstall_known_extensions": False,
    }
    granted, number = granted_memory(), os.environ.get(THREADS, "")
    if number and not re.fullmatch("[1-9][0-9]{0,3}", number):
        raise SourceError.at((THREADS,), repr(number), "a number of threads, such as 4")
    if granted is not None:
        config["memory_limit"] = f"{granted:.0f}B"
    if threads is not None or number:
        config["threads"] = threads or int(number)
    return config
