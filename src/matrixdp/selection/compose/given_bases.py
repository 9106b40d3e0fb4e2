"""Given bases: one strategy for each attribute, used for every sub-workload that keeps the attribute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import WorkloadError
from matrixdp.selection.compose.product import Product
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.factor import Factor, right_inverse
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.problem.residuals import Split

__all__ = ["fixed_factor", "fixed_product", "own_bases", "residual_basis"]

Array = NDArray[np.float64]

#: Eigenvalues of B'B below this share of the largest are rounding errors.
_RANK = 1e-11
#: The share of a workload's Gram matrix that may lie outside of a basis.
_OUTSIDE = 1e-7


def own_bases(split: Split, gap: float) -> dict[int, Array]:
    """Return for each attribute type the optimal strategy of its own queries and the total.

    For types whose queries are not symmetric: the strategy that is optimal for the queries with their mean
    removed, together with the total. For types that only explicit queries ask about, that of prefixes.
    ResidualPlanner+ leaves strategies to the user; with these its published figures are reproduced.
    """
    grams: dict[int, Array] = {}
    for slot in split.slots:
        if split.free[slot.type] and slot.definite:
            gram = slot.predicates.gram(slot.size)
            grams[slot.type] = grams.get(slot.type, np.zeros_like(gram)) + gram
    for item in split.explicit:
        for type_, size in zip(item.types, item.sizes, strict=True):
            if type_ not in grams and size > 1:
                prefix = np.tril(np.ones((size, size)))
                grams[type_] = prefix.T @ prefix
    bases = {}
    for type_, gram in grams.items():
        mean = gram.mean(axis=0)
        centered = gram - mean[:, None] - mean[None, :] + mean.mean()
        bases[type_] = solve_gram(centered + 1.0, gap=gap).rows
    return bases


def residual_basis(basis: Array, weights: Array) -> Array:
    """Return a basis B with its weighted mean removed: independent rows, the largest column norm 1.

    Their Gram matrix is that of B (I - w 1'), up to scale.

    Examples
    --------
    >>> residual_basis(np.eye(2), np.array([0.5, 0.5])).shape
    (1, 2)
    """
    basis = basis / (float(np.abs(basis).max(initial=0.0)) or 1.0)  # squares neither overflow nor vanish
    rows = basis @ (np.eye(len(weights)) - np.outer(weights, np.ones(len(weights))))
    values, vectors = scipy.linalg.eigh(rows.T @ rows, driver="evd", check_finite=False)
    keep = values > _RANK * values[-1]
    if not values[-1] > _RANK * float((basis**2).sum()):
        raise WorkloadError("bases: found a basis that measures nothing but the total")
    rows = (vectors[:, keep] * np.sqrt(values[keep])).T
    return np.asarray(rows / math.sqrt(float((rows**2).sum(axis=0).max())))


def fixed_factor(rows: Array, gram: Array) -> Factor:
    """Return a given strategy with its loss on a Gram matrix.

    Raises WorkloadError if the basis does not span the queries.

    Examples
    --------
    >>> basis = residual_basis(np.eye(2), np.array([0.5, 0.5]))
    >>> round(fixed_factor(basis, np.array([[0.5, -0.5], [-0.5, 0.5]])).loss, 9)
    0.5
    """
    inverse = right_inverse(rows)
    inside = inverse @ (rows @ gram)
    if float(np.abs(inside - gram).max()) > _OUTSIDE * float(np.abs(gram).max()):
        raise WorkloadError("bases: a basis does not span the attribute's queries; give one that does")
    return Factor(rows, float(np.einsum("ia,ia->", inverse, gram @ inverse)))


def fixed_product(chosen: list[Array], terms: KronSum[Any]) -> Product:
    """Return the product of given strategies with its loss on a problem; they have to span the queries."""
    factors = []
    for axis, rows in enumerate(chosen):
        grams = [terms.gram(axis, key) for key in terms.sets[axis]]
        for _, _, tensor in terms.explicit:
            flat = np.moveaxis(tensor, axis + 1, -1).reshape(-1, terms.sizes[axis])
            grams.append(flat.T @ flat)
        factors.append([fixed_factor(rows, gram) for gram in grams][-1])
    return Product(tuple(factors), terms.loss([factor.inverse for factor in factors]))
