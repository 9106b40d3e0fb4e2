"""Forms: each way to write a value down reads it, writes it back, and describes itself as JSON Schema."""

from __future__ import annotations

import glob
import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from decimal import Decimal
from difflib import get_close_matches
from fractions import Fraction
from functools import cache
from inspect import get_annotations, getdoc
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar, dataclass_transform, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.display import listed
from matrixdp.errors import MatrixDPError, Path, Problem, each, placed, within


def nearest(name: str, candidates: Iterable[str]) -> tuple[str, ...]:
    """Return the names that may have been meant, at most three, the closest first.

    Examples
    --------
    >>> nearest("aeg", ["age", "sex"]), nearest("income", ["age", "sex"])
    (('age',), ())
    """
    names = list(candidates)
    close = get_close_matches(name, names, n=3, cutoff=0.6)
    if not close:
        lowered = {candidate.lower(): candidate for candidate in names}
        close = [lowered[match] for match in get_close_matches(name.lower(), lowered, n=3, cutoff=0.6)]
    return tuple(close)


def is_unicode(text: str) -> bool:
    r"""Return whether a text can be written; Python has some that cannot, with halves of surrogate pairs.

    Examples
    --------
    >>> is_unicode("age"), is_unicode("\ud800")
    (True, False)
    """
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def describe_value(value: object) -> str:
    """Return a short text of a value that a user wrote, as a specification would write it.

    Examples
    --------
    >>> [describe_value(value) for value in (None, True, 0.5, "age", [0, 200], {"min": 0})]
    ['nothing (null)', 'true', '0.5', "'age'", '[0, 200]', 'a mapping with the keys min']
    """
    if value is None:
        return "nothing (null)"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        return repr(value) if len(value) <= 60 else f"{value[:60]!r}..."
    if isinstance(value, int | Fraction) and max(abs(value.numerator), value.denominator) >= 2**10_000:
        return "a number of thousands of digits"  # which Python does not write
    if isinstance(value, Real | Decimal):
        text = format(value)
        return text if len(text) <= 40 else f"{text[:40]}..."
    if isinstance(value, Mapping):
        keys = ", ".join(str(key) for key in list(value)[:8])
        return f"a mapping with the keys {keys}" if value else "an empty mapping"
    if isinstance(value, list | tuple):
        if not value:
            return "an empty list"
        short = len(value) <= 4 and not any(isinstance(item, list | tuple | Mapping) for item in value)
        return f"[{', '.join(map(describe_value, value))}]" if short else f"a list of {len(value)}"
    return f"a value of type {type(value).__name__}"


def unknown_name(
    path: Path, name: str, expected: str, candidates: Iterable[str], found: str | None = None
) -> Problem:
    """Return the problem of a name that does not exist.

    Parameters
    ----------
    path : tuple of str or int
        Where it stands.
    name : str
        The public name.
    expected : str
        What it should name.
    candidates : iterable of str
        The public names that exist.
    found : str, optional
        What to say was found, if not the name.

    Examples
    --------
    >>> str(unknown_name(("by", "aeg"), "aeg", "an attribute of the domain", ["age", "sex"]))
    "by.aeg: found 'aeg'; expected an attribute of the domain; did you mean 'age'?"
    """
    names = list(candidates)
    close = nearest(name, names)
    expected += "" if close else f"; there are {listed(map(repr, names), len(names)) or 'none'}"
    return Problem(path, found or repr(name), expected, close, code="unknown-name")


# What every form can do.

T = TypeVar("T")
Schema = dict[str, Any]
ResolvePath = Callable[[object], object]
"""From what stands where an array may stand to a path, lists or the array itself."""
WriteArray = Callable[[NDArray[np.float64]], object]
"""From an array to what is written in its place."""


def as_written(written: object) -> object:
    """Return the value as it was written: arrays and paths mean themselves."""
    return written


def as_lists(array: NDArray[np.float64]) -> object:
    """Return an array as nested lists."""
    return array.tolist()


class FormError(MatrixDPError, ValueError):
    """What was written does not have its form; the record that it is part of names it by its own error."""

    code = "wrong-type"


