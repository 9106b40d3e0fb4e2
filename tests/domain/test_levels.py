"""Levels: coarser lists of values of one attribute, and what workloads ask by them."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.domain import Categorical, Codebook, Domain, attribute_from_spec, encode_value
from matrixdp.pictures.plots import axes_of
from matrixdp.queries import ProductGroup, Workload

COUNTY = {
    "categories": ["Kings", "New York", "Orange"],
    "levels": {"state": {"New York": ["Kings", "New York"], "CA": ["Orange"]}},
}
HALVES = {"half": {"low": {"range": [0, 1]}, "rest": [2, 3, None]}}
AGE = {"min": 0, "max": 3, "null": "unknown", "levels": HALVES}
PAY = {"edges": [-math.inf, 0, 10], "levels": {"sign": {"debt": ["-inf"], "none": [0]}}}
DOMAIN = Domain({"county": COUNTY, "age": AGE, "pay": PAY})


def test_levels_come_back() -> None:
    again = Domain.from_spec(json.loads(json.dumps(DOMAIN.to_spec(), allow_nan=False)))
    assert again == DOMAIN
    assert again["age"].level("half").groups == (("low", (0, 1)), ("rest", (2, 3, 4)))
    county = DOMAIN["county"]
    levels = Codebook(levels=(county.level("state"),))
    assert Categorical("county", county.categories, codebook=levels) == county  # type: ignore[attr-defined]
    assert again["pay"].level("sign").groups == (("debt", (0,)), ("none", (1,)))
    owners = {name: attribute.name for name, attribute in DOMAIN.levels.items()}
    assert owners == {"state": "county", "half": "age", "sign": "pay"}


def test_what_is_asked_of_a_level_are_sets_of_values() -> None:
    counties = mdp.product(county=["identity", {"level": "state"}])
    by_product, by_marginal, plain = Workload(DOMAIN, counties, mdp.marginals([["half", "state"], ["age"]]))
    assert isinstance(by_product, ProductGroup)
    assert isinstance(by_marginal, ProductGroup)
    states = [[1, 1, 0], [0, 0, 1]]
    np.testing.assert_array_equal(by_product.rows(), [*np.eye(3), *states])
    assert by_product.name == "county: identity + level state"
    np.testing.assert_array_equal(by_marginal.rows(), np.kron(states, [[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]]))
    assert (by_marginal.name, by_marginal.attributes) == ("state, half", ("county", "age"))
    assert plain.queries == 5
    # one that is called like another value says of which level it is
    texts = by_product.predicates[0].describe(DOMAIN["county"])
    assert texts == ["Kings", "New York", "Orange", "New York (state)", "CA"]
    # cells of a level are those that are counted
    assert len(mdp.marginals([["state", "half"], ["age"]], max_cells=4).expand(DOMAIN)) == 1
    weighted = mdp.marginals([["half", "state"]], weights=[1, 2, 3, 4]).expand(DOMAIN)[0]
    assert weighted.query_weights is not None
    assert weighted.query_weights.tolist() == [1, 2, 3, 4]


def test_names_of_levels_and_of_their_values() -> None:
    own = {"l": {"x": ["x"], "z": ["y"]}}
    attribute = attribute_from_spec("a", {"categories": ["x", "y"], "levels": own})
    assert attribute.level("l").labels(attribute) == ("x", "z")
    # levels of one name go by their attributes
    levels = {"levels": {"b": {"all": [0, 1]}, "both": {"all": [0, 1]}}}
    domain = Domain({"a": {"size": 2, **levels}, "b": 2, "c": {"size": 2, **levels}})
    assert domain.levels == {}
    assert mdp.product(a={"level": "both"}).expand(domain)[0].queries == 1


def test_a_level_is_asked_for_and_shown_by_its_name(tmp_path: Path):
    by_name = mdp.Workload(DOMAIN, mdp.product(state="identity", age="identity"))
    (group,) = by_name.groups
    (same,) = mdp.product(county={"level": "state"}, age="identity").expand(DOMAIN)
    assert isinstance(group, ProductGroup)
    assert isinstance(same, ProductGroup)
    assert (group.attributes, group.predicates) == (same.attributes, same.predicates)
    table = {"county": ["Kings", "Orange"] * 20, "age": [1, 2] * 20, "pay": [1.0] * 40}
    release = mdp.select(by_name).measure(table, mdp.Budget(rho=5)).reconstruct()
    assert release.answers.column_names[1] == "county"
    own = release.table(group.name)
    assert [own.column_names[0], own["state"][0].as_py()] == ["state", "New York (state)"]
    assert release.answer(mdp.product(state="identity")).column_names[1] == "state"
    assert "CA" in release.cross_table(group.name, ["age", "state"]).columns
    assert release.mean("age", by="state").column_names[0] == "state"
    assert release.mean("age", by={"state": "identity"}).equals(release.mean("age", by=["state"]))
    (axis, _) = axes_of(DOMAIN, group)
    assert axis.name == "state"
    alone = mdp.select(mdp.Workload(DOMAIN, mdp.marginals(1))).measure(table, mdp.Budget(rho=5)).reconstruct()
    with pytest.raises(mdp.UnsupportedQueryError, match=r"add `marginals: \[\[state, age\]\]`"):
        alone.answer(mdp.product(state="identity", age="identity"))


def test_missing_values_are_missing_in_the_level_too():
    groups = {"north": ["a"], "south": ["b"]}
    spec: dict[str, Any] = {"categories": ["a", "b"], "null": "abroad", "levels": {"part": groups}}
    attribute = attribute_from_spec("x", spec)
    assert attribute.level("part").groups == (("north", (0,)), ("south", (1,)), ("abroad", (2,)))
    assert attribute_from_spec("x", attribute.to_spec()) == attribute
    joined = attribute_from_spec("x", spec | {"levels": {"part": {"in": ["a"], "abroad": ["b"]}}})
    assert joined.level("part").groups == (("in", (0,)), ("abroad", (1, 2)))
    listed = attribute_from_spec("x", spec | {"levels": {"part": {"in": ["a"], "out": ["b", "abroad"]}}})
    assert listed.level("part").groups == (("in", (0,)), ("out", (1, 2)))


@pytest.mark.parametrize(
    ("by", "level"),
    [
        *(("day", level) for level in ("week", "month", "quarter", "year")),
        *(("month", level) for level in ("quarter", "year")),
        ("quarter", "year"),
    ],
)
def test_levels_of_dates_are_coarser_units(by: str, level: str) -> None:
    ends = {"from": "2023-11-30", "to": "2025-05-02"}  # a leap year between, the first and last values cut
    fine = attribute_from_spec("a", {**ends, "by": by, "null": "none", "levels": [level]})
    coarse = attribute_from_spec("a", {**ends, "by": level, "null": "none"})
    groups = fine.level(level).groups
    assert [value for value, _ in groups] == [coarse.label(code) for code in coarse.all_codes]
    found = {code: place for place, (_, codes) in enumerate(groups) for code in codes}
    for day in np.arange("2023-11-30", "2025-05-03", dtype="datetime64[D]").tolist():
        assert found[encode_value(fine, day)] == encode_value(coarse, day)
    assert attribute_from_spec("a", fine.to_spec()) == fine
