"""The subsets of attributes that a workload's queries have pieces on, and how triples of them overlap.

Attributes whose queries are all symmetric (Gram matrices of the form a I + b 11') are kept by all three
subsets of a triple or by none: the workload falls apart into *sectors*, one for each set of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.selection.problem.residuals import Split
from matrixdp.selection.starting_points import generator

#: Bits of a subset in a signed integer of 64.
_MOST_BITS = 63

Places = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Lattice:
    """All subsets with pieces.

    Attributes
    ----------
    types : ndarray of int, shape (attributes + 1,)
        The last entry, -1, is that of no attribute.
    members : ndarray of int, shape (subsets, width)
        The free attributes of each subset in its order, then the number of attributes: no attribute.
    spreads : tuple of tuple of int
        The symmetric attributes of each sector.
    sectors, classes : ndarray of int, shape (subsets,)
        The sector of each subset, and its class in the split.
    """

    types: Places
    members: Places
    spreads: tuple[tuple[int, ...], ...]
    sectors: Places
    classes: Places
    _known_pairs: dict[int, Places] = field(default_factory=dict)

    @classmethod
    def of(cls, split: Split) -> Lattice:
        """Return the subsets of a split."""
        place = {name: number for number, name in enumerate(split.types)}
        spreads: dict[tuple[int, ...], int] = {}
        kept: list[list[int]] = []
        sectors, classes = [], []
        for number, sub in enumerate(split.classes):
            for marginal in sub.marginals:
                free: list[int] = []
                spread: list[int] = []
                for name, type_ in zip(marginal, sub.types, strict=True):
                    (free if split.free[type_] else spread).append(place[name])
                kept.append(free)
                sectors.append(spreads.setdefault(tuple(spread), len(spreads)))
                classes.append(number)
        members = np.full((len(kept), max(map(len, kept), default=0)), len(place), dtype=np.int64)
        for row, own in enumerate(kept):
            members[row, : len(own)] = own
        types = np.array([*split.types.values(), -1], dtype=np.int64)
        return cls(types, members, tuple(spreads), np.array(sectors), np.array(classes))

    @cached_property
    def orders(self) -> Places:
        """How many free attributes each subset has."""
        return np.asarray((self.members < len(self.types) - 1).sum(axis=1))

    @cached_property
    def places(self) -> list[Places]:
        """The subsets of each sector."""
        counts = np.bincount(self.sectors, minlength=len(self.spreads))
        return np.split(np.argsort(self.sectors, kind="stable"), np.cumsum(counts)[:-1])

    @cached_property
    def _bits(self) -> NDArray[np.uint64]:
        """A number for each attribute, 0 for none; the sums over different sets of attributes differ."""
        count = len(self.types) - 1
        if count > _MOST_BITS:
            own = generator(0).integers(0, 2**63, size=count, dtype=np.uint64)
        else:
            own = np.left_shift(np.uint64(1), np.arange(count, dtype=np.uint64))
        return np.append(own, np.uint64(0))

    @cached_property
    def _marks(self) -> NDArray[np.uint64]:
        """The numbers of the subsets: the sums over their attributes."""
        spread = [int(self._bits[list(own)].sum(dtype=np.uint64)) for own in self.spreads]
        own = self._bits[self.members].sum(axis=1, dtype=np.uint64)
        return np.asarray(own + np.array(spread, dtype=np.uint64)[self.sectors])

    @cached_property
    def _ranks(self) -> NDArray[np.intp]:
        return np.argsort(self._marks)

    def _find(self, marks: NDArray[np.uint64]) -> Places:
        """Return the subsets of given numbers, -1 where there is none."""
        at = np.minimum(np.searchsorted(self._marks, marks, sorter=self._ranks), len(self._ranks) - 1)
        return np.where(self._marks[self._ranks[at]] == marks, self._ranks[at], -1)

    def unions(self, place: int) -> Places:
        """Return the union of a subset with each of its sector; -1 where it has no pieces, or beyond it."""
        own, sector = self.members[place], self.places[self.sectors[place]]
        others = self._bits[self.members[sector]] * ~np.isin(self.members[sector], own)
        found = np.full(len(self.members), -1, dtype=np.int64)
        found[sector] = self._find(self._marks[place] + others.sum(axis=1, dtype=np.uint64))
        return found

    def _pairs(self, sector: int) -> Places:
        """Return all pairs of subsets of a sector whose union has pieces, and that: shape (3, pairs)."""
        if sector not in self._known_pairs:
            parts, places = [], self.places[sector]
            for order in np.unique(self.orders[places]):
                unions = places[self.orders[places] == order]
                for choice in product((1, 2, 3), repeat=int(order)):
                    first, second = (self._inside(unions, [bits & one for bits in choice]) for one in (1, 2))
                    parts.append(np.stack([first, second, unions])[:, (first >= 0) & (second >= 0)])
            self._known_pairs[sector] = np.concatenate(parts, axis=1)
        return self._known_pairs[sector]

    def _inside(self, places: Places, chosen: Sequence[int]) -> Places:
        """Restrict subsets of one order to the chosen free attributes."""
        left_out = self.members[places][:, : len(chosen)][:, [not one for one in chosen]]
        return self._find(self._marks[places] - self._bits[left_out].sum(axis=1, dtype=np.uint64))

    def triples(self, place: int, measured: NDArray[np.bool_]) -> Places:
        """Return C, E, C u E, B u C and B u E of all triples of a subset B, shape (5, triples).

        They are those whose pairs all have pieces together, C and E among those that are measured.
        """
        unions = self.unions(place)
        unions[~measured] = -1
        pairs = self._pairs(int(self.sectors[place]))
        pairs = pairs[:, (unions[pairs[:2]] >= 0).all(axis=0)]
        return np.concatenate([pairs, unions[pairs[:2]]])

    def looks(self, place: int) -> int:
        """Return how many pairs of subsets `triples` looks through."""
        return int((3 ** self.orders[self.places[self.sectors[place]]]).sum())

    def orbits(self, kinds: Places) -> dict[tuple[Hashable, Hashable], list[int]]:
        """Return the first subset and the number of each orbit, if attributes of one kind may be exchanged.

        By the kinds of its free attributes, and of those of its sector.
        """
        found: dict[tuple[Hashable, Hashable], list[int]] = {}
        sectors = self.kinds_of_sectors(kinds)
        for place, sector in enumerate(self.sectors):
            own = tuple(sorted(kinds[self.members[place, : self.orders[place]]].tolist()))
            found.setdefault((own, sectors[sector]), [place, 0])[1] += 1
        return found

    def kinds_of_sectors(self, kinds: Places) -> list[Hashable]:
        """Return the kinds of the symmetric attributes of each sector."""
        return [tuple(sorted(kinds[list(spread)].tolist())) for spread in self.spreads]

    @cached_property
    def _above(self) -> tuple[Places, Places]:
        """All pairs of subsets of which one holds the other: the smaller, and the attributes between."""
        smaller, between = [], []
        for order in np.unique(self.orders):
            places = np.flatnonzero(self.orders == order)
            for chosen in product((0, 1), repeat=int(order)):
                below = self._inside(places, chosen)
                rest = self.members[places]
                rest[:, np.flatnonzero(chosen)] = len(self.types) - 1
                smaller.append(below[below >= 0])
                between.append(rest[below >= 0])
        return np.concatenate(smaller), np.concatenate(between)

    def thetas(self, squares: Array) -> Array:
        """Return for every subset the sum over those that hold it of the squares of the attributes between.

        ``squares`` has one number for each attribute, and 1 for none.
        """
        smaller, between = self._above
        found = np.bincount(smaller, squares[between].prod(axis=1), minlength=len(self.members))
        return np.asarray(found, dtype=np.float64)

    def theta_slopes(self, squares: Array, slopes: Array) -> Array:
        """Return the derivative of slopes'theta by the squares."""
        smaller, between = self._above
        found = np.zeros(len(squares))
        for column in range(between.shape[1]):
            others = squares[np.delete(between, column, axis=1)].prod(axis=1) * slopes[smaller]
            found += np.bincount(between[:, column], others, minlength=len(squares))
        return found
