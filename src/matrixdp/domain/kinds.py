"""The kinds of attributes: categories, integers, bins, codes and dates."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self, cast, final
from zoneinfo import available_timezones

import numpy as np

from matrixdp.domain import rules
from matrixdp.domain.attribute import NO_CODEBOOK, Attribute, Codebook
from matrixdp.domain.rules import integer_of, number_of, number_text, plain_number, required, wrong_value
from matrixdp.errors import DomainError, each, within
from matrixdp.forms import describe_value, unknown_name


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
    _rule: rules.Categories = field(init=False, repr=False, compare=False)
    numeric: ClassVar[bool] = False

    def _checked(self) -> rules.Categories:
        if self.case != "match" and self.type not in (None, "text"):
            expected = "no `case`: its type has none"
            raise wrong_value(self.case, expected, self.name, "case", code="unknown-name")
        self._check_word("case", ("match", "ignore"))
        if self.type is not None:
            self._check_word("type", rules.TYPES)
        plain = self.type is None and self.codebook == NO_CODEBOOK and self.case == "match"
        place = (self.name,) if plain else (self.name, "categories")
        if isinstance(self.categories, str):
            raise wrong_value(self.categories, "a list of categories", *place)
        seen: dict[str | float, str] = {}

        def see(category: object) -> None:
            text, value = self._compared(category)
            if value in seen:
                same = seen[value]
                found = f"{text!r} a second time" if same == text else f"{text!r}, the same as {same!r}"
                raise DomainError.at((), found, "each category once, in one spelling", code="duplicate")
            if "\x00" in text:
                raise DomainError.at((), "a null character", "text without one", code="wrong-type")
            seen[value] = text

        with within(*place):
            each(see, self.categories)
        if not seen:
            raise DomainError.at(place, "an empty list", "at least 1 category", code="empty")
        self._set(categories=tuple(seen.values()))
        return self._rule_of(seen)

    @property
    def rest_code(self) -> int | None:
        """The code of all values that a discovery did not find, the last one but null; None elsewhere."""
        found = self.codebook.discovered is not None
        return self.size - 1 - (self.null_code is not None) if found else None

    def _compared(self, category: object) -> tuple[str, str | float]:
        """Return the text of a category, and the value by which its type compares it."""
        if self.codebook.trim and isinstance(category, str):
            category = category.strip(rules.WHITESPACE)
        if category == "" and self.codebook.null is not None:
            found = "a category without a text, which `null` counts as missing"
            raise DomainError.at((), found, "another category, or no `null`", code="conflict")
        if self.type == "text":
            if not isinstance(category, str):
                raise wrong_value(category, "text, in quotes, as its type is text")
            return str(category), self._folded(str(category))
        if self.type == "date":
            day = required(rules.day_of, category, "a date, such as 2020-01-31").isoformat()
            return day, day
        text = rules.canonical_text(category)
        value = rules.canonical_value(self._folded(text))
        if self.type == "boolean":
            number = rules.BOOLEANS.get(value) if isinstance(value, str) else value
            if number not in (0.0, 1.0):
                raise wrong_value(category, "true or false")
            return text, number
        if self.type is not None and not isinstance(value, float):
            raise wrong_value(category, rules.A_NUMERAL)
        if self.type == "integer" and not float(value).is_integer():
            raise wrong_value(category, "an integer")
        if isinstance(value, str) and rules.is_unreadable(text):
            raise wrong_value(text, f"text, or {rules.A_NUMERAL}")
        return text, value

    def _folded(self, text: str) -> str:
        return rules.fold_case(text) if self.case == "ignore" else text

    def _rule_of(self, seen: dict[str | float, str]) -> rules.Categories:
        common = self._common(len(seen))
        for value in () if common["missing"] is None else common["missing"].codes:
            if value in seen:
                found = f"{seen[value]!r}, which is one of the categories"
                raise DomainError.at((self.name, "missing"), found, "other values", code="conflict")
        texts = tuple(self._folded(text) for text in seen.values())
        if self.case == "ignore":
            common["folded"] = rules.case_foldings(texts)
        if self.type is None:
            return rules.Listed(texts, **common)
        if self.type == "text":
            return rules.Texts(texts, **common)
        if self.type == "date":
            return rules.Days(texts, **common)
        return rules.Numbers(tuple(map(float, seen)), **common)

    def _missing(self, texts: tuple[str, ...]) -> rules.Listed | rules.Texts:
        rule = super()._missing(texts) if self.type != "text" else rules.Texts(texts, trim=self.codebook.trim)
        texts = tuple(map(self._folded, rule.texts))
        folded = rules.case_foldings(texts) if self.case == "ignore" else rule.folded
        return replace(rule, texts=texts, folded=folded, trim=rule.trim or self.type == "date")

    def _kinds(self) -> tuple[rules.Kind, ...]:
        return (
            (rules.Kind.TEXT, rules.Kind.NULL) if self.type == "text" else (*rules.NUMBERS, rules.Kind.DATE)
        )

    def _value(self, code: int) -> str:
        return self.categories[code]

    def _code_of(self, value: object) -> int:
        """Return the code of a category, given in any spelling that its type takes for the same."""
        if isinstance(value, str) and value in self._places:
            return self._places[value]
        text, compared = self._compared(value)
        if compared not in self._rule.codes:
            expected = f"a category of {self.name!r}"
            raise DomainError(unknown_name((), text, expected, self.categories, describe_value(value)))
        return self._rule.codes[compared]

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {text: code for code, text in enumerate(self.categories)}

    def _spec(self) -> list[str] | dict[str, object]:
        """Return the list of categories, in a mapping where they have a type."""
        return list(self.categories) if self.type is None and self.case == "match" else self._mapping()

    def _mapping(self) -> dict[str, object]:
        spec = {"categories": list(self.categories), "type": self.type, "case": self.case}
        return {key: said for key, said in spec.items() if said not in (None, "match")}


# Attributes whose values are bins of numbers.

_MOST_BINS = 1_000_000
_INFINITE = {"-inf": -math.inf, "-.inf": -math.inf, "inf": math.inf, ".inf": math.inf}

EDGE = "a finite number, or -inf as the first edge or inf as the last one"


def edge_of(value: object) -> float | None:
    """Return a public value that is a number, finite or not, else None.

    Examples
    --------
    >>> edge_of(3), edge_of("-inf"), edge_of(float("nan")), edge_of("3")
    (3.0, -inf, None, None)
    """
    if isinstance(value, str):
        return _INFINITE.get(value)
    number = number_of(value)
    return float(value) if number is None and value in (math.inf, -math.inf) else number


@final
@dataclass(frozen=True)
class Bins(Attribute):
    """Half-open bins ``[a, b)`` between increasing edges; the last one may be closed.

    Parameters
    ----------
    name : str
        The name.
    edges : tuple of float
        The edges, at least two and strictly increasing. The first may be -inf and the last inf; the numbers
        of a table are finite all the same.
    closed : bool
        Whether the last edge belongs to the last bin.
    clip : bool
        Whether numbers beyond the edges count for the first and the last bin; else they are out of domain.

    Raises
    ------
    DomainError
        If there are fewer than two edges, or one is not finite or not above the one before.

    Examples
    --------
    >>> income = Bins("income", (0, 10000, 25000))
    >>> income.label(0), income.range_label(0, 1), income.code_range(10000, 25000)
    ('[0, 10000)', '[0, 25000)', (1, 1))
    >>> Bins.equal("hours", 0, 100, 20).label(19)
    '[95, 100]'
    """

    name: str
    edges: tuple[float, ...]
    closed: bool = False
    clip: bool = field(default=False, kw_only=True)
    numeric: ClassVar[bool] = True

    def _checked(self) -> rules.BinEdges:
        name = self.name
        with within(name, "edges"):
            edges = tuple(each(lambda edge: required(edge_of, edge, EDGE), self.edges))
        if len(edges) < 2:
            raise wrong_value(list(edges), "at least 2 edges", name, "edges", code="wrong-size")
        for place, (before, after) in enumerate(pairwise(edges)):
            if not before < after:
                expected = f"a number above {number_text(before)}, the edge before it; bins must not overlap"
                path = (name, "edges", place + 1)
                raise DomainError.at(path, number_text(after), expected, code="out-of-range")
        self._check_flags("closed", "clip")
        self._set(edges=edges)
        return rules.BinEdges(edges, self.closed, self.clip, **self._common(len(edges) - 1))

    @property
    def _counting(self) -> str:
        low, high = map(self.say.plain, (self.edges[0], self.edges[-1]))
        return self.say("counts_bins", low=low, high=high) if self.clip else ""

    @cached_property
    def ends(self) -> rules.Bounds:
        """The edges of each bin, of which the upper one does not belong to it."""
        edges = np.array(self.edges, dtype=np.float64)
        return rules.Bounds(edges[:-1], edges[1:], half_open=True)

    @classmethod
    def equal(
        cls,
        name: str,
        minimum: object,
        maximum: object,
        bins: object,
        codebook: Codebook = NO_CODEBOOK,
        *,
        clip: bool = False,
    ) -> Self:
        """Return equal bins from `minimum` to `maximum`, the last one closed.

        Parameters
        ----------
        name : str
            The name.
        minimum, maximum : float
            The first and the last edge.
        bins : int
            The number of bins.
        codebook : Codebook
            What is said besides.
        clip : bool
            Whether numbers beyond the edges count for the first and the last bin.

        Raises
        ------
        DomainError
            If the maximum is not above the minimum, or there is no bin, or more than 1,000,000, or the bins
            are too narrow to tell their edges apart.
        """
        low = required(number_of, minimum, rules.NUMBER, name, "min")
        high = required(number_of, maximum, rules.NUMBER, name, "max")
        count = required(integer_of, bins, rules.INTEGER, name, "bins")
        if count < 1:
            raise DomainError.at((name, "bins"), str(count), "an integer of at least 1", code="out-of-range")
        if count > _MOST_BINS:
            raise DomainError.at((name, "bins"), str(count), f"at most {_MOST_BINS:,} bins", code="too-large")
        if not low < high:
            expected = f"a number above {number_text(low)}, the min"
            raise DomainError.at((name, "max"), number_text(high), expected, code="out-of-range")
        # Exact steps: an edge that is an integer comes out as that integer. The decimal text of an
        # end is what was meant, so that steps of 0.1 from 0 land on 0.3 and not beside it.
        start, stop = Fraction(repr(low)), Fraction(repr(high))
        edges = tuple(float(start + (stop - start) * step / count) for step in range(count + 1))
        return cls(name, edges, closed=True, clip=clip, codebook=codebook)

    def _value(self, code: int) -> str | float:
        """Return the start of a bin."""
        edge = self.edges[code]
        return edge if math.isfinite(edge) else number_text(edge)

    def _label(self, code: int) -> str:
        """Return a bin as ``[a, b)``, or ``[a, b]`` for a last one that is closed."""
        return self._range_label(code, code)

    def _range_label(self, first: int, last: int) -> str:
        """Return the union of neighbouring bins as ``[a, b)`` or ``[a, b]``; infinite ends are open."""
        low, high = self.edges[first], self.edges[last + 1]
        start = "[" if math.isfinite(low) else "("
        end = "]" if self.closed and last == self._last and math.isfinite(high) else ")"
        return f"{start}{number_text(low)}, {number_text(high)}{end}"

    def _spoken(self, first: int, last: int) -> str:
        low, high = self.edges[first], self.edges[last + 1]
        below = first == 0 and (self.clip or not math.isfinite(low))
        above = last == self._last and (self.clip or not math.isfinite(high))
        name = "below" if below else "or_more" if above else "bin"
        name = "range" if name == "bin" and self.closed and last == self._last else name
        told = {"low": low, "high": high, "value": high if below else low}
        said = {key: self.say.plain(own) for key, own in told.items() if math.isfinite(own)}
        return "" if below and above else self.say(name, **said)

    def _code_of(self, value: object) -> int:
        """Return the code of the bin that starts at an edge."""
        position = self._edge(value)
        if position is None or position > self._last:
            expected = f"the lower edge of a bin of {self.name!r}{self._near(value)}"
            raise wrong_value(value, expected, code="unknown-name")
        return position

    def _code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of the bins that make up ``[low, high)``; both must be edges."""
        first, end = self._edge(low), self._edge(high)
        if first is None or end is None or first >= end:
            near = self._near(low if first is None else high)
            expected = f"two edges a < b of the bins of {self.name!r}, for the range [a, b){near}"
            raise wrong_value([low, high], expected, code="out-of-range")
        return first, end - 1

    def _mapping(self) -> dict[str, object]:
        """Return the edges, or the ends and the number of equal bins."""
        edges: list[object] = [_plain(edge) for edge in self.edges]
        clip = {"clip": True} if self.clip else {}
        if not self.closed:
            return {"edges": edges, **clip}
        ends, bins = (self.edges[0], self.edges[-1]), self._last + 1
        if all(map(math.isfinite, ends)) and Bins.equal(self.name, *ends, bins).edges == self.edges:
            return {"min": edges[0], "max": edges[-1], "bins": bins, **clip}
        return {"edges": edges, "closed": True, **clip}

    @property
    def _last(self) -> int:
        """The code of the last bin."""
        return len(self.edges) - 2

    def _edge(self, value: object) -> int | None:
        """Return the place of an edge, None for what is none."""
        number = edge_of(value)
        position = 0 if number is None else bisect_left(self.edges, number)
        return position if position <= self._last + 1 and self.edges[position] == number else None

    def _near(self, value: object) -> str:
        """Return which edges are near a number that is none."""
        number = number_of(value)
        if number is None or number in self.edges:
            return ""
        position = bisect_left(self.edges, number)
        near = map(number_text, self.edges[max(position - 1, 0) : position + 1])
        return f"; near it: {' and '.join(near)}"


