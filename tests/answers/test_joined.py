"""Several tables as one."""

from datetime import date

import pyarrow as pa

from matrixdp.answers.table import joined


def test_columns_of_several_types_become_text_and_numbers_numbers() -> None:
    days = pa.table({"estimate": pa.array([date(2013, 1, 31)]), "rank": [1]})
    codes = pa.table({"sex": pa.array(["female"]).dictionary_encode(), "estimate": [0.5], "rank": [2.5]})
    both = joined([("days", days), ("shares", codes)], "statistic")
    assert both.to_pylist() == [
        {"statistic": "days", "rank": 1.0, "sex": None, "estimate": "2013-01-31"},
        {"statistic": "shares", "rank": 2.5, "sex": "female", "estimate": "0.5"},
    ]


def test_an_attribute_may_be_called_as_the_column_of_names() -> None:
    table = pa.table({"statistic": ["x"], "warning": pa.nulls(1), "lower": [1.0]})
    assert joined([("a", table)], "statistic").column_names == [
        "statistic_name",
        "statistic",
        "lower",
        "warning",
    ]
    assert joined([], "statistic").column_names == ["statistic"]
