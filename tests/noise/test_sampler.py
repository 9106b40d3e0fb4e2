"""The sampler: all paths agree, the distribution is the stated one, and each sample is decided exactly.

Statistical tests use fixed seeds; their thresholds are the 1 - 1e-10 quantile of the statistic, so that
a correct sampler fails any one of them with a probability below 1e-9 over the choice of its seed.
"""

import threading
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx
from scipy.stats import norm

from matrixdp.noise import GAUSSIAN, LAPLACE, Noise, SeededSource, SystemSource, drawing, gaussian
from matrixdp.noise.drawing import LazyTail, exceeds, round_exactly
from tests.noise.exact import BOTH, FALSE_ALARM, chi_square, draw, tail, unfiltered, word_at
from tests.noise.recorded import RecordedSource

MOMENTS = {
    GAUSSIAN: [(1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)],
    LAPLACE: [(1, 0, 2), (2, 2, 20), (4, 24, 39744)],
}
both = pytest.mark.parametrize("noise", BOTH, ids=str)


@both
@pytest.mark.parametrize(("scale", "seed"), [(Fraction(1), 1), (Fraction(7, 3), 2), (Fraction(40), 4)])
def test_the_distribution_is_exact_and_a_wrong_scale_is_seen(noise: Noise, scale: Fraction, seed: int):
    samples = noise.draw_rounded(scale, 400_000, source=SeededSource(seed))
    assert chi_square(noise, samples, scale) > FALSE_ALARM
    assert chi_square(noise, samples, scale * Fraction(103, 100)) < FALSE_ALARM
    assert chi_square(noise, samples, scale * Fraction(97, 100)) < FALSE_ALARM


@pytest.mark.parametrize(("noise", "width", "wrong"), [(GAUSSIAN, 250, 60), (LAPLACE, 400, 90)], ids=str)
def test_the_distribution_is_exact_at_the_scale_of_releases(noise: Noise, width: int, wrong: int):
    samples = noise.draw_rounded(Fraction(6000), 1_000_000, source=SeededSource(5))
    for scale, right in ((6000, True), (6000 + wrong, False), (6000 - wrong, False)):
        assert (chi_square(noise, samples, Fraction(scale), width=width) > FALSE_ALARM) == right


@both
@pytest.mark.parametrize("offset", [Fraction(1, 3), Fraction(1, 2), Fraction(99, 100)])
def test_the_distribution_is_shifted_by_the_offset(noise: Noise, offset: Fraction):
    scale, size = Fraction(3), 400_000
    samples = draw(noise.distribution, scale, size, SeededSource(11), [offset] * size)
    assert chi_square(noise, samples, scale, offset) > FALSE_ALARM
    assert chi_square(noise, samples, scale, offset - Fraction(1, 20)) < FALSE_ALARM


@both
def test_moments(noise: Noise):
    """Of each moment the mean and the variance of its estimate; 6.5 deviations alarm falsely with 8e-11."""
    size = 2_000_000
    z = noise.draw_rounded(Fraction(5000), size, source=SeededSource(13)) / 5000
    for power, mean, variance in MOMENTS[noise]:
        assert abs(np.mean(z**power) - mean) < 6.5 * np.sqrt(variance / size)
    for lag in (1, 2, 64):
        assert abs(np.mean(z[lag:] * z[:-lag])) < 6.5 * noise.variance_factor / np.sqrt(size)


def offsets(size: int) -> list[Fraction]:
    return [Fraction(int(n), 10**12) for n in np.random.default_rng(1).integers(0, 10**12, size)]


@both
@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10, 7), Fraction(6000), Fraction(1 << 20)])
@pytest.mark.parametrize("exact", [None, offsets(2000)], ids=["plain", "offsets"])
def test_every_path_gives_the_same_samples_from_the_same_bits(
    noise: Noise, scale: Fraction, exact: list[Fraction] | None, monkeypatch
):
    found = draw(noise.distribution, scale, 2000, SeededSource(21), exact)
    assert np.array_equal(found, draw(unfiltered(noise), scale, 2000, SeededSource(21), exact))
    wider = replace(noise.distribution, epsilon=Fraction(1, 1 << 18))
    assert np.array_equal(found, draw(wider, scale, 2000, SeededSource(21), exact))
    monkeypatch.setattr(drawing, "CHUNK", 700)
    assert np.array_equal(found, draw(noise.distribution, scale, 2000, SeededSource(21), exact))


