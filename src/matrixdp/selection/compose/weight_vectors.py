"""Choosing the weight vectors: minimize phi(w), the sum over sub-workloads of sqrt(L(w)).

The square of phi is the total squared error of the decomposition at privacy cost 1 with Gaussian noise. By
the envelope theorem the gradient of sqrt(L) is tr(N dV) / 2 with the optimal N of each sub-workload, so an
evaluation costs the sub-workloads' own solutions and little more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from matrixdp.exact import IdentityMatrix
from matrixdp.exact.linear import Array
from matrixdp.noise import GAUSSIAN
from matrixdp.selection.compose.coarse_weights import coarse_split
from matrixdp.selection.compose.sub_solver import BlockSolution, SubSolution, SubSolver
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.gram import ConvexSolver, solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.residuals import Pieces, Split, SubWorkload

#: Powers of the norms that take the place of a single query's largest entry, one descent after the other.
_SMOOTH_POWERS = (10.0, 100.0)

#: Beyond this weight a step went astray, and Gram matrices are rounding errors; phi grows by the square.
_LARGEST_WEIGHT = 1e6
#: Directions in which phi curves less than this part of the most count as if it curved so much.
_FLATTEST = 1e-2
#: Tolerance of the descent: fine, as phi is flat near its optimum.
_TOLERANCE = 3e-8
#: With more groups of explicit queries evaluations take long, and `FEW_EVALUATIONS` must do.
_MANY_EXPLICIT = 8
#: Evaluations after those of the starting points: 10 came within 0.007% on eight workloads, 5 within 0.18%.
#: Half of them over many values, as the other half gained 0.01% on ranges of twenty attributes. Fewer from
#: where a search for other weights of the same queries ended, and where evaluations take long.
_MAX_EVALUATIONS = 80
#: A search that gains less than this share has not left the point where it began.
_STUCK = 1e-3
FEW_EVALUATIONS = 25
#: Evaluations with each smoothed norm.
_SMOOTH_EVALUATIONS = 40


def _scaled(image: Callable[[Array], Array], scale: float, rows: Array) -> Array:
    return scale * image(rows)


def uniform_weights(split: Split) -> list[Array]:
    """Return 1/n for every value of every attribute type: QuerySmasher's choice; zeros where undivided."""
    return [
        np.full(size, 0.0 if type_ == split.undivided else 1.0 / size)
        for type_, size in enumerate(split.sizes)
    ]


class _Gradient:
    """What an evaluation of phi adds up: derivatives with respect to the weights and to the slots' pieces."""

    def __init__(self, split: Split) -> None:
        self.weights = [np.zeros(size) for size in split.sizes]
        self.mean_squares = np.zeros(len(split.slots))  # d phi / d t of each slot
        self.slots: dict[int, Array] = {}  # d phi / d (P'VP) of each slot
        # blocks on one axis, each with its share of phi
        self.axes: dict[Hashable, tuple[BlockSolution, float]] = {}

    def add_slot(self, slot: int, addition: Array) -> None:
        current = self.slots.get(slot)
        self.slots[slot] = addition if current is None else current + addition

    def add_types(self, parts: list[tuple[int, Array]]) -> None:
        for type_, part in parts:
            self.weights[type_] += part

    def finished(self, split: Split, weights: Sequence[Array]) -> list[Array]:
        """Carry the slots' derivatives on to the weights."""
        for number, definition in enumerate(split.slots):
            w = weights[definition.type]
            if not split.free[definition.type]:
                continue
            gram = definition.gram.matrix()
            if not definition.gram.definite:
                gram = (gram + gram.T) / 2.0
            self.weights[definition.type] += 2.0 * self.mean_squares[number] * (gram @ w)
            if number in self.slots:
                image = self.slots[number].sum(axis=1)
                self.weights[definition.type] -= 2.0 * (gram @ (image - w * image.sum()))
        return self.weights


