from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from matrixdp.domain import Bins, Categorical, Coded, Integers, encode_value, parse_number

ROOMS = Categorical("rooms", ("3", "true", "0.5", "2020-01-31", "a b", "4.0", " x", "no"))
AGE = Integers("age", -1, 4)
OPEN = Bins("open", (0.0, 1.5, 3.0))
CLOSED = Bins("closed", (0.0, 1.5, 3.0), closed=True)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("3", 0), (3, 0), (3.0, 0), (np.float32(3), 0), (np.int8(3), 0), (Decimal("3.0"), 0),
        (True, 1), (np.True_, 1), ("true", 1), ("True", 1), ("YES", 1), ("t", 1), (" true", None), (1, None),
        (False, 7), ("f", 7), ("FALSE", 7), ("no", 7), (0, None), ("y", None), ("n", None),
        (0.5, 2), ("0.5", 2), (Decimal("0.50"), 2), ("0.50", 2), ("50e-2", 2), ("0" * 40 + "3", None),
        (date(2020, 1, 31), 3), (datetime(2020, 1, 31), None),
        ("3.0", 0), (" 03", 0), ("4", 5), (4, 5), (4.0, 5), ("x", None), (" x", 6),
        (None, None), (float("nan"), None), (float("inf"), None), ([], None), (b"3", None), (10**400, None),
    ],
)  # fmt: skip
def test_categories(value, code):
    assert encode_value(ROOMS, value) == code


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (-1, 0), (4.0, 5), (5, None), (-2, None), (0.5, None), (True, 2), (np.False_, 1),
        ("True", 2), ("no", 1), (" true", None),
        (" 3", 4), ("3.0", 4), ("+3", 4), ("30e-1", 4), ("3.", 4), ("-0", 1), (Decimal(3), 4),
        ("abc", None), ("", None), ("3 4", None), ("0x1", None), ("1_0", None), ("٣", None),
        ("\u00a03", None),
        ("nan", None), ("inf", None), ("1e400", None), (None, None), (float("nan"), None),
        (float("-inf"), None), (Decimal("nan"), None), (Decimal("sNaN"), None), (1j, None), (10**400, None),
    ],
)  # fmt: skip
def test_integers(value, code):
    assert encode_value(AGE, value) == code
    shifted = None if code in (None, 0) else code - 1
    assert encode_value(Coded("code", 5), value) == shifted


@pytest.mark.parametrize(
    ("value", "code"), [(0, 0), (-0.0, 0), (1.4999, 0), ("1.5", 1), (2.999, 1), (-1e-9, None), (3.1, None)]
)
def test_bins(value, code):
    assert encode_value(OPEN, value) == encode_value(CLOSED, value) == code


def test_the_last_edge():
    assert encode_value(OPEN, 3) is None
    assert encode_value(CLOSED, 3) == 1


@given(st.floats(-1e40, 1e40))
def test_what_python_writes_is_read(number):
    assume(number == 0 or abs(number) > 1e-199)
    assert parse_number(f" {number!r}\n") == number


@given(st.one_of(st.text(), st.binary(), st.floats(), st.integers(), st.none(), st.complex_numbers()))
def test_no_value_raises(value):
    for attribute in (ROOMS, AGE, OPEN):
        encode_value(attribute, value)


class Unwilling(float):
    def __float__(self):
        raise RuntimeError("a secret")


@pytest.mark.parametrize(
    "value", [Fraction(10**400), Unwilling(), Decimal("1e400"), np.datetime64("2020-01-31")]
)
def test_a_value_that_python_cannot_read_is_out_of_domain(value):
    for attribute in (ROOMS, AGE, OPEN):
        assert encode_value(attribute, value) is None


def test_an_integer_of_too_many_digits_is_out_of_domain():
    assert encode_value(ROOMS, 10**5000) is None
    assert encode_value(AGE, 10**5000) is None
