"""Joint noise of an ordered attribute: a soft-threshold walk, with less error for its prefix sums.

Prefix sums P_1 .. P_n of integers are released as y_k = P_k + u_(k-1) + p_k with u_k = u_(k-1) + q_k and
q_k = soft(p_k, w_k) = sign(p_k) max(|p_k| - w_k, 0). The innovations p_k are independent integers,
P(p_k = z) in proportion to a^max(0, |z| - w_k), a = exp(-1 / s). So the noise is a known linear map of the
independent pairs (p_k, q_k). All of it is integer arithmetic on a lattice, on which the scale is s. On
trees u_(k-1) is the sum of u over the nodes right below k: a path is the simplest tree.
docs/privacy.md has the proof of what it costs, docs/noise.md that samples are exact.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, final

import numpy as np
import scipy
from flint import arb, ctx
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError
from matrixdp.exact.linear import Array
from matrixdp.exact.walks import UNIT, noise_covariance, sums_above, sums_below
from matrixdp.noise import laplace
from matrixdp.noise.drawing import Distribution, draw
from matrixdp.noise.source import RandomSource
from matrixdp.privacy.conversions import ball

#: With fair bits a loop is longer with probability below 2^-1000.
_LONGEST = 1_000
_STUCK = "the random source does not deliver random bits: a loop of 1,000 steps did not end"
_WORD = 64
#: Rows of walks that are drawn at once.
_CHUNK = 1 << 18


# Exact samples.


@lru_cache(maxsize=1024)
def tail_distribution(steps: Fraction) -> Distribution:
    """Return a distribution that rounds to +-G, P(G >= k) = a^k: G = floor(s |L|) for a Laplace variable L.

    Examples
    --------
    >>> tail = tail_distribution(Fraction(1))  # of both signs
    >>> round(2 * float(tail.upper_tail(Fraction(1, 2))), 6)  # P(G >= 1) = 1 / e
    0.367879
    """

    def upper_tail(point: Fraction) -> arb:
        return (-(ball(point) + arb(0.5)) / ball(steps)).exp() / 2

    return laplace.stretched(steps, upper_tail, math.log(2), -0.5)


@lru_cache(maxsize=65536)
def flat_words(width: int, steps: Fraction, bits: int = _WORD) -> int:
    """Return floor(2^bits P(|p| <= w)), the number of words of so many bits that are flat for certain.

    Examples
    --------
    At width 0 and scale 1 the probability is (1 - a) / (1 + a) = tanh(1/2).

    >>> flat_words(0, Fraction(1)) / 2**64 - math.tanh(0.5)
    0.0
    """
    guard = 64
    while True:
        with ctx.workprec(bits + guard):
            a = (-1 / ball(steps)).exp()
            own = arb(2 * width + 1) * (1 - a)
            found = (own / (own + 2 * a) * arb(2) ** bits).floor().unique_fmpz()
        if found is not None:
            return int(found)
        guard *= 2


def _is_flat(word: int, width: int, steps: Fraction, source: RandomSource) -> bool:
    """Decide for a word that 64 bits do not decide, drawing further bits."""
    bits = _WORD
    for _ in range(_LONGEST):
        more = source.more_bits(_WORD)
        if not 0 <= more < 1 << _WORD:
            raise PrivacyError("the random source returned bits out of range", code="out-of-range")
        word, bits = word << _WORD | more, bits + _WORD
        edge = flat_words(width, steps, bits)
        if word != edge:
            return word < edge
    raise PrivacyError(_STUCK)


def _words(count: int, source: RandomSource) -> NDArray[np.uint64]:
    words = source.bits64(count)
    if not isinstance(words, np.ndarray) or words.dtype != np.uint64 or words.shape != (count,):
        raise PrivacyError("the random source did not return the words that were asked for")
    return words


def lattice_widths(widths: Sequence[int], steps: Fraction) -> list[int]:
    """Return the widths of a walk in lattice steps, rounded down.

    Examples
    --------
    >>> lattice_widths((1024, 1536, 0), Fraction(7, 2))
    [3, 5, 0]
    """
    return [math.floor(own * steps / UNIT) for own in widths]


def draw_innovations(
    widths: Sequence[int], steps: Fraction, lines: int, source: RandomSource
) -> NDArray[np.int64]:
    """Draw independent innovations p, shape (lines, widths), for widths in lattice steps; exact.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> draw_innovations([2, 0], Fraction(1, 8), 4, SeededSource(1)).tolist()
    [[0, 0], [0, 0], [1, 0], [-1, 0]]
    """
    width = np.tile(np.array(widths, dtype=np.int64), lines)
    edges = np.tile(np.array([flat_words(own, steps) for own in widths], dtype=np.uint64), lines)
    words = _words(len(width), source)
    flat = words < edges
    for place in np.flatnonzero(words == edges).tolist():
        flat[place] = _is_flat(int(words[place]), int(width[place]), steps, source)
    # uniform on -w .. w, by rejection from as few bits as hold 2 w
    span = np.array([2 * own for own in widths], dtype=np.uint64)
    masks = np.array([(1 << (2 * own).bit_length()) - 1 for own in widths], dtype=np.uint64)
    span, masks = np.tile(span, lines), np.tile(masks, lines)
    found = np.empty(len(width), dtype=np.int64)
    left = np.flatnonzero(flat)
    for _ in range(_LONGEST):
        if not len(left):
            break
        drawn = _words(len(left), source) & masks[left]
        fits = drawn <= span[left]
        found[left[fits]] = drawn[fits].astype(np.int64) - width[left[fits]]
        left = left[~fits]
    else:
        raise PrivacyError(_STUCK)
    beyond = np.flatnonzero(~flat)
    further = np.abs(draw(tail_distribution(steps), Fraction(1), len(beyond), None, None, source))
    negative = _words(len(beyond), source) >> np.uint64(63) == 1
    found[beyond] = np.where(negative, -1, 1) * (width[beyond] + 1 + further)
    return found.reshape(lines, len(widths))


def walk_noise(
    innovations: NDArray[np.int64], widths: Sequence[int], parents: tuple[int, ...] = ()
) -> NDArray[np.int64]:
    """Return the noise a_k + p_k of rows from innovations, shape (lines, widths) in and out.

    a_k is the sum of the steps of all rows below k: see `sums_below`.

    Examples
    --------
    >>> walk_noise(np.array([[3, -1, -4]]), [2, 1, 0]).tolist()
    [[3, 0, -3]]
    >>> walk_noise(np.array([[3, 2, -4]]), [2, 1, 0], (2, 2, 3)).tolist()
    [[3, 2, -2]]
    """
    steps = np.sign(innovations) * np.maximum(np.abs(innovations) - np.array(widths, dtype=np.int64), 0)
    before = sums_below(steps.T, parents).T - steps
    return np.asarray(before + innovations)


def draw_walk(
    widths: Sequence[int],
    steps: Fraction,
    lines: int,
    source: RandomSource,
    parents: tuple[int, ...] = (),
) -> NDArray[np.int64]:
    """Draw the noise of independent walks, shape (lines, n), for widths in parts of 1024 of the scale.

    Parameters
    ----------
    widths : sequence of int
        Of a `WalkMatrix`.
    steps : Fraction
        The scale in lattice steps, exact.
    lines : int
    source : RandomSource
    parents : tuple of int
        See `sums_below`; one walk along all rows without.

    Raises
    ------
    PrivacyError
        If the source misbehaves.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> draw_walk((1024, 0), Fraction(5000), 3, SeededSource(1)).shape
    (3, 2)
    """
    own, result = lattice_widths(widths, steps), np.empty((lines, len(widths)), dtype=np.int64)
    at_once = max(1, _CHUNK // len(own))
    for start in range(0, lines, at_once):
        count = min(at_once, lines - start)
        result[start : start + count] = walk_noise(draw_innovations(own, steps, count, source), own, parents)
    return result


@final
@dataclass(frozen=True)
class Walk:
    """The joint noise of a part: independent walks, or walks up trees, along one of the axes of its rows.

    Parameters
    ----------
    widths : tuple of int
        Of a `WalkMatrix`.
    before, after : int
        The rows of the blocks before it and after it.
    parents : tuple of int
        Where these are not one path, the row of the matrix that each adds up to: see `sums_below`.
    """

    widths: tuple[int, ...]
    before: int = 1
    after: int = 1
    parents: tuple[int, ...] = ()

    @cached_property
    def own_covariance(self) -> Array:
        """The covariance of the rows of the matrix, at a scale where Laplace noise has the variance 1."""
        return noise_covariance(self.widths, self.parents)

    @cached_property
    def _scaled(self) -> Array:
        return np.array(self.widths) / UNIT

    def onwards(self, array: NDArray[Any]) -> Array:
        """Return the sums, along the last axis, of each row and of those that it adds up to."""
        return np.moveaxis(sums_above(np.moveaxis(array, -1, 0), self.parents), 0, -1)

    def covariance(self) -> Array:
        """Return the covariance of all rows, at a scale where Laplace noise has the variance 1."""
        own = np.kron(np.eye(self.before), np.kron(self.own_covariance, np.eye(self.after)))
        return np.asarray(own)

    def draw(self, steps: Fraction, source: RandomSource) -> NDArray[np.int64]:
        """Draw the noise of all rows of the part, flat; see `draw_walk`."""
        drawn = draw_walk(self.widths, steps, self.before * self.after, source, self.parents)
        return drawn.reshape(self.before, self.after, -1).transpose(0, 2, 1).ravel()

    def by_lines(self, coefficients: Array) -> Array:
        """Return coefficients of the rows by walks, shape (m, rows) in, (m, walks, n) out."""
        found = coefficients.reshape(-1, self.before, len(self.widths), self.after).transpose(0, 1, 3, 2)
        return np.ascontiguousarray(found).reshape(len(coefficients), -1, len(self.widths))

    def variances(self, coefficients: Array) -> Array:
        """Return the variances of combinations of rows, at a scale where Laplace noise has the variance 1.

        Examples
        --------
        >>> Walk((0, 0)).variances(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])).tolist()
        [1.0, 2.0, 1.0]
        """
        own = self.by_lines(coefficients)
        return np.asarray(np.einsum("mlk,mlk->m", own @ self.own_covariance, own))

    def largest_kurtosis(self) -> float:
        """Return the largest excess kurtosis of the rows, combined such that their noise is uncorrelated.

        Examples
        --------
        >>> round(Walk((0, 0)).largest_kurtosis(), 6)  # of Laplace noise
        3.0
        """
        c = self._scaled
        alpha = np.linalg.inv(np.linalg.cholesky(2.0 * self.own_covariance))
        flat, step = alpha * c, self.onwards(alpha)
        beyond = flat**4 + 4 * flat**3 * step + 12 * flat**2 * step**2 + 24 * flat * step**3 + 24 * step**4
        variance = (c * flat**2 / 3.0 + flat**2 + 2.0 * flat * step + 2.0 * step**2) / (1.0 + c)
        fourth = (c * flat**4 / 5.0 + beyond) / (1.0 + c) - 3.0 * variance**2
        return float(fourth.sum(axis=1).max())


# How far combinations stay from 0.
#
# A combination of the noise e of walks is X = sum (alpha_k r_k + gamma_k q_k) with the independent pairs
# r = p - q, |r| <= c, and q, where alpha_k is the coefficient of e_k and gamma_k the sum of those from k on.

#: Half the period of the wrapped distribution, in standard deviations; the terms of its Fourier series, by
#: blocks, and the weight of a whole block that ends it: what follows has less.
_HALF = 16.0
_BLOCKS = (1, 65, 129, 257, 513, 1025, 2049, 4097)
_FAINT = 3e-7
#: More than what the series leaves out and what its terms are off by, as a probability.
_LEFT_OUT = 1e-6
#: Standard deviations that share their frequencies are at most this far apart, as a factor.
_APART = 1.25
#: Numbers that are computed at once, such that caches hold them.
_AT_ONCE = 1 << 19
#: Numbers in one table; coefficients that are looked through for equal ones, and of all combinations whose
#: distributions are inverted.
_MOST_NUMBERS, _MOST_KEYS, MOST_COEFFICIENTS = 8_000_000, 1_000_000, 16_000_000
#: What makes of numbers others that look random.
_ODD = np.uint64(0x9E3779B97F4A7C15)
#: Halvings of the interval that holds a quantile, and what this is raised by, in deviations.
_HALVINGS, _OUTWARD = 9, 3e-5


def combination_quantiles(parts: Sequence[tuple[Walk, Array]], confidence: float) -> Array:
    """Return the quantile of |X| in standard deviations for combinations of the noise of independent parts.

    Parameters
    ----------
    parts : sequence of tuple
        The noise of each part, ``Walk((0,), rows)`` for independent Laplace noise, and coefficients of its
        rows at a scale where Laplace noise has the variance 1, shape (m, rows).
    confidence : float

    Notes
    -----
    X has the characteristic function prod [c sinc(t alpha c) + Re(e^(i t alpha c) / (1 - i t gamma))] /
    (1 + c), sinc(x) = sin(x) / x. Wrapped on a circle its probabilities are a Fourier series in its
    values. What is wrapped, and what the series leaves out, is added to the confidence.

    Examples
    --------
    One prefix sum at width 0 has Laplace noise; the second has that of two, as has a sum of two counts.

    >>> walk, counts = Walk((0, 0)), Walk((0,), 2)
    >>> combination_quantiles([(walk, np.eye(2))], 0.95).round(3).tolist()
    [2.118, 2.057]
    >>> combination_quantiles([(walk, np.zeros((1, 2))), (counts, np.ones((1, 2)))], 0.95).round(3).tolist()
    [2.057]
    """
    largest = laplace.largest_quantile(confidence)
    squares = np.sum([walk.variances(own) for walk, own in parts], axis=0)
    found, deviations = np.full(len(squares), largest), np.sqrt(np.maximum(squares, 0.0))
    target = confidence + laplace.largest_tail(_HALF) + _LEFT_OUT
    order = np.argsort(deviations)
    order = order[deviations[order] > 0.0]
    if target >= 1.0:
        return found
    most = max(1, _MOST_KEYS // sum(own.shape[1] for _, own in parts))
    start = 0
    while start < len(order):
        near = np.searchsorted(deviations[order], _APART * deviations[order[start]], side="right")
        chosen = order[start : min(int(near), start + most)]
        start += len(chosen)
        pairs = [_pairs(walk, own[chosen]) for walk, own in parts]
        alphas, gammas, widths = (np.concatenate(few, axis=-1) for few in zip(*pairs, strict=True))
        own = _near(alphas, gammas, widths, deviations[chosen], target, largest)
        found[chosen] = np.minimum(own, largest)
    return found


def _pairs(walk: Walk, coefficients: Array) -> tuple[Array, Array, Array]:
    """Return the alpha, gamma and width of all pairs, at scale 1."""
    alphas = walk.by_lines(coefficients) / math.sqrt(2.0)
    gammas = walk.onwards(alphas)
    widths = np.tile(np.array(walk.widths) / UNIT, alphas.shape[1])
    return alphas.reshape(len(alphas), -1), gammas.reshape(len(alphas), -1), widths


def _near(
    alphas: Array, gammas: Array, widths: Array, deviations: Array, target: float, largest: float
) -> Array:
    """Return the quantiles of combinations of similar variances, whose factors are computed once."""
    period = _HALF * float(deviations.max())
    count = len(alphas)
    unit = 1e-11 * float(np.abs(alphas).max())
    alphas, gammas = np.rint(alphas / unit), np.rint(gammas / unit)
    # X and -X are alike, and so are combinations of the same factors in another order
    own = np.abs(alphas)
    other = np.where(own > 0.0, np.sign(alphas) * gammas, np.abs(gammas))
    width = np.broadcast_to(widths, own.shape)
    _, places, kinds = np.unique(_marks(width, own, other), return_index=True, return_inverse=True)
    width, own, other = (few[places] for few in (width, own, other))
    rows, columns = np.nonzero((own != 0.0) | (other != 0.0))
    width, own, other = (few[rows, columns] for few in (width, own, other))
    first, factors = _distinct(width, own, other)
    if len(first) * _BLOCKS[1] > _MOST_NUMBERS and count > 1:
        halves = slice(count // 2), slice(count // 2, None)
        parts = [(unit * alphas[own], unit * gammas[own], widths, deviations[own]) for own in halves]
        return np.concatenate([_near(*few, target, largest) for few in parts])
    deviations, count = deviations[places], len(places)
    times = scipy.sparse.csr_array((np.ones(len(rows)), (rows, factors)), shape=(count, len(first)))
    width, own, other = width[first], unit * own[first], unit * other[first]
    found, left = np.empty(count), np.arange(count)
    weights, waves = np.empty((count, 0)), np.empty(0)
    for low, high in pairwise(_BLOCKS):
        terms = np.arange(low, high)
        frequencies = np.asarray(math.pi * terms / period, dtype=np.float64)
        asked = times[left]
        used = np.unique(asked.indices)
        asked = asked[:, used]
        at_once = max(1, _AT_ONCE // max(1, len(used)))
        pieces = []
        for start in range(0, len(terms), at_once):
            some = frequencies[start : start + at_once]
            table = _characteristic(own[used], other[used], width[used], some)
            signs = np.rint(asked @ (table < 0.0)) % 2
            pieces.append((asked @ np.log(np.maximum(np.abs(table), 1e-300)), signs))
        logarithm, negative = (np.hstack(few) for few in zip(*pieces, strict=True))
        more = (1.0 - 2.0 * negative) * np.exp(logarithm) * 2.0 / (math.pi * terms)
        weights, waves = np.hstack([weights, more]), np.concatenate([waves, frequencies])
        ended = np.abs(more).sum(axis=1) < _FAINT
        if high == _BLOCKS[-1]:
            ended[:] = True
        done = left[ended]
        found[done] = _inverted(weights[ended], waves, period, deviations[done], target, largest)
        left, weights = left[~ended], weights[~ended]
        if not len(left):
            break
    return np.asarray(found[kinds])


def _marks(*tables: Array) -> NDArray[np.uint64]:
    """Return a number for each row, whatever the order of its entries.

    Rows with other entries have the same one with a probability of about 2^-64.
    """
    mixed = np.zeros(tables[0].shape, dtype=np.uint64)
    for table in tables:
        mixed = (mixed ^ np.ascontiguousarray(table + 0.0).view(np.uint64)) * _ODD
        mixed ^= mixed >> np.uint64(32)
    return np.asarray((mixed * _ODD).sum(axis=1))


def _distinct(*columns: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return a place of each kind of rows, and of which kind each row is."""
    kinds = np.zeros(len(columns[0]), dtype=np.intp)
    for column in columns:
        values, places = np.unique(column, return_inverse=True)
        # numbered anew each time, lest products of numbers be too large
        kinds = np.unique(kinds * len(values) + places, return_inverse=True)[1]
    found = np.empty(kinds.max(initial=-1) + 1, dtype=np.intp)
    found[kinds] = np.arange(len(kinds))
    return found, kinds


