"""Noise on the integers: its distribution, and how far combinations of it stay from 0.

Statistical tests use fixed seeds, and alarm falsely with a probability below 1e-9 over the choice of them.
"""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from scipy import stats

from matrixdp.noise import LAPLACE, SeededSource, Tails, drawing, integers
from matrixdp.noise.laplace import combination_quantiles
from tests.noise.exact import FALSE_ALARM
from tests.noise.recorded import RecordedSource

STEPS = [Fraction(1, 4), Fraction(1), Fraction(7, 4), Fraction(40)]
_REACH = 1000


def mass(steps: float) -> np.ndarray:
    """P(K = k) for k from -1000 to 1000, from its definition."""
    weights = np.exp(-np.abs(np.arange(-_REACH, _REACH + 1)) / steps)
    return np.asarray(weights / weights.sum())


def chi_square(samples: np.ndarray, steps: float) -> float:
    reach = math.ceil(6 * steps)
    expected = mass(steps)[_REACH - reach : _REACH + reach + 1]
    expected[[0, -1]] += (1 - expected.sum()) / 2
    observed = np.bincount(np.clip(samples, -reach, reach) + reach, minlength=2 * reach + 1)
    expected *= len(samples)
    return float(stats.chi2.sf(np.sum((observed - expected) ** 2 / expected), 2 * reach))


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_the_distribution_is_exact_and_a_wrong_scale_is_seen(steps: Fraction):
    samples = integers.draw_integers(steps, 400_000, SeededSource(3))
    assert chi_square(samples, float(steps)) > FALSE_ALARM
    for wrong in (1.03, 0.97):
        assert chi_square(samples, float(steps) * wrong) < FALSE_ALARM


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_moments_are_those_of_the_probabilities(steps: Fraction):
    places, found = np.arange(-_REACH, _REACH + 1), mass(float(steps))
    variance = float(found @ places**2)
    assert integers.variance(float(steps)) == pytest.approx(variance, rel=1e-6)
    kurtosis = float(found @ places**4) / variance**2 - 3
    assert integers.excess_kurtosis(float(steps)) == pytest.approx(kurtosis, rel=1e-3)


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_every_path_gives_the_same_samples_from_the_same_bits(steps: Fraction):
    own = integers.distribution(steps)
    found = integers.draw_integers(steps, 1000, SeededSource(4))
    for other in (replace(own, approximate=None), replace(own, epsilon=Fraction(1, 1 << 9))):
        again = drawing.draw(other, Fraction(1), 1000, None, None, SeededSource(4))
        assert np.array_equal(found, again)


@pytest.mark.parametrize("steps", [Fraction(1, 3), Fraction(1), Fraction(2)], ids=str)
def test_all_words_are_enumerated_by_their_bounds(steps: Fraction):
    """K is monotone in the word: |K| >= k below 2^64 a^k / (1 + a), to the last one."""
    words, expected = [], []
    for k in range(1, 20):
        with ctx.workprec(300):
            own = -1 / arb(fmpq(steps.numerator, steps.denominator))
            edge = int(((own * k).exp() / (1 + own.exp()) * arb(2) ** 64).floor().unique_fmpz())
        if edge < 2:
            break
        words += [edge - 1, edge + 1, edge - 1 | 1 << 63, edge + 1 | 1 << 63]
        expected += [k, k - 1, -k, 1 - k]
    assert len(words) > 40
    found = integers.draw_integers(steps, len(words), RecordedSource(words))
    assert found.tolist() == expected


def test_a_word_at_a_bound_takes_further_bits():
    with ctx.workprec(300):
        share = (-arb(1)).exp() / (1 + (-arb(1)).exp()) * arb(2) ** 128
        edge = int(share.floor().unique_fmpz())
    word, rest = divmod(edge, 1 << 64)
    for more, expected in ((rest - 1, 1), (rest + 1, 0)):
        source = RecordedSource([word, more])
        assert integers.draw_integers(Fraction(1), 1, source).tolist() == [expected]
        assert source.taken == 2


