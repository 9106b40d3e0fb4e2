"""Conditions and keys over a domain as one query group: connected sets of attributes, multiplied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.queries import (
    MAX_EXPLICIT_ENTRIES,
    CellSets,
    Crossed,
    DenseGroup,
    Group,
    Identity,
    Predicates,
    ProductGroup,
    Ranges,
    Rows,
    Sets,
    Total,
)
from matrixdp.queries.arrays import Array
from matrixdp.statements.evaluation import MOST_CELLS, Key

__all__ = ["MOST_ROWS", "Condition", "GroupedBy", "Layout", "layout"]

MOST_ROWS = 50_000_000
"""A result in memory has at most this many rows."""


@final
@dataclass(frozen=True)
class Condition:
    """A condition at the cells of its attributes, which are in domain order."""

    names: tuple[str, ...]
    holds: NDArray[np.bool_]
    text: str


@final
@dataclass(frozen=True)
class GroupedBy:
    """A key of a statement at the cells of its attributes, which are in domain order."""

    place: int
    names: tuple[str, ...]
    key: Key
    text: str


@final
@dataclass(frozen=True)
class _Part:
    """What is asked of one connected set of attributes.

    Attributes
    ----------
    names, sizes
        The attributes, in domain order.
    labels : ndarray of int
        The query that each cell counts in, -1 for none.
    combinations : ndarray of int
        The ranks of the keys of each query, of shape (queries, keys).
    keys : tuple of GroupedBy
    conditions : tuple of Condition
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    labels: NDArray[np.int64]
    combinations: NDArray[np.int64]
    keys: tuple[GroupedBy, ...]
    conditions: tuple[Condition, ...]

    @property
    def count(self) -> int:
        """The number of queries."""
        return len(self.combinations)

    @cached_property
    def predicates(self) -> Predicates:
        """The queries as a predicate set of the only attribute."""
        inside = np.flatnonzero(self.labels >= 0)
        if self.count == 1 and len(inside) == len(self.labels):
            return Total()
        if np.array_equal(self.labels, np.arange(len(self.labels))):
            return Identity()
        codes = inside[np.argsort(self.labels[inside], kind="stable")]
        ends = np.cumsum(np.bincount(self.labels[inside], minlength=self.count))
        starts = np.concatenate([[0], ends[:-1]])
        first, last = codes[starts], codes[ends - 1]
        if np.array_equal(last - first, ends - starts - 1):
            return Ranges(tuple(zip(first.tolist(), last.tolist(), strict=True)))
        return Sets(tuple(tuple(part.tolist()) for part in np.split(codes, ends[:-1])))

    def rows(self, *, alone: bool) -> CellSets:
        """Return the queries written out over the cells; `alone` if nothing is joined to their texts."""
        inside = np.flatnonzero(self.labels >= 0)
        matrix: Array = np.zeros((self.count, len(self.labels)))
        matrix[self.labels[inside], inside] = 1.0
        values = [key.key.values.to_pylist() for key in self.keys]
        asked = [condition.text for condition in self.conditions]
        texts = []
        for ranks in self.combinations:
            own = [f"{k.text} = {v[rank]}" for k, v, rank in zip(self.keys, values, ranks, strict=True)]
            parts = [*asked, *own]
            texts.append(
                " and ".join(
                    f"({p})" if " OR " in p and not (alone and len(parts) == 1) else p for p in parts
                )
            )
        return CellSets(matrix, tuple(texts))


