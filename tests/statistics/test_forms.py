"""Entries of statistics: the counts that they stand for, how they are written, and what is refused."""

from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.answers.titles import title as group_title
from matrixdp.language import read_entry
from matrixdp.specification import entry_from_spec, json_schema
from matrixdp.statistics import StatisticEntry, ask, statistics

DOMAIN = mdp.Domain(
    {
        "sex": ["female", "male"],
        "age": {"min": 0, "max": 5, "null": "unknown"},
        "income": {"edges": [0, 10, 30, float("inf")]},
        "hours": {"min": 0, "max": 40, "bins": 4},
        "day": {"by": "weekday"},
        "month": {"from": "2013-01-01", "to": "2013-12-31", "by": "month"},
        "code": 5_000,
    }
)
WOMEN: dict[str, Any] = {"product": {"sex": {"sets": [["female"]]}}}
MEN: dict[str, Any] = {"product": {"sex": {"sets": [["male"]]}}}

SEXES: dict[str, Any] = {"marginals": [["sex"]]}
#: What is written, what Python makes of the same, what it is called, and its groups.
WRITTEN: list[tuple[dict[str, Any], StatisticEntry, str, list[str]]] = [
    (
        {"quantile": {"hours": [0.1, 0.9]}, "by": ["sex"]},
        ask.quantile("hours", [0.1, 0.9], by=["sex"]),
        "quantiles of hours (0.1, 0.9) by sex",
        ["sex, hours: identity x prefix"],
    ),
    (
        {"cdf": "month", "where": {"sex": "male"}},
        ask.cdf("month", where={"sex": "male"}),
        "CDF of month where sex male",
        ["month CDF where sex male"],
    ),
    (
        {"mean": "hours", "by": {"sex": "identity"}},
        ask.mean("hours", by={"sex": "identity"}),
        "mean of hours by sex",
        ["sum of hours less 20 by sex", "sex"],
    ),
    (
        {"sum": "income", "where": {"income": {"range": [0, 30]}}},
        ask.sum("income", where={"income": {"range": [0, 30]}}),
        "sum of income where income 0..30",
        ["sum of income where income [0, 30)"],
    ),
    (
        {"variance": "age", "by": ["sex"]},
        ask.variance("age", by=["sex"]),
        "variance of age by sex",
        [f"sum of {of}(age less 2.5) / 2.5 by sex" for of in ("", "squares of ")] + ["records by sex"],
    ),
    ({"top": {"month": 3}}, ask.top("month", 3), "top 3 of month", ["month"]),
    (
        {"share": {"marginals": [["sex", "hours"]]}, "of": ["sex"]},
        ask.share({"marginals": [["sex", "hours"]]}, of=["sex"]),
        "share of sex by hours within sex",
        ["sex, hours", "sex"],
    ),
    (
        {"ratio": {"numerator": WOMEN, "denominator": MEN}},
        ask.ratio(WOMEN, mdp.product(sex={"sets": [["male"]]})),
        "ratio of sex in 1 group to sex in 1 group",
        ["sex: sets", "sex: sets"],
    ),
    (
        {"difference": {"left": WOMEN | {"name": "women"}, "right": MEN}},
        ask.difference(WOMEN | {"name": "women"}, MEN),
        "women less sex in 1 group",
        ["women", "sex: sets"],
    ),
    (
        {"percent_change": {"product": {"month": {"sliding": 2}}}, "over": "period"},
        ask.percent_change(mdp.product(month={"sliding": 2})),
        "per cent change of month ranges of 2 on the previous period",
        ["month: sliding 2"],
    ),
    (
        {"combination": [[2.0, {"marginals": [0]}], [[1.0, -1.0], SEXES]]},
        ask.combination([(2, {"marginals": 0}), (np.array([1.0, -1.0]), SEXES)]),
        "combination of total and sex",
        ["total", "sex"],
    ),
    (
        {"simultaneous": {"marginals": [0, 1], "attributes": ["sex"]}},
        ask.simultaneous({"marginals": [0, 1], "attributes": ["sex"]}),
        "total and sex, all intervals together",
        ["total", "sex"],
    ),
]


def groups(written: dict[str, Any]) -> list[Any]:
    return read_entry(written).expand(DOMAIN)


def test_every_statistic_is_tried() -> None:
    assert {*(next(iter(written)) for written, *_ in WRITTEN), "quantiles"} == set(statistics())


@pytest.mark.parametrize(("written", "made", "title", "names"), WRITTEN)
def test_statistics_are_read_written_and_expanded(written, made, title, names) -> None:
    entry = read_entry(written)
    assert isinstance(entry, StatisticEntry)
    assert (entry.kind, entry.called(DOMAIN, group_title)) == (next(iter(written)), title)
    assert [group.name for group in entry.expand(DOMAIN)] == names
    assert read_entry(entry.to_spec()).to_spec() == entry.to_spec() == made.to_spec()
    specification = {"domain": {"sex": ["female", "male"]}, "workload": [written, entry.to_spec()]}
    jsonschema.Draft202012Validator(json_schema()).validate(specification)


