"""Errors at epsilon = 1 that have a formula: of stream counters, of staircases, and of one walk."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["binary_tree", "from_below", "one_walk", "staircase"]


def binary_tree(size: int) -> float:
    """Return the RMSE of prefixes by a binary tree, each the sum of as many nodes as its length has ones.

    A record is in log2(n) + 1 nodes, and k has (log2 n) / 2 + 1 / n ones on average.

    Examples
    --------
    >>> round(binary_tree(2), 3)  # two levels of scale 2: one node, then one node
    2.828
    """
    levels = math.log2(size)
    return (levels + 1) * math.sqrt(2 * (levels / 2 + 1 / size))


def from_below(size: int) -> float:
    """Return the same where every node is the best mean of its own count and of those below it.

    Examples
    --------
    >>> round(from_below(2), 3)  # the node of both values has two thirds of the variance
    2.582
    """
    levels = int(math.log2(size))
    variances = [1.0]
    for _ in range(levels):
        variances.append(1 / (1 + 1 / (2 * variances[-1])))
    return (levels + 1) * math.sqrt(2 * (math.fsum(variances[:-1]) / 2 + variances[-1] / size))


def staircase(epsilon: float) -> float:
    """Return the least standard deviation of noise on one real number that moves by at most 1.

    Examples
    --------
    >>> round(staircase(1.0), 3)
    1.385
    """
    b = math.exp(-epsilon)
    return math.sqrt((2 ** (-2 / 3) * b ** (2 / 3) * (1 + b) ** (2 / 3) + b) / (1 - b) ** 2)


def one_walk(gram: NDArray[np.float64]) -> float:
    """Return the total squared error of one walk with the best widths, by its formula.

    Examples
    --------
    Prefixes of eight values.

    >>> round((one_walk(np.tri(8).T @ np.tri(8)) / 8) ** 0.5, 3)
    2.415
    """
    own, beside = gram.diagonal(), np.append(np.diagonal(gram, 1), 0.0)
    after = np.append(own[1:], 0.0)
    apart = own - 2.0 * beside + after
    sizes = np.cbrt(1.0 + 3.0 * beside / apart)
    return float((apart * (sizes**2 + 2.0 / sizes) / 3.0 + 2.0 * beside / sizes + own - after).sum())
