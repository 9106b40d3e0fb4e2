"""Tables of one or two attributes: the likeliest with given sums that are nowhere negative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

__all__ = ["Directions", "balanced", "centered_basis", "nearest", "rounded"]

Array = NDArray[np.float64]

#: Steps of the alternating directions, and the change, in standard errors, at which they end.
_STEPS, _ENDS = 1500, 1e-3
#: Over-relaxation, within the usual 1.5 to 1.8.
_RELAXED = 1.6
#: Sweeps of proportional fitting, and the relative error of sums at which they end.
_SWEEPS, _FITTED = 5000, 1e-10


@final
@dataclass(frozen=True, eq=False)
class Directions:
    """The changes of a table that keep its sums, in coordinates in which the loss is a sum of squares.

    Parameters
    ----------
    bases : tuple of ndarray, or None
        For each axis orthonormal columns; None for all changes without row and column sums, of a loss that
        is alike in all of them.
    curvature : ndarray or float
        The second derivative of the loss along each coordinate, or a bound on it where not ``exact``.
    exact : bool
        Whether the loss is the sum of squares with this curvature.
    """

    bases: tuple[Array, ...] | None
    curvature: Array | float
    exact: bool = True

    def coordinates(self, table: Array) -> Array:
        """Return the coordinates of the orthogonal projection of a change."""
        if self.bases is None:
            for axis in range(table.ndim):
                table = table - table.mean(axis=axis, keepdims=True)
            return table
        for basis in self.bases:  # each contracts the first axis and puts its own last
            table = np.tensordot(table, basis, axes=(0, 0))
        return np.asarray(table)

    def change(self, coordinates: Array) -> Array:
        """Return the change that has given coordinates."""
        if self.bases is not None:
            for basis in self.bases:
                coordinates = np.tensordot(coordinates, basis, axes=(0, 1))
        return np.asarray(coordinates)


def centered_basis(size: int, sums: Array | None = None) -> Array:
    """Return orthonormal columns that span the vectors of sum 0, on which given further sums are 0 too.

    Examples
    --------
    >>> basis = centered_basis(3)
    >>> basis.shape, bool(abs(basis.sum(axis=0)).max() < 1e-12)
    ((3, 2), True)
    """
    rows = np.ones((1, size)) if sums is None else np.vstack([np.ones((1, size)), sums])
    _, values, right = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    rank = int((values > 1e-9).sum())
    return np.asarray(right[rank:].T)


def nearest(
    start: Array,
    gradient: Callable[[Array], Array],
    directions: Directions,
    allowed: NDArray[np.bool_] | None = None,
) -> Array:
    """Return the non-negative table with the sums of ``start`` that makes a quadratic loss least, nearly.

    By the alternating direction method of multipliers: its two copies of the table, one with the sums of
    ``start`` and one that is non-negative, end within a small share of a standard error of each other; what
    is returned is the non-negative one.

    Parameters
    ----------
    start : ndarray
        A table with the sums that are kept.
    gradient : callable
        From a table to the gradient of the loss there.
    directions : Directions
        The changes that keep the sums.
    allowed : ndarray of bool, optional
        The cells that may hold records.

    References
    ----------
    S. Boyd and others, Distributed optimization and statistical learning via the alternating direction method
    of multipliers, 2011, sections 3.3, 3.4.1, 3.4.3 and 5.2.

    Examples
    --------
    >>> estimate = np.array([5.0, -2.0, 7.0])
    >>> white = Directions(None, 1.0)
    >>> np.round(nearest(np.full(3, 10 / 3), lambda table: table - estimate, white), 2)
    array([4., 0., 6.])
    """
    curvature = np.asarray(directions.curvature, dtype=np.float64)
    # directions of which nothing was measured have none, and no say in the scale
    positive = curvature[curvature > 1e-9 * curvature.max(initial=0.0)]
    if positive.size == 0:
        return start
    scale = float(np.median(positive))
    # in standard errors of what is known best: sums of many cells may be
    limit, rate = _ENDS / np.sqrt(float(curvature.max())), scale
    pull = -directions.coordinates(gradient(start))
    place = np.zeros_like(pull)
    held = _inside(start, allowed)
    dual = np.zeros_like(start)
    for step in range(_STEPS):
        if step and not directions.exact:
            pull = curvature * place - directions.coordinates(gradient(start + directions.change(place)))
        wanted = directions.coordinates(held - dual - start)
        place = (pull + rate * wanted) / (curvature + rate)
        table = start + directions.change(place)
        before = held
        relaxed = _RELAXED * table + (1 - _RELAXED) * before
        held = _inside(relaxed + dual, allowed)
        dual = dual + relaxed - held
        apart = float(np.sqrt(np.mean((table - held) ** 2)))
        moved = float(np.sqrt(np.mean((held - before) ** 2))) * rate / scale
        if max(apart, moved) < limit:
            break
        if step % 10 == 9 and not 0.2 < apart / max(moved, 1e-300) < 5:
            factor = 2.0 if apart > moved else 0.5
            rate, dual = rate * factor, dual / factor
    return held


def _inside(table: Array, allowed: NDArray[np.bool_] | None) -> Array:
    positive = np.maximum(table, 0.0)
    return positive if allowed is None else np.where(allowed, positive, 0.0)


def balanced(table: Array, rows: Array, columns: Array, sweeps: int = _SWEEPS) -> Array:
    """Return a table scaled to given row and column sums, by iterative proportional fitting.

    Where it ends before the last sweep the sums are those given, to 1e-10 of the total. If the zeros of the
    table allow no such sums, the column sums alone are.

    Examples
    --------
    >>> balanced(np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([3.0, 1.0]), np.array([2.0, 2.0])).sum(axis=1)
    array([3., 1.])
    """
    total = float(rows.sum())
    for _ in range(sweeps):
        table = table * _ratios(rows, table.sum(axis=1))[:, None]
        if float(abs(table.sum(axis=0) - columns).max()) <= _FITTED * total:
            break
        table = table * _ratios(columns, table.sum(axis=0))
    return table


def _ratios(wanted: Array, found: Array) -> Array:
    return np.divide(wanted, found, out=np.zeros_like(wanted), where=found > 0)


def rounded(table: Array, rows: Array, columns: Array) -> Array:
    """Return a non-negative table near another with row and column sums that are exact to rounding.

    References
    ----------
    J. Altschuler, J. Weed and P. Rigollet, Near-linear time approximation algorithms for optimal transport
    via Sinkhorn iteration, NeurIPS 2017, algorithm 2.

    Examples
    --------
    >>> rounded(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([3.0, 1.0]), np.array([2.0, 2.0]))
    array([[1.66666667, 1.33333333],
           [0.33333333, 0.66666667]])
    """
    table = table * np.minimum(_ratios(rows, table.sum(axis=1)), 1.0)[:, None]
    table = table * np.minimum(_ratios(columns, table.sum(axis=0)), 1.0)
    lacking, short = rows - table.sum(axis=1), columns - table.sum(axis=0)
    missing = float(lacking.sum())
    if missing <= 0:
        return np.asarray(table)
    return np.asarray(table + np.multiply.outer(np.maximum(lacking, 0), np.maximum(short, 0)) / missing)
