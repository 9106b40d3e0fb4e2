"""Conditions and keys over a domain as one query group: connected sets of attributes, multiplied."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from matrixdp import queries
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import TooLargeError
from matrixdp.queries import DenseGroup, Group, Predicates, ProductGroup, Rows
from matrixdp.queries.predicates import Array
from matrixdp.statements.evaluation import Condition, Key, in_order
from matrixdp.statements.query import Names, Statement

T = TypeVar("T", bound=np.generic)

MOST_ROWS = 50_000_000
"""A result in memory has at most this many rows."""


@final
@dataclass(frozen=True)
class Part:
    """What is asked of one connected set of attributes.

    Attributes
    ----------
    names : tuple of str
        The attributes, in domain order.
    labels : ndarray of int
        The query that each cell counts in, -1 for none.
    combinations : ndarray of int
        The ranks of the keys of each query, of shape (queries, keys).
    keys : tuple of Key
    conditions : tuple of Condition
    """

    names: tuple[str, ...]
    labels: NDArray[np.int64]
    combinations: NDArray[np.int64]
    keys: tuple[Key, ...]
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
            return queries.Total()
        if np.array_equal(self.labels, np.arange(len(self.labels))):
            return queries.Identity()
        codes = inside[np.argsort(self.labels[inside], kind="stable")]
        ends = np.cumsum(np.bincount(self.labels[inside], minlength=self.count))
        starts = np.concatenate([[0], ends[:-1]])
        first, last = codes[starts], codes[ends - 1]
        if np.array_equal(last - first, ends - starts - 1):
            return queries.Ranges(tuple(zip(first.tolist(), last.tolist(), strict=True)))
        return queries.Sets(tuple(tuple(part.tolist()) for part in np.split(codes, ends[:-1])))

    def rows(self, *, alone: bool) -> queries.CellSets:
        """Return the queries written out over the cells; `alone` if nothing is joined to their texts."""
        inside = np.flatnonzero(self.labels >= 0)
        matrix: Array = np.zeros((self.count, len(self.labels)))
        matrix[self.labels[inside], inside] = 1.0
        values = [key.values.to_pylist() for key in self.keys]
        asked = [condition.text for condition in self.conditions]
        alone = alone and len(self.conditions) + len(self.keys) == 1
        texts = []
        for ranks in self.combinations:
            own = [f"{k.text} = {v[rank]}" for k, v, rank in zip(self.keys, values, ranks, strict=True)]
            parts = (f"({part})" if " OR " in part and not alone else part for part in (*asked, *own))
            texts.append(" and ".join(parts))
        return queries.CellSets(matrix, tuple(texts))


@final
@dataclass(frozen=True, eq=False)
class Layout:
    """The queries of some conditions and keys: every combination of one query of each part.

    Attributes
    ----------
    domain : Domain
    parts : tuple of Part
        That of several attributes first, if there is one, then the others in domain order.
    keys : int
        How many keys the statement has.
    """

    domain: Domain
    parts: tuple[Part, ...] = field(repr=False)
    keys: int

    def group(
        self, name: str, statement: Statement, node: exp.Expr, summed: tuple[str, Array] | None = None
    ) -> Group:
        """Return the query group; its queries are row-major over the parts.

        They count records; with an attribute and the numbers that its values stand for, they add those up.
        """
        merged = [part for part in self.parts if len(part.names) > 1]
        single = {
            part.names[0]: named_sets(self.domain[part.names[0]], part.predicates)
            for part in self.parts
            if len(part.names) == 1
        }
        factor: Array | None = None
        if summed is not None:
            attribute, numbers = summed
            if merged and attribute in merged[0].names:
                factor = _spread(self.domain, merged[0].names, (attribute,), numbers)
            else:
                own, size = single.get(attribute, queries.Total()), len(numbers)
                if own.count(size) * size > queries.MAX_EXPLICIT_ENTRIES:
                    found = f"sums of {attribute!r} in {own.count(size):,} sets of its values"
                    raise statement.error(node, found, "fewer of them", kind=TooLargeError)
                single[attribute] = queries.Matrix(own.rows(size) * numbers)
        asked = self.domain.sort(single)
        others = {name: single[name] for name in asked if not isinstance(single[name], queries.Total)}
        names = self.domain.sort([*others, *(name for part in merged for name in part.names)])
        sizes = tuple(self.domain[name].size for name in names)
        if not merged:
            return ProductGroup(name, names, tuple(others.values()), sizes)
        [part] = merged
        count, cells = math.prod(p.count for p in self.parts), math.prod(sizes)
        if count * cells > queries.MAX_EXPLICIT_ENTRIES:
            found = f"{count:,} queries over the {cells:,} cells of {', '.join(names)}"
            expected = (
                f"at most {queries.MAX_EXPLICIT_ENTRIES:,} entries; use fewer attributes, or fewer values"
            )
            raise statement.error(node, found, expected, kind=TooLargeError)
        rows = part.rows(alone=not others)
        content: Rows = rows if factor is None else queries.MatrixRows(rows.values * factor)
        if others:
            places = tuple(names.index(name) for name in part.names)
            content = queries.Crossed(content, places, tuple(others.values()), sizes)
        return DenseGroup(name, names, content, sizes)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """Return the ranks of the keys, of shape (queries, keys), -1 where a query is not within one."""
        counts = tuple(part.count for part in self.parts)
        rows = math.prod(counts)
        if rows > MOST_ROWS:
            found = f"a result of {rows:,} rows"
            raise TooLargeError.at(("sql",), found, f"at most {MOST_ROWS:,}; ask for a part of it")
        codes = np.full((rows, self.keys), -1)
        for axis, part in enumerate(self.parts):
            position = np.arange(rows) // math.prod(counts[axis + 1 :]) % counts[axis]
            for column, part_key in enumerate(part.keys):
                codes[:, part_key.place] = part.combinations[position, column]
        return codes

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """The places of the queries sorted by the keys: the order of the rows of a result."""
        return np.lexsort(self.codes.T[::-1]) if self.keys else np.arange(len(self.codes))

    def queries_of(self, made: Layout) -> NDArray[np.int64]:
        """Return for each query the one of another layout within the same values, -1 where it has none."""
        count = len(self.codes)
        _, ids = np.unique(np.concatenate([self.codes, made.codes]), axis=0, return_inverse=True)
        found = np.full(count + len(made.codes), -1)
        found[ids.ravel()[count:]] = np.arange(len(made.codes))
        return found[ids.ravel()[:count]]


def named_sets(attribute: Attribute, predicates: Predicates) -> Predicates:
    """Return predicates under the names of a level where they are the values of one, in any order."""
    if not attribute.codebook.levels or not isinstance(predicates, queries.Ranges | queries.Sets):
        return predicates
    sets = [tuple(np.flatnonzero(row).tolist()) for row in predicates.rows(attribute.size)]
    for level in attribute.codebook.levels:
        codes = (tuple(sorted(own)) for _, own in level.groups)
        names = dict(zip(codes, level.labels(attribute), strict=True))
        if len(sets) == len(names) and names.keys() == set(sets):
            return queries.Labelled(predicates, tuple(names[own] for own in sets))
    return predicates


def connected(domain: Domain, sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the connected sets of attributes; those of several are merged to one, which comes first."""
    merged = {name for names in sets if len(names) > 1 for name in names}
    single = {name for names in sets for name in names} - merged
    return [*([domain.sort(merged)] if merged else []), *((name,) for name in domain.sort(single))]


def _spread(domain: Domain, names: Names, own: Names, array: NDArray[T]) -> NDArray[T]:
    """Broadcast an array over the cells of some attributes to those of more, row-major."""
    sizes = tuple(domain[name].size for name in names)
    shape = tuple(size if name in own else 1 for name, size in zip(names, sizes, strict=True))
    return np.broadcast_to(array.reshape(shape), sizes).ravel()


def part_of(domain: Domain, names: Names, conditions: Sequence[Condition], keys: Sequence[Key]) -> Part:
    """Return the part of conditions and keys on one connected set of attributes."""
    holds = np.ones(domain.cells(names), dtype=bool)
    for condition in conditions:
        holds &= _spread(domain, names, condition.names, condition.holds)
    inside = np.flatnonzero(holds)
    labels = np.where(holds, 0, -1)
    combinations = np.zeros((min(len(inside), 1), 0), dtype=np.int64)
    if keys:
        ranks = np.stack([_spread(domain, names, key.names, key.ranks)[inside] for key in keys], axis=1)
        first, labels[inside] = in_order(ranks)
        combinations = ranks[first]
    return Part(names, labels, combinations, tuple(keys), tuple(conditions))