def _inverted(
    weights: Array, waves: Array, half: float, deviations: Array, target: float, largest: float
) -> Array:
    """Return where Fourier series reach a probability, in deviations, rounded up."""
    least, most = np.zeros(len(weights)), np.full(len(weights), largest)
    below, above = np.zeros(len(weights)), np.ones(len(weights))
    for _ in range(_HALVINGS):
        middle = (least + most) / 2.0
        reached = middle * deviations
        within = reached / half + np.einsum("qk,qk->q", weights, np.sin(np.multiply.outer(reached, waves)))
        short = within < target
        least, most = np.where(short, middle, least), np.where(short, most, middle)
        below, above = np.where(short, within, below), np.where(short, above, within)
    # on the chord of probabilities that are concave but for less than what is added
    share = (target - below) / np.maximum(above - below, 1e-300)
    return np.asarray(np.minimum(least + share * (most - least) + _OUTWARD, most))


def _characteristic(alpha: Array, gamma: Array, width: Array, waves: Array) -> Array:
    """Return E cos t(alpha r + gamma q), for pairs in rows and frequencies t in columns."""
    different, places = np.unique(alpha * width, return_inverse=True)  # most are alike
    turned, stepped = np.multiply.outer(different, waves), np.multiply.outer(gamma, waves)
    sine = np.sin(turned)
    flat = np.divide(sine, turned, out=np.ones_like(sine), where=turned != 0.0)
    beyond = (np.cos(turned)[places] - stepped * sine[places]) / (1.0 + stepped**2)
    return np.asarray((width[:, None] * flat[places] + beyond) / (1.0 + width[:, None]))
