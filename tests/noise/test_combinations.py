"""Quantiles of combinations of Laplace variables, and the bound for all symmetric log-concave ones."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.noise.laplace import combination_quantiles, largest_quantile, largest_tail

LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.9999]


@pytest.mark.parametrize("level", LEVELS)
def test_one_and_two_variables_have_closed_forms(level):
    one, two, many = combination_quantiles(
        np.array([[1.0] + [0.0] * 99, [0.5, 0.5] + [0.0] * 98, [0.01] * 100]), level
    )
    assert one == pytest.approx(-math.log(1 - level) / math.sqrt(2), rel=3e-5)
    assert one >= -math.log(1 - level) / math.sqrt(2)
    # two equal ones of scale 1/2: P(|X| > x) = exp(-2x) (1 + x)
    assert math.exp(-2 * two) * (1 + two) == pytest.approx(1 - level, rel=2e-3, abs=1e-8)
    assert math.exp(-2 * two) * (1 + two) <= (1 - level) * (1 + 1e-9)
    from scipy.stats import norm

    assert many == pytest.approx(-norm.ppf((1 - level) / 2), rel=0.03)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12).filter(lambda x: sum(x) > 0.1),
    st.sampled_from(LEVELS),
)
def test_no_combination_is_beyond_the_bound(shares, level):
    vector = np.array([shares]) / sum(shares)
    assert combination_quantiles(vector, level)[0] <= largest_quantile(level) * (1 + 2e-5)


def test_quantiles_cover_as_stated():
    """Coverage by simulation; limits of 6 standard deviations, a false alarm of 2e-9 each."""
    rng = np.random.default_rng(0)
    draws = 400_000
    for shares in ([0.7, 0.2, 0.1], [0.4] + [0.06] * 10):
        scales = np.sqrt(np.array(shares) / 2)
        x = np.abs((rng.laplace(size=(draws, len(shares))) * scales).sum(axis=1))
        for level in (0.5, 0.9, 0.95, 0.99):
            inside = np.mean(x <= combination_quantiles(np.array([shares]), level)[0])
            assert abs(inside - level) < 6 * math.sqrt(level * (1 - level) / draws)


def test_the_bound_grows_with_the_confidence_and_is_not_far():
    bounds = [largest_quantile(level) for level in LEVELS]
    assert bounds == sorted(bounds)
    for level, bound in zip(LEVELS[3:], bounds[3:], strict=True):
        assert 1.0 <= bound / (-math.log(1 - level) / math.sqrt(2)) < 1.03


def cut_off(cut: float, points: np.ndarray) -> np.ndarray:
    """P(|L| > points) of a Laplace variable of scale 1 that is cut off, divided by its standard deviation."""
    inside = -math.expm1(-cut)
    variance = (2 - math.exp(-cut) * (cut * cut + 2 * cut + 2)) / inside
    return np.maximum(np.exp(-points * math.sqrt(variance)) - math.exp(-cut), 0.0) / inside


@pytest.mark.parametrize("level", LEVELS)
def test_the_bound_is_reached_by_a_laplace_variable_that_is_cut_off(level):
    far = largest_quantile(level)
    found = [cut_off(cut, np.array(far)) for cut in np.geomspace(0.01, 100, 4_000)]
    assert 1 - level == pytest.approx(max(found), rel=2e-3)
    assert max(found) <= 1 - level
    assert largest_tail(far) == pytest.approx(1 - level, rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.0, 3.0), min_size=1, max_size=9), st.floats(0.1, 9.0))
def test_no_symmetric_log_concave_variable_is_beyond_the_bound(slopes, far):
    """Densities whose logarithms fall along chords that become ever steeper, on a grid."""
    points = np.linspace(0.0, far, 20_001)
    steps = np.cumsum(slopes)[np.minimum((points * len(slopes) / far).astype(int), len(slopes) - 1)]
    density = np.exp(-np.cumsum(steps) * points[1])
    density /= density.sum()
    deviation = math.sqrt(density @ points**2)
    tails = density[::-1].cumsum()[::-1]  # from each point on
    for multiplier in (0.3, 0.9, 1.6, 2.2, 3.3):
        place = np.searchsorted(points, multiplier * deviation)
        if place < len(points):
            assert tails[place] <= largest_tail(multiplier) + 3e-4
