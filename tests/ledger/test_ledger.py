"""The ledger as users have it: debits, states, refusals."""

import json
import multiprocessing
import os
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import apsw
import pytest

import matrixdp as mdp
from matrixdp.errors import PrivacyError, StorageError
from matrixdp.ledger import SQLITE, Driver, Ledger, LedgerEntry, database, report
from matrixdp.ledger.ledger import chained
from matrixdp.noise import GAUSSIAN
from matrixdp.privacy import Budget, Unit

TENTH = Budget(rho=0.1)
COST = GAUSSIAN.cost(TENTH)
SHA, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.ledger", "people", Budget(rho=1))


def test_a_ledger_is_found_again(ledger: Ledger):
    again = mdp.Ledger.open(ledger.path)
    assert again == ledger
    assert (again.dataset, again.total, again.entries) == ("people", Budget(rho=1), ())
    assert again.spent is None
    assert again.left == Budget(rho=1)


@pytest.mark.parametrize(
    "total",
    [
        Budget(rho=Fraction(1, 3)),
        Budget(mu=0.1, neighbours="replace"),
        Budget(epsilon=Fraction(1, 7), delta=Fraction(1, 10**9), unit=Unit(records=3)),
        Budget(epsilon=1, unit=Unit(records=2, id="person é")),
    ],
)
def test_totals_are_kept_to_the_last_digit(tmp_path: Path, total: Budget):
    Ledger.create(tmp_path / "a", "d", total)
    assert Ledger.open(tmp_path / "a").total == total


def test_debits_add_up_and_stay(ledger: Ledger):
    records = [ledger.reserve(COST, TENTH, "out").record for _ in range(10)]
    with pytest.raises(PrivacyError) as error:
        ledger.reserve(GAUSSIAN.cost(Budget(rho=0.01)), Budget(rho=0.01))
    assert "no more release: all of rho 1.0" in str(error.value)
    assert len(ledger.entries) == 10
    assert [one.number for one in ledger.entries] == list(range(1, 11))
    assert ledger.spent == Budget(rho=10 * COST.value / 2)
    assert len({record.entry for record in records}) == 10
    for record, before in zip(records[1:], records, strict=False):
        assert record.before == before.after
        assert Fraction(record.after["rho"] or 0) - Fraction(record.before["rho"] or 0) == COST.value / 2
    entry = ledger.entries[3]
    assert (entry.state, entry.cost, entry.budget) == ("reserved", COST, TENTH)
    assert Path(str(entry.release)).name == "out"
    assert json.loads(json.dumps(entry.as_dict()))["cost"] == str(COST.value)


def test_a_refusal_names_what_is_left(ledger: Ledger):
    ledger.reserve(COST, TENTH)
    whole = Budget(rho=1)
    for refused in (ledger.check, ledger.reserve):
        with pytest.raises(PrivacyError) as error:
            refused(GAUSSIAN.cost(whole), whole)
        told = str(error.value)
        assert told.startswith("ledger: found rho 1.0 with gaussian noise")
        assert "expected at most rho 0.9" in told
        assert told.endswith("left of rho 1.0 for people")
    assert len(ledger.entries) == 1
    ledger.check(COST, TENTH)
    assert len(ledger.entries) == 1


def test_states_advance(ledger: Ledger):
    reservation = ledger.reserve(COST, TENTH)
    name = reservation.record.entry
    assert ledger.entries[0].state == "reserved"
    with pytest.raises(StorageError, match="is reserved; it cannot come to be released"):
        reservation.released(SHA)
    for _ in range(2):
        reservation.measured(SHA)
        assert (ledger.entries[0].state, ledger.entries[0].measurement) == ("measured", SHA)
    with pytest.raises(StorageError, match="it cannot come to be released with another measurement"):
        reservation.released(OTHER)
    for _ in range(2):
        reservation.released(SHA)
        assert ledger.entries[0].state == "released"
    for state in ("reserved", "measured", "abandoned", "forgiven"):
        with pytest.raises(StorageError, match=f"is released; it cannot come to be {state}"):
            ledger.advance(name, state)
    with pytest.raises(StorageError, match="found no entry"):
        ledger.advance("0" * 32, "measured", SHA)
    lost = ledger.reserve(COST, TENTH)
    ledger.advance(lost.record.entry, "abandoned")
    assert ledger.spent == Budget(rho=COST.value)
    lost.measured(OTHER)  # it was found after all
    assert ledger.entries[1].state == "measured"
    assert ledger.spent == Budget(rho=COST.value)


