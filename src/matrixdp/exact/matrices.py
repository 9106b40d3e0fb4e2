"""Integer matrices that a strategy measures, with exact sensitivities; here those that need no entries."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import InitVar, dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact.kronecker import ExactMatrix, Transposed
from matrixdp.exact.linear import Array, along_axes, complement, outer
from matrixdp.exact.resources import blas_threads

MOST_OVERLAPS = 2**30
"""The most multiplications that all overlaps of the columns of a matrix may take."""
#: Numbers that are formed at a time for queries on all values.
_BLOCK = 1 << 24


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
    alike = (signs == signs[:, [j]] for j in range(entries.shape[1]))
    rows = [(np.minimum(size, size[:, [j]]) * same).sum(axis=0) for j, same in enumerate(alike)]
    return np.array(rows, dtype=entries.dtype)


Entries = tuple[NDArray[np.intp], NDArray[np.intp], Array]
"""Of queries with few entries other than 0: the query, the value and the entry of each."""


class AxisQueries(Protocol):
    """Queries on one attribute of a block, as a matrix sees them."""

    @property
    def size(self) -> int:
        """The number of values."""

    @property
    def lengths(self) -> Array:
        """The scale of the squared lengths of queries, shape (queries,)."""

    def entries(self) -> Entries | None:
        """Return all entries other than 0 where these are few by their kind; else None."""

    def apply(self, array: Array) -> Array:
        """Return the queries times an array of shape (size, k)."""

    def squares(self) -> Array:
        """Return the squared length of each query."""

    def weighted_squares(self, weights: Array) -> Array:
        """Return the sum of squared entries of each query, those of each value times a weight."""

    def quadratic(self, form: Array) -> Array:
        """Return q form q' for each query q."""


