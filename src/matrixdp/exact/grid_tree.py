"""Trees of rectangles over a grid of two attributes, without their entries: millions of cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact.matrices import MeasuredMatrix

__all__ = ["GridCovariance", "GridTree"]

Array = NDArray[np.float64]

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
        rows, columns = self.terms[0][1].shape[0], self.terms[0][2].shape[0]
        tensor = array.reshape(rows, columns, -1)
        total = np.zeros(tensor.shape)
        for factor, first, second in self.terms:
            half = np.tensordot(first, tensor, axes=(1, 0))
            total += factor * np.moveaxis(np.tensordot(second, half, axes=(1, 1)), 0, 1)
        for factor, field in self.corners:
            inner = np.tensordot(field, tensor, axes=([0, 1], [0, 1]))
            total -= factor * field[:, :, None] * inner
        return total.reshape(array.shape)

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

    sizes: tuple[int, int]
    branching: int
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        height = len(self.weights) - 1
        if min(self.sizes) < 1 or self.branching < 2 or not 0 <= height <= _MOST_LEVELS:
            raise NumericalError(
                f"a tree over {self.sizes} of branching {self.branching} and {height} levels"
            )
        if max(self.sizes) > MAX_WRITTEN_CELLS:
            raise TooLargeError(
                f"a tree over {self.sizes[0]} x {self.sizes[1]} cells; the limit is {MAX_WRITTEN_CELLS:,} "
                "along each side"
            )
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
        """Return what every rectangle of a level has for each of its cells."""
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
            if level < len(self.weights) - 1:
                for axis in (0, 1):
                    tensor = np.add.reduceat(
                        tensor, np.arange(0, tensor.shape[axis], self.branching), axis=axis
                    )
            yield level, tensor

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
                end = _square(field[0], whole[1])
                terms.append((-float(share[0, -1]), blocks[0], end))
            if whole[1] and whole[0] < self.sizes[0]:
                end = _square(field[:, 0], whole[0])
                terms.append((-float(share[-1, 0]), end, blocks[1]))
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

    def written(self) -> Array:
        return self.multiply(self._cells("its entries"))

    def magnitudes(self) -> NDArray[np.int64]:
        return self.written().astype(np.int64)

    def _cells(self, what: str) -> Array:
        if self.columns > MAX_WRITTEN_CELLS:
            raise TooLargeError(
                f"a tree over a grid of {self.columns:,} cells: {what} are not written out past "
                f"{MAX_WRITTEN_CELLS:,}"
            )
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
