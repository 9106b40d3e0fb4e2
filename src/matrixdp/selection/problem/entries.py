"""What is found in the entries of a Gram matrix of which nothing else is known."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.selection.limits import LIMITS

#: Past this many classes of cells that trade places, with fewer than two cells on average, they are given up.
_MOST_CLASSES = 8


def symmetric_part(gram: Array) -> tuple[float, float] | None:
    """Return (a, b) for a I + b 11', or None for other matrices.

    Examples
    --------
    >>> symmetric_part(2.0 * np.eye(3) + 1.0), symmetric_part(np.diag([1.0, 2.0]))
    ((2.0, 1.0), None)
    """
    size = len(gram)
    off = float(gram[0, -1]) if size > 1 else 0.0
    single = float(gram[0, 0]) - off
    tolerance = LIMITS.closed_form * float(np.abs(gram).max())
    if max(float(np.ptp(gram[0, 1:])) if size > 1 else 0.0, float(np.ptp(np.diagonal(gram)))) > tolerance:
        return None
    expected = np.full(gram.shape, off)
    np.fill_diagonal(expected, single + off)
    return (single, off) if float(np.abs(gram - expected).max()) <= tolerance else None


def query_of(gram: Array) -> Array | None:
    """Return q for V = qq', or None for other matrices."""
    place = int(np.argmax(np.diagonal(gram)))
    peak = float(gram[place, place])
    if not (math.isfinite(peak) and peak > 0):
        return None
    row = gram[place] / math.sqrt(peak)
    return row if float(np.abs(gram - np.outer(row, row)).max()) <= LIMITS.closed_form * peak else None


def siblings(gram: Array) -> NDArray[np.intp] | None:
    """Return the class of each cell, of cells that may trade places, or None where these are few."""
    size, peak = len(gram), float(np.abs(gram).max())
    if not 0.0 < peak < math.inf:
        return None
    tolerance = LIMITS.same * peak
    classes, found = np.full(size, -1), 0
    sums, diagonal = gram.sum(axis=1), np.diagonal(gram)
    if np.count_nonzero(np.diff(np.sort(sums)) > size * tolerance) >= size // 2:
        return None
    while (classes < 0).any():
        first = int(np.argmin(classes))
        alike = (classes < 0) & (np.abs(diagonal - diagonal[first]) <= tolerance)
        places = np.flatnonzero(alike & (np.abs(sums - sums[first]) <= size * tolerance))
        apart = np.abs(gram[places] - gram[first]) > tolerance
        apart[:, first] = False
        apart[np.arange(len(places)), places] = False
        classes[places[~apart.any(axis=1)]] = found
        found += 1
        if found > _MOST_CLASSES and np.count_nonzero(classes >= 0) < 2 * found:
            return None
    return classes if 1 < found <= size // 2 else None


def green_factors(gram: Array) -> tuple[Array, Array] | None:
    """Return u and v with V_jk = u_j v_k for j <= k, both positive, if a Gram matrix has that form.

    Examples
    --------
    >>> [part.tolist() for part in green_factors(np.tri(3).T @ np.tri(3))]
    [[1.0, 1.0, 1.0], [3.0, 2.0, 1.0]]
    """
    if not (gram[0] > 0).all():
        return None
    v = gram[0]
    u = np.diagonal(gram) / v
    places = np.arange(len(gram))
    return (u, v) if (u > 0).all() and _is_chain(gram, places, u, v) else None


def chain_order(gram: Array) -> NDArray[np.intp] | None:
    """Return the order of cells in which a Gram matrix is u_j v_k for j <= k, or None for the given order.

    None, too, where there is none. The cosine of two cells falls with the way between them: the cell
    furthest from any other is an end, and the cosines with it are the order.

    Examples
    --------
    >>> shuffled = np.array([2, 0, 3, 1])
    >>> order = chain_order((np.tri(4).T @ np.tri(4))[np.ix_(shuffled, shuffled)])
    >>> shuffled[order].tolist() in ([0, 1, 2, 3], [3, 2, 1, 0])
    True
    >>> chain_order(np.tri(4).T @ np.tri(4)) is None
    True
    """
    diagonal = np.diagonal(gram)
    if not ((diagonal > 0).all() and (gram[0] > 0).all()):
        return None
    end = int(np.argmin(gram[0] ** 2 / diagonal))
    order = np.argsort(-(gram[end] ** 2) / diagonal, kind="stable")
    if not (gram[end] > 0).all() or (np.abs(np.diff(order)) == 1).all():
        return None
    v = gram[order[0], order]
    return order if _is_chain(gram, order, diagonal[order] / v, v) else None


def _is_chain(gram: Array, order: NDArray[np.intp], u: Array, v: Array) -> bool:
    """Return whether the upper triangle of a Gram matrix, its cells in an order, is u v'."""
    tolerance = LIMITS.closed_form * float(np.diagonal(gram).max())
    return all(
        float(np.abs(gram[cell, order[j:]] - u[j] * v[j:]).max()) <= tolerance for j, cell in enumerate(order)
    )


def distinct_cells(gram: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return one cell of each set that no query tells apart, in order, and where each cell's stands.

    Examples
    --------
    >>> pairs = np.kron(np.eye(2), np.ones((1, 2)))
    >>> [found.tolist() for found in distinct_cells(pairs.T @ pairs)]
    [[0, 2], [0, 0, 1, 1]]
    """
    # of every row a number: only rows with equal numbers can be equal, and most differ
    cells, peak = np.arange(len(gram)), np.abs(gram).max()
    numbers = gram @ np.cos(cells**2.0) / peak
    sort = np.argsort(numbers)
    begins = np.concatenate([[True], np.diff(numbers[sort]) > LIMITS.alike])
    if begins.all():
        return cells, cells
    inverse = np.empty_like(cells)
    inverse[sort] = np.cumsum(begins) - 1
    first = np.minimum.reduceat(sort, np.flatnonzero(begins))
    others = np.delete(cells, first)
    if np.abs(gram[others] - gram[first[inverse[others]]]).max() > LIMITS.rounding * peak:
        scaled = np.round(gram / peak, 13) + 0.0
        _, first, inverse = np.unique(scaled, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.ravel()]
