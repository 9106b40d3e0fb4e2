"""What a rounded strategy does not measure, by its rows and not by what rounding left of them."""

import numpy as np
import pytest

from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.selection.compose.rounding import measured_factor

ROWS = np.sqrt([[2.0, 3.0, 0.0, 0.0], [0.0, 0.0, 5.0, 7.0]]) / 12**0.5


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_rows_that_are_zero_but_for_rounding_have_no_direction(noise: Noise):
    matrix = measured_factor(np.vstack([ROWS, 1e-17 * np.array([[3.0, -1.0, 1.0, 2.0]])]), noise)
    assert matrix.unsupported is not None
    assert matrix.unsupported.shape == (2, 4)
    assert np.abs(matrix.unsupported @ ROWS.T).max() < 1e-12
