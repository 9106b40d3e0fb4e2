"""Starts of searches for p-Identity strategies that look at the workload, where cells have no order.

The total alone; the Gaussian optimum, its rows split into their positive and negative parts; and as many
random rows as the workload has dimensions, where these are few and the identity is better left out.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.gram.starts import random_start
from matrixdp.selection.starting_points import generator

__all__ = ["MOST_DIMENSIONS", "adapted_starts", "low_rank_starts", "signed_parts", "total_start"]

Array = NDArray[np.float64]

#: Rows of the Gaussian optimum that a start takes, at most.
_MOST_PARTS = 32
#: Random rows beyond this many take long and gain little.
MOST_DIMENSIONS = 128


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


def adapted_starts(factor: Array, seed: int) -> list[list[Array]]:
    """Return starts that suit a workload, in families of which each deserves a search of its own.

    Examples
    --------
    >>> [start.shape for family in adapted_starts(np.eye(32), 0) for start in family]
    [(1, 32), (2, 32)]
    """
    rank, size = factor.shape
    families = [[total_start(size)]]
    families.append([signed_parts(factor, min(max(1, size // 16), _MOST_PARTS), 2.0)])
    low = low_rank_starts(size, rank, seed)
    if low:
        families.append([signed_parts(factor, min(rank, _MOST_PARTS), 10.0)])
    return families + low
