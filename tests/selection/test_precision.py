"""Targets in readers' terms: coefficients of variation of counts, and the errors of means and shares."""

import json
import math
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.privacy import LeastBudget
from matrixdp.queries.workload import figure_targets
from matrixdp.selection.targets import largest_ratio
from matrixdp.specification import load_specification
from matrixdp.strategy.strategy import meet_targets
from tests.cli.commands import run
from tests.selection.oracle import scaled_rows

SPEC: dict[str, Any] = {
    "sex": ["f", "m"],
    "age": {"min": 2, "max": 10},
    "pay": {"edges": [0, 10, 30, 40]},
    "wage": {"amount": [-1, 5]},
}
AGES, PAYS = np.arange(2.0, 11.0), np.array([5.0, 20.0, 35.0])
#: Entries with a target, X and N of each figure over the cells of sex, age, pay and wage, and the least and
#: the largest figure that the target is about.
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], Any, tuple[float, float]]] = {
    "a mean": (
        {"mean": "age", "by": ["sex"]},
        {"stddev": 0.3, "for": {"records_above": 40}},
        lambda sex, age, pay, wage: [((sex == s) * age, sex == s) for s in (0, 1)],
        (2.0, 10.0),
    ),
    "relative to a mean above 0": (
        {"mean": "age"},
        {"cv": 0.1, "for": {"records_above": 40}},
        lambda sex, age, pay, wage: [(age, age > 0)],
        (2.0, 10.0),
    ),
    "of some of the values": (
        {"mean": "age", "where": {"age": {"range": [3, 6]}}},
        {"stddev": 0.1, "for": {"records_above": 40}},
        lambda sex, age, pay, wage: [((age >= 3) * (age <= 6) * age, (age >= 3) * (age <= 6))],
        (3.0, 6.0),
    ),
    "of bins": (
        {"mean": "pay", "by": ["sex"]},
        {"stddev": 2, "for": {"records_above": 50}},
        lambda sex, age, pay, wage: [((sex == s) * pay, sex == s) for s in (0, 1)],
        (0.0, 40.0),
    ),
    "of an amount, at least so much": (
        {"mean": "wage", "by": ["sex"]},
        {"cv": 0.2, "for": {"records_above": 50, "mean_above": 1.5}},
        lambda sex, age, pay, wage: [((sex == s) * wage, sex == s) for s in (0, 1)],
        (1.5, 5.0),
    ),
    "a share of all": (
        {"share": {"marginals": [["sex"]]}},
        {"stddev": 0.05, "for": {"records_above": 50}},
        lambda sex, age, pay, wage: [(sex == s, age > 0) for s in (0, 1)],
        (0.0, 1.0),
    ),
    "a share of those alike": (
        {"share": {"marginals": [["sex", "age"]]}, "of": ["age"]},
        {"stddev": 0.05, "for": {"records_above": 50}},
        lambda sex, age, pay, wage: [((sex == s) * (age == a), age == a) for s in (0, 1) for a in AGES],
        (0.0, 1.0),
    ),
    "relative to a share": (
        {"share": {"marginals": [["age"]]}},
        {"cv": 0.1, "for": {"records_above": 60}},
        lambda sex, age, pay, wage: [(age == a, age > 0) for a in AGES],
        (0.0, 1.0),
    ),
}


def workload_of(name: str) -> mdp.Workload:
    asked = [{**CASES[name][0], "name": "n"}, {"marginals": [["sex"]]}]
    return load_specification({"domain": SPEC, "workload": asked}).workload


def worst(strategy: mdp.Strategy, name: str) -> float:
    """Return the largest ratio of an error to its target, of all figures of least records, over the cells."""
    _, target, figures, (least, most) = CASES[name]
    axes = np.meshgrid([0, 1], AGES, PAYS, [-1.0, 5.0], indexing="ij")
    records = target["for"]["records_above"]
    rows = scaled_rows(strategy.selection)
    inverse, largest = np.linalg.pinv(rows.T @ rows), 0.0
    for left, right in figures(*axes):
        for figure in np.linspace(least, most, 41):
            query = (left - figure * right).ravel()
            error = math.sqrt(query @ inverse @ query) / records
            relative = "cv" in target and "mean" in CASES[name][0]  # of shares by their own records
            largest = max(largest, error / (figure if relative else 1.0))
    return largest / target.get("cv", target.get("stddev"))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("name", CASES)
