"""Trees over the values of one attribute: sums over areas of every level, weighted area by area."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact.kronecker import ExactMatrix
from matrixdp.exact.linear import Array, complement
from matrixdp.exact.matrices import AxisQueries, Entries, MeasuredMatrix
from matrixdp.exact.structured import MAX_WRITTEN_CELLS, Columns

#: A weight is below this, and the sum of the largest squares of each level below the other.
_MOST_WEIGHT, _MOST_SQUARED = 2**30, 2**62
#: Numbers that are formed at a time for queries that are not sparse.
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class TreeMatrix(MeasuredMatrix):
    """Sums over the nodes of a tree of values, each with an integer weight.

    Its rows are the nodes of weight above 0, level by level from the coarsest, in the order of their numbers.
    No array has more entries than nodes times the columns of what it multiplies.

    Parameters
    ----------
    groups : tuple of ndarray of int64, one of shape (n,) for each level
        The node of each value, numbered from 0 by first values, coarse to fine; each level refines the one
        before. The last may be the values themselves; where it is coarser, values of a node are not told
        apart.
    weights : tuple of ndarray of int64
        For each level the weight of each node: 0 where it is not measured, at least 1 on the last level.

    Raises
    ------
    NumericalError
        If the levels do not make a tree, or weights do not fit them or are too large for exact sensitivities.

    Examples
    --------
    >>> groups = np.array([0, 0, 0]), np.array([0, 0, 1]), np.arange(3)
    >>> tree = TreeMatrix(groups, (np.array([2]), np.array([1, 0]), np.array([1, 1, 3])))
    >>> tree.written().tolist()
    [[2.0, 2.0, 2.0], [1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0]]
    >>> tree.column_sums(2).tolist()
    [6, 6, 13]
    """

    kind = "tree"

    groups: tuple[NDArray[np.int64], ...]
    weights: tuple[NDArray[np.int64], ...]

    def __post_init__(self) -> None:
        if not self.groups or len(self.groups) != len(self.weights):
            raise NumericalError("a tree of values: expected weights for each level, and at least one level")
        before = np.zeros(self.groups[0].size, dtype=np.int64)
        for group, weight in zip(self.groups, self.weights, strict=True):
            if group.dtype != np.int64 or group.shape != before.shape or not group.size:
                raise NumericalError("a tree of values: expected the node of each value on each level")
            seen = np.maximum.accumulate(group)
            new = np.diff(seen, prepend=-1)
            if group.min() < 0 or new.min() < 0 or new.max() > 1:
                raise NumericalError("a tree of values: nodes are not numbered by their first values")
            if (before[np.flatnonzero(new)][group] != before).any():
                raise NumericalError("a tree of values: a level does not refine the one before")
            if weight.dtype != np.int64 or weight.shape != (int(seen[-1]) + 1,):
                raise NumericalError("a tree of values: expected an integer weight for each node")
            if weight.min() < 0 or weight.max() >= _MOST_WEIGHT:
                raise NumericalError(f"a tree of values: a weight is not within 0 to {_MOST_WEIGHT - 1}")
            before = group
        if self.weights[-1].min() < 1:
            raise NumericalError("a tree of values: a node of the last level is not measured")
        if sum(int(weight.max()) ** 2 for weight in self.weights) >= _MOST_SQUARED:
            raise NumericalError("a tree of values: weights too large for exact sensitivities")
        for array in (*self.groups, *self.weights):
            array.setflags(write=False)

    # The tree.

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """The number of values of each node of the last level."""
        return np.bincount(self.groups[-1])

    @property
    def _told(self) -> bool:
        """Whether the last level is the values themselves."""
        return len(self._counts) == self.columns

    @cached_property
    def _parents(self) -> list[NDArray[np.int64]]:
        """For each level but the first the parent of each node."""
        pairs = zip(self.groups[:-1], self.groups[1:], strict=True)
        return [above[np.unique(own, return_index=True)[1]] for above, own in pairs]

    @cached_property
    def _sums(self) -> list[Any]:
        """Sparse matrices: the sums over the children of each node, and last those over values."""
        shapes = pairwise([*map(len, self.weights), self.columns])
        return [
            scipy.sparse.csr_array((np.ones(len(up)), (up, np.arange(len(up)))), shape=shape)
            for up, shape in zip([*self._parents, self.groups[-1]], shapes, strict=True)
        ]

    @cached_property
    def _spread(self) -> tuple[list[Array], list[Array]]:
        """For each level the variance of a node's sum from all below and itself, and from its children."""
        own, below = [1.0 / self.weights[-1].astype(np.float64) ** 2], []
        for weight, up in zip(self.weights[-2::-1], self._sums[-2::-1], strict=True):
            below.append(up @ own[-1])
            own.append(below[-1] / (1.0 + weight.astype(np.float64) ** 2 * below[-1]))
        return own[::-1], below[::-1]

    # What it measures.

    @property
    def columns(self) -> int:
        return len(self.groups[0])

    @cached_property
    def rows(self) -> int:
        return sum(int(np.count_nonzero(weight)) for weight in self.weights)

    @property
    def rank(self) -> int:
        return len(self.weights[-1])

    @cached_property
    def max_entry(self) -> int:
        return max(int(weight.max()) for weight in self.weights)

    @cached_property
    def max_row_sum(self) -> int:
        pairs = zip(self.weights, self.groups, strict=True)
        return max(int((weight * np.bincount(group)).max()) for weight, group in pairs)

    @cached_property
    def divisor(self) -> int:
        return int(np.gcd.reduce([np.gcd.reduce(weight) for weight in self.weights]))

    def column_sums(self, power: int) -> NDArray[np.int64]:
        """Return for each value the sum of |entry|^power over its column, exact, shape (n,)."""
        own = (weight[group] for weight, group in zip(self.weights, self.groups, strict=True))
        return np.asarray(sum(entry**power for entry in own), dtype=np.int64)

    def column_power_sum(self, power: int) -> int:
        if power not in self._largest:
            self._largest[power] = int(self.column_sums(power).max())
        return self._largest[power]

    @cached_property
    def _largest(self) -> dict[int, int]:
        return {}

    @property
    def measures_total(self) -> bool:
        return True

    @property
    def unsupported(self) -> Array | None:
        if self._told:
            return None
        return complement((self._sums[-1] @ self._cells("what it does not measure")).T)

    def _node_sums(self, array: Array) -> Iterator[Array]:
        """Yield the sums over the nodes of each level, from the finest."""
        for up in self._sums[::-1]:
            array = up @ array
            yield array

    def multiply(self, array: Array) -> Array:
        levels = zip(self.weights[::-1], self._node_sums(array), strict=True)
        found = [weight[weight > 0, None] * sums[weight > 0] for weight, sums in levels]
        return np.concatenate(found[::-1])

    def _by_level(self, rows: Array) -> list[Array]:
        """Return rows as an array for each level, 0 for nodes that are not measured."""
        found, first = [], 0
        for weight in self.weights:
            measured = np.flatnonzero(weight)
            level = np.zeros((len(weight), rows.shape[1]))
            level[measured] = rows[first : first + len(measured)]
            found.append(level)
            first += len(measured)
        return found

    # Least squares.

    def _solved(self, sums: Sequence[Array | None], last: Array) -> Array:
        """Return (B'B)^-1 times sum_v b_v 1_v over nodes v, for b on the last level and on those above.

        Up it finds the sum x_v that everything below a node and it itself say, and down what all say.
        """
        own, below = self._spread
        found: list[tuple[Array, Array]] = []
        array = own[-1][:, None] * last
        for level in range(len(self.weights) - 2, -1, -1):
            total = self._sums[level] @ array
            found.append((array, total))
            given = sums[level]
            array = total if given is None else total + below[level][:, None] * given
            array = array * (own[level] / below[level])[:, None]
        for level, (array_below, total) in enumerate(found[::-1]):
            up = self._parents[level]
            share = (own[level + 1] / below[level][up])[:, None]
            # the two products cancel exactly where a node is all of its parent
            array = (array_below - share * total[up]) + share * array[up]
        return np.asarray(array / self._counts[:, None])[self.groups[-1]]

    def solve(self, answers: Array) -> Array:
        *above, last = (w[:, None] * y for w, y in zip(self.weights, self._by_level(answers), strict=True))
        return self._solved(above, last)

    def covariance_times(self, array: Array) -> Array:
        return self._solved([None] * (len(self.weights) - 1), self._means(array))

    def _means(self, array: Array) -> Array:
        return np.asarray(self._sums[-1] @ array / self._counts[:, None])

    def coefficients(self, queries: Array) -> Array:
        return self.multiply(self.covariance_times(queries))

    def covariance(self) -> Array:
        return self.covariance_times(self._cells("its covariance"))

    def written(self) -> Array:
        return self.multiply(self._cells("its entries"))

    def _cells(self, what: str) -> Array:
        if self.columns > MAX_WRITTEN_CELLS:
            told = f"a tree of {self.columns:,} values: {what}"
            raise TooLargeError(f"{told} are not written out past {MAX_WRITTEN_CELLS:,}")
        return np.eye(self.columns)

    # Queries.

    def variances(self, asked: Sequence[AxisQueries]) -> Array:
        [queries] = asked
        sparse = queries.entries()
        if sparse is not None:
            return self._sparse_forms(sparse, len(queries.lengths))[0]
        return self.covariances(queries, queries)

    def _sparse_forms(self, sparse: Entries, count: int) -> tuple[Array, Array]:
        """Return the variances of queries with few entries other than 0, and what is lost of their lengths.

        A query x'b of nodes of one level is that of their parents' sums with the means of b, weighted by
        the variances s of the nodes, and the rest sum s_u (b_u - mean)^2, which is independent of it.
        """
        own, below = self._spread
        query, node, entry = sparse
        last = self.groups[-1], np.ones(self.columns), self._counts.astype(np.float64)
        (query, node, entry), lost = self._to_parents(query, node, entry, last, count)
        total = np.zeros(count)
        for level in range(len(self.weights) - 1, 0, -1):
            tree = self._parents[level - 1], own[level], below[level - 1]
            (query, node, entry), rest = self._to_parents(query, node, entry, tree, count)
            total += rest
        return total + np.bincount(query, own[0][node] * entry**2, count), lost

    @staticmethod
    def _to_parents(
        query: NDArray[np.intp],
        node: NDArray[np.intp],
        entry: Array,
        tree: tuple[NDArray[np.int64], Array, Array],
        count: int,
    ) -> tuple[Entries, Array]:
        """Return entries on the nodes above, and the weighted squared distances from them by query."""
        parents, weight, whole = tree
        above = parents[node]
        keys, place = np.unique(query * len(whole) + above, return_inverse=True)
        asked, over = np.divmod(keys, len(whole))
        own = weight[node]
        mean = np.bincount(place, own * entry) / whole[over]
        apart = np.bincount(place, own * (entry - mean[place]) ** 2)
        all_children = np.bincount(place) == np.bincount(parents)[over]
        rest = np.where(all_children, 0.0, np.maximum(whole[over] - np.bincount(place, own), 0.0))
        return (asked, over, mean), np.asarray(np.bincount(asked, apart + rest * mean**2, count), np.float64)

    def lost(self, queries: Array) -> Array:
        if self._told:
            return np.zeros(queries.shape[1])
        return np.asarray(((queries - self._means(queries)[self.groups[-1]]) ** 2).sum(axis=0))

    def lost_share(self, asked: Sequence[AxisQueries]) -> float:
        [queries] = asked
        if self._told:
            return 0.0
        sparse = queries.entries()
        if sparse is not None:
            lost = self._sparse_forms(sparse, len(queries.lengths))[1]
            return float((lost / queries.lengths).max())
        kept, width = np.zeros(len(queries.lengths)), max(1, _BLOCK // self.columns)
        for first in range(0, self.rank, width):
            counts = self._counts[first : first + width]
            nodes = (self.groups[-1][:, None] == np.arange(first, first + len(counts))) / np.sqrt(counts)
            kept += (queries.apply(nodes) ** 2).sum(axis=1)
        return float((np.maximum(queries.squares() - kept, 0.0) / queries.lengths).max())

    def column_map(self, power: int) -> ExactMatrix:
        def multiply(array: Array) -> Array:
            found = np.zeros((self.columns, array.shape[1]))
            for weight, group, own in zip(self.weights, self.groups, self._by_level(array), strict=True):
                found += (weight.astype(np.float64)[:, None] ** power * own)[group]
            return found

        return Columns(self.max_entry**power, self.column_power_sum(power), multiply)

    def digest(self) -> str:
        return self._digest

    @cached_property
    def _digest(self) -> str:
        content = hashlib.sha256(b"".join(array.tobytes() for array in (*self.groups, *self.weights)))
        return f"tree {self.columns} {[len(weight) for weight in self.weights]} {content.hexdigest()}"
