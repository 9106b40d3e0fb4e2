"""One attribute with a tree of values, such as areas: every node is measured with its own precision.

The queries split over the subsets A' of the other attributes, as in the decomposition; the tree stays whole.
For each A' a level asks as much of the tree as its queries have pieces on A', and the precisions of all nodes
and subsets share the privacy cost of every path from the root to a value (`selection.gram.trees`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact.linear import Array, kronecker
from matrixdp.exact.trees import TreeMatrix
from matrixdp.noise import GAUSSIAN, Noise
from matrixdp.plans import Block, Direct, Part, Plan, slices
from matrixdp.plans import Split as SplitPlan
from matrixdp.queries import Workload
from matrixdp.selection.compose.assembly import Measured, measured_pieces, weights_by_name
from matrixdp.selection.compose.decomposition import is_exact, sub_solver_for
from matrixdp.selection.compose.row_trees import MeasuredClass, Whole
from matrixdp.selection.compose.sub_solver import SubSolution, SubSolver
from matrixdp.selection.compose.weight_vectors import optimized_weights
from matrixdp.selection.compose.whole_table import select_table
from matrixdp.selection.gram.beside import Beside
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.trees import Shares, Tree, tree_bound, tree_shares
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.levels import Levels, by_level, levels_of, node_weights, one_product
from matrixdp.selection.problem.residuals import (
    Pieces,
    ProductTerm,
    SubWorkload,
    numeric_terms,
    split_workload,
)
from matrixdp.selection.registry import Progress, silent
from matrixdp.selection.selection import Certificate

#: log2 of the largest integer weight of a node.
_WEIGHT_BITS = 14


@dataclass(frozen=True, eq=False)
class _Class:
    """The pieces on some of the other attributes: their strategy, and what each level asks of it.

    ``asked`` is the error of what each level asks at a node that is measured at privacy cost 1, by the places
    of `Levels.asked`; ``same`` whether all levels ask the same but for weights.
    """

    sub: SubWorkload
    solution: SubSolution
    asked: Array
    same: bool


def select_tree(
    workload: Workload, noise: Noise, gap: float, progress: Progress = silent
) -> tuple[Plan, Certificate]:
    """Select the precisions of all nodes of the attribute whose sets are levels.

    Raises
    ------
    WorkloadError
        If no attribute has levels, or every query is zero; under Laplace noise if levels ask different
        queries of other attributes.
    TooLargeError
        If other attributes do not factor.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> states = mdp.product(area={"sets": [[*range(100)], [*range(100, 500)]]}, sex="identity")
    >>> workload = mdp.Workload(mdp.Domain({"area": 500, "sex": 2}), states, mdp.product(area="identity"))
    >>> plan, certificate = select_tree(workload, GAUSSIAN, 1e-6)
    >>> [part.attributes for part in plan.parts], certificate.gap < 1e-3
    ([('area',), ('area', 'sex')], True)
    """
    levels = levels_of(workload)
    if levels is None:
        told = "no attribute whose sets are levels of a tree"
        raise WorkloadError.at(("mechanism",), told, "auto, which takes any workload", code="not-supported")
    progress("solving the other attributes", None)
    rest = one_product(workload, levels)
    if rest is not None:
        return _of_product(workload, levels, rest, noise, gap)
    if noise.norm == 1:
        told = f"levels that ask different queries of other attributes under {noise} noise"
        raise WorkloadError.at(("mechanism",), told, "auto, which takes any workload", code="not-supported")
    asked = by_level(workload, levels)
    split = split_workload(asked, undivided=levels.name)
    solver = sub_solver_for(Pieces(split, optimized_weights(split)), noise, gap)
    solver.searching = True  # rows of one weight: those of the tree have their own
    classes = [one for sub in split.classes if (one := _solved(solver, sub)) is not None]
    if not classes:
        raise WorkloadError("every query of the workload is zero: there is nothing to measure")
    progress("sharing the privacy cost among the nodes", None)
    copies = np.array([len(one.sub.marginals) for one in classes], dtype=np.float64)
    by_node = np.stack([one.asked for one in classes], axis=1) / levels.totals[:, None]
    largest = by_node.max(axis=0)
    by_class = by_node / largest
    tree, weights, beside = _nodes(levels, by_class)
    losses = copies**2 * largest
    shares = tree_shares(tree, weights, losses, beside=beside)
    loss = noise.variance_factor * shares.loss
    domain = workload.domain
    plan = _plan(domain, _measured(levels, classes, shares, noise), weights_by_name(domain, solver), noise)
    same = levels.exact and all(one.same for one in classes)
    if not same or not is_exact(split, solver, [one.solution for one in classes]):
        return _with_rows(workload, levels, noise, plan, loss, progress)
    factors = [[block.found for block in one.solution.blocks] for one in classes]
    proved = [math.prod(f.dual_value / f.loss for f in own if isinstance(f, Factor)) for own in factors]
    bound = tree_bound(tree, weights, losses * np.array(proved), shares.prices, beside)
    return plan, Certificate(loss, noise.variance_factor * bound, f"every {noise.title} strategy")


def _of_product(
    workload: Workload, levels: Levels, rest: Workload, noise: Noise, gap: float
) -> tuple[Plan, Certificate]:
    """Return the product of the best strategy for the other attributes and precisions of all nodes.

    Under Gaussian noise no other strategy has less error but for what nodes lose (docs/mathematics.md, the
    product rule).
    """
    factor = noise.variance_factor
    asked = np.zeros((len(levels.asked), 1))
    for group, places in zip(workload, levels.places, strict=True):
        asked[list(places)] += group.weight
    tree, weights, beside = _nodes(levels, asked)
    others, known = select_table(rest, noise, "optimum" if noise.norm == 2 else "product", gap=gap)
    shares = tree_shares(tree, weights, np.array([known.loss / factor]), noise.norm, beside=beside)
    matrix, _ = _tree_matrix(levels, shares, 0, noise)
    blocks = [Block((levels.name,), matrix), *others.parts[0].blocks]
    plan = Direct.of(workload.domain, blocks, noise)
    gaussian = known if noise.norm == 2 else select_table(rest, GAUSSIAN, "optimum", gap=gap)[1]
    if gaussian.lower_bound is None or not levels.exact:
        return plan, Certificate(factor * shares.loss, None, "no bound for the other attributes")
    proved = np.array([gaussian.lower_bound])
    prices = shares.prices if noise.norm == 2 else tree_shares(tree, weights, proved, beside=beside).prices
    bound = factor * tree_bound(tree, weights, proved, prices, beside)
    return plan, Certificate(factor * shares.loss, bound, f"every {noise.title} strategy")


def _nodes(levels: Levels, asked: Array) -> tuple[Tree, list[Array], Beside | None]:
    """Return the tree, what its nodes ask, and areas beside it with what they ask."""
    tree, weights, count = Tree.of(levels.groups), node_weights(levels, asked), len(levels.groups)
    across = tuple(weights[count:])
    beside = Beside(tree, levels.home, levels.beside, across) if levels.beside else None
    return tree, weights[:count], beside


def _with_rows(
    workload: Workload, levels: Levels, noise: Noise, plan: Plan, loss: float, progress: Progress
) -> tuple[Plan, Certificate]:
    """Return the better of a plan and one whose rows have precisions of their own, with the bound of both."""
    whole = Whole.of(workload, levels)
    if whole is None:
        return plan, Certificate(loss, None, "no bound for a tree that is asked other queries than marginals")
    progress("sharing the privacy cost among the nodes of each row", None)
    bound = whole.bound
    proved = None if bound is None else noise.variance_factor * bound
    scope = "no bound for leaves of several weights" if bound is None else f"every {noise.title} strategy"
    domain = workload.domain
    cells = sum(domain.counted(part.attributes) for part in plan.parts)
    own = math.inf if cells > slices.LEAST_CUT else noise.variance_factor * whole.shares.loss
    if own > loss * (1.0 - LIMITS.rules_worthwhile):
        return plan, Certificate(loss, proved, scope)
    even = {one.name: np.full(one.size, 1.0 / one.size) for one in domain.attributes}
    return _plan(domain, whole.measured(), even, noise), Certificate(own, proved, scope)


def _plan(
    domain: Domain, classes: Iterable[MeasuredClass], weights: Mapping[str, Array], noise: Noise
) -> Plan:
    """Return the plan that measures every node of every class with its share of the privacy cost.

    Shares are integer weights of rows, so that the paths of a class add up exactly.
    """
    parts, costs, whole = list[Part](), np.zeros(1), dict[str, Array]()
    for attributes, matrix, unit, marginals in classes:
        costs = costs + matrix.column_sums(noise.norm) * unit**noise.norm
        whole |= {name: np.zeros(domain[name].size) for name in attributes}
        for others in marginals:
            blocks = (Block(attributes, matrix), *others)
            part = Part(domain.sort([name for block in blocks for name in block.attributes]), blocks, 1.0)
            # the copies of a class share what it has
            share = float(matrix.column_power_sum(noise.norm)) * unit**noise.norm / len(marginals)
            parts.append(part.at_cost(noise, share))
    most = float(costs.max()) ** (2.0 / noise.norm)
    scaled = tuple(replace(part, variance=part.variance * most) for part in parts)
    return SplitPlan(domain, scaled, noise, {**weights, **whole})


def _measured(
    levels: Levels, classes: Sequence[_Class], shares: Shares, noise: Noise
) -> Iterator[MeasuredClass]:
    """Yield what is measured of each class."""
    known: Measured = {}
    for place, one in enumerate(classes):
        matrix, unit = _tree_matrix(levels, shares, place, noise)
        pieces, multipliers = measured_pieces(one.solution, noise, known)
        if multipliers is not None:
            raise TooLargeError("tree: attributes that do not factor")
        marginals = [
            [Block(tuple(marginal[axis] for axis in axes), inner) for axes, inner in pieces]
            for marginal in one.sub.marginals
        ]
        yield (levels.name,), matrix, unit, marginals


def _tree_matrix(levels: Levels, shares: Shares, place: int, noise: Noise) -> tuple[TreeMatrix, float]:
    """Return nodes and areas with integer weights for a class's shares of the cost, and the unit of these."""
    nodes = [level[:, place] for level in shares.precisions]
    depth = max(m for m, level in enumerate(nodes) if level.any()) + 1
    across = [(areas, own[:, place]) for areas, own in zip(levels.beside, shares.beside, strict=True)]
    across = [(areas, own) for areas, own in across if own.any()]
    # the node of the home that each area lies in
    homes = [levels.groups[levels.home][np.unique(areas, return_index=True)[1]] for areas, _ in across]
    given = [own[home] for (_, own), home in zip(across, homes, strict=True)]
    roots = [level ** (1.0 / noise.norm) for level in (*nodes[:depth], *given)]
    unit = max(float(level.max()) for level in roots) / 2**_WEIGHT_BITS
    whole = [np.rint(level / unit).astype(np.int64) for level in roots]
    nested = (*whole[: depth - 1], np.maximum(whole[depth - 1], 1))
    beside = tuple(areas for areas, _ in across)
    return TreeMatrix(levels.groups[:depth], nested, beside, tuple(whole[depth:])), unit


