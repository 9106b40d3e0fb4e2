"""Integer matrices that a strategy measures, with exact sensitivities; here those that need no entries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_OVERLAPS", "CenteredMatrix", "IdentityMatrix", "MeasuredMatrix", "column_overlaps"]

Array = NDArray[np.float64]

MOST_OVERLAPS = 2**30
"""The most multiplications that all overlaps of the columns of a matrix may take."""


def column_overlaps(entries: NDArray[Any], power: int) -> NDArray[Any]:
    """Return how much every two columns a and b have in common, exact, shape (columns, columns).

    The sum of |a - b|^power is that of |a|^power + |b|^power less twice the overlap. So for the power 2 it is
    the inner product, for 1 the sum of min(|a|, |b|) over the rows in which both have the same sign.

    Examples
    --------
    >>> entries = np.array([[1, 2], [-3, 1]])
    >>> column_overlaps(entries, 2).tolist(), column_overlaps(entries, 1).tolist()
    ([[10, -1], [-1, 5]], [[4, 1], [1, 3]])
    """
    size = np.abs(entries)
    if power == 2:
        # in floating point where every sum is exact: that is faster
        exact = entries.astype(np.float64) if len(entries) * int(size.max()) ** 2 < 2**53 else entries
        return np.asarray(exact.T @ exact).astype(entries.dtype)
    signs = np.sign(entries)
    columns = range(entries.shape[1])
    return np.array(
        [(np.minimum(size, size[:, [j]]) * (signs == signs[:, [j]])).sum(axis=0) for j in columns],
        dtype=entries.dtype,
    )


class MeasuredMatrix(ABC):
    """An integer matrix, measured along one or several attributes of a marginal."""

    @property
    @abstractmethod
    def columns(self) -> int:
        """The number of cells."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """The number of measured queries."""

    @property
    @abstractmethod
    def max_entry(self) -> int:
        """The largest absolute entry."""

    @property
    @abstractmethod
    def max_row_sum(self) -> int:
        """The largest sum of absolute entries over a row."""

    @abstractmethod
    def column_power_sum(self, power: int) -> int:
        """Return the largest sum over a column of |entry|^power, an exact integer; the power is 1 or 2."""

    def overlaps(self, power: int) -> NDArray[np.int64] | None:
        """Return `column_overlaps`, or None where that would take too long.

        Those of the first two columns where all others overlap as these do.
        """
        if self.rows * self.columns**2 > MOST_OVERLAPS:
            return None
        return column_overlaps(self.written().astype(np.int64), power)

    @property
    def squared_sensitivity(self) -> int:
        """The largest squared norm of a column."""
        return self.column_power_sum(2)

    @property
    def sensitivity(self) -> int:
        """The largest sum of absolute entries over a column: the L1 sensitivity."""
        return self.column_power_sum(1)

    @property
    def unsupported(self) -> Array | None:
        """Orthonormal rows, shape (k, columns), spanning what is measured too weakly to be asked, or None."""
        return None

    @abstractmethod
    def multiply(self, array: Array) -> Array:
        """Return the matrix times an array of shape (columns, k)."""

    @abstractmethod
    def solve(self, answers: Array) -> Array:
        """Return the pseudo-inverse times ``answers``: shape (rows, k) in, (columns, k) out."""

    @abstractmethod
    def covariance(self) -> Array:
        """Return B^+ B^+', shape (columns, columns): the covariance of ``solve`` at unit noise."""

    def written(self) -> Array:
        """Return the matrix written out, shape (rows, columns)."""
        return self.multiply(np.eye(self.columns))

    def covariance_times(self, array: Array) -> Array:
        """Return the covariance of ``solve`` at unit noise times an array of shape (columns, k)."""
        return np.asarray(self.covariance() @ array)

    def coefficients(self, queries: Array) -> Array:
        """Return what each measured row adds to queries, the transposed pseudo-inverse times them.

        Shape (columns, k) in, (rows, k) out.
        """
        return np.asarray(self.solve(np.eye(self.rows)).T @ queries)

    @abstractmethod
    def magnitudes(self) -> NDArray[np.int64]:
        """Return the absolute entries, one row each; one of several equal columns may stand for them."""

    @abstractmethod
    def digest(self) -> str:
        """Return a text that is equal for equal matrices."""


@dataclass(frozen=True)
class _Square(MeasuredMatrix):
    """A matrix that its size says all of."""

    size: int

    @property
    def columns(self) -> int:
        return self.size

    @property
    def rows(self) -> int:
        return self.size

    @abstractmethod
    def _overlap(self, power: int) -> int:
        """Return the overlap of two different columns."""

    def overlaps(self, power: int) -> NDArray[np.int64]:
        own, other = self.column_power_sum(power), self._overlap(power)
        exact = np.int64 if own < 2**62 else object  # NumPy would take a mix of large integers as floats
        return np.array([[own, other], [other, own]], dtype=exact)[: self.size, : self.size]


@dataclass(frozen=True)
class IdentityMatrix(_Square):
    """The identity: every cell is measured.

    Examples
    --------
    >>> IdentityMatrix(3).squared_sensitivity
    1
    """

    @property
    def max_entry(self) -> int:
        return 1

    @property
    def max_row_sum(self) -> int:
        return 1

    def column_power_sum(self, power: int) -> int:  # noqa: ARG002
        return 1

    def _overlap(self, power: int) -> int:  # noqa: ARG002
        return 0

    def multiply(self, array: Array) -> Array:
        return array

    def solve(self, answers: Array) -> Array:
        return answers

    def covariance(self) -> Array:
        return np.eye(self.size)

    def magnitudes(self) -> NDArray[np.int64]:
        return np.eye(self.size, dtype=np.int64)

    def digest(self) -> str:
        return f"identity {self.size}"


@dataclass(frozen=True)
class CenteredMatrix(_Square):
    """n I - 11': an integer multiple of the projection that removes the mean; it is optimal as it stands.

    Examples
    --------
    >>> CenteredMatrix(3).squared_sensitivity  # 2^2 + 1 + 1
    6
    """

    @property
    def max_entry(self) -> int:
        return self.size  # one more than the entries have: `multiply` forms size times the array

    @property
    def max_row_sum(self) -> int:
        return max(2 * (self.size - 1), 1) + self.size

    def column_power_sum(self, power: int) -> int:
        return int((self.size - 1) ** power) + self.size - 1

    def _overlap(self, power: int) -> int:
        return -self.size if power == 2 else self.size - 2

    def multiply(self, array: Array) -> Array:
        return np.asarray(self.size * array - array.sum(axis=0, keepdims=True))

    def solve(self, answers: Array) -> Array:
        return np.asarray((answers - answers.mean(axis=0, keepdims=True)) / self.size)

    def covariance(self) -> Array:
        return np.asarray((np.eye(self.size) - 1.0 / self.size) / self.size**2)

    def magnitudes(self) -> NDArray[np.int64]:
        entries = np.ones((self.size, self.size), dtype=np.int64)
        np.fill_diagonal(entries, self.size - 1)
        return entries

    def digest(self) -> str:
        return f"centered {self.size}"
