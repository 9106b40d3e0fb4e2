"""What is far beyond use is refused by one clear error: no traceback, hang or wrong figure."""

import json
import zipfile
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import DomainError, EntryError, MatrixDPError, PrivacyError
from matrixdp.exact import IntegerMatrix
from matrixdp.measure.measurement import measure
from matrixdp.measure.statement import statement
from matrixdp.noise import GAUSSIAN, Cost
from matrixdp.plans import Block, Direct, Part
from matrixdp.specification import load_specification
from tests.forging import forge_archive, forge_measurement, leaves, put

DIGITS = int("9" * 400)
WORKLOAD = mdp.Workload(mdp.Domain({"a": 4}), mdp.marginals(1))


@pytest.fixture(scope="module")
def strategy() -> mdp.Strategy:
    return mdp.select(WORKLOAD)


@pytest.mark.parametrize(
    "parameter",
    [
        {"rho": 1e308},
        {"mu": 1e200},
        {"rho": DIGITS},
        {"mu": DIGITS},
        {"rho": Decimal("1e-400")},
        {"mu": Fraction(1, DIGITS)},
        {"epsilon": DIGITS, "delta": 1e-6},
        {"epsilon": 5e-324, "delta": 5e-324},
    ],
    ids=str,
)
def test_budgets_beyond_floating_point(strategy: mdp.Strategy, parameter: dict[str, Any]):
    budget = mdp.Budget(**parameter)
    with pytest.raises(PrivacyError):
        strategy.measure({"a": [1]}, budget)
    for figure in (strategy.rmse, strategy.max_stddev, lambda budget: mdp.select(WORKLOAD, budget=budget)):
        with suppress(PrivacyError):
            figure(budget)
    text = f"domain: {{a: 4}}\nworkload: [marginals: [1]]\nprivacy: {{rho: {DIGITS}}}\n"
    assert load_specification(text).budget is not None


@pytest.mark.parametrize("name", ["y" * 5000, "y/" * 5000, "y\0"])
def test_names_that_are_no_paths(strategy: mdp.Strategy, name: str, tmp_path: Path):
    written = {"domain": {"a": 4}, "workload": [{"dense": f"{name}.npy", "attributes": ["a"]}]}
    released = strategy.measure({"a": [1]}, mdp.Budget(rho=1)).reconstruct()
    uses: list[Callable[[], object]] = [
        lambda: load_specification(name),
        lambda: load_specification(written, base_path=tmp_path),
        lambda: mdp.load_release(name),
        lambda: mdp.Strategy.load(name),
        lambda: strategy.save(tmp_path / name),
        lambda: strategy.measure(name + ".csv", mdp.Budget(rho=1)),
        lambda: mdp.save_release(released, tmp_path / name),
    ]
    for use in uses:
        with pytest.raises(MatrixDPError):
            use()


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999", "9" * 400, "9" * 5000])
def test_headers_with_numbers_that_are_none(strategy: mdp.Strategy, tmp_path: Path, number: str):
    strategy.save(tmp_path / "strategy.mdp")
    released = strategy.measure({"a": [1]}, mdp.Budget(rho=1)).reconstruct()
    out = mdp.save_release(released, tmp_path / "out")
    tried = 0
    for path, forge, load in (
        (tmp_path / "strategy.mdp", forge_archive, mdp.Strategy.load),
        (out, forge_measurement, mdp.load_release),
    ):
        archive = path if path.is_file() else path / "measurement.mdp"
        original = archive.read_bytes()
        with zipfile.ZipFile(archive) as opened:
            places = leaves(json.loads(opened.read("header.json")))
        for place in places:
            if place[0] != "checksums":

                def change(header: Any, _: object, place: Any = place) -> None:
                    put(header, place, lambda _: "@@")

                forge(path, change, lambda header: json.dumps(header).replace('"@@"', number))
                tried += 1
                with suppress(MatrixDPError):
                    load(path)
                archive.write_bytes(original)
    assert tried > 20
    record = (out / "release.json").read_text()
    for before in ('"confidence": 0.95', '"format": "matrixdp release"'):
        (out / "release.json").write_text(record.replace(before, f"{before.split(':')[0]}: {number}"))
        with pytest.raises(MatrixDPError):
            mdp.load_release(out)


def test_bins_and_orders_beyond_any_use():
    with pytest.raises(DomainError, match=r"found 1000000000000; expected at most 1,000,000 bins"):
        mdp.Domain({"a": {"min": 0, "max": 1, "bins": 10**12}})
    wide = mdp.Domain({"a": 10**8})
    with pytest.raises(EntryError, match=r"100,000,000 values; expected one of at most 1,000,000"):
        mdp.Workload(wide, mdp.product(a={"permuted": "prefix", "seed": 1}))


def counted(counts: list[int]) -> Any:
    """Return a source of one marginal."""
    marginals = lambda _, subsets, *__: [(subsets[0], np.array(counts))]  # noqa: E731
    return SimpleNamespace(marginals=marginals, assumptions=lambda _: ())


def test_answers_that_would_leave_62_bits_never_wrap():
    block = Block(("a",), IntegerMatrix(np.eye(2, dtype=int)))
    plan = Direct(mdp.Domain({"a": 2}), (Part(("a",), (block,), 1.0),), GAUSSIAN)
    with pytest.raises(PrivacyError, match="exceed 62 bits"):
        measure(plan, counted([2**20, 3]), mdp.Budget(mu=10**12), max_records=1)
    with pytest.raises(PrivacyError, match="exceed 62 bits"):
        measure(plan, counted([2**55, 3]), mdp.Budget(mu=100))
    values = measure(plan, counted([2**33, 3]), mdp.Budget(mu=10**4), max_records=1).values[0]
    assert np.abs(values - [2**33, 3]).max() < 0.01


def test_the_statement_tells_of_the_abort():
    promise = statement(Cost(Fraction(1), GAUSSIAN), mdp.Budget(mu=1), private=True)
    assert any("16,384 random bits" in line for line in promise.assumed)
