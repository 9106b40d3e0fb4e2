"""Quadratic forms of queries: the small pieces that error analysis is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.plan.plan import Plan
from matrixdp.queries.groups import DenseGroup, Group
from matrixdp.queries.predicates import Predicates

__all__ = [
    "GroupError",
    "along",
    "not_measured",
    "one_query",
    "product_quadratic",
    "project",
    "spread_query",
    "structured_covariance",
]

Array = NDArray[np.float64]


def project(form: Array, weights: Array) -> Array:
    """Return P C P' for P = I - w 1': the form seen by queries with their weighted mean removed."""
    row = form.sum(axis=0)
    outer = np.outer(weights, row)
    return np.asarray(form - outer - outer.T + row.sum() * np.outer(weights, weights))


def along(array: Array, axis: int, matrix: Array) -> Array:
    """Return the array with ``matrix`` applied along one axis."""
    return np.moveaxis(np.tensordot(matrix, array, axes=(1, axis)), 0, axis)


def structured_covariance(matrix: MeasuredMatrix) -> tuple[float, float] | None:
    """Return (a, b) where the covariance of the matrix is a I + b 11', else None."""
    if isinstance(matrix, IdentityMatrix):
        return 1.0, 0.0
    if isinstance(matrix, CenteredMatrix):
        return 1.0 / matrix.size**2, -1.0 / matrix.size**3
    return None


@dataclass(frozen=True)
class GroupError:
    """Error of one query group at privacy cost 1.

    Attributes
    ----------
    total : float
        Sum of the variances of its queries.
    weighted : float
        The same, each variance multiplied by its weight.
    largest : float
        The largest variance.
    """

    total: float
    weighted: float
    largest: float


def one_query(group: Group, index: int) -> Array:
    """Return one query of a group over the cells of its attributes, shape (1, cells)."""
    if isinstance(group, DenseGroup):
        return group.rows()[index : index + 1]
    row = np.ones((1, 1))
    positions = np.unravel_index(index, group.counts) if group.counts else ()
    for predicates, size, position in zip(group.predicates, group.sizes, positions, strict=True):
        row = np.kron(row, predicates.rows(size)[int(position)][None, :])
    return row


def spread_query(row: Array, own: tuple[str, ...], attributes: tuple[str, ...], plan: Plan) -> Array:
    """Return a query on ``own`` as a query on more attributes, totals along the others."""
    tensor = row.reshape([plan.domain[name].size if name in own else 1 for name in attributes])
    shape = [plan.domain[name].size for name in attributes]
    return np.broadcast_to(tensor, shape).reshape(1, -1).copy()


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


def not_measured(kept: tuple[str, ...]) -> str:
    """Return why a query is refused whose marginal was not measured."""
    return f"needs the marginal of {', '.join(kept) or 'no attribute (the total)'}, which was not measured"
