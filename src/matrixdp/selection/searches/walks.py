"""A walk along one ordered attribute or up a tree of values, and p-Identity strategies of all others.

With G the Gram matrix of what is asked of its values, and s_j = 1 + c_j for the widths c_j in units
of the noise's scale, the squared error at privacy cost 1 is separable (docs/mathematics.md):

    sum over j of  D_j (s_j^2 / 3 + 2 / (3 s_j)) + 2 G_j,j+1 / s_j + G_jj - G_j+1,j+1,
    D_j = G_jj - 2 G_j,j+1 + G_j+1,j+1,

where entries beyond the last value are 0. So every width is known: s_j^3 = 1 + 3 G_j,j+1 / D_j, or s_j = 1
where that is less. With several attributes strategies alternate over them, as for any product.

Where queries are sets of values of which every two are nested or apart, they are the nodes of trees. Given
linear estimates of the values the error is as separable as for a path; given widths the best estimates are
least squares. So both are improved in turn, and with them the shares of two groups of levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from matrixdp.domain import Amount
from matrixdp.errors import WorkloadError
from matrixdp.exact import IntegerMatrix
from matrixdp.exact.linear import Array
from matrixdp.exact.walks import (
    UNIT,
    BlockWalkMatrix,
    TreeWalkMatrix,
    TwoLevels,
    WalkMatrix,
    innovation_variance,
    noise_covariance,
    paths,
    step_covariance,
    step_variance,
    sums_above,
    sums_below,
)
from matrixdp.noise import LAPLACE, Noise
from matrixdp.plans import Plan
from matrixdp.queries import DenseGroup, MatrixRows, ProductGroup, Total, Workload
from matrixdp.selection.compose.product import Product, alternate, solve_kron
from matrixdp.selection.compose.whole_table import product_choice
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import AS_MANY_AS_PAY, Rows, solve_axis
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.kron_sum import Inverse, KronSum
from matrixdp.selection.selection import Certificate

#: Widths of rows that nobody asks for by themselves, in units of the scale.
_WIDEST = 256.0
_SWEEPS = 6
#: Attributes of fewer values have one walk: two levels were better for none that was tried.
_LONG = 96
#: Lengths of blocks that are tried, as doublings of the square root of the number of values.
_DOUBLINGS = (-0.5, 0.0, 0.5)
#: Rounds over estimates and widths, from these widths; the losses of the last are equal to seven digits.
_ROUNDS, _FIRST = 24, 2.0
#: The most nodes and levels of trees for which walks are searched, and groups that are looked at for them.
_MOST_NODES, _LEVELS, _MOST_GROUPS = 512, 8, 1_024
#: What the weights of both levels add up to, and the least share of a level.
_WEIGHTS, _LEAST_SHARE = 256, 1.0 / 32.0
NO_BOUND = "no bound is known for walks, whose counts share noise: those for independent noise do not hold"


def _share(first: float, second: float) -> float:
    """Return the best share of two levels' first, given their losses at the whole cost."""
    roots = np.cbrt(np.maximum([first, second, 1e-300], 0.0))
    return float(np.clip((roots[0] + roots[2] / 2.0) / roots.sum(), _LEAST_SHARE, 1.0 - _LEAST_SHARE))


