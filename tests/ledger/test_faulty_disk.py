"""The faulty disk finds faults: plain tables lose data on it where SQLite is told to be careless."""

import sqlite3
from collections import Counter
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from tests.ledger.faulty_disk import FAULTS, Fault, FaultyDisk, Kind, write_files

NAME = "/a.db"


def start(journal: str) -> dict[str, bytes]:
    disk = FaultyDisk()
    with_table = apsw.Connection(NAME, vfs=disk.name)
    with_table.execute("pragma page_size = 1024")
    with_table.pragma("journal_mode", journal)
    with_table.execute("create table sums (a integer, b blob)")
    with_table.execute("insert into sums values (0, zeroblob(3000))")
    with_table.close()
    return disk.files()


def added(disk: FaultyDisk, journal: str, synchronous: str, numbers: int = 4) -> int:
    """Add rows, one transaction each, until a fault; return how many were acknowledged."""
    done = 0
    connection = None
    try:
        connection = apsw.Connection(NAME, vfs=disk.name)
        connection.pragma("journal_mode", journal)
        connection.pragma("synchronous", synchronous)
        for number in range(1, numbers + 1):
            connection.execute("insert into sums values (?, zeroblob(1500))", (number,))
            done = number
    except (apsw.IOError, apsw.FullError, apsw.CantOpenError):
        assert disk.struck
    finally:
        if connection is not None:
            with suppress(apsw.IOError):
                connection.close()
    return done


def verdict(files: dict[str, bytes], folder: Path, acknowledged: int) -> str:
    """Open what is left with the plain engine; say what became of the rows."""
    folder.mkdir()
    write_files(files, folder)
    plain = sqlite3.connect(folder / NAME.lstrip("/"))
    try:
        whole = plain.execute("pragma integrity_check").fetchone() == ("ok",)
        rows = [row[0] for row in plain.execute("select a from sums order by a")]
    except sqlite3.DatabaseError:
        return "damaged"
    finally:
        plain.close()
    if not whole or rows != list(range(len(rows))):
        return "damaged"
    return "lost" if len(rows) - 1 < acknowledged else "kept"


def verdicts(folder: Path, journal: str, synchronous: str, kind: Kind, seeds: int) -> Counter[str]:
    files = start(journal)
    seen: Counter[str] = Counter()
    disk = FaultyDisk()
    for step in range(400):
        for seed in range(seeds):
            disk.sector = (512, 4096)[seed % 2]
            disk.load(files)
            disk.arm(Fault(kind, step, 1 + 5 * (seed % 2)))
            done = added(disk, journal, synchronous)
            left = disk.survivors(seed) if kind == "power" else disk.files()
            if not disk.struck:
                assert done == 4
                return seen
            seen[verdict(left, folder / f"{step}-{seed}", done)] += 1
    raise AssertionError("never came to an end")


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("journal", ["delete", "truncate", "persist"])
def test_sqlite_told_to_be_careful_loses_nothing(tmp_path: Path, kind: Kind, journal: str):
    seen = verdicts(tmp_path, journal, "extra", kind, 4 if kind == "power" else 1)
    assert set(seen) == {"kept"}
    assert seen.total() > 15


@pytest.mark.parametrize(
    ("journal", "synchronous", "found"),
    [
        ("delete", "off", {"damaged", "lost", "kept"}),
        ("persist", "off", {"damaged", "lost", "kept"}),
        # a journal that is deleted comes back with the power, and takes back what was committed
        ("delete", "full", {"lost", "kept"}),
    ],
)
def test_sqlite_told_to_be_careless_loses_data(
    tmp_path: Path, journal: str, synchronous: str, found: set[str]
):
    seen = verdicts(tmp_path, journal, synchronous, "power", 6)
    assert set(seen) == found


def test_a_journal_that_is_thrown_away_is_missed(tmp_path: Path):
    files = start("delete")
    disk = FaultyDisk()
    seen = set()
    for step in range(40):
        disk.load(files)
        disk.arm(Fault("killed", step))
        done = added(disk, "delete", "extra")
        left = {name: content for name, content in disk.files().items() if name == NAME}
        seen.add(verdict(left, tmp_path / str(step), done))
    assert "damaged" in seen


def test_two_connections_lock_each_other_out():
    disk = FaultyDisk(start("delete"))
    one, other = (apsw.Connection(NAME, vfs=disk.name) for _ in range(2))
    one.execute("begin immediate")
    assert other.execute("select count(*) from sums").get == 1
    with pytest.raises(apsw.BusyError):
        other.execute("begin immediate")
    one.execute("insert into sums values (1, null)")
    other.execute("begin; select count(*) from sums")
    with pytest.raises(apsw.BusyError):
        one.execute("commit")
    other.execute("rollback")
    one.execute("commit")
    assert other.execute("select count(*) from sums").get == 2


def test_a_journal_of_another_process_is_rolled_back_on_the_disk_itself():
    files = start("delete")
    disk = FaultyDisk(files)
    for step in range(1, 12):
        disk.load(files)
        disk.arm(Fault("killed", step))
        done = added(disk, "delete", "extra")
        disk.load(disk.files())
        again = apsw.Connection(NAME, vfs=disk.name)
        assert again.execute("pragma integrity_check").get == "ok"
        assert again.execute("select count(*) from sums").get - 1 in {done, done + 1}
        again.close()


def test_the_disk_says_what_was_done():
    disk = FaultyDisk(start("delete"))
    seen: list[str] = []
    disk.before = seen.append
    added(disk, "delete", "extra", 1)
    assert Counter(seen) == Counter(disk.steps)
    assert {"create", "write", "sync", "delete"} <= set(seen)
    assert not disk.struck
    disk.down = True
    with pytest.raises((apsw.IOError, apsw.CantOpenError)):
        apsw.Connection(NAME, vfs=disk.name).execute("select * from sums")
