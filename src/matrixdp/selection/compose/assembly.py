"""From solved sub-workloads to a plan: integer matrices, and the closed-form split of the privacy cost."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import Array
from matrixdp.exact.structured import over_groups
from matrixdp.noise import Noise
from matrixdp.plans import Block, Part, Plan
from matrixdp.plans import Split as SplitPlan
from matrixdp.selection.compose.product import Product
from matrixdp.selection.compose.rounding import measured_matrix
from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolution, SubSolver
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.problem.residuals import SubWorkload

Measured = dict[Hashable, tuple[list[MeasuredMatrix], NDArray[np.int64] | None]]
"""The integer matrices of blocks, and the multipliers of their rows, by the key of the block."""

#: log2 of the largest row multiplier.
_MULTIPLIER_BITS = 12


def _broadcast(multipliers: NDArray[np.int64], rows: list[int]) -> NDArray[np.int64]:
    shape = [1] * (len(rows) - multipliers.ndim) + list(multipliers.shape)
    return np.ascontiguousarray(np.broadcast_to(multipliers.reshape(shape), rows))


def row_multipliers(found: Product, matrices: Sequence[MeasuredMatrix]) -> NDArray[np.int64] | None:
    """Return the roots of a product's row weights as integers, for the rows of its measured matrices."""
    if found.multipliers is None:
        return None
    roots = np.sqrt(found.multipliers)
    # rows that only keep the support exact are weighted like the rows beside them
    pads = [(0, matrix.rows - n) for matrix, n in zip(matrices, roots.shape, strict=True)]
    padded = np.pad(roots, pads, mode="mean")
    return np.asarray(np.maximum(np.rint(padded / padded.max() * 2**_MULTIPLIER_BITS), 1.0), dtype=np.int64)


def _measured(block: BlockSolution, noise: Noise) -> tuple[list[MeasuredMatrix], NDArray[np.int64] | None]:
    """Return the integer matrices of a block, and the integer multipliers of their rows."""
    found = Product((block.found,), block.found.loss) if isinstance(block.found, Factor) else block.found
    weighted = found.multipliers is not None
    matrices = [measured_matrix(factor, noise, weighted=weighted) for factor in found.factors]
    multipliers = row_multipliers(found, matrices)
    if block.groups is not None:
        own = [block.groups] if len(matrices) == 1 else [(group,) for group in block.groups]
        pairs = zip(matrices, own, strict=True)
        matrices = [over_groups(matrix, groups) for matrix, groups in pairs]
    return matrices, multipliers


def measured_pieces(
    solution: SubSolution, noise: Noise, known: Measured
) -> tuple[list[tuple[tuple[int, ...], MeasuredMatrix]], NDArray[np.int64] | None]:
    """Return the axes and integer matrices of a class, and the multipliers of the rows of the last."""
    pieces: list[tuple[tuple[int, ...], MeasuredMatrix]] = []
    multipliers: NDArray[np.int64] | None = None
    for block in solution.blocks:
        if block.key not in known:
            known[block.key] = _measured(block, noise)
        matrices, multipliers = known[block.key]
        axes = [block.axes] if len(matrices) == 1 else [(axis,) for axis in block.axes]
        pieces += zip(axes, matrices, strict=True)
    return pieces, multipliers


def weights_by_name(domain: Domain, solver: SubSolver) -> dict[str, Array]:
    """Return the weight vector of every attribute; uniform where nothing is asked of it."""
    types, vectors = solver.pieces.split.types, solver.pieces.weights
    even = {one.name: one.size for one in domain.attributes if one.name not in types}
    return {n: np.full(even[n], 1.0 / even[n]) if n in even else vectors[types[n]] for n in domain.names}


def assemble(
    domain: Domain,
    solver: SubSolver,
    solutions: list[tuple[SubWorkload, SubSolution]],
) -> Plan:
    """Return the plan that measures every sub-workload with its optimal share of the privacy cost."""
    noise, parts = solver.noise, []
    known: Measured = {}
    # before rounding: what that changes of a share of the budget is nothing
    losses = [noise.variance_factor * solution.loss for _, solution in solutions]
    shares = noise.best_shares(losses, [len(sub.marginals) for sub, _ in solutions])
    for (sub, solution), share in zip(solutions, shares, strict=True):
        pieces, multipliers = measured_pieces(solution, noise, known)
        if multipliers is not None:
            # the structured block stands last; the blocks before it have no row weights of their own
            multipliers = _broadcast(multipliers, [matrix.rows for _, matrix in pieces])
        variance: float | None = None
        made: list[dict[tuple[str, ...], Block]] = [{} for _ in pieces]  # many marginals have few blocks
        for marginal in sub.marginals:
            own = []
            for (places, matrix), same in zip(pieces, made, strict=True):
                names = tuple([marginal[axis] for axis in places])
                if names not in same:
                    same[names] = Block(names, matrix)
                own.append(same[names])
            blocks = tuple(own)
            if variance is None:
                variance = noise.variance(Part(marginal, blocks, 1.0, multipliers), share)
            parts.append(Part(marginal, blocks, variance, multipliers))
    return SplitPlan(domain, tuple(parts), solver.noise, weights_by_name(domain, solver))
