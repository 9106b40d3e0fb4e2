"""Intervals under Laplace noise: exact where they can be, bounded elsewhere, and said so."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.intervals import Intervals
from matrixdp.noise import GAUSSIAN, LAPLACE, Tails
from matrixdp.noise.laplace import combination_quantiles, largest_quantile
from matrixdp.statistics.intervals import EVERY

DOMAIN = mdp.Domain({"a": 4, "b": 3, "c": 30})
TABLE = {"a": np.arange(400) % 4, "b": np.arange(400) % 3, "c": np.arange(400) % 30}
WORKLOAD = mdp.Workload(DOMAIN, mdp.product(a="prefix", b="identity"), mdp.marginals([0, 1], ["a", "b"]))


@pytest.mark.parametrize("mechanism", ["opt-0", "opt-kron", "opt-plus", "querysmasher", "opt-m"])
def test_multipliers_are_those_of_the_linear_map(mechanism):
    plan = mdp.select(WORKLOAD, noise="laplace", mechanism=mechanism).selection.plan
    intervals = Intervals(plan.analysis, Tails(LAPLACE), 0.95)
    counts = [int(np.prod(part.shape)) for part in plan.parts]
    units = [np.split(unit, np.cumsum(counts)[:-1]) for unit in np.eye(sum(counts))]
    noise = np.repeat([part.variance for part in plan.parts], counts)
    for group in WORKLOAD:
        columns = np.array([plan.analysis.estimates(unit).answers(group) for unit in units])
        squares = columns.T**2 * noise
        expected = combination_quantiles(squares / squares.sum(axis=1, keepdims=True), 0.95)
        np.testing.assert_allclose(intervals.multipliers((1.0, group, EVERY)), expected, rtol=1e-5)
    assert not intervals.bounded


def test_large_groups_get_the_bound():
    workload = mdp.Workload(DOMAIN, mdp.product(a="range", b="range", c="range"))
    strategy = mdp.select(workload, noise="laplace", mechanism="opt-kron")
    intervals = Intervals(strategy.selection.analysis, Tails(LAPLACE), 0.9)
    assert intervals.multipliers((1.0, workload.groups[0], EVERY)) == largest_quantile(0.9)
    assert intervals.bounded


def test_gaussian_intervals_are_as_ever():
    strategy = mdp.select(WORKLOAD)
    intervals = Intervals(strategy.selection.analysis, Tails(GAUSSIAN), 0.95)
    assert intervals.multipliers((1.0, WORKLOAD.groups[0], EVERY)) == pytest.approx(1.959964, abs=1e-6)
    assert intervals.description == "pointwise: each holds the true answer with this confidence, taken alone"


@pytest.mark.slow
def test_intervals_cover_the_truth():
    """Coverage over 80 seeded releases of 30 answers; 6 standard deviations as if 80 were independent."""
    strategy = mdp.select(WORKLOAD, noise="laplace", mechanism="opt-kron")
    truth = np.zeros((4, 3))
    np.add.at(truth, (TABLE["a"], TABLE["b"]), 1)
    exact = np.concatenate([np.cumsum(truth, axis=0).ravel(), [400], truth.sum(axis=1), truth.sum(axis=0)])
    inside = []
    for seed in range(80):
        release = strategy.measure(TABLE, mdp.Budget(epsilon=1), seed_not_private=seed).reconstruct()
        answers = release.answers
        lower, upper = (answers.column(name).to_numpy() for name in ("lower", "upper"))
        inside.append(((lower <= exact) & (exact <= upper)).mean())
    assert "Laplace" in release.intervals.description
    assert abs(np.mean(inside) - 0.95) < 6 * np.sqrt(0.95 * 0.05 / 80)
