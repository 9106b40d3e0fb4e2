"""How answers follow from what is measured, and how they vary: known before any data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.queries.groups import Group

__all__ = ["MAX_COVARIANCE_ENTRIES", "Analysis", "Estimates", "GroupError"]

Array = NDArray[np.float64]

#: Entries of a matrix of covariances.
MAX_COVARIANCE_ENTRIES = 25_000_000


@dataclass(frozen=True)
class GroupError:
    """Error of one query group.

    Attributes
    ----------
    total : float
        Sum of the variances of its queries.
    weighted : float
        The same, each variance multiplied by its weight.
    largest : float
        The largest variance.
    """

    total: float
    weighted: float
    largest: float


class Estimates(ABC):
    """Estimates from one measurement: linear in the noisy answers, and unbiased."""

    @abstractmethod
    def marginal(self, attributes: tuple[str, ...]) -> Array:
        """Return the estimate of a marginal, in the shape of the attributes' sizes.

        What was not measured may be taken as zero, so only queries that are determined may be asked of it.
        """

    @abstractmethod
    def answers(self, group: Group) -> Array:
        """Return the estimates of a group's queries, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If a query of the group is not determined.
        """


class Analysis(ABC):
    """Estimates, variances and covariances of queries under a plan whose noise variances are given.

    Attributes
    ----------
    additive : bool
        Whether the estimate of a sum of queries is always the sum of their estimates, so that covariances
        follow from variances of sums.
    """

    additive: ClassVar[bool] = False

    def __init__(self) -> None:
        self._groups: dict[Hashable, GroupError] = {}

    @abstractmethod
    def estimates(self, values: Sequence[Array]) -> Estimates:
        """Return the estimates that follow from the noisy answers of each part, flat."""

    @abstractmethod
    def check_support(self, group: Group) -> None:
        """Raise UnsupportedQueryError if a query of a group is not determined."""

    @abstractmethod
    def variances(self, group: Group) -> Array:
        """Return the variance of every query of a group, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If a query of the group is not determined by what the plan measures.
        TooLargeError
            If the group has more queries than can be held.
        """

    @abstractmethod
    def covariance(self, left: Group, i: int, right: Group, j: int) -> float:
        """Return the covariance of query i of one group and query j of another."""

    def covariances(self, left: Group, right: Group, *, paired: bool = False) -> Array:
        """Return the covariances of all queries of one group with those of another.

        Shape (queries of left, queries of right); with ``paired``, for groups of as many queries, only those
        of each query with that in the same place, shape (queries,).

        Raises
        ------
        UnsupportedQueryError
            If a query is not determined by what the plan measures.
        TooLargeError
            If that would be too many numbers.
        WorkloadError
            If groups of different numbers of queries are to be paired.
        """
        self._check_pairs(left, right, paired)
        if paired:
            return np.array([self.covariance(left, i, right, i) for i in range(left.queries)])
        places = range(right.queries)
        return np.array([[self.covariance(left, i, right, j) for j in places] for i in range(left.queries)])

    def _check_pairs(self, left: Group, right: Group, paired: bool) -> None:
        """Check that covariances exist, and are not too many."""
        if paired and left.queries != right.queries:
            found = f"{left.queries} and {right.queries} queries"
            raise WorkloadError.at(("covariance",), found, "as many of one group as of the other")
        if not paired and left.queries * right.queries > MAX_COVARIANCE_ENTRIES:
            raise TooLargeError(
                f"covariance: a matrix of {left.queries} by {right.queries}; the limit is "
                f"{MAX_COVARIANCE_ENTRIES} entries"
            )
        self.check_support(left)
        self.check_support(right)

    @abstractmethod
    def noise_terms(self, group: Group, most: int) -> Array | None:
        """Return how much every noise variable adds to the variances, shape (queries, variables).

        None if that would be more than ``most`` entries, or if variables are not told apart.
        """

    @abstractmethod
    def key(self, group: Group) -> Hashable:
        """Return a value equal for groups with equal variances."""

    def group(self, group: Group) -> GroupError:
        """Return the error of a group; equal groups are analysed once."""
        key = self.key(group)
        if key not in self._groups:
            self._groups[key] = self._error(group)
        return self._groups[key]

    def _error(self, group: Group) -> GroupError:
        values = self.variances(group)
        total = float(values.sum())
        weighted = total if group.query_weights is None else float(values @ group.query_weights)
        return GroupError(total, weighted * group.weight, float(values.max()))
