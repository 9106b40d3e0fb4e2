"""Builders: what entries expand to."""

import itertools
import math
import time
from pathlib import Path
from typing import cast

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import matrixdp as mdp
from matrixdp import dense, kway, marginals, pairwise, product, queries
from matrixdp.answers.table import AnswerColumns
from matrixdp.queries import Entry, Group, Predicates, ProductGroup, Ranges, Sets

DOMAIN = mdp.Domain(
    {
        "sex": ["female", "male"],
        "age": range(5),
        "income": {"edges": [0, 10, 25, 50]},
        "hours": {"min": 0, "max": 100, "bins": 4},
        "code": 3,
    }
)


def only(entry: Entry) -> Group:
    [group] = entry.expand(DOMAIN)
    return group


def names(entry: Entry) -> list[str]:
    return [group.name for group in entry.expand(DOMAIN)]


def attributes(entry: Entry) -> list[tuple[str, ...]]:
    return [group.attributes for group in entry.expand(DOMAIN)]


def predicates_of(group: Group) -> tuple[Predicates, ...]:
    assert isinstance(group, ProductGroup)
    return group.predicates


# marginals


def test_marginals_by_number() -> None:
    assert attributes(marginals(2)) == list(itertools.combinations(DOMAIN.names, 2))
    assert attributes(marginals([0, 1])) == [(), *((name,) for name in DOMAIN.names)]
    assert attributes(marginals(range(2))) == attributes(marginals([0, 1]))
    assert attributes(marginals(cast("int", np.int64(1)))) == attributes(marginals(1))
    assert len(marginals([1, 1]).expand(DOMAIN)) == 10  # a repeated query counts as often as it stands
    assert names(marginals([0, 1], attributes=["code", "sex"])) == ["total", "sex", "code"]
    assert names(marginals([["code"], 0, 1], attributes=["sex"])) == ["total", "sex", "code"]
    assert names(marginals(2, max_cells=6)) == ["sex, income", "sex, code"]
    assert names(marginals([0, 5])) == ["total", "sex, age, income, hours, code"]


def test_marginals_listed() -> None:
    entry = marginals([["age", "sex"], ["code"], []])
    assert attributes(entry) == [("sex", "age"), ("code",), ()]
    assert names(entry) == ["sex, age", "code", "total"]
    assert names(marginals([[]])) == ["total"]
    assert names(marginals([["age", "sex"], ["code"]], max_cells=3)) == ["code"]
    np.testing.assert_array_equal(entry.expand(DOMAIN)[0].rows(), np.eye(10))


def test_names_given_by_the_user() -> None:
    assert names(marginals([["age"]], name="ages")) == ["ages"]
    assert names(marginals([0, 1], name="m", attributes=["age"])) == ["m: total", "m: age"]
    assert names(product(name="all")) == ["all"]
    assert names(product()) == ["total"]


def test_weights_stand_in_the_order_of_the_answers() -> None:
    weights = np.arange(1.0, 11.0)
    group = only(marginals([["age", "sex"]], weight=2, weights=weights))
    assert group.weight == 2.0
    answered = AnswerColumns(DOMAIN, [group]).batches(0, weights, weights, 1.0)
    rows = [row for batch in answered for row in batch.to_pylist()]
    assert [row["estimate"] for row in rows if row["sex"] == "female"] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert only(product(age="identity", sex="total", code={"sliding": 2})).attributes == (
        "sex",
        "age",
        "code",
    )


@pytest.mark.parametrize(
    ("build", "queries"),
    [
        (lambda own: marginals([["age", "sex"]], weights=own), 10),
        (lambda own: product(age="identity", sex="total", code={"sliding": 2}, weights=own), 10),
        (lambda own: product(code={"sliding": 2}, age="identity", weights=own), 10),
        (lambda own: pairwise("affine", ["code", "age"], weights=own), 7),
        (lambda own: kway(1, "prefix", ["age"], weights=own), 5),
    ],
)
def test_every_entry_of_one_group_has_weights(build, queries) -> None:
    weights = np.arange(1.0, 1.0 + queries)
    np.testing.assert_array_equal(only(build(weights)).query_weights, weights)


# kway


