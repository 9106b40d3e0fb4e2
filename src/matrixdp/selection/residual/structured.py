"""Sub-workloads that neither factor nor fit a joint solution: (B_1 x B_2)' diag(lambda) (B_1 x B_2).

The factors come from alternating over the axes (with all others fixed, the best X_i solves an explicit
problem of the attribute's own size); the row weights lambda then solve a convex problem of their own, by
multiplicative steps on its dual, with a gap. The result is never worse than the best single product found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.plan.quadratic_forms import along
from matrixdp.selection.factor import Factor, Solver

__all__ = ["Product", "StructuredProblem", "solve_structured"]

Array = NDArray[np.float64]

_SWEEPS = 12
_WEIGHT_STEPS = 400
_WEIGHT_GAP = 1e-4


@dataclass(frozen=True, eq=False)
class StructuredProblem:
    """A Gram matrix as a sum of Kronecker products and of Gram matrices of explicit queries.

    Attributes
    ----------
    sizes : tuple of int
    terms : list of (float, list of ndarray)
        Coefficient and one Gram matrix for each axis.
    rows : list of (float, ndarray)
        Weight and queries, shape (m, *sizes).
    """

    sizes: tuple[int, ...]
    terms: list[tuple[float, list[Array]]]
    rows: list[tuple[float, Array]]

    def row_energies(self, inverses: Sequence[Array]) -> Array:
        """Return d with error = sum(d / lambda): the diagonal of B^-T V B^-1 over product rows."""
        total = np.zeros([inverse.shape[1] for inverse in inverses])
        for coefficient, grams in self.terms:
            product = np.full((), coefficient)
            for gram, inverse in zip(grams, inverses, strict=True):
                product = np.multiply.outer(product, _energies(inverse, gram))
            total += product
        for weight, tensor in self.rows:
            image = tensor
            for axis, inverse in enumerate(inverses):
                image = along(image, axis + 1, inverse.T)
            total += weight * (image**2).sum(axis=0)
        return np.maximum(total, 0.0)


@dataclass(frozen=True, eq=False)
class Product:
    """A strategy B = diag(lambda)^(1/2) (B_1 x B_2 x ...), column norms at most 1.

    Attributes
    ----------
    factors : tuple of Factor
        One for each axis.
    loss : float
        Total squared error at privacy cost 1.
    bound : float or None
        A lower bound on that of every strategy, or None.
    multipliers : ndarray or None
        lambda, in the shape of the factors' rows; None for a plain product.
    """

    factors: tuple[Factor, ...]
    loss: float
    bound: float | None = None
    multipliers: Array | None = None

    @property
    def cells(self) -> int:
        """The number of columns."""
        return math.prod(factor.cells for factor in self.factors)

    @property
    def level(self) -> float:
        """What changes smoothly with the problem."""
        return self.loss

    @cached_property
    def _variances(self) -> Array:
        shape = [len(factor.rows) for factor in self.factors]
        return np.ones(shape) if self.multipliers is None else 1.0 / self.multipliers

    def image(self, rows: Array) -> Array:
        """Return queries times X^+, the derivative of the loss: shape (m, cells) in and out."""
        tensor = rows.reshape(len(rows), *[factor.cells for factor in self.factors])
        for axis, factor in enumerate(self.factors):
            tensor = along(tensor, axis + 1, factor.inverse.T)
        tensor = tensor * self._variances
        for axis, factor in enumerate(self.factors):
            tensor = along(tensor, axis + 1, factor.inverse)
        return tensor.reshape(rows.shape)

    def change(self, grams: Sequence[Array]) -> float:
        """Return tr(X^+ (G_1 x G_2 x ...))."""
        tensor = self._variances
        for factor, gram in zip(self.factors, grams, strict=True):
            tensor = np.tensordot(_energies(factor.inverse, gram), tensor, axes=(0, 0))
        return float(tensor)

    def axis_slope(self, axis: int, grams: Sequence[Array]) -> Array:
        """Return the derivative of ``change`` with respect to the Gram matrix of one axis."""
        tensor = np.moveaxis(self._variances, axis, -1)
        for other, (factor, gram) in enumerate(zip(self.factors, grams, strict=True)):
            if other != axis:
                tensor = np.tensordot(_energies(factor.inverse, gram), tensor, axes=(0, 0))
        own = self.factors[axis].inverse
        return (own * tensor) @ own.T


def _energies(inverse: Array, gram: Array) -> Array:
    return np.asarray(np.einsum("ia,ia->a", inverse, gram @ inverse))


def _partial(problem: StructuredProblem, axis: int, factors: Sequence[Factor]) -> Array:
    """Return the Gram matrix that an axis sees with the strategies of all others fixed."""
    inverses = [factor.inverse for factor in factors]
    covariances = [inverse @ inverse.T for inverse in inverses]
    total = np.zeros((problem.sizes[axis],) * 2)
    for coefficient, grams in problem.terms:
        scale = coefficient
        for other, gram in enumerate(grams):
            if other != axis:
                scale *= float(np.einsum("ij,ij->", covariances[other], gram))
        total += scale * grams[axis]
    for weight, tensor in problem.rows:
        image = tensor
        for other in range(len(problem.sizes)):
            if other != axis:
                image = along(image, other + 1, inverses[other].T)
        flat = np.moveaxis(image, axis + 1, -1).reshape(-1, problem.sizes[axis])
        total += weight * (flat.T @ flat)
    return total


def _first_factors(problem: StructuredProblem, solver: Solver) -> list[Factor]:
    """Return each axis's optimum with all others taken as unknown."""
    axes = range(len(problem.sizes))
    factors = []
    for axis in axes:
        start = np.zeros((problem.sizes[axis],) * 2)
        for coefficient, grams in problem.terms:
            scale = coefficient
            for other in axes:
                if other != axis:
                    scale *= float(np.trace(grams[other])) / problem.sizes[other]
            start += scale * grams[axis]
        for weight, tensor in problem.rows:
            flat = np.moveaxis(tensor, axis + 1, -1).reshape(-1, problem.sizes[axis])
            start += weight * (flat.T @ flat) / (math.prod(problem.sizes) / problem.sizes[axis])
        factors.append(solver.gram(start, (len(start),)))
    return factors


