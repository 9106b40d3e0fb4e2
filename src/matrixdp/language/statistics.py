"""Entries that ask for derived statistics: what all of them share, and whom they are put to."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Generic, Protocol, TypeVar, final

import numpy as np

from matrixdp.domain import Attribute, Bins, Dates, Domain
from matrixdp.errors import EntryError, TooLargeError, within
from matrixdp.forms import (
    LISTS,
    Accepted,
    Alone,
    Either,
    Form,
    FormError,
    Given,
    Kept,
    ListOf,
    MappingOf,
    Record,
    RecordForm,
    Schema,
    as_given,
    as_lists,
    describe_value,
    key,
    number,
    record,
    text,
    whole,
)
from matrixdp.language.entries import (
    BOX,
    ENTRIES,
    ENTRY,
    NAMES,
    PREDICATES_BY_ATTRIBUTE,
    AttributeSets,
    Condition,
    Entry,
    Span,
    allowed_values,
    entry_form,
    find_attribute,
)
from matrixdp.language.predicates import ArrayForm, NamedPredicates, PredicateForm, load_array
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicates import Array, Identity, Matrix, Predicates, Prefix, Ranges, Sets
from matrixdp.queries.structured import Labelled

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


# Entries of statistics of one attribute: quantiles, CDF, mean, sum, and the most frequent values.

T = TypeVar("T")

MAX_VALUES = 4_000
"""Of the attribute of a quantile, a CDF or a list of the top: their square is how much is computed."""
QUARTILES = (0.25, 0.5, 0.75)
"""The quantiles that are meant where none are named."""


def _between(written: object) -> float | None:
    if isinstance(written, bool) or not isinstance(written, Real):
        return None
    return float(written) if 0 < float(written) < 1 else None


_SHARE = Accepted(
    "a number above 0 and below 1",
    _between,
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
)
_SHARES: Form[tuple[float, ...]] = Either(
    ((lambda value: isinstance(value, LISTS), ListOf(_SHARE, _SHARE.expected, least=1)),), Alone(_SHARE)
)
_ATTRIBUTE = text("the name of an attribute")


@final
@dataclass(frozen=True)
class _OfOne(Form[Mapping[str, T]], Generic[T]):
    """One attribute with what is asked of it, or its name alone where that has a default."""

    item: Form[T]
    expected: str
    default: T | None = None

    def read(self, written: object, given: Given) -> Mapping[str, T]:
        if isinstance(written, str) and self.default is not None:
            return {_ATTRIBUTE.read(written, given): self.default}
        named = MappingOf(self.item, self.expected, least=1, count=self.expected).read(written, given)
        if len(named) > 1:
            raise FormError.at((), f"{len(named)} attributes", f"one attribute: {self.expected}")
        return named

    def write(self, value: Mapping[str, T], kept: Kept = as_lists) -> object:
        [(name, item)] = value.items()
        return name if item == self.default else {name: self.item.write(item, kept)}

    def schema(self, definitions: Schema) -> Schema:
        item = self.item.schema(definitions)
        mapping = {"type": "object", "additionalProperties": item, "minProperties": 1, "maxProperties": 1}
        return mapping if self.default is None else {"anyOf": [_ATTRIBUTE.schema(definitions), mapping]}


def check_order(attribute: Attribute) -> None:
    """Check that the values of an attribute have an order.

    Raises
    ------
    EntryError
        If it lists categories, or days of the week.
    """
    if not attribute.numeric:
        found = f"{attribute.name!r}, which lists categories"
        expected = "a numeric attribute: one given by min and max, edges, bins, dates or a size"
        raise EntryError.at((), found, expected)
    if isinstance(attribute, Dates) and attribute.by == "weekday":
        found = f"{attribute.name!r}, whose values are days of the week"
        raise EntryError.at((), found, "values with a first and a last one")


def _ordered(attribute: Attribute, codes: Codes) -> Codes:
    """Return the codes that are asked about and have a place in the order, which null has not."""
    check_order(attribute)
    kept = tuple(code for code in codes if code != attribute.null_code)
    if not kept:
        raise EntryError.at((), "no value but null", "values with an order")
    return kept


def _cumulated(attribute: Attribute, codes: Codes) -> Predicates:
    """Return the counts of the values up to each."""
    kept = _ordered(attribute, codes)
    if len(kept) > MAX_VALUES:
        found = f"{len(kept)} values"
        raise TooLargeError.at((), found, f"at most {MAX_VALUES}; ask for a range of them with `where`")
    if len(kept) == attribute.size:
        return Prefix()
    if kept == tuple(range(kept[0], kept[-1] + 1)):
        return Ranges(tuple((kept[0], code) for code in kept))
    return Sets(tuple(kept[: place + 1] for place in range(len(kept))))


@record
class _Quantiles(OneAttributeEntry):
    """What the two spellings of quantiles share."""

    @property
    @abstractmethod
    def asked(self) -> Mapping[str, tuple[float, ...]]:
        """The attribute, and its quantiles."""

    @property
    def attribute(self) -> str:
        """The attribute."""
        return next(iter(self.asked))

    @property
    def kind(self) -> str:
        """The name of the method."""
        return "quantile"

    @property
    def called(self) -> str:
        """What is asked, in words."""
        shares = self.asked[self.attribute]
        if shares == (0.5,):
            return f"median of {self.attribute}"
        if shares == QUARTILES:
            return f"quartiles of {self.attribute}"
        return f"quantiles of {self.attribute} ({', '.join(f'{share:g}' for share in shares)})"

    predicates_text = "prefix"

    def to_spec(self, kept: Kept = as_lists) -> dict[str, object]:
        """Return the entry as it is written under `quantile`."""
        spec = super().to_spec(kept)
        return {"quantile": spec.pop(self.main_key())} | spec

    def ask(self, statistics: Statistics) -> Table:
        """Return the quantiles."""
        shares = self.asked[self.attribute]
        return statistics.quantile(self.attribute, shares, by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the counts up to each value."""
        return [_cumulated(attribute, codes)]