@dataclass(eq=False)
class Objective:
    """phi(w) and its gradient; gaps are those of the sub-solutions, of single axes and of joint ones.

    A finite ``power`` smooths phi, which has a kink where the largest entry of a single query changes place:
    see `ConvexSolver`. ``kinked`` says whether there was a single query.
    """

    split: Split
    gap: float = 1e-7
    joint_gap: float = field(default_factory=lambda: LIMITS.search_gap)
    starts: dict[Hashable, Factor] = field(default_factory=dict)
    products: dict[Hashable, tuple[Factor, ...]] = field(default_factory=dict)
    report: Callable[[int, float], None] | None = None
    power: float = math.inf
    kinked: bool = False
    evaluations: int = 0
    best: tuple[float, list[Array]] | None = None
    last: _Gradient | None = None

    def curvature(self, type_: int) -> Array:
        """Return how much phi curved at the last weights in those of a type, by way of the w'Vw alone."""
        assert self.last is not None
        total = np.zeros((self.split.sizes[type_],) * 2)
        for number, definition in enumerate(self.split.slots):
            if definition.type == type_:
                gram = definition.gram.matrix()
                slot = self.last.slots.get(number, np.zeros(()))
                total += (self.last.mean_squares[number] + float(slot.sum())) * (gram + gram.T)
        return total

    def solver(self, pieces: Pieces, gap: float) -> SubSolver:
        """Return the solver of sub-workloads at each step of the search."""
        return SubSolver(
            pieces,
            GAUSSIAN,
            ConvexSolver(gap, self.power),
            limits=replace(LIMITS, joint_cells=LIMITS.search_joint_cells, row_cells=LIMITS.slow_cells),
            searching=True,
            starts=self.starts,
            products=self.products,
        )

    def __call__(self, weights: list[Array]) -> tuple[float, list[Array]]:
        """Return phi and its gradient with respect to each type's weight vector."""
        self.evaluations += 1
        loosest = max((len(c.sizes) for c in self.split.classes), default=0)
        solver = self.solver(Pieces(self.split, weights), self.gap if loosest < 2 else self.joint_gap)
        gradient = _Gradient(self.split)
        phi = 0.0
        for sub in self.split.classes:
            solution = solver.solve(sub)
            if solution is None:
                continue
            value = len(sub.marginals) * math.sqrt(solution.level)
            phi += value
            self.kinked |= any(isinstance(b.found, Factor) and b.found.height == 1 for b in solution.blocks)
            self._spread(solver, sub, solution, value, gradient)
        for block, value in gradient.axes.values():
            share = 0.5 * value / block.found.level
            for term in block.terms:
                grams = [solver.pieces.slots[term.kept[0]].array]
                gradient.add_slot(term.kept[0], share * term.coefficient * block.found.axis_slope(0, grams))
        self.last = gradient
        if self.best is None or phi < self.best[0]:
            self.best = (phi, weights)
        if self.report is not None:
            self.report(self.evaluations, phi)
        return phi, gradient.finished(self.split, weights)

    def _spread(
        self, solver: SubSolver, sub: SubWorkload, solution: SubSolution, value: float, gradient: _Gradient
    ) -> None:
        """Add one class's share (its value in phi) to the gradient."""
        for block in solution.blocks:
            if len(block.axes) > 1 or solution.has_rows:
                self._spread_joint(solver, sub, block, value, gradient)
            elif solver.pieces.slots[block.terms[0].kept[0]].closed is None:
                use = (block.key, tuple(term.kept for term in block.terms))
                known = gradient.axes.get(use)
                gradient.axes[use] = (block, value + (known[1] if known else 0.0))
        shares = self._term_shares(solver, sub, solution, value)
        for product, share in zip(sub.products, shares, strict=True):
            for slot in product.contracted:
                t = solver.pieces.slots[slot].mean_square
                if t != 0.0:
                    gradient.mean_squares[slot] += share / t
        if not sub.types:
            for item in sub.rows:
                image = partial(np.multiply, 0.5 * value / solution.level * item.weight)
                parts = solver.pieces.explicit_gradient(item.explicit, item.kept, image, sub.groups)
                gradient.add_types(parts)

    def _term_shares(
        self, solver: SubSolver, sub: SubWorkload, solution: SubSolution, value: float
    ) -> list[float]:
        """Return, for each product term, d value / d log(coefficient)."""
        pieces = solver.pieces
        mixed = [block for block in solution.blocks if len(block.terms) > 1 or solution.has_rows]
        shares = []
        for product in sub.products:
            weight = pieces.coefficient(product)
            if not sub.types:
                shares.append(0.5 * value * weight / solution.level)
                continue
            kept = [pieces.slots[slot] for slot in product.kept]
            # one common Kronecker product: the shares are those of the coefficients
            change = 1.0
            if mixed:
                found = mixed[0].found
                grams = [pieces.slots[kept[axis].representative].array for axis in mixed[0].axes]
                change = found.change(grams) / found.level
            shares.append(0.5 * value * weight / solution.scale * change)
        return shares

    def _spread_joint(
        self, solver: SubSolver, sub: SubWorkload, block: BlockSolution, value: float, gradient: _Gradient
    ) -> None:
        """Add the share of a block whose error changes with all of its axes together."""
        share = 0.5 * value / block.found.level
        for term in block.terms:
            grams = [solver.pieces.slots[slot].array for slot in term.kept]
            for axis, slot in enumerate(term.kept):
                gradient.add_slot(slot, share * term.coefficient * block.found.axis_slope(axis, grams))
        for item in sub.rows:
            image = partial(_scaled, block.found.image, share * item.weight)
            parts = solver.pieces.explicit_gradient(item.explicit, item.kept, image, sub.groups)
            gradient.add_types(parts)


