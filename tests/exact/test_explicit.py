"""Few rows above a multiple of the identity: their least squares without a factorization of all cells."""

from fractions import Fraction

import numpy as np
import pytest

from matrixdp.exact import IntegerMatrix

CELLS = 6
RANDOM = np.random.default_rng(3).integers(1, 9, size=(2, CELLS))
#: Rows that say much more than the identity below them, alike, nearly alike and not.
LARGE = 2**12 * RANDOM
ALIKE = np.vstack([LARGE[0], LARGE[0]])
NEARLY = ALIKE + np.eye(2, CELLS, 1, dtype=np.int64)


def exact_covariance(entries: np.ndarray) -> np.ndarray:
    """Return the inverse of B'B by Gaussian elimination in fractions."""
    size = entries.shape[1]
    gram = [[Fraction(int(value)) for value in row] for row in entries.T @ entries]
    rows = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(gram)]
    for place in range(size):
        pivot = rows[place][place]
        rows[place] = [value / pivot for value in rows[place]]
        for other in range(size):
            if other != place:
                factor = rows[other][place]
                rows[other] = [a - factor * b for a, b in zip(rows[other], rows[place], strict=True)]
    return np.array([[float(value) for value in row[size:]] for row in rows])


@pytest.mark.parametrize("weight", [1, 40])
@pytest.mark.parametrize("above", [RANDOM, LARGE, ALIKE, NEARLY, 2**13 * ALIKE, 2**13 * NEARLY])
def test_errors_are_those_of_the_matrix_however_alike_the_rows_above(above: np.ndarray, weight: int):
    entries = np.vstack([above, weight * np.eye(CELLS, dtype=np.int64)])
    matrix = IntegerMatrix(entries)
    exact = exact_covariance(entries)
    assert np.abs(matrix.covariance() - exact).max() < 1e-7 * np.abs(exact).max()
    assert np.allclose(matrix.solve(np.eye(len(entries))) @ entries, np.eye(CELLS), atol=1e-6)


@pytest.mark.parametrize("above", [LARGE[:1], ALIKE], ids=["one", "alike"])
def test_a_row_that_says_much_has_a_small_error(above: np.ndarray):
    weight = 40
    entries = np.vstack([above, weight * np.eye(CELLS, dtype=np.int64)])
    covariance = IntegerMatrix(entries).covariance()
    row = above[0].astype(float)
    variance = row @ covariance @ row / (row @ row)
    assert variance == pytest.approx(1 / (weight**2 + len(above) * (row @ row)), rel=1e-6)


def test_values_that_are_measured_alike_are_told():
    alike = IntegerMatrix(np.vstack([np.full((1, 5), 3), 2 * np.eye(5, dtype=np.int64)]))
    own, shared = alike.symmetric_covariance
    np.testing.assert_allclose(alike.covariance(), own * np.eye(5) + shared, atol=1e-15)
    entries = 7 * np.eye(5, dtype=np.int64) - 1
    entries[1, 2] = entries[2, 1] = -2
    ring = 3 * np.eye(5, dtype=np.int64) + np.roll(np.eye(5, dtype=np.int64), 1, axis=0)
    # sums so precise that what is told of single values would be rounding errors; products past 2^53
    sums = np.vstack([np.full((1, 5), 10**6), np.eye(5, dtype=np.int64)])
    large = 10**8 * np.eye(5, dtype=np.int64) + 1
    # one value tells the same of all others, but they do not of each other
    first = np.array([[1, 1, 1], [2, 0, 0], [0, 1, 0], [0, 0, 2]])
    # products that differ by one, which floating point does not tell apart
    rounded = np.array([[2**30, 0], [0, 2**30], [0, 1]])
    for other in (entries, ring, sums, large, first, rounded, np.ones((1, 1), dtype=np.int64)):
        assert IntegerMatrix(other).symmetric_covariance is None
