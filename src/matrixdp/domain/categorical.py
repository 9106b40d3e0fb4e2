"""Attributes whose values are listed categories."""

import re
from dataclasses import dataclass, field
from typing import ClassVar, final

from matrixdp.domain.attribute import Attribute
from matrixdp.domain.canonical import canonical_text, day_of
from matrixdp.domain.codebook import NO_CODEBOOK
from matrixdp.domain.folding import fold, foldings
from matrixdp.domain.rules import (
    BOOLEANS,
    NUMBERS,
    TYPES,
    WHITESPACE,
    Categories,
    Days,
    Kind,
    Listed,
    Numbers,
    Texts,
    canonical_value,
)
from matrixdp.errors import DomainError, within
from matrixdp.forms import describe_value, unknown_name

__all__ = ["Categorical", "is_unreadable"]

_UNREADABLE = re.compile(
    r"\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE
)
"""What readers of tables take for a number where they can, and `canonical_value` takes for a text."""
_NUMBER = "a number of at most 40 digits on either side of the point and an exponent within +-199"


def is_unreadable(text: str, value: str | float) -> bool:
    """Return whether a text is a number to some readers of tables, but not the value that it stands for here.

    Examples
    --------
    >>> is_unreadable("INF", canonical_value("INF")), is_unreadable("12", canonical_value("12"))
    (True, False)
    """
    return isinstance(value, str) and _UNREADABLE.fullmatch(text) is not None


@final
@dataclass(frozen=True)
class Categorical(Attribute):
    """Listed categories, compared with data by canonical value: 3, "3" and "3.0" are one category.

    Parameters
    ----------
    name : str
        The name.
    categories : tuple of str
        The categories in order; other values are replaced by their canonical text.
    type : {'text', 'integer', 'number', 'boolean', 'date'}, optional
        How categories and data are compared instead: as they are written, as numbers, as booleans (1 and 0
        are two), or as dates.
    case : {'match', 'ignore'}
        Whether texts that differ in the case of letters alone are one category: by the simple case folding of
        Unicode, letter by letter. Only without a type, or with type text.

    Raises
    ------
    DomainError
        If there are no categories, one occurs twice in any spelling, or is none of its type; without a type,
        if one is a number that is not finite or out of the range of numerals.

    Examples
    --------
    >>> sex = Categorical("sex", ("female", "male"))
    >>> sex.size, sex.code_of("male"), sex.range_label(0, 1)
    (2, 1, 'female..male')
    >>> Categorical("code", ("1", "01"), type="text").code_of("01")
    1
    """

    name: str
    categories: tuple[str, ...]
    type: str | None = None
    case: str = field(default="match", kw_only=True)
    _categories: Categories = field(init=False, repr=False, compare=False)
    numeric: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self._check_name()
        place: tuple[str, ...] = (self.name,)
        as_text = self.type in (None, "text")
        if self.case != "match" and not (self.case == "ignore" and as_text):
            expected = "match or ignore" if as_text else "no `case`: its type has none"
            raise DomainError.at((self.name, "case"), describe_value(self.case), expected)
        if self.type is not None and self.type not in TYPES:
            expected = f"{', '.join(TYPES[:-1])} or {TYPES[-1]}"
            raise DomainError.at((self.name, "type"), describe_value(self.type), expected)
        if self.type is not None or self.codebook != NO_CODEBOOK or self.case == "ignore":
            place = (self.name, "categories")
        if isinstance(self.categories, str):
            raise DomainError.at(place, describe_value(self.categories), "a list of categories")
        seen: dict[str | float, str] = {}
        for position, category in enumerate(self.categories):
            with within(*place, position):
                text, value = self._compared(category)
                if value in seen:
                    same = seen[value]
                    found = f"{text!r} a second time" if same == text else f"{text!r}, the same as {same!r}"
                    raise DomainError.at((), found, "each category once, in one spelling")
                if "\x00" in text:
                    raise DomainError.at((), "a null character", "text without one")
            seen[value] = text
        if not seen:
            raise DomainError.at(place, "an empty list", "at least 1 category")
        self._set(categories=tuple(seen.values()), _categories=self._rule_of(seen))
        self._check_labels()

    def _compared(self, category: object) -> tuple[str, str | float]:
        """Return the text of a category, and the value by which its type compares it."""
        if self.codebook.trim and isinstance(category, str):
            category = category.strip(WHITESPACE)
        if category == "" and self.codebook.null is not None:
            found = "a category without a text, which `null` counts as missing"
            raise DomainError.at((), found, "another category, or no `null`")
        if self.type == "text":
            if not isinstance(category, str):
                raise DomainError.at((), describe_value(category), "text, in quotes, as its type is text")
            return str(category), self._folded(str(category))
        if self.type == "date":
            day = day_of(category)
            if day is None:
                raise DomainError.at((), describe_value(category), "a date, such as 2020-01-31")
            return day.isoformat(), day.isoformat()
        text = canonical_text(category)
        value = canonical_value(self._folded(text))
        if self.type == "boolean":
            number = BOOLEANS.get(value) if isinstance(value, str) else value
            if number not in (0.0, 1.0):
                raise DomainError.at((), describe_value(category), "true or false")
            return text, number
        if self.type is not None and not isinstance(value, float):
            raise DomainError.at((), describe_value(category), _NUMBER)
        if self.type == "integer" and not float(value).is_integer():
            raise DomainError.at((), describe_value(category), "an integer")
        if is_unreadable(text, value):
            raise DomainError.at((), describe_value(text), f"text, or {_NUMBER}")
        return text, value

    def _folded(self, text: str) -> str:
        return fold(text) if self.case == "ignore" else text

    def _rule_of(self, seen: dict[str | float, str]) -> Categories:
        common = self._common(len(seen))
        texts = tuple(self._folded(text) for text in seen.values())
        if self.case == "ignore":
            common["folded"] = foldings(texts)
        if self.type is None:
            return Listed(texts, **common)
        if self.type in ("text", "date"):
            return (Texts if self.type == "text" else Days)(texts, **common)
        return Numbers(tuple(float(value) for value in seen), **common)

    def _rule(self, kind: Kind) -> Categories | None:
        """Return the categories, and how they are compared."""
        readable = kind in ((Kind.TEXT, Kind.NULL) if self.type == "text" else (*NUMBERS, Kind.DATE))
        return self._categories if readable else None

    def _value(self, code: int) -> str:
        """Return the text of a category."""
        return self.categories[code]

    def _code_of(self, value: object) -> int:
        """Return the code of a category, given in any spelling that its type takes for the same."""
        text, compared = self._compared(value)
        code = self._categories.codes.get(compared)
        if code is None:
            expected = f"a category of {self.name!r}"
            raise DomainError(unknown_name((), text, expected, self.categories, describe_value(value)))
        return code

    def _code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of two categories, which must be in the listed order."""
        with within(0):
            first = self.code_of(low)
        with within(1):
            last = self.code_of(high)
        if first > last:
            expected = f"two categories of {self.name!r}, in the listed order"
            raise DomainError.at((), describe_value([low, high]), expected)
        return first, last

    def _spec(self) -> list[str] | dict[str, object]:
        """Return the list of categories, in a mapping where they have a type."""
        return list(self.categories) if self.type is None and self.case == "match" else self._mapping()

    def _mapping(self) -> dict[str, object]:
        listed = list(self.categories)
        spec: dict[str, object] = {"categories": listed}
        if self.type is not None:
            spec["type"] = self.type
        return spec if self.case == "match" else spec | {"case": self.case}
