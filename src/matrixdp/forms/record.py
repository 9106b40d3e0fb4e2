"""Records: mappings with known keys, as frozen classes whose fields are forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from functools import cache
from inspect import get_annotations, getdoc
from typing import Any, ClassVar, Generic, NoReturn, Self, TypeVar, dataclass_transform, final

import numpy as np

from matrixdp.errors import MatrixDPError, Problem, placed
from matrixdp.forms.form import Form, FormError, Given, Kept, Schema, as_given, as_lists
from matrixdp.forms.wording import describe_value, nearest

__all__ = ["Record", "RecordForm", "key", "record", "register"]

R = TypeVar("R", bound="Record")


class _Absent:
    """What stands for a key that is left out."""


ABSENT: Any = _Absent()


@final
@dataclass(frozen=True)
class _Key:
    form: Form[Any]
    default: Any
    missing: str
    always: bool
    about: str
    blank: bool
    attribute: str = ""

    def schema(self, definitions: Schema) -> Schema:
        schema = self.form.schema(definitions)
        if self.about:
            schema["description"] = self.about
        if isinstance(self.default, str | int | float):
            schema["default"] = self.default
        return schema


def key(
    form: Form[Any],
    *,
    default: Any = ABSENT,
    name: str | None = None,
    missing: str = "",
    always: bool = False,
    about: str = "",
    blank: bool = True,
) -> Any:
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
    kept = _Key(form, default, missing, always, about, blank)
    return field(default=ABSENT, metadata={"key": kept, "name": name})


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=False, field_specifiers=(key,))
def record(cls: type[R]) -> type[R]:
    """Make a class a record: a frozen dataclass that reads what it is constructed with."""
    # what `dataclass` would write for each class, `Record` has once: there are many, all made at every start
    return dataclass(init=False, repr=False, eq=False, kw_only=True)(cls)


def register(forms: dict[str, type[R]], form: type[R]) -> None:
    """Add a record to the forms of its kind by its first key, which none of them may have yet."""
    name = form.main_key()
    if name in forms:
        raise FormError(f"the language has a form {name!r} already: {forms[name].__name__}")
    forms[name] = form


class Record:
    """A mapping with known keys; valid from construction, and read from a mapping by the same checks.

    Examples
    --------
    >>> from matrixdp.forms import whole
    >>> @record
    ... class Ends(Record):
    ...     '''Two ends.'''
    ...
    ...     low: int = key(whole("an integer"), default=0)
    ...     high: int = key(whole("an integer"), missing="the upper end")
    >>> Ends.read({"high": 3}), Ends(low=1, high=2).to_spec()
    (Ends(low=0, high=3), {'low': 1, 'high': 2})
    >>> Ends.read({"low": 1})
    Traceback (most recent call last):
        ...
    matrixdp.forms.form.FormError: high: found nothing; expected the upper end
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
        found = {}
        for item in (known[name] for name in ordered):
            given: _Key = item.metadata["key"]
            name = item.metadata["name"] or item.name
            found[name] = replace(given, attribute=item.name)
        return found

    @classmethod
    def main_key(cls) -> str:
        """Return the first key, which tells the record from others."""
        return next(iter(cls.keys()))

    @classmethod
    def read(cls, written: object, given: Given = as_given) -> Self:
        """Return the record that a mapping holds.

        Parameters
        ----------
        written : object
            A mapping; or such a record, which is returned.
        given : callable
            From what stands where an array may stand to a path, lists or the array.

        Raises
        ------
        MatrixDPError
            If it does not have this form: the error of the class, with the path inside of it.
        """
        if isinstance(written, cls):
            return written
        if not isinstance(written, Mapping):
            raise cls.error.at((), describe_value(written), cls.expected)
        known = cls.keys()
        for name in written:
            if name not in known:
                raise cls.error(cls.unknown_key(name))
        made = object.__new__(cls)
        made._fill(written, given)
        return made

    @classmethod
    def unknown_key(cls, name: object) -> Problem:
        """Return the problem of a key that the record does not have."""
        expected = f"one of {', '.join(cls.keys())}"
        if not isinstance(name, str):
            return Problem((), f"the key {describe_value(name)}", expected)
        return Problem((name,), f"the unknown key {name!r}", expected, nearest(name, cls.keys()))

    def check(self) -> None:
        """Check what the fields are together."""

    def to_spec(self, kept: Kept = as_lists) -> dict[str, object]:
        """Return the record as a mapping of what JSON has, arrays as lists or as `kept` writes them."""
        spec: dict[str, object] = {}
        for name, item in self.keys().items():
            value = getattr(self, item.attribute)
            default = value is item.default or (not isinstance(value, np.ndarray) and value == item.default)
            if item.always or not default:
                spec[name] = item.form.write(value, kept)
        return spec

    @classmethod
    def schema(cls, definitions: Schema) -> Schema:
        """Return a reference to the JSON Schema, which is added to the definitions."""
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
        held: dict[object, Any] = {
            names[attribute]: value for attribute, value in given.items() if value is not ABSENT
        }
        self._fill(held, as_given)

    def __repr__(self) -> str:
        own: Any = type(self)
        shown = (f"{item.name}={getattr(self, item.name)!r}" for item in fields(own))
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def _fill(self, written: Mapping[object, object], given: Given) -> None:
        for name, item in self.keys().items():
            value = written.get(name, ABSENT)
            if value is ABSENT or (value is None and item.blank and item.default in (None, {})):
                if item.default is ABSENT:
                    raise self.error.at((name,), "nothing", item.missing or f"a value: `{name}` is required")
                value = item.default
            else:
                try:
                    value = item.form.read(value, given)
                except FormError as error:
                    raise self.error(placed(error, name).problem or "") from None
                except MatrixDPError as error:
                    raise placed(error, name) from None
            object.__setattr__(self, item.attribute, value)
        self.check()


@final
@dataclass(frozen=True)
class RecordForm(Form[R], Generic[R]):
    """The form of a record within another."""

    record: type[R]

    def read(self, written: object, given: Given) -> R:
        return self.record.read(written, given)

    def write(self, value: R, kept: Kept = as_lists) -> object:
        return value.to_spec(kept)

    def schema(self, definitions: Schema) -> Schema:
        return self.record.schema(definitions)
