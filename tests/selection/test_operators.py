"""Structure of Gram matrices: quick products, the order of permuted chains, and what uses them."""

import numpy as np
import pytest

from matrixdp.noise import LAPLACE
from matrixdp.queries import AllRanges, Prefix, Sliding
from matrixdp.selection.gram import opt_0, optimum, solve_gram
from matrixdp.selection.gram.p_identity import operator_of
from matrixdp.selection.gram.singular_values import rank_of, singular_values, svd_bound_gram
from matrixdp.selection.problem.entries import chain_order, green_factors
from matrixdp.testing import dense_error
from tests.limits import Override

RNG = np.random.default_rng(0)
WEIGHTED = np.tri(300).T * RNG.uniform(0.5, 2.0, 300) @ np.tri(300)
MIXED = AllRanges().gram(300) + np.diag(RNG.random(300))


@pytest.mark.parametrize(
    "gram",
    [AllRanges().gram(257), Prefix().gram(700), WEIGHTED, Sliding(9).gram(400), Sliding(37).gram(300), MIXED],
)
def test_products_are_those_with_the_matrix(gram):
    operator = operator_of(gram)
    rows = RNG.random((130, len(gram)))
    np.testing.assert_allclose(operator.image(rows), rows @ gram, rtol=1e-11)
    np.testing.assert_array_equal(operator.diagonal, np.diagonal(gram))


@pytest.mark.parametrize("gram", [AllRanges().gram(60), Prefix().gram(41), WEIGHTED])
def test_the_order_of_a_chain_is_found_again(gram):
    shuffled = RNG.permutation(len(gram))
    order = shuffled[chain_order(gram[np.ix_(shuffled, shuffled)])]
    assert (np.abs(np.diff(order)) == 1).all()
    assert chain_order(gram) is None
    assert chain_order(gram[::-1, ::-1]) is None


def test_what_is_no_chain_has_no_order():
    shuffled = RNG.permutation(300)
    for gram in (MIXED, Sliding(9).gram(300), np.eye(300), MIXED - 100.0):
        assert chain_order(gram[np.ix_(shuffled, shuffled)]) is None
        assert green_factors(gram) is None
    # all cells are close to the first, and two of the others share no query
    assert chain_order(np.array([[2.0, 1.0, 1.0], [1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])) is None
    assert green_factors(np.array([[1.0, 1.0], [1.0, 0.0]])) is None


def test_the_optimum_does_not_depend_on_the_order_of_a_chain():
    gram, shuffled = AllRanges().gram(512), RNG.permutation(512)
    permuted = gram[np.ix_(shuffled, shuffled)]
    ordered, found = solve_gram(gram, gap=1e-5), solve_gram(permuted, gap=1e-5)
    assert found.loss == pytest.approx(ordered.loss, rel=1e-9)
    assert np.einsum("ij,ij->j", found.rows, found.rows).max() == pytest.approx(1.0)
    inverse = found.inverse
    assert float(np.vdot(inverse, permuted @ inverse)) == pytest.approx(found.loss, rel=1e-6)
    again = solve_gram(permuted, gap=1e-5, start=found.dual)
    assert again.loss == pytest.approx(found.loss, rel=1e-4)


def test_p_identity_strategies_do_not_depend_on_the_order_of_a_chain():
    pairs = np.kron(np.eye(16), np.ones((1, 2)))  # cells that no query tells apart, too
    for gram in (AllRanges().gram(32), pairs.T @ AllRanges().gram(16) @ pairs):
        shuffled = RNG.permutation(32)
        permuted = gram[np.ix_(shuffled, shuffled)]
        ordered, found = (opt_0.solve_axis(matrix, LAPLACE) for matrix in (gram, permuted))
        assert found.loss == pytest.approx(ordered.loss, rel=1e-6)
        assert found.loss == pytest.approx(dense_error(permuted, found.rows), rel=1e-9)
        warm = opt_0.solve_axis(permuted, LAPLACE, start=found, effort="fast")
        assert warm.loss <= found.loss * (1 + 1e-9)


def test_large_attributes_have_the_bound_of_their_singular_values(monkeypatch, limits: Override):
    monkeypatch.setattr(opt_0, "_last_found", {})
    gram = Prefix().gram(48)
    full = opt_0.solve_axis(gram, LAPLACE)
    monkeypatch.setattr(opt_0, "_last_found", {})
    limits(_LARGE_CELLS=47)
    limits(searched_cells=47)
    few = opt_0.solve_axis(gram, LAPLACE)
    assert few.bound == pytest.approx(full.bound)  # of low rank: the optimum
    monkeypatch.setattr(opt_0, "_last_found", {})
    limits(small_cells=20)
    large = opt_0.solve_axis(gram, LAPLACE)
    assert large.bound == pytest.approx(svd_bound_gram(gram), rel=1e-12)
    assert large.bound < full.bound < full.loss <= large.loss * (1 + 1e-9) < 1.05 * full.loss


def test_rounding_errors_are_no_dimensions():
    rows = RNG.normal(size=(3, 20))
    values = singular_values(rows.T @ rows)
    np.testing.assert_allclose(values[-3:], np.linalg.svd(rows, compute_uv=False)[::-1], rtol=1e-9)
    assert rank_of(values) == 3


def test_cells_in_another_order_that_no_query_tells_apart_are_put_in_order_once(limits: Override):
    limits(min_chain_cells=4)
    cells = np.array([4, 2, 2, 3, 4, 5])
    gram = (np.tri(6).T @ np.tri(6))[np.ix_(cells, cells)]
    order = chain_order(gram)
    # equal cells may stand in any order: it is one of those, and not the one in which they were given
    assert chain_order(gram[np.ix_(order, order)]) is not None
    found = optimum.solve_gram(gram, gap=1e-8)
    assert found.loss == pytest.approx(dense_error(gram, found.rows), rel=1e-8)
    assert found.bound == pytest.approx(found.loss, rel=1e-7)
