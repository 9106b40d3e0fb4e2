"""The entries of a workload that stand for products, checked as far as they can be without a domain.

`matrixdp.queries.builders` makes entries from what a user wrote; `expand` turns them into query groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, final

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, Path, TooLargeError
from matrixdp.queries.entry_options import MAX_GROUPS, Options, domain_order, find_attribute, narrowed
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicate_form import PredicateForm
from matrixdp.queries.predicates import Predicates

__all__ = ["CombinationsEntry", "ProductEntry"]

_Chosen = tuple[tuple[Attribute, ...], Sequence[int]]
"""Attributes in the order that the user wrote, and their positions sorted by domain order."""


@final
@dataclass(frozen=True, eq=False)
class CombinationsEntry:
    """Every combination of so many attributes, or listed ones, with a predicate set for each.

    Parameters
    ----------
    key : {"marginals", "kway"}
        What the user called it.
    numbers : tuple of int
        How many attributes to combine; empty if combinations are listed.
    listed : tuple of tuple of str
        Listed combinations, each in the order that the user wrote.
    predicates : PredicateForm or mapping of str to PredicateForm
        One set for all attributes, or one for ``categorical`` and one for ``numeric`` ones.
    attributes : tuple of str, optional
        The attributes to combine; all where it is left out.
    max_cells : int, optional
        The largest number of cells that the attributes of a group may have.
    options : Options
        The weight, weights and name.
    """

    key: Literal["marginals", "kway"]
    numbers: tuple[int, ...]
    listed: tuple[tuple[str, ...], ...]
    predicates: PredicateForm | Mapping[str, PredicateForm]
    attributes: tuple[str, ...] | None
    max_cells: int | None
    options: Options

    def expand(self, domain: Domain) -> list[Group]:
        """Return the query groups, in the order that the user wrote and within it in domain order.

        Parameters
        ----------
        domain : Domain
            The attributes.

        Raises
        ------
        EntryError
            If an attribute is unknown, a value is not in its attribute's domain, there are fewer attributes
            than are to be combined, or no group is left.
        TooLargeError
            If there are more than `MAX_GROUPS` combinations.
        """
        chosen = list(self._listed(domain) if self.listed else self._combined(domain))
        self.options.check_single(len(chosen))
        forms: dict[str, tuple[Predicates, str]] = {}
        groups: list[Group] = []
        for attributes, order in chosen:
            for attribute in attributes:
                if attribute.name not in forms:
                    form, path = self._form(attribute)
                    forms[attribute.name] = (form.on(attribute, path), form.text)
            ordered = tuple(attributes[position] for position in order)
            texts = [] if self.key == "marginals" else [forms[a.name][1] for a in ordered]
            counts = (
                [forms[a.name][0].count(a.size) for a in attributes]
                if self.options.weights is not None
                else []
            )
            groups.append(
                ProductGroup(
                    self.options.group_name(ordered, texts, len(chosen) == 1),
                    tuple(a.name for a in ordered),
                    tuple(forms[a.name][0] for a in ordered),
                    tuple(a.size for a in ordered),
                    self.options.weight,
                    self.options.weights_for(counts, order),
                )
            )
        return groups

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        listed = [list(names) for names in self.listed]
        spec: dict[str, object] = {self.key: listed or list(self.numbers)}
        if self.key == "kway":
            if isinstance(self.predicates, PredicateForm):
                spec["predicates"] = self.predicates.to_spec()
            else:
                spec["predicates"] = {kind: form.to_spec() for kind, form in self.predicates.items()}
        if self.attributes is not None:
            spec["attributes"] = list(self.attributes)
        if self.max_cells is not None:
            spec["max_cells"] = self.max_cells
        return spec | self.options.to_spec()

    def _form(self, attribute: Attribute) -> tuple[PredicateForm, Path]:
        if isinstance(self.predicates, PredicateForm):
            return self.predicates, ("predicates",)
        kind = "numeric" if attribute.numeric else "categorical"
        return self.predicates[kind], ("predicates", kind)

    def _kept(self, chosen: list[_Chosen], smallest: int) -> None:
        if not chosen:
            raise EntryError.at(
                ("max_cells",),
                f"{self.max_cells}, which leaves nothing",
                f"at least {smallest}, the smallest asked for",
            )

    def _listed(self, domain: Domain) -> list[_Chosen]:
        found: list[_Chosen] = []
        for row, names in enumerate(self.listed):
            attributes = tuple(
                find_attribute(domain, name, (self.key, row, position)) for position, name in enumerate(names)
            )
            found.append((attributes, domain_order(domain, names)))
        cells = [math.prod(a.size for a in attributes) for attributes, _ in found]
        limit = math.inf if self.max_cells is None else self.max_cells
        kept = [item for item, size in zip(found, cells, strict=True) if size <= limit]
        self._kept(kept, min(cells))
        return kept

    def _combined(self, domain: Domain) -> list[_Chosen]:
        attributes = narrowed(domain, self.attributes)
        for position, number in enumerate(self.numbers):
            if number > len(attributes):
                raise EntryError.at(
                    (self.key,) if len(self.numbers) == 1 else (self.key, position),
                    f"{number} attributes at a time",
                    f"at most {len(attributes)}, the number of attributes to combine",
                )
        asked = sum(math.comb(len(attributes), number) for number in self.numbers)
        if asked > MAX_GROUPS:
            raise TooLargeError(
                f"{self.key}: found {asked} combinations of {len(attributes)} attributes; expected at most "
                f"{MAX_GROUPS}; narrow them with `attributes`"
            )
        kept: list[_Chosen] = []
        for number in self.numbers:
            order = range(number)
            kept.extend((chosen, order) for chosen in self._small(attributes, number))
        smallest = sorted(attribute.size for attribute in attributes)[: min(self.numbers)]
        self._kept(kept, math.prod(smallest))
        return kept

    def _small(self, attributes: tuple[Attribute, ...], number: int) -> Iterator[tuple[Attribute, ...]]:
        for chosen in combinations(attributes, number):
            if self.max_cells is None or math.prod(a.size for a in chosen) <= self.max_cells:
                yield chosen


@final
@dataclass(frozen=True, eq=False)
class ProductEntry:
    """Every combination of one predicate from each named attribute's set.

    Parameters
    ----------
    predicates : mapping of str to PredicateForm
        The sets, in the order that the user wrote; attributes that are not named are totals.
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
            If an attribute is unknown, or a set does not fit its attribute.
        """
        names = tuple(self.predicates)
        attributes = [find_attribute(domain, name, ("product", name)) for name in names]
        sets = [
            form.on(attribute, ("product", attribute.name))
            for attribute, form in zip(attributes, self.predicates.values(), strict=True)
        ]
        order = domain_order(domain, names)
        counts = [p.count(a.size) for p, a in zip(sets, attributes, strict=True)]
        ordered = [attributes[position] for position in order]
        texts = [self.predicates[a.name].text for a in ordered]
        return [
            ProductGroup(
                self.options.group_name(ordered, texts, single=True),
                tuple(a.name for a in ordered),
                tuple(sets[position] for position in order),
                tuple(a.size for a in ordered),
                self.options.weight,
                self.options.weights_for(counts, order),
            )
        ]

    def to_spec(self) -> dict[str, object]:
        """Return the entry as a mapping with the keys of a specification, arrays as lists."""
        product = {name: form.to_spec() for name, form in self.predicates.items()}
        return {"product": product} | self.options.to_spec()
