"""The predicate sets that are written as mappings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cached_property
from typing import TypeVar, final

from matrixdp.domain import Attribute
from matrixdp.errors import DomainError, EntryError, each, within
from matrixdp.forms import (
    Either,
    Form,
    FormError,
    ListOf,
    MappingOf,
    describe_value,
    is_unicode,
    key,
    record,
    scalar,
    text,
    unknown_name,
    whole,
)
from matrixdp.language.arrays import ArrayForm
from matrixdp.language.predicates import PREDICATES, KeyedPredicates, PredicateForm, keyed_predicates
from matrixdp.queries.arrays import Array
from matrixdp.queries.labelled import Labelled
from matrixdp.queries.permuted import Permuted, seeded_order
from matrixdp.queries.predicates import Matrix, Predicates, Ranges, Sets, Width

__all__ = ["MatrixForm", "PermutedForm", "RangesForm", "SetsForm", "WidthForm"]

_MOST_PERMUTED = 1_000_000
_VALUE = scalar("one value of the attribute")

T = TypeVar("T")
V = TypeVar("V")
Listed = tuple[T, ...] | Mapping[str, T]
"""Items of a list, or each under its name."""


def _listed(item: Form[T], written: str) -> Form[Listed[T]]:
    """Return the form of a list of at least one item, or of a mapping from names to such items."""
    named = MappingOf(
        item,
        f"a mapping from names, each to {written}",
        named="a name, which is text",
        least=1,
        count=f"at least one name with {written}",
    )
    listed = ListOf(item, f"a list of at least one {written}, or a mapping from names to them", least=1)
    return Either(((lambda value: isinstance(value, Mapping), named),), listed)


def _each(function: Callable[[T], V], items: Listed[T]) -> tuple[V, ...]:
    """Return what a function makes of each item; its errors tell the position or the name of the item."""
    if not isinstance(items, Mapping):
        return tuple(each(function, items))
    made = []
    for name, item in items.items():
        with within(name):
            made.append(function(item))
    return tuple(made)


def _labelled(
    predicates: Predicates, items: Listed[T], only: Iterable[int | None], attribute: Attribute
) -> Predicates:
    """Return a set with the names of its items, if they have some, which may not be those of other values.

    ``only`` has for each item its code, where it has no more than one.
    """
    if not isinstance(items, Mapping):
        return predicates
    for name, code in zip(items, only, strict=True):
        if not name.strip() or not is_unicode(name):
            raise EntryError.at((), f"the name {describe_value(name)}", "text that is not empty")
        if _called(attribute, name) not in (None, code):
            expected = f"a name that is not that of another value of {attribute.name!r}"
            raise EntryError.at((name,), repr(name), expected)
    return Labelled(predicates, tuple(items))


def _called(attribute: Attribute, name: str) -> int | None:
    """Return the code of the value that is called so, without a step for every value; bins by their edge."""
    for value in (name, name[1:].partition(",")[0]):
        with suppress(DomainError):
            code = attribute.find(value)
            if attribute.label(code) == name:
                return code
    return None


@final
@keyed_predicates
@record
class WidthForm(KeyedPredicates):
    """All ranges of so many values."""

    sample = "{width: k}"
    width: int = key(whole("an integer of at least 1, the number of values", least=1))

    @property
    def text(self) -> str:
        return f"width {self.width}"

    def on(self, attribute: Attribute) -> Predicates:
        if self.width > attribute.size:
            raise EntryError.at(
                ("width",), str(self.width), f"at most {attribute.size}, the attribute's size"
            )
        return Width(self.width)


@final
@keyed_predicates
@record
class RangesForm(KeyedPredicates):
    """Ranges, by their ends: listed, or each under its name."""

    sample = "{ranges: [[first, last], ...]}"
    ranges: Listed[tuple[object, object]] = key(
        _listed(
            ListOf(_VALUE, "a range [first, last]", 2, 2, "a range [first, last] of two values"),
            "range [first, last]",
        )
    )

    def on(self, attribute: Attribute) -> Predicates:
        with within("ranges"):
            ends = _each(lambda ends: attribute.code_range(*ends), self.ranges)
            only = (first if first == last else None for first, last in ends)
            return _labelled(Ranges(ends), self.ranges, only, attribute)


@final
@keyed_predicates
@record
class SetsForm(KeyedPredicates):
    """Sets of values: listed, or each under its name."""

    sample = "{sets: [[value, ...], ...]}"
    sets: Listed[tuple[object, ...]] = key(_listed(ListOf(_VALUE, "a set [value, ...]"), "set [value, ...]"))

    def on(self, attribute: Attribute) -> Predicates:
        with within("sets"):
            sets = _each(lambda values: _codes_of(values, attribute), self.sets)
            only = (codes[0] if len(codes) == 1 else None for codes in sets)
            return _labelled(Sets(sets), self.sets, only, attribute)


@final
@keyed_predicates
@record
class LevelForm(KeyedPredicates):
    """The values of a level of the attribute, each the set of those that are in it."""

    sample = "{level: name}"
    level: str = key(text("the name of a level of the attribute"))

    @property
    def text(self) -> str:
        return f"level {self.level}"

    def on(self, attribute: Attribute) -> Predicates:
        names = [level.name for level in attribute.codebook.levels]
        if self.level not in names:
            expected = f"a level of {attribute.name!r}"
            raise EntryError(unknown_name(("level",), self.level, expected, names))
        level = attribute.level(self.level)
        return Labelled(Sets(tuple(codes for _, codes in level.groups)), level.labels(attribute))


@final
@keyed_predicates
@record
class MatrixForm(KeyedPredicates):
    """The rows of a real matrix with a column for each value."""

    sample = "{matrix: file.npy}"
    matrix: Array = key(ArrayForm("a finite matrix with a row for each query", axes=2))

    @cached_property
    def _rows(self) -> Matrix:
        return Matrix(self.matrix)

    def on(self, attribute: Attribute) -> Predicates:
        columns = self.matrix.shape[1]
        if columns != attribute.size:
            expected = f"{attribute.size}, one for each value of the attribute"
            raise EntryError.at(("matrix",), f"a matrix of {columns} columns", expected)
        return self._rows


@final
@keyed_predicates
@record
class PermutedForm(KeyedPredicates):
    """A set over the values in another order: that of a seed, or one listed."""

    sample = "{permuted: set, seed: 1}"
    permuted: PredicateForm = key(PREDICATES)
    seed: int | None = key(whole("an integer"), default=None)
    order: tuple[object, ...] | None = key(ListOf(_VALUE, "a list of all values"), default=None)

    @property
    def text(self) -> str:
        return f"permuted {self.permuted.text}"

    def check(self) -> None:
        if (self.seed is None) == (self.order is None):
            found = "permuted with neither seed nor order" if self.seed is None else "both seed and order"
            expected = "{permuted: set, seed: 1} or {permuted: set, order: [value, ...]}, each value once"
            raise FormError.at((), found, expected)

    def on(self, attribute: Attribute) -> Predicates:
        with within("order"):
            order = self._order(attribute)
        with within("permuted"):
            return Permuted(self.permuted.on(attribute), order)

    def _order(self, attribute: Attribute) -> tuple[int, ...]:
        if self.order is None:
            if attribute.size > _MOST_PERMUTED:
                found = f"an attribute of {attribute.size:,} values"
                raise EntryError.at((), found, f"one of at most {_MOST_PERMUTED:,} to put in order")
            return seeded_order(attribute.size, int(self.seed or 0))
        codes = _codes_of(self.order, attribute)
        if len(codes) != attribute.size:
            raise EntryError.at((), f"{len(codes)} values", f"each of the {attribute.size} values once")
        return codes


def _codes_of(values: tuple[object, ...], attribute: Attribute) -> tuple[int, ...]:
    codes = tuple(each(attribute.code_of, values))
    if len(set(codes)) < len(codes):
        place = next(i for i, code in enumerate(codes) if code in codes[:i])
        raise EntryError.at((place,), f"{describe_value(values[place])} again", "each value once in a set")
    return codes
