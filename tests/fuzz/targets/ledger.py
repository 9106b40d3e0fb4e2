"""Ledgers: any bytes, and SQLite files with changed rows and settings, the chain of digests made right."""

import json
import sqlite3
import tempfile
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from unittest import mock
from zlib import crc32

from matrixdp.ledger import Account, Ledger
from matrixdp.ledger import ledger as module
from matrixdp.ledger.database import TABLES
from matrixdp.ledger.ledger import chained
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.privacy import Budget
from tests.fuzz.forms import as_they_are
from tests.fuzz.oracle import Case, Finding
from tests.fuzz.recipe import Recipe, mutated

_KEYS = ("dataset", "total", "rho", "mu", "epsilon", "delta", "neighbours", "unit", "records", "id")
_COLUMNS = (
    "number", "id", "time", "state", "noise", "cost", "budget", "version", "release", "measurement", "digest",
)  # fmt: skip
_PRAGMAS = (
    "user_version = 2", "user_version = -1", "application_id = 0", "auto_vacuum = 1", "encoding = 'UTF-16'",
    "journal_mode = WAL", "page_size = 512", "legacy_alter_table = ON", "schema_version = 7",
)  # fmt: skip
_ODD = (
    None, -1, 0, 1, 2**63 - 1, 0.5, b"\0\xff", "", "x", "0" * 32, "0" * 64, "1/0", "1/3", "9" * 5000, "1e400",
    "-1/2", "reserved", "measured", "released", "abandoned", "gaussian", "laplace", "{}", "[" * 5000,
    '{"rho": "1/2"}', '{"neighbours": "add_remove", "rho": "1e999999999"}', "x" * 20_000, "\ud7ff", "NaN",
)  # fmt: skip


@cache
def _ledgers() -> tuple[bytes, ...]:
    """Return ledgers of three kinds of totals, each with debits of its noise; the same in every process."""
    made = []
    clock = mock.patch.multiple(module, now=lambda: "2026-01-01T00:00:00+00:00", time=mock.Mock(time_ns=int))
    process = mock.patch("os.getpid", int)
    with tempfile.TemporaryDirectory() as folder, clock, process:
        for place, (total, noise, spent) in enumerate(
            (
                (Budget(rho=1), GAUSSIAN, Budget(rho=0.25)),
                (Budget(epsilon=2, neighbours="replace"), LAPLACE, Budget(epsilon=0.5, neighbours="replace")),
                (Budget(epsilon=1, delta=1e-6), GAUSSIAN, Budget(rho=0.001)),
            )
        ):
            ledger = Ledger.create(f"{folder}/{place}", "people", total)
            for _ in range(2):
                ledger.reserve(noise.cost(spent), spent, "/out")
            made.append(Path(folder, str(place)).read_bytes())
    return tuple(made)


def seeds() -> list[bytes]:
    """Return the ledgers, and recipes that leave each as it is."""
    return as_they_are(3, [bytes([place]) + file for place, file in enumerate(_ledgers())])


def opened(folder: Path) -> Case:
    """Return what opens one and asks it everything; what it says of debits never changes for the better."""
    path = folder / "people.ledger"
    originals: list[tuple[str, ...]] = []
    for file in _ledgers():
        path.write_bytes(file)
        originals.append(tuple(entry.digest for entry in Ledger.open(path).entries))

    def case(data: bytes) -> None:
        recipe = Recipe(data)
        raw = recipe.below(256) == 0
        place = recipe.below(3)
        for ending in ("", "-journal", "-wal", "-shm"):
            Path(f"{path}{ending}").unlink(missing_ok=True)
        path.write_bytes(recipe.rest() if raw else _ledgers()[place])
        if not raw and recipe.left:
            with suppress(sqlite3.Error, TypeError, ValueError, RecursionError):
                _change(path, recipe)
        ledger = Ledger.open(path)
        entries = ledger.entries
        account = Account.of(ledger.total, [(entry.cost, entry.budget) for entry in entries])
        digests = tuple(entry.digest for entry in entries)
        if raw and not any(digests == known[: len(digests)] for known in originals):
            raise Finding("changed bytes that make other debits")
        fewer = Account.of(ledger.total, [(entry.cost, entry.budget) for entry in entries[:-1]])
        for less, more in zip(fewer.sums, account.sums, strict=True):
            if less is not None and more is not None and not 0 <= less <= more:
                raise Finding("a debit that lowers what was spent")
        json.dumps([None if budget is None else budget.as_dict() for budget in (account.spent, account.left)])
        if crc32(data) % 4:
            return
        small = Budget(rho=1e-9, neighbours=ledger.total.neighbours, unit=ledger.total.unit)
        ledger.reserve(GAUSSIAN.cost(small), small)
        if len(ledger.entries) != len(entries) + 1:
            raise Finding("a debit that was lost")

    return case


def _change(path: Path, recipe: Recipe) -> None:
    """Change rows, terms or settings of a ledger, most often with digests that fit."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = MEMORY")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        triggers = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for _ in range(1 + recipe.below(3)):
            kind = recipe.below(8)
            if kind < 2:
                column, table = ("budget", "entries") if kind else ("terms", "ledger")
                query = f"SELECT rowid, {column} FROM {table} LIMIT 1 OFFSET {kind * recipe.below(2)}"  # noqa: S608
                place, written = connection.execute(query).fetchone()
                changed = json.dumps(mutated(json.loads(written), recipe, _KEYS, 2))
                update = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"  # noqa: S608
                connection.execute(update, (changed, place))
            elif kind == 2:
                connection.execute("DELETE FROM entries WHERE number = ?", (1 + recipe.below(2),))
            elif kind == 3:
                connection.execute(f"PRAGMA {recipe.choice(_PRAGMAS)}")
            elif kind == 4:
                connection.execute(f"CREATE TABLE IF NOT EXISTS {recipe.choice(('other', 'entries2'))} (a)")
            else:
                values = (recipe.choice(_ODD), 1 + recipe.below(2))
                column = recipe.choice(_COLUMNS)
                connection.execute(f"UPDATE entries SET {column} = ? WHERE number = ?", values)  # noqa: S608
        if recipe.below(8) != 1:
            _chain(connection)
        for statement in TABLES:
            if statement.startswith("CREATE TRIGGER") and recipe.below(16) != 1:
                connection.execute(statement)


def _chain(connection: sqlite3.Connection) -> None:
    """Make the digests of all entries right."""
    digest = chained("", *connection.execute("SELECT terms, created, version FROM ledger").fetchone())
    query = "SELECT number, id, time, noise, cost, budget, version, release FROM entries ORDER BY number"
    for row in connection.execute(query).fetchall():
        with suppress(TypeError):
            digest = chained(digest, *row)
        connection.execute("UPDATE entries SET digest = ? WHERE number IS ?", (digest, row[0]))
