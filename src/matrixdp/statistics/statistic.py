"""What every statistic shares: its form in a workload, its query groups for planning, and its table.

A statistic is one class: an entry that reads and writes itself, names the query groups that it needs, and
computes its figures, with their intervals, from the estimates of a measurement and their covariances.
"""

from __future__ import annotations

import itertools
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp import forms, queries
from matrixdp.domain import Attribute, Dates, Domain
from matrixdp.errors import EntryError, TooLargeError, UnsupportedQueryError, within
from matrixdp.exact.resources import one_blas_thread
from matrixdp.forms import key, record
from matrixdp.language import entries as language
from matrixdp.language.entries import Condition, Entry, Path
from matrixdp.language.periods import each_known_after, whole_entry
from matrixdp.language.predicates import NamedPredicates, PredicateForm
from matrixdp.queries import Labelled, Matrix, Predicates, Prefix, Ranges, Sets, Total
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicates import Array
from matrixdp.queries.workload import FigureTarget, Precision
from matrixdp.texts import ENGLISH, Words

if TYPE_CHECKING:
    from matrixdp.answers.inference import Inference

T = TypeVar("T")

Table = Any
"""A PyArrow table; PyArrow says nothing of its types."""
By = tuple[str, ...] | Mapping[str, PredicateForm]
Codes = tuple[int, ...]
Named = Callable[[Group], str]
"""What a query group is called."""

METADATA = b"matrixdp"
"""The key of a schema's metadata: a JSON object that says how the figures were made."""

#: How intervals of normal combinations are described.
POINTWISE = "pointwise: each holds the true value with this confidence, taken alone"


class Column(NamedTuple):
    """A column of figures: which figure, if one with an error, and of what (nothing: the statistic)."""

    name: str
    values: Any
    figure: str = ""
    of: str = ""


def figures(estimates: Array, deviations: Array, lower: Array, upper: Array, of: str = "") -> list[Column]:
    """Return the columns of an estimate with its standard error and the ends of its interval."""
    kinds = {"estimate": estimates, "stddev": deviations, "lower": lower, "upper": upper}
    names = [of or "estimate", *(f"{of}_{kind}".strip("_") for kind in list(kinds)[1:])]
    return [Column(name, np.ravel(kinds[kind]), kind, of) for name, kind in zip(names, kinds, strict=True)]


def symmetric(estimates: Array, deviations: Array, multiplier: float | Array) -> list[Column]:
    """Return the columns of figures with intervals of `multiplier` standard errors to either side."""
    width = multiplier * deviations
    return figures(estimates, deviations, estimates - width, estimates + width)


@record
class StatisticEntry(Entry):
    """An entry that asks for a statistic of counts; it stands for the query groups that it is made of."""

    direct = False

    @classmethod
    @cache
    def keys(cls) -> Mapping[str, Any]:
        """Return the keys by their names: statistics are of records."""
        return {name: own for name, own in super().keys().items() if name != "count"}

    @property
    @abstractmethod
    def text(self) -> str:
        """The question in words."""

    @property
    def kind(self) -> str:
        """The name of the statistic."""
        return self.main_key()

    @property
    def label(self) -> str:
        """The name of the statistic: the user's, else its question in words."""
        return self.text if self.name is None else self.name

    def spoken(self, domain: Domain, say: Words, named: Named) -> str:
        """Return what readers call it: by the titles of attributes and groups, in the words of a language."""
        return self.label

    def called(self, domain: Domain, named: Named) -> str:
        """Return what programs call it: by the names of attributes and groups."""
        return self.label

    @property
    def measures(self) -> str:
        """The unit of the estimates: records, unless a statistic says otherwise; see `PublishedTable`."""
        return "records"

    def limits(self, domain: Domain) -> tuple[float, float]:
        """Return between what the true figures are, as is public; counts and shares have theirs anyway."""
        return -math.inf, math.inf

    def answer(self, inference: Inference) -> Table:
        """Return the statistic as it follows from a measurement.

        Raises
        ------
        EntryError
            If an attribute is unknown, or something does not fit its attribute.
        UnsupportedQueryError
            If what was measured does not determine it, or of a series no row of it yet.
        """
        # many small products: several threads would spend their time waiting for one another
        with language.as_entry_errors(), one_blas_thread():
            if inference.through is None:
                table = self.evaluate(inference)
            else:
                name, periods = inference.through
                attribute = inference.domain[name]
                known = self.known_after(inference.domain, attribute) < periods
                if not known.any():
                    raise not_yet(self.label, attribute, periods)
                table = _rows(self.evaluate(inference.as_if_ended), known)
            limits = self.limits(inference.domain)
        within = [end if math.isfinite(end) else None for end in limits]
        return inference.telling(table, measures={"": self.measures}, within={"": within})

    def precision(self, domain: Domain, target: FigureTarget) -> Precision:
        """Return what gives the figures of the statistic a target.

        Raises
        ------
        EntryError
            If it cannot be told from what is public.
        """
        expected = "a mean, a share, or an entry of counts"
        raise EntryError.at((), f"a target for a {self.kind}", expected, code="not-supported")

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        """Return the period of a series after which each row of the table is known: the last that it needs.

        When the series ends, where a statistic does not say otherwise.

        Parameters
        ----------
        domain : Domain
        attribute : Attribute
            The one whose values are the periods.

        Returns
        -------
        ndarray of int
            One code for each row, or a single one for all.
        """
        return np.array([attribute.size - 1])

    @abstractmethod
    def evaluate(self, inference: Inference) -> Table:
        """Return the table of the statistic."""

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


