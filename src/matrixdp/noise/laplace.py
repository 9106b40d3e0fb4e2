"""Laplace noise, rounded to the integers exactly as if it had been drawn with infinite precision.

``rounded_laplace`` returns K = round(f + b L) with L an exact Laplace variable of density exp(-|x|) / 2, b an
exact rational and f an exact rational offset. |L| = -ln(2 V) for a uniform tail probability V in (0, 1/2).
The filter takes the logarithm by a table of certified values and a polynomial; docs/noise.md has the proof.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.noise.drawing import CHUNK, Distribution, draw
from matrixdp.noise.source import RandomSource

__all__ = ["EPSILON", "LEAST_WORD", "LogarithmTable", "approximate", "logarithm_table", "rounded_laplace"]

#: Cells of the table: the leading 11 bits of the mantissa of a word.
CELLS = 1 << 11
#: Words below this are left to the exact path: the bits that were not drawn would matter.
LEAST_WORD = np.uint64(1 << 42)
EPSILON = Fraction(1, 2**40)


@dataclass(frozen=True, slots=True)
class LogarithmTable:
    """Logarithms of the cells' centres c = 1/2 + (k + 1/2) / 4096; every array has shape (2048,).

    Attributes
    ----------
    centre : ndarray of float64
        c, exact.
    inverse : ndarray of float64
        1 / c, the nearest double.
    logarithm : ndarray of float64
        -ln c, within an absolute 2**-53.
    unit : float
        ln 2, the nearest double.
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
    """Return the table, made by ball arithmetic at its first use.

    Raises
    ------
    NumericalError
        If a value cannot be certified.
    """
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
    """Approximate |L| = -ln(2 V) from the first 64 bits of its tail probability V.

    Parameters
    ----------
    lower : ndarray of uint64, shape (n,)
        B < 2**63: V lies in [B, B + 1] * 2**-64.

    Returns
    -------
    magnitude : ndarray of float64, shape (n,)
        An approximation of |L|.
    proved : ndarray of bool, shape (n,)
        Where it is True, the error is at most `EPSILON` for every V of the interval. Elsewhere (the words
        below `LEAST_WORD`) nothing is claimed.

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


def _upper_tail(point: Fraction) -> arb:
    """Enclose P(L > point) = exp(-point) / 2 at the current precision."""
    return (-arb(fmpq(point.numerator, point.denominator))).exp() / 2


def _guess(logarithm: float) -> float:
    return max(-logarithm - 0.6931471805599453, 0.0)


_LAPLACE = Distribution(
    approximate=approximate, epsilon=EPSILON, roundings=48, upper_tail=_upper_tail, guess=_guess
)


def rounded_laplace(
    scale: Fraction,
    size: int,
    *,
    offsets: NDArray[np.float64] | None = None,
    exact_offset: Callable[[int], Fraction] | None = None,
    source: RandomSource,
) -> NDArray[np.int64]:
    """Draw independent K_i = round(f_i + scale * L_i), L_i exactly Laplace with density exp(-|x|) / 2.

    Parameters
    ----------
    scale : Fraction
        The scale b before rounding, exact, between 1 and 2**20; the standard deviation is b sqrt(2).
    size : int
        How many samples, n.
    offsets : ndarray of float64, shape (n,), optional
        The offsets f_i in [0, 1), each rounded to float64 with an absolute error of at most 2**-53.
        Without them every f_i is 0.
    exact_offset : callable, optional
        ``exact_offset(i)`` is the exact f_i; needed with `offsets`, and called only for the few samples
        that the filter leaves undecided.
    source : RandomSource
        Where the random bits come from.

    Returns
    -------
    ndarray of int64, shape (n,)
        The samples. Their variance is about ``2 * scale**2 + 1/12``.

    Raises
    ------
    PrivacyError
        If the scale is not an exact number in range, the offsets do not fit, or the source misbehaves.
        Nothing is returned then.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith, Calibrating noise to sensitivity, TCC 2006 (the Laplace
    mechanism). I. Mironov, On significance of the least significant bits for differential privacy, CCS
    2012: why noise must not be floating-point arithmetic's.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> rounded_laplace(Fraction(5000), 3, source=SeededSource(1)).dtype
    dtype('int64')
    >>> rounded_laplace(Fraction(0), 3, source=SeededSource(1))
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: noise scale: found 0; expected an exact number between 1 and 1048576
    """
    return _draw(scale, size, offsets, exact_offset, source)


def _draw(
    scale: Fraction,
    size: int,
    offsets: NDArray[np.float64] | None,
    exact_offset: Callable[[int], Fraction] | None,
    source: RandomSource,
    *,
    chunk: int = CHUNK,
    epsilon: Fraction = EPSILON,
    filtered: bool = True,
) -> NDArray[np.int64]:
    """Draw the samples; the last three arguments change how, never what (tests hold it to that)."""
    return draw(
        _LAPLACE,
        scale,
        size,
        offsets,
        exact_offset,
        source,
        chunk=chunk,
        epsilon=epsilon,
        filtered=filtered,
    )
