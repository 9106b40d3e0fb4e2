"""Predicate sets as a user writes them; a form knows nothing of an attribute until it is put on one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeVar, final

from matrixdp.domain import Attribute
from matrixdp.errors import each
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
    nearest,
    register,
)
from matrixdp.queries.predicates import (
    AllRanges,
    Circular,
    Identity,
    Predicates,
    Prefix,
    Suffix,
    Total,
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