def product_quadratic(form: Array, asked: Sequence[AxisQueries]) -> Array:
    """Return (q_1 x q_2 x ...) C (q_1 x q_2 x ...)' for every combination of queries, shape (counts)."""
    first, *others = asked
    if not others:
        return first.quadratic(form)
    tensor = form.reshape(first.size, len(form) // first.size, -1)
    found = []
    for row in first.apply(np.eye(first.size)):
        half = np.tensordot(row, tensor, axes=(0, 0)).reshape(tensor.shape[1], first.size, -1)
        found.append(product_quadratic(np.tensordot(half, row, axes=(1, 0)), others))
    return np.array(found)


class MeasuredMatrix(ABC):
    """An integer matrix, measured along one or several attributes of a marginal.

    A kind has the abstract methods; it overrides others where its structure gives them with less work.

    Attributes
    ----------
    kind : str
        The name of the kind in archives; empty for one that cannot be saved.
    residual : bool
        Whether it measures residuals alone: nothing of the sum over its cells, but all that a query asks
        whose mean is removed.
    """

    kind: ClassVar[str] = ""
    residual: ClassVar[bool] = False

    @property
    def walk(self) -> tuple[int, ...] | None:
        """The widths of the walks whose joint noise its rows have; None where their noise is independent."""
        return None

    @property
    def parents(self) -> tuple[int, ...]:
        """The row that each adds up to, a later one, or the number of rows at an end; empty for one path."""
        return ()

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
    def divisor(self) -> int:
        """A number that divides every entry; 1 always does."""
        return 1

    @property
    def squared_sensitivity(self) -> int:
        """The largest squared norm of a column."""
        return self.column_power_sum(2)

    @property
    def sensitivity(self) -> int:
        """The largest sum of absolute entries over a column: the L1 sensitivity."""
        return self.column_power_sum(1)

    @property
    def rank(self) -> int:
        """The number of linearly independent rows."""
        return self.columns

    @property
    def unsupported(self) -> Array | None:
        """Orthonormal rows, shape (k, columns), spanning what is not measured or too weakly, or None."""
        return self.outside

    @property
    def outside(self) -> Array | None:
        """The `unsupported` rows where some of these directions are measured, but too weakly; else None."""
        return None

    @property
    def support_rank(self) -> int:
        """The number of independent queries that may be asked."""
        return self.rank - (0 if self.outside is None else len(self.outside))

    @cached_property
    def measures_total(self) -> bool:
        """Whether it determines the sum over its cells."""
        if self.residual or self.unsupported is None:
            return not self.residual
        outside = self.unsupported.sum(axis=1)
        return float(outside @ outside) <= _OUTSIDE * self.columns

    @property
    def lower_triangular(self) -> bool:
        """Whether it is square, row k has no entry after column k, and one in it.

        What follows from the first rows does then not depend on the others, to the last bit.
        """
        return False

    @abstractmethod
    def multiply(self, array: Array) -> Array:
        """Return the matrix times an array of shape (columns, k)."""

    @abstractmethod
    def solve(self, answers: Array) -> Array:
        """Return the pseudo-inverse times ``answers``: shape (rows, k) in, (columns, k) out."""

    def covariance(self) -> Array:
        """Return B^+ B^+', shape (columns, columns): the covariance of ``solve`` at unit noise."""
        if self.symmetric_covariance is not None:
            return self.symmetric_covariance[0] * np.eye(self.columns) + self.symmetric_covariance[1]
        inverse = self.solve(np.eye(self.rows))
        return np.asarray(inverse @ inverse.T)

    def written(self) -> Array:
        """Return the matrix written out, shape (rows, columns)."""
        return self.multiply(np.eye(self.columns))

    def uncorrelated(self) -> Array:
        """Return the rows, shape (rows, columns), combined such that their noise is uncorrelated."""
        return self.written()

    def gram(self) -> Array:
        """Return B'B for `uncorrelated` rows B, shape (columns, columns)."""
        if self.symmetric_gram is not None:
            return self.symmetric_gram[0] * np.eye(self.columns) + self.symmetric_gram[1]
        rows = self.uncorrelated()
        return np.asarray(rows.T @ rows)

    @property
    def symmetric_gram(self) -> tuple[float, float] | None:
        """(a, b) where B'B is known to be a I + b 11'."""
        return None

    @property
    def symmetric_covariance(self) -> tuple[float, float] | None:
        """(a, b) where the covariance is known to be a I + b 11', so that b is all that values share."""
        return None

    def covariance_times(self, array: Array) -> Array:
        """Return the covariance of ``solve`` at unit noise times an array of shape (columns, k)."""
        if self.symmetric_covariance is None:
            return np.asarray(self.covariance() @ array)
        own, shared = self.symmetric_covariance
        return np.asarray(own * array + shared * array.sum(axis=0, keepdims=True))

    def variances(self, asked: Sequence[AxisQueries]) -> Array:
        """Return q (B'B)^+ q' for the products of queries on each attribute, shape (counts)."""
        if self.symmetric_covariance is None:
            return product_quadratic(self.covariance(), asked)
        own, shared = self.symmetric_covariance
        sums = outer(one.apply(np.ones((one.size, 1)))[:, 0] for one in asked)
        return np.asarray(own * outer(one.squares() for one in asked) + shared * sums**2)

    def covariances(self, left: AxisQueries, right: AxisQueries) -> Array:
        """Return q C r' for queries q and as many r on the one attribute, some of its values at a time."""
        size, count = self.columns, len(left.lengths)
        width = max(1, _BLOCK // max(size, count))
        total = np.zeros(count)
        for first in range(0, size, width):
            cells = np.eye(size, min(width, size - first), -first)
            total += (left.apply(cells) * right.apply(self.covariance_times(cells))).sum(axis=1)
        return total

    def lost(self, queries: Array) -> Array:
        """Return the squared lengths of what may not be asked of queries, shape (columns, k) in, (k,) out."""
        outside = self.unsupported
        return np.zeros(queries.shape[1]) if outside is None else ((outside @ queries) ** 2).sum(axis=0)

    def lost_share(self, asked: Sequence[AxisQueries]) -> float:
        """Return a bound on that of products of queries on each attribute, relative to their lengths."""
        if self.unsupported is None:
            return 0.0
        tensor = self.unsupported.reshape(-1, *(one.size for one in asked))
        tensor = along_axes(tensor, (one.apply for one in asked), 1)
        return float(((tensor**2).sum(axis=0) / outer(one.lengths for one in asked)).max())

    def coefficients(self, queries: Array) -> Array:
        """Return the coefficients of each measured row in queries: the transposed pseudo-inverse times them.

        Shape (columns, k) in, (rows, k) out.
        """
        return np.asarray(self.solve(np.eye(self.rows)).T @ queries)

    def magnitudes(self) -> NDArray[np.int64]:
        """Return the absolute entries, one row each; one of several equal columns may stand for them."""
        return np.abs(self.written()).astype(np.int64)

    def column_map(self, power: int) -> ExactMatrix:
        """Return the transpose of the matrix of |entry|^power, which sums numbers of rows over columns."""
        return Transposed(self.magnitudes() ** power)

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

    def coefficients(self, queries: Array) -> Array:
        return self.solve(queries)  # a symmetric matrix has a symmetric pseudo-inverse

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

    kind = "identity"
    max_entry = max_row_sum = 1
    lower_triangular = True
    symmetric_gram = symmetric_covariance = (1.0, 0.0)

    def column_power_sum(self, power: int) -> int:
        return 1

    def _overlap(self, power: int) -> int:
        return 0

    def multiply(self, array: Array) -> Array:
        return array

    def solve(self, answers: Array) -> Array:
        return answers

    def column_map(self, power: int) -> ExactMatrix:
        return self  # never written out: a file may name one of any size

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

    kind = "centered"
    residual = True

    @property
    def rank(self) -> int:
        return self.size - 1

    @property
    def symmetric_gram(self) -> tuple[float, float]:
        return float(self.size**2), -float(self.size)

    @property
    def symmetric_covariance(self) -> tuple[float, float]:
        return 1.0 / self.size**2, -1.0 / self.size**3

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

    def digest(self) -> str:
        return f"centered {self.size}"


@dataclass(frozen=True)
class RangeMatrix(_Square):
    """n I - 11' over the n - 1 values and a first one that nothing is in: each value less the mean of all.

    For the noise of one radius that costs a person no more than her records in one value
    (`matrixdp.noise.Radius`); values follow from it, as that first one is 0.

    Examples
    --------
    >>> matrix = RangeMatrix(2)
    >>> matrix.written().tolist(), matrix.squared_sensitivity
    ([[-1.0, -1.0], [2.0, -1.0], [-1.0, 2.0]], 6)
    """

    kind = "range"

    @property
    def _whole(self) -> CenteredMatrix:
        return CenteredMatrix(self.size + 1)

    @property
    def rows(self) -> int:
        return self.size + 1

    @property
    def max_entry(self) -> int:
        return self._whole.max_entry

    @property
    def max_row_sum(self) -> int:
        return self._whole.max_row_sum

    @property
    def symmetric_gram(self) -> tuple[float, float]:
        return float(self.rows**2), -float(self.rows)

    @property
    def symmetric_covariance(self) -> tuple[float, float]:
        return 1.0 / self.rows**2, 1.0 / self.rows**2

    def column_power_sum(self, power: int) -> int:
        return self._whole.column_power_sum(power)

    def _overlap(self, power: int) -> int:
        return self._whole._overlap(power)

    def multiply(self, array: Array) -> Array:
        return self._whole.multiply(np.concatenate([np.zeros_like(array[:1]), array]))

    def solve(self, answers: Array) -> Array:
        return np.asarray((answers[1:] - answers[:1]) / self.rows)

    def coefficients(self, queries: Array) -> Array:
        return np.asarray(np.concatenate([-queries.sum(axis=0, keepdims=True), queries]) / self.rows)

    def digest(self) -> str:
        return f"range {self.size}"


# Explicit integer matrices that a strategy measures: of proved full column rank, or of lower rank.

#: Of the total of an attribute, the share of its squared norm that may be measured too weakly.
_OUTSIDE = 1e-12
#: Singular values of a deficient matrix, relative to the largest: below the first they are rounding errors,
#: between the two its rank is not clear and it is refused.
_DROPPED, _KEPT = 1e-11, 1e-8
#: Squared column norms and column sums of larger matrices would not be exact in 64 bits.
_MOST_SQUARED = 2**62
#: Sums of products up to this are exact in floating point.
_MOST_EXACT = 2**53
#: The squared norm of rows over the squared weight of the identity below them, up to which errors of what the
#: rows say keep seven digits by Woodbury's identity.
_STRONGEST = 1e9


class ExplicitMatrix(MeasuredMatrix):
    """What all matrices with explicit entries have in common."""

    entries: NDArray[np.int64]

    def _freeze(self) -> None:
        """Refuse entries whose sensitivities 64 bits do not hold: they would wrap to small ones."""
        if self.entries.dtype != np.int64:
            raise NumericalError(f"a measured matrix holds {self.entries.dtype}; expected int64")
        largest = max(int(self.entries.max()), -int(self.entries.min()))
        if self.rows * largest * largest >= _MOST_SQUARED:
            told = f"a measured matrix of {self.rows} rows has an entry of {largest}"
            raise NumericalError(f"{told}, too large for exact sensitivities")
        self.entries.setflags(write=False)

    @cached_property
    def _float(self) -> Array:
        return np.asarray(self.entries, dtype=np.float64)

    @property
    def columns(self) -> int:
        return int(self.entries.shape[1])

    @property
    def rows(self) -> int:
        return int(self.entries.shape[0])

    @cached_property
    def divisor(self) -> int:
        return int(np.gcd.reduce(self.entries, axis=None))

    @cached_property
    def max_entry(self) -> int:
        return int(np.abs(self.entries).max())

    @cached_property
    def max_row_sum(self) -> int:
        return int(np.abs(self.entries).sum(axis=1).max())

    @cached_property
    def _column_power_sums(self) -> tuple[int, int]:
        absolute = np.abs(self.entries)
        return int(absolute.sum(axis=0).max()), int((absolute * absolute).sum(axis=0).max())

    def column_power_sum(self, power: int) -> int:
        return self._column_power_sums[power - 1]

    def multiply(self, array: Array) -> Array:
        return np.asarray(self._float @ array)

    def written(self) -> Array:
        return self.entries.astype(np.float64)

    @cached_property
    def symmetric_gram(self) -> tuple[float, float] | None:
        """(a, b) where B'B is exactly a I + b 11', else None."""
        if self.rows * self.max_entry**2 > _MOST_EXACT:
            return None

        column = self._float[:, 0] @ self._float
        if (column[1:] != column[-1]).any():  # one column rules out most matrices; the products are exact
            return None
        gram = self._float.T @ self._float
        shared = float(gram[0, 1]) if self.columns > 1 else 0.0
        own = float(gram[0, 0]) - shared
        return (own, shared) if np.array_equal(gram, own * np.eye(self.columns) + shared) else None

    @cached_property
    def inverse(self) -> Array:
        """The pseudo-inverse, shape (n, m)."""
        with blas_threads(self.columns):
            return np.asarray(self.solve(np.eye(self.rows)))

    @cached_property
    def _covariance(self) -> Array:
        with blas_threads(self.columns):
            return np.asarray(self.inverse @ self.inverse.T)

    def covariance(self) -> Array:
        return self._covariance

    def magnitudes(self) -> NDArray[np.int64]:
        return np.abs(self.entries)

    @cached_property
    def _digest(self) -> str:
        content = hashlib.sha256(np.ascontiguousarray(self.entries).tobytes()).hexdigest()
        return f"{self.kind} {self.rows} x {self.columns} {content}"

    def digest(self) -> str:
        return self._digest


def _measures_every_cell(entries: NDArray[np.int64]) -> bool:
    """Return whether for every cell there is a row with an entry there alone: the columns are independent."""
    alone = entries[np.count_nonzero(entries, axis=1) == 1]
    return bool(alone.any(axis=0).all())


def _check_pivots(triangle: NDArray[Any]) -> None:
    if not np.diagonal(triangle).all():
        raise NumericalError("a measured matrix is singular after rounding")


@dataclass(frozen=True, eq=False)
class IntegerMatrix(ExplicitMatrix):
    """An integer matrix of full column rank, with at least as many rows as columns.

    Parameters
    ----------
    entries : ndarray of int64, shape (m, n), m >= n
    outside : ndarray, shape (k, n), optional
        Orthonormal rows spanning directions that are measured only so weakly (for the sake of an exact
        row space) that queries with a part along them are refused.
    near : ndarray, shape (n, m), optional
        What may serve as an approximate left inverse; one is computed where it does not.

    Raises
    ------
    NumericalError
        If the rank cannot be *proved*: a row with one entry for every cell is the proof, or a triangle
        without a zero on its diagonal, or an approximate left inverse C with a norm of I - C B below 1
        (rounding errors included).

    Examples
    --------
    >>> matrix = IntegerMatrix(np.array([[1, 1], [0, 1], [2, 0]]))
    >>> matrix.squared_sensitivity, matrix.sensitivity
    (5, 3)
    """

    kind = "integer"

    entries: NDArray[np.int64]
    outside: Array | None = None
    near: InitVar[Array | None] = None

    @cached_property
    def _digest(self) -> str:
        weak = b"" if self.outside is None else np.ascontiguousarray(self.outside).tobytes()
        return super()._digest + (hashlib.sha256(weak).hexdigest() if weak else "")

    def __post_init__(self, near: Array | None) -> None:
        if self.entries.ndim != 2 or self.entries.shape[0] < self.entries.shape[1]:
            told = f"found {self.entries.shape}"
            raise NumericalError(f"a matrix of full column rank has no more columns than rows; {told}")
        self._freeze()
        if self.lower_triangular or _measures_every_cell(self.entries):
            return
        if not (near is not None and self._is_left_inverse(near)) and not self._is_left_inverse(self.inverse):
            raise NumericalError("a measured matrix could not be proved nonsingular after rounding")

    @cached_property
    def lower_triangular(self) -> bool:
        """Whether it is lower triangular, without a zero on its diagonal: a proof of its rank."""
        square = self.rows == self.columns
        return square and bool(np.diagonal(self.entries).all()) and not np.triu(self.entries, 1).any()

    def _is_left_inverse(self, near: Array) -> bool:
        """Return whether a matrix is so near to a left inverse that it proves that there is one."""
        with blas_threads(self.columns):
            residual = near @ self._float
        residual[np.diag_indices(self.columns)] -= 1.0
        # row sums in units of the rows of C: any units make a norm, and these one that is small
        units = np.linalg.norm(near, axis=1)
        units = np.maximum(units, 1e-9 * units.max())
        # those of |C| |B|, which bound the rounding errors of the product, need no product of matrices
        rounding = self.rows * np.finfo(float).eps * (np.abs(near) @ (np.abs(self._float) @ units))
        sums = np.abs(residual, out=residual) @ units + 2 * rounding
        return bool((sums < 0.5 * units).all())

    @cached_property
    def _few(self) -> tuple[Array, float, Array] | None:
        """L, w and Y = L^-1 R where the matrix is few rows R and below them w times the identity.

        L L' = w^2 + R R'. By Woodbury's identity nothing larger is factored. None, too, where the rows say
        so much more than the identity that the digits of their own errors would cancel.
        """
        above = self.rows - self.columns
        if not 0 < above <= self.columns // 2:
            return None
        weight = int(self.entries[above, 0])
        below = self.entries[above:]
        if weight == 0 or np.count_nonzero(below) != self.columns or (np.diagonal(below) != weight).any():
            return None
        rows = self._float[:above]
        inner = rows @ rows.T
        if float(np.trace(inner)) > _STRONGEST * float(weight) ** 2:
            return None
        inner[np.diag_indices(above)] += float(weight) ** 2
        lower = np.asarray(scipy.linalg.cholesky(inner, lower=True, check_finite=False))
        turned = scipy.linalg.solve_triangular(lower, rows, lower=True, check_finite=False)
        return lower, float(weight), np.asarray(turned)

    @cached_property
    def _covariance(self) -> Array:
        if self._few is None:
            return super()._covariance
        _, weight, turned = self._few
        with blas_threads(self.columns):
            found = turned.T @ turned
        found *= -1.0 / weight**2
        found[np.diag_indices(self.columns)] += 1.0 / weight**2
        return np.asarray(found)

    @cached_property
    def symmetric_covariance(self) -> tuple[float, float] | None:
        """(a, b); None also where sums are so much more precise that their digits would cancel."""
        if self.symmetric_gram is None or self.columns < 2:
            return None
        own, shared = self.symmetric_gram
        if self.columns * shared > _STRONGEST * own:
            return None
        return 1.0 / own, -shared / (own * (own + self.columns * shared))

    @cached_property
    def _triangular(self) -> tuple[Array, Array]:
        q, r = scipy.linalg.qr(self._float, mode="economic", check_finite=False)
        _check_pivots(r)
        return np.asarray(q, dtype=np.float64), np.asarray(r, dtype=np.float64)

    @cached_property
    def _factored(self) -> tuple[Array, NDArray[np.int32]]:
        # `lu_factor` would warn of a singular matrix, and warnings of all threads are silenced as one
        lu, pivots, _ = scipy.linalg.lapack.dgetrf(self._float)
        _check_pivots(lu)
        return lu, pivots

    def solve(self, answers: Array) -> Array:
        if self.lower_triangular:
            return np.asarray(
                scipy.linalg.solve_triangular(self._float, answers, lower=True, check_finite=False)
            )
        if self.rows == self.columns:
            return np.asarray(scipy.linalg.lu_solve(self._factored, answers, check_finite=False))
        if self._few is not None:
            lower, weight, turned = self._few
            given, weak = answers[: len(lower)], answers[len(lower) :]
            # what the rows above say, by their own factor: no digits cancel where they say most
            strong = turned.T @ scipy.linalg.solve_triangular(lower, given, lower=True, check_finite=False)
            return np.asarray(strong + (weak - turned.T @ (turned @ weak)) / weight)
        q, r = self._triangular
        return np.asarray(scipy.linalg.solve_triangular(r, q.T @ answers, check_finite=False))


@dataclass(frozen=True, eq=False)
class DeficientMatrix(ExplicitMatrix):
    """An integer matrix whose columns are linearly dependent: it determines only queries in its row space.

    Parameters
    ----------
    entries : ndarray of int64, shape (m, n)

    Raises
    ------
    NumericalError
        If it is zero, or its rank is not clear from its singular values.

    Examples
    --------
    >>> total = DeficientMatrix(np.array([[1, 1, 1]]))
    >>> total.solve(np.array([[6.0]])).ravel().round(9).tolist()
    [2.0, 2.0, 2.0]
    """

    kind = "deficient"

    entries: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.entries.ndim != 2 or not self.entries.any():
            raise NumericalError("a measured matrix must have an entry other than 0")
        self._freeze()
        values = self._decomposed[1]
        if ((values > _DROPPED * values[0]) & (values <= _KEPT * values[0])).any():
            raise NumericalError("the rank of a measured matrix is not clear from its singular values")

    @cached_property
    def _decomposed(self) -> tuple[Array, Array, Array]:
        found: tuple[Array, Array, Array] = scipy.linalg.svd(
            self._float, full_matrices=False, check_finite=False
        )
        return found

    @cached_property
    def rank(self) -> int:
        """The number of linearly independent rows."""
        values = self._decomposed[1]
        return int((values > _KEPT * values[0]).sum())

    @cached_property
    def unsupported(self) -> Array | None:
        return complement(self._decomposed[2][: self.rank].T)

    def lost(self, queries: Array) -> Array:
        right = self._decomposed[2][: self.rank]
        return np.asarray(((queries - right.T @ (right @ queries)) ** 2).sum(axis=0))

    def solve(self, answers: Array) -> Array:
        left, values, right = self._decomposed
        inside = (left.T[: self.rank] @ answers) / values[: self.rank, None]
        return np.asarray(right[: self.rank].T @ inside)
