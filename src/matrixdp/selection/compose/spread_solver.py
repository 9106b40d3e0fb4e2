"""The sub-workloads of a decomposition, spread over processes: each distinct problem is solved once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.gram.factor import Factor, Solver
from matrixdp.selection.spread import spread
from matrixdp.selection.view.sub_workloads import SubWorkload

__all__ = ["solved_apart"]

Array = NDArray[np.float64]
Progress = Callable[[str, float | None], None]
_Problem = tuple[str, Array, tuple[int, ...], Factor | None]


def _key(problem: _Problem) -> Hashable:
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
    asked: dict[Hashable, _Problem] = field(default_factory=dict)
    found: dict[Hashable, Factor] = field(default_factory=dict)

    @property
    def optimal(self) -> bool:
        """As the other solver is."""
        return self.solver.optimal

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
        key = _key(problem)
        if not self.noting:
            return self.found.get(key)
        self.asked[key] = problem
        return Factor(np.ones((1, problem[1].shape[1])), 1.0)


class _Outline(SubSolver):
    """Goes through a sub-workload without solving what has no solution of its own."""

    def _apart(self, *_: object) -> tuple[Factor, str]:
        return Factor(np.ones((1, 1)), 1.0), "product"


def solved_apart(
    solver: SubSolver, classes: Sequence[SubWorkload], jobs: int, progress: Progress | None = None
) -> SubSolver:
    """Return the same solver, knowing the solutions of all distinct problems of some sub-workloads.

    Those that are solved by structure stay with the one process.
    """
    noted = _Noted(solver.solver, noting=True)
    given = {
        name: value for name, value in vars(solver).items() if name not in ("starts", "products", "solved")
    }
    outline = _Outline(**{**given, "solver": noted, "merged": True})
    for sub in classes:
        outline.starts = dict(solver.starts)
        outline.solve(sub)
    problems = list(noted.asked.values())
    found: dict[Hashable, Factor] = {}
    for key, factor in zip(noted.asked, spread(partial(_solve, solver.solver), problems, jobs), strict=True):
        found[key] = factor
        if progress is not None:
            progress("solving sub-workloads", len(found) / len(problems))
    return replace(solver, solver=_Noted(solver.solver, noting=False, found=found))
