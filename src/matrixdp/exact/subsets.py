"""Sums over subsets of attributes: the transforms of the marginals algebra, in O(d 2^d)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["precision_sums", "precision_sums_adjoint", "subset_products"]

Array = NDArray[np.float64]


def _along(tensor: Array, axis: int) -> tuple[Array, Array]:
    """Return the slices without and with attribute ``axis``."""
    return np.take(tensor, 0, axis=axis), np.take(tensor, 1, axis=axis)


def precision_sums(tensor: Array, sizes: Sequence[int]) -> Array:
    """Return lambda_T = sum over S that contain T of u_S times the product of n_i over i not in S.

    If marginal S is measured by the identity with inverse variance u_S, lambda_T is the eigenvalue of the
    strategy's Gram matrix on the residual space of T.

    Entry 1 along an axis of ``tensor`` means that the attribute is in S; ``sizes`` are the n.

    References
    ----------
    McKenna et al., journal version, section 7 (Theorem 8).

    Examples
    --------
    >>> precision_sums(np.array([1.0, 10.0]), [3]).tolist()
    [13.0, 10.0]
    """
    result = np.asarray(tensor, dtype=np.float64)
    for axis, size in enumerate(sizes):
        without, within = _along(result, axis)
        result = np.stack([within + size * without, within], axis=axis)
    return result


def precision_sums_adjoint(tensor: Array, sizes: Sequence[int]) -> Array:
    """Return the adjoint of `precision_sums`: sum over T in S of g_T times the product of n_i, i not in S.

    Examples
    --------
    >>> precision_sums_adjoint(np.array([1.0, 10.0]), [3]).tolist()
    [3.0, 11.0]
    """
    result = np.asarray(tensor, dtype=np.float64)
    for axis, size in enumerate(sizes):
        without, within = _along(result, axis)
        result = np.stack([size * without, within + without], axis=axis)
    return result


def subset_products(without: Sequence[float], within: Sequence[float]) -> Array:
    """Return for every subset the product of ``within`` over its members and ``without`` over the others.

    Examples
    --------
    >>> subset_products([1.0, 1.0], [3.0, 5.0]).tolist()
    [[1.0, 5.0], [3.0, 15.0]]
    """
    result = np.ones(())
    for out, into in zip(without, within, strict=True):
        result = np.multiply.outer(result, np.array([out, into]))
    return result
