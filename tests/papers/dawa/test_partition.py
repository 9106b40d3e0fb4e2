"""Costs of buckets, the least partition, and GreedyH's tree, against brute force and least squares."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from matrixdp.papers.dawa.dawa import cost_change
from matrixdp.papers.dawa.partition import bucket_lengths, deviations, least_cost_partition
from matrixdp.papers.dawa.tree import greedy_tree


def exact_cost(cells: list[int]) -> Fraction:
    mean = Fraction(sum(cells), len(cells))
    return sum((abs(x - mean) for x in cells), Fraction(0))


@given(st.lists(st.integers(0, 2**33), min_size=1, max_size=20))
def test_costs_are_exact(counts: list[int]):
    for length in bucket_lengths(len(counts)):
        found = deviations(np.array(counts), length).tolist()
        expected = [exact_cost(counts[i : i + length]) for i in range(len(counts) - length + 1)]
        assert [Fraction(value, length) for value in found] == expected


def test_long_windows_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch):
    counts = np.random.default_rng(0).integers(0, 1000, 50)
    whole = deviations(counts, 8)
    monkeypatch.setattr("matrixdp.papers.dawa.partition._CHUNK", 24)
    assert (deviations(counts, 8) == whole).all()


@pytest.mark.parametrize("length", [1, 2, 4, 8])
def test_the_sensitivity_of_a_cost_holds_and_is_attained(length: int):
    """All neighbours of all tables with few records in a bucket."""
    most = 3 if length < 8 else 1
    largest = Fraction(0)
    for table in itertools.product(range(most + 1), repeat=length):
        cost = exact_cost(list(table))
        for cell in range(length):
            more = list(table)
            more[cell] += 1
            largest = max(largest, abs(exact_cost(more) - cost))
    assert largest == 2 - Fraction(2, length) == cost_change(length)


def partitions(cells: int) -> list[list[int]]:
    """All partitions into buckets of lengths that are powers of two, as edges."""
    if cells == 0:
        return [[0]]
    return [
        [*edges, cells]
        for length in bucket_lengths(cells)
        if length <= cells
        for edges in partitions(cells - length)
    ]


@settings(max_examples=60)
@given(st.integers(1, 9), st.data())
def test_the_partition_is_the_least_of_all_and_ties_are_broken_alike(cells: int, data: st.DataObject):
    costs = [
        np.array(data.draw(st.lists(st.integers(-3, 3), min_size=cells - m + 1, max_size=cells - m + 1)))
        for m in bucket_lengths(cells)
    ]

    def rank(edges: list[int]) -> tuple[int, list[int]]:
        lengths = np.diff(edges).tolist()
        total = sum(
            int(costs[length.bit_length() - 1][edge]) for length, edge in zip(lengths, edges, strict=False)
        )
        return total, lengths[::-1]

    assert least_cost_partition(costs).edges.tolist() == min(partitions(cells), key=rank)


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