def _least(gram: Array) -> tuple[Array, Array]:
    """Return the widths of the best walk for a Gram matrix, and the separate losses of its rows."""
    own, beside = gram.diagonal(), np.append(np.diagonal(gram, 1), 0.0)
    after = np.append(own[1:], 0.0)
    apart = np.maximum(own - 2.0 * beside + after, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        cubes = np.nan_to_num(1.0 + 3.0 * beside / apart, nan=1.0, posinf=np.inf, neginf=1.0)
    widths = np.cbrt(np.clip(cubes, 1.0, (1.0 + _WIDEST) ** 3)) - 1.0
    widths = np.clip(widths, 0.0, _WIDEST)
    sizes = 1.0 + np.rint(widths * UNIT) / UNIT
    losses = apart * (sizes**2 / 3.0 + 2.0 / (3.0 * sizes)) + 2.0 * beside / sizes + own - after
    # at noise of variance 1, which has the scale 1 / sqrt(2)
    return widths, losses / 2.0


def _whole(widths: Array) -> tuple[int, ...]:
    return tuple(np.rint(widths * UNIT).astype(np.int64).tolist())


def one_walk(gram: Array) -> Factor:
    """Return the best walk along all values for a Gram matrix over them in their order; its loss is exact.

    Examples
    --------
    Prefixes of eight values, at epsilon 1.

    >>> factor = one_walk(np.tri(8).T @ np.tri(8))
    >>> round((2 * factor.loss / 8) ** 0.5, 3)
    2.415
    """
    widths, losses = _least(gram)
    return Factor(WalkMatrix(_whole(widths)), float(losses.sum()))


def block_walks(gram: Array, length: int, rounds: int = _ROUNDS) -> Factor:
    """Return walks inside blocks of so many values, and one over the blocks, for a Gram matrix.

    The error is the least, over linear estimates, of one that is separable in the widths as that of one walk
    is, each level with a Gram matrix of its own. So estimates, widths and weights are improved in turn, and
    no step is worse.

    Examples
    --------
    Prefixes of 256 values, at epsilon 1.

    >>> factor = block_walks(np.tri(256).T @ np.tri(256), 16)
    >>> round((2 * factor.loss / 256) ** 0.5, 2)
    6.44
    """
    size, blocks = len(gram), -(-len(gram) // length)
    square = np.zeros((blocks * length,) * 2)
    square[:size, :size] = gram
    filled = square.reshape(blocks, length, -1)
    own = np.einsum("pipj->pij", square.reshape(blocks, length, blocks, length))
    measured = np.zeros((blocks, length))
    measured.ravel()[:size] = 1.0
    within, between, share = np.full(length, _FIRST), np.full(blocks, _FIRST), 0.5
    for _ in range(rounds):
        levels = TwoLevels.of(size, within * UNIT, between * UNIT, (share, 1.0 - share))
        spread = np.zeros((blocks, length))
        spread.ravel()[:size] = levels.spread
        sums = (spread[:, None] @ filled).reshape(blocks, blocks, length)
        upper = levels.shares.T @ np.einsum("pqi,qi->pq", sums, spread) @ levels.shares
        # what totals of the lower walks are taken back by: in their own block, and in all
        inside = -np.einsum("pqi,pq->qi", sums, levels.shares)
        lower = own + (inside[:, :, None] + inside[:, None] + upper.diagonal()[:, None, None])
        lower = (lower * measured[:, :, None] * measured[:, None]).sum(axis=0)
        (within, inner), (between, outer) = _least(lower), _least(upper)
        share = _share(inner.sum(), outer.sum())
    weight = round(share * _WEIGHTS)
    common = math.gcd(weight, _WEIGHTS)
    weights = weight // common, (_WEIGHTS - weight) // common
    matrix = BlockWalkMatrix(size, _whole(within), _whole(between), weights)
    return Factor(matrix, float(matrix.sensitivity**2 * np.vdot(gram, matrix.covariance())))


def walk_for(gram: Array, effort: str = "full", nodes: Nodes | None = None) -> Factor:
    """Return the best walk found for a Gram matrix: one, on two levels, or up trees of given nodes.

    Examples
    --------
    >>> [walk_for(np.tri(size).T @ np.tri(size)).strategy.kind for size in (64, 256)]
    ['walk', 'block-walk']
    """
    best = one_walk(gram)
    if nodes is not None:
        for cut in range(2 if effort == "fast" else int(nodes.heights.max()) + 1):
            best = min(best, tree_walks(gram, nodes, cut), key=lambda factor: factor.loss)
        # a path on which every set of values is a range; it may win where nodes have few below them
        order = np.lexsort(nodes.sets)
        widths, losses = _least(gram[np.ix_(order, order)])
        if losses.sum() < (1.0 - GAP) * best.loss:
            rows = IntegerMatrix(np.eye(len(gram), dtype=np.int64)[order])
            best = Factor(TreeWalkMatrix(rows, paths(len(gram), (0,)), _whole(widths)), float(losses.sum()))
    if len(gram) < _LONG:
        return best
    for doublings in (0.0,) if effort == "fast" else _DOUBLINGS:
        length = round(math.sqrt(len(gram)) * 2.0**doublings)
        best = min(best, block_walks(gram, length), key=lambda factor: factor.loss)
    return best


@dataclass(frozen=True)
class Nodes:
    """The nodes of trees of values: sets of which every two are nested or apart, smaller ones first.

    Attributes
    ----------
    within : ndarray of bool, shape (nodes, nodes)
        Whether a node lies below another.
    sets : ndarray of bool, shape (nodes, values)
        Every value is in one, and no two values are in the same ones.
    heights : ndarray of int
        0 for nodes with none below, else one more than the highest below.
    """

    within: NDArray[np.bool_]
    sets: NDArray[np.bool_]
    heights: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Array) -> Nodes | None:
        """Return the nodes that queries ask for, or None if these are no trees of several levels.

        Examples
        --------
        >>> nodes = Nodes.of(np.array([[1, 1, 1], [1, 0, 0], [0, 2, 0], [0, 0, 1.0]]))
        >>> nodes.heights.tolist(), Nodes.of(np.array([[1, 1, 0], [0, 1, 1.0]]))
        ([0, 0, 0, 1], None)
        """
        if ((rows != 0.0) & (rows != rows.max(axis=1, keepdims=True))).any():
            return None
        sets = np.unique(rows != 0.0, axis=0)[::-1]
        sets = sets[sets.any(axis=1)]
        if not 0 < len(sets) <= _MOST_NODES:
            return None
        sets = sets[np.argsort(sets.sum(axis=1), kind="stable")]
        sizes, common = sets.sum(axis=1), sets.astype(np.float64) @ sets.T
        within = common == sizes[:, None]
        told = len(np.unique(sets, axis=1).T) == sets.shape[1] and sets.any(axis=0).all()
        if not told or not (within | within.T | (common == 0.0)).all():
            return None
        np.fill_diagonal(within, False)
        heights = np.zeros(len(sets), dtype=np.int64)
        for node, above in enumerate(within):
            heights[above] = np.maximum(heights[above], heights[node] + 1)
        return cls(within, sets, heights) if 0 < heights.max() < _LEVELS else None

    def trees(self, cut: int) -> tuple[NDArray[np.bool_], tuple[int, ...], NDArray[np.int64]]:
        """Return which nodes are of at least a height, and of trees of these and of the rest what they are.

        That is the parent of each node, and for each node and value whether it counts the value while none
        below it does.
        """
        upper = self.heights >= cut
        above = self.within & np.equal.outer(upper, upper)
        parents = tuple(np.where(above.any(axis=1), above.argmax(axis=1), len(upper)).tolist())
        own = np.zeros(self.sets.shape, dtype=np.int64)
        for level in (upper, ~upper):
            inside = self.sets & level[:, None]
            found = np.flatnonzero(inside.any(axis=0))
            own[inside.argmax(axis=0)[found], found] = 1
        return upper, parents, own


def tree_walks(gram: Array, nodes: Nodes, cut: int = 0, rounds: int = _ROUNDS) -> Factor:
    """Return walks up trees for a Gram matrix; nodes below a height in trees of their own, with a share.

    Examples
    --------
    Eight values and their total, at epsilon 1.

    >>> asked = np.vstack([np.eye(8), np.ones(8)])
    >>> factor = tree_walks(asked.T @ asked, Nodes.of(asked))
    >>> round((2 * factor.loss / 9) ** 0.5, 3)
    1.792
    """
    upper, parents, own = nodes.trees(cut)
    written = sums_below(own, parents).astype(np.float64)
    share = 0.5 if cut else 1.0
    widths: Array = np.full(len(upper), _FIRST)
    for _ in range(rounds):
        shares = np.where(upper, share, 1.0 - share)
        root = np.linalg.cholesky(noise_covariance(widths * UNIT, parents)) / shares[:, None]
        weighted = scipy.linalg.solve_triangular(root, written, lower=True)
        rows = scipy.linalg.solve_triangular(root, weighted, lower=True, trans="T")
        estimate = np.linalg.solve(weighted.T @ weighted, rows.T).T
        onwards = sums_above(estimate, parents)
        seen = estimate @ gram
        alone, both = np.einsum("kj,kj->k", seen, estimate), np.einsum("kj,kj->k", seen, onwards)
        steps = np.einsum("kj,kj->k", onwards @ gram, onwards)
        after = np.maximum(steps - both, 0.0) / np.maximum(alone, 1e-300)
        sizes = np.cbrt(np.clip(1.0 + 3.0 * after, 1.0, (1.0 + _WIDEST) ** 3))
        widths = sizes - 1.0
        losses = alone * innovation_variance(widths) + 2.0 * (both - alone) * step_covariance(widths)
        losses += (steps - 2.0 * both + alone) * step_variance(widths)
        if cut:
            share = _share(losses[upper].sum(), losses[~upper].sum())
    weight = round(share * _WEIGHTS)
    weights = np.where(upper, weight, _WEIGHTS - weight)[:, None] // math.gcd(weight, _WEIGHTS)
    matrix = TreeWalkMatrix(IntegerMatrix(weights * own), parents, _whole(widths))
    return Factor(matrix, float(matrix.sensitivity**2 * np.vdot(gram, matrix.covariance())))


def ordered_axes(terms: KronSum) -> list[int]:
    """Return the axes of which more than single values and their total is asked, and not too many values."""
    return [
        axis
        for axis, size in enumerate(terms.sizes)
        if 1 < size <= LIMITS.axis_cells and not terms.symmetric(axis)
    ]


def tree_axes(workload: Workload, terms: KronSum) -> dict[int, Nodes]:
    """Return the axes whose queries are the nodes of trees of values.

    Among several attributes single values and their total alone are no reason for a tree, unless one product
    is all that is asked: marginals are for them.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> nested = mdp.product(area={"sets": [[0], [1], [2, 3], [2], [3], [0, 1, 2, 3]]})
    >>> workload = mdp.Workload(mdp.Domain({"area": 4}), nested)
    >>> {axis: len(nodes.sets) for axis, nodes in tree_axes(workload, KronSum.whole(workload)).items()}
    {0: 6}
    """
    found: dict[int, Nodes] = {}
    alone = len(terms.sizes) == 1 or terms.proportional()
    for axis, (name, size) in enumerate(zip(terms.attributes, terms.sizes, strict=True)):
        if not 1 < size <= _MOST_NODES or not (alone or not terms.symmetric(axis)):
            continue
        rows = _queries(workload, name, size)
        nodes = None if rows is None else Nodes.of(rows)
        if nodes is not None:
            found[axis] = nodes
    return found


def _queries(workload: Workload, name: str, size: int) -> Array | None:
    """Return what is asked about an attribute, or None if that is not written out or more than nodes."""
    if len(workload.groups) > _MOST_GROUPS:
        return None
    rows, keys = [np.zeros((0, size))], set()
    for group in workload.groups:
        if isinstance(group, DenseGroup) and group.attributes == (name,):
            asked = group.content
            if not isinstance(asked, MatrixRows) or len(asked.values) > 2 * size:
                return None
            rows.append(asked.values)
        elif isinstance(group, DenseGroup) and name not in group.attributes:
            rows.append(np.ones((1, size)))
        elif isinstance(group, ProductGroup):
            predicates = group.sets.get(name, Total())
            key = predicates.key(size)
            if predicates.count(size) > 2 * size:
                return None
            if key not in keys:
                keys.add(key)
                rows.append(predicates.rows(size))
        else:
            return None
    return np.vstack(rows)


def no_walk(workload: Workload, noise: Noise, terms: KronSum) -> str:
    """Return why no walk can be measured, or nothing."""
    if noise != LAPLACE:
        return f"{noise} noise has none"
    if any(isinstance(workload.domain[name], Amount) for name in terms.attributes):
        return "amounts are asked about: their records are divided"
    if ordered_axes(terms) or tree_axes(workload, terms):
        return ""
    return "no attribute has queries over several values in their order, or in trees"


def walking(workload: Workload, noise: Noise) -> tuple[str, ...]:
    """Return the attributes along which a walk may be measured.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"sex": 2, "age": 64})
    >>> walking(mdp.Workload(domain, mdp.product(sex="identity", age="prefix")), LAPLACE)
    ('age',)
    """
    terms = KronSum.of(workload.domain, workload.groups)
    if no_walk(workload, noise, terms):
        return ()
    return tuple(terms.attributes[axis] for axis in ordered_axes(terms))


def select_walk(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = GAP,
    seed: int = 0,
    rows: Rows = AS_MANY_AS_PAY,
    progress: Callable[[str, float | None], None] | None = None,
    effort: str = "full",
) -> tuple[Plan, Certificate]:
    """Select the best product of a walk along one attribute and strategies of the others.

    Raises
    ------
    WorkloadError
        If no attribute has queries for which a walk is made.
    TooLargeError
        If the workload is too large.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "age": 64}), mdp.product(sex="identity", age="prefix"))
    >>> plan, certificate = select_walk(workload, LAPLACE)
    >>> round((certificate.loss / 128) ** 0.5, 3)
    4.57
    """
    if progress is not None:
        progress("solving a walk along each attribute", None)
    terms = KronSum.of(workload.domain, workload.groups)
    why = no_walk(workload, noise, terms)
    if why:
        raise WorkloadError.at(("mechanism",), f"walk, but {why}", "queries such as prefixes and ranges")
    axes = range(len(terms.sizes))
    begun: Sequence[Factor] = ()
    if len(axes) > 1:
        begun = solve_kron(terms, noise, gap=gap, seed=seed, rows=rows, effort=effort).factors
    best: tuple[list[Factor], float] | None = None
    trees = tree_axes(workload, terms)
    for ordered in sorted({*ordered_axes(terms), *trees}):

        def solve(axis: int, inverses: Sequence[Inverse], own: Factor, ordered: int = ordered) -> Factor:
            gram = terms.surrogate(axis, inverses)
            if axis == ordered:
                return walk_for(gram.explicit.entries, effort, trees.get(ordered))
            if terms.large(axis):
                whole = [1.0 if other == axis else inverse for other, inverse in enumerate(inverses)]
                return replace(own, loss=terms.loss(whole))
            return solve_axis(gram, noise, gap=gap, seed=seed, start=own, rows=rows)

        inverses = [factor.estimator for factor in begun] or terms.unknown
        walk = solve(ordered, inverses, begun[ordered] if begun else walk_for(np.eye(terms.sizes[ordered])))
        factors = [walk if axis == ordered else begun[axis] for axis in axes]
        loss = walk.loss
        if len(axes) > 1 and not terms.proportional():
            factors, loss, _ = alternate(solve, factors, loss, _SWEEPS, LIMITS.first_gain)
        if best is None or loss < best[1]:
            best = factors, loss
    assert best is not None
    names = [(name,) for name in terms.attributes]
    return product_choice(workload, noise, names, Product(tuple(best[0]), best[1]), NO_BOUND)
