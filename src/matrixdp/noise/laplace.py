"""Laplace noise, and what all noises of pure differential privacy have in common: their cost is epsilon."""

from __future__ import annotations

from fractions import Fraction
from typing import final

from matrixdp.noise.combinations import Array, combination_quantiles, largest_quantile, largest_tail
from matrixdp.noise.drawing import Distribution
from matrixdp.noise.laplace_filter import EPSILON, approximate, upper_tail
from matrixdp.noise.noise import Guarantee, Measure, Noise
from matrixdp.privacy import Budget
from matrixdp.privacy.conversions import epsilon_of_gdp, gdp_of_epsilon
from matrixdp.privacy.numbers import root_below

__all__ = ["LAPLACE", "Laplace", "PureNoise"]


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

    def guarantee(self, between: Fraction, budget: Budget, delta: Fraction) -> Guarantee:  # noqa: ARG002
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
