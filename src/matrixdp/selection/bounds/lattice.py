"""The subsets of attributes that a workload's queries have pieces on, and how triples of them overlap.

Attributes whose queries are all symmetric (Gram matrices of the form a I + b 11') are kept by all three
subsets of a triple or by none: the workload falls apart into *sectors*, one for each set of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.problem.residuals import Split
from matrixdp.selection.starting_points import generator

__all__ = ["Lattice", "Neighbours"]

Array = NDArray[np.float64]
Places = NDArray[np.int64]
#: What is known of a subset: numbers, each with pairs of an attribute and what is known of it there.
Content = frozenset[tuple[Hashable, frozenset[tuple[int, Hashable]]]]
#: The same with what is known of each attribute of the subset, in their order.
_Pattern = frozenset[tuple[Hashable, tuple[Hashable, ...]]]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """For a subset B: all pairs (C, E) in its sector that have pieces together with B and with each other.

    Attributes
    ----------
    first, second : ndarray of int
        C and E.
    together : ndarray of int
        C u E.
    with_first, with_second : ndarray of int
        B u C and B u E.
    """

    first: Places
    second: Places
    together: Places
    with_first: Places
    with_second: Places


@dataclass(frozen=True, eq=False)
class Lattice:
    """All subsets with pieces, each with the number of its class in the split.

    Attributes
    ----------
    names : tuple of str
        The attributes.
    types : ndarray of int, shape (attributes,)
    free : ndarray of bool, shape (attributes,)
        Which attributes are not symmetric.
    classes : ndarray of int, shape (subsets,)
    members : ndarray of int, shape (subsets, width)
        The free attributes of each subset, in its order; the rest is -1.
    spread : tuple of tuple of int
        The symmetric attributes of each subset.
    """

    names: tuple[str, ...]
    types: Places
    free: NDArray[np.bool_]
    classes: Places
    members: Places
    spread: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, split: Split) -> Lattice:
        """Return the subsets of a split."""
        names = tuple(split.types)
        place = {name: number for number, name in enumerate(names)}
        free = np.array([split.free[split.types[name]] for name in names], dtype=bool)
        kept: list[list[int]] = []
        spread: list[tuple[int, ...]] = []
        classes: list[int] = []
        for number, sub in enumerate(split.classes):
            for marginal in sub.marginals:
                places = [place[name] for name in marginal]
                kept.append([i for i in places if free[i]])
                spread.append(tuple(i for i in places if not free[i]))
                classes.append(number)
        width = max((len(one) for one in kept), default=0)
        members = np.full((len(kept), width), -1, dtype=np.int64)
        for row, one in enumerate(kept):
            members[row, : len(one)] = one
        return cls(
            names,
            np.array([split.types[name] for name in names], dtype=np.int64),
            free,
            np.array(classes, dtype=np.int64),
            members,
            tuple(spread),
        )

    @cached_property
    def orders(self) -> Places:
        """How many free attributes each subset has."""
        return np.asarray((self.members >= 0).sum(axis=1))

    @cached_property
    def _marks(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """A mark for each attribute, and those of the subsets: the sums over their attributes."""
        for seed in range(8):
            own = generator(seed).integers(0, 2**63, size=len(self.names), dtype=np.uint64)
            padded = np.append(own, np.uint64(0))
            marks = padded[self.members].sum(axis=1, dtype=np.uint64)
            marks += np.array([int(own[list(s)].sum(dtype=np.uint64)) for s in self.spread], dtype=np.uint64)
            if len(np.unique(marks)) == len(marks):
                return padded, marks
        raise AssertionError("marks of different subsets are equal")

    @cached_property
    def subsets(self) -> Places:
        """The places of each subset's subsets in its sector, shape (subsets, 2^width).

        Bit j of the column says whether the free attribute j of the subset is kept; -1 where there is none.
        """
        own, marks = self._marks
        order = np.argsort(marks)
        ranked = marks[order]
        found = np.full((len(marks), 2 ** self.members.shape[1]), -1, dtype=np.int64)
        for pattern in range(found.shape[1]):
            bits = np.array([bool(pattern >> j & 1) for j in range(self.members.shape[1])], dtype=bool)
            valid = (self.members[:, bits] >= 0).all(axis=1)
            wanted = marks - own[self.members[:, ~bits]].sum(axis=1, dtype=np.uint64)
            at = np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)
            known = valid & (ranked[at] == wanted)
            found[known, pattern] = order[at[known]]
        return found

    @cached_property
    def sectors(self) -> dict[tuple[int, ...], Places]:
        """The subsets of each sector, by its symmetric attributes."""
        found: dict[tuple[int, ...], list[int]] = {}
        for place, spread in enumerate(self.spread):
            found.setdefault(spread, []).append(place)
        return {spread: np.array(places, dtype=np.int64) for spread, places in found.items()}

    @cached_property
    def _pairs(self) -> dict[tuple[int, ...], tuple[Places, Places, Places]]:
        """By sector: all pairs of subsets whose union has pieces, as (first, second, union)."""
        found = {}
        for spread, places in self.sectors.items():
            parts = []
            for order in np.unique(self.orders[places]):
                unions = places[self.orders[places] == order]
                for choice in product((1, 2, 3), repeat=int(order)):
                    first = self.subsets[unions, sum(1 << j for j, bits in enumerate(choice) if bits & 1)]
                    second = self.subsets[unions, sum(1 << j for j, bits in enumerate(choice) if bits & 2)]
                    known = (first >= 0) & (second >= 0)
                    parts.append(np.stack([first, second, unions])[:, known])
            first, second, together = np.concatenate(parts, axis=1)
            found[spread] = first, second, together
        return found

    def count(self, place: int) -> int:
        """Return how many pairs of subsets `neighbours` looks through."""
        return int((3 ** self.orders[self.sectors[self.spread[place]]]).sum())

    def unions(self, place: int) -> Places:
        """Return, for every subset of a sector, its union with a subset; -1 where that has no pieces."""
        own = self.members[place][self.members[place] >= 0]
        sector = self.sectors[self.spread[place]]
        inside = (self.members[sector][:, :, None] == own).any(axis=2)
        above = sector[inside.sum(axis=1) == len(own)]
        needed = ((~(self.members[above][:, :, None] == own).any(axis=2)) & (self.members[above] >= 0)) @ (
            1 << np.arange(self.members.shape[1])
        )
        found = np.full(len(self.classes), -1, dtype=np.int64)
        for pattern in range(self.subsets.shape[1]):
            below = self.subsets[above, pattern]
            fits = (below >= 0) & (pattern & needed == needed)
            found[below[fits]] = above[fits]
        return found

    def neighbours(self, place: int, measured: NDArray[np.bool_]) -> Neighbours:
        """Return the triples that a subset is the first of, the others among those that are measured."""
        unions = self.unions(place)
        unions[~measured] = -1
        first, second, together = self._pairs[self.spread[place]]
        known = (unions[first] >= 0) & (unions[second] >= 0)
        first, second, together = first[known], second[known], together[known]
        return Neighbours(first, second, together, unions[first], unions[second])

    def orbits(self, content: Sequence[Content]) -> list[tuple[int, int, Hashable]]:
        """Return one subset of each orbit, the size of the orbit, and the orbit of its sector.

        Attributes are exchangeable where exchanging them leaves ``content`` as it is: for each subset, the
        set of what is known of it, numbers with pairs of an attribute and what is known of that.
        """
        kinds = self._exchangeable(content)
        first: dict[tuple[Hashable, Hashable], int] = {}
        sizes: Counter[tuple[Hashable, Hashable]] = Counter()
        for place, spread in enumerate(self.spread):
            own = self.members[place][self.members[place] >= 0]
            key = tuple(sorted(kinds[i] for i in own)), tuple(sorted(kinds[i] for i in spread))
            first.setdefault(key, place)
            sizes[key] += 1
        return [(place, sizes[key], key[1]) for key, place in first.items()]

    def _exchangeable(self, content: Sequence[Content]) -> list[int]:
        """Return a number for each attribute, equal for those that may be exchanged with one another."""
        known: dict[tuple[int, ...], _Pattern] = {}
        holding: dict[int, list[tuple[int, ...]]] = {}
        for members, spread, found in zip(self.members, self.spread, content, strict=True):
            own = tuple(sorted([*members[members >= 0].tolist(), *spread]))
            terms = [(number, dict(pairs)) for number, pairs in found]
            known[own] = frozenset(
                [(number, tuple([said.get(i, ()) for i in own])) for number, said in terms]
            )
            for i in own:
                holding.setdefault(i, []).append(own)
        moved = lru_cache(_moved)  # subsets are many, what is known of them is mostly the same
        kinds = list(range(len(self.names)))
        for i in range(1, len(kinds)):
            for j in range(i - 1, -1, -1):
                if kinds[j] == j and self.types[j] == self.types[i]:
                    # exchanges with one attribute of a kind generate all exchanges within it
                    swap = {i: j, j: i}
                    for own in {*holding.get(i, ()), *holding.get(j, ())}:
                        named = [swap.get(k, k) for k in own]
                        order = tuple(sorted(range(len(own)), key=named.__getitem__))
                        if known.get(tuple([named[k] for k in order])) != moved(known[own], order):
                            break
                    else:
                        kinds[i] = j
                        break
        return kinds


def _moved(pattern: _Pattern, order: tuple[int, ...]) -> _Pattern:
    return frozenset([(number, tuple([said[k] for k in order])) for number, said in pattern])
