"""Polynomials below the square root: they touch it where one says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["below_root"]

Array = NDArray[np.float64]


def below_root(contacts: Sequence[float]) -> Array:
    """Return c with c_1 g + c_2 g^2 + ... + c_2m g^2m <= sqrt(g) for all g >= 0, equal near the m contacts.

    Contacts are above 0 and apart by a share of 1e-3. Computed in rational numbers, and rounded once.

    References
    ----------
    docs/mathematics.md, section 9, theorem 12.

    Examples
    --------
    >>> below_root([1.0]).tolist()
    [1.5, -0.5]
    """
    # with g = s^2: 1 - sum of c_j s^(2j - 1) has a double root at every contact's s
    points = [_short(math.sqrt(one)) for one in contacts]
    powers = [2 * j + 1 for j in range(2 * len(points))]
    rows = [[s**k for k in powers] + [Fraction(1)] for s in points]
    rows += [[k * s ** (k - 1) for k in powers] + [Fraction(0)] for s in points]
    for at in range(len(rows)):
        pivot = next(i for i in range(at, len(rows)) if rows[i][at] != 0)
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [value / rows[at][at] for value in rows[at]]
        for i in range(len(rows)):
            if i != at and rows[i][at] != 0:
                rows[i] = [a - rows[i][at] * b for a, b in zip(rows[i], rows[at], strict=True)]
    return np.array([float(row[-1]) for row in rows])


def _short(value: float) -> Fraction:
    """Return a number of 13 bits that is near another: contacts are free, and short ones are quick."""
    mantissa, exponent = math.frexp(value)
    return Fraction(round(mantissa * 8192), 8192) * Fraction(2) ** exponent
