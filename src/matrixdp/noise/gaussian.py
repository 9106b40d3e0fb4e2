"""Gaussian noise, rounded to the integers exactly as if it had been drawn with infinite precision.

``rounded_gaussian`` returns K = round(f + s Z) with Z an exactly normal variable, s an exact rational and
f an exact rational offset. Almost every K is decided by the fast filter of `matrixdp.noise.filter`; the
others by `matrixdp.noise.decisions` from the same bits and further ones. docs/noise.md has the proof.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from matrixdp.noise.decisions import upper_tail
from matrixdp.noise.drawing import CHUNK, Distribution, draw
from matrixdp.noise.filter import EPSILON, approximate
from matrixdp.noise.source import RandomSource

__all__ = ["rounded_gaussian"]

_GAUSSIAN = Distribution(
    approximate=approximate,
    epsilon=EPSILON,
    roundings=24,
    upper_tail=upper_tail,
    guess=lambda logarithm: -float(ndtri_exp(logarithm)),
)


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
        _GAUSSIAN,
        scale,
        size,
        offsets,
        exact_offset,
        source,
        chunk=chunk,
        epsilon=epsilon,
        filtered=filtered,
    )
