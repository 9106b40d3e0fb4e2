"""Rounds: what both cost from the saved file, and how far one record moves what they publish.

The second round is planned from the noise of the first, so the audit runs the real measurement many times
on two tables that differ by one record, with noise of the operating system. Whatever is planned, the log of
the likelihood ratio of all noisy answers is normal, with the mean and variance that the stated cost gives.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import matrixdp as mdp
from matrixdp.measure import calibration, measurement
from matrixdp.noise import GAUSSIAN, Cost
from matrixdp.plans import Rounds
from matrixdp.testing import dense_measurement
from tests.audit.reading import ReadFile, read
from tests.audit.test_costs import honours, random_budget

#: How many times each of the two tables is measured, and the probability that a correct program fails a test.
RUNS, ALARM = 100, 1e-7
#: Random releases whose costs are recomputed from their files.
RELEASES = 12
MU = 6.0
SIZES = {"a": 4, "b": 3, "c": 2}
RANDOM = np.random.default_rng(11)
TABLE = {name: RANDOM.integers(0, size, 60) for name, size in SIZES.items()}
#: A record that all queries see; by symmetry every record costs the same.
PERSON = (2, 1, 0)


def one_more(table: dict[str, Any]) -> dict[str, Any]:
    return {name: np.append(own, value) for (name, own), value in zip(table.items(), PERSON, strict=True)}


def statistics(table: dict[str, Any]) -> Iterator[float]:
    """Yield, for each of many measurements, how far noisy answers lie in the direction of the person."""
    workload = mdp.Workload(mdp.Domain(SIZES), mdp.marginals([1, 2, 3]))
    strategy = mdp.select(workload, rounds=2)
    cells = np.ravel_multi_index(list(TABLE.values()), list(SIZES.values()))
    counts = np.bincount(cells, minlength=math.prod(SIZES.values()))
    person = np.ravel_multi_index(PERSON, list(SIZES.values()))
    matrices = {p.attributes: dense_measurement(p, workload.domain) for p in strategy.selection.plan.parts}
    for _ in range(RUNS):
        found = strategy.measure(table, mdp.Budget(mu=MU)).measurement
        assert isinstance(found.plan, Rounds)
        moved: Any = 0.0
        length: Any = 0.0
        for part, scale, values in zip(found.plan.parts, found.scales, found.values, strict=True):
            rows = matrices[part.attributes]
            moved += rows[:, person] @ (values - rows @ counts) / float(scale.exact) ** 2
            length += rows[:, person] @ rows[:, person] / float(scale.exact) ** 2
        yield moved / math.sqrt(length)


def limits(mean: float) -> tuple[float, float]:
    """Return between which a mean of this many normal values of variance 1 lies but for an alarm."""
    reach = float(stats.norm.isf(ALARM / 2)) / math.sqrt(RUNS)
    return mean - reach, mean + reach


def test_one_record_moves_both_rounds_as_far_as_is_stated() -> None:
    here, there = (np.array(list(statistics(table))) for table in (TABLE, one_more(TABLE)))
    for off in (here, there - MU):
        low, high = limits(0.0)
        assert low < off.mean() < high
        # noise that is too small in either round, or used again in the second
        low, high = stats.chi2(RUNS).ppf([ALARM / 2, 1 - ALARM / 2])
        assert low < (off**2).sum() < high


def test_a_second_round_that_spends_the_whole_budget_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shift is sqrt(3/2) times what is stated, which is seen with a probability above 0.999."""
    monkeypatch.setattr(measurement, "as_authorized", lambda *_: True)
    calibrated, times = calibration.calibrate, cycle((1, 2))

    def generous(plan: Any, allowed: Cost, *given: Any, **named: Any) -> Any:
        return calibrated(plan, Cost(allowed.value * next(times), GAUSSIAN), *given, **named)

    monkeypatch.setattr(measurement, "calibrate", generous)
    there = np.array(list(statistics(one_more(TABLE))))
    assert there.mean() > limits(MU)[1]


def rounds_of(found: ReadFile) -> list[ReadFile]:
    """Return the file as if it held the first round alone, and the second alone."""
    begun = len({tuple(sorted(part.order)) for part in found.parts})
    plain = replace(found, header={**found.header, "out_of_domain_counts": None})
    return [
        replace(whole, parts=found.parts[own], steps=found.steps[own], powers=found.powers[own])
        for whole, own in ((found, slice(begun)), (plain, slice(begun, None)))
    ]


@pytest.mark.parametrize("number", range(RELEASES))
def test_costs_of_both_rounds_follow_from_the_file(number: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([5, number])
    budget = random_budget(rng, GAUSSIAN)
    names = "abc"[: rng.integers(2, 4)]
    sizes = {name: int(rng.integers(2, 5)) for name in names}
    workload: list[Any] = [{"marginals": [1, 2]}]
    if rng.random() < 0.5:
        workload.append({"product": {"a": "prefix", "b": "identity"}})
    count = bool(rng.random() < 0.5)
    mdp.release(
        {
            "domain": {name: {"min": 0, "max": size - 1} for name, size in sizes.items()},
            "workload": workload,
            "privacy": {k: v for k, v in budget.as_dict().items() if k in _GIVEN and v is not None},
            "unit": {"records": budget.unit.records},
            "out_of_domain": {"count": count},
            "rounds": 2,
        },
        tmp_path / "out",
        table={name: rng.integers(0, size + 1, 50) for name, size in sizes.items()},
        noise="gaussian",
        accept_weak_privacy=True,
    )
    found = read(tmp_path / "out" / "measurement.mdp")
    first, second = rounds_of(found)
    assert count == ("out_of_domain_counts" in found.header)
    shape = tuple(sizes.values())
    if budget.neighbours == "add_remove":
        costs = [own.largest_move(shape) for own in (first, second)]
    else:
        costs = [own.largest_replacement(shape) / 4 for own in (first, second)]
    assert all(0 < cost <= found.stated * Fraction(500_001, 1_000_000) for cost in costs)
    assert sum(costs) <= found.stated
    assert honours(found.stated, 2, found.header["authorization"]["budget"])
    assert not honours(
        found.stated * Fraction(1_000_001, 1_000_000), 2, found.header["authorization"]["budget"]
    )
    assert mdp.verify_release(tmp_path / "out").holds


_GIVEN = ("rho", "mu", "epsilon", "delta", "neighbours")


def test_the_constants_are_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")
    assert f"{RUNS} times on each of two tables" in page
    assert f"of {RELEASES} random releases" in page