class Form(ABC, Generic[T]):
    """A way to write a value down.

    Examples
    --------
    >>> from matrixdp.forms import ListOf, as_written, whole
    >>> form = ListOf(whole("an integer"), "a list of integers")
    >>> form.read([1, 2], as_written), form.write((1, 2)), form.schema({})
    ((1, 2), [1, 2], {'type': 'array', 'items': {'type': 'integer'}})
    >>> form.read([1, "2"], as_written)
    Traceback (most recent call last):
        ...
    matrixdp.forms.FormError: [1]: found '2'; expected an integer
    """

    @abstractmethod
    def read(self, written: object, resolve: ResolvePath) -> T:
        """Return the value that was written; what was read before is read again.

        Raises
        ------
        FormError
            If it does not have this form, with the path inside of it.
        """

    def write(self, value: T, write_array: WriteArray = as_lists) -> object:
        """Return a value as it is written, made of what JSON has and of kept arrays."""
        return value

    @abstractmethod
    def schema(self, definitions: Schema) -> Schema:
        """Return the JSON Schema, and add what it refers to to the definitions."""


# Forms of scalars, lists and mappings.

V = TypeVar("V", bound=str | int | float)

LISTS = (list, tuple, range, np.ndarray)
"""What counts as a list."""


@final
@dataclass(frozen=True)
class Accepted(Form[V]):
    """A scalar that a function accepts; it returns None for any other.

    Values of the types in `limited` have the right type, and are out of range where they are not accepted.
    """

    expected: str
    accept: Callable[[object], V | None]
    described: Schema = field(default_factory=dict)
    limited: tuple[type, ...] = ()

    def read(self, written: object, resolve: ResolvePath) -> V:
        value = self.accept(written)
        if value is None:
            number = self.described.get("type") in ("integer", "number") and type(written) in (int, float)
            limited = number or (isinstance(written, self.limited) and not isinstance(written, bool))
            code = "out-of-range" if limited else "wrong-type"
            expected = self.expected
            if "maxLength" in self.described and type(written) in (
                int,
                float,
            ):  # a year as a text for readers
                expected += f'; write "{written}", in quotes'
            raise FormError.at((), describe_value(written), expected, code=code)
        return value

    def schema(self, definitions: Schema) -> Schema:
        return dict(self.described)


def whole(expected: str, least: int | None = None, most: int | None = None) -> Accepted[int]:
    """Return the form of an integer from `least` to `most`; truth values are none."""

    def accept(written: object) -> int | None:
        if isinstance(written, bool) or not isinstance(written, Integral):
            return None
        value = int(written)
        return value if (least is None or value >= least) and (most is None or value <= most) else None

    ends = {"minimum": least, "maximum": most}
    bounds = {name: end for name, end in ends.items() if end is not None}
    return Accepted(expected, accept, {"type": "integer"} | bounds, (Integral,))


def number(expected: str, above: float = -math.inf, most: float = math.inf) -> Accepted[float]:
    """Return the form of a finite number above another, and at most a third; truth values are none."""

    def accept(written: object) -> float | None:
        # floats first: what it takes to tell that another is a number is more than all else here
        if not isinstance(written, (float, Real)) or isinstance(written, bool):
            return None
        try:
            value = float(written)
        except OverflowError:
            return None
        return value if math.isfinite(value) and above < value <= most else None

    ends = {"exclusiveMinimum": above, "maximum": most}
    bounds = {name: end for name, end in ends.items() if math.isfinite(end)}
    return Accepted(expected, accept, {"type": "number"} | bounds, (Real,))


