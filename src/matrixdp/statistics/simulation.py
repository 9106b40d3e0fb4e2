"""The largest of correlated normal variables, by draws of one public seed; nothing is protected by them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DRAWS, _BLOCK, _SEED = 20_000, 2_000, 20_260_101
#: Of the normal distribution at 0.999.
_SURE = 3.0903


def largest_of_normals(correlation: Array, confidence: float) -> float:
    """Return the quantile of the largest of correlated standard normal variables in absolute value.

    The order statistic of the draws that is not below the quantile with a probability of 0.999 over the
    seed; infinite where there are too few draws for the confidence.

    Examples
    --------
    >>> 1.96 < largest_of_normals(np.ones((3, 3)), 0.95) < 2.03  # three times the same variable
    True
    """
    rank = math.ceil(_DRAWS * confidence + _SURE * math.sqrt(_DRAWS * confidence * (1 - confidence)))
    if rank > _DRAWS or not len(correlation):
        return math.inf
    values, vectors = np.linalg.eigh(correlation)
    # the symmetric root: the same on every machine, whatever basis an eigenvalue that repeats is given
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    random = np.random.default_rng(_SEED)
    largest = []
    for _ in range(0, _DRAWS, _BLOCK):
        normal = random.standard_normal((_BLOCK, len(root)))
        largest.append(np.abs(normal @ root).max(axis=1))
    return float(np.sort(np.concatenate(largest))[rank - 1])
