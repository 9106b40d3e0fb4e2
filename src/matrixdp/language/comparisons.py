"""Entries of statistics of other entries: shares, ratios, differences, combinations, joint intervals."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, final

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import EntryError, within
from matrixdp.forms import (
    LISTS,
    Either,
    Form,
    FormError,
    Given,
    Kept,
    ListOf,
    Record,
    RecordForm,
    Schema,
    as_given,
    as_lists,
    describe_value,
    key,
    number,
    record,
)
from matrixdp.language.arrays import ArrayForm, load_array
from matrixdp.language.entry import ENTRY, NAMES, Entry, entry_form, find_attribute
from matrixdp.language.statistic import StatisticEntry, Statistics, Table, counts_alone
from matrixdp.queries.groups import Group, ProductGroup

__all__ = ["CombinationEntry", "DifferenceEntry", "RatioEntry", "ShareEntry", "SimultaneousEntry", "in_words"]

Coefficients = Any
"""One number for all queries of an entry, or one for each of them."""


@final
@record
class RatioParts(Record):
    """The two entries of a ratio."""

    numerator: Entry = key(ENTRY, missing="an entry")
    denominator: Entry = key(ENTRY, missing="an entry")


@final
@record
class DifferenceParts(Record):
    """The two entries of a difference."""

    left: Entry = key(ENTRY, missing="an entry")
    right: Entry = key(ENTRY, missing="an entry")


@final
@dataclass(frozen=True)
class _Term(Form[tuple[Coefficients, Entry]]):
    """A number, or one for each query, and the entry that it multiplies."""

    def read(self, written: object, given: Given) -> tuple[Coefficients, Entry]:
        if not isinstance(written, LISTS) or len(written) != 2:
            expected = "[coefficients, entry]: a number, or a list of one for each query, and an entry"
            raise FormError.at((), describe_value(written), expected)
        factor, entry = written
        with within(0):
            coefficients = _coefficients(factor, given)
        with within(1):
            return coefficients, ENTRY.read(entry, given)

    def write(self, value: tuple[Coefficients, Entry], kept: Kept = as_lists) -> object:
        factor, entry = value
        return [factor if isinstance(factor, float) else kept(factor), ENTRY.write(entry, kept)]

    def schema(self, definitions: Schema) -> Schema:
        factor = {"anyOf": [_NUMBER.schema(definitions), _LISTED.schema(definitions)]}
        return {
            "type": "array",
            "prefixItems": [factor, ENTRY.schema(definitions)],
            "minItems": 2,
            "maxItems": 2,
        }


_NUMBER: Form[Any] = number("a finite number")
_LISTED = ArrayForm("a finite number, a list of one for each query, or a list of such lists")
_ROWS = ArrayForm(_LISTED.expected, axes=2)


def _coefficients(written: object, given: Given) -> Coefficients:
    """Return a number, one for each query, or a row of such for each combination."""
    if isinstance(written, Real):
        return _NUMBER.read(written, given)
    value = given(written)
    if isinstance(value, os.PathLike):
        value = load_array(value)
    nested = isinstance(value, LISTS) and len(value) > 0 and isinstance(value[0], LISTS)
    return (_ROWS if nested else _LISTED).read(value, as_given)


@record
class _OfEntries(StatisticEntry):
    """A statistic of the answers to entries."""

    @abstractmethod
    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return the entries with their places."""

    def check(self) -> None:
        """Check that the entries ask for counts."""
        super().check()
        counts_alone(self.parts())

    #: Whether each entry must stand for one group.
    single = True

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of all entries."""
        return self.weighted([group for groups in self.expanded(domain) for group in groups])

    def expanded(self, domain: Domain) -> list[list[Group]]:
        """Return the groups of each entry, one after the other."""
        expanded = []
        for place, entry in self.parts():
            with within(*place):
                groups = entry.expand(domain)
                if self.single and len(groups) != 1:
                    raise EntryError.at(
                        (), f"an entry of {len(groups)} groups", "one that stands for one group"
                    )
                expanded.append(groups)
        return expanded

    def paired(self, domain: Domain) -> list[Group]:
        """Return the groups of two entries, the second of one query or of as many as the first."""
        [[left], [right]] = self.expanded(domain)
        if right.queries not in (1, left.queries):
            expected = f"1 query, or {left.queries} as there"
            raise EntryError.at(self.parts()[1][0], f"{right.queries} queries", expected)
        return self.weighted([left, right])


def in_words(entry: Entry) -> str:
    """Return what an entry of counts is called: by the user, else by what it asks.

    Examples
    --------
    >>> in_words(ENTRY.read({"product": {"sex": "identity", "age": "prefix"}}, as_given))
    'product {sex: identity, age: prefix}'
    """
    if entry.name is not None:
        return entry.name
    [(form, asked), *_] = entry.to_spec(lambda array: f"{len(array)} rows").items()
    return f"{form} {_flow(asked)}"


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_flow(item)}' for name, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_flow, value))}]"
    return str(value)


@final
@entry_form
@record
class ShareEntry(_OfEntries):
    """Counts as shares: of all records, of those of some attributes' values, or of another entry."""

    share: Entry = key(ENTRY)
    of: tuple[str, ...] | Entry | None = key(
        Either(((lambda value: isinstance(value, LISTS), NAMES),), ENTRY),
        default=None,
        about="the attributes whose counts are divided by, or an entry; all records where it is left out",
    )

    @property
    def text(self) -> str:
        """What is asked, in words."""
        if self.of is None or self.of == ():
            return f"share: {in_words(self.share)}"
        of = in_words(self.of) if isinstance(self.of, Entry) else ", ".join(self.of)
        return f"share: {in_words(self.share)} of {of}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return the counts, and the entry that they are divided by."""
        divided: list[tuple[tuple[str | int, ...], Entry]] = [(("share",), self.share)]
        return [*divided, (("of",), self.of)] if isinstance(self.of, Entry) else divided

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of the counts, and those that they are divided by."""
        if isinstance(self.of, Entry):
            return self.paired(domain)
        [[counts]] = self.expanded(domain)
        kept = self.of or ()
        for place, name in enumerate(kept):
            with within("of", place):
                find_attribute(domain, name)
        with within("of"):
            return self.weighted([counts, _keeping(counts, kept)])

    def ask(self, statistics: Statistics) -> Table:
        """Return the shares."""
        return statistics.share(self.share, of=self.of)


def _keeping(group: Group, names: tuple[str, ...]) -> ProductGroup:
    """Return what a product asks of some of its attributes; the others are totals."""
    if not isinstance(group, ProductGroup):
        if names:
            found = f"{group.name!r}, whose queries are over merged attributes"
            raise EntryError.at((), found, "an entry to divide by")
        return ProductGroup("total", (), (), ())
    missing = [name for name in names if name not in group.attributes]
    if missing:
        found = f"{missing[0]!r}, which {group.name!r} does not ask about"
        raise EntryError.at((), found, "attributes of the entry")
    kept = [place for place, name in enumerate(group.attributes) if name in names]
    attributes = tuple(group.attributes[place] for place in kept)
    return ProductGroup(
        ", ".join(attributes) or "total",
        attributes,
        tuple(group.predicates[place] for place in kept),
        tuple(group.sizes[place] for place in kept),
        group.weight,
    )


@final
@entry_form
@record
class RatioEntry(_OfEntries):
    """The counts of an entry over those of another, query by query."""

    ratio: RatioParts = key(RecordForm(RatioParts))

    @property
    def text(self) -> str:
        """What is asked, in words."""
        return f"ratio: {in_words(self.ratio.numerator)} over {in_words(self.ratio.denominator)}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return both entries."""
        both = self.ratio
        return [(("ratio", "numerator"), both.numerator), (("ratio", "denominator"), both.denominator)]

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of both entries."""
        return self.paired(domain)

    def ask(self, statistics: Statistics) -> Table:
        """Return the ratios."""
        return statistics.ratio(self.ratio.numerator, self.ratio.denominator)


@final
@entry_form
@record
class DifferenceEntry(_OfEntries):
    """The counts of an entry less those of another, query by query."""

    difference: DifferenceParts = key(RecordForm(DifferenceParts))

    @property
    def text(self) -> str:
        """What is asked, in words."""
        return f"difference: {in_words(self.difference.left)} less {in_words(self.difference.right)}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return both entries."""
        both = self.difference
        return [(("difference", "left"), both.left), (("difference", "right"), both.right)]

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of both entries."""
        return self.paired(domain)

    def ask(self, statistics: Statistics) -> Table:
        """Return the differences."""
        return statistics.difference(self.difference.left, self.difference.right)


@final
@entry_form
@record
class CombinationEntry(_OfEntries):
    """A linear combination of counts: of each entry, a number times its queries, or one number for each."""

    combination: tuple[tuple[Coefficients, Entry], ...] = key(
        ListOf(_Term(), "a list of at least one [coefficients, entry]", least=1)
    )

    @property
    def text(self) -> str:
        """What is asked, in words."""
        terms = []
        for factor, entry in self.combination:
            size = f"{factor:g}" if isinstance(factor, float) else f"({np.size(factor)} coefficients)"
            terms.append(f"{size} {in_words(entry)}")
        return f"combination: {' + '.join(terms)}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return the entries."""
        return [(("combination", place, 1), entry) for place, (_, entry) in enumerate(self.combination)]

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of the entries."""
        expanded = self.expanded(domain)
        shapes = [np.atleast_2d(factor).shape for factor, _ in self.combination]
        for place, ((rows, columns), [group]) in enumerate(zip(shapes, expanded, strict=True)):
            if columns != group.queries:
                found, expected = f"{columns} coefficients", f"one for each of {group.queries} queries"
                raise EntryError.at(("combination", place, 0), found, expected)
            if rows != shapes[0][0]:
                expected = f"{shapes[0][0]}, as many as of the first entry"
                raise EntryError.at(("combination", place, 0), f"{rows} rows of coefficients", expected)
        return self.weighted([group for groups in expanded for group in groups])

    def ask(self, statistics: Statistics) -> Table:
        """Return the combination."""
        return statistics.combination(self.combination)


@final
@entry_form
@record
class SimultaneousEntry(_OfEntries):
    """The answers to an entry with intervals that all hold at once."""

    simultaneous: Entry = key(ENTRY)

    single = False

    @property
    def text(self) -> str:
        """What is asked, in words."""
        return f"simultaneous: {in_words(self.simultaneous)}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return the entry."""
        return [(("simultaneous",), self.simultaneous)]

    def ask(self, statistics: Statistics) -> Table:
        """Return the answers."""
        return statistics.simultaneous(self.simultaneous)
