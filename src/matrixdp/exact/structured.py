"""Matrices over groups of values: cells that no query tells apart share a column."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact.kronecker import ExactMatrix
from matrixdp.exact.linear import Array, along_axes
from matrixdp.exact.matrices import (
    MOST_OVERLAPS,
    AxisQueries,
    DeficientMatrix,
    IntegerMatrix,
    MeasuredMatrix,
    product_quadratic,
)

#: Weights within groups times their values: larger ones would have no exact sensitivities in 64 bits.
_LONGEST = 2**30


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


def _times(matrices: Sequence[Array], array: Array) -> Array:
    """Return the Kronecker product of matrices times an array of shape (cells, k)."""
    tensor = along_axes(array.reshape(*(one.shape[1] for one in matrices), array.shape[1]), matrices)
    return np.ascontiguousarray(tensor).reshape(-1, array.shape[1])


def over_groups(matrix: MeasuredMatrix, groups: Sequence[NDArray[np.int64]]) -> MergedMatrix:
    """Return the matrix over all values that a matrix over groups of them makes.

    Examples
    --------
    >>> over_groups(DeficientMatrix(np.array([[1, 2]])), [np.array([0, 0, 1])]).written().tolist()
    [[1.0, 1.0, 2.0]]
    """
    if isinstance(matrix, MergedMatrix | GridTree):
        entries = matrix.written().astype(np.int64)
        matrix = IntegerMatrix(entries) if matrix.rank == matrix.columns else DeficientMatrix(entries)
    return MergedMatrix(matrix, tuple(group.astype(np.int64) for group in groups))


@dataclass(frozen=True, eq=False)
class MergedMatrix(MeasuredMatrix):
    """An integer matrix over the products of groups of values of some attributes.

    It measures sums over the cells of such products. Where one attribute has weights ``within`` its groups,
    it also measures how far each value of a group is from the group's mean: below the rows of the matrix
    stand those of k (m I - 11') for the m values of a group with weight k > 0, in the order of the values.
    Such a matrix has full column rank.
    Other cells of a group are not told apart: ``unsupported`` has as many rows as there are such directions;
    `apart` finds the same without them.

    Parameters
    ----------
    matrix : MeasuredMatrix
        Over the products of groups, row-major; no merged one, nor a tree over a grid.
    groups : tuple of ndarray of int64, one of shape (n,) for each attribute
        The number of the group of each value, from 0; no group is empty.
    within : ndarray of int64, shape (groups,), optional
        A weight for each group of the one attribute: 0 where its values are not told apart.

    Raises
    ------
    NumericalError
        If the groups are not those of the matrix, or the weights do not fit them.

    Examples
    --------
    >>> merged = MergedMatrix(IntegerMatrix(np.array([[1, 1], [0, 2]])), (np.array([0, 1, 1]),))
    >>> merged.multiply(np.array([[5.0], [1.0], [2.0]])).ravel().tolist()
    [8.0, 6.0]
    >>> merged.squared_sensitivity, merged.max_row_sum
    (5, 4)
    """

    kind = "merged"

    matrix: MeasuredMatrix
    groups: tuple[NDArray[np.int64], ...]
    within: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        for group in self.groups:
            if group.ndim != 1 or group.dtype != np.int64 or not len(group) or group.min() < 0:
                raise NumericalError("groups of values: expected the number of the group of each value")
            if group.max() >= len(group) or not np.bincount(group).all():
                raise NumericalError("groups of values: one of them is empty")
        if isinstance(self.matrix, MergedMatrix | GridTree):
            raise NumericalError("groups of values: their matrix is merged itself, or a tree")
        cells, made = self.matrix.columns, math.prod(self.merged_sizes)
        if cells != made:
            raise NumericalError(f"a matrix over {cells} groups of cells; its groups of values make {made}")
        if self.within is None:
            return
        fits = len(self.groups) == 1 and self.within.shape == (cells,) and self.within.dtype == np.int64
        fits = fits and isinstance(self.matrix, IntegerMatrix)
        fits = fits and 0 <= int(self.within.min()) <= int(self.within.max()) < _LONGEST
        if not fits or int((self.within * self._counts).max()) >= _LONGEST:
            told = "weights within groups: expected a small integer for each group of one attribute"
            raise NumericalError(told)

    @cached_property
    def _counts(self) -> NDArray[np.int64]:
        """The number of cells of each product of groups."""
        counts = np.ones(1, dtype=np.int64)
        for group in self.groups:
            counts = np.multiply.outer(counts, np.bincount(group)).ravel()
        return counts

    @cached_property
    def _weights(self) -> NDArray[np.int64]:
        """The weight within each product of groups."""
        return np.zeros(self.matrix.columns, dtype=np.int64) if self.within is None else self.within

    @cached_property
    def _lengths(self) -> Array:
        """The k m of each product of groups; 1 where its cells are not told apart."""
        return np.where(self._weights > 0, self._weights * self._counts, 1).astype(np.float64)

    @cached_property
    def _told(self) -> NDArray[np.intp]:
        """The cells with a row of their own."""
        return np.flatnonzero(() if self.within is None else self.within[self.groups[0]])

    @cached_property
    def _group(self) -> NDArray[np.int64]:
        """The groups of the cells with a row of their own."""
        return self.groups[0][self._told]

    @property
    def walk(self) -> tuple[int, ...] | None:
        return self.matrix.walk

    @property
    def parents(self) -> tuple[int, ...]:
        return self.matrix.parents

    def overlaps(self, power: int) -> NDArray[np.int64] | None:
        if self.walk is None:
            return super().overlaps(power)
        if self.rows * self.columns**2 > MOST_OVERLAPS:
            return None
        # a walk's cost is no sum over its rows: two records of one group move it alike, others apart
        cells = merged_cells(self.groups)
        return self.column_power_sum(power) * np.equal.outer(cells, cells).astype(np.int64)

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
        pairs = zip(self.groups, self.merged_sizes, strict=True)
        return tuple((group == np.arange(count)[:, None]).astype(np.float64) for group, count in pairs)

    @cached_property
    def spreads(self) -> tuple[Array, ...]:
        """Matrices that spread a sum evenly over its group, shape (values, groups) for each attribute."""
        return tuple(one.T / one.sum(axis=1) for one in self.indicators)

    def means(self, array: Array) -> Array:
        """Return the mean over the cells of each product of groups: shape (columns, k) to (groups, k)."""
        return _times(tuple(one.T for one in self.spreads), array)

    @property
    def columns(self) -> int:
        return math.prod(self.sizes)

    @property
    def rows(self) -> int:
        return self.matrix.rows + len(self._told)

    @property
    def rank(self) -> int:
        return self.matrix.rank + len(self._told) - int(np.count_nonzero(self._weights))

    @property
    def outside(self) -> Array | None:
        return None if self.matrix.outside is None else self.unsupported

    @property
    def support_rank(self) -> int:
        return self.rank - self.matrix.rank + self.matrix.support_rank

    @cached_property
    def unsupported(self) -> Array | None:
        found, cells = [], merged_cells(self.groups)
        for group in np.flatnonzero((self._weights == 0) & (self._counts > 1)):
            contrasts = np.zeros((self._counts[group] - 1, self.columns))
            contrasts[:, cells == group] = scipy.linalg.helmert(int(self._counts[group]))
            found.append(contrasts)
        if self.matrix.unsupported is not None:
            found.append(np.linalg.qr(_times(self.spreads, self.matrix.unsupported.T))[0].T)
        return np.vstack(found) if found else None

    @property
    def residual(self) -> bool:  # type: ignore[override]
        return self.matrix.residual

    @cached_property
    def _inverse(self) -> Array | None:
        """A weighted pseudo-inverse of a deficient matrix: columns stand for groups of different sizes."""
        if not isinstance(self.matrix, DeficientMatrix):
            return None
        roots = np.sqrt(self._counts)
        left, values, right = scipy.linalg.svd(self.matrix.written() * roots, full_matrices=False)
        kept = self.matrix.rank
        return np.asarray((roots[:, None] * right[:kept].T / values[:kept]) @ left[:, :kept].T)

    @property
    def measures_total(self) -> bool:
        return self.matrix.measures_total  # the total tells no two cells of a group apart

    @property
    def max_entry(self) -> int:
        return max(self.matrix.max_entry, int(self._lengths.max()))

    @cached_property
    def max_row_sum(self) -> int:
        between = self.matrix.max_row_sum * int(self._counts.max())
        return max(between, 2 * int(self._lengths.max()))

    def column_power_sum(self, power: int) -> int:
        if self.within is None:
            return self.matrix.column_power_sum(power)
        weights, others = self._weights, self._counts - 1
        within = (weights * others) ** power + weights**power * others
        return int(((self.matrix.magnitudes() ** power).sum(axis=0) + within).max())

    def multiply(self, array: Array) -> Array:
        sums = _times(self.indicators, array)
        apart = self._counts[self._group, None] * array[self._told] - sums[self._group]
        return np.vstack([self.matrix.multiply(sums), self._weights[self._group, None] * apart])

    def solve(self, answers: Array) -> Array:
        known, inverse = answers[: self.matrix.rows], self._inverse
        between = _times(self.spreads, self.matrix.solve(known) if inverse is None else inverse @ known)
        between[self._told] += self._from_means(answers[self.matrix.rows :])
        return between

    def _from_means(self, array: Array) -> Array:
        """Return the normalized part of vectors that the rows within groups measure."""
        sums = np.zeros((self.matrix.columns, array.shape[1]))
        np.add.at(sums, self._group, array)
        apart = array - (sums / self._counts[:, None])[self._group]
        return np.asarray(apart / self._lengths[self._group, None])

    def covariance_times(self, array: Array) -> Array:
        means, inverse = self.means(array), self._inverse
        between = self.matrix.covariance_times(means) if inverse is None else inverse @ (inverse.T @ means)
        found = _times(self.spreads, between)
        found[self._told] += self._from_means(array[self._told]) / self._lengths[self._group, None]
        return found

    def covariance(self) -> Array:
        return self.covariance_times(np.eye(self.columns))

    def uncorrelated(self) -> Array:
        if self.walk is None:
            return super().uncorrelated()
        return self.matrix.uncorrelated()[:, merged_cells(self.groups)]

    def coefficients(self, queries: Array) -> Array:
        means, inverse = self.means(queries), self._inverse
        between = self.matrix.coefficients(means) if inverse is None else inverse.T @ means
        return np.vstack([between, self._from_means(queries[self._told])])

    def column_map(self, power: int) -> ExactMatrix:
        weights = self._weights**power
        more = weights * ((self._counts - 1) ** power - 1)
        between = self.matrix.column_map(power)
        largest = max(between.max_entry, int((self._weights * (self._counts - 1)).max()) ** power)

        def multiply(array: Array) -> Array:
            within = array[self.matrix.rows :]
            sums = between.multiply(array[: self.matrix.rows])
            if not len(within):
                return sums  # equal columns once
            np.add.at(sums, self._group, weights[self._group, None] * within)
            found = sums[self.groups[0]]
            found[self._told] += more[self._group, None] * within
            return np.asarray(found)

        return Columns(largest, self.column_power_sum(power), multiply)

    def apart(self, queries: Array) -> Array:
        """Return the unmeasured part of queries within groups, shape (columns, k) in and out."""
        found = np.asarray(queries - _times(tuple(one.T for one in self.indicators), self.means(queries)))
        found[self._told] = 0.0
        return found

    def _seen(self, asked: Sequence[AxisQueries]) -> list[_MeansOfGroups]:
        """Return the queries on each attribute over groups: their means within each group."""
        pairs = zip(asked, self.spreads, strict=True)
        return [_MeansOfGroups(one.apply(spread), one.lengths) for one, spread in pairs]

    def _apart_squares(
        self, one: AxisQueries, means: Array, group: NDArray[np.int64], weights: Array
    ) -> Array:
        """Return the squared distances of queries from their means over groups, each group's weighted."""
        return one.weighted_squares(weights[group]) - (means**2) @ (weights * np.bincount(group))

    def variances(self, asked: Sequence[AxisQueries]) -> Array:
        seen = self._seen(asked)
        inverse = self._inverse
        if inverse is not None:
            return product_quadratic(inverse @ inverse.T, seen)
        found = self.matrix.variances(seen)
        if self.within is None:
            return found
        weights = (self._weights > 0) / self._lengths**2
        return found + self._apart_squares(asked[0], seen[0].values, self.groups[0], weights)

    def lost(self, queries: Array) -> Array:
        apart: Array = (self.apart(queries) ** 2).sum(axis=0)
        return apart + self.matrix.lost(self.means(queries))

    def lost_share(self, asked: Sequence[AxisQueries]) -> float:
        seen, found = self._seen(asked), 0.0
        whole = [one.squares() / one.lengths for one in asked]
        for axis, (one, group) in enumerate(zip(seen, self.groups, strict=True)):
            untold = np.ones(one.size) if self.within is None else (self.within == 0).astype(np.float64)
            apart = self._apart_squares(asked[axis], one.values, group, untold) / one.lengths
            others = (own.max() for own in (*whole[:axis], *whole[axis + 1 :]))
            found += float(apart.max()) * math.prod(others)
        return found + self.matrix.lost_share(seen)

    def digest(self) -> str:
        content = (*self.groups, *(() if self.within is None else (self.within,)))
        groups = hashlib.sha256(b"".join(group.tobytes() for group in content)).hexdigest()
        return f"merged {self.sizes} {groups} {self.matrix.digest()}"


@dataclass(frozen=True)
class Columns:
    """A matrix by what it does; see `ExactMatrix`."""

    max_entry: int
    max_row_sum: int
    multiply: Callable[[Array], Array]


@dataclass(frozen=True)
class _MeansOfGroups:
    """Queries on the groups of an attribute; see `AxisQueries`."""

    values: Array
    lengths: Array

    @property
    def size(self) -> int:
        return int(self.values.shape[1])

    def entries(self) -> None:
        return None

    def apply(self, array: Array) -> Array:
        return np.asarray(self.values @ array)

    def squares(self) -> Array:
        return np.asarray((self.values**2).sum(axis=1))

    def weighted_squares(self, weights: Array) -> Array:
        return np.asarray((self.values**2) @ weights)

    def quadratic(self, form: Array) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.values @ form, self.values))


