"""Entries that ask for derived statistics: what all of them share, and whom they are put to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, within
from matrixdp.forms import LISTS, Alone, Either, Form, key, record
from matrixdp.language.entry import (
    ENTRIES,
    NAMES,
    PREDICATES_BY_ATTRIBUTE,
    AttributeSets,
    Entry,
    find_attribute,
)
from matrixdp.language.merged import BOX, Condition, Span, allowed_values
from matrixdp.language.predicates import NamedPredicates, PredicateForm
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.labelled import Labelled
from matrixdp.queries.predicate_set import Predicates
from matrixdp.queries.predicates import Sets

__all__ = ["OneAttributeEntry", "StatisticEntry", "Statistics", "Table", "counts_alone", "statistic_keys"]

Table = Any
"""A PyArrow table; PyArrow says nothing of its types."""
BY_AND_WHERE = "the values in `by` alone: by: {attribute: {sets: [[value], [value, value]]}}"
"""What is expected where one attribute stands in `by` and in `where`."""
By = tuple[str, ...] | Mapping[str, PredicateForm]
Where = Mapping[str, Condition] | None
Codes = tuple[int, ...]


class Statistics(Protocol):
    """What answers entries of statistics: a release, by its methods of the same names."""

    def quantile(self, attribute: str, q: Sequence[float], *, by: By, where: Where) -> Table:
        """Return quantiles of a numeric attribute."""

    def cdf(self, attribute: str, *, by: By, where: Where) -> Table:
        """Return cumulative counts and shares of a numeric attribute."""

    def mean(self, attribute: str, *, by: By, where: Where) -> Table:
        """Return the mean of a numeric attribute."""

    def sum(self, attribute: str, *, by: By, where: Where) -> Table:
        """Return the sum of a numeric attribute."""

    def top(self, attribute: str, k: int, *, by: By, where: Where) -> Table:
        """Return the values that most records have."""

    def share(self, entry: Any, *, of: Any) -> Table:
        """Return the counts of an entry as shares of others."""

    def ratio(self, numerator: Any, denominator: Any) -> Table:
        """Return the counts of an entry over those of another."""

    def difference(self, left: Any, right: Any) -> Table:
        """Return the counts of an entry less those of another."""

    def combination(self, terms: Any) -> Table:
        """Return a linear combination of counts."""

    def simultaneous(self, entry: Any) -> Table:
        """Return the answers to an entry with intervals that hold all at once."""


@record
class StatisticEntry(Entry):
    """An entry that asks for a statistic of counts; it stands for the query groups that it is made of."""

    @abstractmethod
    def ask(self, statistics: Statistics) -> Table:
        """Return the statistic as a release answers it."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What is asked, in words."""

    @property
    def kind(self) -> str:
        """The name of the statistic, which is the method that answers it."""
        return self.main_key()

    @property
    def title(self) -> str:
        """What the statistic is called: by the user, else by what is asked."""
        return self.text if self.name is None else self.name

    def weighted(self, groups: Sequence[Group]) -> list[Group]:
        """Return groups with the weight, the weights and the name of the entry."""
        self.check_single(len(groups))
        single = len(groups) == 1
        made: list[Group] = []
        for group in groups:
            name = group.name
            if self.name is not None:
                name = self.name if single else f"{self.name}: {group.name}"
            weights = group.query_weights if self.weights is None else self.weights_for(group.queries)
            made.append(replace(group, name=name, weight=group.weight * self.weight, query_weights=weights))
        return made


_BY: Form[By] = Either(
    (
        (lambda value: isinstance(value, Mapping), PREDICATES_BY_ATTRIBUTE),
        (lambda value: isinstance(value, LISTS), NAMES),
    ),
    Alone(NAMES.item),
)
IDENTITY = NamedPredicates("identity")


