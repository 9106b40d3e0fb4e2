"""Days, weeks, months, quarters, years, days of the week and hours of the day."""

import calendar
import json
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.domain import Dates, attribute_from_spec, encode_value
from matrixdp.domain.kinds import UNITS

#: Of each unit: the number of values from 2012-12-30 to 2013-02-11, the first text, the second and the last.
YEAR_ENDS = {
    "day": (44, "2012-12-30", "2012-12-31", "2013-02-11"),
    "week": (8, "2012-W52", "2013-W01", "2013-W07"),
    "month": (3, "2012-12", "2013-01", "2013-02"),
    "quarter": (2, "2012-Q4", "2013-Q1", "2013-Q1"),
    "year": (2, "2012", "2013", "2013"),
    "weekday": (7, "Monday", "Tuesday", "Sunday"),
    "hour": (24, "0", "1", "23"),
}


def dates(by, first="2012-12-30", last="2013-02-11", **more):
    return Dates("d", first, last, by, **more)


@pytest.mark.parametrize("by", UNITS)
def test_values(by):
    attribute = dates(by)
    size, first, second, last = YEAR_ENDS[by]
    assert [attribute.size, *map(attribute.label, (0, 1, size - 1))] == [size, first, second, last]
    assert [attribute.code_of(attribute.value(code)) for code in range(size)] == list(range(size))
    assert [attribute.code_of(attribute.label(code)) for code in range(size)] == list(range(size))
    assert attribute.code_range(first, second) == (0, 1)
    spec = json.loads(json.dumps(attribute.to_spec()))
    assert spec == {"from": "2012-12-30", "to": "2013-02-11", "by": by}
    assert attribute_from_spec("d", spec) == attribute
    assert dates(by, date(2012, 12, 30), date(2013, 2, 11)) == attribute
    with_null = attribute_from_spec("d", {**spec, "null": "none", "labels": {first: "the first"}})
    assert with_null.size == size + 1
    assert with_null.label(0) == "the first"
    assert attribute_from_spec("d", with_null.to_spec()) == with_null


def name(moment, by):
    """What a moment is called, by the calendar of Python alone."""
    year, week, weekday = moment.isocalendar()
    return {
        "day": moment.date().isoformat(),
        "week": f"{year:04}-W{week:02}",
        "month": moment.strftime("%Y-%m").zfill(7),
        "quarter": f"{moment.year:04}-Q{(moment.month + 2) // 3}",
        "year": str(moment.year),
        "weekday": calendar.day_name[weekday - 1],
        "hour": str(moment.hour),
    }[by]


@settings(max_examples=60)
@given(
    st.datetimes(datetime(1900, 1, 1), datetime(2100, 12, 31)),
    st.integers(0, 400),
    st.integers(-30, 430),
    st.sampled_from(UNITS),
    st.sampled_from([None, UTC, timezone(timedelta(hours=-9, minutes=-30)), timezone(timedelta(hours=14))]),
)
def test_moments_are_called_as_the_calendar_says(first, days, later, by, zone):
    attribute = dates(by, first.date(), first.date() + timedelta(days=days))
    moment = first + timedelta(days=later, hours=first.minute % 24)
    inside = attribute.first <= moment.date() <= attribute.last
    written = moment if zone is None else moment.replace(tzinfo=UTC).astimezone(zone)
    for value in (written, written.isoformat(), f" {written.isoformat(' ')}\n", pd.Timestamp(written)):
        code = encode_value(attribute, value)
        assert (None if code is None else attribute.label(code)) == (name(moment, by) if inside else None)


