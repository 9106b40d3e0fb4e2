"""p-Identity strategies: objective, gradient, search and published figures of OPT_0."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.queries import AllRanges, Prefix, Ranges, Sliding
from matrixdp.selection.gram.opt_0 import Rows, solve_axis
from matrixdp.selection.gram.p_identity import (
    loss_and_gradient,
    operator_of,
    optimize,
    starts,
    strategy_rows,
    tree_start,
)
from matrixdp.testing import dense_error


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 12), st.integers(1, 5), st.integers(0, 2**32))
def test_loss_and_gradient_are_those_of_the_dense_matrices(n, p, seed):
    rng = np.random.default_rng(seed)
    theta = rng.random((p, n))
    root = rng.normal(size=(n, n))
    gram = root.T @ root
    operator = operator_of(gram)
    loss, gradient = loss_and_gradient(operator, theta)
    rows = strategy_rows(theta)
    np.testing.assert_allclose(np.abs(rows).sum(axis=0), 1.0, rtol=1e-14)
    assert loss == pytest.approx(dense_error(gram, rows), rel=1e-9)
    for _ in range(3):
        i, j = rng.integers(p), rng.integers(n)
        step = np.zeros_like(theta)
        step[i, j] = 1e-6
        difference = (
            loss_and_gradient(operator, theta + step)[0] - loss_and_gradient(operator, theta - step)[0]
        ) / 2e-6
        assert difference == pytest.approx(gradient[i, j], rel=1e-4, abs=1e-5 * loss)


def test_descent_never_climbs_and_drops_rows_of_zeros():
    gram = Prefix().gram(20)
    start = tree_start(20, 5)
    loss, theta = optimize(gram, start, 200, 1e-9)
    assert loss <= loss_and_gradient(operator_of(gram), start)[0]
    assert (theta >= 0).all()
    assert (theta.max(axis=1) > 0).all()
    assert optimize(np.eye(6), np.full((1, 6), 1e-12), 50, 1e-12)[0] == pytest.approx(6.0)


def test_trees_cover_all_cells():
    for size, branching in [(10, 3), (64, 4), (7, 16)]:
        rows = tree_start(size, branching, 1.0)
        np.testing.assert_array_equal(rows[-1], np.ones(size))
        assert (rows.sum(axis=1) <= size).all()
    assert all(start.shape == (5, 30) for family in starts(30, 5, 0, 3, False) for start in family)


@pytest.mark.parametrize(
    ("predicates", "size", "published"),
    [
        (AllRanges(), 64, 5.55),
        (AllRanges(), 256, 8.07),
        (Prefix(), 64, 5.32),
        (Prefix(), 256, 7.35),
    ],
)
def test_published_figures(predicates, size, published):
    """McKenna et al., journal version, Table 4, epsilon = 1."""
    factor = solve_axis(predicates.gram(size), LAPLACE)
    assert math.sqrt(2 * factor.loss / predicates.count(size)) < published + 0.005
    np.testing.assert_allclose(LAPLACE.column_norms(factor.rows), 1.0, rtol=1e-12)
    assert factor.loss == pytest.approx(dense_error(predicates.gram(size), factor.rows), rel=1e-7)
    assert factor.bound < factor.loss


@pytest.mark.slow
def test_the_published_figure_of_prefixes_of_1024_cells():
    factor = solve_axis(Prefix().gram(1024), LAPLACE, effort="fast")
    assert math.sqrt(2 * factor.loss / 1024) < 9.58 * 1.02  # the full search reaches 9.54


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (1.0, 1.0), (2.0, 0.3), (1.0, 40.0)])
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_symmetric_sets_have_a_closed_form(a, b, noise):
    gram = a * np.eye(9) + b
    factor = solve_axis(gram, noise)
    assert factor.loss == pytest.approx(dense_error(gram, factor.rows), rel=1e-8)
    assert noise.column_norms(factor.rows).max() == pytest.approx(1.0)
    assert factor.bound <= factor.loss * (1 + 1e-9)
    if noise == LAPLACE:
        searched, _ = optimize(gram, np.full((1, 9), 0.3), 500, 1e-12)
        assert factor.loss <= searched * (1 + 1e-7)
        assert factor.loss <= np.trace(gram)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_cells_that_no_query_tells_apart_are_merged_at_no_loss(noise):
    ranges = Ranges(((0, 4), (5, 9), (10, 19), (0, 9)))
    gram = ranges.gram(20)
    factor = solve_axis(gram, noise)
    assert np.linalg.matrix_rank(factor.rows) == 3
    merged = solve_axis(ranges.rows(20)[:, [0, 5, 10]].T @ ranges.rows(20)[:, [0, 5, 10]], noise)
    assert factor.loss == pytest.approx(merged.loss, rel=1e-9)
    assert factor.loss == pytest.approx(dense_error(gram, factor.rows), rel=1e-8)
    assert noise.column_norms(factor.rows).max() == pytest.approx(1.0)


def test_searches_repeat_and_starts_help(monkeypatch):
    gram = Sliding(5).gram(24)
    first = solve_axis(gram, LAPLACE, seed=3)
    monkeypatch.setattr("matrixdp.selection.gram.opt_0._last_found", {})
    second = solve_axis(gram, LAPLACE, seed=3)
    np.testing.assert_array_equal(first.rows, second.rows)
    warm = solve_axis(gram, LAPLACE, start=first, effort="fast")
    assert warm.loss <= first.loss * (1 + 1e-9)
    three = solve_axis(gram, LAPLACE, rows=Rows(p=3))
    assert len(three.rows) <= 27


def test_what_has_no_strategy_is_refused():
    with pytest.raises(NumericalError):
        solve_axis(np.zeros((3, 3)), LAPLACE)
    with pytest.raises(NumericalError):
        solve_axis(np.full((3, 3), np.nan), LAPLACE)
    with pytest.raises(TooLargeError, match="4097"):
        solve_axis(np.diag(np.arange(1.0, 4098.0)), LAPLACE)


@pytest.mark.parametrize(("options", "p"), [({"p": 3}, 3), ({"cells_per_row": 16}, 2), ({"p": 90}, 32)])
def test_strategies_have_the_rows_that_are_asked_for(options, p):
    workload = mdp.Workload(mdp.Domain({"a": range(32)}), mdp.product(a="range"))
    for mechanism in ("opt-0", "opt-kron"):
        chosen = mdp.select(workload, mechanism=mechanism, noise="laplace", restarts=2, **options)
        [part] = chosen.selection.plan.parts
        assert 32 < part.rows <= 32 + p  # rows of zeros are left out
