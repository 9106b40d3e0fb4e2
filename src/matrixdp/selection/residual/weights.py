"""Choosing the weight vectors: minimize phi(w), the sum over sub-workloads of sqrt(L(w)).

The square of phi is the total squared error of the decomposition at privacy cost 1. Under Laplace noise the
cube roots take the place of the square roots, and twice the cube of phi that of its square. By the envelope
theorem the gradient of sqrt(L) is tr(N dV) / 2 with the optimal N of each sub-workload, so an evaluation
costs the sub-workloads' own solutions and little more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import scipy.optimize
from numpy.typing import NDArray

from matrixdp.noise import GAUSSIAN, Noise
from matrixdp.selection.convex import Design, solve_gram
from matrixdp.selection.residual.laplace import MAX_FAST_CELLS, solve_sum_gram, solve_sum_rows
from matrixdp.selection.residual.pieces import Pieces
from matrixdp.selection.residual.split import Split, SubWorkload
from matrixdp.selection.residual.structured import StructuredDesign
from matrixdp.selection.residual.subproblem import BlockSolution, SubSolution, SubSolver

#: While weights are searched, larger sub-workloads that do not factor are solved by structure.
MAX_SEARCHED_CELLS = 420
MAX_SEARCHED_ROW_CELLS = 1_000

__all__ = ["MAX_SEARCHED_ROW_CELLS", "Objective", "optimized_weights", "uniform_weights"]

Array = NDArray[np.float64]


def _low_rank(scale: float, factor: Array, rows: Array) -> Array:
    """Return rows times scale Z'Z."""
    return scale * ((rows @ factor.T) @ factor)


def _scaled_image(scale: float, design: StructuredDesign, rows: Array) -> Array:
    """Return rows times scale X^+."""
    return scale * design.covariance_image(rows)


def uniform_weights(split: Split) -> list[Array]:
    """Return 1/n for every value of every attribute type: QuerySmasher's choice."""
    return [np.full(size, 1.0 / size) for size in split.sizes]


