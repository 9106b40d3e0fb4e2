import math
from typing import Any, cast

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.table import FIGURES
from matrixdp.errors import TooLargeError
from matrixdp.releases import release as release_module

DOMAIN = mdp.Domain(
    {"sex": ["female", "male"], "age": {"min": 0, "max": 9}, "income": {"edges": [0, 10, 25, 50]}}
)
AGES = np.arange(600) % 10
TABLE: dict[str, Any] = {"sex": ["female", "male", "male"] * 200, "age": AGES, "income": (AGES * 7) % 50}


@pytest.fixture(scope="module")
def workload() -> mdp.Workload:
    return mdp.Workload(
        DOMAIN,
        mdp.marginals([0, 1]),
        mdp.product(sex="identity", age="range"),
        mdp.product(age={"sets": [[0, 1], [9]]}, income="total", name="some ages"),
        mdp.pairwise("affine", attributes=["age", "income"]),
    )


@pytest.fixture(scope="module")
def strategy(workload: mdp.Workload) -> mdp.Strategy:
    return mdp.select(workload)


@pytest.fixture(scope="module")
def release(strategy: mdp.Strategy) -> mdp.Release:
    return strategy.measure(TABLE, mdp.Budget(mu=100)).reconstruct()


def truth(workload: mdp.Workload) -> np.ndarray:
    """The exact answers, by brute force over the records."""
    answers = []
    codes = np.stack(
        [[DOMAIN["sex"].code_of(v) for v in TABLE["sex"]], AGES, np.digitize(TABLE["income"], [10, 25])]
    )
    for group in workload:
        counts = np.zeros(group.sizes)
        for record in codes.T:
            counts[tuple(record[DOMAIN.index(name)] for name in group.attributes)] += 1
        answers.append(group.rows() @ counts.ravel())
    return np.concatenate(answers)


def test_the_rows_are_the_queries_in_order(release: mdp.Release, workload: mdp.Workload):
    answers = release.answers
    assert answers.num_rows == workload.queries
    assert answers.schema.names == [
        "group", "sex", "age", "age_from", "age_to", "income", "income_from", "income_to", "query",
        "estimate", "stddev", "lower", "upper",
    ]  # fmt: skip
    rows = answers.to_pylist()
    assert {k: rows[0][k] for k in ("group", "sex", "age", "income", "query")} == {
        "group": "total", "sex": None, "age": None, "income": None, "query": None,
    }  # fmt: skip
    assert (rows[1]["sex"], rows[2]["sex"]) == ("female", "male")
    ranged = [row for row in rows if row["group"] == "sex, age: identity x range"]
    assert [row["age"] for row in ranged[:3]] == ["0", "0-1", "0-2"]
    assert ranged[55]["sex"] == "male"
    named = [row for row in rows if row["group"] == "some ages"]
    assert [(row["age"], row["income"]) for row in named] == [("0 | 1", None), ("9", None)]
    explicit = [row for row in rows if row["query"] is not None]
    assert [row["query"] for row in explicit][:2] == ["age + income <= 0", "age + income <= 1"]
    assert all(row["age"] is None for row in explicit)


def test_estimates_are_close_to_the_truth_with_the_errors_that_were_promised(release, strategy, workload):
    estimate, stddev = (release.answers[name].to_numpy() for name in FIGURES[:2])
    assert np.abs((estimate - truth(workload)) / stddev).max() < 6
    assert stddev.max() < 0.2
    budget = mdp.Budget(mu=100)
    assert math.sqrt((stddev**2).mean()) == pytest.approx(strategy.rmse(budget), rel=1e-4)
    assert stddev.max() == pytest.approx(strategy.max_stddev(budget), rel=1e-4)


@pytest.mark.parametrize(
    ("confidence", "quantile"),
    [(0.95, 1.959963984540054), (0.5, 0.6744897501960817), (0.999, 3.2905267314919255)],
)
def test_intervals_are_symmetric_and_follow_the_confidence(strategy, confidence: float, quantile: float):
    answers = strategy.measure(TABLE, mdp.Budget(rho=1)).reconstruct(confidence=confidence).answers
    estimate, stddev, lower, upper = (answers[name].to_numpy() for name in FIGURES)
    np.testing.assert_allclose(upper - estimate, quantile * stddev, rtol=1e-9)
    np.testing.assert_allclose(estimate - lower, quantile * stddev, rtol=1e-9)


