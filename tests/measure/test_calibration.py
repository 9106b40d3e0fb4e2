"""Exact costs: met and never exceeded, authorized before any noise, and recorded."""

import json
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta
from fractions import Fraction

import pytest

import matrixdp as mdp
from matrixdp.measure import measurement
from matrixdp.measure.measurement import authorize, calibrate, plan_cost
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.privacy import Budget
from tests.measure.plans import plan

BUDGETS = [Budget(rho=0.1), Budget(mu=0.3, neighbours="replace"), Budget(epsilon=1, delta=1e-6)]


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("kind", ["direct", "pooled", "local"])
@pytest.mark.parametrize("allowed", [Fraction(1, 10), Fraction(1), Fraction(7, 3)])
def test_the_exact_cost_is_just_below_what_is_allowed(noise, kind, allowed):
    found = plan(kind, noise)
    scales, cost = calibrate(found, Cost(allowed, noise), 2**33)
    assert 0.9999999 * allowed < cost.value <= allowed
    assert plan_cost(found, scales) == cost
    pairs = zip(found.parts, scales, strict=True)
    exact = sum(Fraction(noise.power_sum(part)) / scale.exact**noise.norm for part, scale in pairs)
    assert exact <= cost.value < exact * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_whole_budget_may_be_spent(budget):
    allowed = GAUSSIAN.cost(budget).value
    for cost in (allowed, allowed - Fraction(1, 10**100), Fraction(1, 10**100)):
        assert authorize(Cost(cost, GAUSSIAN), budget).cost.value == cost
    assert authorize(Cost(Fraction(1, 2), LAPLACE), Budget(epsilon=1)).cost.noise == LAPLACE


def test_the_record():
    record = authorize(Cost(Fraction(1), GAUSSIAN), Budget(mu=1))
    assert isinstance(record.cost.value, Fraction)
    assert record.ledger is None
    assert "No ledger" in record.note
    assert datetime.fromisoformat(record.time).utcoffset() == timedelta(0)
    assert json.loads(json.dumps(record.as_dict()))["cost"] == "1"
    with pytest.raises(FrozenInstanceError):
        record.cost = Cost(Fraction(2), GAUSSIAN)  # type: ignore[misc]


def test_no_noise_is_drawn_where_what_comes_before_it_fails(monkeypatch):
    workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals([0, 1]))
    strategy, steps = mdp.select(workload), []
    real = measurement.noisy
    monkeypatch.setattr(measurement, "noisy", lambda *given: steps.append("noise") or real(*given))

    def stop():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        strategy.measure({"sex": ["male"]}, Budget(mu=1), before_noise=stop)
    assert steps == []
    strategy.measure({"sex": ["male"]}, Budget(mu=1), before_noise=lambda: steps.append("before"))
    assert steps == ["before"] + ["noise"] * (len(steps) - 1)
    assert len(steps) > 1
