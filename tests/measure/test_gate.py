import json
import math
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta
from fractions import Fraction

import pytest

import matrixdp as mdp
from matrixdp.errors import PrivacyError
from matrixdp.measure import measurement
from matrixdp.measure.measurement import Authorization, authorize
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.privacy import Budget

TINY = Fraction(1, 10**100)


def gaussian(value):
    return Cost(value, GAUSSIAN)


@pytest.mark.parametrize(
    "budget", [Budget(rho=0.1), Budget(mu=0.3, neighbours="replace"), Budget(epsilon=1, delta=1e-6)]
)
def test_the_whole_budget_and_not_a_hair_more(budget):
    allowed = GAUSSIAN.cost(budget)
    for cost in (allowed, gaussian(allowed.value - TINY), gaussian(TINY)):
        assert authorize(cost, budget).cost == cost
    with pytest.raises(PrivacyError, match=r"privacy cost: found .*; expected at most"):
        authorize(allowed + gaussian(TINY), budget)


@pytest.mark.parametrize(
    "cost", [0, -1, Fraction(0), Fraction(-1, 2), 0.5, math.nan, math.inf, -math.inf, None, True, "1"]
)
def test_bad_costs_are_refused(cost):
    with pytest.raises(PrivacyError, match="privacy cost"):
        authorize(gaussian(cost), Budget(mu=10))
    with pytest.raises(PrivacyError, match="privacy cost"):
        Authorization(cost, Budget(mu=10), "2024-01-01T00:00:00+00:00")


def test_a_cost_says_of_which_noise_it_is():
    with pytest.raises(PrivacyError, match="found a Fraction; expected a Cost"):
        authorize(Fraction(1), Budget(mu=10))  # type: ignore[arg-type]
    assert authorize(Cost(Fraction(1, 2), LAPLACE), Budget(epsilon=1)).cost.noise == LAPLACE
    for mixed in (lambda one, two: one + two, lambda one, two: one <= two):
        with pytest.raises(PrivacyError, match="noise in a plan for"):
            mixed(gaussian(1), Cost(Fraction(1), LAPLACE))


@pytest.mark.parametrize("budget", [None, 1, {"rho": 1}])
def test_a_budget_is_a_budget(budget):
    with pytest.raises(PrivacyError, match="expected a Budget"):
        authorize(gaussian(1), budget)


def test_pure_privacy_is_refused():
    with pytest.raises(PrivacyError, match="pure"):
        authorize(gaussian(TINY), Budget(epsilon=100))


def test_a_cost_beyond_float64_is_refused_in_words():
    with pytest.raises(PrivacyError, match="found inf"):
        authorize(gaussian(Fraction(10) ** 400), Budget(mu=1))


def test_a_budget_beyond_float64_is_refused_in_words():
    with pytest.raises(PrivacyError, match="expected at most"):
        authorize(gaussian(Fraction(10) ** 900), Budget(mu=10**400))


def test_no_authorization_above_the_budget_can_be_built():
    with pytest.raises(PrivacyError):
        Authorization(gaussian(2), Budget(mu=1), "2024-01-01T00:00:00+00:00")


def test_the_record():
    record = authorize(gaussian(1), Budget(mu=1))
    assert isinstance(record.cost.value, Fraction)
    assert record.ledger is None
    assert "No ledger" in record.note
    assert datetime.fromisoformat(record.time).utcoffset() == timedelta(0)
    assert json.loads(json.dumps(record.as_dict()))["cost"] == "1"
    with pytest.raises(FrozenInstanceError):
        record.cost = gaussian(2)  # type: ignore[misc]


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