# Trees of rectangles over a grid of two attributes, without their entries: millions of cells.

#: A covariance or magnitudes of more cells are not written out; a covariance has matrices of each side.
MAX_WRITTEN_CELLS = 9_000
_MOST_LEVELS = 60
#: Widths of rectangles stay within 64 bits.
_WIDEST = 2**62


@dataclass(frozen=True)
class GridCovariance:
    """A covariance over the cells of a grid: sum_k c_k (A_k x B_k) - sum_j g_j vec(H_j) vec(H_j)'.

    Attributes
    ----------
    terms : tuple of (float, ndarray, ndarray)
        c_k, A_k of shape (n_1, n_1) and B_k of shape (n_2, n_2).
    corners : tuple of (float, ndarray)
        g_j and H_j, shape (n_1, n_2): nodes that the ends of both attributes cut.
    """

    terms: tuple[tuple[float, Array, Array], ...]
    corners: tuple[tuple[float, Array], ...]

    def times(self, array: Array) -> Array:
        """Return the covariance times an array of shape (n_1 n_2, k)."""
        total = np.zeros(array.shape)
        for factor, first, second in self.terms:
            total += factor * _times((first, second), array)
        for factor, field in self.corners:
            total -= factor * np.outer(field, field.ravel() @ array)
        return total

    def quadratic(self, first: AxisQueries, second: AxisQueries) -> Array:
        """Return (q_1 x q_2) C (q_1 x q_2)' for every pair of queries on the two attributes."""
        total: Array = np.zeros(())
        for factor, own, other in self.terms:
            total = total + np.multiply.outer(factor * first.quadratic(own), second.quadratic(other))
        for factor, field in self.corners:
            total = total - factor * second.apply(first.apply(field).T).T ** 2
        return total

    def trace(self, first: Array, second: Array) -> float:
        """Return the trace of the covariance times V_1 x V_2: the error of a product workload."""
        total = math.fsum(f * float(np.vdot(a, first)) * float(np.vdot(b, second)) for f, a, b in self.terms)
        return total - math.fsum(f * float(np.vdot(h, first @ h @ second)) for f, h in self.corners)


