"""What all kinds of attributes have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

from matrixdp.domain.codebook import NO_CODEBOOK, Codebook
from matrixdp.domain.ends import Ends
from matrixdp.domain.levels import Level
from matrixdp.domain.rules import Kind, Rule, canonical_value
from matrixdp.errors import DomainError, TooLargeError, within
from matrixdp.forms import describe_value, is_unicode, unknown_name

__all__ = ["Attribute"]

#: Every value is listed, or written out, of attributes of at most so many.
_MOST_LISTED = 20_000_000


@dataclass(frozen=True)
class Attribute(ABC):
    """A name and a finite, public, ordered list of values.

    Attributes
    ----------
    name : str
        The name, which is also the name of the column in a table where the code book names no other.
    size : int
        The number of values, at least 1.
    codebook : Codebook
        Where raw values stand, how they are cleaned, and what values are called.
    numeric : bool
        Whether the order of the values is that of numbers.
    """

    name: str
    size: int = field(init=False, repr=False, compare=False)
    codebook: Codebook = field(default=NO_CODEBOOK, kw_only=True, repr=False)
    numeric: ClassVar[bool]

    @property
    def column(self) -> str:
        """The name of the table's column."""
        return self.name if self.codebook.column is None else self.codebook.column

    @property
    def null_code(self) -> int | None:
        """The code of missing values, the last one; None where these are out of domain."""
        return None if self.codebook.null is None else self.size - 1

    @property
    def all_codes(self) -> range:
        """The codes of all values, for what takes memory for each.

        Raises
        ------
        TooLargeError
            If there are too many of them.
        """
        if self.size > _MOST_LISTED:
            found = f"{self.name!r} with {self.size:,} values, each of which would be listed"
            raise TooLargeError.at((), found, f"at most {_MOST_LISTED:,}: use bins, or fewer values")
        return range(self.size)

    @property
    def ends(self) -> Ends | None:
        """Where the values begin and end, as numbers or days; None where they are categories."""
        return None

    def read_from(self, column: str | None) -> Self:
        """Return the attribute as it is read from another column; None for that of its own name."""
        return replace(self, codebook=replace(self.codebook, column=column))

    def value(self, code: int) -> str | int | float:
        """Return the public value of a code: a text, an integer, or the start of a bin.

        That of missing values is what they are called.
        """
        self._check_codes(code, code)
        null = self.codebook.null
        return null if null is not None and code == self.null_code else self._value(int(code))

    def code_of(self, value: object) -> int:
        """Return the code of a public value, or of what one is called; the inverse of `value` and `label`.

        Raises
        ------
        DomainError
            If the attribute does not list the value.
        """
        code = self._named(value)
        return self._code_of(value) if code is None else code

    def find(self, text: str) -> int:
        """Return the code of the public value that a text stands for, or of what is called by it.

        Raises
        ------
        DomainError
            If the attribute does not list the value.
        """
        code = self._named(text)
        code = self._listed(text) if code is None else code
        return self.code_of(text) if code is None else code

    def code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the first and the last code, both inclusive, of a public range of values.

        Raises
        ------
        DomainError
            If the range is empty or its ends are not in the domain.
        """
        first, last = self._named(low), self._named(high)
        if first is None or last is None:
            return self._code_range(low, high)
        if first > last or last == self.null_code:
            expected = f"two values of {self.name!r} in their order, neither of them null"
            raise DomainError.at((), describe_value([low, high]), expected)
        return first, last

    def rule(self, kind: Kind) -> Rule | None:
        """Return how values of a kind become codes; None where the attribute cannot be read from them."""
        return self._rule(kind)

    def to_spec(self) -> object:
        """Return what a specification says about the attribute, made of plain Python values."""
        common = self.codebook.to_spec()
        if self.codebook.levels:
            common["levels"] = {level.name: level.to_spec(self) for level in self.codebook.levels}
        if self.codebook.derivation is not None:
            common |= self.codebook.derivation.to_spec()
        return {**self._mapping(), **common} if common else self._spec()

    def label(self, code: int) -> str:
        """Return the text of one value."""
        self._check_codes(code, code)
        return self._labels.get(int(code)) or self._label(int(code))

    def range_label(self, first: int, last: int) -> str:
        """Return the text of the values from one code to another, both inclusive."""
        self._check_codes(first, last)
        if first == last:
            return self.label(first)
        if last == self.null_code:
            return f"{self.range_label(first, last - 1)} | {self.codebook.null}"
        if first in self._labels or last in self._labels:
            return f"{self.label(first)}..{self.label(last)}"
        return self._range_label(int(first), int(last))

    def with_levels(self, levels: Mapping[str, object]) -> Self:
        """Return the attribute with levels besides its own, each as `Level.of` takes it.

        Raises
        ------
        DomainError
            If a level does not have every value of the attribute exactly once.
        """
        with within(self.name, "levels"):
            found = tuple(Level.of(self, name, groups) for name, groups in levels.items())
        book = replace(self.codebook, levels=(*self.codebook.levels, *found))
        return replace(self, codebook=book) if found else self

    def level(self, name: str) -> Level:
        """Return the level of a name.

        Raises
        ------
        DomainError
            If the attribute has no such level.
        """
        levels = {level.name: level for level in self.codebook.levels}
        if name not in levels:
            raise DomainError(unknown_name((), name, f"a level of {self.name!r}", levels))
        return levels[name]

    @abstractmethod
    def _value(self, code: int) -> str | int | float:
        """Return the public value of a code that is not that of missing values."""

    @abstractmethod
    def _code_of(self, value: object) -> int:
        """Return the code of a public value."""

    @abstractmethod
    def _code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the first and the last code of a range of public values."""

    @abstractmethod
    def _rule(self, kind: Kind) -> Rule | None:
        """Return how values of a kind become codes."""

    @abstractmethod
    def _spec(self) -> object:
        """Return what a specification says about the values, in its shortest form."""

    def _mapping(self) -> dict[str, object]:
        """Return what a specification says about the values as a mapping."""
        spec = self._spec()
        assert isinstance(spec, dict)
        return spec

    def _label(self, code: int) -> str:
        return str(self._value(code))

    def _range_label(self, first: int, last: int) -> str:
        low, high = self.label(first), self.label(last)
        return f"{low}..{high}" if low.startswith("-") or not self.numeric else f"{low}-{high}"

    def _check_codes(self, first: int, last: int) -> None:
        if not 0 <= first <= last < self.size:
            asked = f"code {first}" if first == last else f"codes {first} to {last}"
            raise DomainError(f"attribute {self.name!r} has codes 0 to {self.size - 1}; found {asked}")

    def _check_name(self) -> None:
        if not isinstance(self.name, str) or not self.name or not is_unicode(self.name):
            raise DomainError.at(
                (), describe_value(self.name), "a non-empty string as the name of an attribute"
            )
        if not isinstance(self.codebook, Codebook):
            raise DomainError.at((self.name, "codebook"), describe_value(self.codebook), "a Codebook")

    def _common(self, size: int) -> dict[str, Any]:
        """Set the size from the number of values, and return what every rule says besides."""
        null = None if self.codebook.null is None else size
        self._set(size=size + (null is not None))
        return {"trim": self.codebook.trim, "null": null}

    def _set(self, **values: object) -> None:
        for key, value in values.items():
            object.__setattr__(self, key, value)

    def _check_labels(self) -> None:
        """Check that labels are those of values, and that none is the text of another value."""
        codes: dict[int, str] = {}
        for value, label in self.codebook.labels:
            path, code = (self.name, "labels", value), self._listed(value)
            if code is None:
                raise DomainError.at(path, repr(value), f"a value of {self.name!r}")
            if code in codes or label in codes.values():
                raise DomainError.at(path, f"{label!r} a second time", "each value and each label once")
            if self._listed(label) not in (None, code):
                raise DomainError.at(path, f"{label!r}, which is another value", "a text of its own")
            codes[code] = label
        null = self.codebook.null
        if null is not None and (null in codes.values() or self._listed(null) is not None):
            found = f"{null!r}, which is another value"
            raise DomainError.at((self.name, "null"), found, "a text of its own")
        for place, level in enumerate(self.codebook.levels):
            with within(self.name, "levels", level.name):
                if level.name in [other.name for other in self.codebook.levels[:place]]:
                    raise DomainError.at((), "the level a second time", "each level once")
                level.check(self)

    def _listed(self, text: str) -> int | None:
        """Return the code of a value by its text; None where there is none."""
        for value in (text, canonical_value(text)):
            try:
                return self._code_of(value)
            except DomainError:
                continue
        return None

    @cached_property
    def _labels(self) -> Mapping[int, str]:
        """What is called by another text than that of its value, by code."""
        listed = ((self._listed(value), label) for value, label in self.codebook.labels)
        labels = {code: label for code, label in listed if code is not None}
        if self.null_code is not None and self.codebook.null is not None:
            labels[self.null_code] = self.codebook.null
        return labels

    @cached_property
    def _codes(self) -> Mapping[str, int]:
        return {label: code for code, label in self._labels.items()}

    def _named(self, value: object) -> int | None:
        """Return the code of what is called by a text, or of null."""
        if value is None:
            return self.null_code
        return self._codes.get(value) if isinstance(value, str) else None
