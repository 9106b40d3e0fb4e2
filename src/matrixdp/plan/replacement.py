"""How far a record moves the answers of each part, and how far replacing it by another does: exact integers.

docs/privacy.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact.matrices import MOST_OVERLAPS, column_overlaps
from matrixdp.plan.part import Part

__all__ = ["Moves", "moves"]

Integers = NDArray[np.int64]
Moves = tuple[NDArray[np.object_], NDArray[np.object_]]
Factor = tuple[tuple[str, ...], Integers | None, int]
"""Attributes, the overlaps of their columns or None, and the largest sum of |entry|^power over a column."""

#: Tables that are enumerated hold at most so many integers.
_MOST_ENUMERATED = 2**23
#: Larger sums of products might leave 64 bits.
_LARGEST = 2**60


def moves(domain: Domain, parts: Sequence[Part], power: int) -> Moves:
    """Return what one record adds to the parts, and what replacing it by another changes in them.

    Two tables with a column for each part: sums over its rows of |change|^power. For every record the first
    has a row, and for every two records the second, that is nowhere less than theirs. They are enumerated
    where these are few, or alike in few ways; otherwise each table has one row, of the largest of each part.

    Examples
    --------
    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.plan import Block
    >>> part = Part(("a",), (Block(("a",), IdentityMatrix(5)),), 1.0)
    >>> [table.tolist() for table in moves(Domain({"a": 5}), [part], 2)]
    [[[1]], [[0], [2]]]
    """
    most = [part.column_power_sum(power) for part in parts]
    if max(most) < _LARGEST:
        known: dict[str, Integers | None] = {}
        factors = [_factors(part, power, known) for part in parts]
        found = _enumerated(domain, factors)
        if found is not None:
            return found
        apart = [2 * own - 2 * _least_overlap(few, power) for own, few in zip(most, factors, strict=True)]
    else:
        apart = [2**power * own for own in most]
    return np.array([most], dtype=object), np.array([apart], dtype=object)


def _factors(part: Part, power: int, known: dict[str, Integers | None]) -> list[Factor]:
    """Return the blocks of a part; one with row multipliers is no product, and its own only block."""
    matrices = [block.matrix for block in part.blocks]
    if part.multipliers is None:
        keys = [matrix.digest() for matrix in matrices]
        for key, matrix in zip(keys, matrices, strict=True):
            if key not in known:
                known[key] = matrix.overlaps(power)
        return [
            (block.attributes, known[key], block.matrix.column_power_sum(power))
            for key, block in zip(keys, part.blocks, strict=True)
        ]
    overlaps = None
    if part.rows * math.prod(matrix.columns for matrix in matrices) ** 2 <= MOST_OVERLAPS:
        written = (matrix.written().astype(np.int64) for matrix in matrices)
        rows = reduce(np.kron, written, np.ones((1, 1), dtype=np.int64))
        overlaps = column_overlaps(rows * part.multipliers.reshape(-1, 1), power)
    return [(part.listed, overlaps, part.column_power_sum(power))]


def _least_overlap(factors: list[Factor], power: int) -> int:
    """Return a lower bound on the overlap of two columns of a part: products of the ends of intervals."""
    low = high = 1
    for _, overlaps, most in factors:
        least = (-most if power == 2 else 0) if overlaps is None else int(overlaps.min())
        ends = [one * other for one in (low, high) for other in (least, most)]
        low, high = min(ends), max(ends)
    return low


def _enumerated(domain: Domain, factors: list[list[Factor]]) -> Moves | None:
    """Return the tables of all records and all pairs, or None where that are too many.

    A pair is told by the overlaps of its two records, with themselves and with each other, in each part.
    These are products over sets of attributes that no block has in common, so that they are enumerated set
    by set, those that are alike once.
    """
    kinds = np.ones((1, len(factors), 3), dtype=np.int64)
    for place, few in enumerate(factors):
        kinds[:, place] = math.prod(most for attributes, _, most in few if not attributes)
    for axis in _axes(factors):
        own = [tuple(factor for factor in few if axis.issuperset(factor[0]) and factor[0]) for few in factors]
        keys = [tuple((attributes, id(overlaps)) for attributes, overlaps, _ in few) for few in own]
        distinct = dict(zip(keys, own, strict=True))
        there = _pairs(domain, axis, list(distinct.values()))
        if there is None or len(kinds) * len(there) * len(factors) * 3 > _MOST_ENUMERATED:
            return None
        places = list(distinct)
        there = there[:, [places.index(key) for key in keys]]
        joined = (kinds[:, None] * there[None]).reshape(-1, len(factors) * 3)
        kinds = np.unique(joined, axis=0).reshape(-1, len(factors), 3)
    alone = np.unique(kinds[:, :, 0], axis=0)
    apart = np.unique(kinds[:, :, 0] + kinds[:, :, 1] - 2 * kinds[:, :, 2], axis=0)
    return alone.astype(object), apart.astype(object)


def _axes(factors: list[list[Factor]]) -> list[set[str]]:
    """Return the finest sets of attributes such that every block lies in one."""
    axes: list[set[str]] = []
    for few in factors:
        for attributes, _, _ in few:
            joined = set(attributes).union(*(axis for axis in axes if axis.intersection(attributes)))
            axes = [axis for axis in axes if not axis & joined] + [joined]
    return [axis for axis in axes if axis]


def _pairs(domain: Domain, axis: set[str], distinct: list[tuple[Factor, ...]]) -> Integers | None:
    """Return for the pairs of cells of some attributes the overlaps of each product, shape (pairs, products, 3)."""
    names = domain.sort(axis)
    sizes = [domain[name].size for name in names]
    cells, used = math.prod(sizes), [factor for few in distinct for factor in few]
    if any(overlaps is None for _, overlaps, _ in used):
        return None
    if all(len(overlaps) <= 2 and set(attributes) == axis for attributes, overlaps, _ in used):
        cells, sizes = min(cells, 2), [1] * (len(names) - 1) + [min(cells, 2)]  # one pair stands for all
    if cells**2 * len(distinct) * 3 > _MOST_ENUMERATED:
        return None
    coordinates = dict(zip(names, np.unravel_index(np.arange(cells), sizes), strict=True))
    first, second = np.indices((cells, cells)).reshape(2, -1)
    found = np.ones((cells**2, len(distinct), 3), dtype=np.int64)
    for place, few in enumerate(distinct):
        for attributes, overlaps, _ in few:
            own = [sizes[names.index(name)] for name in attributes]
            index = np.ravel_multi_index([coordinates[name] for name in attributes], own)
            alike = len(overlaps) < math.prod(own)
            for kind, (j, k) in enumerate(((first, first), (second, second), (first, second))):
                a, b = index[j], index[k]
                found[:, place, kind] *= overlaps[0, (a != b).astype(int)] if alike else overlaps[a, b]
    return np.unique(found.reshape(cells**2, -1), axis=0).reshape(-1, len(distinct), 3)
