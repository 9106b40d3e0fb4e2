"""What a solved decomposition asks and measures on every class of subsets of attributes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array, along_axes, outer
from matrixdp.selection.bounds.traces import Covariance, Tied, Traces
from matrixdp.selection.bounds.triples import ClassTerms
from matrixdp.selection.compose.product import solve_structured
from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolution, SubSolver
from matrixdp.selection.gram import ConvexSolver
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.optimum import factored_blocks, symmetries_of
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.residuals import Pieces, Split, SubWorkload, residual_rows

Solved = Sequence[tuple[SubWorkload, SubSolution]]
#: Distributions are kept above this share of the uniform one.
LEAST_DISTRIBUTION = 1e-7


def asked_terms(split: Split, pieces: Pieces) -> tuple[Traces, list[ClassTerms]]:
    """Return the queries as traces of single attributes and terms of classes, at the weights of the pieces.

    Raises TooLargeError where explicit queries have too many entries.
    """
    grams: list[Array | Tied] = [
        slot.gram.matrix() if split.free[slot.type] else np.zeros((0, 0)) for slot in split.slots
    ]
    found = Traces(pieces.weights, grams)
    return found, [_asked(split, pieces, found, sub) for sub in split.classes]


def _asked(split: Split, pieces: Pieces, found: Traces, sub: SubWorkload) -> ClassTerms:
    """Return the Kronecker terms on the free attributes, the symmetric ones in the coefficients."""
    spread = tuple(size for type_, size in zip(sub.types, sub.sizes, strict=True) if not split.free[type_])
    merged: dict[tuple[int, ...], float] = {}
    for term in (*sub.products, *sub.couplings):
        coefficient = term.weight * math.prod(pieces.slots[slot].mean_square for slot in term.contracted)
        free = []
        for number in term.kept:
            slot = split.slots[number]
            if split.free[slot.type]:
                free.append(number)
            else:
                coefficient *= (slot.gram.symmetric or (0.0, 0.0))[0]
        merged[tuple(free)] = merged.get(tuple(free), 0.0) + coefficient
    terms = [(coefficient, slots) for slots, coefficient in merged.items() if coefficient != 0.0]
    tensors = (
        []
        if spread
        else [_contracted(split, pieces, item.explicit, item.kept, item.weight) for item in sub.rows]
    )
    order = len(sub.types) - len(spread)
    if order == 0 and tensors:
        terms = [(sum(c for c, _ in terms) + math.fsum(float((t**2).sum()) for t in tensors), ())]
    elif order == 1 and (tensors or len(terms) > 1):
        rows = sum(t.T @ t for t in tensors) + np.zeros(())
        found.grams.append(sum((c * found.gram(slot) for c, (slot,) in terms), rows))
        terms = [(1.0, (len(found.grams) - 1,))]
    elif tensors:
        terms.append((1.0, _tied_rows(found, sub, tensors)))
    return ClassTerms(terms, spread)


def _contracted(split: Split, pieces: Pieces, number: int, kept: Sequence[bool], weight: float) -> Array:
    """Return explicit queries contracted with the weights of the axes that are not kept."""
    explicit = split.explicit[number]
    pairs = zip(explicit.types, kept, strict=True)
    weights = [None if keeps else pieces.weights[type_] for type_, keeps in pairs]
    return residual_rows(math.sqrt(weight) * explicit.content.tensor, kept, weights)


def _tied_rows(found: Traces, sub: SubWorkload, tensors: Sequence[Array]) -> tuple[int, ...]:
    """Add explicit queries on a subset; return the number of each attribute's part."""
    if sum(tensor.size for tensor in tensors) > LIMITS.written_entries:
        raise TooLargeError(f"a bound of explicit queries over {tensors[0][0].size} cells")
    rows = np.concatenate(tensors).reshape(-1, math.prod(sub.sizes))
    if len(rows) > rows.shape[1]:
        rows = np.asarray(np.linalg.qr(rows).R)
    first, tensor = len(found.grams), rows.reshape(-1, *sub.sizes)
    found.grams += [Tied(tensor, axis) for axis in range(len(sub.types))]
    alike = _one_type(sub.types) and _alike(sub.sizes, rows.T @ rows)
    return tuple(first if alike else first + axis for axis in range(len(sub.types)))


