"""Products of few rows with a large Gram matrix, by its structure where it has one.

Where prefixes, ranges and their like are asked, a row's product takes time linear in the cells; where only
near cells share a query, the Gram matrix is a band along its diagonal.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from matrixdp.exact.linear import Array
from matrixdp.selection.problem.entries import green_factors

#: A matrix is a band where this many of its widths fit into it.
_NARROW = 8
#: Entries of rows that are summed at a time: they stay in the cache.
_AT_ONCE = 1 << 15
#: Columns of a band's pieces, at least.
_MIN_PIECE = 128

#: Products with smaller Gram matrices are quick without structure.
_MIN_OPERATOR_CELLS = 256


@dataclass(frozen=True)
class GramOperator:
    """A Gram matrix V as what it does.

    Attributes
    ----------
    diagonal : ndarray, shape (n,)
    image : function
        X of shape (p, n) to X V.
    """

    diagonal: Array
    image: Callable[[Array], Array]


def operator_of(gram: Array) -> GramOperator:
    """Return a Gram matrix as an operator, the quickest that is found.

    Examples
    --------
    >>> gram = np.tri(300).T @ np.tri(300)
    >>> rows = np.ones((2, 300))
    >>> np.allclose(operator_of(gram).image(rows), rows @ gram)
    True
    """
    diagonal = np.diagonal(gram).copy()
    if len(gram) >= _MIN_OPERATOR_CELLS:
        factors = green_factors(gram)
        if factors is not None:
            return GramOperator(diagonal, _chained(*factors))
        width = _half_width(gram)
        if width is not None:
            return GramOperator(diagonal, _banded(gram, width))
    return GramOperator(diagonal, lambda rows: rows @ gram)


def _chained(u: Array, v: Array) -> Callable[[Array], Array]:
    """Return the product with V_jk = u_j v_k for j <= k: sums from either end, without differences."""

    def image(rows: Array) -> Array:
        found = np.empty_like(rows)
        height = max(1, _AT_ONCE // len(u))
        for top in range(0, len(rows), height):
            some = rows[top : top + height]
            below = found[top : top + height]
            np.cumsum(some * u, axis=1, out=below)
            below *= v
            beyond = np.cumsum((some[:, :0:-1] * v[:0:-1]), axis=1)[:, ::-1]
            below[:, :-1] += beyond * u[:-1]
        return found

    return image


def _half_width(gram: Array) -> int | None:
    """Return how far from the diagonal there are entries, or None where it is far."""
    width = 0
    for j in range(len(gram)):
        width = max(width, int(np.flatnonzero(gram[j])[-1:].sum()) - j)
        if width * _NARROW > len(gram):
            return None
    return width


def _banded(gram: Array, width: int) -> Callable[[Array], Array]:
    size, step = len(gram), max(_MIN_PIECE, width)
    pieces = []
    for first in range(0, size, step):
        own, near = slice(first, first + step), slice(max(0, first - width), first + step + width)
        pieces.append((own, near, np.ascontiguousarray(gram[near, own])))

    def image(rows: Array) -> Array:
        found = np.empty_like(rows)
        for own, near, piece in pieces:
            np.matmul(rows[:, near], piece, out=found[:, own])
        return found

    return image