def test_quantiles_are_those_of_quantile() -> None:
    assert read_entry({"quantiles": "hours"}).to_spec() == {"quantile": "hours"}
    entry = read_entry({"quantiles": {"hours": 0.5}, "by": "sex", "name": "median hours", "weight": 3})
    named = {"by": ["sex"], "name": "median hours", "weight": 3.0}
    assert entry.to_spec() == {"quantile": {"hours": [0.5]}} | named
    [group] = entry.expand(DOMAIN)
    assert (group.name, group.weight, group.queries) == ("median hours", 3.0, 8)
    assert ask.quantile("hours", 0.5).label == "median of hours"


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ({"quantile": "age"}, np.tri(6, 7)),  # null has no place in the order
        ({"cdf": "age", "where": {"age": {"range": [2, 4]}}}, np.tri(3) @ np.eye(7)[2:5]),
        ({"cdf": "age", "where": {"age": [1, 4]}}, [[0, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 1, 0, 0]]),
        ({"cdf": "hours", "where": {"sex": "male"}}, np.kron([[0, 1]], np.tri(4))),
        ({"quantile": "hours", "by": {"income": {"ranges": [[0, 30]]}}}, np.kron([[1, 1, 0]], np.tri(4))),
        ({"sum": "hours"}, [[5, 15, 25, 35], [0, 10, 20, 30], [10, 20, 30, 40]]),
        ({"top": {"month": 2}, "where": {"month": ["2013-03", "2013-01", "2013-02"]}}, np.eye(3, 12)),
    ],
)
def test_statistics_need_counts_of_values_in_their_order(written, rows) -> None:
    [group] = groups(written)
    np.testing.assert_array_equal(group.rows(), rows)


def test_means_need_the_sum_about_the_middle_and_the_count() -> None:
    away, count = groups({"mean": "hours", "weight": 2})
    ends = [[-15, -5, 5, 15], [-20, -10, 0, 10], [-10, 0, 10, 20]]  # bins by middles, and by either end
    np.testing.assert_array_equal(away.rows(), ends)
    assert (away.weight, count.weight) == (2 / 20**2, 2)  # a sum as large as a count
    np.testing.assert_array_equal(count.rows(), [[1]])
    away, count = groups({"mean": "age"})
    np.testing.assert_array_equal(away.rows(), [[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0]])
    np.testing.assert_array_equal(count.rows(), [[1, 1, 1, 1, 1, 1, 0]])
    asked = {"sum": "hours"}, {"sum": "age", "where": {"age": [0]}}
    assert [groups(one)[0].weight for one in asked] == [pytest.approx(1 / 40**2), 1.0]


def test_shares_need_what_they_are_divided_by() -> None:
    cells = {"product": {"sex": "identity", "hours": "prefix"}}
    assert [group.attributes for group in groups({"share": cells})] == [("sex", "hours"), ()]
    assert [group.attributes for group in groups({"share": cells, "of": []})] == [("sex", "hours"), ()]
    _, divisor = groups({"share": cells, "of": ["hours"]})
    np.testing.assert_array_equal(divisor.rows(), np.tri(4))
    assert [g.attributes for g in groups({"share": cells, "of": WOMEN})] == [("sex", "hours"), ("sex",)]
    boxes = {"cells": [{"sex": "male", "hours": 0}]}
    assert [group.attributes for group in groups({"share": boxes})] == [("sex", "hours"), ()]
    assert ask.share(cells).called(DOMAIN, group_title) == "share of hours CDF by sex"
    named = ask.share(cells, of=WOMEN | {"name": "women"})
    assert named.called(DOMAIN, group_title) == "share of hours CDF by sex within women"


def test_coefficients_are_rows_or_come_from_files(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.eye(2))
    entry = entry_from_spec({"combination": [["rows.npy", SEXES]]}, tmp_path)
    assert entry.to_spec() == {"combination": [[[[1.0, 0.0], [0.0, 1.0]], SEXES]]}
    assert read_entry(entry.to_spec()).to_spec() == entry.to_spec()
    assert ask.combination([(np.eye(2), SEXES)]).to_spec() == entry.to_spec()


def test_weights_are_for_one_group() -> None:
    [group] = groups({"cdf": "hours", "weights": [1, 2, 3, 4], "weight": 2})
    np.testing.assert_array_equal(group.query_weights, [1, 2, 3, 4])
    [group] = groups({"cdf": "code", "where": {"code": {"range": [0, 3]}}})
    assert group.queries == 4


@pytest.mark.parametrize(
    ("written", "path"),
    [
        *(({name: "amount"}, (name, "amount")) for name in ("cdf", "mean", "sum", "quantile")),
        ({"top": {"amount": 3}}, ("top", "amount")),
        ({"top": {"sex": 1}, "where": {"amount": {"range": [1, 10]}}}, ("where", "amount")),
        ({"sql": "SELECT amount, COUNT(*) FROM t GROUP BY amount"}, ()),
    ],
)
def test_values_that_cannot_be_listed_are_refused_by_the_name_of_their_attribute(written, path) -> None:
    domain = mdp.Domain({"amount": {"min": 0, "max": 9 * 10**15}, "sex": ["female", "male"]})
    with pytest.raises(mdp.TooLargeError, match="'amount' with 9,000,000,000,000,001 values") as refused:
        read_entry(written).expand(domain)
    assert refused.value.path == path


def test_windows_of_any_number_of_values_are_counted_without_listing_them() -> None:
    domain = mdp.Domain({"amount": {"min": 1, "max": 9 * 10**15}})
    [group] = mdp.product(amount={"sliding": 5}).expand(domain)
    assert group.queries == 9 * 10**15 - 4
