"""The low-rank mechanism: what it finds under both norms, and what it does where the search ends early."""

import numpy as np
import pytest
from workload_families import w_discrete, w_related

from matrixdp.domain import Domain
from matrixdp.mechanisms import spectrum_of
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.papers import low_rank
from matrixdp.papers.low_rank import Decomposition, low_rank_factor, project_columns
from matrixdp.selection.gram import solve_gram

LINE = Domain({"x": 32})
RELATED = w_related(LINE, 64, 0.2, seed=1).matrix
DISCRETE = w_discrete(LINE, 64, seed=1).matrix


@pytest.mark.parametrize("queries", [RELATED, DISCRETE, np.tri(32)], ids=["related", "discrete", "prefix"])
def test_under_l2_norms_it_is_comparable_to_the_optimum(queries):
    gram = queries.T @ queries
    factor = low_rank_factor(gram, GAUSSIAN)
    optimum = solve_gram(gram).loss
    assert optimum * (1 - 1e-6) < factor.loss < 1.001 * optimum
    assert len(factor.rows) == np.ceil(1.2 * np.linalg.matrix_rank(queries))


def test_under_l1_norms_it_beats_noise_on_cells_where_the_workload_is_made_for_it():
    gram = DISCRETE.T @ DISCRETE
    factor = low_rank_factor(gram, LAPLACE)
    assert np.abs(factor.rows).sum(axis=0).max() == pytest.approx(1.0)
    assert factor.loss < 0.6 * np.trace(gram)
    dense = np.linalg.pinv(factor.rows)
    assert factor.loss == pytest.approx(np.sum((DISCRETE @ dense) ** 2), rel=1e-6)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_directions_that_a_decomposition_lost_are_measured_beside_it(monkeypatch, noise):
    # orthonormal, with entries of one magnitude: every cell pays alike
    turned = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    gram = turned.T @ np.diag([4.0, 1.0, 1e-6, 1e-6]) @ turned
    # the third direction is measured so faintly that least squares would answer by noise alone
    lost = np.diag([1.0, 1.0, 1e-9, 0.0]) @ turned
    monkeypatch.setattr(low_rank, "_decomposed", lambda *given: (lost, False))
    factor = low_rank_factor(gram, noise)
    assert noise.column_norms(factor.rows).max() == pytest.approx(1.0)
    inverse = np.linalg.inv(factor.rows.T @ factor.rows)
    assert factor.loss == pytest.approx(float(np.vdot(inverse, gram)), rel=1e-9)
    # one scale for both directions, at its best
    for scale in (0.8, 0.99, 1.01, 1.25):
        other = factor.rows * np.where(np.arange(len(factor.rows)) < 4, 1.0, scale)[:, None]
        other /= noise.column_norms(other).max()
        assert np.vdot(np.linalg.inv(other.T @ other), gram) >= factor.loss * (1 - 1e-9)


def test_a_search_that_ends_early_supports_every_query():
    queries = w_related(LINE, 32, 1.0, seed=1).matrix
    gram = queries.T @ queries
    optimum = solve_gram(gram).loss
    _, reached = low_rank._decomposed(spectrum_of(gram), GAUSSIAN, Decomposition(updates=8))
    assert not reached
    early = low_rank_factor(gram, GAUSSIAN, Decomposition(updates=8)).loss
    longer = low_rank_factor(gram, GAUSSIAN, Decomposition(updates=200)).loss
    assert optimum * (1 - 1e-6) < longer < 1.001 * optimum
    assert longer < early < 1.1 * optimum
    narrow = low_rank_factor(gram, GAUSSIAN, Decomposition(rank_factor=0.5))
    assert optimum < narrow.loss < np.trace(gram)
    assert np.linalg.matrix_rank(narrow.rows) == 32


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_projections_are_nearest(noise):
    random = np.random.default_rng(2)
    rows = 2.0 * random.standard_normal((5, 4))
    nearest = project_columns(rows, noise)
    for _ in range(200):
        other = project_columns(nearest + 0.3 * random.standard_normal(rows.shape), noise)
        inward = ((rows - nearest) * (other - nearest)).sum(axis=0)
        assert (inward <= 1e-12).all()
