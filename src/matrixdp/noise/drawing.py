"""Samples of a symmetric distribution, rounded exactly: a fast filter first, exact decisions for the rest.

Every distribution comes with a filter (an approximation of |Z| from 63 bits of its tail probability, within
a proved bound) and with an enclosure of its tail probability. Almost every sample is decided by the filter;
the others by `matrixdp.noise.drawing` from the same bits and further ones. docs/noise.md has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError
from matrixdp.exact.resources import processors
from matrixdp.noise.source import RandomSource, SystemSource

# The undecided sample: a rounding decided by rigorous ball arithmetic and lazily drawn bits.
#
# |Z| is the point at which the upper tail probability of its distribution equals a uniform V in (0, 1/2).
# Nothing is inverted here: "|Z| > a" is "V < Q(a)", and the upper tail probability Q(a) is enclosed in a
# ball of any accuracy. V is known to lie in an interval of width 2**-length; it is refined, never redrawn,
# until the interval and the ball are apart.

# A fair source needs more than this many bits for one sample with probability below 2**-16000.
_LONGEST = 1 << 14
_STEP = 64


@dataclass(slots=True)
class LazyTail:
    """A uniform tail probability, in [value, value + 1] * 2**-length as far as its bits were drawn."""

    value: int
    length: int
    source: RandomSource

    def extend(self) -> None:
        """Draw 64 further bits of V; refuse a source that is none of random bits."""
        if self.length > _LONGEST:
            raise PrivacyError("the random source does not deliver random bits: one sample used up 16384")
        bits = self.source.more_bits(_STEP)
        if not 0 <= bits < 1 << _STEP:
            raise PrivacyError("the random source returned bits out of range", code="out-of-range")
        self.value = self.value << _STEP | bits
        self.length += _STEP


def exceeds(tail: LazyTail, point: Fraction, upper_tail: Callable[[Fraction], arb]) -> bool:
    """Decide whether |Z| > point, that is V < Q(point), drawing further bits of V only if they are needed."""
    if point <= 0:
        return True
    guard = 32
    while True:
        with ctx.workprec(tail.value.bit_length() + guard):
            ball = upper_tail(point)
            if ball >= arb((tail.value + 1, -tail.length)):
                return True
            if ball <= arb((tail.value, -tail.length)):
                return False
            narrow = bool(ball.rad() < arb((1, -tail.length - 1)))
        # A ball wider than the interval asks for precision, a narrow ball inside it for further bits.
        if narrow:
            tail.extend()
        else:
            guard *= 2


def round_exactly(
    tail: LazyTail,
    negative: bool,
    scale: Fraction,
    offset: Fraction,
    upper_tail: Callable[[Fraction], arb],
    guess: Callable[[float], float],
) -> int:
    """Return the one integer K with |offset + scale * Z - K| < 1/2; the guess decides nothing.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, SeededSource
    >>> tail = LazyTail(value=2**60, length=64, source=SeededSource(1))
    >>> normal = GAUSSIAN.distribution
    >>> scale, offset = Fraction(100), Fraction(1, 3)
    >>> round_exactly(tail, True, scale, offset, normal.upper_tail, normal.guess)  # Z is about -1.534
    -153
    """
    while tail.value == 0:
        tail.extend()
    # With n = sign * K and p = sign * offset, K is the answer if and only if
    # (n - 1/2 - p) / scale < |Z| < (n + 1/2 - p) / scale.
    shifted, half = -offset if negative else offset, Fraction(1, 2)
    logarithm = math.log(tail.value) - tail.length * math.log(2)
    candidate = math.floor(shifted + scale * Fraction(guess(logarithm)) + half)
    while not exceeds(tail, (candidate - half - shifted) / scale, upper_tail):
        candidate -= 1
    while exceeds(tail, (candidate + half - shifted) / scale, upper_tail):
        candidate += 1
    return -candidate if negative else candidate


LARGEST_SCALE = 1 << 20

CHUNK = 1 << 15
#: From `_MOST_ALONE` chunks on, at most `THREADS` threads draw them.
_MOST_ALONE, THREADS = 8, 2
#: The places, words and signs of samples of a chunk that the filter does not decide.
_Left = tuple[list[int], list[int], list[bool]]
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


def exact_number(name: str, value: object, least: int, most: int | None = None) -> Fraction:
    """Return a number above 0 and within limits as a Fraction; the messages quote no number but 0."""
    expected = "an exact number above 0" if most is None else f"an exact number between {least} and {most}"
    if isinstance(value, bool) or not isinstance(value, Rational):
        raise PrivacyError(f"{name}: found a {type(value).__name__}; expected {expected}", "wrong-type")
    exact = Fraction(int(value.numerator), int(value.denominator))
    if exact <= 0 or exact < least or (most is not None and exact > most):
        found = "0" if exact == 0 else "a negative number" if exact < 0 else "a number out of range"
        raise PrivacyError(f"{name}: found {found}; expected {expected}", "out-of-range")
    return exact


def _checked_offsets(
    offsets: NDArray[np.float64] | None, exact_offset: Callable[[int], Fraction] | None, size: int
) -> None:
    """Refuse offsets that do not fit the samples; the messages quote no offset."""
    if (offsets is None) != (exact_offset is None):
        raise PrivacyError("noise offsets: found one of offsets and exact_offset; expected both or neither")
    if offsets is None:
        return
    if not isinstance(offsets, np.ndarray) or offsets.dtype != np.float64 or offsets.shape != (size,):
        raise PrivacyError(f"noise offsets: expected a float64 array of shape ({size},)", code="wrong-type")
    if not bool(np.all((offsets >= 0.0) & (offsets <= 1.0))):
        raise PrivacyError("noise offsets: found a number that is not in [0, 1)", code="out-of-range")


def _decision_limit(distribution: Distribution, scale: Fraction) -> float:
    """Return a bound below 1/2 - scale epsilon - (roundings scale + 8) 2**-53 (docs/noise.md, lemma 3)."""
    margin = scale * distribution.epsilon + (distribution.roundings * scale + 8) * Fraction(1, 1 << 53)
    return float(np.nextafter(float(Fraction(1, 2) - margin), -1.0))


def draw(
    distribution: Distribution,
    scale: Fraction,
    size: int,
    offsets: NDArray[np.float64] | None,
    exact_offset: Callable[[int], Fraction] | None,
    source: RandomSource,
) -> NDArray[np.int64]:
    """Draw independent round(f_i + scale * Z_i), `CHUNK` at once; see `Noise.draw_rounded`."""
    exact_scale = exact_number("noise scale", scale, 1, LARGEST_SCALE)
    if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
        raise PrivacyError("noise size: expected an integer of at least 0", code="out-of-range")
    _checked_offsets(offsets, exact_offset, size)
    limit = _decision_limit(distribution, exact_scale)
    result = np.empty(size, dtype=np.int64)

    def sample(start: int) -> _Left:
        """Draw a chunk; return what is left of it to be decided."""
        out = result[start : start + CHUNK]
        bits = source.bits64(len(out))
        if not isinstance(bits, np.ndarray) or bits.dtype != np.uint64 or bits.shape != out.shape:
            raise PrivacyError("the random source did not return the words that were asked for")
        lower = bits & _MAGNITUDE
        negative = (bits >> _SIGN).astype(np.bool_)
        undecided = np.arange(len(out))
        if distribution.approximate is not None:
            value, decided = distribution.approximate(lower)
            value *= float(exact_scale)
            np.negative(value, out=value, where=negative)
            if offsets is not None:
                value += offsets[start : start + CHUNK]
            out[...] = nearest = np.rint(value)
            value -= nearest
            decided &= np.abs(value, out=value) < limit
            undecided = np.flatnonzero(~decided)
        return (undecided + start).tolist(), lower[undecided].tolist(), negative[undecided].tolist()

    ways = distribution.upper_tail, distribution.guess
    for left in _in_order(sample, range(0, size, CHUNK), source):
        for place, word, minus in zip(*left, strict=True):
            offset = Fraction(0)
            if exact_offset is not None and offsets is not None:
                offset = _checked_offset(exact_offset(place), float(offsets[place]))
            result[place] = round_exactly(LazyTail(word, 64, source), minus, exact_scale, offset, *ways)
    return result


def _in_order(sample: Callable[[int], _Left], starts: range, source: RandomSource) -> Iterator[_Left]:
    """Yield the undecided samples of each chunk; threads draw many chunks of the operating system's bits."""
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
        raise PrivacyError("noise offsets: exact_offset returned no exact number", code="wrong-type")
    if not 0 <= exact < 1 or abs(exact - Fraction(rounded)) > Fraction(1, 1 << 53):
        raise PrivacyError("noise offsets: exact_offset disagrees with offsets")
    return Fraction(exact)
