"""The file of a ledger: SQLite, set so that what was committed survives the loss of power.

Every statement goes through a `Driver`, so that tests run the same ones on a disk that fails. A connection
lives for one operation alone.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, final
from urllib.parse import quote

from matrixdp.errors import MatrixDPError, StorageError
from matrixdp.ledger.running import Running

__all__ = ["SQLITE", "Connection", "Driver", "Session", "make_tables", "reading", "session"]

#: The bytes "mxDP": what says of an SQLite file that it is a ledger.
APPLICATION = 0x6D784450
VERSION = 1
#: How long a writer waits for another, in milliseconds.
PATIENCE = 10_000

_KEPT = ("number", "id", "time", "noise", "cost", "budget", "version", "release", "digest")
_MOVED = " OR ".join(f"NEW.{column} IS NOT OLD.{column}" for column in _KEPT)
TABLES = (
    "CREATE TABLE ledger (only INTEGER PRIMARY KEY CHECK (only = 1), terms TEXT NOT NULL, "
    "created TEXT NOT NULL, version TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY CHECK (number > 0), id TEXT NOT NULL UNIQUE, "
    "time TEXT NOT NULL, "
    "state TEXT NOT NULL CHECK (state IN ('reserved', 'measured', 'released', 'spent by crash')), "
    "noise TEXT NOT NULL, cost TEXT NOT NULL, budget TEXT NOT NULL, version TEXT NOT NULL, release TEXT, "
    "measurement TEXT CHECK (measurement IS NULL OR length(measurement) = 64), digest TEXT NOT NULL, "
    "CHECK (measurement IS NOT NULL OR state IN ('reserved', 'spent by crash')))",
    "CREATE TRIGGER ledger_stays BEFORE DELETE ON ledger "
    "BEGIN SELECT RAISE(ABORT, 'the terms of a ledger stay'); END",
    "CREATE TRIGGER ledger_is_fixed BEFORE UPDATE ON ledger "
    "BEGIN SELECT RAISE(ABORT, 'the terms of a ledger stay'); END",
    "CREATE TRIGGER entries_stay BEFORE DELETE ON entries "
    "BEGIN SELECT RAISE(ABORT, 'entries are never deleted'); END",
    "CREATE TRIGGER entries_begin BEFORE INSERT ON entries WHEN NEW.state IS NOT 'reserved' "
    "OR NEW.measurement IS NOT NULL "
    "OR NEW.number IS NOT (SELECT count(*) + 1 FROM entries) "
    "OR EXISTS (SELECT 1 FROM entries WHERE id = NEW.id) "
    "BEGIN SELECT RAISE(ABORT, 'entries begin reserved, each after the last'); END",
    f"CREATE TRIGGER entries_advance BEFORE UPDATE ON entries WHEN {_MOVED} "
    "OR (OLD.measurement IS NOT NULL AND NEW.measurement IS NOT OLD.measurement "
    "AND NEW.state IS NOT 'measured') "
    "OR (OLD.state || ' to ' || NEW.state) NOT IN ('reserved to measured', 'reserved to spent by crash', "
    "'measured to measured', 'measured to released', 'measured to spent by crash', "
    "'spent by crash to measured') "
    "BEGIN SELECT RAISE(ABORT, 'entries only advance'); END",
)

#: Ends a rollback journal that names a super-journal, as SQLite's file format has it.
_NAMES_ANOTHER = bytes.fromhex("d9d505f920a163d7")

_HELD = "another process writes to it; waited 10 s: try again"
_REASONS = {
    5: _HELD,
    6: _HELD,
    8: "it cannot be written: the file or its folder is read-only",
    10: "its disk failed to read or write",
    11: "damaged: not the pages of a ledger",
    13: "the disk is full",
    14: "it, or a file beside it, cannot be opened",
    26: "not a ledger",
}


class Connection(Protocol):
    """What is asked of a connection: that of ``sqlite3`` in autocommit mode has it, and that of apsw."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Iterable[Any]:
        """Run one statement and return its rows."""

    def close(self) -> None:
        """Let go of the file; what was not committed is undone."""


@final
@dataclass(frozen=True)
class Driver:
    """How the file of a ledger is opened.

    Attributes
    ----------
    create : callable
        Makes an empty file that must not be there yet.
    open : callable
        Opens a connection to a file that must be there, in autocommit mode.
    error : type
        What the connection raises.
    code : callable
        From such an error to SQLite's result code.
    run : callable
        Says by a lock beside the ledger that the run of an entry goes on.
    """

    create: Callable[[Path], None]
    open: Callable[[Path], Connection]
    error: type[Exception]
    code: Callable[[Any], int]
    run: Callable[[Path], Running | None] = Running


def _create(path: Path) -> None:
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))


def _open(path: Path) -> Connection:
    if not os.path.isfile(path):  # noqa: PTH113 - no error where the path is none
        raise StorageError(f"{path}: no such file; expected a ledger, which `matrixdp ledger init` makes")
    address = f"file:{quote(os.fsencode(path))}?mode=rw"
    return sqlite3.connect(address, timeout=0, isolation_level=None, uri=True)