def _one_type(types: Sequence[int]) -> bool:
    return len(types) == 2 and types[0] == types[1]


def _alike(sizes: Sequence[int], gram: Array) -> bool:
    """Return whether a matrix over two attributes stays as it is when they are exchanged."""
    swapped = gram.reshape(*sizes, *sizes).transpose(1, 0, 3, 2).reshape(gram.shape)
    return bool(np.abs(swapped - gram).max() <= LIMITS.same * np.abs(gram).max())


def mean_duals(split: Split, solved: Solved) -> list[Array]:
    """Return the mean of the marginals of the dual distributions on each type, weighted by sqrt(loss)."""
    sums = [np.full(size, 1e-9) for size in split.sizes]
    for sub, solution in solved:
        share = math.sqrt(solution.loss) * len(sub.marginals)
        for block in solution.blocks:
            types = [sub.types[axis] for axis in block.axes]
            strategy = block.over_values
            whole = isinstance(strategy, Factor)
            factors = (strategy,) if isinstance(strategy, Factor) else strategy.factors
            for factor, own in zip(factors, [types] if whole else [[t] for t in types], strict=True):
                if factor.dual is None:
                    continue
                dual = factor.dual.reshape([split.sizes[type_] for type_ in own])
                for axis, type_ in enumerate(own):
                    marginal = np.moveaxis(dual, axis, 0).reshape(dual.shape[axis], -1).sum(axis=1)
                    sums[type_] += share * marginal / float(marginal.sum())
    means = [np.maximum(one / float(one.sum()), LEAST_DISTRIBUTION / len(one)) for one in sums]
    return [one / float(one.sum()) for one in means]


class Covariances:
    """The covariances of a solved decomposition.

    Parameters
    ----------
    split : Split
    solver : SubSolver
    solved : sequence of (SubWorkload, SubSolution)
    traces : Traces
        Takes the covariances.
    p : sequence of ndarray
        By type: at what distributions V^(-1/2) takes the place of strategies that are joint or do not measure
        everything.

    Attributes
    ----------
    rooted : bool
        Whether one depends on the distributions.
    """

    def __init__(
        self, split: Split, solver: SubSolver, solved: Solved, found: Traces, p: Sequence[Array]
    ) -> None:
        self._split, self._solver, self._traces, self._p = split, solver, found, p
        self.rooted = False
        self._numbers: dict[Hashable, tuple[int, ...]] = {}
        joint = {
            block.key
            for sub, solution in solved
            for block in solution.blocks
            if isinstance(block.found, Factor) and len(block.axes) > 1 and not sub.rows
        }
        # traces that join the attributes of several such strategies are too many: products take their place
        self._by_products = len(joint) > 1

    def of(self, sub: SubWorkload, solution: SubSolution) -> tuple[int, ...]:
        """Return the number of the covariance of each free attribute of a class."""
        found: dict[int, int] = {}
        for block in solution.blocks:
            types = tuple(sub.types[axis] for axis in block.axes)
            if self._split.free[types[0]]:
                key = types, block.key
                if key not in self._numbers:
                    self._numbers[key] = self._add(sub, block, types)
                found.update(zip(block.axes, self._numbers[key], strict=True))
        return tuple(found[axis] for axis in sorted(found))

    def _add(self, sub: SubWorkload, block: BlockSolution, types: tuple[int, ...]) -> tuple[int, ...]:
        """Add the covariances of a block; return their numbers."""
        explicit = self._solver.explicit(sub) if len(types) == len(sub.types) else []
        found, own = block.over_values, [self._p[type_] for type_ in types]
        known = self._traces.covariances
        numbers = tuple(range(len(known), len(known) + len(types)))
        joint = isinstance(found, Factor) and len(types) > 1
        # factors of a product whose rows are weighted need not be those of any product
        freed = not isinstance(found, Factor) and any(factor.dual is None for factor in found.factors)
        if not explicit and (freed or (joint and self._by_products)):
            problem = self._solver.problem(sub, block.axes, block.terms, [])
            found, joint = (
                solve_structured(problem, ConvexSolver(LIMITS.fast_gap), weigh_rows=False),
                False,
            )
        if joint:
            if found.cells > LIMITS.spectral_cells:
                raise TooLargeError(f"a bound of a joint strategy over {found.cells} cells")
            self.rooted = True
            gram, sizes = self._solver.gram(block.terms, explicit).explicit.entries, [len(p) for p in own]
            tensor = _root(gram, own).matrix.reshape(*sizes, *sizes)
            if _one_type(types) and _alike(sizes, gram):
                numbers = numbers[:1] * 2
                tensor = (tensor + tensor.transpose(1, 0, 3, 2)) / 2.0
            known += [Tied(tensor, axis) for axis in range(len(types))]
            return numbers
        factors = (found,) if isinstance(found, Factor) else found.factors
        for factor, type_, p in zip(factors, types, own, strict=True):
            if len(types) == 1 and factor.height < len(p) - 1 and len(p) <= LIMITS.spectral_cells:
                self.rooted = True
                known.append(_root(self._solver.gram(block.terms, explicit).explicit.entries, own))
            else:
                known.append(_covariance(factor, self._traces.weights[type_]))
        return numbers


