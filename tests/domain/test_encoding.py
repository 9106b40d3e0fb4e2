"""Which values of a column are which value of an attribute, of any type and of declared ones."""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from matrixdp.domain import Attribute, Bins, Categorical, Coded, Domain, Integers, attribute_from_spec
from matrixdp.domain.encoding import encode_value
from matrixdp.domain.rules import Kind

ROOMS = Categorical("rooms", ("3", "true", "0.5", "2020-01-31", "a b", "4.0", " x", "no"))
AGE = Integers("age", -1, 4)
OPEN = Bins("open", (0.0, 1.5, 3.0))
CLOSED = Bins("closed", (0.0, 1.5, 3.0), closed=True)
INFINITE = Bins("infinite", (-np.inf, 0.0, 10.0, np.inf))


class Unwilling(float):
    def __float__(self):
        raise RuntimeError("a secret")


UNREADABLE: list[Any] = [
    None, float("nan"), float("inf"), float("-inf"), 10**400, 10**5000, Fraction(10**400), Unwilling(),
    Decimal("1e400"), np.datetime64("2020-01-31"), Decimal("nan"), Decimal("sNaN"), 1j, [], b"3",
]  # fmt: skip
#: The values of each code, and those of none.
READ: list[tuple[Attribute, dict[int | None, list[Any]]]] = [
    (ROOMS, {
        0: ["3", 3, 3.0, np.float32(3), np.int8(3), Decimal("3.0"), "3.0", " 03"],
        1: [True, np.True_, "true", "True", "YES", "t"],
        2: [0.5, "0.5", Decimal("0.50"), "0.50", "50e-2"],
        3: [date(2020, 1, 31)],
        5: ["4", 4, 4.0],
        6: [" x"],
        7: [False, "f", "FALSE", "no"],
        None: [" true", 1, 0, "y", "n", "0" * 40 + "3", datetime(2020, 1, 31), "x", *UNREADABLE],
    }),
    (AGE, {
        0: [-1],
        1: [np.False_, "no", "-0"],
        2: [True, "True"],
        4: [" 3", "3.0", "+3", "30e-1", "3.", Decimal(3)],
        5: [4.0],
        None: [
            5, -2, 0.5, " true", "abc", "", "3 4", "0x1", "1_0", "٣", "\u00a03", "nan", "inf", "1e400",
            *UNREADABLE,
        ],
    }),
    (Coded("code", 5), {0: [0, "no"], 1: [True], 3: [" 3", 3.0], None: [5, -1, 0.5, *UNREADABLE]}),
    (OPEN, {0: [0, -0.0, 1.4999], 1: ["1.5", 2.999], None: [-1e-9, 3, 3.1, *UNREADABLE]}),
    (CLOSED, {0: [0, -0.0, 1.4999], 1: ["1.5", 2.999, 3], None: [-1e-9, 3.1, *UNREADABLE]}),
    (INFINITE, {0: [-1e300, "-1e199"], 1: [0, 9.5], 2: [1e300], None: [-np.inf, "inf", *UNREADABLE]}),
]  # fmt: skip


@pytest.mark.parametrize(("attribute", "read"), READ, ids=[attribute.name for attribute, _ in READ])
def test_values_are_read_by_the_attribute(attribute, read):
    for code, values in read.items():
        for value in values:
            assert encode_value(attribute, value) == code, repr(value)[:99]


@given(st.floats(-1e39, 1e39))
def test_what_python_writes_is_read(number):
    assume(number == 0 or abs(number) > 1e-199)
    attribute = Categorical("a", (number,), "number")
    assert encode_value(attribute, f" {number!r}\n") == 0


@given(st.one_of(st.text(), st.binary(), st.floats(), st.integers(), st.none(), st.complex_numbers()))
def test_no_value_raises(value):
    for attribute in (ROOMS, AGE, OPEN):
        encode_value(attribute, value)


SPECS: list[dict[str, Any]] = [
    {"categories": ["01", "1", "1.0", "nan", "true", "True", " x"], "type": "text"},
    {"categories": ["1", "2.5", "-1"], "type": "number"},
    {"categories": ["01", "10000000000000000"], "type": "integer"},
    {"categories": ["no", "true"], "type": "boolean"},
    {"categories": ["2020-01-31", "0001-01-01", "9999-12-31"], "type": "date"},
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec["type"])
def test_a_type_comes_back_and_says_which_columns_are_read(spec):
    attribute = attribute_from_spec("a", spec)
    assert attribute.to_spec() == spec
    assert [attribute.code_of(text) for text in spec["categories"]] == list(range(attribute.size))
    assert Domain.from_spec(Domain([attribute]).to_spec()) == Domain([attribute])
    read = {kind for kind in Kind if attribute.rule(kind) is not None}
    readable = {Kind.TEXT, Kind.BOOLEAN, Kind.INTEGER, Kind.FLOAT, Kind.DATE, Kind.NULL}
    assert read == ({Kind.TEXT, Kind.NULL} if spec["type"] == "text" else readable)


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
