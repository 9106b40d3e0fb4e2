"""Laplace noise on the integers: the two-sided geometric distribution, with less variance at the same cost.

K has P(K = k) in proportion to a^|k|, a = exp(-1 / s). Where all exact answers are multiples of one number g,
g K with s = b / g moves log-probabilities by as much as Laplace noise of scale b: the cost is the same.
docs/noise.md and docs/privacy.md have the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.noise import laplace
from matrixdp.noise.drawing import Distribution, draw
from matrixdp.noise.noise import Noise
from matrixdp.noise.radius import Radius
from matrixdp.noise.source import RandomSource
from matrixdp.noise.walks import Walk
from matrixdp.privacy.conversions import ball

#: From so many steps on the standard error is nearly that of Laplace noise, whose quantiles are bounded
#: better; with fewer than the least, what is left of it is below what floating point should add up.
MOST_STEPS, LEAST_STEPS = Fraction(2), Fraction(1, 32)

#: Terms of a combination that differ, up to which its distribution is inverted.
_MOST_TERMS = 128
#: More than what is left out of the series; docs/noise.md has the sum.
_LEFT_OUT = 2e-8
#: Probabilities that what is added to integer noise, to have Laplace noise, lies beyond some point.
_BEYOND = (0.25, 0.1, 0.03, 0.01, 1e-3, 1e-4)


@lru_cache(maxsize=1024)
def distribution(steps: Fraction) -> Distribution:
    """Return a distribution that rounds to the two-sided geometric one, a = exp(-1 / steps).

    Its upper tail at k - 1/2 is P(K >= k) = a^k / (1 + a), for k >= 1.

    Examples
    --------
    >>> round(float(distribution(Fraction(1)).upper_tail(Fraction(1, 2))), 6)  # a / (1 + a), a = 1 / e
    0.268941
    """
    with ctx.workprec(256):
        zero = (1 + (-1 / ball(steps)).exp()).log()
        shift = laplace.nearest(ball(steps) * (arb(2).log() - zero) - arb(0.5))

    def upper_tail(point: Fraction) -> arb:
        own = ball(steps)
        return (-(ball(point) + arb(0.5)) / own).exp() / (1 + (-1 / own).exp())

    return laplace.stretched(steps, upper_tail, float(zero), shift)


def draw_integers(steps: Fraction, size: int, source: RandomSource) -> NDArray[np.int64]:
    """Draw independent integers, exactly of the distribution; see `Noise.draw_rounded`.

    Examples
    --------
    >>> from matrixdp.noise import SeededSource
    >>> draw_integers(Fraction(1), 8, SeededSource(1)).tolist()
    [3, -1, 0, -1, 0, 0, 0, -2]
    """
    return draw(distribution(steps), Fraction(1), size, None, None, source)


def variance(steps: float) -> float:
    """Return the variance, 2 a / (1 - a)^2.

    Examples
    --------
    >>> [round(math.sqrt(variance(1 / epsilon)), 3) for epsilon in (1, 2, 4)]
    [1.357, 0.602, 0.195]
    """
    return 0.5 / math.sinh(0.5 / steps) ** 2


def excess_kurtosis(steps: float) -> float:
    """Return E K^4 / variance^2 - 3; it falls to the 3 of Laplace noise as steps become smaller.

    Examples
    --------
    >>> round(excess_kurtosis(1000.0), 5), round(excess_kurtosis(1.0), 3)
    (3.0, 3.543)
    """
    return 2.0 + math.cosh(1.0 / steps)


def applies(steps: Fraction) -> bool:
    """Return whether noise of a scale in steps is drawn on their multiples alone."""
    return LEAST_STEPS <= steps <= MOST_STEPS


@final
@dataclass(frozen=True)
class Tails:
    """How far combinations of the noise variables of a measurement stay from 0.

    Attributes
    ----------
    noise : Noise
    steps : tuple of float
        Of each part the scale of its integer noise in steps; infinite where its noise is continuous.
    walks : mapping of int to Walk
        By their places the parts whose rows share the noise of a walk.
    radius : Radius, optional
        The joint noise of the parts at the places ``under_radius``.
    """

    noise: Noise
    steps: tuple[float, ...] = ()
    walks: Mapping[int, Walk] = field(default_factory=dict)
    radius: Radius | None = None
    under_radius: tuple[int, ...] = ()

    @property
    def joint(self) -> bool:
        """Whether rows share their noise."""
        return bool(self.walks) or self.radius is not None

    @property
    def stable(self) -> bool:
        """Whether every combination has the noise's own distribution; see `Noise.stable`."""
        return self.noise.stable

    def of(self, place: int) -> float:
        """Return the scale of a part's noise in steps."""
        return self.steps[place] if self.steps else math.inf

    @property
    def least(self) -> float:
        """The least scale of integer noise in steps; infinite where there is none."""
        return min(self.steps, default=math.inf)

    def largest_quantile(self, confidence: float) -> float:
        """Return q with P(|X| <= q) >= confidence for every linear combination X of variance 1.

        Notes
        -----
        Laplace noise is integer noise and independent symmetric noise of at most a step. So Y = X + W is a
        combination of Laplace variables, and P(|X| > q) P(W >= -t) <= P(|Y| > q - t) for every t >= 0. W is
        symmetric, and has tails of at most a normal variable's. docs/noise.md has the proof.

        Examples
        --------
        >>> from matrixdp.noise import LAPLACE
        >>> [round(Tails(LAPLACE, (steps,)).largest_quantile(0.95), 3) for steps in (1.0, math.inf)]
        [2.734, 2.169]
        """
        if math.isinf(self.least):
            return self.noise.largest_quantile(confidence)
        missed, wider = 1.0 - confidence, self._wider
        bounds = (
            t + wider * self.noise.largest_quantile(1.0 - missed * (1.0 - beyond))
            for t, beyond in self._moved
        )
        return min(*bounds, 1.0 / math.sqrt(missed))

    def largest_tail(self, multiplier: float) -> float:
        """Return a bound on P(|X| > multiplier) for every linear combination X of variance 1.

        Examples
        --------
        >>> from matrixdp.noise import LAPLACE
        >>> tails = Tails(LAPLACE, (1.0,))
        >>> round(tails.largest_tail(tails.largest_quantile(0.95)), 6)
        0.05
        """
        if math.isinf(self.least) or multiplier <= 0.0:
            return self.noise.largest_tail(multiplier)
        bounds = (
            self.noise.largest_tail(max(multiplier - t, 0.0) / self._wider) / (1.0 - beyond)
            for t, beyond in self._moved
        )
        return min(*bounds, 1.0 / multiplier**2, 1.0)

    @property
    def _wider(self) -> float:
        """The largest standard deviation of Y where that of X is 1."""
        return self.least * math.sqrt(2.0 / variance(self.least))

    @property
    def _moved(self) -> list[tuple[float, float]]:
        """Points t, and bounds of P(W < -t): 1/2 at 0."""
        unit = 3.0 * variance(self.least)
        return [(0.0, 0.5), *((math.sqrt(-math.log(beyond) / unit), beyond) for beyond in _BEYOND)]

    def combination_quantiles(self, shares: Array, steps: Array, confidence: float) -> Array | None:
        """Return the quantile of |X| for each combination, or None where only the largest one is known.

        Parameters
        ----------
        shares : ndarray, shape (m, k)
            Of independent terms in the variance: each row has sum 1.
        steps : ndarray, shape (m, k)
            The scale of each term in steps, infinite where it is continuous.
        confidence : float

        Notes
        -----
        Of one term the quantile is exact. Otherwise, as the values lie on no lattice, it is that of X + S
        with a sum S of uniform variables, at most 0.02, plus 0.02: |X| <= q if |X + S| <= q - 0.02.

        Examples
        --------
        One count of Laplace noise of variance 1, and one of integer noise at epsilon 1: 3 / 1.357.

        >>> from matrixdp.noise import LAPLACE
        >>> tails, one = Tails(LAPLACE, (1.0,)), np.ones((1, 1))
        >>> [tails.combination_quantiles(one, own * one, 0.95).round(3).tolist() for own in (math.inf, 1.0)]
        [[2.118], [2.211]]
        """
        found = np.empty(len(shares))
        discrete = (np.isfinite(steps) & (shares > 0)).any(axis=1)
        if not discrete.all():
            plain = self.noise.combination_quantiles(shares[~discrete], confidence)
            if plain is None:
                return None
            found[~discrete] = plain
        alone = discrete & (shares.max(axis=1, initial=0.0) > 1.0 - 1e-9)
        for row in np.flatnonzero(alone):
            found[row] = _one_quantile(float(steps[row, shares[row].argmax()]), confidence)
        several = np.flatnonzero(discrete & ~alone)
        largest = self.largest_quantile(confidence)
        half = laplace.HALF_PERIOD
        # what is folded into the period is counted with what lies within
        target = confidence + self.largest_tail(half - laplace.SMOOTHED) + _LEFT_OUT
        if target >= 1.0 or largest >= half:
            found[several] = largest
            return found
        logarithms, frequencies = laplace.smoothed_series()
        for row in several:
            alike, number = np.unique(np.array([-shares[row], steps[row]]), axis=1, return_counts=True)
            if len(number) > _MOST_TERMS:
                found[row] = largest
                continue
            own, waves = logarithms, frequencies
            for (share, size), times in zip(alike.T.tolist(), number.tolist(), strict=True):
                heard = own > math.log(laplace.FAINT)
                own, waves = own[heard], waves[heard]
                if math.isinf(size):
                    own = own - times * np.log1p(-share * waves**2 / 2.0)
                else:
                    moved = np.sin(0.5 * math.sqrt(-share / variance(size)) * waves)
                    own = own - times * np.log1p(2.0 * variance(size) * moved**2)
            found[row] = laplace.smoothed_quantile(np.exp(own), waves, target, largest)
        return found


def _one_quantile(steps: float, confidence: float) -> float:
    """Return the least k with P(|K| > k) = 2 a^(k + 1) / (1 + a) at most what is left, in deviations."""
    left = (1.0 - confidence) * (1.0 + math.exp(-1.0 / steps)) / 2.0
    # a quotient that is an integer but for rounding counts as above it
    return max(math.ceil(-math.log(left) * steps - 1.0 + 1e-9), 0) / math.sqrt(variance(steps))
