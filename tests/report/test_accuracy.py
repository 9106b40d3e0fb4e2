"""Sensitivities and bounds beside what dense matrices give."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.report import accuracy
from matrixdp.report.accuracy import least_squared_error, workload_sensitivity
from matrixdp.testing.plugins import dense_queries

DOMAIN = mdp.Domain({"a": 3, "b": {"min": 0, "max": 6}, "c": ["x", "y"]})
WORKLOADS = [
    mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2])),
    mdp.Workload(DOMAIN, mdp.product(b="prefix"), mdp.product(a="identity", b="range"), mdp.marginals(1)),
    mdp.Workload(DOMAIN, mdp.product(b="suffix", c="identity"), mdp.pairwise("abs", ["a", "b"])),
    mdp.Workload(DOMAIN, mdp.product(b={"matrix": [[1, -2, 0, 0, 3, 0, 0.5]]}), mdp.product(b="prefix")),
    mdp.Workload(DOMAIN, mdp.product(b={"sliding": 3}), mdp.product(b={"ranges": {"low": [0, 2]}})),
    mdp.Workload(DOMAIN, mdp.product(a={"matrix": [[1, 2, 3]]}, c={"matrix": [[2, 1]]})),
]


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("workload", WORKLOADS)
def test_the_sensitivity_of_a_workload_is_its_largest_column(workload, noise, monkeypatch):
    matrix = np.vstack([dense_queries(group, DOMAIN) for group in workload])
    exact = (np.abs(matrix) ** noise.norm).sum(axis=0).max()
    found, whole = workload_sensitivity(workload, noise)
    assert whole
    assert found == pytest.approx(float(exact))
    monkeypatch.setattr(accuracy, "_CELLS", 0)
    least, whole = workload_sensitivity(workload, noise)
    assert not whole
    assert 0.5 * exact <= least <= exact * (1 + 1e-12)


def test_a_sensitivity_that_would_take_long_is_not_said(monkeypatch):
    monkeypatch.setattr(accuracy, "_VALUES", 2)
    monkeypatch.setattr(accuracy, "_ENTRIES", 10)
    assert workload_sensitivity(WORKLOADS[1], GAUSSIAN) is None


@pytest.mark.parametrize("workload", WORKLOADS)
def test_no_strategy_has_less_than_the_bound_of_a_group(workload):
    strategy = mdp.select(workload, noise="gaussian")
    for group in workload:
        bound = least_squared_error(DOMAIN, group, {})
        assert 0 < bound <= strategy.selection.analysis.group(group).total * (1 + 1e-9)
        alone = mdp.select(mdp.Workload(DOMAIN, accuracy.OneGroup(group)), noise="gaussian")
        assert bound <= alone.selection.total_squared_error * (1 + 1e-9)


def test_a_bound_that_would_take_long_is_not_computed():
    domain = mdp.Domain({"x": 501, "y": 501})
    prefixes, values = mdp.product(x="prefix").expand(domain) + mdp.marginals(2).expand(domain)
    known: dict = {}
    assert least_squared_error(domain, prefixes, known) is None
    assert least_squared_error(domain, values, known) == pytest.approx(501**2)
    (dense,) = mdp.dense(np.ones((1, 501)), ["x"]).expand(domain)
    assert least_squared_error(domain, dense, known) is None
    assert len(known) == 3
