"""Levels of an attribute: coarser lists of values, such as the states that counties are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, Self, final

from matrixdp.errors import DomainError, each, within
from matrixdp.forms import Form, MappingOf, OrFile, Raw, Schema, describe_value, is_unicode

_LISTED = "a list of values, or {range: [first, last]}"

__all__ = ["LEVELS", "Level", "Valued"]


class Valued(Protocol):
    """What an attribute is to those who name its values."""

    @property
    def name(self) -> str:
        """The name."""

    @property
    def size(self) -> int:
        """The number of values."""

    @property
    def all_codes(self) -> range:
        """The codes of all values."""

    @property
    def null_code(self) -> int | None:
        """The code of missing values, if they are a value."""

    def value(self, code: int) -> str | int | float:
        """Return the public value of a code."""

    def label(self, code: int) -> str:
        """Return the text of a value."""

    def code_of(self, value: object) -> int:
        """Return the code of a public value."""

    def code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of a range of public values."""

    def to_spec(self) -> object:
        """Return what a specification says of the attribute."""


@final
@dataclass(frozen=True)
class Level:
    """A coarser list of values of an attribute, each of whose own values is in exactly one of them.

    Parameters
    ----------
    name : str
        What the level is called.
    groups : tuple of (str, tuple of int)
        The values of the level in order, and the codes of the attribute that are in each.

    Raises
    ------
    DomainError
        If a name is no text or empty, or a value has no codes.

    Examples
    --------
    >>> from matrixdp.domain import Categorical
    >>> county = Categorical("county", ("Kings", "Queens", "Orange"))
    >>> state = Level.of(county, "state", {"NY": ["Kings", "Queens"], "CA": ["Orange"]})
    >>> state.groups
    (('NY', (0, 1)), ('CA', (2,)))
    """

    name: str
    groups: tuple[tuple[str, tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        _check_text(self.name)
        for value, codes in self.groups:
            with within(self.name):
                _check_text(value)
                if not codes:
                    raise DomainError.at((value,), "an empty list", "at least one value of the attribute")

    @classmethod
    def of(cls, attribute: Valued, name: str, groups: object) -> Self:
        """Return the level of an attribute that lists its values under those of the level.

        Parameters
        ----------
        attribute : Attribute
            The attribute, whose values are listed.
        name : str
            What the level is called.
        groups : mapping of str to list, or to ``{"range": [first, last]}``
            The attribute's values under each value of the level.

        Raises
        ------
        DomainError
            If a value is none of the attribute's.
        """
        with within(name):
            if not isinstance(groups, Mapping) or not groups:
                expected = "a mapping from each value of the level to the values that are in it, or a file"
                raise DomainError.at((), describe_value(groups), expected)
            found = tuple(_group(attribute, value, listed) for value, listed in groups.items())
        return cls(name, found)

    def check(self, attribute: Valued) -> None:
        """Check that every value of the attribute is in exactly one value of the level."""
        seen: dict[int, str] = {}
        for value, codes in self.groups:
            for code in codes:
                if code in seen:
                    found = f"{attribute.label(code)!r} again, which is in {seen[code]!r}"
                    raise DomainError.at((value,), found, "each value once")
                seen[code] = value
        missing = [code for code in attribute.all_codes if code not in seen]
        if missing:
            found = f"no value for {attribute.label(missing[0])!r}"
            more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise DomainError.at((), found + more, f"every value of {attribute.name!r} once")

    def labels(self, attribute: Valued) -> tuple[str, ...]:
        """Return what the level's values are called in answers.

        One that is called like another value of the attribute has the level's name behind it: the state
        ``New York`` is not its county.
        """
        own = {attribute.label(code): code for code in attribute.all_codes}
        return tuple(
            value
            if own.get(value) in (None, *(codes if len(codes) == 1 else ()))
            else f"{value} ({self.name})"
            for value, codes in self.groups
        )

    def to_spec(self, attribute: Valued) -> dict[str, object]:
        """Return what a specification says of the level: its values with those of the attribute."""
        return {value: [attribute.value(code) for code in codes] for value, codes in self.groups}


def _level_schema(definitions: Schema) -> Schema:  # noqa: ARG001
    listed = {"type": "array", "minItems": 1}
    ends = {"type": "array", "minItems": 2, "maxItems": 2}
    spanned = {"type": "object", "properties": {"range": ends}, "required": ["range"]}
    groups = {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": [listed, spanned]}}
    return {"anyOf": [groups, {"type": "string", "minLength": 1}]}


LEVELS: Form[Mapping[str, object]] = OrFile(
    MappingOf(Raw(_level_schema), "a mapping from names to levels", named="the name of a level"),
    "a mapping from names to levels",
)
"""The form of the levels of an attribute."""


def _group(attribute: Valued, value: object, listed: object) -> tuple[str, tuple[int, ...]]:
    _check_text(value)
    with within(str(value)):
        if isinstance(listed, Mapping):
            ends = listed.get("range")
            if set(listed) != {"range"} or not isinstance(ends, list | tuple) or len(ends) != 2:
                raise DomainError.at(
                    (), describe_value(listed), "a list of values, or {range: [first, last]}"
                )
            with within("range"):
                first, last = attribute.code_range(*ends)
            return str(value), tuple(range(first, last + 1))
        if not isinstance(listed, Iterable) or isinstance(listed, str | bytes):
            raise DomainError.at((), describe_value(listed), _LISTED)
        return str(value), tuple(each(attribute.code_of, listed))


def _check_text(text: object) -> None:
    if not isinstance(text, str) or not text.strip() or not is_unicode(text):
        raise DomainError.at((), describe_value(text), "text that is not empty, a name")
