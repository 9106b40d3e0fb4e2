"""What raw values mean: the one statement of how they become codes, as data that every encoder reads.

Encoders in plain Python (`matrixdp.domain.encoding`) and in SQL (`matrixdp.sources.sql`) carry these rules
out; they hold none of their own, and a test holds both to the same codes.

What a value is does not depend on the kind of column that holds it, so that a record that changes the type
which a reader infers changes the code of no other record:

- A *numeral* is a string that is, between spaces, a sign, at most 40 digits on either side of the point, and
  an exponent from -199 to 199. The bounds keep every engine's own parser inside the range where all of them
  agree.
- The *canonical value* of a finite number or a numeral is the nearest double; that of a boolean is the
  text ``true`` or ``false``, and so is that of a string that readers take for one: ``true``, ``t`` and
  ``yes``, ``false``, ``f`` and ``no``, in letters of either case; that of any other string is the string as
  it stands; and that of a date is its text in ISO 8601. Nulls, NaN and infinities have none.
- Categories are compared by canonical value. A *number* is a canonical value that is one; ``true`` is the
  number 1, ``false`` the number 0.

A declared type says by what categories are compared instead:

- *text*: by the string as it stands, without exception. Only strings have one, so columns of other types are
  refused.
- *number*, *integer* and *boolean*: by number, so that 1 and ``true``, and 0 and ``false``, are the same.
- *date*: by the string without the spaces around it, and dates by their text in ISO 8601.

A value that has no such value, or one that the attribute does not list, is out of domain.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from functools import cache, cached_property
from typing import Any, TypeVar, cast, final
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import DomainError
from matrixdp.forms import describe_value, is_unicode

A = TypeVar("A")

WHITESPACE = " \t\n\r\x0b\x0c"
"""What may stand around a numeral."""

NUMERAL = r"^[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?0{0,4}1?[0-9]{1,2})?$"
"""The numerals that are read as numbers, as a regular expression that every engine reads alike."""

DAYS = (date.min, date.max)
"""The first and the last day that has a text; engines write those beyond it each in its own way, or not."""

TYPES = ("text", "integer", "number", "boolean", "date")
"""The types that categories can be declared to have."""

MOMENT = (
    r"^(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-9][0-9]{3})-[0-9]{2}-[0-9]{2}"
    r"([T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
    r"(Z|[+-](0[0-9]|1[0-4])(:?[0-5][0-9])?)?)?$"
)
"""The texts that are read as moments, as a regular expression that every engine reads alike."""

BOOLEANS = {"true": 1.0, "false": 0.0}
"""The canonical values of booleans, and their numbers."""

SPELLINGS = {"true": "true", "t": "true", "yes": "true", "false": "false", "f": "false", "no": "false"}
"""The canonical values of what readers take for a boolean, in small letters."""

A_NUMERAL = "a number of at most 40 digits on either side of the point and an exponent within ±199"

_NUMERAL = re.compile(NUMERAL)
_UNREADABLE = re.compile(
    r"\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)\s*", re.ASCII | re.IGNORECASE
)
"""What readers of tables take for a number where they can, and `canonical_value` takes for a text."""


def canonical_value(text: str) -> str | float:
    """Return the canonical value of a string.

    Examples
    --------
    >>> [canonical_value(text) for text in (" 3.0", "03", "Yes", "x ")]
    [3.0, 3.0, 'true', 'x ']
    """
    numeral = text.strip(WHITESPACE)
    if _NUMERAL.match(numeral):
        return float(numeral)
    return SPELLINGS.get(text.lower(), text)


def is_unreadable(text: str) -> bool:
    """Return whether a text is a number to some readers of tables, but not here.

    Examples
    --------
    >>> is_unreadable("INF"), is_unreadable("12")
    (True, False)
    """
    return _UNREADABLE.fullmatch(text) is not None and isinstance(canonical_value(text), str)


def is_category(value: str | float) -> bool:
    r"""Return whether a canonical value may be a category.

    Examples
    --------
    >>> [is_category(value) for value in (3.0, "a b", "nan", "a\x00", 1e300)]
    [True, True, False, False, False]
    """
    if isinstance(value, float):
        return canonical_value(canonical_text(value)) == value
    return not (is_unreadable(value) or "\x00" in value)


class Kind(Enum):
    """What a value, or every value of a column, is."""

    TEXT = "text"
    BOOLEAN = "boolean"
    INTEGER = "integer"
    FLOAT = "float"
    DATE = "date"
    TIMESTAMP = "timestamp"
    NANOSECONDS = "timestamp of nanoseconds"
    INSTANT = "timestamp with a time zone"
    NULL = "null"
    OTHER = "other"


NUMBERS = (Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.NULL)
"""The kinds that numbers are read from."""

MOMENTS = (Kind.TEXT, Kind.DATE, Kind.TIMESTAMP, Kind.NANOSECONDS, Kind.INSTANT, Kind.NULL)
"""The kinds that moments are read from."""


@dataclass(frozen=True, kw_only=True)
class ParseRule:
    """What rules of every kind say.

    Attributes
    ----------
    trim : bool
        Whether `WHITESPACE` around a text is left out before anything else.
    null : int, optional
        The code of missing values: nulls, NaN and texts that are empty. Without one they are out of domain,
        or whatever the rule says of an empty text.
    missing : Listed or Texts, optional
        Which other values are missing; these are out of domain where missing values have no code.
    folded: tuple of str
        Letters of texts, and in the same order the letters that take their place, after that.
    """

    trim: bool = False
    null: int | None = None
    missing: Listed | Texts | None = None
    folded: tuple[str, str] = ("", "")

    def cleaned(self, text: str) -> str:
        """Return a text as it is compared."""
        text = text.strip(WHITESPACE) if self.trim else text
        return text.translate(self._replaced) if self._replaced else text

    @cached_property
    def _replaced(self) -> Mapping[int, int]:
        return str.maketrans(*self.folded)


AS_IT_STANDS = ParseRule()
"""The reading of values that are not cleaned."""


@final
@dataclass(frozen=True)
class Listed(ParseRule):
    """Values that are compared by canonical value: the code is the position in the list.

    Attributes
    ----------
    texts : tuple of str
        The listed values, each in one of its spellings.
    """

    texts: tuple[str, ...]

    @cached_property
    def codes(self) -> Mapping[str | float, int]:
        """The code of every canonical value."""
        return {canonical_value(text): code for code, text in enumerate(self.texts)}

    @cached_property
    def numbers(self) -> Mapping[float, int]:
        """The code of every canonical value that is a number."""
        return {value: code for value, code in self.codes.items() if isinstance(value, float)}


@dataclass(frozen=True)
class _AsWritten(ParseRule):
    texts: tuple[str, ...]

    @cached_property
    def codes(self) -> Mapping[str | float, int]:
        """The code of every text: its position in the list."""
        return {text: code for code, text in enumerate(self.texts)}


@final
class Texts(_AsWritten):
    """Strings that are compared as they stand."""


@final
class Days(_AsWritten):
    """Dates, each by its text in ISO 8601."""


@final
@dataclass(frozen=True)
class Numbers(ParseRule):
    """Listed numbers: the code is the position in the list."""

    listed: tuple[float, ...]

    @cached_property
    def codes(self) -> Mapping[str | float, int]:
        """The code of every number."""
        return {number: code for code, number in enumerate(self.listed)}


@final
@dataclass(frozen=True)
class IntegerRange(ParseRule):
    """Numbers that are integers from `first` to `last`: the code is the distance from the first.

    Attributes
    ----------
    first, last : int
        The ends.
    round : {'floor', 'nearest'}, optional
        What makes other numbers integers: the next one below, or the nearest one, from x.5 on the one above.
    clip : bool
        Whether numbers beyond the ends count as the ends.
    """

    first: int
    last: int
    round: str | None = None
    clip: bool = False


@final
@dataclass(frozen=True)
class Multiples(ParseRule):
    """Numbers, each as the nearest multiple of a step: the code is the number of steps from the first.

    Numbers beyond the ends count as the ends, and halves of a step go up. The double nearest to a multiple
    of the step has the code of that multiple, so that 0.29 is 29 hundredths.

    Attributes
    ----------
    first, last : int
        The ends, in steps of at most `LARGEST_STEPS`.
    over, under : int
        The step is ``over / under``.
    """

    first: int
    last: int
    over: int
    under: int

    @property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest number."""
        return self.first * self.over / self.under, self.last * self.over / self.under

    def code(self, number: float) -> int:
        """Return the code of a finite number; engines carry out the same operations on doubles."""
        low, high = self.ends
        if number <= low:
            return 0
        if number >= high:
            return self.last - self.first
        return math.floor((number * self.under + self.over / 2) / self.over) - self.first


