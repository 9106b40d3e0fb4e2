"""Forms of scalars, lists and mappings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, Generic, TypeVar, final

import numpy as np

from matrixdp.errors import MatrixDPError, each, placed, within
from matrixdp.forms.form import Form, FormError, Given, Kept, Schema, as_lists
from matrixdp.forms.wording import describe_value, is_unicode, nearest

__all__ = [
    "LISTS",
    "Accepted",
    "Alone",
    "Either",
    "ListOf",
    "MappingOf",
    "OneOf",
    "OrFile",
    "Raw",
    "flag",
    "number",
    "scalar",
    "text",
    "whole",
]

S = TypeVar("S")
T = TypeVar("T")
V = TypeVar("V", bound=str | int | float)

LISTS = (list, tuple, range, np.ndarray)
"""What counts as a list."""


@final
@dataclass(frozen=True)
class Accepted(Form[V]):
    """A scalar that a function accepts; it returns None for any other."""

    expected: str
    accept: Callable[[object], V | None]
    described: Schema = field(default_factory=dict)

    def read(self, written: object, given: Given) -> V:
        value = self.accept(written)
        if value is None:
            raise FormError.at((), describe_value(written), self.expected)
        return value

    def schema(self, definitions: Schema) -> Schema:
        return dict(self.described)


def whole(expected: str, least: int | None = None) -> Accepted[int]:
    """Return the form of an integer, of at least `least`; truth values are none."""

    def accept(written: object) -> int | None:
        if isinstance(written, bool) or not isinstance(written, Integral):
            return None
        value = int(written)
        return value if least is None or value >= least else None

    return Accepted(expected, accept, {"type": "integer"} | ({} if least is None else {"minimum": least}))


def number(expected: str, above: float = -math.inf) -> Accepted[float]:
    """Return the form of a finite number above another; truth values are none."""

    def accept(written: object) -> float | None:
        if isinstance(written, bool) or not isinstance(written, Real):
            return None
        try:
            value = float(written)
        except OverflowError:
            return None
        return value if math.isfinite(value) and value > above else None

    bound = {"exclusiveMinimum": above} if math.isfinite(above) else {}
    return Accepted(expected, accept, {"type": "number"} | bound)


def text(expected: str) -> Accepted[str]:
    """Return the form of text that is not empty."""

    def accept(written: object) -> str | None:
        good = isinstance(written, str) and written.strip() and is_unicode(written)
        return str(written) if good else None

    return Accepted(expected, accept, {"type": "string", "minLength": 1, "pattern": r"\S"})


def scalar(expected: str) -> Accepted[str | bool | int | float]:
    """Return the form of one value as YAML has it: text, a number, true or false."""

    def accept(written: object) -> str | bool | int | float | None:
        if isinstance(written, np.generic):
            written = written.item()
        return written if isinstance(written, str | bool | int | float) else None

    return Accepted(expected, accept, {"type": ["string", "number", "boolean"]})


def flag() -> Accepted[bool]:
    """Return the form of true or false."""
    accept = lambda written: bool(written) if isinstance(written, bool | np.bool_) else None  # noqa: E731
    return Accepted("true or false", accept, {"type": "boolean"})


@final
@dataclass(frozen=True)
class OneOf(Form[str]):
    """One of several words."""

    words: tuple[str, ...]

    def read(self, written: object, given: Given) -> str:
        if isinstance(written, str) and written in self.words:
            return str(written)
        expected = f"{', '.join(self.words[:-1])} or {self.words[-1]}"
        close = nearest(written, self.words) if isinstance(written, str) else ()
        raise FormError.at((), describe_value(written), expected, close)

    def schema(self, definitions: Schema) -> Schema:
        return {"enum": list(self.words)}


@final
@dataclass(frozen=True)
class ListOf(Form[tuple[T, ...]], Generic[T]):
    """A list, tuple, range or array of items of one form.

    Parameters
    ----------
    item : Form
    expected : str
        What is expected in place of what is no list.
    least, most : int, optional
        How many items there may be.
    count : str, optional
        What is expected in place of a list of another length; `expected` where it is left out.
    once : str, optional
        What is expected in place of an item that stands a second time; where it is left out, it may.
    """

    item: Form[T]
    expected: str
    least: int = 0
    most: int | None = None
    count: str | None = None
    once: str | None = None

    def read(self, written: object, given: Given) -> tuple[T, ...]:
        if not isinstance(written, LISTS):
            raise FormError.at((), describe_value(written), self.expected)
        values = each(lambda item: self.item.read(item, given), written)
        if self.once is not None and len(set(values)) < len(values):
            place = next(i for i, value in enumerate(values) if value in values[:i])
            raise FormError.at((place,), f"{describe_value(values[place])} a second time", self.once)
        if not self.least <= len(values) <= (math.inf if self.most is None else self.most):
            raise FormError.at((), describe_value(list(written)), self.count or self.expected)
        return tuple(values)

    def write(self, value: tuple[T, ...], kept: Kept = as_lists) -> list[object]:
        return [self.item.write(item, kept) for item in value]

    def schema(self, definitions: Schema) -> Schema:
        schema: Schema = {"type": "array", "items": self.item.schema(definitions)}
        bounds = {
            "minItems": self.least or None,
            "maxItems": self.most,
            "uniqueItems": bool(self.once) or None,
        }
        return schema | {name: bound for name, bound in bounds.items() if bound is not None}


@final
@dataclass(frozen=True)
class MappingOf(Form[Mapping[str, T]], Generic[T]):
    """A mapping from names to values of one form.

    Parameters
    ----------
    item : Form
    expected : str
        What is expected in place of what is no mapping, or has too few keys.
    named : str
        What a key should be.
    least : int
        How many keys there must be.
    count : str, optional
        What is expected in place of a mapping of fewer; `expected` where it is left out.
    """

    item: Form[T]
    expected: str
    named: str = "the name of an attribute"
    least: int = 0
    count: str | None = None

    def read(self, written: object, given: Given) -> Mapping[str, T]:
        if not isinstance(written, Mapping):
            raise FormError.at((), describe_value(written), self.expected)
        if len(written) < self.least:
            raise FormError.at((), describe_value(written), self.count or self.expected)
        values: dict[str, T] = {}
        for name, item in written.items():
            if not isinstance(name, str):
                raise FormError.at((), f"the key {describe_value(name)}", self.named)
            try:
                values[name] = self.item.read(item, given)
            except MatrixDPError as error:
                raise placed(error, name) from None
        return values

    def write(self, value: Mapping[str, T], kept: Kept = as_lists) -> dict[str, object]:
        return {name: self.item.write(item, kept) for name, item in value.items()}

    def schema(self, definitions: Schema) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.item.schema(definitions)}
        return schema | ({"minProperties": self.least} if self.least else {})


@final
@dataclass(frozen=True)
class Raw(Form[object]):
    """What somebody else reads."""

    described: Callable[[Schema], Schema]

    def read(self, written: object, given: Given) -> object:
        return written

    def schema(self, definitions: Schema) -> Schema:
        return self.described(definitions)


@final
@dataclass(frozen=True)
class Either(Form[T], Generic[T]):
    """One of several forms: the first whose test holds, of what is written as of what was read."""

    cases: tuple[tuple[Callable[[object], bool], Form[Any]], ...]
    otherwise: Form[Any]

    def read(self, written: object, given: Given) -> T:
        value: T = self._form(written).read(written, given)
        return value

    def write(self, value: T, kept: Kept = as_lists) -> object:
        return self._form(value).write(value, kept)

    def schema(self, definitions: Schema) -> Schema:
        return {"anyOf": [form.schema(definitions) for _, form in (*self.cases, (None, self.otherwise))]}

    def _form(self, value: object) -> Form[Any]:
        return next((form for test, form in self.cases if test(value)), self.otherwise)


@final
@dataclass(frozen=True)
class OrFile(Form[T], Generic[T]):
    """What may also be read from a file: a specification names it, Python gives a path."""

    form: Form[T]
    files: str

    def read(self, written: object, given: Given) -> T:
        if isinstance(written, str):
            expected = f"{self.files}; a file is named in a specification file, or given as a pathlib.Path"
            raise FormError.at((), describe_value(written), expected)
        return self.form.read(written, given)

    def write(self, value: T, kept: Kept = as_lists) -> object:
        return self.form.write(value, kept)

    def schema(self, definitions: Schema) -> Schema:
        return {"anyOf": [self.form.schema(definitions), {"type": "string", "minLength": 1}]}


@final
@dataclass(frozen=True)
class Alone(Form[tuple[T, ...]], Generic[T]):
    """A list of one that is written without its brackets; `steps` is where errors say that it stands."""

    form: Form[T]
    steps: tuple[int, ...] = ()

    def read(self, written: object, given: Given) -> tuple[T, ...]:
        with within(*self.steps):
            return (self.form.read(written, given),)

    def schema(self, definitions: Schema) -> Schema:
        return self.form.schema(definitions)
