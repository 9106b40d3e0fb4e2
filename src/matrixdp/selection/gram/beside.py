"""Areas that cut across the levels of a tree: measured beside its nodes, and their part of the lower bound.

Families of areas divide every node v of one level, their home, so that below v only its own areas matter.
There the tree has the precisions T, and x = T^-1 B' for the areas B of v and all of v, in one matrix W. With
M = B W, the areas' precisions Phi, K = (Phi^-1 + M)^-1, and the variance S = 1'(T + B' Phi B)^-1 1 that all
below v says of its total, everything above v sees a node whose children's variances sum to S. Given the
variance of that total, the covariance below v is T^-1 - W A W', A = K + (S - variance) k k', where W k is
what a value gets of the total (the identity of Woodbury, with the total measured exactly).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.selection.gram.trees import Levels, Places, Tree, error_of, passes, slopes_of

#: Nodes times areas times classes that are worked on at once.
_ENTRIES = 1 << 22


@final
@dataclass(frozen=True, eq=False)
class Beside:
    """Families of areas that are measured beside a tree, each with one share below every node of a level.

    Attributes
    ----------
    tree : Tree
        The tree.
    home : int
        The level whose nodes the areas of every family divide.
    areas : tuple of ndarray of int64, shape (n,)
        For each family the area of each value, numbered from 0.
    weights : tuple of ndarray, shape (classes,) or (areas, classes)
        For each family the weight of the squared error of each area.

    Examples
    --------
    >>> from matrixdp.selection.gram.trees import tree_shares
    >>> tree = Tree.of([np.zeros(6, dtype=np.int64), np.array([0, 0, 0, 1, 1, 1]), np.arange(6)])
    >>> thirds = Beside(tree, 0, (np.array([0, 0, 1, 1, 2, 2]),), (np.full(1, 4.0),))
    >>> found = tree_shares(tree, [np.ones(1)] * 3, np.ones(1), beside=thirds)
    >>> [own.round(2).ravel().tolist() for own in (*found.precisions[:2], *found.beside)]
    [[0.06], [0.08, 0.08], [0.4]]
    """

    tree: Tree
    home: int
    areas: tuple[Places, ...]
    weights: tuple[Array, ...]
    _known: dict[int, _Layout] = field(init=False, repr=False, default_factory=dict)

    @cached_property
    def depth(self) -> int:
        """The first level that every area consists of nodes of."""
        for level in range(self.home + 1, len(self.tree.order)):
            nodes = self.tree.nodes(level)
            if all((own[_firsts(nodes)][nodes] == own).all() for own in self.areas):
                return level
        raise AssertionError("areas divide nodes of the last level")

    def asks(self, count: int) -> NDArray[np.bool_]:
        """Return which classes are asked of areas."""
        rows = [own.reshape(-1, count) for own in self.weights]
        return np.asarray((np.concatenate(rows) > 0).any(axis=0), dtype=np.bool_)

    def step(self, depth: int) -> int:
        """Return how many classes that end at a level are worked on at once."""
        return max(1, _ENTRIES // sum(one.entries for one in self.layout(depth).parts))

    def layout(self, depth: int) -> _Layout:
        """Return where the areas lie among the nodes of a level."""
        if depth not in self._known:
            self._known[depth] = _Layout.of(self, depth)
        return self._known[depth]

    def asked(self, family: int, classes: Places) -> Array:
        """Return the weights of the areas of a family, shape (classes, areas)."""
        own = self.weights[family]
        shape = (len(classes), int(self.areas[family].max()) + 1)
        weights: Array = np.broadcast_to(own.reshape(-1, own.shape[-1])[:, classes].T, shape)
        return weights

    def raised(self, last: Array, classes: Places, depth: int) -> Array:
        """Return the weights of the last level with those of each node's areas."""
        own = (self.asked(f, classes)[:, nodes] for f, nodes in enumerate(self.layout(depth).areas))
        return np.asarray(last + sum(own))

    def priced(self, prices: Array, classes: Places, depth: int) -> tuple[Array, Array]:
        """Return each area's weight times its prices, by the nodes of a level in it and by areas."""
        rows, every = np.zeros((len(classes), len(prices))), []
        for family, nodes in enumerate(self.layout(depth).areas):
            every.append(self.asked(family, classes) * np.bincount(nodes, prices))
            rows += every[-1][:, nodes]
        return rows, np.concatenate(every, axis=1)

    def error(self, precisions: Levels, weights: Levels, classes: Places) -> Array:
        """Return the error of each class where areas have their weights as precisions."""
        given = [self.asked(family, classes) for family in range(len(self.areas))]
        found: Array = _Solution(self, precisions, given, weights, classes).error
        return found

    def slopes(self, precisions: Levels, weights: Levels, classes: Places) -> tuple[Array, Levels]:
        """Return the error of each class, and slopes: by how much it falls with each precision.

        After the levels come families, with a precision for each node of their home.
        """
        depth = len(weights) - 1
        homes = self.layout(depth).homes
        given = [own[:, there] for own, there in zip(precisions[depth + 1 :], homes, strict=True)]
        return _Solution(self, precisions[: depth + 1], given, weights, classes).slopes()


