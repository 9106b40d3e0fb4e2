"""The prefix sums of an ordered attribute, measured with the joint noise of soft-threshold walks.

One walk along all values, or one inside each block of them and one over the blocks; or walks up trees, of
which a path is the simplest. `matrixdp.noise.walks` has the noise, and docs/privacy.md the proof of what it
costs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, final

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact.linear import Array
from matrixdp.exact.matrices import IdentityMatrix, IntegerMatrix, MeasuredMatrix

#: Numbers, in any sequence of one axis.
Floats = Sequence[float] | Array
#: Widths are integers, in this many parts of the scale of the noise.
UNIT = 1024
#: Widths above this many scales help nobody: they grow with the cube root of the number of values.
_WIDEST = 1024 * UNIT


def step_variance(widths: Array) -> Array:
    """Return E q^2 of a step q = soft(p, c), all in units of the scale."""
    return np.asarray(2.0 / (1.0 + widths))


def step_covariance(widths: Array) -> Array:
    """Return E p q of an innovation p with its step."""
    return np.asarray((widths + 2.0) / (1.0 + widths))


def innovation_variance(widths: Array) -> Array:
    """Return E p^2 of an innovation, flat on [-c, c] and with exponential tails beyond."""
    return np.asarray((widths**3 / 3.0 + widths**2 + 2.0 * widths + 2.0) / (1.0 + widths))


def paths(rows: int, starts: Sequence[int]) -> tuple[int, ...]:
    """Return the parents of rows that form one path after another, each from one of these rows.

    Examples
    --------
    >>> paths(5, (0, 3))
    (1, 2, 5, 4, 5)
    """
    ends = {*starts, rows}
    return tuple(rows if place in ends else place for place in range(1, rows + 1))


@lru_cache(maxsize=64)
def _runs(rows: int, parents: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Return runs of rows, each the parent of that before: first, end, and the parent of the last."""
    if not parents:
        return [(0, rows, rows)]
    ends = [0, *(row + 1 for row, parent in enumerate(parents) if parent != row + 1 or parent == rows)]
    return [(start, end, parents[end - 1]) for start, end in pairwise(ends)]


def sums_below(array: NDArray[Any], parents: tuple[int, ...] = ()) -> NDArray[Any]:
    """Return, along the first axis, the sum of each row and of all rows below it in its tree.

    Parents are the rows that each adds up to: a later one, or the number of rows at a root. Without parents
    rows are one path.

    Examples
    --------
    >>> sums_below(np.array([5, 1, 2, 7]), (2, 2, 3, 4)).tolist(), sums_below(np.array([5, 1, 2])).tolist()
    ([5, 1, 8, 15], [5, 6, 8])
    """
    found = np.array(array)
    for start, end, parent in _runs(len(found), parents):
        found[start:end] = np.cumsum(found[start:end], axis=0)
        if parent < len(found):
            found[parent] += found[end - 1]
    return found


def sums_above(array: NDArray[Any], parents: tuple[int, ...] = ()) -> NDArray[Any]:
    """Return, along the first axis, the sum of each row and of all rows above it in its tree.

    Examples
    --------
    >>> sums_above(np.array([5, 1, 2, 7]), (2, 2, 3, 4)).tolist()
    [14, 10, 9, 7]
    """
    found = np.array(array)
    for start, end, parent in reversed(_runs(len(found), parents)):
        if parent < len(found):
            found[end - 1] += found[parent]
        found[start:end] = np.cumsum(found[start:end][::-1], axis=0)[::-1]
    return found


def noise_covariance(widths: Floats, parents: tuple[int, ...] = ()) -> Array:
    """Return the covariance of the noise of rows, for a scale at which Laplace noise has the variance 1.

    Parameters
    ----------
    widths : sequence of float
        Of each row, in parts of 1024 of the scale.
    parents : tuple of int
        See `sums_below`: rows of different trees are independent.

    Examples
    --------
    >>> noise_covariance((0, 0, 0), paths(3, (0, 2))).tolist()
    [[1.0, 1.0, 0.0], [1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    """
    known: dict[tuple[tuple[float, ...], tuple[int, ...]], Array] = {}
    rows, ends, last = len(widths), [0], 0
    for row, parent in enumerate(parents, 1):
        last = max(last, row if parent == rows else parent + 1)
        if last == row:  # nothing so far adds up to what comes
            ends.append(row)
    pieces = []
    for start, end in pairwise(ends if parents else (0, rows)):
        own = tuple(widths[start:end]), tuple(min(above, end) - start for above in parents[start:end])
        if own not in known:
            known[own] = _noise_covariance(np.array(own[0]) / UNIT, own[1])
        pieces.append(known[own])
    return np.asarray(scipy.linalg.block_diag(*pieces))