@dataclass(frozen=True)
class GridTree(MeasuredMatrix):
    """Every level of a tree over a grid, the rectangles of a level with one integer weight.

    Both sides are padded to the same power of the branching, and every level divides every side of every
    rectangle into as many equal intervals. Cells beyond the ends, which hold nothing, are left out.

    Parameters
    ----------
    sizes : tuple of (int, int)
        Cells along the two attributes.
    branching : int
        Intervals that a side is divided into, at least 2.
    weights : tuple of int
        From the whole grid to its cells; 0 for a level that is not measured, at least 1 for the cells.

    Raises
    ------
    NumericalError
        If the levels do not reach from the whole grid to the cells, or a weight is none.
    TooLargeError
        If a side has more than 9,000 cells.

    Examples
    --------
    >>> tree = GridTree((2, 3), 2, (1, 1, 2))
    >>> tree.rows, tree.sensitivity, tree.squared_sensitivity
    (9, 4, 6)
    >>> tree.multiply(np.arange(6.0)[:, None]).ravel().tolist()
    [15.0, 8.0, 7.0, 0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """

    kind = "grid-tree"

    sizes: tuple[int, int]
    branching: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        height, tree = len(self.weights) - 1, f"a tree over {self.sizes[0]} x {self.sizes[1]} cells"
        if min(self.sizes) < 1 or self.branching < 2 or not 0 <= height <= _MOST_LEVELS:
            raise NumericalError(f"{tree} of branching {self.branching} and {height} levels")
        if max(self.sizes) > MAX_WRITTEN_CELLS:
            raise TooLargeError(f"{tree}; the limit is {MAX_WRITTEN_CELLS:,} along each side")
        if not max(self.sizes) <= self.branching**height < _WIDEST:
            raise NumericalError(f"{height} levels of branching {self.branching} do not fit {self.sizes}")
        if min(self.weights) < 0 or self.weights[-1] < 1 or sum(self.weights) >= 2**30:
            raise NumericalError(f"weights of levels: found {self.weights}; expected integers, cells above 0")

    def _width(self, level: int) -> int:
        return int(self.branching ** (len(self.weights) - 1 - level))

    def _counts(self, level: int) -> tuple[int, int]:
        """Return how many intervals each side has on a level."""
        width = self._width(level)
        return -(-self.sizes[0] // width), -(-self.sizes[1] // width)

    def _spread(self, level: int, values: Array) -> Array:
        """Repeat the value of each rectangle of a level for each of its cells."""
        first, second = (np.arange(size) // self._width(level) for size in self.sizes)
        return np.asarray(values[first][:, second])

    @property
    def columns(self) -> int:
        return self.sizes[0] * self.sizes[1]

    @property
    def rows(self) -> int:
        return sum(math.prod(self._counts(level)) for level, weight in enumerate(self.weights) if weight)

    @property
    def max_entry(self) -> int:
        return max(self.weights)

    @property
    def max_row_sum(self) -> int:
        return max(
            weight * math.prod(min(self._width(level), size) for size in self.sizes)
            for level, weight in enumerate(self.weights)
        )

    def column_power_sum(self, power: int) -> int:
        return int(sum(weight**power for weight in self.weights))

    def _levels(self, tensor: Array) -> Iterator[tuple[int, Array]]:
        """Yield the levels and the sums over their rectangles, from the cells to the whole grid."""
        for level in range(len(self.weights) - 1, -1, -1):
            yield level, tensor
            for axis in (0, 1):
                starts = np.arange(0, tensor.shape[axis], self.branching)
                tensor = np.add.reduceat(tensor, starts, axis=axis)

    def multiply(self, array: Array) -> Array:
        sums = [
            self.weights[level] * sums.reshape(-1, array.shape[1])
            for level, sums in self._levels(array.reshape(*self.sizes, -1))
            if self.weights[level]
        ]
        return np.concatenate(sums[::-1])

    def _transposed(self, array: Array) -> Array:
        total = np.zeros((*self.sizes, array.shape[1]))
        first = 0
        for level, weight in enumerate(self.weights):
            if weight:
                counts = self._counts(level)
                own = array[first : first + math.prod(counts)].reshape(*counts, -1)
                first += math.prod(counts)
                total += weight * self._spread(level, own)
        return total.reshape(self.columns, -1)

    @cached_property
    def structure(self) -> GridCovariance:
        """The covariance of the least squares at unit noise.

        From the cells up, a node v with noise variance t and the estimate of its sum from below of variance s
        takes h h' / (t + s) off the covariance, h the covariances of its cells with their sum. Cells of
        nodes that no end cuts are alike, so that all of those of a level are one product.
        """
        field = np.full(self.sizes, 1.0 / self.weights[-1] ** 2)
        terms = [(float(field[0, 0]), np.eye(self.sizes[0]), np.eye(self.sizes[1]))]
        corners: list[tuple[float, Array]] = []
        for level in range(len(self.weights) - 2, -1, -1):
            if not self.weights[level]:
                continue
            width = self._width(level)
            starts = [np.arange(0, size, width) for size in self.sizes]
            sums = np.add.reduceat(np.add.reduceat(field, starts[0], axis=0), starts[1], axis=1)
            share = 1.0 / (1.0 / self.weights[level] ** 2 + sums)
            whole = [size // width * width for size in self.sizes]
            blocks = [_blocks(size, width) for size in self.sizes]
            if whole[0] and whole[1]:
                terms.append((-float(share[0, 0] * field[0, 0] ** 2), blocks[0], blocks[1]))
            if whole[0] and whole[1] < self.sizes[1]:
                terms.append((-float(share[0, -1]), blocks[0], _square(field[0], whole[1])))
            if whole[1] and whole[0] < self.sizes[0]:
                terms.append((-float(share[-1, 0]), _square(field[:, 0], whole[0]), blocks[1]))
            if whole[0] < self.sizes[0] and whole[1] < self.sizes[1]:
                corner = field.copy()
                corner[: whole[0]] = 0.0
                corner[:, : whole[1]] = 0.0
                corners.append((float(share[-1, -1]), corner))
            field = field * self._spread(level, 1.0 - sums * share)
        return GridCovariance(tuple(terms), tuple(corners))

    def covariance_times(self, array: Array) -> Array:
        return self.structure.times(array)

    def solve(self, answers: Array) -> Array:
        return self.structure.times(self._transposed(answers))

    def coefficients(self, queries: Array) -> Array:
        return self.multiply(self.structure.times(queries))

    def covariance(self) -> Array:
        return self.structure.times(self._cells("its covariance"))

    def variances(self, asked: Sequence[AxisQueries]) -> Array:
        return self.structure.quadratic(*asked)

    def written(self) -> Array:
        return self.multiply(self._cells("its entries"))

    def _cells(self, what: str) -> Array:
        if self.columns > MAX_WRITTEN_CELLS:
            told = f"a tree over a grid of {self.columns:,} cells: {what}"
            raise TooLargeError(f"{told} are not written out past {MAX_WRITTEN_CELLS:,}")
        return np.eye(self.columns)

    def digest(self) -> str:
        return f"grid tree {self.sizes} {self.branching} {self.weights}"


def _blocks(size: int, width: int) -> Array:
    """Return ones within every whole interval of a side."""
    place = np.arange(size) // width
    whole = place < size // width
    return np.asarray((place[:, None] == place) & whole[:, None] & whole, dtype=np.float64)


def _square(field: Array, first: int) -> Array:
    end = np.where(np.arange(len(field)) < first, 0.0, field)
    return np.outer(end, end)