def _solved(solver: SubSolver, sub: SubWorkload) -> _Class | None:
    """Return the strategy of a class for the attributes beside the tree; None where it asks nothing."""
    pieces, split = solver.pieces, solver.pieces.split
    if sub.rows:
        raise TooLargeError("tree: queries over several attributes that are no products")
    axis = sub.types.index(split.undivided) if split.undivided in sub.types else 0
    found: dict[tuple[int, ...], Array] = {}
    count = split.sizes[sub.types[axis]]
    for term in numeric_terms(pieces, sub):
        place = int(np.argmax(split.slots[term.kept[axis]].gram.diagonal()))
        own = found.setdefault(term.kept[:axis] + term.kept[axis + 1 :], np.zeros(count))
        own[place] += term.coefficient
    others = replace(
        sub,
        types=sub.types[:axis] + sub.types[axis + 1 :],
        sizes=sub.sizes[:axis] + sub.sizes[axis + 1 :],
        products=tuple(ProductTerm(float(own.sum()), kept, ()) for kept, own in found.items()),
        marginals=tuple(marginal[:axis] + marginal[axis + 1 :] for marginal in sub.marginals),
    )
    solution = solver.solve(others)
    if solution is None or solution.loss <= 0.0:
        return None
    if len(found) == 1:
        [own] = found.values()
        return _Class(others, solution, solution.loss * own / own.sum(), same=True)
    errors = [_error(solver, solution, kept) * own for kept, own in found.items()]
    return _Class(others, solution, np.sum(errors, axis=0), same=False)


def _error(solver: SubSolver, solution: SubSolution, kept: tuple[int, ...]) -> float:
    """Return the error of one product of pieces under a strategy that is made for a sum of several."""
    error = 1.0
    for block in solution.blocks:
        if not isinstance(block.found, Factor):
            raise TooLargeError("tree: attributes that do not factor, of which levels ask different queries")
        gram = kronecker(solver.pieces.slots[kept[axis]].array for axis in block.axes)
        inverse = block.found.inverse
        error *= float(np.einsum("ij,ij->", inverse, gram @ inverse))
    return error
