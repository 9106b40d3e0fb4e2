"""Categories of a declared type."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from matrixdp.domain import Bins, Domain, Integers, attribute_from_spec, encode_value
from matrixdp.domain.rules import Kind

SPECS: list[dict[str, Any]] = [
    {"categories": ["01", "1", "1.0", "nan", "true", "True", " x"], "type": "text"},
    {"categories": ["1", "2.5", "-1"], "type": "number"},
    {"categories": ["01", "10000000000000000"], "type": "integer"},
    {"categories": ["no", "true"], "type": "boolean"},
    {"categories": ["2020-01-31", "0001-01-01", "9999-12-31"], "type": "date"},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["type"])
def test_a_type_comes_back(spec):
    attribute = attribute_from_spec("a", spec)
    assert attribute.to_spec() == spec
    assert [attribute.code_of(text) for text in spec["categories"]] == list(range(attribute.size))
    assert attribute == attribute_from_spec("a", attribute.to_spec())
    assert Domain.from_spec(Domain([attribute]).to_spec()) == Domain([attribute])


#: What each type takes for its first category, for its second, and for none.
VALUES: dict[str, tuple[list[Any], list[object], list[object], list[object]]] = {
    "text": (
        ["1", "01"], ["1"], ["01"], ["1.0", " 1", "", 1, 1.0, True, date(2020, 1, 31), None],
    ),
    "number": (
        [1, 0.5],
        ["1", " 01", "1.0", 1, 1.0, np.int8(1), Decimal(1), True, np.True_, "yes"],
        ["0.5", "5e-1", 0.5],
        ["x", "nan", False, -0.0, None, float("nan"), date(2020, 1, 31)],
    ),
    "integer": (["03", 4], [3, "3", "3.0"], ["4", Decimal(4)], [3.5, "x", 10**400]),
    "boolean": (
        [False, "yes"],
        [False, 0, "0", "0.0", "No", "F", -0.0],
        [True, 1, "1", 1.0, "TRUE"],
        [2, "x", " true", None, date(2020, 1, 31)],
    ),
    "date": (
        ["2020-01-31", date(2020, 2, 1)],
        [date(2020, 1, 31), "2020-01-31", " 2020-01-31\n"],
        ["2020-02-01"],
        [
            "2020-1-31", "20200131", "2020-01-31T00:00:00", 20200131, datetime(2020, 1, 31),
            np.datetime64("2020-01-31"), True, None,
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_compared_as_the_type_says(kind):
    categories, *groups = VALUES[kind]
    attribute = attribute_from_spec("a", {"categories": categories, "type": kind})
    for values, code in zip(groups, (0, 1, None), strict=True):
        for value in values:
            assert encode_value(attribute, value) == code, value


def test_numeric_attributes_have_the_type_that_they_have():
    assert attribute_from_spec("a", {"min": 0, "max": 3, "type": "integer"}) == Integers("a", 0, 3)
    assert attribute_from_spec("a", {"edges": [0, 3], "type": "number"}) == Bins("a", (0, 3))
    equal = {"min": 0, "max": 3, "bins": 3, "type": "number"}
    assert attribute_from_spec("a", equal) == Bins.equal("a", 0, 3, 3)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["type"])
def test_what_a_column_holds_is_refused_by_its_type_alone(spec):
    attribute = attribute_from_spec("a", spec)
    read = {kind for kind in Kind if attribute.rule(kind) is not None}
    readable = {Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.NULL}
    assert read == ({Kind.TEXT, Kind.NULL} if spec["type"] == "text" else readable)
