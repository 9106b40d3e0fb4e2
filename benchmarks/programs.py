"""The least error of all noise on the integers, by linear programs, in small cases.

By averaging over translations, noise that is added to the exact answers is as good for the worst table as any
mechanism with pure differential privacy. Its probabilities f hold f(z + m) >= exp(-epsilon) f(z) for every
move m of a record: linear in f, as is the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from numpy.typing import NDArray
from scipy import sparse

__all__ = ["box", "least_of_all_noise", "mirrored"]

Points = NDArray[np.int64]
Array = NDArray[np.float64]


def box(reach: int, dimension: int) -> Points:
    """Return every vector of integers from -reach to reach, shape (vectors, dimension).

    Examples
    --------
    >>> box(1, 2).shape
    (9, 2)
    """
    axes = [np.arange(-reach, reach + 1)] * dimension
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, dimension)


def mirrored(points: Points) -> Points:
    """Return each vector or its negative, the same for both.

    Examples
    --------
    >>> mirrored(np.array([[0, 3], [0, -3], [2, -1], [-2, 1]])).tolist()
    [[0, 3], [0, 3], [2, -1], [2, -1]]
    """
    first = (points != 0).argmax(axis=1)
    return points * np.where(points[np.arange(len(points)), first] < 0, -1, 1)[:, None]


def least_of_all_noise(
    points: Points,
    moves: Points,
    squares: Array,
    epsilon: float,
    folded: Callable[[Points], Points] = mirrored,
) -> tuple[float, Array]:
    """Return the least mean of squares over all noise on a box of points, and its probabilities.

    Parameters
    ----------
    points : ndarray, shape (points, dimension)
        All vectors of a box that noise may be.
    moves : ndarray, shape (moves, dimension)
        What a record that is added moves; one that is removed moves the other way.
    squares : ndarray, shape (points,)
        The squared error of each.
    epsilon : float
    folded : callable
        Takes vectors to others of the box that are as likely in the best noise, by a symmetry.

    Notes
    -----
    Moves out of the box are left out, so that the result is at most that of all integers.

    Examples
    --------
    One count: two-sided geometric noise, cut off.

    >>> own = box(20, 1)
    >>> least, _ = least_of_all_noise(own, np.array([[1]]), own[:, 0] ** 2.0, 1.0)
    >>> round(least**0.5, 3)
    1.357
    """
    low, high = points.min(axis=0), points.max(axis=0)
    shape = tuple((high - low + 1).tolist())
    known, own = np.unique(np.ravel_multi_index((folded(points) - low).T, shape), return_inverse=True)
    edges = []
    for move in (*moves, *-moves):
        moved = points + move
        inside = ((moved >= low) & (moved <= high)).all(axis=1)
        other = np.searchsorted(known, np.ravel_multi_index((folded(moved[inside]) - low).T, shape))
        edges.append(np.stack([own[inside], other], axis=1))
    pairs = np.unique(np.concatenate(edges), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    numbers, errors = np.bincount(own).astype(float), np.bincount(own, squares)
    entries = np.tile([math.exp(-epsilon), -1.0], len(pairs))
    places = (np.repeat(np.arange(len(pairs)), 2), pairs.ravel())
    held: Any = sparse.csr_array((entries, places), shape=(len(pairs), len(known)))
    found: Any = scipy.optimize.linprog(
        errors, held, np.zeros(len(pairs)), numbers[None], np.ones(1), method="highs-ipm"
    )
    if found.status != 0:
        raise ArithmeticError(found.message)
    return float(found.fun), found.x[own]