def _plain(number: float) -> int | float | str:
    return plain_number(number) if math.isfinite(number) else number_text(number)


# Attributes whose values are days, weeks, months, quarters, years, days of the week or hours of the day.

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_CALENDAR = {"day": ("D", 1), "week": ("D", 7), "month": ("M", 1), "quarter": ("M", 3), "year": ("M", 12)}
"""Of how many days or months one value is."""
PERIODS = {"day": 0, "week": 52, "month": 12, "quarter": 4, "year": 1}
"""The units that follow one another, and how many periods back the same one of last year is; days by date."""
_FOREVER = {"weekday": 7, "hour": 24}
"""The units whose values come again, so that they need no first and last day, and how many there are."""

COARSER = {"day": ("week", "month", "quarter", "year"), "month": ("quarter", "year"), "quarter": ("year",)}
"""The units whose values are made of whole ones of a finer unit; weeks end in the middle of months."""

UNITS = (*_CALENDAR, *_FOREVER)
"""What one value can be."""


@final
@dataclass(frozen=True)
class Dates(Attribute):
    """The days from a first to a last one, both included, or what they are parts of.

    Parameters
    ----------
    name : str
        The name.
    first, last : date or str, optional
        The first and the last day, such as 2013-01-01. Only days of the week and hours of the day can do
        without.
    by : {'day', 'week', 'month', 'quarter', 'year', 'weekday', 'hour'}
        What one value is. Weeks are those of ISO 8601 and begin on Mondays; days of the week are seven, hours
        of the day 24. A first or last week, month, quarter or year may be cut by the first and the last day.
    clip : bool
        Whether days before the first or after the last count as these; not for units that come again.
    time_zone : str, optional
        The time zone of the IANA database, such as America/Chicago, in which moments with an offset from UTC
        are read; UTC where it is left out. Moments without one are read as they stand.

    Raises
    ------
    DomainError
        If an end is missing or no date, the last one is before the first, or the unit is none.

    Examples
    --------
    >>> month = Dates("month", "2013-01-01", "2013-12-31", by="month")
    >>> month.size, month.label(0), month.code_range("2013-04", "2013-06")
    (12, '2013-01', (3, 5))
    """

    name: str
    first: Any = None
    last: Any = None
    by: str = "day"
    clip: bool = field(default=False, kw_only=True)
    time_zone: str | None = field(default=None, kw_only=True)
    numeric: ClassVar[bool] = True

    def _checked(self) -> rules.Timestamps:
        self._check_word("by", UNITS)
        first = self._end("from", self.first, rules.DAYS[0])
        last = self._end("to", self.last, rules.DAYS[1])
        if last < first:
            expected = f"{first.isoformat()}, the first day, or a later one"
            raise DomainError.at((self.name, "to"), last.isoformat(), expected, code="out-of-range")
        self._check_flags("clip")
        if self.clip and self.by in _FOREVER:
            expected = f"it beside {', '.join(_CALENDAR)}, which have a first and a last value"
            raise DomainError.at((self.name, "clip"), f"it beside by: {self.by}", expected, code="conflict")
        self._set(first=first, last=last)
        hours: dict[str, Any] = {"first": first.toordinal() * 24, "last": last.toordinal() * 24 + 23}
        blank = filter(None, map(rules.day_of, self.codebook.missing))
        hours |= {"clip": self.clip, "blank": tuple(day.toordinal() * 24 for day in blank)}
        if self.time_zone is not None:
            hours["offsets"] = self._offsets(self.time_zone, first, last)
        return rules.Timestamps(**hours, **self._divided(), **self._common(len(self._counted)))

    def _offsets(self, time_zone: object, first: date, last: date) -> rules.Offsets:
        expected, place = "a time zone, such as America/Chicago", (self.name, "time_zone")
        if not isinstance(time_zone, str):
            raise wrong_value(time_zone, expected, *place)
        known = available_timezones() - {"localtime"}  # what it names depends on the machine
        if time_zone not in known:
            raise DomainError(unknown_name(place, time_zone, expected, sorted(known)))
        return rules.offsets_of(time_zone, first, last)

    @property
    def _counting(self) -> str:
        ends = {"low": self.say.day(self.first), "high": self.say.day(self.last)}
        clipped = self.say("counts_days", **ends) if self.clip else ""
        zoned = self.say("counts_zone", zone=self.time_zone) if self.time_zone else ""
        return " ".join(filter(None, (clipped, zoned)))

    @cached_property
    def ends(self) -> rules.Bounds:
        """The first and the last day of each value; Mondays are 1, hours as they are."""
        counted = np.arange(self._counted.start, self._counted.stop, self._counted.step)
        if self.by in _FOREVER:
            places = counted + (self.by == "weekday")
            return rules.Bounds(places, places)
        starts = counted.astype(f"datetime64[{_CALENDAR[self.by][0]}]").astype("datetime64[D]")
        stops = np.append(starts[1:] - np.timedelta64(1, "D"), np.datetime64(self.last, "D"))
        return rules.Bounds(np.maximum(starts, np.datetime64(self.first, "D")), stops)

    def _end(self, key: str, written: object, forever: date) -> date:
        if written is None and self.by in _FOREVER:
            return forever
        return required(rules.day_of, written, "a date, such as 2013-01-31", self.name, key)

    @cached_property
    def _counted(self) -> range:
        """The days or months, from 1970 on, with which values begin, be it before the first day."""
        if self.by in _FOREVER:
            return range(_FOREVER[self.by])
        unit, step = _CALENDAR[self.by]
        first, last = np.array([self.first, self.last], f"datetime64[{unit}]").astype(int).tolist()
        thursday = 3 if self.by == "week" else 0  # 1970-01-01, three days after a Monday
        return range(first - (first + thursday) % step, last + 1, step)

    def _divided(self) -> dict[str, Any]:
        """Return how hours become codes."""
        if self.by == "hour":
            return {"start": 0, "width": 1, "cycle": 24}
        if self.by == "weekday":
            # The day 1, 0001-01-01, is a Monday.
            return {"start": 24, "width": 24, "cycle": 7}
        if self.by in ("day", "week"):
            return {"start": self._start(0).toordinal() * 24, "width": 24 * self._counted.step}
        codes = range(1, len(self._counted))
        return {"edges": tuple(self._start(code).toordinal() * 24 for code in codes)}

    def _start(self, code: int) -> date:
        """Return the day that a value starts on, be it before the first one."""
        start = np.array(self._counted[code], f"datetime64[{_CALENDAR[self.by][0]}]")
        return cast("date", start.astype("datetime64[D]").item())

    @property
    def years(self) -> list[int]:
        """The calendar year of each value, of weeks that of ISO 8601; none for units that come again."""
        return [int(str(self._value(code))[:4]) for code in range(len(self._counted)) if self.by in PERIODS]

    def with_levels(self, levels: Mapping[str, object] | tuple[str, ...]) -> Self:
        """Return the attribute with levels besides its own; a coarser unit, such as quarter, makes one.

        Raises
        ------
        DomainError
            If a unit is not coarser, or a level does not have every value of the attribute exactly once.

        Examples
        --------
        >>> month = Dates("month", "2024-12-01", "2025-02-28", by="month").with_levels(("year",))
        >>> month.level("year").groups
        (('2024', (0,)), ('2025', (1, 2)))
        """
        if not isinstance(levels, Mapping):
            with within(self.name, "levels"):
                levels = dict(zip(levels, each(self._in_units, levels), strict=True))
        return super().with_levels(levels)

    def _in_units(self, unit: str) -> dict[str, list[object]]:
        """Return the values that are in each value of a coarser unit."""
        coarser = COARSER.get(self.by, ())
        if unit not in coarser:
            expected = " or ".join(coarser) or "a mapping from names to levels"
            raise DomainError.at((), unit, f"{expected} beside by: {self.by}", code="out-of-range")
        own, found = Dates(self.name, self.first, self.last, unit), dict[str, list[object]]()
        places = np.searchsorted(own.ends.low, self.ends.low, side="right") - 1
        for code, place in enumerate(places.tolist()):
            found.setdefault(own.label(place), []).append(self._value(code))
        return found

    def year_before(self, code: int) -> int | None:
        """Return the code of the same period of the year before; None where there is none.

        Of a day it is that of the same date, which 29 February has in no year before; of a week that of 52
        weeks before.
        """
        found = code - PERIODS[self.by]
        if self.by == "day":
            day = self._start(code)
            if (day.month, day.day) == (2, 29):
                return None
            found = code - (day - day.replace(year=day.year - 1)).days
        return found if found >= 0 else None

    def _missing(self, texts: tuple[str, ...]) -> rules.Listed | rules.Texts:
        for place, text in enumerate(texts):
            if re.match(rules.MOMENT, text) and rules.day_of(text) is None:
                raise wrong_value(text, "a day, or a text that is no date", self.name, "missing", place)
        return replace(super()._missing(texts), trim=True)

    def _kinds(self) -> tuple[rules.Kind, ...]:
        """Return the kinds of moments; a date has no hour."""
        return tuple(kind for kind in rules.MOMENTS if (self.by, kind) != ("hour", rules.Kind.DATE))

    def _value(self, code: int) -> str | int:
        """Return the text of a value in the way of ISO 8601, or the number of a year or an hour."""
        if self.by == "hour":
            return code
        if self.by == "weekday":
            return WEEKDAYS[code]
        start = self._start(code)
        if self.by == "year":
            return start.year
        if self.by == "week":
            year, week, _ = start.isocalendar()
            return f"{year:04}-W{week:02}"
        if self.by == "quarter":
            return f"{start.year:04}-Q{(start.month + 2) // 3}"
        return start.isoformat() if self.by == "day" else f"{start.year:04}-{start.month:02}"

    def _code_of(self, value: object) -> int:
        """Return the code of a value, given as `value` gives it; days are given as dates too."""
        text = value if isinstance(value, str) else None
        if isinstance(value, int | date) and not isinstance(value, bool | datetime):
            text = str(value)
        if text is not None and text in self._places:
            return self._places[text]
        expected = f"a {self.by} of {self.name!r}, such as {self._label(0)}"
        if text is None:
            raise wrong_value(value, expected, code="unknown-name")
        raise DomainError(unknown_name((), text, expected, self._places, describe_value(value)))

    def _spoken(self, first: int, last: int) -> str:
        low, high = (self.spoken(self._label(code)) for code in (first, last))
        return low if first == last else self.say("range", low=low, high=high)

    def spoken(self, text: str, level: str = "day") -> str:
        if self.codebook.language is None or level not in _CALENDAR:
            return text
        return self.say(f"unit_{text}") if text in _CALENDAR else self.say.period(text)

    def _range_label(self, first: int, last: int) -> str:
        if self.by in ("year", "hour"):
            return super()._range_label(first, last)
        return f"{self.label(first)}..{self.label(last)}"

    def _mapping(self) -> dict[str, object]:
        """Return the ends, where they are not those of all days, and the unit."""
        spec = {"from": self.first.isoformat(), "to": self.last.isoformat(), "by": self.by}
        if self.by in _FOREVER and (self.first, self.last) == rules.DAYS:
            spec = {"by": self.by}
        said = {"clip": self.clip, "time_zone": self.time_zone}
        return {**spec, **{key: value for key, value in said.items() if value}}

    @cached_property
    def _places(self) -> Mapping[str, int]:
        """The codes of the values by their texts."""
        return {self._label(code): code for code in range(len(self._counted))}


