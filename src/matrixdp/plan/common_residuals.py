"""What parts estimate of the residuals that their marginals have in common."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import along_axes, contrasts, kronecker, row_space
from matrixdp.queries.predicates import Predicates

__all__ = ["PartView", "common_subsets", "residual_bases", "sees_total"]

Array = NDArray[np.float64]
Names = tuple[str, ...]

#: Singular values below this, of vectors of length 1, are rounding errors.
_DROPPED = 1e-9
#: Numbers in one array of vectors that queries of one attribute give.
_CHUNK = 4_000_000


def common_subsets(marginals: Sequence[Names]) -> list[Names]:
    """Return the subsets of attributes that at least two marginals hold, small ones first.

    Examples
    --------
    >>> common_subsets([("a", "b"), ("b", "c"), ("c",)])
    [(), ('b',), ('c',)]
    """
    found: set[Names] = set()
    for place, one in enumerate(marginals):
        for other in marginals[:place]:
            both = tuple(name for name in one if name in other)
            if both not in found:
                found.update(names for count in range(len(both) + 1) for names in combinations(both, count))
    return sorted(found, key=lambda names: (len(names), names))


def sees_total(matrix: MeasuredMatrix) -> bool:
    """Return whether a measured matrix determines the sum over its cells."""
    if _lacks(matrix):
        return float((_row_space(matrix).sum(axis=1) ** 2).sum()) > matrix.columns * (1.0 - _DROPPED)
    return True


def residual_bases(parts: Sequence[Mapping[str, MeasuredMatrix]], names: Iterable[str]) -> dict[str, Array]:
    """Return for attributes an orthonormal basis, in rows, of what parts measure of it beside the sum."""
    found = {}
    for name in names:
        own = [matrices[name] for matrices in parts if name in matrices]
        stacked = np.vstack([_residuals(matrix) for matrix in own]) if all(map(_lacks, own)) else None
        found[name] = contrasts(own[0].columns).T if stacked is None else _span(stacked)
    return found


def _lacks(matrix: MeasuredMatrix) -> bool:
    return matrix.rank < matrix.columns


def _span(rows: Array) -> Array:
    return row_space(rows, math.sqrt(_DROPPED))


def _row_space(matrix: MeasuredMatrix) -> Array:
    return _span(np.asarray(matrix.solve(matrix.written())))


def _residuals(matrix: MeasuredMatrix) -> Array:
    """Return an orthonormal basis of what a matrix that determines the sum measures beside it."""
    if not _lacks(matrix):
        return contrasts(matrix.columns).T
    rows = _row_space(matrix)
    return _span(rows - rows.mean(axis=1, keepdims=True))


class PartView:
    """A part's own estimates of the residuals that it has in common with others.

    Parameters
    ----------
    matrices : mapping of str to MeasuredMatrix
        What the part measures on each of its attributes.
    bases : mapping of str to ndarray
        For each attribute that parts share, a basis of its residuals, in rows.
    places : mapping of tuple of str to ndarray
        The common unknowns of each subset of attributes.
    """

    def __init__(
        self,
        matrices: Mapping[str, MeasuredMatrix],
        bases: Mapping[str, Array],
        places: Mapping[Names, NDArray[np.intp]],
    ) -> None:
        self._subsets = [names for names in places if set(names) <= set(matrices)]
        self._names = tuple(matrices)
        #: For each attribute: the sum, then the residuals that the part determines.
        self._queries: list[Array] = []
        #: The same times the covariance of the part's estimates at noise 1.
        self._spread: list[Array] = []
        shown: dict[str, Array] = {}
        for name, matrix in matrices.items():
            rows = np.ones((1, matrix.columns))
            if name in bases:
                own = _residuals(matrix) if _lacks(matrix) else bases[name]
                shown[name] = own @ bases[name].T
                rows = np.vstack([rows, own])
            self._queries.append(rows)
            self._spread.append(matrix.covariance_times(rows.T).T)
        self.places = np.concatenate([places[names] for names in self._subsets])
        blocks = [kronecker([shown[name] for name in names]) for names in self._subsets]
        self._lacks = any(_lacks(matrix) for name, matrix in matrices.items() if name in bases)
        #: What the part determines in terms of the common unknowns.
        self._shown = scipy.linalg.block_diag(*blocks) if self._lacks else None
        self.covariance = self.assembled(
            [own @ rows.T for own, rows in zip(self._spread, self._queries, strict=True)]
        )

    @cached_property
    def half(self) -> Array:
        """L with L' L = C^-1, C the covariance at noise 1 of what the part says of the unknowns."""
        try:
            lower = scipy.linalg.cholesky(self.covariance, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise NumericalError("measured matrices too close to singular for least squares") from None
        return np.asarray(scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True))

    @cached_property
    def loads(self) -> Array:
        """C^-1 E, shape (estimates, common unknowns)."""
        inverse = self.half.T @ self.half
        return np.asarray(inverse if self._shown is None else inverse @ self._shown)

    @cached_property
    def information(self) -> Array:
        """E' C^-1 E: what the part says of the common unknowns at noise 1."""
        return np.asarray(self.loads if self._shown is None else self._shown.T @ self.loads)

    def expected(self, common: Array) -> Array:
        """Return what the part's estimates should be, shape (tables, unknowns that it sees) in."""
        return common if self._shown is None else np.asarray(common @ self._shown.T)

    def _chosen(self, names: Names, matrices: Sequence[Array]) -> list[Array]:
        """Return the rows of the attributes' matrices that belong to a subset."""
        return [
            matrix[1:] if name in names else matrix[:1]
            for name, matrix in zip(self._names, matrices, strict=True)
        ]

    def assembled(self, squares: Sequence[Array]) -> Array:
        """Return the Kronecker products of square matrices on attributes, between all subsets."""
        return np.block(
            [
                [
                    kronecker(
                        [
                            square[slice(1, None) if name in rows else slice(0, 1)][
                                :, slice(1, None) if name in columns else slice(0, 1)
                            ]
                            for name, square in zip(self._names, squares, strict=True)
                        ]
                    )
                    for columns in self._subsets
                ]
                for rows in self._subsets
            ]
        )

    def means(self, tables: Array) -> Array:
        """Return the common residuals of tables, shape (tables, cells) in, (tables, estimates) out."""
        return self._applied(tables, self._queries)

    def mean_rows(self, coefficients: Array) -> Array:
        """Return combinations of the common residuals as queries on the part's cells."""
        return self._back(coefficients, self._queries)

    def moved(self, differences: Array) -> Array:
        """Return how tables move when their common residuals move by differences, as for `means`."""
        return self._back(differences @ self.half.T @ self.half, self._spread)

    def _back(self, coefficients: Array, matrices: Sequence[Array]) -> Array:
        total = np.zeros((len(coefficients), math.prod(rows.shape[1] for rows in matrices)))
        first = 0
        for names in self._subsets:
            chosen = self._chosen(names, matrices)
            shape = [len(rows) for rows in chosen]
            own = coefficients[:, first : first + math.prod(shape)].reshape(len(coefficients), *shape)
            total += along_axes(own, [rows.T for rows in chosen], 1).reshape(total.shape)
            first += math.prod(shape)
        return total

    def row_covariances(self, rows: Array) -> Array:
        """Return the covariances of explicit queries with the estimates, at noise 1."""
        return self._applied(rows, self._spread)

    def _applied(self, rows: Array, matrices: Sequence[Array]) -> Array:
        tensor = rows.reshape(len(rows), *(own.shape[1] for own in matrices))
        found = [along_axes(tensor, self._chosen(names, matrices), 1) for names in self._subsets]
        return np.concatenate([own.reshape(len(rows), -1) for own in found], axis=1)

    def covariances(self, sets: Sequence[Predicates]) -> list[Array]:
        """Return for each attribute the covariances of its predicates with its estimates."""
        return [own.apply(spread.T) for own, spread in zip(sets, self._spread, strict=True)]

    def quadratic(self, matrix: Array, axes: Sequence[Array]) -> Array:
        """Return g' M g for the covariances g of a product of predicates with the estimates, M symmetric.

        Shape (estimates, estimates) and what `covariances` returns in, (*queries) out.
        """
        total = np.zeros([len(own) for own in axes])
        ends = np.cumsum([0, *(math.prod(self._counts(names)) for names in self._subsets)])
        for i, rows in enumerate(self._subsets):
            for j, columns in enumerate(self._subsets[: i + 1]):
                block = matrix[ends[i] : ends[i + 1], ends[j] : ends[j + 1]]
                if not block.size:  # a part without some contrasts has no estimates of them
                    continue
                block = block.reshape((*self._counts(rows), *self._counts(columns)))
                total += (1.0 if i == j else 2.0) * self._paired(block, rows, columns, axes)
        return total

    def _counts(self, names: Names) -> list[int]:
        return [len(own) for own in self._chosen(names, self._queries)]

    def _paired(self, block: Array, rows: Names, columns: Names, axes: Sequence[Array]) -> Array:
        """Return the forms of a block of the matrix: one axis of its rows and of its columns at a time."""
        pairs = [
            [rest.T for rest in self._chosen(names, [own.T for own in axes])] for names in (rows, columns)
        ]
        # sums in both come last: until then nothing is repeated along them
        sums = [left.shape[1] == right.shape[1] == 1 for left, right in zip(*pairs, strict=True)]
        for axis in reversed(range(len(axes))):
            # from (rows, columns, axes done), the last of rows and columns, to the same with one more done
            left, right = (np.ones((1, 1)) if sums[axis] else pair[axis] for pair in pairs)
            moved = np.moveaxis(block, (axis, 2 * axis + 1), (0, 1))
            flat = np.ascontiguousarray(moved).reshape(left.shape[1], -1)
            rest = moved.shape[2:]
            found = np.empty((len(left), math.prod(rest)))
            step = max(1, _CHUNK // flat.shape[1])
            for first in range(0, len(left), step):
                part = slice(first, first + step)
                half = (left[part] @ flat).reshape(-1, right.shape[1], found.shape[1])
                found[part] = np.matmul(right[part, None], half)[:, 0]
            block = np.moveaxis(found.reshape(len(left), *rest), 0, 2 * axis)
        for axis, (left, right) in enumerate(zip(*pairs, strict=True)):
            if sums[axis]:
                block = block * (left * right).reshape([-1 if i == axis else 1 for i in range(len(axes))])
        return block