def test_the_errors_of_all_figures_that_can_be_are_within_their_target(name: str, noise: str):
    mechanism = "residual" if noise == "gaussian" else "generalized-marginals"
    workload = workload_of(name)
    strategy = mdp.select(workload, noise=noise, mechanism=mechanism, targets={"n": CASES[name][1]})
    found = worst(strategy, name)
    errors = strategy.target_errors()
    assert [error.group for error in errors if error.target is not None] == ["n"]
    assert errors[-1].target == CASES[name][1].get("cv", CASES[name][1].get("stddev"))
    assert largest_ratio(errors) == pytest.approx(found, rel=1e-5)
    scale = strategy.selection.noise.error_scale(strategy.least_budget("mu"))
    assert scale == pytest.approx(found**2, rel=5e-5)
    certificate = strategy.certificate
    assert certificate.loss == pytest.approx(found**2, rel=2e-3)
    assert certificate.lower_bound is None or certificate.lower_bound <= found**2


@pytest.mark.parametrize("name", CASES)
def test_no_strategy_is_below_the_lower_bound(name: str):
    targets = {"n": CASES[name][1]}
    bound = mdp.select(workload_of(name), noise="gaussian", targets=targets).certificate.lower_bound
    for mechanism in ("dense", "residual", "identity", "weighted-product"):
        other = mdp.select(workload_of(name), noise="gaussian", mechanism=mechanism, targets=targets)
        assert bound <= worst(other, name) ** 2 * (1 + 1e-6)


def test_where_differences_of_estimates_are_not_estimates_of_differences_errors_are_added(monkeypatch):
    workload, targets = workload_of("a mean"), {"n": CASES["a mean"][1]}
    parts = [mdp.marginals([["sex", "age"]]), mdp.product(sex="identity")]
    own = mdp.Strategy.from_parts(
        workload.domain, parts, workload=workload, noise="gaussian", targets=targets
    )
    exact = largest_ratio(own.target_errors())
    assert exact == pytest.approx(worst(own, "a mean"), rel=1e-5)
    assert own.certificate.lower_bound <= own.certificate.loss == pytest.approx(exact**2, rel=1e-5)
    monkeypatch.setattr(own.selection.analysis, "additive", False)
    [_, count, *_] = (own.selection.analysis.group(group).largest for group in workload)
    [(_, precision)] = figure_targets(workload, targets).values()
    both = math.sqrt(own.selection.analysis.variances(precision.left).max()) + 4.0 * math.sqrt(count)
    assert largest_ratio(own.target_errors()) == pytest.approx(both / (0.3 * 40), rel=1e-6)
    assert both / (0.3 * 40) > exact


#: Tables with the least records of a figure, and figures at the ends and between.
TABLES: dict[str, dict[str, list[Any]]] = {
    "a mean": {"sex": ["f"] * 40 + ["m"] * 40, "age": [10] * 40 + [2] * 20 + [9] * 20},
    "relative to a mean above 0": {"sex": ["f"] * 40, "age": [2] * 40},
    "a share of all": {"sex": ["f"] * 50, "age": [4] * 50},
    "a share of those alike": {"sex": ["f"] * 50 + ["m"] * 25 + ["f"] * 25, "age": [4] * 50 + [5] * 50},
    "relative to a share": {"sex": ["f"] * 120, "age": [3] * 60 + [9] * 60},
}


