"""Statistics of a release against brute force on its table."""

import json
from datetime import date
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.inference import METADATA
from matrixdp.language import read_entry as ask
from matrixdp.statistics import attributes as curves
from matrixdp.statistics.intervals import UNBOUNDED, invert
from tests.limits import Override

DOMAIN = mdp.Domain(
    {
        "sex": ["female", "male"],
        "age": {"min": 0, "max": 9},
        "income": {"edges": [0, 10, 25, 50]},
        "day": {"from": "2013-01-01", "to": "2013-01-10", "by": "day"},
    }
)
RANDOM = np.random.default_rng(3)
SEX, AGE = RANDOM.integers(0, 2, 4_000), RANDOM.binomial(9, 0.4, 4_000)
INCOME = RANDOM.uniform(0, 50, 4_000)
TABLE = {
    "sex": np.array(["female", "male"])[SEX],
    "age": AGE,
    "income": INCOME,
    "day": [f"2013-01-{1 + age:02}" for age in AGE],
}


def measured(domain: mdp.Domain, table: Any, mu: float, *entries: Any, **options: Any) -> mdp.Release:
    strategy = mdp.select(mdp.Workload(domain, *entries), **options)
    return strategy.measure(table, mdp.Budget(mu=mu), seed_not_private=4).reconstruct()


@pytest.fixture(scope="module")
def release() -> mdp.Release:
    return measured(DOMAIN, TABLE, 50, mdp.product(sex="identity", age="prefix"), mdp.marginals(2))


def test_quantiles_in_strata(release: mdp.Release):
    table = release.quantile("age", [0.25, 0.5], by="sex")
    assert table.column_names == ["sex", "quantile", "estimate", "stddev", "lower", "upper", "warning"]
    rows = table.to_pylist()
    assert [(row["sex"], row["quantile"]) for row in rows] == [
        ("female", 0.25), ("female", 0.5), ("male", 0.25), ("male", 0.5),
    ]  # fmt: skip
    for row in rows:
        true = np.quantile(AGE[(row["sex"] == "male") == SEX], row["quantile"], method="inverted_cdf")
        assert row["lower"] <= true == row["estimate"] <= row["upper"]
        assert row["stddev"] is None
    said = json.loads(table.schema.metadata[METADATA])
    assert (said["statistic"], said["by"], said["confidence"]) == ("quantile of age", ["sex"], 0.95)


def test_dates_and_open_bins():
    domain = mdp.Domain(
        {
            "day": {"from": "2013-01-15", "to": "2013-04-10", "by": "month"},
            "wealth": {"edges": ["-inf", 0, 10, "inf"], "null": "unknown"},
        }
    )
    table = {"day": ["2013-02-03"] * 500 + ["2013-03-01"] * 499, "wealth": [-5.0, 20.0, None] * 333}
    release = measured(domain, table, 20, mdp.marginals(1))
    [row] = release.quantile("day", 0.25).to_pylist()
    assert (row["lower"], row["upper"]) == (date(2013, 2, 1), date(2013, 2, 28))
    assert row["lower"] <= row["estimate"] <= row["upper"]
    [low, high] = release.quantile("wealth", [0.3, 0.9]).to_pylist()  # of 333 below 0 and 333 above 10
    assert (low["estimate"], low["lower"], low["upper"]) == (0, None, 0)
    assert (high["estimate"], high["lower"], high["upper"]) == (10, 10, None)
    assert "without an end" in low["warning"]
    assert [low["warning"]] == [high["warning"]]
    [mean] = release.mean("wealth", where={"wealth": [0]}).to_pylist()
    assert (mean["warning"], mean["lower"], mean["upper"]) == (UNBOUNDED, None, None)