@final
@dataclass(frozen=True)
class BinEdges(ParseRule):
    """Numbers in bins ``[a, b)`` between increasing edges: the code is that of the bin.

    Attributes
    ----------
    edges : tuple of float
        The edges, at least two.
    closed : bool
        Whether the last edge belongs to the last bin.
    clip : bool
        Whether numbers beyond the edges count for the first and the last bin.
    """

    edges: tuple[float, ...]
    closed: bool
    clip: bool = False


@final
@dataclass(frozen=True)
class Offsets:
    """How many minutes local time is ahead of UTC, in some time zone.

    Attributes
    ----------
    starts : tuple of int
        The minutes in UTC with which offsets but the first begin, counted as hours are by `Timestamps`.
    minutes : tuple of int
        The offsets.
    """

    starts: tuple[int, ...]
    minutes: tuple[int, ...]

    def at(self, minute: int) -> int:
        """Return the offset at a time in UTC, which is given in minutes."""
        return self.minutes[bisect_right(self.starts, minute)]


_ZONED = (date(1900, 1, 1), date(2099, 12, 31))
"""The first and the last day on which clocks change; nobody knows what later years bring."""


@cache
def offsets_of(time_zone: str, first: date, last: date) -> Offsets:
    """Return the offsets of a time zone of the IANA database, to the minute, between two days.

    Before and after, and before 1900 and after 2099, the nearest one holds.

    Examples
    --------
    >>> offsets_of("America/Chicago", date(2020, 1, 1), date(2020, 12, 31)).minutes
    (-360, -300, -360)
    """
    zone = ZoneInfo(time_zone)

    def offset(minute: int) -> int:
        days, rest = divmod(minute, 1440)
        utc = datetime.fromordinal(days).replace(tzinfo=UTC) + timedelta(minutes=rest)
        return cast("timedelta", utc.astimezone(zone).utcoffset()) // timedelta(minutes=1)

    # A day more at both ends, as days begin at another time in UTC.
    begin, end = (min(max(day, _ZONED[0]), _ZONED[1]).toordinal() for day in (first, last))
    starts, minutes = [], [offset((begin - 1) * 1440)]
    for day in range(begin - 1, end + 1):
        if offset((day + 1) * 1440) != minutes[-1]:
            within = range(day * 1440, (day + 1) * 1440 + 1)
            changed = bisect_left(within, True, key=lambda minute: offset(minute) != minutes[-1])
            starts.append(within[changed])
            minutes.append(offset((day + 1) * 1440))
    return Offsets(tuple(starts), tuple(minutes))


