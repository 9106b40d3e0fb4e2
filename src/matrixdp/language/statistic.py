"""Entries that ask for derived statistics: what all of them share, and whom they are put to."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, within
from matrixdp.forms import key, record
from matrixdp.language.combinations import IDENTITY, Axis, named_axis
from matrixdp.language.entry import ENTRIES, NAMES, Entry, find_attribute
from matrixdp.language.keyed import LevelForm
from matrixdp.language.merged import CONDITIONS, Condition, Span, condition_set
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicate_set import Predicates

__all__ = ["OneAttributeEntry", "StatisticEntry", "Statistics", "Table", "counts_alone", "statistic_keys"]

Table = Any
"""A PyArrow table; PyArrow says nothing of its types."""
Where = Mapping[str, object]


class Statistics(Protocol):
    """What answers entries of statistics: a release, by its methods of the same names."""

    def quantile(
        self, attribute: str, q: Sequence[float], *, by: Sequence[str], where: Where | None
    ) -> Table:
        """Return quantiles of a numeric attribute."""

    def cdf(self, attribute: str, *, by: Sequence[str], where: Where | None) -> Table:
        """Return cumulative counts and shares of a numeric attribute."""

    def mean(self, attribute: str, *, by: Sequence[str], where: Where | None) -> Table:
        """Return the mean of a numeric attribute."""

    def sum(self, attribute: str, *, by: Sequence[str], where: Where | None) -> Table:
        """Return the sum of a numeric attribute."""

    def top(self, attribute: str, k: int, *, by: Sequence[str], where: Where | None) -> Table:
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


@record
class OneAttributeEntry(StatisticEntry):
    """A statistic of one attribute, by others, of the records that others allow."""

    by: tuple[str, ...] = key(NAMES, default=(), about="the attributes or levels, for each of whose values")
    where: Mapping[str, Condition] = key(
        CONDITIONS, default={}, about="which records: values, lists of values or ranges of attributes"
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
        by = f" by {', '.join(self.by)}" if self.by else ""
        where = " and ".join(f"{name} {_words(condition)}" for name, condition in self.where.items())
        return f"{self.called}{by}{f' where {where}' if where else ''}"

    @property
    def conditions(self) -> Where | None:
        """What ``where`` says, as it is written; None where it says nothing."""
        written: Any = CONDITIONS.write(self.where)
        return written or None

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of counts that the statistic is made of."""
        with within(self.main_key()):
            attribute = find_attribute(domain, self.attribute)
            with within(self.attribute):
                needs = self.needs(attribute)
        beside = self._beside(domain, attribute)
        made = []
        for needed in needs:
            sets = beside if needed is None else beside | {attribute.name: (needed, self.predicates_text)}
            made.append(_product(domain, sets, 1.0 if needed is None else self.scale(needed, attribute.size)))
        return self.weighted(made)

    @property
    def predicates_text(self) -> str:
        """What the predicates on the attribute are called in names of groups."""
        return self.main_key()

    @abstractmethod
    def needs(self, attribute: Attribute) -> list[Predicates | None]:
        """Return the predicates that are needed on the attribute, one for each group; None is the count.

        Raises
        ------
        EntryError
            If the attribute has no such statistic.
        """

    def scale(self, needed: Predicates, size: int) -> float:  # noqa: ARG002 - counts are as they are
        """Return the weight with which a group counts beside the others."""
        return 1.0

    def _beside(self, domain: Domain, attribute: Attribute) -> dict[str, tuple[Predicates, str]]:
        """Return the predicates on the attributes of ``by`` and ``where``, and what they are called."""
        sets: dict[str, tuple[Predicates, str]] = {}
        axes: list[Axis] = []
        for place, name in enumerate(self.by):
            with within("by", place):
                axis = named_axis(domain, name, axes)
                if axis.attribute.name == attribute.name:
                    found = f"{name!r}, of which the statistic is"
                    raise EntryError.at((), found, "other attributes")
                form = IDENTITY if axis.level is None else LevelForm(level=axis.level)
                sets[axis.attribute.name] = form.on(axis.attribute), form.text
            axes.append(axis)
        for name, condition in self.where.items():
            with within("where", name):
                if name in sets or name == attribute.name:
                    found = "an attribute of the statistic itself" if name not in sets else "one of `by`, too"
                    raise EntryError.at((), found, "other attributes")
                allowed = condition_set(find_attribute(domain, name), condition)
                sets[name] = allowed, allowed.describe(domain[name])[0]
        return sets


def _words(condition: Condition) -> str:
    if isinstance(condition, Span):
        return f"{condition.ends[0]}..{condition.ends[1]}"
    return " | ".join(map(str, condition))


def _product(domain: Domain, sets: Mapping[str, tuple[Predicates, str]], weight: float) -> ProductGroup:
    names = domain.sort(sets)
    texts = " x ".join(sets[name][1] for name in names)
    return ProductGroup(
        f"{', '.join(names)}: {texts}" if names else "total",
        tuple(names),
        tuple(sets[name][0] for name in names),
        tuple(domain[name].size for name in names),
        weight,
    )


def statistic_keys() -> tuple[str, ...]:
    """Return the keys that entries of statistics are told by."""
    return tuple(name for name, form in ENTRIES.items() if issubclass(form, StatisticEntry))


def counts_alone(entries: Iterable[tuple[tuple[str | int, ...], Entry]]) -> None:
    """Check that entries, each with its place, ask for counts and are no statistics themselves."""
    for place, entry in entries:
        if isinstance(entry, StatisticEntry):
            found = f"a statistic, `{entry.main_key()}`"
            raise EntryError.at(place, found, "an entry of counts, such as {marginals: [[sex]]}")
