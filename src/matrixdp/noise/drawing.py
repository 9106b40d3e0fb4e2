"""Samples of a symmetric distribution, rounded exactly: a fast filter first, exact decisions for the rest.

Every distribution comes with a filter (an approximation of |Z| from 63 bits of its tail probability, within
a proved bound) and with an enclosure of its tail probability. Almost every sample is decided by the filter;
the others by `matrixdp.noise.drawing` from the same bits and further ones. docs/noise.md has the proofs.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
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
    shifted = -offset if negative else offset
    logarithm = math.log(tail.value) - tail.length * math.log(2)
    candidate = math.floor(shifted + scale * Fraction(guess(logarithm)) + Fraction(1, 2))
    half = Fraction(1, 2)
    while not exceeds(tail, (candidate - half - shifted) / scale, upper_tail):
        candidate -= 1
    while exceeds(tail, (candidate + half - shifted) / scale, upper_tail):
        candidate += 1
    return -candidate if negative else candidate


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
        raise PrivacyError(f"noise scale: found a {type(scale).__name__}; {expected}", code="wrong-type")
    exact = Fraction(int(scale.numerator), int(scale.denominator))
    if exact <= 0:
        raise PrivacyError(
            f"noise scale: found {'0' if exact == 0 else 'a negative number'}; {expected}",
            code="out-of-range",
        )
    if not SMALLEST_SCALE <= exact <= LARGEST_SCALE:
        raise PrivacyError(
            f"noise scale: found a number {'below' if exact < 1 else 'above'} the range; {expected}",
            code="out-of-range",
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
        raise PrivacyError(f"noise offsets: expected a float64 array of shape ({size},)", code="wrong-type")
    if not bool(np.all((offsets >= 0.0) & (offsets <= 1.0))):
        raise PrivacyError("noise offsets: found a number that is not in [0, 1)", code="out-of-range")


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
        raise PrivacyError("noise size: expected an integer of at least 0", code="out-of-range") from error
    if isinstance(size, bool) or count < 0:
        raise PrivacyError("noise size: expected an integer of at least 0", code="out-of-range")
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
        raise PrivacyError("noise offsets: exact_offset returned no exact number", code="wrong-type")
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


# Linear combinations of Laplace variables: how far from their mean they stay, with what probability.
#
# X = sum c_j L_j with independent Laplace variables of scales b_j has variance 1 when the shares a_j = 2
# c_j^2 b_j^2 sum to 1. It is a normal variable of random variance: X = sqrt(V) Z with V = sum a_j E_j, E_j
# standard exponential.

Array = NDArray[np.float64]

#: Half the period of the wrapped distribution, in standard deviations, and the terms of its Fourier series.
_HALF_PERIOD = 16.0
_TERMS = 6_000
#: What quantiles are raised by, relative: more than all errors of the series.
_OUTWARD = 1e-5
_CHUNK = 20_000_000


@lru_cache(maxsize=64)
def largest_quantile(confidence: float) -> float:
    """Return a multiplier q with P(|X| <= q) >= confidence for every combination X of variance 1.

    Notes
    -----
    P(|X| > x) = E g(V) with g(v) = erfc(x / sqrt(2 v)), which is convex up to v* = x^2 / 3 and concave
    beyond. Let h be g up to v* and its tangent at v* beyond: h is convex and at least g. Every V is a
    conditional expectation of one standard exponential variable E in distribution (V is below E in the convex
    order, since the shares are majorized by a single one), so E g(V) <= E h(V) <= E h(E), which is
    int_0^v* g(v) e^-v dv + e^-v* (g(v*) + g'(v*)). The multiplier is where this is 1 - confidence.

    Examples
    --------
    >>> 2.118 < largest_quantile(0.95) < 2.25  # one Laplace variable: 2.118; normal: 1.960
    True
    """
    target = 1.0 - confidence
    high = 1.0
    while _bound(high) > target:
        high *= 2.0
    low = 1e-3
    if _bound(low) <= target:
        return low
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        if _bound(middle) > target:
            low = middle
        else:
            high = middle
    return high * (1.0 + 1e-9)


def largest_tail(multiplier: float) -> float:
    """Return a bound on P(|X| > multiplier) for every combination X of variance 1; the inverse.

    Examples
    --------
    >>> round(largest_tail(largest_quantile(0.95)), 9)
    0.05
    """
    return 1.0 if multiplier <= 1e-3 else min(_bound(multiplier), 1.0)


def _bound(x: float) -> float:
    """Return E h(E), the bound of `largest_quantile`.

    By parts its integral is that of e^-v g'(v) less e^-v* g(v*), and g'(v) e^-v = x (2 pi v^3)^(-1/2)
    exp(-v - x^2 / 2v) is e^(-x sqrt(2)) times the density of the time at which a Brownian motion with drift
    sqrt(2) reaches x.
    """
    drift, edge = math.sqrt(2.0) * x, x * x / 3.0
    late = math.erfc((math.sqrt(2.0 / 3.0) * x + math.sqrt(3.0)) / math.sqrt(2.0)) / 2.0
    early = math.erfc((math.sqrt(3.0) - math.sqrt(2.0 / 3.0) * x) / math.sqrt(2.0)) / 2.0
    reached = math.exp(-drift) * early + (math.exp(drift) * late if late else 0.0)
    slope = math.sqrt(27.0) * math.exp(-1.5) / math.sqrt(2.0 * math.pi) / (x * x)
    return reached + math.exp(-edge) * slope


def combination_quantiles(shares: Array, confidence: float) -> Array:
    """Return for each combination, by its shares of sum 1, the quantile of |X| in standard deviations.

    Rounded outward by a relative 1e-5, more than the numerical error for confidences up to 1 - 1e-6.

    Notes
    -----
    X has the characteristic function prod 1 / (1 + a_j t^2 / 2). Wrapped on a circle of 32 standard
    deviations its probabilities are a Fourier series in the values of that function (Poisson summation);
    less than 1e-9 of the probability lies beyond half a turn.

    Examples
    --------
    >>> combination_quantiles(np.array([[1.0]]), 0.95).round(3)  # ln(20) / sqrt(2)
    array([2.118])
    """
    limit = min(largest_quantile(confidence), 0.999 * _HALF_PERIOD)
    result = np.empty(len(shares))
    frequencies = math.pi * np.arange(1, _TERMS + 1) / _HALF_PERIOD
    step = max(1, _CHUNK // (_TERMS * 2))
    for start in range(0, len(shares), step):
        block = shares[start : start + step]
        logarithm = np.zeros((len(block), _TERMS))
        squares = frequencies**2 / 2.0
        for column in block.T:
            logarithm -= np.log1p(column[:, None] * squares)
        weights = np.exp(logarithm) * (2.0 / (math.pi * np.arange(1, _TERMS + 1)))
        low, high = np.zeros(len(block)), np.full(len(block), limit)
        for _ in range(40):
            middle = (low + high) / 2.0
            inside = middle / _HALF_PERIOD + np.einsum(
                "qk,qk->q", weights, np.sin(middle[:, None] * frequencies)
            )
            below = inside < confidence
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        result[start : start + step] = high
    return result * (1.0 + _OUTWARD)
