"""The bound that a solved decomposition proves on every Gaussian strategy."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.selection.bounds.axes import Axes
from matrixdp.selection.bounds.lattice import Lattice
from matrixdp.selection.bounds.triples import Operator, SubsetTerms
from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolution, SubSolver
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.view.sub_workloads import Split, SubWorkload

__all__ = ["MAX_AXIS_CELLS", "decomposition_bound", "operator_of", "within_reach"]

Array = NDArray[np.float64]

#: Attributes whose queries are not symmetric may have up to this many values.
MAX_AXIS_CELLS = 2_000
#: Entries of the tables by subset and attribute, at most.
_MOST_ENTRIES = 30_000_000
#: The relative gap of strategies for single axes that stand for a joint one.
_APART_GAP = 1e-4
#: What floating point may add to a bound of positive terms, generously.
_ROUNDING = 1e-11


def decomposition_bound(
    split: Split, solver: SubSolver, solved: Sequence[tuple[SubWorkload, SubSolution]]
) -> float | None:
    """Return a lower bound on the loss of every Gaussian strategy, or None where it is out of reach.

    References
    ----------
    docs/mathematics.md, section 9, theorems 10 and 11.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.selection.compose.decomposition import solve_decomposition
    >>> domain = mdp.Domain({f"a{i}": range(10) for i in range(6)})
    >>> solution = solve_decomposition(mdp.Workload(domain, mdp.kway([1, 2], "prefix")), 1e-6)
    >>> loss = sum(len(sub.marginals) * s.loss**0.5 for sub, s in solution[2]) ** 2
    >>> 1 < loss / decomposition_bound(*solution) < 1.04
    True
    """
    if not within_reach(split):
        return None
    try:
        operator, p = operator_of(split, solver, solved)
    except TooLargeError:
        return None
    found, _ = operator.tuned(p)
    return found * found * (1.0 - _ROUNDING)


def within_reach(split: Split) -> bool:
    """Return whether the queries of a split have a form that the bound covers."""
    sizes = [size for size, is_free in zip(split.sizes, split.free, strict=True) if is_free]
    if split.explicit or not all(slot.definite for slot in split.slots):
        return False
    return max(sizes, default=0) <= MAX_AXIS_CELLS


def operator_of(
    split: Split, solver: SubSolver, solved: Sequence[tuple[SubWorkload, SubSolution]]
) -> tuple[Operator, list[Array]]:
    """Return T1 and T2 of a solved decomposition, and the distributions to start from, by type.

    Raises
    ------
    TooLargeError
        If there are too many subsets, terms or triples.
    """
    gathered = _Gathered(split, solver, solved)
    subsets = sum(len(sub.marginals) for sub in split.classes)
    entries = subsets * len(split.types) * max(len(one.terms) for one in gathered.classes)
    if entries > _MOST_ENTRIES:
        raise TooLargeError(f"a bound over tables of {entries} entries; the limit is {_MOST_ENTRIES}")
    return Operator(Lattice.of(split), gathered.axes, gathered.classes), gathered.distributions()


class _Gathered:
    """What the operator of a decomposition is made of."""

    def __init__(
        self, split: Split, solver: SubSolver, solved: Sequence[tuple[SubWorkload, SubSolution]]
    ) -> None:
        self.split, self.solver, self.pieces = split, solver, solver.pieces
        grams = [
            slot.predicates.gram(slot.size) if split.free[slot.type] else np.zeros((0, 0))
            for slot in split.slots
        ]
        self.axes = Axes(solver.pieces.weights, grams, [])
        self._numbers: dict[Hashable, int] = {}
        self._apart: dict[Hashable, tuple[Factor, ...]] = {}
        self._duals = [np.zeros(size) for size in split.sizes]
        found = {id(sub): solution for sub, solution in solved}
        self.classes = [self._class(sub, found.get(id(sub))) for sub in split.classes]

    def _class(self, sub: SubWorkload, solution: SubSolution | None) -> SubsetTerms:
        kept = zip(sub.types, sub.sizes, strict=True)
        spread = tuple(size for type_, size in kept if not self.split.free[type_])
        return SubsetTerms(
            self._terms(sub),
            None if solution is None else self._measured(sub, solution),
            spread,
        )

    def _terms(self, sub: SubWorkload) -> list[tuple[float, tuple[int, ...]]]:
        """Return the Kronecker terms on the free attributes, the symmetric ones in the coefficients."""
        merged: dict[tuple[int, ...], float] = {}
        for term in sub.products:
            coefficient = term.weight
            for slot in term.contracted:
                coefficient *= self.pieces.slots[slot].mean_square
            free = []
            for slot in term.kept:
                if self.split.free[self.split.slots[slot].type]:
                    free.append(slot)
                else:
                    coefficient *= (self.split.slots[slot].symmetric or (0.0, 0.0))[0]
            merged[tuple(free)] = merged.get(tuple(free), 0.0) + coefficient
        terms = [(coefficient, slots) for slots, coefficient in merged.items() if coefficient != 0.0]
        if len(terms) > 1 and len(terms[0][1]) == 1:
            total = np.zeros_like(self.axes.grams[terms[0][1][0]])
            for coefficient, (slot,) in terms:
                total = total + coefficient * self.axes.grams[slot]
            self.axes.grams.append(total)
            return [(1.0, (len(self.axes.grams) - 1,))]
        return terms

    def _measured(self, sub: SubWorkload, solution: SubSolution) -> tuple[int, ...]:
        """Return the numbers of the strategies' covariances on the free attributes."""
        own: dict[int, int] = {}
        share = math.sqrt(solution.loss) * len(sub.marginals)
        for block in solution.blocks:
            factors = self._factors(block)
            for place, (axis, factor) in enumerate(zip(block.axes, factors, strict=True)):
                type_ = sub.types[axis]
                if not self.split.free[type_]:
                    continue
                key = (type_, block.key, place)
                if key not in self._numbers:
                    self._numbers[key] = len(self.axes.measured)
                    self.axes.measured.append(_covariance(factor, self.pieces.weights[type_]))
                own[axis] = self._numbers[key]
                dual = np.ones(factor.cells) if factor.dual is None else factor.dual
                self._duals[type_] += share * dual / float(dual.sum())
        return tuple(own[axis] for axis in sorted(own))

    def _factors(self, block: BlockSolution) -> tuple[Factor, ...]:
        """Return a strategy for each axis of a block; near the joint one, where it is not a product."""
        if not isinstance(block.found, Factor):
            return block.found.factors
        if len(block.axes) == 1:
            return (block.found,)
        if block.key not in self._apart:
            grams = [[self.solver.slot_gram(slot) for slot in term.kept] for term in block.terms]
            found = []
            for axis in range(len(block.axes)):
                surrogate = np.zeros_like(grams[0][axis])
                for term, own in zip(block.terms, grams, strict=True):
                    others = math.prod(float(np.trace(gram)) for gram in (*own[:axis], *own[axis + 1 :]))
                    surrogate += term.coefficient * others * own[axis]
                found.append(solve_gram(surrogate, gap=_APART_GAP))
            self._apart[block.key] = tuple(found)
        return self._apart[block.key]

    def distributions(self) -> list[Array]:
        """Return the weighted mean of the dual distributions on each type."""
        return [
            dual / float(dual.sum()) if dual.any() else np.full(len(dual), 1.0 / len(dual))
            for dual in self._duals
        ]


def _covariance(factor: Factor, weights: Array) -> Array:
    """Return Z: a generalized inverse of B'B whose rows and columns sum to 0."""
    right = factor.rows if factor.identity else factor.inverse
    right = right - np.outer(weights, right.sum(axis=0))
    return np.asarray(right @ right.T)
