"""Trees of queries against the matrix written out by enumeration."""

from collections.abc import Iterator

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import RowTrees, apply_kronecker
from matrixdp.exact.linear import by_first
from matrixdp.plans.axes import Piece
from matrixdp.queries import Identity, Matrix, Prefix, Total


def random_row_trees(random: np.random.Generator, *, whole: bool, cells: int = 3) -> RowTrees:
    """Return trees of some queries, or of as many as there are cells, all of which reach the values."""
    size = int(random.integers(2, 7))
    groups = [np.zeros(size, dtype=np.int64)]
    for _ in range(int(random.integers(0, 3))):
        groups.append(by_first(groups[-1] * 5 + random.integers(0, 3, size)))
    if whole or random.random() < 0.7:
        groups.append(np.arange(size))
    count = cells if whole else int(random.integers(1, cells + 1))
    entries = np.zeros((count, cells), dtype=np.int64)
    while np.linalg.matrix_rank(entries) < count:
        entries = random.integers(-4, 5, (count, cells))
    weights = [random.integers(0, 4, (own.max() + 1, count)) for own in groups]
    for query in range(count):
        depth = len(groups) - 1 if whole else int(random.integers(0, len(groups)))
        for own in weights[depth + 1 :]:
            own[:, query] = 0
        weights[depth][:, query] += 1
    return RowTrees(tuple(groups), tuple(weights), entries)


def written(trees: RowTrees) -> np.ndarray:
    rows = []
    for query, entries in enumerate(trees.entries):
        for group, weights in zip(trees.groups, trees.weights, strict=True):
            for node, weight in enumerate(weights[:, query]):
                if weight:
                    rows.append(np.kron(weight * (group == node), entries))
    return np.array(rows)


def matrices() -> Iterator[RowTrees]:
    for seed in range(12):
        yield random_row_trees(np.random.default_rng(seed), whole=seed % 3 == 0)


each = pytest.mark.parametrize("trees", list(matrices()), ids=lambda trees: trees.digest()[:24])


@each
def test_integers_are_those_of_the_matrix(trees: RowTrees) -> None:
    rows = written(trees)
    assert (trees.rows, trees.columns) == rows.shape
    assert np.array_equal(trees.written(), rows)
    assert trees.rank == np.linalg.matrix_rank(rows)
    assert (trees.max_entry, trees.max_row_sum) == (abs(rows).max(), abs(rows).sum(axis=1).max())
    counts = np.arange(trees.columns) + 2**55
    assert apply_kronecker([trees], counts, 2**62).values() == (rows.astype(object) @ counts).tolist()
    for power in (1, 2):
        sums = (abs(rows) ** power).sum(axis=0)
        assert trees.column_sums(power).tolist() == sums.tolist()
        assert trees.column_power_sum(power) == sums.max()


@each
def test_least_squares_are_those_of_the_matrix(trees: RowTrees) -> None:
    rows, random = written(trees).astype(float), np.random.default_rng(3)
    covariance = np.linalg.pinv(rows.T @ rows)
    queries, counts = rows.T @ random.normal(size=(len(rows), 3)), random.normal(size=(trees.columns, 2))
    np.testing.assert_allclose(queries.T @ trees.solve(rows @ counts), queries.T @ counts, atol=1e-10)
    np.testing.assert_allclose(
        queries.T @ trees.covariance_times(queries), queries.T @ covariance @ queries, rtol=1e-9, atol=1e-9
    )
    coefficients = trees.coefficients(queries)
    np.testing.assert_allclose(rows.T @ coefficients, queries, atol=1e-10)
    np.testing.assert_allclose(
        coefficients.T @ coefficients, queries.T @ covariance @ queries, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(trees.lost(queries), 0.0, atol=1e-18 * trees.max_entry**4)
    apart = counts - np.linalg.pinv(rows) @ (rows @ counts)
    assert ((trees.lost(counts) > 1e-12) == ((apart**2).sum(axis=0) > 1e-12)).all()
    outside = trees.unsupported
    if outside is None:
        assert trees.rank == trees.columns
    else:
        np.testing.assert_allclose(outside @ outside.T, np.eye(trees.columns - trees.rank), atol=1e-11)
        np.testing.assert_allclose(rows @ outside.T, 0.0, atol=1e-11)
    total = np.ones(trees.columns)
    assert trees.measures_total == np.allclose(np.linalg.pinv(rows) @ (rows @ total), total)


@each
def test_variances_and_losses_of_products(trees: RowTrees) -> None:
    rows, size = written(trees).astype(float), len(trees.groups[0])
    covariance, inside = np.linalg.pinv(rows.T @ rows), np.linalg.pinv(rows) @ rows
    cells = trees.entries.shape[1]
    for first in (Identity(), Total(), Prefix()):
        for second in (Identity(), Total(), Matrix(trees.entries.astype(float))):
            asked = np.kron(first.rows(size), second.rows(cells))
            pieces = [Piece(first, np.zeros(size)), Piece(second, np.zeros(cells))]
            lost = ((asked - asked @ inside) ** 2).sum(axis=1)
            assert (trees.lost_share(pieces) > 1e-9) == (lost.max() > 1e-9)
            if lost.max() < 1e-9:
                expected = np.einsum("ij,jk,ik->i", asked, covariance, asked)
                np.testing.assert_allclose(trees.variances(pieces).ravel(), expected, rtol=1e-8)


def test_groups_of_cells_have_equal_columns() -> None:
    trees = random_row_trees(np.random.default_rng(4), whole=True, cells=2)
    wide = trees.over_groups([np.array([1, 0, 1])])
    expected = written(trees).reshape(trees.rows, -1, 2)[:, :, [1, 0, 1]].reshape(trees.rows, -1)
    assert np.array_equal(written(wide), expected)
    assert wide.digest() != trees.digest()
    again = random_row_trees(np.random.default_rng(4), whole=True, cells=2)
    assert again.digest() == trees.digest()


def test_a_large_one_is_never_written_out() -> None:
    leaves = 20_000
    groups, ones = (np.arange(leaves) // 200, np.arange(leaves)), np.array([[1, 1], [0, 2]])
    weights = np.full((100, 2), 3), np.ones((leaves, 2), dtype=np.int64)
    trees = RowTrees(groups, weights, ones)
    with pytest.raises(mdp.errors.TooLargeError):
        trees.written()
    pieces = [Piece(Identity(), np.zeros(leaves)), Piece(Matrix(np.eye(2)[1:]), np.zeros(2))]
    np.testing.assert_allclose(trees.variances(pieces), (1 - 9 / (1 + 200 * 9)) / 4)
