"""The proved bounds of the filters, recomputed cell by cell and against rigorous inverses."""

from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.errors import NumericalError
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise, gaussian, laplace
from matrixdp.noise.gaussian import CELLS_PER_UNIT, LARGEST_STEP, LAST_CELL, table
from matrixdp.noise.laplace import CELLS, LEAST_WORD, logarithm_table
from tests.noise.exact import BOTH, tail, word_at

FILTERS = {GAUSSIAN: gaussian.approximate, LAPLACE: laplace.approximate}
#: Below these words nothing need be proved.
PROVED = {GAUSSIAN: int(table().tail[-1]) + 1, LAPLACE: int(LEAST_WORD)}
both = pytest.mark.parametrize("noise", BOTH, ids=str)


def assert_within(noise: Noise, words: list[int]) -> None:
    """Prove that every z with a tail in [B, B + 1] * 2**-64 is within the bound of what is said of B."""
    magnitudes, proved = FILTERS[noise](np.array(words, dtype=np.uint64))
    epsilon = noise.distribution.epsilon
    for word, magnitude, decided in zip(words, magnitudes.tolist(), proved.tolist(), strict=True):
        assert decided or word < PROVED[noise]
        with ctx.workprec(256):
            left, right = (tail(noise, Fraction(magnitude) + side * epsilon) for side in (-1, 1))
            assert not decided or (left >= arb((word + 1, -64)) and right <= arb((word, -64)))


@both
def test_the_bound_holds_for_random_probabilities(noise: Noise):
    bits = np.random.default_rng(1).integers(0, 2**63, 2000, dtype=np.uint64)
    assert_within(noise, [int(b) >> (i % 24) for i, b in enumerate(bits)])


@both
@given(st.integers(0, 62), st.integers(0, 2**63 - 1))
@settings(max_examples=200, deadline=None)
def test_the_bound_holds_at_every_magnitude(noise: Noise, shift: int, value: int):
    assert_within(noise, [value >> shift])


def test_the_bound_holds_at_the_edges_of_every_cell():
    halves = (
        Fraction(half, 2 * CELLS_PER_UNIT) for cell in range(0, 2 * LAST_CELL, 6) for half in (cell, cell + 1)
    )
    values = [word_at(GAUSSIAN, edge) for edge in halves]
    ends = [0, 1, 2, 2**63 - 1, 2**63 - 2]
    assert_within(GAUSSIAN, [*ends, *chain(*((min(value, 2**63 - 1), value - 1) for value in values))])
    edges = [2**51 * cell for cell in range(2048, 4096, 7)] + [2**power + 1 for power in range(42, 63)]
    assert_within(LAPLACE, [*ends, *edges, *(edge - 1 for edge in edges), int(LEAST_WORD)])


def test_beyond_the_tables_nothing_is_claimed():
    beyond = word_at(GAUSSIAN, Fraction(5505, 1000))
    assert not gaussian.approximate(np.array([0, 1, 1000, beyond], dtype=np.uint64))[1].any()
    least = int(LEAST_WORD)
    proved = laplace.approximate(np.array([0, 1, least - 1, least], dtype=np.uint64))[1]
    assert proved.tolist() == [False, False, False, True]


def test_cells_are_guessed_right_wherever_words_lie():
    words = np.random.default_rng(5).integers(0, 2**63, 64, dtype=np.uint64)
    ends = np.concatenate([table().tail[1 : LAST_CELL - 1], words])
    near = np.concatenate([ends, ends + np.uint64(1), ends - np.uint64(1)])
    top = np.array([2**63 - 1, 2**47, 2**47 - 1, 2**54, 2**54 - 1, 2**30], dtype=np.uint64)
    assert gaussian.approximate(near)[1].all()
    assert gaussian.approximate(top)[1].tolist() == [True, True, True, True, True, False]


def test_the_normal_table_is_right_to_half_a_unit():
    cells = table()
    assert int(cells.tail[0]) == 2**63
    for cell in range(0, LAST_CELL + 1, 7):
        with ctx.workprec(192):
            point = Fraction(cell, CELLS_PER_UNIT)
            error = abs(tail(GAUSSIAN, point) * arb(2) ** 64 - int(cells.tail[cell]))
            assert error <= arb(0.5) or cell == 0
            z = arb(cell) / CELLS_PER_UNIT
            step = (2 * arb.pi()).sqrt() * (z * z / 2).exp() / arb(2) ** 64
            assert abs(arb(float(cells.step[cell])) / step - 1) <= arb((1, -52))


def test_every_logarithm_of_the_table_is_certified():
    cells = logarithm_table()
    with ctx.workprec(200):
        for k in range(CELLS):
            centre = Fraction(cells.centre[k])
            assert centre == Fraction(1, 2) + Fraction(2 * k + 1, 4 * CELLS)
            exact = -arb(fmpq(centre.numerator, centre.denominator)).log()
            assert abs(arb(cells.logarithm[k]) - exact) <= arb(2) ** -53
            assert abs(Fraction(cells.inverse[k]) * centre - 1) <= Fraction(1, 2**53)
        assert abs(arb(cells.unit) / arb(2).log() - 1) <= arb(2) ** -53


def test_the_error_budget_of_every_normal_cell_stays_below_epsilon():
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
            total = truncation + unit * arb(fmpq(3, 2)) * growth + arb((8, -53)) * (w + 1)
            worst = total if total > worst else worst
        assert worst <= arb(float(gaussian.EPSILON)) / 2


def test_the_bound_of_the_laplace_filter_is_twice_what_its_errors_sum_to():
    u, t = 2.0**-53, 2.0**-12 * (1 + 1e-6)
    unknown = 1 / float(LEAST_WORD)
    truncation = t**5 / 5 / (1 - t)
    argument = 2.1 * u * t + 1.1 * u
    polynomial = 12 * u * t
    unit = 22 * np.log(2) * 2.1 * u
    additions = 2 * u * (22 * np.log(2) + 1) + u
    total = unknown + truncation + 1.01 * argument + polynomial + unit + additions
    assert total <= float(laplace.EPSILON) / 2


class Wide:
    """Balls so wide that they certify nothing."""

    def __new__(cls, value: int) -> arb:  # type: ignore[misc]  # it stands for the type of balls
        return arb(value) + arb(0, 1)

    pi = arb.pi


def test_tables_that_cannot_be_certified_are_refused(monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(NumericalError):
        laplace.nearest(Wide(1))
    with monkeypatch.context() as patch:
        patch.setattr(gaussian, "upper_tail", lambda _point: Wide(1) / 2)
        with pytest.raises(NumericalError):
            gaussian.table.__wrapped__()
    monkeypatch.setattr(gaussian, "_nearest_integer", lambda _cell, _precision: 0)
    monkeypatch.setattr(gaussian, "arb", Wide)
    with pytest.raises(NumericalError):
        gaussian.table.__wrapped__()
