"""Intervals of ratios, quantiles, choices and whole tables, from estimates and their covariances alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.queries import Group
from matrixdp.statistics.statistic import Column, figures
from matrixdp.texts import ENGLISH

if TYPE_CHECKING:
    from matrixdp.noise import Tails


# Ratios of two estimates: the interval of Fieller, from their exact covariance.

#: Standard errors of a denominator, relative to it, above which there is a warning.
_SMALL = 0.1
#: How often, and by which factor more than at the estimate, multipliers for ratios are tried.
_TRIES, _MORE = 3, 1.003
UNBOUNDED = ENGLISH("warning_unbounded")


Exact = tuple[float, Callable[[Array], Array]]
"""Standard errors that D rarely exceeds, and what returns the multipliers of N - t D for ratios t."""


EVERY = slice(None)
"""The places of all queries of a group."""
Term = tuple[float | Array, Group, Any]
"""Numbers, one for all sums or one for each, times queries of a group: the group, and their places."""


class Pairs(NamedTuple):
    """Estimates beside others, with their variances and the covariance of each pair; shapes broadcast."""

    left: Array
    right: Array
    left_variance: Array
    right_variance: Array
    covariance: Array


@final
@dataclass(frozen=True, eq=False)
class Ratios:
    """Ratios with their intervals.

    Attributes
    ----------
    estimates : ndarray
        Quotients of the estimates; nan where the denominator is 0.
    deviations : ndarray
        Standard errors by the delta method; nan where the interval is unbounded, as no approximation holds
        there.
    lower, upper : ndarray
        The ends of the intervals; nan where they are unbounded.
    warnings : list of str or None
        Where the denominator is small.
    """

    estimates: Array
    deviations: Array
    lower: Array
    upper: Array
    warnings: list[str | None]

    def columns(self, of: str = "") -> list[Column]:
        """Return the columns of a table."""
        shown = figures(self.estimates, self.deviations, self.lower, self.upper, of)
        return [*shown, Column("warning", self.warnings)]


def ratios(pairs: Pairs, multiplier: float, exact: Exact | None = None) -> Ratios:
    """Return ratios of estimates.

    Parameters
    ----------
    pairs : Pairs
        Each numerator beside its denominator.
    multiplier : float
        How many standard errors of N - t D are exceeded with no more than the probability that the interval
        may miss the ratio t.
    exact : tuple, optional
        The same for each t by itself, where that is less; see `_less`.

    Notes
    -----
    N - t D has the mean 0 at the true ratio t, and a known variance: the interval is the set of those t at
    which |N - t D| is within the multiplier times its standard error. It covers with the full confidence
    whatever the denominator is. It is bounded where the denominator differs from 0 by more than the
    multiplier times its own standard error; else it is unbounded, or the outside of an interval.

    References
    ----------
    E. C. Fieller, Some problems in interval estimation, JRSS B 16, 1954.

    Examples
    --------
    >>> one, four = np.array([1.0]), np.array([4.0])
    >>> found = ratios(Pairs(np.array([50.0]), np.array([100.0]), one, four, np.zeros(1)), 1.96)
    >>> round(float(found.lower[0]), 3), round(float(found.upper[0]), 3)
    (0.473, 0.529)
    """
    lower, upper = _ends(pairs, multiplier if exact is None else _less(pairs, multiplier, *exact))
    bounded = np.isfinite(lower)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = np.where(pairs.right != 0, pairs.left / pairs.right, np.nan)
        spread = (
            pairs.left_variance - 2.0 * estimates * pairs.covariance + estimates**2 * pairs.right_variance
        )
        deviations = np.sqrt(np.maximum(spread, 0.0)) / np.abs(pairs.right)
        relative = np.sqrt(pairs.right_variance) / np.abs(pairs.right)
    known = np.broadcast_arrays(estimates, bounded, relative)
    warnings = [_warning(*pair) for pair in zip(known[1].flat, known[2].flat, strict=True)]
    return Ratios(estimates, np.where(bounded, deviations, np.nan), lower, upper, warnings)


def _ends(pairs: Pairs, multiplier: float | Array) -> tuple[Array, Array]:
    """Return the ends of the intervals, nan where they are unbounded."""
    squared = multiplier**2
    quadratic = pairs.right**2 - squared * pairs.right_variance
    linear = pairs.left * pairs.right - squared * pairs.covariance
    constant = pairs.left**2 - squared * pairs.left_variance
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(linear**2 - quadratic * constant, 0.0))
        lower, upper = (np.where(quadratic > 0, (linear + way * root) / quadratic, np.nan) for way in (-1, 1))
    return lower, upper


def _less(pairs: Pairs, multiplier: float, far: float, of: Callable[[Array], Array]) -> Array:
    """Return multipliers that are enough for intervals of ratios, of each by itself.

    The noise of D exceeds ``far`` standard errors with a probability of p, and that of N - t D those of
    ``of`` with one that is by p less than what the interval may miss. Where |N - s D| is found beyond these
    at an end s, and D beyond ``far``, no t beyond s is the true ratio: from s to t, |N - t D| grows by
    |t - s| |D|, and the bound on its noise by at most |t - s| ``far`` standard errors of D.
    """
    shape = np.broadcast(*pairs).shape
    told = np.broadcast_to(np.abs(pairs.right) > far * np.sqrt(pairs.right_variance), shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        tried = of(np.where(told, pairs.left / pairs.right, 0.0))
    enough = ~told
    for _ in range(_TRIES):
        tried = np.where(told, np.minimum(_MORE * tried, multiplier), multiplier)
        if (tried == multiplier).all():
            break
        low, high = (of(np.where(told, end, 0.0)) for end in _ends(pairs, tried))
        enough = np.maximum(low, high) <= tried
        if (enough | ~told).all():
            break
        tried = np.maximum(tried, np.maximum(low, high))
    return np.where(enough, tried, multiplier)


def _warning(bounded: bool, relative: float) -> str | None:
    if not bounded:
        return UNBOUNDED
    if relative > _SMALL:
        return ENGLISH("warning_small", number=f"{100 * relative:.0f}")
    return None


# Quantiles, by inverting cumulative counts.


def invert(
    estimates: Array, deviations: Array, order: float, multiplier: float | Array
) -> tuple[int | None, float, int, int]:
    """Return a quantile's place, how far into its value it lies, and the first and last place it may have.

    Parameters
    ----------
    estimates, deviations : ndarray, shape (values,)
        Of D_v, the number of records up to v less ``order`` times that of all, with its standard error.
    order : float
        Of the quantile, above 0 and below 1.
    multiplier : float or ndarray, shape (values,)
        Of standard errors, for intervals of D.

    Notes
    -----
    The quantile is the first v with D_v >= 0. So at the true one D_v >= 0 and D_(v-1) <= 0: it is left out
    only if D_v is found below -multiplier standard errors, or D_(v-1) above them, each with at most half of
    the probability that an interval of D may miss. No other v matters: no correction is due for how many
    there are. The place is where the isotonic regression of D, weighted by inverse variances, changes sign.

    Examples
    --------
    >>> invert(np.array([-30.0, 10.0, 40.0]), np.ones(3), 0.5, 1.96)
    (1, 0.75, 1, 1)
    """
    from scipy.optimize import isotonic_regression

    ends = multiplier * deviations
    possible = estimates >= -ends
    possible[1:] &= estimates[:-1] <= ends[:-1]
    places = np.flatnonzero(possible)
    # none where the number of all records is found far below 0
    first, last = (int(places[0]), int(places[-1])) if len(places) else (0, len(estimates) - 1)
    least = max(float(deviations.max()), 1e-300) * 1e-6
    fitted = isotonic_regression(estimates, weights=1.0 / np.maximum(deviations, least) ** 2).x
    reached = np.flatnonzero(fitted >= 0)
    if not len(reached) or fitted[-1] <= 0:
        return None, 0.0, first, last
    place = int(reached[0])
    before = float(fitted[place - 1]) if place else -order / (1.0 - order) * float(fitted[-1])
    share = -before / (float(fitted[place]) - before)
    return place, share, first, last


# The values that most records have.


def set_confidence(tails: Tails, estimates: Array, covariance: Array, chosen: NDArray[np.int64]) -> float:
    """Return the confidence with which the chosen values are the most frequent ones.

    Notes
    -----
    If they are not, some value j of the right set, which has k of n values, was not chosen, and some i
    outside of it was: x_j >= x_i, and yet i was found ahead by z standard errors of the difference or more,
    z being the least such lead of a chosen value over another. Noise alone does that for one given pair with
    a probability of at most half of P(|X| > z), and there are k (n - k) pairs between the right set and the
    rest. One less their sum is a lower bound: 0 says nothing.
    """
    n, k = len(estimates), len(chosen)
    others = np.setdiff1d(np.arange(n), chosen)
    if not len(others):
        return 1.0
    variances = np.diagonal(covariance)
    spread = (
        variances[chosen][:, None] + variances[others][None, :] - 2.0 * covariance[np.ix_(chosen, others)]
    )
    leads = estimates[chosen][:, None] - estimates[others][None, :]
    with np.errstate(divide="ignore", invalid="ignore"):
        least = float(np.nan_to_num(leads / np.sqrt(np.maximum(spread, 0.0)), nan=0.0).min())
    return max(0.0, 1.0 - k * (n - k) * tails.largest_tail(least) / 2.0)


# The largest of correlated normal variables, by draws of one public seed; nothing is protected by them.

_DRAWS, _BLOCK, _SEED = 20_000, 2_000, 20_260_101
#: Of the normal distribution at 0.999.
_SURE = 3.0903


def largest_of_normals(correlation: Array, confidence: float) -> float:
    """Return the quantile of the largest of correlated standard normal variables in absolute value.

    The order statistic of the draws that is not below the quantile with a probability of 0.999 over the
    seed; infinite where there are too few draws for the confidence.

    Examples
    --------
    >>> 1.96 < largest_of_normals(np.ones((3, 3)), 0.95) < 2.03  # three times the same variable
    True
    """
    rank = math.ceil(_DRAWS * confidence + _SURE * math.sqrt(_DRAWS * confidence * (1 - confidence)))
    if rank > _DRAWS or not len(correlation):
        return math.inf
    values, vectors = np.linalg.eigh(correlation)
    # the symmetric root: the same on every machine, whatever basis an eigenvalue that repeats is given
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    random = np.random.default_rng(_SEED)
    largest = []
    for _ in range(0, _DRAWS, _BLOCK):
        normal = random.standard_normal((_BLOCK, len(root)))
        largest.append(np.abs(normal @ root).max(axis=1))
    return float(np.sort(np.concatenate(largest))[rank - 1])
