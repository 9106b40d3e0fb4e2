"""Trees over the values of one attribute, one for each of some queries on other attributes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact.linear import Array, along_axes, outer
from matrixdp.exact.matrices import AxisQueries, IntegerMatrix, MeasuredMatrix
from matrixdp.exact.structured import MAX_WRITTEN_CELLS, merged_cells
from matrixdp.exact.trees import TreeMatrix

#: Column sums stay below this.
_MOST_SQUARED = 2**62
#: Squared relative length of the total that a row space may lack.
_OUTSIDE = 1e-9


@dataclass(frozen=True, eq=False)
class RowTrees(MeasuredMatrix):
    """Some queries on other attributes, each summed over the nodes of a tree of values with its own weights.

    Its cells are the values times the cells of the queries, row-major. Its rows are those of the tree of
    the first query, then those of the second, and so on: see `TreeMatrix`. As queries are independent,
    the least squares of each are those of its own tree.

    Parameters
    ----------
    groups : tuple of ndarray of int64, one of shape (n,) for each level
        The node of each value; see `TreeMatrix`.
    weights : tuple of ndarray of int64, one of shape (nodes, queries) for each level
        For each node the weight of every query there, 0 where it is not measured. The tree of a query ends at
        its last level of which it has a weight.
    entries : ndarray of int64, shape (queries, cells)
        The queries, linearly independent.

    Raises
    ------
    NumericalError
        If a tree is none, queries are dependent, or numbers are too large for exact sensitivities.

    Examples
    --------
    >>> groups, entries = (np.array([0, 0]), np.array([0, 1])), np.array([[1, 1], [0, 1]])
    >>> own = RowTrees(groups, (np.array([[2, 5]]), np.array([[1, 0], [3, 0]])), entries)
    >>> own.written().tolist()
    [[2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 3.0, 3.0], [0.0, 5.0, 0.0, 5.0]]
    >>> own.column_sums(1).tolist()
    [3, 8, 5, 10]
    """

    kind = "row-trees"

    groups: tuple[NDArray[np.int64], ...]
    weights: tuple[NDArray[np.int64], ...]
    entries: NDArray[np.int64]

    def __post_init__(self) -> None:
        own = self.entries
        if own.ndim != 2 or not own.size or own.dtype != np.int64:
            raise NumericalError("trees of queries: expected integers, a row for each query")
        fit = len(self.groups) == len(self.weights) > 0
        if not fit or any(one.shape[1:] != own.shape[:1] for one in self.weights):
            raise NumericalError("trees of queries: expected a weight of each query for each node")
        _ = self._queries  # proves that they are independent
        squares = (tree.column_power_sum(2) for tree in self.trees)
        largest = np.abs(own).max(axis=1).tolist()
        if sum(one * entry**2 for one, entry in zip(squares, largest, strict=True)) >= _MOST_SQUARED:
            raise NumericalError("trees of queries: numbers too large for exact sensitivities")
        for array in (*self.groups, *self.weights, own):
            array.setflags(write=False)

    @cached_property
    def trees(self) -> tuple[TreeMatrix, ...]:
        """The tree of each query."""
        found = []
        for place in range(len(self.entries)):
            own = [np.ascontiguousarray(weight[:, place]) for weight in self.weights]
            depth = max((level for level, weight in enumerate(own, 1) if weight.any()), default=1)
            found.append(TreeMatrix(self.groups[:depth], tuple(own[:depth])))
        return tuple(found)

    @cached_property
    def _queries(self) -> IntegerMatrix:
        """The queries as columns."""
        return IntegerMatrix(np.ascontiguousarray(self.entries.T))

    @cached_property
    def _inverse(self) -> Array:
        """The pseudo-inverse of the queries, shape (cells, queries)."""
        return self._queries.solve(np.eye(self._queries.rows)).T

    # What it measures.

    @property
    def columns(self) -> int:
        return len(self.groups[0]) * len(self.entries[0])

    @cached_property
    def rows(self) -> int:
        return sum(tree.rows for tree in self.trees)

    @cached_property
    def rank(self) -> int:
        return sum(tree.rank for tree in self.trees)

    @cached_property
    def max_entry(self) -> int:
        largest: list[int] = np.abs(self.entries).max(axis=1).tolist()
        return max(tree.max_entry * own for tree, own in zip(self.trees, largest, strict=True))

    @cached_property
    def max_row_sum(self) -> int:
        sums: list[int] = np.abs(self.entries).sum(axis=1).tolist()
        return max(tree.max_row_sum * own for tree, own in zip(self.trees, sums, strict=True))

    def column_sums(self, power: int) -> NDArray[np.int64]:
        """Return for each cell the sum of |entry|^power over its column, exact, shape (columns,)."""
        own = np.stack([tree.column_sums(power) for tree in self.trees], axis=1)
        return np.asarray(own @ np.abs(self.entries) ** power).ravel()

    def column_power_sum(self, power: int) -> int:
        if power not in self._largest:
            self._largest[power] = int(self.column_sums(power).max())
        return self._largest[power]

    @cached_property
    def _largest(self) -> dict[int, int]:
        return {}

    @cached_property
    def measures_total(self) -> bool:
        lost = self._outside(np.ones((self.entries.shape[1], 1)))
        return bool(lost[0] <= _OUTSIDE * self.entries.shape[1])

    @property
    def unsupported(self) -> Array | None:
        return None if self.rank == self.columns else np.linalg.svd(self.written())[2][self.rank :]

    def multiply(self, array: Array) -> Array:
        sums = self._on_queries(self.entries.astype(np.float64), array)
        return np.concatenate([tree.multiply(own) for tree, own in zip(self.trees, sums, strict=True)])

    def written(self) -> Array:
        if self.columns > MAX_WRITTEN_CELLS:
            told = f"trees of {len(self.entries)} queries: the entries of {self.columns:,} cells"
            raise TooLargeError(f"{told} are not written out past {MAX_WRITTEN_CELLS:,}")
        return self.multiply(np.eye(self.columns))

    def _on_queries(self, rows: Array, array: Array) -> Array:
        """Return queries, shape (count, cells), times an array: shape (count, values, k)."""
        tensor = array.reshape(len(self.groups[0]), rows.shape[1], -1)
        return np.ascontiguousarray(np.tensordot(rows, tensor, axes=(1, 1)))

    def _on_cells(self, columns: Array, tensor: Array) -> Array:
        """Return the transpose of that."""
        found = np.tensordot(tensor, columns, axes=(0, 1))
        return np.moveaxis(found, 2, 1).reshape(-1, tensor.shape[2])

    # Least squares.

    def solve(self, answers: Array) -> Array:
        parts = np.split(answers, np.cumsum([tree.rows for tree in self.trees])[:-1])
        solved = [tree.solve(own) for tree, own in zip(self.trees, parts, strict=True)]
        return self._on_cells(self._inverse, np.stack(solved))

    def covariance_times(self, array: Array) -> Array:
        asked = self._on_queries(self._inverse.T, array)
        found = [tree.covariance_times(own) for tree, own in zip(self.trees, asked, strict=True)]
        return self._on_cells(self._inverse, np.stack(found))

    def coefficients(self, queries: Array) -> Array:
        asked = self._on_queries(self._inverse.T, queries)
        return np.concatenate([tree.coefficients(own) for tree, own in zip(self.trees, asked, strict=True)])

    # Queries.

    def _asked(self, asked: Sequence[AxisQueries]) -> Array:
        """Return the coefficients of products of queries on the cells: shape (counts, queries)."""
        tensor = self._inverse.reshape(*(one.size for one in asked), -1)
        return along_axes(tensor, (one.apply for one in asked))

    def variances(self, asked: Sequence[AxisQueries]) -> Array:
        first, *others = asked
        squares = self._asked(others) ** 2
        own = np.stack([tree.variances([first]) for tree in self.trees])
        return np.asarray(np.tensordot(own, squares, axes=(0, -1)))

    def _outside(self, queries: Array) -> Array:
        """Return the squared lengths of what the queries do not say of others on their cells, (cells, k)."""
        apart = queries - self.entries.T @ (self._inverse.T @ queries)
        return np.asarray((apart**2).sum(axis=0))

    def lost(self, queries: Array) -> Array:
        asked = self._on_queries(self._inverse.T, queries)
        apart = queries - self._on_cells(self.entries.T.astype(np.float64), asked)
        found = (apart**2).sum(axis=0)
        for tree, own, row in zip(self.trees, asked, self.entries, strict=True):
            found += tree.lost(own) * float(row @ row)
        return np.asarray(found)

    def lost_share(self, asked: Sequence[AxisQueries]) -> float:
        first, *others = asked
        lengths, coefficients = outer(one.lengths for one in others), self._asked(others)
        span = np.linalg.qr(self.entries.T.astype(np.float64))[0]
        inside = along_axes(span.reshape(*(one.size for one in others), -1), (one.apply for one in others))
        squares = outer(one.squares() for one in others)
        found = float(np.maximum((squares - (inside**2).sum(axis=-1)) / lengths, 0.0).max())
        for place, (tree, row) in enumerate(zip(self.trees, self.entries, strict=True)):
            share = float((coefficients[..., place] ** 2 / lengths).max()) * float(row @ row)
            found += share * (tree.lost_share([first]) if share > 0.0 else 0.0)
        return found

    def over_groups(self, groups: Sequence[NDArray[np.int64]]) -> RowTrees:
        """Return the same over all values of the other attributes, given the group of each."""
        return RowTrees(self.groups, self.weights, self.entries[:, merged_cells(groups)])

    def digest(self) -> str:
        return self._digest

    @cached_property
    def _digest(self) -> str:
        arrays = (*self.groups, *self.weights, self.entries)
        content = hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays))
        counts = [len(weight) for weight in self.weights]
        return f"row-trees {self.entries.shape} {counts} {content.hexdigest()}"