@final
@dataclass(frozen=True, kw_only=True)
class Timestamps(ParseRule):
    """Hours from `first` to `last`, each with a code of its own or several with one.

    Hours are counted from that with which the day before 0001-01-01 begins, so that none is negative. A date
    is its first hour; a moment with a time zone is read in that of the rule, and one without as it stands.

    Attributes
    ----------
    first, last : int
        The first and the last hour.
    start, width : int
        The hour with which the code 0 begins, and how many hours each code has. If there is no `cycle`, the
        code is the number of widths since the start.
    cycle : int, optional
        After how many codes these begin again. With a width of one hour a date without a time has no code.
    edges : tuple of int, optional
        The hours with which the codes from 1 on begin, instead.
    clip : bool
        Whether hours beyond the ends count as the ends.
    blank : tuple of int
        The first hours of days that are missing.
    offsets : Offsets, optional
        The time zone in which moments with a time zone are read; UTC where it is left out.
    """

    first: int
    last: int
    start: int = 0
    width: int = 1
    cycle: int | None = None
    edges: tuple[int, ...] | None = None
    clip: bool = False
    blank: tuple[int, ...] = ()
    offsets: Offsets | None = None

    @property
    def timed(self) -> bool:
        """Whether the hour matters, so that a date without one has no code."""
        return self.width == 1 and self.edges is None


