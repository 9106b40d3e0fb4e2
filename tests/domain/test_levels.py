"""Levels: coarser lists of values of one attribute, and what workloads ask by them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.domain import Categorical, Codebook, Domain, Integers, Level, attribute_from_spec
from matrixdp.errors import DomainError, WorkloadError
from matrixdp.pictures.style import axes_of
from matrixdp.queries import Entry, ProductGroup, Workload

COUNTY = {
    "categories": ["Kings", "New York", "Orange"],
    "levels": {"state": {"New York": ["Kings", "New York"], "CA": ["Orange"]}},
}
AGE = {
    "min": 0,
    "max": 3,
    "null": "unknown",
    "levels": {"half": {"low": {"range": [0, 1]}, "rest": [2, 3, None]}},
}
PAY = {"edges": [-math.inf, 0, 10], "levels": {"sign": {"debt": ["-inf"], "none": [0]}}}
DOMAIN = Domain({"county": COUNTY, "age": AGE, "pay": PAY})


def test_levels_come_back() -> None:
    again = Domain.from_spec(json.loads(json.dumps(DOMAIN.to_spec(), allow_nan=False)))
    assert again == DOMAIN
    assert again["age"].level("half").groups == (("low", (0, 1)), ("rest", (2, 3, 4)))
    assert again["pay"].level("sign").groups == (("debt", (0,)), ("none", (1,)))
    assert {name: attribute.name for name, attribute in DOMAIN.levels.items()} == {
        "state": "county",
        "half": "age",
        "sign": "pay",
    }


def test_what_is_asked_of_a_level_are_sets_of_values() -> None:
    workload = Workload(
        DOMAIN,
        mdp.product(county=["identity", {"level": "state"}]),
        mdp.marginals([["half", "state"], ["age"]]),
    )
    by_product, by_marginal, plain = workload
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


def test_cells_of_a_level_are_those_that_are_counted() -> None:
    assert len(mdp.marginals([["state", "half"], ["age"]], max_cells=4).expand(DOMAIN)) == 1
    weighted = mdp.marginals([["half", "state"]], weights=[1, 2, 3, 4]).expand(DOMAIN)[0]
    assert weighted.query_weights is not None
    assert weighted.query_weights.tolist() == [1, 2, 3, 4]


def test_a_value_alone_is_called_as_it_is() -> None:
    attribute = attribute_from_spec(
        "a", {"categories": ["x", "y"], "levels": {"l": {"x": ["x"], "z": ["y"]}}}
    )
    assert attribute.level("l").labels(attribute) == ("x", "z")


def test_levels_of_one_name_go_by_their_attributes() -> None:
    levels = {"levels": {"b": {"all": [0, 1]}, "both": {"all": [0, 1]}}}
    domain = Domain({"a": {"size": 2, **levels}, "b": 2, "c": {"size": 2, **levels}})
    assert domain.levels == {}
    assert mdp.product(a={"level": "both"}).expand(domain)[0].queries == 1
    with pytest.raises(WorkloadError, match=r"marginals\[0\]\[0\]: found 'both', a level of 'a' and 'c'; "):
        mdp.marginals([["both"]]).expand(domain)


@pytest.mark.parametrize(
    ("levels", "place", "told"),
    [
        ({"l": ["f"]}, "sex.levels.l", "found ['f']; expected a mapping from each value of the level"),
        ({"l": {}}, "sex.levels.l", "found an empty mapping"),
        ({"l": {"x": ["f"]}}, "sex.levels.l", "found no value for 'm'; expected every value of 'sex' once"),
        ({"l": {"x": ["f", "m"], "y": ["f"]}}, "sex.levels.l.y", "found 'f' again, which is in 'x'"),
        ({"l": {"x": ["f", "m"], "y": []}}, "sex.levels.l.y", "found an empty list"),
        ({"l": {"x": ["f", "n"]}}, "sex.levels.l.x[1]", "found 'n'; expected a category of 'sex'"),
        (
            {"l": {"x": "f"}},
            "sex.levels.l.x",
            "found 'f'; expected a list of values, or {range: [first, last]}",
        ),
        ({"l": {"x": {"rang": [1, 2]}}}, "sex.levels.l.x", "found a mapping with the keys rang"),
        ({"l": {"x": {"range": ["m", "f"]}}}, "sex.levels.l.x.range", "in the listed order"),
        ({"l": {" ": ["f", "m"]}}, "sex.levels.l", "found ' '; expected text that is not empty, a name"),
        ({" ": {"x": ["f", "m"]}}, "sex.levels", "found ' '; expected text that is not empty, a name"),
        (["l"], "sex.levels", "found ['l']; expected a mapping from names to levels"),
        ("levels.csv", "sex.levels", "expected a mapping from names to levels; a file is named in a spec"),
    ],
)
def test_what_is_no_level(levels: object, place: str, told: str) -> None:
    with pytest.raises(DomainError) as caught:
        Domain({"sex": {"categories": ["f", "m"], "levels": levels}})
    assert str(caught.value).startswith(f"{place}: ")
    assert told in str(caught.value)


def test_levels_are_checked_where_they_are_given_as_objects() -> None:
    level = Level("l", (("all", (0, 1)),))
    sex = Categorical("sex", ("f", "m"), codebook=Codebook(levels=(level,)))
    assert sex == attribute_from_spec("sex", sex.to_spec())
    with pytest.raises(DomainError, match=r"sex\.levels\.l: found the level a second time"):
        Categorical("sex", ("f", "m"), codebook=Codebook(levels=(level, level)))
    with pytest.raises(DomainError, match="found no value for '2' and 1 more; expected every value of 'age'"):
        Integers("age", 0, 3, codebook=Codebook(levels=(level,)))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (
            mdp.product(county={"level": "stat"}),
            "product.county.level: found 'stat'; expected a level of 'county'; did",
        ),
        (
            mdp.product(state="prefix"),
            r"product.state: found 'state', a level of 'county'; expected the attribute .*county: {level",
        ),
        (mdp.product(county="identity", state="identity"), r"product.state: found 'state' beside another level"),
        (mdp.marginals([["state", "county"]]), r"found 'county' beside 'state', which are one attribute"),
        (mdp.marginals(1, attributes=["state"]), r"attributes\[0\]: found 'state', a level of 'county'"),
    ],
)
def test_levels_that_cannot_be_asked_for(entry: Entry, told: str) -> None:
    with pytest.raises(WorkloadError, match=told):
        Workload(DOMAIN, entry)


def test_a_level_that_there_is_not() -> None:
    county = attribute_from_spec(
        "county", {"categories": ["a", "b"], "levels": {"state": {"NY": ["a", "b"]}}}
    )
    assert county.level("state").name == "state"
    with pytest.raises(DomainError, match=r"a level of 'county'.*did you mean 'state'"):
        county.level("stat")


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
    assert "CA" in release.table(group.name, pivot="state").column_names
    out = release.save_tables(tmp_path / "tables", pivot="state")
    assert "CA_stddev" in next(out.glob("*.csv")).read_text().splitlines()[0]
    assert release.mean("age", by="state").column_names[0] == "state"
    assert release.mean("age", by={"state": "identity"}).equals(release.mean("age", by=["state"]))
    (axis, _) = axes_of(DOMAIN, group)
    assert axis.name == "state"
    alone = mdp.select(mdp.Workload(DOMAIN, mdp.marginals(1))).measure(table, mdp.Budget(rho=5)).reconstruct()
    with pytest.raises(mdp.UnsupportedQueryError, match=r"add `marginals: \[\[state, age\]\]`"):
        alone.answer(mdp.product(state="identity", age="identity"))
