"""Entries of a workload: what all of them share, and reading one of any form."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, final

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import DomainError, EntryError, Problem, WorkloadError, within
from matrixdp.forms import (
    Form,
    Given,
    Kept,
    ListOf,
    MappingOf,
    Record,
    Schema,
    as_given,
    as_lists,
    describe_value,
    key,
    nearest,
    record,
    register,
    text,
    unknown_name,
)
from matrixdp.language.arrays import ArrayForm
from matrixdp.language.keyed import LevelForm
from matrixdp.language.predicates import PREDICATES, PredicateForm
from matrixdp.queries.arrays import Array
from matrixdp.queries.groups import WEIGHT, Group, check_weights
from matrixdp.queries.predicate_set import Predicates

__all__ = [
    "ENTRIES",
    "ENTRY",
    "MAX_GROUPS",
    "NAMES",
    "PREDICATES_BY_ATTRIBUTE",
    "AttributeSets",
    "Entry",
    "entry_form",
    "find_attribute",
    "narrowed",
    "read_entry",
]

#: An entry stands for at most this many groups.
MAX_GROUPS = 1_000_000

ENTRIES: dict[str, type[Entry]] = {}
"""The forms of entries, by the key that tells them."""

E = TypeVar("E", bound="type[Entry]")


class Called(Protocol):
    """What has a name."""

    @property
    def name(self) -> str: ...


NAMES = ListOf(text("the name of an attribute"), "a list of attributes", once="each attribute once")
PREDICATES_BY_ATTRIBUTE = MappingOf(PREDICATES, "a mapping of attributes to predicate sets")


@record
class Entry(Record, ABC):
    """An entry of a workload, which a domain turns into query groups."""

    error = EntryError

    weight: float = key(WEIGHT, default=1.0)
    weights: Array | None = key(ArrayForm("a finite number above 0 for each query"), default=None)
    name: str | None = key(text("text that is not empty"), default=None)

    @abstractmethod
    def groups(self, domain: Domain) -> list[Group]:
        """Return the query groups, in the order that the user wrote and within it in domain order."""

    def expand(self, domain: Domain) -> list[Group]:
        """Return the query groups, in the order that the user wrote and within it in domain order.

        Raises
        ------
        EntryError
            If an attribute is unknown, or something does not fit its attribute.
        TooLargeError
            If there are too many groups, or explicit queries are too many numbers.
        """
        try:
            return self.groups(domain)
        except DomainError as error:
            raise EntryError(error.problem or str(error)) from None

    def check(self) -> None:
        """Check that the weights are numbers above 0 that neither overflow nor vanish."""
        try:
            check_weights(self.weight, self.weights)
        except WorkloadError as error:
            raise EntryError(error.problem or str(error)) from None

    @classmethod
    def unknown_key(cls, name: object) -> Problem:
        """Return the problem of a key that the entry does not have."""
        if isinstance(name, str) and name in ENTRIES:
            found = f"the key {name!r} beside {cls.main_key()!r}"
            return Problem((name,), found, "one kind an entry; make them two entries")
        return super().unknown_key(name)

    def group_name(self, attributes: Sequence[Called], predicates: Sequence[str], single: bool) -> str:
        """Return what a group is called: the user's name if there is one, else what it asks.

        Parameters
        ----------
        attributes : sequence
            The group's attributes, or what else is called by their names.
        predicates : sequence of str
            What its predicate sets are called; empty to leave them out.
        single : bool
            Whether the entry stands for one group.
        """
        names = ", ".join(attribute.name for attribute in attributes) or "total"
        if self.name is not None:
            return self.name if single else f"{self.name}: {names}"
        return f"{names}: {' x '.join(predicates)}" if predicates and attributes else names

    def weights_for(self, queries: int) -> Array | None:
        """Return the weights of the queries of the only group, in the order of its answers."""
        if self.weights is not None and self.weights.size != queries:
            expected = f"{queries}, one for each query of the group"
            raise EntryError.at(("weights",), f"{self.weights.size} weights", expected)
        return self.weights

    def check_single(self, groups: int) -> None:
        """Check that weights for each query are for one group alone."""
        if self.weights is not None and groups != 1:
            found = f"weights for an entry that stands for {groups} groups"
            expected = "`weights` with one group alone; `weight` holds for all groups of an entry"
            raise EntryError.at(("weights",), found, expected)


def entry_form(form: E) -> E:
    """Add a form of entry to the language, by its first key; a decorator of records."""
    register(ENTRIES, form)
    return form


@final
class _Entries(Form[Entry]):
    """An entry of any form, told by its first key."""

    def read(self, written: object, given: Given) -> Entry:
        if isinstance(written, Entry):
            return written
        keys = list(written) if isinstance(written, Mapping) else []
        for name in keys:
            if name in ENTRIES:
                return ENTRIES[name].read(written, given)
        close = next(filter(None, (nearest(str(name), ENTRIES) for name in keys)), ())
        expected = f"an entry with one of the keys {', '.join(ENTRIES)}"
        raise EntryError.at((), describe_value(written), expected, close)

    def write(self, value: Entry, kept: Kept = as_lists) -> object:
        return value.to_spec(kept)

    def schema(self, definitions: Schema) -> Schema:
        return {"anyOf": [form.schema(definitions) for form in ENTRIES.values()]}


ENTRY = _Entries()
"""The form of entries."""


def read_entry(written: object, given: Given = as_given) -> Entry:
    """Return the entry that a mapping describes.

    Parameters
    ----------
    written : object
        What was written.
    given : callable
        From what stands where an array may stand to a path, lists or the array.

    Raises
    ------
    EntryError
        If it is not an entry, or a part of it is wrong; with the path inside of it.
    TooLargeError
        If a matrix is larger than explicit queries may be.

    Examples
    --------
    >>> read_entry({"product": {"age": "prefix"}, "weight": 2}).to_spec()
    {'product': {'age': 'prefix'}, 'weight': 2.0}
    """
    return ENTRY.read(written, given)


def find_attribute(domain: Domain, name: str) -> Attribute:
    """Return an attribute of the domain."""
    if name not in domain:
        owners = [a.name for a in domain.attributes if name in [level.name for level in a.codebook.levels]]
        if owners:
            form = f"predicate sets, as in `product` and `by`, may be {owners[0]}: {{level: {name}}}"
            expected = f"the attribute {owners[0]!r} with values of its own; {form}"
            raise EntryError.at((), f"{name!r}, a level of {' and '.join(map(repr, owners))}", expected)
        raise EntryError(unknown_name((), name, "an attribute of the domain", domain.names))
    return domain[name]


def narrowed(domain: Domain, names: tuple[str, ...] | None) -> tuple[Attribute, ...]:
    """Return the attributes to combine, in domain order: those under ``attributes``, else all."""
    if names is None:
        return domain.attributes
    for position, name in enumerate(names):
        with within("attributes", position):
            find_attribute(domain, name)
    return tuple(domain[name] for name in domain.sort(names))


@final
@dataclass(frozen=True)
class AttributeSets:
    """Predicate sets put on the attributes of a domain, in domain order.

    Attributes
    ----------
    attributes, predicates, texts
        The attributes, their sets, and what the sets are called.
    """

    attributes: list[Attribute]
    predicates: list[Predicates]
    texts: list[str]

    @classmethod
    def on(cls, domain: Domain, forms: Mapping[str, PredicateForm], under: str) -> AttributeSets:
        predicates: dict[str, Predicates] = {}
        texts: dict[str, str] = {}
        for name, form in forms.items():
            level = None if name in domain else domain.levels.get(name)
            with within(under, name):
                if level is None or form.text != "identity":
                    attribute = find_attribute(domain, name)
                elif level.name in predicates:
                    raise EntryError.at((), f"a level of {level.name!r}, which is asked too", "one of both")
                else:
                    attribute, form = level, LevelForm(level=name)
                predicates[attribute.name], texts[attribute.name] = form.on(attribute), form.text
        names = domain.sort(predicates)
        return cls(
            [domain[name] for name in names],
            [predicates[name] for name in names],
            [texts[name] for name in names],
        )

    @property
    def queries(self) -> int:
        """The number of combinations of one predicate on each attribute."""
        return math.prod(p.count(a.size) for p, a in zip(self.predicates, self.attributes, strict=True))
