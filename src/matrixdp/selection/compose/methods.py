"""What a certificate says about sub-workloads that were not solved to their optimum."""

from __future__ import annotations

import math
from collections import defaultdict

from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolution, SubSolver
from matrixdp.selection.gram.singular_values import svd_bound_gram
from matrixdp.selection.problem.residuals import SubWorkload

__all__ = ["block_excess", "describe_methods"]

#: The singular value bound of a block is computed up to this many cells.
MAX_BOUNDED_CELLS = 2_000


def block_excess(solver: SubSolver, sub: SubWorkload, block: BlockSolution) -> float | None:
    """Return the block's error over its singular value bound, less 1, as RMSE; None where it is not known."""
    if block.found.cells > MAX_BOUNDED_CELLS:
        return None
    explicit = solver.explicit(sub) if len(block.axes) == len(sub.types) else []
    bound = svd_bound_gram(solver.gram(block.terms, explicit))
    return max(math.sqrt(block.found.loss / bound) - 1.0, 0.0)


def describe_methods(solver: SubSolver, solved: list[tuple[SubWorkload, SubSolution]]) -> str:
    """Return which sub-workloads are not at their optimum and what that loses, or nothing if all are."""
    found: dict[str, list[tuple[int, float | None]]] = defaultdict(list)
    for sub, solution in solved:
        for block in solution.blocks:
            if block.method != "optimum":
                found[block.method].append((len(sub.marginals), block_excess(solver, sub, block)))
    texts = []
    for method, uses in found.items():
        count = sum(marginals for marginals, _ in uses)
        known = [excess for _, excess in uses if excess is not None]
        loss = "by how much it loses is not known"
        if len(known) == len(uses):
            loss = f"at most {100 * max(known):.2g}% above the least RMSE"
        noun = "marginal" if count == 1 else "marginals"
        texts.append(f"{method} instead of the optimum on {count} {noun}, {loss}")
    return "".join(f"; {text}" for text in texts)
