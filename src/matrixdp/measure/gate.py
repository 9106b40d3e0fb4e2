"""The one gate before noise: no cost is spent that was not authorized here, and debited to the ledger."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from matrixdp.errors import PrivacyError
from matrixdp.ledger import Ledger, LedgerEntry, Reservation
from matrixdp.noise import Cost, checked_cost
from matrixdp.privacy import Budget

__all__ = ["Authorization", "authorize", "debit"]


@dataclass(frozen=True)
class Authorization:
    """The record of a cost that the gate let through; it cannot be made for a cost above the budget.

    Parameters
    ----------
    cost : Cost
        The exact privacy cost of one record that moves, with the noise that it is the cost of.
    budget : Budget
        What may be spent.
    time : str
        When it was authorized: UTC, ISO 8601.
    ledger : LedgerEntry, optional
        The entry of the ledger that was debited; None if none was.

    Raises
    ------
    PrivacyError
        If the cost is not within the budget, or the entry of the ledger is not that of this cost.
    """

    cost: Cost
    budget: Budget
    time: str
    ledger: LedgerEntry | None = None

    def __post_init__(self) -> None:
        checked_cost(self.cost, self.budget)
        if self.ledger is not None:
            self.ledger.check(self.cost, self.budget)

    @property
    def note(self) -> str:
        """Whether a ledger was debited, in words."""
        if self.ledger is None:
            return "No ledger was used: earlier or later releases about the same people add to this cost."
        return f"Debited to the ledger of {self.ledger.dataset} before any record was counted."

    def as_dict(self) -> dict[str, object]:
        """Return the record as JSON has it; the exact cost is text, numerator/denominator."""
        return {
            "noise": self.cost.noise.name,
            "cost": str(self.cost.value),
            "budget": self.budget.as_dict(),
            "time": self.time,
            "ledger": None if self.ledger is None else self.ledger.as_dict(),
            "note": self.note,
        }


def authorize(cost: Cost, budget: Budget, ledger: Ledger | None = None) -> Authorization:
    """Authorize one measurement of an exact, recomputed cost, before any data are read.

    With a ledger it must have so much left; `debit` writes to it.

    Raises
    ------
    PrivacyError
        If the cost exceeds the budget or what the ledger has left, or the budget is one that the noise cannot
        honour.
    StorageError
        If the ledger cannot be read.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from matrixdp.noise import GAUSSIAN
    >>> authorize(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5)).ledger is None
    True
    """
    authorization = Authorization(cost, budget, datetime.now(UTC).isoformat(timespec="seconds"))
    if ledger is not None:
        if not isinstance(ledger, Ledger):
            raise PrivacyError(
                f"ledger: found a {type(ledger).__name__}; expected a Ledger: Ledger.open(path)"
            )
        ledger.check(cost, budget)
    return authorization


def debit(
    authorization: Authorization, ledger: Ledger, release: Path | None
) -> tuple[Authorization, Reservation]:
    """Debit what was authorized to a ledger: durably, before anything is counted or noise is drawn.

    Raises
    ------
    PrivacyError
        If others have meanwhile spent what was left.
    StorageError
        If the ledger cannot be written.
    """
    reservation = ledger.reserve(authorization.cost, authorization.budget, release)
    return replace(authorization, ledger=reservation.record), reservation
