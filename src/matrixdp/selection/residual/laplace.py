"""Sub-solvers for Laplace noise: Noiseategies with L1 sensitivity 1 for one Gram matrix.

No convex form is known. A sub-workload takes the best of a p-Identity strategy and of the strategy that is
optimal for Gaussian noise, rescaled to L1 sensitivity 1; the latter is the optimum where there is one query.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.noise import LAPLACE
from matrixdp.selection.convex import Design, solve_gram, solve_rows
from matrixdp.selection.factor import Factor
from matrixdp.selection.hdmm.axis import solve_axis

__all__ = [
    "MAX_FAST_CELLS",
    "MAX_SUM_CELLS",
    "SumDesign",
    "solve_sum_gram",
    "solve_sum_rows",
    "sum_design",
    "symmetric_rows",
    "symmetric_sum_loss",
]

Array = NDArray[np.float64]

#: Sub-workloads are solved jointly up to this many cells.
MAX_SUM_CELLS = 400
#: ... and, where they are solved many times, explicit queries up to this many.
MAX_FAST_CELLS = 100
#: Singular values below this share of the largest are rounding errors.
_RANK = 1e-9


@dataclass(frozen=True)
class SumDesign(Design):
    """A strategy whose columns have L1 norms of at most 1, with its own loss in the place of a bound.

    ``p`` has no use. The derivatives are those at a fixed strategy: B^+ B^+' is that of the loss.
    """

    @cached_property
    def inverse(self) -> Array:
        """The pseudo-inverse of the strategy, shape (N, rows)."""
        return np.asarray(np.linalg.pinv(self.factor, rcond=_RANK))

    @property
    def gradient_factor(self) -> Array:
        """Z with Z'Z / 2 the derivative of the square root of the loss, shape (rows, N)."""
        return np.asarray(self.inverse.T / self.loss**0.25)


def sum_design(factor: Array, gram: Array) -> SumDesign:
    """Return a strategy rescaled to L1 sensitivity 1, with its loss on a Gram matrix.

    Parameters
    ----------
    factor : ndarray, shape (m, N)
        Its row space holds that of the Gram matrix.
    gram : ndarray, shape (N, N)

    Returns
    -------
    SumDesign

    Examples
    --------
    >>> sum_design(3.0 * np.eye(2), np.eye(2)).loss
    2.0
    """
    rows = factor / float(LAPLACE.column_norms(factor).max())
    inverse = np.linalg.pinv(rows, rcond=_RANK)
    loss = float(np.einsum("ia,ia->", inverse, gram @ inverse))
    size = rows.shape[1]
    return SumDesign(rows, loss, loss, np.full(size, 1.0 / size), 0)


def solve_sum_gram(
    gram: Array,
    sizes: Sequence[int] | None = None,
    gap: float = 1e-6,
    start: Array | None = None,
    *,
    effort: str = "full",
    seed: int = 0,
) -> SumDesign:
    """Return the best strategy found for Laplace noise.

    Parameters
    ----------
    gram : ndarray, shape (N, N)
        V = W'DW, of any rank.
    sizes : sequence of int, optional
        The attributes' sizes, where N is a product domain.
    gap : float
        Relative gap of the Gaussian optimum that is tried.
    start : ndarray, shape (m, N), optional
        A strategy for a similar Gram matrix.
    effort : {"full", "fast"}
    seed : int
        Of the restarts.

    Returns
    -------
    SumDesign

    References
    ----------
    McKenna et al. (2018), section 5.2 (OPT_0).

    Examples
    --------
    >>> round(solve_sum_gram(np.array([[1.0, -1.0], [-1.0, 1.0]])).loss, 9)
    1.0
    """
    peak = float(gram[0, 0])
    if peak > 0.0 and float(np.abs(gram - peak * np.eye(len(gram))).max()) <= 1e-12 * peak:
        return sum_design(np.eye(len(gram)), gram)  # all cells alike
    best = sum_design(solve_gram(gram, sizes, max(gap, 1e-5)).factor, gram)
    if len(best.factor) == 1:
        return best  # one query, measured as it is: no strategy of any kind does better
    if start is not None and (len(start) <= len(gram) or float(start.min()) < 0.0):
        start = None  # it was not a p-Identity strategy
    begin = None if start is None else Factor(start, math.inf, None)
    found = solve_axis(gram, LAPLACE, gap=gap, seed=seed, start=begin, effort=effort)
    if found.loss < best.loss:
        best = sum_design(found.rows, gram)
    return best


def solve_sum_rows(
    rows: Array,
    sizes: Sequence[int] | None = None,
    gap: float = 1e-6,
    start: Array | None = None,
    *,
    effort: str = "full",
    seed: int = 0,
) -> SumDesign:
    """Return the best strategy found for explicit queries, fewer than cells: shape (m, N) with m < N.

    The queries themselves, the Gaussian optimum rescaled and, where the cells are few, a p-Identity strategy.

    Examples
    --------
    >>> round(solve_sum_rows(np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])).loss, 9)
    2.0
    """
    gaussian = solve_rows(rows, sizes, max(gap, 1e-5)).factor
    best = min((_rows_design(factor, rows) for factor in (gaussian, rows)), key=lambda design: design.loss)
    most = MAX_SUM_CELLS if effort == "full" else MAX_FAST_CELLS
    if rows.shape[1] <= most:
        other = solve_sum_gram(rows.T @ rows, sizes, gap, start, effort=effort, seed=seed)
        if other.loss < best.loss:
            best = other
    return best


def _rows_design(factor: Array, rows: Array) -> SumDesign:
    """Return a strategy rescaled to L1 sensitivity 1, with its loss on explicit queries."""
    scaled = factor / float(LAPLACE.column_norms(factor).max())
    loss = float(((rows @ np.linalg.pinv(scaled, rcond=_RANK)) ** 2).sum())
    size = rows.shape[1]
    return SumDesign(scaled, loss, loss, np.full(size, 1.0 / size), 0)


def symmetric_rows(size: int) -> Array:
    """Return the strategy for I - 11'/n: the identity, or the difference of two values.

    The identity has L1 sensitivity 1; centering it would raise that to 2 (n - 1) / n.

    Examples
    --------
    >>> symmetric_rows(2).tolist()
    [[1.0, -1.0]]
    """
    return np.array([[1.0, -1.0]]) if size == 2 else np.eye(size)


def symmetric_sum_loss(size: int) -> float:
    """Return the total squared error of `symmetric_rows` on I - 11'/n with rows of variance 1.

    Examples
    --------
    >>> symmetric_sum_loss(2), symmetric_sum_loss(5)
    (0.5, 4.0)
    """
    return 0.5 if size == 2 else size - 1.0