def raw(ledger: Ledger) -> sqlite3.Connection:
    return sqlite3.connect(ledger.path, isolation_level=None)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries",
        "DELETE FROM ledger",
        "UPDATE ledger SET terms = '{}'",
        "UPDATE entries SET cost = '1/1000'",
        "UPDATE entries SET id = '1' WHERE number = 1",
        "UPDATE entries SET number = 9",
        "UPDATE entries SET budget = ''",
        "UPDATE entries SET time = '2000-01-01'",
        "UPDATE entries SET release = 'elsewhere'",
        "UPDATE entries SET digest = 'x'",
        "UPDATE entries SET state = 'released'",
        "UPDATE entries SET state = 'reserved'",
        "UPDATE entries SET state = 'forgiven'",
        "UPDATE entries SET state = 'measured' WHERE number = 1",
        "UPDATE entries SET state = 'released', measurement = replace(measurement, 'a', 'b')",
        "UPDATE entries SET measurement = NULL WHERE number = 2",
        "UPDATE entries SET measurement = NULL, state = 'abandoned' WHERE number = 2",
        "INSERT OR REPLACE INTO entries SELECT 1, id, time, state, noise, cost, budget, version, release, "
        "measurement, digest FROM entries WHERE number = 1",
        "INSERT INTO entries SELECT 3, 'x', time, 'measured', noise, cost, budget, version, release, "
        "budget || budget, digest FROM entries WHERE number = 1",
        "INSERT INTO entries SELECT 7, 'x', time, state, noise, cost, budget, version, release, "
        "measurement, digest FROM entries WHERE number = 1",
        "INSERT OR REPLACE INTO entries SELECT 3, id, time, state, noise, cost, budget, version, release, "
        "measurement, digest FROM entries WHERE number = 1",
    ],
)
def test_the_file_itself_refuses_to_forget(ledger: Ledger, statement: str):
    ledger.reserve(COST, TENTH)
    ledger.reserve(COST, TENTH).measured(SHA)
    before = ledger.entries
    with pytest.raises(sqlite3.IntegrityError):
        raw(ledger).execute(statement)
    assert ledger.entries == before


FORGERIES = [
    "UPDATE entries SET cost = '1/1000000'",
    "UPDATE entries SET cost = '2/2000000' WHERE number = 2",
    "UPDATE entries SET noise = 'laplace'",
    "UPDATE entries SET budget = replace(budget, '1', '2')",
    "UPDATE entries SET id = 'x' WHERE number = 1",
    "UPDATE entries SET version = X'FF'",
    "UPDATE entries SET release = '\"elsewhere\"'",
    "UPDATE entries SET time = '2000-01-01T00:00:00+00:00'",
    "UPDATE entries SET measurement = '" + "z" * 64 + "'",
    "DELETE FROM entries WHERE number = 1",
    "UPDATE ledger SET terms = replace(terms, 'people', 'others')",
    "UPDATE ledger SET terms = '[]'",
    "UPDATE ledger SET terms = 'no JSON'",
    "UPDATE ledger SET terms = replace(terms, '\"people\"', '3')",
    "UPDATE ledger SET terms = X'FF'",
    "UPDATE ledger SET terms = replace(terms, '\"1\"', '\"1e9\"')",
    "UPDATE ledger SET terms = replace(terms, 'rho', 'sigma')",
    "UPDATE ledger SET created = 'yesterday'",
    "DELETE FROM ledger",
]


FORGED = f"INSERT INTO entries ({', '.join(database.KEPT)}, state) VALUES ({'?, ' * 9}'reserved')"  # noqa: S608


def forge(ledger: Ledger, *statements: str, values: tuple[object, ...] = ()) -> None:
    """Change a file behind its triggers, and put them back."""
    connection = raw(ledger)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement, values if "?" in statement else ())
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()


