"""The ledger on a disk that fails: no debit is lost, no answer is without one, the total is kept."""

from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from matrixdp.errors import StorageError
from matrixdp.ledger import Ledger
from matrixdp.noise import LAPLACE
from tests.ledger.faults import PLACE, SMALL, TOTAL, driver_of, inject
from tests.ledger.faulty_disk import FAULTS, Fault, FaultyDisk, Kind, write_files

#: `make faults` injects 10,000.
FAST = 400


def test_faults_of_every_kind_lose_nothing(tmp_path: Path):
    seen = inject(tmp_path, FAST)
    for kind in FAULTS:
        for processes in ("one", "two"):
            assert seen[f"{kind}, {processes}"] > FAST / 20
    # what the checks speak of came about
    assert seen["refused above the total"] > 0
    assert seen["debited without an answer"] > 0


@pytest.mark.parametrize("synchronous", ["OFF", "FULL"])
def test_a_ledger_that_syncs_less_is_found_out(tmp_path: Path, synchronous: str):
    with pytest.raises((AssertionError, StorageError), match=r"without its debit|a state was lost|damaged"):
        inject(tmp_path, 2000, synchronous=synchronous)


@pytest.mark.parametrize("kind", FAULTS)
def test_a_ledger_that_is_made_is_there(tmp_path: Path, kind: Kind):
    made: list[bool] = []
    disk = FaultyDisk()
    for step in range(100):
        for seed in range(3 if kind == "power" else 1):
            disk.load({})
            disk.arm(Fault(kind, step))
            acknowledged = True
            try:
                Ledger.create(PLACE, "people", TOTAL, driver=driver_of(disk))
            except StorageError:
                acknowledged = False
            if not disk.struck:
                assert acknowledged
                assert len(made) > 5
                return
            made.append(acknowledged)
            folder = tmp_path / f"{step}-{seed}"
            folder.mkdir()
            write_files(disk.survivors(seed) if kind == "power" else disk.files(), folder)
            try:
                ledger = Ledger.open(folder / PLACE.name)
            except StorageError:
                assert not acknowledged
                continue
            ledger.reserve(LAPLACE.cost(SMALL), SMALL)
            assert len(ledger.entries) == 1
    raise AssertionError("never came to an end")


def test_a_ledger_without_its_journal_is_not_taken_for_whole(tmp_path: Path):
    """Deleting the journal of a killed process may leave pages of two times."""
    disk = FaultyDisk()
    ledger = Ledger.create(PLACE, "people", TOTAL, driver=driver_of(disk))
    for _ in range(4):
        ledger.reserve(LAPLACE.cost(SMALL), SMALL)
    files = disk.files()
    seen = set()
    for step in range(30):
        disk.load(files)
        disk.arm(Fault("killed", step))
        with suppress(StorageError):
            ledger.reserve(LAPLACE.cost(SMALL), SMALL)
        folder = tmp_path / str(step)
        folder.mkdir()
        left = disk.files()
        journal = left.pop(f"{PLACE}-journal", None)
        write_files(left, folder)
        try:
            found = Ledger.open(folder / PLACE.name)
        except StorageError as error:
            assert journal is not None
            seen.add(str(error).partition(": ")[2].partition(":")[0])
            continue
        # what was acknowledged is there all the same
        assert len(found.entries) in {4, 5}
        seen.add(str(len(found.entries)))
    assert {"4", "5"} <= seen


def test_two_connections_lock_each_other_out():
    disk = FaultyDisk()
    one, other = (apsw.Connection("/a.db", vfs=disk.name) for _ in range(2))
    one.execute("create table sums (a integer)")
    one.execute("begin immediate")
    assert other.execute("select count(*) from sums").get == 0
    with pytest.raises(apsw.BusyError):
        other.execute("begin immediate")
    one.execute("insert into sums values (1)")
    other.execute("begin; select count(*) from sums")
    with pytest.raises(apsw.BusyError):
        one.execute("commit")
    other.execute("rollback")
    one.execute("commit")
    assert other.execute("select count(*) from sums").get == 1
