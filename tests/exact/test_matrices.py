"""Measured matrices are what they say, with the least squares of their entries and a rank that is proved."""

import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import NumericalError
from matrixdp.exact import (
    CenteredMatrix,
    DeficientMatrix,
    GridTree,
    IdentityMatrix,
    IntegerMatrix,
    MeasuredMatrix,
    MergedMatrix,
    RangeMatrix,
)
from matrixdp.exact.structured import over_groups
from matrixdp.plans import Block, Part

RANDOM = np.random.default_rng(1)
WEAK = np.linalg.qr(np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -2.0]]))[0].T
MERGED = [
    MergedMatrix(
        IntegerMatrix(RANDOM.integers(-9, 9, (8, 6)) + 20 * np.eye(8, 6, dtype=np.int64)),
        (np.array([0, 1, 1, 0, 2]), np.array([1, 0, 0])),
    ),
    MergedMatrix(
        IntegerMatrix(np.array([[9, 9, 9], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), WEAK), (np.array([2, 0, 1, 2]),)
    ),
    MergedMatrix(  # every value is told apart, one direction weakly
        IntegerMatrix(np.array([[9, 9, 9], [1, 0, 0], [0, 1, 0], [0, 0, 1]]), WEAK),
        (np.array([2, 0, 1, 2, 1, 1]),),
        np.array([0, 4, 3]),
    ),
    MergedMatrix(  # the values of one group are, those of the other are not
        IntegerMatrix(np.array([[7, -2], [1, 3]])), (np.array([0, 1, 1, 0, 1]),), np.array([5, 0])
    ),
    MergedMatrix(IdentityMatrix(3), (np.array([0, 1, 1, 2, 1]),)),
    MergedMatrix(CenteredMatrix(3), (np.array([0, 1, 0, 2, 1]),)),
    MergedMatrix(
        DeficientMatrix(np.array([[1, 1, 1, 0], [0, 0, 1, 1]])), (np.array([0, 1]), np.array([1, 0, 1]))
    ),
]
TREES = [
    GridTree((2, 3), 2, (1, 1, 2)),
    GridTree((5, 7), 2, (1, 0, 2, 3)),  # both ends cut, a level left out
    GridTree((9, 9), 3, (2, 1, 1)),  # no end cut
    GridTree((1, 6), 2, (1, 1, 1, 1)),
    GridTree((11, 13), 2, (3, 1, 2, 2, 5)),
    GridTree((4, 9), 7, (0, 1, 1)),
    GridTree((1, 1), 2, (3,)),
]
MATRICES: list[MeasuredMatrix] = [
    IdentityMatrix(4),
    CenteredMatrix(4),
    RangeMatrix(4),
    IntegerMatrix(np.array([[7, 1, 0], [-2, 9, 4], [0, 0, 5]])),
    IntegerMatrix(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1], [2, -3, 0]])),
    DeficientMatrix(np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]])),
    DeficientMatrix(np.array([[1, 2, 3]])),
    *MERGED,
    *TREES,
]
every_matrix = pytest.mark.parametrize("matrix", MATRICES, ids=lambda one: type(one).__name__)


def rows_of(matrix: Any) -> np.ndarray:
    """Write a matrix out by its definition: rectangle by rectangle, or cell by cell."""
    if isinstance(matrix, IdentityMatrix | CenteredMatrix):
        whole = np.eye(matrix.size, dtype=np.int64)
        return whole if isinstance(matrix, IdentityMatrix) else matrix.size * whole - 1
    if isinstance(matrix, RangeMatrix):
        return rows_of(CenteredMatrix(matrix.size + 1))[:, 1:]
    if isinstance(matrix, MergedMatrix):
        places = [
            [group[value] for group, value in zip(matrix.groups, cell, strict=True)]
            for cell in np.ndindex(*matrix.sizes)
        ]
        between = rows_of(matrix.matrix)[:, np.ravel_multi_index(np.transpose(places), matrix.merged_sizes)]
        if matrix.within is None:
            return between
        within = []
        for value, group in enumerate(matrix.groups[0]):
            row = -(matrix.groups[0] == group).astype(np.int64)
            row[value] -= row.sum()
            within += [matrix.within[group] * row] if matrix.within[group] else []
        return np.vstack([between, *within])
    if not isinstance(matrix, GridTree):
        return matrix.entries
    rows = []
    for level, weight in enumerate(matrix.weights):
        width = matrix.branching ** (len(matrix.weights) - 1 - level)
        for top in range(0, matrix.sizes[0], width) if weight else ():
            for left in range(0, matrix.sizes[1], width):
                row = np.zeros(matrix.sizes)
                row[top : top + width, left : left + width] = weight
                rows.append(row.ravel())
    return np.array(rows)


