import json
import math
from dataclasses import FrozenInstanceError
from datetime import datetime, timedelta
from fractions import Fraction

import pytest

from matrixdp.errors import PrivacyError
from matrixdp.privacy import Authorization, Budget, authorize

TINY = Fraction(1, 10**100)


@pytest.mark.parametrize(
    "budget", [Budget(rho=0.1), Budget(mu=0.3, neighbours="replace"), Budget(epsilon=1, delta=1e-6)]
)
def test_the_whole_budget_and_not_a_hair_more(budget):
    allowed = budget.gaussian_cost()
    for cost in (allowed, allowed - TINY, TINY):
        assert authorize(cost, budget).cost == cost
    with pytest.raises(PrivacyError, match=r"privacy cost: found .*; expected at most"):
        authorize(allowed + TINY, budget)


@pytest.mark.parametrize(
    "cost", [0, -1, Fraction(0), Fraction(-1, 2), 0.5, math.nan, math.inf, -math.inf, None, True, "1"]
)
def test_bad_costs_are_refused(cost):
    with pytest.raises(PrivacyError, match="privacy cost"):
        authorize(cost, Budget(mu=10))
    with pytest.raises(PrivacyError, match="privacy cost"):
        Authorization(cost, Budget(mu=10), "2024-01-01T00:00:00+00:00")


@pytest.mark.parametrize("budget", [None, 1, {"rho": 1}])
def test_a_budget_is_a_budget(budget):
    with pytest.raises(PrivacyError, match="expected a Budget"):
        authorize(Fraction(1), budget)


def test_pure_privacy_is_refused():
    with pytest.raises(PrivacyError, match="pure"):
        authorize(TINY, Budget(epsilon=100))


def test_a_cost_beyond_float64_is_refused_in_words():
    with pytest.raises(PrivacyError, match="found inf"):
        authorize(Fraction(10) ** 400, Budget(mu=1))


def test_a_budget_beyond_float64_is_refused_in_words():
    with pytest.raises(PrivacyError, match="expected at most"):
        authorize(Fraction(10) ** 900, Budget(mu=10**400))


def test_no_authorization_above_the_budget_can_be_built():
    with pytest.raises(PrivacyError):
        Authorization(Fraction(2), Budget(mu=1), "2024-01-01T00:00:00+00:00")


def test_the_record():
    record = authorize(1, Budget(mu=1))
    assert isinstance(record.cost, Fraction)
    assert record.ledger is None
    assert "No ledger" in record.note
    assert datetime.fromisoformat(record.time).utcoffset() == timedelta(0)
    assert json.loads(json.dumps(record.as_dict()))["cost"] == "1"
    with pytest.raises(FrozenInstanceError):
        record.cost = Fraction(2)
