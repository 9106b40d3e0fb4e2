"""The decomposition as a mechanism: the choice of weights, sub-solvers and noise, and its certificate."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, MutableMapping
from dataclasses import replace

import numpy as np

from matrixdp.errors import WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.noise import GAUSSIAN, Noise
from matrixdp.plans import Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.assembly import assemble
from matrixdp.selection.compose.sub_solver import (
    SUB_SOLVERS,
    BlockSolution,
    Construction,
    SubSolution,
    SubSolver,
)
from matrixdp.selection.compose.weight_vectors import optimized_weights, uniform_weights
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.gram.factor import EVERY, Factor, Solver
from matrixdp.selection.gram.opt_0 import LaplaceSolver
from matrixdp.selection.gram.singular_values import svd_bound_gram
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.residuals import Pieces, Split, SubWorkload, split_workload
from matrixdp.selection.registry import Progress, silent
from matrixdp.selection.selection import Certificate

Solved = list[tuple[SubWorkload, SubSolution]]
#: From a solved decomposition to a lower bound on the loss of every Gaussian strategy.
BoundOf = Callable[[Split, SubSolver, Solved], float | None]


def is_exact(split: Split, solver: SubSolver, solutions: list[SubSolution]) -> bool:
    """Return whether the sub-workloads' dual points together are a dual point of the whole.

    With uniform weights and Gram matrices that have 1 as an eigenvector the workload's Gram matrix is the
    direct sum of the sub-workloads'; the uniform distribution, where each of them has it, is then a dual
    point of the whole, and its bound the square of the sum of theirs. An undivided attribute is left out.
    """
    if split.explicit:
        return False
    for number, slot in enumerate(split.slots):
        if slot.type == split.undivided:
            continue
        w = solver.pieces.weights[slot.type]
        if float(np.abs(w - 1.0 / slot.gram.size).max()) > 1e-12:
            return False
        if solver.pieces.slots[number].closed is None:
            gram = slot.gram.matrix()
            for image in (gram.sum(axis=0), gram.sum(axis=1)):
                if float(np.ptp(image)) > 1e-9 * float(np.abs(image).max()):
                    return False
    found = [block.found for solution in solutions for block in solution.blocks]
    return all(isinstance(one, Factor) and one.scope == EVERY and one.uniform for one in found)


def sub_solver_for(
    pieces: Pieces,
    noise: Noise,
    gap: float,
    sub_solver: str = "auto",
    seed: int = 0,
    construction: Construction | None = None,
) -> SubSolver:
    """Return the solver of sub-workloads at the final weights."""
    fast = sub_solver == "fast"
    gap = max(gap, LIMITS.fast_gap) if fast else gap
    if noise.norm == 1:
        searching: Solver = LaplaceSolver(gap, "fast" if fast else "full", seed)
        limits = replace(LIMITS, joint_cells=LIMITS.searched_cells)
        return SubSolver(pieces, noise, searching, limits, sub_solver=sub_solver)
    return SubSolver(pieces, noise, ConvexSolver(gap), sub_solver=sub_solver, construction=construction)


def solve_classes(
    split: Split, solver: SubSolver, progress: Progress = silent
) -> list[tuple[SubWorkload, SubSolution]]:
    """Solve all sub-workloads that ask something."""
    solved = []
    begin = dict(solver.starts)
    for number, sub in enumerate(split.classes):
        # every class from where the search ended, not from another class: so they may be solved in any order
        solver.starts = dict(begin)
        solution = solver.solve(sub)
        if solution is not None and solution.loss > 0.0:
            solved.append((sub, solution))
        progress("solving sub-workloads", (number + 1) / len(split.classes))
    if not solved:
        raise WorkloadError(
            "every query of the workload is zero on every record: there is nothing to measure"
        )
    # a sub-workload with less than this share of the error only holds rounding errors of zero pieces
    floor = 1e-16 * max(solution.loss for _, solution in solved)
    return [(sub, solution) for sub, solution in solved if solution.loss > floor]


def solve_decomposition(split: Split, gap: float) -> tuple[Split, SubSolver, Solved]:
    """Solve the decomposition for Gaussian noise at the best weights that are found.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals(2))
    >>> [round(s.loss, 3) for _, s in solve_decomposition(split_workload(workload), 1e-6)[2]]
    [0.083, 0.333, 0.75, 3.0]
    """
    solver = sub_solver_for(Pieces(split, optimized_weights(split)), GAUSSIAN, gap)
    return split, solver, solve_classes(split, solver)


def _gaussian_bound(
    split: Split, solver: SubSolver, solved: list[tuple[SubWorkload, SubSolution]]
) -> float | None:
    """Return the bound on every Gaussian strategy where the decomposition attains it, else None."""
    if not is_exact(split, solver, [s for _, s in solved]):
        return None
    values = [
        solution.scale
        * math.prod(block.found.dual_value for block in solution.blocks if isinstance(block.found, Factor))
        for _, solution in solved
    ]
    return GAUSSIAN.total_loss(values, [len(sub.marginals) for sub, _ in solved])


def certify_decomposition(
    split: Split, solver: SubSolver, solved: Solved, bound_of: BoundOf | None = None
) -> Certificate:
    """Return the loss of solved sub-workloads under the best split of the budget, and a bound if known.

    ``bound_of`` is asked where the sub-workloads of Gaussian noise do not attain one.
    """
    methods = describe_methods(solver, solved)
    noise = solver.noise
    counts = [len(sub.marginals) for sub, _ in solved]
    loss = noise.variance_factor * noise.total_loss([solution.loss for _, solution in solved], counts)
    bound = _gaussian_bound(split, solver, solved) if noise.norm == 2 else None
    if bound is None and noise.norm == 2 and bound_of is not None:
        bound = bound_of(split, solver, solved)
        if bound is not None:
            return Certificate(loss, bound, f"every {noise.title} strategy{methods}")
    if bound is None:
        return Certificate(loss, None, f"no bound for the decomposition at this size{methods}")
    scope = f"every {noise.title} strategy (the sub-workloads are orthogonal){methods}"
    return Certificate(loss, noise.variance_factor * bound, scope)


def select_by_decomposition(
    workload: Workload,
    noise: Noise,
    mechanism: str,
    gap: float,
    progress: Progress = silent,
    sub_solver: str = "auto",
    seed: int = 0,
    bound_of: BoundOf | None = None,
    known: MutableMapping[Hashable, list[Array]] | None = None,
    construction: Construction | None = None,
) -> tuple[Plan, Certificate]:
    """Select a strategy by splitting the workload into sub-workloads of marginals.

    ``known`` is where searches for weights ended, for the same queries weighted otherwise. A construction
    replaces the optimum of sub-workloads.

    References
    ----------
    QuerySmasher (2026), Algorithm 1 and Theorem 7 (uniform weights), section 6.3 (sub-solvers).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals(1))
    >>> plan, certificate = select_by_decomposition(workload, GAUSSIAN, "residual", 1e-6)
    >>> len(plan.parts), round(plan.cost, 9)
    (3, 1.0)
    """
    if sub_solver not in SUB_SOLVERS:
        raise WorkloadError(f"sub_solver: found {sub_solver!r}; expected one of {', '.join(SUB_SOLVERS)}")
    split = split_workload(workload)
    weights = uniform_weights(split)
    starts: dict[Hashable, Factor] = {}
    if mechanism == "residual":

        def report(evaluations: int, phi: float) -> None:
            progress(f"optimizing weights ({evaluations} evaluations, error {phi:.6g})", None)

        weights = optimized_weights(split, report, starts, known)
    solver = sub_solver_for(Pieces(split, weights), noise, gap, sub_solver, seed, construction)
    solver.starts.update(starts)
    solved = solve_classes(split, solver, progress)
    certificate = certify_decomposition(split, solver, solved, bound_of)
    return assemble(workload.domain, solver, solved), certificate


def _excess(solver: SubSolver, sub: SubWorkload, block: BlockSolution) -> float | None:
    """Return the block's error over its singular value bound, less 1, as RMSE; None where it is not known."""
    if block.found.cells > LIMITS.spectral_cells:
        return None
    explicit = solver.grouped(sub) if len(block.axes) == len(sub.types) else []
    bound = svd_bound_gram(solver.gram(block.terms, explicit).explicit.entries)
    return max(math.sqrt(block.found.loss / bound) - 1.0, 0.0)


def describe_methods(solver: SubSolver, solved: list[tuple[SubWorkload, SubSolution]]) -> str:
    """Return which sub-workloads are not at their optimum and what that loses, or nothing if all are."""
    found: dict[str, list[tuple[int, float | None]]] = defaultdict(list)
    for sub, solution in solved:
        for block in solution.blocks:
            if block.method != "optimum":
                found[block.method].append((len(sub.marginals), _excess(solver, sub, block)))
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