@every_matrix
def test_it_is_the_matrix_that_it_says(matrix: Any):
    rows = rows_of(matrix)
    size, magnitudes = np.abs(rows), matrix.magnitudes()
    assert np.array_equal(matrix.written(), rows)
    assert (matrix.rows, matrix.columns) == rows.shape
    assert matrix.sensitivity == size.sum(axis=0).max()
    assert matrix.squared_sensitivity == (rows**2).sum(axis=0).max()
    more = 0 if not isinstance(matrix, MergedMatrix) or matrix.within is None else matrix.within.max()
    least = size.max() + (matrix.residual or isinstance(matrix, RangeMatrix))
    assert least <= matrix.max_entry <= least + more
    assert matrix.max_row_sum >= size.sum(axis=1).max()
    if not isinstance(matrix, CenteredMatrix | RangeMatrix | MergedMatrix):
        assert matrix.max_row_sum == size.sum(axis=1).max()
    assert matrix.rank == np.linalg.matrix_rank(rows)
    if isinstance(matrix, MergedMatrix):  # equal columns stand for one another
        size, magnitudes = np.unique(size, axis=1), np.unique(magnitudes, axis=1)
    assert np.array_equal(magnitudes, size)


@every_matrix
def test_its_structure_is_that_of_its_gram_matrix(matrix: Any):
    rows = rows_of(matrix).astype(float)
    gram, size = rows.T @ rows, matrix.columns
    np.testing.assert_array_equal(matrix.gram(), gram)
    inverse = np.linalg.pinv(gram)
    for known, whole in ((matrix.symmetric_gram, gram), (matrix.symmetric_covariance, inverse)):
        if known is not None:
            np.testing.assert_allclose(known[0] * np.eye(size) + known[1], whole, atol=1e-14)


def without_means(matrix: Any) -> np.ndarray:
    """What is left of queries (as rows) without their means: over groups of values of those of the groups."""
    weights = np.full(matrix.columns, 1.0 / matrix.columns)
    if isinstance(matrix, MergedMatrix):
        weights = 1.0 / np.bincount(matrix.groups[0])[matrix.groups[0]] / matrix.matrix.columns
    return np.eye(matrix.columns) - np.outer(weights, np.ones(matrix.columns))


@every_matrix
def test_what_may_be_asked_is_measured(matrix: Any):
    rows, outside = rows_of(matrix), matrix.unsupported
    outside = np.zeros((0, matrix.columns)) if outside is None else outside
    np.testing.assert_allclose(outside @ outside.T, np.eye(len(outside)), atol=1e-12)
    asked = np.eye(matrix.columns) - outside.T @ outside
    if matrix.residual:
        asked = asked @ without_means(matrix)
    assert matrix.support_rank == np.linalg.matrix_rank(asked)
    np.testing.assert_allclose(asked @ np.linalg.pinv(rows) @ rows, asked, atol=1e-12)
    assert matrix.measures_total == bool(abs(asked.sum(axis=0) - 1.0).max() < 1e-6)
    if isinstance(matrix, DeficientMatrix):  # of others by these rows, or for merged values by a share
        queries = np.random.default_rng(3).normal(size=(matrix.columns, 2))
        lost = ((outside @ queries) ** 2).sum(axis=0)
        np.testing.assert_allclose(matrix.lost(queries), lost, atol=1e-12)
    weak = np.zeros((0, matrix.columns)) if matrix.outside is None else matrix.outside
    assert np.linalg.matrix_rank(rows @ weak.T, tol=1e-9) == matrix.rank - matrix.support_rank


@every_matrix
def test_its_least_squares_is_the_pseudo_inverse(matrix: Any):
    inverse, kept = np.linalg.pinv(rows_of(matrix)), np.eye(matrix.columns)
    if matrix.residual:  # of queries whose means are removed
        kept = without_means(matrix)
    np.testing.assert_allclose(
        kept @ matrix.covariance() @ kept.T, kept @ inverse @ inverse.T @ kept.T, atol=1e-14
    )
    np.testing.assert_allclose(kept @ matrix.solve(np.eye(matrix.rows)), kept @ inverse, atol=1e-14)
    queries = kept.T @ np.random.default_rng(2).normal(size=(matrix.columns, 2))
    np.testing.assert_allclose(matrix.coefficients(queries), inverse.T @ queries, atol=1e-12)
    covariances = queries.T @ inverse @ inverse.T @ queries
    np.testing.assert_allclose(queries.T @ matrix.covariance_times(queries), covariances, atol=1e-12)


