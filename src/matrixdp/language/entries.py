"""Entries of a workload: what all of them share, and reading one of any form."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import combinations
from numbers import Integral
from typing import Protocol, TypeVar, final

import numpy as np

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import DomainError, EntryError, Problem, TooLargeError, WorkloadError, within
from matrixdp.forms import (
    LISTS,
    AnyOf,
    Form,
    ListOf,
    MappingOf,
    OneOf,
    Record,
    RecordForm,
    ResolvePath,
    Schema,
    Unbracketed,
    WriteArray,
    as_lists,
    as_written,
    describe_value,
    key,
    nearest,
    record,
    register,
    scalar,
    text,
    unknown_name,
    whole,
)
from matrixdp.language.predicates import PREDICATES, ArrayForm, LevelForm, NamedPredicates, PredicateForm
from matrixdp.queries import workload
from matrixdp.queries.groups import (
    WEIGHT,
    AbsoluteDifferences,
    CellSets,
    Crossed,
    DenseGroup,
    Disjunctions,
    Group,
    MatrixRows,
    ProductGroup,
    Rows,
    Sums,
    check_weights,
)
from matrixdp.queries.predicates import Array, Predicates, check_entries

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


Path = tuple[str | int, ...]
"""The place of a part within an entry."""


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
        with as_entry_errors():
            return self.groups(domain)

    def check(self) -> None:
        """Check that the weights are numbers above 0 that neither overflow nor vanish."""
        with as_entry_errors():
            check_weights(self.weight, self.weights)

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
        return check_weights(self.weight, self.weights, queries)[1]

    def check_single(self, groups: int) -> None:
        """Check that weights for each query are for one group alone."""
        if self.weights is not None and groups != 1:
            found = f"weights for an entry that stands for {groups} groups"
            expected = "`weights` with one group alone; `weight` holds for all groups of an entry"
            raise EntryError.at(("weights",), found, expected, code="wrong-size")


def entry_form(form: E) -> E:
    """Add a form of entry to the language, by its first key; a decorator of records."""
    register(ENTRIES, form)
    return form


@final
class _Entries(Form[Entry]):
    """An entry of any form, told by its first key."""

    def read(self, written: object, resolve: ResolvePath) -> Entry:
        if isinstance(written, Entry):
            return written
        keys = list(written) if isinstance(written, Mapping) else []
        for name in keys:
            if name in ENTRIES:
                return ENTRIES[name].read(written, resolve)
        close = next(filter(None, (nearest(str(name), ENTRIES) for name in keys)), ())
        expected = f"an entry with one of the keys {', '.join(ENTRIES)}"
        raise EntryError.at((), describe_value(written), expected, close, code="unknown-key")

    def write(self, value: Entry, write_array: WriteArray = as_lists) -> object:
        return value.to_spec(write_array)

    def schema(self, definitions: Schema) -> Schema:
        return {"anyOf": [form.schema(definitions) for form in ENTRIES.values()]}


ENTRY = _Entries()
"""The form of entries."""


def read_entry(written: object, resolve: ResolvePath = as_written) -> Entry:
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


def one_group(entry: workload.Entry, domain: Domain) -> Group:
    """Return the one query group that an entry stands for."""
    groups = entry.expand(domain)
    if len(groups) != 1:
        found = f"an entry of {len(groups)} groups"
        raise EntryError.at((), found, "one that stands for one group", code="wrong-size")
    return groups[0]


def find_attribute(domain: Domain, name: str) -> Attribute:
    """Return an attribute of the domain."""
    if name not in domain:
        owners = [a.name for a in domain.attributes if name in [level.name for level in a.codebook.levels]]
        if owners:
            form = f"predicate sets, as in `product` and `by`, may be {owners[0]}: {{level: {name}}}"
            expected = f"the attribute {owners[0]!r} with values of its own; {form}"
            raise EntryError.at(
                (), f"{name!r}, a level of {' and '.join(map(repr, owners))}", expected, code="wrong-kind"
            )
        problem = unknown_name((), name, "an attribute of the domain", domain.names)
        raise EntryError(problem, code="unknown-name")
    return domain[name]


def check_numeric(attribute: Attribute) -> None:
    """Check that an attribute is one of numbers, dates or bins, whose values have an order."""
    if not attribute.numeric:
        found = f"{attribute.name!r}, which lists categories"
        expected = "a numeric attribute: one given by min and max, edges, bins, dates or a size"
        raise EntryError.at((), found, expected, code="wrong-kind")


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
                else:
                    attribute, form = level, LevelForm(level=name)
                if attribute.name in predicates:
                    found = f"{name!r} beside another level of {attribute.name!r}, or its own values"
                    raise EntryError.at((), found, "one of both", code="conflict")
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


# Entries of products of predicate sets, of comparisons of two attributes, and of matrices over a few.


@final
@entry_form
@record
class ProductEntry(Entry):
    """One product of predicate sets; attributes that are not named are totals."""

    predicates: Mapping[str, PredicateForm] = key(PREDICATES_BY_ATTRIBUTE, name="product")

    def groups(self, domain: Domain) -> list[Group]:
        sets = AttributeSets.on(domain, self.predicates, "product")
        return [
            ProductGroup(
                self.group_name(sets.attributes, sets.texts, single=True),
                tuple(a.name for a in sets.attributes),
                tuple(sets.predicates),
                tuple(a.size for a in sets.attributes),
                self.weight,
                self.weights_for(sets.queries),
            )
        ]


@final
@entry_form
@record
class PairwiseEntry(Entry):
    """A comparison of the codes of every two numeric attributes."""

    kind: str = key(OneOf(("affine", "abs")), name="pairwise")
    attributes: tuple[str, ...] | None = key(NAMES, default=None)

    def groups(self, domain: Domain) -> list[Group]:
        chosen = narrowed(domain, self.attributes)
        if self.attributes is None:
            chosen = tuple(one for one in chosen if one.numeric and one.null_code is None)
        for position, name in enumerate(self.attributes or ()):
            with within("attributes", position):
                check_numeric(domain[name])
            if domain[name].null_code is not None:
                found = f"{name!r}, which has the value null"
                expected = "an attribute without `null`, which has no place in an order"
                raise EntryError.at(("attributes", position), found, expected, code="wrong-kind")
        if len(chosen) < 2:
            path = ("pairwise" if self.attributes is None else "attributes",)
            raise EntryError.at(path, f"{len(chosen)} numeric attributes", "at least 2", code="wrong-size")
        pairs = math.comb(len(chosen), 2)
        if pairs > MAX_GROUPS:
            expected = f"at most {MAX_GROUPS}; narrow them with `attributes`"
            raise TooLargeError.at(("pairwise",), f"{pairs} pairs", expected)
        self.check_single(pairs)
        return [self._group(pair, pairs == 1) for pair in combinations(chosen, 2)]

    def _group(self, pair: tuple[Attribute, ...], single: bool) -> DenseGroup:
        sizes = (pair[0].size, pair[1].size)
        content = Sums(sizes) if self.kind == "affine" else AbsoluteDifferences(sizes)
        return DenseGroup(
            self.group_name(pair, [self.kind], single),
            (pair[0].name, pair[1].name),
            content,
            sizes,
            self.weight,
            self.weights_for(content.count),
        )


@record
class MergedEntry(Entry):
    """An entry of explicit queries over merged attributes, asked within predicates of others."""

    by: Mapping[str, PredicateForm] = key(PREDICATES_BY_ATTRIBUTE, default={})

    def merged_group(
        self,
        domain: Domain,
        attributes: Sequence[Attribute],
        content: Rows,
        text: str,
    ) -> DenseGroup:
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
        merged = {attribute.name for attribute in attributes}
        others = AttributeSets.on(domain, self.by, "by")
        for name in self.by:
            if name in merged:
                found = "an attribute of the queries themselves"
                raise EntryError.at(("by", name), found, "other attributes", code="conflict")
        together = sorted([*attributes, *others.attributes], key=lambda a: domain.index(a.name))
        sizes = tuple(attribute.size for attribute in together)
        weights = self.weights_for(content.count * others.queries)
        if self.by:
            places = tuple(place for place, attribute in enumerate(together) if attribute.name in merged)
            content = Crossed(content, places, tuple(others.predicates), sizes)
        return DenseGroup(
            self.group_name(together, [text, *others.texts], single=True),
            tuple(attribute.name for attribute in together),
            content,
            sizes,
            self.weight,
            weights,
        )


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
        attributes = []
        for position, name in enumerate(self.attributes):
            with within("attributes", position):
                attributes.append(find_attribute(domain, name))
        sizes = tuple(attribute.size for attribute in attributes)
        rows, columns = self.matrix.shape
        if columns != math.prod(sizes):
            expected = f"{math.prod(sizes)}, one for each cell of {', '.join(self.attributes)}"
            raise EntryError.at(("dense",), f"a matrix of {columns} columns", expected, code="wrong-size")
        order = sorted(range(len(sizes)), key=lambda place: domain.index(self.attributes[place]))
        matrix = self.matrix.reshape(rows, *sizes).transpose(0, *(position + 1 for position in order))
        content = MatrixRows(matrix.reshape(rows, columns))
        return [self.merged_group(domain, [attributes[place] for place in order], content, "dense")]


# Entries that stand for every combination of so many attributes: marginals and k-way products.


@final
@dataclass(frozen=True)
class Axis:
    """An attribute of a combination, at one of its levels or at its own values."""

    attribute: Attribute
    level: str | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        return self.attribute.name if self.level is None else self.level

    @property
    def size(self) -> int:
        """The number of values."""
        attribute = self.attribute
        return attribute.size if self.level is None else len(attribute.level(self.level).groups)


Chosen = tuple[Axis, ...]
"""Attributes to combine, in domain order."""
Ways = tuple[int, ...] | tuple[tuple[str, ...], ...]

_NUMBER = whole("a number of attributes, an integer of at least 0", least=0)
_ONE = (lambda value: isinstance(value, Integral), Unbracketed(_NUMBER))
_WHICH = "a number of attributes, a list of numbers, or a list of lists of attributes"
IDENTITY = NamedPredicates("identity")


@final
@record
class PredicatesByKind(Record):
    """One predicate set for categorical attributes and one for numeric ones."""

    categorical: PredicateForm = key(PREDICATES, default=IDENTITY, always=True)
    numeric: PredicateForm = key(PREDICATES, default=IDENTITY, always=True)


def _names_attributes(value: object) -> bool:
    return isinstance(value, LISTS) and len(value) > 0 and isinstance(value[0], list | tuple | str)


def _names_kinds(value: object) -> bool:
    kinds = PredicatesByKind.keys()
    named = isinstance(value, Mapping) and any(nearest(str(name), kinds) for name in value)
    return named or isinstance(value, PredicatesByKind)


@record
class _Combinations(Entry):
    """What entries of combinations of attributes share; their first key says which they combine."""

    attributes: tuple[str, ...] | None = key(NAMES, default=None)
    max_cells: int | None = key(whole("an integer of at least 1", least=1), default=None)

    @abstractmethod
    def predicates_of(self, axis: Axis) -> tuple[PredicateForm, tuple[str, ...]]:
        """Return the predicate set of an attribute, and its place in the entry."""

    def of_each(self, chosen: list[Chosen], named: bool) -> list[Group]:
        """Return the group of each combination; `named` to call it by its predicate sets too."""
        self.check_single(len(chosen))
        sets: dict[str, tuple[Predicates, str]] = {}
        groups: list[Group] = []
        for axes in chosen:
            for axis in axes:
                if axis.name not in sets:
                    form, place = self.predicates_of(axis)
                    with within(*place):
                        sets[axis.name] = form.on(axis.attribute), form.text
            texts = [sets[a.name][1] for a in axes] if named else []
            sizes = tuple(a.attribute.size for a in axes)
            predicates = tuple(sets[a.name][0] for a in axes)
            weighted = () if self.weights is None else zip(predicates, sizes, strict=True)
            counts = [p.count(n) for p, n in weighted]
            groups.append(
                ProductGroup(
                    self.group_name(axes, texts, len(chosen) == 1),
                    tuple(a.attribute.name for a in axes),
                    predicates,
                    sizes,
                    self.weight,
                    self.weights_for(math.prod(counts)),
                )
            )
        return groups

    def combined(self, domain: Domain, numbers: tuple[int, ...]) -> list[Chosen]:
        """Return every combination of so many attributes that is not too large."""
        attributes, main = narrowed(domain, self.attributes), self.main_key()
        for position, many in enumerate(numbers):
            if many > len(attributes):
                path = (main,) if len(numbers) == 1 else (main, position)
                expected = f"at most {len(attributes)}, the number of attributes to combine"
                raise EntryError.at(path, f"{many} attributes at a time", expected, code="out-of-range")
        asked = sum(math.comb(len(attributes), many) for many in numbers)
        if asked > MAX_GROUPS:
            found = f"{asked} combinations of {len(attributes)} attributes"
            raise TooLargeError.at((main,), found, f"at most {MAX_GROUPS}; narrow them with `attributes`")
        kept: list[Chosen] = [
            chosen
            for many in numbers
            for chosen in combinations(map(Axis, attributes), many)
            if self._fits(chosen)
        ]
        smallest = sorted(attribute.size for attribute in attributes)[: min(numbers)]
        return self._some(kept, math.prod(smallest))

    def _fits(self, chosen: Iterable[Axis]) -> bool:
        return self.max_cells is None or math.prod(a.size for a in chosen) <= self.max_cells

    def _some(self, chosen: list[Chosen], smallest: int) -> list[Chosen]:
        if not chosen:
            found = f"{self.max_cells}, which leaves nothing"
            raise EntryError.at(
                ("max_cells",), found, f"at least {smallest}, the smallest asked for", code="out-of-range"
            )
        return chosen


@final
@entry_form
@record
class MarginalsEntry(_Combinations):
    """Every cell of combinations of attributes."""

    which: Ways = key(
        AnyOf((_ONE, (_names_attributes, ListOf(NAMES, _WHICH))), ListOf(_NUMBER, _WHICH, least=1)),
        name="marginals",
    )

    def check(self) -> None:
        super().check()
        if self.attributes is not None and not isinstance(self.which[0], int):
            expected = "`attributes` with numbers of attributes alone"
            raise EntryError.at(
                ("attributes",), "attributes with listed marginals", expected, code="conflict"
            )

    def groups(self, domain: Domain) -> list[Group]:
        numbers = tuple(item for item in self.which if isinstance(item, int))
        chosen = self.combined(domain, numbers) if numbers else self._listed(domain)
        return self.of_each(chosen, named=False)

    def predicates_of(self, axis: Axis) -> tuple[PredicateForm, tuple[str, ...]]:
        return (IDENTITY if axis.level is None else LevelForm(level=axis.level)), ()

    def _listed(self, domain: Domain) -> list[Chosen]:
        found: list[Chosen] = []
        for row, names in enumerate(self.which):
            axes: list[Axis] = []
            for place, name in enumerate(names if isinstance(names, tuple) else ()):
                with within("marginals", row, place):
                    axes.append(_axis(domain, name, axes))
            found.append(tuple(sorted(axes, key=lambda axis: domain.index(axis.attribute.name))))
        kept = [axes for axes in found if self._fits(axes)]
        return self._some(kept, min(math.prod(a.size for a in axes) for axes in found))


def _axis(domain: Domain, name: str, before: list[Axis]) -> Axis:
    """Return the attribute or the level of a name, of an attribute that does not stand before."""
    level = None if name in domain else domain.levels.get(name)
    axis = Axis(find_attribute(domain, name)) if level is None else Axis(level, name)
    for other in before:
        if other.attribute.name == axis.attribute.name:
            found = f"{name!r} beside {other.name!r}, which are one attribute"
            raise EntryError.at(
                (), found, "one of them, as each value of the finer says that of the coarser", code="conflict"
            )
    return axis


@final
@entry_form
@record
class KwayEntry(_Combinations):
    """Products of predicate sets on every so many attributes."""

    numbers: tuple[int, ...] = key(
        AnyOf((_ONE,), ListOf(_NUMBER, "a number of attributes, or a list of at least one", least=1)),
        name="kway",
    )
    predicates: PredicateForm | PredicatesByKind = key(
        AnyOf(((_names_kinds, RecordForm(PredicatesByKind)),), PREDICATES), default=IDENTITY, always=True
    )

    def groups(self, domain: Domain) -> list[Group]:
        return self.of_each(self.combined(domain, self.numbers), named=True)

    def predicates_of(self, axis: Axis) -> tuple[PredicateForm, tuple[str, ...]]:
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
            expected = "at least two to join by OR; `product` asks about one"
            raise EntryError.at(
                ("any",), f"{count} attribute{'s' * (not count)}", expected, code="wrong-size"
            )

    def groups(self, domain: Domain) -> list[Group]:
        sets = AttributeSets.on(domain, self.predicates, "any")
        sizes = tuple(attribute.size for attribute in sets.attributes)
        try:
            content = Disjunctions(tuple(sets.predicates), sizes)
        except WorkloadError:
            found = "a predicate with entries other than 0 and 1"
            raise EntryError.at(("any",), found, "sets of values, joined by OR", code="wrong-kind") from None
        text = " or ".join(sets.texts)
        return [self.merged_group(domain, sets.attributes, content, text)]


_VALUE = scalar("one value of the attribute, a list of values, or {range: [first, last]}")


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
        (lambda value: isinstance(value, Mapping | Span), RecordForm(Span)),
        (lambda value: isinstance(value, LISTS), ListOf(_VALUE, _VALUE.expected, least=1)),
    ),
    Unbracketed(_VALUE),
)
BOX = MappingOf(_CONDITION, "a mapping of attributes to values, {sex: female}", least=1)
_BOXES = ListOf(BOX, "a box, or a list of boxes", least=1, count="at least one box")
_QUERY: Form[Boxes] = AnyOf(((lambda value: isinstance(value, Mapping), Unbracketed(BOX, (0,))),), _BOXES)


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
        attributes = self._attributes(domain)
        sizes = tuple(attribute.size for attribute in attributes)
        cells = math.prod(sizes)
        check_entries("cells", len(self.queries), cells)
        rows = np.zeros((len(self.queries), *sizes))
        texts = []
        for row, boxes in enumerate(self.queries):
            found = []
            for place, box in enumerate(boxes):
                with within("cells", row, place):
                    allowed, text = _inside(attributes, box)
                rows[row] = np.maximum(rows[row], allowed)
                found.append(text)
            texts.append(" or ".join(found))
        content = CellSets(rows.reshape(len(rows), cells), tuple(texts))
        return [self.merged_group(domain, attributes, content, "cells")]

    def _attributes(self, domain: Domain) -> list[Attribute]:
        """Return the attributes that a box names, in domain order."""
        named: dict[str, Attribute] = {}
        for row, boxes in enumerate(self.queries):
            for place, box in enumerate(boxes):
                for name in box:
                    with within("cells", row, place, name):
                        named[name] = find_attribute(domain, name)
        return [named[name] for name in domain.sort(named)]


def _inside(attributes: list[Attribute], box: Mapping[str, Condition]) -> tuple[Array, str]:
    """Return which cells are in a box, as entries 0 and 1, and what it asks as text."""
    allowed: Array = np.ones(())
    parts = []
    for attribute in attributes:
        own = np.ones(attribute.size)
        if attribute.name in box:
            with within(attribute.name):
                own, text = allowed_values(attribute, box[attribute.name])
            parts.append(f"{attribute.name} {text}")
        allowed = np.asarray(np.multiply.outer(allowed, own))
    return allowed, " and ".join(parts)


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
