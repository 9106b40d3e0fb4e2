"""The least budget that buys a given accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Context, Decimal
from typing import Literal

from matrixdp.errors import PrivacyError
from matrixdp.privacy.budget import Budget
from matrixdp.privacy.numbers import Number
from matrixdp.privacy.unit import Unit

__all__ = ["BUDGET_KINDS", "LeastBudget"]

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
    unit : Unit
    limit : Budget or None
        What it must not exceed, if anything.

    Examples
    --------
    >>> LeastBudget.within(Budget(mu=1))
    LeastBudget(kind='mu', delta=None, neighbours='add_remove', unit=Unit(records=1))
    """

    kind: str
    delta: Number | None = None
    neighbours: Literal["add_remove", "replace"] = "add_remove"
    unit: Unit = field(default_factory=Unit)
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
        return LeastBudget(kind, limit.delta, limit.neighbours, limit.unit, limit)

    def reference(self) -> Budget:
        """Return a budget of this form, with its parameter 1: what it is promised in decides the noise."""
        return self.budget(1)

    def least(self, error_scale: Callable[[Budget], float], needed: float) -> Budget:
        """Return the least budget of this form that divides variances at privacy cost 1 by enough.

        ``error_scale``, such as that of a noise, says by what a budget divides them. The parameter has six
        significant digits, rounded up; the limit is not looked at.

        Examples
        --------
        >>> LeastBudget("rho").least(lambda budget: 2.0 * float(budget.rho), 0.25)
        Budget(rho=0.125, neighbours='add_remove')
        >>> LeastBudget("epsilon").least(lambda budget: float(budget.epsilon) ** 2, 0.5)
        Budget(epsilon=0.707107, neighbours='add_remove')
        """
        if not (math.isfinite(needed) and needed > 0):
            raise PrivacyError(f"error scale: found {needed!r}; expected a finite number above 0")

        def enough(value: float | Decimal) -> bool:
            return error_scale(self.budget(value)) >= needed

        low, high = 0.0, 1.0
        while not enough(high):
            low, high = high, 2.0 * high
            if high > _LARGEST:
                raise PrivacyError(
                    "targets: no budget below 2**100 meets them; expected larger standard errors"
                )
        while high - low > 1e-7 * high:
            middle = (low + high) / 2.0
            low, high = (low, middle) if enough(middle) else (middle, high)
        rounded = _DIGITS.create_decimal(Decimal(low or high))
        while not enough(rounded):
            rounded = _DIGITS.next_plus(rounded)
        return self.budget(rounded)

    def budget(self, value: Number) -> Budget:
        """Return the budget of this form with a given parameter."""
        given: dict[str, Number] = {self.kind: value}
        if self.delta is not None:
            given["delta"] = self.delta
        return Budget(**given, neighbours=self.neighbours, unit=self.unit)