@every_matrix
@pytest.mark.parametrize("power", [1, 2])
def test_numbers_of_rows_are_summed_over_columns(matrix: Any, power: int):
    rows = np.abs(rows_of(matrix)) ** power
    numbers, columns = np.arange(1.0, 1 + len(rows)), matrix.column_map(power)
    assert (columns.max_entry, columns.max_row_sum) == (rows.max(), rows.sum(axis=0).max())
    assert set(columns.multiply(numbers[:, None]).ravel()) == set(numbers @ rows)


def test_matrices_are_told_apart():
    known = [one.digest() for one in (*MATRICES, IntegerMatrix(rows_of(MERGED[1].matrix)))]
    assert len(set(known)) == len(known)


@every_matrix
def test_groups_of_its_values_share_columns(matrix: Any):
    groups = [np.append(0, np.arange(matrix.columns))]
    found = over_groups(matrix, groups)
    np.testing.assert_array_equal(found.written(), rows_of(matrix)[:, groups[0]])
    assert isinstance(matrix, MergedMatrix) or found.support_rank <= matrix.support_rank


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_the_trace_of_a_tree_is_that_of_its_covariance(tree: GridTree):
    first, second = (np.cov(np.random.default_rng(size).normal(size=(size, 30))) for size in tree.sizes)
    found = tree.structure.trace(np.atleast_2d(first), np.atleast_2d(second))
    assert found == pytest.approx(float(np.vdot(tree.covariance(), np.kron(first, second))))


def test_errors_of_pairs_of_predicates_follow_from_the_structure():
    domain = mdp.Domain({"a": range(5), "b": range(7)})
    workload = mdp.Workload(domain, mdp.product(a="prefix", b="range"))
    plan = mdp.select(workload, mechanism="quadtree", noise="laplace").selection.plan
    ([group], [part]) = workload, plan.parts
    queries, covariance = group.rows(), part.blocks[0].matrix.covariance()
    expected = part.variance * np.einsum("qi,ij,qj->q", queries, covariance, queries, optimize=True)
    assert np.allclose(plan.analysis.variances(group), expected)


def test_multiplied_rows_over_many_cells_take_no_memory_for_them():
    sizes = (100, 100, 100, 10**6)
    merged = MergedMatrix(IntegerMatrix(np.array([[1], [2]])), tuple(np.zeros(n, int) for n in sizes))
    part = Part(tuple("abcd"), (Block(tuple("abcd"), merged),), 1.0, np.array([3, 5]))
    assert (part.column_power_sum(1), part.column_power_sum(2)) == (13, 109)


@pytest.mark.parametrize("merged", MERGED)
def test_what_tells_cells_apart_is_outside(merged: MergedMatrix):
    outside = merged.unsupported
    assert outside is not None
    np.testing.assert_allclose(outside @ outside.T, np.eye(len(outside)), atol=1e-12)
    weak = 0 if merged.matrix.outside is None else len(merged.matrix.outside)
    assert len(outside) == merged.columns - merged.rank - merged.residual + weak
    queries = np.random.default_rng(3).normal(size=(merged.columns, 2))
    apart = merged.apart(queries)
    np.testing.assert_allclose(merged.means(apart), 0.0, atol=1e-12)
    np.testing.assert_allclose(outside.T @ (outside @ apart), apart, atol=1e-12)
    if not weak and merged.matrix.unsupported is None:
        np.testing.assert_allclose(outside.T @ (outside @ queries), apart, atol=1e-12)


def test_a_full_rank_leaves_nothing_outside():
    assert MergedMatrix(IntegerMatrix(np.eye(2, dtype=np.int64)), (np.array([1, 0]),)).unsupported is None
    assert DeficientMatrix(np.array([[1, 1], [0, 1]])).unsupported is None
    assert DeficientMatrix(np.array([[1, 1], [2, 2]])).unsupported.shape == (1, 2)


# Few rows above a multiple of the identity: their least squares without a factorization of all cells.

