"""Products of strategies with weighted rows, (B_1 x B_2)' diag(lambda) (B_1 x B_2).

The factors come from alternating over the axes (with all others fixed, the best X_i solves an explicit
problem of the attribute's own size); the row weights lambda then solve a convex problem of their own, by
multiplicative steps on its dual, with a gap. The result is never worse than the best single product found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import along
from matrixdp.selection.gram.factor import Factor, Solver
from matrixdp.selection.problem.kron_sum import Inverse, KronSum, energies

__all__ = ["Product", "alternate", "row_weights", "solve_structured", "weighted_product"]

Array = NDArray[np.float64]

_SWEEPS, _TOLERANCE = 12, 1e-5
_WEIGHT_STEPS = 400
_WEIGHT_GAP = 1e-4


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

    def scaled(self, coefficient: float) -> Product:
        """Return the same strategy for the Gram matrix multiplied by a coefficient."""
        bound = None if self.bound is None else coefficient * self.bound
        return replace(self, loss=coefficient * self.loss, bound=bound)

    @cached_property
    def _variances(self) -> Array:
        shape = [factor.height for factor in self.factors]
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
            tensor = np.tensordot(energies(factor.inverse, gram), tensor, axes=(0, 0))
        return float(tensor)

    def axis_slope(self, axis: int, grams: Sequence[Array]) -> Array:
        """Return the derivative of ``change`` with respect to the Gram matrix of one axis."""
        tensor = np.moveaxis(self._variances, axis, -1)
        for other, (factor, gram) in enumerate(zip(self.factors, grams, strict=True)):
            if other != axis:
                tensor = np.tensordot(energies(factor.inverse, gram), tensor, axes=(0, 0))
        own = self.factors[axis].inverse
        return (own * tensor) @ own.T


def alternate(
    solve: Callable[[int, Sequence[Inverse], Factor], Factor],
    known: Sequence[Factor],
    loss: float,
    sweeps: int,
    tolerance: float,
) -> tuple[list[Factor], float, bool]:
    """Alternate over the attributes, the strategies of all others fixed.

    ``solve`` gets an axis, the inverses of all axes and the axis's own strategy so far. Returns the best
    strategies that were met, their error, and whether the error has settled.

    References
    ----------
    McKenna et al. 2018, section 6.1 (block-cyclic alternation over surrogate workloads).
    """
    best, current = list(known), list(known)
    inverses = [factor.estimator for factor in current]
    last = loss
    for _ in range(sweeps):
        before = last
        for axis in range(len(current)):
            current[axis] = solve(axis, inverses, current[axis])
            inverses[axis] = current[axis].estimator
        last = current[-1].loss
        if last < loss:
            best, loss = list(current), last  # a search may end above where it began
        if last > before * (1.0 - tolerance):
            return best, loss, True
    return best, loss, False


def row_weights(found: Array, squares: Sequence[Array], y: Array) -> tuple[Array, float]:
    """Minimize sum(d / lambda) subject to column norms at most 1; return lambda and its error.

    ``found`` are the rows' energies d, ``squares`` the squared entries of the factors, ``y`` a distribution
    over the cells to start from.
    """
    best, least, bound = y, math.inf, 0.0
    for _ in range(_WEIGHT_STEPS):
        pull = y
        for axis, square in enumerate(squares):
            pull = along(pull, axis, square)
        weights = np.sqrt(found / np.maximum(pull, 1e-300))
        norms = weights
        for axis, square in enumerate(squares):
            norms = along(norms, axis, square.T)
        peak = float(norms.max())
        positive = weights > 0
        error = float((found[positive] / weights[positive]).sum()) * peak
        bound = max(bound, float(np.sqrt(found * pull).sum()) ** 2)
        if error < least:
            best, least = weights / peak, error
        if least <= bound * (1.0 + _WEIGHT_GAP):
            break
        y = y * norms
        y = y / y.sum()
    return best, least


def solve_structured(
    terms: KronSum[Any],
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
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.gram import ConvexSolver
    >>> from matrixdp.selection.problem.kron_sum import KronSum
    >>> domain = mdp.Domain({"a": 4, "b": 4})
    >>> terms = KronSum.of(domain, mdp.Workload(domain, mdp.marginals(1)).groups)
    >>> solve_structured(terms, ConvexSolver(1e-8)).loss < 16.0
    True
    """

    def solve(axis: int, inverses: Sequence[Inverse], own: Factor | None) -> Factor:
        return solver.gram(terms.surrogate(axis, inverses), (terms.sizes[axis],), own)

    if start is None:
        start = [solve(axis, terms.unknown, None) for axis in range(len(terms.sizes))]
    factors, loss, _ = alternate(solve, start, math.inf, _SWEEPS, _TOLERANCE)
    plain = Product(tuple(factors), loss)
    if not (weigh_rows and solver.optimal):
        return plain
    found = terms.row_energies([factor.inverse for factor in factors])
    y = np.ones(())
    for factor in factors:
        assert factor.dual is not None
        y = np.multiply.outer(y, factor.dual)
    squares = [factor.rows**2 for factor in factors]
    weights, error = row_weights(found, squares, 0.99 * y + 0.01 / y.size)
    if error > loss * (1.0 - 1e-4):
        return plain
    return weighted_product(factors, found, weights)


def weighted_product(factors: Sequence[Factor], found: Array, weights: Array) -> Product:
    """Return a product with weighted rows whose energies are known, its largest column norm 1."""
    # a row that hardly matters still has to be measured: keep the spread of the weights within 2^16
    weights = np.maximum(weights, float(weights.max()) * 2.0**-16)
    norms = weights
    for axis, factor in enumerate(factors):
        norms = along(norms, axis, (factor.rows**2).T)
    weights = weights / float(norms.max())
    return Product(tuple(factors), float((found / weights).sum()), multipliers=weights)
