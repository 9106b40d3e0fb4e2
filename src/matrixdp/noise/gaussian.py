"""Gaussian noise: its privacy cost is mu squared."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import NormalDist
from typing import final

import numpy as np
import scipy
from flint import arb, ctx
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.noise.drawing import Distribution
from matrixdp.noise.noise import Guarantee, Measure, Noise
from matrixdp.privacy import Budget, delta_of, epsilon_of
from matrixdp.privacy.conversions import ball, root_above

# The Gaussian filter: |Z| from 63 bits of its tail probability, within a proved error.
#
# A table holds, for z_c = c / 256, the upper tail probability Q(z_c) as a 64-bit integer and the inverse
# of the density, both from rigorous ball arithmetic. Around z_c the inverse of Q is its Taylor polynomial
# of degree 5 in t = (Q(z_c) - V) / density(z_c). `EPSILON` bounds the distance to the true |Z|, whatever
# the bits of V that were not drawn: docs/noise.md proves it, and a test recomputes it cell by cell.

CELLS_PER_UNIT = 256
LAST_CELL = 1408  # z = 5.5
LARGEST_STEP = 33 / 32 / 512  # the largest |t| that the proof of EPSILON allows
EPSILON = Fraction(1, 2**39)

_TWO_TO_MINUS_64 = 2.0**-64
#: Words are looked up by their first 16 of 63 bits; of words below the second, a bucket holds several cells.
_BUCKET, _RARE = np.uint64(47), np.uint64(1 << 54)


@dataclass(frozen=True, slots=True)
class FilterTable:
    """The rigorous table of the filter; every array has shape (LAST_CELL + 1,).

    ``centre`` is z_c = c / 256, exact; ``tail`` the integer nearest to 2**64 Q(z_c); ``step`` 2**-64 /
    density(z_c) within a relative 2**-52; ``taylor`` are the coefficients of t**5 to t**2.
    """

    centre: NDArray[np.float64]
    tail: NDArray[np.uint64]
    step: NDArray[np.float64]
    taylor: tuple[NDArray[np.float64], ...]


def upper_tail(point: Fraction) -> arb:
    """Enclose Q(point), the upper tail probability of the normal distribution, at the current precision."""
    return (ball(point) / arb(2).sqrt()).erfc() / 2


def _nearest_integer(cell: int, precision: int) -> int:
    """Return the integer nearest to 2**64 Q(z_c), proved by a ball that holds no other."""
    while precision <= 4096:
        with ctx.workprec(precision):
            ball = upper_tail(Fraction(cell, CELLS_PER_UNIT)) * arb(2) ** 64 + arb(0.5)
            nearest = ball.floor().unique_fmpz()
        if nearest is not None:
            return int(nearest)
        precision *= 2
    raise NumericalError("the table of normal tail probabilities could not be certified")


@lru_cache(maxsize=1)
def table() -> FilterTable:
    """Return the table, computed once with ball arithmetic when first asked for; its arrays are read-only."""
    centre = np.arange(LAST_CELL + 1, dtype=np.float64) / CELLS_PER_UNIT
    tail = np.array([_nearest_integer(cell, 192) for cell in range(LAST_CELL + 1)], dtype=np.uint64)
    step = np.empty(LAST_CELL + 1)
    for cell in range(LAST_CELL + 1):
        with ctx.workprec(192):
            z = arb(cell) / CELLS_PER_UNIT
            ball = (2 * arb.pi()).sqrt() * (z * z / 2).exp() / arb(2) ** 64
            if ball.rel_accuracy_bits() < 100:
                raise NumericalError("the table of normal densities could not be certified")
            step[cell] = float(ball)
    square = centre * centre
    second, third = centre / 2, (2 * square + 1) / 6
    fourth, fifth = (6 * square + 7) * centre / 24, ((24 * square + 46) * square + 7) / 120
    for array in (centre, tail, step, second, third, fourth, fifth):
        array.setflags(write=False)
    return FilterTable(centre, tail, step, (fifth, fourth, third, second))


def approximate(lower: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return approximations of |Z| for words B (V lies in [B, B + 1] * 2**-64), and where they are proved.

    Where they are, the error is at most `EPSILON` for every V of the interval; beyond the table they are not.

    Examples
    --------
    >>> magnitude, proved = approximate(np.array([2**62, 0], dtype=np.uint64))
    >>> round(float(magnitude[0]), 9), proved.tolist()
    (0.67448975, [True, False])
    """
    cells = table()
    cell = _guessed(lower)
    # Both integers are at most 2**63: the wrapped difference, read as signed, is the exact difference.
    t = (cells.tail[cell] - lower).view(np.int64).astype(np.float64)
    looked_up = np.take(cells.step, cell)
    t *= looked_up
    proved = np.abs(t, out=looked_up) <= LARGEST_STEP
    magnitude = np.take(cells.taylor[0], cell)
    for coefficient in cells.taylor[1:]:
        magnitude *= t
        magnitude += np.take(coefficient, cell, out=looked_up, mode="clip")
    magnitude *= t
    magnitude += 1.0
    magnitude *= t
    magnitude += np.take(cells.centre, cell, out=looked_up, mode="clip")
    return magnitude, proved


