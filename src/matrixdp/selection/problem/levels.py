"""A tree of values, such as areas: which attribute has one, and what its levels ask of the others."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array, by_first
from matrixdp.queries import Identity, Matrix, Predicates, ProductGroup, Total, Workload
from matrixdp.queries.predicates import Ranges, Sets
from matrixdp.queries.structured import Labelled, Stacked
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.gather_groups import GivenGroups

Places = NDArray[np.int64]

#: Trees of areas are seldom deeper; of more sets few are levels.
_MOST_LEVELS = 30
#: Attributes of more values are left as they are: nothing could be measured on them.
MOST_VALUES = 1 << 24
#: Of more families that cut across the levels there is no tree to speak of.
_MOST_BESIDE = 4


@final
@dataclass(frozen=True, eq=False)
class Level:
    """The sets of one predicate set, which no two have a value in common.

    Attributes
    ----------
    nodes : ndarray of int64, shape (n,)
        The set of each value, numbered by their first values; -1 where it is in none.
    weights : ndarray, shape (sets,)
        The weight of the squared error of each set.
    """

    nodes: Places
    weights: Array


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
        set for, and that lie in one node of the level before, are a node that nothing is asked of.
    asked : tuple of (int, ndarray of shape (nodes,))
        What predicate sets ask: a level, and the weight of each of its nodes; after the levels come the
        families beside them.
    places : tuple of tuple of int
        Which of these each query group asks.
    exact : bool
        Whether these weights are all that single queries have: they do not change along other attributes.
    beside : tuple of ndarray of int64, shape (n,)
        Families of sets that do not nest in the levels: the area of each value, those without a set apart.
        Every area lies in one node of the level ``home`` and consists of nodes of the last level.
    home : int
        The finest level of which that is so.
    """

    name: str
    groups: tuple[Places, ...]
    asked: tuple[tuple[int, Array], ...]
    places: tuple[tuple[int, ...], ...]
    exact: bool
    beside: tuple[Places, ...] = ()
    home: int = 0

    @property
    def totals(self) -> Array:
        """The sum of the weights of all nodes, for each thing that is asked; 1 where they are 0."""
        sums = np.array([own.sum() for _, own in self.asked])
        return np.where(sums > 0.0, sums, 1.0)


#: The levels that were looked for, by workload.
_FOUND: WeakKeyDictionary[Workload, dict[int, Levels | None]] = WeakKeyDictionary()


def levels_of(workload: Workload, least: int = 1) -> Levels | None:
    """Return the largest attribute whose predicate sets are levels of a tree, with them; None without one.

    It has at least so many values, and two levels below the total. Sets that do not nest in the longest
    chain of levels are beside them.

    Of weights of single queries the mean over other attributes counts.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> tracts = mdp.product(tract={"sets": [[*range(100)], [*range(100, 500)]]})
    >>> workload = mdp.Workload(mdp.Domain({"tract": 500, "sex": 2}), tracts, mdp.product(tract="identity"))
    >>> [len(np.unique(nodes)) for nodes in levels_of(workload).groups]
    [1, 2, 500]
    """
    known = _FOUND.setdefault(workload, {})
    if least not in known:
        large = [one for one in workload.domain.attributes if least <= one.size <= MOST_VALUES]
        names = [one.name for one in sorted(large, key=lambda one: -one.size)]
        found = (_levels(workload, name) for name in names)
        known[least] = next((own for own in found if own is not None), None)
    return known[least]


def _levels(workload: Workload, name: str) -> Levels | None:
    """Return the levels of an attribute; None where its sets are none, or no two nest."""
    size, exact = workload.domain[name].size, True
    known: dict[Hashable, list[Level]] = {}
    keys: list[Hashable] = []
    for group in workload:
        if not isinstance(group, ProductGroup):
            return None
        own = group.sets.get(name, Total())
        if own.count(size) > size * _MOST_LEVELS:
            return None  # more sets than levels have, as all ranges are
        weights = np.ones(own.count(size))
        if group.query_weights is not None:
            axis = group.attributes.index(name) if name in group.sets else len(group.counts)
            tensor = np.moveaxis(group.query_weights.reshape(*group.counts, 1), axis, 0)
            tensor = tensor.reshape(len(weights), -1)
            weights, exact = tensor.mean(axis=1), exact and bool((tensor == tensor[:, :1]).all())
        keys.append((own.key(size), None if group.query_weights is None else weights.tobytes()))
        if keys[-1] not in known and len(known) < _MOST_LEVELS:
            known[keys[-1]] = _sets(own, size, weights)
        if not known.get(keys[-1]):
            return None
    root = np.zeros(size, dtype=np.int64)
    different = {level.nodes.tobytes(): level.nodes for own in known.values() for level in own}
    different.pop(root.tobytes(), None)
    arranged = _arranged(root, list(different.values()))
    if arranged is None:
        return None
    groups, beside, home, sets = arranged
    asked: list[tuple[int, Array]] = []
    places_of: dict[Hashable, tuple[int, ...]] = {}
    for asks, levels in known.items():
        places_of[asks] = tuple(range(len(asked), len(asked) + len(levels)))
        for level in levels:
            place, numbers = sets[level.nodes.tobytes()]
            weights = np.zeros(_count((*groups, *beside)[place]))
            weights[numbers] = level.weights
            asked.append((place, weights))
    places = tuple(places_of[key] for key in keys)
    return Levels(name, tuple(groups), tuple(asked), places, exact, tuple(beside), home)


