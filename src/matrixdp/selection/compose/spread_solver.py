"""The sub-workloads of a decomposition, spread over processes: each distinct problem is solved once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolver
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.gram.factor import Factor, Solver
from matrixdp.selection.gram.optimum import solve_stacked
from matrixdp.selection.spread import spread
from matrixdp.selection.view.sub_workloads import SubWorkload

__all__ = ["LEAST_STACKED", "solved_apart", "solved_together"]

Array = NDArray[np.float64]
Progress = Callable[[str, float | None], None]
_Problem = tuple[str, Array, tuple[int, ...], Factor | None]
_Key = tuple[str, tuple[int, ...], tuple[int, ...], bytes]

#: Values of an attribute up to which, and number of problems from which, they are solved together.
MAX_STACKED_CELLS, LEAST_STACKED = 16, 8
#: Problems in one stack.
_MOST_STACKED = 1_000


def _key(problem: _Problem) -> _Key:
    name, array, sizes, _ = problem
    return name, array.shape, sizes, hashlib.blake2b(np.ascontiguousarray(array).tobytes()).digest()


def _solve(solver: Solver, problem: _Problem) -> Factor:
    name, array, sizes, start = problem
    return (solver.gram if name == "gram" else solver.queries)(array, sizes, start)


@dataclass(frozen=True)
class _Noted:
    """A solver that notes what it is asked, or knows it, and has the other do the rest."""

    solver: Solver
    noting: bool
    asked: dict[_Key, _Problem] = field(default_factory=dict)
    found: dict[_Key, Factor] = field(default_factory=dict)

    @property
    def optimal(self) -> bool:
        """As the other solver is."""
        return self.solver.optimal

    @cached_property
    def _shapes(self) -> set[tuple[int, ...]]:
        return {shape for _, shape, *_ in self.found}

    def gram(self, gram: Array, sizes: Sequence[int], start: Factor | None = None, /) -> Factor:
        """Solve for a Gram matrix."""
        known = self._known(("gram", gram, tuple(sizes), start))
        return self.solver.gram(gram, sizes, start) if known is None else known

    def queries(self, rows: Array, sizes: Sequence[int], start: Factor | None = None, /) -> Factor:
        """Solve for explicit queries."""
        known = self._known(("queries", rows, tuple(sizes), start))
        return self.solver.queries(rows, sizes, start) if known is None else known

    def centered(self, size: int, /) -> Factor:
        """Solve for I - 11'/n, which takes no time."""
        return self.solver.centered(size)

    def _known(self, problem: _Problem) -> Factor | None:
        if not self.noting and problem[1].shape not in self._shapes:
            return None
        key = _key(problem)
        if not self.noting:
            return self.found.get(key)
        self.asked[key] = problem
        return Factor(np.ones((1, problem[1].shape[1])), 1.0)


class _Outline(SubSolver):
    """Goes through a sub-workload without solving what has no solution of its own."""

    def _apart(self, *_: object) -> tuple[Factor, str]:
        return Factor(np.ones((1, 1)), 1.0), "product"


class _Singles(SubSolver):
    """Goes through single attributes alone."""

    def _joint(self, *_: object) -> BlockSolution:
        return BlockSolution((), Factor(np.ones((1, 1)), 1.0), [], (), "")


def _noted(solver: SubSolver, classes: Sequence[SubWorkload], outline: type[SubSolver]) -> _Noted:
    """Return what is asked where a solver goes through sub-workloads."""
    noted = _Noted(solver.solver, noting=True)
    given = {
        name: value for name, value in vars(solver).items() if name not in ("starts", "products", "solved")
    }
    going = outline(**{**given, "solver": noted, "merged": True})
    for sub in classes:
        going.starts = dict(solver.starts)
        going.solve(sub)
    return noted


def solved_apart(
    solver: SubSolver, classes: Sequence[SubWorkload], jobs: int, progress: Progress | None = None
) -> SubSolver:
    """Return the same solver, knowing the solutions of all distinct problems of some sub-workloads.

    Those that are solved by structure stay with the one process.
    """
    noted = _noted(solver, classes, _Outline)
    problems = list(noted.asked.values())
    found: dict[_Key, Factor] = {}
    for key, factor in zip(noted.asked, spread(partial(_solve, solver.solver), problems, jobs), strict=True):
        found[key] = factor
        if progress is not None:
            progress("solving sub-workloads", len(found) / len(problems))
    return replace(solver, solver=_Noted(solver.solver, noting=False, found=found))


def solved_together(solver: SubSolver, classes: Sequence[SubWorkload]) -> SubSolver:
    """Return the same solver, knowing the optima of single attributes of few values, solved in stacks."""
    few = [sub for sub in classes if not sub.rows and 0 < max(sub.sizes, default=0) <= MAX_STACKED_CELLS]
    if not isinstance(solver.solver, ConvexSolver) or len(few) < LEAST_STACKED:
        return solver
    alike: dict[int, list[tuple[_Key, _Problem]]] = {}
    for key, problem in _noted(solver, few, _Singles).asked.items():
        if np.isfinite(problem[1]).all():
            alike.setdefault(len(problem[1]), []).append((key, problem))
    found: dict[_Key, Factor] = {}
    for stack in alike.values():
        for begin in range(0, len(stack), _MOST_STACKED):
            keys, problems = zip(*stack[begin : begin + _MOST_STACKED], strict=True)
            grams = np.stack([gram for _, gram, _, _ in problems])
            optima = solve_stacked(grams, solver.solver.gap, [start for *_, start in problems])
            found.update(zip(keys, optima, strict=True))
    return replace(solver, solver=_Noted(solver.solver, noting=False, found=found))
