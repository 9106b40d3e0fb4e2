"""Dense linear algebra: products along the axes of tensors, orthonormal bases, roots of Gram matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

Array = NDArray[np.float64]
Real = TypeVar("Real", bound=np.floating[Any])

#: Eigenvalues of a Gram matrix below this share of the largest are rounding errors.
RANK = 1e-12


#: A matrix, or a linear map of arrays of shape (n, k).
Map = NDArray[Real] | Callable[[NDArray[Real]], NDArray[Real]]


def along(tensor: NDArray[Real], axis: int, matrix: Map[Real]) -> NDArray[Real]:
    """Return a matrix, or a linear map of arrays of shape (n, k), applied along one axis of a tensor.

    Examples
    --------
    >>> along(np.arange(6.0).reshape(2, 3), 1, np.ones((1, 3))).tolist()
    [[3.0], [12.0]]
    """
    moved = np.moveaxis(tensor, axis, 0)
    flat = np.ascontiguousarray(moved).reshape(len(moved), math.prod(moved.shape[1:]))
    found = matrix @ flat if isinstance(matrix, np.ndarray) else matrix(flat)
    return np.moveaxis(found.reshape(len(found), *moved.shape[1:]), 0, axis)


def along_axes(tensor: NDArray[Real], matrices: Iterable[Map[Real]], first: int = 0) -> NDArray[Real]:
    """Return a tensor with a matrix, or a linear map, applied along each axis from ``first`` on.

    Examples
    --------
    >>> along_axes(np.ones((2, 3)), [np.eye(2), np.ones((1, 3))]).tolist()
    [[3.0], [3.0]]
    """
    for axis, matrix in enumerate(matrices, first):
        tensor = along(tensor, axis, matrix)
    return tensor


def kronecker(matrices: Iterable[NDArray[Any]]) -> NDArray[Any]:
    """Return the Kronecker product of matrices, 1 if there are none.

    Examples
    --------
    >>> kronecker([np.array([[1.0, 2.0]]), np.eye(2)]).tolist()
    [[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 2.0]]
    """
    own = list(matrices)
    found = own[0] if own else np.ones((1, 1))
    for matrix in own[1:]:
        found = np.asarray(np.kron(found, matrix))
    return found


def outer(vectors: Iterable[Array]) -> Array:
    """Return the products of one entry of each vector, in the shape of their lengths.

    Examples
    --------
    >>> outer([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).tolist()
    [[3.0, 4.0], [6.0, 8.0]]
    """
    return np.asarray(reduce(np.multiply.outer, vectors, np.ones(())))


def contrasts(size: int) -> Array:
    """Return an orthonormal basis of the vectors of ``size`` entries that sum to zero, shape (n, n - 1).

    Examples
    --------
    >>> contrasts(2).round(3).ravel().tolist()
    [0.707, -0.707]
    """
    return np.ascontiguousarray(scipy.linalg.helmert(size).T)


def complement(inside: Array) -> Array | None:
    """Return orthonormal rows at right angles to all of some independent columns; None if there are none."""
    if inside.shape[0] == inside.shape[1]:
        return None
    full = scipy.linalg.qr(inside, check_finite=False)[0]
    return np.ascontiguousarray(full[:, inside.shape[1] :].T)


def inverse_root(gram: Array, known: int = 0) -> Array:
    """Return L, shape (rank, n), with L G L' = I for a positive semidefinite matrix G of that rank.

    L' L is a generalized inverse of G: q L' L q' is the variance of a query q that G determines.

    Raises LinAlgError if the rank comes out below the ``known``.

    Examples
    --------
    >>> inverse_root(np.diag([4.0, 0.0])).round(6).tolist()
    [[0.5, 0.0]]
    """
    if len(gram) == 1 and gram[0, 0] > 0.0:
        return np.asarray(1.0 / np.sqrt(gram))
    scale = 1.0 / np.sqrt(np.maximum(gram.diagonal(), np.finfo(float).tiny))
    scaled = gram * scale * scale[:, None]
    try:
        lower = np.linalg.cholesky(scaled)
        if float(np.diagonal(lower).min()) > math.sqrt(RANK):
            solved = scipy.linalg.solve_triangular(lower, np.eye(len(lower)), lower=True, check_finite=False)
            return np.asarray(solved * scale)
    except np.linalg.LinAlgError:
        pass
    values, vectors = np.linalg.eigh(scaled)
    kept = values > RANK * values[-1]
    if kept.sum() < known:
        raise np.linalg.LinAlgError("a Gram matrix has a lower rank than it should")
    return np.asarray((vectors[:, kept] / np.sqrt(values[kept])).T * scale)


def by_first(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each code, in the order of the first of each.

    Examples
    --------
    >>> by_first(np.array([7, 3, 7, 9])).tolist()
    [0, 1, 0, 2]
    """
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def numbered(rows: Array) -> NDArray[np.intp]:
    """Return a number for each row, in the order of the first of each: equal rows have the same.

    Examples
    --------
    >>> numbered(np.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]])).tolist()
    [0, 1, 0]
    """
    known: dict[bytes, int] = {}
    return np.array([known.setdefault(row.tobytes(), len(known)) for row in np.ascontiguousarray(rows)])
