"""Gaussian noise: its privacy cost is mu squared."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist
from typing import final

import scipy  # its parts are read when they are first used

from matrixdp.noise.drawing import Distribution
from matrixdp.noise.gaussian_filter import EPSILON, approximate, upper_tail
from matrixdp.noise.noise import Guarantee, Measure, Noise
from matrixdp.privacy import Budget, delta_of, epsilon_of
from matrixdp.privacy.numbers import root_above

__all__ = ["GAUSSIAN", "Gaussian"]


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
        """Return what a squared distance promises: it is the exact curve of sqrt(between)-GDP."""
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
