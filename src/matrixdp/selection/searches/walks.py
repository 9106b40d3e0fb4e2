"""A walk along one ordered attribute, and a p-Identity strategy for each of the others.

With G the Gram matrix of what is asked of its values, and s_j = 1 + c_j for the widths c_j in units
of the noise's scale, the squared error at privacy cost 1 is separable (docs/mathematics.md):

    sum over j of  D_j (s_j^2 / 3 + 2 / (3 s_j)) + 2 G_j,j+1 / s_j + G_jj - G_j+1,j+1,
    D_j = G_jj - 2 G_j,j+1 + G_j+1,j+1,

where entries beyond the last value are 0. So every width is known: s_j^3 = 1 + 3 G_j,j+1 / D_j, or s_j = 1
where that is less. With several attributes strategies alternate over them, as for any product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from matrixdp.domain import Amount
from matrixdp.errors import WorkloadError
from matrixdp.exact.linear import Array
from matrixdp.exact.walks import UNIT, BlockWalkMatrix, TwoLevels, WalkMatrix
from matrixdp.noise import LAPLACE, Noise
from matrixdp.plan import Plan
from matrixdp.queries import Workload
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
#: What the weights of both levels add up to, and the least share of a level.
_WEIGHTS, _LEAST_SHARE = 256, 1.0 / 32.0
NO_BOUND = "no bound is known for walks, whose counts share noise: those for independent noise do not hold"


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
        share = 1.0 / (1.0 + np.cbrt(outer.sum() / inner.sum()))
        share = min(max(share, _LEAST_SHARE), 1.0 - _LEAST_SHARE)
    weight = round(share * _WEIGHTS)
    common = math.gcd(weight, _WEIGHTS)
    weights = weight // common, (_WEIGHTS - weight) // common
    matrix = BlockWalkMatrix(size, _whole(within), _whole(between), weights)
    return Factor(matrix, float(matrix.sensitivity**2 * np.vdot(gram, matrix.covariance())))


def walk_for(gram: Array, effort: str = "full") -> Factor:
    """Return the best walk, or walks on two levels, that are found for a Gram matrix.

    Examples
    --------
    >>> [walk_for(np.tri(size).T @ np.tri(size)).strategy.kind for size in (64, 256)]
    ['walk', 'block-walk']
    """
    best = one_walk(gram)
    if len(gram) < _LONG:
        return best
    for doublings in (0.0,) if effort == "fast" else _DOUBLINGS:
        length = round(math.sqrt(len(gram)) * 2.0**doublings)
        best = min(best, block_walks(gram, length), key=lambda factor: factor.loss)
    return best


def ordered_axes(terms: KronSum) -> list[int]:
    """Return the axes of which more than single values and their total is asked, and not too many values."""
    return [
        axis
        for axis, size in enumerate(terms.sizes)
        if 1 < size <= LIMITS.axis_cells and not terms.symmetric(axis)
    ]


def no_walk(workload: Workload, noise: Noise, terms: KronSum) -> str:
    """Return why no walk can be measured, or nothing."""
    if noise != LAPLACE:
        return f"{noise} noise has none"
    if any(isinstance(workload.domain[name], Amount) for name in terms.attributes):
        return "amounts are asked about: their records are divided"
    return "" if ordered_axes(terms) else "no attribute has queries over several values in their order"


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
    for ordered in ordered_axes(terms):

        def solve(axis: int, inverses: Sequence[Inverse], own: Factor, ordered: int = ordered) -> Factor:
            gram = terms.surrogate(axis, inverses)
            if axis == ordered:
                return walk_for(gram.explicit.entries, effort)
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
