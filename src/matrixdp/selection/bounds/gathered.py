"""What a solved decomposition asks and measures on every subset of attributes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import along
from matrixdp.selection.bounds import rings
from matrixdp.selection.bounds.axes import Axes
from matrixdp.selection.bounds.rings import Measured, Tied
from matrixdp.selection.bounds.triples import SubsetTerms
from matrixdp.selection.compose.product import solve_structured
from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolution, SubSolver
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.optimum import factored_blocks, symmetries_of
from matrixdp.selection.problem.residuals import RowsTerm, Split, SubWorkload

__all__ = ["MAX_JOINT_CELLS", "Gathered"]

Array = NDArray[np.float64]
Explicit = list[tuple[float, Array]]

#: Cells of the attributes of a joint strategy, at most.
MAX_JOINT_CELLS = 2_500
#: Entries of explicit queries, at most.
_MOST_ENTRIES = 10_000_000
#: Eigenvalues below this share of the largest are those of what is not measured.
_RANK = 1e-10
#: Distributions are kept above this share of the uniform one.
_LEAST = 1e-7
#: The relative gap of the products that take the place of joint strategies: it enters the bound squared.
_PRODUCT_GAP = 1e-2
#: Tensors that an exchange of attributes changes by less than this are the same.
_SAME = 1e-12


class Gathered:
    """The terms and strategies of all classes of a split.

    Parameters
    ----------
    split : Split
    solver : SubSolver
    solved : sequence of (SubWorkload, SubSolution)
    p : sequence of ndarray, optional
        By type: at what distributions V^(-1/2) takes the place of strategies that are joint or do not measure
        everything; the mean of the sub-workloads' dual distributions where they are left out.

    Attributes
    ----------
    axes : Axes
    classes : list of SubsetTerms
    distributions : list of ndarray
    rooted : bool
        Whether covariances depend on the distributions.

    Raises
    ------
    TooLargeError
        If joint strategies or explicit queries have too many entries.
    """

    def __init__(
        self,
        split: Split,
        solver: SubSolver,
        solved: Sequence[tuple[SubWorkload, SubSolution]],
        p: Sequence[Array] | None = None,
    ) -> None:
        self.split, self.solver, self.pieces = split, solver, solver.pieces
        grams: list[Array | Tied] = [
            slot.predicates.gram(slot.size) if split.free[slot.type] else np.zeros((0, 0))
            for slot in split.slots
        ]
        self.rooted = False
        self.axes = Axes(solver.pieces.weights, grams, [])
        self._numbers: dict[Hashable, tuple[int, ...]] = {}
        found = {id(sub): solution for sub, solution in solved}
        self.distributions = self._mean_duals(solved) if p is None else list(p)
        joint = {
            block.key
            for sub, solution in solved
            for block in solution.blocks
            if _is_joint(block) and not sub.rows
        }
        # traces that join the attributes of several such strategies are too many: products take their place
        self._by_products = len(joint) > 1
        self.classes = [self._class(sub, found.get(id(sub))) for sub in split.classes]

    def _class(self, sub: SubWorkload, solution: SubSolution | None) -> SubsetTerms:
        kept = zip(sub.types, sub.sizes, strict=True)
        spread = tuple(size for type_, size in kept if not self.split.free[type_])
        terms = self._terms(sub)
        if sub.rows and not spread:
            terms = self._with_rows(sub, terms)
        if solution is None:
            return SubsetTerms(terms, None, 0.0, spread)
        measured, level = self._measured(sub, solution)
        return SubsetTerms(terms, measured, level, spread)

    def _terms(self, sub: SubWorkload) -> list[tuple[float, tuple[int, ...]]]:
        """Return the Kronecker terms on the free attributes, the symmetric ones in the coefficients."""
        merged: dict[tuple[int, ...], float] = {}
        for term in (*sub.products, *sub.couplings):
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
            return [(1.0, (self._summed(terms),))]
        return terms

    def _summed(self, terms: list[tuple[float, tuple[int, ...]]], more: Array | float = 0.0) -> int:
        """Return the number of the sum of terms on one attribute."""
        self.axes.grams.append(sum((c * self.axes.gram(slot) for c, (slot,) in terms), more) + np.zeros(()))
        return len(self.axes.grams) - 1

    def _with_rows(
        self, sub: SubWorkload, terms: list[tuple[float, tuple[int, ...]]]
    ) -> list[tuple[float, tuple[int, ...]]]:
        """Return the terms with those of explicit queries."""
        tensors = [self._contracted(item) for item in sub.rows]
        if not sub.types:
            return [(sum(c for c, _ in terms) + math.fsum(float((t**2).sum()) for t in tensors), ())]
        if len(sub.types) == 1:
            return [(1.0, (self._summed(terms, sum(t.T @ t for t in tensors)),))]
        if sum(tensor.size for tensor in tensors) > _MOST_ENTRIES:
            raise TooLargeError(f"a bound of explicit queries over {tensors[0][0].size} cells")
        stacked = np.concatenate(tensors)
        rows = stacked.reshape(len(stacked), -1)
        if len(rows) > rows.shape[1]:
            rows = np.asarray(np.linalg.qr(rows).R)
        first, tensor = len(self.axes.grams), rows.reshape(-1, *sub.sizes)
        self.axes.grams += [Tied(tensor, axis) for axis in range(len(sub.types))]
        alike = self._alike(sub.types, sub.sizes, rows.T @ rows)
        return [*terms, (1.0, tuple(first if alike else first + axis for axis in range(len(sub.types))))]

    def _contracted(self, item: RowsTerm) -> Array:
        """Return explicit queries contracted with the weights of the axes that are not kept."""
        explicit = self.split.explicit[item.explicit]
        tensor = math.sqrt(item.weight) * explicit.rows.reshape(len(explicit.rows), *explicit.sizes)
        for axis in reversed(range(len(item.kept))):
            if not item.kept[axis]:
                tensor = np.tensordot(tensor, self.pieces.weights[explicit.types[axis]], axes=(axis + 1, 0))
        return tensor

    @staticmethod
    def _alike(types: Sequence[int], sizes: Sequence[int], gram: Array) -> bool:
        """Return whether a matrix over two attributes of one type stays as it is when they are exchanged."""
        if len(types) != 2 or types[0] != types[1]:
            return False
        n = sizes[0]
        swapped = gram.reshape(n, n, n, n).transpose(1, 0, 3, 2).reshape(gram.shape)
        return bool(np.abs(swapped - gram).max() <= _SAME * np.abs(gram).max())

    def _measured(self, sub: SubWorkload, solution: SubSolution) -> tuple[tuple[int, ...], float]:
        """Return the numbers of the covariances on the free attributes, and the loss."""
        own: dict[int, int] = {}
        level = solution.scale
        for block in solution.blocks:
            types = [sub.types[axis] for axis in block.axes]
            if not self.split.free[types[0]]:
                n = sub.sizes[block.axes[0]]
                slots = [(t.coefficient, self.pieces.slots[t.kept[0]].coefficient) for t in block.terms]
                level *= sum(c * a for c, a in slots) * (n - 1.0) ** 2 / n
                continue
            explicit = self.solver.explicit(sub) if len(types) == len(sub.types) else []
            covariances = self._covariances(sub, block, explicit)
            level *= self._trace(block, explicit, covariances)
            own.update(zip(block.axes, covariances, strict=True))
        return tuple(own[axis] for axis in sorted(own)), level

    def _mean_duals(self, solved: Sequence[tuple[SubWorkload, SubSolution]]) -> list[Array]:
        """Return the mean of the marginals of the dual distributions on each type, weighted by sqrt(loss)."""
        sums = [np.full(size, 1e-9) for size in self.split.sizes]
        for sub, solution in solved:
            share = math.sqrt(solution.loss) * len(sub.marginals)
            for block in solution.blocks:
                types = [sub.types[axis] for axis in block.axes]
                factors = (block.found,) if isinstance(block.found, Factor) else block.found.factors
                for place, factor in enumerate(factors):
                    own = [types[place]] if len(factors) == len(types) else types
                    if factor.dual is None:
                        continue
                    dual = factor.dual.reshape([self.split.sizes[type_] for type_ in own])
                    for axis, type_ in enumerate(own):
                        marginal = dual.sum(axis=tuple(i for i in range(dual.ndim) if i != axis))
                        sums[type_] += share * marginal / float(marginal.sum())
        means = [np.maximum(one / float(one.sum()), _LEAST / len(one)) for one in sums]
        return [one / float(one.sum()) for one in means]

    def _covariances(self, sub: SubWorkload, block: BlockSolution, explicit: Explicit) -> tuple[int, ...]:
        """Return the numbers of a block's covariances, one for each axis."""
        types = [sub.types[axis] for axis in block.axes]
        sizes = [self.split.sizes[type_] for type_ in types]
        key = (tuple(types), block.key)
        if key in self._numbers:
            return self._numbers[key]
        if self._by_products and _is_joint(block) and not explicit:
            problem = self.solver.problem(sub, block.axes, block.terms, [])
            product = solve_structured(problem, ConvexSolver(_PRODUCT_GAP), weigh_rows=False)
            block = replace(block, found=product)
        own = [self.distributions[type_] for type_ in types]
        first = len(self.axes.measured)
        numbers = tuple(range(first, first + len(types)))
        if isinstance(block.found, Factor) and len(types) > 1:
            if block.found.cells > MAX_JOINT_CELLS:
                raise TooLargeError(f"a bound of a joint strategy over {block.found.cells} cells")
            self.rooted = True
            joint = _root(self.solver.gram(block.terms, explicit), own).covariance
            if self._alike(types, sizes, self.solver.gram(block.terms, explicit)):
                n = sizes[0]
                joint = (joint + joint.reshape(n, n, n, n).transpose(1, 0, 3, 2).reshape(joint.shape)) / 2.0
                numbers = (first,) * 2
            tensor = joint.reshape(*sizes, *sizes)
            self.axes.measured += [Tied(tensor, axis) for axis in range(len(types))]
        else:
            factors = (block.found,) if isinstance(block.found, Factor) else block.found.factors
            for factor, type_, p in zip(factors, types, own, strict=True):
                if len(types) == 1 and factor.height < len(p) - 1 and len(p) <= rings.MAX_AXIS_CELLS:
                    self.rooted = True
                    self.axes.measured.append(_root(self.solver.gram(block.terms, explicit), own))
                else:
                    self.axes.measured.append(_measured(factor, self.pieces.weights[type_]))
        self._numbers[key] = numbers
        return numbers

    def _trace(self, block: BlockSolution, explicit: Explicit, numbers: tuple[int, ...]) -> float:
        """Return tr(V Z) of a block."""
        found = self.axes.measured[numbers[0]]
        if isinstance(found, Tied):
            return float(np.vdot(self.solver.gram(block.terms, explicit), found.tensor))
        if len(numbers) == 1 and found.shape is not None:
            diagonal = found.diagonal(self.solver.gram(block.terms, explicit))
            if diagonal is not None:
                return float(diagonal[0].sum()) * (1.0 - diagonal[1])
        covariances = [self.axes.strategy(number).covariance for number in numbers]
        total = 0.0
        for term in block.terms:
            grams = [self.solver.slot_gram(slot) for slot in term.kept]
            own = [float(np.vdot(gram, z)) for gram, z in zip(grams, covariances, strict=True)]
            total += term.coefficient * math.prod(own)
        for weight, rows in explicit:
            tensor = image = rows.reshape(len(rows), *(len(z) for z in covariances))
            for axis, z in enumerate(covariances):
                image = along(image, axis + 1, z)
            total += weight * float(np.vdot(tensor, image))
        return total