def _starting_points(split: Split, starts: dict[Hashable, Factor] | None = None) -> list[list[Array]]:
    """Return per-type candidates: the optimum of each attribute's own queries, its dual, and uniform.

    ``starts`` takes the dual points of large types.
    """
    uniform = uniform_weights(split)
    own, dual = list(uniform), list(uniform)
    grams: dict[int, Array] = {}
    for slot in split.slots:
        if slot.type in split.searched and slot.gram.definite:
            gram = slot.gram.matrix()
            if not float(np.trace(gram)) > 0:
                continue
            grams[slot.type] = grams.get(slot.type, np.zeros_like(gram)) + gram / np.trace(gram)
    for item in split.explicit:
        tensor = item.content.tensor
        for axis, type_ in enumerate(item.types):
            if type_ == split.undivided:
                continue
            rows = tensor.mean(axis=tuple(i + 1 for i in range(len(item.types)) if i != axis))
            gram = rows.T @ rows
            if float(np.trace(gram)) > 0:
                grams[type_] = grams.get(type_, np.zeros_like(gram)) + gram / np.trace(gram)
    for type_, gram in grams.items():
        factor = solve_gram(gram, gap=1e-8 if len(gram) <= LIMITS.max_searched_size else LIMITS.search_gap)
        assert factor.dual is not None
        if starts is not None and len(gram) > LIMITS.max_searched_size:
            # without its rows, which may be gigabytes
            starts["own", type_] = replace(factor, strategy=IdentityMatrix(len(gram)))
        dual[type_] = factor.dual / factor.dual.sum()
        own[type_] = _exact_weights(factor)
    return [own, dual, uniform]


def _exact_weights(found: Factor) -> Array:
    """Return w = X^+ 1 / (1' X^+ 1), or the null vector with sum 1 where 1 is not in the row space of X."""
    factor = found.rows
    size = factor.shape[1]
    ones = np.ones(size)
    if len(factor) == size:  # rows that come with a dual point are independent
        weights = found.inverse @ (ones @ found.inverse)
        return np.asarray(weights / weights.sum())
    _, values, right = np.linalg.svd(factor, full_matrices=True)
    rank = int((values > 1e-9 * values[0]).sum())
    null = right[rank:]
    outside = null.T @ (null @ ones)
    if float(outside @ ones) > 1e-6 * size:
        return np.asarray(outside / (outside @ ones))
    weights = right[:rank].T @ ((right[:rank] @ ones) / values[:rank] ** 2)
    return np.asarray(weights / weights.sum())


def descend_weights(
    objective: Objective, start: list[Array], free: Sequence[int], effort: Effort, plain: bool = False
) -> None:
    """Descend over the vectors of some types, their sums kept; the objective keeps what is best.

    Steps are taken in variables in which phi, as far as it depends on the w'Vw, curves as much in all
    directions: on ranges of twenty attributes 20 evaluations lead further than 60 in the weights themselves.
    Not with few values, where evaluations are cheap and such steps may end in a kink, nor where asked for
    ``plain`` ones.
    """
    assert objective.best is not None
    scale = objective.best[0]
    bases = [np.eye(len(start[type_])) - 1.0 / len(start[type_]) for type_ in free]
    if not (plain or _are_few(objective.split, free)):
        objective(start)
        for place, type_ in enumerate(free):
            values, vectors = np.linalg.eigh(bases[place] @ objective.curvature(type_) @ bases[place])
            top = float(values[-1]) / scale
            if top > 0.0:
                bases[place] = bases[place] @ (vectors / np.sqrt(np.maximum(values / scale, _FLATTEST * top)))
    ends = np.cumsum([len(basis) for basis in bases])

    def function(flat: Array) -> tuple[float, Array]:
        weights = list(start)
        for type_, basis, steps in zip(free, bases, np.split(flat, ends[:-1]), strict=True):
            own = start[type_] + basis @ steps
            weights[type_] = own + (1.0 - own.sum()) / len(own)
        if max(float(np.abs(weights[type_]).max()) for type_ in free) > _LARGEST_WEIGHT:
            phi, gradient = math.fsum(float(w @ w) for w in weights), [2.0 * w for w in weights]
        else:
            phi, gradient = objective(weights)
        slopes = [gradient[type_] @ basis for type_, basis in zip(free, bases, strict=True)]
        return phi / scale, np.concatenate(slopes) / scale

    descend(function, np.zeros(ends[-1]), effort)