@pytest.mark.parametrize("name", TABLES)
def test_figures_of_releases_err_as_promised(name: str):
    _, target, _, _ = CASES[name]
    table: dict[str, list[Any]] = TABLES[name] | {"pay": [15] * len(TABLES[name]["sex"])}
    table |= {"wage": [1] * len(table["sex"])}
    strategy = mdp.select(workload_of(name), noise="gaussian", targets={"n": target})
    budget, rounds, found = strategy.least_budget("rho"), 150, []
    for seed in range(rounds):
        measured = strategy.measure(table, budget, seed_not_private=seed)
        found.append(measured.reconstruct().statistics["n"]["estimate"].to_numpy())
    true = np.median(found, axis=0)
    spread = np.std(found, axis=0)
    if name.startswith("a share of those"):
        asked = [4 - 2, 5 - 2, len(AGES) + 5 - 2]  # the cells with 50 records alike
    elif name == "relative to a share":
        asked = [3 - 2, 9 - 2]
    else:
        asked = [place for place in range(len(true)) if name != "a mean" or true[place] > 0]
    relative = true[asked] if "cv" in target else 1.0
    most = target.get("cv", target.get("stddev"))
    ratios = spread[asked] / relative / most
    assert ratios.max() < 1 + 4 / math.sqrt(2 * rounds)
    assert ratios.max() > 0.4


def test_the_coefficient_of_variation_of_counts_is_their_standard_error():
    workload = mdp.Workload(mdp.Domain({"a": 4, "b": 3}), mdp.marginals([0, 1, 2], name="all of them"))
    target = {"cv": 0.15, "for": {"records_above": 200}}
    for name in ("all of them", "all of them: a", "all"):
        said, plain = (mdp.select(workload, targets={name: own}) for own in (target, 30.0))
        assert said.least_budget("mu") == plain.least_budget("mu")


@pytest.mark.parametrize(
    "least",
    [LeastBudget("mu"), LeastBudget("rho"), LeastBudget("epsilon"), LeastBudget("epsilon", 1e-6)],
    ids=lambda least: f"{least.kind} {least.delta}",
)
def test_what_takes_a_weak_budget_is_rejected_with_the_nearest_that_does_not(least: LeastBudget):
    workload = workload_of("a mean")
    target = {"stddev": 0.001, "for": {"records_above": 40}}
    strategy = mdp.select(workload, budget=least.reference(), targets={"n": target})
    with pytest.raises(mdp.PrivacyError) as caught:
        meet_targets(strategy, {"n": target}, least)
    assert (caught.value.code, caught.value.path) == ("out-of-range", ("targets",))
    nearest = float(caught.value.problem.expected.split()[-1])
    asked = {"n": {**target, "stddev": nearest}}
    usual = least.largest_usual()
    budget = meet_targets(strategy, asked, least)
    assert {"mu": 3, "rho": 4.5, "epsilon": 10}[least.kind] >= getattr(budget, least.kind)
    assert float(getattr(budget, least.kind)) == pytest.approx(float(getattr(usual, least.kind)), rel=2e-3)
    assert meet_targets(strategy, {"n": target}, least, accepted=True)


def test_commands_and_files_keep_what_was_asked(tmp_path):
    written = {
        "domain": {"sex": ["f", "m"], "age": {"min": 0, "max": 9}},
        "workload": [{"mean": "age", "by": ["sex"], "name": "n"}, {"marginals": [["sex"]], "name": "t"}],
        "targets": {"n": {"stddev": 0.3, "for": {"records_above": 100}}, "t": 25.0},
        "privacy": {"minimize": "rho"},
    }
    specification = load_specification(written)
    assert specification.document["targets"] == written["targets"]
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(written))
    figures = json.loads(run("select", path, "--json", "--save", tmp_path / "s.mdp").stdout)
    assert figures["targets"] == written["targets"]
    assert figures["target_ratio"] == pytest.approx(1.0, abs=1e-4)
    [own] = figures["target_figures"]
    assert (own["name"], own["target"]) == ("n", 0.3)
    counted = max(group["max_stddev"] / 25.0 for group in figures["groups"] if group["name"] == "t")
    assert max(own["error"] / 0.3, counted) == pytest.approx(figures["target_ratio"], rel=1e-6)
    assert "'n' 0." in run("select", path).stdout
    strategy = mdp.Strategy.load(tmp_path / "s.mdp")
    assert strategy.selection.targets == written["targets"]
    table = {"sex": ["f"] * 100, "age": [9] * 100}
    found = mdp.release(specification, table=table, strategy=strategy, seed_not_private=1)
    assert found.statistics["n"]["stddev"][0].as_py() < 0.31
