"""Sums of Kronecker products of Gram matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

__all__ = ["sum_of_products"]

Array = NDArray[np.float64]

#: From so many terms on they are added by matrix multiplications, of so many entries of one side at a time.
_LEAST_TERMS = 8
_ENTRIES = 1 << 22


def sum_of_products(terms: Sequence[tuple[float, Sequence[Array]]]) -> Array:
    """Return the sum of coefficients times Kronecker products of square matrices.

    Parameters
    ----------
    terms : sequence of (float, sequence of ndarray)
        At least one; the factors of every term have the same shapes.

    Examples
    --------
    >>> sum_of_products([(2.0, [np.eye(1), np.eye(2)]), (1.0, [np.ones((1, 1)), np.ones((2, 2))])])
    array([[3., 1.],
           [1., 3.]])
    """
    factors = terms[0][1]
    if not factors:
        return np.full((1, 1), sum(coefficient for coefficient, _ in terms))
    if len(terms) < _LEAST_TERMS or len(factors) < 2:
        total: Array = np.zeros(())
        for coefficient, own in terms:
            total = total + coefficient * reduce(_kron, own)
        return total
    outer = len(factors[0])
    inner = int(np.prod([len(factor) for factor in factors[1:]]))
    flat = np.zeros((outer * outer, inner * inner))
    step = max(1, _ENTRIES // (inner * inner))
    for first in range(0, len(terms), step):
        some = terms[first : first + step]
        left = np.stack([coefficient * own[0].ravel() for coefficient, own in some])
        flat += left.T @ np.stack([reduce(_kron, own[1:]).ravel() for _, own in some])
    return flat.reshape(outer, outer, inner, inner).transpose(0, 2, 1, 3).reshape(outer * inner, -1)


def _kron(left: Array, right: Array) -> Array:
    return np.asarray(np.kron(left, right), dtype=np.float64)