@both
def test_exact_offsets_are_asked_for_where_the_filter_does_not_decide(noise: Noise):
    class Asked(list):
        def __getitem__(self, place):
            asked.append(place)
            return list.__getitem__(self, place)

    for epsilon, least, most in ((noise.distribution.epsilon, 0, 4), (Fraction(1, 1 << 18), 50, 400)):
        asked: list[int] = []
        filtered = replace(noise.distribution, epsilon=epsilon)
        draw(filtered, Fraction(5000), 3000, SeededSource(22), Asked(offsets(3000)))
        assert least <= len(asked) <= most


@both
def test_extreme_words_are_rounded_like_all_others(noise: Noise):
    words = [0, 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1, 2**40, 2**63 + 2**40]
    further = SeededSource(1).bits64(50).tolist()
    fast, slow = (
        draw(way, Fraction(5000), len(words), RecordedSource(words + further))
        for way in (noise.distribution, unfiltered(noise))
    )
    assert np.array_equal(fast, slow)
    assert fast[2] == fast[5] == 0
    assert fast[6] == -fast[7] == (round(5000 * (23 * np.log(2) if noise is LAPLACE else norm.isf(2**-24))))
    assert fast[0] > (9 if noise is GAUSSIAN else 43) * 5000


@both
def test_what_the_filter_cannot_decide_is_decided_exactly(noise: Noise, monkeypatch):
    word, calls = word_at(noise, Fraction(1001, 10000)), []
    monkeypatch.setattr(drawing, "round_exactly", lambda *given: calls.append(1) or round_exactly(*given))
    source = RecordedSource([word, word + 2**40, word - 2**40, 0])
    assert draw(noise.distribution, Fraction(5000), 3, source)[1:].tolist() == [500, 501]
    assert len(calls) == 1
    draw(unfiltered(noise), Fraction(5000), 20, SeededSource(1))
    assert len(calls) == 21


def rounded(noise: Noise, lazy: LazyTail, negative: bool, scale: Fraction, offset=Fraction(0)) -> int:
    distribution = noise.distribution
    return round_exactly(lazy, negative, scale, offset, distribution.upper_tail, distribution.guess)


@both
def test_a_near_tie_takes_further_bits_and_follows_them(noise: Noise):
    """V begins with the first 64 bits of Q(1/2): whether |Z| > 1/2 depends on the bits after them."""
    with ctx.workprec(512):
        bits = int((tail(noise, Fraction(1, 2)) * arb(2) ** 192).floor().unique_fmpz())
    first, second, third = bits >> 128, bits >> 64 & (2**64 - 1), bits & (2**64 - 1)
    for more, negative, expected in (
        ([second - 1], False, 1),
        ([second + 1], False, 0),
        ([second, third - 1], True, -1),
        ([second, third + 1], True, 0),
    ):
        source = RecordedSource(more)
        assert rounded(noise, LazyTail(first, 64, source), negative, Fraction(1)) == expected
        assert source.taken == len(more)


def test_the_far_tail_is_drawn_as_far_as_needed():
    source = RecordedSource([0, 1, 2**63])
    result = rounded(GAUSSIAN, LazyTail(0, 64, source), False, Fraction(1000))
    assert source.taken == 3
    assert abs(result / 1000 - norm.isf(1.5 * 2.0**-192)) < 0.001


@both
def test_an_offset_of_one_half_splits_at_zero(noise: Noise):
    for negative, expected in ((False, 1), (True, 0)):
        lazy = LazyTail(2**63 - 1, 64, RecordedSource([]))
        assert rounded(noise, lazy, negative, Fraction(1), Fraction(1, 2)) == expected
        assert exceeds(lazy, Fraction(0), noise.distribution.upper_tail)


