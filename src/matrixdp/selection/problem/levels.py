"""A tree of values, such as areas: which attribute has one, and what each of its levels asks of the others."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.queries import Identity, Matrix, Predicates, ProductGroup, Total, Workload
from matrixdp.queries.groups import over
from matrixdp.queries.predicates import Ranges, Sets
from matrixdp.queries.structured import Labelled, Stacked
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.gather_groups import GivenGroups

Places = NDArray[np.int64]

#: Trees of areas are seldom deeper; of more sets few are levels.
_MOST_LEVELS = 30


@final
@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of an attribute's values, from the root to the finest that is asked.

    Attributes
    ----------
    name : str
        The attribute.
    groups : tuple of ndarray of int64, shape (n,)
        For each level the node of each value. Each level refines the one before. Values that a level has no
        set for are in a node of their own there, which nothing is asked of.
    asked : tuple of ndarray of float, shape (nodes,)
        For each level 1 for the nodes that are sets of the workload, else 0.
    places : dict of hashable to tuple of int
        The levels of the sets of each predicate set, by its key.
    """

    name: str
    groups: tuple[Places, ...]
    asked: tuple[Array, ...]
    places: dict[Hashable, tuple[int, ...]]

    @cached_property
    def complete(self) -> bool:
        """Whether every node is asked for: no area skips a level."""
        return all(own.all() for own in self.asked[1:])


#: The levels that were looked for, by workload.
_FOUND: WeakKeyDictionary[Workload, tuple[Levels | None]] = WeakKeyDictionary()


def levels_of(workload: Workload) -> Levels | None:
    """Return the largest attribute whose predicate sets are levels of a tree, with them; None without one.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> tracts = mdp.product(tract={"sets": [[*range(100)], [*range(100, 500)]]})
    >>> workload = mdp.Workload(mdp.Domain({"tract": 500, "sex": 2}), tracts, mdp.product(tract="identity"))
    >>> [len(own) for own in levels_of(workload).asked]
    [1, 2, 500]
    """
    if workload not in _FOUND:
        large = [one for one in workload.domain.attributes if one.size > LIMITS.most_unpaired]
        names = [one.name for one in sorted(large, key=lambda one: -one.size)]
        found = (_levels(workload, name) for name in names)
        _FOUND[workload] = (next((own for own in found if own is not None), None),)
    return _FOUND[workload][0]


def _levels(workload: Workload, name: str) -> Levels | None:
    size = workload.domain[name].size
    known: dict[Hashable, tuple[bytes, ...]] = {Total().key(size): ()}
    levels: dict[bytes, Places] = {}
    for group in workload:
        if not isinstance(group, ProductGroup) or group.query_weights is not None:
            return None
        predicates = group.sets.get(name, Total())
        if predicates.key(size) in known:
            continue
        own = _nodes(predicates, size)
        if own is None:
            return None
        levels |= own
        known[predicates.key(size)] = tuple(own)
        if len(levels) > _MOST_LEVELS:
            return None
    root = np.zeros(size, dtype=np.int64)
    levels.pop(root.tobytes(), None)
    ordered = sorted(levels.items(), key=lambda item: int(item[1].max()))
    if len(ordered) < 2:
        return None
    groups, asked = [root], [np.ones(1)]
    for _, nodes in ordered:
        own, there = _refined(groups[-1], nodes)
        if _pairs(groups[-1], own) > _count(own):
            return None  # a set that lies in two of another level
        groups.append(own)
        asked.append(there)
    numbers = {root.tobytes(): 0} | {key: place for place, (key, _) in enumerate(ordered, 1)}
    places = {key: tuple(numbers[one] for one in own) or (0,) for key, own in known.items()}
    return Levels(name, tuple(groups), tuple(asked), places)


def _count(groups: Places) -> int:
    return int(groups.max()) + 1


def _numbered(codes: Places) -> Places:
    """Return the codes by the order of their first places."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def _pairs(first: Places, second: Places) -> int:
    return len(np.unique(first * (_count(second)) + second))


def _refined(coarser: Places, nodes: Places) -> tuple[Places, Array]:
    """Return the nodes of a level, numbered by their first values, and which of them are asked for.

    Values without a set (-1) that lie in one node of the coarser level are one node.
    """
    alone = np.where(nodes < 0, _count(nodes) + coarser, nodes)
    own = _numbered(alone)
    there = np.zeros(_count(own))
    there[own[nodes >= 0]] = 1.0
    return own, there


def _nodes(predicates: Predicates, size: int) -> dict[bytes, Places] | None:
    """Return the levels that a predicate set asks for, -1 where a value is in no set; None if it is none."""
    if isinstance(predicates, Labelled):
        return _nodes(predicates.predicates, size)
    if isinstance(predicates, Stacked):
        found: dict[bytes, Places] = {}
        for part in predicates.sets:
            own = _nodes(part, size)
            if own is None or not found.keys().isdisjoint(own):
                return None
            found |= own
        return found
    nodes = np.full(size, -1, dtype=np.int64)
    if isinstance(predicates, Identity):
        nodes = np.arange(size)
    elif isinstance(predicates, Total):
        nodes[:] = 0
    elif isinstance(predicates, Sets | Ranges):
        codes = (
            [np.array(own, dtype=np.int64) for own in predicates.sets]
            if isinstance(predicates, Sets)
            else [np.arange(first, last + 1) for first, last in predicates.intervals]
        )
        if sum(map(len, codes)) > size or not all(map(len, codes)):
            return None
        every = np.concatenate(codes)
        if len(np.unique(every)) < len(every):
            return None
        nodes[every] = np.repeat(np.arange(len(codes)), [len(own) for own in codes])
    else:
        return None
    # sets in another order are the same level
    numbers = _numbered(np.where(nodes < 0, size, nodes))
    missing = nodes < 0
    if missing.any():
        hole = numbers[missing][0]
        numbers = np.where(missing, -1, numbers - (numbers > hole))
    return {numbers.tobytes(): numbers}


def by_level(workload: Workload, levels: Levels) -> Workload:
    """Return a workload in which the attribute has one value for each level, asked where its nodes are."""
    name, count = levels.name, len(levels.groups)
    domain = workload.domain.reduced({name: count})
    size, rows = workload.domain[name].size, np.eye(count)
    groups = []
    for group in workload:
        assert isinstance(group, ProductGroup)
        names = domain.sort({*group.attributes, name})
        whole = over(group, names, tuple(workload.domain[one].size for one in names))
        assert isinstance(whole, ProductGroup)
        sizes = tuple(domain[one].size for one in names)
        for place in levels.places[whole.sets[name].key(size)]:
            sets = tuple(Matrix(rows[[place]]) if n == name else p for n, p in whole.sets.items())
            groups.append(replace(whole, predicates=sets, sizes=sizes))
    return Workload(domain, GivenGroups(tuple(groups)))
