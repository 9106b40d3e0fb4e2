"""Entries of a workload: what all of them share, and reading one of any form."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from numbers import Integral
from typing import Any, ClassVar, TypeVar, final

import numpy as np

from matrixdp import forms, queries
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import DomainError, EntryError, Problem, TooLargeError, WorkloadError, each, within
from matrixdp.errors import Path as Path
from matrixdp.exact.linear import outer
from matrixdp.forms import AnyOf, Form, ListOf, MappingOf, Record, ResolvePath, key, record
from matrixdp.language.predicates import PREDICATES, ArrayForm, LevelForm, NamedPredicates, PredicateForm
from matrixdp.queries import DenseGroup, Group, ProductGroup, Rows, check_weights
from matrixdp.queries.groups import WEIGHT
from matrixdp.queries.predicates import Array, Predicates, check_entries
from matrixdp.texts import Described

#: An entry stands for at most this many groups.
MAX_GROUPS = 1_000_000

ENTRIES: dict[str, type[Entry]] = {}
"""The forms of entries, by the key that tells them."""

E = TypeVar("E", bound="type[Entry]")
T = TypeVar("T")
NAMES = ListOf(forms.text("the name of an attribute"), "a list of attributes", once="each attribute once")
PREDICATES_BY_ATTRIBUTE = MappingOf(PREDICATES, "a mapping of attributes to predicate sets")
IDENTITY = NamedPredicates("identity")


@contextmanager
def as_entry_errors() -> Iterator[None]:
    """Raise errors of domains and weights as errors of the entry."""
    try:
        yield
    except EntryError:
        raise
    except (DomainError, WorkloadError) as error:
        raise EntryError(error.problem or str(error), code=error.code) from None


@record
class Entry(Described, ABC):
    """An entry of a workload, which a domain turns into query groups."""

    error = EntryError
    direct: ClassVar[bool] = True
    """Whether readers see the answers to the groups themselves, whose errors targets bound."""

    weight: float = key(WEIGHT, default=1.0)
    weights: Array | None = key(ArrayForm("a finite number above 0 for each query"), default=None)
    budget_share: float | None = key(
        forms.number("a share of the budget: a number above 0 and at most 1", above=0, most=1),
        default=None,
        about="the share of the privacy cost that serves the entry, in place of a weight",
    )
    name: str | None = key(forms.text("text that is not empty"), default=None)
    count: str = key(forms.OneOf(("records", "persons")), default="records")

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
        with as_entry_errors():
            return self.groups(domain)

    def check(self) -> None:
        """Check that the weights are numbers above 0 that neither overflow nor vanish."""
        with as_entry_errors():
            check_weights(self.weight, self.weights)
        if self.budget_share is not None and self.weight != 1.0:
            expected = "one of them: the weight follows from the share"
            raise EntryError.at(("weight",), "it beside budget_share", expected, code="conflict")

    @classmethod
    def unknown_key(cls, name: object) -> Problem:
        """Return the problem of a key that the entry does not have."""
        if isinstance(name, str) and name in ENTRIES:
            found = f"the key {name!r} beside {cls.main_key()!r}"
            return Problem((name,), found, "one kind an entry; make them two entries")
        return super().unknown_key(name)

    def group_name(
        self, attributes: Sequence[Attribute | Axis], predicates: Sequence[str], single: bool
    ) -> str:
        """Return the name of a group: the user's if there is one, else its question in words.

        Parameters
        ----------
        attributes : sequence
            The group's attributes, or what else is called by their names.
        predicates : sequence of str
            What its predicate sets are called; empty to leave them out.
        single : bool
            Whether the entry stands for one group.
        """
        names = ", ".join([attribute.name for attribute in attributes]) or "total"
        if self.name is not None:
            return self.name if single else f"{self.name}: {names}"
        return f"{names}: {' x '.join(predicates)}" if predicates and attributes else names

    def weights_for(self, queries: int) -> Array | None:
        """Return the weights of the queries of the only group, in the order of its answers."""
        return check_weights(self.weight, self.weights, queries)[1]

    def check_single(self, groups: int) -> None:
        """Check that weights for each query are for one group alone."""
        if self.weights is not None and groups != 1:
            found = f"weights for an entry that stands for {groups} groups"
            expected = "`weights` with one group alone; `weight` holds for all groups of an entry"
            raise EntryError.at(("weights",), found, expected, code="wrong-size")

    def weighted(self, groups: Sequence[Group]) -> list[Group]:
        """Return all groups of the entry with its weight and weights."""
        self.check_single(len(groups))
        if self.weights is None and self.weight == 1.0:
            return list(groups)
        return [
            replace(group, weight=self.weight, query_weights=self.weights_for(group.queries))
            for group in groups
        ]


def entry_form(form: E) -> E:
    """Add a form of entry to the language, by its first key; a decorator of records."""
    forms.register(ENTRIES, form)
    return form


@final
class _Entries(Form[Entry]):
    """An entry of any form, recognized by its first key."""

    def read(self, written: object, resolve: ResolvePath) -> Entry:
        if isinstance(written, Entry):
            return written
        keys = list(written) if isinstance(written, Mapping) else []
        for name in keys:
            if name in ENTRIES:
                return ENTRIES[name].read(written, resolve)
        close = next(filter(None, (forms.nearest(str(name), ENTRIES) for name in keys)), ())
        expected = f"an entry with one of the keys {', '.join(ENTRIES)}"
        raise EntryError.at((), forms.describe_value(written), expected, close, code="unknown-key")

    def write(self, value: Entry, write_array: forms.WriteArray = forms.as_lists) -> object:
        return value.to_spec(write_array)

    def schema(self, definitions: forms.Schema) -> forms.Schema:
        return {"anyOf": [form.schema(definitions) for form in ENTRIES.values()]}


ENTRY = _Entries()
"""The form of entries."""


def read_entry(written: object, resolve: ResolvePath = forms.as_written) -> Entry:
    """Return the entry that a mapping describes.

    Parameters
    ----------
    written : object
        What was written.
    resolve : callable
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
    return ENTRY.read(written, resolve)


