"""Exact numbers for privacy parameters: reading them strictly, and rounding them to a stated side."""

import math
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real

from matrixdp.errors import PrivacyError

__all__ = ["Number", "exact_positive", "float_above", "float_below", "root_above", "root_below"]

Number = int | float | Fraction | Decimal

_ROOT_BITS = 80


def _found(value: object) -> str:
    """Describe a privacy parameter that was refused (never a value from the data)."""
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, bool | int | float | Decimal):
        return str(value) if len(str(value)) < 40 else f"a {type(value).__name__} out of range"
    return "none" if value is None else f"a {type(value).__name__}"


def exact_positive(
    name: str, value: object, *, below: int | None = None, zero: bool = False, larger: bool = False
) -> Fraction:
    """Read a privacy parameter as an exact rational number, on the safe side.

    A binary floating-point number such as 0.1 stands for the smaller of its shortest decimal text (1/10)
    and its binary value (a little more than 1/10), so that no budget is exceeded by a rounding; where
    the parameter tells how much was spent, `larger` takes the larger of the two.

    ``name`` is what the message calls it, ``below`` an upper limit, itself excluded, and ``zero`` says
    whether 0 is allowed. Truth values, text and what is not finite are refused.

    Examples
    --------
    >>> exact_positive("budget.rho", 0.1)
    Fraction(1, 10)
    >>> exact_positive("budget.rho", -1)
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: budget.rho: found -1; expected a finite number above 0
    """
    least = "of at least 0" if zero else "above 0"
    expected = f"a finite number {least}" if below is None else f"a number {least} and below {below}"
    refusal = PrivacyError.at(tuple(name.split(".")), _found(value), expected)
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise refusal
    if isinstance(value, Integral):
        exact = Fraction(int(value))
    elif isinstance(value, Rational):
        exact = Fraction(int(value.numerator), int(value.denominator))
    elif not (value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)):
        raise refusal
    elif isinstance(value, Decimal):
        exact = Fraction(value)
    else:
        binary = float(value)
        readings = Fraction(binary), Fraction(repr(binary))
        exact = max(readings) if larger else min(readings)
    if exact < 0 or (exact == 0 and not zero) or (below is not None and exact >= below):
        raise refusal
    return exact


def float_above(value: Fraction) -> float:
    """Return the least float64 that is at least `value` (infinity if there is none).

    Examples
    --------
    >>> float_above(Fraction(1, 3)) > float_below(Fraction(1, 3))
    True
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.nextafter(math.inf, 0.0)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_below(value: Fraction) -> float:
    """Return the greatest float64 that is at most `value`."""
    return -float_above(-value)


def root_below(value: Fraction) -> Fraction:
    """Return a dyadic rational at most sqrt(value), relative error below 2**-78.

    Examples
    --------
    >>> root_below(Fraction(9, 4)), root_below(Fraction(2)) ** 2 < 2 < root_above(Fraction(2)) ** 2
    (Fraction(3, 2), True)
    """
    if value < 0:
        raise PrivacyError("square root: found a negative number; expected a number of at least 0")
    shift = max(0, _ROOT_BITS + (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 1)
    return Fraction(math.isqrt((value.numerator << 2 * shift) // value.denominator), 1 << shift)


def root_above(value: Fraction) -> Fraction:
    """Return a dyadic rational at least sqrt(value), relative error below 2**-78."""
    root = root_below(value)
    if root * root == value:
        return root
    shift = max(0, _ROOT_BITS + (value.denominator.bit_length() - value.numerator.bit_length()) // 2 + 1)
    return root + Fraction(1, 1 << shift)
