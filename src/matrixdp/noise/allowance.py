"""The one comparison of a cost with the budget that allows it."""

from __future__ import annotations

from matrixdp.errors import PrivacyError
from matrixdp.noise.noise import Cost
from matrixdp.privacy import Budget
from matrixdp.privacy.numbers import float_above, float_below

__all__ = ["checked_cost"]


def checked_cost(cost: Cost, budget: Budget) -> Cost:
    """Return the cost if the budget allows its noise that much, compared exactly; refuse it otherwise."""
    if not isinstance(budget, Budget):
        raise PrivacyError(f"budget: found a {type(budget).__name__}; expected a Budget")
    if not isinstance(cost, Cost):
        raise PrivacyError(f"privacy cost: found a {type(cost).__name__}; expected a Cost")
    allowed = cost.noise.cost(budget)
    if not cost <= allowed:
        raise PrivacyError(
            f"privacy cost: found {float_above(cost.value):.17g}; expected at most "
            f"{float_below(allowed.value):.17g}, which is what {budget!r} allows"
        )
    return cost
