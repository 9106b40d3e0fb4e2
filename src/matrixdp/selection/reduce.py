"""Fewer values, before anything is asked of a workload; and the way back.

Values that no query tells apart are merged, whatever the noise: what any strategy says of one value of each
group costs no more and errs no more (docs/mathematics.md, theorem 1a). Under Gaussian noise two values stand
for all that may trade places (theorem 2a). So selection sees a workload over few values, with
the sizes that its limits are about, and its plan is spread over all values again.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, starmap
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact import MeasuredMatrix, RowTrees
from matrixdp.exact.linear import Array, kronecker, numbered
from matrixdp.exact.structured import over_groups
from matrixdp.noise import Noise
from matrixdp.queries import (
    Crossed,
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
from matrixdp.queries.predicates import Spans, alike_in_all, groups_of_all
from matrixdp.queries.structured import Stacked, Totals
from matrixdp.selection.compose.rounding import over_every_value
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.gather_groups import GivenGroups
from matrixdp.selection.problem.levels import MOST_VALUES

if TYPE_CHECKING:
    from matrixdp.plans import Block, Part, Plan

__all__ = ["Map", "Merged", "Paired", "Reduced", "reduce"]

Places = NDArray[np.int64]
#: An integer for each row of a part, or none: see `Part`.
Multipliers = NDArray[np.int64] | None

#: Entries of written queries, and queries that are intervals, up to which values alike are looked for.
_MOST_ENTRIES, _MOST_INTERVALS = 1 << 24, 1 << 20
#: Entries of explicit queries.
_MOST_WRITTEN = 1 << 22


class Map(ABC):
    """One step of a reduction: from a workload to one over fewer values, and from its plan back.

    Attributes
    ----------
    domain : Domain
        Before the step.
    groups : mapping of str to ndarray of int, shape (n,)
        The group of each value, numbered by their first values, for the attributes that have fewer values
        after it.
    """

    domain: Domain
    groups: Mapping[str, Places]

    @abstractmethod
    def group(self, group: Group) -> Group:
        """Return what is asked of the values that are left."""

    @abstractmethod
    def measured(
        self, block: Block, noise: Noise, multipliers: Multipliers, place: int
    ) -> tuple[MeasuredMatrix, Multipliers]:
        """Return the matrix of a part's block over all values, and the multipliers of the part's rows.

        The block is the one at ``place`` in the part.
        """

    @abstractmethod
    def weights(self, name: str, weights: Array) -> Array:
        """Return the weight vector of an attribute over all of its values."""

    @property
    @abstractmethod
    def reduced(self) -> Domain:
        """The domain after the step."""

    def workload(self, workload: Workload) -> Workload:
        """Return the workload after the step."""
        return Workload(self.reduced, GivenGroups(tuple(self.group(group) for group in workload)))

    def plan(self, plan: Plan) -> Plan:
        """Return a plan over all values: its cost and its errors stay what they are."""
        from matrixdp.plans import Joint, Split  # of no use to who asks for the workload alone

        known: dict[Hashable, MeasuredMatrix] = {}
        parts = tuple(self._part(part, plan.noise, known) for part in plan.parts)
        if not isinstance(plan, Split | Joint):
            return replace(plan, domain=self.domain, parts=parts)
        own = {name: self.weights(name, plan.weights[name]) for name in self.groups}
        return replace(plan, domain=self.domain, parts=parts, weights={**plan.weights, **own})

    def _part(self, part: Part, noise: Noise, known: dict[Hashable, MeasuredMatrix]) -> Part:
        """Return what is measured of all values, at the same cost; ``known`` are matrices made before."""
        from matrixdp.plans import Block

        blocks, multipliers = list(part.blocks), part.multipliers
        for place, block in enumerate(part.blocks):
            if self.groups.keys().isdisjoint(block.attributes):
                continue
            key = block.attributes, block.matrix.digest()
            matrix = known.get(key) if multipliers is None else None
            if matrix is None:
                matrix, multipliers = self.measured(block, noise, multipliers, place)
            if multipliers is None:
                known[key] = matrix
            blocks[place] = Block(block.attributes, matrix)
        if all(new is old for new, old in zip(blocks, part.blocks, strict=True)):
            return part
        made = replace(part, blocks=tuple(blocks), multipliers=multipliers)
        scale = made.column_power_sum(noise.norm) / part.column_power_sum(noise.norm)
        return replace(made, variance=part.variance * scale)


@dataclass(frozen=True, eq=False)
class Reduced:
    """A workload over fewer values.

    Attributes
    ----------
    workload : Workload
        What is asked of them; the workload itself where no map applies.
    maps : tuple of Map
        How it came about, the first step first.
    """

    workload: Workload
    maps: tuple[Map, ...] = ()

    def after(self, step: Map | None) -> Reduced:
        """Return the same after one more step, if there is one."""
        return self if step is None else Reduced(step.workload(self.workload), (*self.maps, step))

    def over_values(self, plan: Plan) -> Plan:
        """Return a plan for the workload as one for all values: cost and errors stay what they are."""
        for step in reversed(self.maps):
            plan = step.plan(plan)
        return plan


#: The reductions of workloads, cached while the workloads live.
_FOUND: WeakKeyDictionary[Workload, dict[Hashable, Reduced]] = WeakKeyDictionary()


def reduce(workload: Workload, pairs: bool = False, each: bool = False, but: Collection[str] = ()) -> Reduced:
    """Return a workload over fewer values, of the same least error.

    Parameters
    ----------
    workload : Workload
    pairs : bool
        Whether two values stand for all that may trade places: for Gaussian noise alone.
    each : bool
        Whether the error of each query counts, not the sum of all: then a pair has each query of its values
        once, else as often as they have.
    but : collection of str
        Attributes that keep all of their values.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"income": 10_000, "sex": 2})
    >>> asked = mdp.product(income={"ranges": [[0, 99], [100, 299]]}, sex="identity")
    >>> reduce(mdp.Workload(domain, asked)).workload.domain.shape
    (3, 2)
    >>> areas = mdp.product(income={"sets": [[*range(2_000)], [*range(2_000, 10_000)]]})
    >>> reduce(mdp.Workload(domain, areas, mdp.product(income="identity")), pairs=True).workload.domain.shape
    (4, 2)
    """
    key = pairs, each and pairs, LIMITS.most_unpaired, frozenset(but)
    known = _FOUND.setdefault(workload, {})
    if key not in known:
        if pairs:
            merged = reduce(workload, but=but)
            known[key] = merged.after(_paired(merged.workload, each, but))
        else:
            known[key] = Reduced(workload).after(_merged(workload, but))
    return known[key]


# Values that no query tells apart.


@dataclass(frozen=True, eq=False)
class Merged(Map):
    """Each group is one value; its values are measured together."""

    domain: Domain
    groups: Mapping[str, Places]

    @cached_property
    def reduced(self) -> Domain:
        """The domain of groups."""
        return self.domain.reduced({name: _count(own) for name, own in self.groups.items()})

    def group(self, group: Group) -> Group:
        """See `Map`."""
        return _over(group, self.groups)

    def measured(
        self, block: Block, noise: Noise, multipliers: Multipliers, place: int
    ) -> tuple[MeasuredMatrix, Multipliers]:
        """See `Map`: as many rows, over sums of groups."""
        del noise, place
        own = [self.groups.get(name, np.arange(self.domain[name].size)) for name in block.attributes]
        if isinstance(block.matrix, RowTrees):
            return block.matrix.over_groups(own[1:]), multipliers
        return over_groups(block.matrix, own), multipliers

    def weights(self, name: str, weights: Array) -> Array:
        """Return the weights of groups, shared evenly by their values."""
        group = self.groups[name]
        return np.asarray((weights / np.bincount(group))[group])


def _merged(workload: Workload, but: Collection[str]) -> Merged | None:
    """Return the map to groups of the values that no query tells apart, if there are fewer."""
    groups = {name: own for name, own in _groups(workload).items() if name not in but}
    return Merged(workload.domain, groups) if groups else None


@dataclass
class _Asked:
    """What is asked of an attribute: predicate sets with its size, and explicit queries with its axis."""

    sets: dict[Hashable, tuple[Predicates, int]] = field(default_factory=dict)
    written: list[tuple[DenseGroup, int]] = field(default_factory=list)


def _asked(workload: Workload) -> dict[str, _Asked]:
    """Return what is asked of each attribute."""
    found: dict[str, _Asked] = {}
    for group in workload:
        if isinstance(group, DenseGroup) and not group.summands:
            others = _by(group)
            for axis, name in enumerate(group.attributes):
                own, size = found.setdefault(name, _Asked()), group.sizes[axis]
                if axis in others:
                    own.sets[others[axis].key(size)] = others[axis], size
                else:
                    own.written.append((group, axis))
            continue
        for one in [group] if isinstance(group, ProductGroup) else [own for _, own in group.summands]:
            for name, predicates, size in zip(one.attributes, one.predicates, one.sizes, strict=True):
                found.setdefault(name, _Asked()).sets[predicates.key(size)] = predicates, size
    return found


def _by(group: DenseGroup) -> dict[int, Predicates]:
    """Return the predicate sets within which explicit queries are asked, by axis."""
    own = group.content
    return dict(zip(own.others, own.predicates, strict=True)) if isinstance(own, Crossed) else {}


def _groups(workload: Workload) -> dict[str, Places]:
    """Return the group of each value of the attributes on which some are not told apart."""
    found = {}
    for name, asked in _asked(workload).items():
        own = list(asked.sets.values())
        if any((p.symmetric(size) or (0.0, 0.0))[0] > 0.0 for p, size in own):
            continue  # each value is asked about
        if workload.domain[name].size > MOST_VALUES:
            continue
        groups = np.zeros(workload.domain[name].size, dtype=np.int64)
        for told in chain(starmap(_told_by, own), starmap(_told_by_rows, asked.written)):
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
    elif isinstance(group.content, Crossed) and all(own[axis] is None for axis in group.content.merged):
        sets = tuple(_over_groups(p, own[axis], True) for axis, p in _by(group).items())
        content = replace(group.content, predicates=sets, sizes=sizes)
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


# Values that may trade places: two stand for those of each group.


@dataclass(frozen=True, eq=False)
class Paired(Map):
    """Two values stand for all of a group that may trade places; under Gaussian noise alone.

    The second values come behind the first ones of all groups, in the opposite order.
    """

    domain: Domain
    groups: Mapping[str, Places]
    #: What stands for the predicate sets of the attributes, by attribute and key.
    sets: Mapping[tuple[str, Hashable], Predicates]

    @cached_property
    def reduced(self) -> Domain:
        """The domain of pairs."""
        sizes = {name: 2 * _count(own) for name, own in self.groups.items()}
        return self.domain.reduced(sizes, {name: len(own) for name, own in self.groups.items()})

    def group(self, group: Group) -> Group:
        """See `Map`."""
        if self.groups.keys().isdisjoint(group.attributes):
            return group

        def of(axis: int, predicates: Predicates) -> Predicates:
            return self.sets.get((group.attributes[axis], predicates.key(group.sizes[axis])), predicates)

        sizes = tuple(self.reduced[name].size for name in group.attributes)
        if isinstance(group, ProductGroup):
            return replace(group, predicates=tuple(starmap(of, enumerate(group.predicates))), sizes=sizes)
        assert isinstance(group.content, Crossed)
        sets = tuple(starmap(of, _by(group).items()))
        return replace(group, content=replace(group.content, predicates=sets, sizes=sizes), sizes=sizes)

    def measured(
        self, block: Block, noise: Noise, multipliers: Multipliers, place: int
    ) -> tuple[MeasuredMatrix, Multipliers]:
        """See `Map`: rows over sums of groups, and rows within them."""
        sizes = [self.reduced[name].size for name in block.attributes]
        groups = [self.groups.get(name) for name in block.attributes]
        return over_every_value(block.matrix, sizes, groups, noise, multipliers, place)

    def weights(self, name: str, weights: Array) -> Array:
        """Return the weights of pairs, shared evenly by the values that they stand for."""
        group, half = self.groups[name], len(weights) // 2
        sums = (weights + weights[::-1])[:half]
        return np.asarray((sums / np.bincount(group))[group])


def _paired(workload: Workload, each: bool, but: Collection[str]) -> Paired | None:
    """Return the map to pairs of values for groups of many that may trade places, if there are such."""
    groups: dict[str, Places] = {}
    sets: dict[tuple[str, Hashable], Predicates] = {}
    ordered = {name for group in workload if group.query_weights is not None for name in group.attributes}
    summed = {name for group in workload for name in group.attributes if _is_sum(group)}
    for name, asked in _asked(workload).items():
        size = workload.domain[name].size
        if not LIMITS.most_unpaired < size <= MOST_VALUES or name in summed or asked.written or name in but:
            continue
        told = [p for p, _ in asked.sets.values() if p.symmetric(size) is None]
        alike = groups_of_all([_alike(p, size) for p in told]) if told else None
        if alike is None or 4 * _count(alike) > size:
            continue
        alike = alike.astype(np.int64)
        found: dict[tuple[str, Hashable], Predicates] = {}
        # those of which none may be known come first
        for key, (p, _) in sorted(
            asked.sets.items(), key=lambda item: item[1][0].symmetric(size) is not None
        ):
            own = _pairs(p, alike, each, name in ordered)
            if own is None:
                break
            found[name, key] = own
        else:
            groups[name] = alike
            sets |= found
    return Paired(workload.domain, groups, sets) if groups else None


def _alike(predicates: Predicates, size: int) -> Places | None:
    """Return the group of each value, of those that may trade places in what a set asks, if known."""
    known = alike_in_all([predicates], size)
    return _told_by(predicates, size) if known is None else known.astype(np.int64)


def _is_sum(group: Group) -> bool:
    return isinstance(group, DenseGroup) and bool(group.summands)


def _pairs(predicates: Predicates, groups: Places, each: bool, ordered: bool) -> Predicates | None:
    """Return queries on pairs of values with the errors of those on all, or None where none are known.

    A query with the mean c_g on group g, and the distance r from it on one group of m values, becomes c_g on
    both values of each pair and r sqrt((m - 1) / m) more and less on those of that one; another query has the
    two the other way round. They count half as often as the queries that they stand for.
    """
    if isinstance(predicates, Total | Totals):
        return predicates
    if isinstance(predicates, Stacked):
        parts = [_pairs(part, groups, each, ordered) for part in predicates.sets]
        own = [part for part in parts if part is not None]
        return Stacked(tuple(own)) if len(own) == len(parts) else None
    counts = np.bincount(groups)
    if isinstance(predicates, Identity):
        means, away, times = np.diag(1.0 / counts), np.diag(1.0 - 1.0 / counts), counts.astype(np.float64)
    else:
        if predicates.count(len(groups)) * len(groups) > _MOST_ENTRIES:
            return None
        rows = predicates.rows(len(groups))[:, np.argsort(groups, kind="stable")]
        begins = np.cumsum(counts) - counts
        means, squares = (np.add.reduceat(rows**power, begins, axis=1) for power in (1, 2))
        means /= counts
        away = squares - counts * means**2
        away = np.sqrt(np.where(away > LIMITS.alike * squares, away, 0.0) * (1.0 - 1.0 / counts))
        times = np.ones(len(means))
    if not away.any():
        return Matrix(np.hstack([means, means[:, ::-1]]))
    if ordered or (np.count_nonzero(away, axis=1) > 1).any():
        return None
    both, same = np.unique(np.hstack([means, away]), axis=0, return_inverse=True)
    often, (means, away) = np.bincount(same.ravel(), times), np.hsplit(both, 2)
    told = away.any(axis=1)
    first, second = means + away, means - away
    rows = np.vstack(
        [
            np.hstack([means[~told], means[~told, ::-1]]),
            np.hstack([first[told], second[told, ::-1]]),
            np.hstack([second[told], first[told, ::-1]]),
        ]
    )
    counted = np.concatenate([often[~told], often[told] / 2.0, often[told] / 2.0])
    return Matrix(rows if each else rows * np.sqrt(counted)[:, None])
