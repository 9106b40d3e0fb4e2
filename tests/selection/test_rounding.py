"""What rounding of strategies, and the units of bases, leave as it is: the space that is measured."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.papers.residual_planner import residual_basis
from matrixdp.selection.compose import rounding
from matrixdp.selection.compose.rounding import measured_factor, measured_matrix
from matrixdp.selection.gram.factor import Factor

ROWS = np.sqrt([[2.0, 3.0, 0.0, 0.0], [0.0, 0.0, 5.0, 7.0]]) / 12**0.5


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_rows_that_are_zero_but_for_rounding_have_no_direction(noise: Noise):
    matrix = measured_factor(np.vstack([ROWS, 1e-17 * np.array([[3.0, -1.0, 1.0, 2.0]])]), noise)
    assert matrix.unsupported is not None
    assert matrix.unsupported.shape == (2, 4)
    assert np.abs(matrix.unsupported @ ROWS.T).max() < 1e-12


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_a_basis_in_other_units_is_the_same(scale: float):
    weights = np.full(3, 1 / 3)
    found, known = residual_basis(scale * np.tri(3), weights), residual_basis(np.tri(3), weights)
    np.testing.assert_allclose(found.T @ found, known.T @ known, atol=1e-12)


def test_rows_that_tell_values_alike_are_measured_by_their_root():
    """The root has the same L2 norms and errors; in the L1 norm it may cost more, and the rows stay."""
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    rows = turn @ (3.0 * np.eye(4) + 1.0) / 19.0**0.5
    factor = Factor(rows, 1.0, dual=np.full(4, 0.25))
    root, same = (measured_matrix(factor, noise).written() for noise in (GAUSSIAN, LAPLACE))
    np.testing.assert_allclose(root, 2.0**14 * turn.T @ rows, atol=1.0)
    np.testing.assert_allclose(same, 2.0**14 * rows, atol=1.0)


def test_rows_that_do_not_tell_values_alike_have_no_such_root():
    first = np.linalg.cholesky(np.array([[5.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 5.0]])).T
    weak_total = np.eye(4) - (1.0 - 1e-6) / 4.0
    for rows in (first, weak_total, np.vstack([np.eye(3), np.ones((1, 3))])):
        assert rounding._of_values_alike(rows) is None


@pytest.mark.parametrize(("error", "known"), [(0.0, True), (1e-3, False)])
def test_directions_that_are_not_measured_are_known_only_where_they_are_orthogonal(error, known):
    rows = np.random.default_rng(1).normal(size=(8, 10))
    inverse = np.linalg.pinv(rows) + error * np.random.default_rng(2).normal(size=(10, 8))
    factor: Any = SimpleNamespace(rows=rows, cells=10, inverse=inverse)
    found = rounding._outside_of_large(factor)
    assert (found is not None) is known


def test_few_rows_on_many_cells_are_measured_over_those_they_tell_apart():
    random = np.random.default_rng(3)
    apart = np.vstack([np.eye(5), random.uniform(size=(3, 5))])
    rows = apart[:, random.integers(0, 5, size=90)] / apart.sum(axis=0).max()
    matrix = measured_factor(rows, LAPLACE)
    assert (matrix.rows, matrix.rank, matrix.support_rank) == (8, 5, 5)
    entries = matrix.written()
    np.testing.assert_allclose(entries / matrix.sensitivity, rows, atol=1e-4)
    np.testing.assert_allclose(np.linalg.pinv(entries) @ entries, np.linalg.pinv(rows) @ rows, atol=1e-12)
    # rows that tell more cells apart than they are: what only rounding measures is not supported
    few = np.repeat(random.uniform(size=(2, 4)), 3, axis=1)
    assert measured_factor(few / few.sum(axis=0).max(), LAPLACE).support_rank == 2
