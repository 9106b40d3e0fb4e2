"""Sub-workloads that neither factor nor fit a joint solution: (B_1 x B_2)' diag(lambda) (B_1 x B_2).

The factors come from alternating over the axes (with all others fixed, the best X_i solves an explicit
problem of the attribute's own size); the row weights lambda then solve a convex problem of their own, by
multiplicative steps on its dual, with a gap. The result is never worse than the best single product found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.plan.quadratic_forms import along
from matrixdp.selection.convex import Design, solve_gram
from matrixdp.selection.residual.laplace import SumDesign

__all__ = ["StructuredDesign", "StructuredProblem", "solve_structured"]

Array = NDArray[np.float64]
SolveGram = Callable[[Array, Sequence[int], float, Array | None], Design]

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
class StructuredDesign:
    """A strategy B = diag(lambda)^(1/2) (B_1 x B_2 x ...), column norms at most 1.

    Attributes
    ----------
    designs : list of Design
        One for each axis.
    multipliers : ndarray or None
        lambda, in the shape of the factors' rows; None for a plain product.
    loss : float
        Total squared error at privacy cost 1.
    """

    designs: list[Design]
    multipliers: Array | None
    loss: float

    @cached_property
    def inverses(self) -> list[Array]:
        """A right inverse of every factor, weighted by its dual distribution."""
        return [_right_inverse(design) for design in self.designs]

    @cached_property
    def _variances(self) -> Array:
        shape = [inverse.shape[1] for inverse in self.inverses]
        return np.ones(shape) if self.multipliers is None else 1.0 / self.multipliers

    def covariance_image(self, rows: Array) -> Array:
        """Return queries times X^+: shape (m, cells) in and out."""
        tensor = rows.reshape(len(rows), *[inverse.shape[0] for inverse in self.inverses])
        for axis, inverse in enumerate(self.inverses):
            tensor = along(tensor, axis + 1, inverse.T)
        tensor = tensor * self._variances
        for axis, inverse in enumerate(self.inverses):
            tensor = along(tensor, axis + 1, inverse)
        return tensor.reshape(rows.shape)

    def error_of(self, grams: Sequence[Array]) -> float:
        """Return tr(X^+ (G_1 x G_2 x ...))."""
        tensor = self._variances
        for inverse, gram in zip(self.inverses, grams, strict=True):
            tensor = np.tensordot(_energies(inverse, gram), tensor, axes=(0, 0))
        return float(tensor)

    def sensitivity(self, axis: int, grams: Sequence[Array]) -> Array:
        """Return the derivative of ``error_of`` with respect to the Gram matrix of one axis."""
        tensor = np.moveaxis(self._variances, axis, -1)
        for other, (inverse, gram) in enumerate(zip(self.inverses, grams, strict=True)):
            if other != axis:
                tensor = np.tensordot(_energies(inverse, gram), tensor, axes=(0, 0))
        own = self.inverses[axis]
        return (own * tensor) @ own.T


def _right_inverse(design: Design) -> Array:
    """Return D B' (B D B')^-1, where B D B' is diagonal.

    On queries in the row space of B it agrees with the pseudo-inverse; unlike that it is also the one with
    which the error changes as the queries' null space moves (the envelope of the dual problem).
    """
    if isinstance(design, SumDesign):
        return design.inverse
    weighted = design.factor * design.p
    return np.asarray(weighted.T / np.einsum("aj,aj->a", weighted, design.factor))


def _energies(inverse: Array, gram: Array) -> Array:
    return np.asarray(np.einsum("ia,ia->a", inverse, gram @ inverse))


def _partial(problem: StructuredProblem, axis: int, designs: list[Design]) -> Array:
    """Return the Gram matrix that an axis sees with the strategies of all others fixed."""
    inverses = [_right_inverse(design) for design in designs]
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


def _first_designs(problem: StructuredProblem, gap: float, solve: SolveGram) -> list[Design]:
    """Return each axis's optimum with all others taken as unknown."""
    axes = range(len(problem.sizes))
    designs = []
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
        designs.append(solve(start, (len(start),), gap, None))
    return designs


def _row_weights(energies: Array, squares: Sequence[Array], y: Array) -> tuple[Array, float, float]:
    """Minimize sum(d / lambda) subject to column norms at most 1; return lambda, its error and a bound."""
    best: tuple[float, Array] | None = None
    bound = 0.0
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
        if best is None or error < best[0]:
            best = (error, weights / peak)
        if best[0] <= bound * (1.0 + _WEIGHT_GAP):
            break
        y = y * norms
        y = y / y.sum()
    assert best is not None
    return best[1], best[0], bound


def solve_structured(
    problem: StructuredProblem,
    gap: float,
    weigh_rows: bool = True,
    start: Sequence[Design] | None = None,
    solve: SolveGram = solve_gram,
) -> StructuredDesign:
    """Solve by alternating over factors, then weight the rows of their product.

    Parameters
    ----------
    problem : StructuredProblem
    gap : float
        Relative gap of every explicit problem on one axis.
    weigh_rows : bool
        Whether to weight the rows of the product; without it the result is the best product found.
    start : sequence of Design, optional
        The designs of a similar problem, to alternate from.
    solve : callable, optional
        The sub-solver of one axis; one for Laplace noise takes no row weights.

    Returns
    -------
    StructuredDesign
        Without a certificate: the class is not that of all strategies.

    References
    ----------
    McKenna et al. 2018, section 6.1 (alternation over the factors of one product). The row weights are
    ResidualPlanner-like scales in a fixed basis.

    Examples
    --------
    >>> import numpy as np
    >>> eye, ones = np.eye(4), np.ones((4, 4))
    >>> problem = StructuredProblem((4, 4), [(1.0, [eye, ones]), (1.0, [ones, eye])], [])
    >>> solve_structured(problem, 1e-8).loss < 16.0
    True
    """
    axes = range(len(problem.sizes))
    designs = list(start) if start is not None else _first_designs(problem, gap, solve)
    loss = math.inf
    best, best_loss = designs, math.inf
    for _ in range(_SWEEPS):
        before = loss
        for axis in axes:
            seen = _partial(problem, axis, designs)
            known = designs[axis]
            begin = known.factor if isinstance(known, SumDesign) else known.p
            designs[axis] = solve(seen, (len(seen),), gap, begin)
            loss = designs[axis].loss
        if isinstance(designs[0], SumDesign) and loss < best_loss:
            best, best_loss = list(designs), loss  # a search may end above where it began
        if loss > before * (1.0 - 1e-5):
            break
    if best_loss < math.inf:
        designs, loss = best, best_loss
    plain = StructuredDesign(designs, None, loss)
    if not weigh_rows:
        return plain
    inverses = plain.inverses
    energies = problem.row_energies(inverses)
    start_y = np.ones(())
    for design in designs:
        start_y = np.multiply.outer(start_y, design.p / design.p.sum())
    start_y = 0.99 * start_y + 0.01 / start_y.size
    weights, error, _ = _row_weights(energies, [d.factor**2 for d in designs], start_y)
    if error > loss * (1.0 - 1e-4):
        return plain
    # a row that hardly matters still has to be measured: keep the spread of the weights within 2^16
    weights = np.maximum(weights, float(weights.max()) * 2.0**-16)
    norms = weights
    for axis, design in enumerate(designs):
        norms = along(norms, axis, (design.factor**2).T)
    weights = weights / float(norms.max())
    return StructuredDesign(designs, weights, float((energies / weights).sum()))
