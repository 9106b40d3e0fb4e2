"""Gaussian noise, rounded to the integers exactly as if it had been drawn with infinite precision.

``rounded_gaussian`` returns K = round(f + s Z) with Z an exactly normal variable, s an exact rational and
f an exact rational offset. Almost every K is decided by the fast filter of `matrixdp.noise.filter`; the
others by `matrixdp.noise.exact` from the same bits and further ones. docs/noise.md has the proof.
"""

import operator
from collections.abc import Callable
from fractions import Fraction
from numbers import Rational

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError
from matrixdp.noise.exact import LazyTail, round_exactly
from matrixdp.noise.filter import EPSILON, approximate
from matrixdp.noise.source import RandomSource

__all__ = ["LARGEST_SCALE", "SMALLEST_SCALE", "rounded_gaussian"]

SMALLEST_SCALE = 1
LARGEST_SCALE = 1 << 20

_CHUNK = 1 << 15
_SIGN = np.uint64(63)
_MAGNITUDE = np.uint64((1 << 63) - 1)


def rounded_gaussian(
    scale: Fraction,
    size: int,
    *,
    offsets: NDArray[np.float64] | None = None,
    exact_offset: Callable[[int], Fraction] | None = None,
    source: RandomSource,
) -> NDArray[np.int64]:
    """Draw independent K_i = round(f_i + scale * Z_i), Z_i exactly normal with mean 0 and variance 1.

    Parameters
    ----------
    scale : Fraction
        The standard deviation before rounding, exact, between 1 and 2**20.
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
        The samples. Their variance is about ``scale**2 + 1/12``.

    Raises
    ------
    PrivacyError
        If the scale is not an exact number in range, the offsets do not fit, or the source misbehaves.
        Nothing is returned then.

    References
    ----------
    I. Mironov, On significance of the least significant bits for differential privacy, CCS 2012:
    why noise must not be floating-point arithmetic's. The method here is inversion with lazily drawn
    bits, filtered; docs/noise.md proves that the distribution is exact.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> rounded_gaussian(Fraction(5000), 3, source=SeededSource(1)).dtype
    dtype('int64')
    >>> rounded_gaussian(Fraction(0), 3, source=SeededSource(1))
    Traceback (most recent call last):
        ...
    matrixdp.errors.PrivacyError: noise scale: found 0; expected an exact number between 1 and 1048576
    """
    return _draw(scale, size, offsets, exact_offset, source)


def _checked_scale(scale: object) -> Fraction:
    """Return the scale as a Fraction, or refuse."""
    expected = f"expected an exact number between {SMALLEST_SCALE} and {LARGEST_SCALE}"
    if isinstance(scale, bool) or not isinstance(scale, Rational):
        raise PrivacyError(f"noise scale: found a {type(scale).__name__}; {expected}")
    exact = Fraction(int(scale.numerator), int(scale.denominator))
    if exact <= 0:
        raise PrivacyError(f"noise scale: found {'0' if exact == 0 else 'a negative number'}; {expected}")
    if not SMALLEST_SCALE <= exact <= LARGEST_SCALE:
        raise PrivacyError(
            f"noise scale: found a number {'below' if exact < 1 else 'above'} the range; {expected}"
        )
    return exact


def _checked_offsets(
    offsets: NDArray[np.float64] | None, exact_offset: Callable[[int], Fraction] | None, size: int
) -> None:
    """Refuse offsets that do not fit the samples; the messages quote no offset."""
    if offsets is None:
        if exact_offset is not None:
            raise PrivacyError("noise offsets: found exact_offset without offsets; expected both or neither")
        return
    if exact_offset is None:
        raise PrivacyError("noise offsets: found offsets without exact_offset; expected both or neither")
    if not isinstance(offsets, np.ndarray) or offsets.dtype != np.float64 or offsets.shape != (size,):
        raise PrivacyError(f"noise offsets: expected a float64 array of shape ({size},)")
    if not bool(np.all((offsets >= 0.0) & (offsets <= 1.0))):
        raise PrivacyError("noise offsets: found a number that is not in [0, 1)")


def _decision_limit(scale: Fraction, epsilon: Fraction) -> float:
    """Return a bound below 1/2 - scale * epsilon - (24 scale + 4) 2**-53 (docs/noise.md, lemma 3)."""
    margin = scale * epsilon + (24 * scale + 4) * Fraction(1, 1 << 53)
    return float(np.nextafter(float(Fraction(1, 2) - margin), -1.0))


def _draw(
    scale: Fraction,
    size: int,
    offsets: NDArray[np.float64] | None,
    exact_offset: Callable[[int], Fraction] | None,
    source: RandomSource,
    *,
    chunk: int = _CHUNK,
    epsilon: Fraction = EPSILON,
    filtered: bool = True,
) -> NDArray[np.int64]:
    """Draw the samples; the last three arguments change how, never what (tests hold it to that)."""
    exact_scale = _checked_scale(scale)
    try:
        count = operator.index(size)
    except TypeError as error:
        raise PrivacyError("noise size: expected an integer of at least 0") from error
    if isinstance(size, bool) or count < 0:
        raise PrivacyError("noise size: expected an integer of at least 0")
    _checked_offsets(offsets, exact_offset, count)
    limit = _decision_limit(exact_scale, max(epsilon, EPSILON))
    result = np.empty(count, dtype=np.int64)
    for start in range(0, count, chunk):
        stop = min(start + chunk, count)
        bits = source.bits64(stop - start)
        if not isinstance(bits, np.ndarray) or bits.dtype != np.uint64 or bits.shape != (stop - start,):
            raise PrivacyError("the random source did not return the words that were asked for")
        lower = bits & _MAGNITUDE
        negative = (bits >> _SIGN).astype(np.bool_)
        if filtered:
            part = None if offsets is None else offsets[start:stop]
            undecided = _filter(lower, negative, part, float(exact_scale), limit, result[start:stop])
        else:
            undecided = np.arange(stop - start)
        for place in undecided.tolist():
            offset = Fraction(0)
            if exact_offset is not None and offsets is not None:
                offset = _checked_offset(exact_offset(start + place), float(offsets[start + place]))
            tail = LazyTail(int(lower[place]), 64, source)
            result[start + place] = round_exactly(tail, bool(negative[place]), exact_scale, offset)
    return result


def _checked_offset(exact: Fraction, rounded: float) -> Fraction:
    """Return the exact offset if it is in range and agrees with its rounded value."""
    if not isinstance(exact, Rational) or isinstance(exact, bool):
        raise PrivacyError("noise offsets: exact_offset returned no exact number")
    if not 0 <= exact < 1 or abs(exact - Fraction(rounded)) > Fraction(1, 1 << 53):
        raise PrivacyError("noise offsets: exact_offset disagrees with offsets")
    return Fraction(exact)


def _filter(
    lower: NDArray[np.uint64],
    negative: NDArray[np.bool_],
    offsets: NDArray[np.float64] | None,
    scale: float,
    limit: float,
    out: NDArray[np.int64],
) -> NDArray[np.intp]:
    """Write the decided samples to `out`; return the places of the undecided ones."""
    value, proved = approximate(lower)
    value *= scale
    np.negative(value, out=value, where=negative)
    if offsets is not None:
        value += offsets
    nearest = np.rint(value)
    value -= nearest
    np.abs(value, out=value)
    decided = value < limit
    decided &= proved
    out[...] = nearest
    return np.flatnonzero(~decided)
