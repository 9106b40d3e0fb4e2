"""Budgets, their unit of privacy, and that every figure of a budget follows from it."""

import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost
from matrixdp.privacy import Budget, Clause, LeastBudget, Unit, delta_warnings
from matrixdp.privacy.conversions import largest_mu
from matrixdp.strategy.strategy import meet_targets

WORKLOAD = mdp.Workload(mdp.Domain({"sex": ["female", "male"], "age": 6}), mdp.marginals([1, 2]))
UNITS = [
    Unit(), Unit(records=3), Unit(records=2, id="person"), Unit(id="a person's 'name'"),
    Unit(per="age", max_values=4), Unit(5, "person", ["sex", "age"], 3, 2),
    Unit(id="person", per="age", max_values=3, constant="sex"),
]  # fmt: skip


def test_the_cost_of_each_definition():
    assert GAUSSIAN.cost(Budget(rho=0.1)).value == Fraction(1, 5)
    assert GAUSSIAN.cost(Budget(mu=Fraction(1, 3))).value == Fraction(1, 9)
    both = Budget(epsilon=1, delta=1e-6)
    assert GAUSSIAN.cost(both).value == largest_mu(both.epsilon, both.delta) ** 2


KINDS = {"rho": {"rho": 1}, "mu": {"mu": 1}, "approx": {"epsilon": 1, "delta": 0.1}, "pure": {"epsilon": 1}}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind):
    arguments: Any = KINDS[kind]
    budget = Budget(**arguments)
    assert budget.kind == kind
    assert Budget(**budget.as_dict()) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget  # noqa: S301
    assert hash(Budget(**arguments)) == hash(budget)
    assert repr(budget).startswith("Budget(")


@given(st.floats(1e-300, 1e300))
def test_a_float_budget_is_its_shortest_text(rho):
    budget = Budget(rho=rho)
    assert budget.rho == Fraction(repr(rho)) == Budget(rho=Decimal(repr(rho))).rho
    assert budget.mu**2 <= 2 * budget.rho
    assert Budget(**budget.as_dict()) == budget


@given(st.fractions(Fraction(1, 10**6), 10**6))
def test_the_written_form_claims_no_more(mu):
    assert Budget(**Budget(mu=mu).as_dict()).mu <= mu
    assert math.isfinite(Budget(rho=10**400 * mu).as_dict()["rho"])


def test_a_budget_is_frozen_and_takes_names_only():
    budget = Budget(rho=1)
    with pytest.raises(FrozenInstanceError):
        budget.rho = 2  # type: ignore[misc, assignment]
    with pytest.raises(TypeError):
        Budget(1)  # type: ignore[call-arg]


def test_a_budget_may_have_more_digits_than_python_writes():
    assert Budget(rho=10**5000).rho == 10**5000


@pytest.mark.parametrize("needed", [1e-5, 0.3, 1.0, 1.0000004, 77.7])
def test_the_least_budget_is_enough_and_a_smaller_one_is_not(needed: float):
    found = LeastBudget("mu").least(lambda budget: float(budget.mu), needed)
    assert float(found.mu) >= needed
    assert float(found.mu) <= needed * (1 + 1.1e-5)
    assert isinstance(found, Budget)


@pytest.mark.parametrize(
    ("budget", "records", "says"),
    [
        (Budget(rho=1), 10, None),
        (Budget(epsilon=1), 10, None),
        (Budget(epsilon=1, delta=Fraction(1, 10**4)), None, None),
        (Budget(epsilon=1, delta=1.1e-4), None, "above 0.0001:"),
        (Budget(epsilon=1, delta=Fraction(1, 50_000)), 50_000, None),
        (Budget(epsilon=1, delta=Fraction(1, 50_000)), 50_001, "above 1 / 50,001, one over the number"),
        (Budget(epsilon=1, delta=0.5), 100, "above 1 / 100, one over the number of records and above 0.0001"),
    ],
)
def test_a_large_delta_is_told(budget, records, says):
    told = delta_warnings(budget, records)
    assert len(told) == (says is not None)
    assert says is None or says in told[0]


def test_a_clause_is_its_sentence():
    clause = Clause("randomness", "The generator is sound.", {"bits": 3})
    assert clause == "The generator is sound."
    assert clause.as_dict() == {"id": "randomness", "parameters": {"bits": 3}, "text": str(clause)}
    assert clause.meaning == Clause("randomness", "In other words.", {"bits": 3}).meaning
    assert clause.meaning != Clause("randomness", str(clause), {"bits": 4}).meaning
    assert Clause.of("One.").meaning != Clause.of("Another.").meaning
    assert Clause.of(clause) is clause
    for same in (copy.deepcopy(clause), pickle.loads(pickle.dumps(clause))):  # noqa: S301
        assert (same, same.meaning) == (clause, clause.meaning)