@pytest.mark.parametrize("steps", [*STEPS, Fraction(1, 32)], ids=str)
def test_the_filter_keeps_to_its_bound(steps: Fraction):
    own = integers.distribution(steps)
    assert own.approximate is not None
    words = np.random.default_rng(5).integers(1 << 42, 1 << 63, 300, dtype=np.uint64)
    found, proved = own.approximate(words)
    bound = own.epsilon + (own.roundings + 8) * Fraction(1, 1 << 53)
    assert proved.all()
    with ctx.workprec(300):
        inverse = arb(fmpq(steps.numerator, steps.denominator))
        for word, value in zip(words.tolist(), found.tolist(), strict=True):
            for end in (word, word + 1):
                exact = -((arb(end) / arb(2) ** 64 * (1 + (-1 / inverse).exp())).log()) * inverse - arb(0.5)
                assert abs(exact - arb(value)) <= arb(fmpq(bound.numerator, bound.denominator))


def covered(pairs: list[tuple[float, float]], multiplier: float) -> float:
    """P(|X| <= multiplier standard deviations) of a sum of c K with K of so many steps, by enumeration."""
    few = [np.flatnonzero(mass(steps) > 1e-9) for _, steps in pairs]
    variance = math.fsum(c * c * integers.variance(steps) for c, steps in pairs)
    values = np.zeros(1)
    weights = np.ones(1)
    for (c, steps), places in zip(pairs, few, strict=True):
        values = np.add.outer(values, c * (places - _REACH)).ravel()
        weights = np.multiply.outer(weights, mass(steps)[places]).ravel()
    return float(weights[np.abs(values) <= multiplier * math.sqrt(variance) * (1 + 1e-9)].sum())


COMBINATIONS = [
    [(1.0, 1.0)],
    [(1.0, 0.25)],
    [(1.0, 1.0), (1.0, 1.0)],
    [(1.0, 2.0), (0.3, 0.5)],
    [(1.0, 0.5), (math.pi, 0.7)],
    [(1.0, 1.0), (1e-3, 1.0)],
    [(1.0, 0.2), (1.0, 0.2), (0.5, 0.3)],
]


@pytest.mark.parametrize("pairs", COMBINATIONS, ids=str)
def test_quantiles_cover_and_are_no_wider_than_they_must_be(pairs: list[tuple[float, float]]):
    shares = np.array([[c * c * integers.variance(steps) for c, steps in pairs]])
    shares /= shares.sum()
    steps = np.array([[own for _, own in pairs]])
    tails = Tails(LAPLACE, tuple(own for _, own in pairs))
    for confidence in (0.5, 0.8, 0.95, 0.99, 0.999):
        found = tails.combination_quantiles(shares, steps, confidence)
        assert found is not None
        [quantile] = found
        largest = tails.largest_quantile(confidence)
        assert quantile <= largest
        assert covered(pairs, quantile) >= confidence - 1e-8
        assert covered(pairs, largest) >= confidence
        assert 1 - covered(pairs, quantile) <= tails.largest_tail(quantile) + 1e-8
        if quantile < largest and confidence < 0.99:
            # the values that X has lie 0.02 of a deviation apart, or X has more of a chance within
            assert covered(pairs, max(quantile - 0.041, 0.0)) < confidence or quantile <= 0.041


def test_continuous_terms_have_the_quantiles_of_laplace_noise():
    tails = Tails(LAPLACE, (1.0, math.inf))
    shares = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    steps = np.array([[math.inf, math.inf], [1.0, math.inf], [1.0, math.inf]])
    found = tails.combination_quantiles(shares, steps, 0.95)
    assert found is not None
    assert found[0] == combination_quantiles(shares[:1], 0.95)[0]
    assert found[0] < found[1] < 1.1 * found[0]
    assert found[2] == pytest.approx(3 / math.sqrt(integers.variance(1.0)))
    # a sum with continuous noise, by draws: 200,000 of them tell 0.95 to 0.003 at 6 deviations
    words = integers.draw_integers(Fraction(1), 200_000, SeededSource(6))
    parts = words / math.sqrt(integers.variance(1.0)), np.random.default_rng(7).laplace(size=200_000)
    inside = np.abs(math.sqrt(0.5) * parts[0] + 0.5 * parts[1]) <= found[1]
    assert 0.947 < inside.mean() < 0.96


def test_the_largest_quantile_holds_for_any_steps():
    """Over a grid of two terms; the bound is of what has the fewest steps."""
    for steps in itertools.product((0.3, 0.7, 1.0, 2.0), repeat=2):
        tails = Tails(LAPLACE, steps)
        for c in (0.0, 0.01, 0.4, 1.0):
            for confidence in (0.9, 0.95, 0.99):
                pairs = [(1.0, steps[0]), (c, steps[1])]
                assert covered(pairs, tails.largest_quantile(confidence)) >= confidence
