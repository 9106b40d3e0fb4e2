"""Titles of tables: in the words of the workload, unique, and found however they are written."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp import Domain, Workload, WorkloadError, cells, dense, kway, marginals, pairwise, product
from matrixdp.answers.titles import find_group, title, titles
from matrixdp.language.predicates import KEYED_PREDICATES, NAMED_PREDICATES

COUNTIES = {"categories": ["a", "b", "c"], "levels": {"state": {"N": ["a", "b"], "S": ["c"]}}}
DOMAIN = Domain(
    {
        "sex": ["female", "male"],
        "age": range(20),
        "income": {"min": 0, "max": 4},
        "county": COUNTIES,
    }
)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (marginals(0), "total"),
        (marginals(0, name="people"), "people"),
        (marginals([["age"]]), "age"),
        (marginals([["sex", "age"]]), "sex by age"),
        (marginals([["sex", "age", "county"]]), "sex by age and county"),
        (marginals([["sex", "state"]]), "sex by state"),
        (marginals([["state"]]), "state"),
        (product(county={"level": "state"}, age="prefix"), "age CDF by state"),
        (kway(2, {"numeric": "prefix"}, attributes=["sex", "age"]), "age CDF by sex"),
        (product(age="prefix", income="prefix", sex="identity"), "age and income CDF by sex"),
        (product(age="prefix", income="range"), "age CDF and income ranges"),
        (product(age="range", sex="identity"), "age ranges by sex"),
        (product(age="suffix", sex="total"), "age complementary CDF"),
        (product(age={"sliding": 5}), "age ranges of 5"),
        (product(age="circular", income="total"), "age circular ranges"),
        (product(age={"permuted": "range", "seed": 1}), "age permuted ranges"),
        (marginals([["sex", "age"]], name="one, two, three"), "one, two, three"),
        (marginals([["age"]], name="years"), "years"),
        (product(age={"permuted": {"sets": [[1]]}, "seed": 1}), "age in 1 group"),
        (product(sex=["identity", "total"], age="prefix"), "sex values and total and age CDF"),
        (product(age={"ranges": [[0, 9], [10, 19]]}, sex={"sets": [["male"]]}), None),
        (product(age={"matrix": np.eye(20)[:3]}), "age combinations"),
        (product(sex="total"), "total"),
        (product(age="prefix", name="age: mine"), "age: mine"),
        (product(age="prefix", sex="identity", name="sex, age: overview"), "sex, age: overview"),
        (pairwise("affine", attributes=["age", "income"]), "age, income: affine"),
        (dense(np.ones((1, 2)), ["sex"], name="weighted"), "weighted"),
        (cells([[{"sex": "male", "age": [3]}]], name="boxes"), "boxes"),
    ],
)
def test_a_title_is_the_name_or_says_what_is_asked(entry, expected) -> None:
    [group] = entry.expand(DOMAIN)
    assert title(group) == (expected or "sex in 1 group by age in 2 groups")


KEYED = {
    "sliding": 5,
    "change": 1,
    "ranges": [["2021-01-01", "2021-01-31"]],
    "sets": [["2021-01-01"]],
    "level": "state",
    "matrix": np.eye(396)[:3],
    "permuted": "range",
}
SEED = {"permuted": {"seed": 1}}


@pytest.mark.parametrize("kind", [*NAMED_PREDICATES, *KEYED_PREDICATES])
def test_every_predicate_set_has_a_title(kind: str) -> None:
    """A set that is new to the language needs an example here, and words in `titles`."""
    asked = {kind: KEYED[kind]} | SEED.get(kind, {}) if kind in KEYED else kind
    days = {"from": "2021-01-01", "to": "2022-01-31", "by": "day"}
    domain = Domain({"sex": 2, "county": COUNTIES} if kind == "level" else {"sex": 2, "day": days})
    [group] = product({"sex": "identity", domain.names[1]: asked}).expand(domain)
    assert title(group) != group.name


def test_an_entry_of_several_groups_calls_them_by_its_name() -> None:
    groups = Workload(DOMAIN, marginals(1, name="mine")).groups
    assert [title(group) for group in groups] == [f"mine: {name}" for name in DOMAIN.names]


def test_titles_are_unique() -> None:
    entries = [marginals(0), marginals(0), marginals(0, name="total (2)"), marginals(0)]
    assert titles(Workload(DOMAIN, *entries).groups) == ("total", "total (3)", "total (2)", "total (4)")


GROUPS = Workload(
    DOMAIN,
    marginals([["sex", "age"], ["county"]]),
    product(sex="identity", age="prefix"),
    product(sex="identity", income="prefix", name="Income by Sex, cumulated"),
    product(sex="identity", county="identity", age="prefix"),
    product(sex="identity", county="identity", age="range"),
    marginals([["county"]]),
).groups


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sex by age", 0),
        ("age by sex", 0),
        ("AGE, sex", 0),
        ("sex,age", 0),
        ("age  cdf BY sex", 2),
        ("sex by age CDF", 2),
        ("sex, age: identity x prefix", 2),
        ("income by sex, cumulated", 3),
        ("cumulated income sex", 3),
        ("income, sex", 3),
        ("county", 1),
        ("county (2)", 6),
    ],
)
def test_a_group_is_found_by_title_name_or_attributes(text, expected) -> None:
    assert find_group(GROUPS, text) == expected


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        ("age cdf by sxe", "age CDF by sex"),
        ("cumulated things", "Income by Sex, cumulated"),
        ("sex, county, age", "age CDF by sex and county"),
    ],
)
def test_what_means_no_table_or_several_is_refused_with_the_nearest(text, suggested) -> None:
    with pytest.raises(WorkloadError) as caught:
        find_group(GROUPS, text)
    assert suggested in caught.value.problem.suggestions


def test_what_is_written_exactly_so_comes_first() -> None:
    domain = mdp.Domain({"Age": 2, "age": 2, "AGE": 2})
    groups = mdp.Workload(domain, mdp.marginals(1)).groups
    assert [find_group(groups, text) for text in ("Age", "age", "AGE")] == [0, 1, 2]
    with pytest.raises(WorkloadError):
        find_group(groups, "aGe")
    others = ["mean of age", "Mean of age"]
    assert [find_group(groups, text, others) for text in (*others, "MEAN OF AGE")] == [3, 4, 4]


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(WorkloadError, match="found 3; expected the title of a table, as text"):
        find_group(GROUPS, 3)  # type: ignore[arg-type]