# Attributes: a name and a finite, public, ordered list of values.
#
# Five kinds, all frozen and valid from construction: `Categorical`, `Integers`, `Bins`, `Coded` and `Dates`.
# Values are addressed by *codes*, 0 to ``size - 1``, in the listed order.


@dataclass(frozen=True)
class _ConsecutiveIntegers(Attribute):
    """Attributes whose values are consecutive integers."""

    numeric: ClassVar[bool] = True

    _rule: rules.IntegerRange = field(init=False, repr=False, compare=False)

    @cached_property
    def ends(self) -> rules.Bounds:
        """The integers themselves."""
        values = np.arange(self._rule.first, self._rule.last + 1, dtype=np.int64)
        return rules.Bounds(values, values)

    def _value(self, code: int) -> int:
        return self._rule.first + code

    def _code_of(self, value: object) -> int:
        code = self._code(value)
        if code is None:
            expected = f"a value of {self.name!r}, an integer from {self._rule.first} to {self._rule.last}"
            raise wrong_value(value, expected, code="unknown-name")
        return code

    def _code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of two integers; both belong to the range."""
        first, last = self._code(low), self._code(high)
        if first is None or last is None or first > last:
            ends = f"from {self._rule.first} to {self._rule.last}, the values of {self.name!r}"
            raise wrong_value([low, high], f"two integers first <= last {ends}", code="out-of-range")
        return first, last

    def _code(self, value: object) -> int | None:
        code = None if (number := integer_of(value)) is None else number - self._rule.first
        return code if code is not None and 0 <= code <= self._rule.last - self._rule.first else None


@final
@dataclass(frozen=True)
class Integers(_ConsecutiveIntegers):
    """Consecutive integers, both ends included.

    Parameters
    ----------
    name : str
        The name.
    minimum, maximum : int
        The first and the last integer.
    round : {'floor', 'nearest'}, optional
        What makes other numbers integers: the next one below, or the nearest one, where x.5 goes up. Without
        it they are out of domain.
    clip : bool
        Whether numbers beyond the ends count as the ends; else they are out of domain.

    Raises
    ------
    DomainError
        If an end is not an integer within +-(2^53 - 1), or the maximum is below the minimum.

    Examples
    --------
    >>> age = Integers("age", 18, 90)
    >>> age.size, age.code_range(18, 64), age.range_label(0, 46)
    (73, (0, 46), '18-64')
    """

    name: str
    minimum: int
    maximum: int
    round: str | None = field(default=None, kw_only=True)
    clip: bool = field(default=False, kw_only=True)

    def _checked(self) -> rules.IntegerRange:
        minimum = required(integer_of, self.minimum, rules.INTEGER, self.name, "min")
        maximum = required(integer_of, self.maximum, rules.INTEGER, self.name, "max")
        if maximum < minimum:
            expected = f"a number of at least {minimum}, the min"
            raise DomainError.at((self.name, "max"), str(maximum), expected, code="out-of-range")
        if self.round is not None:
            self._check_word("round", ("floor", "nearest"))
        self._check_flags("clip")
        self._set(minimum=minimum, maximum=maximum)
        common = self._common(maximum - minimum + 1)
        return rules.IntegerRange(minimum, maximum, self.round, self.clip, **common)

    def _spoken(self, first: int, last: int) -> str:
        low, high = self._value(first), self._value(last)
        if self.clip and high == self.maximum and low > self.minimum:
            return self.say("or_more", value=self.say.plain(low))
        if self.clip and low == self.minimum != 0 and high < self.maximum:  # few things are below 0
            return self.say("or_less", value=self.say.plain(high))
        return self.say.plain(low) if first == last else ""

    def _mapping(self) -> dict[str, object]:
        """Return the two ends, how numbers are rounded, and whether those beyond the ends are clipped."""
        rounded = {} if self.round is None else {"round": self.round}
        clip = {"clip": True} if self.clip else {}
        return {"min": self.minimum, "max": self.maximum, **rounded, **clip}

    @property
    def _counting(self) -> str:
        rounded = "" if self.round is None else self.say(f"counts_{self.round}")
        low, high = map(self.say.plain, (self.minimum, self.maximum))
        ends = self.say("counts_ends", low=low, high=high) if self.clip else ""
        return " ".join(filter(None, (rounded, ends)))


@final
@dataclass(frozen=True)
class Coded(_ConsecutiveIntegers):
    """Values that are already coded 0 to ``size - 1``.

    Parameters
    ----------
    name : str
        The name.
    codes : int
        The number of codes, at least 1.

    Raises
    ------
    DomainError
        If the size is not a positive integer.

    Examples
    --------
    >>> Coded("code", 40).code_of(39)
    39
    """

    name: str
    codes: int

    def _checked(self) -> rules.IntegerRange:
        codes = required(integer_of, self.codes, rules.INTEGER, self.name)
        if codes < 1:
            raise DomainError.at((self.name,), str(codes), "an integer of at least 1", code="out-of-range")
        self._set(codes=codes)
        return rules.IntegerRange(0, codes - 1, **self._common(codes))

    def _spec(self) -> int:
        """Return the number of codes."""
        return self.codes

    def _mapping(self) -> dict[str, object]:
        return {"size": self.codes}
