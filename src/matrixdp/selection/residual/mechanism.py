"""The decomposition as a mechanism: optimized weights, uniform weights, or the Fourier sub-solver."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from matrixdp.errors import WorkloadError
from matrixdp.selection.residual.assemble import assemble
from matrixdp.selection.residual.fourier import MAX_FOURIER_CELLS, fourier_gram, fourier_rows
from matrixdp.selection.residual.pieces import Pieces
from matrixdp.selection.residual.split import Split, split_workload
from matrixdp.selection.residual.subproblem import SubSolution, SubSolver
from matrixdp.selection.residual.weights import optimized_weights, uniform_weights
from matrixdp.selection.selection import Certificate
from matrixdp.strategy import Plan
from matrixdp.workload import Workload

__all__ = ["select_by_decomposition"]

Progress = Callable[[str, float | None], None]


def _is_exact(split: Split, solver: SubSolver, solutions: list[SubSolution]) -> bool:
    """Return whether the sub-workloads' optima together are the optimum of the whole.

    With uniform weights and Gram matrices that have 1 as an eigenvector the workload's Gram matrix is the
    direct sum of the sub-workloads'; if moreover the uniform dual distribution is optimal for each of
    them, it is a dual point of the whole, and its bound is the square of the sum of theirs.
    """
    if split.explicit or any(b.structured for solution in solutions for b in solution.blocks):
        return False
    for number, slot in enumerate(split.slots):
        w = solver.pieces.weights[slot.type]
        if float(np.abs(w - 1.0 / slot.size).max()) > 1e-12:
            return False
        if solver.pieces.slots[number].gram is not None:
            image = slot.predicates.gram(slot.size) @ np.ones(slot.size)
            if float(np.ptp(image)) > 1e-9 * float(np.abs(image).max()):
                return False
    designs = [block.design for solution in solutions for block in solution.blocks]
    # one iteration: the bound is the dual value at the uniform distribution itself
    return all(d is None or (d.iterations == 1 and float(np.ptp(d.p)) <= 1e-9 * d.p.max()) for d in designs)


def select_by_decomposition(
    workload: Workload,
    mechanism: str,
    gap: float,
    progress: Progress | None = None,
) -> tuple[Plan, Certificate]:
    """Select a strategy by splitting the workload into sub-workloads of marginals.

    Parameters
    ----------
    workload : Workload
    mechanism : str
        ``residual`` (optimized weight vectors), ``querysmasher`` (uniform ones) or ``fourier`` (uniform,
        with the Fourier basis as sub-solver).
    gap : float
        Relative gap of every sub-solution.
    progress : callable, optional
        Called with what is being done and the share done, if known.

    Returns
    -------
    plan : Plan
    certificate : Certificate

    References
    ----------
    QuerySmasher (2026), Algorithm 1 and Theorem 7 (uniform weights; the Fourier variant is Weighted
    Fourier Factorizations).
    """
    split = split_workload(workload)
    weights = uniform_weights(split)
    if mechanism == "residual":

        def report(evaluations: int, phi: float) -> None:
            if progress is not None:
                progress(f"optimizing weights ({evaluations} evaluations, error {phi:.6g})", None)

        weights, _ = optimized_weights(split, report=report)
    pieces = Pieces(split, weights)
    if mechanism == "fourier":
        solver = SubSolver(pieces, gap, MAX_FOURIER_CELLS, dense=fourier_gram, dense_rows=fourier_rows)
    else:
        solver = SubSolver(pieces, gap)
    solved = []
    for number, sub in enumerate(split.classes):
        solution = solver.solve(sub)
        if solution is not None and solution.loss > 0.0:
            solved.append((sub, solution))
        if progress is not None:
            progress("solving sub-workloads", (number + 1) / len(split.classes))
    if not solved:
        raise WorkloadError(
            "every query of the workload is zero on every record: there is nothing to measure"
        )
    # a sub-workload with less than this share of the error only holds rounding errors of zero pieces
    floor = 1e-16 * max(solution.loss for _, solution in solved)
    solved = [(sub, solution) for sub, solution in solved if solution.loss > floor]
    loss = math.fsum(len(sub.marginals) * math.sqrt(s.loss) for sub, s in solved) ** 2
    if mechanism != "fourier" and _is_exact(split, solver, [s for _, s in solved]):
        bound = math.fsum(len(sub.marginals) * math.sqrt(s.bound) for sub, s in solved) ** 2
        certificate = Certificate(loss, bound, "every Gaussian strategy (the sub-workloads are orthogonal)")
    else:
        certificate = Certificate(loss, None, "no bound for the decomposition at this size")
    return assemble(workload.domain, split, solver, solved), certificate
