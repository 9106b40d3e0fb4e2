"""The entries of a workload whose predicates reach over several attributes: disjunctions, sets of cells.

`matrixdp.queries.merged_builders` makes entries from what a user wrote; `expand` turns them into groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from matrixdp.domain import Attribute, Domain
from matrixdp.domain.canonical import describe_value
from matrixdp.errors import DomainError, EntryError, Path, TooLargeError, WorkloadError
from matrixdp.queries.arrays import MAX_EXPLICIT_ENTRIES
from matrixdp.queries.crossed import merged_group
from matrixdp.queries.disjunctions import CellSets, Disjunctions
from matrixdp.queries.entry_options import Options, domain_order, find_attribute
from matrixdp.queries.groups import Group
from matrixdp.queries.predicate_form import PredicateForm, by_spec
from matrixdp.queries.predicate_set import Array

__all__ = ["CellsEntry", "Condition", "DisjunctionEntry", "Span"]


@final
@dataclass(frozen=True)
class Span:
    """A range of values, as the user wrote its ends."""

    low: object
    high: object


Condition = tuple[object, ...] | Span
"""The values of an attribute that a condition allows, as the user wrote them: listed, or a range."""


@final
@dataclass(frozen=True, eq=False)
class DisjunctionEntry:
    """Every combination of one predicate from each named attribute's set, joined by OR.

    Parameters
    ----------
    predicates : mapping of str to PredicateForm
        The sets, in the order that the user wrote.
    by : mapping of str to PredicateForm
        The sets of other attributes, within which everything is asked.
    options : Options
        The weight, weights and name.
    """

    predicates: Mapping[str, PredicateForm]
    by: Mapping[str, PredicateForm]
    options: Options

    def expand(self, domain: Domain) -> list[Group]:
        """Return the one query group.

        Parameters
        ----------
        domain : Domain
            The attributes.

        Raises
        ------
        EntryError
            If an attribute is unknown, or a set does not fit it or has entries other than 0 and 1.
        TooLargeError
            If the queries over the cells are too many numbers.
        """
        names = tuple(self.predicates)
        attributes = [find_attribute(domain, name, ("any", name)) for name in names]
        sets = [
            form.on(attribute, ("any", attribute.name))
            for attribute, form in zip(attributes, self.predicates.values(), strict=True)
        ]
        order = domain_order(domain, names)
        counts = [p.count(a.size) for p, a in zip(sets, attributes, strict=True)]
        ordered = [attributes[position] for position in order]
        texts = [self.predicates[a.name].text for a in ordered]
        sizes = tuple(a.size for a in ordered)
        try:
            content = Disjunctions(tuple(sets[position] for position in order), sizes)
        except WorkloadError:
            raise EntryError.at(
                ("any",), "a predicate with entries other than 0 and 1", "sets of values, joined by OR"
            ) from None
        text = " or ".join(texts)
        return [merged_group(domain, ordered, content, text, self.by, self.options, (counts, order))]

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        predicates = {name: form.to_spec() for name, form in self.predicates.items()}
        return {"any": predicates} | by_spec(self.by) | self.options.to_spec()


@final
@dataclass(frozen=True, eq=False)
class CellsEntry:
    """Predicates over merged attributes: each query is a list of boxes, of which a record must be in one.

    Parameters
    ----------
    queries : tuple of tuple of mapping
        For each query its boxes: the allowed values of some attributes; of the others all are.
    by : mapping of str to PredicateForm
        The sets of other attributes, within which everything is asked.
    options : Options
        The weight, weights and name.
    """

    queries: tuple[tuple[Mapping[str, Condition], ...], ...]
    by: Mapping[str, PredicateForm]
    options: Options

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes that a box names, in the order of their first mention."""
        return tuple(dict.fromkeys(name for boxes in self.queries for box in boxes for name in box))

    def expand(self, domain: Domain) -> list[Group]:
        """Return the one query group over the merged attributes.

        Parameters
        ----------
        domain : Domain
            The attributes.

        Raises
        ------
        EntryError
            If an attribute is unknown, or a value is not in its attribute's domain.
        TooLargeError
            If the queries over the cells are too many numbers.
        """
        for row, boxes in enumerate(self.queries):
            for place, box in enumerate(boxes):
                for name in box:
                    find_attribute(domain, name, ("cells", row, place, name))
        order = domain_order(domain, self.names)
        attributes = [domain[self.names[position]] for position in order]
        sizes = tuple(attribute.size for attribute in attributes)
        cells = math.prod(sizes)
        if len(self.queries) * cells > MAX_EXPLICIT_ENTRIES:
            raise TooLargeError(
                f"cells: {len(self.queries)} queries over {cells} cells; the limit is {MAX_EXPLICIT_ENTRIES} "
                "entries. Use fewer queries or attributes"
            )
        rows = np.zeros((len(self.queries), *sizes))
        texts = []
        for row, boxes in enumerate(self.queries):
            found = []
            for place, box in enumerate(boxes):
                allowed, parts = np.ones(()), []
                for attribute in attributes:
                    own = np.ones(attribute.size)
                    if attribute.name in box:
                        path = ("cells", row, place, attribute.name)
                        own, text = _allowed(attribute, box[attribute.name], path)
                        parts.append(f"{attribute.name} {text}")
                    allowed = np.multiply.outer(allowed, own)
                rows[row] = np.maximum(rows[row], allowed)
                found.append(" and ".join(parts))
            texts.append(" or ".join(found))
        content = CellSets(rows.reshape(len(rows), cells), tuple(texts))
        inner = ([len(rows)], [0])
        return [merged_group(domain, attributes, content, "cells", self.by, self.options, inner)]

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        queries = [
            [{name: _written(c) for name, c in box.items()} for box in boxes] for boxes in self.queries
        ]
        return {"cells": queries} | by_spec(self.by) | self.options.to_spec()


def _written(condition: Condition) -> object:
    if isinstance(condition, Span):
        return {"range": [condition.low, condition.high]}
    return list(condition)


def _allowed(attribute: Attribute, condition: Condition, path: Path) -> tuple[Array, str]:
    """Return the values that a condition allows, as entries 0 and 1, and as text."""
    found = np.zeros(attribute.size)
    if isinstance(condition, Span):
        low, high = condition.low, condition.high
        try:
            first, last = attribute.code_range(low, high)
        except DomainError as error:
            raise EntryError.at(
                (*path, "range"), describe_value([low, high]), f"a range of {attribute.name!r} ({error})"
            ) from None
        found[first : last + 1] = 1.0
        return found, attribute.range_label(first, last)
    codes = []
    for value in condition:
        try:
            codes.append(attribute.code_of(value))
        except DomainError as error:
            expected = f"a value of {attribute.name!r} ({error})"
            raise EntryError.at(path, describe_value(value), expected) from None
    found[codes] = 1.0
    return found, " | ".join(attribute.label(code) for code in codes)
