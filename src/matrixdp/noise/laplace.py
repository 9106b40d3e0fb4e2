"""Laplace noise, and what all noises of pure differential privacy have in common: their cost is epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact.linear import Array
from matrixdp.noise.drawing import Distribution
from matrixdp.noise.noise import Guarantee, Measure, Noise
from matrixdp.privacy import Budget
from matrixdp.privacy.conversions import ball, bisect, epsilon_of_gdp, gdp_of_epsilon, root_below

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


def nearest(ball: arb) -> float:
    """Return the double nearest to what a narrow ball holds."""
    if ball.rel_accuracy_bits() < 100:
        raise NumericalError("the table of logarithms could not be certified")
    return float(ball)


@lru_cache(maxsize=1)
def logarithm_table() -> LogarithmTable:
    """Return the table, made by ball arithmetic at its first use; its arrays are read-only."""
    centre = 0.5 + (np.arange(CELLS) + 0.5) / (2 * CELLS)
    with ctx.workprec(160):
        logarithm = np.array([nearest(-arb(c).log()) for c in centre.tolist()])
        unit = nearest(arb(2).log())
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
    return (-ball(point)).exp() / 2


def stretched(steps: Fraction, tail: Callable[[Fraction], arb], base: float, shift: float) -> Distribution:
    """Return a distribution of integers with tails of Laplace noise of a scale in steps.

    Parameters
    ----------
    steps : Fraction
    tail : callable
        The exact tail, from a point on.
    base : float
        Minus the logarithm of the tail at -1/2, as the exponential tails beyond continue it.
    shift : float
        From a Laplace variable of the scale to the variable that is rounded.
    """
    size = float(steps)

    def scaled(lower: NDArray[np.uint64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        magnitude, proved = approximate(lower)
        magnitude *= size
        magnitude += shift
        return magnitude, proved

    return Distribution(
        upper_tail=tail,
        guess=lambda logarithm: max(size * (-logarithm - base) - 0.5, 0.0),
        approximate=scaled,
        epsilon=steps * EPSILON,
        roundings=math.ceil(48 * steps),
    )


# Linear combinations of Laplace variables: how far from their mean they stay, with what probability.
#
# X = sum c_j L_j with independent Laplace variables of scales b_j has variance 1 when the shares a_j = 2
# c_j^2 b_j^2 sum to 1. It is a normal variable of random variance: X = sqrt(V) Z with V = sum a_j E_j, E_j
# standard exponential.

#: Half the period of the wrapped distribution, in standard deviations, and the terms of its Fourier series.
HALF_PERIOD = 16.0
_TERMS = 6_000
#: Terms of less weight are left out: altogether they are far below the errors that are allowed for.
FAINT = 1e-13
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
    target, low, high = 1.0 - confidence, 1e-3, 1.0
    while _bound(high) > target:
        high *= 2.0
    if _bound(low) <= target:
        return low
    return bisect(lambda x: _bound(x) <= target, high, low, 1e-12)[0] * (1.0 + 1e-9)


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
    limit = min(largest_quantile(confidence), 0.999 * HALF_PERIOD)
    result = np.empty(len(shares))
    terms = math.pi * np.arange(1, _TERMS + 1)
    frequencies = terms / HALF_PERIOD
    step = max(1, _CHUNK // (_TERMS * 2))
    for start in range(0, len(shares), step):
        block = shares[start : start + step]
        logarithm = np.zeros((len(block), _TERMS))
        for column in block.T:
            logarithm -= np.log1p(column[:, None] * (frequencies**2 / 2.0))
        weights = np.exp(logarithm) * (2.0 / terms)
        heard = weights.max(axis=0) > FAINT
        weights, waves = weights[:, heard], frequencies[heard]
        low, high = np.zeros(len(block)), np.full(len(block), limit)
        for _ in range(24):
            middle = (low + high) / 2.0
            within = middle / HALF_PERIOD + np.einsum("qk,qk->q", weights, np.sin(middle[:, None] * waves))
            below = within < confidence
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        result[start : start + step] = high
    return result * (1.0 + _OUTWARD)


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
        """Return the guarantee for an epsilon; it needs no delta."""
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
    on_integers = True
    distribution = Distribution(
        upper_tail=upper_tail,
        guess=lambda logarithm: max(-logarithm - 0.6931471805599453, 0.0),
        approximate=approximate,
        epsilon=EPSILON,
        roundings=48,
    )

    largest_quantile = staticmethod(largest_quantile)
    largest_tail = staticmethod(largest_tail)
    combination_quantiles = staticmethod(combination_quantiles)


LAPLACE = Laplace()
