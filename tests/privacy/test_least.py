"""The least budget of a form, and forms that are none."""

import pytest

from matrixdp.privacy import Budget, LeastBudget


@pytest.mark.parametrize("needed", [1e-5, 0.3, 1.0, 1.0000004, 77.7])
def test_the_least_budget_is_enough_and_a_smaller_one_is_not(needed: float):
    found = LeastBudget("mu").least(lambda budget: float(budget.mu), needed)
    assert float(found.mu) >= needed
    assert float(found.mu) <= needed * (1 + 1.1e-5)
    assert isinstance(found, Budget)
