"""The sampler: both paths agree, the distribution is the stated one, and wrong input gives no output.

Statistical tests use fixed seeds; their thresholds are the 1 - 1e-10 quantile of the statistic, so that
a correct sampler fails any one of them with a probability below 1e-9 over the choice of its seed.
"""

import time
from fractions import Fraction
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, ctx
from scipy import stats

from matrixdp.errors import PrivacyError
from matrixdp.noise import GAUSSIAN, SeededSource, SystemSource, drawing
from matrixdp.noise.drawing import round_exactly
from matrixdp.noise.gaussian import upper_tail

FALSE_ALARM = 1e-10
draw = partial(drawing.draw, GAUSSIAN.distribution)


def probabilities(scale: Fraction, offset: Fraction, low: int, high: int) -> np.ndarray:
    """P(K <= low), P(K = low + 1), ..., P(K = high - 1), P(K >= high) in high precision."""
    with ctx.workprec(200):
        edges = [(k + Fraction(1, 2) - offset) / scale for k in range(low, high)]
        tails = [arb(1), *(upper_tail(edge) for edge in edges), arb(0)]
        return np.array([float(a - b) for a, b in pairwise(tails)])


def chi_square(samples: np.ndarray, scale: Fraction, offset: Fraction = Fraction(0)) -> float:
    """The p-value of the samples under the exact distribution of round(offset + scale Z)."""
    reach = int(4 * scale)
    expected = probabilities(scale, offset, -reach, reach) * len(samples)
    observed = np.bincount(np.clip(samples, -reach, reach) + reach, minlength=2 * reach + 1)
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1))


@pytest.mark.parametrize(
    ("scale", "seed"), [(Fraction(1), 1), (Fraction(7, 3), 2), (Fraction(5), 3), (Fraction(40), 4)]
)
def test_the_distribution_is_exact_and_a_wrong_scale_is_seen(scale, seed):
    samples = GAUSSIAN.draw_rounded(scale, 400_000, source=SeededSource(seed))
    assert chi_square(samples, scale) > FALSE_ALARM
    assert chi_square(samples, scale * Fraction(103, 100)) < FALSE_ALARM
    assert chi_square(samples, scale * Fraction(98, 100)) < FALSE_ALARM


@pytest.mark.parametrize("offset", [Fraction(1, 3), Fraction(1, 2), Fraction(99, 100)])
def test_the_distribution_is_shifted_by_the_offset(offset):
    scale, size = Fraction(3), 400_000
    samples = GAUSSIAN.draw_rounded(
        scale,
        size,
        offsets=np.full(size, float(offset)),
        exact_offset=lambda _place: offset,
        source=SeededSource(11),
    )
    assert chi_square(samples, scale, offset) > FALSE_ALARM
    assert chi_square(samples, scale, offset - Fraction(1, 20)) < FALSE_ALARM


def test_the_distribution_is_exact_at_the_scale_of_releases():
    scale, width = Fraction(6000), 250
    reach = int(4 * scale)
    samples = GAUSSIAN.draw_rounded(scale, 1_000_000, source=SeededSource(5))
    edges = range(-reach, reach + 1, width)
    for factor, right in ((1, True), (Fraction(101, 100), False), (Fraction(99, 100), False)):
        with ctx.workprec(200):
            # K <= k if and only if scale Z < k + 1/2.
            tails = [arb(1), *(upper_tail((k + Fraction(1, 2)) / (scale * factor)) for k in edges), arb(0)]
            expected = np.array([float(a - b) for a, b in pairwise(tails)]) * len(samples)
        observed = np.bincount(np.searchsorted(edges, samples, side="left"), minlength=len(expected))
        p_value = stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), len(expected) - 1)
        assert (p_value > FALSE_ALARM) == right


def test_the_slow_path_has_the_same_distribution():
    samples = drawing.draw(
        GAUSSIAN.distribution, Fraction(2), 10_000, None, None, SeededSource(12), filtered=False
    )
    assert chi_square(samples, Fraction(2)) > FALSE_ALARM
    assert chi_square(samples, Fraction(5, 2)) < FALSE_ALARM