@dataclass(eq=False)
class Objective:
    """phi(w) and its gradient.

    Parameters
    ----------
    split : Split
    noise : Noise
    gap : float
        Relative gap of the sub-solutions; the optimization of w needs less than the final strategy.
    """

    split: Split
    noise: Noise
    gap: float = 1e-7
    joint_gap: float = 1e-5
    starts: dict[Hashable, Array] = field(default_factory=dict)
    products: dict[Hashable, list[Design]] = field(default_factory=dict)
    evaluations: int = 0

    @property
    def power(self) -> float:
        """The power of a sub-workload's loss that phi sums."""
        return self.noise.share_power

    def _solver(self, pieces: Pieces, gap: float) -> SubSolver:
        solver = SubSolver(
            pieces, self.noise, gap, MAX_SEARCHED_CELLS, MAX_SEARCHED_ROW_CELLS, weigh_rows=False
        )
        solver.starts, solver.products = self.starts, self.products
        if self.noise.norm == 1:
            solver.gap = max(gap, 1e-5)
            solver.dense = partial(solve_sum_gram, effort="fast")
            solver.dense_rows = partial(solve_sum_rows, effort="fast")
            solver.joint_cells = MAX_FAST_CELLS
        return solver

    def __call__(self, weights: list[Array]) -> tuple[float, list[Array]]:
        """Return phi and its gradient with respect to each type's weight vector."""
        self.evaluations += 1
        pieces = Pieces(self.split, weights)
        loosest = max((len(c.sizes) for c in self.split.classes), default=0)
        gap = self.gap if loosest < 2 else self.joint_gap
        solver = self._solver(pieces, gap)
        gradient = [np.zeros(size) for size in self.split.sizes]
        mean_squares = np.zeros(len(self.split.slots))  # d phi / d t of each slot
        sensitivities: dict[int, Array] = {}  # d phi / d (P'VP) of each slot
        axis_use: dict[Hashable, tuple[BlockSolution, float]] = {}
        phi = 0.0
        for sub in self.split.classes:
            solution = solver.solve(sub)
            if solution is None:
                continue
            value = len(sub.marginals) * solution.bound**self.power
            phi += value
            self._spread(solver, sub, solution, value, gradient, mean_squares, sensitivities, axis_use)
        for block, value in axis_use.values():
            assert block.design is not None
            middle = self.power * value / math.sqrt(block.bound) * block.design.gradient
            for term in block.terms:
                slot = term.kept[0]
                current = sensitivities.get(slot)
                addition = term.coefficient * middle
                sensitivities[slot] = addition if current is None else current + addition
        for number, definition in enumerate(self.split.slots):
            w = weights[definition.type]
            if not self.split.free[definition.type]:
                continue
            gram = definition.predicates.gram(definition.size)
            gradient[definition.type] += 2.0 * mean_squares[number] * (gram @ w)
            if number in sensitivities:
                image = sensitivities[number].sum(axis=1)
                gradient[definition.type] -= 2.0 * (gram @ (image - w * image.sum()))
        return phi, gradient

    def _spread(
        self,
        solver: SubSolver,
        sub: SubWorkload,
        solution: SubSolution,
        value: float,
        gradient: list[Array],
        mean_squares: Array,
        sensitivities: dict[int, Array],
        axis_use: dict[Hashable, tuple[BlockSolution, float]],
    ) -> None:
        """Add one class's share (its value in phi) to the gradient and the slots' derivatives."""
        pieces = solver.pieces
        joint: BlockSolution | None = None
        for block in solution.blocks:
            if len(block.axes) == 1 and not solution.has_rows:
                if block.design is not None:
                    use = (block.key, tuple(term.kept for term in block.terms))
                    known = axis_use.get(use)
                    axis_use[use] = (block, value + (known[1] if known else 0.0))
            else:
                joint = block
        if joint is not None and joint.structured is not None:
            self._spread_structured(
                solver, sub, joint, self.power * value / joint.loss, gradient, sensitivities
            )
        elif joint is not None:
            assert joint.design is not None
            share = self.power * value / math.sqrt(joint.bound)
            self._spread_joint(solver, sub, joint, share, gradient, sensitivities)
        shares = self._term_shares(solver, sub, solution, value)
        for product, share in zip(sub.products, shares, strict=True):
            for slot in product.contracted:
                t = pieces.slots[slot].mean_square
                if t > 0.0:
                    mean_squares[slot] += share / t
        if not sub.types:
            for item in sub.rows:
                scale = self.power * value / solution.bound * item.weight
                for type_, part in pieces.explicit_gradient(
                    item.explicit, item.kept, partial(np.multiply, scale)
                ):
                    gradient[type_] += part

    def _term_shares(
        self, solver: SubSolver, sub: SubWorkload, solution: SubSolution, value: float
    ) -> list[float]:
        """Return, for each product term, d value / d log(coefficient)."""
        pieces = solver.pieces
        mixed = [block for block in solution.blocks if len(block.terms) > 1 or solution.has_rows]
        shares = []
        for product in sub.products:
            weight = product.weight
            for slot in product.contracted:
                weight *= pieces.slots[slot].mean_square
            if not sub.types:
                shares.append(self.power * value * weight / solution.bound)
                continue
            if not mixed:
                # one common Kronecker product: the shares are those of the coefficients
                for slot in product.kept:
                    piece = pieces.slots[slot]
                    weight *= piece.ratio
                    if piece.gram is None:
                        weight *= piece.coefficient / pieces.slots[piece.representative].coefficient
                shares.append(self.power * value * weight / solution.scale)
                continue
            block = mixed[0]
            if block.structured is not None:
                grams = []
                for axis, slot in enumerate(product.kept):
                    piece = pieces.slots[slot]
                    weight *= piece.ratio
                    if axis in block.axes:
                        grams.append(solver.slot_gram(piece.representative))
                error = block.structured.error_of(grams) * weight / solution.scale
                shares.append(self.power * value * error / block.loss)
                continue
            assert block.design is not None
            inner = np.full((1, 1), weight / solution.scale)
            for axis, slot in enumerate(product.kept):
                piece = pieces.slots[slot]
                if axis in block.axes:
                    inner = np.kron(inner, piece.ratio * solver.slot_gram(piece.representative))
                else:
                    inner = inner * piece.ratio
            trace = float(np.einsum("ij,ij->", block.design.gradient, inner))
            shares.append(self.power * value * trace / math.sqrt(block.bound))
        return shares

    def _spread_joint(
        self,
        solver: SubSolver,
        sub: SubWorkload,
        block: BlockSolution,
        share: float,
        gradient: list[Array],
        sensitivities: dict[int, Array],
    ) -> None:
        assert block.design is not None
        sizes = [sub.sizes[axis] for axis in block.axes]
        middle = share * block.design.gradient if block.terms else np.zeros((0, 0))
        for term in block.terms:
            grams = [solver.slot_gram(slot) for slot in term.kept]
            tensor = middle.reshape(*sizes, *sizes)
            for axis, slot in enumerate(term.kept):
                contracted = tensor
                kept_axes = len(sizes)
                for other in range(len(sizes) - 1, -1, -1):
                    if other != axis:
                        contracted = np.tensordot(
                            contracted, grams[other], axes=((other, other + kept_axes), (0, 1))
                        )
                        kept_axes -= 1
                addition = term.coefficient * contracted
                current = sensitivities.get(slot)
                sensitivities[slot] = addition if current is None else current + addition
        factor = block.design.gradient_factor
        for item in sub.rows:
            scale = share * item.weight
            for type_, part in solver.pieces.explicit_gradient(
                item.explicit, item.kept, partial(_low_rank, scale, factor)
            ):
                gradient[type_] += part

    def _spread_structured(
        self,
        solver: SubSolver,
        sub: SubWorkload,
        block: BlockSolution,
        share: float,
        gradient: list[Array],
        sensitivities: dict[int, Array],
    ) -> None:
        design = block.structured
        assert design is not None
        for term in block.terms:
            grams = [solver.slot_gram(slot) for slot in term.kept]
            for axis, slot in enumerate(term.kept):
                addition = share * term.coefficient * design.sensitivity(axis, grams)
                current = sensitivities.get(slot)
                sensitivities[slot] = addition if current is None else current + addition
        for item in sub.rows:
            scale = share * item.weight
            for type_, part in solver.pieces.explicit_gradient(
                item.explicit, item.kept, partial(_scaled_image, scale, design)
            ):
                gradient[type_] += part


