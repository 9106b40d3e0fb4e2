"""From solved sub-workloads to a plan: integer matrices, and the closed-form split of the privacy cost."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.linops import CenteredMatrix, MeasuredMatrix
from matrixdp.select.residual.split import Split, SubWorkload
from matrixdp.select.residual.subproblem import BlockSolution, SubSolution, SubSolver
from matrixdp.select.rounding import measured_matrix
from matrixdp.strategy import Block, Part, Plan

__all__ = ["Assembly", "assemble"]

Array = NDArray[np.float64]


@dataclass(eq=False)
class Assembly:
    """Rounds each distinct block once and evaluates what the rounding costs."""

    solver: SubSolver
    matrices: dict[Hashable, MeasuredMatrix] = field(default_factory=dict)
    traces: dict[Hashable, float] = field(default_factory=dict)

    def matrix(self, block: BlockSolution) -> MeasuredMatrix:
        """Return the integer matrix of a block; blocks of equal content share it."""
        if block.key not in self.matrices:
            self.matrices[block.key] = measured_matrix(block.design, block.size)
        return self.matrices[block.key]

    def trace(self, sub: SubWorkload, block: BlockSolution) -> float:
        """Return the total squared error of a block under unit noise, after rounding."""
        if block.key not in self.traces:
            matrix = self.matrix(block)
            if isinstance(matrix, CenteredMatrix):
                self.traces[block.key] = block.loss / matrix.squared_sensitivity
            else:
                total = 0.0
                covariance = matrix.covariance()
                if block.terms:
                    total += float(np.einsum("ij,ij->", covariance, self.solver.gram(block.terms)))
                if len(block.axes) == len(sub.types) and sub.rows:
                    for item in sub.rows:
                        rows = self.solver.pieces.explicit_rows(item.explicit, item.kept)
                        total += item.weight * float(np.einsum("qi,qi->", rows @ covariance, rows))
                self.traces[block.key] = total
        return self.traces[block.key]


def assemble(
    domain: Domain,
    split: Split,
    solver: SubSolver,
    solutions: list[tuple[SubWorkload, SubSolution]],
) -> Plan:
    """Return the plan that measures every sub-workload with its optimal share of the privacy cost.

    Parameters
    ----------
    domain : Domain
    split : Split
    solver : SubSolver
        At the final weights.
    solutions : list of (SubWorkload, SubSolution)

    Returns
    -------
    Plan
        With variances sqrt(c / trace) * sum sqrt(c trace), c the squared sensitivity of each part: the
        minimum of sum(variance * trace) subject to sum(c / variance) = 1.
    """
    assembly = Assembly(solver)
    drafts: list[tuple[SubWorkload, list[MeasuredMatrix], SubSolution, int, float]] = []
    for sub, solution in solutions:
        matrices = [assembly.matrix(block) for block in solution.blocks]
        sensitivity = math.prod(matrix.squared_sensitivity for matrix in matrices)
        trace = solution.scale * math.prod(assembly.trace(sub, block) for block in solution.blocks)
        drafts.append((sub, matrices, solution, sensitivity, trace))
    root = math.fsum(len(d[0].marginals) * math.sqrt(d[3] * d[4]) for d in drafts)
    parts = []
    for sub, matrices, solution, sensitivity, trace in drafts:
        variance = math.sqrt(sensitivity / trace) * root
        for marginal in sub.marginals:
            blocks = tuple(
                Block(tuple(marginal[axis] for axis in block.axes), matrix)
                for block, matrix in zip(solution.blocks, matrices, strict=True)
            )
            parts.append(Part(marginal, blocks, variance))
    weights = {}
    for name in domain.names:
        type_ = split.types.get(name)
        size = domain[name].size
        weights[name] = np.full(size, 1.0 / size) if type_ is None else solver.pieces.weights[type_]
    return Plan(domain, tuple(parts), weights)