def test_kway_by_kind() -> None:
    entry = kway(2, {"categorical": "identity", "numeric": "prefix"}, ["age", "sex", "code"])
    assert names(entry) == [
        "sex, age: identity x prefix",
        "sex, code: identity x prefix",
        "age, code: prefix x prefix",
    ]
    assert predicates_of(entry.expand(DOMAIN)[0]) == (queries.Identity(), queries.Prefix())
    assert names(kway(1, {"numeric": "range"}, ["sex", "age"])) == ["sex: identity", "age: range"]
    assert names(kway([0, 1], attributes=["sex"])) == ["total", "sex: identity"]
    assert names(kway(1, {"sliding": 2}, ["age"])) == ["age: sliding 2"]
    assert names(kway(2, "suffix", max_cells=6)) == [
        "sex, income: suffix x suffix",
        "sex, code: suffix x suffix",
    ]


def test_kway_shares_predicates() -> None:
    groups = kway(2, {"ranges": [[0, 2]]}, ["age", "code"]).expand(DOMAIN)
    assert predicates_of(groups[0]) == (Ranges(((0, 2),)), Ranges(((0, 2),)))
    groups = kway(2, {"numeric": {"sliding": 2}}, ["sex", "age", "code"]).expand(DOMAIN)
    assert predicates_of(groups[0])[1] is predicates_of(groups[2])[0]


def test_kway_is_fast() -> None:
    domain = mdp.Domain({f"a{number}": 50 for number in range(40)})
    start = time.process_time()
    assert len(kway(3, "prefix").expand(domain)) == 9880
    assert time.process_time() - start < 5


# product


def test_product_values_become_codes() -> None:
    [group] = product(
        {"income": {"ranges": [[0, 25], [25, 50]]}},
        sex={"sets": [["female"], ["male", "female"]]},
        hours={"sets": [[0, 75]]},
        age={"ranges": [[1, 1], [0, 4]]},
    ).expand(DOMAIN)
    assert group.name == "sex, age, income, hours: sets x ranges x ranges x sets"
    assert predicates_of(group) == (
        Sets(((0,), (1, 0))),
        Ranges(((1, 1), (0, 4))),
        Ranges(((0, 1), (2, 2))),
        Sets(((0, 3),)),
    )


@settings(max_examples=60, deadline=None)
@given(st.permutations(["sex", "age", "code"]), st.sampled_from(["identity", "prefix", "range", "circular"]))
def test_the_order_of_attributes_never_changes_a_query(order: list[str], kind: str) -> None:
    group = only(product(dict.fromkeys(order, kind)))
    [plain] = kway(3, kind, ["sex", "age", "code"]).expand(DOMAIN)
    np.testing.assert_array_equal(group.rows(), plain.rows())


def test_product_matrix(tmp_path: Path) -> None:
    matrix = np.array([[1.0, 0.5, 0.0]])
    np.save(tmp_path / "m.npy", matrix)
    for given_matrix in (matrix, matrix.tolist(), tmp_path / "m.npy", str(tmp_path / "m.npy")):
        group = only(product(code={"matrix": given_matrix}))
        np.testing.assert_array_equal(group.rows(), matrix)
        assert group.name == "code: matrix"


def test_product_names_like_keywords() -> None:
    [group] = product({"name": "identity"}, weight=2.0).expand(mdp.Domain({"name": ["a", "b"], "weight": 3}))
    assert (group.attributes, group.weight) == (("name",), 2.0)


# pairwise and dense


def test_pairwise() -> None:
    groups = pairwise("abs").expand(DOMAIN)
    assert [group.attributes for group in groups] == list(
        itertools.combinations(["age", "income", "hours", "code"], 2)
    )
    group = only(pairwise("affine", ["code", "age"]))
    assert group.name == "age, code: affine"
    assert group.attributes == ("age", "code")
    assert group.queries == 7
    assert names(pairwise("abs", ["code", "age"], name="gap")) == ["gap"]


@settings(max_examples=60, deadline=None)
@given(st.permutations(["sex", "age", "code"]), st.integers(0, 2**32 - 1))
def test_dense_columns_are_permuted(order: list[str], seed: int) -> None:
    sizes = [DOMAIN[name].size for name in order]
    matrix = np.random.default_rng(seed).normal(size=(4, math.prod(sizes)))
    group = only(dense(matrix, order, weights=[1, 2, 3, 4]))
    assert group.attributes == ("sex", "age", "code")
    assert group.name == "sex, age, code: dense"
    table = np.random.default_rng(seed + 1).normal(size=[DOMAIN[name].size for name in group.attributes])
    turned = table.transpose([group.attributes.index(name) for name in order])
    np.testing.assert_allclose(group.rows() @ table.ravel(), matrix @ turned.ravel())
    assert group.query_weights is not None
    assert group.query_weights.tolist() == [1, 2, 3, 4]