def _noise_covariance(widths: Array, parents: tuple[int, ...]) -> Array:
    size = len(widths)
    if len(_runs(size, parents)) > 1:
        below = sums_below(np.eye(size), parents) - np.eye(size)
        beside = below * step_covariance(widths)
        found = (below * step_variance(widths)) @ below.T + beside + beside.T
        return np.asarray((found + np.diag(innovation_variance(widths))) / 2.0)
    before = np.cumsum(step_variance(widths)) - step_variance(widths)
    at = np.minimum.outer(np.arange(size), np.arange(size))
    found = (before + step_covariance(widths))[at]
    found[np.diag_indices(size)] = before + innovation_variance(widths)
    return np.asarray(found / 2.0)


def steps_covariance(covariance: Array) -> Array:
    """Return the covariance of the differences of prefix sums, hence of values, from that of the sums."""
    steps = np.diff(covariance, axis=0, prepend=0.0)
    return np.asarray(np.diff(steps, axis=1, prepend=0.0))


def _check_widths(widths: tuple[int, ...]) -> None:
    if not widths or any(type(own) is not int or not 0 <= own <= _WIDEST for own in widths):
        raise NumericalError(f"a walk has a width for each value: an integer from 0 to {_WIDEST}")


def _uncorrelated(matrix: WalkMatrix | BlockWalkMatrix | TreeWalkMatrix) -> Array:
    root = np.linalg.cholesky(noise_covariance(matrix.walk, matrix.parents))
    return np.asarray(scipy.linalg.solve_triangular(root, matrix.written(), lower=True, check_finite=False))


@final
@dataclass(frozen=True)
class WalkMatrix(MeasuredMatrix):
    """The prefix sums of n values in their order, measured with a walk: its rows share their noise.

    One record costs 1, and a replacement 2, whatever the widths: by the theorem on walks, for no other noise.
    So the power sum for the power 1 is no sum of entries, and that for the power 2 is no cost.

    Parameters
    ----------
    widths : tuple of int
        Of each row, in parts of 1024 of the noise's scale, at least 0.

    Raises
    ------
    NumericalError
        If a width is none.

    Examples
    --------
    >>> walk = WalkMatrix((1024, 1024, 0))
    >>> walk.sensitivity, walk.overlaps(1).tolist()
    (1, [[1, 0], [0, 1]])
    >>> walk.multiply(np.array([[5.0], [1.0], [2.0]])).ravel().tolist()
    [5.0, 6.0, 8.0]
    >>> (2 * walk.noise_covariance).round(3).diagonal().tolist()  # of the rows, at scale 1
    [2.667, 3.667, 4.0]
    """

    kind = "walk"
    max_entry = 1

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_widths(self.widths)

    @property
    def walk(self) -> tuple[int, ...]:
        return self.widths

    @property
    def columns(self) -> int:
        return len(self.widths)

    @property
    def rows(self) -> int:
        return len(self.widths)

    @property
    def max_row_sum(self) -> int:
        return len(self.widths)

    @property
    def scaled_widths(self) -> Array:
        """The widths in units of the scale."""
        return np.array(self.widths) / UNIT

    def column_power_sum(self, power: int) -> int:
        """Return 1 for the power 1, by the theorem; else the largest sum over a column."""
        return 1 if power == 1 else len(self.widths)

    def overlaps(self, power: int) -> NDArray[np.int64]:
        """Return those of the identity: a replacement is a record that comes and another that goes."""
        own = self.column_power_sum(power)
        return np.array([[own, 0], [0, own]])[: self.columns, : self.columns]

    def magnitudes(self) -> NDArray[np.int64]:
        raise NumericalError("a walk: its cost is no sum over its rows")

    def multiply(self, array: Array) -> Array:
        return np.cumsum(array, axis=0)

    def solve(self, answers: Array) -> Array:
        return np.diff(answers, axis=0, prepend=0.0)

    def uncorrelated(self) -> Array:
        return _uncorrelated(self)

    @cached_property
    def noise_covariance(self) -> Array:
        """The covariance of the noise of the rows, for a scale at which Laplace noise has the variance 1."""
        return noise_covariance(self.widths)

    @cached_property
    def _covariance(self) -> Array:
        return steps_covariance(self.noise_covariance)

    def covariance(self) -> Array:
        return self._covariance

    def digest(self) -> str:
        return f"walk {self.widths}"


#: Weights of the two levels are below this: their products with counts stay exact.
_HEAVIEST = 2**20


