"""Names, totals and files that no ledger has."""

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from matrixdp.ledger import SQLITE, Account, Ledger, LedgerEntry, Reservation
from matrixdp.measure.measurement import Authorization
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.privacy import Budget, Unit
from tests.refusals import Refusal

Attempt = Callable[[Path], object]
RHO, LITTLE = Budget(rho=1), Budget(rho=0.1)
COST = GAUSSIAN.cost(LITTLE)
NAMES = ["", "  ", None, 3, "a" * 1001, "two\nlines", "\x1b[31mred", "\udcff"]


def created(name: str = "a", dataset: Any = "people", total: Any = RHO) -> Attempt:
    def attempt(folder: Path) -> object:
        assert not list(folder.iterdir())
        try:
            return Ledger.create(folder / name, dataset, total)
        finally:
            assert not list(folder.iterdir())

    return attempt


def opened(change: Callable[[bytes], bytes]) -> Attempt:
    """Open the bytes of a ledger, changed; nothing is written to them."""

    def attempt(folder: Path) -> object:
        path = Ledger.create(folder / "a", "people", RHO).path
        content = change(path.read_bytes())
        path.write_bytes(content)
        try:
            return Ledger.open(path)
        finally:
            assert path.read_bytes() == content

    return attempt


CHANGES = ["CREATE TABLE more (a)", "CREATE VIEW more AS SELECT 1", "DROP TRIGGER entries_stay"]


def altered(statement: str) -> Attempt:
    def attempt(folder: Path) -> object:
        path = Ledger.create(folder / "a", "people", RHO).path
        sqlite3.connect(path, isolation_level=None).execute(statement)
        return Ledger.open(path)

    return attempt


def debited(folder: Path) -> Reservation:
    return Ledger.create(folder / "a", "people", RHO).reserve(COST, LITTLE)


def told(**changes: Any) -> Attempt:
    """Read what a release says of its entry, with some of it changed."""
    return lambda folder: LedgerEntry.read(debited(folder).record.as_dict() | changes)


def authorizing(cost: Cost = COST, budget: Budget = LITTLE, **changes: Any) -> Attempt:
    """Authorize a cost by an entry, with some of what that says changed."""

    def attempt(folder: Path) -> object:
        return Authorization(cost, budget, "2026-01-01", replace(debited(folder).record, **changes))

    return attempt


def out_of_memory(folder: Path) -> object:
    def fail(_: Path) -> Any:
        raise sqlite3.OperationalError("no memory")

    return Ledger.open(folder / "a", driver=replace(SQLITE, open=fail))


def of_version(version: int) -> Callable[[bytes], bytes]:
    return lambda good: good[:60] + version.to_bytes(4, "big", signed=True) + good[64:]


def absent(name: str) -> Attempt:
    return lambda folder: Ledger.open(folder / name)


def added(total: Budget, budget: Budget, cost: Cost | None = None) -> Attempt:
    return lambda folder: Account.empty(total).plus(cost or GAUSSIAN.cost(budget), budget)


def checked(total: Budget, budget: Budget, noise: Any = GAUSSIAN) -> Attempt:
    return lambda folder: Ledger.create(folder / "a", "people", total).check(noise.cost(budget), budget)


REJECTED: dict[tuple[str, str], dict[str, Attempt]] = {
    ("wrong-type", "dataset"): {
        **{f"a dataset {str(name)[:9]!r}": created(dataset=name) for name in NAMES},
        "an entry of a dataset without a name": told(dataset="a\nb"),
    },
    ("wrong-type", ""): {"a total that is no budget": created(total=1.0)},
    ("out-of-range", ""): {"a total of many digits": created(total=Budget(rho=Fraction(1, 10**5000)))},
    ("file-exists", ""): {
        "a ledger over another": lambda folder: [Ledger.create(folder / "a", "d", RHO) for _ in "ab"]
    },
    ("no-place", ""): {
        "a ledger in no folder": created("no folder/a"),
        "a ledger at what is no path": created("no\0path"),
    },
    ("file-missing", ""): {
        "a folder": absent(""),
        "a file that is not there": absent("none"),
        "what is no path": absent("no\0path"),
    },
    ("damaged-file", ""): {
        "an empty file": opened(lambda _: b""),
        "an entry of no name": told(entry="x"),
        "an entry of no digest": told(digest=3),
        "an entry with a number in another form": told(spent_after={"rho": "1e9"}),
        "an entry with other sums": told(spent_after={"sigma": "1"}),
        "an entry without sums": told(spent_before={}),
        "an entry before which less was spent": authorizing(before={"rho": "1/3"}),
        "an entry after which less was spent": authorizing(after={"rho": "1/30"}),
        "an entry above the total": authorizing(before={"rho": "1"}, after={"rho": "11/10"}),
        "an entry with sums of another kind": authorizing(before={"epsilon": "0"}),
        "an entry of another cost": authorizing(Cost(Fraction(1, 10), GAUSSIAN)),
        "a ledger of empty pages": opened(lambda good: good[:4096] + bytes(len(good) - 4096)),
        **{f"a ledger after {statement}": altered(statement) for statement in CHANGES},
        "another application's file": opened(lambda good: good[:68] + bytes(4) + good[72:]),
    },
    ("storage", ""): {
        "a ledger of one page": opened(lambda good: good[:4096]),
        "a file of text": opened(lambda _: b"name,age\nAlice,1\n" * 100),
        "an error of SQLite's without a code": out_of_memory,
    },
    ("other-version", ""): {
        f"a file of version {version}": opened(of_version(version)) for version in (2, -1)
    },
    ("conflict", "budget.neighbours"): {
        "an entry for other neighbours": authorizing(budget=Budget(rho=2, neighbours="replace")),
        "a budget for other neighbours": added(RHO, Budget(rho=0.1, neighbours="replace")),
    },
    ("conflict", "budget.unit"): {
        "a budget for another unit": added(Budget(rho=1, unit=Unit(records=3)), LITTLE)
    },
    ("budget-exceeded", ""): {"a cost above its own budget": added(RHO, LITTLE, Cost(Fraction(1), GAUSSIAN))},
    ("budget-exceeded", "ledger"): {
        "Gaussian noise under a pure total": checked(Budget(epsilon=1), LITTLE),
        "more than what is left": lambda folder: debited(folder).ledger.check(GAUSSIAN.cost(RHO), RHO),
        "more than the total": checked(RHO, Budget(rho=2), LAPLACE),
    },
}
REFUSALS = [Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()]