def text(expected: str, most: int | None = None) -> Accepted[str]:
    """Return the form of text that is not empty, and has at most `most` characters."""

    def accept(written: object) -> str | None:
        good = isinstance(written, str) and written.strip() and is_unicode(written)
        return str(written) if good and (most is None or len(str(written)) <= most) else None

    longest = {} if most is None else {"maxLength": most}
    return Accepted(expected, accept, {"type": "string", "minLength": 1, **longest, "pattern": r"\S"})


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

    def read(self, written: object, resolve: ResolvePath) -> str:
        if isinstance(written, str) and written in self.words:
            return str(written)
        expected = f"{', '.join(self.words[:-1])} or {self.words[-1]}"
        close = nearest(written, self.words) if isinstance(written, str) else ()
        code = "unknown-name" if isinstance(written, str) else "wrong-type"
        raise FormError.at((), describe_value(written), expected, close, code=code)

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

    def read(self, written: object, resolve: ResolvePath) -> tuple[T, ...]:
        if not isinstance(written, LISTS):
            raise FormError.at((), describe_value(written), self.expected, code="wrong-type")
        values = each(lambda item: self.item.read(item, resolve), written)
        if self.once is not None and len(set(values)) < len(values):
            place = next(i for i, value in enumerate(values) if value in values[:i])
            found = f"{describe_value(values[place])} a second time"
            raise FormError.at((place,), found, self.once, code="duplicate")
        if not self.least <= len(values) <= (math.inf if self.most is None else self.most):
            code = "wrong-size" if values else "empty"
            raise FormError.at((), describe_value(list(written)), self.count or self.expected, code=code)
        return tuple(values)

    def write(self, value: tuple[T, ...], write_array: WriteArray = as_lists) -> list[object]:
        return [self.item.write(item, write_array) for item in value]

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

    def read(self, written: object, resolve: ResolvePath) -> Mapping[str, T]:
        if not isinstance(written, Mapping):
            raise FormError.at((), describe_value(written), self.expected, code="wrong-type")
        if len(written) < self.least:
            raise FormError.at((), describe_value(written), self.count or self.expected, code="empty")
        values: dict[str, T] = {}
        for name, item in written.items():
            if not isinstance(name, str):
                raise FormError.at((), f"the key {describe_value(name)}", self.named, code="wrong-type")
            try:
                values[name] = self.item.read(item, resolve)
            except MatrixDPError as error:
                raise placed(error, name) from None
        return values

    def write(self, value: Mapping[str, T], write_array: WriteArray = as_lists) -> dict[str, object]:
        return {name: self.item.write(item, write_array) for name, item in value.items()}

    def schema(self, definitions: Schema) -> Schema:
        schema: Schema = {"type": "object", "additionalProperties": self.item.schema(definitions)}
        return schema | ({"minProperties": self.least} if self.least else {})


@final
@dataclass(frozen=True)
class Verbatim(Form[object]):
    """What somebody else reads."""

    described: Callable[[Schema], Schema]

    def read(self, written: object, resolve: ResolvePath) -> object:
        return written

    def schema(self, definitions: Schema) -> Schema:
        return self.described(definitions)


@final
@dataclass(frozen=True)
class AnyOf(Form[T], Generic[T]):
    """One of several forms: the first whose test holds, of what is written as of what was read."""

    cases: tuple[tuple[Callable[[object], bool], Form[Any]], ...]
    otherwise: Form[Any]

    def read(self, written: object, resolve: ResolvePath) -> T:
        value: T = self._form(written).read(written, resolve)
        return value

    def write(self, value: T, write_array: WriteArray = as_lists) -> object:
        return self._form(value).write(value, write_array)

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

    def read(self, written: object, resolve: ResolvePath) -> T:
        if isinstance(written, str):
            expected = f"{self.files}; a file is named in a specification file, or given as a pathlib.Path"
            raise FormError.at((), describe_value(written), expected, code="wrong-type")
        return self.form.read(written, resolve)

    def schema(self, definitions: Schema) -> Schema:
        return {"anyOf": [self.form.schema(definitions), {"type": "string", "minLength": 1}]}


@final
@dataclass(frozen=True)
class Unbracketed(Form[tuple[T, ...]], Generic[T]):
    """A list of one that is written without its brackets; `steps` is where errors say that it stands."""

    form: Form[T]
    steps: tuple[int, ...] = ()

    def read(self, written: object, resolve: ResolvePath) -> tuple[T, ...]:
        with within(*self.steps):
            return (self.form.read(written, resolve),)

    def schema(self, definitions: Schema) -> Schema:
        return self.form.schema(definitions)


# Records: mappings with known keys, as frozen classes whose fields are forms.

R = TypeVar("R", bound="Record")


class _Absent:
    """What stands for a key that is left out."""


ABSENT: Any = _Absent()


@final
@dataclass(frozen=True)
class _Key:
    form: Form[Any]
    default: Any = ABSENT
    name: str | None = None
    missing: str = ""
    always: bool = False
    about: str = ""
    blank: bool = True
    attribute: str = ""

    def schema(self, definitions: Schema) -> Schema:
        schema = self.form.schema(definitions)
        if self.about:
            schema["description"] = self.about
        if isinstance(self.default, str | int | float):
            schema["default"] = self.default
        return schema


def key(form: Form[Any], **options: Any) -> Any:
    """Return the field of a record.

    Parameters
    ----------
    form : Form
        How its value is written.
    default : object, optional
        The value where the key is left out; without one the key is required.
    name : str, optional
        What the key is called, where that is not the name of the field.
    missing : str, optional
        What is expected where a required key is left out.
    always : bool
        Whether it is written even where it is the default.
    about : str
        What it says, for the JSON Schema.
    blank : bool
        Whether a key with nothing behind it is as good as none, where the default is None.
    """
    return field(default=ABSENT, metadata={"key": _Key(form, **options)})


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(key,))
def record(cls: type[R]) -> type[R]:
    """Make a class a record: a frozen dataclass that reads what it is constructed with."""
    # what `dataclass` would write for each class, `Record` has once: there are many, all made at every start
    return dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)


