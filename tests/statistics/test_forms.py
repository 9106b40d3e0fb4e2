"""Entries of statistics: the counts that they stand for, how they are written, and what is refused."""

from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.language import product, read_entry
from matrixdp.specification import entry_from_spec, json_schema
from matrixdp.statistics import StatisticEntry, ask, statistics

DESCRIBED = {
    "sex": ["female", "male"],
    "age": {"min": 0, "max": 5, "null": "unknown"},
    "income": {"edges": [0, 10, 30, float("inf")]},
    "hours": {"min": 0, "max": 40, "bins": 4},
    "day": {"by": "weekday"},
    "month": {"from": "2013-01-01", "to": "2013-12-31", "by": "month"},
    "code": 5_000,
}
DOMAIN = Domain(DESCRIBED)
WOMEN: dict[str, Any] = {"product": {"sex": {"sets": [["female"]]}}}
MEN: dict[str, Any] = {"product": {"sex": {"sets": [["male"]]}}}

WRITTEN: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "quantile": (
        {"quantile": {"hours": [0.1, 0.9]}, "by": ["sex"]},
        "quantiles of hours (0.1, 0.9) by sex",
        ["sex, hours: identity x prefix"],
    ),
    "cdf": (
        {"cdf": "month", "where": {"sex": "male"}},
        "CDF of month where sex male",
        ["month CDF where sex male"],
    ),
    "mean": (
        {"mean": "hours", "by": {"sex": "identity"}},
        "mean of hours by sex",
        ["sum of hours less 20 by sex", "sex"],
    ),
    "sum": (
        {"sum": "income", "where": {"income": {"range": [0, 30]}}},
        "sum of income where income 0..30",
        ["sum of income where income [0, 30)"],
    ),
    "top": ({"top": {"month": 3}}, "top 3 of month", ["month"]),
    "share": (
        {"share": {"marginals": [["sex", "hours"]]}, "of": ["sex"]},
        "share: marginals [[sex, hours]] of sex",
        ["sex, hours", "sex"],
    ),
    "ratio": (
        {"ratio": {"numerator": WOMEN, "denominator": MEN}},
        "ratio: product {sex: {sets: [[female]]}} over product {sex: {sets: [[male]]}}",
        ["sex: sets", "sex: sets"],
    ),
    "difference": (
        {"difference": {"left": WOMEN | {"name": "women"}, "right": MEN}},
        "difference: women less product {sex: {sets: [[male]]}}",
        ["women", "sex: sets"],
    ),
    "combination": (
        {"combination": [[2.0, {"marginals": [0]}], [[1.0, -1.0], {"marginals": [["sex"]]}]]},
        "combination: 2 marginals [0] + (2 coefficients) marginals [[sex]]",
        ["total", "sex"],
    ),
    "simultaneous": (
        {"simultaneous": {"marginals": [0, 1], "attributes": ["sex"]}},
        "simultaneous: marginals [0, 1]",
        ["total", "sex"],
    ),
}


def groups(written: dict[str, Any]) -> list[Any]:
    return read_entry(written).expand(DOMAIN)


def test_every_statistic_is_tried() -> None:
    assert {*WRITTEN, "quantiles"} == set(statistics())


@pytest.mark.parametrize("kind", WRITTEN)
def test_statistics_are_read_written_and_expanded(kind: str) -> None:
    written, title, names = WRITTEN[kind]
    entry = read_entry(written)
    assert isinstance(entry, StatisticEntry)
    assert (entry.kind, entry.title) == (kind, title)
    assert [group.name for group in entry.expand(DOMAIN)] == names
    assert read_entry(entry.to_spec()).to_spec() == entry.to_spec()
    specification = {"domain": {"sex": ["female", "male"]}, "workload": [written, entry.to_spec()]}
    jsonschema.Draft202012Validator(json_schema()).validate(specification)


def test_python_has_the_same_forms() -> None:
    made = [
        ask.quantile("hours", [0.1, 0.9], by=["sex"]),
        ask.cdf("month", where={"sex": "male"}),
        ask.mean("hours", by={"sex": "identity"}),
        ask.sum("income", where={"income": {"range": [0, 30]}}),
        ask.top("month", 3),
        ask.share({"marginals": [["sex", "hours"]]}, of=["sex"]),
        ask.ratio(WOMEN, product(sex={"sets": [["male"]]})),
        ask.difference(WOMEN | {"name": "women"}, MEN),
        ask.combination([(2, {"marginals": 0}), (np.array([1.0, -1.0]), {"marginals": [["sex"]]})]),
        ask.simultaneous({"marginals": [0, 1], "attributes": ["sex"]}),
    ]
    for entry, (written, *_) in zip(made, WRITTEN.values(), strict=True):
        assert entry.to_spec() == read_entry(written).to_spec()


