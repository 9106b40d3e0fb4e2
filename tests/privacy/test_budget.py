import math
import pickle
from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.errors import PrivacyError
from matrixdp.noise import GAUSSIAN
from matrixdp.privacy import Budget, delta_of


def test_the_cost_of_each_definition():
    assert GAUSSIAN.cost(Budget(rho=0.1)).value == Fraction(1, 5)
    assert GAUSSIAN.cost(Budget(mu=Fraction(1, 3))).value == Fraction(1, 9)
    assert float(GAUSSIAN.cost(Budget(epsilon=1, delta=1e-6)).value) == pytest.approx(
        1 / 4.22468**2, rel=1e-5
    )


@pytest.mark.parametrize("arguments", [{"rho": 0.7}, {"mu": 0.7}, {"epsilon": 0.7, "delta": 1e-6}])
def test_replacing_costs_four_times_as_much(arguments):
    budget, replace = Budget(**arguments), Budget(**arguments, neighbours="replace")
    assert 4 * GAUSSIAN.cost(replace).value == GAUSSIAN.cost(budget).value
    assert replace.mu == budget.mu
    assert replace != budget


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


def test_pure_privacy_is_a_value_that_gaussian_noise_cannot_honour():
    budget = Budget(epsilon=1)
    for call in (lambda: GAUSSIAN.cost(budget), lambda: budget.mu):
        with pytest.raises(PrivacyError, match=r"budget\.delta: found none.*pure"):
            call()


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


def test_a_budget_beyond_float64_is_written_as_a_smaller_one():
    budget = Budget(rho=10**400)
    assert math.isfinite(budget.as_dict()["rho"])


@given(st.floats(1e-3, 100), st.floats(1e-3, 100))
def test_a_larger_budget_allows_a_larger_cost(first, second):
    low, high = sorted((first, second))
    assert GAUSSIAN.cost(Budget(rho=low)).value <= GAUSSIAN.cost(Budget(rho=high)).value
    assert GAUSSIAN.cost(Budget(mu=low)).value <= GAUSSIAN.cost(Budget(mu=high)).value


def test_a_budget_is_frozen_and_takes_names_only():
    budget = Budget(rho=1)
    with pytest.raises(FrozenInstanceError):
        budget.rho = 2  # type: ignore[misc, assignment]
    with pytest.raises(TypeError):
        Budget(1)  # type: ignore[call-arg]
