"""Trees over the values of one attribute: sums over areas of every level, weighted area by area."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact.beside import Areas, Beside
from matrixdp.exact.kronecker import ExactMatrix
from matrixdp.exact.linear import Array, complement
from matrixdp.exact.matrices import AxisQueries, Entries, MeasuredMatrix
from matrixdp.exact.structured import MAX_WRITTEN_CELLS, Columns

#: For each level the variances of its nodes' sums from all below and themselves, and from all below.
Spread = tuple[list[Array], list[Array]]
#: A weight is below this, and the sum of the largest squares of each level below the other.
_MOST_WEIGHT, _MOST_SQUARED = 2**30, 2**62
#: An area beside the tree has a weight below this: larger ones would leave its least squares few digits.
_MOST_BESIDE = 2**16
#: Numbers that are formed at a time for queries that are not sparse.
_BLOCK = 1 << 22


def in_two(fine: NDArray[np.int64], coarse: NDArray[np.int64]) -> bool:
    """Return whether a node lies in two of another level."""
    return bool((coarse[np.unique(fine, return_index=True)[1]][fine] != coarse).any())


def sums_over(nodes: NDArray[np.int64], count: int) -> Any:
    """Return the sparse matrix of sums over nodes, given that of each column."""
    shape = count, len(nodes)
    return scipy.sparse.csr_array((np.ones(len(nodes)), (nodes, np.arange(len(nodes)))), shape=shape)


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
    beside : tuple of ndarray of int64, one of shape (n,) for each family
        Families of areas that cut across the levels: the area of each value, numbered by first values. Each
        area consists of nodes of the last level. Their rows come after those of the nodes.
    beside_weights : tuple of ndarray of int64
        For each family the weight of each area, 0 where it is not measured.

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
    >>> ends = TreeMatrix(groups[2:], (np.array([1, 1, 3]),), (np.array([0, 1, 0]),), (np.array([2, 0]),))
    >>> ends.written()[3:].tolist()
    [[2.0, 0.0, 2.0]]
    """

    kind = "tree"

    groups: tuple[NDArray[np.int64], ...]
    weights: tuple[NDArray[np.int64], ...]
    beside: tuple[NDArray[np.int64], ...] = ()
    beside_weights: tuple[NDArray[np.int64], ...] = ()

    def __post_init__(self) -> None:
        pairs = (self.groups, self.weights), (self.beside, self.beside_weights)
        if not self.groups or any(len(groups) != len(weights) for groups, weights in pairs):
            raise NumericalError("a tree of values: expected weights for each level, and at least one level")
        before = np.zeros(self.groups[0].size, dtype=np.int64)
        for place, (group, weight) in enumerate(self._families):
            if group.dtype != np.int64 or group.shape != before.shape or not group.size:
                raise NumericalError("a tree of values: expected the node of each value on each level")
            seen = np.maximum.accumulate(group)
            new = np.diff(seen, prepend=-1)
            if group.min() < 0 or new.min() < 0 or new.max() > 1:
                raise NumericalError("a tree of values: nodes are not numbered by their first values")
            level = place < len(self.groups)
            if level and in_two(group, before):
                raise NumericalError("a tree of values: a level does not refine the one before")
            if not level and in_two(before, group):
                raise NumericalError("a tree of values: a node of the last level lies in two areas beside it")
            if weight.dtype != np.int64 or weight.shape != (int(seen[-1]) + 1,):
                raise NumericalError("a tree of values: expected an integer weight for each node")
            most = _MOST_WEIGHT if level else _MOST_BESIDE
            if weight.min() < 0 or weight.max() >= most:
                raise NumericalError(f"a tree of values: a weight is not within 0 to {most - 1}")
            before = group if level else before
        if self.weights[-1].min() < 1:
            raise NumericalError("a tree of values: a node of the last level is not measured")
        if sum(int(weight.max()) ** 2 for _, weight in self._families) >= _MOST_SQUARED:
            raise NumericalError("a tree of values: weights too large for exact sensitivities")
        for array in chain(*self._families):
            array.setflags(write=False)

    # The tree.

    @property
    def _families(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """The nodes and weights of all levels, then the areas and weights of families beside them."""
        pairs = (*self.groups, *self.beside), (*self.weights, *self.beside_weights)
        return list(zip(*pairs, strict=True))

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
        pairs = zip([*self._parents, self.groups[-1]], self.weights, strict=True)
        return [sums_over(up, len(weight)) for up, weight in pairs]

    @cached_property
    def _alone(self) -> Spread:
        """For each level the variance of a node's sum from all below and itself, and from its children."""
        own, below = [1.0 / self.weights[-1].astype(np.float64) ** 2], []
        for weight, up in zip(self.weights[-2::-1], self._sums[-2::-1], strict=True):
            below.append(up @ own[-1])
            own.append(below[-1] / (1.0 + weight.astype(np.float64) ** 2 * below[-1]))
        return own[::-1], below[::-1]

    @cached_property
    def _beside(self) -> Beside | None:
        """What areas beside the tree say below their home."""
        firsts = np.unique(self.groups[-1], return_index=True)[1]
        families = self._families[len(self.groups) :]
        measured = [(own[firsts], weight) for own, weight in families if weight.any()]
        if not measured:
            return None
        areas = Areas.of([group[firsts] for group in self.groups], measured)
        nothing, last = [None] * (len(self.weights) - 1), self._alone[0][-1][:, None]
        return Beside.of(areas, lambda array: self._pass(self._alone, areas.home + 1, nothing, last * array))

    @cached_property
    def _spread(self) -> Spread:
        """The same with the areas beside the tree, which change it from their home up."""
        if self._beside is None:
            return self._alone
        own, below = map(list, self._alone)
        for level in range(self._beside.areas.home, -1, -1):
            across = level == self._beside.areas.home
            below[level] = self._beside.spread if across else self._sums[level] @ own[level + 1]
            own[level] = below[level] / (1.0 + self.weights[level].astype(np.float64) ** 2 * below[level])
        return own, below

    # What it measures.

    @property
    def columns(self) -> int:
        return len(self.groups[0])

    @cached_property
    def rows(self) -> int:
        return sum(int(np.count_nonzero(weight)) for _, weight in self._families)

    @property
    def rank(self) -> int:
        return len(self.weights[-1])

    @cached_property
    def max_entry(self) -> int:
        return max(int(weight.max()) for _, weight in self._families)

    @cached_property
    def max_row_sum(self) -> int:
        return max(int((weight * np.bincount(group)).max()) for group, weight in self._families)

    @cached_property
    def divisor(self) -> int:
        return int(np.gcd.reduce([np.gcd.reduce(weight) for _, weight in self._families]))

    def column_sums(self, power: int) -> NDArray[np.int64]:
        """Return for each value the sum of |entry|^power over its column, exact, shape (n,)."""
        own = (weight[group] for group, weight in self._families)
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
        found = [weight[weight > 0, None] * sums[weight > 0] for weight, sums in levels][::-1]
        for group, weight in self._families[len(self.groups) :]:
            found.append(weight[weight > 0, None] * (sums_over(group, len(weight)) @ array)[weight > 0])
        return np.concatenate(found)

    def _by_level(self, rows: Array) -> list[Array]:
        """Return rows as an array for each level and family, 0 for nodes that are not measured."""
        found, first = [], 0
        for _, weight in self._families:
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
        array = self._alone[0][-1][:, None] * last
        if self._beside is None:
            array = self._pass(self._alone, 0, sums, array)
        else:
            areas = self._beside.areas
            array = self._beside.corrected(self._pass(self._alone, areas.home + 1, sums, array))
            if areas.home >= 0:
                own, below = self._spread
                total, given = areas.totals @ array, sums[areas.home]
                above = total if given is None else total + below[areas.home][:, None] * given
                above = above * (own[areas.home] / below[areas.home])[:, None]
                above = self._pass(self._spread, 0, sums[: areas.home], above)
                array = array + self._beside.gain[:, None] * (above - total)[areas.homes]
        return np.asarray(array / self._counts[:, None])[self.groups[-1]]

    def _pass(self, spread: Spread, first: int, sums: Sequence[Array | None], array: Array) -> Array:
        """Return what all levels from the first say, given what nodes of the last and all below them do.

        The last is the one after those of ``sums``.
        """
        own, below = spread
        found: list[tuple[Array, Array]] = []
        for level in range(len(sums) - 1, first - 1, -1):
            total = self._sums[level] @ array
            found.append((array, total))
            given = sums[level]
            array = total if given is None else total + below[level][:, None] * given
            array = array * (own[level] / below[level])[:, None]
        for level, (array_below, total) in enumerate(found[::-1], first):
            up = self._parents[level]
            share = (own[level + 1] / below[level][up])[:, None]
            # the two products cancel exactly where a node is all of its parent
            array = (array_below - share * total[up]) + share * array[up]
        return array

    def sums_above(self, sums: Sequence[Array], total: Array) -> Array:
        """Return the estimated sums of the nodes of the level above the last.

        Given what is measured of each level above the last, times its weights, and of each such node the sum
        of what its children say alone; of a tree without areas beside it.
        """
        own, below = self._alone
        array = (total + below[-1][:, None] * sums[-1]) * (own[-2] / below[-1])[:, None]
        return self._pass(self._alone, 0, sums[:-1], array)

    def solve(self, answers: Array) -> Array:
        products = [w[:, None] * y for (_, w), y in zip(self._families, self._by_level(answers), strict=True)]
        *above, last = products[: len(self.groups)]
        if self.beside:
            firsts = np.unique(self.groups[-1], return_index=True)[1]
            pairs = zip(self.beside, products[len(self.groups) :], strict=True)
            last = last + sum(own[group[firsts]] for group, own in pairs)
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
            return self._sparse_forms(sparse, len(queries.lengths))
        return self.covariances(queries, queries)

    def _on_last(self, sparse: Entries, count: int) -> tuple[Entries, Array]:
        """Return entries on the nodes of the last level, and what is lost of the queries' lengths."""
        last = self.groups[-1], np.ones(self.columns), self._counts.astype(np.float64)
        return self._to_parents(*sparse, last, count)

    def _sparse_forms(self, sparse: Entries, count: int) -> Array:
        """Return the variances of queries with few entries other than 0."""
        entries, last = self._on_last(sparse, count)[0], len(self.weights) - 1
        if self._beside is None:
            return self._ascended(self._alone, 0, (last, entries), count)
        areas = self._beside.areas
        found = self._ascended(self._alone, areas.home + 1, (last, entries), count)
        query, node, _ = entries
        keys, pair = np.unique(query * len(areas.counts) + areas.homes[node], return_inverse=True)
        queries, homes = np.divmod(keys, len(areas.counts))
        taken, total = self._beside.forms(pair, *entries[1:], homes)
        found -= np.bincount(queries, taken, count)
        if areas.home >= 0:
            found += self._ascended(self._spread, 0, (areas.home, (queries, homes, total)), count)
        return np.maximum(found, 0.0)

    def _ascended(self, spread: Spread, first: int, asked: tuple[int, Entries], count: int) -> Array:
        """Return the variances of queries, given their entries on a level, where nothing is before the first.

        A query x'b of nodes of one level is that of their parents' sums with the means of b, weighted by
        the variances s of the nodes, and the rest sum s_u (b_u - mean)^2, which is independent of it.
        """
        (own, below), (last, entries) = spread, asked
        total = np.zeros(count)
        for level in range(last, first, -1):
            tree = self._parents[level - 1], own[level], below[level - 1]
            entries, rest = self._to_parents(*entries, tree, count)
            total += rest
        query, node, entry = entries
        return total + np.bincount(query, own[first][node] * entry**2, count)

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
            lost = self._on_last(sparse, len(queries.lengths))[1]
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
            for (group, weight), own in zip(self._families, self._by_level(array), strict=True):
                found += (weight.astype(np.float64)[:, None] ** power * own)[group]
            return found

        return Columns(self.max_entry**power, self.column_power_sum(power), multiply)

    def digest(self) -> str:
        return self._digest

    @cached_property
    def _digest(self) -> str:
        arrays = (*self.groups, *self.weights, *self.beside, *self.beside_weights)
        content = hashlib.sha256(b"".join(array.tobytes() for array in arrays))
        counts = [[len(weight) for weight in own] for own in (self.weights, self.beside_weights)]
        return f"tree {self.columns} {counts[0]} {counts[1] or ''}{content.hexdigest()}"