def measured_terms(
    split: Split, solver: SubSolver, solved: Solved, p: Sequence[Array]
) -> tuple[Traces, list[ClassTerms], bool]:
    """Return the traces and terms of queries and measurements, and whether covariances depend on p.

    Raises TooLargeError where joint strategies or explicit queries have too many entries.
    """
    found, classes = asked_terms(split, solver.pieces)
    covariances = Covariances(split, solver, solved, found, p)
    solutions = {id(sub): solution for sub, solution in solved}
    for place, (sub, one) in enumerate(zip(split.classes, classes, strict=True)):
        solution = solutions.get(id(sub))
        if solution is not None:
            numbers = covariances.of(sub, solution)
            level = math.fsum(found.trace(coefficient, slots, numbers) for coefficient, slots in one.terms)
            level *= math.prod((n - 1.0) ** 2 / n for n in one.spread)
            classes[place] = replace(one, measured=numbers, level=max(level, 0.0))
    return found, classes, covariances.rooted


def _covariance(factor: Factor, weights: Array) -> Covariance:
    """Return Z by a root: the generalized inverse of B'B whose rows and columns sum to 0."""
    right = factor.rows if factor.identity else factor.inverse
    # at the optimum for V, R' V R is a multiple of B D B', which is diagonal
    shape = None if factor.dual is None else np.einsum("aj,j,aj->a", factor.rows, factor.dual, factor.rows)
    return Covariance(right - np.outer(weights, right.sum(axis=0)), shape)


def _root(gram: Array, distributions: Sequence[Array]) -> Covariance:
    """Return Z = t S (S V S)^(-1/2) S with S = diag(p)^(1/2), on what sums to 0 along every attribute.

    With t = tr((S V S)^(1/2)) it is scaled as an optimal strategy's covariance is: tr(V Z) = t^2.
    """
    root = outer(map(np.sqrt, distributions))
    scaled = gram * root.ravel()[:, None] * root.ravel()
    tensor = scaled.reshape(*root.shape, *root.shape)
    away = [np.eye(len(p)) - np.sqrt(np.outer(p, p)) for p in distributions]
    tensor = along_axes(tensor, [*away, *away])
    square = tensor.reshape(scaled.shape)
    rows = np.vstack(factored_blocks(square, symmetries_of(square, root.shape)))
    values = np.einsum("aj,aj->a", rows, rows)
    kept = values > LIMITS.rank * values.max()
    trace = float(np.sqrt(values[kept]).sum())
    return Covariance(rows[kept].T * (math.sqrt(trace) * values[kept] ** -0.75) * root.ravel()[:, None])