_QUANTILES: Form[Mapping[str, tuple[float, ...]]] = _OfOne(_SHARES, "{age: [0.25, 0.5, 0.75]}", QUARTILES)


@final
@entry_form
@record
class QuantileEntry(_Quantiles):
    """Quantiles of a numeric attribute."""

    quantile: Mapping[str, tuple[float, ...]] = key(_QUANTILES)

    @property
    def asked(self) -> Mapping[str, tuple[float, ...]]:
        """The attribute, and its quantiles."""
        return self.quantile


@final
@entry_form
@record
class QuantilesEntry(_Quantiles):
    """Quantiles of a numeric attribute; the same as `quantile`."""

    quantiles: Mapping[str, tuple[float, ...]] = key(_QUANTILES)

    @property
    def asked(self) -> Mapping[str, tuple[float, ...]]:
        """The attribute, and its quantiles."""
        return self.quantiles


@final
@entry_form
@record
class CdfEntry(OneAttributeEntry):
    """How many records, and which share of them, are at most each value of a numeric attribute."""

    attribute: str = key(_ATTRIBUTE, name="cdf")

    @property
    def called(self) -> str:
        """What is asked, in words."""
        return f"CDF of {self.attribute}"

    predicates_text = "prefix"

    def ask(self, statistics: Statistics) -> Table:
        """Return the cumulative counts and shares."""
        return statistics.cdf(self.attribute, by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the counts up to each value."""
        return [_cumulated(attribute, codes)]


def value_ends(attribute: Attribute, codes: Codes) -> tuple[Array, Array]:
    """Return the least and the largest number of each value, shape (values,) each; equal for integers.

    Raises
    ------
    EntryError
        If the values are no numbers, or a bin has no end.

    Examples
    --------
    >>> from matrixdp.domain import Bins, Integers
    >>> value_ends(Bins("income", (0, 10, 50)), (0, 1)), value_ends(Integers("age", 1, 3), (0, 2))[0]
    ((array([ 0., 10.]), array([10., 50.])), array([1., 3.]))
    """
    if isinstance(attribute, Dates) and attribute.by != "hour":
        found = f"{attribute.name!r}, whose values are dates"
        raise EntryError.at((), found, "numbers: an attribute given by min and max, edges, bins or a size")
    if not isinstance(attribute, Bins):
        values = np.array([float(attribute.value(code)) for code in codes])
        return values, values
    edges, places = np.array(attribute.edges), np.array(codes)
    lows, highs = edges[places], edges[places + 1]
    if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
        found = f"{attribute.name!r}, of which a bin has no end"
        expected = "bins with two ends, as their middles stand for their values; `where` can leave others out"
        raise EntryError.at((), found, expected)
    return lows, highs


def _sums(attribute: Attribute, codes: Codes, middle: float, said: str) -> Predicates:
    """Return the sum of how far values lie from a number; of bins by their middles, and by either end."""
    lows, highs = value_ends(attribute, codes)
    listed = {said: (lows + highs) / 2}
    if (lows < highs).any():
        listed |= {f"{said}, by lower ends": lows, f"{said}, by upper ends": highs}
    rows = np.zeros((len(listed), attribute.size))
    rows[:, list(codes)] = np.array(list(listed.values())) - middle
    return Labelled(Matrix(rows), tuple(listed))


@final
@entry_form
@record
class MeanEntry(OneAttributeEntry):
    """The mean of an attribute of numbers, by the middles of bins."""

    attribute: str = key(_ATTRIBUTE, name="mean")

    @property
    def called(self) -> str:
        """What is asked, in words."""
        return f"mean of {self.attribute}"

    def ask(self, statistics: Statistics) -> Table:
        """Return the mean."""
        return statistics.mean(self.attribute, by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return how far the values lie from the middle of the domain, summed; and the count.

        The error of a mean m is that of sum(x) - m count, and so at most that of sum(x - c) plus |m - c|
        times that of the count: with c in the middle of the domain neither outweighs the other.
        """
        kept = _ordered(attribute, codes)
        lows, highs = value_ends(attribute, kept)
        middle = float(lows[0] + highs[-1]) / 2
        away = _sums(attribute, kept, middle, f"sum of {attribute.name} less {middle:g}")
        return [away, _counted(attribute, kept)]

    def scale(self, needed: Predicates, size: int) -> float:
        """Return the weight that makes a sum as large as a count."""
        return _as_counts(needed, size)


@final
@entry_form
@record
class SumEntry(OneAttributeEntry):
    """The sum of an attribute of numbers, by the middles of bins."""

    attribute: str = key(_ATTRIBUTE, name="sum")

    @property
    def called(self) -> str:
        """What is asked, in words."""
        return f"sum of {self.attribute}"

    def ask(self, statistics: Statistics) -> Table:
        """Return the sum."""
        return statistics.sum(self.attribute, by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the sum of the values, and what it is if all of a bin lie at one of its ends."""
        return [_sums(attribute, _ordered(attribute, codes), 0.0, f"sum of {attribute.name}")]

    def scale(self, needed: Predicates, size: int) -> float:
        """Return the weight that makes a sum as large as a count."""
        return _as_counts(needed, size)


def _counted(attribute: Attribute, kept: Codes) -> Predicates | None:
    """Return the predicate of all values that are asked about; None where those are all."""
    return None if len(kept) == attribute.size else Labelled(Sets((kept,)), ("records",))


def _as_counts(needed: Predicates, size: int) -> float:
    largest = float(np.abs(needed.rows(size)).max())
    return 1.0 / largest**2 if largest > 0 else 1.0


_MANY = whole("a number of values, an integer of at least 1", least=1)


@final
@entry_form
@record
class TopEntry(OneAttributeEntry):
    """The values of an attribute that most records have."""

    top: Mapping[str, int] = key(_OfOne(_MANY, "{city: 10}"))

    @property
    def attribute(self) -> str:
        """The attribute."""
        return next(iter(self.top))

    @property
    def called(self) -> str:
        """What is asked, in words."""
        return f"top {self.top[self.attribute]} of {self.attribute}"

    def ask(self, statistics: Statistics) -> Table:
        """Return the values that most records have."""
        return statistics.top(self.attribute, self.top[self.attribute], by=self.by, where=self.where or None)

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the counts of all values."""
        many = self.top[attribute.name]
        if many > len(codes):
            raise EntryError.at((), f"{many}", f"at most {len(codes)}, the number of values")
        if len(codes) > MAX_VALUES:
            found = f"{len(codes)} values"
            raise TooLargeError.at((), found, f"at most {MAX_VALUES}; ask for some of them with `where`")
        return [Identity() if len(codes) == attribute.size else Sets(tuple((code,) for code in codes))]


# Entries of statistics of other entries: shares, ratios, differences, combinations, joint intervals.

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
