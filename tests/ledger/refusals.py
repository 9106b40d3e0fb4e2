"""Names, totals and files that no ledger has."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

from matrixdp.ledger import Account, Ledger
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.privacy import Budget, Unit
from tests.refusals import Refusal

Attempt = Callable[[Path], object]
RHO, LITTLE = Budget(rho=1), Budget(rho=0.1)
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


def of_version(version: int) -> Callable[[bytes], bytes]:
    return lambda good: good[:60] + version.to_bytes(4, "big", signed=True) + good[64:]


def absent(name: str) -> Attempt:
    return lambda folder: Ledger.open(folder / name)


def added(total: Budget, budget: Budget, cost: Cost | None = None) -> Attempt:
    return lambda folder: Account.empty(total).plus(cost or GAUSSIAN.cost(budget), budget)


def checked(total: Budget, budget: Budget, noise: Any = GAUSSIAN) -> Attempt:
    return lambda folder: Ledger.create(folder / "a", "people", total).check(noise.cost(budget), budget)


REJECTED: dict[tuple[str, str], dict[str, Attempt]] = {
    ("wrong-type", "dataset"): {f"a dataset {str(name)[:9]!r}": created(dataset=name) for name in NAMES},
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
        "another application's file": opened(lambda good: good[:68] + bytes(4) + good[72:]),
    },
    ("storage", ""): {"a file of text": opened(lambda _: b"name,age\nAlice,1\n" * 100)},
    ("other-version", ""): {
        f"a file of version {version}": opened(of_version(version)) for version in (2, -1)
    },
    ("conflict", "budget.neighbours"): {
        "a budget for other neighbours": added(RHO, Budget(rho=0.1, neighbours="replace")),
    },
    ("conflict", "budget.unit"): {
        "a budget for another unit": added(Budget(rho=1, unit=Unit(records=3)), LITTLE),
    },
    ("budget-exceeded", ""): {"a cost above its own budget": added(RHO, LITTLE, Cost(Fraction(1), GAUSSIAN))},
    ("budget-exceeded", "ledger"): {
        "Gaussian noise under a pure total": checked(Budget(epsilon=1), LITTLE),
        "more than the total": checked(RHO, Budget(rho=2), LAPLACE),
    },
}
REFUSALS = [Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()]