def _starting_points(split: Split) -> list[list[Array]]:
    """Return per-type candidates: the optimum of each attribute's own queries, its dual, and uniform."""
    uniform = uniform_weights(split)
    own, dual = list(uniform), list(uniform)
    grams: dict[int, Array] = {}
    for slot in split.slots:
        if split.free[slot.type]:
            gram = slot.predicates.gram(slot.size)
            if not float(np.trace(gram)) > 0:
                continue
            grams[slot.type] = grams.get(slot.type, np.zeros_like(gram)) + gram / np.trace(gram)
    for item in split.explicit:
        tensor = item.rows.reshape(len(item.rows), *item.sizes)
        for axis, type_ in enumerate(item.types):
            rows = tensor.mean(axis=tuple(i + 1 for i in range(len(item.sizes)) if i != axis))
            gram = rows.T @ rows
            if float(np.trace(gram)) > 0:
                grams[type_] = grams.get(type_, np.zeros_like(gram)) + gram / np.trace(gram)
    for type_, gram in grams.items():
        design = solve_gram(gram, gap=1e-8)
        dual[type_] = design.p / design.p.sum()
        own[type_] = _exact_weights(design.factor)
    return [own, dual, uniform]


def _exact_weights(factor: Array) -> Array:
    """Return w = X^+ 1 / (1' X^+ 1), or the null vector with sum 1 where 1 is not in the row space of X."""
    size = factor.shape[1]
    ones = np.ones(size)
    _, values, right = np.linalg.svd(factor, full_matrices=True)
    rank = int((values > 1e-9 * values[0]).sum())
    null = right[rank:]
    outside = null.T @ (null @ ones)
    if float(outside @ ones) > 1e-6 * size:
        return np.asarray(outside / (outside @ ones))
    weights = right[:rank].T @ ((right[:rank] @ ones) / values[:rank] ** 2)
    return np.asarray(weights / weights.sum())


def optimized_weights(
    split: Split,
    max_evaluations: int = 80,
    report: Callable[[int, float], None] | None = None,
) -> tuple[list[Array], int]:
    """Minimize phi over the weight vectors of all attribute types that are not symmetric.

    Parameters
    ----------
    split : Split
    max_evaluations : int
        Evaluations of phi by L-BFGS, after the starting points'.
    report : callable, optional
        Called with the number of evaluations and phi.

    Returns
    -------
    weights : list of ndarray
        One vector with sum 1 for each attribute type.
    evaluations : int
        How many were made.

    Notes
    -----
    phi is convex in each weight vector but not smooth where ranks change, so the search starts from the
    best of three points and keeps the best point that it meets.
    """
    uniform = uniform_weights(split)
    free = [t for t, is_free in enumerate(split.free) if is_free]
    if not free:
        return uniform, 0
    objective = Objective(split, GAUSSIAN)
    best: tuple[float, list[Array]] | None = None

    def look(weights: list[Array]) -> tuple[float, list[Array]]:
        nonlocal best
        phi, gradient = objective(weights)
        if best is None or phi < best[0]:
            best = (phi, weights)
        if report is not None:
            report(objective.evaluations, phi)
        return phi, gradient

    own, *others = _starting_points(split)
    for candidate in (own, *others):
        look(candidate)
    assert best is not None
    start = best[1]
    ends = np.cumsum([split.sizes[t] for t in free])
    scale = best[0]

    def unpack(flat: Array) -> list[Array]:
        weights = list(uniform)
        for t, v in zip(free, np.split(flat, ends[:-1]), strict=True):
            weights[t] = v + (1.0 - v.sum()) / len(v)
        return weights

    def function(flat: Array) -> tuple[float, Array]:
        phi, gradient = look(unpack(flat))
        parts = [gradient[t] - gradient[t].mean() for t in free]
        return phi / scale, np.concatenate(parts) / scale

    # uniform weights can be a kink from which no gradient leads down: then search from the optimum of each
    # attribute's own queries too
    searched = [start] if start is own else [start, own]
    for point in searched:
        scipy.optimize.minimize(
            function,
            np.concatenate([point[t] for t in free]),
            jac=True,
            method="L-BFGS-B",
            options={"maxfun": max_evaluations, "maxcor": 20, "ftol": 3e-8, "gtol": 1e-9},
        )
    return best[1], objective.evaluations
