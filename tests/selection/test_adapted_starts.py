"""Starts of p-Identity searches that look at the workload, and what they gain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.noise import LAPLACE
from matrixdp.queries import AllRanges
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.opt_0 import solve_axis
from matrixdp.selection.gram.p_identity import low_rank_starts, optimize, signed_parts, tree_start
from matrixdp.testing import dense_error


def test_parts_are_not_negative_and_sum_to_the_scale():
    factor = np.random.default_rng(0).normal(size=(6, 9))
    parts = signed_parts(factor, 2, 3.0)
    assert parts.shape == (4, 9)
    assert (parts >= 0).all()
    assert parts.sum(axis=0).max() == pytest.approx(3.0)
    heaviest = np.argsort(-(factor**2).sum(axis=1))[:2]
    np.testing.assert_allclose(
        (parts[:2] - parts[2:]) / parts.max(), factor[heaviest] / np.abs(factor[heaviest]).max()
    )


def test_low_rank_starts_are_for_low_ranks_alone():
    assert low_rank_starts(40, 11, 0) == []
    shapes = [start.shape for family in low_rank_starts(40, 10, 0) for start in family]
    assert shapes == [(10, 40), (20, 40)]
    again = low_rank_starts(40, 10, 0)
    np.testing.assert_array_equal(low_rank_starts(40, 10, 0)[0][0], again[0][0])


def test_permuted_ranges_cost_no_more_than_ranges():
    shuffled = np.random.default_rng(2).permutation(64)
    gram = AllRanges().gram(64)
    plain, permuted = solve_axis(gram, LAPLACE), solve_axis(gram[np.ix_(shuffled, shuffled)], LAPLACE)
    assert permuted.loss <= plain.loss * 1.003


def test_one_query_is_measured_as_it_is():
    query = np.random.default_rng(3).random((1, 30))
    factor = solve_axis(query.T @ query, LAPLACE)
    assert len(factor.rows) == 1
    assert factor.loss == pytest.approx(query.max() ** 2, rel=1e-6)
    assert factor.loss == pytest.approx(dense_error(query.T @ query, factor.rows), rel=1e-6)


def test_few_dimensions_cost_far_less_than_the_identity():
    """Ranges on either of two attributes: 23 dimensions of 144 cells."""
    ranges, ones = AllRanges().gram(12), np.ones((12, 12))
    gram = np.kron(ranges, ones) + np.kron(ones, ranges)
    factor = solve_axis(gram, LAPLACE, effort="fast")
    trees = min(optimize(gram, tree_start(144, width), 300, 1e-8)[0] for width in (12, 16))
    assert factor.loss < 0.8 * trees
    assert factor.loss == pytest.approx(dense_error(gram, factor.rows), rel=1e-6)
    np.testing.assert_allclose(LAPLACE.column_norms(factor.rows), 1.0)


def test_a_light_total_helps_random_queries():
    rows = (np.random.default_rng(4).random((400, 256)) < 0.3).astype(float)
    gram = rows.T @ rows
    for effort in ("fast", "full"):
        assert solve_axis(gram, LAPLACE, effort=effort).loss < 0.98 * np.trace(gram)


@settings(max_examples=12, deadline=None)
@given(st.integers(2, 14), st.integers(1, 8), st.integers(0, 2**32), st.floats(1e-3, 1e3))
def test_strategies_of_any_rank_hold_the_workload_and_stay_above_the_bound(size, queries, seed, scale):
    rng = np.random.default_rng(seed)
    rows = np.rint(3 * rng.normal(size=(queries, size)))
    if not rows.any():
        return
    gram = scale * rows.T @ rows
    factor = solve_axis(gram, LAPLACE, effort="fast")
    assert solve_gram(gram).bound <= factor.loss * (1 + 1e-6)
    assert LAPLACE.column_norms(factor.rows).max() == pytest.approx(1.0)
    held = rows @ np.linalg.pinv(factor.rows, rcond=1e-9) @ factor.rows
    np.testing.assert_allclose(held, rows, atol=1e-6)
    assert factor.loss == pytest.approx(dense_error(gram, factor.rows), rel=1e-6)
    assert solve_axis(gram / scale, LAPLACE, effort="fast").loss == pytest.approx(
        factor.loss / scale, rel=0.05
    )