SQLITE = Driver(_create, _open, sqlite3.Error, lambda error: getattr(error, "sqlite_errorcode", 1))
"""The SQLite of Python's standard library."""


@final
class Session:
    """The statements of one operation."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run one statement and return all of its rows."""
        return [tuple(row) for row in self._connection.execute(sql, parameters)]

    def value(self, pragma: str) -> Any:
        """Return what a PRAGMA says."""
        (row,) = self.rows(f"PRAGMA {pragma}")
        return row[0]

    @contextmanager
    def transaction(self, begin: str) -> Iterator[None]:
        """Commit what is done inside, durably and as a whole, or do nothing."""
        self.rows(begin)
        try:
            yield
            self.rows("COMMIT")
        except BaseException:
            with suppress(Exception):  # SQLite may have rolled back by itself
                self.rows("ROLLBACK")
            raise


@contextmanager
def session(path: Path, driver: Driver, *, write: bool, new: bool = False) -> Iterator[Session]:
    """Give a transaction on the file of a ledger, checked to be one; whatever goes wrong is a StorageError.

    With `write` no other process writes meanwhile, and what was done is durable when this ends without an
    error; an error undoes it, or leaves open whether it was done where the commit itself failed.
    """
    _check_journal(path)
    try:
        connection = driver.open(path)
    except driver.error as error:
        raise _refusal(path, driver, error) from None
    try:
        found = Session(connection)
        _prepare(found)
        if not new:
            _check_kind(path, found)
        _make_durable(path, found)
        with found.transaction("BEGIN IMMEDIATE" if write else "BEGIN"):
            if not new:
                _check_tables(path, found)
            yield found
    except driver.error as error:
        raise _refusal(path, driver, error) from None
    except UnicodeError:
        raise StorageError(f"{path}: damaged: holds text that is not UTF-8") from None
    finally:
        with suppress(driver.error):
            connection.close()


def _check_journal(path: Path) -> None:
    """Refuse a journal that names another file: SQLite would remove that file, wherever it is.

    Only transactions over several databases write such a journal, and a ledger is one.
    """
    with suppress(OSError, ValueError):
        # SQLite puts it beside the file that a link leads to
        journal = Path(f"{os.path.realpath(path)}-journal")
        if journal.is_file() and _ending(journal) == _NAMES_ANOTHER:
            raise StorageError(f"{journal}: names another file, which no journal of a ledger does; remove it")


def _ending(journal: Path) -> bytes:
    with journal.open("rb") as stream:
        stream.seek(-len(_NAMES_ANOTHER), os.SEEK_END)
        return stream.read()


def _refusal(path: Path, driver: Driver, error: Exception) -> StorageError:
    code = driver.code(error) & 0xFF
    return StorageError(f"{path}: {_REASONS.get(code) or f'refused by SQLite ({error})'}")


def _prepare(found: Session) -> None:
    """Trust nothing that the file defines; wait for others."""
    for pragma in (f"busy_timeout = {PATIENCE}", "trusted_schema = OFF", "cell_size_check = ON"):
        found.rows(f"PRAGMA {pragma}")


def _check_kind(path: Path, found: Session) -> None:
    if found.value("application_id") != APPLICATION:
        raise StorageError(f"{path}: not a ledger; `matrixdp ledger init` makes one")
    version = found.value("user_version")
    if version != VERSION:
        needed = "a newer matrixdp is needed" if version > VERSION else "damaged or altered"
        raise StorageError(
            f"{path}: a ledger of format version {version}; this matrixdp reads version {VERSION}: {needed}"
        )


def _make_durable(path: Path, found: Session) -> None:
    """Let a commit return only when it survives the loss of power, its journal's name in the folder too."""
    for pragma in ("synchronous = EXTRA", "fullfsync = ON"):
        found.rows(f"PRAGMA {pragma}")
    if found.value("journal_mode = DELETE") != "delete" or found.value("synchronous") != 3:
        raise StorageError(f"{path}: cannot be kept durably by this SQLite")


def _check_tables(path: Path, found: Session) -> None:
    """Refuse other tables or triggers than ours before anything is read from them."""
    sql = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
    if sorted(row[0] for row in found.rows(sql)) != sorted(TABLES):
        raise StorageError(f"{path}: damaged or altered: its tables are not those of a ledger")
    if found.value("integrity_check(1)") != "ok":
        raise StorageError(f"{path}: damaged: SQLite finds its pages inconsistent")


def make_tables(found: Session) -> None:
    """Make the tables of a new ledger."""
    if found.rows("SELECT 1 FROM sqlite_master"):
        raise StorageError("a ledger is made in a new file")
    for statement in TABLES:
        found.rows(statement)
    found.rows(f"PRAGMA application_id = {APPLICATION}")
    found.rows(f"PRAGMA user_version = {VERSION}")


@contextmanager
def reading(path: Path, what: str) -> Iterator[None]:
    """Turn whatever is wrong with what is read into one StorageError."""
    try:
        yield
    except MatrixDPError as error:
        raise StorageError(f"{path}: damaged or altered: {what}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError):
        raise StorageError(
            f"{path}: damaged or altered: {what} is not in the form that it should have"
        ) from None
