"""The least budget that buys a given accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from typing import Literal

from matrixdp.errors import PrivacyError
from matrixdp.privacy.budget import Budget
from matrixdp.privacy.numbers import Number

__all__ = ["BUDGET_KINDS", "LeastBudget", "least_budget"]

BUDGET_KINDS = ("rho", "mu", "epsilon")
"""The parameter that is made least; epsilon with a delta, or alone."""

#: A budget is rounded up to so many significant digits.
_DIGITS = Context(prec=6, rounding=ROUND_CEILING)
_LARGEST = 2.0**100


@dataclass(frozen=True)
class LeastBudget:
    """Which parameter of a budget is made least, so that targets are met.

    Attributes
    ----------
    kind : {"rho", "mu", "epsilon"}
    delta : number or None
        For ``epsilon``; without it the budget is pure.
    neighbours : {"add_remove", "replace"}
    limit : Budget or None
        What it must not exceed, if anything.

    Examples
    --------
    >>> LeastBudget.within(Budget(mu=1))
    LeastBudget(kind='mu', delta=None, neighbours='add_remove')
    """

    kind: str
    delta: Number | None = None
    neighbours: Literal["add_remove", "replace"] = "add_remove"
    limit: Budget | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.kind not in BUDGET_KINDS:
            raise PrivacyError.at(("budget", "least"), repr(self.kind), " or ".join(BUDGET_KINDS))
        if self.delta is not None and self.kind != "epsilon":
            found = f"one with least {self.kind}"
            raise PrivacyError.at(("budget", "delta"), found, "it with least epsilon alone")
        self.reference()

    @staticmethod
    def within(limit: Budget) -> LeastBudget:
        """Return the form of a budget that must not be exceeded."""
        kind = limit.kind if limit.kind in ("rho", "mu") else "epsilon"
        return LeastBudget(kind, limit.delta, limit.neighbours, limit)

    def reference(self) -> Budget:
        """Return a budget of this form, with its parameter 1: what it is promised in decides the noise."""
        return self.budget(1)

    def least(self, noise: str, error_scale: float) -> Budget:
        """Return the least budget of this form; see `least_budget`. The limit is not looked at."""
        return least_budget(self.kind, noise, error_scale, delta=self.delta, neighbours=self.neighbours)

    def budget(self, value: Number) -> Budget:
        """Return the budget of this form with a given parameter."""
        given: dict[str, Number] = {self.kind: value}
        if self.delta is not None:
            given["delta"] = self.delta
        return Budget(**given, neighbours=self.neighbours)


def least_budget(
    kind: str,
    noise: str,
    error_scale: float,
    *,
    delta: Number | None = None,
    neighbours: Literal["add_remove", "replace"] = "add_remove",
) -> Budget:
    """Return the least budget under which variances at privacy cost 1 are divided by enough.

    Parameters
    ----------
    kind : {"rho", "mu", "epsilon"}
        The parameter that is made least.
    noise : {"gaussian", "laplace"}
    error_scale : float
        By what variances must be divided at least; see `Budget.error_scale`. Above 0.
    delta : number, optional
        For ``epsilon``; without it the budget is pure.
    neighbours : {"add_remove", "replace"}

    Returns
    -------
    Budget
        Its parameter has six significant digits, rounded up.

    Raises
    ------
    PrivacyError
        If the kind is unknown, delta is given for another, or the noise cannot honour such a budget at all.

    Examples
    --------
    >>> least_budget("rho", "gaussian", 0.25)
    Budget(rho=0.125, neighbours='add_remove')
    >>> least_budget("epsilon", "laplace", 0.5)
    Budget(epsilon=0.707107, neighbours='add_remove')
    """
    form = LeastBudget(kind, delta, neighbours)
    if not (math.isfinite(error_scale) and error_scale > 0):
        raise PrivacyError(f"error scale: found {error_scale!r}; expected a finite number above 0")

    def enough(value: float | Decimal) -> bool:
        return form.budget(value).error_scale(noise) >= error_scale

    low, high = 0.0, 1.0
    while not enough(high):
        low, high = high, 2.0 * high
        if high > _LARGEST:
            raise PrivacyError("targets: no budget below 2**100 meets them; expected larger standard errors")
    while high - low > 1e-7 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if enough(middle) else (middle, high)
    rounded = _DIGITS.create_decimal(Decimal(low)) if low else _DIGITS.create_decimal(Decimal(high))
    while not enough(rounded):
        rounded = _DIGITS.next_plus(rounded)
    return form.budget(rounded)