def entry_beside(
    name: str, read: Callable[[object], T], written: Mapping[Any, object], resolve: ResolvePath
) -> tuple[Entry, T]:
    """Return an entry, and what is written under another key beside its own."""
    with within(name):
        value = read(written[name])
    return ENTRY.read({own: item for own, item in written.items() if own != name}, resolve), value


def of_records(entry: queries.Entry, domain: Domain) -> list[Group]:
    """Return the query groups of an entry inside of something else: of records, with no share of its own."""
    if getattr(entry, "count", "records") != "records":
        expected = "records; persons are counted by entries of the workload itself"
        raise EntryError.at(("count",), "persons", expected, code="not-supported")
    if getattr(entry, "budget_share", None) is not None:
        expected = "none inside of another entry; the entry of the workload has the share"
        raise EntryError.at(("budget_share",), "a share of the budget", expected, code="not-supported")
    return entry.expand(domain)


def one_group(entry: queries.Entry, domain: Domain) -> Group:
    """Return the one query group that an entry inside of something else stands for."""
    groups = of_records(entry, domain)
    if len(groups) != 1:
        found = f"an entry of {len(groups)} groups"
        raise EntryError.at((), found, "one that stands for one group", code="wrong-size")
    return groups[0]


def find_attribute(domain: Domain, name: str, *, amounts: bool = False) -> Attribute:
    """Return an attribute of the domain; an amount, whose values no record has whole, only if asked."""
    if name in domain:
        if domain[name].divided and not amounts:
            ranges = f"another attribute with `column: {domain[name].column}` and edges counts its ranges"
            expected = f"`sum: {name}` or `mean: {name}`; {ranges}"
            raise EntryError.at((), f"the amount {name!r}", expected, code="wrong-kind")
        return domain[name]
    owners = [a.name for a in domain.attributes if name in [level.name for level in a.codebook.levels]]
    if not owners:
        problem = forms.unknown_name((), name, "an attribute of the domain", domain.names)
        raise EntryError(problem, code="unknown-name")
    found = f"{name!r}, a level of {' and '.join(map(repr, owners))}"
    form = f"predicate sets, as in `product` and `by`, may be {owners[0]}: {{level: {name}}}"
    expected = f"the attribute {owners[0]!r} with values of its own; {form}"
    raise EntryError.at((), found, expected, code="wrong-kind")


def check_numeric(attribute: Attribute) -> None:
    """Check that an attribute is one of numbers, dates or bins, whose values have an order."""
    if not attribute.numeric:
        found = f"{attribute.name!r}, which lists categories"
        expected = "a numeric attribute: one given by min and max, edges, bins, dates or a size"
        raise EntryError.at((), found, expected, code="wrong-kind")


