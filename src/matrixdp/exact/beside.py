"""Areas that cut across the levels of a tree of values, measured beside its nodes: their least squares.

Every area lies in one node of the level that is their home. With T what the nodes below it say, B the areas,
weights D and U = T^-1 B', all of it says T^-1 - U K U' of the values there, K = D (I + D B U D)^-1 D, by the
identity of Woodbury; K has a block for each node of the home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from matrixdp.exact.linear import Array

Integers = NDArray[np.int64]
Solve = Callable[[Array], Array]
#: Numbers that are formed at a time.
_BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class Areas:
    """Measured areas, numbered such that those of one node of their home stand together.

    Attributes
    ----------
    home : int
        The finest level of which every area lies in one node; -1: none is.
    homes : ndarray of int64
        The node of the home for each node of the last level.
    sums, totals : sparse matrices
        The sums of nodes of the last level over areas, and over nodes of the home.
    starts, counts : ndarray of int64
        The number of the first area in each node of the home, and how many lie there.
    weights : ndarray
        The weight of each area.

    Examples
    --------
    >>> levels, family = [np.array([0, 0, 1]), np.arange(3)], (np.array([0, 1, 1]), np.array([0, 5]))
    >>> areas = Areas.of(levels, [family])
    >>> areas.home, areas.sums.toarray().tolist()
    (-1, [[0.0, 1.0, 1.0]])
    """

    home: int
    homes: Integers
    sums: Any
    totals: Any
    starts: Integers
    counts: Integers
    weights: Array

    @classmethod
    def of(cls, levels: Sequence[Integers], families: Sequence[tuple[Integers, Integers]]) -> Areas:
        """Return the areas of weight above 0; levels and families have a number for each node of the last."""
        numbers, last = list[Integers](), 0
        for own, weight in families:
            measured = weight > 0
            numbers.append(np.where(measured, last + np.cumsum(measured) - 1, -1)[own])
            last += int(measured.sum())
        every = np.stack(numbers)
        node, area = np.nonzero(every >= 0)[1], every[every >= 0]
        within = np.zeros(last, dtype=np.int64)
        for home in reversed(range(-1, len(levels) - 1)):
            homes = levels[home] if home >= 0 else np.zeros_like(levels[-1])
            within[area] = homes[node]
            if (within[area] == homes[node]).all():
                break
        order = np.argsort(within, kind="stable")
        ones = np.ones(max(len(node), len(homes)))
        place = np.argsort(order)[area]
        sums = scipy.sparse.csr_array((ones[: len(node)], (place, node)), shape=(last, len(homes)))
        totals = scipy.sparse.csr_array((ones[: len(homes)], (homes, np.arange(len(homes)))))
        counts = np.bincount(within, minlength=totals.shape[0])
        weights = np.concatenate([weight[weight > 0] for _, weight in families])[order].astype(np.float64)
        return cls(home, homes, sums, totals, np.cumsum(counts) - counts, counts, weights)

    def columns(self, solve: Solve) -> Iterator[tuple[int, Array]]:
        """Yield U some columns at a time, and the first: column k has the k-th area of every home's node."""
        node = self.sums.indices
        area = np.repeat(np.arange(len(self.weights)), np.diff(self.sums.indptr))
        column = area - self.starts[self.homes[node]]
        width = max(1, _BLOCK // len(self.homes))
        for first in range(0, int(self.counts.max()), width):
            some = (column >= first) & (column < first + width)
            array = np.zeros((len(self.homes), min(width, int(self.counts.max()) - first)))
            array[node[some], column[some] - first] = 1.0
            yield first, solve(array)

    def blocks(self) -> Iterator[tuple[int, slice]]:
        """Yield the nodes of the home with areas, and where these are."""
        for node in np.flatnonzero(self.counts):
            yield int(node), slice(int(self.starts[node]), int(self.starts[node] + self.counts[node]))


@dataclass(frozen=True, eq=False)
class Beside:
    """What areas say beside a tree.

    Attributes
    ----------
    areas : Areas
    k : list of ndarray
        The block of K of each node of the home.
    spread : ndarray
        The variance of the sum of each node of the home from all that is measured below it.
    gain : ndarray
        What each node of the last level gets of that sum.
    """

    areas: Areas
    k: list[Array]
    spread: Array
    gain: Array
    solve: Solve

    @classmethod
    def of(cls, areas: Areas, solve: Solve) -> Beside:
        """Return it, given T^-1 of nodes of the last level."""
        m = np.zeros((len(areas.weights), int(areas.counts.max())))
        for first, columns in areas.columns(solve):
            m[:, first : first + columns.shape[1]] = areas.sums @ columns
        k = [np.zeros((0, 0))] * len(areas.counts)
        for node, own in areas.blocks():
            d = areas.weights[own, None]
            inverse = np.linalg.inv(np.eye(len(d)) + d * m[own, : len(d)] * d.T)
            k[node] = d * ((inverse + inverse.T) / 2.0) * d.T
        one = np.ones((len(areas.homes), 1))
        bare = cls(areas, k, one, one, solve)
        said = bare.corrected(solve(one))
        spread = areas.totals @ said
        return cls(areas, k, spread[:, 0], (said / spread[areas.homes])[:, 0], solve)

    def corrected(self, array: Array) -> Array:
        """Return T^-1 y as what areas make of it."""
        sums = self.areas.sums @ array
        for node, own in self.areas.blocks():
            sums[own] = self.k[node] @ sums[own]
        return np.asarray(array - self.solve(self.areas.sums.T @ sums))

    def forms(self, pair: Integers, node: Integers, entry: Array, homes: Integers) -> tuple[Array, Array]:
        """Return what areas and total take off the variances of queries, and what is asked of the total.

        A pair is a query and a node of the home, ``homes``; entries are at nodes of the last level.
        """
        asked = np.zeros((len(homes), int(self.areas.counts.max())))
        for first, columns in self.areas.columns(self.solve):
            for place, column in enumerate(columns.T, first):
                asked[:, place] = np.bincount(pair, entry * column[node], len(homes))
        found = np.zeros(len(homes))
        order = np.argsort(homes, kind="stable")
        ends = np.searchsorted(homes[order], np.arange(len(self.k) + 1))
        for home, k in enumerate(self.k):
            own = order[ends[home] : ends[home + 1]]
            rows = asked[own, : len(k)]
            found[own] = ((rows @ k) * rows).sum(axis=1)
        total: Array = np.bincount(pair, entry * self.gain[node], len(homes)).astype(np.float64)
        if self.areas.home >= 0:
            found += self.spread[homes] * total**2
        return found, total
