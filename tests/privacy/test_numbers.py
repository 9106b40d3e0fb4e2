import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matrixdp.privacy.conversions import exact_positive, float_above, float_below, root_above, root_below


def test_a_float_is_read_on_the_safe_side():
    assert exact_positive("x", 0.1) == Fraction(1, 10)
    assert exact_positive("x", 0.1, larger=True) == Fraction(0.1)
    assert exact_positive("x", 0.3) == Fraction(0.3) < Fraction(3, 10)
    assert exact_positive("x", 0.3, larger=True) == Fraction(3, 10)


@pytest.mark.parametrize("one", [1, 1.0, Fraction(1), Decimal(1), np.int64(1), np.float64(1), np.float32(1)])
def test_every_kind_of_number_is_read(one):
    assert exact_positive("x", one) == 1


@given(st.fractions())
def test_floats_are_rounded_to_the_stated_side(value):
    above, below = float_above(value), float_below(value)
    assert Fraction(below) <= value <= Fraction(above)
    assert above == below or math.nextafter(below, math.inf) == above


def test_what_no_float_can_hold_keeps_its_side():
    assert float_above(Fraction(10) ** 400) == math.inf
    assert float_below(Fraction(10) ** 400) == math.nextafter(math.inf, 0)
    assert float_above(Fraction(1, 10**400)) > 0
    assert float_below(Fraction(1, 10**400)) == 0


@given(st.fractions(min_value=0) | st.fractions(0, 1).map(lambda f: f**40))
def test_roots_are_rounded_to_the_stated_side(value):
    low, high = root_below(value), root_above(value)
    assert low**2 <= value <= high**2
    assert high - low <= high / 2**78
    if low**2 == value:
        assert low == high
