"""The low-rank mechanism: what it finds under both norms, and what it refuses."""

import numpy as np
import pytest

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.papers import low_rank
from matrixdp.papers.families import w_discrete, w_related
from matrixdp.papers.low_rank import low_rank_factor, project_columns
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
def test_projections_are_nearest(noise):
    random = np.random.default_rng(2)
    rows = 2.0 * random.standard_normal((5, 4))
    nearest = project_columns(rows, noise)
    for _ in range(200):
        other = project_columns(nearest + 0.3 * random.standard_normal(rows.shape), noise)
        inward = ((rows - nearest) * (other - nearest)).sum(axis=0)
        assert (inward <= 1e-12).all()


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_a_decomposition_that_lost_rank_is_refused(monkeypatch, noise):
    monkeypatch.setattr(low_rank, "_decomposed", lambda *given: np.ones((1, 4)))
    with pytest.raises(NumericalError, match="lost rank and supports not every query"):
        low_rank_factor(np.eye(4), noise)
