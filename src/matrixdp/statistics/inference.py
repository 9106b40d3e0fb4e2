"""What statistics are derived from: estimates, their exact covariances, and how far noise goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.answers.intervals import Intervals
from matrixdp.answers.refusals import advised, spread
from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError
from matrixdp.exact.threads import one_blas_thread
from matrixdp.forms import describe_value
from matrixdp.measure import Measurement
from matrixdp.noise import Noise
from matrixdp.plan import Analysis
from matrixdp.queries import Group, Workload
from matrixdp.statistics.simulation import largest_of_normals

__all__ = ["Inference", "check_confidence"]

Array = NDArray[np.float64]


def check_confidence(given: object) -> float:
    """Return a confidence, a number above 0 and below 1.

    Examples
    --------
    >>> check_confidence(0.9)
    0.9
    """
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1:
        raise SpecificationError.at(("confidence",), describe_value(given), "a number above 0 and below 1")
    return float(given)


@final
@dataclass(frozen=True, eq=False)
class Inference:
    """Estimates of queries from one measurement, their covariances, and multiples of standard errors.

    Parameters
    ----------
    measurement : Measurement
        What was measured.
    workload : Workload
        What it was measured for.
    confidence : float
        Of intervals, above 0 and below 1.
    """

    measurement: Measurement
    workload: Workload
    confidence: float

    @property
    def domain(self) -> Domain:
        """The attributes."""
        return self.workload.domain

    @property
    def analysis(self) -> Analysis:
        """Variances and covariances at the noise that was added."""
        return self.measurement.analysis

    @property
    def noise(self) -> Noise:
        """The noise that was added."""
        return self.measurement.plan.noise

    @property
    def multiplier(self) -> float:
        """Standard errors from an estimate to the ends of its interval, enough for every combination."""
        return self.noise.largest_quantile(self.confidence)

    def joint_multiplier(self, count: int) -> float:
        """Return the same for so many intervals that hold together, whatever their covariances.

        By the inequality of Sidak where all combinations are normal, else by that of Bonferroni.
        """
        if self.noise.stable:
            return self.noise.largest_quantile(self.confidence ** (1.0 / count))
        return self.noise.largest_quantile(1.0 - (1.0 - self.confidence) / count)

    def multipliers(self, group: Group) -> float | Array:
        """Return standard errors to the ends of pointwise intervals: exact where that is known."""
        return Intervals(self.analysis, self.noise, self.confidence).multipliers(group)

    def spread(self, group: Group) -> Group:
        """Return the group as the measurement determines it."""
        return spread(self.analysis, self.workload, group)

    def estimates(self, group: Group) -> Array:
        """Return the estimates of a group's queries."""
        return self.measurement.estimates.answers(group)

    def variances(self, group: Group) -> Array:
        """Return their variances."""
        return np.maximum(self.analysis.variances(group), 0.0)

    @contextmanager
    def computing(self, groups: Sequence[Group]) -> Iterator[None]:
        """Compute what is asked of groups; a refusal says what works instead."""
        # many small products: several threads would spend their time waiting for one another
        with one_blas_thread(), advised(self.analysis, self.workload, groups):
            yield

    def correlated_multiplier(self, covariance: Array, known: dict[bytes, float]) -> float:
        """Return standard errors from estimates to the ends of intervals that hold together.

        Parameters
        ----------
        covariance : ndarray, shape (queries, queries)
            Of the estimates.
        known : dict
            Of multipliers that were found, by correlations.

        Notes
        -----
        For normal noise the quantile of the largest standardized error, by 20,000 draws of a fixed public
        seed from the known covariance: the order statistic that is not below the quantile with a probability
        of 0.999 over the seed. Never above the bound that holds for every covariance.
        """
        bound = self.joint_multiplier(len(covariance))
        if not self.noise.stable:
            return bound
        correlation = _correlation(covariance)
        key = np.round(correlation, 9).tobytes()
        if key not in known:
            known[key] = largest_of_normals(correlation, self.confidence)
        return min(bound, known[key])


def _correlation(covariance: Array) -> Array:
    """Return the correlations of those that vary."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    kept = deviations > deviations.max(initial=0.0) * 1e-12
    found = covariance[np.ix_(kept, kept)] / np.outer(deviations[kept], deviations[kept])
    return np.asarray((found + found.T) / 2.0)