@pytest.mark.parametrize("forgery", FORGERIES)
def test_what_is_altered_behind_its_back_is_refused(ledger: Ledger, forgery: str):
    for _ in range(2):
        ledger.reserve(COST, TENTH)
    forge(ledger, forgery)
    for use in (lambda: Ledger.open(ledger.path), lambda: ledger.reserve(COST, TENTH)):
        with pytest.raises(StorageError, match=str(ledger.path)):
            use()


def test_a_forger_who_makes_digests_anew_is_still_held_to_the_form(ledger: Ledger):
    ledger.reserve(COST, TENTH)
    (created,) = raw(ledger).execute("SELECT terms, created, version FROM ledger").fetchall()
    row = raw(ledger).execute(f"SELECT {', '.join(database.KEPT[:-1])} FROM entries").fetchone()  # noqa: S608
    entry = dict(zip(database.KEPT[:-1], row, strict=True))
    budget = entry["budget"]
    forged: list[tuple[dict[str, object], str]] = [
        ({"cost": "-1/5"}, "numerator/denominator"),
        ({"cost": "1e999999999"}, "numerator/denominator"),
        ({"cost": "2/10"}, "numerator/denominator"),
        ({"cost": "0"}, "privacy cost: found 0"),
        ({"cost": "9" * 4001}, "numerator/denominator"),
        ({"cost": "5"}, "what its entries come to: privacy cost"),
        ({"noise": "gauss"}, "noise: found 'gauss'"),
        ({"budget": "[]"}, "not in the form"),
        ({"budget": budget.replace("rho", "sigma")}, "other parameters"),
        ({"budget": budget.replace("add_remove", "replace")}, "privacy cost: found"),
        ({"id": "x"}, "its name"),
        ({"release": "{"}, "not in the form"),
        ({"number": 7}, "it does not follow the one before"),
    ]
    for changes, told in forged:
        own = tuple((entry | changes).values())
        digest = chained(chained("", *created), *own)
        forge(ledger, "DELETE FROM entries", FORGED, values=(*own, digest))
        with pytest.raises(StorageError, match="damaged or altered") as error:
            Ledger.open(ledger.path).check(COST, TENTH)
        assert told in str(error.value)


def test_files_without_their_pages_are_refused(ledger: Ledger, tmp_path: Path):
    good = ledger.path.read_bytes()
    other = tmp_path / "other"
    for content in (good[:4096], good[:4096] + bytes(len(good) - 4096)):
        other.write_bytes(content)
        with pytest.raises(StorageError, match="damaged"):
            Ledger.open(other)
        assert other.read_bytes() == content


def test_every_page_that_is_damaged_is_noticed_or_harmless(ledger: Ledger, tmp_path: Path):
    for _ in range(3):
        ledger.reserve(COST, TENTH)
    good, entries = ledger.path.read_bytes(), ledger.entries
    damaged = tmp_path / "damaged"
    for place in range(0, len(good), 61):
        content = bytearray(good)
        content[place] ^= 0x41
        damaged.write_bytes(content)
        try:
            found = Ledger.open(damaged)
        except StorageError:
            continue
        # unused bytes, or counters of SQLite's own
        assert found.entries == entries


@pytest.mark.parametrize(
    "statement", ["CREATE TABLE more (a)", "CREATE VIEW more AS SELECT 1", "DROP TRIGGER entries_stay"]
)
def test_other_tables_are_refused(ledger: Ledger, statement: str):
    raw(ledger).execute(statement)
    with pytest.raises(StorageError, match="its tables are not those of a ledger"):
        Ledger.open(ledger.path)