def _firsts(nodes: Places) -> Places:
    found = np.empty(int(nodes.max()) + 1, dtype=np.int64)
    found[nodes[::-1]] = np.arange(len(nodes))[::-1]
    return found


@dataclass(frozen=True, eq=False)
class _Part:
    """What lies below one node of the home: its places by level, its tree, its areas by family, and B."""

    places: tuple[slice, ...]
    tree: Tree
    own: tuple[Places, ...]
    rows: Array

    @property
    def entries(self) -> int:
        return int(self.rows.size)


@dataclass(frozen=True, eq=False)
class _Layout:
    """Of nodes of one level: the area of each, the home of each area, and what lies below each home."""

    areas: tuple[Places, ...]
    homes: tuple[Places, ...]
    parts: tuple[_Part, ...]

    @classmethod
    def of(cls, beside: Beside, depth: int) -> _Layout:
        tree, home = beside.tree, beside.home
        values = _firsts(tree.nodes(depth))  # one of each node
        areas = tuple(own[values] for own in beside.areas)
        homes, ends = np.arange(tree.counts[home]), []
        for level in range(home, depth):
            homes = np.repeat(homes, tree.children[level])
            ends.append(np.searchsorted(homes, np.arange(tree.counts[home] + 1)))
        parts = []
        for node in range(tree.counts[home]):
            places = tuple(slice(int(own[node]), int(own[node + 1])) for own in ends)
            pairs = zip(tree.children[home + 1 : depth], places, strict=False)
            children = tuple(own[there] for own, there in pairs)
            order = tuple(np.arange(there.stop - there.start) for there in places)
            local = [np.unique(own[places[-1]], return_inverse=True) for own in areas]
            rows = [np.arange(len(own))[:, None] == there for own, there in local]
            every = np.concatenate([*rows, np.ones((1, len(order[-1])), dtype=bool)]).astype(np.float64)
            parts.append(_Part(places, Tree(order, children, order[-1]), tuple(o for o, _ in local), every))
        return cls(areas, tuple(homes[_firsts(own)] for own in areas), tuple(parts))


def _solved(tree: Tree, own: Levels, below: Levels, sums: Sequence[Array | None], last: Array) -> Levels:
    """Return, by level, the totals of T^-1 times what is given at nodes; axes (classes, columns, nodes)."""
    found = [own[-1][:, None] * last]
    totals: Levels = []
    for level in reversed(range(len(below))):
        totals.insert(0, tree.sums(found[0], level))
        given, spread = sums[level], below[level][:, None]
        array = totals[0] if given is None else totals[0] + spread * given
        found.insert(0, array * (own[level][:, None] / spread))
    for level, total in enumerate(totals):
        share = own[level + 1][:, None] / tree.repeats(below[level], level)[:, None]
        found[level + 1] = found[level + 1] + share * tree.repeats(found[level] - total, level)
    return found


