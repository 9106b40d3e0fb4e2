"""The rules of `matrixdp.domain.rules` for one value, in plain Python."""

import math
import numbers
import re
from bisect import bisect_right
from datetime import date, datetime
from decimal import Decimal

import numpy as np

from matrixdp.domain.attributes import Attribute
from matrixdp.domain.rules import NUMERAL, WHITESPACE, Kind, Listed, Plain, Whole

__all__ = ["encode_value", "parse_number"]

_NUMERAL = re.compile(NUMERAL)


def parse_number(value: object) -> float | None:
    """Return the finite number that a raw value stands for, or None for what is not one.

    Examples
    --------
    >>> parse_number(" 3.0"), parse_number(True), parse_number("abc"), parse_number(float("nan"))
    (3.0, 1.0, None, None)
    """
    return _number(*_plain(value))


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
    kind, plain = _plain(value)
    rule = attribute.rule(kind)
    if rule is None:
        return None
    if isinstance(rule, Listed):
        return rule.codes.get(plain)
    number = _number(kind, plain)
    if number is None:
        return None
    if isinstance(rule, Whole):
        inside = rule.first <= number <= rule.last and number == math.floor(number)
        return int(number) - rule.first if inside else None
    edges = rule.edges
    if rule.closed and number == edges[-1]:
        return len(edges) - 2
    return bisect_right(edges, number) - 1 if edges[0] <= number < edges[-1] else None


def _plain(value: object) -> tuple[Kind, Plain]:
    """Return what a value is, and the value itself as plain Python has it."""
    try:
        if isinstance(value, str):
            return Kind.TEXT, str(value)
        if isinstance(value, bool | np.bool_):
            return Kind.BOOLEAN, bool(value)
        if isinstance(value, numbers.Integral):
            return Kind.INTEGER, int(value)
        if isinstance(value, numbers.Real | Decimal):
            return Kind.FLOAT, float(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            return Kind.DATE, value.isoformat()
    except Exception:  # noqa: BLE001  whatever an object does when it is asked, it is one record's affair
        return Kind.OTHER, ""
    return Kind.OTHER, ""


def _number(kind: Kind, value: Plain) -> float | None:
    if kind is Kind.TEXT:
        text = str(value).strip(WHITESPACE)
        return float(text) if _NUMERAL.match(text) else None
    if kind in (Kind.DATE, Kind.OTHER):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
