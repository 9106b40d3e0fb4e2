"""What a ledger says to its readers, as plain values: no figure claims more than is so."""

from __future__ import annotations

from typing import Any

from matrixdp.ledger.accounting import Account
from matrixdp.ledger.ledger import Ledger
from matrixdp.privacy import Budget
from matrixdp.privacy.exact_form import exact_text
from matrixdp.privacy.numbers import float_above

__all__ = ["parameters", "report"]


def parameters(value: Budget | None, total: Budget, *, above: bool) -> dict[str, float]:
    """Return the parameters of a part of a total; of what was spent rounded up, of what is left down.

    What is not rounded up is written as budgets write themselves, and so can be given again.

    Examples
    --------
    >>> parameters(None, Budget(rho=0.1), above=True), parameters(Budget(rho=0.1), Budget(rho=1), above=False)
    ({'rho': 0.0}, {'rho': 0.1})
    """
    given = {name: one for name, one in total.as_dict().items() if isinstance(one, float)}
    if value is None:
        return {name: one if name == "delta" else 0.0 for name, one in given.items()}
    if above:
        return {
            name: one if name == "delta" else float_above(getattr(value, name)) for name, one in given.items()
        }
    return {name: value.as_dict()[name] for name in given}


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
