"""Attributes: their values, codes, ranges and edges, and where their values begin and end."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.domain import Bins, Categorical, Coded, Domain, Integers, attribute_from_spec, canonical_text

AGES = {"min": -9, "max": 114}
TENTHS = {"min": 0.1, "max": 0.7, "bins": 6}
EQUAL = {"min": 0, "max": 100, "bins": 20}
INCOME = {"edges": [0, 10000, 25000.5]}
CLOSED = {"edges": [0, 1, 5], "closed": True}
INFINITE = {"edges": ["-inf", 0, 10, "inf"]}
ENDLESS = {"edges": [0, "inf"], "closed": True}
MIXED = ["a", 2, True, "b", 3.5]


@pytest.mark.parametrize("spec", [AGES, TENTHS, EQUAL, INCOME, CLOSED, INFINITE, ENDLESS, MIXED, 40], ids=str)
def test_specifications_and_values_come_back(spec):
    attribute = attribute_from_spec("a", spec)
    again = attribute_from_spec("a", attribute.to_spec())
    assert (again, hash(again)) == (attribute, hash(attribute))
    assert attribute_from_spec("a", attribute) is attribute
    for code in range(attribute.size):
        assert attribute.code_of(attribute.value(code)) == code
        assert attribute.label(code) == attribute.range_label(code, code)
    with pytest.raises(AttributeError):
        attribute.name = "b"  # type: ignore[misc]  # what a user might try


@pytest.mark.parametrize(
    ("spec", "low", "high", "codes", "text"),
    [
        (AGES, 0, 17, (9, 26), "0-17"),
        (AGES, -9, -5, (0, 4), "-9..-5"),
        (40, 3, 4, (3, 4), "3-4"),
        (MIXED, "a", 2.0, (0, 1), "a..2"),
        (INCOME, 0, 25000.5, (0, 1), "[0, 25000.5)"),
        (EQUAL, 95, 100.0, (19, 19), "[95, 100]"),
        (EQUAL, 0, 95, (0, 18), "[0, 95)"),
        (INFINITE, "-inf", 0, (0, 0), "(-inf, 0)"),
        (INFINITE, "-inf", 10, (0, 1), "(-inf, 10)"),
        (INFINITE, 10, np.inf, (2, 2), "[10, inf)"),
        (ENDLESS, 0, "inf", (0, 0), "[0, inf)"),
    ],
)
def test_ranges_of_values_and_their_labels(spec, low, high, codes, text):
    attribute = attribute_from_spec("a", spec)
    assert attribute.code_range(low, high) == codes
    assert attribute.range_label(*codes) == text


def test_numbers_and_lists_of_other_types():
    assert Integers("a", np.int64(0), np.int32(4)) == Integers("a", 0, 4)  # type: ignore[arg-type]
    assert attribute_from_spec("a", np.int64(4)) == Coded("a", 4)
    assert attribute_from_spec("a", np.array([0, 1])) == Categorical("a", ("0", "1"))
    assert attribute_from_spec("a", ("f", "m")) == Categorical("a", ("f", "m"))
    assert [attribute_from_spec("a", listed).size for listed in ([0, 4], (0, 4, 8))] == [2, 3]
    assert canonical_text(np.bool_(True)) == "true"


@given(st.integers(-(10**6), 10**6), st.integers(1, 10**4), st.integers(1, 50))
@settings(max_examples=50, deadline=None)
def test_edges_of_equal_bins_are_the_decimal_ones(minimum, width, bins):
    attribute = Bins.equal("a", minimum, minimum + width * bins, bins)
    assert attribute.edges == tuple(float(minimum + width * step) for step in range(bins + 1))
    assert Bins.equal("a", 0, 1, 10).edges == tuple(step / 10 for step in range(11))
    assert attribute_from_spec("a", TENTHS) == Bins("a", (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7), closed=True)


@given(st.floats(allow_nan=False, allow_infinity=False))
@settings(max_examples=100)
def test_canonical_texts_of_floats_come_back(number):
    assert float(canonical_text(number)) == number


TURN = {"from": "2023-12-30", "to": "2024-01-01"}
SPRING = {"from": "2024-01-15", "to": "2024-03-15", "by": "month"}
YEARS_END = (["2023-12-30", "2024-01-01"], ["2023-12-31", "2024-01-01"])
DAYS = ["2023-12-30", "2023-12-31", "2024-01-01"]
MONTHS = (["2024-01-15", "2024-02-01", "2024-03-01"], ["2024-01-31", "2024-02-29", "2024-03-15"])
WEEKS = (["2024-02-01", "2024-02-05", "2024-02-12"], ["2024-02-04", "2024-02-11", "2024-02-14"])


@pytest.mark.parametrize(
    ("spec", "low", "high"),
    [
        ({"min": -2, "max": 1}, [-2, -1, 0, 1], [-2, -1, 0, 1]),
        ({"min": 0, "max": 1, "null": "unknown"}, [0, 1], [0, 1]),
        (3, [0, 1, 2], [0, 1, 2]),
        ({"edges": ["-inf", 0, 2.5, "inf"]}, [-np.inf, 0, 2.5], [0, 2.5, np.inf]),
        ({"by": "weekday"}, [1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, 7]),
        ({"by": "hour"}, list(range(24)), list(range(24))),
        (TURN | {"by": "day"}, DAYS, DAYS),
        *((TURN | {"by": by}, *YEARS_END) for by in ("week", "month", "quarter", "year")),
        ({"from": "2024-02-01", "to": "2024-02-14", "by": "week"}, *WEEKS),
        (SPRING, *MONTHS),
    ],
    ids=str,
)
def test_where_values_begin_and_end(spec, low, high):
    ends = Domain({"x": spec})["x"].ends
    assert ends is not None
    for found, expected in ((ends.low, low), (ends.high, high)):
        written = [day.isoformat() if isinstance(day, date) else day for day in found.tolist()]
        assert written == expected
    assert ends.half_open == ("edges" in str(spec))
    assert Domain({"x": ["a", "b"]})["x"].ends is None


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"min": 0, "max": 9}, ""),
        (
            {"min": 0, "max": 9, "clip": True, "round": "floor"},
            "Numbers are rounded down. Numbers below 0 count as 0, above 9 as 9.",
        ),
        (
            {"edges": [0, 5, 10], "clip": True},
            "Numbers below 0 count in the first class, above 10 in the last.",
        ),
        ({"categories": ["a"], "missing": [99, "NA"], "null": "none"}, "Missing values are also: 99 and NA."),
        ({"by": "hour", "time_zone": "America/Chicago"}, "Times with an offset are read in America/Chicago."),
        (
            {"from": "2013-01-01", "to": "2013-01-31", "by": "day", "clip": True, "note": "Of arrival."},
            "Days before 1 January 2013 and after 31 January 2013 count as these.",
        ),
        (
            {"amount": [0, 5]},
            "Numbers below 0 count as 0, above 5 as 5.",
        ),
    ],
)
def test_readers_are_told_how_values_count(spec, said):
    attribute = attribute_from_spec("x", spec)
    assert attribute.reading == said
    assert attribute.told.get("note", "") == " ".join(filter(None, (spec.get("note"), said)))
    assert attribute_from_spec("x", attribute.to_spec()) == attribute
