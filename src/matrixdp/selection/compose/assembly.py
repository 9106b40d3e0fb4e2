"""From solved sub-workloads to a plan: integer matrices, and the closed-form split of the privacy cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact import MeasuredMatrix, MergedMatrix
from matrixdp.exact.resources import THREADED_CELLS
from matrixdp.noise import Noise
from matrixdp.plan import Block, Part, Plan
from matrixdp.plan import Split as SplitPlan
from matrixdp.selection.compose.product import Product
from matrixdp.selection.compose.rounding import measured_matrix, merged_matrix
from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolution, SubSolver
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.problem.residuals import Split, SubWorkload

__all__ = ["Assembly", "assemble", "row_multipliers"]

Array = NDArray[np.float64]

#: log2 of the largest row multiplier.
_MULTIPLIER_BITS = 12

_Pieces = list[tuple[tuple[int, ...], MeasuredMatrix]]
_Draft = tuple[SubWorkload, _Pieces, NDArray[np.int64] | None, float]


def _broadcast(multipliers: NDArray[np.int64], rows: list[int]) -> NDArray[np.int64]:
    shape = [1] * (len(rows) - multipliers.ndim) + list(multipliers.shape)
    return np.ascontiguousarray(np.broadcast_to(multipliers.reshape(shape), rows))


def _variances(drafts: list[_Draft], noise: Noise) -> list[float]:
    """Return the noise variances at privacy cost 1 with the least sum of variance times trace."""
    matrices = []
    for _, pieces, multipliers, _ in drafts:
        blocks = tuple(Block((str(i),), matrix) for i, (_, matrix) in enumerate(pieces))
        matrices.append(Part(tuple(b.attributes[0] for b in blocks), blocks, 1.0, multipliers))
    losses = [noise.variance(matrix) * trace for matrix, (*_, trace) in zip(matrices, drafts, strict=True)]
    shares = noise.best_shares(losses, [len(sub.marginals) for sub, *_ in drafts])
    return [noise.variance(matrix, share) for matrix, share in zip(matrices, shares, strict=True)]


def row_multipliers(found: Product, matrices: Sequence[MeasuredMatrix]) -> NDArray[np.int64] | None:
    """Return the roots of a product's row weights as integers, for the rows of its measured matrices."""
    if found.multipliers is None:
        return None
    roots = np.sqrt(found.multipliers)
    # rows that only keep the support exact are weighted like the rows beside them
    pads = [(0, matrix.rows - n) for matrix, n in zip(matrices, roots.shape, strict=True)]
    padded = np.pad(roots, pads, mode="mean")
    return np.asarray(np.maximum(np.rint(padded / padded.max() * 2**_MULTIPLIER_BITS), 1.0), dtype=np.int64)


@dataclass(eq=False)
class Assembly:
    """Rounds each distinct block once and evaluates what the rounding costs."""

    solver: SubSolver
    matrices: dict[Hashable, MeasuredMatrix] = field(default_factory=dict)
    traces: dict[Hashable, float] = field(default_factory=dict)
    products: dict[Hashable, tuple[list[MeasuredMatrix], NDArray[np.int64] | None, float]] = field(
        default_factory=dict
    )

    def matrix(self, block: BlockSolution, factor: Factor) -> MeasuredMatrix:
        """Return the integer matrix of a block; blocks of equal content share it."""
        if block.key not in self.matrices:
            if block.merged is None:
                found = measured_matrix(factor, self.solver.noise)
            else:
                found = merged_matrix(*block.merged, self.solver.noise)
            self.matrices[block.key] = found
        return self.matrices[block.key]

    def trace(self, sub: SubWorkload, block: BlockSolution, factor: Factor) -> float:
        """Return the total squared error of a block under unit noise, after rounding."""
        if block.key not in self.traces:
            matrix = self.matrix(block, factor)
            # what rounding changes of a share of the budget is nothing beside the time that it takes to know
            cells = factor.cells if block.merged is None else block.merged[0].cells
            large = cells >= THREADED_CELLS and factor.dual is not None
            if large or isinstance(factor.strategy, MeasuredMatrix):  # measured as it is
                self.traces[block.key] = factor.loss / matrix.squared_sensitivity
            else:
                explicit = self.solver.explicit
                if isinstance(matrix, MergedMatrix):
                    matrix, explicit = matrix.matrix, self.solver.grouped
                covariance = matrix.covariance()
                total = 0.0
                if block.terms:
                    total += float(np.einsum("ij,ij->", covariance, self.solver.gram(block.terms)))
                if len(block.axes) == len(sub.types):
                    for weight, rows in explicit(sub):
                        total += weight * float(np.einsum("qi,qi->", rows @ covariance, rows))
                self.traces[block.key] = total
        return self.traces[block.key]

    def product(
        self, sub: SubWorkload, block: BlockSolution, found: Product
    ) -> tuple[list[MeasuredMatrix], NDArray[np.int64] | None, float]:
        """Return a product's matrices, integer row multipliers and total squared error."""
        if block.key not in self.products:
            noise, weighted = self.solver.noise, found.multipliers is not None
            matrices = [measured_matrix(factor, noise, weighted=weighted) for factor in found.factors]
            multipliers = row_multipliers(found, matrices)
            scale = np.ones(()) if multipliers is None else np.asarray(multipliers, dtype=float)
            problem = self.solver.problem(sub, block.axes, block.terms, self.solver.explicit(sub))
            energies = problem.row_energies([m.solve(np.eye(m.rows)) for m in matrices])
            self.products[block.key] = (matrices, multipliers, float((energies / scale**2).sum()))
        return self.products[block.key]


def assemble(
    domain: Domain,
    split: Split,
    solver: SubSolver,
    solutions: list[tuple[SubWorkload, SubSolution]],
) -> Plan:
    """Return the plan that measures every sub-workload with its optimal share of the privacy cost."""
    assembly = Assembly(solver)
    drafts: list[_Draft] = []
    for sub, solution in solutions:
        pieces: list[tuple[tuple[int, ...], MeasuredMatrix]] = []
        multipliers: NDArray[np.int64] | None = None
        trace = solution.scale
        for block in solution.blocks:
            if isinstance(block.found, Factor):
                pieces.append((block.axes, assembly.matrix(block, block.found)))
                trace *= assembly.trace(sub, block, block.found)
            else:
                matrices, multipliers, share = assembly.product(sub, block, block.found)
                pieces += [((axis,), matrix) for axis, matrix in zip(block.axes, matrices, strict=True)]
                trace *= share
        if multipliers is not None:
            # the structured block stands last; the blocks before it have no row weights of their own
            multipliers = _broadcast(multipliers, [matrix.rows for _, matrix in pieces])
        drafts.append((sub, pieces, multipliers, trace))
    parts = []
    for (sub, pieces, multipliers, _), variance in zip(drafts, _variances(drafts, solver.noise), strict=True):
        for marginal in sub.marginals:
            blocks = tuple(
                [Block(tuple([marginal[axis] for axis in axes]), matrix) for axes, matrix in pieces]
            )
            parts.append(Part(marginal, blocks, variance, multipliers))
    weights = {}
    for name in domain.names:
        type_ = split.types.get(name)
        size = domain[name].size
        weights[name] = np.full(size, 1.0 / size) if type_ is None else solver.pieces.weights[type_]
    return SplitPlan(domain, tuple(parts), solver.noise, weights)
