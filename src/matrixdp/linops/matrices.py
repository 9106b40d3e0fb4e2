"""Integer matrices that a strategy measures, with exact sensitivities and factored pseudo-inverses."""

from __future__ import annotations

import hashlib
import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from matrixdp.errors import NumericalError

__all__ = ["CenteredMatrix", "IdentityMatrix", "IntegerMatrix", "MeasuredMatrix"]

Array = NDArray[np.float64]


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

    @property
    @abstractmethod
    def squared_sensitivity(self) -> int:
        """The largest squared norm of a column, an exact integer."""

    @abstractmethod
    def multiply(self, array: Array) -> Array:
        """Return the matrix times an array of shape (columns, k)."""

    @abstractmethod
    def solve(self, answers: Array) -> Array:
        """Return the pseudo-inverse times ``answers``: shape (rows, k) in, (columns, k) out."""

    @abstractmethod
    def covariance(self) -> Array:
        """Return B^+ B^+', shape (columns, columns): the covariance of ``solve`` at unit noise."""

    @abstractmethod
    def column_squares(self) -> NDArray[np.int64]:
        """Return the squared entries, shape (rows, columns), as integers."""

    @abstractmethod
    def digest(self) -> str:
        """Return a text that is equal for equal matrices."""


@dataclass(frozen=True)
class IdentityMatrix(MeasuredMatrix):
    """The identity: every cell is measured.

    Examples
    --------
    >>> IdentityMatrix(3).squared_sensitivity
    1
    """

    size: int

    @property
    def columns(self) -> int:
        return self.size

    @property
    def rows(self) -> int:
        return self.size

    @property
    def max_entry(self) -> int:
        return 1

    @property
    def max_row_sum(self) -> int:
        return 1

    @property
    def squared_sensitivity(self) -> int:
        return 1

    def multiply(self, array: Array) -> Array:
        return array

    def solve(self, answers: Array) -> Array:
        return answers

    def covariance(self) -> Array:
        return np.eye(self.size)

    def column_squares(self) -> NDArray[np.int64]:
        return np.eye(self.size, dtype=np.int64)

    def digest(self) -> str:
        return f"identity {self.size}"


@dataclass(frozen=True)
class CenteredMatrix(MeasuredMatrix):
    """n I - 11': an integer multiple of the projection that removes the mean; it is optimal as it stands.

    Examples
    --------
    >>> CenteredMatrix(3).squared_sensitivity  # 2^2 + 1 + 1
    6
    """

    size: int

    @property
    def columns(self) -> int:
        return self.size

    @property
    def rows(self) -> int:
        return self.size

    @property
    def max_entry(self) -> int:
        return max(self.size - 1, 1)

    @property
    def max_row_sum(self) -> int:
        return max(2 * (self.size - 1), 1) + self.size

    @property
    def squared_sensitivity(self) -> int:
        return self.size * (self.size - 1)

    def multiply(self, array: Array) -> Array:
        return np.asarray(self.size * array - array.sum(axis=0, keepdims=True))

    def solve(self, answers: Array) -> Array:
        return np.asarray((answers - answers.mean(axis=0, keepdims=True)) / self.size)

    def covariance(self) -> Array:
        return np.asarray((np.eye(self.size) - 1.0 / self.size) / self.size**2)

    def column_squares(self) -> NDArray[np.int64]:
        squares = np.ones((self.size, self.size), dtype=np.int64)
        np.fill_diagonal(squares, (self.size - 1) ** 2)
        return squares

    def digest(self) -> str:
        return f"centered {self.size}"


@dataclass(frozen=True, eq=False)
class IntegerMatrix(MeasuredMatrix):
    """A square nonsingular integer matrix.

    Parameters
    ----------
    entries : ndarray of int64, shape (n, n)
    unsupported : ndarray, shape (k, n), optional
        Orthonormal rows spanning directions that are measured only so weakly (for the sake of an exact
        row space) that queries with a part along them are refused.

    Raises
    ------
    NumericalError
        If the matrix cannot be *proved* nonsingular: an approximate inverse C with a norm of I - C B
        below 1 (rounding errors included) is the proof.
    """

    entries: NDArray[np.int64]
    unsupported: Array | None = None

    def __post_init__(self) -> None:
        if self.entries.ndim != 2 or self.entries.shape[0] != self.entries.shape[1]:
            raise NumericalError(f"a measured matrix must be square; found shape {self.entries.shape}")
        self.entries.setflags(write=False)
        size = len(self.entries)
        inverse = self.inverse
        residual = np.abs(np.eye(size) - inverse @ self._float)
        rounding = size * np.finfo(float).eps * (np.abs(inverse) @ np.abs(self._float))
        if not float((residual + 2 * rounding).sum(axis=1).max()) < 0.5:
            raise NumericalError("a measured matrix could not be proved nonsingular after rounding")

    @cached_property
    def _float(self) -> Array:
        return np.asarray(self.entries, dtype=np.float64)

    @cached_property
    def _factored(self) -> tuple[Array, NDArray[np.int32]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", scipy.linalg.LinAlgWarning)  # it becomes an error of our own
            lu, pivots = scipy.linalg.lu_factor(self._float, check_finite=False)
        if not (np.diagonal(lu) != 0).all():
            raise NumericalError("a measured matrix is singular after rounding")
        return lu, pivots

    @cached_property
    def inverse(self) -> Array:
        """The inverse, by triangular solves, shape (n, n)."""
        return np.asarray(scipy.linalg.lu_solve(self._factored, np.eye(len(self.entries))))

    @property
    def columns(self) -> int:
        return int(self.entries.shape[1])

    @property
    def rows(self) -> int:
        return int(self.entries.shape[0])

    @cached_property
    def max_entry(self) -> int:
        return int(np.abs(self.entries).max())

    @cached_property
    def max_row_sum(self) -> int:
        return int(np.abs(self.entries).sum(axis=1).max())

    @cached_property
    def squared_sensitivity(self) -> int:
        return int((self.entries * self.entries).sum(axis=0).max())

    def multiply(self, array: Array) -> Array:
        return np.asarray(self._float @ array)

    def solve(self, answers: Array) -> Array:
        return np.asarray(scipy.linalg.lu_solve(self._factored, answers, check_finite=False))

    @cached_property
    def _covariance(self) -> Array:
        return self.inverse @ self.inverse.T

    def covariance(self) -> Array:
        return self._covariance

    def column_squares(self) -> NDArray[np.int64]:
        return self.entries * self.entries

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(np.ascontiguousarray(self.entries).tobytes()).hexdigest()

    def digest(self) -> str:
        return self._digest