def register(forms: dict[str, type[R]], form: type[R]) -> None:
    """Add a record to the forms of its kind by its first key, which none of them may have yet."""
    name = form.main_key()
    if name in forms:
        found = f"the language has a form {name!r} already: {forms[name].__name__}"
        raise FormError(found, code="duplicate")
    forms[name] = form


#: The forms that schemas define, by the names of their classes, by which schemas refer to them.
_SCHEMAS: dict[str, type[Record]] = {}


class Record:
    """A mapping with known keys; valid from construction, and read from a mapping by the same checks.

    Examples
    --------
    >>> from matrixdp.forms import whole
    >>> @record
    ... class Bounds(Record):
    ...     '''Two ends.'''
    ...
    ...     low: int = key(whole("an integer"), default=0)
    ...     high: int = key(whole("an integer"), missing="the upper end")
    >>> Bounds.read({"high": 3}), Bounds(low=1, high=2).to_spec()
    (Bounds(low=0, high=3), {'low': 1, 'high': 2})
    >>> Bounds.read({"low": 1})
    Traceback (most recent call last):
        ...
    matrixdp.forms.FormError: high: found nothing; expected the upper end
    """

    error: ClassVar[type[MatrixDPError]] = FormError
    expected: ClassVar[str] = "a mapping"

    @classmethod
    @cache
    def keys(cls) -> Mapping[str, _Key]:
        """Return the keys by their names: those of the class itself, then those that it inherits."""
        known = {item.name: item for item in fields(cls)}  # type: ignore[arg-type]  # records are dataclasses
        ordered = dict.fromkeys(
            name for base in cls.__mro__ for name in get_annotations(base) if name in known
        )
        given: dict[str, _Key] = {name: known[name].metadata["key"] for name in ordered}
        return {own.name or name: replace(own, attribute=name) for name, own in given.items()}

    @classmethod
    def main_key(cls) -> str:
        """Return the first key, which tells the record from others."""
        return next(iter(cls.keys()))

    @classmethod
    def read(cls, written: object, resolve: ResolvePath = as_written) -> Self:
        """Return the record that a mapping holds.

        Parameters
        ----------
        written : object
            A mapping; or such a record, which is returned.
        resolve : callable
            From what stands where an array may stand to a path, lists or the array.

        Raises
        ------
        MatrixDPError
            If it does not have this form: the error of the class, with the path inside of it.
        """
        if isinstance(written, cls):
            return written
        if not isinstance(written, Mapping):
            raise cls.error.at((), describe_value(written), cls.expected, code="wrong-type")
        known = cls.keys()
        for name in written:
            if name not in known:
                raise cls.error(cls.unknown_key(name), code="unknown-key")
        made = object.__new__(cls)
        made._fill(written, resolve)
        return made

    @classmethod
    def unknown_key(cls, name: object) -> Problem:
        """Return the problem of a key that the record does not have."""
        expected = f"one of {', '.join(cls.keys())}"
        if not isinstance(name, str):
            return Problem((), f"the key {describe_value(name)}", expected, code="unknown-key")
        close = nearest(name, cls.keys())
        return Problem((name,), f"the unknown key {name!r}", expected, close, code="unknown-key")

    def check(self) -> None:
        """Check what the fields are together."""

    def to_spec(self, write_array: WriteArray = as_lists) -> dict[str, object]:
        """Return the record as a mapping of what JSON has, arrays as `write_array` writes them."""
        spec: dict[str, object] = {}
        for name, item in self.keys().items():
            value = getattr(self, item.attribute)
            default = value is item.default or (not isinstance(value, np.ndarray) and value == item.default)
            if item.always or not default:
                spec[name] = item.form.write(value, write_array)
        return spec

    @classmethod
    def schema(cls, definitions: Schema) -> Schema:
        """Return a reference to the JSON Schema, which is added to the definitions."""
        known = _SCHEMAS.setdefault(cls.__name__, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            found = f"the language has a form of the class {cls.__name__} already: {known.__module__}"
            raise FormError(found, code="duplicate")
        if cls.__name__ not in definitions:
            definitions[cls.__name__] = {}  # a record may hold itself
            keys = cls.keys()
            definitions[cls.__name__] = {
                "type": "object",
                "description": str(getdoc(cls)).partition("\n")[0],
                "properties": {name: item.schema(definitions) for name, item in keys.items()},
                "required": [name for name, item in keys.items() if item.default is ABSENT],
                "additionalProperties": False,
            }
        return {"$ref": f"#/$defs/{cls.__name__}"}

    def __init__(self, **given: Any) -> None:
        names = {item.attribute: name for name, item in self.keys().items()}
        for attribute in given:
            if attribute not in names:
                raise TypeError(f"{type(self).__name__} has no field {attribute!r}")
        self._fill({names[own]: value for own, value in given.items() if value is not ABSENT}, as_written)

    def __repr__(self) -> str:
        own: Any = type(self)
        shown = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(own))
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _fill(self, written: Mapping[object, object], resolve: ResolvePath) -> None:
        for name, item in self.keys().items():
            value = written.get(name, ABSENT)
            if value is ABSENT or (value is None and item.blank and item.default in (None, {})):
                if item.default is ABSENT:
                    expected = item.missing or f"a value: `{name}` is required"
                    raise self.error.at((name,), "nothing", expected, code="missing-key")
                value = item.default
            else:
                try:
                    value = item.form.read(value, resolve)
                except FormError as error:
                    raise self.error(placed(error, name).problem or "", code=error.code) from None
                except MatrixDPError as error:
                    raise placed(error, name) from None
            object.__setattr__(self, item.attribute, value)
        self.check()