def _arranged(
    root: Places, levels: Sequence[Places]
) -> tuple[list[Places], list[Places], int, dict[bytes, tuple[int, Places]]] | None:
    """Return levels that nest, families beside them, their home, and where all sets are.

    The pieces that areas beside the levels have in common with the nodes that they cut are one level more.
    """
    chain = _chain(levels)
    families = [nodes for nodes in levels if not any(nodes is one for one in chain)]
    if len(chain) < 2 or len(families) > _MOST_BESIDE:
        return None
    nested = [(root, np.zeros(1, dtype=np.int64))]
    for nodes in chain:
        nested.append(_refined(nested[-1][0], nodes))
    groups = [refined for refined, _ in nested]
    home = max(k for k, level in enumerate(groups[:-1]) if all(_nests(one, level) for one in families))
    across = [_refined(groups[home], nodes) for nodes in families]
    beside, places = [refined for refined, _ in across], [*range(len(groups))]
    if beside:
        tell = (k for k, level in enumerate(groups) if all(_nests(level, areas) for areas in beside))
        depth = next(tell, len(groups))
        pieces = groups[depth - 1]
        for areas in beside:
            pieces = by_first(pieces * _count(areas) + areas)
        if depth == len(groups) or _count(pieces) < _count(groups[depth]):
            groups.insert(depth, pieces)
            places[depth:] = range(depth + 1, len(groups))
    places += range(len(groups), len(groups) + len(beside))
    known = zip([root, *chain, *families], places, [*nested, *across], strict=True)
    return groups, beside, home, {nodes.tobytes(): (k, numbers) for nodes, k, (_, numbers) in known}


def _count(groups: Places) -> int:
    return int(groups.max()) + 1


def _nests(fine: Places, coarse: Places) -> bool:
    """Return whether every set lies in one of another level, or outside all of them."""
    told = np.flatnonzero(fine >= 0)
    above = np.zeros(_count(fine), dtype=np.int64)
    above[fine[told]] = coarse[told]
    return bool((above[fine[told]] == coarse[told]).all())


def _chain(levels: Sequence[Places]) -> list[Places]:
    """Return the most levels that nest, coarse to fine; of as many those with the most nodes."""
    within = [[_nests(fine, coarse) for coarse in levels] for fine in levels]
    order = sorted(range(len(levels)), key=lambda place: (sum(within[place]), _count(levels[place])))
    chains: list[list[int]] = [[]]
    for place in order:
        held = (one for one in chains if all(within[place][own] for own in one))
        chains.append([*max(held, key=lambda one: _size(levels, one)), place])
    return [levels[place] for place in max(chains, key=lambda one: _size(levels, one))]


def _size(levels: Sequence[Places], chain: Sequence[int]) -> tuple[int, int]:
    return len(chain), sum(_count(levels[place]) for place in chain)


def _refined(coarser: Places, nodes: Places) -> tuple[Places, Places]:
    """Return the nodes of a level with those of values without a set, and the node of each set."""
    own = by_first(np.where(nodes < 0, _count(nodes) + coarser, nodes))
    places = np.zeros(_count(nodes), dtype=np.int64)
    places[nodes[nodes >= 0]] = own[nodes >= 0]
    return own, places


