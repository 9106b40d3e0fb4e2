"""Target errors: met by the least budget, exactly, and bounded from below."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.privacy import LeastBudget
from matrixdp.selection.auto import select
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.targets import targeted
from matrixdp.strategy.strategy import meet_targets

DOMAIN = mdp.Domain({"sex": ["female", "male"], "age": range(12), "code": 5})
WORKLOAD = mdp.Workload(
    DOMAIN,
    mdp.marginals([0, 1], name="small"),
    mdp.product(age="prefix", weight=100.0, name="age CDF"),
    mdp.product(sex="identity", code="identity", weights=np.arange(1.0, 11.0), name="table"),
)
TARGETS = {"small": 4.0, "age CDF": 6.0, "table": 10.0}
SHORT = mdp.Workload(mdp.Domain({"a": range(6)}), mdp.product(a="prefix", name="a"), mdp.marginals(0))


@cache
def aimed(noise="gaussian", mechanism="auto"):
    return mdp.select(WORKLOAD, noise=noise, mechanism=mechanism, targets=TARGETS)


def largest(strategy, budget):
    scale = strategy.selection.noise.error_scale(budget)
    analysis = strategy.selection.analysis
    return [math.sqrt(float(analysis.variances(group).max()) / scale) for group in strategy.workload]


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("kind", ["rho", "mu", "epsilon"])
def test_targets_are_met_and_the_tightest_exactly(noise, kind):
    delta = 1e-6 if (noise, kind) == (GAUSSIAN, "epsilon") else None
    strategy = aimed(noise, "generalized-marginals" if noise is LAPLACE else "residual")
    budget = strategy.least_budget(kind, delta=delta)
    targets = [4.0, 4.0, 4.0, 4.0, 6.0, 10.0]
    ratios = [found / target for found, target in zip(largest(strategy, budget), targets, strict=True)]
    assert len(WORKLOAD) == len(targets)
    # six significant digits, rounded up
    assert 1 - 2e-5 < max(ratios) <= 1.0
    assert (kind == "epsilon" and delta is None) == (budget.kind == "pure")


def test_the_least_budget_is_below_that_of_the_sum_and_above_its_bound():
    strategy, plain = aimed(), mdp.select(WORKLOAD, noise="gaussian")
    least = strategy.least_budget("mu")
    assert float(least.mu) < 0.95 * float(plain.least_budget("mu", targets=TARGETS).mu)
    # no strategy meets the targets with a mu below the root of the bound
    bound = strategy.certificate.lower_bound
    assert bound is not None
    assert math.sqrt(bound) <= float(least.mu) <= 1.01 * math.sqrt(bound)


def test_weights_of_the_workload_have_no_influence():
    even = mdp.Workload(
        DOMAIN,
        mdp.marginals([0, 1], name="small"),
        mdp.product(age="prefix", name="age CDF"),
        mdp.product(sex="identity", code="identity", name="table"),
    )
    least = mdp.select(even, noise="gaussian", targets=TARGETS).least_budget("mu")
    assert float(least.mu) == pytest.approx(float(aimed().least_budget("mu").mu), rel=1e-6)


def test_groups_without_a_target_are_loose_and_all_stands_for_them():
    weights = [group.weight for group in targeted(WORKLOAD, {"age CDF": 2.0})]
    assert weights[4] == 0.25
    assert {round(w, 12) for w in (*weights[:4], weights[5])} == {1 / (LIMITS.other_groups * 2.0) ** 2}
    weights = [group.weight for group in targeted(WORKLOAD, {"age CDF": 2.0, "all": 5.0})]
    assert weights[0] == 0.04
    assert weights[4] == 0.25


def test_one_target_alone_is_the_objective_max():
    workload = mdp.Workload(mdp.Domain({"age": range(16)}), mdp.product(age="prefix", name="CDF"))
    alone = select(workload, targets={"CDF": 3.0}, noise=GAUSSIAN)
    plain = select(workload, objective="max", noise=GAUSSIAN)
    assert alone.certificate.loss == pytest.approx(plain.certificate.loss / 9.0, rel=1e-9)


def test_a_limit_is_not_exceeded():
    strategy = aimed()
    least = strategy.least_budget("rho")
    enough = mdp.Budget(rho=2 * float(least.rho))
    assert meet_targets(strategy, TARGETS, LeastBudget.within(enough)) == least
    short = mdp.Budget(rho=0.5 * float(least.rho))
    with pytest.raises(mdp.PrivacyError, match=r"targets 1\.41\d* times as large"):
        meet_targets(strategy, TARGETS, LeastBudget.within(short))


def test_the_noise_of_an_approximate_budget_is_that_of_less_epsilon():
    reference = mdp.Budget(epsilon=1, delta=1e-6)
    strategy = mdp.select(SHORT, budget=reference, mechanism="opt-0", targets={"a": 3.0})
    least = {
        noise: mdp.select(SHORT, noise=noise.name, mechanism="opt-0", targets={"a": 3.0}).least_budget(
            "epsilon", delta=1e-6
        )
        for noise in (GAUSSIAN, LAPLACE)
    }
    assert strategy.noise == min(least, key=lambda noise: float(least[noise].epsilon)).name
    assert "less epsilon" in strategy.noise_reason


def test_saved_targets_come_back(tmp_path):
    strategy = aimed("gaussian", "residual")
    strategy.save(tmp_path / "strategy.mdp")
    again = mdp.Strategy.load(tmp_path / "strategy.mdp")
    assert again.selection.targets == TARGETS
    assert again.least_budget("rho") == strategy.least_budget("rho")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
@pytest.mark.parametrize("scale", [1e-9, 0.3, 7.0, 1e6])
def test_the_least_budget_is_least_to_six_digits(neighbours, scale):
    for kind, noise, delta in (
        ("rho", GAUSSIAN, None),
        ("mu", LAPLACE, None),
        ("epsilon", LAPLACE, None),
        ("epsilon", GAUSSIAN, 1e-6),
    ):
        budget = LeastBudget(kind, delta, neighbours).least(noise.error_scale, scale)
        assert noise.error_scale(budget) >= scale
        value = {"rho": budget.rho, "mu": None if kind != "mu" else budget.mu, "epsilon": budget.epsilon}[
            kind
        ]
        smaller: dict[str, Any] = {kind: value * (1 - 1e-5)} | ({} if delta is None else {"delta": delta})
        assert noise.error_scale(mdp.Budget(**smaller, neighbours=neighbours)) < scale
