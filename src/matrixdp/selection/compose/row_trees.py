"""A tree of values whose levels ask several kinds of queries on other attributes: precisions by row.

These attributes stay whole, as the tree does; the queries split over the subsets A' of all others. For each
A' the rows of a congruence are measured, each over nodes with its own shares (`selection.gram.row_trees`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact import CenteredMatrix, RowTrees, TreeMatrix
from matrixdp.exact.linear import Array, kronecker
from matrixdp.plans import Block
from matrixdp.plans.split import subsets
from matrixdp.queries import ProductGroup, Total, Workload
from matrixdp.selection.gram.row_trees import Kinds, Regular, kinds_bound, regular, row_shares
from matrixdp.selection.gram.trees import Shares, Tree, tree_shares
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.levels import Levels, node_weights

MeasuredClass = tuple[tuple[str, ...], TreeMatrix | RowTrees, float, Sequence[Sequence[Block]]]
"""Attributes, sums over nodes with the unit of their weights, and what each part measures of the others."""

#: log2 of the largest entry of a row, and of the largest weight of a node.
_ENTRY_BITS, _WEIGHT_BITS = 10, 14
#: Squared entries of a query on rows, relative to its length, that are rounding errors.
_NOTHING = 1e-12


@dataclass(frozen=True, eq=False)
class Whole:
    """What levels ask of the attributes that stay whole, for each class of subsets of the others.

    Attributes
    ----------
    levels : Levels
    names : tuple of str
        The attributes, in domain order.
    kinds : Kinds
    marginals : tuple of tuple of tuple of str
        The subsets of each class.
    sizes : dict of str to int
        The sizes of the other attributes.
    """

    levels: Levels
    names: tuple[str, ...]
    kinds: Kinds
    marginals: tuple[tuple[tuple[str, ...], ...], ...]
    sizes: dict[str, int]

    @classmethod
    def of(cls, workload: Workload, levels: Levels) -> Whole | None:
        """Return what levels ask; None where no attribute, or too much, would have to stay whole."""
        domain, asked = workload.domain, [group for group in workload if isinstance(group, ProductGroup)]
        free = {n for g in asked for n, p in g.sets.items() if p.symmetric(domain[n].size) is None}
        names = domain.sort(free - {levels.name})
        sizes = {name: domain[name].size for name in names}
        large = math.prod(sizes.values()) > LIMITS.row_cells_of_trees
        paired = any(domain.width(name) != size for name, size in sizes.items())
        if not names or large or paired or levels.beside or not levels.exact:
            return None
        found: dict[tuple[str, ...], Array] = {}
        for group, places in zip(asked, levels.places, strict=True):
            gram = group.weight * kronecker(group.sets.get(n, Total()).gram(k) for n, k in sizes.items())
            others = tuple(name for name in group.attributes if name not in {*names, levels.name})
            for kept in subsets(others):
                share = math.prod(_share(group, name, name in kept) for name in others)
                if share > 0.0:
                    own = found.setdefault(kept, np.zeros((len(levels.asked), *gram.shape)))
                    own[list(places)] += share * gram
        tree, cells = Tree.of(levels.groups), math.prod(sizes.values())
        entries = cells * max(len(found) * sum(tree.counts), cells * sum(tree.counts[:-1]))
        if entries > LIMITS.row_entries_of_trees:
            return None
        classes: dict[tuple[bytes, int], list[tuple[str, ...]]] = {}
        for kept, own in found.items():
            rank = math.prod(domain[name].size - 1 for name in kept)
            classes.setdefault((own.tobytes(), rank), []).append(kept)
        copies = np.array([len(own) * rank for (_, rank), own in classes.items()], dtype=np.float64)
        grams = np.stack([found[own[0]] for own in classes.values()])
        kinds = Kinds(tree, levels.asked, grams, copies)
        rest = {one.name: one.size for one in domain.attributes}
        return cls(levels, names, kinds, tuple(map(tuple, classes.values())), rest)

    @cached_property
    def _regular(self) -> Regular:
        return regular(self.kinds)

    @cached_property
    def _entries(self) -> list[NDArray[np.int64]]:
        """The rows of each class as integers."""
        largest = (np.abs(own).max(axis=1, keepdims=True) for own in self._regular.rows)
        pairs = zip(self._regular.rows, largest, strict=True)
        return [np.rint(own / most * 2**_ENTRY_BITS).astype(np.int64) for own, most in pairs]

    @cached_property
    def _rows(self) -> tuple[list[Array], Array, Array]:
        """What nodes of each level ask of all rows, their losses, and what they cost in each cell."""
        asked, squares = list[Array](), list[Array]()
        for entries, grams in zip(self._entries, self.kinds.grams, strict=True):
            rows = entries / 2**_ENTRY_BITS
            inverse = np.linalg.pinv(rows)
            squares.append(rows**2)
            own = np.einsum("ir,kir->kr", inverse, grams @ inverse)
            least = _NOTHING * np.einsum("kii->k", grams)[:, None] / squares[-1].sum(axis=1)
            asked.append(np.where(own > least, own, 0.0))
        losses = np.repeat(self.kinds.copies**2, [len(own) for own in self._entries])
        return node_weights(self.levels, np.concatenate(asked, axis=1)), losses, np.concatenate(squares)

    @cached_property
    def _start(self) -> Shares:
        """Shares with one price for each value, and prices of cells that are the same everywhere."""
        weights, losses, squares = self._rows
        costs = squares @ self._regular.cells
        found = tree_shares(self.kinds.tree, weights, losses * costs)
        return Shares(tuple(own / costs for own in found.precisions), found.loss, found.prices)

    @cached_property
    def shares(self) -> Shares:
        """The shares of all nodes and rows."""
        weights, losses, squares = self._rows
        return row_shares(self.kinds.tree, weights, losses, squares, self._start, self._regular.cells)

    @cached_property
    def bound(self) -> float | None:
        """A loss that no Gaussian strategy goes below."""
        return kinds_bound(self.kinds, self._start.prices, self._regular.cells)

    def measured(self) -> Iterator[MeasuredClass]:
        """Yield what is measured of each class."""
        ends = np.cumsum([len(own) for own in self._entries])
        for entries, end, marginals in zip(self._entries, ends, self.marginals, strict=True):
            roots = [np.sqrt(own[:, end - len(entries) : end]) for own in self.shares.precisions]
            depths = np.max([np.where(own.any(axis=0), level, 0) for level, own in enumerate(roots)], axis=0)
            unit = max(float(own.max()) for own in roots) / 2**_WEIGHT_BITS
            weights = [np.rint(own / unit).astype(np.int64) for own in roots[: depths.max() + 1]]
            for level, own in enumerate(weights):
                own[:, depths == level] = np.maximum(own[:, depths == level], 1)
            matrix = RowTrees(self.levels.groups[: len(weights)], tuple(weights), entries)
            others = [
                [Block((name,), CenteredMatrix(self.sizes[name])) for name in marginal]
                for marginal in marginals
            ]
            yield (self.levels.name, *self.names), matrix, unit / 2**_ENTRY_BITS, others


def _share(group: ProductGroup, name: str, kept: bool) -> float:
    """Return what is asked of an attribute at uniform prices: of differences of values, or of the total."""
    place = group.attributes.index(name)
    size, known = group.sizes[place], group.predicates[place].symmetric(group.sizes[place])
    assert known is not None
    own, shared = known
    return own / size if kept else (own + shared * size) / size
