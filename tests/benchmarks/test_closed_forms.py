"""Formulas of errors beside what they are formulas of."""

import math

import closed_forms
import numpy as np
import pytest

from matrixdp.exact import WalkMatrix
from matrixdp.selection.searches.walks import walk_for


def nodes(size: int) -> list[tuple[int, int]]:
    """Every node of a binary tree: where its values begin and end."""
    widths = [2**k for k in range(int(math.log2(size)) + 1)]
    return [(start, start + width) for width in widths for start in range(0, size, width)]


@pytest.mark.parametrize("size", [2, 8, 32])
def test_counters_are_sums_of_nodes_and_of_estimates_below_them(size: int):
    scale, plain, below = math.log2(size) + 1, [], []
    for length in range(1, size + 1):
        start, own = 0, [0.0, 0.0]
        while start < length:
            width = max(end for begin, end in nodes(size) if begin == start and end <= length) - start
            inside = [n for n in nodes(size) if start <= n[0] and n[1] <= start + width]
            rows = np.array([[float(a <= k < b) for k in range(start, start + width)] for a, b in inside])
            best = np.ones(width) @ np.linalg.inv(rows.T @ rows) @ np.ones(width)
            own, start = [own[0] + 1.0, own[1] + float(best)], start + width
        plain.append(2 * scale**2 * own[0])
        below.append(2 * scale**2 * own[1])
    assert closed_forms.binary_tree(size) == pytest.approx(math.sqrt(np.mean(plain)))
    assert closed_forms.from_below(size) == pytest.approx(math.sqrt(np.mean(below)))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_a_staircase_is_the_best_of_its_steps(epsilon: float):
    ratio, first, k = math.exp(-epsilon), np.linspace(0.01, 0.99, 981)[:, None], np.arange(100.0)
    high = (1.0 - ratio) / (2.0 * (first + ratio * (1.0 - first)))
    steps = ((k + first) ** 3 - k**3 + ratio * ((k + 1.0) ** 3 - (k + first) ** 3)) / 3.0
    variances = 2.0 * high[:, 0] * (steps @ ratio**k)
    assert closed_forms.staircase(epsilon) == pytest.approx(math.sqrt(variances.min()), rel=1e-5)


def test_one_walk_has_the_error_of_its_covariance():
    places = np.arange(24)
    ranges = (np.minimum.outer(places, places) + 1.0) * (24 - np.maximum.outer(places, places))
    for gram in (np.tri(24).T @ np.tri(24), ranges):
        walk = walk_for(gram).strategy
        assert isinstance(walk, WalkMatrix)
        values = np.linalg.inv(np.tri(24))  # of prefix sums
        covariance = 2.0 * values @ walk.noise_covariance @ values.T
        assert closed_forms.one_walk(gram) == pytest.approx(float((gram * covariance).sum()), rel=1e-6)