CELLS = 6
FEW = np.random.default_rng(3).integers(1, 9, size=(2, CELLS))
#: Rows that say much more than the identity below them, alike, nearly alike and not.
LARGE = 2**12 * FEW
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
@pytest.mark.parametrize("above", [FEW, LARGE, ALIKE, NEARLY, 2**13 * ALIKE, 2**13 * NEARLY])
def test_errors_are_those_of_the_matrix_however_alike_the_rows_above(above: np.ndarray, weight: int):
    entries = np.vstack([above, weight * np.eye(CELLS, dtype=np.int64)])
    matrix = IntegerMatrix(entries)
    exact = exact_covariance(entries)
    assert np.abs(matrix.covariance() - exact).max() < 1e-7 * np.abs(exact).max()
    assert np.allclose(matrix.solve(np.eye(len(entries))) @ entries, np.eye(CELLS), atol=1e-6)


@pytest.mark.parametrize("above", [LARGE[:1], ALIKE], ids=["one", "alike"])
def test_a_row_that_says_much_has_a_small_error(above: np.ndarray):
    covariance = IntegerMatrix(np.vstack([above, 40 * np.eye(CELLS, dtype=np.int64)])).covariance()
    row = above[0].astype(float)
    variance = row @ covariance @ row / (row @ row)
    assert variance == pytest.approx(1 / (40**2 + len(above) * (row @ row)), rel=1e-6)


def test_values_that_are_measured_alike_are_told():
    whole = np.eye(5, dtype=np.int64)
    alike = IntegerMatrix(np.vstack([np.full((1, 5), 3), 2 * whole]))
    own, shared = alike.symmetric_covariance
    np.testing.assert_allclose(alike.covariance(), own * np.eye(5) + shared, atol=1e-15)
    entries = 7 * whole - 1
    entries[1, 2] = entries[2, 1] = -2
    ring = 3 * whole + np.roll(whole, 1, axis=0)
    # sums so precise that what is told of single values would be rounding errors; products past 2^53
    sums, large = np.vstack([np.full((1, 5), 10**6), whole]), 10**8 * whole + 1
    # one value tells the same of all others, but they do not of each other
    first = np.array([[1, 1, 1], [2, 0, 0], [0, 1, 0], [0, 0, 2]])
    # products that differ by one, which floating point does not tell apart
    rounded = np.array([[2**30, 0], [0, 2**30], [0, 1]])
    for other in (entries, ring, sums, large, first, rounded, np.ones((1, 1), dtype=np.int64)):
        assert IntegerMatrix(other).symmetric_covariance is None


# What a matrix is refused for, and how sure its rank must be.


@pytest.mark.parametrize("kind", [IntegerMatrix, DeficientMatrix])
def test_entries_are_small_enough_for_exact_sensitivities(kind):
    with pytest.raises(NumericalError, match="1 rows has an entry of 2147483648, too large"):
        kind(np.array([[-(2**31)]]))
    assert kind(np.array([[1 - 2**31]])).squared_sensitivity == (2**31 - 1) ** 2


def test_a_singular_matrix_is_refused_without_settings_that_all_threads_share(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(warnings, "catch_warnings", None)
        with pytest.raises(NumericalError, match="singular after rounding"):
            IntegerMatrix(np.array([[1, 1], [1, 1]]))


@pytest.mark.parametrize("power", range(20, 30))
def test_a_proof_of_rank_leaves_room_for_rounding(power):
    """I - C B below 1/2 in norm, rounding included: of two determinants near 1 the worse is refused."""
    large = 2**power
    matrix = np.array([[large, large - 1], [large + 1, large]])
    rounding = 2 * 2 * np.finfo(float).eps * 4 * large * large
    if rounding < 0.1:
        inverse = IntegerMatrix(matrix).solve(np.eye(2))
        assert np.abs(inverse @ matrix - np.eye(2)).sum(axis=1).max() < 0.5
    elif rounding > 0.5:
        with pytest.raises(NumericalError, match=r"could not be proved nonsingular|singular after rounding"):
            IntegerMatrix(matrix)


def test_a_rank_is_proved_by_what_is_near_a_left_inverse(monkeypatch):
    entries = np.array([[900, 400, 0], [-300, 800, 100], [0, 200, 700]])
    inverse = np.linalg.inv(entries)
    solved = []
    solve = IntegerMatrix.solve
    monkeypatch.setattr(IntegerMatrix, "solve", lambda self, b: solved.append(1) or solve(self, b))
    IntegerMatrix(entries, near=inverse * [[1.1], [0.9], [1.0]])
    assert not solved
    # what is far from one proves nothing, and does no harm
    for far in (3 * inverse, 0 * inverse, inverse[::-1]):
        IntegerMatrix(entries, near=far)
        assert solved.pop()
    with pytest.raises(NumericalError, match="singular after rounding"):
        IntegerMatrix(np.ones((3, 3), dtype=np.int64), near=inverse)
