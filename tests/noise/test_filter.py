"""The proved bound of the filter, recomputed cell by cell and against rigorous inverses."""

from fractions import Fraction

import numpy as np
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.noise.gaussian import (
    CELLS_PER_UNIT,
    EPSILON,
    LARGEST_STEP,
    LAST_CELL,
    approximate,
    table,
    upper_tail,
)


def _within(lower: int, magnitude: float) -> bool:
    """Prove that every z with Q(z) in [lower, lower + 1] * 2**-64 is within EPSILON of the magnitude."""
    with ctx.workprec(256):
        left = upper_tail(Fraction(magnitude) - EPSILON)
        right = upper_tail(Fraction(magnitude) + EPSILON)
        return bool(left >= arb((lower + 1, -64))) and bool(right <= arb((lower, -64)))


def _assert_within(lower: list[int]) -> None:
    magnitude, proved = approximate(np.array(lower, dtype=np.uint64))
    decided = [(b, float(z)) for b, z, ok in zip(lower, magnitude, proved, strict=True) if ok]
    assert all(_within(b, z) for b, z in decided)
    assert all(ok for b, ok in zip(lower, proved, strict=True) if b > int(table().tail[-1]))


def test_the_bound_holds_for_random_probabilities():
    bits = np.random.default_rng(1).integers(0, 2**63, 2000, dtype=np.uint64)
    _assert_within([int(b) >> (i % 24) for i, b in enumerate(bits)])


def test_the_bound_holds_at_the_edges_of_every_cell():
    lower = [0, 1, 2, 2**63 - 1, 2**63 - 2]
    for cell in range(0, LAST_CELL + 1, 3):
        for edge in (Fraction(2 * cell + 1, 2 * CELLS_PER_UNIT), Fraction(cell, CELLS_PER_UNIT)):
            with ctx.workprec(128):
                value = int((upper_tail(edge) * arb(2) ** 64).floor().unique_fmpz())
            lower += [min(value, 2**63 - 1), value - 1]
    _assert_within(lower)


@given(st.integers(0, 62), st.integers(0, 2**63 - 1))
@settings(max_examples=200, deadline=None)
def test_the_bound_holds_at_every_magnitude(shift, value):
    _assert_within([value >> shift])


def test_the_table_is_right_to_half_a_unit():
    cells = table()
    assert int(cells.tail[0]) == 2**63
    for cell in range(0, LAST_CELL + 1, 7):
        with ctx.workprec(192):
            point = Fraction(cell, CELLS_PER_UNIT)
            error = abs(upper_tail(point) * arb(2) ** 64 - int(cells.tail[cell]))
            assert error <= arb(0.5) or cell == 0
            z = arb(fmpq(point.numerator, point.denominator))
            step = (2 * arb.pi()).sqrt() * (z * z / 2).exp() / arb(2) ** 64
            assert abs(arb(float(cells.step[cell])) / step - 1) <= arb((1, -52))


def test_the_error_budget_of_every_cell_stays_below_epsilon():
    """Lemma 2 of docs/noise.md, with every term enclosed."""
    with ctx.workprec(128):
        step = arb(LARGEST_STEP) * (1 + arb((1, -20)))
        reach = arb((1, -9)) * arb(fmpq(11, 10))
        worst = arb(0)
        for cell in range(LAST_CELL + 1):
            z = arb(cell) / CELLS_PER_UNIT
            # The inverse stays within `reach` of the centre while |t| <= step.
            assert reach * (-z * reach - reach**2 / 2).exp() >= step
            w = z + reach
            growth = (w * w / 2 - z * z / 2).exp()
            unit = (2 * arb.pi()).sqrt() * (z * z / 2).exp() / arb(2) ** 64
            truncation = (120 * w**5 + 326 * w**3 + 127 * w) * growth**6 / 720 * step**6
            bits = unit * arb(fmpq(3, 2)) * growth
            rounding = arb((8, -53)) * (w + 1)
            total = truncation + bits + rounding
            worst = total if total > worst else worst
        assert worst <= arb(fmpq(EPSILON.numerator, EPSILON.denominator)) / 2


def test_beyond_the_table_nothing_is_claimed():
    with ctx.workprec(128):
        beyond = int((upper_tail(Fraction(5505, 1000)) * arb(2) ** 64).floor().unique_fmpz())
    _, proved = approximate(np.array([0, 1, 1000, beyond], dtype=np.uint64))
    assert not proved.any()
