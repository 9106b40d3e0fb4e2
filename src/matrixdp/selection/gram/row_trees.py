"""Trees of values of which levels ask several kinds of queries on other attributes, and their lower bound.

At the nodes of a tree classes of queries are asked on the n cells of some other attributes, by Gram matrices
that need not commute. For each class independent queries b_r are measured, and their sums over nodes get
precisions theta_(v,r) of their own. With x = B^+ z each sum z_r has the error of its own tree, in which a
Gram matrix Q at node v is the weight b^r' Q b^r, b^r the columns of B^+. A record in value l and cell j costs
the sum of theta_(v,r) b_rj^2 over rows r and the path of l.

Rows. On a regular tree the optimum is known (docs/mathematics.md, section 11): matrices X_k for the levels,
and a distribution a over cells. Two of them are diagonal by one congruence, which is B, or where a descent of
the error of rows on that tree starts.

Steps. With prices p(l, j) of what records cost, the majorizer of `gram.trees` is least at theta_(v,r) in
proportion to theta_0 (loss g_(v,r) / c_(v,r))^(1/2), c_(v,r) the sum of p(l, j) b_rj^2 below v. Prices rise
where records cost more than others.

Bound. That of `gram.trees` with matrices on cells in place of numbers, p(l) a(j) the prices: one congruence
makes all leaves diagonal, so that only inner nodes have matrices.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from matrixdp.exact.linear import Array
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.gram.trees import (
    ROUNDING,
    WIDEST,
    Levels,
    Shares,
    Tree,
    chunks_of,
    distribution,
    error_of,
    passes,
    rational,
    slopes_of,
)
from matrixdp.selection.limits import LIMITS

#: Steps of a search for shares, and the power of costs by which prices rise: with 4 they overshoot.
_STEPS, _POWER = 30, 3
#: Steps towards the optimum of a regular tree, and the gap at which they end.
_REGULAR_STEPS, _REGULAR_GAP = 200, 1e-4
#: Eigenvalues below this, relative to the largest, are rounding errors.
_RANK = 1e-9
#: Of what is asked of rows on average, the part that is added to each in a descent.
_SMOOTHED, _EFFORT = 1e-5, Effort(1_000, 1e-10)
#: By how much a bound is lowered, relative to it, for the rounding of its matrices.
_LOWERED = 1e-6


@final
@dataclass(frozen=True, eq=False)
class Kinds:
    """What levels of a tree ask of classes of queries.

    Attributes
    ----------
    tree : Tree
    asked : tuple of (int, ndarray of shape (nodes,))
        What is asked: a level, and the weight of each of its nodes by the caller's numbers.
    grams : ndarray, shape (classes, len(asked), n, n)
        The Gram matrices of a class there.
    copies : ndarray, shape (classes,)
        How often each class is asked.
    """

    tree: Tree
    asked: tuple[tuple[int, Array], ...]
    grams: Array
    copies: Array


@final
@dataclass(frozen=True, eq=False)
class Regular:
    """The optimum of a regular tree with as many nodes at each level: a distribution over cells, and rows.

    Attributes
    ----------
    cells : ndarray, shape (n,)
        The price of each cell.
    rows : tuple of ndarray, shape (rows, n), one for each class
        Independent queries to measure.
    """

    cells: Array
    rows: tuple[Array, ...]


def regular(kinds: Kinds) -> Regular:
    """Return the optimum of a regular tree with as many nodes, and the queries of its congruences.

    Examples
    --------
    >>> tree, eye = Tree.of([np.zeros(4, dtype=np.int64), np.arange(4)]), np.eye(2)
    >>> asked = ((0, np.ones(1)), (1, np.ones(4)))
    >>> found = regular(Kinds(tree, asked, np.array([[eye, np.ones((2, 2))]]), np.ones(1)))
    >>> found.cells.tolist(), (found.rows[0] / found.rows[0][:, :1]).round(6).tolist()
    ([0.5, 0.5], [[1.0, -1.0], [1.0, 1.0]])
    """
    tree, grams = kinds.tree, kinds.grams
    counts = np.array(tree.counts, dtype=np.float64)
    forms = np.zeros((len(grams), len(counts), *grams.shape[2:]))
    for place, (level, weights) in enumerate(kinds.asked):
        forms[:, level] += weights.sum() / counts[level] * grams[:, place]
    sizes = (counts[-1] / counts)[:, None, None]
    forms = np.cumsum((sizes * forms)[:, ::-1], axis=1)[:, ::-1]
    ranks = np.diff(counts, prepend=0.0)
    cells = np.full(grams.shape[2], 1.0 / grams.shape[2])
    for _ in range(_REGULAR_STEPS):
        roots = _roots(np.sqrt(cells), forms)
        pulls = np.einsum("c,k,ckii->i", kinds.copies, ranks, roots) / cells
        total = float(pulls @ cells)
        if pulls.max() <= total * (1.0 + _REGULAR_GAP):
            break
        cells = cells * pulls / total
    strategies = roots / np.multiply.outer(np.sqrt(cells), np.sqrt(cells))
    pairs = zip(forms, strategies, strict=True)
    return Regular(cells, tuple(_rows(own, best, ranks, cells) for own, best in pairs))


def _roots(scale: Array, forms: Array) -> Array:
    """Return the square roots of positive semidefinite matrices, their rows and columns scaled."""
    values, vectors = np.linalg.eigh(scale[:, None] * forms * scale)
    roots = np.sqrt(np.maximum(values, 0.0))[..., None, :]
    return np.asarray((vectors * roots) @ np.swapaxes(vectors, -1, -2))


def _rows(forms: Array, strategies: Array, ranks: Array, cells: Array) -> Array:
    """Return the rows of a congruence of two strategies with which a regular tree has the least error.

    Where levels ask more kinds than two, a descent from them may have less.
    """
    values, vectors = np.linalg.eigh(strategies[0])
    kept = values > _RANK * values[-1]
    span, found = vectors[:, kept].T, list[Array]()
    inside, within = span @ strategies @ span.T, (span @ forms @ span.T, ranks, (span * cells) @ span.T)
    for one, other in itertools.permutations(range(len(forms)), 2):
        values, vectors = np.linalg.eigh(inside[one])
        if values[0] > _RANK * values[-1]:
            inverse = vectors / np.sqrt(values)
            found.append(inverse @ np.linalg.eigh(inverse.T @ inside[other] @ inverse)[1])
    errors = [_regular_error(own, *within)[0] for own in found]
    best = found[int(np.argmin(np.round(np.array(errors) / min(errors), 9)))]
    smooth = (*within, _SMOOTHED * np.einsum("ir,kij,jr->k", best, within[0], best)[:, None] / len(best))
    free = descend(lambda point: _regular_error(point.reshape(best.shape), *smooth), best, _EFFORT)
    if _regular_error(free, *within)[0] < (1.0 - LIMITS.rules_worthwhile) * min(errors):
        best = free
    return np.asarray(np.linalg.inv(best) @ span)


def _regular_error(
    inverse: Array, forms: Array, ranks: Array, cells: Array, least: Array | float = 0.0
) -> tuple[float, Array]:
    """Return the root of the error of rows on a regular tree, given their inverse, and its gradient.

    ``cells`` is the Gram matrix of what cells cost; ``least`` keeps slopes finite where a row is not asked.
    """
    rows, asked = np.linalg.inv(inverse), forms @ inverse
    roots = np.sqrt(np.maximum(np.einsum("kir,ir->kr", asked, inverse), 0.0) + least)
    costs = rows @ cells
    norms, errors = np.sqrt(np.einsum("ri,ri->r", costs, rows)), ranks @ roots
    shares = np.divide(ranks[:, None], roots, out=np.zeros_like(roots), where=roots > 0.0)
    slopes = np.einsum("kr,kir->ir", shares, asked) * norms
    slopes -= rows.T @ ((errors / norms)[:, None] * costs) @ rows.T
    return float(norms @ errors), slopes.ravel()


def row_shares(
    tree: Tree, weights: Sequence[Array], losses: Array, squares: Array, start: Shares, cells: Array
) -> Shares:
    """Return the shares of all nodes and rows.

    Parameters
    ----------
    tree, weights, losses
        Those of `tree_shares`, rows in place of classes.
    squares : ndarray, shape (rows, n)
        What a share of 1 of a row costs in each cell.
    start : Shares
        Shares, and prices of values.
    cells : ndarray, shape (n,)
        Prices of cells.
    """
    shares = [own[order].T.copy() for own, order in zip(start.precisions, tree.order, strict=True)]
    prices = np.outer(cells, tree.summed(start.prices)[-1])
    chunks = tuple(chunks_of(tree, weights, len(losses)))
    for _ in range(_STEPS):
        below = [prices]
        for level in reversed(range(len(tree.children))):
            below.insert(0, tree.sums(below[0], level))
        for chunk in chunks:
            own = [share[chunk.classes] for share in shares[: chunk.depth + 1]]
            slopes = slopes_of(tree, own, chunk.of(tree, weights))[1]
            for level, (share, slope) in enumerate(zip(own, slopes, strict=True)):
                cost = squares[chunk.classes] @ below[level]
                made = share * np.sqrt(losses[chunk.classes, None] * slope / cost)
                if level == chunk.depth:
                    made = np.maximum(made, LIMITS.least_share * made.max(axis=1, keepdims=True))
                shares[level][chunk.classes] = made
        above = np.zeros((len(losses), 1))
        for level, share in enumerate(shares[:-1]):
            above = tree.repeats(above + share, level)
        above, last = squares.T @ above, squares.T @ shares[-1]
        costs = above + last
        prices = prices * costs**_POWER
        prices /= prices.sum()
    most = costs.max()
    shares = [share / most for share in shares]
    shares[-1] *= np.min((most - above) / np.maximum(last, LIMITS.rounding * most), axis=0)
    loss = 0.0
    for chunk in chunks:
        variances = passes(tree, [share[chunk.classes] for share in shares[: chunk.depth + 1]])[-1]
        loss += float(losses[chunk.classes] @ error_of(chunk.of(tree, weights), variances))
    found = tuple(tree.placed(share, level).T for level, share in enumerate(shares))
    return Shares(found, loss, start.prices)


def kinds_bound(kinds: Kinds, prices: Array, cells: Array) -> float | None:
    """Return a loss that no Gaussian strategy goes below; None where the last level asks by several weights.

    Parameters
    ----------
    kinds : Kinds
    prices : ndarray, shape (n,)
        A distribution over values.
    cells : ndarray
        A distribution over cells; any two give a bound.

    Examples
    --------
    >>> tree, eye = Tree.of([np.zeros(4, dtype=np.int64), np.arange(4)]), np.ones((1, 1))
    >>> asked = ((0, np.ones(1)), (1, np.ones(4)))
    >>> kinds = Kinds(tree, asked, np.array([[eye, eye]]), np.ones(1))
    >>> round(kinds_bound(kinds, np.full(4, 0.25), np.ones(1)), 3)
    6.854
    """
    p, trace = kinds.tree.summed(distribution(prices)), 0.0
    for grams, copies in zip(kinds.grams, kinds.copies, strict=True):
        found = _trace(kinds, grams, p, distribution(cells))
        if found is None:
            return None
        trace += float(copies) * found
    return trace * trace * (1.0 - _LOWERED)


def _forms(kinds: Kinds, grams: Array) -> list[list[tuple[Array, Array]]]:
    """Return the weights of nodes, by their places, and Gram matrices of each level that a class asks."""
    found: list[list[tuple[Array, Array]]] = [[] for _ in kinds.tree.counts]
    for (level, weights), gram in zip(kinds.asked, grams, strict=True):
        if gram.any() and weights.any():
            found[level].append((weights[kinds.tree.order[level]], gram))
    while found and not found[-1]:
        found.pop()
    if found and all((weights == weights[0]).all() for weights, _ in found[-1]):
        total = np.sum([weights[0] * gram for weights, gram in found[-1]], axis=0)
        found[-1] = [(np.ones_like(found[-1][0][0]), total)]
    return found


def _trace(kinds: Kinds, grams: Array, p: Levels, cells: Array) -> float | None:
    """Return a lower bound on the trace of the root of a class."""
    tree, levels = kinds.tree, _forms(kinds, grams)
    if not levels:
        return 0.0
    depth = len(levels) - 1
    if len(levels[depth]) > 1:
        return None
    [(weight, gram)], scale = levels[depth], np.sqrt(cells)
    values, vectors = np.linalg.eigh(scale[:, None] * gram * scale)
    values, basis = np.maximum(values, 0.0), scale[:, None] * vectors
    # those of D V D lie between these, but for some that are asked less
    ends = [
        (np.linalg.eigvalsh(scale[:, None] * own * scale), weights[weights > 0.0], p[level][weights > 0.0])
        for level, asked in enumerate(levels)
        for weights, own in asked
    ]
    largest = sum(float(own[-1]) * float((w * q).max()) for own, w, q in ends)
    least = min(float(own[own > _RANK * own[-1]].min()) * float((w * q).min()) for own, w, q in ends)
    bits = int(np.clip(np.ceil(np.log2(largest / least)), 0, WIDEST))
    unit, (factors, shifts) = largest / 2.0**bits, rational(bits)
    inner = [sum((w[:, None, None] * own for w, own in asked), np.zeros((1, 1, 1))) for asked in levels[:-1]]
    trace = 0.0
    for factor, shift in zip(factors * np.sqrt(unit), shifts * unit, strict=True):
        alone = 1.0 / (np.outer(values, weight) + shift / p[depth])  # of leaves, in the basis
        trace += float(factor) * _error(tree, levels, inner, (basis, values, weight), alone)
    return trace * (1.0 - ROUNDING)


def _inverses(matrices: Array) -> Array:
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def _error(
    tree: Tree,
    levels: list[list[tuple[Array, Array]]],
    inner: Sequence[Array],
    leaves: tuple[Array, Array, Array],
    alone: Array,
) -> float:
    """Return the error of what a class asks on a tree that is measured by it, with more at its leaves.

    ``inner`` are the matrices of precisions of nodes above the leaves, ``alone`` the variances of leaves.
    """
    basis, values, weight = leaves
    depth, diagonal = len(inner), alone
    if depth == 0:
        return float((np.outer(values, weight) * alone).sum())
    below = (basis * tree.sums(alone, depth - 1).T[:, None, :]) @ basis.T
    inverses, own = list[Array](), list[Array]()
    for level in reversed(range(depth)):
        inverses.insert(0, _inverses(below))
        own.insert(0, _inverses(inverses[0] + inner[level]))
        if level:
            below = np.add.reduceat(own[0], tree.starts[level - 1], axis=0)
    variances, error = own[0], 0.0
    for level, asked in enumerate(levels[:-1]):
        if level:
            up = tree.children[level - 1]
            gain = own[level] @ np.repeat(inverses[level - 1], up, axis=0)
            above = gain @ np.repeat(variances, up, axis=0) @ np.swapaxes(gain, 1, 2)
            variances = own[level] - gain @ own[level] + above
        for weights, gram in asked:
            error += float((gram * np.tensordot(weights, variances, axes=1)).sum())
    known = inverses[-1] - inverses[-1] @ variances @ inverses[-1]
    taken = tree.repeats(((known @ basis) * basis).sum(axis=1).T, depth - 1)
    return error + float((np.outer(values, weight) * (diagonal - diagonal**2 * taken)).sum())
