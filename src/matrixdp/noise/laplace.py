"""Laplace noise, and what all noises of pure differential privacy have in common: their cost is epsilon."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.noise.drawing import Array, Distribution, combination_quantiles, largest_quantile, largest_tail
from matrixdp.noise.noise import Guarantee, Measure, Noise
from matrixdp.privacy import Budget
from matrixdp.privacy.conversions import epsilon_of_gdp, gdp_of_epsilon, root_below

# The Laplace filter: |L| = -ln(2 V) from 63 bits of its tail probability V, within a proved error.
#
# The logarithm is taken by a table of certified values and a polynomial; docs/noise.md has the proof.

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


class PureNoise(Noise):
    """A noise whose log-density at scale 1 has a slope of at most 1: L1 sensitivity over scale is epsilon.

    References
    ----------
    M. Bun and T. Steinke, TCC 2016, proposition 1.4 (zCDP). J. Dong, A. Roth and W. Su, JRSS B 84, 2022
    (trade-off curves).
    """

    __slots__ = ()

    norm = 1
    known_for = "pure differential privacy"

    def allowed(self, budget: Budget) -> Fraction:
        """Return the largest epsilon whose pure guarantee implies the budget.

        It is epsilon itself for (epsilon, delta); epsilon^2 / 2 <= rho; and for mu the trade-off curve of
        epsilon-DP must lie above that of mu-GDP, which is (1 + e^epsilon) Phi(-mu / 2) <= 1.
        """
        if budget.epsilon is not None:
            return budget.epsilon
        return root_below(2 * budget.rho) if budget.rho is not None else epsilon_of_gdp(budget.mu)

    def guarantee(self, between: Fraction, budget: Budget, delta: Fraction) -> Guarantee:
        """Return what an epsilon promises; it needs no delta."""
        mu = gdp_of_epsilon(between)
        if budget.kind == "mu":  # the cost is within the budget, so its mu is one that is proved
            mu = min(mu, budget.mu)
        spent = None if budget.epsilon is None else Fraction(0)
        return Guarantee(between, mu, between * between / 2, between, spent)

    def accounted(self, measure: Measure, between: Fraction) -> Fraction | None:
        """Return epsilon, epsilon^2 / 2 as rho, or the square of the least mu that follows from it."""
        if measure == "squared_mu":
            return gdp_of_epsilon(between) ** 2
        return between if measure == "epsilon" else between * between / 2


@final
class Laplace(PureNoise):
    """Laplace noise of density exp(-|x| / b) / 2b.

    References
    ----------
    C. Dwork, F. McSherry, K. Nissim and A. Smith, Calibrating noise to sensitivity, TCC 2006.
    """

    __slots__ = ()

    name = "laplace"
    variance_factor = 2.0
    distribution = Distribution(
        upper_tail=upper_tail,
        guess=lambda logarithm: max(-logarithm - 0.6931471805599453, 0.0),
        approximate=approximate,
        epsilon=EPSILON,
        roundings=48,
    )

    def largest_quantile(self, confidence: float) -> float:
        """Return a multiplier that is enough for every combination."""
        return largest_quantile(confidence)

    def largest_tail(self, multiplier: float) -> float:
        """Return the bound whose inverse `largest_quantile` is."""
        return largest_tail(multiplier)

    def combination_quantiles(self, shares: Array, confidence: float) -> Array:
        """Return the quantiles of the combinations' own distributions."""
        return combination_quantiles(shares, confidence)


LAPLACE = Laplace()