def optimized_weights(
    split: Split,
    report: Callable[[int, float], None] | None = None,
    starts: dict[Hashable, Factor] | None = None,
    known: MutableMapping[Hashable, list[Array]] | None = None,
) -> list[Array]:
    """Minimize phi over the weight vectors of all attribute types that are not symmetric.

    ``starts`` takes what is a start for the sub-workloads at these weights. ``known`` holds where searches
    for the same queries weighted otherwise ended, from where this one starts, and takes where it ends.

    Notes
    -----
    phi is convex in each weight vector but not smooth where ranks change, so the search starts from the
    best of three points and keeps the best point that it meets.
    """
    free = split.searched
    if not free:
        return uniform_weights(split)
    coarse = coarse_split(split)
    if coarse is not None:
        found = optimized_weights(coarse.split, report, known=known)
        return coarse.carried(found, _starting_points(coarse.split)[0], _starting_points(split, starts)[0])
    many = len(split.explicit) > _MANY_EXPLICIT
    objective = Objective(split, joint_gap=LIMITS.loose_gap if many else LIMITS.search_gap, report=report)
    known, alike = {} if known is None else known, _shape(split)
    if alike in known:
        objective(known[alike])
        descend_weights(objective, known[alike], free, _effort(FEW_EVALUATIONS, LIMITS.fine_gain))
    else:
        _search(objective, free, many)
    assert objective.best is not None
    found = objective.best[1]
    # uniform weights are a kink: they are no warm start
    if any(float(np.ptp(found[type_])) > 1e-9 for type_ in free):
        known[alike] = found
    return found


def _are_few(split: Split, free: Sequence[int]) -> bool:
    return sum(split.sizes[type_] for type_ in free) <= LIMITS.few_values


def _effort(evaluations: int, tolerance: float) -> Effort:
    return Effort(evaluations, tolerance, evaluations=evaluations)


def _shape(split: Split) -> Hashable:
    """Return a key that is equal for splits whose queries differ only in weights."""
    slots = tuple((slot.type, slot.gram.symmetric is None) for slot in split.slots)
    classes = tuple(
        (sub.types, len(sub.products), len(sub.rows), len(sub.marginals)) for sub in split.classes
    )
    return split.sizes, split.free, slots, classes


def _search(objective: Objective, free: Sequence[int], many: bool) -> None:
    """Search from the best of three points; with fewer evaluations where each is dear."""
    own, *others = _starting_points(objective.split)
    for candidate in (own, *others):
        objective(candidate)
    assert objective.best is not None
    start = objective.best[1]
    # uniform weights can be a kink from which no gradient leads down: then search from the optimum of each
    # attribute's own queries too
    few, phi = _are_few(objective.split, free), objective.best[0]
    most = _MAX_EVALUATIONS if few else _MAX_EVALUATIONS // 2
    evaluations = FEW_EVALUATIONS if many else most
    for point in [start] if many or start is own else [start, own]:
        descend_weights(objective, point, free, _effort(evaluations, _TOLERANCE))
    if not (few or many) and objective.best[0] > phi * (1.0 - _STUCK):  # in a kink, which large steps leave
        descend_weights(objective, start, free, _effort(_MAX_EVALUATIONS, _TOLERANCE), plain=True)
    if objective.kinked and not many and _are_few(objective.split, free):
        point = _smoothed(objective, free)
        objective(point)
        descend_weights(objective, point, free, _effort(evaluations, _TOLERANCE))


def _smoothed(objective: Objective, free: Sequence[int]) -> list[Array]:
    """Return where descents of smoother phi lead from the best point: L-BFGS stops in a kink."""
    assert objective.best is not None
    point = objective.best[1]
    for power in _SMOOTH_POWERS:
        smooth = replace(objective, power=power, best=None)
        smooth(point)
        descend_weights(smooth, point, free, _effort(_SMOOTH_EVALUATIONS, 10 * _TOLERANCE))
        assert smooth.best is not None
        point = smooth.best[1]
    return point
