"""Norms, costs and shares of the noises against their definitions."""

from fractions import Fraction

import numpy as np
import pytest

from matrixdp.exact import IntegerMatrix
from matrixdp.noise import Noise
from tests.noise.exact import BOTH

MATRIX = IntegerMatrix(np.array([[3, -4], [-1, 2], [0, 5]]))
both = pytest.mark.parametrize("noise", BOTH, ids=str)


@both
def test_costs_are_sensitivities_over_scales(noise: Noise):
    rows = np.random.default_rng(0).normal(size=(4, 6))
    expected = (np.abs(rows) ** noise.norm).sum(axis=0) ** (1.0 / noise.norm)
    np.testing.assert_allclose(noise.column_norms(rows), expected)
    assert noise.power_sum(MATRIX) == {1: 11, 2: 45}[noise.norm]
    exact = noise.exact_cost([(MATRIX, Fraction(10, 3))] * 2).value
    least = 2 * noise.power_sum(MATRIX) / Fraction(10, 3) ** noise.norm
    assert least <= exact <= least * (1 + Fraction(1, 2**60))


@both
@pytest.mark.parametrize("share", [0.1, 1.0])
def test_variances_scales_and_shares_agree(noise: Noise, share: float):
    variance = noise.variance(MATRIX, share)
    scale = noise.scale(variance, 1.0)
    assert noise.share(MATRIX, variance) == pytest.approx(share)
    assert scale**2 * noise.variance_factor == pytest.approx(variance)
    assert noise.power_sum(MATRIX) / scale**noise.norm == pytest.approx(share)


@both
def test_no_shares_are_better_than_the_best(noise: Noise):
    losses, counts = [3.0, 40.0, 700.0], np.array([1, 4, 2])
    shares = np.array(noise.best_shares(losses, counts.tolist()))
    best = noise.total_loss(losses, counts.tolist())

    def total(chosen: np.ndarray) -> float:
        return float((counts * losses / chosen ** (2.0 / noise.norm)).sum())

    assert shares @ counts == pytest.approx(1.0)
    assert total(shares) == pytest.approx(best)
    for step in np.random.default_rng(0).uniform(-0.3, 0.3, (20, 3)):
        other = shares * np.exp(step)
        assert total(other / (other @ counts)) >= best * (1 - 1e-9)