def test_hidden_quantiles_say_so(release: mdp.Release):
    [row] = release.quantile("age", 0.5, where={"age": [9]}).to_pylist()
    assert (row["estimate"], row["lower"], row["upper"], row["warning"]) == (9, 9, 9, None)
    none = invert(np.array([-8.0, -9.0, -10.0]), np.ones(3), 0.5, 2.0)
    assert none == (None, 0.0, 0, 2)
    hidden = invert(np.array([-1.0, 0.5, 1.0]), np.ones(3), 0.5, 2.0)
    assert hidden[2:] == (0, 2)
    empty = measured(mdp.Domain({"age": range(5)}), {"age": []}, 0.1, mdp.marginals(1))
    [row] = empty.quantile("age", 0.5).to_pylist()
    assert (row["lower"], row["upper"]) == (0, 4)
    assert row["warning"] is not None
    [mean] = empty.mean("age").to_pylist()
    assert (mean["stddev"], mean["lower"], mean["upper"], mean["warning"]) == (None, None, None, UNBOUNDED)


def test_errors_are_those_of_the_combination_and_not_of_its_summands(release: mdp.Release):
    # what is naive: the root of the sum of squares of standard errors
    prefixes = {"product": {"age": "prefix"}}
    covariance = release.covariances(prefixes)
    stddev = release.answer(prefixes)["stddev"].to_numpy()
    np.testing.assert_allclose(np.sqrt(np.diagonal(covariance)), stddev, rtol=1e-9)
    weights = np.linspace(-1.0, 1.0, 10)
    table = release.combination([(weights, prefixes)])
    exact = np.sqrt(weights @ covariance @ weights)
    assert table["stddev"][0].as_py() == pytest.approx(exact, rel=1e-9)
    asked = release.answer(mdp.product(age={"matrix": (weights @ np.tri(10))[None, :]}))
    assert table["estimate"][0].as_py() == pytest.approx(asked["estimate"][0].as_py())
    assert exact == pytest.approx(asked["stddev"][0].as_py(), rel=1e-9)
    assert abs(np.sqrt(weights**2 @ stddev**2) / exact - 1) > 0.05


def test_combinations_across_groups(release: mdp.Release):
    sexes, incomes = mdp.marginals([["sex"]]), mdp.marginals([["income"]])
    rows = [[1.0, 1.0], [1.0, -1.0]]
    table = release.combination([(rows, sexes), ([[-1.0] * 3, [0.0] * 3], incomes)])
    found = json.loads(table.schema.metadata[METADATA])["covariance"]
    a, b = np.array(rows), np.array([[-1.0] * 3, [0.0] * 3])
    crossed = a @ release.covariances(sexes, incomes) @ b.T
    expected = a @ release.covariances(sexes) @ a.T + b @ release.covariances(incomes) @ b.T
    np.testing.assert_allclose(found, expected + crossed + crossed.T, atol=1e-12)
    women, men = (mdp.product(sex={"sets": [[sex]]}) for sex in ("female", "male"))
    difference = release.difference(women, men)["estimate"].to_pylist()
    assert table["estimate"].to_pylist()[1:] == pytest.approx(difference)
    total = release.combination([(2.0, mdp.marginals(0)), ([1.0, 1.0], sexes)])
    assert total["estimate"][0].as_py() == pytest.approx(3 * 4_000, abs=5)


@pytest.mark.parametrize("kind", ["ratio", "difference"])
def test_rows_say_values_once(kind: str) -> None:
    """Where a value begins and where it ends is no name of a row."""
    domain = mdp.Domain({"age": {"min": 0, "max": 2}, "pay": {"edges": [0, 10, 20]}})
    first, second = ("numerator", "denominator") if kind == "ratio" else ("left", "right")
    release = (
        mdp.select(mdp.Workload(domain, mdp.marginals(2)))
        .measure({"age": [0, 1, 2], "pay": [1, 11, 12]}, mdp.Budget(rho=1))
        .reconstruct()
    )
    parts = {first: {"marginals": [["age"]]}, second: {"product": {"pay": {"sets": [[0, 10]]}}}}
    table = release.answer({kind: parts})
    assert table[first].to_pylist() == ["age 0", "age 1", "age 2"]
    assert set(table[second].to_pylist()) == {"pay [0, 10) | [10, 20)"}