@final
@dataclass(frozen=True)
class Layout:
    """The queries of some conditions and keys: every combination of one query of each part.

    Attributes
    ----------
    domain : Domain
    parts : tuple of _Part
        That of several attributes first, if there is one, then the others in domain order.
    """

    domain: Domain
    parts: tuple[_Part, ...] = field(repr=False)

    def group(self, name: str) -> Group:
        """Return the query group; its queries are row-major over the parts."""
        merged = [part for part in self.parts if len(part.names) > 1]
        single = [part for part in self.parts if len(part.names) == 1]
        single = [part for part in single if not isinstance(part.predicates, Total)]
        others = {part.names[0]: part.predicates for part in single}
        names = self.domain.sort([*others, *(name for part in merged for name in part.names)])
        sizes = tuple(self.domain[name].size for name in names)
        if not merged:
            return ProductGroup(name, names, tuple(others.values()), sizes)
        [part] = merged
        count, cells = math.prod(p.count for p in self.parts), math.prod(sizes)
        if count * cells > MAX_EXPLICIT_ENTRIES:
            found = f"{count:,} queries over the {cells:,} cells of {', '.join(names)}"
            expected = f"at most {MAX_EXPLICIT_ENTRIES:,} entries; use fewer attributes, or fewer values"
            raise TooLargeError.at(("sql",), found, expected)
        content: Rows = part.rows(alone=not others)
        if others:
            places = tuple(names.index(name) for name in part.names)
            content = Crossed(content, places, tuple(others.values()), sizes)
        return DenseGroup(name, names, content, sizes)

    def codes(self, keys: int) -> NDArray[np.int64]:
        """Return the ranks of the keys, of shape (queries, keys), -1 where a query is not within one."""
        counts = tuple(part.count for part in self.parts)
        rows = math.prod(counts)
        if rows > MOST_ROWS:
            found = f"a result of {rows:,} rows"
            raise TooLargeError.at(("sql",), found, f"at most {MOST_ROWS:,}; ask for a part of it")
        codes = np.full((rows, keys), -1)
        for axis, part in enumerate(self.parts):
            position = np.arange(rows) // math.prod(counts[axis + 1 :]) % counts[axis]
            for column, key in enumerate(part.keys):
                codes[:, key.place] = part.combinations[position, column]
        return codes


def layout(
    domain: Domain, conditions: Sequence[Condition], keys: Sequence[GroupedBy]
) -> Layout | list[Condition]:
    """Return the layout of conditions and keys; or the conditions that no cell meets together.

    Raises
    ------
    TooLargeError
        If conditions connect attributes of too many cells.
    """
    parts = []
    named = [*(item.names for item in conditions), *(item.names for item in keys)]
    for names in _connected(domain, named):
        own = [condition for condition in conditions if set(condition.names) <= set(names)]
        made = _part(domain, names, own, [key for key in keys if set(key.names) <= set(names)])
        if made.count == 0:
            return own
        parts.append(made)
    return Layout(domain, tuple(parts))


def _connected(domain: Domain, sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the connected sets of attributes; those of several are merged to one, which comes first."""
    merged = {name for names in sets if len(names) > 1 for name in names}
    single = {name for names in sets for name in names} - merged
    return [*([domain.sort(merged)] if merged else []), *((name,) for name in domain.sort(single))]


def _part(
    domain: Domain, names: tuple[str, ...], conditions: Sequence[Condition], keys: Sequence[GroupedBy]
) -> _Part:
    sizes = tuple(domain[name].size for name in names)
    cells = math.prod(sizes)
    if len(names) > 1 and cells > MOST_CELLS:
        found = f"conditions that join {', '.join(names)}, {cells:,} cells"
        raise TooLargeError.at(
            ("sql",), found, f"at most {MOST_CELLS:,}; use fewer attributes, or fewer values"
        )

    def spread(own: tuple[str, ...], array: NDArray[np.generic]) -> NDArray[np.generic]:
        shape = tuple(size if name in own else 1 for name, size in zip(names, sizes, strict=True))
        return np.broadcast_to(array.reshape(shape), sizes).ravel()

    holds = np.ones(cells, dtype=bool)
    for condition in conditions:
        holds &= spread(condition.names, condition.holds).astype(bool)
    inside = np.flatnonzero(holds)
    labels = np.where(holds, 0, -1)
    combinations = np.zeros((min(len(inside), 1), 0), dtype=np.int64)
    if keys:
        ranks = np.stack([spread(key.names, key.key.ranks)[inside].astype(np.int64) for key in keys], axis=1)
        _, first, inverse = np.unique(ranks, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty(len(first), dtype=np.int64)
        place[order] = np.arange(len(first))
        labels[inside] = place[inverse.ravel()]
        combinations = ranks[first[order]]
    return _Part(names, sizes, labels, combinations, tuple(keys), tuple(conditions))
