"""Starts of searches for p-Identity strategies that look at the workload, where cells have no order.

The total alone; trees over an order in which cells that queries treat alike stand together; the Gaussian
optimum, its rows split into their positive and negative parts; and as many random rows as the workload has
dimensions, where these are few and the identity is better left out.
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.selection.gram.starts import random_start, tree_start
from matrixdp.selection.starting_points import generator

__all__ = ["MOST_DIMENSIONS", "adapted_starts", "low_rank_starts", "seriation", "signed_parts", "total_start"]

Array = NDArray[np.float64]

#: Rows of the Gaussian optimum that a start takes, at most.
_MOST_PARTS = 32
#: A new order is worth its trees if neighbours are told apart by this share of the queries at most.
_SHORTER = 0.9
#: Random rows beyond this many take long and gain little.
MOST_DIMENSIONS = 128
#: Up to this many cells orders of cells are looked for.
_ORDERED_CELLS = 2_048


def seriation(gram: Array) -> NDArray[np.intp] | None:
    """Return an order of cells in which few queries tell neighbours apart, or None for the given order.

    It is that of the Fiedler vector of the graph of cosines between the columns of the workload, which undoes
    any permutation of prefixes or ranges.

    References
    ----------
    Atkins, Boman and Hendrickson 1998, section 3 (seriation by the Fiedler vector).

    Examples
    --------
    >>> shuffled = np.array([2, 0, 3, 1])
    >>> order = seriation((np.tri(4).T @ np.tri(4))[np.ix_(shuffled, shuffled)])
    >>> shuffled[order].tolist() in ([0, 1, 2, 3], [3, 2, 1, 0])
    True
    >>> seriation(np.tri(4).T @ np.tri(4)) is None
    True
    """
    if len(gram) < 3 or float(gram.min()) < 0:
        return None
    diagonal = np.diagonal(gram)
    lengths = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    cosines = gram / np.multiply.outer(lengths, lengths)
    laplacian = np.diag(cosines.sum(axis=1)) - cosines
    vector = scipy.linalg.eigh(laplacian, subset_by_index=(1, 1), check_finite=False)[1][:, 0]
    order = np.argsort(vector, kind="stable")

    def length(path: NDArray[np.intp]) -> float:
        first, second = path[:-1], path[1:]
        return float((diagonal[first] + diagonal[second] - 2.0 * gram[first, second]).sum())

    return order if length(order) < _SHORTER * length(np.arange(len(gram))) else None


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


def low_rank_starts(size: int, rank: int, seed: int) -> list[list[Array]]:
    """Return random starts with as many rows as a workload of low rank has dimensions, and twice as many.

    Examples
    --------
    >>> [start.shape for family in low_rank_starts(40, 3, 0) for start in family]
    [(3, 40), (6, 40)]
    """
    if rank > min(size // 4, MOST_DIMENSIONS):
        return []
    rng = generator(seed + 2)
    return [[random_start(size, rank, rng)], [random_start(size, 2 * rank, rng)]]


def total_start(size: int) -> Array:
    """Return the total alone, shape (1, size), its weight low: from a high one searches fall to the identity.

    Examples
    --------
    >>> total_start(2).tolist()
    [[0.1, 0.1]]
    """
    return np.full((1, size), 0.1)


def adapted_starts(gram: Array, factor: Array, seed: int) -> list[list[Array]]:
    """Return starts that suit a workload, in families of which each deserves a search of its own.

    Examples
    --------
    >>> [start.shape for family in adapted_starts(np.eye(32), np.eye(32), 0) for start in family]
    [(1, 32), (2, 32)]
    """
    size, rank = len(gram), len(factor)
    families = [[total_start(size)]]
    order = seriation(gram) if size <= _ORDERED_CELLS else None
    if order is not None:
        for branching in (16, 24):
            tree = tree_start(size, min(branching, size))
            start = np.empty_like(tree)
            start[:, order] = tree
            families.append([start])
    families.append([signed_parts(factor, min(max(1, size // 16), _MOST_PARTS), 2.0)])
    low = low_rank_starts(size, rank, seed)
    if low:
        families.append([signed_parts(factor, min(rank, _MOST_PARTS), 10.0)])
    return families + low
