"""What ball arithmetic leaves undecided is never taken as decided."""

from fractions import Fraction

import pytest
from flint import arb, ctx

from matrixdp.errors import NumericalError
from matrixdp.noise import gaussian as normal_filter
from matrixdp.noise import laplace as laplace_filter
from matrixdp.noise.drawing import LazyTail, exceeds
from matrixdp.noise.source import SeededSource


@pytest.mark.parametrize(("true", "expected"), [(Fraction(7, 16), False), (Fraction(9, 16), True)])
def test_a_ball_that_holds_both_answers_asks_for_precision(true: Fraction, expected: bool):
    """V lies in [1/2, 1/2 + 2^-64]; the tail is near it, in a ball that is wide until precision is high."""
    asked = []

    def tail_in_a_wide_ball(_point: Fraction) -> arb:
        asked.append(ctx.prec)
        width = arb(1) / 4 if len(asked) < 4 else arb(0)
        return arb(true.numerator) / true.denominator + width * arb(0, 1)

    tail = LazyTail(1 << 63, 64, SeededSource(1))
    assert exceeds(tail, Fraction(1), upper_tail=tail_in_a_wide_ball) is expected
    assert len(asked) == 4
    assert asked == sorted(set(asked))
    assert tail.length == 64


def wide(ball: arb) -> arb:
    return ball + arb(0, 1)


def test_tables_that_cannot_be_certified_are_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(NumericalError, match="the table of logarithms could not be certified"):
        laplace_filter._nearest(wide(arb(1)))
    monkeypatch.setattr(normal_filter, "upper_tail", lambda _point: wide(arb(1) / 2))
    with pytest.raises(NumericalError, match="normal tail probabilities could not be certified"):
        normal_filter.table.__wrapped__()


def test_a_table_of_densities_that_cannot_be_certified_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(normal_filter, "_nearest_integer", lambda _cell, _precision: 0)
    monkeypatch.setattr(normal_filter, "arb", Wide)
    with pytest.raises(NumericalError, match="normal densities could not be certified"):
        normal_filter.table.__wrapped__()


class Wide:
    """Balls so wide that they certify nothing."""

    def __new__(cls, value: int) -> arb:  # type: ignore[misc]  # it stands for the type of balls
        return wide(arb(value))

    @staticmethod
    def pi() -> arb:
        return arb.pi()
