"""Joint noise of many small tables: one radius for all, where each would pay for a share of its own.

A block is what a record can move by one unit: a vector z of n integers up to a common summand (the centred
cells of a table, with n = 2 a single number), of norm |z| = min over t of sum |z_i - t|, or max z - min z.
The second is for values in which a person has records at once: one in each of any of them changes it by 1.
Blocks b with widths w_b have noise of probability in proportion to a^max(0, max over b of |z_b| - w_b),
a = exp(-1 / s): a record changes every |z_b| by at most 1, hence the maximum, too. It is a mixture: of one
radius r for all blocks, given which they are independent, and z_b is uniform on |z_b| <= w_b + r. All of it
is integer arithmetic.
docs/privacy.md has the proof of what it costs, docs/noise.md that samples are exact.
"""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import final

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError
from matrixdp.exact.linear import Array
from matrixdp.exact.walks import UNIT
from matrixdp.noise import laplace
from matrixdp.noise.choice import uniform
from matrixdp.noise.drawing import draw
from matrixdp.noise.source import RandomSource
from matrixdp.noise.walks import tail_distribution
from matrixdp.privacy.conversions import ball

#: With fair bits a loop is longer with probability below 2^-1000.
_LONGEST = 1_000
_STUCK = "the random source does not deliver random bits: a loop of 1,000 steps did not end"
_WORD = 64
#: Standard deviations beside its mode in which the radius lies, and points in their range for means.
_REACH, _RADII = 12.0, 240
#: Shares of a variance that are left out, and more than what series leave out.
_FAINT, _LEFT_OUT = 1e-12, 1e-7
#: Steps to the scale at which errors are as those of continuous noise, to nine digits.
_FINE = Fraction(2**30)