def _is_joint(block: BlockSolution) -> bool:
    return isinstance(block.found, Factor) and len(block.axes) > 1


def _measured(factor: Factor, weights: Array) -> Measured:
    """Return Z by a root: the generalized inverse of B'B whose rows and columns sum to 0."""
    right = factor.rows if factor.identity else factor.inverse
    # at the optimum for V, R' V R is a multiple of B D B', which is diagonal
    shape = None if factor.dual is None else np.einsum("aj,j,aj->a", factor.rows, factor.dual, factor.rows)
    return Measured(right - np.outer(weights, right.sum(axis=0)), shape)


def _root(gram: Array, distributions: Sequence[Array]) -> Measured:
    """Return Z = t S (S V S)^(-1/2) S with S = diag(p)^(1/2), on what sums to 0 along every attribute.

    With t = tr((S V S)^(1/2)) it is scaled as an optimal strategy's covariance is: tr(V Z) = t^2.
    """
    root: Array = np.ones(())
    for p in distributions:
        root = np.multiply.outer(root, np.sqrt(p))
    scaled = gram * root.ravel()[:, None] * root.ravel()
    tensor = scaled.reshape(*root.shape, *root.shape)
    for axis, p in enumerate(distributions):
        away = np.eye(len(p)) - np.sqrt(np.outer(p, p))
        tensor = along(along(tensor, axis, away), axis + root.ndim, away)
    square = tensor.reshape(scaled.shape)
    rows = np.vstack(factored_blocks(square, symmetries_of(square, root.shape)))
    values = np.einsum("aj,aj->a", rows, rows)
    kept = values > _RANK * values.max()
    trace = float(np.sqrt(values[kept]).sum())
    return Measured(rows[kept].T * (math.sqrt(trace) * values[kept] ** -0.75) * root.ravel()[:, None])
