from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from matrixdp.errors import PrivacyError
from matrixdp.noise import GAUSSIAN
from matrixdp.noise.drawing import LazyTail, exceeds, round_exactly
from matrixdp.testing import RecordedSource

NORMAL = GAUSSIAN.distribution


def rounded(tail, negative, scale, offset):
    return round_exactly(tail, negative, scale, offset, NORMAL.upper_tail, NORMAL.guess)


class Constant(RecordedSource):
    def __init__(self, word):
        super().__init__([])
        self.word = word

    def more_bits(self, _count):
        return self.word


@given(
    st.integers(2**20, 2**63 - 1),
    st.booleans(),
    st.fractions(1, 2**20),
    st.fractions(0, 1).filter(lambda f: f < 1),
)
@settings(max_examples=200, deadline=None)
def test_agrees_with_the_inverse_in_floating_point(value, negative, scale, offset):
    z = norm.isf((value + 0.5) / 2**64)
    expected = float(offset) + (-1 if negative else 1) * float(scale) * z
    result = rounded(LazyTail(value, 64, RecordedSource([2**63] * 3)), negative, scale, offset)
    assert abs(result - expected) <= 0.5 + 1e-6 * float(scale)


def test_a_near_tie_takes_further_bits_and_follows_them():
    # V begins with the first 64 bits of Q(1/2): whether |Z| > 1/2 depends on the bits after them.
    from flint import arb, ctx

    from matrixdp.noise.gaussian import upper_tail

    with ctx.workprec(512):
        bits = int((upper_tail(Fraction(1, 2)) * arb(2) ** 192).floor().unique_fmpz())
    first, second = bits >> 128, bits >> 64 & (2**64 - 1)
    for word, expected in ((second - 1, 1), (second + 1, 0)):
        source = RecordedSource([word])
        tail = LazyTail(first, 64, source)
        assert rounded(tail, False, Fraction(1), Fraction(0)) == expected
        assert source.taken == 1
    third = bits & (2**64 - 1)
    for word, expected in ((third - 1, -1), (third + 1, 0)):
        source = RecordedSource([second, word])
        assert rounded(LazyTail(first, 64, source), True, Fraction(1), Fraction(0)) == expected
        assert source.taken == 2


def test_the_far_tail_is_drawn_as_far_as_needed():
    source = RecordedSource([0, 1, 2**63])
    result = rounded(LazyTail(0, 64, source), False, Fraction(1000), Fraction(0))
    assert source.taken == 3
    assert abs(result / 1000 - norm.isf(1.5 * 2.0**-192)) < 0.001


def test_an_offset_of_one_half_splits_at_zero():
    tail = LazyTail(2**63 - 1, 64, RecordedSource([]))
    assert rounded(tail, False, Fraction(1), Fraction(1, 2)) == 1
    assert rounded(tail, True, Fraction(1), Fraction(1, 2)) == 0


def test_points_below_zero_are_always_exceeded():
    assert exceeds(LazyTail(2**62, 64, RecordedSource([])), Fraction(-1), NORMAL.upper_tail)
    assert exceeds(LazyTail(2**62, 64, RecordedSource([])), Fraction(0), NORMAL.upper_tail)


def test_a_source_of_constant_bits_is_refused():
    with pytest.raises(PrivacyError, match="random bits"):
        rounded(LazyTail(0, 64, Constant(0)), False, Fraction(1), Fraction(0))
    with pytest.raises(PrivacyError, match="out of range"):
        rounded(LazyTail(0, 64, Constant(1 << 64)), False, Fraction(1), Fraction(0))
