"""Trees over a grid are the matrices that they say, and their least squares is that of the matrix."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import GridTree

CASES = [
    GridTree((2, 3), 2, (1, 1, 2)),
    GridTree((5, 7), 2, (1, 0, 2, 3)),  # both ends cut, a level left out
    GridTree((9, 9), 3, (2, 1, 1)),  # no end cut
    GridTree((1, 6), 2, (1, 1, 1, 1)),
    GridTree((11, 13), 2, (3, 1, 2, 2, 5)),
    GridTree((4, 9), 7, (0, 1, 1)),
    GridTree((1, 1), 2, (3,)),
]


def nodes(tree: GridTree) -> np.ndarray:
    """Write the rectangles out, one by one."""
    rows = []
    for level, weight in enumerate(tree.weights):
        width = tree.branching ** (len(tree.weights) - 1 - level)
        for top in range(0, tree.sizes[0], width) if weight else ():
            for left in range(0, tree.sizes[1], width):
                row = np.zeros(tree.sizes)
                row[top : top + width, left : left + width] = weight
                rows.append(row.ravel())
    return np.array(rows)


@pytest.mark.parametrize("tree", CASES, ids=str)
def test_a_tree_is_its_rectangles(tree: GridTree):
    rows = nodes(tree)
    assert np.array_equal(tree.written(), rows)
    assert np.array_equal(tree.magnitudes(), rows)
    assert (tree.rows, tree.columns) == rows.shape
    assert tree.sensitivity == rows.sum(axis=0).max()
    assert tree.squared_sensitivity == (rows**2).sum(axis=0).max()
    assert tree.max_entry == rows.max()
    assert tree.max_row_sum == rows.sum(axis=1).max()


@pytest.mark.parametrize("tree", CASES, ids=str)
def test_its_least_squares_is_the_pseudo_inverse(tree: GridTree):
    rows = nodes(tree)
    inverse = np.linalg.pinv(rows)
    assert np.allclose(tree.covariance(), inverse @ inverse.T, atol=1e-12)
    answers, queries = np.random.default_rng(1).normal(size=(2, len(rows), 2))
    assert np.allclose(tree.solve(answers), inverse @ answers)
    assert np.allclose(tree.coefficients(queries[: tree.columns]), inverse.T @ queries[: tree.columns])
    first, second = (np.cov(np.random.default_rng(size).normal(size=(size, 30))) for size in tree.sizes)
    joint = np.kron(first, second)
    found = tree.structure.trace(np.atleast_2d(first), np.atleast_2d(second))
    assert found == pytest.approx(float(np.vdot(tree.covariance(), joint)))


def test_errors_of_pairs_of_predicates_follow_from_the_structure():
    domain = mdp.Domain({"a": range(5), "b": range(7)})
    workload = mdp.Workload(domain, mdp.product(a="prefix", b="range"))
    plan = mdp.select(workload, mechanism="quadtree", noise="laplace").selection.plan
    [group] = workload
    [part] = plan.parts
    queries = group.rows()
    expected = part.variance * np.einsum(
        "qi,ij,qj->q", queries, part.blocks[0].matrix.covariance(), queries, optimize=True
    )
    assert np.allclose(plan.analysis.variances(group), expected)
