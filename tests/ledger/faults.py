"""Ledgers on a disk that fails: what one and two processes do when a fault strikes, and what is left."""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, final

import apsw
import pytest

from matrixdp.errors import PrivacyError, StorageError
from matrixdp.ledger import STATES, Account, Connection, Driver, Ledger, LedgerEntry, database
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.privacy import Budget
from tests.ledger.faulty_disk import FAULTS, Fault, FaultyDisk, Kind, write_files

PLACE = Path("/people.ledger")
TOTAL = Budget(rho=1)
#: More than half of what is left in the beginning: two such debits exceed the total.
LARGE, SMALL = Budget(rho=0.5), Budget(rho=0.0625)
#: How many operations that the fault may strike each process does at most, by trial and error.
_REACH: dict[Kind, int] = {"refused": 60, "full": 20, "power": 30, "killed": 30}


def driver_of(disk: FaultyDisk, synchronous: str | None = None) -> Driver:
    """Return how the files of ledgers on such a disk are opened.

    With `synchronous` SQLite is told that in the place of what the ledger says, and the ledger is deceived.
    """

    def opened(path: Path) -> Connection:
        return apsw.Connection(str(path), vfs=disk.name, flags=apsw.SQLITE_OPEN_READWRITE)

    def code(error: apsw.Error) -> int:
        return int(getattr(error, "result", apsw.SQLITE_IOERR))

    def careless(real: Connection, sql: str, *values: Any) -> Any:
        if sql == "PRAGMA synchronous":
            return [(3,)]
        return real.execute(sql.replace("EXTRA", str(synchronous)), *values)

    honest = Driver(lambda path: disk.create(str(path)), opened, apsw.Error, code, lambda _: None)
    return honest if synchronous is None else changed(honest, careless)


def changed(driver: Driver, execute: Callable[..., Any]) -> Driver:
    """A driver whose connections run statements by a function of the true connection and the statement."""

    class Changed:
        def __init__(self, path: Path) -> None:
            self.real = driver.open(path)
            self.close = self.real.close

        def execute(self, *statement: Any) -> Any:
            return execute(self.real, *statement)

    return replace(driver, open=Changed)


@final
@dataclass
class Process:
    """What one process was told: the debits that it may act on, with the last state that it wrote."""

    ledger: Ledger
    told: dict[str, tuple[LedgerEntry, str]] = field(default_factory=dict)
    refused: int = 0
    failed: int = 0

    def act(self, action: str, budget: Budget) -> None:
        """Debit, or write down what became of the last debit that has not come so far."""
        try:
            if action == "reserve":
                noise = GAUSSIAN if budget is LARGE else LAPLACE
                record = self.ledger.reserve(noise.cost(budget), budget).record
                self.told[record.entry] = record, "reserved"
                return
            before = {"measured": "reserved", "released": "measured", "abandoned": "reserved"}[action]
            for name, (record, state) in self.told.items():
                if state == before:
                    digest = None if action == "abandoned" else name * 2
                    self.ledger.advance(name, action, digest)
                    self.told[name] = record, action
                    return
        except PrivacyError:
            self.refused += 1
        except StorageError:
            self.failed += 1


@final
class Trial:
    """A ledger with some entries on a disk, ready to be struck again and again.

    Parameters
    ----------
    folder : Path
        Where the plain engine opens what is left.
    synchronous : str, optional
        How SQLite syncs, to see that a ledger which is careless is found out.
    """

    def __init__(self, folder: Path, synchronous: str | None = None) -> None:
        self.folder = folder
        self.disk = FaultyDisk()
        self.seen: Counter[str] = Counter()
        self._driver = driver_of(self.disk, synchronous)
        ledger = Ledger.create(PLACE, "people", TOTAL, driver=self._driver)
        self._old = Process(ledger)
        for action in ("reserve", "measured", "released", "reserve", "measured", "reserve"):
            self._old.act(action, SMALL)
        assert len(ledger.entries) == 3
        self._files = self.disk.files()
        self._ledger = ledger

    def strike(self, seed: int) -> bool:
        """Let one fault strike; return whether it did. Fails if a debit is lost, or too much is debited."""
        chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        kind = FAULTS[seed % len(FAULTS)]
        self.disk.sector = chance.choice((512, 4096))
        self.disk.load(self._files)
        processes = [Process(self._ledger, dict(self._old.told)), Process(self._ledger)]
        both = chance.random() < 0.5
        self.disk.arm(Fault(kind, chance.randrange(_REACH[kind] * (1 + both)), chance.choice((1, 1, 2, 10))))
        if both:
            self._interrupt(processes[1], chance)
        for action in chance.sample(("reserve", "measured", "released", "abandoned"), 2):
            processes[0].act(action, LARGE if chance.random() < 0.8 else SMALL)
        self.disk.before = None
        if not self.disk.struck:
            return False
        self.seen[f"{kind}, {'two' if both else 'one'}"] += 1
        if kind in ("refused", "full"):
            self.disk.arm(None)
            self._check(self._ledger, processes)  # the process goes on, and sees what it was told
            processes[0].act("reserve", SMALL)
        left = self.disk.survivors(seed) if kind == "power" else self.disk.files()
        self._check(self._plain(left), processes)
        return True

    def _interrupt(self, other: Process, chance: random.Random) -> None:
        """Let another process debit between two operations of the first one."""
        left = chance.randrange(40)

        def between(_: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                other.act("reserve", LARGE)
                other.act("measured", LARGE)

        self.disk.before = between

    def _plain(self, files: dict[str, bytes]) -> Ledger:
        for old in self.folder.iterdir():
            old.unlink()
        write_files(files, self.folder)
        return Ledger.open(self.folder / PLACE.name)

    def _check(self, ledger: Ledger, processes: list[Process]) -> None:
        """Compare a ledger with what processes were told."""
        found = ledger.entries
        entries = {entry.id: entry for entry in found}
        told = {name: known for process in processes for name, known in process.told.items()}
        for name, (record, state) in told.items():
            assert name in entries, "an answer is without its debit"
            assert entries[name].digest == record.digest
            assert STATES.index(entries[name].state) >= STATES.index(state), "a state was lost"
        # one debit at most may have been made by an operation that failed
        failed = sum(process.failed for process in processes)
        assert len(entries) - len(told) <= failed
        account = Account.of(TOTAL, ((entry.cost, entry.budget) for entry in found))
        assert account.within, "more than the total was debited"
        self.seen["refused above the total"] += any(process.refused for process in processes)
        self.seen["debited without an answer"] += len(entries) > len(told)


def inject(folder: Path, faults: int, *, seed: int = 0, synchronous: str | None = None) -> Counter[str]:
    """Inject this many faults; return what was seen."""
    trial = Trial(folder, synchronous)
    done = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "PATIENCE", 0)
        while done < faults:
            done += trial.strike(seed)
            seed += 1
    trial.disk.unregister()
    return trial.seen


if __name__ == "__main__":
    number = int(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        for what, times in sorted(inject(Path(place), number).items()):
            sys.stdout.write(f"{times:7,} {what}\n")
    sys.stdout.write(f"{number:7,} faults: no debit lost, no answer without one, the total never exceeded\n")