def _rows(table: Table, known: NDArray[np.bool_]) -> Table:
    """Return the rows of a table that are known, with what its metadata says of each."""
    known = np.broadcast_to(known, table.num_rows)
    said = json.loads(table.schema.metadata[METADATA])
    if "covariance" in said:
        said["covariance"] = np.array(said["covariance"])[np.ix_(known, known)].tolist()
    return table.filter(known).replace_schema_metadata({METADATA: json.dumps(said)})


def not_yet(asked: str, attribute: Attribute, periods: int) -> UnsupportedQueryError:
    """Return the error of what no period of a series that is measured lets know."""
    told = f"{asked}: nothing of it is known after {attribute.name} {attribute.label(periods - 1)}"
    return UnsupportedQueryError(f"{told}, the last period that is measured", "not-yet")


def statistic_of(entry: queries.Entry) -> StatisticEntry | None:
    """Return the statistic that an entry asks for, of a whole series or of the periods that are over."""
    whole = whole_entry(entry)
    return whole if isinstance(whole, StatisticEntry) else None


def statistics() -> dict[str, type[StatisticEntry]]:
    """Return the classes of statistics by the keys that tell their entries."""
    return {name: form for name, form in language.ENTRIES.items() if issubclass(form, StatisticEntry)}


def in_words(entry: Entry) -> str:
    """Return the name of an entry of counts: the user's, else its question in words.

    Examples
    --------
    >>> from matrixdp.language import product
    >>> in_words(product(sex="identity", age="prefix"))
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


# Statistics of other entries.


@record
class OfEntries(StatisticEntry):
    """A statistic of the answers to entries of counts."""

    @property
    def text(self) -> str:
        return self.kind

    def spoken(self, domain: Domain, say: Words, named: Named) -> str:
        if self.name is not None:
            return self.name
        every = [named(group) for group in self.asked(domain)]
        return say(f"{self.kind}_of", of=every[0], other=every[-1], every=f" {say('and')} ".join(every))

    def called(self, domain: Domain, named: Named) -> str:
        return self.spoken(domain, ENGLISH, named)

    @abstractmethod
    def parts(self) -> list[tuple[Path, Entry]]:
        """Return the entries with their places."""

    def check(self) -> None:
        super().check()
        for place, entry in self.parts():
            if isinstance(entry, StatisticEntry):
                found = f"a statistic, `{entry.main_key()}`"
                expected = "an entry of counts, such as {marginals: [[sex]]}"
                raise EntryError.at(place, found, expected, code="wrong-type")

    def groups(self, domain: Domain) -> list[Group]:
        return self.weighted(self.asked(domain))

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        """Return the last period that each row needs: that of one query of each entry, or of its only one."""
        known = [each_known_after(group, attribute) for group in self.asked(domain)]
        return np.asarray(np.max(np.broadcast_arrays(*known), axis=0))

    def asked(self, domain: Domain) -> list[Group]:
        """Return the one group of each entry."""
        found = []
        for place, entry in self.parts():
            with within(*place):
                found.append(language.one_group(entry, domain))
        return found

    def paired(self, domain: Domain) -> list[Group]:
        """Return the groups of two entries, the second of one query or of as many as the first."""
        left, right = OfEntries.asked(self, domain)
        if right.queries not in (1, left.queries):
            expected = f"1 query, or {left.queries} as there"
            place = self.parts()[1][0]
            raise EntryError.at(place, f"{right.queries} queries", expected, code="wrong-size")
        return [left, right]


# Statistics of one attribute, in strata of others and within conditions.

SQUARED = " squared"
"""The ending of what a variance measures."""
DIFFERENCE = "difference"
"""What figures measure that are numbers of records less others, and may be below 0."""
PERCENT_CHANGE = "percent change"
"""What figures measure that are changes of numbers of records, in per cent of the earlier ones."""
KINDS = ("records", "share", "ratio", "values", DIFFERENCE, PERCENT_CHANGE)
"""What figures measure besides values of attributes."""
_VALUE = "value of "


def values_of(attribute: str) -> str:
    """Return what figures measure that are values of an attribute, which may be called as a kind is.

    Examples
    --------
    >>> values_of("age"), values_of("share")
    ('age', 'value of share')
    """
    return f"{_VALUE}{attribute}" if attribute in KINDS else attribute


def attribute_of(measured: str) -> str:
    """Return the name of the attribute whose values figures measure, with `SQUARED` behind it or not."""
    return measured.removeprefix(_VALUE)


ATTRIBUTE = forms.text("the name of an attribute")
#: Of the attribute of a quantile, a CDF or a list of the top: their square is how much is computed.
MAX_VALUES = 4_000

_IDENTITY = NamedPredicates("identity")
_BY: forms.Form[By] = forms.AnyOf(
    (
        (lambda value: isinstance(value, Mapping), language.PREDICATES_BY_ATTRIBUTE),
        (lambda value: isinstance(value, forms.LISTS), language.NAMES),
    ),
    forms.Unbracketed(language.NAMES.item),
)


@final
@dataclass(frozen=True)
class OfOne(forms.Form[Mapping[str, T]], Generic[T]):
    """One attribute with what is asked of it, or its name alone where that has a default."""

    item: forms.Form[T]
    expected: str
    default: T | None = None

    def read(self, written: object, resolve: forms.ResolvePath) -> Mapping[str, T]:
        if isinstance(written, str) and self.default is not None:
            return {ATTRIBUTE.read(written, resolve): self.default}
        mapping = forms.MappingOf(self.item, self.expected, least=1, count=self.expected)
        named = mapping.read(written, resolve)
        if len(named) > 1:
            found = f"{len(named)} attributes"
            raise forms.FormError.at((), found, f"one attribute: {self.expected}", code="wrong-size")
        return named

    def write(self, value: Mapping[str, T], write_array: forms.WriteArray = forms.as_lists) -> object:
        [(name, item)] = value.items()
        return name if item == self.default else {name: self.item.write(item, write_array)}

    def schema(self, definitions: forms.Schema) -> forms.Schema:
        item = self.item.schema(definitions)
        mapping = {"type": "object", "additionalProperties": item, "minProperties": 1, "maxProperties": 1}
        return mapping if self.default is None else {"anyOf": [ATTRIBUTE.schema(definitions), mapping]}


@record
class OfAttribute(StatisticEntry):
    """A statistic of one attribute, by others, of the records that conditions allow."""

    by: By = key(_BY, default=(), about="for each of which values: attributes, or predicate sets of them")
    where: Mapping[str, Condition] = key(
        language.BOX, default={}, about="of which records: values, lists of values or ranges of attributes"
    )

    #: Whether the values must have an order; then null, which has no place in it, is left out.
    ordered = True
    #: Whether it can be of an amount.
    amounts = False

    @property
    @abstractmethod
    def attribute(self) -> str:
        """The attribute."""

    def headed(self, attribute: str, say: Words) -> str:
        """Return the question about an attribute in words."""
        return say("statistic_of", statistic=say.texts.get(self.kind, self.kind), attribute=attribute)

    @property
    def text(self) -> str:
        return self._asked({}, ENGLISH)

    def spoken(self, domain: Domain, say: Words, named: Named) -> str:
        titles = {own.name: own.title for own in domain}
        return self._asked(titles, say) if self.name is None else self.name

    def _asked(self, titles: Mapping[str, str], say: Words) -> str:
        where = [f"{titles.get(name, name)} {_said(said)}" for name, said in self.where.items()]
        called = self.headed(titles.get(self.attribute, self.attribute), say)
        return self._words(called, where, [titles.get(name, name) for name in self.by], say)

    def _words(
        self, asked: str, where: Sequence[str], by: Sequence[str] | None = None, say: Words = ENGLISH
    ) -> str:
        """Add the attributes of ``by`` and the conditions to a question."""
        if self.by:
            asked = say("by", first=asked, rest=", ".join(self.by if by is None else by))
        conditions = f" {say('and')} ".join(where)
        return say("statistic_where", statistic=asked, conditions=conditions) if where else asked

    def needs(self, attribute: Attribute, codes: Codes) -> list[Predicates | None]:
        """Return the predicates that are needed on the attribute, one for each group; None is the count.

        Where a statistic does not say otherwise, the counts of the values up to each.

        Raises
        ------
        EntryError
            If the attribute has no such statistic.
        """
        check_number(codes)
        if len(codes) == attribute.size:
            return [Prefix()]
        if codes == tuple(range(codes[0], codes[-1] + 1)):
            return [Ranges(tuple((codes[0], code) for code in codes))]
        return [Sets(tuple(codes[: place + 1] for place in range(len(codes))))]

    def scale(self, needed: Predicates, size: int) -> float:
        """Return the weight with which a group counts beside the others."""
        return 1.0

    def rows_of_each(self, strata: Strata) -> int:
        """Return how many rows of the table each stratum has."""
        return 1

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        """Return the last period that each row needs: that of its stratum and of the conditions."""
        strata = self.strata(domain)
        return np.repeat(strata.known_after(attribute), self.rows_of_each(strata))

    def groups(self, domain: Domain) -> list[Group]:
        strata = self.strata(domain)
        made: list[Group] = []
        for needed in self.needed(strata):
            weight = 1.0 if needed is None else self.scale(needed, strata.attribute.size)
            made.append(replace(strata.product(needed), name=self._called(strata, needed), weight=weight))
        return self.weighted(made)

    def needed(self, strata: Strata) -> list[Predicates | None]:
        """Return the predicate sets that the attribute needs; errors are located at its place."""
        with within(self.main_key(), self.attribute):
            return self.needs(strata.attribute, strata.codes)

    def _called(self, strata: Strata, needed: Predicates | None) -> str:
        """Return the name of a group: that of an unnamed product, or words where it is no product."""
        name = strata.attribute.name
        if isinstance(needed, Labelled):
            return self._words(needed.describe(strata.attribute)[0], strata.said)
        if strata.said:
            asked = f"{name} CDF" if self.ordered else name
            return self._words("records" if needed is None else asked, strata.said)
        texts = dict(strata.texts)
        if needed is not None:
            texts[name] = "prefix" if self.ordered else "identity"
        names = strata.domain.sort(texts)
        called = ", ".join(names) or "total"
        plain = set(texts.values()) <= {"identity"}
        return called if plain else f"{called}: {' x '.join(texts[name] for name in names)}"

    def strata(self, domain: Domain) -> Strata:
        """Return the attribute in its strata, within the conditions.

        Raises
        ------
        EntryError
            If an attribute is unknown or named twice, its values have no order, or a condition does not fit.
        """
        with within(self.main_key()):
            attribute = language.find_attribute(domain, self.attribute, amounts=self.amounts)
            with within(attribute.name):
                codes = tuple(attribute.all_codes)
        conditions: dict[str, Predicates] = {}
        said = []
        for name, condition in self.where.items():
            with within("where", name):
                inside, words = language.allowed_values(language.find_attribute(domain, name), condition)
            allowed = tuple(int(code) for code in np.flatnonzero(inside))
            said.append(f"{name} {words}")
            if name == attribute.name:
                codes = allowed
            elif not inside.all():
                conditions[name] = Sets((allowed,))
        if self.ordered:
            with within(self.main_key(), attribute.name):
                codes = _with_order(attribute, codes)
        asked = self.by if isinstance(self.by, Mapping) else dict.fromkeys(self.by, _IDENTITY)
        sets = language.AttributeSets.on(domain, asked, "by")
        names = [own.name for own in sets.attributes]
        for name in names:
            if name == attribute.name or name in self.where:
                role, expected = "of which the statistic is", "other attributes"
                if name in self.where:
                    role = "an attribute of `where`"
                    expected = "the values in `by` alone: by: {attribute: {sets: [[value], [value, value]]}}"
                raise EntryError.at(("by",), f"{name!r}, {role}", expected, code="conflict")
        by = {n: own for n, own in zip(names, sets.predicates, strict=True) if not isinstance(own, Total)}
        texts = dict(zip(names, sets.texts, strict=True))
        title = f"{self.kind} of {attribute.name}"
        return Strata(title, domain, attribute, codes, by, conditions, said, texts)


def _said(condition: Condition) -> str:
    if isinstance(condition, language.Span):
        return f"{condition.ends[0]}..{condition.ends[1]}"
    return " | ".join(map(str, condition))


def _with_order(attribute: Attribute, codes: Codes) -> Codes:
    """Return the codes that have a place in the order, which null has not."""
    language.check_numeric(attribute)
    if isinstance(attribute, Dates) and attribute.by == "weekday":
        found = f"{attribute.name!r}, whose values are days of the week"
        raise EntryError.at((), found, "values with a first and a last one", code="wrong-kind")
    kept = tuple(code for code in codes if code != attribute.null_code)
    if not kept:
        raise EntryError.at((), "no value but null", "values with an order", code="empty")
    return kept


def check_number(codes: Codes) -> None:
    """Check that a statistic, whose cost is the square of the number of values, is of few enough."""
    if len(codes) > MAX_VALUES:
        expected = f"at most {MAX_VALUES}; ask for some of them with `where`"
        raise TooLargeError.at((), f"{len(codes)} values", expected)


@final
@dataclass(frozen=True, eq=False)
class Strata:
    """An attribute in strata of other attributes.

    Attributes
    ----------
    title : str
        What is asked.
    domain : Domain
        The attributes.
    attribute : Attribute
        The one on which queries are asked.
    codes : tuple of int
        The codes of it that are asked about, in order.
    by : dict of str to Predicates
        The strata: every combination of one predicate of each set, the last one fastest.
    where : dict of str to Predicates
        Conditions on other attributes, of one predicate each.
    said : list of str
        All conditions, in words.
    texts : dict of str to str
        What the sets of the strata are called, totals among them.
    """

    title: str
    domain: Domain
    attribute: Attribute
    codes: Codes
    by: dict[str, Predicates]
    where: dict[str, Predicates]
    said: list[str]
    texts: dict[str, str]

    @property
    def count(self) -> int:
        """The number of strata."""
        return self._group(self.by).queries

    def _group(self, sets: Mapping[str, Predicates]) -> ProductGroup:
        names = self.domain.sort(sets)
        sizes = tuple(self.domain[name].size for name in names)
        return ProductGroup(self.title, tuple(names), tuple(sets[name] for name in names), sizes)

    def known_after(self, attribute: Attribute) -> NDArray[np.intp]:
        """Return the last period of a series that each stratum is about."""
        if attribute == self.attribute:
            return np.full(self.count, max(self.codes))
        return each_known_after(self._group(self.where | self.by), attribute)

    def group(self, rows: Array) -> ProductGroup:
        """Return queries on the attribute in every stratum; rows have a column for each code asked about."""
        whole = np.zeros((len(rows), self.attribute.size))
        whole[:, self.codes] = rows
        return self.product(Matrix(whole))

    def product(self, predicates: Predicates | None) -> ProductGroup:
        """Return a predicate set on the attribute, or its total, in every stratum."""
        own = {} if predicates is None else {self.attribute.name: predicates}
        return self._group(self.where | self.by | own)

    def known(self, inference: Inference, group: ProductGroup) -> tuple[Array, Array]:
        """Return the estimates of a group and their variances, shape (strata, queries on the attribute)."""
        with inference.computing(group) as [used]:
            found = inference.estimates(used), inference.variances(used)
        return self._arranged(found[0], group), self._arranged(found[1], group)

    def multipliers(self, inference: Inference, group: ProductGroup) -> Array:
        """Return standard errors to the ends of intervals of the queries of a group, shaped as `known`."""
        found = inference.multipliers((1.0, inference.embed(group), slice(None)))
        return np.asarray(self._arranged(np.broadcast_to(found, group.queries), group))

    def places(self, group: ProductGroup) -> NDArray[np.intp]:
        """Return the places of the queries of a group, shaped as `known`."""
        return np.asarray(self._arranged(np.arange(group.queries), group))

    def covariances(self, inference: Inference, predicates: Predicates) -> Iterator[Array]:
        """Yield the covariances of queries on the attribute in each stratum."""
        rows = [own.rows(self.domain[name].size) for name, own in self.by.items()]
        for chosen in itertools.product(*rows):
            one = {name: Matrix(row[None, :]) for name, row in zip(self.by, chosen, strict=True)}
            own = inference.embed(self._group(self.where | one | {self.attribute.name: predicates}))
            yield inference.analysis.covariances(own, own)

    def with_records(self, inference: Inference, rows: Array) -> Array:
        """Return the covariances of queries with the number of records of their strata, shaped as `known`.

        Cov(X, N) = (Var(X + t N) - Var(X - t N)) / 4t where the estimates of sums are sums of estimates, with
        t such that neither outweighs the other; else from the queries themselves.
        """
        if inference.analysis.additive:
            scale = max(float(np.abs(rows).max()), 1e-300)
            _, variances = self.known(inference, self.group(np.vstack([rows + scale, rows - scale])))
            more, less = np.split(variances, 2, axis=1)
            return np.asarray((more - less) / (4.0 * scale))
        group, whole = self.group(rows), self.group(np.ones(rows.shape))
        pair = inference.embed(group), inference.embed(whole)
        return np.asarray(self._arranged(inference.analysis.covariances(*pair, paired=True), group))

    def _arranged(self, values: NDArray[Any], group: ProductGroup) -> Any:
        """Reshape the values of a group to (strata, queries on the attribute)."""
        tensor = values.reshape(group.counts)
        tensor = np.moveaxis(tensor, group.attributes.index(self.attribute.name), -1)
        return tensor.reshape(-1, tensor.shape[-1])

    def table(
        self,
        inference: Inference,
        columns: Sequence[Column],
        intervals: str,
        own: Predicates | None = None,
        places: NDArray[np.int64] | None = None,
        **more: object,
    ) -> Table:
        """Return the table of a statistic, and in its metadata what was asked and what the intervals are.

        It has as many rows for each stratum; of the attribute the predicates ``own`` are asked about, in each
        row that at one of the ``places``, shape (strata, rows of each). Its note says how values count.
        """
        rows = len(columns[0].values) // self.count
        labels = inference.labels([self._group(self.by)], np.repeat(np.arange(self.count), rows))
        if own is not None and places is not None:
            beside = inference.labels([self._group({self.attribute.name: own})], places.ravel())
            for place, (field, column) in enumerate(zip(labels.schema, labels.columns, strict=True)):
                name = f"{field.name}_attribute" if field.name in beside.column_names else field.name
                beside = beside.add_column(place, field.with_name(name), column)
            labels = beside
        where = {name: own.describe(self.domain[name])[0] for name, own in self.where.items()}
        if len(self.codes) < self.attribute.size:
            where[self.attribute.name] = Sets((self.codes,)).describe(self.attribute)[0]
        said: dict[str, object] = {"statistic": self.title, "by": list(self.by), "where": where}
        said |= {"note": reading} if (reading := self.attribute.reading) else {}
        return inference.table(labels, columns, intervals, **said, **more)