def test_the_first_four_moments():
    size, scale = 2_000_000, Fraction(5000)
    z = GAUSSIAN.draw_rounded(scale, size, source=SeededSource(13)) / 5000
    # Moments of a standard normal variable and the variances of their estimates; 6.5 standard
    # deviations is a false alarm rate of 8e-11 each.
    for power, mean, variance in ((1, 0, 1), (2, 1 + 1 / 12 / 5000**2, 2), (3, 0, 15), (4, 3, 96)):
        assert abs(np.mean(z**power) - mean) < 6.5 * np.sqrt(variance / size)


def test_the_variance_includes_the_rounding():
    size = 4_000_000
    for scale in (1, 2):
        samples = GAUSSIAN.draw_rounded(Fraction(scale), size, source=SeededSource(14)).astype(float)
        variance = scale**2 + 1 / 12
        error = 6.5 * variance * np.sqrt(2 / size)
        assert abs(np.mean(samples**2) - variance) < error < 1 / 24


def test_neighbouring_samples_are_uncorrelated():
    samples = GAUSSIAN.draw_rounded(Fraction(100), 1_000_000, source=SeededSource(15)) / 100
    for lag in (1, 2, 64):
        assert abs(np.mean(samples[lag:] * samples[:-lag])) < 6.5 / 1000


def _offsets(size: int, seed: int) -> tuple[np.ndarray, list[Fraction]]:
    numerators = np.random.default_rng(seed).integers(0, 10**12, size)
    exact = [Fraction(int(n), 10**12) for n in numerators]
    return np.array([float(f) for f in exact]), exact


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(10, 7), Fraction(6000), Fraction(1 << 20)])
def test_both_paths_give_the_same_samples_from_the_same_bits(scale):
    size = 3000
    offsets, exact = _offsets(size, 1)
    for arguments in ((None, None), (offsets, exact.__getitem__)):
        fast = draw(scale, size, *arguments, SeededSource(21))
        slow = draw(scale, size, *arguments, SeededSource(21), filtered=False)
        assert np.array_equal(fast, slow)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1 << 18), Fraction(1, 1 << 15), Fraction(1)])
def test_a_wider_filter_gives_the_same_samples(epsilon):
    size, scale = 3000, Fraction(5000)
    offsets, exact = _offsets(size, 2)
    asked = []

    def exact_offset(place):
        asked.append(place)
        return exact[place]

    plain = draw(scale, size, offsets, exact_offset, SeededSource(22))
    assert len(asked) < 5
    wide = drawing.draw(
        GAUSSIAN.distribution, scale, size, offsets, exact_offset, SeededSource(22), epsilon=epsilon
    )
    assert np.array_equal(plain, wide)
    assert len(asked) > 50


def test_the_filter_cannot_be_narrowed():
    assert np.array_equal(
        drawing.draw(
            GAUSSIAN.distribution, Fraction(5000), 1000, None, None, SeededSource(23), epsilon=Fraction(-1)
        ),
        draw(Fraction(5000), 1000, None, None, SeededSource(23)),
    )


@pytest.mark.parametrize("chunk", [1, 7, 1000, 1 << 20])
def test_chunks_do_not_matter(chunk):
    size = 2500
    offsets, exact = _offsets(size, 3)
    whole = GAUSSIAN.draw_rounded(
        Fraction(4097), size, offsets=offsets, exact_offset=exact.__getitem__, source=SeededSource(24)
    )
    parts = drawing.draw(
        GAUSSIAN.distribution, Fraction(4097), size, offsets, exact.__getitem__, SeededSource(24), chunk=chunk
    )
    assert np.array_equal(whole, parts)


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
        GAUSSIAN.distribution, Fraction(5000), len(words), None, None, Words(words), filtered=False
    )
    assert np.array_equal(fast, slow)
    assert fast[2] == fast[5] == 0
    assert fast[6] == -fast[7] > 5 * 5000
    assert fast[0] > 9 * 5000


