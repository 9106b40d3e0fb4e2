"""Quadratic forms of queries: the small pieces that error analysis is made of."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.structured import GridCovariance
from matrixdp.queries.groups import DenseGroup, Group
from matrixdp.queries.predicates import Predicates

__all__ = [
    "grid_quadratic",
    "one_query",
    "product_quadratic",
    "without_sums",
]

Array = NDArray[np.float64]


def without_sums(array: Array, axis: int, weights: Array) -> Array:
    """Return the array with P = I - w 1' applied along one axis; w is all zeros where nothing changes."""
    if not weights.any():
        return array
    shape = [-1 if i == axis else 1 for i in range(array.ndim)]
    return np.asarray(array - array.sum(axis=axis, keepdims=True) * weights.reshape(shape))


def one_query(group: Group, index: int) -> Array:
    """Return one query of a group over the cells of its attributes, shape (1, cells)."""
    if isinstance(group, DenseGroup):
        if not group.summands:
            return group.rows()[index : index + 1]
        place = group.place(index)
        return np.asarray(sum(sign * one_query(product, place) for sign, product in group.summands))
    row = np.ones((1, 1))
    positions = np.unravel_index(index, group.counts) if group.counts else ()
    for predicates, size, position in zip(group.predicates, group.sizes, positions, strict=True):
        row = np.kron(row, predicates.rows(size)[int(position)][None, :])
    return row


def product_quadratic(form: Array, predicates: Sequence[Predicates], sizes: Sequence[int]) -> Array:
    """Return (q_1 x q_2 x ...) C (q_1 x q_2 x ...)' for every combination, shape (counts)."""
    if len(predicates) == 1:
        return predicates[0].quadratic(form)
    size = sizes[0]
    rest = len(form) // size
    tensor = form.reshape(size, rest, size, rest)
    out = []
    for row in predicates[0].rows(size):
        half = np.tensordot(row, tensor, axes=(0, 0))
        inner = np.tensordot(half, row, axes=(1, 0))
        out.append(product_quadratic(inner, predicates[1:], sizes[1:]))
    return np.array(out)


def grid_quadratic(form: GridCovariance, predicates: Sequence[Predicates]) -> Array:
    """Return (q_1 x q_2) C (q_1 x q_2)' for every pair of predicates of two attributes, shape (counts)."""
    first, second = predicates
    total: Array = np.zeros(())
    for factor, own, other in form.terms:
        total = total + np.multiply.outer(factor * first.quadratic(own), second.quadratic(other))
    for factor, field in form.corners:
        total = total - factor * second.apply(first.apply(field).T).T ** 2
    return np.asarray(total)
