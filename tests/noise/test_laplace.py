"""The Laplace sampler: the filter's bound, both paths, the distribution, and what is refused.

Statistical tests use fixed seeds; their thresholds are the 1 - 1e-10 quantile of the statistic, so that
a correct sampler fails any one of them with a probability below 1e-9 over the choice of its seed.
"""

from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy import stats

from matrixdp.errors import PrivacyError
from matrixdp.noise import LAPLACE, SeededSource, SystemSource, drawing
from matrixdp.noise.drawing import round_exactly
from matrixdp.noise.laplace import CELLS, EPSILON, LEAST_WORD, approximate, logarithm_table

FALSE_ALARM = 1e-10
draw = partial(drawing.draw, LAPLACE.distribution)
UNIT = Fraction(1, 2**53)


def tail(edge: Fraction) -> arb:
    """P(L > edge)."""
    half = arb(1) / 2
    if edge >= 0:
        return half * (-arb(fmpq(edge.numerator, edge.denominator))).exp()
    return 1 - half * arb(fmpq(edge.numerator, edge.denominator)).exp()


def chi_square(samples, scale, offset=Fraction(0), width=1):
    reach = int(6 * scale)
    edges = list(range(-reach, reach + 1, width))
    with ctx.workprec(200):
        tails = [arb(1), *(tail((k + Fraction(1, 2) - offset) / scale) for k in edges), arb(0)]
        expected = np.array([float(a - b) for a, b in pairwise(tails)]) * len(samples)
    observed = np.bincount(np.searchsorted(edges, samples, side="left"), minlength=len(expected))
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


def test_every_entry_of_the_table_is_certified():
    cells = logarithm_table()
    with ctx.workprec(200):
        for k in range(CELLS):
            centre = Fraction(cells.centre[k])
            assert centre == Fraction(1, 2) + Fraction(2 * k + 1, 4 * CELLS)
            exact = -arb(fmpq(centre.numerator, centre.denominator)).log()
            assert abs(arb(cells.logarithm[k]) - exact) <= arb(2) ** -53
            assert abs(Fraction(cells.inverse[k]) * centre - 1) <= UNIT
        assert abs(arb(cells.unit) / arb(2).log() - 1) <= arb(2) ** -53


def test_the_bound_of_the_filter_is_twice_what_its_errors_sum_to():
    u = float(UNIT)
    t = 2.0**-12 * (1 + 1e-6)
    unknown = 1 / float(LEAST_WORD)
    truncation = t**5 / 5 / (1 - t)
    argument = 2.1 * u * t + 1.1 * u
    polynomial = 12 * u * t
    unit = 22 * np.log(2) * 2.1 * u
    additions = 2 * u * (22 * np.log(2) + 1) + u
    total = unknown + truncation + 1.01 * argument + polynomial + unit + additions
    assert total <= float(EPSILON) / 2


def test_the_filter_keeps_its_bound():
    rng = np.random.default_rng(3)
    words = [rng.integers(int(LEAST_WORD), 2**63, 2000, dtype=np.uint64)]
    words.append(
        (np.uint64(1) << rng.integers(42, 63, 500, dtype=np.uint64))
        + rng.integers(0, 3, 500, dtype=np.uint64)
    )
    edges = np.uint64(2**51) * np.arange(2048, 4096, 7, dtype=np.uint64)
    words += [edges, edges - np.uint64(1), np.array([2**63 - 1, int(LEAST_WORD)], dtype=np.uint64)]
    lower = np.concatenate(words)
    magnitude, proved = approximate(lower)
    assert proved.all()
    with ctx.workprec(160):
        bound = arb(fmpq(EPSILON.numerator, EPSILON.denominator))
        for word, value in zip(lower.tolist(), magnitude.tolist(), strict=True):
            for end in (word, word + 1):
                assert abs(-(arb(end) / arb(2) ** 63).log() - arb(value)) <= bound


def test_small_words_are_not_claimed():
    _, proved = approximate(np.array([0, 1, int(LEAST_WORD) - 1, int(LEAST_WORD)], dtype=np.uint64))
    assert proved.tolist() == [False, False, False, True]


@pytest.mark.parametrize(("scale", "seed"), [(Fraction(1), 1), (Fraction(7, 3), 2), (Fraction(40), 4)])
def test_the_distribution_is_exact_and_a_wrong_scale_is_seen(scale, seed):
    samples = LAPLACE.draw_rounded(scale, 400_000, source=SeededSource(seed))
    assert chi_square(samples, scale) > FALSE_ALARM
    assert chi_square(samples, scale * Fraction(103, 100)) < FALSE_ALARM
    assert chi_square(samples, scale * Fraction(97, 100)) < FALSE_ALARM


def test_the_distribution_is_exact_at_the_scale_of_releases():
    samples = LAPLACE.draw_rounded(Fraction(6000), 1_000_000, source=SeededSource(5))
    assert chi_square(samples, Fraction(6000), width=400) > FALSE_ALARM
    assert chi_square(samples, Fraction(6090), width=400) < FALSE_ALARM