def _row_weights(energies: Array, squares: Sequence[Array], y: Array) -> tuple[Array, float]:
    """Minimize sum(d / lambda) subject to column norms at most 1; return lambda and its error."""
    best, least, bound = y, math.inf, 0.0
    for _ in range(_WEIGHT_STEPS):
        pull = y
        for axis, square in enumerate(squares):
            pull = along(pull, axis, square)
        weights = np.sqrt(energies / np.maximum(pull, 1e-300))
        norms = weights
        for axis, square in enumerate(squares):
            norms = along(norms, axis, square.T)
        peak = float(norms.max())
        positive = weights > 0
        error = float((energies[positive] / weights[positive]).sum()) * peak
        bound = max(bound, float(np.sqrt(energies * pull).sum()) ** 2)
        if error < least:
            best, least = weights / peak, error
        if least <= bound * (1.0 + _WEIGHT_GAP):
            break
        y = y * norms
        y = y / y.sum()
    return best, least


def solve_structured(
    problem: StructuredProblem,
    solver: Solver,
    weigh_rows: bool = True,
    start: Sequence[Factor] | None = None,
) -> Product:
    """Solve by alternating over factors, then weight the rows of their product.

    ``solver`` solves each axis; one that is not optimal takes no row weights. ``start`` are the factors of a
    similar problem, to alternate from.

    References
    ----------
    McKenna et al. 2018, section 6.1 (alternation over the factors of one product). The row weights are
    ResidualPlanner-like scales in a fixed basis.

    Examples
    --------
    >>> import numpy as np
    >>> from matrixdp.selection.convex import ConvexSolver
    >>> eye, ones = np.eye(4), np.ones((4, 4))
    >>> problem = StructuredProblem((4, 4), [(1.0, [eye, ones]), (1.0, [ones, eye])], [])
    >>> solve_structured(problem, ConvexSolver(1e-8)).loss < 16.0
    True
    """
    factors = list(start) if start is not None else _first_factors(problem, solver)
    loss = math.inf
    best, least = factors, math.inf
    for _ in range(_SWEEPS):
        before = loss
        for axis in range(len(problem.sizes)):
            seen = _partial(problem, axis, factors)
            factors[axis] = solver.gram(seen, (len(seen),), factors[axis])
            loss = factors[axis].loss
        if solver.optimal or loss < least:
            best, least = list(factors), loss  # a search may end above where it began
        if loss > before * (1.0 - 1e-5):
            break
    plain = Product(tuple(best), least)
    if not (weigh_rows and solver.optimal):
        return plain
    energies = problem.row_energies([factor.inverse for factor in best])
    start_y = np.ones(())
    for factor in best:
        assert factor.dual is not None
        start_y = np.multiply.outer(start_y, factor.dual)
    start_y = 0.99 * start_y + 0.01 / start_y.size
    squares = [factor.rows**2 for factor in best]
    weights, error = _row_weights(energies, squares, start_y)
    if error > least * (1.0 - 1e-4):
        return plain
    # a row that hardly matters still has to be measured: keep the spread of the weights within 2^16
    weights = np.maximum(weights, float(weights.max()) * 2.0**-16)
    norms = weights
    for axis, square in enumerate(squares):
        norms = along(norms, axis, square.T)
    weights = weights / float(norms.max())
    return Product(tuple(best), float((energies / weights).sum()), multipliers=weights)
