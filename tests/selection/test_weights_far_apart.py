"""Weights and targets any factor apart: every query is supported; what costs nothing is had."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError, WorkloadError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.privacy import LeastBudget
from matrixdp.queries import Matrix, MatrixRows
from matrixdp.selection.auto import select
from matrixdp.strategy.strategy import meet_targets

DOMAIN = mdp.Domain({"a": 3, "b": 4, "c": 2})
CELLS = mdp.Domain({"a": 4})


def lopsided(factor: float) -> mdp.Workload:
    return mdp.Workload(
        DOMAIN, mdp.marginals([["a"]], weight=factor, name="big"), mdp.marginals([["b", "c"]], name="small")
    )


def largest(selection) -> list[float]:
    return [float(selection.analysis.variances(group).max()) for group in selection.workload]


@pytest.mark.parametrize("factor", [1e8, 1e10, 1e12, 1e20])
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_cells_that_cost_nothing_have_the_least_error(noise, factor):
    workload = mdp.Workload(CELLS, mdp.product(a="identity", weights=[1, 1, 1, factor]))
    found = select(workload, noise=noise)
    np.testing.assert_allclose(found.analysis.variances(workload.groups[0]), noise.variance_factor, rtol=1e-4)
    assert found.certificate.gap < 1e-6


@pytest.mark.parametrize("objective", ["sum", "max"])
@pytest.mark.parametrize("factor", [1e8, 1e12, 1e16])
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_no_query_is_lost(noise, factor, objective):
    big, small = largest(select(lopsided(factor), noise=noise, objective=objective))
    # alone, a marginal of three cells has variance 1 under Gaussian noise and 2 under Laplace noise
    assert noise.variance_factor * (1 - 1e-9) <= big <= noise.variance_factor * 1.01
    assert small <= big * factor


@pytest.mark.parametrize("mechanism", ["residual", "dense", "generalized-marginals"])
def test_no_query_is_lost_by_a_mechanism_asked_for(mechanism):
    big, _ = largest(select(lopsided(1e16), noise=GAUSSIAN, mechanism=mechanism))
    assert big <= 1.001


def test_targets_far_apart_take_little_more_than_the_strict_one():
    workload = lopsided(1.0)
    targets = {"big": 1.0, "small": 10_000.0}
    strategy = mdp.select(workload, targets=targets)
    assert meet_targets(strategy, targets, LeastBudget("rho")).rho == pytest.approx(0.5, rel=1e-5)
    assert strategy.selection.certificate.gap < 1e-3


def test_entries_further_apart_than_digits_are_refused_before_anything_is_spent():
    workload = mdp.Workload(CELLS, mdp.dense(np.diag([1.0, 1.0, 1.0, 1e-12]), ["a"]))
    with pytest.raises(WorkloadError) as refused:
        select(workload, noise=GAUSSIAN)
    assert refused.value.code == "out-of-range"


def test_a_strategy_that_lost_a_query_is_refused_before_the_debit(tmp_path: Path):
    strategy = mdp.select(mdp.Workload(DOMAIN, mdp.marginals(1)))
    plan = strategy.selection.plan
    lost = replace(strategy, selection=replace(strategy.selection, plan=replace(plan, parts=plan.parts[:-1])))
    ledger = mdp.Ledger.create(tmp_path / "ledger", dataset="people", total=mdp.Budget(rho=1))
    with pytest.raises(UnsupportedQueryError):
        lost.measure({"a": [0], "b": [0], "c": [0]}, mdp.Budget(rho=0.5), ledger=ledger)
    assert not ledger.entries


@pytest.mark.parametrize("scale", [1e-200, 1e-51, 1e51, 1e200])
def test_entries_whose_squares_are_no_numbers_are_refused(scale):
    for made in (Matrix, MatrixRows):
        with pytest.raises(WorkloadError) as refused:
            made(np.tri(4) * scale)
        assert refused.value.code == "out-of-range"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scale", [1e-50, 1e50])
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_the_scale_of_queries_is_only_a_scale(noise, scale):
    ones = select(mdp.Workload(CELLS, mdp.dense(np.tri(4), ["a"])), noise=noise)
    scaled = select(mdp.Workload(CELLS, mdp.dense(np.tri(4) * scale, ["a"])), noise=noise)
    weighed = select(mdp.Workload(CELLS, mdp.dense(np.tri(4), ["a"], weight=scale**5)), noise=noise)
    for found, factor in ((scaled, scale**2), (weighed, scale**5)):
        least = ones.weighted_squared_error
        assert found.weighted_squared_error / factor == pytest.approx(least, rel=1e-3)
