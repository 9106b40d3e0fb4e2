"""The Laplace filter: |L| = -ln(2 V) from 63 bits of its tail probability V, within a proved error.

The logarithm is taken by a table of certified values and a polynomial; docs/noise.md has the proof.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from matrixdp.errors import NumericalError

__all__ = ["EPSILON", "LEAST_WORD", "LogarithmTable", "approximate", "logarithm_table", "upper_tail"]

#: Cells of the table: the leading 11 bits of the mantissa of a word.
CELLS = 1 << 11
#: Words below this are left to the exact path: the bits that were not drawn would matter.
LEAST_WORD = np.uint64(1 << 42)
EPSILON = Fraction(1, 2**40)


@dataclass(frozen=True, slots=True)
class LogarithmTable:
    """Logarithms of the cells' centres c = 1/2 + (k + 1/2) / 4096; every array has shape (2048,).

    ``centre`` is c, exact; ``inverse`` the double nearest to 1 / c; ``logarithm`` -ln c within an absolute
    2**-53; ``unit`` the double nearest to ln 2.
    """

    centre: NDArray[np.float64]
    inverse: NDArray[np.float64]
    logarithm: NDArray[np.float64]
    unit: float


def _nearest(ball: arb) -> float:
    if ball.rel_accuracy_bits() < 100:
        raise NumericalError("the table of logarithms could not be certified")
    return float(ball)


@lru_cache(maxsize=1)
def logarithm_table() -> LogarithmTable:
    """Return the table, made by ball arithmetic at its first use; its arrays are read-only."""
    centre = 0.5 + (np.arange(CELLS) + 0.5) / (2 * CELLS)
    with ctx.workprec(160):
        balls = [-arb(c).log() for c in centre.tolist()]
        logarithm = np.array([_nearest(ball) for ball in balls])
        unit = _nearest(arb(2).log())
    inverse = 1.0 / centre
    for array in (centre, inverse, logarithm):
        array.setflags(write=False)
    return LogarithmTable(centre, inverse, logarithm, unit)


def approximate(lower: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return approximations of |L| = -ln(2 V) for words B (V lies in [B, B + 1] * 2**-64), and where proved.

    The error is at most `EPSILON` everywhere but below `LEAST_WORD`.

    Examples
    --------
    >>> magnitude, proved = approximate(np.array([2**62, 0], dtype=np.uint64))
    >>> round(float(magnitude[0]), 9), proved.tolist()
    (0.693147181, [True, False])
    """
    cells = logarithm_table()
    mantissa, exponent = np.frexp(lower.astype(np.float64))
    place = ((mantissa - 0.5) * (2 * CELLS)).astype(np.intp)
    np.clip(place, 0, CELLS - 1, out=place)
    t = mantissa - cells.centre[place]
    t *= cells.inverse[place]
    # ln(1 + t) = t - t^2 / 2 + t^3 / 3 - t^4 / 4 + ...
    series = t * -0.25
    for coefficient in (1.0 / 3.0, -0.5, 1.0):
        series += coefficient
        series *= t
    magnitude = (63 - exponent).astype(np.float64)
    magnitude *= cells.unit
    magnitude += cells.logarithm[place]
    magnitude -= series
    np.maximum(magnitude, 0.0, out=magnitude)
    return magnitude, lower >= LEAST_WORD


def upper_tail(point: Fraction) -> arb:
    """Enclose P(L > point) = exp(-point) / 2 at the current precision, for a density of exp(-|x|) / 2."""
    return (-arb(fmpq(point.numerator, point.denominator))).exp() / 2
