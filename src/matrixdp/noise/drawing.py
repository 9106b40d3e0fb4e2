"""Samples of a symmetric distribution, rounded exactly: a fast filter first, exact decisions for the rest.

Every distribution comes with a filter (an approximation of |Z| from 63 bits of its tail probability, within
a proved bound) and with an enclosure of its tail probability. Almost every sample is decided by the filter;
the others by `matrixdp.noise.decisions` from the same bits and further ones. docs/noise.md has the proofs.
"""

import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

import numpy as np
from flint import arb
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError
from matrixdp.exact.threads import processors
from matrixdp.noise.decisions import LazyTail, round_exactly
from matrixdp.noise.source import RandomSource, SystemSource

__all__ = ["CHUNK", "LARGEST_SCALE", "SMALLEST_SCALE", "Distribution", "draw"]

SMALLEST_SCALE = 1
LARGEST_SCALE = 1 << 20

CHUNK = 1 << 15
#: From so many chunks on they are drawn by at most so many threads.
_MOST_ALONE, THREADS = 8, 2
_SIGN = np.uint64(63)
_MAGNITUDE = np.uint64((1 << 63) - 1)


@dataclass(frozen=True)
class Distribution:
    """A symmetric distribution Z, sampled by inversion of the tail probability of |Z|.

    Attributes
    ----------
    upper_tail : callable
        The tail probability P(Z > a) of a point a >= 0, as a ball.
    guess : callable
        From the logarithm of a tail probability to a float near the point; nothing is proved from it.
    approximate : callable, optional
        A filter: from words B < 2**63 (V lies in [B, B + 1] * 2**-64) to approximations of |Z| and where
        they are proved to be within ``epsilon``. Without it every sample is decided exactly, which is slow.
    epsilon : Fraction
        The bound of the filter.
    roundings : int
        The arithmetic of a filtered decision is off by at most (roundings * scale + 8) * 2**-53.
    """

    upper_tail: Callable[[Fraction], arb]
    guess: Callable[[float], float]
    approximate: Callable[[NDArray[np.uint64]], tuple[NDArray[np.float64], NDArray[np.bool_]]] | None = None
    epsilon: Fraction = Fraction(0)
    roundings: int = 0


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


def _decision_limit(distribution: Distribution, scale: Fraction, epsilon: Fraction) -> float:
    """Return a bound below 1/2 - scale epsilon - (roundings scale + 8) 2**-53 (docs/noise.md, lemma 3)."""
    margin = scale * epsilon + (distribution.roundings * scale + 8) * Fraction(1, 1 << 53)
    return float(np.nextafter(float(Fraction(1, 2) - margin), -1.0))


def draw(
    distribution: Distribution,
    scale: Fraction,
    size: int,
    offsets: NDArray[np.float64] | None,
    exact_offset: Callable[[int], Fraction] | None,
    source: RandomSource,
    *,
    chunk: int = CHUNK,
    epsilon: Fraction | None = None,
    filtered: bool = True,
) -> NDArray[np.int64]:
    """Draw independent round(f_i + scale * Z_i); see `Noise.draw_rounded`.

    ``chunk`` samples are drawn at once, ``epsilon`` is a wider bound for the filter (it cannot be narrowed),
    and without ``filtered`` it is not used: these change how samples are made, never which.
    """
    exact_scale = _checked_scale(scale)
    try:
        count = operator.index(size)
    except TypeError as error:
        raise PrivacyError("noise size: expected an integer of at least 0") from error
    if isinstance(size, bool) or count < 0:
        raise PrivacyError("noise size: expected an integer of at least 0")
    _checked_offsets(offsets, exact_offset, count)
    limit = _decision_limit(
        distribution, exact_scale, max(epsilon or distribution.epsilon, distribution.epsilon)
    )
    result = np.empty(count, dtype=np.int64)

    def sample(start: int) -> tuple[list[int], list[int], list[bool]]:
        """Draw a chunk; return the places, words and signs of samples that are left to be decided."""
        stop = min(start + chunk, count)
        bits = source.bits64(stop - start)
        if not isinstance(bits, np.ndarray) or bits.dtype != np.uint64 or bits.shape != (stop - start,):
            raise PrivacyError("the random source did not return the words that were asked for")
        lower = bits & _MAGNITUDE
        negative = (bits >> _SIGN).astype(np.bool_)
        undecided = np.arange(stop - start)
        if filtered and distribution.approximate is not None:
            part = None if offsets is None else offsets[start:stop]
            undecided = _filter(
                distribution.approximate(lower), negative, part, float(exact_scale), limit, result[start:stop]
            )
        return (undecided + start).tolist(), lower[undecided].tolist(), negative[undecided].tolist()

    for left in _in_order(sample, range(0, count, chunk), source):
        for place, word, minus in zip(*left, strict=True):
            offset = Fraction(0)
            if exact_offset is not None and offsets is not None:
                offset = _checked_offset(exact_offset(place), float(offsets[place]))
            tail = LazyTail(word, 64, source)
            result[place] = round_exactly(
                tail, minus, exact_scale, offset, distribution.upper_tail, distribution.guess
            )
    return result


def _in_order(
    sample: Callable[[int], tuple[list[int], list[int], list[bool]]], starts: range, source: RandomSource
) -> Iterator[tuple[list[int], list[int], list[bool]]]:
    """Yield what is left of each chunk; many chunks of the operating system's bits are drawn by threads."""
    # no other source need serve two threads, nor give each chunk the same words whichever comes first
    threads = 1 if len(starts) < _MOST_ALONE else min(THREADS, processors())
    if threads == 1 or not isinstance(source, SystemSource):
        yield from map(sample, starts)
        return
    # the first makes the filter's tables: ball arithmetic has one precision for all threads
    yield sample(starts[0])
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(sample, starts[1:])


def _checked_offset(exact: Fraction, rounded: float) -> Fraction:
    """Return the exact offset if it is in range and agrees with its rounded value."""
    if not isinstance(exact, Rational) or isinstance(exact, bool):
        raise PrivacyError("noise offsets: exact_offset returned no exact number")
    if not 0 <= exact < 1 or abs(exact - Fraction(rounded)) > Fraction(1, 1 << 53):
        raise PrivacyError("noise offsets: exact_offset disagrees with offsets")
    return Fraction(exact)


def _filter(
    approximation: tuple[NDArray[np.float64], NDArray[np.bool_]],
    negative: NDArray[np.bool_],
    offsets: NDArray[np.float64] | None,
    scale: float,
    limit: float,
    out: NDArray[np.int64],
) -> NDArray[np.intp]:
    """Write the decided samples to `out`; return the places of the undecided ones."""
    value, proved = approximation
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