@record
class OneAttributeEntry(StatisticEntry):
    """A statistic of one attribute, by others, of the records that conditions allow."""

    by: By = key(_BY, default=(), about="for each of which values: attributes, or predicate sets of them")
    where: Mapping[str, Condition] = key(
        BOX, default={}, about="of which records: values, lists of values or ranges of attributes"
    )

    @property
    @abstractmethod
    def attribute(self) -> str:
        """The attribute."""

    @property
    @abstractmethod
    def called(self) -> str:
        """What is asked of the attribute, in words."""

    @property
    def text(self) -> str:
        """What is asked, in words."""
        return self._words(self.called, [f"{name} {_said(said)}" for name, said in self.where.items()])

    def _words(self, asked: str, where: Sequence[str]) -> str:
        """Return what is asked with the attributes of ``by`` and the conditions."""
        by = f" by {', '.join(self.by)}" if self.by else ""
        conditions = f" where {' and '.join(where)}" if where else ""
        return f"{asked}{by}{conditions}"

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of counts that the statistic is made of."""
        with within(self.main_key()):
            attribute = find_attribute(domain, self.attribute)
        codes, conditions, said = self._conditions(domain, attribute)
        with within(self.main_key(), attribute.name):
            needs = self.needs(attribute, codes)
        listed = self.by if isinstance(self.by, Mapping) else dict.fromkeys(self.by, IDENTITY)
        strata = AttributeSets.on(domain, listed, "by")
        for found in strata.attributes:
            if found.name == attribute.name or found.name in conditions:
                named, expected = "of which the statistic is", "other attributes"
                if found.name in conditions:
                    named, expected = "an attribute of `where`", BY_AND_WHERE
                raise EntryError.at(("by",), f"{found.name!r}, {named}", expected)
        beside = {a.name: own for a, own in zip(strata.attributes, strata.predicates, strict=True)}
        made = []
        for needed in needs:
            own = {} if needed is None else {attribute.name: needed}
            sets = conditions | beside | own
            name = self._automatic(domain, own, strata)
            if said or isinstance(needed, Labelled):
                name = self._words("records" if needed is None else self.counted(needed, attribute), said)
            names = domain.sort(sets)
            sizes = tuple(domain[one].size for one in names)
            weight = 1.0 if needed is None else self.scale(needed, attribute.size)
            made.append(ProductGroup(name, tuple(names), tuple(sets[one] for one in names), sizes, weight))
        return self.weighted(made)

    #: What the predicates on the attribute are called in names of groups.
    predicates_text = "identity"

    def counted(self, needed: Predicates, attribute: Attribute) -> str:
        """Return what is counted of the attribute, in words."""
        if isinstance(needed, Labelled):
            return needed.describe(attribute)[0]
        return f"{attribute.name} CDF" if self.predicates_text == "prefix" else attribute.name

    @abstractmethod
    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the predicates that are needed on the attribute, one for each group; None is the count.

        Raises
        ------
        EntryError
            If the attribute has no such statistic.
        """

    def scale(self, needed: Predicates, size: int) -> float:
        """Return the weight with which a group counts beside the others."""
        return 1.0

    def _conditions(
        self, domain: Domain, attribute: Attribute
    ) -> tuple[Codes, dict[str, Predicates], list[str]]:
        """Return which codes of the attribute are asked about, the conditions on others, and all in words."""
        with within(self.main_key(), attribute.name):
            codes = tuple(attribute.all_codes)
        conditions: dict[str, Predicates] = {}
        said = []
        for name, condition in self.where.items():
            with within("where", name):
                inside, words = allowed_values(find_attribute(domain, name), condition)
            allowed = tuple(int(code) for code in np.flatnonzero(inside))
            said.append(f"{name} {words}")
            if name == attribute.name:
                codes = allowed
            else:
                conditions[name] = Sets((allowed,))
        return codes, conditions, said

    def _automatic(self, domain: Domain, own: Mapping[str, Predicates], strata: AttributeSets) -> str:
        """Return what an entry would call a product that the user gave no name."""
        texts = dict(zip((a.name for a in strata.attributes), strata.texts, strict=True))
        texts |= dict.fromkeys(own, self.predicates_text)
        names = domain.sort(texts)
        called = ", ".join(names) or "total"
        plain = set(texts.values()) <= {"identity"}
        return called if plain else f"{called}: {' x '.join(texts[name] for name in names)}"


def _said(condition: Condition) -> str:
    if isinstance(condition, Span):
        return f"{condition.ends[0]}..{condition.ends[1]}"
    return " | ".join(map(str, condition))


def statistic_keys() -> tuple[str, ...]:
    """Return the keys that entries of statistics are told by."""
    return tuple(name for name, form in ENTRIES.items() if issubclass(form, StatisticEntry))


def counts_alone(entries: Iterable[tuple[tuple[str | int, ...], Entry]]) -> None:
    """Check that entries, each with its place, ask for counts and are no statistics themselves."""
    for place, entry in entries:
        if isinstance(entry, StatisticEntry):
            found = f"a statistic, `{entry.main_key()}`"
            raise EntryError.at(place, found, "an entry of counts, such as {marginals: [[sex]]}")
