"""What raw values mean: the one statement of how they become codes, as data that every encoder reads.

Encoders in plain Python (`matrixdp.domain.encoding`), in SQL and in expressions on frames
(`matrixdp.sources`) carry these rules out; they hold none of their own, and a test holds all of them to the
same codes.

- A *text* is the canonical text of a value: a string as it stands, ``true`` or ``false`` for a boolean, the
  decimal digits of an integer, an integral float like the integer (``3.0`` is ``3``), any other float as
  Python writes it, a date as ISO 8601. Nulls, NaN and infinities have none.
- A *number* is the value of a number or a boolean, or of a string that is, between spaces, a decimal numeral:
  a sign, at most 40 digits on either side of the point, and an exponent from -199 to 199. The bounds keep
  every engine's own parser inside the range where all of them agree.

A value that has no text or number, or whose text or number the attribute does not list, is out of domain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from functools import cached_property
from typing import final

from matrixdp.domain.canonical import float_of_text

__all__ = ["DAYS", "NUMBERS", "NUMERAL", "WHITESPACE", "Kind", "Listed", "Rule", "Steps", "Whole"]

WHITESPACE = " \t\n\r\x0b\x0c"
"""What may stand around a numeral."""

NUMERAL = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?0{0,4}1?[0-9]{1,2})?$"
"""The numerals that are read as numbers, as a regular expression that every engine reads alike."""

DAYS = (date.min, date.max)
"""The first and the last day that has a text; engines write those beyond it each in its own way, or not."""

_BOOLEANS = {"true": True, "false": False}


class Kind(Enum):
    """What a value, or every value of a column, is."""

    TEXT = "text"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DATE = "date"
    NULL = "null"
    OTHER = "other"


NUMBERS = (Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.NULL)
"""The kinds that numbers are read from."""

Plain = str | bool | int | float
"""A value of a kind, as Python has it; a date is its text."""


@final
@dataclass(frozen=True)
class Listed:
    """Values that are compared by canonical text: the code is the position in the list.

    Attributes
    ----------
    texts : tuple of str
        The canonical texts.
    kind : Kind
        What is compared with them.
    """

    texts: tuple[str, ...]
    kind: Kind

    @cached_property
    def codes(self) -> Mapping[Plain, int]:
        """The code of every value of the kind that has one of the texts; texts that none has are left out."""
        values = ((self._value(text), code) for code, text in enumerate(self.texts))
        return {value: code for value, code in values if value is not None}

    def _value(self, text: str) -> Plain | None:
        if self.kind in (Kind.TEXT, Kind.DATE):
            return text
        if self.kind is Kind.BOOLEAN:
            return _BOOLEANS.get(text)
        if self.kind is Kind.FLOAT:
            return float_of_text(text)
        try:
            return int(text) if self.kind is Kind.INTEGER and str(int(text)) == text else None
        except ValueError:
            return None


@final
@dataclass(frozen=True)
class Whole:
    """Numbers that are integers from `first` to `last`: the code is the distance from the first."""

    first: int
    last: int


@final
@dataclass(frozen=True)
class Steps:
    """Numbers in bins ``[a, b)`` between increasing edges: the code is that of the bin.

    Attributes
    ----------
    edges : tuple of float
        The edges, at least two.
    closed : bool
        Whether the last edge belongs to the last bin.
    """

    edges: tuple[float, ...]
    closed: bool


Rule = Listed | Whole | Steps
