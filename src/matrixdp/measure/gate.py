"""The one gate before noise: no cost is spent that was not authorized here.

Nothing keeps an account across releases yet: an authorization says so, and this is where an account
would be debited.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

from matrixdp.noise import Cost, checked_cost
from matrixdp.privacy import Budget

__all__ = ["Authorization", "authorize"]


@dataclass(frozen=True)
class Authorization:
    """The record of a cost that the gate let through; it cannot be made for a cost above the budget.

    Parameters
    ----------
    cost : Cost
        The exact privacy cost of one record added or removed, with the noise that it is the cost of.
    budget : Budget
        What may be spent.
    time : str
        When it was authorized: UTC, ISO 8601.

    Attributes
    ----------
    ledger : None
        No ledger was debited.
    note : str
        The same in words.

    Raises
    ------
    PrivacyError
        If the cost is not within the budget.
    """

    cost: Cost
    budget: Budget
    time: str
    ledger: ClassVar[None] = None
    note: ClassVar[str] = (
        "No ledger was used: earlier or later releases about the same people add to this cost."
    )

    def __post_init__(self) -> None:
        checked_cost(self.cost, self.budget)

    def as_dict(self) -> dict[str, object]:
        """Return the record as JSON has it; the exact cost is text, numerator/denominator."""
        return {
            "noise": self.cost.noise.name,
            "cost": str(self.cost.value),
            "budget": self.budget.as_dict(),
            "time": self.time,
            "ledger": self.ledger,
            "note": self.note,
        }


def authorize(cost: Cost, budget: Budget) -> Authorization:
    """Authorize one measurement of an exact, recomputed cost, before any noise is drawn.

    Raises
    ------
    PrivacyError
        If the cost exceeds the budget, or the budget is one that the noise cannot honour.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from matrixdp.noise import GAUSSIAN
    >>> authorize(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5)).ledger is None
    True
    """
    return Authorization(cost, budget, datetime.now(UTC).isoformat(timespec="seconds"))