@final
@dataclass(frozen=True)
class RecordForm(Form[R], Generic[R]):
    """The form of a record within another."""

    record: type[R]

    def read(self, written: object, resolve: ResolvePath) -> R:
        return self.record.read(written, resolve)

    def write(self, value: R, write_array: WriteArray = as_lists) -> object:
        return value.to_spec(write_array)

    def schema(self, definitions: Schema) -> Schema:
        return self.record.schema(definitions)


# Addresses of tables, such as ``postgresql://host/database``, and what messages may show of them.

_ADDRESS = re.compile(r"(\s*[a-z][a-z0-9+.:-]*)://(.*)", re.IGNORECASE | re.DOTALL)
_PLAIN = re.compile(r"(?:[^@/?#]*@)?([^@?#]*)")


def has_scheme(table: object, *schemes: str) -> bool:
    """Return whether what is to be opened is an address of one of some schemes; of any, where none is named.

    Examples
    --------
    >>> has_scheme("sqlite:///people.db", "sqlite"), has_scheme("people.csv"), has_scheme(3)
    (True, False, False)
    """
    found = _ADDRESS.fullmatch(table) if isinstance(table, str) else None
    return found is not None and (not schemes or found[1].lower() in schemes)


def shown(address: str) -> str:
    """Return an address without what may be secret: who asks, with which password, and what stands after '?'.

    Examples
    --------
    >>> shown("postgresql://ann:secret@localhost/people?sslpassword=x"), shown("postgresql://ann:s/e@host/d")
    ('postgresql://localhost/people', 'postgresql://...')
    >>> shown(" jdbc:postgresql://ann:secret@localhost/people")
    'jdbc:postgresql://localhost/people'
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        return address
    place, *rest = re.split(r"[?#]", found[2], maxsplit=1)
    # A password may hold what would else end the place.
    plain = None if ":" in place and "@" in "".join(rest) else _PLAIN.fullmatch(place)
    return f"{found[1].lstrip()}://{'...' if plain is None else plain[1]}"


def share_files(table: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two tables have a file in common: at paths, by patterns, or at addresses of SQLite.

    Examples
    --------
    >>> share_files("examples/*.parquet", "examples/randhie.parquet"), share_files("a.csv", "a.csv")
    (True, False)
    """

    def files(named: str | os.PathLike[str]) -> set[tuple[int, int]]:
        path = os.fspath(named)
        path = path.partition(":///")[2] if has_scheme(path, "sqlite") else path
        own = (path, *glob.glob(path, recursive=True))  # noqa: PTH207 - a name may have brackets
        stats = map(os.stat, filter(os.path.isfile, own))
        return {(one.st_dev, one.st_ino) for one in stats}

    return not files(table).isdisjoint(files(other))


def names_secret(address: str) -> bool:
    """Return whether an address has a password, or may have one.

    Examples
    --------
    >>> names_secret("postgresql://ann:x@host/people"), names_secret("postgresql://ann@host/people")
    (True, False)
    """
    found = _ADDRESS.fullmatch(address)
    user = found[2].rpartition("@")[0] if found else ""
    return ":" in user or "password" in address.lower()