VALUES: list[tuple[Any, int | None]] = [
    ("2013-01-01", 0), (" 2013-01-01\t", 0), (date(2013, 1, 1), 0), ("2013-01-31T23:59:59.999999999", 0),
    ("2013-02-01 00:00", 1), ("2013-02-01T00:30+01:00", 0), ("2013-02-01T00:30+0030", 1),
    ("2013-01-31T23:30:00-01", 1), ("2013-02-01T00:00Z", 1), ("2013-03-01T00:00Z", None),
    ("2012-12-31T23:59-00:01", 0), ("2012-12-31T23:59", None), (datetime(2013, 2, 28, 23, 59, 59), 1),
    (np.datetime64("2013-02-28"), 1), (np.datetime64("2013-02-28T23:59:59.999999999"), 1),
    (np.datetime64("NaT"), None), (pd.NaT, None), (None, None), ("", None), ("x", None), (20130101, None),
    (True, None), ("2013", None), ("2013-01", None), ("2013-1-1", None), ("20130101", None),
    ("2013-02-29", None), ("2013-01-01T24:00", None), ("2013-01-01T10:60", None), ("2013-01-01T10", None),
    ("2013-01-01T10:00:60", None), ("2013-01-01T10:00:00,5", None), ("2013-01-01T10:00z", None),
    ("2013-01-01t10:00", None), ("2013-01-01T10:00+15:00", None), ("2013-01-01T10:00+1", None),
    ("2013-01-01  10:00", None), ("2013-01-01Z", None), ("٢٠١٣-01-01", None), ("0000-01-01", None),
    ("12013-01-01", None), (b"2013-01-01", None), (timedelta(1), None), (10**400, None),
]  # fmt: skip


@pytest.mark.parametrize(("value", "code"), VALUES, ids=str)
def test_what_is_read(value, code):
    assert encode_value(dates("month", "2013-01-01", "2013-02-28"), value) == code


def test_hours_need_a_time():
    hour = Dates("h", by="hour")
    assert hour.to_spec() == {"by": "hour"}
    values = ["2013-01-01", date(2013, 1, 1), "2013-01-01 07:59", datetime(1, 1, 1, 23), datetime.max]
    assert [encode_value(hour, value) for value in values] == [None, None, 7, 23, 23]
    assert encode_value(Dates("w", by="weekday"), date(1, 1, 1)) == 0

    assert (hour.range_label(7, 9), hour.code_of(7), hour.code_of("7")) == ("7-9", 7, 7)
    assert dates("month").range_label(0, 2) == "2012-12..2013-02"
    assert dates("day").code_of(date(2013, 1, 1)) == 2


ZONES = ("America/Chicago", "America/St_Johns", "Australia/Hobart", "Africa/Casablanca", "Pacific/Apia")


@settings(max_examples=60)
@given(
    st.datetimes(datetime(1972, 1, 1), datetime(2099, 12, 30), timezones=st.just(UTC)),
    st.integers(0, 900),
    st.sampled_from(UNITS),
    st.sampled_from(ZONES),
)
def test_moments_are_read_in_the_time_zone(moment, days, by, zone):
    local = moment.astimezone(ZoneInfo(zone))
    first = local.date() - timedelta(days=days % 30)
    attribute = dates(by, first, min(first + timedelta(days=days), date(2099, 12, 31)), time_zone=zone)
    inside = attribute.first <= local.date() <= attribute.last
    for value in (moment, moment.isoformat(), local, local.replace(tzinfo=None), local.isoformat()[:19]):
        code = encode_value(attribute, value)
        assert (None if code is None else attribute.label(code)) == (name(local, by) if inside else None)


def test_a_change_of_clocks():
    spec = {"by": "hour", "time_zone": "America/Chicago"}
    hour = attribute_from_spec("h", spec)
    assert hour.to_spec() == spec
    spring = ["2021-03-14T07:59Z", "2021-03-14T08:00Z", "2021-03-14T02:30"]  # 02:30 is no local time
    autumn = ["2021-11-07T06:59Z", "2021-11-07T07:00Z", "2021-11-07T08:00+01:00"]
    assert [encode_value(hour, text) for text in spring + autumn] == [1, 3, 2, 1, 1, 1]


def test_offsets_of_seconds():
    """Those of local mean times: of 12:00:30 in a zone 28 seconds ahead two seconds are past noon in UTC."""
    local = datetime(1880, 1, 1, 12, 0, 30, tzinfo=timezone(timedelta(seconds=28)))
    assert encode_value(Dates("h", by="hour"), local) == 12
    assert encode_value(Dates("h", by="hour"), local.replace(second=27)) == 11