@pytest.mark.parametrize(("true", "expected"), [(Fraction(7, 16), False), (Fraction(9, 16), True)])
def test_a_ball_that_holds_both_answers_asks_for_precision(true: Fraction, expected: bool):
    """V lies in [1/2, 1/2 + 2^-64]; the tail is near it, in a ball that is wide until precision is high."""
    asked = []

    def tail_in_a_wide_ball(_point: Fraction) -> arb:
        asked.append(ctx.prec)
        width = arb(1) / 4 if len(asked) < 4 else arb(0)
        return arb(true.numerator) / true.denominator + width * arb(0, 1)

    lazy = LazyTail(1 << 63, 64, SeededSource(1))
    assert exceeds(lazy, Fraction(1), upper_tail=tail_in_a_wide_ball) is expected
    assert len(asked) == 4
    assert asked == sorted(set(asked))
    assert lazy.length == 64


def test_integers_are_exact_scales_and_no_samples_are_an_empty_array():
    scale: Any = 5
    found = LAPLACE.draw_rounded(scale, 10, source=SeededSource(1))
    assert np.array_equal(found, LAPLACE.draw_rounded(Fraction(5), 10, source=SeededSource(1)))
    assert GAUSSIAN.draw_rounded(Fraction(5), 0, source=SystemSource()).shape == (0,)


def test_a_million_samples_in_a_second_of_processor_time():
    seconds = []
    for size in (1000, 1_000_000, 1_000_000, 1_000_000):
        start = time.process_time()
        GAUSSIAN.draw_rounded(Fraction(5000), size, source=SystemSource())
        seconds.append(time.process_time() - start)
    assert min(seconds[1:]) < 1.0


class Fixed(SystemSource):
    """Gives every chunk the same words."""

    words = np.random.default_rng(5).integers(0, 2**64, 64, dtype=np.uint64)

    def __init__(self):
        self.seen = set()

    def bits64(self, count):
        self.seen.add(threading.get_ident())
        return self.words[:count]


@both
def test_long_vectors_are_drawn_by_two_threads_each_sample_in_its_place(noise: Noise, monkeypatch):
    monkeypatch.setattr(drawing, "processors", lambda: 2)
    monkeypatch.setattr(drawing, "CHUNK", 64)
    gaussian.table.cache_clear()
    # samples that the filter leaves are decided after it, in order
    wider, source = replace(noise.distribution, epsilon=Fraction(1, 9000)), Fixed()
    found = draw(wider, Fraction(900), 64 * 40, source)
    # the first chunk, which makes the tables of the filter, is drawn before there are threads
    assert source.seen - {threading.get_ident()}
    assert gaussian.table.cache_info().misses == (noise is GAUSSIAN)
    assert (found.reshape(40, 64) == draw(unfiltered(noise), Fraction(900), 64, Fixed())).all()


@pytest.mark.parametrize(("processors", "chunks"), [(2, 4), (1, 40)])
def test_few_chunks_or_one_processor_take_no_threads(processors: int, chunks: int, monkeypatch):
    monkeypatch.setattr(drawing, "processors", lambda: processors)
    monkeypatch.setattr(drawing, "CHUNK", 64)
    source = Fixed()
    draw(GAUSSIAN.distribution, Fraction(900), 64 * chunks, source)
    assert source.seen == {threading.get_ident()}


@pytest.mark.parametrize("source", [SystemSource(), SeededSource(3)])
def test_words_and_further_bits_have_the_asked_size(source):
    words = source.bits64(1000)
    assert words.dtype == np.uint64
    assert words.shape == (1000,)
    assert len(np.unique(words)) == 1000
    assert source.bits64(0).shape == (0,)
    assert all(0 <= source.more_bits(count) < 1 << count for count in (1, 7, 8, 9, 63, 64, 65, 200))
    assert source.private == isinstance(source, SystemSource)


def test_every_bit_is_fair():
    # Each of the 64 positions is a binomial count of 2**16; 7 standard deviations is a false alarm
    # rate of 64 * 2.6e-12 < 1e-9.
    words = SystemSource().bits64(1 << 16)
    ones = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0, dtype=np.int64)
    assert np.all(np.abs(ones - (1 << 15)) < 7 * (1 << 7))


def test_a_seed_repeats_and_grouping_does_not_matter():
    whole, parts = SeededSource(5).bits64(10), SeededSource(5)
    first = parts.bits64(4)
    parts.more_bits(64)
    assert np.array_equal(whole, np.concatenate([first, parts.bits64(6)]))
    assert not np.array_equal(whole, SeededSource(6).bits64(10))
