"""How far a record moves the answers of each part, and how far replacing it by another does: exact integers.

docs/privacy.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact import RowTrees, TreeMatrix
from matrixdp.exact.matrices import MOST_OVERLAPS, column_overlaps
from matrixdp.plans.part import Part

Integers = NDArray[Any]
"""Of 64 bits, or of any width."""
Moves = tuple[NDArray[np.object_], NDArray[np.object_]]
Factor = tuple[tuple[str, ...], Integers | None, int]
"""Attributes, the overlaps of their columns or None, and the largest sum of |entry|^power over a column."""

#: Tables that are enumerated hold at most this many integers.
_MOST_ENUMERATED = 2**22
#: Larger sums of products might leave 64 bits.
_LARGEST = 2**60


def columns(parts: Sequence[Part], power: int) -> NDArray[np.object_]:
    """Return how far records move the parts: sums of |entry|^power, a row for each kind of records.

    No record moves any part further than one of the rows says. There is one, of the largest sums of each
    part, unless parts measure trees over the same values: then one for each kind of values.

    Examples
    --------
    >>> from matrixdp.plans import Block
    >>> levels, leaves = (np.array([0, 0]), np.array([0, 1])), (np.array([1, 3]), np.array([2, 1]))
    >>> trees = [TreeMatrix(levels, (np.array([1]), own)) for own in leaves]
    >>> columns([Part(("a",), (Block(("a",), own),), 1.0) for own in trees], 2).tolist()
    [[2, 5], [10, 2]]
    """
    most = [part.column_power_sum(power) for part in parts]
    found = ((place, _tree(part)) for place, part in enumerate(parts))
    trees = {place: tree for place, tree in found if tree is not None}
    table = np.array([most], dtype=object)
    if len({attributes for attributes, _ in trees.values()}) != 1:
        return table
    sums = [tree.column_sums(power) for _, tree in trees.values()]
    kinds = np.unique(np.stack(sums, axis=1), axis=0)
    table = np.repeat(table, len(kinds), axis=0)
    for place, own in zip(trees, kinds.T, strict=True):
        table[:, place] = own.astype(object) * (most[place] // int(own.max()))
    return table


def _tree(part: Part) -> tuple[tuple[str, ...], TreeMatrix | RowTrees] | None:
    """Return the one block with trees that a part measures, whose rows all count alike."""
    pairs = ((own.attributes, own.matrix) for own in part.blocks)
    found = [(names, matrix) for names, matrix in pairs if isinstance(matrix, TreeMatrix | RowTrees)]
    return found[0] if len(found) == 1 and part.multipliers is None else None


def moves(domain: Domain, parts: Sequence[Part], power: int, joint: tuple[str, ...] = ()) -> Moves:
    """Return the effects on the parts of adding one record, and of replacing it by another.

    Two tables with a column for each part: sums over its rows of |change|^power. For every record the first
    has a row, and for every two records the second, that is nowhere less than theirs. They are enumerated
    where these are few, or alike in few ways; otherwise they are `columns`, and one row of the largest of
    each part.
    A part under one radius stands for all of these, which are on the attributes ``joint``: each record moves
    them by 1, and two different ones by 2.

    Examples
    --------
    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.plans import Block
    >>> part = Part(("a",), (Block(("a",), IdentityMatrix(5)),), 1.0)
    >>> [table.tolist() for table in moves(Domain({"a": 5}), [part], 2)]
    [[[1], [1]], [[2], [0]]]
    """
    most = [part.column_power_sum(power) for part in parts]
    known: dict[str, Integers | None] = {}
    apart: list[Factor] = [(joint, np.eye(2, dtype=np.int64), 1)]
    factors = [factors_of(part, power, known) if part.width is None else apart for part in parts]
    found = _enumerated(domain, factors, int if max(most) < _LARGEST else object)
    if found is not None:
        return found
    between = [2 * own - 2 * _least_overlap(few, power) for own, few in zip(most, factors, strict=True)]
    return columns(parts, power), np.array([between], dtype=object)


def factors_of(part: Part, power: int, known: dict[str, Integers | None]) -> list[Factor]:
    """Return the blocks of a part; one with row multipliers is no product, and its own only block."""
    matrices = [block.matrix for block in part.blocks]
    if part.multipliers is None:
        for matrix in matrices:
            if matrix.digest() not in known:
                known[matrix.digest()] = matrix.overlaps(power)
        own = ((known[matrix.digest()], matrix.column_power_sum(power)) for matrix in matrices)
        return [(block.attributes, *few) for block, few in zip(part.blocks, own, strict=True)]
    overlaps, most = None, part.column_power_sum(power)
    small = most < _LARGEST
    cells = math.prod(matrix.columns for matrix in matrices)
    if part.rows * cells**2 <= (MOST_OVERLAPS if small else MOST_OVERLAPS // 16):
        written = (matrix.written().astype(np.int64) for matrix in matrices)
        rows = reduce(np.kron, written, np.ones((1, 1), dtype=np.int64 if small else object))
        overlaps = column_overlaps(rows * part.multipliers.reshape(-1, 1), power)
    return [(part.listed, overlaps, most)]


def _least_overlap(factors: list[Factor], power: int) -> int:
    """Return a lower bound on the overlap of two columns of a part: products of the ends of intervals."""
    low = high = 1
    for _, overlaps, most in factors:
        least = (-most if power == 2 else 0) if overlaps is None else int(overlaps.min())
        ends = [one * other for one in (low, high) for other in (least, most)]
        low, high = min(ends), max(ends)
    return low


def _enumerated(domain: Domain, factors: list[list[Factor]], dtype: type) -> Moves | None:
    """Return the tables of all records and all pairs, or None where that are too many.

    A pair is told by the overlaps of its two records, with themselves and with each other, in each part.
    These are products over sets of attributes that no block has in common, so that pairs are enumerated set
    by set, those that are alike once.
    """
    kinds: NDArray[Any] = np.ones((1, len(factors), 3), dtype=dtype)
    for place, few in enumerate(factors):
        kinds[:, place] = math.prod(most for attributes, _, most in few if not attributes)
    for axis in _axes(factors):
        own = {_key(factor): factor for few in factors for factor in few if axis.intersection(factor[0])}
        found = _pairs(domain, axis, list(own.values()))
        if found is None or len(kinds) * len(found) * len(factors) * 3 > _MOST_ENUMERATED:
            return None
        places, found = {key: place for place, key in enumerate(own)}, found.astype(dtype)
        of = ([places[key] for key in map(_key, few) if key in places] for few in factors)
        there = np.stack([found[:, some].prod(axis=1) for some in of], axis=1)
        kinds = (kinds[:, None] * there[None]).reshape(-1, len(factors), 3)
    one, other, both = np.moveaxis(kinds.astype(object), 2, 0)
    return one, one + other - 2 * both


def _key(factor: Factor) -> tuple[tuple[str, ...], int]:
    return factor[0], id(factor[1])


def _axes(factors: list[list[Factor]]) -> list[set[str]]:
    """Return the finest sets of attributes such that every block lies in one."""
    axes: list[set[str]] = []
    for few in factors:
        for attributes, _, _ in few:
            joined = set(attributes).union(*(axis for axis in axes if axis.intersection(attributes)))
            axes = [axis for axis in axes if not axis & joined] + [joined]
    return [axis for axis in axes if axis]


def _pairs(domain: Domain, axis: set[str], factors: list[Factor]) -> Integers | None:
    """Return the overlaps of factors for pairs of cells of their attributes, shape (pairs, factors, 3)."""
    names = domain.sort(axis)
    sizes = [domain[name].size for name in names]
    cells = math.prod(sizes)
    if all(o is not None and len(o) <= 2 and len(own) == len(axis) for own, o, _ in factors):
        # any two cells stand for all
        cells = min(cells, 2)
        sizes = [cells] + [1] * (len(names) - 1)
    if cells**2 * len(factors) * 3 > _MOST_ENUMERATED:
        return None
    coordinates = dict(zip(names, np.unravel_index(np.arange(cells), sizes), strict=True))
    first, second = np.indices((cells, cells)).reshape(2, -1)
    found = np.empty((cells**2, len(factors), 3), dtype=np.int64)
    values = []
    for place, (attributes, overlaps, _) in enumerate(factors):
        if overlaps is None:
            return None
        own = [sizes[names.index(name)] for name in attributes]
        index = np.ravel_multi_index([coordinates[name] for name in attributes], own)
        alike = len(overlaps) < math.prod(own)
        different, codes = np.unique(overlaps, return_inverse=True)
        overlaps = codes.reshape(overlaps.shape)
        values.append(different)
        for kind, (j, k) in enumerate(((first, first), (second, second), (first, second))):
            a, b = index[j], index[k]
            found[:, place, kind] = overlaps[0, (a != b).astype(int)] if alike else overlaps[a, b]
    found = np.unique(found.reshape(cells**2, -1), axis=0).reshape(-1, len(factors), 3)
    return np.stack([own[found[:, place]] for place, own in enumerate(values)], axis=1)
