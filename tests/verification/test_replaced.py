"""Releases under ``replace``: what they cost is checked by two programs, and forged ones are found."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.report.accuracy import accuracies
from matrixdp.selection.auto import select
from matrixdp.storage.formats import save_strategy
from tests.builders import saved
from tests.forging import forge_measurement, put
from tests.independent import found

DOMAIN = mdp.Domain({"sex": ["f", "m"], "age": 5, "code": 3})
TABLE = {"sex": ["f", "m", "x"], "age": [0, 1, 4], "code": [0, 1, 2]}
WORKLOAD = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2]), mdp.product(age="prefix", sex="identity"))
WEIGHED = mdp.Workload(
    mdp.Domain({"sex": 6, "age": 5}),
    mdp.product(sex="prefix", age="range"),
    mdp.product(sex="range", age="identity"),
)
BUDGET = mdp.Budget(mu=1, neighbours="replace", unit={"records": 2})
PURE = mdp.Budget(epsilon=1, neighbours="replace")


def released(
    folder: Path, workload: mdp.Workload = WORKLOAD, budget: mdp.Budget = BUDGET, **how: Any
) -> mdp.Release:
    measured = {"out_of_domain": how.pop("out_of_domain", None)}
    return saved(folder, workload, budget, TABLE if workload.domain == DOMAIN else None, measured, **how)


def failing(folder: Path) -> set[str]:
    return {finding.subject for finding in mdp.verify_release(folder).failed}


@pytest.mark.parametrize(
    ("workload", "budget", "how"),
    [
        (WORKLOAD, BUDGET, {"mechanism": "residual"}),
        (
            WORKLOAD,
            BUDGET,
            {"mechanism": "residual", "out_of_domain": {"count": True, "sex": {"count": True}}},
        ),
        (WORKLOAD, PURE, {"mechanism": "hdmm", "out_of_domain": {"count": True}}),
        (WEIGHED, BUDGET, {"mechanism": "residual", "sub_solver": "product"}),
        (mdp.Workload(mdp.Domain({"a": 8, "b": 8}), mdp.kway(2, "range")), BUDGET, {"mechanism": "quadtree"}),
        (mdp.Workload(DOMAIN, mdp.marginals([0])), BUDGET, {"out_of_domain": {"count": True}}),
        (mdp.Workload(DOMAIN, mdp.marginals([0])), PURE, {"out_of_domain": {"count": True}}),
    ],
)
def test_both_programs_find_the_same_cost(workload: Any, budget: Any, how: Any, tmp_path: Path) -> None:
    release = released(tmp_path / "out", workload, budget, **how)
    assert mdp.verify_release(tmp_path / "out").failed == ()
    holds, fails = found(tmp_path / "out")
    assert fails == []
    cost = release.measurement.authorization.cost.value
    assert f"cost from the matrices and scales: {float(cost):.9g} = {cost}" in holds


def test_a_count_of_what_is_out_of_domain_is_paid_for_where_the_plan_leaves_nothing(tmp_path: Path) -> None:
    """The total moves by 1 if a record is exchanged for one out of domain, and so does the count of these."""
    total = mdp.Workload(DOMAIN, mdp.marginals([0]))
    budget = mdp.Budget(mu=1, neighbours="replace")
    alone = released(tmp_path / "alone", total, budget)
    [scale] = alone.measurement.scales
    assert float(scale.exact) == pytest.approx(1.0)
    both = released(tmp_path / "both", total, budget, out_of_domain={"count": True})
    [scale], counts = both.measurement.scales, both.measurement.out_of_domain_counts
    moved = 1 / scale.exact**2 + 1 / counts.scale.exact**2
    assert moved <= 4 * both.measurement.authorization.cost.value <= 1
    assert float(moved) == pytest.approx(1.0)
    assert float(counts.cost.value) == pytest.approx(0.25)
    assert "costs the sum of the two" in mdp.explain_release(tmp_path / "both")


@pytest.mark.parametrize("share", [Fraction(1, 2), Fraction(3, 4), Fraction(999, 1000), Fraction(1001, 1000)])
def test_another_cost_than_that_of_the_pairs_is_found(share: Fraction, tmp_path: Path) -> None:
    released(tmp_path / "out", mechanism="residual")
    times = lambda cost: str(Fraction(cost) * share)  # noqa: E731
    forge_measurement(tmp_path / "out", lambda header, _: put(header, ("authorization", "cost"), times))
    assert "measurement" in failing(tmp_path / "out")
    assert any(words.startswith("cost from the matrices") for words in found(tmp_path / "out")[1])


def test_sizes_of_other_attributes_are_found(tmp_path: Path) -> None:
    released(tmp_path / "out", mechanism="residual")
    forge_measurement(tmp_path / "out", lambda header, _: put(header, ("plan", "sizes", 1), lambda _: 4))
    assert "measurement" in failing(tmp_path / "out")
    with pytest.raises(ValueError, match="a column for each combination"):
        found(tmp_path / "out")


def test_strategies_that_were_not_scaled_are_when_they_are_read(tmp_path: Path) -> None:
    plain = select(WORKLOAD, noise=GAUSSIAN, mechanism="residual")
    save_strategy(tmp_path / "old.mdp", dataclasses.replace(plain, neighbours="replace"))
    again = mdp.Strategy.load(tmp_path / "old.mdp")
    now = mdp.select(WORKLOAD, noise="gaussian", mechanism="residual", neighbours="replace")
    assert again.rmse(BUDGET) == pytest.approx(now.rmse(BUDGET), rel=1e-12)
    assert again.origin == now.origin
    now.save(tmp_path / "new.mdp")
    assert mdp.Strategy.load(tmp_path / "new.mdp").origin == now.origin
    # the lower bound of the one is that of the other, the gap is not
    assert now.certificate.lower_bound == pytest.approx(plain.certificate.lower_bound)
    assert now.certificate.gap > 0.5 > 1e-2 > plain.certificate.gap


def test_a_page_tells_bounds_for_replacements_that_hold(tmp_path: Path) -> None:
    histogram = mdp.Workload(mdp.Domain({"a": 8}), mdp.marginals([1]))
    budget = mdp.Budget(mu=1, neighbours="replace")
    released(tmp_path / "out", histogram, budget)
    record = json.loads((tmp_path / "out" / "release.json").read_text(encoding="utf-8"))
    told = accuracies(mdp.load_release(tmp_path / "out"), record)
    assert told.together.rmse == pytest.approx(np.sqrt(2), rel=1e-6)
    assert told.together.least == pytest.approx(1.0, rel=1e-6)
    assert told.rows[0].least == pytest.approx(1.0, rel=1e-6)
    assert not told.exact
    assert told.straight == pytest.approx(1.0)