def _guessed(lower: NDArray[np.uint64]) -> NDArray[np.intp]:
    """Return the cells that words lie in; no proof rests on it, as |t| <= LARGEST_STEP is checked."""
    first, end = _guesses()
    cell = np.take(first, (lower >> _BUCKET).view(np.int64)).astype(np.intp)
    cell += lower < np.take(end, cell)
    rare = np.flatnonzero(lower < _RARE)
    if rare.size:
        points = scipy.special.ndtri((lower[rare].astype(np.float64) + 0.5) * _TWO_TO_MINUS_64)
        cell[rare] = np.fmin(np.rint(points * -CELLS_PER_UNIT), LAST_CELL).astype(np.intp)
    return cell


@lru_cache(maxsize=1)
def _guesses() -> tuple[NDArray[np.int16], NDArray[np.uint64]]:
    """Return the cell of the largest word that begins with each 16 bits, and where each cell ends."""
    largest = np.arange(1.0, (1 << 16) + 1.0) / (1 << 17)
    points = np.rint(scipy.special.ndtri(largest) * -CELLS_PER_UNIT)
    ends = (np.arange(LAST_CELL + 1) + 0.5) / CELLS_PER_UNIT
    words = np.ldexp(scipy.special.ndtr(-ends), 64).astype(np.uint64)
    return np.fmin(points, LAST_CELL).astype(np.int16), words


@final
class Gaussian(Noise):
    """Gaussian noise of standard deviation b.

    A strategy B with noise covariance S has cost beta = max diagonal of B' S^-1 B: the squared distance, in
    units of noise, by which one record more or less moves the answers. It is sqrt(beta)-GDP and
    (beta / 2)-zCDP.
    """

    __slots__ = ()

    name = "gaussian"
    norm = 2
    variance_factor = 1.0
    known_for = "zCDP and Gaussian differential privacy"
    distribution = Distribution(
        upper_tail=upper_tail,
        guess=lambda logarithm: -float(scipy.special.ndtri_exp(logarithm)),
        approximate=approximate,
        epsilon=EPSILON,
        roundings=24,
    )

    def allowed(self, budget: Budget) -> Fraction:
        """Return 2 rho, or mu squared."""
        return 2 * budget.rho if budget.rho is not None else budget.mu**2

    def guarantee(self, between: Fraction, budget: Budget, delta: Fraction) -> Guarantee:
        """Return the guarantee for a squared distance: the exact curve of sqrt(between)-GDP."""
        mu = root_above(between)
        spent = None if budget.epsilon is None else delta_of(mu, budget.epsilon)
        return Guarantee(None, mu, between / 2, epsilon_of(mu, delta), spent)

    def accounted(self, measure: Measure, between: Fraction) -> Fraction | None:
        """Return the squared distance, half of it as rho; it has no pure epsilon."""
        return {"rho": between / 2, "squared_mu": between, "epsilon": None}[measure]

    def honours(self, budget: Budget) -> bool:
        """Return whether the budget is anything but pure differential privacy."""
        return budget.kind != "pure"

    @property
    def stable(self) -> bool:
        """Combinations of normal variables are normal."""
        return True

    def largest_quantile(self, confidence: float) -> float:
        """Return the normal quantile."""
        outside = (1.0 - confidence) / 2.0
        # no SciPy: what compares noises for a budget loads none
        return -NormalDist().inv_cdf(outside) if outside > 0.0 else math.inf

    def largest_tail(self, multiplier: float) -> float:
        """Return the normal tail."""
        return math.erfc(max(multiplier, 0.0) / math.sqrt(2.0))


GAUSSIAN = Gaussian()
