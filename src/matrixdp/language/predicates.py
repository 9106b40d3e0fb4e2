"""Predicate sets as a user writes them; a form knows nothing of an attribute until it is put on one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, TypeVar, final

from matrixdp.domain import Attribute
from matrixdp.errors import EntryError, each, within
from matrixdp.forms import (
    Form,
    FormError,
    Given,
    Kept,
    ListOf,
    Record,
    Schema,
    as_lists,
    describe_value,
    key,
    nearest,
    record,
    register,
    scalar,
    whole,
)
from matrixdp.language.arrays import ArrayForm
from matrixdp.queries.arrays import Array
from matrixdp.queries.permuted import Permuted, seeded_order
from matrixdp.queries.predicates import (
    AllRanges,
    Circular,
    Identity,
    Matrix,
    Predicates,
    Prefix,
    Ranges,
    Sets,
    Suffix,
    Total,
    Width,
)
from matrixdp.queries.stacked import Stacked

__all__ = [
    "KEYED_PREDICATES",
    "NAMED_PREDICATES",
    "PREDICATES",
    "KeyedPredicates",
    "NamedPredicates",
    "PredicateForm",
    "StackedPredicates",
    "keyed_predicates",
]

NAMED_PREDICATES: dict[str, Predicates] = {
    "identity": Identity(),
    "total": Total(),
    "prefix": Prefix(),
    "suffix": Suffix(),
    "range": AllRanges(),
    "circular": Circular(),
}
"""The predicate sets that need nothing but their name."""

KEYED_PREDICATES: dict[str, type[KeyedPredicates]] = {}
"""The predicate sets that are mappings, by the key that tells them."""

_MOST_PERMUTED = 1_000_000

K = TypeVar("K", bound="type[KeyedPredicates]")


class PredicateForm(ABC):
    """A predicate set as written, checked as far as it can be without its attribute."""

    @property
    @abstractmethod
    def text(self) -> str:
        """What the set is called in the names of groups."""

    @abstractmethod
    def on(self, attribute: Attribute) -> Predicates:
        """Return the predicates over the codes of an attribute.

        Raises
        ------
        EntryError
            If a value is not in the attribute's domain, or the set does not fit its size. The path is inside.
        """

    @abstractmethod
    def to_spec(self, kept: Kept = as_lists) -> object:
        """Return the form as a specification has it, arrays as lists or as `kept` writes them."""


@final
@dataclass(frozen=True)
class NamedPredicates(PredicateForm):
    """A set that needs nothing but its name."""

    name: str

    @property
    def text(self) -> str:
        return self.name

    def on(self, attribute: Attribute) -> Predicates:
        return NAMED_PREDICATES[self.name]

    def to_spec(self, kept: Kept = as_lists) -> str:
        return self.name


@final
@dataclass(frozen=True)
class StackedPredicates(PredicateForm):
    """Several sets, one after the other."""

    forms: tuple[PredicateForm, ...]

    @property
    def text(self) -> str:
        return " + ".join(form.text for form in self.forms)

    def on(self, attribute: Attribute) -> Predicates:
        return Stacked(tuple(each(lambda form: form.on(attribute), self.forms)))

    def to_spec(self, kept: Kept = as_lists) -> list[object]:
        return [form.to_spec(kept) for form in self.forms]


class KeyedPredicates(Record, PredicateForm):
    """A set that is written as a mapping, told from others by its first key; see `keyed_predicates`."""

    sample: ClassVar[str]
    """How it is written, for messages."""

    @property
    def text(self) -> str:
        return self.main_key()


def keyed_predicates(form: K) -> K:
    """Add a form of predicate sets to the language, by its first key; a decorator of records."""
    register(KEYED_PREDICATES, form)
    return form


@final
@dataclass(frozen=True)
class _Predicates(Form[PredicateForm]):
    """The form of a predicate set: a name, a mapping, or, where they may be stacked, a list of these."""

    stacked: bool

    def read(self, written: object, given: Given) -> PredicateForm:
        if isinstance(written, PredicateForm):
            return written
        if isinstance(written, str) and written in NAMED_PREDICATES:
            return NamedPredicates(written)
        if self.stacked and isinstance(written, list | tuple) and written:
            return StackedPredicates(ListOf(_Predicates(stacked=False), "").read(written, given))
        keys = list(written) if isinstance(written, Mapping) else []
        known = [name for name in keys if name in KEYED_PREDICATES]
        if len(known) == 1:
            return KEYED_PREDICATES[known[0]].read(written, given)
        close: tuple[str, ...] = ()
        if isinstance(written, str):
            close = nearest(written, (*NAMED_PREDICATES, *KEYED_PREDICATES))
        elif keys and not known:
            close = nearest(str(keys[0]), KEYED_PREDICATES)
        forms = ", ".join([*NAMED_PREDICATES, *(form.sample for form in KEYED_PREDICATES.values())])
        expected = f"{forms} or a list of these" if self.stacked else forms
        raise FormError.at((), describe_value(written), expected, close)

    def write(self, value: PredicateForm, kept: Kept = as_lists) -> object:
        return value.to_spec(kept)

    def schema(self, definitions: Schema) -> Schema:
        one, several = {"$ref": "#/$defs/PredicateSet"}, {"$ref": "#/$defs/PredicateSets"}
        if "PredicateSet" not in definitions:
            forms = definitions["PredicateSet"] = {"anyOf": [{"enum": list(NAMED_PREDICATES)}]}
            definitions["PredicateSets"] = {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}
            forms["anyOf"] += [form.schema(definitions) for form in KEYED_PREDICATES.values()]
        return several


PREDICATES = _Predicates(stacked=True)
"""The form of predicate sets."""

_VALUE = scalar("one value of the attribute")


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
    """Listed ranges, by their ends."""

    sample = "{ranges: [[first, last], ...]}"
    ranges: tuple[tuple[object, object], ...] = key(
        ListOf(
            ListOf(_VALUE, "a range [first, last]", 2, 2, "a range [first, last] of two values"),
            "a list of at least one range [first, last]",
            least=1,
        )
    )

    def on(self, attribute: Attribute) -> Predicates:
        with within("ranges"):
            return Ranges(tuple(each(lambda ends: attribute.code_range(*ends), self.ranges)))


@final
@keyed_predicates
@record
class SetsForm(KeyedPredicates):
    """Listed sets of values."""

    sample = "{sets: [[value, ...], ...]}"
    sets: tuple[tuple[object, ...], ...] = key(
        ListOf(ListOf(_VALUE, "a set [value, ...]"), "a list of at least one set [value, ...]", least=1)
    )

    def on(self, attribute: Attribute) -> Predicates:
        with within("sets"):
            return Sets(tuple(each(lambda values: _codes_of(values, attribute), self.sets)))


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
