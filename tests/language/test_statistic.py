"""Entries of statistics: the counts that they stand for, how they are written, and what is refused."""

import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from matrixdp.domain import Domain
from matrixdp.errors import EntryError, SpecificationError, TooLargeError
from matrixdp.language import ask, product, read_entry
from matrixdp.language.statistics import StatisticEntry, statistic_keys
from matrixdp.specification import entry_from_spec, json_schema, load_specification

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
    assert {*WRITTEN, "quantiles"} == set(statistic_keys())


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
    with pytest.raises(SpecificationError, match=r"workload\[0\].quantiles.hours \(line 3\): found 2;"):
        load_specification("domain: {hours: 4}\nworkload:\n  - quantiles: {hours: 2}\n")


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
    with pytest.raises(EntryError, match=r"combination\[0\]\[0\]: found an array"):
        groups({"combination": [[[1, float("nan")], sexes]]})


def test_top_asks_for_the_values_that_are_allowed() -> None:
    [group] = groups({"top": {"month": 2}, "where": {"month": ["2013-03", "2013-01", "2013-02"]}})
    np.testing.assert_array_equal(group.rows(), np.eye(3, 12))


def test_weights_are_for_one_group() -> None:
    [group] = groups({"cdf": "hours", "weights": [1, 2, 3, 4], "weight": 2})
    np.testing.assert_array_equal(group.query_weights, [1, 2, 3, 4])
    with pytest.raises(EntryError, match="weights for an entry that stands for 2 groups"):
        groups({"mean": "hours", "weights": [1, 2]})


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a list of categories": ({"cdf": "sex"}, "cdf.sex: found 'sex', which lists categories"),
    "days of the week": ({"quantile": "day"}, "quantile.day: found 'day', whose values are days of the week"),
    "dates": ({"mean": "month"}, "mean.month: found 'month', whose values are dates"),
    "a bin without an end": ({"sum": "income"}, "sum.income: found 'income', of which a bin has no end"),
    "null alone": ({"cdf": "age", "where": {"age": "unknown"}}, "cdf.age: found no value but null"),
    "an unknown attribute": ({"mean": "hour"}, "mean: found 'hour'; expected an attribute of the domain"),
    "by itself": ({"cdf": "hours", "by": ["hours"]}, "by: found 'hours', of which the statistic is"),
    "by a condition": (
        {"cdf": "hours", "by": ["sex"], "where": {"sex": "male"}},
        "by: found 'sex', an attribute of `where`",
    ),
    "by what there is not": ({"cdf": "hours", "by": ["sexx"]}, "by.sexx: found 'sexx'"),
    "a condition that is not in the domain": (
        {"cdf": "hours", "where": {"sex": "x"}},
        "where.sex: found 'x'",
    ),
    "too many": ({"top": {"sex": 3}}, "top.sex: found 3; expected at most 2"),
    "of what is not asked": (
        {"share": {"marginals": [["sex"]]}, "of": ["hours"]},
        "of: found 'hours', which 'sex' does not ask about",
    ),
    "of no attribute": ({"share": {"marginals": [["sex"]]}, "of": ["x"]}, r"of\[0\]: found 'x'"),
    "of merged attributes": (
        {"share": {"cells": [{"sex": "male"}]}, "of": ["sex"]},
        "of: found 'sex: cells', whose queries are over merged attributes",
    ),
    "a statistic of a statistic": (
        {"share": {"mean": "hours"}},
        "share: found a statistic, `mean`; expected an entry of counts",
    ),
    "a part that does not fit": (
        {"ratio": {"numerator": WOMEN, "denominator": {"marginals": [["x"]]}}},
        r"ratio.denominator.marginals\[0\]\[0\]: found 'x'",
    ),
    "several groups": (
        {"share": {"marginals": [0, 1]}},
        "share: found an entry of 8 groups; expected one that",
    ),
    "others than there": (
        {"difference": {"left": {"marginals": [["sex"]]}, "right": {"marginals": [["hours"]]}}},
        "difference.right: found 4 queries; expected 1 query, or 2 as there",
    ),
    "others than shares": (
        {"share": {"marginals": [["sex"]]}, "of": {"marginals": [["hours"]]}},
        "of: found 4 queries; expected 1 query, or 2 as there",
    ),
    "too few coefficients": (
        {"combination": [[2, {"marginals": [["sex"]]}]]},
        r"combination\[0\]\[0\]: found 1 coefficients; expected one for each of 2 queries",
    ),
    "other rows of coefficients": (
        {"combination": [[[[1, 0], [0, 1]], {"marginals": [["sex"]]}], [1, {"marginals": 0}]]},
        r"combination\[1\]\[0\]: found 1 rows of coefficients; expected 2, as many",
    ),
    "half a ratio": ({"ratio": {"numerator": WOMEN}}, "ratio.denominator: found nothing"),
    "no pair": ({"combination": [WOMEN]}, r"combination\[0\]: found a mapping with the key"),
    "no number": ({"combination": [["x", WOMEN]]}, r"combination\[0\]\[0\]"),
    "no entry": ({"combination": [[1, 2]]}, r"combination\[0\]\[1\]: found 2; expected an entry"),
    "two attributes": (
        {"quantile": {"age": 0.5, "hours": 0.5}},
        "quantile: found 2 attributes; expected one attribute",
    ),
    "no share": (
        {"quantile": {"age": True}},
        "quantile.age: found true; expected a number above 0 and below 1",
    ),
    "all": ({"quantile": {"age": [0.5, 1]}}, r"quantile.age\[1\]: found 1; expected a number above 0"),
    "top of no number": ({"top": "sex"}, r"top: found 'sex'; expected \{city: 10\}"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named_at_its_place(name: str) -> None:
    written, message = WRONG[name]
    with pytest.raises(EntryError, match="^" + message):
        groups(written)


def test_too_many_values_are_refused_before_anything_is_measured() -> None:
    with pytest.raises(TooLargeError, match=re.escape("cdf.code: found 5000 values; expected at most 4000")):
        groups({"cdf": "code"})
    with pytest.raises(TooLargeError, match=re.escape("top.code: found 5000 values; expected at most 4000")):
        groups({"top": {"code": 5}})
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