def test_a_word_at_a_rounding_boundary_is_left_to_the_slow_path(monkeypatch):
    scale = Fraction(5000)
    with ctx.workprec(256):
        word = int((upper_tail(Fraction(1001, 2) / scale) * arb(2) ** 64).floor().unique_fmpz())
    calls = []
    original = round_exactly
    monkeypatch.setattr(drawing, "round_exactly", lambda *a, **b: calls.append(a) or original(*a, **b))
    near = drawing.draw(
        GAUSSIAN.distribution, scale, 3, None, None, Words([word, word + 2**40, word - 2**40])
    )
    assert len(calls) == 1
    assert near[1:].tolist() == [500, 501]


def test_no_samples_are_an_empty_array():
    assert GAUSSIAN.draw_rounded(Fraction(5), 0, source=SystemSource()).shape == (0,)


def test_an_integer_is_an_exact_scale():
    assert np.array_equal(
        GAUSSIAN.draw_rounded(5, 10, source=SeededSource(1)),  # type: ignore[arg-type]
        GAUSSIAN.draw_rounded(Fraction(5), 10, source=SeededSource(1)),
    )


@pytest.mark.parametrize(
    "scale",
    [
        0,
        -1,
        Fraction(0),
        Fraction(-5),
        Fraction(1, 2),
        Fraction(2**20 + 1),
        Fraction(10**400),
        10**400,
        float("nan"),
        float("inf"),
        -float("inf"),
        5.0,
        True,
        None,
        "5",
        np.float64(5),
    ],
)
def test_a_bad_scale_gives_no_output(scale):
    with pytest.raises(PrivacyError, match="noise scale"):
        GAUSSIAN.draw_rounded(scale, 3, source=SeededSource(1))


@pytest.mark.parametrize("size", [-1, 1.5, None, "3", True])
def test_a_bad_size_gives_no_output(size):
    with pytest.raises(PrivacyError, match="size"):
        GAUSSIAN.draw_rounded(Fraction(5), size, source=SeededSource(1))


@pytest.mark.parametrize(
    "offsets",
    [
        np.zeros(2),
        np.zeros((3, 1)),
        np.zeros(3, dtype=np.float32),
        np.array([0.0, np.nan, 0.0]),
        np.array([0.0, -0.1, 0.0]),
        np.array([0.0, 1.1, 0.0]),
        [0.0, 0.0, 0.0],
    ],
)
def test_bad_offsets_give_no_output(offsets):
    with pytest.raises(PrivacyError, match="offsets"):
        GAUSSIAN.draw_rounded(
            Fraction(5), 3, offsets=offsets, exact_offset=lambda _place: Fraction(0), source=SeededSource(1)
        )


def test_offsets_come_with_their_exact_values():
    with pytest.raises(PrivacyError, match="both or neither"):
        GAUSSIAN.draw_rounded(Fraction(5), 3, offsets=np.zeros(3), source=SeededSource(1))
    with pytest.raises(PrivacyError, match="both or neither"):
        GAUSSIAN.draw_rounded(Fraction(5), 3, exact_offset=lambda _place: Fraction(0), source=SeededSource(1))


@pytest.mark.parametrize("exact", [Fraction(1, 3), Fraction(-1), Fraction(1), 0.25, None])
def test_exact_offsets_agree_with_their_rounded_values(exact):
    with pytest.raises(PrivacyError, match="exact_offset"):
        drawing.draw(
            GAUSSIAN.distribution,
            Fraction(5),
            3,
            np.full(3, 0.25),
            lambda _place: exact,
            SeededSource(1),
            filtered=False,
        )


@pytest.mark.parametrize("words", [np.zeros(2, dtype=np.uint64), np.zeros(3, dtype=np.int64), None])
def test_a_source_that_misbehaves_gives_no_output(words):
    class Broken:
        private = False

        def bits64(self, _count):
            return words

        def more_bits(self, _count):
            return 0

    with pytest.raises(PrivacyError, match="random source"):
        GAUSSIAN.draw_rounded(Fraction(5), 3, source=Broken())


def test_a_million_samples_a_second():
    source, size = SystemSource(), 1_000_000
    GAUSSIAN.draw_rounded(Fraction(5000), 1000, source=source)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        GAUSSIAN.draw_rounded(Fraction(5000), size, source=source)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 1.0
