"""Canonical texts of values and numbers."""

import math
import numbers

import numpy as np

from matrixdp.errors import DomainError, Path
from matrixdp.forms import describe_value

__all__ = ["canonical_text", "finite_number", "float_of_text", "number_text", "whole_number"]

LARGEST_INTEGER = 2**53 - 1
"""Integers up to here are told apart by floating point, so that every engine reads them alike."""


def canonical_text(value: object) -> str:
    """Return the text by which a category is compared with data.

    Examples
    --------
    >>> [canonical_text(value) for value in ("a", True, 3, 3.0, 0.5)]
    ['a', 'true', '3', '3', '0.5']
    """
    if isinstance(value, str):
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


def float_of_text(text: str) -> float | None:
    """Return the float whose canonical text this is, or None.

    Examples
    --------
    >>> float_of_text("3"), float_of_text("3.0"), float_of_text("nan")
    (3.0, None, None)
    """
    try:
        number = float(text)
        return number if canonical_text(number) == text else None
    except ValueError:
        return None


def number_text(number: float) -> str:
    """Return a finite number as a person would write it.

    Examples
    --------
    >>> number_text(10000.0), number_text(0.5)
    ('10000', '0.5')
    """
    number = float(number)
    return str(int(number)) if number == math.floor(number) and abs(number) < 1e16 else repr(number)


def whole_number(value: object, path: Path) -> int:
    """Return a public value that is an integer within +-(2^53 - 1) as an int; booleans are not integers here.

    Examples
    --------
    >>> whole_number(40.0, ("age",))
    40
    """
    whole: int | None = None
    if isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_):
        whole = int(value)
    elif isinstance(value, float | np.floating) and float(value).is_integer():
        whole = int(float(value))
    if whole is not None and abs(whole) <= LARGEST_INTEGER:
        return whole
    raise DomainError.at(path, describe_value(value), "an integer between -(2^53 - 1) and 2^53 - 1")


def finite_number(value: object, path: Path) -> float:
    """Return a public value that is a finite number as a float; booleans are not numbers here.

    Examples
    --------
    >>> finite_number(3, ("age", "min"))
    3.0
    """
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number + 0.0  # the negative zero becomes the positive one
    raise DomainError.at(path, describe_value(value), "a finite number")