def test_quantiles_are_those_of_quantile() -> None:
    assert read_entry({"quantiles": "hours"}).to_spec() == {"quantile": "hours"}
    entry = read_entry({"quantiles": {"hours": 0.5}, "by": "sex", "name": "median hours", "weight": 3})
    assert entry.to_spec() == {
        "quantile": {"hours": [0.5]},
        "by": ["sex"],
        "name": "median hours",
        "weight": 3.0,
    }
    [group] = entry.expand(DOMAIN)
    assert (group.name, group.weight, group.queries) == ("median hours", 3.0, 8)
    assert ask.quantile("hours", 0.5).title == "median of hours"


def test_quantiles_need_the_counts_up_to_each_value_in_an_order() -> None:
    [group] = groups({"quantile": "age"})  # null has no place in the order
    np.testing.assert_array_equal(group.rows(), np.tri(6, 7))
    [group] = groups({"cdf": "age", "where": {"age": {"range": [2, 4]}}})
    np.testing.assert_array_equal(
        group.rows(), [[0, 0, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0, 0]]
    )
    [group] = groups({"cdf": "age", "where": {"age": [1, 4]}})
    np.testing.assert_array_equal(group.rows(), [[0, 1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 1, 0, 0]])
    [group] = groups({"cdf": "hours", "where": {"sex": "male"}})
    np.testing.assert_array_equal(group.rows(), np.kron([[0, 1]], np.tri(4)))
    [group] = groups({"quantile": "hours", "by": {"income": {"ranges": [[0, 30]]}}})
    np.testing.assert_array_equal(group.rows(), np.kron([[1, 1, 0]], np.tri(4)))


def test_means_need_the_sum_about_the_middle_and_the_count() -> None:
    away, count = groups({"mean": "hours", "weight": 2})
    ends = [[-15, -5, 5, 15], [-20, -10, 0, 10], [-10, 0, 10, 20]]  # bins by middles, and by either end
    np.testing.assert_array_equal(away.rows(), ends)
    assert (away.weight, count.weight) == (2 / 20**2, 2)  # a sum as large as a count
    np.testing.assert_array_equal(count.rows(), [[1]])
    away, count = groups({"mean": "age"})
    np.testing.assert_array_equal(away.rows(), [[-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 0]])
    np.testing.assert_array_equal(count.rows(), [[1, 1, 1, 1, 1, 1, 0]])
    [group] = groups({"sum": "hours"})
    np.testing.assert_array_equal(group.rows(), [[5, 15, 25, 35], [0, 10, 20, 30], [10, 20, 30, 40]])
    assert group.weight == pytest.approx(1 / 40**2)
    [group] = groups({"sum": "age", "where": {"age": [0]}})
    assert group.weight == 1.0


def test_shares_need_what_they_are_divided_by() -> None:
    cells = {"product": {"sex": "identity", "hours": "prefix"}}
    assert [group.attributes for group in groups({"share": cells})] == [("sex", "hours"), ()]
    assert [group.attributes for group in groups({"share": cells, "of": []})] == [("sex", "hours"), ()]
    _, divisor = groups({"share": cells, "of": ["hours"]})
    np.testing.assert_array_equal(divisor.rows(), np.tri(4))
    assert [g.attributes for g in groups({"share": cells, "of": WOMEN})] == [("sex", "hours"), ("sex",)]
    boxes = {"cells": [{"sex": "male", "hours": 0}]}
    assert [group.attributes for group in groups({"share": boxes})] == [("sex", "hours"), ()]
    assert ask.share(cells).title == "share: product {sex: identity, hours: prefix}"
    assert ask.share(cells, of=WOMEN | {"name": "women"}).title.endswith(" of women")


def test_coefficients_are_rows_or_come_from_files(tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.eye(2))
    sexes = {"marginals": [["sex"]]}
    entry = entry_from_spec({"combination": [["rows.npy", sexes]]}, tmp_path)
    assert entry.to_spec() == {"combination": [[[[1.0, 0.0], [0.0, 1.0]], {"marginals": [["sex"]]}]]}
    assert read_entry(entry.to_spec()).to_spec() == entry.to_spec()
    assert ask.combination([(np.eye(2), sexes)]).to_spec() == entry.to_spec()


def test_top_asks_for_the_values_that_are_allowed() -> None:
    [group] = groups({"top": {"month": 2}, "where": {"month": ["2013-03", "2013-01", "2013-02"]}})
    np.testing.assert_array_equal(group.rows(), np.eye(3, 12))


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
def test_values_that_cannot_be_listed_are_refused_by_the_name_of_their_attribute(
    written: Any, path: Any
) -> None:
    domain = Domain({"amount": {"min": 0, "max": 9 * 10**15}, "sex": ["female", "male"]})
    with pytest.raises(TooLargeError) as refused:
        read_entry(written).expand(domain)
    assert refused.value.problem is not None
    assert refused.value.problem.path == path
    assert "'amount' with 9,000,000,000,000,001 values" in refused.value.problem.found


def test_windows_of_any_number_of_values_are_counted_without_listing_them() -> None:
    [group] = read_entry({"product": {"amount": {"width": 5}}}).expand(
        Domain({"amount": {"min": 1, "max": 9 * 10**15}})
    )
    assert group.queries == 9 * 10**15 - 4
