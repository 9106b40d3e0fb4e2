"""Entries that stand for every combination of so many attributes: marginals and k-way products."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import final

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, TooLargeError, within
from matrixdp.forms import LISTS, Alone, Either, ListOf, Record, RecordForm, key, nearest, record, whole
from matrixdp.language.entry import (
    MAX_GROUPS,
    NAMES,
    Entry,
    entry_form,
    find_attribute,
    narrowed,
)
from matrixdp.language.keyed import LevelForm
from matrixdp.language.predicates import PREDICATES, NamedPredicates, PredicateForm
from matrixdp.queries.groups import Group, ProductGroup
from matrixdp.queries.predicate_set import Predicates

__all__ = ["KwayEntry", "MarginalsEntry", "PredicatesByKind"]


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
_ONE = (lambda value: isinstance(value, Integral), Alone(_NUMBER))
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
                raise EntryError.at(path, f"{many} attributes at a time", expected)
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
            raise EntryError.at(("max_cells",), found, f"at least {smallest}, the smallest asked for")
        return chosen


@final
@entry_form
@record
class MarginalsEntry(_Combinations):
    """Every cell of combinations of attributes."""

    which: Ways = key(
        Either((_ONE, (_names_attributes, ListOf(NAMES, _WHICH))), ListOf(_NUMBER, _WHICH, least=1)),
        name="marginals",
    )

    def check(self) -> None:
        super().check()
        if self.attributes is not None and not isinstance(self.which[0], int):
            expected = "`attributes` with numbers of attributes alone"
            raise EntryError.at(("attributes",), "attributes with listed marginals", expected)

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
            raise EntryError.at((), found, "one of them, as each value of the finer says that of the coarser")
    return axis


@final
@entry_form
@record
class KwayEntry(_Combinations):
    """Products of predicate sets on every so many attributes."""

    numbers: tuple[int, ...] = key(
        Either((_ONE,), ListOf(_NUMBER, "a number of attributes, or a list of at least one", least=1)),
        name="kway",
    )
    predicates: PredicateForm | PredicatesByKind = key(
        Either(((_names_kinds, RecordForm(PredicatesByKind)),), PREDICATES), default=IDENTITY, always=True
    )

    def groups(self, domain: Domain) -> list[Group]:
        return self.of_each(self.combined(domain, self.numbers), named=True)

    def predicates_of(self, axis: Axis) -> tuple[PredicateForm, tuple[str, ...]]:
        if isinstance(self.predicates, PredicateForm):
            return self.predicates, ("predicates",)
        kind = "numeric" if axis.attribute.numeric else "categorical"
        return getattr(self.predicates, kind), ("predicates", kind)
