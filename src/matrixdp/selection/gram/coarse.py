"""Coarse grids: what a workload asks of a large ordered attribute, seen at a few of its values.

The optimum for prefixes, ranges and the like changes smoothly from one value to the next, except towards the
ends: what changes little from the optimum of one workload to that of another is found on a coarse grid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["grid", "interpolated", "is_smooth", "refined", "sampled"]

Array = NDArray[np.float64]

#: The cosine between neighbouring columns of a workload, on average, from which on it is taken to be smooth.
_SMOOTH = 0.9


def grid(size: int, points: int) -> Array:
    """Return evenly spaced places among the values 0 to size - 1, as far from -1 and size as from each other.

    Prefixes, suffixes and ranges, sampled there, are those of an attribute of as many values as points.

    Examples
    --------
    >>> grid(7, 3).tolist()
    [1.0, 3.0, 5.0]
    """
    return np.asarray((np.arange(points) + 1.0) * (size + 1) / (points + 1) - 1.0)


def sampled(gram: Array, places: Array) -> Array:
    """Return a Gram matrix at some places, interpolated between values, shape (places, places).

    Examples
    --------
    >>> sampled(np.array([[3.0, 2.0, 1.0], [2.0, 2.0, 1.0], [1.0, 1.0, 1.0]]), np.array([0.5, 2.0])).tolist()
    [[2.25, 1.0], [1.0, 1.0]]
    """
    low = np.clip(np.floor(places).astype(np.intp), 0, len(gram) - 2)
    share = places - low
    rows = gram[low] * (1.0 - share)[:, None] + gram[low + 1] * share[:, None]
    return np.asarray(rows[:, low] * (1.0 - share) + rows[:, low + 1] * share)


def is_smooth(gram: Array) -> bool:
    """Return whether queries hardly tell neighbouring values apart.

    Examples
    --------
    >>> [is_smooth(gram) for gram in (np.tri(100).T @ np.tri(100), np.eye(100))]
    [True, False]
    """
    diagonal = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    lengths = diagonal[1:] * diagonal[:-1]
    some = lengths > 0
    return bool(some.any()) and float((np.diagonal(gram, 1)[some] / lengths[some]).mean()) > _SMOOTH


def interpolated(values: Array, places: Array, size: int) -> Array:
    """Return values at places as values at 0 to size - 1, constant beyond the first and the last place.

    Examples
    --------
    >>> interpolated(np.array([1.0, 3.0]), np.array([1.0, 3.0]), 5).tolist()
    [1.0, 1.0, 2.0, 3.0, 3.0]
    """
    return np.interp(np.arange(size), places, values)


def refined(distribution: Array, size: int) -> Array:
    """Return a distribution over evenly spaced places as one over more values that has the same shape.

    Near an end the optimum changes from one value to the next, however many there are, and falls by a power
    further away; in the middle it depends on the share of the way. Between the two it goes from the one to
    the other.

    Examples
    --------
    >>> refined(np.array([4.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0]) / 16, 16).round(3)[:5].tolist()
    [0.144, 0.09, 0.06, 0.054, 0.043]
    """
    points = len(distribution)
    ratio = (size + 1) / (points + 1)
    near = max(points // 32, min(4, points // 3))
    ends = []
    for logarithms in (np.log(distribution), np.log(distribution[::-1])):
        places, counted = np.arange(points), np.arange((size + 1) // 2)
        # the power by which it falls
        power = (logarithms[2 * near] - logarithms[near]) / np.log((2 * near + 1) / (near + 1))
        by_value = np.interp(counted, places, logarithms) - power * np.log(ratio)
        by_share = np.interp(np.log((counted + 1) / ratio), np.log(places + 1), logarithms)
        part = np.log((counted + 1) / (0.5 * near)) / np.log(4.0 * ratio)
        ends.append(by_value + np.clip(part, 0.0, 1.0) * (by_share - by_value))
    found = np.exp(np.concatenate([ends[0][: size - size // 2], ends[1][: size // 2][::-1]]))
    return np.asarray(found / found.sum())
