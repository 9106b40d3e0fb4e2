"""Weight vectors for Laplace noise, where an attribute may also stay whole.

A query splits along an attribute as q = (q.w) 1' + (q - (q.w) 1') for *every* vector w. With w = 0 nothing is
split off: every query that names the attribute is answered from the marginal that it asks about. Under
Gaussian noise that never pays. Under Laplace noise the shares of the privacy cost add up, many small parts
are dear, and the best choice differs from one attribute to the next; with w = 0 for all of them the marginals
of the query groups are measured apart, so the result is never worse than that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np
from numpy.typing import NDArray

from matrixdp.noise import LAPLACE
from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolver
from matrixdp.selection.compose.weight_vectors import (
    MAX_SEARCHED_ROW_CELLS,
    Objective,
    descend,
    optimized_weights,
    uniform_weights,
)
from matrixdp.selection.gram.l1_search import MAX_FAST_CELLS, LaplaceSolver
from matrixdp.selection.problem.residuals import Pieces, Split

__all__ = ["first_loss", "laplace_weights", "may_stay_whole"]

Array = NDArray[np.float64]

#: Evaluations of phi while weights are searched by their gradient, each a search of its own.
MAX_EVALUATIONS = 25
#: The least relative gain for which an attribute changes between whole and split.
_GAIN = 1e-6


def may_stay_whole(split: Split) -> list[bool]:
    """Return which attribute types may have w = 0: those of which no query group asks the total alone."""
    allowed = [size > 1 for size in split.sizes]
    for slot in split.slots:
        if slot.flat or (slot.symmetric is not None and not slot.symmetric[0] > 0):
            allowed[slot.type] = False
    return allowed


def _choose_whole(
    phi: Callable[[list[Array]], float], weights: list[Array], allowed: list[bool]
) -> tuple[float, list[Array]]:
    """Return the best weights found by turning single types whole or back, from all split and all whole."""
    whole = [np.zeros_like(w) if a else w for w, a in zip(weights, allowed, strict=True)]
    best: tuple[float, list[Array]] | None = None
    for start in (weights, whole):
        value, current = phi(start), list(start)
        improved = True
        while improved:
            improved = False
            for type_ in np.flatnonzero(allowed):
                trial = list(current)
                trial[type_] = np.zeros_like(weights[type_]) if current[type_].any() else weights[type_]
                found = phi(trial)
                if found < value * (1.0 - _GAIN):
                    value, current, improved = found, trial, True
        if best is None or value < best[0]:
            best = (value, current)
    assert best is not None
    return best


def laplace_weights(split: Split, report: Callable[[int, float], None] | None = None) -> list[Array]:
    """Search the weight vectors that are best for Laplace noise.

    Notes
    -----
    From uniform weights and those that are best for Gaussian noise, types turn whole one by one while that
    pays; the weights of the others then follow the gradient at fixed strategies.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.problem.residuals import split_workload
    >>> split = split_workload(mdp.Workload(mdp.Domain({"a": 5}), mdp.marginals(1)))
    >>> laplace_weights(split)[0].tolist()
    [0.0, 0.0, 0.0, 0.0, 0.0]
    """
    solved: dict[Hashable, BlockSolution] = {}
    evaluations = 0

    def phi(weights: list[Array]) -> float:
        nonlocal evaluations
        evaluations += 1
        total = _phi(split, weights, solved)
        if report is not None:
            report(evaluations, total)
        return total

    allowed = may_stay_whole(split)
    uniform = uniform_weights(split)
    value, best = _choose_whole(phi, uniform, allowed)
    if any(split.free):
        found, weights = _choose_whole(phi, optimized_weights(split, report), allowed)
        if found < value:
            value, best = found, weights
    return _descend(split, best)


def _phi(split: Split, weights: list[Array], solved: dict[Hashable, BlockSolution]) -> float:
    """Return the sum of cube roots of the losses of all parts, searched fast."""
    solver = SubSolver(
        Pieces(split, weights),
        LAPLACE,
        LaplaceSolver(1e-5, "fast"),
        joint_cells=MAX_FAST_CELLS,
        row_cells=MAX_SEARCHED_ROW_CELLS,
        solved=solved,
    )
    total = 0.0
    for sub in split.classes:
        solution = solver.solve(sub)
        if solution is not None:
            total += len(sub.marginals) * solution.loss ** (1.0 / 3.0)
    return total


def first_loss(split: Split) -> float:
    """Return the loss of the decomposition before weights are searched: all attributes split, or whole.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.problem.residuals import split_workload
    >>> round(first_loss(split_workload(mdp.Workload(mdp.Domain({"a": 5}), mdp.marginals(1)))), 9)
    5.0
    """
    uniform = uniform_weights(split)
    allowed = may_stay_whole(split)
    whole = [np.zeros_like(w) if a else w for w, a in zip(uniform, allowed, strict=True)]
    solved: dict[Hashable, BlockSolution] = {}
    return min(_phi(split, weights, solved) for weights in (uniform, whole)) ** 3


def _descend(split: Split, weights: list[Array]) -> list[Array]:
    """Return the weights after a search by gradient over the types that are split and not symmetric."""
    free = [t for t, is_free in enumerate(split.free) if is_free and weights[t].any()]
    if not free:
        return weights
    objective = Objective(split, LAPLACE)
    objective(weights)
    descend(objective, weights, free, maxfun=MAX_EVALUATIONS, ftol=1e-5)
    assert objective.best is not None
    return objective.best[1]
