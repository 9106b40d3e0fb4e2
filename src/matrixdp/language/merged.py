"""Entries whose predicates reach over several attributes: disjunctions, and sets of cells."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import final

import numpy as np

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, TooLargeError, WorkloadError, within
from matrixdp.forms import (
    LISTS,
    Alone,
    Either,
    Form,
    ListOf,
    MappingOf,
    Record,
    RecordForm,
    key,
    record,
    scalar,
)
from matrixdp.language.entry import PREDICATES_BY_ATTRIBUTE, AttributeSets, entry_form, find_attribute
from matrixdp.language.predicates import PredicateForm
from matrixdp.language.products import MergedEntry
from matrixdp.queries.arrays import MAX_EXPLICIT_ENTRIES, Array
from matrixdp.queries.disjunctions import CellSets, Disjunctions
from matrixdp.queries.groups import Group

__all__ = ["BOX", "CellsEntry", "Condition", "DisjunctionEntry", "Span", "allowed_values"]


@final
@entry_form
@record
class DisjunctionEntry(MergedEntry):
    """Every combination of one predicate of each attribute's set, joined by OR."""

    predicates: Mapping[str, PredicateForm] = key(PREDICATES_BY_ATTRIBUTE, name="any")

    def check(self) -> None:
        super().check()
        count = len(self.predicates)
        if count < 2:
            expected = "at least two to join by OR; `product` asks about one"
            raise EntryError.at(("any",), f"{count} attribute{'s' * (not count)}", expected)

    def groups(self, domain: Domain) -> list[Group]:
        sets = AttributeSets.on(domain, self.predicates, "any")
        sizes = tuple(attribute.size for attribute in sets.attributes)
        try:
            content = Disjunctions(tuple(sets.predicates), sizes)
        except WorkloadError:
            found = "a predicate with entries other than 0 and 1"
            raise EntryError.at(("any",), found, "sets of values, joined by OR") from None
        text = " or ".join(sets.texts)
        return [self.merged_group(domain, sets.attributes, content, text)]


_VALUE = scalar("one value of the attribute, a list of values, or {range: [first, last]}")


@final
@record
class Span(Record):
    """A range of values, by its ends."""

    ends: tuple[object, object] = key(
        ListOf(_VALUE, "a range [first, last]", 2, 2, "a range [first, last] of two values"), name="range"
    )


Condition = tuple[object, ...] | Span
"""The values of an attribute that a box allows, as the user wrote them: listed, or a range."""
Boxes = tuple[Mapping[str, Condition], ...]

_CONDITION: Form[Condition] = Either(
    (
        (lambda value: isinstance(value, Mapping | Span), RecordForm(Span)),
        (lambda value: isinstance(value, LISTS), ListOf(_VALUE, _VALUE.expected, least=1)),
    ),
    Alone(_VALUE),
)
BOX = MappingOf(_CONDITION, "a mapping of attributes to values, {sex: female}", least=1)
_BOXES = ListOf(BOX, "a box, or a list of boxes", least=1, count="at least one box")
_QUERY: Form[Boxes] = Either(((lambda value: isinstance(value, Mapping), Alone(BOX, (0,))),), _BOXES)


@final
@entry_form
@record
class CellsEntry(MergedEntry):
    """Predicates over merged attributes, each a box of cells or a union of boxes."""

    queries: tuple[Boxes, ...] = key(
        ListOf(_QUERY, "a list of queries, each a list of boxes", least=1, count="at least one query"),
        name="cells",
    )

    def groups(self, domain: Domain) -> list[Group]:
        attributes = self._attributes(domain)
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
                with within("cells", row, place):
                    allowed, text = _inside(attributes, box)
                rows[row] = np.maximum(rows[row], allowed)
                found.append(text)
            texts.append(" or ".join(found))
        content = CellSets(rows.reshape(len(rows), cells), tuple(texts))
        return [self.merged_group(domain, attributes, content, "cells")]

    def _attributes(self, domain: Domain) -> list[Attribute]:
        """Return the attributes that a box names, in domain order."""
        named: dict[str, Attribute] = {}
        for row, boxes in enumerate(self.queries):
            for place, box in enumerate(boxes):
                for name in box:
                    with within("cells", row, place, name):
                        named[name] = find_attribute(domain, name)
        return [named[name] for name in domain.sort(named)]


def _inside(attributes: list[Attribute], box: Mapping[str, Condition]) -> tuple[Array, str]:
    """Return which cells are in a box, as entries 0 and 1, and what it asks as text."""
    allowed: Array = np.ones(())
    parts = []
    for attribute in attributes:
        own = np.ones(attribute.size)
        if attribute.name in box:
            with within(attribute.name):
                own, text = allowed_values(attribute, box[attribute.name])
            parts.append(f"{attribute.name} {text}")
        allowed = np.asarray(np.multiply.outer(allowed, own))
    return allowed, " and ".join(parts)


def allowed_values(attribute: Attribute, condition: Condition) -> tuple[Array, str]:
    """Return the values that a condition allows, as entries 0 and 1, and as text."""
    found = np.zeros(len(attribute.all_codes))
    if isinstance(condition, Span):
        with within("range"):
            first, last = attribute.code_range(*condition.ends)
        found[first : last + 1] = 1.0
        return found, attribute.range_label(first, last)
    codes = [attribute.code_of(value) for value in condition]
    found[codes] = 1.0
    return found, " | ".join(attribute.label(code) for code in codes)
