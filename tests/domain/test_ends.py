"""Where the values of attributes begin and end, against the values and labels themselves."""

from datetime import date

import numpy as np
import pytest

from matrixdp.domain import Domain


def _ends(spec: object) -> tuple[list[object], list[object], bool]:
    ends = Domain({"x": spec})["x"].ends
    assert ends is not None
    return ends.low.tolist(), ends.high.tolist(), ends.half_open


def test_numbers_begin_and_end_as_they_are_written() -> None:
    assert _ends({"min": -2, "max": 1}) == ([-2, -1, 0, 1], [-2, -1, 0, 1], False)
    assert _ends(3) == ([0, 1, 2], [0, 1, 2], False)
    assert _ends({"edges": ["-inf", 0, 2.5, "inf"]}) == ([-np.inf, 0, 2.5], [0, 2.5, np.inf], True)


def test_missing_values_and_categories_have_no_ends() -> None:
    assert _ends({"min": 0, "max": 1, "null": "unknown"}) == ([0, 1], [0, 1], False)
    assert Domain({"x": ["a", "b"]})["x"].ends is None


@pytest.mark.parametrize(
    ("by", "low", "high"),
    [
        ("day", ["2023-12-30", "2023-12-31", "2024-01-01"], ["2023-12-30", "2023-12-31", "2024-01-01"]),
        ("week", ["2023-12-30", "2024-01-01"], ["2023-12-31", "2024-01-01"]),
        ("month", ["2023-12-30", "2024-01-01"], ["2023-12-31", "2024-01-01"]),
        ("quarter", ["2023-12-30", "2024-01-01"], ["2023-12-31", "2024-01-01"]),
        ("year", ["2023-12-30", "2024-01-01"], ["2023-12-31", "2024-01-01"]),
    ],
)
def test_dates_begin_and_end_on_days_of_the_domain(by: str, low: list[str], high: list[str]) -> None:
    found = _ends({"from": "2023-12-30", "to": "2024-01-01", "by": by})
    assert found == ([date.fromisoformat(d) for d in low], [date.fromisoformat(d) for d in high], False)


def test_what_comes_again_has_numbers() -> None:
    assert _ends({"by": "weekday"})[0] == [1, 2, 3, 4, 5, 6, 7]
    assert _ends({"by": "hour"})[1] == list(range(24))


def test_weeks_in_between_are_seven_days_and_months_whole() -> None:
    weeks = _ends({"from": "2024-02-01", "to": "2024-02-29", "by": "week"})
    assert weeks[0][1:3] == [date(2024, 2, 5), date(2024, 2, 12)]
    assert weeks[1][:2] == [date(2024, 2, 4), date(2024, 2, 11)]
    months = _ends({"from": "2024-01-15", "to": "2024-03-15", "by": "month"})
    assert (months[0], months[1]) == (
        [date(2024, 1, 15), date(2024, 2, 1), date(2024, 3, 1)],
        [date(2024, 1, 31), date(2024, 2, 29), date(2024, 3, 15)],
    )
