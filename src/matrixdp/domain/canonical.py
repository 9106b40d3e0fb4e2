"""Canonical texts of values and numbers."""

import math
import numbers
import re
from datetime import date, datetime

import numpy as np

from matrixdp.errors import DomainError, Path
from matrixdp.forms import describe_value, is_unicode

__all__ = [
    "INTEGER",
    "canonical_text",
    "day_of",
    "finite_number",
    "integer_of",
    "number_of",
    "number_text",
    "whole_number",
]

INTEGER = "an integer between -(2^53 - 1) and 2^53 - 1"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
LARGEST_INTEGER = 2**53 - 1
"""Integers up to here are told apart by floating point, so that every engine reads them alike."""


def canonical_text(value: object) -> str:
    """Return the text by which a category is compared with data.

    Examples
    --------
    >>> [canonical_text(value) for value in ("a", True, 3, 3.0, 0.5)]
    ['a', 'true', '3', '3', '0.5']
    """
    if isinstance(value, str) and is_unicode(value):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isfinite(number):
            return str(int(number)) if number == math.floor(number) else repr(number)
    raise DomainError.at((), describe_value(value), "text, a finite number, true or false")


def day_of(value: object) -> date | None:
    """Return a public value that is a date, given as one or in ISO 8601, else None.

    Examples
    --------
    >>> day_of("2020-01-31"), day_of("2020-02-30"), day_of("20200131")
    (datetime.date(2020, 1, 31), None, None)
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def number_text(number: float) -> str:
    """Return a number as a person would write it.

    Examples
    --------
    >>> number_text(10000.0), number_text(0.5), number_text(-math.inf)
    ('10000', '0.5', '-inf')
    """
    number = float(number)
    if not math.isfinite(number):
        return repr(number)
    return str(int(number)) if number == math.floor(number) and abs(number) < 1e16 else repr(number)


def integer_of(value: object) -> int | None:
    """Return a public value that is an integer within +-(2^53 - 1), else None; booleans are no integers here.

    Examples
    --------
    >>> integer_of(40.0), integer_of(0.5), integer_of(True)
    (40, None, None)
    """
    whole: int | None = None
    if isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_):
        whole = int(value)
    elif isinstance(value, float | np.floating) and float(value).is_integer():
        whole = int(float(value))
    return whole if whole is not None and abs(whole) <= LARGEST_INTEGER else None


def number_of(value: object) -> float | None:
    """Return a public value that is a finite number, else None; booleans are no numbers here.

    Examples
    --------
    >>> number_of(3), number_of(math.inf), number_of("3")
    (3.0, None, None)
    """
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        try:
            number = float(value)
        except OverflowError:
            return None
        if math.isfinite(number):
            return number + 0.0  # the negative zero becomes the positive one
    return None


def whole_number(value: object, path: Path) -> int:
    """Return a public value as `integer_of` does, or raise the error of its place."""
    number = integer_of(value)
    if number is None:
        raise DomainError.at(path, describe_value(value), INTEGER)
    return number


def finite_number(value: object, path: Path) -> float:
    """Return a public value as `number_of` does, or raise the error of its place."""
    number = number_of(value)
    if number is None:
        raise DomainError.at(path, describe_value(value), "a finite number")
    return number