@pytest.mark.parametrize("unit", UNITS)
def test_a_budget_carries_its_unit(unit):
    budget = Budget(rho=0.5, unit=unit)
    assert budget.unit == unit == Unit.of(unit.as_dict())
    assert Budget(**budget.as_dict()) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget  # noqa: S301
    assert eval(repr(budget), {"Budget": Budget, "Unit": Unit}) == budget  # noqa: S307
    assert (budget == Budget(rho=0.5)) == (unit == Unit())
    with pytest.raises(FrozenInstanceError):
        unit.records = 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Unit(12, "person", "month"), Unit(id="person", per=["month"], max_values=12, max_records_each=1)),
        (Unit(100, "person", "month", 3, 5), Unit(15, "person", "month", 3, 5)),
        (Unit(3, "person", "month", 9, 50), Unit(3, "person", "month", 3, 3)),
        (Unit(7, per=["region", "month"]), Unit(7, per=("month", "region"))),
        (Unit(4, "p", "m", constant=["sex", "born"]), Unit(4, "p", "m", constant=("born", "sex"))),
    ],
)
def test_units_of_one_meaning_are_equal(one, other):
    assert one == other
    assert (hash(one), repr(one), one.as_dict()) == (hash(other), repr(other), other.as_dict())


def test_one_record_is_not_worth_a_word():
    assert repr(Budget(rho=0.5)) == "Budget(rho=0.5, neighbours='add_remove')"
    assert Budget(rho=0.5, unit=None).unit == Unit()
    assert Budget(rho=0.5).as_dict()["unit"] == {"records": 1}


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@given(st.integers(1, 2**53 - 1), st.sampled_from(["add_remove", "replace"]))
def test_costs_are_divided_by_the_records_that_move(noise, records, neighbours):
    name = "person" if records % 2 else None
    budget = Budget(mu=1, neighbours=neighbours, unit=Unit(records, name))
    moved = records * (2 if neighbours == "replace" else 1)
    assert noise.cost(budget) == Cost(noise.cost(Budget(mu=1)).value / moved**noise.norm, noise)


@pytest.mark.parametrize(("noise", "rho"), [("gaussian", 0.5), ("laplace", 0.02)])
def test_standard_errors_follow_the_unit(noise, rho):
    """Of noise whose variance grows with the square of its scale, as that on integers does not."""
    strategy = mdp.select(WORKLOAD, noise=noise)
    one, three = Budget(rho=rho), Budget(rho=rho, unit=Unit(records=3))
    assert strategy.rmse(three) == pytest.approx(3 * strategy.rmse(one), rel=1e-12)
    assert strategy.max_stddev(three) == pytest.approx(3 * strategy.max_stddev(one), rel=1e-12)
    table = {"sex": ["male"] * 5, "age": [1, 2, 3, 4, 5]}
    released = [strategy.measure(table, budget).reconstruct() for budget in (one, three)]
    errors = [release.answers["stddev"].to_numpy() for release in released]
    np.testing.assert_allclose(errors[1], 3 * errors[0], rtol=1e-6)


@pytest.mark.parametrize("kind", ["rho", "mu"])
def test_targets_take_more_from_a_larger_unit(kind):
    strategy = mdp.select(WORKLOAD, targets={"all": 4.0})
    unit = Unit(records=3)
    budget = strategy.least_budget(kind, unit=unit)
    assert budget.unit == unit
    assert strategy.max_stddev(budget) <= 4.0
    least = strategy.least_budget(kind)
    ratio = float(getattr(budget, kind) / getattr(least, kind))
    assert ratio == pytest.approx(9 if kind == "rho" else 3, rel=1e-4)
    met = meet_targets(strategy, {"all": 4.0}, LeastBudget(kind, unit=unit))
    assert met == budget
    limit = Budget(rho=100, unit=unit)
    assert LeastBudget.within(limit).reference().unit == unit
    assert meet_targets(strategy, {"all": 4.0}, LeastBudget.within(limit)).unit == unit
    within = LeastBudget.within(Budget(**{kind: getattr(least, kind)}, unit=unit))
    with pytest.raises(mdp.PrivacyError, match=r"more than privacy allows: .*3 records a person"):
        meet_targets(strategy, {"all": 4.0}, within)


@pytest.mark.parametrize("unit", UNITS)
def test_a_measurement_keeps_its_unit(unit, tmp_path):
    table = {"sex": ["male"] * 5, "age": [1, 2, 3, 4, 5], unit.id or "other": [1, 1, 1, 2, 3]}
    budget = Budget(rho=0.5, unit=unit)
    strategy = mdp.select(WORKLOAD, budget=budget)
    release = strategy.measure(table, budget).reconstruct()
    mdp.save_release(release, tmp_path / "release")
    again = mdp.load_release(tmp_path / "release")
    assert again.measurement.authorization.budget == budget
    assert again.statement.unit == unit
