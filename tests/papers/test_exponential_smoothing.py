"""Exponential smoothing: its gradient, its projection, and what its options do."""

import numpy as np
import pytest

from matrixdp.noise import GAUSSIAN
from matrixdp.papers import exponential_smoothing as smoothing
from matrixdp.papers.exponential_smoothing import Smoothing, smoothed_factor
from matrixdp.selection.gram import solve_gram

PREFIX = np.tri(8).T @ np.tri(8)


def test_the_gradient_is_that_of_the_smoothed_objective():
    random = np.random.default_rng(3)
    root = random.standard_normal((8, 8))
    matrix = root @ root.T + 8 * np.eye(8)
    matrix /= np.diag(matrix).max()
    value, gradient = smoothing._objective(matrix, PREFIX, 0.1)
    diagonal = np.diag(matrix)
    largest = 0.1 * np.log(np.exp(diagonal / 0.1).sum())
    assert value == pytest.approx(largest * np.trace(np.linalg.solve(matrix, PREFIX)))
    change = random.standard_normal((8, 8))
    change = 1e-6 * (change + change.T)
    ahead, behind = (smoothing._objective(matrix + sign * change, PREFIX, 0.1)[0] for sign in (1, -1))
    assert (ahead - behind) / 2 == pytest.approx(np.vdot(gradient, change), rel=1e-5)


def test_projections_are_nearest():
    matrix = np.diag([2.0, -1.0, 0.5])
    np.testing.assert_allclose(
        smoothing._projected(matrix), np.diag([2.0, smoothing._LEAST, 0.5]), atol=1e-12
    )
    np.testing.assert_array_equal(smoothing._projected(PREFIX), PREFIX)


def test_more_steps_and_a_mu_that_fits_come_nearer_the_optimum():
    optimum = solve_gram(PREFIX).loss
    ratios = [
        smoothed_factor(PREFIX, GAUSSIAN, given).loss / optimum
        for given in (Smoothing(), Smoothing(iterations=2000), Smoothing(iterations=40), Smoothing(mu=1.0))
    ]
    assert 1 < ratios[1] < ratios[0] < 1.01
    assert ratios[0] < ratios[2]
    assert ratios[0] < ratios[3]