def _sets(predicates: Predicates, size: int, weights: Array) -> list[Level]:
    """Return the levels that a predicate set asks for; none where it asks for something else."""
    if isinstance(predicates, Labelled):
        return _sets(predicates.predicates, size, weights)
    if isinstance(predicates, Stacked):
        ends = np.cumsum([part.count(size) for part in predicates.sets])[:-1]
        pairs = zip(predicates.sets, np.split(weights, ends), strict=True)
        parts = [_sets(part, size, own) for part, own in pairs]
        return [level for own in parts for level in own] if all(parts) else []
    if isinstance(predicates, Identity):
        return [Level(np.arange(size), weights)]
    if isinstance(predicates, Total):
        codes, counts = np.arange(size), np.array([size])
    elif isinstance(predicates, Sets):
        counts = np.array([len(own) for own in predicates.sets])
        codes = np.array([code for own in predicates.sets for code in own], dtype=np.int64)
    elif isinstance(predicates, Ranges):
        first, last = predicates.bounds(size)
        counts = last - first + 1
        if counts.sum() > size:
            return []
        codes = np.concatenate([np.arange(a, b + 1) for a, b in zip(first, last, strict=True)])
    elif isinstance(predicates, Matrix):
        rows, codes = np.nonzero(predicates.matrix)
        counts, entry = np.bincount(rows, minlength=len(predicates.matrix)), predicates.matrix.max(axis=1)
        if (predicates.matrix[rows, codes] != entry[rows]).any():
            return []
        weights = weights * entry**2
    else:
        return []
    nodes = np.full(size, -1, dtype=np.int64)
    if len(codes) > size or not counts.all():
        return []
    nodes[codes] = np.repeat(np.arange(len(counts)), counts)
    told = np.flatnonzero(nodes >= 0)
    if len(told) < len(codes):
        return []
    # the same sets in another order are the same level
    order = np.argsort(np.unique(nodes[told], return_index=True)[1])
    nodes[told] = np.argsort(order)[nodes[told]]
    return [Level(nodes, weights[order])]


def by_level(workload: Workload, levels: Levels) -> Workload:
    """Return a workload in which the attribute has one value for each thing that is asked of it.

    Its weights are those of all nodes together: they decide on the strategy for the other attributes.
    """
    name, count = levels.name, len(levels.asked)
    domain = workload.domain.reduced({name: count})
    rows, groups = np.eye(count), []
    for group, places in zip(workload, levels.places, strict=True):
        assert isinstance(group, ProductGroup)
        names = domain.sort({*group.sets, name})
        sizes = tuple(domain[one].size for one in names)
        for place in places:
            own = {**group.sets, name: Matrix(rows[[place]])}
            weight = group.weight * float(levels.totals[place])
            groups.append(ProductGroup(group.name, names, tuple(own[n] for n in names), sizes, weight))
    return Workload(domain, GivenGroups(tuple(groups)))


def node_weights(levels: Levels, asked: Array) -> list[Array]:
    """Return what every node of each level asks of every class; one row where all nodes ask the same.

    Families beside the levels come after them.
    """
    found = []
    for level in range(len(levels.groups) + len(levels.beside)):
        pairs = [(own, asked[place]) for place, (at, own) in enumerate(levels.asked) if at == level]
        if all((own == own[0]).all() for own, _ in pairs):
            rows = [own[0] * classes for own, classes in pairs]
            found.append(np.sum([np.zeros(asked.shape[1]), *rows], axis=0))
        else:
            found.append(np.sum([np.outer(own, classes) for own, classes in pairs], axis=0))
    return found


def tree_for(workload: Workload) -> Levels | None:
    """Return the levels of an attribute whose nodes get a precision each, or None where others win.

    Levels that ask queries of several kinds of another attribute are better designed together, where that
    fits: the tree has one strategy for all of them.
    """
    levels = levels_of(workload, LIMITS.most_unpaired + 1)
    if levels is None:
        return None
    values = len(levels.groups[0])
    fits = LIMITS.search_joint_cells < values <= LIMITS.joint_cells
    return None if fits and not _alike(workload, levels) else levels


def one_product(workload: Workload, levels: Levels) -> Workload | None:
    """Return what is asked of the other attributes, where that is one product at every level; else None."""
    found: dict[Hashable, ProductGroup] = {}
    for group in workload:
        assert isinstance(group, ProductGroup)
        own = [
            (n, p, k)
            for n, p, k in zip(group.attributes, group.predicates, group.sizes, strict=True)
            if n != levels.name and not isinstance(p, Total)
        ]
        key = tuple((n, p.key(k)) for n, p, k in own)
        if key not in found:
            names, sets, sizes = zip(*own, strict=True) if own else ((), (), ())
            found[key] = ProductGroup(group.name, names, sets, sizes)
    return Workload(workload.domain, GivenGroups(tuple(found.values()))) if len(found) == 1 else None


def _alike(workload: Workload, levels: Levels) -> bool:
    """Return whether every other attribute is asked one kind of queries, beside identities and totals."""
    known: dict[str, Hashable] = {}
    for group in workload:
        assert isinstance(group, ProductGroup)
        for (name, own), size in zip(group.sets.items(), group.sizes, strict=True):
            plain = name == levels.name or own.symmetric(size) is not None
            if not plain and known.setdefault(name, own.key(size)) != own.key(size):
                return False
    return True
