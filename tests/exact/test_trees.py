"""Trees of values are what their levels and weights say, without an array of values by values."""

from collections.abc import Iterator

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import TreeMatrix, apply_kronecker
from matrixdp.plans.axes import Piece
from matrixdp.queries.predicates import AllRanges, Identity, Matrix, Predicates, Prefix, Sets, Total


def numbered(codes: np.ndarray) -> np.ndarray:
    """Number codes by their first values."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def random_tree(random: np.random.Generator, *, told: bool, families: int = 0) -> TreeMatrix:
    """Return a ragged tree with levels that skip nodes, single children, several roots, unsorted values.

    Families of areas beside it divide the nodes of one of its levels, or all values.
    """
    size = int(random.integers(1, 13))
    levels = [np.arange(size)] if told else [numbered(random.integers(0, max(1, size // 2), size))]
    for _ in range(random.integers(0, 4)):
        nodes = int(levels[0].max()) + 1
        levels.insert(0, numbered(random.integers(0, max(1, nodes // 2), nodes)[levels[0]]))
    weights = [random.integers(0, 5, int(level.max()) + 1) for level in levels[:-1]]
    weights.append(random.integers(1, 5, int(levels[-1].max()) + 1))
    home, beside = random.choice([np.zeros_like(levels[-1]), *levels[:-1]]), []
    for _ in range(families):
        divided = random.integers(0, 4, int(levels[-1].max()) + 1)[levels[-1]]
        beside.append(numbered(4 * home + divided))
    across = tuple(random.integers(0, 5, int(own.max()) + 1) for own in beside)
    return TreeMatrix(tuple(levels), tuple(weights), tuple(beside), across)


def written(tree: TreeMatrix) -> np.ndarray:
    """Write a tree out, node by node."""
    rows = [
        [weight * (node == own) for node in group]
        for group, weights in zip(
            (*tree.groups, *tree.beside), (*tree.weights, *tree.beside_weights), strict=True
        )
        for own, weight in enumerate(weights)
        if weight
    ]
    return np.array(rows, dtype=np.int64)


def trees() -> Iterator[TreeMatrix]:
    random = np.random.default_rng(7)
    for place in range(60):
        yield random_tree(random, told=place % 3 > 0)
    for place in range(80):
        yield random_tree(random, told=place % 3 > 0, families=1 + place % 2)


every_tree = pytest.mark.parametrize("tree", list(trees()), ids=lambda tree: tree.digest()[:20])


@every_tree
def test_integers_are_those_of_the_matrix(tree: TreeMatrix) -> None:
    rows = written(tree)
    assert (tree.rows, tree.columns) == rows.shape
    assert np.array_equal(tree.written(), rows)
    assert tree.rank == np.linalg.matrix_rank(rows)
    assert tree.divisor == np.gcd.reduce(rows, axis=None)
    assert (tree.max_entry, tree.max_row_sum) == (rows.max(), rows.sum(axis=1).max())
    counts = np.arange(tree.columns * 3).reshape(-1, 3) + 2**55
    exact = apply_kronecker(
        [tree, tree.__class__((np.arange(3),), (np.ones(3, dtype=np.int64),))], counts, 2**62
    )
    assert exact.values() == (rows.astype(object) @ counts).ravel().tolist()
    for power in (1, 2):
        sums = (rows**power).sum(axis=0)
        assert tree.column_sums(power).tolist() == sums.tolist()
        assert tree.column_power_sum(power) == sums.max()
        factors = np.arange(1, tree.rows + 1)[:, None]
        mapped = apply_kronecker([tree.column_map(power)], factors[:, 0], int(factors.sum()))
        assert mapped.values() == (factors * rows**power).sum(axis=0).tolist()


@every_tree
def test_least_squares_are_those_of_the_matrix(tree: TreeMatrix) -> None:
    inverse = np.linalg.pinv(written(tree).astype(float))
    random = np.random.default_rng(3)
    answers, cells = random.normal(size=(tree.rows, 2)), random.normal(size=(tree.columns, 2))
    np.testing.assert_allclose(tree.solve(answers), inverse @ answers, atol=1e-11)
    np.testing.assert_allclose(tree.covariance(), inverse @ inverse.T, atol=1e-11)
    np.testing.assert_allclose(tree.covariance_times(cells), inverse @ (inverse.T @ cells), atol=1e-11)
    np.testing.assert_allclose(tree.coefficients(cells), inverse.T @ cells, atol=1e-11)
    apart = cells - inverse @ (written(tree) @ cells)
    np.testing.assert_allclose(tree.lost(cells), (apart**2).sum(axis=0), atol=1e-11)
    outside = tree.unsupported
    if outside is None:
        assert tree.rank == tree.columns
    else:
        np.testing.assert_allclose(outside @ outside.T, np.eye(tree.columns - tree.rank), atol=1e-11)
        np.testing.assert_allclose(written(tree) @ outside.T, 0.0, atol=1e-11)
    assert tree.measures_total


def sets_of(random: np.random.Generator, tree: TreeMatrix) -> Iterator[Predicates]:
    yield Identity()
    yield Total()
    yield Prefix()
    yield AllRanges()
    yield Matrix(random.normal(size=(3, tree.columns)))
    yield Sets(tuple(tuple(np.flatnonzero(random.random(tree.columns) < share)) for share in (0.0, 0.3, 0.8)))
    for group in (*tree.groups, *tree.beside):
        yield Sets(tuple(tuple(np.flatnonzero(group == node)) for node in range(group.max() + 1)))


@every_tree
@pytest.mark.parametrize("sparse", [True, False])
def test_variances_and_losses_of_queries(
    tree: TreeMatrix, sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, random = written(tree).astype(float), np.random.default_rng(5)
    inverse = np.linalg.pinv(rows)
    for name in ("trees", "matrices", "beside"):  # several blocks
        monkeypatch.setattr(f"matrixdp.exact.{name}._BLOCK", 1 + 3 * tree.columns)
    if not sparse:
        monkeypatch.setattr(Piece, "entries", lambda self: None)
    for sets in sets_of(random, tree):
        piece = Piece(sets, np.zeros(tree.columns))
        asked = sets.rows(tree.columns)
        found = tree.variances([piece])
        np.testing.assert_allclose(found, ((asked @ inverse) ** 2).sum(axis=1), rtol=1e-9, atol=1e-11)
        lost = ((asked - asked @ inverse @ rows) ** 2).sum(axis=1)
        np.testing.assert_allclose(tree.lost_share([piece]), (lost / piece.lengths).max(), atol=1e-11)
    each, below = (Piece(sets, np.zeros(tree.columns)) for sets in (Identity(), Prefix()))
    expected = np.einsum("ij,ij->i", inverse, np.tri(tree.columns) @ inverse)
    np.testing.assert_allclose(tree.covariances(each, below), expected, atol=1e-11)
    weights = random.dirichlet(np.ones(tree.columns))
    piece, pieces = Piece(Prefix(), weights), Prefix().rows(tree.columns)
    pieces = pieces - (pieces @ weights)[:, None]
    np.testing.assert_allclose(tree.variances([piece]), ((pieces @ inverse) ** 2).sum(axis=1), atol=1e-11)


def test_strong_sums_over_weak_ones_keep_their_digits() -> None:
    """A node that is all of its parent has the variance of both, however much more one of them says."""
    groups = np.array([0, 0, 0]), np.array([0, 0, 1]), np.array([0, 1, 2])
    tree = TreeMatrix(groups, (np.array([0]), np.array([1, 2**29]), np.array([1, 1, 1])))
    found = tree.variances([Piece(Identity(), np.zeros(3))])
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 1 / (2**58 + 1)], rtol=1e-12)
    y = np.array([[3.0], [7.0 * 2**29], [1.0], [1.0], [0.0]])
    np.testing.assert_allclose(tree.solve(y).ravel(), [4 / 3, 4 / 3, 7.0 / (1 + 2**-58)], rtol=1e-12)


def test_equal_trees_have_equal_digests() -> None:
    one, other = (random_tree(np.random.default_rng(seed), told=True) for seed in (1, 2))
    again = random_tree(np.random.default_rng(1), told=True)
    assert one.digest() == again.digest() != other.digest()


def test_a_large_tree_is_never_written_out() -> None:
    leaves = 60_000
    tree = TreeMatrix(
        (np.arange(leaves) // 200, np.arange(leaves)),
        (np.full(300, 3), np.ones(leaves, dtype=np.int64)),
    )
    with pytest.raises(mdp.errors.TooLargeError):
        tree.covariance()
    areas = Sets(tuple(tuple(range(first, first + 200)) for first in range(0, leaves, 200)))
    for sets, variance in ((Identity(), 1 - 9 / (1 + 200 * 9)), (areas, 200 / (1 + 200 * 9))):
        np.testing.assert_allclose(tree.variances([Piece(sets, np.zeros(leaves))]), variance)
