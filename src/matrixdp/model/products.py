"""Sums of products of vectors, one vector for each attribute: their tensors, with two matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["khatri_rao", "split_at", "sum_of_products"]

Real = TypeVar("Real", np.float32, np.float64)


def khatri_rao(factors: Sequence[NDArray[Real]], weights: NDArray[Real]) -> NDArray[Real]:
    """Return weights_k times the outer product of row k of each factor, flat, shape (K, cells).

    Examples
    --------
    >>> khatri_rao([np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]])], np.ones(1))
    array([[3., 4., 6., 8.]])
    """
    product = weights[:, None]
    for factor in factors:
        product = (product[:, :, None] * factor[:, None, :]).reshape(len(product), -1)
    return product


def split_at(sizes: Sequence[int]) -> int:
    """Return where to cut a list of sizes in two so that the products of both sides add up to the least.

    Examples
    --------
    >>> split_at([5, 6, 42]), split_at([9]), split_at([])
    (2, 0, 0)
    """
    cuts = range(len(sizes)) or range(1)
    return min(cuts, key=lambda cut: math.prod(sizes[:cut]) + math.prod(sizes[cut:]))


def sum_of_products(factors: Sequence[NDArray[Real]], weights: NDArray[Real]) -> NDArray[Real]:
    """Return the sum over k of weights_k times the outer product of row k of each factor.

    Parameters
    ----------
    factors : sequence of ndarray, each of shape (K, n_i)
    weights : ndarray, shape (K,)

    Returns
    -------
    ndarray, shape (n_1, n_2, ...)

    Examples
    --------
    >>> first, second = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])
    >>> sum_of_products([first, second], np.array([4.0, 6.0]))
    array([[2., 2.],
           [0., 6.]])
    """
    sizes = [factor.shape[1] for factor in factors]
    cut = split_at(sizes)
    left = khatri_rao(factors[:cut], weights)
    right = khatri_rao(factors[cut:], np.ones_like(weights))
    return np.asarray((left.T @ right).reshape(sizes))
