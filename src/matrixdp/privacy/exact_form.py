"""Budgets as exact text: what is read back is the same budget to the last digit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from matrixdp.errors import PrivacyError
from matrixdp.privacy.budget import Budget

__all__ = ["exact_budget", "exact_number", "exact_text", "number_text"]

_DIGITS = 4000
_LARGEST = 10**_DIGITS
_NUMBER = re.compile(rf"(0|[1-9][0-9]{{0,{_DIGITS - 1}}})(?:/([1-9][0-9]{{0,{_DIGITS - 1}}}))?", re.ASCII)


def exact_number(text: object) -> Fraction:
    """Return the number that a text holds: numerator, or numerator/denominator, in lowest terms.

    Raises
    ------
    PrivacyError
        If it is no such text, or has more than 4,000 digits.

    Examples
    --------
    >>> exact_number("3/10")
    Fraction(3, 10)
    """
    match = _NUMBER.fullmatch(text) if isinstance(text, str) else None
    number = None if match is None else Fraction(int(match[1]), int(match[2] or 1))
    if number is None or str(number) != text:
        raise PrivacyError(
            "exact number: found something else; expected numerator/denominator in lowest terms"
        )
    return number


def number_text(value: Fraction) -> str:
    """Return the text that `exact_number` reads.

    Raises
    ------
    PrivacyError
        If it would have more than 4,000 digits.
    """
    if max(abs(value.numerator), value.denominator) >= _LARGEST:
        raise PrivacyError("exact number: found more than 4,000 digits; expected a number with fewer")
    return str(value)


def exact_text(budget: Budget) -> dict[str, object]:
    """Return a budget as JSON has it, each parameter as exact text.

    Examples
    --------
    >>> exact_text(Budget(rho=0.1))
    {'rho': '1/10', 'neighbours': 'add_remove', 'unit': {'records': 1}}
    """
    parameters = {
        "rho": budget.rho,
        "mu": budget.mu if budget.kind == "mu" else None,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
    }
    exact: dict[str, object] = {
        name: number_text(value) for name, value in parameters.items() if value is not None
    }
    return exact | {"neighbours": budget.neighbours, "unit": budget.unit.as_dict()}


def exact_budget(written: Mapping[str, Any]) -> Budget:
    """Return the budget that `exact_text` wrote.

    Raises
    ------
    PrivacyError
        If it is none.

    Examples
    --------
    >>> exact_budget({"rho": "1/10", "neighbours": "add_remove", "unit": {"records": 1}})
    Budget(rho=0.1, neighbours='add_remove')
    """
    names = set(written) - {"neighbours", "unit"}
    if not names <= {"rho", "mu", "epsilon", "delta"}:
        raise PrivacyError("budget: found other parameters than rho, mu, epsilon and delta")
    parameters = {name: exact_number(written[name]) for name in sorted(names)}
    return Budget(**parameters, neighbours=written["neighbours"], unit=written["unit"])
