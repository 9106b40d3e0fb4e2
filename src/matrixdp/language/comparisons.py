"""Entries of statistics of other entries: shares, ratios, differences, combinations, joint intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

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
    as_lists,
    describe_value,
    key,
    number,
    record,
)
from matrixdp.language.arrays import ArrayForm
from matrixdp.language.entry import ENTRY, NAMES, Entry, entry_form, find_attribute
from matrixdp.language.statistic import StatisticEntry, Statistics, Table, counts_alone
from matrixdp.queries.groups import Group, ProductGroup

__all__ = ["CombinationEntry", "DifferenceEntry", "RatioEntry", "ShareEntry", "SimultaneousEntry"]

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
            expected = "[coefficient, entry]: a number, or a list of one for each query, and an entry"
            raise FormError.at((), describe_value(written), expected)
        factor, entry = written
        with within(0):
            form = _LISTED if not isinstance(factor, int | float) else _NUMBER
            coefficients = form.read(factor, given)
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
_LISTED: Form[Any] = ArrayForm("a finite number, or a list of one for each query")


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

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of all entries."""
        return self.weighted([group for _, groups in self.expanded(domain) for group in groups])

    def expanded(self, domain: Domain) -> list[tuple[Entry, list[Group]]]:
        """Return each entry with its groups, one after the other."""
        found = []
        for place, entry in self.parts():
            with within(*place):
                found.append((entry, entry.expand(domain)))
        return found


def _called(entry: Entry) -> str:
    """Return what an entry of counts is called in words."""
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
            return f"share: {_called(self.share)}"
        of = _called(self.of) if isinstance(self.of, Entry) else ", ".join(self.of)
        return f"share: {_called(self.share)} of {of}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return the counts, and the entry that they are divided by."""
        divided: list[tuple[tuple[str | int, ...], Entry]] = [(("share",), self.share)]
        return [*divided, (("of",), self.of)] if isinstance(self.of, Entry) else divided

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of the counts, and those that they are divided by."""
        if isinstance(self.of, Entry):
            return super().groups(domain)
        with within("share"):
            counts = self.share.expand(domain)
        kept = self.of or ()
        for place, name in enumerate(kept):
            with within("of", place):
                find_attribute(domain, name)
        with within("of"):
            divisors = [_keeping(group, kept) for group in counts]
        distinct = {(group.attributes, group.key()): group for group in divisors}
        return self.weighted([*counts, *distinct.values()])

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
        return f"ratio: {_called(self.ratio.numerator)} over {_called(self.ratio.denominator)}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return both entries."""
        both = self.ratio
        return [(("ratio", "numerator"), both.numerator), (("ratio", "denominator"), both.denominator)]

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
        return f"difference: {_called(self.difference.left)} less {_called(self.difference.right)}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return both entries."""
        both = self.difference
        return [(("difference", "left"), both.left), (("difference", "right"), both.right)]

    def ask(self, statistics: Statistics) -> Table:
        """Return the differences."""
        return statistics.difference(self.difference.left, self.difference.right)


@final
@entry_form
@record
class CombinationEntry(_OfEntries):
    """A linear combination of counts: of each entry, a number times its queries, or one number for each."""

    combination: tuple[tuple[Coefficients, Entry], ...] = key(
        ListOf(_Term(), "a list of at least one [coefficient, entry]", least=1)
    )

    @property
    def text(self) -> str:
        """What is asked, in words."""
        terms = []
        for factor, entry in self.combination:
            size = f"{factor:g}" if isinstance(factor, float) else f"({len(factor)} coefficients)"
            terms.append(f"{size} {_called(entry)}")
        return f"combination: {' + '.join(terms)}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return the entries."""
        return [(("combination", place, 1), entry) for place, (_, entry) in enumerate(self.combination)]

    def ask(self, statistics: Statistics) -> Table:
        """Return the combination."""
        return statistics.combination(self.combination)


@final
@entry_form
@record
class SimultaneousEntry(_OfEntries):
    """The answers to an entry with intervals that all hold at once."""

    simultaneous: Entry = key(ENTRY)

    @property
    def text(self) -> str:
        """What is asked, in words."""
        return f"simultaneous: {_called(self.simultaneous)}"

    def parts(self) -> list[tuple[tuple[str | int, ...], Entry]]:
        """Return the entry."""
        return [(("simultaneous",), self.simultaneous)]

    def ask(self, statistics: Statistics) -> Table:
        """Return the answers."""
        return statistics.simultaneous(self.simultaneous)