def _narrowed(domain: Domain, names: tuple[str, ...] | None) -> tuple[Attribute, ...]:
    """Return the attributes to combine, in domain order: those under ``attributes``, else all but amounts."""
    if names is None:
        return tuple(attribute for attribute in domain.attributes if not attribute.divided)
    with within("attributes"):
        each(lambda name: find_attribute(domain, name), names)
    return tuple(domain[name] for name in domain.sort(names))


@final
@dataclass(frozen=True)
class Axis:
    """An attribute at one of its levels, or at its own values."""

    attribute: Attribute
    level: str | None = None
    shared: bool = False
    """Whether something else goes by the level's name, so that it needs that of its attribute too."""

    @classmethod
    def of(cls, domain: Domain, name: str) -> Axis:
        """Return the attribute or the level of a name."""
        level = None if name in domain else domain.levels.get(name)
        return cls(find_attribute(domain, name)) if level is None else cls(level, name)

    @property
    def name(self) -> str:
        """Its name."""
        named = f"{self.attribute.name} {self.level}" if self.shared else self.level
        return self.attribute.name if named is None else named

    @property
    def values(self) -> PredicateForm:
        """The predicate set of its values."""
        return IDENTITY if self.level is None else LevelForm(level=self.level)

    @property
    def size(self) -> int:
        """The number of values."""
        attribute = self.attribute
        return attribute.size if self.level is None else len(attribute.level(self.level).groups)


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
    def on(cls, domain: Domain, written: Mapping[str, PredicateForm], under: str) -> AttributeSets:
        found: dict[str, tuple[Attribute, Predicates, str]] = {}
        for name, form in written.items():
            with within(under, name):
                plain = form.text == "identity"  # of a level the values of the level
                axis = Axis.of(domain, name) if plain else Axis(find_attribute(domain, name))
                form = axis.values if axis.level is not None else form
                own = axis.attribute
                if own.name in found:
                    both = f"{name!r} beside another level of {own.name!r}, or its own values"
                    raise EntryError.at((), both, "one of both", code="conflict")
                found[own.name] = own, form.on(own), form.text
        kept = [found[name] for name in domain.sort(found)]
        return cls([a for a, _, _ in kept], [p for _, p, _ in kept], [text for _, _, text in kept])