def test_ratios_agree_with_shares_and_say_in_words_what_they_are(release: mdp.Release):
    women, total = mdp.product(sex={"sets": [["female"]]}), mdp.marginals(0)
    share, ratio = release.share(women), release.ratio(women, total)
    for name in ("estimate", "stddev", "lower", "upper"):
        assert share[name].to_pylist() == pytest.approx(ratio[name].to_pylist())
    assert release.share(women, of=total)["upper"].to_pylist() == pytest.approx(share["upper"].to_pylist())
    assert (ratio["numerator"].to_pylist(), ratio["denominator"].to_pylist()) == (["sex female"], ["total"])
    assert share["estimate"][0].as_py() == pytest.approx((SEX == 0).mean(), abs=1e-3)
    within = release.share(mdp.marginals([["sex", "age"]]), of="sex")["estimate"].to_numpy().reshape(2, -1)
    np.testing.assert_allclose(within.sum(axis=1), 1.0, atol=2e-3)
    both = release.share(mdp.pairwise("abs", attributes=["age", "income"]))
    assert both["estimate"][-1].as_py() == pytest.approx(1.0, abs=1e-9)
    assert both.column_names[:2] == ["group", "query"]


def test_names_of_figures_leave_those_of_attributes():
    domain = mdp.Domain({"rank": ["a", "b"], "estimate": 2})
    release = measured(domain, {"rank": ["a"] * 9, "estimate": [0] * 9}, 9, mdp.marginals(2))
    table = release.top("rank", 1, by="estimate")
    assert {"rank", "rank_attribute", "estimate", "estimate_attribute"} <= set(table.column_names)
    assert table["rank_attribute"].to_pylist()[0] == "a"


def test_curves_of_chosen_values_and_of_many_strata(release: mdp.Release, monkeypatch):
    chosen = release.cdf("age", where={"age": [1, 3, 4]})
    assert chosen["estimate"].to_numpy()[-1] == pytest.approx(np.isin(AGE, [1, 3, 4]).sum(), abs=3)
    narrow = release.cdf("age", by="sex")
    monkeypatch.setattr(curves, "_MOST_STRATA", 1)
    wide = release.cdf("age", by="sex")
    # the bound that holds for every covariance is wider than the simulated one, and not by much
    widths = [(np.array(t["upper"]) - np.array(t["lower"])).max() for t in (narrow, wide)]
    assert 1.0 < widths[1] / widths[0] < 1.3


def test_a_confidence_of_ones_own(release: mdp.Release):
    half, most = (release.sum("age", confidence=level).to_pylist()[0] for level in (0.5, 0.999))
    assert half["lower"] > most["lower"]
    # too few draws for it: the bound is taken
    assert release.simultaneous(mdp.marginals([["sex"]]), confidence=0.99999).num_rows == 2


@pytest.mark.parametrize("statistic", ["mean", "sum"])
@pytest.mark.parametrize("ends", [True, False])
def test_what_a_workload_of_statistics_measures_is_enough(statistic: str, ends: bool):
    domain = mdp.Domain({"income": {"edges": [0, 10, 25, 50]}, "age": range(7)})
    entries: list[Any] = [ask({statistic: name}) for name in domain.names]
    if not ends:
        entries[0] = mdp.product(income={"matrix": [[5, 17.5, 37.5], [1, 1, 1]]})
    table = {"income": [5.0, 12.0, 30.0] * 400, "age": [1, 2, 6] * 400}
    release = measured(domain, table, 30, *entries)
    [income] = getattr(release, statistic)("income").to_pylist()
    count = 1_200 if statistic == "sum" else 1
    assert income["estimate"] == pytest.approx(count * (5 + 17.5 + 37.5) / 3, rel=0.01)
    # where the ends were not measured all bins are as wide as the widest, as far as is known
    off = (5 + 7.5 + 12.5) / 3 if ends else 12.5
    binning = 12.5 if statistic == "mean" else off * count
    assert income["binning"] == pytest.approx(binning, rel=0.01)
    interval = [count * (20 - off), count * (20 + off)]
    assert [income["lower"], income["upper"]] == pytest.approx(interval, rel=0.05)
    [age] = getattr(release, statistic)("age").to_pylist()
    assert (age["binning"], age["estimate"]) == (0.0, pytest.approx(3.0 * count, rel=0.01))


