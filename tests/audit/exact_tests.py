"""Exact tests of noise and of privacy: each returns a p-value that is never below the true one.

The noise is a continuous variable rounded to a lattice of which its scale holds at least 4096 steps. Where a
test needs a continuous variable, a uniform one of the test's own fills the lattice cell; what that changes in
a probability is below `SLACK`, by which limits are moved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

#: A cell of width h <= 2^-12 scales moves a tail probability by at most h^2 max|density'| / 8 < 2^-27.
SLACK = 1e-8
DISTRIBUTIONS: dict[str, Any] = {"gaussian": stats.norm, "laplace": stats.laplace}
#: Two-sided tail probabilities at which tails are counted.
TAILS = (0.3, 1e-2, 1e-4)
BINS = 8
RESIDUES = 8


def worst(values: Iterable[float]) -> float:
    """Return the p-value of the least of several (Bonferroni)."""
    listed = list(values)
    return min(1.0, len(listed) * min(listed))


def counted(count: int, number: int, probability: float) -> float:
    """Return the two-sided p-value of a count, whose probability is known up to `SLACK`."""
    low = stats.binom.cdf(count, number, max(probability - SLACK, 0.0))
    high = stats.binom.sf(count - 1, number, min(probability + SLACK, 1.0))
    return worst([float(low), float(high)])


def spread(noise: str, residuals: Sequence[Array], steps: Sequence[float]) -> tuple[float, float]:
    """Return p-values of noise that is too small, and too large, on any part; residuals are in scales.

    The sum of squares of normal variables is chi-square, that of magnitudes of Laplace variables is gamma.
    """
    small, large = [], []
    for own, scale in zip(residuals, steps, strict=True):
        law: Any
        if noise == "gaussian":
            # the lattice adds 1/12 of a step squared
            total = float((own**2).sum()) / (1 + 1 / (12 * scale**2))
            law = stats.chi2(own.size)
        else:
            total = float(np.abs(own).sum())
            law = stats.gamma(own.size)
        small.append(float(law.cdf(total)))
        large.append(float(law.sf(total)))
    return worst(small), worst(large)


def tails(noise: str, residuals: Sequence[Array]) -> float:
    """Count residuals beyond a few points."""
    law = DISTRIBUTIONS[noise]
    return worst(
        counted(int((np.abs(own) > law.isf(tail / 2)).sum()), own.size, tail)
        for own in residuals
        for tail in TAILS
    )


def shape(noise: str, residuals: Sequence[Array]) -> float:
    """Count residuals in intervals of equal probability."""
    edges = DISTRIBUTIONS[noise].ppf(np.arange(1, BINS) / BINS)
    return _even([np.searchsorted(edges, own) for own in residuals], BINS)


def lattice(drawn: Sequence[NDArray[np.int64]]) -> float:
    """Count the last digits of the released integers: they are uniform, whatever the data are."""
    return _even([own % RESIDUES for own in drawn], RESIDUES)


def _even(drawn: Sequence[NDArray[np.int64]], values: int) -> float:
    """Count numbers, of which each of so many is as likely as any other."""
    return worst(
        counted(int(count), own.size, 1 / values)
        for own in drawn
        for count in np.bincount(own.ravel(), minlength=values)
    )


def hits(noise: str, drawn: Sequence[NDArray[np.int64]], steps: Sequence[float]) -> float:
    """Count released integers that are the rounded true answer, as if no noise were there."""
    peak = float(DISTRIBUTIONS[noise].pdf(0.0))
    return worst(
        float(stats.binom.sf(int((own == 0).sum()) - 1, own.size, peak / scale))
        for own, scale in zip(drawn, steps, strict=True)
    )


def agreement(left: Array, right: Array) -> float:
    """Count equal signs, which two independent symmetric variables have with probability 1/2."""
    same = int((np.signbit(left) == np.signbit(right)).sum())
    return counted(same, left.size, 0.5)


def advantage(wrong: int, decisions: int, mu: float) -> float:
    """Test that a test of neighbours is wrong as often as mu-GDP demands: at least Q(mu / 2) on average.

    Sums of decisions of unequal probabilities are less spread out than those of equal ones (Hoeffding 1956).
    """
    return float(stats.binom.cdf(wrong, decisions, stats.norm.sf(mu / 2)))


def ratio_exceeded(rare: int, often: int, number: int, epsilon: float, level: float) -> bool:
    """Return whether Clopper-Pearson limits at a level prove a ratio of probabilities above e^epsilon."""
    upper = stats.beta.isf(level / 2, rare + 1, number - rare)
    lower = stats.beta.ppf(level / 2, often, number - often + 1) if often else 0.0
    return bool(lower > math.exp(epsilon) * upper)


def ratio(rare: int, often: int, number: int, epsilon: float) -> float:
    """Return the least level at which a ratio of probabilities above e^epsilon is proved, by bisection."""
    if not ratio_exceeded(rare, often, number, epsilon, 1.0):
        return 1.0
    return least(lambda level: ratio_exceeded(rare, often, number, epsilon, level), -300.0, 40)


def least(holds: Callable[[float], bool], low: float, steps: int) -> float:
    """Return the least power of 10, of exponents from ``low`` to 0, for which something holds."""
    high = 0.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(10**middle) else (middle, high)
    return 10**high
