"""Attributes whose values are days, weeks, months, quarters, years, days of the week or hours of the day."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from matrixdp.domain.attribute import Attribute
from matrixdp.domain.canonical import day_of
from matrixdp.domain.ends import Ends
from matrixdp.domain.rules import DAYS, MOMENTS, Kind, Moments
from matrixdp.errors import DomainError
from matrixdp.forms import describe_value, unknown_name

__all__ = ["UNITS", "WEEKDAYS", "Dates"]

UNITS = ("day", "week", "month", "quarter", "year", "weekday", "hour")
"""What one value can be."""

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_FOREVER = ("weekday", "hour")
"""The units whose values come again, so that they need no first and last day."""


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
    _moments: Moments = field(init=False, repr=False, compare=False)
    numeric: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self._check_name()
        if self.by not in UNITS:
            expected = f"{', '.join(UNITS[:-1])} or {UNITS[-1]}"
            raise DomainError.at((self.name, "by"), describe_value(self.by), expected)
        first = self._end("from", self.first, DAYS[0])
        last = self._end("to", self.last, DAYS[1])
        if last < first:
            expected = f"{first.isoformat()}, the first day, or a later one"
            raise DomainError.at((self.name, "to"), last.isoformat(), expected)
        self._set(first=first, last=last)
        hours: dict[str, Any] = {"first": first.toordinal() * 24, "last": last.toordinal() * 24 + 23}
        self._set(_moments=Moments(**hours, **self._divided(), **self._common(self._count())))
        self._check_labels()

    @cached_property
    def ends(self) -> Ends:
        """The first and the last day of each value; Mondays are 1, hours as they are."""
        count = self._count()
        if self.by in _FOREVER:
            return Ends.of_integers(np.arange(count, dtype=np.int64) + (self.by == "weekday"))
        first, last = np.datetime64(self.first, "D"), np.datetime64(self.last, "D")
        if self.by in _MONTHS:
            starts = np.array([self._start(code) for code in range(count)], dtype="datetime64[D]")
        else:
            steps = np.arange(count) * (7 if self.by == "week" else 1)
            starts = np.datetime64(self._start(0), "D") + steps.astype("timedelta64[D]")
        stops = np.append(starts[1:] - np.timedelta64(1, "D"), last)
        return Ends(np.maximum(starts, first), stops)

    def _end(self, key: str, written: object, forever: date) -> date:
        if written is None and self.by in _FOREVER:
            return forever
        day = day_of(written)
        if day is None:
            raise DomainError.at((self.name, key), describe_value(written), "a date, such as 2013-01-31")
        return day

    def _count(self) -> int:
        if self.by in _FOREVER:
            return 7 if self.by == "weekday" else 24
        if self.by in _MONTHS:
            return self._month(self.last) - self._month(self.first) + 1
        days: int = (self.last - self._start(0)).days
        return days // (7 if self.by == "week" else 1) + 1

    def _divided(self) -> dict[str, Any]:
        """Return how hours become codes."""
        if self.by == "hour":
            return {"start": 0, "width": 1, "cycle": 24}
        if self.by == "weekday":
            # The day 1, 0001-01-01, is a Monday.
            return {"start": 24, "width": 24, "cycle": 7}
        if self.by in _MONTHS:
            inner = (self._start(code).toordinal() * 24 for code in range(1, self._count()))
            return {"edges": tuple(inner)}
        return {"start": self._start(0).toordinal() * 24, "width": 24 * (7 if self.by == "week" else 1)}

    def _month(self, day: date) -> int:
        """Return the number of the month, quarter or year that a day is in."""
        return (day.year * 12 + day.month - 1) // _MONTHS[self.by]

    def _start(self, code: int) -> date:
        """Return the day that a value starts on, be it before the first one."""
        if self.by in _MONTHS:
            months = (self._month(self.first) + code) * _MONTHS[self.by]
            return date(months // 12, months % 12 + 1, 1)
        monday = timedelta(days=self.first.weekday() if self.by == "week" else 0)
        return date.fromordinal((self.first - monday).toordinal() + code * (7 if self.by == "week" else 1))

    def _rule(self, kind: Kind) -> Moments | None:
        """Return how moments become codes; a date has no hour."""
        readable = kind in MOMENTS and not (self.by == "hour" and kind is Kind.DATE)
        return self._moments if readable else None

    def _value(self, code: int) -> str | int:
        """Return the text of a value in the way of ISO 8601, or the number of a year or an hour."""
        if self.by == "hour":
            return code
        if self.by == "weekday":
            return WEEKDAYS[code]
        start = self._start(code)
        if self.by == "year":
            return start.year
        if self.by == "day":
            return start.isoformat()
        if self.by == "week":
            year, week, _ = start.isocalendar()
            return f"{year:04}-W{week:02}"
        parts = f"{start.month:02}" if self.by == "month" else f"Q{(start.month + 2) // 3}"
        return f"{start.year:04}-{parts}"

    def _code_of(self, value: object) -> int:
        """Return the code of a value, given as `value` gives it; days are given as dates too."""
        text = value
        if isinstance(value, date) and not isinstance(value, datetime):
            text = value.isoformat()
        code = self._places.get(text) if isinstance(text, str | int) and not isinstance(text, bool) else None
        if code is None:
            expected = f"a {self.by} of {self.name!r}, such as {self._label(0)}"
            if not isinstance(text, str):
                raise DomainError.at((), describe_value(value), expected)
            texts = [key for key in self._places if isinstance(key, str)]
            raise DomainError(unknown_name((), text, expected, texts, describe_value(value)))
        return code

    def _code_range(self, low: object, high: object) -> tuple[int, int]:
        """Return the codes of two values, which must be in their order."""
        first, last = self.code_of(low), self.code_of(high)
        if first > last:
            expected = f"two values of {self.name!r}, the first of them not after the second"
            raise DomainError.at((), describe_value([low, high]), expected)
        return first, last

    def _range_label(self, first: int, last: int) -> str:
        if self.by in ("year", "hour"):
            return super()._range_label(first, last)
        return f"{self.label(first)}..{self.label(last)}"

    def _spec(self) -> dict[str, object]:
        """Return the ends, where they are not those of all days, and the unit."""
        spec: dict[str, object] = {}
        if self.by not in _FOREVER or (self.first, self.last) != DAYS:
            spec = {"from": self.first.isoformat(), "to": self.last.isoformat()}
        return spec | {"by": self.by}

    @cached_property
    def _places(self) -> Mapping[str | int, int]:
        """The codes of the values, numbers by their texts too."""
        places: dict[str | int, int] = {}
        for code in range(self._count()):
            value = self._value(code)
            places[value] = places[str(value)] = code
        return places
