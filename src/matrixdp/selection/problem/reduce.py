"""Values that no query tells apart, merged before anything is asked of a workload; and the way back.

A strategy may measure such values together, whatever the noise: what any other strategy says of one value of
each group costs no more and errs no more (docs/mathematics.md, theorem 1a). So selection sees a workload over
groups of values, with the sizes that its limits are about, and its plan is spread over all values again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, starmap
from typing import TYPE_CHECKING, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import kronecker, numbered
from matrixdp.exact.structured import over_groups
from matrixdp.queries import (
    DenseGroup,
    Group,
    Identity,
    Matrix,
    MatrixRows,
    Predicates,
    Prefix,
    ProductGroup,
    Ranges,
    Rows,
    Total,
    Workload,
)
from matrixdp.queries.groups import Summands
from matrixdp.queries.predicates import Spans, groups_of_all
from matrixdp.queries.structured import Totals
from matrixdp.selection.problem.merge_groups import GivenGroups

if TYPE_CHECKING:
    from matrixdp.plan import Part, Plan

__all__ = ["Reduced", "reduce"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]

#: Entries of written queries, and queries that are intervals, up to which values alike are looked for.
_MOST_ENTRIES, _MOST_INTERVALS = 1 << 24, 1 << 20
#: Attributes of more values are left as they are: nothing could be measured on them.
_MOST_VALUES = 1 << 24
#: Entries of explicit queries.
_MOST_WRITTEN = 1 << 22


@dataclass(frozen=True, eq=False)
class Reduced:
    """A workload over groups of values.

    Attributes
    ----------
    workload : Workload
        What is asked of the groups; the workload itself where every value is told apart.
    domain : Domain
        All values.
    groups : mapping of str to ndarray of int, shape (n,)
        The group of each value, numbered by their first values, for the attributes that have fewer groups.
    """

    workload: Workload
    domain: Domain
    groups: Mapping[str, Places]

    @classmethod
    def none(cls, workload: Workload) -> Self:
        """Return a workload over all values as it is."""
        return cls(workload, workload.domain, {})

    def over_values(self, plan: Plan) -> Plan:
        """Return a plan for the groups as one for all values: its cost and its errors stay what they are."""
        from matrixdp.plan import Joint, Split  # of no use to who asks for the groups alone

        if not self.groups:
            return plan
        known: dict[Hashable, MeasuredMatrix] = {}
        parts = tuple(self._part(part, known) for part in plan.parts)
        if not isinstance(plan, Split | Joint):
            return replace(plan, domain=self.domain, parts=parts)
        weights = dict(plan.weights)
        for name, group in self.groups.items():
            weights[name] = (weights[name] / np.bincount(group))[group]
        return replace(plan, domain=self.domain, parts=parts, weights=weights)

    def _part(self, part: Part, known: dict[Hashable, MeasuredMatrix]) -> Part:
        from matrixdp.plan import Block

        blocks = []
        for block in part.blocks:
            if self.groups.keys().isdisjoint(block.attributes):
                blocks.append(block)
                continue
            key = block.attributes, block.matrix.digest()
            if key not in known:
                own = (self.groups.get(n, np.arange(self.domain[n].size)) for n in block.attributes)
                known[key] = over_groups(block.matrix, list(own))
            blocks.append(Block(block.attributes, known[key]))
        return replace(part, blocks=tuple(blocks))


#: The reductions of workloads, cached while the workloads live.
_FOUND: WeakKeyDictionary[Workload, Reduced] = WeakKeyDictionary()


def reduce(workload: Workload, but: Collection[str] = ()) -> Reduced:
    """Return a workload over groups of the values that no query tells apart.

    Parameters
    ----------
    workload : Workload
    but : collection of str
        Attributes that keep all of their values.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"income": 10_000, "sex": 2})
    >>> asked = mdp.product(income={"ranges": [[0, 99], [100, 299]]}, sex="identity")
    >>> reduce(mdp.Workload(domain, asked)).workload.domain.shape
    (3, 2)
    """
    if workload in _FOUND and not but:
        return _FOUND[workload]
    groups = {name: own for name, own in _groups(workload).items() if name not in but}
    found = Reduced.none(workload)
    if groups:
        domain = workload.domain.over_groups({name: _count(own) for name, own in groups.items()})
        asked = GivenGroups(tuple(_over(group, groups) for group in workload))
        found = Reduced(Workload(domain, asked), workload.domain, groups)
    return found if but else _FOUND.setdefault(workload, found)


# Which values no query tells apart.


def _groups(workload: Workload) -> dict[str, Places]:
    """Return the group of each value of the attributes on which some are not told apart."""
    sets: dict[str, dict[Hashable, tuple[Predicates, int]]] = {}
    written: dict[str, list[tuple[DenseGroup, int]]] = {}
    for group in workload:
        if isinstance(group, DenseGroup) and not group.summands:
            for axis, name in enumerate(group.attributes):
                written.setdefault(name, []).append((group, axis))
            continue
        for one in [group] if isinstance(group, ProductGroup) else [own for _, own in group.summands]:
            for name, predicates, size in zip(one.attributes, one.predicates, one.sizes, strict=True):
                sets.setdefault(name, {})[predicates.key(size)] = predicates, size
    found = {}
    for name in {**sets, **written}:
        own = list(sets.get(name, {}).values())
        if any((p.symmetric(size) or (0.0, 0.0))[0] > 0.0 for p, size in own):
            continue  # each value is asked about
        if workload.domain[name].size > _MOST_VALUES:
            continue
        groups = np.zeros(workload.domain[name].size, dtype=np.int64)
        for told in chain(starmap(_told_by, own), starmap(_told_by_rows, written.get(name, ()))):
            joined = groups_of_all([groups, told])
            if joined is None or _count(joined) == len(groups):
                break
            groups = joined
        else:
            found[name] = groups
    return found


def _count(groups: Places) -> int:
    return int(groups.max()) + 1


def _told_by_rows(group: DenseGroup, axis: int) -> Places | None:
    if group.queries * math.prod(group.sizes) > _MOST_WRITTEN:
        return None
    tensor = group.rows().reshape(-1, *group.sizes)
    return numbered(np.moveaxis(tensor, axis + 1, 0).reshape(group.sizes[axis], -1))


def _told_by(predicates: Predicates, size: int) -> Places | None:
    if predicates.symmetric(size) is not None:
        return np.zeros(size, dtype=np.int64)
    spans = _intervals(predicates, size)
    if spans is not None:
        begins = np.zeros(size + 1, dtype=np.int64)
        begins[spans.first] = begins[spans.last + 1] = 1
        begins[0] = 0
        return np.cumsum(begins[:size])
    few = predicates.count(size) * size <= _MOST_ENTRIES
    return numbered(predicates.rows(size).T) if few else None


def _intervals(predicates: Predicates, size: int) -> Spans | None:
    """Return the intervals that a set asks about, or None if some query is no interval."""
    spans = predicates.spans(size) if predicates.count(size) <= _MOST_INTERVALS else None
    return spans if spans is not None and spans.whole.all() else None


# What is asked of the groups.


def _over(group: Group, groups: Mapping[str, Places]) -> Group:
    """Return a query group over groups of values."""
    if groups.keys().isdisjoint(group.attributes):
        return group
    own = [groups.get(name) for name in group.attributes]
    sizes = tuple(n if g is None else _count(g) for n, g in zip(group.sizes, own, strict=True))
    if isinstance(group, ProductGroup):
        exact = group.query_weights is not None
        sets = tuple(_over_groups(p, g, exact) for p, g in zip(group.predicates, own, strict=True))
        return replace(group, predicates=sets, sizes=sizes)
    found = group.content.summands
    if found is not None:
        terms = (
            (c, tuple(_over_groups(p, g, True) for p, g in zip(few, own, strict=True)))
            for c, few in found.terms
        )
        content: Rows = _Sum(Summands(found.order, tuple(terms)), sizes)
    else:
        tensor = group.rows().reshape(-1, *group.sizes)
        for axis, places in enumerate(own, 1):
            tensor = tensor if places is None else np.take(tensor, _first(places), axis=axis)
        content = MatrixRows(tensor.reshape(len(tensor), -1))
    return replace(group, content=content, sizes=sizes)


def _first(groups: Places) -> NDArray[np.intp]:
    return np.unique(groups, return_index=True)[1]


def _over_groups(predicates: Predicates, groups: Places | None, ordered: bool) -> Predicates:
    """Return a predicate set over groups of values; its queries stay in their order where that matters."""
    if groups is None or isinstance(predicates, Total | Totals):
        return predicates
    size, count = len(groups), _count(groups)
    codes = np.arange(count)
    spans = _intervals(predicates, size)
    if spans is not None and (np.diff(groups) >= 0).all():
        first, last = groups[spans.first], groups[spans.last]
        if np.array_equal(last, codes) and (not first.any() or np.array_equal(first, codes)):
            return Identity() if first.any() or count == 1 else Prefix()
        if ordered or not np.array_equal(first, last) or not np.array_equal(np.sort(first), codes):
            return Ranges(tuple(zip(first.tolist(), last.tolist(), strict=True)))
        return Identity()
    rows = predicates.rows(size)[:, _first(groups)]
    if len(rows) == count and (rows.sum(axis=0) == 1.0).all() and np.array_equal(rows, rows.astype(bool)):
        places = rows.argmax(axis=1)
        if np.array_equal(places if ordered else np.sort(places), codes) and (rows.sum(axis=1) == 1.0).all():
            return Identity()
    return Matrix(rows)


@dataclass(frozen=True, eq=False)
class _Sum(Rows):
    """A signed sum of products."""

    own: Summands
    sizes: tuple[int, ...]

    @property
    def summands(self) -> Summands:
        return self.own

    @property
    def _counts(self) -> list[int]:
        return [p.count(n) for p, n in zip(self.own.terms[0][1], self.sizes, strict=True)]

    @property
    def count(self) -> int:
        return math.prod(self._counts)

    def matrix(self) -> Array:
        rows = [
            sign * kronecker(p.rows(n) for p, n in zip(sets, self.sizes, strict=True))
            for sign, sets in self.own.terms
        ]
        total = np.sum(rows, axis=0).reshape(*self._counts, -1)
        return np.ascontiguousarray(total.transpose(*self.own.order, total.ndim - 1)).reshape(self.count, -1)

    def key(self) -> Hashable:
        return (
            "sum",
            self.own.order,
            *(
                (sign, *(p.key(n) for p, n in zip(sets, self.sizes, strict=True)))
                for sign, sets in self.own.terms
            ),
        )

    def describe(self, domain: Domain, attributes: Sequence[str]) -> list[str]:
        return [f"query {place}" for place in range(self.count)]
