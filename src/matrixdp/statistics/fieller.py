"""Ratios of two estimates: the interval of Fieller, from their exact covariance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["UNBOUNDED", "Ratios", "ratios"]

Array = NDArray[np.float64]

#: Standard errors of a denominator, relative to it, above which there is a warning.
_SMALL = 0.1
UNBOUNDED = "the denominator cannot be told from 0: the interval is unbounded"


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

    def columns(self) -> dict[str, pa.Array]:
        """Return the columns of figures; what is nan is null."""
        figures = {
            "estimate": self.estimates,
            "stddev": self.deviations,
            "lower": self.lower,
            "upper": self.upper,
        }
        made = {name: pa.array(own, pa.float64(), from_pandas=True) for name, own in figures.items()}
        return made | {"warning": pa.array(self.warnings, pa.utf8())}


def ratios(
    numerators: Array,
    denominators: Array,
    variances: tuple[Array, Array],
    covariances: Array,
    multiplier: float,
) -> Ratios:
    """Return ratios of estimates.

    Parameters
    ----------
    numerators, denominators : ndarray, shape (ratios,)
        The estimates.
    variances : tuple of ndarray
        Theirs.
    covariances : ndarray, shape (ratios,)
        Of each numerator with its denominator.
    multiplier : float
        How many standard errors of N - t D are exceeded with no more than the probability that the interval
        may miss the ratio t.

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
    >>> found = ratios(np.array([50.0]), np.array([100.0]), (one, four), np.zeros(1), 1.96)
    >>> round(float(found.lower[0]), 3), round(float(found.upper[0]), 3)
    (0.473, 0.529)
    """
    squared = multiplier**2
    own, other = variances
    quadratic = denominators**2 - squared * other
    linear = numerators * denominators - squared * covariances
    constant = numerators**2 - squared * own
    bounded = quadratic > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = np.where(denominators != 0, numerators / denominators, np.nan)
        root = np.sqrt(np.maximum(linear**2 - quadratic * constant, 0.0))
        lower = np.where(bounded, (linear - root) / quadratic, np.nan)
        upper = np.where(bounded, (linear + root) / quadratic, np.nan)
        spread = np.maximum(own - 2.0 * estimates * covariances + estimates**2 * other, 0.0)
        deviations = np.where(bounded, np.sqrt(spread) / np.abs(denominators), np.nan)
        relative = np.sqrt(other) / np.abs(denominators)
    return Ratios(
        estimates, deviations, lower, upper, [_warning(*pair) for pair in zip(bounded, relative, strict=True)]
    )


def _warning(bounded: bool, relative: float) -> str | None:
    if not bounded:
        return UNBOUNDED
    if relative > _SMALL:
        return f"small denominator: its standard error is {relative:.0%} of it; go by the interval"
    return None
