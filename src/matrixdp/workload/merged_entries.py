"""The entries of a workload whose predicates reach over several attributes: disjunctions, sets of cells.

`matrixdp.workload.merged_builders` makes entries from what a user wrote; `expand` turns them into groups.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import DomainError, TooLargeError, WorkloadError
from matrixdp.workload.arrays import MAX_EXPLICIT_ENTRIES
from matrixdp.workload.disjunctions import CellSets, Disjunctions
from matrixdp.workload.entry_error import EntryError, Path, describe_value
from matrixdp.workload.entry_options import Options, domain_order, find_attribute
from matrixdp.workload.groups import DenseGroup, Group
from matrixdp.workload.predicate_form import PredicateForm

__all__ = ["CellsEntry", "DisjunctionEntry"]

Condition = tuple[object, ...]
"""The values of an attribute that a condition allows, as the user wrote them."""


@final
@dataclass(frozen=True, eq=False)
class DisjunctionEntry:
    """Every combination of one predicate from each named attribute's set, joined by OR.

    Parameters
    ----------
    predicates : mapping of str to PredicateForm
        The sets, in the order that the user wrote.
    options : Options
        The weight, weights and name.
    """

    predicates: Mapping[str, PredicateForm]
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
            raise EntryError(
                ("any",), "a predicate with entries other than 0 and 1", "sets of values, joined by OR"
            ) from None
        return [
            DenseGroup(
                self.options.group_name(ordered, [" or ".join(texts)], single=True),
                tuple(a.name for a in ordered),
                content,
                sizes,
                self.options.weight,
                self.options.weights_for(counts, order),
            )
        ]

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        predicates = {name: form.to_spec() for name, form in self.predicates.items()}
        return {"any": predicates} | self.options.to_spec()


@final
@dataclass(frozen=True, eq=False)
class CellsEntry:
    """Predicates over merged attributes: each query is a list of boxes, of which a record must be in one.

    Parameters
    ----------
    queries : tuple of tuple of mapping
        For each query its boxes: the allowed values of some attributes; of the others all are.
    options : Options
        The weight, weights and name.
    """

    queries: tuple[tuple[Mapping[str, Condition], ...], ...]
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
        for row, boxes in enumerate(self.queries):
            for place, box in enumerate(boxes):
                allowed = np.ones(())
                for attribute in attributes:
                    own = np.ones(attribute.size)
                    if attribute.name in box:
                        own = _allowed(attribute, box[attribute.name], ("cells", row, place, attribute.name))
                    allowed = np.multiply.outer(allowed, own)
                rows[row] = np.maximum(rows[row], allowed)
        content = CellSets(rows.reshape(len(rows), cells), tuple(_text(boxes) for boxes in self.queries))
        return [
            DenseGroup(
                self.options.group_name(attributes, ["cells"], single=True),
                tuple(a.name for a in attributes),
                content,
                sizes,
                self.options.weight,
                self.options.weights_for([len(rows)], [0]),
            )
        ]

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        queries = [
            [{name: list(values) for name, values in box.items()} for box in boxes] for boxes in self.queries
        ]
        return {"cells": queries} | self.options.to_spec()


def _allowed(attribute: Attribute, values: Condition, path: Path) -> np.ndarray:
    found = np.zeros(attribute.size)
    for value in values:
        try:
            found[attribute.code_of(value)] = 1.0
        except DomainError as error:
            raise EntryError(
                path, describe_value(value), f"a value of {attribute.name!r} ({error})"
            ) from None
    return found


def _text(boxes: tuple[Mapping[str, Condition], ...]) -> str:
    texts = []
    for box in boxes:
        parts = [f"{name} {' | '.join(str(value) for value in values)}" for name, values in box.items()]
        texts.append(" and ".join(parts))
    return " or ".join(texts)