def journal_naming(ledger: Path, other: Path) -> bytes:
    """Return a hot journal of a ledger, valid to the last sum, that names a super-journal."""
    pages = ledger.read_bytes()
    size = int.from_bytes(pages[16:18], "big")
    magic = bytes.fromhex("d9d505f920a163d7")
    numbers = (1, 1, len(pages) // size, 512, size)  # records, nonce, pages, sector, size of a page
    head = magic + b"".join(number.to_bytes(4, "big") for number in numbers)
    total = 1 + sum(pages[size - 200 : 0 : -200])
    record = (1).to_bytes(4, "big") + pages[:size] + total.to_bytes(4, "big")
    name = os.fsencode(other)
    place = (2**30 // size + 1).to_bytes(4, "big")
    ends = len(name).to_bytes(4, "big") + sum(name).to_bytes(4, "big")
    return head.ljust(512, b"\0") + record + place + name + ends + magic


@pytest.mark.parametrize("linked", [False, True])
def test_a_journal_beside_it_removes_no_other_file(ledger: Ledger, tmp_path: Path, linked: bool):
    """SQLite removes the super-journal that a journal names, once what it says is undone."""
    other = tmp_path / "elsewhere" / "thesis.txt"
    other.parent.mkdir()
    other.write_text("years of work\n")
    journal = tmp_path / "people.ledger-journal"
    hostile = journal_naming(ledger.path, other)
    path = ledger.path
    if linked:
        path = tmp_path / "link"
        path.symlink_to(ledger.path)
    journal.write_bytes(hostile)
    for use in (lambda: Ledger.open(path), lambda: ledger.reserve(COST, TENTH)):
        with pytest.raises(StorageError, match="-journal: names another file"):
            use()
    assert other.read_text() == "years of work\n"
    assert journal.read_bytes() == hostile
    # it is what SQLite takes it for
    sqlite3.connect(ledger.path).execute("SELECT * FROM ledger").fetchall()
    assert not other.exists()


def test_another_ledger_in_its_place_is_noticed(ledger: Ledger, tmp_path: Path):
    ledger.reserve(COST, TENTH)
    other = Ledger.create(tmp_path / "other", "people", Budget(rho=5))
    shutil.copy(other.path, ledger.path)
    with pytest.raises(StorageError, match="holds another ledger than when it was opened"):
        ledger.reserve(COST, TENTH)


def driver(execute: Callable[..., Any], connect: Callable[[Path], Any] = SQLITE.open) -> Driver:
    """A driver whose connections run statements by a function of the true connection and the statement."""

    class Changed:
        def __init__(self, path: Path) -> None:
            self.real = connect(path)
            self.close = self.real.close

        def execute(self, sql, parameters=(), /):
            return execute(self.real, sql, parameters)

    return Driver(SQLITE.create, Changed, SQLITE.error, SQLITE.code)


def failing(statement: str, code: str) -> Driver:
    """A driver whose connections fail at the statement that begins with a text, by an error of SQLite's."""

    def execute(real, sql, parameters):
        if sql.startswith(statement):
            error = sqlite3.OperationalError("it failed")
            error.sqlite_errorcode = getattr(sqlite3, code)
            raise error
        return real.execute(sql, parameters)

    return driver(execute)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("SQLITE_FULL", "the disk is full"),
        ("SQLITE_IOERR", "its disk failed"),
        ("SQLITE_READONLY", "read-only"),
        ("SQLITE_BUSY", "another process writes to it; waited 10 s"),
        ("SQLITE_CANTOPEN", "cannot be opened"),
        ("SQLITE_NOMEM", r"refused by SQLite \(it failed\)"),
    ],
)
@pytest.mark.parametrize("statement", ["BEGIN", "INSERT", "COMMIT"])
def test_what_sqlite_cannot_do_is_one_clear_error(ledger: Ledger, statement: str, code: str, told: str):
    broken = Ledger(ledger.path, ledger.dataset, ledger.total, ledger._terms, failing(statement, code))
    with pytest.raises(StorageError, match=told):
        broken.reserve(COST, TENTH)
    assert ledger.entries == ()
    ledger.reserve(COST, TENTH)


def test_what_cannot_be_made_leaves_nothing(tmp_path: Path):
    for statement in ("CREATE", "PRAGMA user_version", "COMMIT"):
        with pytest.raises(StorageError, match="the disk is full"):
            Ledger.create(tmp_path / "a", "d", Budget(rho=1), driver=failing(statement, "SQLITE_FULL"))
        assert list(tmp_path.iterdir()) == []


def test_what_sqlite_says_beyond_its_codes():
    def refuses(path: Path) -> database.Connection:
        raise sqlite3.OperationalError("no memory")

    with pytest.raises(StorageError, match=r"refused by SQLite \(no memory\)"):
        Ledger.open("any", driver=replace(SQLITE, open=refuses))


