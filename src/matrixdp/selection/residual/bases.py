"""Given bases: one strategy for each attribute, used for every sub-workload that keeps the attribute."""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from matrixdp.errors import WorkloadError
from matrixdp.selection.convex import Design, solve_gram
from matrixdp.selection.residual.split import Split
from matrixdp.selection.residual.structured import StructuredDesign, StructuredProblem

__all__ = ["fixed_design", "fixed_product", "own_bases", "residual_basis"]

Array = NDArray[np.float64]

#: Eigenvalues of B'B below this share of the largest are rounding errors.
_RANK = 1e-11
#: The share of a workload's Gram matrix that may lie outside of a basis.
_OUTSIDE = 1e-7


def own_bases(split: Split, gap: float) -> dict[int, Array]:
    """Return for each attribute type the optimal strategy of its own queries and the total.

    Parameters
    ----------
    split : Split
    gap : float

    Returns
    -------
    dict of int to ndarray, shape (r, n)
        For types whose queries are not symmetric: the strategy that is optimal for the queries with their
        mean removed, together with the total. For types that only explicit queries ask about, that of
        prefix queries.

    Notes
    -----
    ResidualPlanner+ leaves the strategies to the user. With this choice the figures published for it are
    reproduced.
    """
    grams: dict[int, Array] = {}
    for slot in split.slots:
        if split.free[slot.type]:
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
        bases[type_] = solve_gram(centered + 1.0, gap=gap).factor
    return bases


def residual_basis(basis: Array, weights: Array) -> Design:
    """Return a basis with its weighted mean removed, as a strategy of largest column norm 1.

    Parameters
    ----------
    basis : ndarray, shape (m, n)
        B.
    weights : ndarray, shape (n,)
        w, with sum 1.

    Returns
    -------
    Design
        Independent rows with the Gram matrix of B (I - w 1'), up to scale. Loss and bound are not known yet.

    Examples
    --------
    >>> residual_basis(np.eye(2), np.array([0.5, 0.5])).factor.shape
    (1, 2)
    """
    rows = basis @ (np.eye(len(weights)) - np.outer(weights, np.ones(len(weights))))
    values, vectors = scipy.linalg.eigh(rows.T @ rows, driver="evd", check_finite=False)
    keep = values > _RANK * values[-1]
    if not values[-1] > _RANK * float((basis**2).sum()):
        raise WorkloadError("bases: found a basis that measures nothing but the total")
    factor = (vectors[:, keep] * np.sqrt(values[keep])).T
    factor /= math.sqrt(float((factor**2).sum(axis=0).max()))
    size = len(weights)
    return Design(factor, math.nan, math.nan, np.full(size, 1.0 / size), 0)


def fixed_design(design: Design, gram: Array) -> Design:
    """Return the design with its loss on a Gram matrix.

    Raises
    ------
    WorkloadError
        If the basis does not span the queries.

    Examples
    --------
    >>> basis = residual_basis(np.eye(2), np.array([0.5, 0.5]))
    >>> round(fixed_design(basis, np.array([[0.5, -0.5], [-0.5, 0.5]])).loss, 9)
    0.5
    """
    inverse = np.linalg.pinv(design.factor)
    inside = inverse @ (design.factor @ gram)
    if float(np.abs(inside - gram).max()) > _OUTSIDE * float(np.abs(gram).max()):
        raise WorkloadError("bases: a basis does not span the attribute's queries; give one that does")
    loss = float(np.einsum("ia,ia->", inverse, gram @ inverse))
    return Design(design.factor, loss, loss, design.p, 0)


def fixed_product(designs: list[Design], problem: StructuredProblem) -> StructuredDesign:
    """Return the product of given designs with its loss on a problem.

    Raises
    ------
    WorkloadError
        If a basis does not span the queries.
    """
    for axis, design in enumerate(designs):
        grams = [grams[axis] for _, grams in problem.terms]
        for _, tensor in problem.rows:
            flat = np.moveaxis(tensor, axis + 1, -1).reshape(-1, problem.sizes[axis])
            grams.append(flat.T @ flat)
        for gram in grams:
            fixed_design(design, gram)
    plain = StructuredDesign(designs, None, math.nan)
    return StructuredDesign(designs, None, float(problem.row_energies(plain.inverses).sum()))
