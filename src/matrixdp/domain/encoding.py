"""What a raw value means: its canonical text, its number, and its code in an attribute.

These functions state the rules for one value in plain Python. The engines of ``matrixdp.sources`` follow the
same rules on whole columns, and tests hold them to it.

- A *text* is the canonical text of a value: a string as it stands, ``true`` or ``false`` for a boolean, the
  decimal digits of an integer, an integral float like the integer (``3.0`` is ``3``), any other float as
  Python writes it, a date as ISO 8601. Nulls, NaN and infinities have none.
- A *number* is the value of a number or a boolean, or of a string that is, between spaces, a decimal numeral:
  a sign, at most 40 digits on either side of the point, and an exponent from -199 to 199. The bounds keep
  every engine's own parser inside the range where all of them agree.

A value that has no text or number, or whose text or number the attribute does not list, is out of domain.
"""

import math
import numbers
import re
from bisect import bisect_right
from datetime import date, datetime
from decimal import Decimal

import numpy as np

from matrixdp.domain.attributes import Attribute, Bins, Categorical, Coded, Integers
from matrixdp.domain.canonical import canonical_text

__all__ = ["NUMERAL", "WHITESPACE", "canonical_text", "encode_value", "parse_number"]

WHITESPACE = " \t\n\r\x0b\x0c"
"""What may stand around a numeral."""

NUMERAL = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?0{0,4}1?[0-9]{1,2})?$"
"""The numerals that are read as numbers, as a regular expression that every engine reads alike."""

_NUMERAL = re.compile(NUMERAL)


def parse_number(value: object) -> float | None:
    """Return the number that a raw value stands for, or None.

    Parameters
    ----------
    value : object
        A raw value.

    Returns
    -------
    float or None
        A finite number; None for what is not one.

    Examples
    --------
    >>> parse_number(" 3.0"), parse_number(True), parse_number("abc"), parse_number(float("nan"))
    (3.0, 1.0, None, None)
    """
    number: float | None = None
    if isinstance(value, str):
        text = value.strip(WHITESPACE)
        number = float(text) if _NUMERAL.match(text) else None
    elif isinstance(value, numbers.Real | Decimal | np.bool_):
        try:
            number = float(value)
        except (OverflowError, ValueError):
            number = None
    return number if number is not None and math.isfinite(number) else None


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
    >>> encode_value(Categorical("rooms", ("2", "3")), 3.0)
    1
    >>> encode_value(Bins("income", (0.0, 10.0, 25.0)), "25") is None
    True
    """
    if isinstance(attribute, Categorical):
        return _encode_text(attribute, value)
    number = parse_number(value)
    if number is None:
        return None
    if isinstance(attribute, Bins):
        edges = attribute.edges
        if attribute.closed and number == edges[-1]:
            return attribute.size - 1
        return bisect_right(edges, number) - 1 if edges[0] <= number < edges[-1] else None
    minimum = attribute.minimum if isinstance(attribute, Integers) else 0
    if not isinstance(attribute, Integers | Coded) or number != math.floor(number):
        return None
    code = int(number) - minimum
    return code if 0 <= code < attribute.size else None


def _encode_text(attribute: Categorical, value: object) -> int | None:
    if isinstance(value, Decimal):
        value = parse_number(value)
    elif isinstance(value, date) and not isinstance(value, datetime):
        value = value.isoformat()
    if not isinstance(value, str | numbers.Real | np.bool_):
        return None
    try:
        text = canonical_text(value)
    except ValueError:
        return None
    return attribute.positions.get(text)
