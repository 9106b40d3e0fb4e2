"""Target errors: met by the least budget, exactly, and bounded from below."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import EntryError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.privacy import LeastBudget
from matrixdp.selection.auto import select
from matrixdp.selection.targets import OTHER_GROUPS, targeted
from matrixdp.specification import load_specification
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
    assert {round(w, 12) for w in (*weights[:4], weights[5])} == {1 / (OTHER_GROUPS * 2.0) ** 2}
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


SPEC = {"sex": ["f", "m"], "age": {"size": 20}, "wage": {"amount": [0, 100_000]}}
NUMBERS = mdp.Domain.from_spec(SPEC)


def parsed(*entries: dict[str, Any]) -> mdp.Workload:
    spec = {"domain": SPEC, "workload": list(entries)}
    return load_specification(spec).workload


@pytest.mark.parametrize(
    "entry",
    [
        {"mean": "age", "by": ["sex"]},
        {"mean": "wage"},
        {"variance": "age"},
        {"quantile": {"age": 0.5}},
        {"quantiles": "age"},
        {"share": {"marginals": [["sex"]]}},
        {"ratio": {"numerator": {"marginals": [["age"]]}, "denominator": {"marginals": [0]}}},
        {"difference": {"left": {"marginals": [["sex"]]}, "right": {"marginals": [["sex"]]}}},
        {"sql": "SELECT sex, AVG(wage) FROM t GROUP BY sex"},
        {"sql": "SELECT SUM(wage) / COUNT(*) FROM t"},
    ],
    ids=str,
)
def test_a_target_on_the_name_of_a_statistic_is_rejected(entry: dict[str, Any]):
    """It would bound the counts and sums that the statistic is computed from, in other units."""
    workload = parsed({**entry, "name": "n"}, {"marginals": [["sex"]]})
    with pytest.raises(EntryError) as caught:
        mdp.select(workload, targets={"n": 0.2})
    assert (caught.value.code, caught.value.path) == ("not-supported", ("targets", "n"))
    asked = [{**entry, "name": "n"}]
    with pytest.raises(mdp.SpecificationError) as told:
        load_specification(
            {"domain": SPEC, "workload": asked, "targets": {"n": 0.2}, "privacy": {"minimize": "rho"}}
        )
    assert (told.value.code, told.value.path) == ("not-supported", ("targets", "n"))


@pytest.mark.parametrize("entry", [{"sum": "wage"}, {"cdf": "age"}, {"top": {"age": 3}}], ids=str)
def test_a_target_on_a_statistic_that_is_the_answer_to_its_group_bounds_it(entry: dict[str, Any]):
    workload = parsed({**entry, "name": "n"})
    strategy = mdp.select(workload, targets={"n": 7000.0})
    budget = strategy.least_budget("mu")
    assert max(largest(strategy, budget)) == pytest.approx(7000.0, rel=1e-4)


def test_groups_of_a_statistic_have_targets_by_their_own_names():
    workload = parsed({"mean": "age", "name": "n"})
    names = [group.name for group in workload]
    strategy = mdp.select(workload, targets={names[0]: 300.0, names[1]: 25.0})
    found = largest(strategy, strategy.least_budget("mu"))
    assert found[0] <= 300.0
    assert found[1] <= 25.0


@cache
def least_beside_sexes(noise: str, asked: tuple[tuple[str, Any], ...], target: str) -> float:
    kind, entries = "rho" if noise == "gaussian" else "epsilon", ({"marginals": [["sex"]]}, dict(asked))
    strategy = mdp.select(parsed(*entries), noise=noise, targets={target: 25.0})
    return float(getattr(strategy.least_budget(kind), kind))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("asked", [("mean", "wage"), ("sum", "wage"), ("mean", "age")], ids=str)
def test_sums_without_a_target_cost_no_more_than_counts_do(noise: str, asked: tuple[str, str]):
    for target in ("sex", "all"):
        counts = least_beside_sexes(noise, (("marginals", (("age",),)),), target)
        assert least_beside_sexes(noise, (asked,), target) < 3 * counts


def test_counts_cost_nothing_beside_a_target_on_a_sum():
    alone, both = (
        mdp.select(parsed({"sum": "wage", "name": "s"}, *more), targets={"s": 1e6}).least_budget("mu")
        for more in ([], [{"marginals": [["age"]]}])
    )
    assert float(both.mu) < 1.2 * float(alone.mu)


def test_all_stands_for_no_sums():
    with pytest.raises(EntryError) as caught:
        mdp.select(parsed({"sum": "wage"}), targets={"all": 25.0})
    assert (caught.value.code, caught.value.path) == ("not-supported", ("targets",))
