"""Specifications of discoveries, and the files of what they found: domains that others are made from."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, final

import yaml

from matrixdp import forms
from matrixdp.domain import Domain
from matrixdp.domain.rules import number_of
from matrixdp.errors import Problem, SpecificationError, within
from matrixdp.forms import MappingOf, OneOf, Record, RecordForm, Verbatim, key, record
from matrixdp.privacy import Budget, Unit
from matrixdp.specification.keys import PrivacyPart, UnitPart
from matrixdp.texts import Described

#: The most values of a person that may count.
MOST_VALUES = 10_000
_NAME = forms.text("text that is not empty")
_VALUES = forms.whole(f"an integer from 1 to {MOST_VALUES:,}", least=1, most=MOST_VALUES)
_POSITIVE = forms.Accepted(
    "a number above 0",
    lambda written: found if (found := number_of(written)) is not None and found > 0 else None,
    {"type": "number", "exclusiveMinimum": 0},
)
_OF_VALUES = ("max_values", "other", "type", "trim", "null")
_LISTED = (
    "categories",
    "labels",
    "edges",
    "min",
    "max",
    "amount",
    "from",
    "to",
    "size",
    "map",
    "values_from",
)
_OF_BOUNDS = ("bins", "step", "smallest", "largest")


@final
@record
class DiscoveredAttribute(Described):
    """An attribute whose values, or whose bounds, are to be found."""

    error = SpecificationError

    discover: str = key(OneOf(("values", "bounds")), missing="values, or bounds of a numeric column")
    column: str | None = key(_NAME, default=None, about="the table's column, where it has another name")
    share: float = key(_POSITIVE, default=1.0, about="of the budget, relative to the other attributes")
    max_values: int | None = key(
        _VALUES, default=None, about="the most values of a person that count; as many as are read if left out"
    )
    other: str = key(_NAME, default="other", about="the value that counts in place of those not found")
    type: str | None = key(OneOf(("text",)), default=None, about="text: values are compared as they stand")
    trim: bool = key(forms.flag(), default=False, about="whether white space around texts is left out")
    null: str | None = key(_NAME, default=None, about="the label of missing values, which makes them a value")
    bins: int | None = key(
        forms.whole("an integer from 1 to 100,000", least=1, most=100_000),
        default=None,
        about="of equal width; 20 if left out",
    )
    step: float | None = key(_POSITIVE, default=None, about="makes it an amount, of which sums are asked")
    smallest: float = key(_POSITIVE, default=1.0, about="numbers nearer to 0 are not told apart")
    largest: float = key(
        _POSITIVE, default=2.0**32, about="numbers beyond count as this one, and its negative"
    )

    @classmethod
    def unknown_key(cls, name: object) -> Problem:
        """Return the problem of a key that it does not have: values are listed, or discovered."""
        if name in _LISTED:
            expected = "one of them: values that are known are listed, which costs nothing"
            return Problem((str(name),), f"{name} beside discover", expected, code="conflict")
        return super().unknown_key(name)

    def check(self) -> None:
        for name in _OF_BOUNDS if self.discover == "values" else _OF_VALUES:
            if getattr(self, name) != self.keys()[name].default:
                found, expected = f"{name} beside discover: {self.discover}", "it left out"
                raise SpecificationError.at((name,), found, expected, code="conflict")
        if self.bins is not None and self.step is not None:
            raise SpecificationError.at(("step",), "step beside bins", "one of them", code="conflict")
        if not self.smallest * 2**64 >= self.largest > self.smallest:
            expected = "more than `smallest`, by a factor of at most 2^64"
            raise SpecificationError.at(("largest",), f"{self.largest:g}", expected, code="out-of-range")

    def reading(self) -> dict[str, Any]:
        """Return the keys that the attribute in the found domain has, beside its values."""
        spec = self.to_spec()
        kept = ("column", "type", "trim", "null", *Described.keys())
        return {name: spec[name] for name in kept if name in spec}


@final
@record
class WrittenDiscovery(Record):
    """The specification of a discovery."""

    error = SpecificationError
    expected = "a mapping with the keys domain and privacy"

    data: str | None = key(_NAME, default=None, about="the path of the table, or its address")
    table: str | None = key(_NAME, default=None, about="the table of a database")
    quoted_newlines: bool = key(forms.flag(), default=False, about="quotes in CSV files may hold line ends")
    domain: Mapping[str, DiscoveredAttribute] = key(
        MappingOf(RecordForm(DiscoveredAttribute), "a mapping", named="text as a key", least=1),
        missing="the attributes to discover: {word: {discover: values}}",
    )
    privacy: PrivacyPart = key(
        RecordForm(PrivacyPart), missing="the budget of the discovery: {epsilon: 1, delta: 1e-6}"
    )
    unit: UnitPart | None = key(RecordForm(UnitPart), default=None, about="the privacy unit", blank=False)

    def check(self) -> None:
        budget = self.budget
        needy = [name for name, own in self.domain.items() if own.discover == "values"]
        if needy and budget.delta is None:
            expected = (
                "epsilon with delta: a value that only one person has must stay hidden but with a small "
                "probability, which is what delta says, so that without delta no value could ever be told. "
                "Where the values can be known from elsewhere, list them: that costs nothing"
            )
            raise SpecificationError.at(("privacy",), budget.words, expected, code="not-supported")
        if needy and budget.neighbours != "add_remove":
            expected = "add_remove, which discoveries of values are for"
            raise SpecificationError.at(("privacy", "neighbours"), "replace", expected, code="not-supported")
        unit = budget.unit
        for name, own in self.domain.items():
            if unit.id is not None and unit.id in (name, own.column):
                expected = "a column that is not discovered"
                raise SpecificationError.at(("unit", "id"), f"{unit.id!r}", expected, code="conflict")
            if own.discover == "values" and unit.id is None and unit.records > 1:
                found = f"{unit.records} records of a person without the column that names her"
                expected = "{id: COLUMN, max_records: 3}, so that her values can be bounded"
                raise SpecificationError.at(("unit",), found, expected, code="not-supported")
            if self.most(name) > self.reading(name).records:
                key = "max_values of the unit" if name in self.person.per else "max_records"
                expected = f"at most {key}, which is {self.reading(name).records}"
                place = ("domain", name, "max_values")
                raise SpecificationError.at(place, str(self.most(name)), expected, code="out-of-range")

    @property
    def advice(self) -> tuple[str, ...]:
        """Likely mistakes, in sentences."""
        told = "unit: none, so that each record is taken for all records of one person"
        expected = "if somebody may have several, write unit: {id: COLUMN, max_records: 10}"
        return () if self.unit is not None else (f"{told}; {expected}",)

    @property
    def person(self) -> Unit:
        """The privacy unit of the releases to come."""
        return Unit() if self.unit is None else self.unit.unit()

    def reading(self, name: str) -> Unit:
        """Return which values of a person are read: in her first records, or with `per` the first of all."""
        unit = self.person
        if name in unit.per and unit.id is not None:
            return Unit(id=unit.id, per=name, max_values=unit.max_values)
        return Unit(unit.records, unit.id)

    @property
    def budget(self) -> Budget:
        """What may be spent; what `per` says of her records waits for its values."""
        found = self.privacy.budget(Unit(self.person.records, self.person.id))
        if found is None:
            expected = "a budget: a discovery has no targets"
            raise SpecificationError.at(("privacy", "minimize"), "minimize", expected, code="conflict")
        return found

    def most(self, name: str) -> int:
        """Return how many values of a person count."""
        return self.domain[name].max_values or min(self.reading(name).records, MOST_VALUES)

    @property
    def shares(self) -> dict[str, Fraction]:
        """The share of the budget that each attribute has; together 1."""
        given = {name: Fraction(repr(float(own.share))) for name, own in self.domain.items()}
        return {name: share / sum(given.values()) for name, share in given.items()}


# Files of domains that were found.

FORMAT = 1
_PLAIN = re.compile(r"[a-z]+(_[a-z]+)*", re.ASCII)


@final
@record
class FoundDomain(Record):
    """The file that a discovery writes: an ordinary domain, and the record of how it was found."""

    error = SpecificationError
    expected = "the file that `matrixdp discover` wrote, with the keys domain and discovery"

    domain: Mapping[str, Any] = key(
        MappingOf(Verbatim(lambda _: {}), "a mapping", named="text as a key", least=1),
        missing="the attributes that were found",
    )
    out_of_domain: Mapping[str, Any] = key(
        MappingOf(Verbatim(lambda _: {}), "a mapping", named="text as a key"),
        default={},
        about="what becomes of values that were not found",
    )
    discovery: Mapping[str, Any] = key(
        MappingOf(Verbatim(lambda _: {}), "a mapping", named="text as a key"),
        missing="how it was found, and at which cost",
    )


class _Dumper(yaml.SafeDumper):
    """Writes texts in quotes, so that none is read as a number, a date or TODO."""


def _quoted(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = None if _PLAIN.fullmatch(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _quoted)


def found_yaml(found: FoundDomain) -> str:
    """Return the text of the file of a found domain."""
    return yaml.dump(found.to_spec(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def with_found(value: Mapping[Any, Any], files: list[Path], load: Callable[[Path], object]) -> dict[Any, Any]:
    """Return a specification with the attributes of found domains beside its own.

    The rule for values that were not found is that of the file, where the specification says nothing of it.
    """
    own, rules = value.get("domain", {}), value.get("out_of_domain", {})
    domain = dict(own) if isinstance(own, Mapping) else own
    for place, file in enumerate(files):
        with within("domain_from", place):
            found = FoundDomain.read(load(file))
            Domain(dict(found.domain))
        for name, attribute in found.domain.items():
            if isinstance(domain, dict) and not _asks(domain.get(name, {"discover": None})):
                told = f"{name!r}, which {os.fspath(file)!r} has, too"
                expected = "one of them: the attribute as it is listed, or as it was discovered"
                raise SpecificationError.at(("domain", name), told, expected, code="conflict")
            if isinstance(domain, dict):
                domain[name] = attribute
        if isinstance(rules, Mapping):
            rules = {**found.out_of_domain, **rules}
    rest = {name: said for name, said in value.items() if name != "domain_from"}
    return rest | {"domain": domain} | ({"out_of_domain": rules} if rules else {})


def is_discovery(value: object) -> bool:
    """Return whether a document is the specification of a discovery, and not one of releases."""
    domain = value.get("domain") if isinstance(value, Mapping) and "workload" not in value else None
    return isinstance(domain, Mapping) and any(map(_asks, domain.values()))


def _asks(spec: object) -> bool:
    return isinstance(spec, Mapping) and "discover" in spec