def test_new_queries_agree_with_sums_of_answers(release: mdp.Release):
    cells = release.answer(mdp.marginals([["sex"]])).column("estimate").to_numpy()
    total = release.answer({"marginals": 0})
    assert cells.sum() == pytest.approx(total.column("estimate")[0].as_py())
    asked = release.answer(mdp.product(age={"ranges": [[0, 4]]}, income="total")).to_pylist()
    assert [(row["age"], "income" in row) for row in asked] == [("0-4", False)]


def test_covariances_agree_with_variances(release: mdp.Release):
    sexes, total = mdp.marginals([["sex"]]), mdp.marginals(0)
    variances = [[release.covariance(sexes, i, sexes, j) for j in range(2)] for i in range(2)]
    stddev = release.answer(sexes).column("stddev").to_numpy()
    np.testing.assert_allclose(np.sqrt(np.diag(variances)), stddev, rtol=1e-9)
    whole = release.covariance(total, 0, total, 0)
    assert np.sum(variances) == pytest.approx(whole)


def test_tables_past_the_limit_are_refused(release: mdp.Release, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(release_module, "MAX_TABLE_ROWS", 9)
    assert release.answer(mdp.marginals([["sex"]])).num_rows == 2
    with pytest.raises(TooLargeError, match="at most 9"):
        release.answer(mdp.marginals([["age"]]))


def test_answers_have_the_names_that_sets_and_ranges_were_given():
    ages = {"sets": {"ends": [0, 2]}}, {"sets": [[0, 2]]}, {"sets": {"not in the middle": [0, 2]}}
    entries = [mdp.product(age=form) for form in ages]
    ranges = mdp.product(age=["total", {"ranges": {"young": [0, 1], "2": [2, 2]}}])
    stacked = mdp.product(age=[{"permuted": {"sets": {"last": [2]}}, "order": [0, 1, 2]}, {"sets": [[0]]}])
    workload = mdp.Workload(mdp.Domain({"age": 3}), *entries, ranges, stacked)
    table = {"age": [0, 0, 1]}
    answers = mdp.select(workload).measure(table, mdp.Budget(mu=1000)).reconstruct().answers
    asked = ["ends", "0 | 2", "not in the middle", "all", "young", "2", "last", "0"]
    assert answers.column("age").to_pylist() == asked
    assert np.round(answers.column("estimate").to_numpy()).tolist() == [2, 2, 2, 3, 3, 0, 0, 2]


def test_attributes_may_have_the_names_of_columns():
    names = {"group": 2, "estimate": 3, "estimate_attribute": 2, "query": 2}
    workload = mdp.Workload(mdp.Domain(names), mdp.marginals(1))
    measured = mdp.select(workload).measure({name: [0, 1] for name in names}, mdp.Budget(mu=1))
    answers = measured.reconstruct().answers
    assert answers.schema.names == [
        "group", "group_attribute", "group_from", "group_to",
        "estimate_attribute_attribute", "estimate_from", "estimate_to",
        "estimate_attribute", "estimate_attribute_from", "estimate_attribute_to",
        "query_attribute", "query_from", "query_to", "estimate", "stddev", "lower", "upper",
    ]  # fmt: skip
    assert answers.column("estimate_attribute").to_pylist()[5:7] == ["0", "1"]


def test_a_strategy_and_its_release_have_the_same_covariances(strategy: mdp.Strategy, release: mdp.Release):
    sexes, total = {"marginals": [["sex"]]}, mdp.marginals(0)
    promised = strategy.covariance(sexes, cast("int", np.int64(1)), total, 0, mdp.Budget(mu=100))
    assert release.covariance(sexes, 1, total, 0) == pytest.approx(promised, rel=1e-4)
    with pytest.raises(mdp.PrivacyError, match="budget"):
        strategy.covariance(sexes, 0, total, 0, 1.0)  # type: ignore[arg-type]