def test_a_file_that_is_read_only_is_read(ledger: Ledger):
    ledger.reserve(COST, TENTH)

    def read_only(path: Path) -> database.Connection:
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)

    found = Ledger.open(ledger.path, driver=replace(SQLITE, open=read_only))
    assert len(found.entries) == 1
    with pytest.raises(StorageError, match="it cannot be written: the file or its folder is read-only"):
        found.reserve(COST, TENTH)


def test_a_locked_ledger_is_waited_for_and_then_refused(ledger: Ledger, monkeypatch: pytest.MonkeyPatch):
    other = raw(ledger)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(database, "PATIENCE", 50)
    with pytest.raises(StorageError, match="another process writes to it"):
        ledger.reserve(COST, TENTH)
    assert ledger.entries == ()
    monkeypatch.undo()
    other.execute("ROLLBACK")
    ledger.reserve(COST, TENTH)


def test_sqlite_that_cannot_be_durable_is_refused(ledger: Ledger):
    def lax(real, sql, parameters):
        return real.execute("PRAGMA synchronous = OFF" if "EXTRA" in sql else sql, parameters)

    with pytest.raises(StorageError, match="cannot be kept durably"):
        Ledger.open(ledger.path, driver=driver(lax))


def test_tables_are_made_in_new_files_alone(ledger: Ledger):
    with (
        pytest.raises(StorageError, match="a ledger is made in a new file"),
        database.session(ledger.path, SQLITE, write=True) as found,
    ):
        database.make_tables(found)


def test_the_same_statements_run_on_another_sqlite(ledger: Ledger):
    driver = Driver(SQLITE.create, lambda path: apsw.Connection(str(path)), apsw.Error, lambda e: e.result)
    found = Ledger.open(ledger.path, driver=driver)
    found.reserve(COST, TENTH).measured(SHA)
    assert found.entries == ledger.entries
    forge(ledger, "UPDATE entries SET version = CAST(X'FF' AS TEXT)")
    with pytest.raises(StorageError, match="holds text that is not UTF-8"):
        Ledger.open(ledger.path, driver=driver)
    with pytest.raises(StorageError, match="refused by SQLite"):
        Ledger.open(ledger.path)


def _spend(path: str, start: Callable[[], object], results) -> None:
    start()
    ledger = Ledger.open(path)
    done = 0
    for _ in range(12):
        try:
            ledger.reserve(COST, TENTH)
            done += 1
        except PrivacyError:
            pass
    results.put(done)


def test_processes_at_once_never_spend_more_than_the_total(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "shared", "people", Budget(rho=2))
    context = multiprocessing.get_context("fork")
    barrier, results = context.Barrier(4), context.Queue()
    workers = [
        context.Process(target=_spend, args=(str(ledger.path), barrier.wait, results)) for _ in range(4)
    ]
    for worker in workers:
        worker.start()
    done = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert sum(done) == 20 == len(ledger.entries)
    assert ledger.account.within
    assert len({entry.id for entry in ledger.entries}) == 20


def test_what_a_release_says_of_its_entry(ledger: Ledger):
    record = ledger.reserve(COST, TENTH).record
    assert LedgerEntry.read(json.loads(json.dumps(record.as_dict()))) == record
    for key, value in {
        "entry": "x",
        "digest": 3,
        "dataset": "a\nb",
        "spent_after": {"sigma": "1"},
        "spent_before": {},
    }.items():
        with pytest.raises(PrivacyError, match=r"(ledger|dataset): found"):
            LedgerEntry.read(record.as_dict() | {key: value})
    with pytest.raises(PrivacyError, match="exact number"):
        LedgerEntry.read(record.as_dict() | {"spent_after": {"rho": "1e9"}})


def test_a_total_is_shown_as_it_was_given(tmp_path):
    total = Budget(epsilon=0.1, delta=Fraction(1, 10**5))
    ledger = Ledger.create(tmp_path / "ledger", "health", total)
    shown = report(ledger)
    assert shown["total"] == shown["left"] == {"epsilon": 0.1, "delta": 1e-5}
    budget = Budget(epsilon=0.05, delta=1e-5)
    ledger.reserve(GAUSSIAN.cost(budget), budget)
    shown = report(ledger)
    assert shown["spent"]["delta"] == shown["left"]["delta"] == 1e-5
