"""The ledger as users have it: debits, states, refusals."""

import json
import multiprocessing
import os
import shutil
import sqlite3
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import apsw
import pytest

import matrixdp as mdp
from matrixdp.errors import PrivacyError, StorageError
from matrixdp.ledger import SQLITE, Driver, Ledger, database, report
from matrixdp.ledger.ledger import chained
from matrixdp.noise import GAUSSIAN
from matrixdp.privacy import Budget, Unit
from tests.ledger.faults import changed

TENTH = Budget(rho=0.1)
COST = GAUSSIAN.cost(TENTH)
SHA, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "people.ledger", "people", Budget(rho=1))


@pytest.mark.parametrize(
    "total",
    [
        Budget(rho=1),
        Budget(rho=Fraction(1, 3)),
        Budget(mu=0.1, neighbours="replace"),
        Budget(epsilon=Fraction(1, 7), delta=Fraction(1, 10**9), unit=Unit(records=3)),
        Budget(epsilon=1, unit=Unit(records=2, id="person é")),
        Budget(epsilon=1, unit=Unit(20, "person", ["month", "é"], 12, 3, "sex")),
    ],
)
def test_a_ledger_is_found_again_with_its_total_to_the_last_digit(tmp_path: Path, total: Budget):
    made = Ledger.create(tmp_path / "a", "people", total)
    again = mdp.Ledger.open(made.path)
    assert again == made
    assert (again.dataset, again.total, again.entries, again.spent) == ("people", total, (), None)


def test_debits_add_up_and_stay(ledger: Ledger):
    records = [ledger.reserve(COST, TENTH, "out").record for _ in range(10)]
    with pytest.raises(PrivacyError, match="no more release: all of rho 1"):
        ledger.reserve(GAUSSIAN.cost(Budget(rho=0.01)), Budget(rho=0.01))
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


@pytest.mark.parametrize(
    ("way", "following"),
    [
        ("", {"measured", "abandoned"}),
        ("measured", {"released", "abandoned"}),
        ("measured released", set()),
        ("abandoned", {"measured"}),
    ],
)
def test_states_are_in_order(ledger: Ledger, way: str, following: set[str]):
    for state in ("reserved", "measured", "released", "abandoned", "forgiven"):
        entry = ledger.reserve(COST, TENTH).record.entry
        for before in (old := ["reserved", *way.split()])[1:]:
            ledger.advance(entry, before, None if before == "abandoned" else SHA)
        known = None if state == "abandoned" or old[-1] == state == "reserved" else SHA
        if state in {*following, old[-1]}:
            ledger.advance(entry, state, known)
            assert ledger.entry(entry).state == state
        else:
            with pytest.raises(StorageError, match=f"is {old[-1]} and cannot become {state}"):
                ledger.advance(entry, state, known)


def test_a_measurement_follows_the_one_that_is_there(ledger: Ledger):
    entry = ledger.reserve(COST, TENTH).record.entry
    first, second, third = ("a" * 64, "b" * 64, "c" * 64)
    ledger.advance(entry, "measured", first)
    ledger.advance(entry, "measured", second, after=first)
    for after in (first, None):
        with pytest.raises(StorageError) as caught:
            ledger.advance(entry, "measured", third, after=after)
        assert caught.value.code == "already-spent"
    with pytest.raises(StorageError):
        ledger.advance(entry, "measured", None, after=second)  # a file that could not be read
    with pytest.raises(StorageError):
        ledger.advance(entry, "abandoned", first)
    assert ledger.entry(entry).measurement == second


#: The first entry once more, with another number, name, state and measurement.
COPY = (
    "{} INTO entries SELECT {}, time, {}, noise, cost, budget, version, release, {}, digest "
    "FROM entries WHERE number = 1"
)


