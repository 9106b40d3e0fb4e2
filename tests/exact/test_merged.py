"""Matrices over groups of values are the matrices that they say, and determine what they measure."""

import numpy as np
import pytest

from matrixdp.exact import IntegerMatrix, MergedMatrix
from matrixdp.plan import Block, Part

RANDOM = np.random.default_rng(1)
GROUPS = (np.array([0, 1, 1, 0, 2]), np.array([1, 0, 0]))
CASES = [
    MergedMatrix(IntegerMatrix(RANDOM.integers(-9, 9, (8, 6)) + 20 * np.eye(8, 6, dtype=np.int64)), GROUPS),
    MergedMatrix(
        IntegerMatrix(
            np.vstack([np.array([[9, 9, 9]]), np.eye(3, dtype=np.int64)]),
            np.linalg.qr(np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -2.0]]))[0].T,
        ),
        (np.array([2, 0, 1, 2]),),
    ),
]


def cells(merged: MergedMatrix) -> np.ndarray:
    """Write the matrix out, cell by cell."""
    columns = []
    for cell in np.ndindex(*merged.sizes):
        place = [group[value] for group, value in zip(merged.groups, cell, strict=True)]
        columns.append(merged.matrix.entries[:, np.ravel_multi_index(place, merged.merged_sizes)])
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("merged", CASES)
def test_it_is_the_matrix_that_it_says(merged: MergedMatrix):
    rows = cells(merged)
    assert np.array_equal(merged.written(), rows)
    assert np.array_equal(np.unique(merged.magnitudes(), axis=1), np.unique(np.abs(rows), axis=1))
    assert (merged.rows, merged.columns) == rows.shape
    assert merged.rank == np.linalg.matrix_rank(rows)
    assert merged.sensitivity == np.abs(rows).sum(axis=0).max()
    assert merged.squared_sensitivity == (rows**2).sum(axis=0).max()
    assert merged.max_entry == np.abs(rows).max()
    assert merged.max_row_sum >= np.abs(rows).sum(axis=1).max()


def test_multiplied_rows_over_many_cells_take_no_memory_for_them():
    sizes = (100, 100, 100, 10**6)
    merged = MergedMatrix(IntegerMatrix(np.array([[1], [2]])), tuple(np.zeros(n, int) for n in sizes))
    part = Part(tuple("abcd"), (Block(tuple("abcd"), merged),), 1.0, np.array([3, 5]))
    assert (part.sensitivity, part.squared_sensitivity) == (13, 109)


@pytest.mark.parametrize("merged", CASES)
def test_its_least_squares_is_the_pseudo_inverse(merged: MergedMatrix):
    inverse = np.linalg.pinv(cells(merged))
    np.testing.assert_allclose(merged.solve(np.eye(merged.rows)), inverse, atol=1e-12)
    np.testing.assert_allclose(merged.covariance(), inverse @ inverse.T, atol=1e-12)
    queries = np.random.default_rng(2).normal(size=(merged.columns, 2))
    np.testing.assert_allclose(merged.coefficients(queries), inverse.T @ queries, atol=1e-12)


@pytest.mark.parametrize("merged", CASES)
def test_what_tells_cells_apart_is_outside(merged: MergedMatrix):
    outside = merged.unsupported
    assert outside is not None
    np.testing.assert_allclose(outside @ outside.T, np.eye(len(outside)), atol=1e-12)
    weak = 0 if merged.matrix.outside is None else len(merged.matrix.outside)
    assert len(outside) == merged.columns - merged.rank + weak
    queries = np.random.default_rng(3).normal(size=(merged.columns, 2))
    apart = merged.apart(queries)
    np.testing.assert_allclose(merged.means(apart), 0.0, atol=1e-12)
    np.testing.assert_allclose(outside.T @ (outside @ apart), apart, atol=1e-12)
    if not weak:
        np.testing.assert_allclose(outside.T @ (outside @ queries), apart, atol=1e-12)


def test_single_groups_leave_nothing_outside():
    assert MergedMatrix(IntegerMatrix(np.eye(2, dtype=np.int64)), (np.array([1, 0]),)).unsupported is None
