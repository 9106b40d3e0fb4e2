"""What a ledger says to its readers, as plain values: no figure claims more than is so."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from matrixdp.ledger.accounting import Account
from matrixdp.ledger.ledger import Ledger
from matrixdp.privacy import Budget
from matrixdp.privacy.exact_form import exact_text
from matrixdp.privacy.numbers import float_above, float_below

__all__ = ["parameters", "report"]


def parameters(value: Budget | None, total: Budget, *, above: bool) -> dict[str, float]:
    """Return the parameters of a part of a total; of what was spent rounded up, of what is left down.

    Examples
    --------
    >>> parameters(None, Budget(rho=1), above=True)
    {'rho': 0.0}
    """
    known: dict[str, Fraction | None] = {
        "rho": total.rho,
        "mu": total.mu if total.kind == "mu" else None,
        "epsilon": total.epsilon,
    }
    name = next(name for name, own in known.items() if own is not None)
    part = Fraction(0) if value is None else Fraction(getattr(value, name))
    delta = {} if total.delta is None else {"delta": float_below(total.delta)}
    return {name: (float_above if above else float_below)(part) or 0.0, **delta}


def report(ledger: Ledger) -> dict[str, Any]:
    """Return what a ledger holds as JSON has it, all of it read at once.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     shown = report(Ledger.create(f"{folder}/ledger", "health", Budget(rho=1)))
    >>> shown["dataset"], shown["spent"], shown["left"], shown["entries"]
    ('health', {'rho': 0.0}, {'rho': 1.0}, [])
    """
    entries, total = ledger.entries, ledger.total
    account = Account.of(total, ((entry.cost, entry.budget) for entry in entries))
    return {
        "dataset": ledger.dataset,
        "definition": {"rho": "zCDP", "mu": "GDP", "approx": "approximate DP", "pure": "pure DP"}[total.kind],
        "neighbours": total.neighbours,
        "unit": total.unit.as_dict(),
        "total": parameters(total, total, above=False),
        "spent": parameters(account.spent, total, above=True),
        "left": parameters(account.left, total, above=False),
        "exact": {"total": exact_text(total), "spent": account.as_dict()},
        "entries": [entry.as_dict() for entry in entries],
    }