class _Solution:
    """The least squares of some classes: first below the nodes of the home, then above."""

    def __init__(
        self, beside: Beside, precisions: Levels, given: Sequence[Array], weights: Levels, classes: Places
    ) -> None:
        home, depth = beside.home, len(precisions) - 1
        self.parts, self.home = beside.layout(depth).parts, home
        asked = [beside.asked(family, classes) for family in range(len(beside.areas))]
        self.below = []
        for part in self.parts:
            areas = [
                np.concatenate([own[:, at] for own, at in zip(every, part.own, strict=True)], axis=1)
                for every in (given, asked)
            ]
            nodes = [
                [own[:, at] for own, at in zip(every[home + 1 :], part.places, strict=True)]
                for every in (precisions, weights)
            ]
            self.below.append(_Below(part, nodes[0], areas[0], nodes[1], areas[1]))
        spread = np.stack([own.spread for own in self.below], axis=1)
        pull = np.stack([own.pull for own in self.below], axis=1)
        self.tree = Tree(beside.tree.order[: home + 1], beside.tree.children[:home], beside.tree.values)
        self.precisions = [*precisions[:home], precisions[home] + 1.0 / spread]
        self.weights = [*weights[:home], weights[home] + pull]
        self.variances = passes(self.tree, self.precisions)[-1]
        self.error = error_of(self.weights, self.variances) + sum(own.error for own in self.below)

    def slopes(self) -> tuple[Array, Levels]:
        _, above = slopes_of(self.tree, self.precisions, self.weights)
        found = [
            own.slopes(self.variances[-1][:, place], above[-1][:, place])
            for place, own in enumerate(self.below)
        ]
        levels = [np.concatenate(level, axis=-1) for level in zip(*(own for own, _ in found), strict=True)]
        areas = zip(*(own for _, own in found), strict=True)
        return self.error, [*above, *levels, *(np.stack(own, axis=1) for own in areas)]


class _Below:
    """One node of the home for some classes: its areas have precisions and weights, the last column is it."""

    def __init__(self, part: _Part, precisions: Levels, given: Array, weights: Levels, asked: Array) -> None:
        self.part, self.precisions, self.weights = part, precisions, weights
        self.own, self.sums, _, variances = passes(part.tree, precisions)
        nothing: list[None] = [None] * len(self.sums)
        self.columns = _solved(part.tree, self.own, self.sums, nothing, part.rows)
        self.asked = np.concatenate([asked, np.zeros((len(asked), 1))], axis=1)
        self.m = self.columns[-1] @ part.rows.T
        root = np.sqrt(given)
        scaled = root[:, :, None] * self.m[:, :-1, :-1] * root[:, None]
        k = root[:, :, None] * np.linalg.inv(np.eye(root.shape[1]) + scaled) * root[:, None]
        self.k = np.zeros_like(self.m)
        self.k[:, :-1, :-1] = (k + k.transpose(0, 2, 1)) / 2.0
        gained = -np.einsum("cij,cj->ci", self.k, self.m[:, -1])
        gained[:, -1] = 1.0
        self.spread = np.einsum("ci,ci->c", self.m[:, -1], gained)
        self.gain = gained / self.spread[:, None]
        self.outer = self.gain[:, :, None] * self.gain[:, None]
        pairs = zip(self.weights, self.columns, strict=True)
        self.n = np.asarray(sum((w[:, None] * x) @ x.transpose(0, 2, 1) for w, x in pairs))
        self.n = self.n + (self.m * self.asked[:, None]) @ self.m
        self.pull = np.einsum("cij,cij->c", self.outer, self.n)
        known = self.k + self.spread[:, None, None] * self.outer
        alone = error_of(weights, variances) + np.einsum("cj,cjj->c", self.asked, self.m)
        self.error = alone - np.einsum("cij,cij->c", known, self.n)

    def slopes(self, variance: Array, slope: Array) -> tuple[Levels, Levels]:
        """Return slopes of nodes, and of families summed over areas, given variance and slope of the home."""
        _, nodes = slopes_of(self.part.tree, self.precisions, self.weights)
        a = self.k + (self.spread - variance)[:, None, None] * self.outer
        q = a @ self.n @ a + (slope - variance**2 * self.pull)[:, None, None] * self.outer
        sums = [w[:, None] * x for w, x in zip(self.weights, self.columns, strict=True)]
        weighed = _solved(self.part.tree, self.own, self.sums, sums[:-1], sums[-1])
        mixed = (a @ self.m) * self.asked[:, None]
        r = q - mixed - mixed.transpose(0, 2, 1)
        r += self.asked[:, None] * np.eye(self.asked.shape[1])
        found = [
            np.maximum(own + (x * (r @ x - 2.0 * (a @ z))).sum(axis=1), 0.0)  # rounding
            for own, x, z in zip(nodes, self.columns, weighed, strict=True)
        ]
        ma = self.m @ a
        areas = np.einsum("cii->ci", self.n) - 2.0 * np.einsum("cij,cji->ci", ma, self.n)
        areas = areas + np.einsum("cij,cji->ci", self.m @ q, self.m)
        ends = np.cumsum([len(own) for own in self.part.own])[:-1]
        families = np.split(np.maximum(areas[:, :-1], 0.0), ends, axis=1)
        return found, [own.sum(axis=1) for own in families]
