"""Non-negative integers for every area of a tree that add up to those of the larger areas, cell by cell.

They follow from the unbiased estimates and their variances alone, from the total down. So they have the bias
of all non-negative tables, which is told by size and level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError, UnsupportedQueryError
from matrixdp.exact.linear import Array
from matrixdp.measure.measurement import Measurement
from matrixdp.model.likelihood import check_ended
from matrixdp.model.tables import MAX_CELLS, IntegerTable, check_has
from matrixdp.queries import Group, Identity, Predicates, ProductGroup, Workload
from matrixdp.queries.groups import asked_attributes
from matrixdp.queries.predicates import Sets
from matrixdp.selection.problem.levels import Levels, levels_of

Counts = NDArray[np.int64]

#: Children whose next integers are as near but for this are tied.
_TIE = 1e-9
_HALVINGS = 100
#: The classes of estimates by size that drift is told of, each up to the next one's name.
_SIZES = {"below 0": -np.inf, "0 to 5": 0.0, "6 to 50": 5.5, "above 50": 50.5}


def children(estimates: Array, variances: Array, totals: Counts, starts: NDArray[np.intp]) -> Counts:
    """Return the non-negative integers nearest to estimates that add up to given totals.

    In each column and for each parent it minimizes sum_u (x_u - z_u)^2 / s_u over integers x_u >= 0 whose sum
    is X. That is separable and convex, so x_u = max(0, floor(z_u + price s_u + 1/2)) with the price at which
    they add up to X. Ties go to the first children.

    Parameters
    ----------
    estimates, variances : ndarray, shape (children, cells)
        z, and s above 0, of which the ratios among the children of one parent matter.
    totals : ndarray of int64, shape (parents, cells)
        X, not below 0.
    starts : ndarray of int, shape (parents,)
        The first child of each parent; every parent has one.

    Returns
    -------
    ndarray of int64, shape (children, cells)

    References
    ----------
    Greedy by marginal costs is exact: T. Ibaraki and N. Katoh, Resource allocation problems, 1988.

    Examples
    --------
    >>> estimates = np.array([[-2.0, 3.3], [1.0, 0.4], [4.0, 0.2]])
    >>> children(estimates, np.ones((3, 2)), np.array([[3, 4]]), np.array([0])).T.tolist()
    [[0, 0, 3], [3, 1, 0]]
    """
    sizes = np.diff(starts, append=len(estimates))

    def at(price: Array) -> Array:
        own = np.repeat(price, sizes, axis=0)
        own *= variances
        own += estimates
        own += 0.5
        return np.asarray(np.maximum(np.floor(own, out=own), 0.0, out=own))

    def sums(own: Array) -> Array:
        return np.asarray(np.add.reduceat(own, starts, axis=0))

    least = np.minimum.reduceat(variances, starts, axis=0)
    largest = np.maximum.reduceat(variances, starts, axis=0)
    far = np.maximum.reduceat(np.abs(estimates) / variances, starts, axis=0) + 1.0 / least
    low, high = -far, far + (totals + 1) / least  # all are 0, and each is above the total
    left = totals.astype(np.float64)
    for _ in range(_HALVINGS):
        if not ((left > 0) & ((high - low) * largest > _TIE)).any():
            break
        price = (low + high) / 2
        rest = totals - sums(at(price))
        fits = rest >= 0
        low, high, left = np.where(fits, price, low), np.where(fits, high, price), np.where(fits, rest, left)
    found = at(low)
    tied = at(high) - found
    before = np.cumsum(tied, axis=0) - tied
    before -= np.repeat(before[starts], sizes, axis=0)
    found += np.clip(np.repeat(totals - sums(found), sizes, axis=0) - before, 0.0, tied)
    return found.astype(np.int64)


@final
@dataclass(frozen=True, eq=False)
class AreaTable:
    """The full table of some attributes at the values of one with levels, such as areas, which is among them.

    Attributes
    ----------
    measurement : Measurement
    levels : Levels
    names : tuple of str
        In domain order.
    """

    measurement: Measurement
    levels: Levels
    names: tuple[str, ...]

    @classmethod
    def of(cls, measurement: Measurement, workload: Workload) -> AreaTable:
        """Return the largest full table that is asked at the values of an attribute with levels.

        Raises
        ------
        UnsupportedQueryError
            If there is none, other attributes or amounts are asked too, or a series has not ended.
        TooLargeError
            If it has more than `MAX_CELLS` cells.
        """
        check_ended(measurement)
        domain, levels = workload.domain, levels_of(workload)
        if levels is None:
            asked = "the total, the areas of a level or several and each value of one attribute"
            raise _refused(
                f"needs a tree of areas: products that ask for {asked}, and for nothing else of it"
            )
        whole = {
            place
            for place, (level, weights) in enumerate(levels.asked)
            if level == len(levels.groups) - 1 and len(weights) == domain[levels.name].size and weights.all()
        }
        full = [
            asked_attributes(group)
            for group, places in zip(workload, levels.places, strict=True)
            if whole.intersection(places) and _full(group, levels.name)
        ]
        if not full:
            asked = f"at each value of {levels.name!r}"
            raise _refused(f"needs the full table of some attributes {asked}, and the workload asks for none")
        names = max(full, key=len)
        for group in workload:
            check_has(domain, names, asked_attributes(group))
        if domain.cells(names) > MAX_CELLS:
            found = f"the table of {', '.join(names)} has {domain.cells(names)} cells"
            raise TooLargeError(f"{found}; a model makes at most {MAX_CELLS}")
        return cls(measurement, levels, names)

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The values in an order in which those of every area stand together."""
        return np.lexsort(self.levels.groups[::-1])

    @cached_property
    def _firsts(self) -> list[NDArray[np.intp]]:
        """For each level the place of each area's first value in this order."""
        ordered = (groups[self._order] for groups in self.levels.groups)
        return [np.flatnonzero(np.diff(own, prepend=-1)) for own in ordered]

    def _rows(self, answers: Array, areas: int) -> Array:
        """Return a table with a row for each area and a column for each cell of the others."""
        domain = self.measurement.plan.domain
        sizes = [areas if name == self.levels.name else domain[name].size for name in self.names]
        table = np.moveaxis(answers.reshape(sizes), self.names.index(self.levels.name), 0)
        return np.ascontiguousarray(table).reshape(areas, -1)

    def _asked(self, areas: Predicates) -> ProductGroup:
        domain = self.measurement.plan.domain
        sets = tuple(areas if name == self.levels.name else Identity() for name in self.names)
        return ProductGroup("areas", self.names, sets, tuple(domain[name].size for name in self.names))

    @cached_property
    def _leaves(self) -> Array:
        """The estimates at the values, in order."""
        found = self.measurement.estimates.answers(self._asked(Identity()))
        return self._rows(found, len(self._order))[self._order]

    def _variances(self, level: int) -> Array:
        ends = pairwise([*self._firsts[level].tolist(), len(self._order)])
        sets = Sets(tuple(tuple(self._order[a:b].tolist()) for a, b in ends))
        return self._rows(self.measurement.analysis.variances(self._asked(sets)), len(sets.sets))

    def integers(self) -> IntegerTable:
        """Return the integers: the total is the rounded estimate.

        The cells of all areas together add up to it, and those of each area to the cells of the larger one.
        Each distance is in the published standard deviation of its estimate. Given the integer of the larger
        area the variance of what lies within an area would be exact; the two differ only among areas of one
        larger one that were measured unlike, where neither gives less error.
        """
        domain, firsts = self.measurement.plan.domain, self._firsts
        table = np.array([[max(round(float(self._leaves.sum())), 0)]])
        for level, own in enumerate(firsts):
            estimates, variances = np.add.reduceat(self._leaves, own, axis=0), self._variances(level)
            if level == 0:
                table = children(estimates.T, variances.T, table, np.zeros(1, dtype=np.intp)).T
            else:
                table = children(estimates, variances, table, np.searchsorted(own, firsts[level - 1]))
        counts = np.empty_like(table)
        counts[self._order] = table
        others = [domain[name].size for name in self.names if name != self.levels.name]
        counts = np.moveaxis(counts.reshape(-1, *others), 0, self.names.index(self.levels.name))
        return IntegerTable(domain, self.names, np.ascontiguousarray(counts))

    def drift(self, table: IntegerTable) -> list[dict[str, Any]]:
        """Return for each level the mean of integers less estimates, by the size of the estimate.

        ``clipped`` is that of the other repair, over all cells: the values' estimates rounded, 0 where they
        are below, and summed.
        """
        counts = self._rows(table.counts.astype(np.float64), len(self._order))[self._order]
        clipped, found = np.maximum(np.rint(self._leaves), 0.0), []
        edges = [*_SIZES.values(), np.inf]
        for level, own in enumerate(self._firsts):
            estimates = np.add.reduceat(self._leaves, own, axis=0)
            off = np.add.reduceat(counts, own, axis=0) - estimates
            sizes = {}
            for name, (first, end) in zip(_SIZES, pairwise(edges), strict=True):
                within = (estimates >= first - _TIE) & (estimates < end - _TIE)
                if within.any():
                    sizes[name] = {"cells": int(within.sum()), "mean": round(float(off[within].mean()), 4)}
            repaired = float((np.add.reduceat(clipped, own, axis=0) - estimates).mean())
            one = {"level": self._level(level), "areas": len(own), "drift": sizes}
            found.append({**one, "clipped": round(repaired, 4)})
        return found

    def _level(self, level: int) -> str:
        """Return what a level is called: the attribute's own name for it, where it has one."""
        groups, attribute = self.levels.groups[level], self.measurement.plan.domain[self.levels.name]
        if level in (0, len(self.levels.groups) - 1):
            return attribute.name if level else "total"
        sizes = np.bincount(groups)
        for one in attribute.codebook.levels:
            found = [(len(codes), set(groups[list(codes)].tolist())) for _, codes in one.groups]
            if all(len(nodes) == 1 and sizes[nodes.pop()] == size for size, nodes in found):
                return one.name
        return f"{len(sizes)} areas"


def _full(group: Group, areas: str) -> bool:
    """Return whether a group asks for each combination of values of its attributes beside the areas."""
    assert isinstance(group, ProductGroup)
    others = {name: own for name, own in group.sets.items() if name != areas}
    sizes = dict(zip(group.attributes, group.sizes, strict=True))
    keys = (own.key(sizes[name]) == Identity().key(sizes[name]) for name, own in others.items())
    total = set(others).difference(asked_attributes(group))
    return all(same or name in total for name, same in zip(others, keys, strict=True))


def _refused(why: str) -> UnsupportedQueryError:
    return UnsupportedQueryError(f"method 'integers' {why}", "not-supported")