@final
@dataclass(frozen=True)
class BlockWalkMatrix(MeasuredMatrix):
    """Prefix sums on two levels: inside every block of k values with a walk each, and of blocks with another.

    Rows are the prefix sums inside each block, block by block, times the first weight, then the prefix sums
    of the blocks' totals times the second. Values are estimated by least squares. A record counts in one
    block and in one total: it costs the sum of the weights, whatever the widths; a replacement twice that.

    Parameters
    ----------
    size : int
        The number of values, above k; the last block may have fewer than k.
    within : tuple of int
        The widths of the k rows of a block, in parts of 1024 of the noise's scale; the last has the first.
    between : tuple of int
        The widths of the rows of the blocks' totals.
    weights : tuple of (int, int)
        Of the rows inside blocks and of those of totals, without a common divisor.

    Raises
    ------
    NumericalError
        If widths or weights are none, or do not fit the values.

    Examples
    --------
    >>> walks = BlockWalkMatrix(5, (1024, 0), (1024, 512, 0), (3, 2))
    >>> walks.rows, walks.sensitivity, walks.overlaps(1).tolist()
    (8, 5, [[5, 0], [0, 5]])
    >>> walks.multiply(np.array([[5.0], [1.0], [2.0], [0.0], [4.0]])).ravel().tolist()
    [15.0, 18.0, 6.0, 6.0, 12.0, 12.0, 16.0, 24.0]
    """

    kind = "block-walk"

    size: int
    within: tuple[int, ...]
    between: tuple[int, ...]
    weights: tuple[int, int]

    def __post_init__(self) -> None:
        _check_widths(self.within)
        _check_widths(self.between)
        if type(self.size) is not int or not self.size > len(self.within):
            raise NumericalError(f"blocks of {len(self.within)} of {self.size} values: expected several")
        if -(-self.size // len(self.within)) != len(self.between):
            raise NumericalError(f"{self.size} values: not in {len(self.between)} blocks")
        whole = len(self.weights) == 2 and all(type(own) is int for own in self.weights)
        if not whole or not 0 < min(self.weights) <= max(self.weights) <= _HEAVIEST:
            raise NumericalError(f"weights of two levels: found {self.weights}; expected integers above 0")
        if math.gcd(*self.weights) > 1:
            raise NumericalError(f"weights of two levels: {self.weights} have a common divisor")

    @property
    def walk(self) -> tuple[int, ...]:
        return (self.within * len(self.between))[: self.size] + self.between

    @property
    def parents(self) -> tuple[int, ...]:
        return paths(self.rows, (*range(0, self.size, len(self.within)), self.size))

    @property
    def columns(self) -> int:
        return self.size

    @property
    def rows(self) -> int:
        return self.size + len(self.between)

    @property
    def max_entry(self) -> int:
        return max(self.weights)

    @property
    def max_row_sum(self) -> int:
        return max(self.weights[0] * len(self.within), self.weights[1] * self.size)

    def column_power_sum(self, power: int) -> int:
        """Return the sum of the weights for the power 1, by the theorem; else a bound on column sums."""
        own, other = self.weights
        if power == 1:
            return own + other
        return int(len(self.within) * own**power + len(self.between) * other**power)

    def overlaps(self, power: int) -> NDArray[np.int64]:
        """Return those of the identity: a replacement is a record that comes and another that goes."""
        own = self.column_power_sum(power)
        return np.array([[own, 0], [0, own]])

    def magnitudes(self) -> NDArray[np.int64]:
        raise NumericalError("a walk: its cost is no sum over its rows")

    def _by_blocks(self, array: Array) -> Array:
        """Return values by blocks, shape (columns, k) in and (blocks, values, k) out, filled up with 0."""
        blocks, length = len(self.between), len(self.within)
        filled = np.zeros((blocks * length, array.shape[1]))
        filled[: self.size] = array
        return filled.reshape(blocks, length, -1)

    def _flat(self, blocks: Array) -> Array:
        """Return the same by values."""
        return blocks.reshape(-1, blocks.shape[2])[: self.size]

    @cached_property
    def _last(self) -> NDArray[np.intp]:
        """The last row of each block."""
        return np.minimum(np.arange(1, len(self.between) + 1) * len(self.within), self.size) - 1

    @cached_property
    def levels(self) -> TwoLevels:
        """The least squares of both levels, at unit noise."""
        return TwoLevels.of(self.size, self.within, self.between, self.weights)

    def multiply(self, array: Array) -> Array:
        own, other = self.weights
        inside = np.cumsum(self._by_blocks(array), axis=1)
        return np.vstack([own * self._flat(inside), other * np.cumsum(inside[:, -1], axis=0)])

    def solve(self, answers: Array) -> Array:
        own, other = self.weights
        inside = answers[: self.size] / own
        values = self._flat(np.diff(self._by_blocks(inside), axis=1, prepend=0.0))
        totals = np.diff(answers[self.size :] / other, axis=0, prepend=0.0)
        moved = self.levels.shares @ (totals - inside[self._last])
        return np.asarray(values + self.levels.spread[:, None] * moved[self.levels.block])

    def uncorrelated(self) -> Array:
        return _uncorrelated(self)

    def coefficients(self, queries: Array) -> Array:
        own, other = self.weights
        inside = self._flat(-np.diff(self._by_blocks(queries), axis=1, append=0.0))
        moved = self.levels.shares.T @ self.levels.sums(queries)
        inside[self._last] -= moved
        return np.vstack([inside / own, -np.diff(moved, axis=0, append=0.0) / other])

    def covariance_times(self, array: Array) -> Array:
        levels = self.levels
        moved = levels.totals @ levels.sums(array)
        return levels.apart(array) + levels.spread[:, None] * moved[levels.block]

    @cached_property
    def _covariance(self) -> Array:
        return self.covariance_times(np.eye(self.size))

    def covariance(self) -> Array:
        return self._covariance

    def digest(self) -> str:
        return f"walks in blocks {self.size} {self.within} {self.between} {self.weights}"


@final
@dataclass(frozen=True)
class TwoLevels:
    """The least squares of walks inside blocks of values, and of one over the blocks' totals, at unit noise.

    With C the covariance of the values of a block by its own walk, s = 1'C1 that of its total and b = C1 / s,
    values are what the walk says, corrected by b times what the total is corrected by: their covariance is
    C - s bb' inside the block, and b H_qp b' between any two blocks, H the covariance of the totals.

    Attributes
    ----------
    block : ndarray of int
        The number of the block of each value.
    spread : ndarray, shape (n,)
        b, for each value.
    within, end : ndarray
        C - s bb' of a block, and of the last one.
    shares : ndarray, shape (blocks, blocks)
        What the upper walk says of totals counts with this in their estimates, and the lower ones with the
        identity less this.
    totals : ndarray, shape (blocks, blocks)
        H.
    """

    block: NDArray[np.intp]
    spread: Array
    within: Array
    end: Array
    shares: Array
    totals: Array

    @classmethod
    def of(cls, size: int, within: Floats, between: Floats, weights: Floats) -> TwoLevels:
        """Return the least squares for widths and weights as those of a `BlockWalkMatrix`."""
        block = np.arange(size) // len(within)
        upper = steps_covariance(noise_covariance(between)) / weights[1] ** 2
        length = size - int(block[-1]) * len(within)
        (own, spread, total), (end, last_spread, last_total) = (
            _block(within[:count], weights[0]) for count in (len(within), length)
        )
        whole = np.concatenate([np.tile(spread, len(between) - 1), last_spread])
        lower = np.append(np.full(len(between) - 1, total), last_total)
        shares = np.linalg.solve(np.diag(lower) + upper, np.diag(lower)).T
        totals = np.diag(lower) - shares * lower
        return cls(block, whole, own, end, shares, (totals + totals.T) / 2.0)

    def sums(self, array: Array) -> Array:
        """Return the sums over blocks of b times an array: shape (columns, k) to (blocks, k)."""
        starts = np.flatnonzero(np.diff(self.block, prepend=-1))
        return np.asarray(np.add.reduceat(self.spread[:, None] * array, starts, axis=0))

    def apart(self, array: Array) -> Array:
        """Return the covariance inside blocks times an array of shape (columns, k)."""
        first = len(array) - len(self.end)
        blocks = array[:first].reshape(-1, len(self.within), array.shape[1])
        return np.vstack([(self.within @ blocks).reshape(first, -1), self.end @ array[first:]])


def _block(widths: Floats, weight: float) -> tuple[Array, Array, float]:
    """Return C - s bb', b and s of a block."""
    own = steps_covariance(noise_covariance(widths)) / weight**2
    sums = own.sum(axis=1)
    total = float(sums.sum())
    return own - np.multiply.outer(sums, sums) / total, sums / total, total


#: Rows of the largest trees: their covariance is written out and factored.
MOST_NODES = 2_000


@final
@dataclass(frozen=True)
class TreeWalkMatrix(MeasuredMatrix):
    """The counts of the nodes of trees, measured with walks from their leaves up to their roots.

    Row v is the sum, over the nodes v and below it, of the rows of a matrix. A record costs what it costs in
    that matrix, whatever the widths, as it moves the counts from its nodes up to their roots. There may be
    more nodes than values: these are estimated by least squares.

    Parameters
    ----------
    matrix : IdentityMatrix or IntegerMatrix
        What nodes count beside the nodes below them: of full column rank, a row for each node.
    above : tuple of int
        For each node the one that it adds up to, which comes later; the number of nodes at a root.
    widths : tuple of int
        Of each row, in parts of 1024 of the noise's scale, at least 0.

    Raises
    ------
    NumericalError
        If these are no trees, or too large.

    Examples
    --------
    Two values and their total.

    >>> tree = TreeWalkMatrix(IntegerMatrix(np.array([[1, 0], [0, 1], [0, 0]])), (2, 2, 3), (1024, 0, 0))
    >>> tree.sensitivity, tree.multiply(np.array([[5.0], [1.0]])).ravel().tolist()
    (1, [5.0, 1.0, 6.0])
    """

    kind = "tree-walk"

    matrix: IdentityMatrix | IntegerMatrix
    above: tuple[int, ...]
    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        _check_widths(self.widths)
        if not isinstance(self.matrix, IdentityMatrix | IntegerMatrix) or self.matrix.outside is not None:
            raise NumericalError("nodes of trees count what is no matrix of integers of full column rank")
        rows = self.matrix.rows
        if not rows == len(self.widths) == len(self.above) <= MOST_NODES:
            told = f"found {rows}, {len(self.widths)} and {len(self.above)}"
            raise NumericalError(f"trees of up to {MOST_NODES} nodes, with a width and a parent each: {told}")
        if any(type(own) is not int or not row < own <= rows for row, own in enumerate(self.above)):
            raise NumericalError("the parent of a node comes after it, or is the number of nodes")
        if self.matrix.max_entry > _HEAVIEST:
            raise NumericalError(f"entries of trees above {_HEAVIEST}")

    @property
    def walk(self) -> tuple[int, ...]:
        return self.widths

    @property
    def parents(self) -> tuple[int, ...]:
        return self.above

    @property
    def columns(self) -> int:
        return self.matrix.columns

    @property
    def rows(self) -> int:
        return self.matrix.rows

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        """Bounds on the entries, and those that their sums are formed from."""
        return sums_below(np.abs(self.matrix.written()).astype(np.int64), self.parents)

    @property
    def max_entry(self) -> int:
        return int(self._sizes.max())

    @property
    def max_row_sum(self) -> int:
        return int(self._sizes.sum(axis=1).max())

    def column_power_sum(self, power: int) -> int:
        """Return that of the matrix for the power 1, by the theorem; else a bound on column sums."""
        if power == 1:
            return self.matrix.sensitivity
        return int((self._sizes.astype(object) ** power).sum(axis=0).max())

    def overlaps(self, power: int) -> NDArray[np.int64]:
        """Return those of the identity: a replacement is a record that comes and another that goes."""
        cost = self.column_power_sum(power)
        return np.array([[cost, 0], [0, cost]])[: self.columns, : self.columns]

    def magnitudes(self) -> NDArray[np.int64]:
        raise NumericalError("a walk: its cost is no sum over its rows")

    def multiply(self, array: Array) -> Array:
        return sums_below(self.matrix.multiply(array), self.parents)

    @cached_property
    def _squares(self) -> tuple[Array, Array]:
        """The inverse of the triangle of weighted least squares, and their pseudo-inverse."""
        root = np.linalg.cholesky(noise_covariance(self.widths, self.parents))
        weighted = scipy.linalg.solve_triangular(root, self.written(), lower=True, check_finite=False)
        rows, triangle = np.linalg.qr(weighted)
        inverse = scipy.linalg.solve_triangular(triangle, np.eye(self.columns), check_finite=False)
        whitened = scipy.linalg.solve_triangular(root, rows, lower=True, trans="T", check_finite=False)
        return inverse, np.asarray(inverse @ whitened.T)

    def solve(self, answers: Array) -> Array:
        return np.asarray(self._squares[1] @ answers)

    def coefficients(self, queries: Array) -> Array:
        return np.asarray(self._squares[1].T @ queries)

    def uncorrelated(self) -> Array:
        return _uncorrelated(self)

    @cached_property
    def _covariance(self) -> Array:
        return np.asarray(self._squares[0] @ self._squares[0].T)

    def covariance(self) -> Array:
        return self._covariance

    def digest(self) -> str:
        return f"walks up trees {self.matrix.digest()} {self.above} {self.widths}"
