"""What rounding of strategies, and the units of bases, leave as it is: the space that is measured."""

import numpy as np
import pytest

from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.selection.compose.given_bases import residual_basis
from matrixdp.selection.compose.rounding import measured_factor

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
