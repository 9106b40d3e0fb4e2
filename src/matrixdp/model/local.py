"""Tables of one and two attributes, each fitted by itself to sums that all share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, UnsupportedQueryError
from matrixdp.measure.measurement import Measurement
from matrixdp.model.constraints import Constraints, PublishedRows
from matrixdp.model.derived import cells_of, free_attributes, sources, sum_cells
from matrixdp.model.linked import linked_tables
from matrixdp.model.measured import (
    Axis,
    KroneckerEvidence,
    PartEvidence,
    estimated_marginal,
    estimated_total,
    evidence_of,
)
from matrixdp.model.published import factors_for
from matrixdp.model.transport import Directions, balanced, centered_basis, nearest, rounded
from matrixdp.queries import Group
from matrixdp.queries.groups import DenseGroup, ProductGroup
from matrixdp.queries.predicates import Total

__all__ = ["LocalTables", "check_answered", "check_local", "fit_local"]

Array = NDArray[np.float64]

#: Sweeps of proportional fitting before what is left is spread.
_SWEEPS = 20
#: How far, relative to the total, the sums of tables may be from one another.
_AGREE = 1e-6
#: What is added of a table that has the right sums, so that no sum is out of reach.
_LEAST_SHARE = 1e-6
#: What is added where that is too little.
_LARGER_SHARES = (0.01, 0.1, 0.5)


@final
@dataclass(frozen=True, eq=False)
class LocalTables:
    """Non-negative tables of one and two attributes that agree in every sum they share.

    There need be no table of all attributes that has them all as its marginals.

    Parameters
    ----------
    domain : Domain
    total : float
        The number of records, above 0.
    tables : mapping of tuple of str to ndarray
        For each attribute that does not follow from others its table, and those of pairs, in domain order.

    Raises
    ------
    NumericalError
        If tables are negative, do not fit the domain, or disagree.

    Examples
    --------
    >>> domain = Domain({"sex": ["female", "male"], "smokes": ["no", "yes"]})
    >>> shares = {("sex",): np.array([60.0, 40.0]), ("smokes",): np.array([75.0, 25.0])}
    >>> LocalTables(domain, 100.0, shares).marginal(["sex", "smokes"])
    array([[45., 15.],
           [30., 10.]])
    """

    domain: Domain
    total: float
    tables: Mapping[tuple[str, ...], Array]

    def __post_init__(self) -> None:
        tables = {tuple(names): np.array(own, dtype=np.float64) for names, own in self.tables.items()}
        object.__setattr__(self, "tables", tables)
        object.__setattr__(self, "total", float(self.total))
        if not (math.isfinite(self.total) and self.total > 0):
            raise NumericalError(
                f"local tables: found a total of {self.total}; expected a number above 0", "out-of-range"
            )
        free = free_attributes(self.domain)
        singles = [names[0] for names in tables if len(names) == 1]
        pairs = [names for names in tables if len(names) != 1]
        if sorted(singles) != sorted(free) or any(names not in set(combinations(free, 2)) for names in pairs):
            raise NumericalError(
                "local tables: expected one of each attribute, and of pairs of them", "unknown-name"
            )
        for names, own in tables.items():
            if own.shape != tuple(self.domain[name].size for name in names) or not (own >= 0).all():
                raise NumericalError(
                    f"local tables: {', '.join(names)}: numbers below 0, or of another shape", "out-of-range"
                )
            for axis, name in enumerate(names):
                sums = own.sum(axis=1 - axis) if len(names) == 2 else own.sum()
                shared = tables[(name,)] if len(names) == 2 else self.total
                if not float(np.max(np.abs(sums - shared))) <= _AGREE * self.total:
                    raise NumericalError(
                        f"local tables: {', '.join(names)}: other sums than the others have", "conflict"
                    )
            own.setflags(write=False)

    def marginal(self, names: Sequence[str]) -> Array:
        """Return a marginal of at most two attributes (or of the attributes that these follow from).

        Parameters
        ----------
        names : sequence of str
            The attributes, in any order.

        Returns
        -------
        ndarray
            Numbers of records, of the shape of the attributes' sizes, in their order. A pair of which nothing
            was measured is taken for independent.

        Raises
        ------
        UnsupportedQueryError
            If it needs the table of more than two attributes.
        """
        free, cells = cells_of(self.domain, names)
        table = self._table(free)
        if cells is None:
            return table
        sizes = tuple(self.domain[name].size for name in names)
        return sum_cells(table, cells, sizes)

    def _table(self, names: tuple[str, ...]) -> Array:
        _check_few(names)
        if not names:
            return np.array(self.total)
        if len(names) == 1:
            return self.tables[names]
        if names in self.tables:
            return self.tables[names]
        if names[::-1] in self.tables:
            return self.tables[names[::-1]].T
        return np.multiply.outer(self.tables[names[:1]], self.tables[names[1:]]) / self.total

    def answers(self, group: Group) -> Array:
        """Return the answers to a group's queries, flat, row-major.

        Raises
        ------
        UnsupportedQueryError
            If they need the table of more than two attributes.

        Examples
        --------
        >>> from matrixdp.queries.predicates import Prefix
        >>> tables = LocalTables(Domain({"age": 3}), 10.0, {("age",): np.array([2.0, 3.0, 5.0])})
        >>> tables.answers(ProductGroup("CDF", ("age",), (Prefix(),), (3,)))
        array([ 2.,  5., 10.])
        """
        if isinstance(group, DenseGroup):
            return group.answers(self.marginal(group.attributes))
        asked = _asked(group)
        tensor = self.marginal(asked)
        for axis, name in enumerate(asked):
            moved = np.moveaxis(tensor, axis, 0)
            out = group.sets[name].apply(np.ascontiguousarray(moved).reshape(moved.shape[0], -1))
            tensor = np.moveaxis(out.reshape(out.shape[0], *moved.shape[1:]), 0, axis)
        return np.asarray(tensor.ravel())


def _asked(group: Group) -> Sequence[str]:
    if not isinstance(group, ProductGroup):
        return group.attributes
    return [name for name, own in group.sets.items() if not isinstance(own, Total)]


def _check_few(names: Sequence[str]) -> None:
    if len(names) > 2:
        raise UnsupportedQueryError(
            f"method 'local' has tables of at most two attributes, and this needs {', '.join(names)} "
            "together: ask for at most two, or make the model with method='mixture'",
            "not-supported",
        )


def check_answered(domain: Domain, group: Group) -> None:
    """Check that a group's queries need no table of more than two attributes.

    Raises
    ------
    UnsupportedQueryError
        If they do; it names the attributes.
    """
    _check_few(domain.sort({source for name in _asked(group) for source in sources(domain, name)}))


def check_local(measurement: Measurement, constraints: Constraints | None = None) -> None:
    """Check that nothing was measured of more than two attributes together, nor published of two.

    Raises
    ------
    UnsupportedQueryError
        If something was; it names the attributes.
    """
    for table in () if constraints is None else constraints.tables:
        if len(table.free) > 1:
            raise UnsupportedQueryError(
                f"method 'local' keeps published tables of one attribute, and {', '.join(table.free)} were "
                "published together: use method='mixture'",
                "not-supported",
            )
    domain = measurement.plan.domain
    for part in measurement.plan.parts:
        free, _ = cells_of(domain, part.attributes)
        if len(free) > 2:
            raise UnsupportedQueryError(
                f"method 'local' serves what is measured of one and two attributes, and {', '.join(free)} "
                "were measured together: use method='mixture'",
                "not-supported",
            )


def fit_local(measurement: Measurement, constraints: Constraints | None = None) -> LocalTables:
    """Fit tables of one and two attributes to a measurement; it sees no data and costs no budget.

    First the table of each attribute, from all that says something of it alone; then the table of each pair
    of which something was measured, with the sums of these. Each is the non-negative table of the least
    loss, half the squared residuals over the noise's variance: the likeliest one for Gaussian noise.

    Parameters
    ----------
    measurement : Measurement
    constraints : Constraints, optional
        What is publicly known, which the tables keep.

    Returns
    -------
    LocalTables

    Raises
    ------
    UnsupportedQueryError
        If more than two attributes were measured or published together, or the number of records does not
        follow from what was.
    SpecificationError
        If what is publicly known contradicts itself.
    TooLargeError
        If impossible combinations link attributes whose table has more than `MAX_LINKED` cells.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "smokes": 2}), mdp.marginals([1, 2]))
    >>> measured = mdp.select(workload).measure({"sex": [0] * 9, "smokes": [1] * 9}, mdp.Budget(mu=1))
    >>> tables = fit_local(measured.measurement)
    >>> tables.marginal(["sex", "smokes"]).min() >= 0
    np.True_
    """
    domain = measurement.plan.domain
    known = Constraints(domain) if constraints is None else constraints
    check_local(measurement, known)
    found: dict[tuple[str, ...], list[PartEvidence]] = {}
    for part, scale, values in zip(
        measurement.plan.parts, measurement.scales, measurement.values, strict=True
    ):
        evidence = evidence_of(part, scale.variance, values, domain)
        found.setdefault(evidence.free, []).append(evidence)
    total = estimated_total(measurement) if known.total is None else known.total
    tables: dict[tuple[str, ...], Array] = {}
    for name in free_attributes(domain):
        published = [table for table in known.tables if table.free == (name,)]
        tables[(name,)] = _single(name, measurement, total, found, published)
    linked = linked_tables({names[0]: own for names, own in tables.items()}, known)
    tables |= {names: own for names, own in linked.items() if len(names) == 1}
    bases: dict[tuple[str, int], tuple[Array, Array]] = {}
    for names in combinations(free_attributes(domain), 2):
        rows, columns = (tables[(name,)] for name in names)
        if names in found:
            tables[names] = _pair(names, rows, columns, found[names], bases, linked.get(names))
        elif names in linked:
            tables[names] = balanced(linked[names], rows, columns)
    return LocalTables(domain, total, tables)


def _single(
    name: str,
    measurement: Measurement,
    total: float,
    found: Mapping[tuple[str, ...], Sequence[PartEvidence]],
    published: Sequence[PublishedRows],
) -> Array:
    """Return the table of one attribute, from what was measured of it and of pairs that it is in."""
    size = measurement.plan.domain[name].size
    rows = np.vstack([np.ones(size), *(table.rows for table in published)])
    counts = np.concatenate([[total], *(table.counts for table in published)])
    even = np.full(size, total / size)
    start = even * factors_for(even, rows, counts) if published else even
    seen: list[PartEvidence] = list(found.get((name,), ()))
    for names, own in found.items():
        if len(names) == 2 and name in names:
            summed = [one.summed_to(name) for one in own if isinstance(one, KroneckerEvidence)]
            seen += [one for one in summed if one is not None]
    estimate = None if seen else estimated_marginal(measurement, name)
    if estimate is not None:  # pairs measured by rows that do not factor say it together
        seen.append(KroneckerEvidence((name,), (Axis(size),), estimate, 1.0))
    if not seen or size == 1:
        return start
    directions = _single_directions(size, seen, rows[1:])
    held = nearest(start, lambda table: sum_gradients(seen, table), directions)
    if not published:
        return np.asarray(held * (total / held.sum()))
    near = held + _LEAST_SHARE * start  # so that no count is out of reach
    return np.asarray(near * factors_for(near, rows, counts))


def _single_directions(size: int, seen: Sequence[PartEvidence], sums: Array) -> Directions:
    alike = [
        one.precision * one.axes[0].alike
        for one in seen
        if isinstance(one, KroneckerEvidence) and one.axes[0].gram is None
    ]
    if len(alike) == len(seen) and not len(sums):
        return Directions(None, math.fsum(alike))
    none = sum_gradients(seen, np.zeros(size))
    curved = np.stack([sum_gradients(seen, unit) - none for unit in np.eye(size)], axis=1)
    basis = centered_basis(size, sums)
    curvature, turned = np.linalg.eigh(basis.T @ curved @ basis)
    return Directions((basis @ turned,), np.maximum(curvature, 0.0))


def sum_gradients(seen: Sequence[PartEvidence], table: Array) -> Array:
    """Return the gradient of the loss of a table against several parts."""
    total = np.zeros_like(table)
    for one in seen:
        total += one.gradient(table)
    return total


def _pair(
    names: tuple[str, ...],
    rows: Array,
    columns: Array,
    seen: Sequence[PartEvidence],
    bases: dict[tuple[str, int], tuple[Array, Array]],
    linked: Array | None,
) -> Array:
    """Return the table of two attributes with given sums, and zeros where one that is given has them."""
    start = np.multiply.outer(rows, columns) / rows.sum() if linked is None else linked
    directions = _pair_directions(names, seen, bases)
    allowed = None if linked is None else linked > 0
    held = nearest(start, lambda table: sum_gradients(seen, table), directions, allowed)
    if linked is not None:
        return _agreeing(held, linked, rows, columns)
    return rounded(balanced(held, rows, columns, _SWEEPS), rows, columns)


def _agreeing(held: Array, linked: Array, rows: Array, columns: Array) -> Array:
    """Return a table near ``held`` with given sums and the zeros of ``linked``, which has both.

    Where impossible combinations leave hardly any table with these sums, balancing one that is zero in
    further cells does not end: then as much of ``linked`` is taken as makes it end.
    """
    for share in (_LEAST_SHARE, *_LARGER_SHARES):
        table = balanced(held + share * linked, rows, columns)
        if float(np.max(np.abs(table.sum(axis=0) - columns))) > _AGREE * columns.sum():
            continue
        if float(np.max(np.abs(table.sum(axis=1) - rows))) <= _AGREE * columns.sum():
            return table
    return linked


def _pair_directions(
    names: tuple[str, ...],
    seen: Sequence[PartEvidence],
    bases: dict[tuple[str, int], tuple[Array, Array]],
) -> Directions:
    one = seen[0]
    if len(seen) > 1 or not isinstance(one, KroneckerEvidence):
        return Directions(None, math.fsum(own.most_curved() for own in seen), exact=False)
    if all(axis.gram is None for axis in one.axes):
        return Directions(None, one.precision * math.prod(axis.alike for axis in one.axes))
    turned = [_turned(name, axis, bases) for name, axis in zip(names, one.axes, strict=True)]
    curvature = one.precision * np.multiply.outer(*(own for _, own in turned))
    return Directions(tuple(basis for basis, _ in turned), curvature)


def _turned(name: str, axis: Axis, known: dict[tuple[str, int], tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the principal directions of sum 0 of B'B along an attribute, and how curved each is."""
    content = axis.alike if axis.gram is None else axis.gram.tobytes()
    key = (name, hash(content))
    if key not in known:
        basis = centered_basis(axis.size)
        values, turned = np.linalg.eigh(basis.T @ axis.dense() @ basis)
        known[key] = (basis @ turned, np.maximum(values, 0.0))
    return known[key]
