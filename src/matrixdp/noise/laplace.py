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
from matrixdp.privacy.conversions import ball, epsilon_of_gdp, gdp_of_epsilon, root_below

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


# How far linear combinations of noise stay from 0.
#
# Laplace noise is symmetric and log-concave, and so is the joint noise of a walk. A combination X of such
# variables is symmetric and log-concave too. Where its variance is 1, its tail is at most the largest of
# those of truncated Laplace variables of variance 1: docs/noise.md has the proof.

#: Where a variable of density e^-|x| may be cut off. Earlier it is uniform, but for what is added; later
#: nothing of floating point's numbers is cut off.
_CUTS = np.geomspace(1e-6, 1024.0, 256)
#: What the largest of their figures is raised by, relative, and the parts of what is looked at more closely.
_ABOVE, _PARTS = 1e-6, 16
#: Terms of a series that has sixteen digits up to 2.
_SERIES = 30

#: Half the period of the wrapped distribution, in standard deviations, and the terms of its Fourier series.
HALF_PERIOD = 16.0
#: Half the width, and the number of uniform terms, of what makes the series of other variables converge.
SMOOTHED, _UNIFORM = 0.02, 10
_TERMS = 6_000
#: Terms of less weight are left out: altogether they are far below the errors that are allowed for.
FAINT = 1e-13
#: What quantiles are raised by, relative: more than all errors of the series.
_OUTWARD = 1e-5
_CHUNK = 20_000_000


def _deviation(cut: Array) -> Array:
    """Return the standard deviation of density e^-|x| on [-cut, cut]; cut off later it is larger."""
    early = np.minimum(cut, 2.0)
    series = np.zeros_like(early)  # of P(3, x) = 1 - e^-x (1 + x + x^2 / 2), without its cancellation
    for term in range(_SERIES, 2, -1):
        series = (1.0 + series) * early / term
    late = -np.expm1(-cut) - np.exp(-cut) * (cut + cut**2 / 2.0)
    share = np.where(cut < 2.0, np.exp(-early) * series * early**2 / 2.0, late)
    return np.asarray(np.sqrt(2.0 * share / -np.expm1(-cut)))


def _largest(bound: Callable[[Array, Array], Array], uniform: float) -> float:
    """Return a little more than the largest figure of truncated Laplace variables, given the uniform one's.

    ``bound`` has bounds of the figures between two cuts, the closer the nearer they are.
    """
    low, high = _CUTS[:-1], _CUTS[1:]
    found = uniform
    while True:
        found = max(found, float(bound(high, high).max()))
        near = bound(low, high) > found * (1.0 + _ABOVE)
        if not near.any():
            return found * (1.0 + _ABOVE)
        ends = np.linspace(low[near], high[near], _PARTS + 1)
        low, high = ends[:-1].ravel(), ends[1:].ravel()


@lru_cache(maxsize=64)
def largest_quantile(confidence: float) -> float:
    """Return a multiplier q with P(|X| <= q) >= confidence for every combination X of variance 1.

    Examples
    --------
    >>> round(largest_quantile(0.95), 4)  # one Laplace variable: 2.118; normal: 1.960
    2.1691
    """
    missed = max(1.0 - confidence, 1e-300)

    def bound(low: Array, high: Array) -> Array:
        # cut off later a variable reaches farther, but a smaller part of the way to the cut
        least, most = (-np.log(np.exp(-cut) - missed * np.expm1(-cut)) for cut in (low, high))
        return np.asarray(np.minimum(most / _deviation(low), least * (high / low) / _deviation(high)))

    return _largest(bound, math.sqrt(3.0) * confidence)


@lru_cache(maxsize=1024)
def largest_tail(multiplier: float) -> float:
    """Return a bound on P(|X| > multiplier) for every combination X of variance 1; the inverse.

    Examples
    --------
    >>> round(largest_tail(largest_quantile(0.95)), 6)
    0.05
    """
    if multiplier <= 0.0:
        return 1.0

    def beyond(point: Array, cut: Array) -> Array:
        inside = np.minimum(point, cut)
        return np.asarray(np.exp(-inside) * np.expm1(inside - cut) / np.expm1(-cut))

    def bound(low: Array, high: Array) -> Array:
        least, most = multiplier * _deviation(low), multiplier * _deviation(high)
        return np.minimum(beyond(least, high), beyond(most * (low / high), low))

    return min(_largest(bound, max(1.0 - multiplier / math.sqrt(3.0), 0.0)), 1.0)


@lru_cache(maxsize=1)
def smoothed_series() -> tuple[Array, Array]:
    """Return logarithms of weights and the frequencies of a Fourier series that converges for any variable.

    Its coefficients are the values of a characteristic function at these, times the weights: those of X + S,
    where S is a sum of uniform variables, at most `SMOOTHED`, so that |X| <= q if |X + S| <= q - `SMOOTHED`.
    """
    terms = math.pi * np.arange(1, 2 * _TERMS + 1)
    with np.errstate(divide="ignore"):
        kernel = np.sinc(terms / HALF_PERIOD * SMOOTHED / _UNIFORM / math.pi) ** _UNIFORM
        return np.asarray(np.log(kernel * 2.0 / terms)), np.asarray(terms / HALF_PERIOD)


def smoothed_quantile(weights: Array, waves: Array, target: float, largest: float) -> float:
    """Return where a probability is reached for certain, by the series of X + S, or the largest if less."""
    low, high = 0.0, largest
    for _ in range(24):
        middle = (low + high) / 2.0
        below = middle / HALF_PERIOD + float(weights @ np.sin(middle * waves)) < target
        low, high = (middle, high) if below else (low, middle)
    return min(high + SMOOTHED, largest)


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
