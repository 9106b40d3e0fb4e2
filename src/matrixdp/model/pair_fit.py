"""Fit tables of one and two attributes to measured parts: each the likeliest with sums that all share.

First the table of each attribute, from all that says something of it alone; then the tables of attributes
that impossible combinations link, and of each pair of which something was measured, with the sums of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.errors import SpecificationError, TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.linear import Array, outer
from matrixdp.model.constraints import Constraints, factors_for, nothing_possible
from matrixdp.model.likelihood import Axis, Evidence, Likelihood
from matrixdp.model.tables import AGREE, LocalTables, check_few

Names = tuple[str, ...]

#: Steps of the alternating directions, and the change, in standard errors, at which they end.
_STEPS, _ENDS = 1500, 1e-3
#: Over-relaxation, within the usual 1.5 to 1.8.
_RELAXED = 1.6
#: Sweeps of proportional fitting, and the error of sums, relative to the total, at which they end.
_SWEEPS, _FITTED = 5000, 1e-10
#: Sweeps before what is left is spread.
_FEW_SWEEPS = 20
#: What is added of a table that has the right sums, so that no sum is out of reach; more where that is too
#: little.
_LEAST_SHARE = 1e-6
_LARGER_SHARES = (0.01, 0.1, 0.5)
#: The most cells of the table of attributes that impossible combinations link, and sweeps of its fit.
MAX_LINKED, _LINKED_SWEEPS = 5_000_000, 2000
#: How far, relative to the total, published sums may be missed.
_KEPT = 1e-6


def fit_local(evidence: Evidence) -> LocalTables:
    """Fit tables of one and two attributes to what was measured; it sees no data and costs no budget.

    Each is the non-negative table of the least loss, half the squared residuals over the noise's variance:
    the likeliest one for Gaussian noise.

    Parameters
    ----------
    evidence : Evidence
        What was measured, and what is publicly known, which the tables keep.

    Returns
    -------
    LocalTables

    Raises
    ------
    UnsupportedQueryError
        If more than two attributes were measured, or more than one published, together.
    SpecificationError
        If what is publicly known contradicts itself.
    TooLargeError
        If impossible combinations link attributes whose table has more than `MAX_LINKED` cells.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "smokes": 2}), mdp.marginals([1, 2]))
    >>> measured = mdp.select(workload).measure({"sex": [0] * 9, "smokes": [1] * 9}, mdp.Budget(mu=1))
    >>> tables = fit_local(Evidence.of(measured.measurement))
    >>> tables.marginal(["sex", "smokes"]).min() >= 0
    np.True_
    """
    known = evidence.constraints
    for published in known.tables:
        rule = "keeps published tables of one attribute, and {} were published together"
        check_few(published.free, rule, "use method='mixture'", most=1)
    found: dict[Names, list[Likelihood]] = {}
    for part in evidence.parts:
        names = evidence.domain.sort(part.free)
        rule = "serves what is measured of one and two attributes, and {} were measured together"
        check_few(names, rule, "use method='mixture'")
        found.setdefault(names, []).append(part)
    tables = {(name,): _single(evidence, name, found) for name in evidence.starts}
    linked = linked_tables({name: own for (name,), own in tables.items()}, known)
    tables |= {names: own for names, own in linked.items() if len(names) == 1}
    pairs: dict[Names, Array] = {}
    for names in combinations(evidence.starts, 2):
        sums = {axis: tables[(name,)] for axis, name in enumerate(names)}
        if names in found:
            pairs[names] = _pair(names, sums, found[names], linked.get(names))
        elif names in linked:
            pairs[names] = balanced(linked[names], sums)
    return LocalTables(evidence.domain, evidence.total, tables | pairs)


def _single(evidence: Evidence, name: str, found: Mapping[Names, Sequence[Likelihood]]) -> Array:
    """Return the table of one attribute, from what was measured of it and of pairs that it is in."""
    size, total = evidence.domain[name].size, evidence.total
    published = [table for table in evidence.constraints.tables if table.free == (name,)]
    rows = np.vstack([np.ones(size), *(table.rows for table in published)])
    counts = np.concatenate([[total], *(table.counts for table in published)])
    even = np.full(size, total / size)
    start = even * factors_for(even, rows, counts) if published else even
    parts = [part for names, own in found.items() if len(names) == 2 and name in names for part in own]
    summed = [part.summed_to(name) for part in parts if part.separable]
    seen = [*found.get((name,), ()), *(part for part in summed if part is not None)]
    estimate = evidence.estimates[name]
    if not seen and estimate is not None:  # pairs measured by rows that do not factor say it together
        seen = [Likelihood((name,), (name,), None, (Axis(IdentityMatrix(size)),), 1.0, estimate, size)]
    if not seen or size == 1:
        return start
    held = nearest(start, _gradient((name,), seen), _directions((name,), seen, rows))
    if not published:
        return np.asarray(held * (total / held.sum()))
    near = held + _LEAST_SHARE * start  # so that no count is out of reach
    return np.asarray(near * factors_for(near, rows, counts))


def _pair(names: Names, sums: Mapping[int, Array], seen: Sequence[Likelihood], linked: Array | None) -> Array:
    """Return the table of two attributes with given sums, and zeros where one that is given has them."""
    rows, columns = sums.values()
    start = np.multiply.outer(rows, columns) / rows.sum() if linked is None else linked
    allowed = None if linked is None else linked > 0
    held = nearest(start, _gradient(names, seen), _directions(names, seen), allowed)
    if linked is None:
        return rounded(balanced(held, sums, _FEW_SWEEPS), rows, columns)
    # where impossible combinations leave hardly any table with these sums, balancing one that is zero in
    # further cells does not end: then as much of the linked one, which has the sums, is taken as makes it end
    for share in (_LEAST_SHARE, *_LARGER_SHARES):
        table = balanced(held + share * linked, sums)
        off = max(float(abs(table.sum(axis=1 - axis) - own).max()) for axis, own in sums.items())
        if off <= AGREE * rows.sum():
            return table
    return linked


def _gradient(names: Names, seen: Sequence[Likelihood]) -> Callable[[Array], Array]:
    """Return the gradient, as a function, of the loss of a table of attributes against several parts."""
    orders = [[names.index(name) for name in one.free] for one in seen]

    def gradient(table: Array) -> Array:
        total = np.zeros_like(table)
        for one, order in zip(seen, orders, strict=True):
            turned = table.transpose(order)
            total += one.gradient(turned.ravel()).reshape(turned.shape).transpose(np.argsort(order))
        return total

    return gradient


# The likeliest table with given sums that is nowhere negative.


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
        for basis in self.bases or ():
            coordinates = np.tensordot(coordinates, basis, axes=(0, 1))
        return np.asarray(coordinates)


def _directions(names: Names, seen: Sequence[Likelihood], sums: Array | None = None) -> Directions:
    """Return the changes of a table that keep the sums of its axes, or those that are given of its one."""
    alike = [one.alike for one in seen]
    plain = sums is None or len(sums) == 1
    if plain and None not in alike:
        return Directions(None, math.fsum(own or 0.0 for own in alike))
    if plain and len(seen) == 1 and seen[0].separable:
        modes = [seen[0].axes[seen[0].free.index(name)].modes for name in names]
        curvature = seen[0].scale * outer(own for _, own in modes)
        return Directions(tuple(basis for basis, _ in modes), curvature)
    if sums is None:
        return Directions(None, math.fsum(one.steepest for one in seen), exact=False)
    lengths, gradient = np.linalg.norm(sums, axis=1, keepdims=True), _gradient(names, seen)
    basis = scipy.linalg.null_space(sums / lengths, rcond=1e-9)
    none = gradient(np.zeros(len(basis)))
    curved = np.array([gradient(change) - none for change in basis.T]).reshape(-1, len(basis))
    curvature, turned = np.linalg.eigh(curved @ basis)
    return Directions((basis @ turned,), np.maximum(curvature, 0.0))


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
    place, dual = np.zeros_like(pull), np.zeros_like(start)
    held = _inside(start, allowed)
    for step in range(_STEPS):
        if step and not directions.exact:
            pull = curvature * place - directions.coordinates(gradient(start + directions.change(place)))
        wanted = directions.coordinates(held - dual - start)
        place = (pull + rate * wanted) / (curvature + rate)
        table, before = start + directions.change(place), held
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


def balanced(table: Array, sums: Mapping[int, Array], sweeps: int = _SWEEPS) -> Array:
    """Return a table scaled to given sums along each axis, by iterative proportional fitting.

    Where it ends before the last sweep the sums are those given, to 1e-10 of the total. If the zeros of the
    table allow no such sums, those of the last axis alone are.

    Parameters
    ----------
    table : ndarray
    sums : mapping of int to ndarray
        By the axis; they are met in this order.
    sweeps : int
        At most.

    Examples
    --------
    >>> sums = {0: np.array([3.0, 1.0]), 1: np.array([2.0, 2.0])}
    >>> balanced(np.array([[1.0, 1.0], [0.0, 1.0]]), sums).sum(axis=1)
    array([3., 1.])
    """
    near = _FITTED * float(next(iter(sums.values())).sum())
    for _ in range(sweeps):
        off = 0.0
        for axis, wanted in sums.items():
            found = table.sum(axis=tuple(other for other in range(table.ndim) if other != axis))
            off = max(off, float(abs(found - wanted).max()))
            table = table * _ratios(wanted, found).reshape(
                [-1 if n == axis else 1 for n in range(table.ndim)]
            )
        if off <= near:
            break
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


# Attributes that impossible combinations link.


def linked_tables(singles: Mapping[str, Array], known: Constraints) -> dict[Names, Array]:
    """Return tables of attributes and of pairs that agree, with nobody in an impossible combination.

    For each set of attributes that impossible combinations link: the table of them all that has the given
    sums and is, but for its zeros, that of independent attributes. Where the given sums need impossible
    combinations, it has others, near them.

    Parameters
    ----------
    singles : mapping of str to ndarray
        The table of each attribute.
    known : Constraints

    Returns
    -------
    dict
        The tables of linked attributes, and of each pair of them; positive where the rules allow records.

    Raises
    ------
    TooLargeError
        If the table of linked attributes has more than `MAX_LINKED` cells.
    SpecificationError
        If every combination is impossible, or published counts need impossible combinations.
    """
    found: dict[Names, Array] = {}
    published = {own.free for own in known.tables}
    for names in known.linked():
        cells = known.domain.cells(names)
        if cells > MAX_LINKED:
            linked = f"combinations that link {', '.join(names)}, whose table has {cells} cells"
            expected = f"at most {MAX_LINKED} for method 'local'; method='mixture' needs no such table"
            raise TooLargeError.at(("structural_zeros",), linked, expected)
        allowed = known.allowed(names)
        if not allowed.any():
            raise nothing_possible()
        # the last sums are met in any case: those that are published
        order = sorted(range(len(names)), key=lambda axis: (names[axis],) in published)
        total = math.fsum(singles[names[order[0]]])
        # a value whose sum is 0 has a little, so that what is possible stays positive
        sums = {axis: singles[names[axis]] + total * 1e-12 for axis in order}
        sums = {axis: own * (total / own.sum()) for axis, own in sums.items()}
        table = balanced(allowed / allowed.sum() * total, sums, _LINKED_SWEEPS)
        table = table * (total / table.sum())
        for count in (1, 2):
            for kept in combinations(names, count):
                others = tuple(axis for axis, name in enumerate(names) if name not in kept)
                found[kept] = np.asarray(table.sum(axis=others))
    for own in known.tables:
        if own.free in found:
            off = own.rows @ found[own.free] - own.counts
            if float(abs(off).max()) > _KEPT * float(found[own.free].sum()):
                expected = "counts that need no combination that is impossible"
                counted = f"counts of {own.free[0]}"
                raise SpecificationError.at(("invariants",), counted, expected, code="conflict")
    return found
