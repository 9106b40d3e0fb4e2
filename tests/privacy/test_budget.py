import copy
import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.noise import GAUSSIAN
from matrixdp.privacy import Budget, Clause, LeastBudget, delta_of, delta_warnings


def test_the_cost_of_each_definition():
    assert GAUSSIAN.cost(Budget(rho=0.1)).value == Fraction(1, 5)
    assert GAUSSIAN.cost(Budget(mu=Fraction(1, 3))).value == Fraction(1, 9)
    assert float(GAUSSIAN.cost(Budget(epsilon=1, delta=1e-6)).value) == pytest.approx(
        1 / 4.22468**2, rel=1e-5
    )


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"rho": 1}, "rho"),
        ({"mu": 1}, "mu"),
        ({"epsilon": 1, "delta": 0.1}, "approx"),
        ({"epsilon": 1}, "pure"),
    ],
)
def test_kinds(arguments, kind):
    budget = Budget(**arguments)
    assert budget.kind == kind
    assert Budget(**budget.as_dict()) == budget
    assert pickle.loads(pickle.dumps(budget)) == budget  # noqa: S301
    assert hash(Budget(**arguments)) == hash(budget)
    assert repr(budget).startswith("Budget(")


@given(st.floats(1e-3, 100), st.floats(1e-12, 0.99))
@settings(deadline=None, max_examples=50)
def test_the_cost_keeps_to_epsilon_and_delta(epsilon, delta):
    budget = Budget(epsilon=epsilon, delta=delta)
    assert budget.mu**2 == GAUSSIAN.cost(budget).value
    assert delta_of(budget.mu, budget.epsilon) <= budget.delta * (1 + Fraction(1, 2**50))


@given(st.floats(1e-300, 1e300))
def test_a_float_budget_claims_no_more_than_its_text_or_its_value(rho):
    budget = Budget(rho=rho)
    assert budget.rho == min(Fraction(rho), Fraction(repr(rho)))
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
