"""The least budget of a form, and forms that are none."""

import math

import pytest

from matrixdp.errors import PrivacyError
from matrixdp.privacy import Budget, LeastBudget


def test_forms_that_are_none_are_refused():
    with pytest.raises(PrivacyError, match=r"budget\.least: found 'sigma'; expected rho"):
        LeastBudget("sigma")
    with pytest.raises(
        PrivacyError, match=r"budget\.delta: found one with least mu; expected it with least epsilon"
    ):
        LeastBudget("mu", delta=1e-6)


@pytest.mark.parametrize("needed", [0, -1.0, math.inf, math.nan])
def test_the_scale_of_errors_is_a_number(needed: float):
    with pytest.raises(PrivacyError, match=r"error scale: found .* expected a finite number above 0"):
        LeastBudget("rho").least(lambda budget: float(budget.rho), needed)


def test_what_no_budget_reaches_is_refused():
    with pytest.raises(PrivacyError, match=r"no budget below 2\*\*100 meets them"):
        LeastBudget("rho").least(lambda _budget: 0.5, 1.0)


@pytest.mark.parametrize("needed", [1e-5, 0.3, 1.0, 1.0000004, 77.7])
def test_the_least_budget_is_enough_and_a_smaller_one_is_not(needed: float):
    found = LeastBudget("mu").least(lambda budget: float(budget.mu), needed)
    assert float(found.mu) >= needed
    assert float(found.mu) <= needed * (1 + 1.1e-5)
    assert isinstance(found, Budget)