@pytest.mark.parametrize("offset", [Fraction(1, 3), Fraction(1, 2), Fraction(99, 100)])
def test_the_distribution_is_shifted_by_the_offset(offset):
    size = 400_000
    samples = LAPLACE.draw_rounded(
        Fraction(3),
        size,
        offsets=np.full(size, float(offset)),
        exact_offset=lambda _place: offset,
        source=SeededSource(11),
    )
    assert chi_square(samples, Fraction(3), offset) > FALSE_ALARM
    assert chi_square(samples, Fraction(3), offset - Fraction(1, 20)) < FALSE_ALARM


def test_the_slow_path_has_the_same_distribution():
    samples = drawing.draw(
        LAPLACE.distribution, Fraction(2), 10_000, None, None, SeededSource(12), filtered=False
    )
    assert chi_square(samples, Fraction(2)) > FALSE_ALARM
    assert chi_square(samples, Fraction(5, 2)) < FALSE_ALARM


def test_moments():
    size, scale = 2_000_000, 5000
    z = LAPLACE.draw_rounded(Fraction(scale), size, source=SeededSource(13)) / scale
    # E|L| = 1, E L^2 = 2, E L^4 = 24, E L^8 = 40320; 6.5 standard deviations is a false alarm rate of 8e-11
    for found, mean, variance in (
        (np.mean(z), 0, 2),
        (np.mean(np.abs(z)), 1, 1),
        (np.mean(z**2), 2 + 1 / 12 / scale**2, 20),
        (np.mean(z**4), 24, 40320 - 576),
    ):
        assert abs(found - mean) < 6.5 * np.sqrt(variance / size)


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10, 7), Fraction(6000), Fraction(1 << 20)])
def test_both_paths_give_the_same_samples_from_the_same_bits(scale):
    size = 3000
    numerators = np.random.default_rng(1).integers(0, 10**12, size)
    exact = [Fraction(int(n), 10**12) for n in numerators]
    offsets = np.array([float(f) for f in exact])
    for arguments in ((None, None), (offsets, exact.__getitem__)):
        fast = draw(scale, size, *arguments, SeededSource(21))
        slow = draw(scale, size, *arguments, SeededSource(21), filtered=False)
        assert np.array_equal(fast, slow)
        wide = drawing.draw(
            LAPLACE.distribution,
            scale,
            size,
            *arguments,
            SeededSource(21),
            epsilon=Fraction(1, 2**30),
            chunk=100,
        )
        assert np.array_equal(fast[:50], wide[:50]) or scale == 1 << 20


class Words:
    """A source of recorded words, with fair further bits."""

    private = False

    def __init__(self, words):
        self.words = np.array(words, dtype=np.uint64)

    def bits64(self, count):
        return self.words[:count]

    def more_bits(self, count):
        return SeededSource(1).more_bits(count)


def test_extreme_words_are_rounded_like_all_others():
    words = [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**40, 2**63 + 2**40]
    fast = draw(Fraction(5000), len(words), None, None, Words(words))
    slow = drawing.draw(
        LAPLACE.distribution, Fraction(5000), len(words), None, None, Words(words), filtered=False
    )
    assert np.array_equal(fast, slow)
    assert fast[2] == fast[5] == 0
    assert fast[6] == -fast[7] == round(5000 * 23 * np.log(2))
    assert fast[0] > 43 * 5000


def test_a_word_at_a_rounding_boundary_is_left_to_the_slow_path(monkeypatch):
    with ctx.workprec(256):
        word = int((tail(Fraction(1001, 10000)) * arb(2) ** 64).floor().unique_fmpz())
    calls = []
    original = round_exactly
    monkeypatch.setattr(drawing, "round_exactly", lambda *a, **b: calls.append(a) or original(*a, **b))
    near = drawing.draw(
        LAPLACE.distribution, Fraction(5000), 3, None, None, Words([word, word + 2**40, word - 2**40])
    )
    assert len(calls) == 1
    assert near[1:].tolist() == [500, 501]


@pytest.mark.parametrize("scale", [0, -1, Fraction(1, 2), Fraction(2**20 + 1), 5.0, True, None, float("nan")])
def test_a_bad_scale_gives_no_output(scale):
    with pytest.raises(PrivacyError, match="noise scale"):
        LAPLACE.draw_rounded(scale, 3, source=SeededSource(1))


def test_offsets_and_sizes_are_checked():
    assert LAPLACE.draw_rounded(Fraction(5), 0, source=SystemSource()).shape == (0,)
    with pytest.raises(PrivacyError, match="size"):
        LAPLACE.draw_rounded(Fraction(5), -1, source=SeededSource(1))
    with pytest.raises(PrivacyError, match="both or neither"):
        LAPLACE.draw_rounded(Fraction(5), 3, offsets=np.zeros(3), source=SeededSource(1))
    with pytest.raises(PrivacyError, match="exact_offset"):
        drawing.draw(
            LAPLACE.distribution,
            Fraction(5),
            3,
            np.full(3, 0.25),
            lambda _place: Fraction(1, 3),
            SeededSource(1),
            filtered=False,
        )


def test_without_the_filter_every_sample_is_decided_exactly(monkeypatch):
    calls = []
    original = round_exactly
    monkeypatch.setattr(drawing, "round_exactly", lambda *a: calls.append(a) or original(*a))
    draw(Fraction(5000), 20, None, None, SeededSource(1), filtered=False)
    assert len(calls) == 20
