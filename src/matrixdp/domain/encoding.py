"""The rules of `matrixdp.domain.rules` for one value, in plain Python."""

import math
import numbers
from bisect import bisect_right
from datetime import date, datetime
from decimal import Decimal
from typing import cast

import numpy as np

from matrixdp.domain.attributes import Attribute
from matrixdp.domain.rules import (
    BOOLEANS,
    WHITESPACE,
    Days,
    Kind,
    Listed,
    Numbers,
    Texts,
    Whole,
    canonical_value,
)

__all__ = ["encode_value", "parse_number", "person_id"]

_NULLS = ("NAType", "NaTType")
"""The types of the nulls that pandas has besides None and NaN."""


def parse_number(value: object) -> float | None:
    """Return the finite number that a raw value stands for, or None for what is not one.

    Examples
    --------
    >>> parse_number(" 3.0"), parse_number(True), parse_number("abc"), parse_number(float("nan"))
    (3.0, 1.0, None, None)
    """
    return _number(_canonical(value)[1])


def encode_value(attribute: Attribute, value: object) -> int | None:
    """Return the code of a raw value, or None where it is out of domain.

    Never raises, whatever the value.

    Parameters
    ----------
    attribute : Attribute
        The attribute that the value belongs to.
    value : object
        A raw value.

    Returns
    -------
    int or None
        The code, 0 to ``attribute.size - 1``.

    Examples
    --------
    >>> from matrixdp.domain import Bins, Categorical
    >>> encode_value(Categorical("rooms", ("2", "3")), 3.0)
    1
    >>> encode_value(Bins("income", (0.0, 10.0, 25.0)), "25") is None
    True
    """
    trim = attribute.codebook.trim
    if attribute.null_code is not None and _is_missing(value, trim):
        return attribute.null_code
    kind, canonical = _canonical(value, trim)
    rule = attribute.rule(kind)
    if rule is None or canonical is None:
        return None
    if isinstance(rule, Listed):
        return rule.codes.get(canonical)
    if isinstance(rule, Texts):
        # The rule is for texts alone; one that is more than a text may do anything when it is asked.
        text = str.__str__(cast("str", value))
        return rule.codes.get(text.strip(WHITESPACE) if trim else text)
    if isinstance(rule, Days):
        return rule.codes.get(canonical.strip(WHITESPACE)) if isinstance(canonical, str) else None
    number = _number(canonical)
    if number is None:
        return None
    if isinstance(rule, Numbers):
        return rule.codes.get(number)
    if isinstance(rule, Whole):
        inside = rule.first <= number <= rule.last and number == math.floor(number)
        return int(number) - rule.first if inside else None
    edges = rule.edges
    if rule.closed and number == edges[-1]:
        return len(edges) - 2
    return bisect_right(edges, number) - 1 if edges[0] <= number < edges[-1] else None


def person_id(value: object) -> str | float | None:
    r"""Return what a raw id is compared by, or None where it names nobody.

    That is its canonical value (`matrixdp.domain.rules`). Values without one name nobody, and nor does a text
    that is empty or holds U+FFFD, which stands in the place of what could not be read. Never raises.

    Examples
    --------
    >>> [person_id(value) for value in ("ab-1", " 01", 1, True, "", None, float("nan"), "M\ufffdller")]
    ['ab-1', 1.0, 1.0, 'true', None, None, None, None]
    """
    canonical = _canonical(value)[1]
    if isinstance(canonical, str):
        # One that is more than a text may be equal to any other.
        text = str.__str__(canonical)
        return text if text and "\ufffd" not in text else None
    return canonical if type(canonical) is float else None


def _is_missing(value: object, trim: bool) -> bool:
    """Return whether a value is missing: a null, NaN, or a text that is empty."""
    if value is None or type(value).__name__ in _NULLS:
        return True
    try:
        if isinstance(value, str):
            text = str(value)
            return not (text.strip(WHITESPACE) if trim else text)
        if isinstance(value, np.datetime64):
            return bool(np.isnat(value))
        return isinstance(value, numbers.Real | Decimal) and math.isnan(float(value))
    except Exception:  # noqa: BLE001  whatever an object does when it is asked, it is one record's affair
        return False


def _canonical(value: object, trim: bool = False) -> tuple[Kind, str | float | None]:
    """Return what a value is, and its canonical value."""
    try:
        if isinstance(value, str):
            text = str(value)
            return Kind.TEXT, canonical_value(text.strip(WHITESPACE) if trim else text)
        if isinstance(value, bool | np.bool_):
            return Kind.BOOLEAN, "true" if value else "false"
        if isinstance(value, numbers.Real | Decimal):
            number = float(value)
            return Kind.FLOAT, number if math.isfinite(number) else None
        if isinstance(value, date) and not isinstance(value, datetime):
            return Kind.DATE, value.isoformat()
    except Exception:  # noqa: BLE001  whatever an object does when it is asked, it is one record's affair
        return Kind.OTHER, None
    return Kind.OTHER, None


def _number(canonical: str | float | None) -> float | None:
    return BOOLEANS.get(canonical) if isinstance(canonical, str) else canonical