Categories = Listed | Texts | Days | Numbers
Rule = Categories | IntegerRange | Multiples | BinEdges | Timestamps


def never(rule: Rule, kind: Kind) -> bool:
    """Return whether every value of a kind that a rule is for is out of domain.

    Examples
    --------
    >>> never(Days(("2020-01-31",)), Kind.INTEGER), never(Numbers((1.0,)), Kind.BOOLEAN)
    (True, False)
    """
    if isinstance(rule, Days):
        return kind not in (Kind.TEXT, Kind.DATE)
    if isinstance(rule, Timestamps):
        return kind is Kind.NULL
    return kind is Kind.NULL or (isinstance(rule, Numbers) and kind is Kind.DATE)


# The simple case folding of Unicode: letter by letter, and the same whatever the language.


def fold_case(text: str) -> str:
    """Return a text with every letter in place of which simple case folding has another replaced.

    Examples
    --------
    >>> fold_case("ÉCOLE Straße ẞ \u0130"), fold_case("\u017f\u212a")
    ('école straße ß İ', 'sk')
    """
    return "".join(map(_letter, text))


def case_foldings(texts: Iterable[str]) -> tuple[str, str]:
    """Return the letters that fold to a letter of some folded texts, and what each of them folds to.

    What engines replace: letters that are not among them can be in no text that is compared.

    Examples
    --------
    >>> case_foldings(["ab"])
    ('AB', 'ab')
    """
    pairs = sorted((other, letter) for letter in set("".join(texts)) for other in _others().get(letter, ""))
    return "".join(other for other, _ in pairs), "".join(letter for _, letter in pairs)


def _letter(letter: str) -> str:
    return next((one for one in (letter.casefold(), letter.lower()) if len(one) == 1), letter)


@cache
def _others() -> Mapping[str, str]:
    """Return for every letter the others that fold to it."""
    others: dict[str, str] = {}
    for start in range(0, sys.maxunicode + 1, 256):
        block = "".join(map(chr, range(start, start + 256)))
        if block.casefold() == block == block.lower():
            continue  # no letter becomes shorter than one, so each has stayed as it was
        for letter in block:
            if (folded := _letter(letter)) != letter:
                others[folded] = others.get(folded, "") + letter
    return others


# Canonical texts of values and numbers.

INTEGER = "an integer between -(2^53 - 1) and 2^53 - 1"
NUMBER = "a finite number"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
LARGEST_INTEGER = 2**53 - 1
"""Integers up to here are told apart by floating point, so that every engine reads them alike."""
LARGEST_STEPS = 2**40
"""Multiples of a step up to here are told apart by their nearest doubles, with room for rounding."""


def wrong_value(value: object, expected: str, *path: str | int, code: str = "wrong-type") -> DomainError:
    """Return the error of a value that a user wrote, at its place."""
    return DomainError.at(path, describe_value(value), expected, code=code)