def raw(ledger: Ledger) -> sqlite3.Connection:
    return sqlite3.connect(ledger.path, isolation_level=None)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM entries",
        "DELETE FROM ledger",
        "UPDATE ledger SET terms = '{}'",
        *(f"UPDATE entries SET {column} = 9 WHERE number = 1" for column in database.KEPT),  # noqa: S608
        "UPDATE entries SET state = 'released'",
        "UPDATE entries SET state = 'reserved'",
        "UPDATE entries SET state = 'forgiven'",
        "UPDATE entries SET state = 'measured' WHERE number = 1",
        "UPDATE entries SET state = 'released', measurement = replace(measurement, 'a', 'b')",
        "UPDATE entries SET measurement = NULL WHERE number = 2",
        "UPDATE entries SET measurement = NULL, state = 'abandoned' WHERE number = 2",
        COPY.format("INSERT OR REPLACE", "1, id", "state", "measurement"),
        COPY.format("INSERT", "3, 'x'", "'measured'", "budget || budget"),
        COPY.format("INSERT", "7, 'x'", "state", "measurement"),
        COPY.format("INSERT OR REPLACE", "3, id", "state", "measurement"),
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


def test_a_journal_beside_it_removes_no_other_file(ledger: Ledger, tmp_path: Path):
    """SQLite removes the super-journal that a journal names, once what it says is undone."""
    other = tmp_path / "elsewhere" / "thesis.txt"
    other.parent.mkdir()
    other.write_text("years of work\n")
    journal, link = tmp_path / "people.ledger-journal", tmp_path / "link"
    hostile = journal_naming(ledger.path, other)
    link.symlink_to(ledger.path)
    journal.write_bytes(hostile)
    uses = lambda: Ledger.open(ledger.path), lambda: Ledger.open(link), lambda: ledger.reserve(COST, TENTH)
    for use in uses:
        with pytest.raises(StorageError, match="-journal: names another file"):
            use()
    assert other.exists()
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


def failing(statement: str, code: str) -> Driver:
    """A driver whose connections fail at the statement that begins with a text, by an error of SQLite's."""
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = getattr(sqlite3, code)

    def execute(real, sql, *values):
        if sql.startswith(statement):
            raise error
        return real.execute(sql, *values)

    return changed(SQLITE, execute)


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
    broken = replace(ledger, _driver=failing(statement, code))
    with pytest.raises(StorageError, match=told):
        broken.reserve(COST, TENTH)
    assert ledger.entries == ()
    ledger.reserve(COST, TENTH)


def test_what_cannot_be_made_leaves_nothing(tmp_path: Path):
    for statement in ("CREATE", "PRAGMA user_version", "COMMIT"):
        with pytest.raises(StorageError, match="the disk is full"):
            Ledger.create(tmp_path / "a", "d", Budget(rho=1), driver=failing(statement, "SQLITE_FULL"))
        assert list(tmp_path.iterdir()) == []


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
    def lax(real, sql, *values):
        return real.execute(sql.replace("EXTRA", "OFF"), *values)

    with pytest.raises(StorageError, match="cannot be kept durably"):
        Ledger.open(ledger.path, driver=changed(SQLITE, lax))


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


def reserve_somewhere(path: Path) -> bool:
    try:
        return bool(Ledger.open(path).reserve(COST, TENTH))
    except PrivacyError:
        return False


def test_processes_at_once_never_spend_more_than_the_total(tmp_path: Path):
    ledger = Ledger.create(tmp_path / "shared", "people", Budget(rho=2))
    context = multiprocessing.get_context("spawn")
    with context.Pool(4, context.Barrier(4).wait) as pool:
        made = pool.map(reserve_somewhere, [ledger.path] * 48, chunksize=1)
    assert sum(made) == 20 == len({entry.id for entry in ledger.entries})
    assert ledger.account.within


def test_a_total_is_shown_as_it_was_given(tmp_path):
    total = Budget(epsilon=0.1, delta=Fraction(1, 10**5))
    ledger = Ledger.create(tmp_path / "ledger", "health", total)
    shown = report(ledger)
    assert shown["total"] == shown["left"] == {"epsilon": 0.1, "delta": 1e-5}
    budget = Budget(epsilon=0.05, delta=1e-5)
    ledger.reserve(GAUSSIAN.cost(budget), budget)
    shown = report(ledger)
    assert shown["spent"]["delta"] == shown["left"]["delta"] == 1e-5