@pytest.mark.parametrize("additive", [True, False])
def test_covariances_with_the_number_of_records(additive, monkeypatch):
    """From variances of sums, or, where estimates of sums may be no sums of estimates, from covariances."""
    domain = mdp.Domain({"sex": ["f", "m"], "age": range(6)})
    entries = mdp.product(sex="identity", age="prefix"), mdp.product(sex="total", age="identity")
    release = measured(domain, {"sex": ["f", "m"] * 60, "age": list(range(6)) * 20}, 1, *entries)
    inference = release.inference()
    monkeypatch.setattr(inference.analysis, "additive", additive)
    strata = mdp.ask.mean("age", by="sex").strata(domain)
    rows = np.random.default_rng(0).standard_normal((3, 6)) * [[1], [10], [100]]
    found = strata.with_records(inference, rows)
    group, whole = strata.group(rows), strata.group(np.ones((1, 6)))
    exact = inference.analysis.covariances(group, whole)
    by_stratum = np.array([[exact[3 * one + row, one] for row in range(3)] for one in range(2)])
    np.testing.assert_allclose(found, by_stratum, rtol=1e-9, atol=1e-9)
    last = release.cdf("age", by="sex").to_pylist()[5]
    assert (last["share"], last["share_lower"], last["share_upper"]) == (1.0, 1.0, 1.0)


def test_shares_are_of_the_counts_that_were_planned_for(limits: Override):
    """Where answers are averages of parts, a count of its own has less noise than a sum over cells."""
    limits(MAX_STACKED_CELLS=0)
    domain = mdp.Domain({"sex": ["f", "m"], "age": range(5)})
    parts = mdp.marginals([["sex"]]), mdp.dense(np.eye(10), ["sex", "age"])
    measured = mdp.Strategy.from_parts(domain, parts).measure(
        {"sex": ["f", "m"] * 60, "age": list(range(5)) * 24}, mdp.Budget(mu=1), seed_not_private=4
    )
    release = measured.reconstruct()
    assert not release.analysis.additive
    shares = release.share(mdp.marginals([["sex", "age"]]), of=["sex"]).to_pylist()
    for row in shares:
        cell: dict[str, Any] = {"sex": {"sets": [[row["sex"]]]}}
        alike: dict[str, Any] = {"age": {"sets": [[int(row["age"])]]}}
        [exact] = release.ratio(mdp.product(cell | alike), mdp.product(cell)).to_pylist()
        for figure in ("estimate", "stddev", "lower", "upper"):
            assert row[figure] == pytest.approx(exact[figure], rel=1e-9)
    whole = release.answer(mdp.marginals([["sex"]]))["stddev"][0].as_py()
    cells = release.answer(mdp.marginals([["sex", "age"]]))["stddev"][0].as_py()
    assert whole < 0.5 * np.sqrt(5) * cells  # the sum over five cells has twice the error and more


def test_means_and_sums_of_many_values_follow():
    domain, table = mdp.Domain({"code": 4_200}), {"code": [100, 200] * 500}
    release = measured(domain, table, 50, mdp.ask.mean("code"), mechanism="workload")
    [row] = release.mean("code").to_pylist()
    assert row["lower"] <= 150 <= row["upper"] < 300