def _names_and_sizes(attributes: Sequence[Attribute]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return tuple(a.name for a in attributes), tuple(a.size for a in attributes)


Chosen = tuple[Axis, ...]
"""Attributes to combine, in domain order."""


# Entries of products of predicate sets, of comparisons of two attributes, and of matrices over a few.


_LEVEL = forms.text("the name of a level")
_LEVELS: Form[tuple[str, ...]] = AnyOf(
    ((lambda value: isinstance(value, str), forms.Unbracketed(_LEVEL)),),
    ListOf(_LEVEL, "a level, or a list of levels", least=1, once="each level once"),
)


@record
class PlacedEntry(Entry):
    """An entry that is asked within the values of levels of other attributes."""

    at: Mapping[str, tuple[str, ...]] = key(
        MappingOf(_LEVELS, "a mapping of attributes to levels, to their own names, or to `total`"),
        default={},
        about="the levels within whose values the entry is asked, each for itself",
    )

    def places(self, domain: Domain) -> list[Chosen]:
        """Return every combination of a level of each attribute under ``at``; its total has no axis."""
        return [
            tuple(axis for axis in axes if axis is not None)
            for axes in product(*(self._axes(domain, name) for name in domain.sort(self._placed(domain))))
        ]

    def check_beside(self, attribute: Attribute) -> None:
        """Check that an attribute that the entry asks about is none of those under ``at``."""
        if attribute.name in self.at:
            found = f"{attribute.name!r}, which `at` has the levels of"
            raise EntryError.at((), found, "other attributes; `at` asks them at each level", code="conflict")

    def _placed(self, domain: Domain) -> Iterator[str]:
        with within("at"):
            for name in self.at:
                with within(name):
                    yield find_attribute(domain, name).name

    def _axes(self, domain: Domain, name: str) -> list[Axis | None]:
        attribute, found = domain[name], list[Axis | None]()
        levels = [level.name for level in attribute.codebook.levels]
        for place, own in enumerate(self.at[name]):
            if own in levels:
                found.append(Axis(attribute, own, own not in domain.levels))
            elif own in (name, "total"):
                found.append(Axis(attribute) if own == name else None)
            else:
                expected = f"a level of {name!r}, {name!r} for its own values, or total"
                known = (*levels, name, "total")
                path = ("at", name) if len(self.at[name]) == 1 else ("at", name, place)
                raise EntryError(forms.unknown_name(path, own, expected, known), code="unknown-name")
        return found


@final
@entry_form
@record
class ProductEntry(PlacedEntry):
    """One product of predicate sets; attributes that are not named are totals."""

    predicates: Mapping[str, PredicateForm] = key(PREDICATES_BY_ATTRIBUTE, name="product")

    def groups(self, domain: Domain) -> list[Group]:
        places, made = self.places(domain), list[Group]()
        for name in self.predicates if self.at else ():
            with within("product", name):
                self.check_beside(Axis.of(domain, name).attribute)
        for axes in places:
            beside = {axis.attribute.name: axis for axis in axes}
            forms_beside = {name: axis.values for name, axis in beside.items()}
            sets = AttributeSets.on(domain, {**self.predicates, **forms_beside}, "product")
            names, sizes = _names_and_sizes(sets.attributes)
            # where the user named them, the levels tell groups apart
            called = [a if self.name is None else beside.get(a.name, a) for a in sets.attributes]
            name = self.group_name(called, sets.texts, len(places) == 1)
            made.append(ProductGroup(name, names, tuple(sets.predicates), sizes))
        return self.weighted(made)


@final
@entry_form
@record
class PairwiseEntry(Entry):
    """A comparison of the codes of every two numeric attributes."""

    kind: str = key(forms.OneOf(("affine", "abs")), name="pairwise")
    attributes: tuple[str, ...] | None = key(NAMES, default=None)

    def groups(self, domain: Domain) -> list[Group]:
        chosen = _narrowed(domain, self.attributes)
        if self.attributes is None:
            chosen = tuple(one for one in chosen if one.numeric and one.null_code is None)
        with within("attributes"):
            each(lambda name: _check_ordered(domain[name]), self.attributes or ())
        if len(chosen) < 2:
            path = ("pairwise" if self.attributes is None else "attributes",)
            raise EntryError.at(path, f"{len(chosen)} numeric attributes", "at least 2", code="wrong-size")
        pairs = math.comb(len(chosen), 2)
        if pairs > MAX_GROUPS:
            expected = f"at most {MAX_GROUPS}; narrow them with `attributes`"
            raise TooLargeError.at(("pairwise",), f"{pairs} pairs", expected)
        rows = queries.Sums if self.kind == "affine" else queries.AbsoluteDifferences
        groups = []
        for pair in combinations(chosen, 2):
            sizes = (pair[0].size, pair[1].size)
            name = self.group_name(pair, [self.kind], pairs == 1)
            groups.append(DenseGroup(name, (pair[0].name, pair[1].name), rows(sizes), sizes))
        return self.weighted(groups)


def _check_ordered(attribute: Attribute) -> None:
    """Check that every value of an attribute has a place in its order."""
    check_numeric(attribute)
    if attribute.null_code is not None:
        found = f"{attribute.name!r}, which has the value null"
        expected = "an attribute without `null`, which has no place in an order"
        raise EntryError.at((), found, expected, code="wrong-kind")


@record
class MergedEntry(Entry):
    """An entry of explicit queries over merged attributes, asked within predicates of others."""

    by: Mapping[str, PredicateForm] = key(PREDICATES_BY_ATTRIBUTE, default={})

    def merged(
        self, domain: Domain, attributes: Sequence[Attribute], content: Rows, text: str
    ) -> list[Group]:
        """Return the group of explicit queries, within the predicates of ``by``.

        Parameters
        ----------
        domain : Domain
        attributes : sequence of Attribute
            The merged attributes, in domain order.
        content : Rows
            The queries over their cells.
        text : str
            What the queries are called where the user gave no name.
        """
        others = AttributeSets.on(domain, self.by, "by")
        for name in self.by:
            if name in [attribute.name for attribute in attributes]:
                found = "an attribute of the queries themselves"
                raise EntryError.at(("by", name), found, "other attributes", code="conflict")
        together = sorted([*attributes, *others.attributes], key=lambda a: domain.index(a.name))
        names, sizes = _names_and_sizes(together)
        if self.by:
            places = tuple(names.index(attribute.name) for attribute in attributes)
            content = queries.Crossed(content, places, tuple(others.predicates), sizes)
        name = self.group_name(together, [text, *others.texts], single=True)
        return self.weighted([DenseGroup(name, names, content, sizes)])


@final
@entry_form
@record
class DenseEntry(MergedEntry):
    """A matrix over the cells of a few attributes, row-major."""

    matrix: Array = key(ArrayForm("a finite matrix with a row for each query", axes=2), name="dense")
    attributes: tuple[str, ...] = key(
        replace(NAMES, expected="a list of at least one attribute", least=1),
        missing="the list of attributes whose cells the matrix is over",
    )

    def groups(self, domain: Domain) -> list[Group]:
        attributes = _narrowed(domain, self.attributes)
        written = [domain[name].size for name in self.attributes]
        rows, columns = self.matrix.shape
        if columns != math.prod(written):
            expected = f"{math.prod(written)}, one for each cell of {', '.join(self.attributes)}"
            raise EntryError.at(("dense",), f"a matrix of {columns} columns", expected, code="wrong-size")
        order = [1 + self.attributes.index(attribute.name) for attribute in attributes]
        matrix = self.matrix.reshape(rows, *written).transpose(0, *order)
        return self.merged(domain, attributes, queries.MatrixRows(matrix.reshape(rows, columns)), "dense")


# Entries that stand for every combination of k attributes: marginals and k-way products.

_NUMBER = forms.whole("a number of attributes, an integer of at least 0", least=0)
_ONE = (lambda value: isinstance(value, Integral), forms.Unbracketed(_NUMBER))
_MARGINAL: Form[int | tuple[str, ...]] = AnyOf(
    ((lambda value: isinstance(value, list | tuple | str), NAMES),), _NUMBER
)
_WHICH = "a number of attributes, or a list of numbers and lists of attributes"


@final
@record
class PredicatesByKind(Record):
    """One predicate set for categorical attributes and one for numeric ones."""

    categorical: PredicateForm = key(PREDICATES, default=IDENTITY, always=True)
    numeric: PredicateForm = key(PREDICATES, default=IDENTITY, always=True)


def _names_kinds(value: object) -> bool:
    kinds = PredicatesByKind.keys()
    named = isinstance(value, Mapping) and any(forms.nearest(str(name), kinds) for name in value)
    return named or isinstance(value, PredicatesByKind)


def _cells(axes: Chosen) -> int:
    return math.prod(axis.size for axis in axes)


@record
class _Combinations(PlacedEntry):
    """What entries of combinations of attributes share; their first key says which they combine."""

    attributes: tuple[str, ...] | None = key(NAMES, default=None)
    max_cells: int | None = key(forms.whole("an integer of at least 1", least=1), default=None)

    @abstractmethod
    def predicates_of(self, axis: Axis) -> tuple[PredicateForm, Path]:
        """Return the predicate set of an attribute, and its place in the entry."""

    def of_each(self, domain: Domain, combined: list[Chosen], named: bool) -> list[Group]:
        """Return the groups of combinations; `named` to call them by their predicate sets too."""
        index = lambda axis: domain.index(axis.attribute.name)  # noqa: E731
        places = self.places(domain)
        asked = [tuple(sorted((*axes, *own), key=index)) for own in places for axes in combined]
        chosen = [axes for axes in asked if self.max_cells is None or _cells(axes) <= self.max_cells]
        if not chosen:
            found = f"{self.max_cells}, which leaves nothing"
            expected = f"at least {min(map(_cells, asked))}, the smallest asked for"
            raise EntryError.at(("max_cells",), found, expected, code="out-of-range")
        sets: dict[str, tuple[str, Predicates, int, str]] = {}
        for axis in {axis.name: axis for axes in chosen for axis in axes}.values():
            placed = axis.attribute.name in self.at
            form, place = (axis.values, ("at", axis.attribute.name)) if placed else self.predicates_of(axis)
            with within(*place):
                attribute = axis.attribute
                sets[axis.name] = attribute.name, form.on(attribute), attribute.size, form.text
        groups: list[Group] = []
        for axes in chosen:
            own = [sets[axis.name] for axis in axes]
            names, predicates, sizes, texts = zip(*own, strict=True) if own else ((), (), (), ())
            name = self.group_name(axes, texts if named else (), len(chosen) == 1)
            groups.append(ProductGroup(name, names, predicates, sizes))
        return self.weighted(groups)

    def combined(self, domain: Domain, numbers: Mapping[int, int]) -> list[Chosen]:
        """Return every combination of k attributes, for the numbers k given by their places in the entry."""
        main = self.main_key()
        attributes = [own for own in _narrowed(domain, self.attributes) if own.name not in self.at]
        with within("attributes"):
            each(lambda name: self.check_beside(domain[name]), self.attributes or ())
        for position, many in numbers.items():
            if many > len(attributes):
                path = (main,) if len(numbers) == 1 else (main, position)
                expected = f"at most {len(attributes)}, the number of attributes to combine"
                raise EntryError.at(path, f"{many} attributes at a time", expected, code="out-of-range")
        asked = sum(math.comb(len(attributes), many) for many in numbers.values()) * len(self.places(domain))
        if asked > MAX_GROUPS:
            found = f"{asked} combinations of {len(attributes)} attributes"
            raise TooLargeError.at((main,), found, f"at most {MAX_GROUPS}; narrow them with `attributes`")
        axes = [*map(Axis, attributes)]
        return [chosen for many in numbers.values() for chosen in combinations(axes, many)]


@final
@entry_form
@record
class MarginalsEntry(_Combinations):
    """Every cell of combinations of attributes."""

    which: tuple[int | tuple[str, ...], ...] = key(
        AnyOf((_ONE,), ListOf(_MARGINAL, _WHICH, least=1)),
        name="marginals",
    )

    def check(self) -> None:
        super().check()
        if self.attributes is not None and not any(isinstance(item, int) for item in self.which):
            found, expected = (
                "attributes with listed marginals",
                "`attributes` with numbers of attributes",
            )
            raise EntryError.at(("attributes",), found, expected, code="conflict")

    def groups(self, domain: Domain) -> list[Group]:
        numbers = {place: item for place, item in enumerate(self.which) if isinstance(item, int)}
        chosen = [*(self.combined(domain, numbers) if numbers else ()), *self._listed(domain)]
        return self.of_each(domain, chosen, named=False)

    def predicates_of(self, axis: Axis) -> tuple[PredicateForm, Path]:
        return axis.values, ()

    def _listed(self, domain: Domain) -> list[Chosen]:
        found: list[Chosen] = []
        for row, names in enumerate(self.which):
            if isinstance(names, int):
                continue
            axes: dict[str, Axis] = {}
            for place, name in enumerate(names):
                with within("marginals", row, place):
                    axis = Axis.of(domain, name)
                    self.check_beside(axis.attribute)
                    other = axes.setdefault(axis.attribute.name, axis)
                    if other is not axis:
                        both = f"{name!r} beside {other.name!r}, which are one attribute"
                        expected = "one of them, as each value of the finer says that of the coarser"
                        raise EntryError.at((), both, expected, code="conflict")
            found.append(tuple(axes[name] for name in domain.sort(axes)))
        return found


@final
@entry_form
@record
class KwayEntry(_Combinations):
    """Products of predicate sets on every combination of k attributes."""

    numbers: tuple[int, ...] = key(
        AnyOf((_ONE,), ListOf(_NUMBER, "a number of attributes, or a list of at least one", least=1)),
        name="kway",
    )
    predicates: PredicateForm | PredicatesByKind = key(
        AnyOf(((_names_kinds, forms.RecordForm(PredicatesByKind)),), PREDICATES),
        default=IDENTITY,
        always=True,
    )

    def groups(self, domain: Domain) -> list[Group]:
        return self.of_each(domain, self.combined(domain, dict(enumerate(self.numbers))), named=True)

    def predicates_of(self, axis: Axis) -> tuple[PredicateForm, Path]:
        if isinstance(self.predicates, PredicateForm):
            return self.predicates, ("predicates",)
        kind = "numeric" if axis.attribute.numeric else "categorical"
        return getattr(self.predicates, kind), ("predicates", kind)


# Entries whose predicates reach over several attributes: disjunctions, and sets of cells.


@final
@entry_form
@record
class DisjunctionEntry(MergedEntry):
    """Every combination of one predicate of each attribute's set, joined by OR."""

    predicates: Mapping[str, PredicateForm] = key(PREDICATES_BY_ATTRIBUTE, name="any")

    def check(self) -> None:
        super().check()
        count = len(self.predicates)
        if count < 2:
            found, expected = (
                f"{count} attribute{'s' * (not count)}",
                "at least two to join by OR; `product` asks about one",
            )
            raise EntryError.at(("any",), found, expected, code="wrong-size")

    def groups(self, domain: Domain) -> list[Group]:
        sets = AttributeSets.on(domain, self.predicates, "any")
        try:
            content = queries.Disjunctions(tuple(sets.predicates), _names_and_sizes(sets.attributes)[1])
        except WorkloadError:
            found = "a predicate with entries other than 0 and 1"
            raise EntryError.at(("any",), found, "sets of values, joined by OR", code="wrong-kind") from None
        return self.merged(domain, sets.attributes, content, " or ".join(sets.texts))


_VALUE = forms.scalar("one value of the attribute, a list of values, or {range: [first, last]}")


@final
@record
class Span(Record):
    """A range of values, by its ends."""

    ends: tuple[object, object] = key(
        ListOf(_VALUE, "a range [first, last]", 2, 2, "a range [first, last] of two values"), name="range"
    )


Condition = tuple[object, ...] | Span
"""The values of an attribute that a box allows, as the user wrote them: listed, or a range."""
Boxes = tuple[Mapping[str, Condition], ...]

_CONDITION: Form[Condition] = AnyOf(
    (
        (lambda value: isinstance(value, Mapping | Span), forms.RecordForm(Span)),
        (lambda value: isinstance(value, forms.LISTS), ListOf(_VALUE, _VALUE.expected, least=1)),
    ),
    forms.Unbracketed(_VALUE),
)
BOX = MappingOf(_CONDITION, "a mapping of attributes to values, {sex: female}", least=1)
_QUERY: Form[Boxes] = AnyOf(
    ((lambda value: isinstance(value, Mapping), forms.Unbracketed(BOX, (0,))),),
    ListOf(BOX, "a box, or a list of boxes", least=1, count="at least one box"),
)


@final
@entry_form
@record
class CellsEntry(MergedEntry):
    """Predicates over merged attributes, each a box of cells or a union of boxes."""

    queries: tuple[Boxes, ...] = key(
        ListOf(_QUERY, "a list of queries, each a list of boxes", least=1, count="at least one query"),
        name="cells",
    )

    def groups(self, domain: Domain) -> list[Group]:
        boxes = {(row, place): box for row, own in enumerate(self.queries) for place, box in enumerate(own)}
        for place, box in boxes.items():
            for name in box:
                with within("cells", *place, name):
                    find_attribute(domain, name)
        attributes = [domain[name] for name in domain.sort(set(chain.from_iterable(boxes.values())))]
        sizes = _names_and_sizes(attributes)[1]
        check_entries("cells", len(self.queries), math.prod(sizes))
        rows = np.zeros((len(self.queries), *sizes))
        texts: list[list[str]] = [[] for _ in self.queries]
        for place, box in boxes.items():
            with within("cells", *place):
                allowed, text = _inside(attributes, box)
            rows[place[0]] = np.maximum(rows[place[0]], allowed)
            texts[place[0]].append(text)
        content = queries.CellSets(rows.reshape(len(rows), -1), tuple(map(" or ".join, texts)))
        return self.merged(domain, attributes, content, "cells")


def _inside(attributes: list[Attribute], box: Mapping[str, Condition]) -> tuple[Array, str]:
    """Return which cells are in a box, as entries 0 and 1, and what it asks as text."""
    own, parts = [np.ones(attribute.size) for attribute in attributes], []
    for place, attribute in enumerate(attributes):
        if attribute.name in box:
            with within(attribute.name):
                own[place], text = allowed_values(attribute, box[attribute.name])
            parts.append(f"{attribute.name} {text}")
    return outer(own), " and ".join(parts)


def allowed_values(attribute: Attribute, condition: Condition) -> tuple[Array, str]:
    """Return the values that a condition allows, as entries 0 and 1, and as text."""
    found = np.zeros(len(attribute.all_codes))
    if isinstance(condition, Span):
        with within("range"):
            first, last = attribute.code_range(*condition.ends)
        found[first : last + 1] = 1.0
        return found, attribute.range_label(first, last)
    codes = [attribute.code_of(value) for value in condition]
    found[codes] = 1.0
    return found, " | ".join(attribute.label(code) for code in codes)
