"""The one gate before noise: no cost is spent that was not authorized here.

Nothing keeps an account across releases yet: an authorization says so, and this is where an account
would be debited.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from numbers import Rational
from typing import ClassVar

from matrixdp.errors import PrivacyError
from matrixdp.privacy.budget import Budget
from matrixdp.privacy.numbers import float_above, float_below

__all__ = ["Authorization", "authorize", "checked_cost"]


def checked_cost(cost: object, budget: object, noise: str = "gaussian") -> Fraction:
    """Return the cost as a Fraction if the budget allows it.

    Parameters
    ----------
    cost : Fraction or int
        The exact ``add_remove`` privacy cost.
    budget : Budget
        What may be spent.
    noise : {"gaussian", "laplace"}
        The noise that it is the cost of: mu squared, or epsilon.

    Returns
    -------
    Fraction
        The cost: above 0 and at most ``budget.cost(noise)``, compared exactly.

    Raises
    ------
    PrivacyError
        If the cost is not an exact number above 0 within the budget.

    Examples
    --------
    >>> checked_cost(Fraction(1, 2), Budget(mu=1))
    Fraction(1, 2)
    """
    if not isinstance(budget, Budget):
        raise PrivacyError(f"budget: found a {type(budget).__name__}; expected a Budget")
    if isinstance(cost, bool) or not isinstance(cost, Rational):
        raise PrivacyError(f"privacy cost: found a {type(cost).__name__}; expected an exact number above 0")
    exact = Fraction(int(cost.numerator), int(cost.denominator))
    if exact <= 0:
        found = "0" if exact == 0 else "a negative number"
        raise PrivacyError(f"privacy cost: found {found}; expected an exact number above 0")
    allowed = budget.cost(noise)
    if exact > allowed:
        raise PrivacyError(
            f"privacy cost: found {float_above(exact):.17g}; expected at most {float_below(allowed):.17g}, "
            f"which is what {budget!r} allows"
        )
    return exact


@dataclass(frozen=True)
class Authorization:
    """The record of a cost that the gate let through; it cannot be made for a cost above the budget.

    Parameters
    ----------
    cost : Fraction
        The exact ``add_remove`` privacy cost.
    budget : Budget
        What may be spent.
    time : str
        When it was authorized: UTC, ISO 8601.
    noise : {"gaussian", "laplace"}
        The noise that it is the cost of: mu squared, or epsilon.

    Attributes
    ----------
    ledger : None
        No ledger was debited.
    note : str
        The same in words.

    Raises
    ------
    PrivacyError
        If the cost is not an exact number above 0 within the budget.
    """

    cost: Fraction
    budget: Budget
    time: str
    noise: str = "gaussian"
    ledger: ClassVar[None] = None
    note: ClassVar[str] = (
        "No ledger was used: earlier or later releases about the same people add to this cost."
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "cost", checked_cost(self.cost, self.budget, self.noise))

    def as_dict(self) -> dict[str, object]:
        """Return the record as JSON has it; the exact cost is text, numerator/denominator."""
        return {
            "noise": self.noise,
            "cost": str(self.cost),
            "budget": self.budget.as_dict(),
            "time": self.time,
            "ledger": self.ledger,
            "note": self.note,
        }


def authorize(cost: Fraction, budget: Budget, noise: str = "gaussian") -> Authorization:
    """Authorize one measurement, before any noise is drawn.

    Parameters
    ----------
    cost : Fraction
        The exact ``add_remove`` privacy cost of what will be measured, recomputed from it.
    budget : Budget
        What may be spent.
    noise : {"gaussian", "laplace"}
        The noise that it is the cost of: mu squared, or epsilon.

    Returns
    -------
    Authorization
        A frozen record for the release.

    Raises
    ------
    PrivacyError
        If the cost is not an exact number above 0, exceeds the budget, or the budget is one that
        the noise cannot honour.

    Examples
    --------
    >>> authorize(Fraction(1), Budget(rho=0.5)).ledger is None
    True
    >>> authorize(Fraction(0), Budget(mu=1))
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: privacy cost: found 0; expected an exact number above 0
    """
    return Authorization(cost, budget, datetime.now(UTC).isoformat(timespec="seconds"), noise)
