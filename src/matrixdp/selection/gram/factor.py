"""A real strategy for one Gram matrix, under either noise: what sub-solvers return."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import Array
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.grams import Gram

#: The scope of a bound that holds for every strategy with the same noise.
EVERY = "every strategy"


@dataclass(frozen=True, eq=False)
class Factor:
    """A strategy B for one Gram matrix V, before it is rounded to integers, and what is proved of it.

    Attributes
    ----------
    strategy : ndarray, shape (m, n), or MeasuredMatrix
        B. Its largest column norm, in the norm of the noise, is 1. Its row space holds that of the workload.
        An integer matrix is measured as it is and stands for itself at that scale.
    loss : float
        tr(V (B'B)^+): the total squared error with noise of variance 1 on every row.
    bound : float or None
        A lower bound on the loss of every strategy of ``scope`` for the same noise, or None.
    dual : ndarray, shape (n,), or None
        The distribution over cells that B is built from, a point of the convex dual problem.
    scope : str
        Which strategies the bound covers.
    """

    strategy: Array | MeasuredMatrix
    loss: float
    bound: float | None = None
    dual: Array | None = None
    scope: str = EVERY

    @property
    def cells(self) -> int:
        """The number of columns, n."""
        return self.strategy.columns if isinstance(self.strategy, MeasuredMatrix) else len(self.strategy.T)

    @cached_property
    def rows(self) -> Array:
        """B itself, shape (m, n)."""
        if not isinstance(self.strategy, MeasuredMatrix):
            return self.strategy
        return self.strategy.written() / math.sqrt(self.strategy.squared_sensitivity)

    @property
    def height(self) -> int:
        """The number of rows, m, which are not written out for it."""
        return self.strategy.rows if isinstance(self.strategy, MeasuredMatrix) else len(self.strategy)

    @cached_property
    def identity(self) -> bool:
        """Whether every cell is measured as it is."""
        if isinstance(self.strategy, MeasuredMatrix):
            return self.strategy.kind == "identity"
        rows = self.strategy
        return rows.shape[0] == rows.shape[1] and np.array_equal(rows, np.eye(len(rows)))

    @cached_property
    def inverse(self) -> Array:
        """A right inverse of B, shape (n, m), that reproduces every query of the workload.

        With a dual point D it is D B' (B D B')^-1, where B D B' is diagonal: it agrees with the
        pseudo-inverse on the row space of B, and is the one with which the error changes as the queries'
        null space moves (the envelope of the dual problem).
        """
        if isinstance(self.strategy, MeasuredMatrix) and self.strategy.walk is not None:
            root = np.linalg.cholesky(self.strategy.covariance())
            return np.asarray(self.strategy.sensitivity * root, dtype=np.float64)
        if self.dual is not None:
            weighted = self.rows * self.dual
            return np.asarray(weighted.T / np.einsum("aj,aj->a", weighted, self.rows))
        return right_inverse(self.rows)

    @property
    def estimator(self) -> Array | float:
        """R with the covariance R R' of the cells' estimates: ``inverse``, or 1.0 for the identity."""
        return 1.0 if self.identity else self.inverse

    def scaled(self, coefficient: float) -> Factor:
        """Return the same strategy for the Gram matrix multiplied by a coefficient."""
        bound = None if self.bound is None else coefficient * self.bound
        return replace(self, loss=coefficient * self.loss, bound=bound)

    def repeated(self, groups: NDArray[np.intp]) -> Factor:
        """Return the strategy with the column of its group for each of more cells."""
        dual = None if self.dual is None else (self.dual / np.bincount(groups))[groups]
        return replace(self, strategy=self.rows[:, groups], dual=dual)

    @property
    def dual_value(self) -> float:
        """The value of the dual problem at ``dual``: a lower bound on the loss of every strategy."""
        assert self.dual is not None
        if isinstance(self.strategy, MeasuredMatrix) and self.strategy.symmetric_gram is not None:
            return self.loss * float(self.dual.sum())  # every column has the norm 1
        squares = np.einsum("aj,aj->j", self.rows, self.rows)
        return self.loss * float(squares @ self.dual)

    @property
    def uniform(self) -> bool:
        """Whether the dual point is the uniform distribution."""
        return self.dual is not None and float(np.ptp(self.dual)) <= 1e-9 * float(self.dual.max())

    @property
    def level(self) -> float:
        """A smooth proxy for the loss: the dual bound where there is one, otherwise the loss."""
        return self.loss if self.bound is None or self.dual is None else self.bound

    @property
    def _share(self) -> float:
        return 1.0 if self.dual is None else self.dual_value / self.loss

    @cached_property
    def slope(self) -> Array:
        """The derivative of ``level`` with respect to V, shape (n, n)."""
        return np.asarray(self._share * (self.inverse @ self.inverse.T))

    def image(self, rows: Array) -> Array:
        """Return queries times ``slope``: shape (k, n) in and out."""
        return np.asarray(self._share * ((rows @ self.inverse) @ self.inverse.T))

    def change(self, grams: Sequence[Array]) -> float:
        """Return how ``level`` changes along a Kronecker product: tr(slope (G_1 x G_2 x ...))."""
        return float(self.axis_slope(0, grams).ravel() @ grams[0].ravel())

    def axis_slope(self, axis: int, grams: Sequence[Array]) -> Array:
        """Return the derivative of ``change`` with respect to the Gram matrix of one axis."""
        tensor = self._paired(tuple(len(gram) for gram in grams))
        for gram in reversed(grams[axis + 1 :]):
            tensor = tensor.reshape(-1, gram.size) @ gram.ravel()
        for gram in grams[:axis]:
            tensor = gram.ravel() @ tensor.reshape(gram.size, -1)
        return tensor.reshape(len(grams[axis]), -1)

    def _paired(self, sizes: tuple[int, ...]) -> Array:
        """Return ``slope`` with the two axes of each attribute side by side, flat."""
        if sizes not in self._flat:
            axes = [place for axis in range(len(sizes)) for place in (axis, axis + len(sizes))]
            self._flat[sizes] = self.slope.reshape(*sizes, *sizes).transpose(axes).ravel()
        return self._flat[sizes]

    @cached_property
    def _flat(self) -> dict[tuple[int, ...], Array]:
        return {}


def right_inverse(rows: Array) -> Array:
    """Return the pseudo-inverse of a strategy, shape (n, m)."""
    size = rows.shape[1]
    if len(rows) > size and np.count_nonzero(rows[:size]) == size and np.diagonal(rows).all():
        # the identity D and further rows T D, few of them: D^-1 (I + T'T)^-1 [I T'], by Woodbury
        diagonal = np.diagonal(rows)
        theta = rows[size:] / diagonal
        if len(theta) < size:
            inner = np.eye(len(theta)) + theta @ theta.T
            right = scipy.linalg.solve(inner, theta, assume_a="pos").T
            return np.asarray(np.hstack([np.eye(size) - right @ theta, right]) / diagonal[:, None])
    if rows.shape[0] >= rows.shape[1]:
        q, r = np.linalg.qr(rows)
        diagonal = np.abs(np.diagonal(r))
        if diagonal.min() > 1e-9 * diagonal.max():
            return np.asarray(scipy.linalg.solve_triangular(r, q.T))
    return np.asarray(scipy.linalg.pinv(rows, rtol=LIMITS.span))


class Solver(Protocol):
    """A way to find a strategy for one explicit problem under a norm; its options are its own."""

    @property
    def optimal(self) -> bool:
        """Whether what it finds is the best of its class, up to a gap."""

    def gram(self, gram: Gram | Array, sizes: Sequence[int], start: Factor | None = None, /) -> Factor:
        """Solve for a Gram matrix over a product domain, perhaps from a similar problem's factor."""

    def queries(self, rows: Array, sizes: Sequence[int], start: Factor | None = None, /) -> Factor:
        """Solve for explicit queries, fewer than cells."""

    def centered(self, size: int, /) -> Factor:
        """Solve for I - 11'/n."""
