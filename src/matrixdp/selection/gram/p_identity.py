"""p-Identity strategies for Laplace noise: the identity with p weighted rows, columns normalized.

A(Theta) = [I; Theta] D with D = diag(1 / (1 + column sums of Theta)) has all L1 column norms 1 and full rank
for every nonnegative Theta, so that the search has no constraints but signs. By the Woodbury identity an
evaluation costs one p x n by n x n product, less where V has structure, and some p x p by p x n products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.entries import green_factors
from matrixdp.selection.starting_points import Generator, generator

#: The loss of a strategy, tr(V (A'A)^-1), and its Theta, shape (p, n).
Found = tuple[float, Array]
#: Weights of rows stay below this, so that the identity's never vanish beside them.
_MAX_WEIGHT = 1e3
#: The second look at a start is this many times as long as the first.
_FURTHER = 4
#: A matrix is a band where this many of its widths fit into it.
_NARROW = 8
#: Entries of rows that are summed at a time: they stay in the cache.
_AT_ONCE = 1 << 15
#: Columns of a band's pieces, at least.
_MIN_PIECE = 128
#: Products with smaller Gram matrices are quick without structure.
_MIN_OPERATOR_CELLS = 256


def strategy_rows(theta: Array) -> Array:
    """Return A(Theta), shape (n + p, n); every column has L1 norm 1.

    Examples
    --------
    >>> strategy_rows(np.array([[1.0, 0.0]])).tolist()
    [[0.5, 0.0], [0.0, 1.0], [0.5, 0.0]]
    """
    scale = 1.0 + theta.sum(axis=0)
    return np.vstack([np.diag(1.0 / scale), theta / scale])


def loss_and_gradient(gram: GramOperator, theta: Array) -> tuple[float, Array]:
    """Return tr(V (A'A)^-1) and its gradient with respect to Theta.

    With s = 1 + column sums, C = diag(s) V diag(s), H = (I + Theta'Theta)^-1 = I - Theta' R Theta and
    R = (I + Theta Theta')^-1: loss = tr(H C), and its gradient is
    -2 Theta H C H + 2 1 diag(H C)' diag(1 / s).

    References
    ----------
    McKenna et al. 2018, section 5.2 (Theorems 4 and 5).

    Examples
    --------
    >>> loss_and_gradient(operator_of(np.eye(2)), np.zeros((1, 2)))[0]
    2.0
    """
    scale = 1.0 + theta.sum(axis=0)
    inner = theta @ theta.T
    inner.flat[:: len(inner) + 1] += 1.0
    image = gram.image(theta * scale)
    image *= scale
    # I + Theta Theta' is definite; LAPACK and BLAS themselves, because evaluations are many, and in place
    factor, _ = scipy.linalg.lapack.dpotrf(inner, lower=1, overwrite_a=1)
    solved = scipy.linalg.blas.dtrsm(1.0, factor, image.T, side=1, lower=1, trans_a=1, overwrite_b=1)
    solved = scipy.linalg.blas.dtrsm(1.0, factor, solved, side=1, lower=1, overwrite_b=1).T
    across, _ = scipy.linalg.lapack.dpotrs(factor, theta @ solved.T, lower=1)
    diagonal = gram.diagonal * scale**2 - np.einsum("pn,pn->n", theta, solved)
    gradient = across.T @ theta
    gradient -= solved
    gradient += diagonal / scale
    gradient *= 2.0
    return float(diagonal.sum()), gradient


def optimize(gram: Array, theta: Array, iterations: int, tolerance: float) -> Found:
    """Descend from a start by L-BFGS with bounds, to a relative decrease of the loss; drop rows of zeros.

    Examples
    --------
    >>> loss, _ = optimize(np.tri(8) @ np.tri(8).T, np.full((1, 8), 0.5), 50, 1e-6)
    >>> loss < 204  # the identity's
    True
    """
    shape, operator = theta.shape, operator_of(gram)
    theta = np.minimum(theta, _MAX_WEIGHT)
    reference = loss_and_gradient(operator, theta)[0]

    def objective(flat: Array) -> tuple[float, Array]:
        loss, gradient = loss_and_gradient(operator, flat.reshape(shape))
        return loss / reference, gradient.ravel() / reference

    found = descend(objective, theta, Effort(iterations, tolerance, 1e-12, memory=10), (0.0, _MAX_WEIGHT))
    best = np.maximum(found, 0.0)
    best = best[best.max(axis=1) > 1e-9] if best.size else best
    return loss_and_gradient(operator, best)[0] if best.size else float(np.trace(gram)), best


def best_of(
    gram: Array,
    families: Sequence[Sequence[Array]],
    screen: int,
    iterations: int,
    tolerance: float,
    finalists: int,
    followed: int | None = None,
) -> Found:
    """Descend a little from every start, further from the best of each family, to the end from the best few.

    What leads after a few steps need not win: trees are ahead of random rows at first. Families are starts
    of one kind each; ``screen`` are the iterations for each start, `_FURTHER` times as many
    for the best of each family, and ``iterations`` those to the end, to which the ``finalists`` go. At most
    ``followed`` families are looked at further.
    """
    leaders = [
        min((optimize(gram, start, screen, tolerance) for start in family), key=itemgetter(0))
        for family in families
        if family
    ]
    if len(leaders) > finalists:
        leaders = sorted(leaders, key=itemgetter(0))[:followed]
        further = [_on(gram, leader, _FURTHER * screen, tolerance) for leader in leaders]
        leaders = sorted(further, key=itemgetter(0))[:finalists]
    return min((_on(gram, leader, iterations, tolerance) for leader in leaders), key=itemgetter(0))


def _on(gram: Array, found: Found, iterations: int, tolerance: float) -> Found:
    return optimize(gram, found[1], iterations, tolerance) if found[1].size else found


def tree_start(size: int, branching: int, weight: float = 0.5) -> Array:
    """Return the inner nodes of a tree over ordered cells, all with one weight, shape (p, size).

    Examples
    --------
    >>> tree_start(4, 2, 1.0).tolist()
    [[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0]]
    """
    rows = []
    width = branching
    while True:
        for first in range(0, size, width):
            row = np.zeros(size)
            row[first : first + width] = weight
            rows.append(row)
        if width >= size:
            return np.array(rows)
        width *= branching


def _random_start(size: int, rows: int, rng: Generator) -> Array:
    """Return rows with entries uniform between 0 and 1, shape (rows, size)."""
    return rng.random((rows, size))


def starts(size: int, rows: int | None, seed: int, restarts: int, fast: bool) -> list[list[Array]]:
    """Return the starts of a search, in families of which each deserves a search of its own."""
    rng = generator(seed)
    if rows is not None:
        return [[_random_start(size, rows, rng)] for _ in range(max(restarts, 1))]
    if fast:
        widths = [16, 32] if size > 64 else [12, 4]
    elif size <= LIMITS.small_cells:
        widths = [4, 8, 10, 12, 16, 20, 25, 32]
    else:
        widths = [16, 32, 12, 24] if size <= 512 else [16, 32]
    kinds = list(dict.fromkeys(max(2, min(width, size)) for width in widths))
    trees = [tree_start(size, branching) for branching in kinds]
    apart = not fast and (size <= LIMITS.small_cells or size > 512)
    families = [[tree] for tree in trees] if apart else [trees]
    shares = [16] if fast else [32, 24, 16, 12, 8] if size <= LIMITS.small_cells else [16]
    for count in dict.fromkeys(max(1, size // share) for share in shares):
        many = [_random_start(size, count, rng) for _ in range(restarts)]
        families += [[start] for start in many] if size <= LIMITS.small_cells and not fast else [many]
    return families


def low_rank_starts(size: int, rank: int, seed: int) -> list[list[Array]]:
    """Return random starts with as many rows as a workload of low rank has dimensions, and twice as many.

    Examples
    --------
    >>> [start.shape for family in low_rank_starts(40, 3, 0) for start in family]
    [(3, 40), (6, 40)]
    """
    if rank > min(size // 4, LIMITS.small_cells):
        return []
    rng = generator(seed + 2)
    return [[_random_start(size, rank, rng)], [_random_start(size, 2 * rank, rng)]]


def total_start(size: int) -> Array:
    """Return the total alone, shape (1, size), its weight low: from a high one searches fall to the identity.

    Examples
    --------
    >>> total_start(2).tolist()
    [[0.1, 0.1]]
    """
    return np.full((1, size), 0.1)


def signed_parts(factor: Array, count: int, scale: float) -> Array:
    """Return the positive and the negative parts of the heaviest rows, shape (p, n) with p at most 2 count.

    Examples
    --------
    >>> signed_parts(np.array([[3.0, -1.0], [0.1, 0.1]]), 1, 1.5).tolist()
    [[1.5, 0.0], [0.0, 0.5]]
    """
    heaviest = factor[np.argsort(-np.einsum("ij,ij->i", factor, factor), kind="stable")[:count]]
    parts = np.vstack([np.maximum(heaviest, 0.0), np.maximum(-heaviest, 0.0)])
    parts = parts[parts.max(axis=1) > 1e-9 * parts.max()]
    return np.asarray(parts * (scale / parts.sum(axis=0).max()))


# Products of few rows with a large Gram matrix, by its structure where it has one.
#
# Where prefixes, ranges and their like are asked, a row's product takes time linear in the cells; where only
# near cells share a query, the Gram matrix is a band along its diagonal.


@dataclass(frozen=True)
class GramOperator:
    """A Gram matrix V as what it does.

    Attributes
    ----------
    diagonal : ndarray, shape (n,)
    image : function
        X of shape (p, n) to X V.
    """

    diagonal: Array
    image: Callable[[Array], Array]


def operator_of(gram: Array) -> GramOperator:
    """Return a Gram matrix as an operator, the quickest that is found.

    Examples
    --------
    >>> gram = np.tri(300).T @ np.tri(300)
    >>> rows = np.ones((2, 300))
    >>> np.allclose(operator_of(gram).image(rows), rows @ gram)
    True
    """
    diagonal = np.diagonal(gram).copy()
    if len(gram) >= _MIN_OPERATOR_CELLS:
        factors = green_factors(gram)
        if factors is not None:
            return GramOperator(diagonal, _chained(*factors))
        width = _half_width(gram)
        if width is not None:
            return GramOperator(diagonal, _banded(gram, width))
    return GramOperator(diagonal, lambda rows: rows @ gram)


def _chained(u: Array, v: Array) -> Callable[[Array], Array]:
    """Return the product with V_jk = u_j v_k for j <= k: sums from either end, without differences."""

    def image(rows: Array) -> Array:
        found = np.empty_like(rows)
        height = max(1, _AT_ONCE // len(u))
        for top in range(0, len(rows), height):
            some = rows[top : top + height]
            below = found[top : top + height]
            np.cumsum(some * u, axis=1, out=below)
            below *= v
            beyond = np.cumsum((some[:, :0:-1] * v[:0:-1]), axis=1)[:, ::-1]
            below[:, :-1] += beyond * u[:-1]
        return found

    return image


def _half_width(gram: Array) -> int | None:
    """Return how far from the diagonal there are entries, or None where it is far."""
    width = 0
    for j in range(len(gram)):
        width = max(width, int(np.flatnonzero(gram[j])[-1:].sum()) - j)
        if width * _NARROW > len(gram):
            return None
    return width


def _banded(gram: Array, width: int) -> Callable[[Array], Array]:
    size, step = len(gram), max(_MIN_PIECE, width)
    pieces = []
    for first in range(0, size, step):
        own, near = slice(first, first + step), slice(max(0, first - width), first + step + width)
        pieces.append((own, near, np.ascontiguousarray(gram[near, own])))

    def image(rows: Array) -> Array:
        found = np.empty_like(rows)
        for own, near, piece in pieces:
            np.matmul(rows[:, near], piece, out=found[:, own])
        return found

    return image
