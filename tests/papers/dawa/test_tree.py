"""GreedyH's tree with integer weights, against dense least squares."""

import numpy as np
import pytest

from matrixdp.papers.dawa.tree import greedy_tree


def rows(tree) -> np.ndarray:
    cells = np.arange(int(tree.stops[0]))
    inside = (tree.starts[:, None] <= cells) & (cells < tree.stops[:, None])
    return tree.weights[:, None] * inside


@pytest.mark.parametrize("buckets", [1, 2, 3, 7, 16])
@pytest.mark.parametrize("workload", ["prefix", "total", "identity"])
def test_estimates_are_least_squares(buckets: int, workload: str):
    random = np.random.default_rng(buckets)
    lengths = random.integers(1, 5, buckets)
    n = int(lengths.sum())
    queries = {"prefix": np.tri(n), "total": np.ones((1, n)), "identity": np.eye(n)}[workload]
    tree = greedy_tree(queries.T @ queries, lengths)
    matrix = rows(tree)
    counts = random.integers(0, 100, buckets)
    assert (tree.answers(counts) == matrix @ counts).all()
    assert tree.sensitivity == matrix.sum(axis=0).max() <= 2**14 + buckets
    assert tree.estimate((matrix @ counts).astype(float)) == pytest.approx(counts, abs=1e-6)
    measured = matrix @ counts + random.normal(0, 2.0**14, len(matrix))
    weighted = matrix[tree.weights > 0].astype(float)
    expected = np.linalg.lstsq(weighted, measured[tree.weights > 0], rcond=None)[0]
    # least squares of an ill-conditioned system: compare what the workload asks
    spread = np.repeat(np.eye(buckets) / lengths[:, None], lengths, axis=1).T
    asked = queries @ spread
    assert asked @ tree.estimate(measured) == pytest.approx(asked @ expected, rel=1e-6, abs=1e-4)


def test_every_bucket_is_determined():
    # nothing but the total is asked: the root has nearly all weight, and leaves keep some
    tree = greedy_tree(np.ones((8, 8)), np.ones(8, dtype=np.int64))
    assert tree.weights[0] > 16_000
    assert (tree.weights[tree.right == 0] >= 1).all()
