"""Tables and mixtures that have published counts exactly, as near as may be to those that do not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import SpecificationError, TooLargeError
from matrixdp.model.constraints import PublishedRows
from matrixdp.model.mixture import Mixture

__all__ = ["MAX_COMPONENTS", "factors_for", "with_published"]

Array = NDArray[np.float64]

#: A mixture that has published tables of several attributes has at most so many components.
MAX_COMPONENTS = 200_000
#: Newton's steps for one table, sweeps over all, and how near, relative to the total, counts must come.
_STEPS, _SWEEPS, _NEAR = 200, 500, 1e-9
#: Counts that are as far off as the worst but for this share are tied with it: the first is named.
_TIE = 1e-6


def factors_for(table: Array, rows: Array, counts: Array) -> Array:
    """Return for each cell what it is multiplied by so that queries have given counts.

    The product is the table of the least relative entropy with these counts: exp(rows' m), where m makes the
    convex sum of table * exp(rows' m) less counts'm least; it is found by Newton's method.

    Parameters
    ----------
    table : ndarray, shape (cells,)
    rows : ndarray, shape (queries, cells)
    counts : ndarray, shape (queries,)

    Raises
    ------
    SpecificationError
        If no such table has these counts.

    Examples
    --------
    >>> rows = np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    >>> factors_for(np.array([1.0, 3.0, 4.0]), rows, np.array([8.0, 2.0]))
    array([2. , 2. , 0.5])
    """
    empty = (rows >= 0).all(axis=1) & (counts == 0)
    gone = (rows[empty] > 0).any(axis=0)
    table, rows, counts = np.where(gone, 0.0, table), rows[~empty], counts[~empty]
    near = _NEAR * max(float(counts.max(initial=0.0)), 1.0)
    multipliers, scaled = np.zeros(len(rows)), table
    for _ in range(_STEPS):
        off = rows @ scaled - counts
        if float(abs(off).max(initial=0.0)) <= near:
            return np.where(gone, 0.0, np.exp(rows.T @ multipliers))
        step = np.linalg.lstsq((rows * scaled) @ rows.T, -off, rcond=1e-12)[0]
        held = float(scaled.sum() - counts @ multipliers)
        slope, length = float(off @ step), 1.0
        while True:
            trial = multipliers + length * step
            with np.errstate(over="ignore"):
                made = table * np.exp(rows.T @ trial)
            if float(made.sum() - counts @ trial) <= held + 1e-4 * length * slope + 1e-12 * abs(held):
                break
            length /= 2
            if length < 1e-12:
                break
        multipliers, scaled = trial, made
    raise _contradiction(rows @ scaled, counts)


def _contradiction(found: Array, counts: Array) -> SpecificationError:
    off = abs(found - counts)
    worst = int((off >= (1 - _TIE) * off.max()).argmax())
    what = (
        f"counts that no table has: the nearest has {found[worst]:.6g} where {counts[worst]:g} is published"
    )
    return SpecificationError.at(
        ("invariants",), what, "counts that fit together, and with what is impossible", code="conflict"
    )


def with_published(mixture: Mixture, tables: Sequence[PublishedRows]) -> Mixture:
    """Return the mixture that has published tables exactly, nearest in relative entropy.

    To multiply the cells of one attribute by factors leaves a mixture of products. For tables of several
    attributes each component is divided first, by the values of all of them but the largest.

    Raises
    ------
    SpecificationError
        If the counts contradict one another, or need cells that the mixture does not have.
    TooLargeError
        If more than `MAX_COMPONENTS` components are needed.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> factors = {"sex": np.array([[0.5, 0.5]]), "smokes": np.array([[0.75, 0.25]])}
    >>> even = Mixture(domain, 100.0, np.ones(1), factors)
    >>> published = PublishedRows(("sex",), np.eye(2), np.array([60.0, 40.0]))
    >>> with_published(even, [published]).marginal(["sex", "smokes"])
    array([[45., 15.],
           [30., 10.]])
    """
    tables = [table for table in tables if table.free]
    if not tables:
        return mixture
    made = _divided(mixture, tables)
    for _ in range(_SWEEPS):
        for table in tables:
            made = _multiplied(made, table)
        found = [table.rows @ made.marginal(table.free).ravel() for table in tables]
        off = max(float(abs(own - table.counts).max()) for own, table in zip(found, tables, strict=True))
        if off <= 100 * _NEAR * made.total:
            return made
    worst = max(range(len(tables)), key=lambda place: float(abs(found[place] - tables[place].counts).max()))
    raise _contradiction(found[worst], tables[worst].counts)


def _divided(mixture: Mixture, tables: Sequence[PublishedRows]) -> Mixture:
    """Return the same mixture, with components that each have one value of some attributes."""
    names = {name for table in tables for name in table.free if name != _widest(mixture.domain, table)}
    for name in mixture.domain.sort(names):
        size = mixture.domain[name].size
        if mixture.components * size > MAX_COMPONENTS:
            raise TooLargeError(
                f"invariants: published tables of several attributes need {mixture.components * size} "
                f"components; the limit is {MAX_COMPONENTS}. Publish them of fewer attributes"
            )
        weights = (mixture.weights[:, None] * mixture.factors[name]).ravel()
        factors = {own: np.repeat(held, size, axis=0) for own, held in mixture.factors.items()}
        factors[name] = np.tile(np.eye(size), (mixture.components, 1))
        some = weights > 0
        mixture = Mixture(
            mixture.domain, mixture.total, weights[some], {own: held[some] for own, held in factors.items()}
        )
    return mixture


def _widest(domain: Domain, table: PublishedRows) -> str:
    return max(table.free, key=lambda name: domain[name].size)


def _multiplied(mixture: Mixture, table: PublishedRows) -> Mixture:
    """Return the mixture with the cells of a table's attributes multiplied so that it has its counts."""
    rows = np.vstack([table.rows, np.ones(table.rows.shape[1])])
    counts = np.append(table.counts, mixture.total)
    sizes = [mixture.domain[name].size for name in table.free]
    by = factors_for(mixture.marginal(table.free).ravel(), rows, counts).reshape(sizes)
    widest = _widest(mixture.domain, table)
    axis = table.free.index(widest)
    others = [name for name in table.free if name != widest]
    places = [mixture.factors[name].argmax(axis=1) for name in others]
    per_component = np.moveaxis(by, axis, -1)[tuple(places)] if others else by[None, :]
    raised = mixture.factors[widest] * per_component
    sums = raised.sum(axis=1)
    weights = mixture.weights * sums
    some = weights > 0
    factors = {name: own[some] for name, own in mixture.factors.items()}
    factors[widest] = (raised[some].T / sums[some]).T
    return Mixture(mixture.domain, mixture.total, weights[some] / math.fsum(weights[some]), factors)