@lru_cache(maxsize=256)
def signed_counts(cells: int) -> tuple[tuple[int, int, int], ...]:
    """Return how many cells are above 0, how many below, and in how many ways, for vectors of median 0.

    Of every n integers up to a common summand one vector has the lower median 0.

    Examples
    --------
    >>> signed_counts(2), sum(ways for *_, ways in signed_counts(3))
    (((0, 0, 1), (1, 0, 2)), 13)
    """
    above, below = range(cells // 2 + 1), range((cells - 1) // 2 + 1)
    pairs = ((a, b) for a in above for b in below)
    return tuple((a, b, math.comb(cells, a) * math.comb(cells - a, b)) for a, b in pairs)


@lru_cache(maxsize=256)
def _coefficients(cells: int) -> tuple[list[int], list[int], list[int]]:
    """Return what `points` and `square_sum` are sums of, by the number of cells that are not 0."""
    ways, more, mixed = ([0] * cells for _ in range(3))
    for a, b, own in signed_counts(cells):
        moved = a + b
        ways[moved] += own
        more[moved] += own * moved * (cells - 1)
        mixed[moved] += own * (moved * cells - (a - b) ** 2)
    return ways, more, mixed


def _binomials(norm: int, most: int) -> list[int]:
    """Return (norm choose j) for j up to `most`."""
    found = [1]
    for j in range(most):
        found.append(found[-1] * (norm - j) // (j + 1))
    return found


def points(cells: int, norm: int, ranged: bool = False) -> int:
    """Return how many vectors have at most a norm, with ``ranged`` that of ranges.

    Examples
    --------
    >>> points(2, 5), points(3, 1), points(3, 1, ranged=True)  # 0 and two signs of three or six others
    (11, 7, 7)
    """
    if ranged:  # of least element 0
        return int((norm + 1) ** cells - norm**cells)
    return int(sum(map(operator.mul, _coefficients(cells)[0], _binomials(norm, cells - 1))))


def square_sum(cells: int, norm: int, ranged: bool = False) -> int:
    """Return the sum over these of n times the squared length of the centred vector.

    Examples
    --------
    >>> square_sum(2, 1), square_sum(3, 1)  # twice 2 ((1/2)^2 + (1/2)^2); six times 3 (4 + 1 + 1) / 9
    (2, 12)
    """
    if ranged:  # of all vectors of 0 .. r, less those of 1 .. r; k numbers have the variance (k^2 - 1) / 12
        whole = sum(sign * k**cells * (k**2 - 1) for sign, k in ((1, norm + 1), (-1, norm)))
        return int(whole * cells * (cells - 1) // 12)
    _, more, mixed = _coefficients(cells)
    # the sums over all sizes of the moved cells of s_1^2 less s_1 s_2, and of s_1 s_2
    apart, both = _binomials(norm + 1, cells + 1), _binomials(norm + 2, cells + 1)
    return int(sum(map(operator.mul, more, apart[2:])) + sum(map(operator.mul, mixed, both[2:])))


def _differences(values: list[int]) -> list[int]:
    """Return c with values[r] = sum of c_j times (r choose j)."""
    found = []
    while values:
        found.append(values[0])
        values = list(map(operator.sub, values[1:], values))
    return found


def _chosen(weights: Sequence[int], source: RandomSource) -> int:
    """Draw a place in proportion to integer weights."""
    left = uniform(sum(weights), source)
    for place, own in enumerate(weights):
        if left < own:
            return place
        left -= own
    raise AssertionError


_Kind = tuple[int, int, bool]
"""The cells of a block, its width in lattice steps, and whether its norm is the range."""
_Kinds = tuple[tuple[_Kind, int], ...]
"""Kinds of blocks, and how many blocks there are of each."""


def _all_points(kinds: _Kinds, most: int) -> list[int]:
    """Return the number of points of all blocks together, at as many radii from 0 on."""
    return [
        math.prod(points(cells, width + radius, ranged) ** number for (cells, width, ranged), number in kinds)
        for radius in range(most)
    ]


@lru_cache(maxsize=64)
def _expanded(kinds: _Kinds) -> list[int]:
    """Return K with `_all_points` at a radius r = sum of K_j (r choose j); none is below 0."""
    dimension = sum((cells - 1) * number for (cells, *_), number in kinds)
    return _differences(_all_points(kinds, dimension + 1))


@lru_cache(maxsize=256)
def _variances(kinds: _Kinds, steps: Fraction) -> dict[_Kind, float]:
    """Return the variances of kinds of blocks; see `Radius.variances`."""
    expanded, found = _expanded(kinds), {}
    together = _all_points(kinds, len(expanded) + 2)
    with ctx.workprec(128):
        odds = 1 / ((1 / ball(steps)).exp() - 1)

        def summed(coefficients: list[int]) -> arb:
            total = arb(0)
            for own in reversed(coefficients):
                total = total * odds + own
            return total

        whole = summed(expanded)
        for kind, _ in kinds:
            cells, width, ranged = kind
            squares = [
                own // points(cells, width + radius, ranged) * square_sum(cells, width + radius, ranged)
                for radius, own in enumerate(together)
            ]
            found[kind] = float(summed(_differences(squares)) / whole) / (cells * (cells - 1))
    return found


def radii(widths: Array, free: Array) -> tuple[float, float]:
    """Return the ends of where the radius has all but nothing of its probability, in units of the scale.

    Its density is in proportion to e^-r prod (w_b + r)^free_b.

    Examples
    --------
    >>> low, high = radii(np.zeros(1), np.array([40.0]))
    >>> low < 5 < 40 < 110 < high
    True
    """
    low, high = 0.0, float(free.sum()) + 1.0
    for _ in range(60):
        middle = (low + high) / 2.0
        rising = float((free / (widths + middle)).sum()) > 1.0
        low, high = (middle, high) if rising else (low, middle)
    curvature = float((free / (widths + low + 1e-9) ** 2).sum())
    spread = min(1.0 / math.sqrt(curvature), float(free.sum()) + 2.0)
    return max(0.0, low - _REACH * spread), low + 2.5 * _REACH * spread + 40.0


def draw_block(cells: int, norm: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw a vector of at most a norm, all alike, with the lower median 0; shape (cells,).

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> drawn = draw_block(5, 7, SeededSource(1))
    >>> int(np.sort(drawn)[2]), int(np.abs(drawn).sum()) <= 7
    (0, True)
    """
    kinds = signed_counts(cells)
    a, b, _ = kinds[_chosen([ways * math.comb(norm, a + b) for a, b, ways in kinds], source)]
    # Floyd's algorithm: a + b of the numbers from 1 to the norm; their differences are the sizes
    ends: set[int] = set()
    for last in range(norm - a - b + 1, norm + 1):
        one = uniform(last, source) + 1
        ends.add(last if one in ends else one)
    sizes = np.diff(np.array(sorted(ends), dtype=np.int64), prepend=0)
    places = list(range(cells))
    for moved in range(a + b):
        other = moved + uniform(cells - moved, source)
        places[moved], places[other] = places[other], places[moved]
    found = np.zeros(cells, dtype=np.int64)
    found[places[:a]], found[places[a : a + b]] = sizes[:a], -sizes[a:]
    return found


def draw_ranged(cells: int, norm: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw a vector of at most a range, all alike, with the least element 0; shape (cells,).

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> drawn = draw_ranged(5, 7, SeededSource(1))
    >>> int(drawn.min()), int(drawn.max()) <= 7
    (0, True)
    """
    # which is the first 0: those before it are from 1 to the norm, those after it from 0
    first = _chosen([norm**j * (norm + 1) ** (cells - 1 - j) for j in range(cells)], source)
    above = [uniform(norm, source) + 1 for _ in range(first)]
    below = [uniform(norm + 1, source) for _ in range(first + 1, cells)]
    return np.array([*above, 0, *below], dtype=np.int64)


@final
@dataclass(frozen=True)
class Radius:
    """The joint noise of blocks under one radius.

    Parameters
    ----------
    cells : tuple of int
        Of each block, at least 2.
    widths : tuple of int
        Of each block, in parts of 1024 of the scale, at least 0.
    ranged : tuple of bool
        Whether the norm of each block is the range; empty if none is.
    copies : int
        How many there are of all of them, independent: a record moves those of one copy.

    Raises
    ------
    PrivacyError
        If there is no such block or width.

    Examples
    --------
    A count by itself, of width 0, has two-sided geometric noise: at epsilon 1 of standard deviation 1.357.

    >>> one = Radius((2,), (0,))
    >>> round((2 * one.variances(Fraction(1))[0]) ** 0.5, 3)
    1.357

    Twelve months beside a cell that nobody is in: a person with a record in each moves their range by 1.

    >>> year = Radius((13,), (0,), (True,))
    >>> round((2 * year.variances(Fraction(1))[0]) ** 0.5, 3)
    5.902
    """

    cells: tuple[int, ...]
    widths: tuple[int, ...]
    ranged: tuple[bool, ...] = ()
    copies: int = 1

    def __post_init__(self) -> None:
        if not self.ranged:
            object.__setattr__(self, "ranged", (False,) * len(self.cells))
        whole = all(type(own) is int for own in (*self.cells, *self.widths))
        fits = whole and len(self.cells) == len(self.widths) == len(self.ranged) >= 1 and self.copies >= 1
        if not fits or min(self.cells) < 2 or not 0 <= min(self.widths) <= max(self.widths) <= UNIT * 2**20:
            raise PrivacyError("one radius: expected blocks of at least 2 cells, and a width for each")

    @property
    def dimension(self) -> int:
        """How many numbers are free."""
        return sum(self.cells) - len(self.cells)

    def lattice_widths(self, steps: Fraction) -> list[int]:
        """Return the widths in lattice steps, to the nearest."""
        return [math.floor(own * steps / UNIT + Fraction(1, 2)) for own in self.widths]

    def _blocks(self, steps: Fraction) -> list[_Kind]:
        return list(zip(self.cells, self.lattice_widths(steps), self.ranged, strict=True))

    def _kinds(self, steps: Fraction) -> _Kinds:
        return tuple(sorted(Counter(self._blocks(steps)).items()))

    def variances(self, steps: Fraction) -> list[float]:
        """Return the variance v of each block in squared lattice steps: its covariance is v (I - 11' / n).

        That is of the centred vector. Exact but for rounding.
        """
        found = _variances(self._kinds(steps), steps)
        return [found[kind] for kind in self._blocks(steps)]

    @cached_property
    def scaled_variances(self) -> list[float]:
        """The same of continuous noise, over the squared scale."""
        return [own / float(_FINE) ** 2 for own in self.variances(_FINE)]

    @property
    def scaled_widths(self) -> Array:
        """The widths in units of the scale."""
        return np.array(self.widths) / UNIT

    @cached_property
    def _mixture(self) -> tuple[Array, Array]:
        """Radii of continuous noise in units of the scale, with probabilities: for means of functions."""
        free = np.array(self.cells) - 1.0
        low, high = radii(self.scaled_widths, free)
        r, weights = np.polynomial.legendre.leggauss(_RADII)
        r = low + (high - low) * (r + 1.0) / 2.0
        logarithm = free @ np.log(self.scaled_widths[:, None] + r) - r
        weights = weights * np.exp(logarithm - logarithm.max())
        return r, weights / weights.sum()

    def kurtosis(self) -> float:
        """Return a bound of 4 V / d - 2, V the variance of half the sum of d squared numbers of variance 1.

        They are those of all blocks, uncorrelated: 0 for normal ones. Given r a block's squared length is at
        most (1 - 1 / n) (w + r)^2, and that of a range n (w + r)^2 / 4.
        """
        r, probabilities = self._mixture
        free, cells = np.array(self.cells) - 1.0, np.array(self.cells, dtype=np.float64)
        squares = (self.scaled_widths[:, None] + r) ** 2
        means = squares @ probabilities
        halves = (free / 2.0)[:, None] * squares / means[:, None]
        unit = free * np.array(self.scaled_variances) / means  # the mean squared length in the unit body
        longest = np.where(self.ranged, cells / 4.0, 1.0 - 1.0 / cells)
        spread = (longest / unit - 1.0)[:, None] * halves**2
        total = halves.sum(axis=0)
        variance = (total**2 + spread.sum(axis=0)) @ probabilities - float(total @ probabilities) ** 2
        return float(4.0 * variance / free.sum() - 2.0)

    def quantiles(self, shares: Array, confidence: float) -> Array:
        """Return the quantile of |X| in standard deviations of combinations of blocks of two cells.

        Parameters
        ----------
        shares : ndarray, shape (m, blocks)
            Of each block in the variance: every row has sum 1, and no share of a larger block.
        confidence : float

        Notes
        -----
        Given r each block is uniform on an interval: the characteristic function of X is a mean over r of
        products of sin(x) / x.

        Examples
        --------
        Of ten yes/no questions and their total: a count has half of the difference and half of the total.

        >>> noise = Radius((2,) * 11, (0, *[6321] * 10))
        >>> own = np.zeros((1, 11))
        >>> own[0, :2] = np.array(noise.scaled_variances[:2])
        >>> noise.quantiles(own / own.sum(), 0.95).round(2).tolist()
        [1.97]
        """
        r, probabilities = self._mixture
        logarithms, waves = laplace.smoothed_series()
        heard = logarithms > math.log(laplace.FAINT)
        waves, kernel = waves[heard], np.exp(logarithms[heard])
        largest, found = laplace.largest_quantile(confidence), np.empty(len(shares))
        target = confidence + laplace.largest_tail(laplace.HALF_PERIOD - laplace.SMOOTHED) + _LEFT_OUT
        if target >= 1.0 or largest >= laplace.HALF_PERIOD:
            return np.full(len(shares), largest)
        reach = self.scaled_widths[:, None] + r
        lengths = np.sqrt(3.0 / (reach**2 @ probabilities))[:, None] * reach
        for row, own in enumerate(shares):
            values = np.ones((len(r), len(waves)))
            for block in np.flatnonzero(own > _FAINT):
                values *= np.sinc(np.multiply.outer(math.sqrt(own[block]) * lengths[block] / math.pi, waves))
            found[row] = laplace.smoothed_quantile(kernel * (probabilities @ values), waves, target, largest)
        return found

    def draw_radius(self, steps: Fraction, source: RandomSource) -> int:
        """Draw the radius: r with probability in proportion to a^r times the number of points; exact.

        With K as `_expanded` has it, that is a mixture: j with weight K_j (a / (1 - a))^j, and r the sum of j
        and j + 1 geometric variables of ratio a.
        """
        weights, word, bits = _expanded(self._kinds(steps)), 0, 0
        for _ in range(_LONGEST):
            word, bits = word << _WORD | source.more_bits(_WORD), bits + _WORD
            if not 0 <= word < 1 << bits:
                raise PrivacyError("the random source returned bits out of range", code="out-of-range")
            chosen = _place(weights, steps, word, bits)
            if chosen is not None:
                break
        else:
            raise PrivacyError(_STUCK)
        tail = tail_distribution(steps)
        return chosen + int(np.abs(draw(tail, Fraction(1), chosen + 1, None, None, source)).sum())

    def draw(self, steps: Fraction, source: RandomSource) -> list[NDArray[np.int64]]:
        """Draw the noise of all blocks of a copy, each of shape (cells,), up to a common summand; exact.

        Raises
        ------
        PrivacyError
            If the source misbehaves.
        """
        radius = self.draw_radius(steps, source)
        return [
            (draw_ranged if ranged else draw_block)(cells, width + radius, source)
            for cells, width, ranged in self._blocks(steps)
        ]


def _place(weights: Sequence[int], steps: Fraction, word: int, bits: int) -> int | None:
    """Return the j whose interval of probability has [word, word + 1] / 2^bits in it, or None if unclear."""
    with ctx.workprec(bits + 64 + 2 * len(weights)):
        odds = 1 / ((1 / ball(steps)).exp() - 1)
        power, total, terms = arb(1), arb(0), list[arb]()
        for weight in weights:
            terms.append(weight * power)
            total += terms[-1]
            power *= odds
        low, high = total * word / arb(2) ** bits, total * (word + 1) / arb(2) ** bits
        reached = arb(0)
        for place, own in enumerate(terms):
            before, reached = reached, reached + own
            if high <= reached or place == len(terms) - 1:
                return place if low >= before or place == 0 else None
            if not low >= reached:
                return None  # the interval of the word reaches over the end of this one
    return None