def canonical_text(value: object) -> str:
    """Return the text by which a category is compared with data.

    Examples
    --------
    >>> [canonical_text(value) for value in ("a", True, 3, 3.0, 0.5)]
    ['a', 'true', '3', '3', '0.5']
    """
    if isinstance(value, str) and is_unicode(value):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        number = float(value)
        if math.isfinite(number):
            return str(int(number)) if number == math.floor(number) else repr(number)
    raise wrong_value(value, "text, a finite number, true or false")


def day_of(value: object) -> date | None:
    """Return a public value that is a date, given as one or in ISO 8601, else None.

    Examples
    --------
    >>> day_of("2020-01-31"), day_of("2020-02-30"), day_of("20200131")
    (datetime.date(2020, 1, 31), None, None)
    """
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _DAY.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value)
    except ValueError:
        return None


def number_text(number: float) -> str:
    """Return a number as a person would write it.

    Examples
    --------
    >>> number_text(10000.0), number_text(0.5), number_text(-math.inf)
    ('10000', '0.5', '-inf')
    """
    number = float(number)
    if not math.isfinite(number):
        return repr(number)
    return str(int(number)) if number == math.floor(number) and abs(number) < 1e16 else repr(number)


def integer_of(value: object) -> int | None:
    """Return a public value that is an integer within +-(2^53 - 1), else None; booleans are no integers here.

    Examples
    --------
    >>> integer_of(40.0), integer_of(0.5), integer_of(True)
    (40, None, None)
    """
    integral = isinstance(value, numbers.Integral) and not isinstance(value, bool | np.bool_)
    if not integral and not (isinstance(value, float | np.floating) and float(value).is_integer()):
        return None
    whole = int(value)  # type: ignore[call-overload]  # of the types above
    return whole if abs(whole) <= LARGEST_INTEGER else None


def plain_number(number: float) -> int | float:
    """Return a number as files have it: an integer where it is one.

    Examples
    --------
    >>> plain_number(40000.0), plain_number(0.01)
    (40000, 0.01)
    """
    whole = integer_of(number)
    return number if whole is None else whole


def number_of(value: object) -> float | None:
    """Return a public value that is a finite number, else None; booleans are no numbers here.

    Examples
    --------
    >>> number_of(3), number_of(math.inf), number_of("3")
    (3.0, None, None)
    """
    if isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_):
        try:
            number = float(value)
        except OverflowError:
            return None
        if math.isfinite(number):
            return number + 0.0  # the negative zero becomes the positive one
    return None


def required(convert: Callable[[object], A | None], value: object, expected: str, *path: str | int) -> A:
    """Return a public value as a function converts it, or raise the error of its place where it is None."""
    found = convert(value)
    if found is None:
        raise wrong_value(value, expected, *path)
    return found


# Where the values of an attribute begin and end, as numbers or days that can be compared.


@final
@dataclass(frozen=True, eq=False)
class Bounds:
    """Where each value begins and ends, in the order of the codes; missing values have neither.

    Attributes
    ----------
    low, high : ndarray of int64, float64 or datetime64[D]
        The first and the last number or day of each value; of bins, their edges.
    half_open : bool
        Whether ``high`` is the first number that a value does not have, as in bins ``[a, b)``, but for a
        last bin that is closed. Else it belongs to the value.

    Examples
    --------
    >>> from matrixdp.domain import Bins
    >>> ends = Bins("income", (0, 10, 25)).ends
    >>> ends.low.tolist(), ends.high.tolist(), ends.half_open
    ([0.0, 10.0], [10.0, 25.0], True)
    """

    low: NDArray[Any]
    high: NDArray[Any]
    half_open: bool = False


# Former names, for one version.
Whole, Steps, Moments, Reading, Ends = IntegerRange, BinEdges, Timestamps, ParseRule, Bounds
