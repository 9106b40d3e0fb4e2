"""Matrices over groups of values: cells that no query tells apart share a column."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact.explicit import IntegerMatrix
from matrixdp.exact.matrices import MeasuredMatrix

__all__ = ["MergedMatrix", "merged_cells"]

Array = NDArray[np.float64]


def merged_cells(groups: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Return the number of the product of groups that each cell of some attributes is in, row-major.

    Examples
    --------
    >>> merged_cells([np.array([0, 0, 1]), np.array([0, 1])]).tolist()
    [0, 1, 0, 1, 2, 3]
    """
    cells = np.zeros(1, dtype=np.int64)
    for group in groups:
        cells = np.add.outer(cells * (int(group.max()) + 1), group).ravel()
    return cells


@dataclass(frozen=True, eq=False)
class MergedMatrix(MeasuredMatrix):
    """An integer matrix of full column rank over the products of groups of values of some attributes.

    It measures sums over the cells of such products, and determines no query that tells those cells apart:
    ``unsupported`` has as many rows as there are such directions; `apart` finds the same without them.

    Parameters
    ----------
    matrix : IntegerMatrix
        Over the products of groups, row-major.
    groups : tuple of ndarray of int64, one of shape (n,) for each attribute
        The number of the group of each value, from 0; no group is empty.

    Raises
    ------
    NumericalError
        If the groups are not those of the matrix.

    Examples
    --------
    >>> merged = MergedMatrix(IntegerMatrix(np.array([[1, 1], [0, 2]])), (np.array([0, 1, 1]),))
    >>> merged.multiply(np.array([[5.0], [1.0], [2.0]])).ravel().tolist()
    [8.0, 6.0]
    >>> merged.squared_sensitivity, merged.max_row_sum
    (5, 4)
    """

    matrix: IntegerMatrix
    groups: tuple[NDArray[np.int64], ...]

    def __post_init__(self) -> None:
        for group in self.groups:
            if group.ndim != 1 or group.dtype != np.int64 or not len(group) or group.min() < 0:
                raise NumericalError("groups of values: expected the number of the group of each value")
            if group.max() >= len(group) or not np.bincount(group).all():
                raise NumericalError("groups of values: one of them is empty")
        if math.prod(self.merged_sizes) != self.matrix.columns:
            raise NumericalError(
                f"a matrix over {self.matrix.columns} groups of cells; its groups of values make "
                f"{math.prod(self.merged_sizes)}"
            )

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each attribute."""
        return tuple(len(group) for group in self.groups)

    @cached_property
    def merged_sizes(self) -> tuple[int, ...]:
        """The number of groups of values of each attribute."""
        return tuple(int(group.max()) + 1 for group in self.groups)

    @cached_property
    def indicators(self) -> tuple[Array, ...]:
        """Which values are in which group, shape (groups, values) for each attribute."""
        return tuple(
            (group == np.arange(count)[:, None]).astype(np.float64)
            for group, count in zip(self.groups, self.merged_sizes, strict=True)
        )

    @cached_property
    def spreads(self) -> tuple[Array, ...]:
        """What spreads a sum evenly over its group, shape (values, groups) for each attribute."""
        return tuple(one.T / one.sum(axis=1) for one in self.indicators)

    def _along(self, matrices: tuple[Array, ...], array: Array) -> Array:
        """Return the Kronecker product of matrices times an array of shape (cells, k)."""
        tensor = array.reshape(*(one.shape[1] for one in matrices), -1)
        for axis, one in enumerate(matrices):
            tensor = np.moveaxis(np.tensordot(one, tensor, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(tensor).reshape(-1, array.shape[1])

    def means(self, array: Array) -> Array:
        """Return the mean over the cells of each product of groups: shape (columns, k) to (groups, k)."""
        return self._along(tuple(one.T for one in self.spreads), array)

    @property
    def columns(self) -> int:
        return math.prod(self.sizes)

    @property
    def rows(self) -> int:
        return self.matrix.rows

    @property
    def rank(self) -> int:
        """The number of linearly independent columns."""
        return self.matrix.columns

    @cached_property
    def unsupported(self) -> Array | None:
        outside = self.matrix.unsupported
        inside = np.eye(self.rank) if outside is None else scipy.linalg.null_space(outside)
        lifted = self._along(tuple(one.T for one in self.indicators), inside)
        if lifted.shape[0] == lifted.shape[1]:
            return None
        full = scipy.linalg.qr(lifted, check_finite=False)[0]
        return np.ascontiguousarray(full[:, lifted.shape[1] :].T)

    @property
    def max_entry(self) -> int:
        return self.matrix.max_entry

    @cached_property
    def max_row_sum(self) -> int:
        # no row sum of the matrix is less than the size of a group: every group is measured
        counts = np.ones(1, dtype=np.int64)
        for group in self.groups:
            counts = np.multiply.outer(counts, np.bincount(group)).ravel()
        return max(int((np.abs(self.matrix.entries) @ counts).max()), int(counts.max()))

    def column_power_sum(self, power: int) -> int:
        return self.matrix.column_power_sum(power)

    def multiply(self, array: Array) -> Array:
        return self.matrix.multiply(self._along(self.indicators, array))

    def solve(self, answers: Array) -> Array:
        return self._along(self.spreads, self.matrix.solve(answers))

    def covariance_times(self, array: Array) -> Array:
        return self._along(self.spreads, self.matrix.covariance_times(self.means(array)))

    def covariance(self) -> Array:
        return self.covariance_times(np.eye(self.columns))

    def coefficients(self, queries: Array) -> Array:
        return self.matrix.coefficients(self.means(queries))

    def magnitudes(self) -> NDArray[np.int64]:
        return self.matrix.magnitudes()

    def apart(self, queries: Array) -> Array:
        """Return what queries tell apart within groups, shape (columns, k) in and out: none is measured."""
        return np.asarray(queries - self._along(tuple(one.T for one in self.indicators), self.means(queries)))

    def digest(self) -> str:
        groups = hashlib.sha256(b"".join(group.tobytes() for group in self.groups)).hexdigest()
        return f"merged {self.sizes} {groups} {self.matrix.digest()}"
