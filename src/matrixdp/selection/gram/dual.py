"""The optimal Gaussian strategy on an explicit domain, with its certificate.

Given the Gram matrix V = R'R of a workload, the least total squared error at privacy cost 1 is

    opt = min { tr(X^+ V) : X positive semidefinite, diag(X) <= 1, rows of R in the row space of X }
        = max { (tr (R diag(p) R')^(1/2))^2 : p >= 0, sum p = 1 },

the dual of COA's problem (Yuan et al. 2016, section 3), an optimal-design problem. Every p gives a
feasible X(p) = R' M^(-1/2) R / max g with M = R diag(p) R' and g its diagonal before scaling, so every
iterate carries its own gap. The method is a primal-dual interior point on the conditions
y_j (1 - g_j(y)) = mu, with Newton steps by conjugate gradients.

R may come in blocks R_1, R_2, ... with R_a diag(p) R_b' = 0 for a != b and all admissible p (what symmetry
gives): then only the blocks are ever factored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.errors import NumericalError
from matrixdp.exact.linear import Array
from matrixdp.selection.limits import GAP, LIMITS

#: Eigenvalues of M below this are lifted to it. They only arise off the optimum: below `Limits.rank`, so that
#: no optimum changes.
_FLOOR = 1e-15
#: A start whose error is more than this many times its bound is worse than the uniform distribution.
_USEFUL_START = 10.0


@dataclass(frozen=True)
class _Evaluation:
    """One eigendecomposition of every block at a point y."""

    roots: list[Array]  # square roots of the eigenvalues of M_b, shape (r_b,)
    loadings: list[Array]  # R_b' Q_b, shape (N, r_b)
    trace: float  # tr M^(1/2)
    diagonal: Array  # g, shape (N,)


@dataclass(frozen=True)
class DesignPoint:
    """The point with the least gap of its own, and the best bound that the solver met.

    Attributes
    ----------
    p : ndarray, shape (N,)
        The dual distribution that the strategy is built from.
    primal, dual : float
        The strategy's error, and a lower bound on every strategy's error.
    factors : list of ndarray
        For each block a matrix B_b, shape (r_b, N); X = sum of B_b' B_b has diagonal at most 1.
    """

    p: Array
    primal: float
    dual: float
    factors: list[Array]

    @property
    def gap(self) -> float:
        """The relative gap, primal / dual - 1."""
        return self.primal / self.dual - 1.0


def _evaluate(blocks: Sequence[Array], y: Array) -> _Evaluation:
    roots, loadings = [], []
    trace, diagonal = 0.0, np.zeros(len(y))
    for block in blocks:
        half = block * np.sqrt(y)
        values, vectors = scipy.linalg.eigh(half @ half.T, driver="evd", check_finite=False)
        s = np.sqrt(np.maximum(values, _FLOOR * values[-1]))
        loading = block.T @ vectors
        diagonal += (loading * loading) @ (1.0 / s)
        trace += float(s.sum())
        roots.append(s)
        loadings.append(loading)
    return _Evaluation(roots, loadings, trace, diagonal)


def _curvature(evaluation: _Evaluation, root_y: Array) -> tuple[list[Array], Array]:
    """Return the kernels K_b and the diagonal of Y^(1/2) T Y^(1/2), T = -dg/dy."""
    kernels, diagonal = [], np.zeros(len(root_y))
    for s, loading in zip(evaluation.roots, evaluation.loadings, strict=True):
        kernel = 1.0 / (np.multiply.outer(s, s) * np.add.outer(s, s))
        kernels.append(kernel)
        square = loading * loading
        diagonal += np.einsum("ja,ja->j", square @ kernel, square)
    return kernels, diagonal * root_y**2


def _newton_step(evaluation: _Evaluation, y: Array, slack: Array, mu: float, tolerance: float) -> Array:
    """Solve (Y^(1/2) T Y^(1/2) + diag(slack)) w = Y^(1/2) (g - 1 + mu / y); return dy = Y^(1/2) w."""
    root_y = np.sqrt(y)
    kernels, curvature = _curvature(evaluation, root_y)
    preconditioner = 1.0 / (curvature + slack)

    def product(w: Array) -> Array:
        out = slack * w
        v = root_y * w
        for kernel, loading in zip(kernels, evaluation.loadings, strict=True):
            middle = kernel * (loading.T @ (v[:, None] * loading))
            out = out + root_y * np.einsum("ja,ja->j", loading @ middle, loading)
        return out

    residual = root_y * (evaluation.diagonal - 1.0 + mu / y)
    w = np.zeros_like(y)
    z = preconditioner * residual
    direction = z
    energy = float(residual @ z)
    target = tolerance**2 * energy
    for _ in range(40):
        image = product(direction)
        step = energy / float(direction @ image)
        w = w + step * direction
        residual = residual - step * image
        z = preconditioner * residual
        new_energy = float(residual @ z)
        if new_energy <= target or new_energy <= 0.0:
            break
        direction = z + (new_energy / energy) * direction
        energy = new_energy
    return root_y * w


def _factors(evaluation: _Evaluation) -> list[Array]:
    scale = float(evaluation.diagonal.max()) ** -0.5
    return [
        (loading * (scale * s**-0.5)).T
        for s, loading in zip(evaluation.roots, evaluation.loadings, strict=True)
    ]


class _Search:
    """The points looked at so far: the one with the least gap of its own, and the largest bound of all.

    The least error alone does not name a point: for a block of rank 1 every point has the same. The strategy
    and the dual point must be those of one point, as `Factor.inverse` needs them.
    """

    def __init__(self, blocks: Sequence[Array], gap: float) -> None:
        self.blocks, self.gap = blocks, gap
        self.primal, self.dual, self.looks = np.inf, 0.0, 0
        self.own_gap = np.inf
        self.best: tuple[Array, _Evaluation] | None = None

    def look(self, y: Array) -> _Evaluation:
        self.looks += 1
        evaluation = _evaluate(self.blocks, y)
        primal = float(evaluation.diagonal.max()) * evaluation.trace
        dual = evaluation.trace**2 / float(y.sum())
        if not (np.isfinite(primal) and np.isfinite(dual)):
            raise NumericalError("the optimal strategy: an iterate is not finite")
        self.dual = max(self.dual, dual)
        if primal / dual < self.own_gap * (1.0 - LIMITS.rounding):
            self.own_gap, self.primal, self.best = primal / dual, primal, (y, evaluation)
        return evaluation

    @property
    def ratio(self) -> float:
        return self.primal / self.dual

    @property
    def reached(self) -> bool:
        return self.ratio - 1.0 <= self.gap

    def point(self) -> DesignPoint:
        assert self.best is not None
        y, evaluation = self.best
        return DesignPoint(y / y.sum(), self.primal, min(self.dual, self.primal), _factors(evaluation))


def solve_dual(
    blocks: Sequence[Array],
    gap: float = GAP,
    start: Array | None = None,
) -> DesignPoint:
    """Maximize tr(M(p)^(1/2)) over distributions p, to a relative gap.

    References
    ----------
    Yuan, Yang, Zhang, Hao: Convex optimization for linear query processing under approximate
    differential privacy, KDD 2016, section 3 (the problem). Kiefer 1974 (the dual as a design problem).

    Examples
    --------
    >>> import numpy as np
    >>> solve_dual([np.tril(np.ones((4, 4)))]).gap < 1e-6
    True
    """
    count = blocks[0].shape[1]
    uniform = np.full(count, 1.0 / count)
    p = uniform if start is None else np.maximum(start, 1e-9 / count)
    search = _Search(blocks, gap)
    evaluation = search.look(p)
    if search.ratio > _USEFUL_START:  # the interior point would take long to leave the wrong corner
        start, p = None, uniform
        evaluation = search.look(p)
    if start is None:
        for _ in range(2):
            if search.reached:
                break
            p = p * evaluation.diagonal**2
            p = np.maximum(p / p.sum(), 1e-9 / count)  # cells that no query counts keep the interior open
            evaluation = search.look(p)
    if not search.reached:
        _interior_point(search, p, evaluation)
    return search.point()


def _interior_point(search: _Search, p: Array, evaluation: _Evaluation) -> None:
    # In the scale y = p F^2 the conditions read y_j (1 - g_j) = 0, 1 - g_j >= 0, without a constraint.
    scale = evaluation.trace**2
    y = p * scale
    evaluation = _Evaluation(
        [s * scale**0.5 for s in evaluation.roots],
        evaluation.loadings,
        evaluation.trace * scale**0.5,
        evaluation.diagonal * scale**-0.5,
    )
    spread = float(np.abs(evaluation.diagonal - 1.0).max())
    slack = np.maximum(1.0 - evaluation.diagonal, 0.1 * max(spread, 1e-9))
    fraction = 0.99
    stalled = 0
    while not search.reached and search.looks < LIMITS.max_iterations and stalled < 6:
        before = search.ratio
        complementarity = float(y @ slack) / len(y)
        infeasibility = float(np.abs(1.0 - evaluation.diagonal - slack).max())
        mu = (0.03 if infeasibility < 0.3 * float(slack.max()) else 0.2) * complementarity
        dy = _newton_step(evaluation, y, slack, mu, 0.03)
        dslack = (mu - y * slack - slack * dy) / y
        step = min(1.0, fraction / max(float((-dy / y).max()), fraction))
        slack_step = min(1.0, fraction / max(float((-dslack / slack).max()), fraction))
        y = y + step * dy
        slack = slack + slack_step * dslack
        evaluation = search.look(y)
        now = search.ratio
        stalled = stalled + 1 if now >= before * (1 - 1e-12) and now > 1 else 0
