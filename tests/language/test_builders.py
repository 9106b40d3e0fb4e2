"""Builders: what entries expand to, and what is refused."""

import itertools
import json
import math
import time
from pathlib import Path
from typing import cast

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from matrixdp.answers.table import AnswerColumns
from matrixdp.domain import Domain
from matrixdp.errors import EntryError, TooLargeError, WorkloadError
from matrixdp.language import dense, kway, marginals, pairwise, product
from matrixdp.queries import (
    DenseGroup,
    Entry,
    Group,
    Identity,
    Predicates,
    Prefix,
    ProductGroup,
    Ranges,
    Sets,
    Workload,
)
from matrixdp.specification import entry_from_spec

DOMAIN = Domain(
    {
        "sex": ["female", "male"],
        "age": range(5),
        "income": {"edges": [0, 10, 25, 50]},
        "hours": {"min": 0, "max": 100, "bins": 4},
        "code": 3,
    }
)


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
    assert names(marginals(2, max_cells=6)) == ["sex, income", "sex, code"]
    assert names(marginals([0, 5])) == ["total", "sex, age, income, hours, code"]


def test_marginals_listed() -> None:
    entry = marginals([["age", "sex"], ["code"], []])
    assert attributes(entry) == [("sex", "age"), ("code",), ()]
    assert names(entry) == ["sex, age", "code", "total"]
    assert names(marginals([[]])) == ["total"]
    assert names(marginals([["age", "sex"], ["code"]], max_cells=3)) == ["code"]
    group = entry.expand(DOMAIN)[0]
    np.testing.assert_array_equal(group.rows(), np.eye(10))


def test_names_given_by_the_user() -> None:
    assert names(marginals([["age"]], name="ages")) == ["ages"]
    assert names(marginals([0, 1], name="m", attributes=["age"])) == ["m: total", "m: age"]
    assert names(product(name="all")) == ["all"]
    assert names(product()) == ["total"]


def test_weights_stand_in_the_order_of_the_answers() -> None:
    weights = np.arange(1.0, 11.0)
    [group] = marginals([["age", "sex"]], weight=2, weights=weights).expand(DOMAIN)
    assert group.weight == 2.0
    np.testing.assert_array_equal(group.query_weights, weights)
    answered = AnswerColumns(DOMAIN, [group]).batches(0, weights, weights, 1.0)
    rows = [row for batch in answered for row in batch.to_pylist()]
    assert [row["estimate"] for row in rows if row["sex"] == "female"] == [1.0, 2.0, 3.0, 4.0, 5.0]
    [group] = product(age="identity", sex="total", code={"width": 2}, weights=weights).expand(DOMAIN)
    assert group.attributes == ("sex", "age", "code")
    np.testing.assert_array_equal(group.query_weights, weights)
    [group] = product(code={"width": 2}, age="identity", weights=weights).expand(DOMAIN)
    np.testing.assert_array_equal(group.query_weights, weights)
    [group] = pairwise("affine", ["code", "age"], weights=np.arange(1.0, 8.0)).expand(DOMAIN)
    np.testing.assert_array_equal(group.query_weights, np.arange(1.0, 8.0))
    [group] = kway(1, "prefix", ["age"], weights=np.arange(1.0, 6.0)).expand(DOMAIN)
    np.testing.assert_array_equal(group.query_weights, np.arange(1.0, 6.0))


# kway


def test_kway_by_kind() -> None:
    entry = kway(2, {"categorical": "identity", "numeric": "prefix"}, ["age", "sex", "code"])
    assert names(entry) == [
        "sex, age: identity x prefix",
        "sex, code: identity x prefix",
        "age, code: prefix x prefix",
    ]
    groups = entry.expand(DOMAIN)
    assert all(isinstance(group, ProductGroup) for group in groups)
    assert predicates_of(groups[0]) == (Identity(), Prefix())
    assert names(kway(1, {"numeric": "range"}, ["sex", "age"])) == ["sex: identity", "age: range"]
    assert names(kway([0, 1], attributes=["sex"])) == ["total", "sex: identity"]
    assert names(kway(1, {"width": 2}, ["age"])) == ["age: width 2"]
    assert names(kway(2, "suffix", max_cells=6)) == [
        "sex, income: suffix x suffix",
        "sex, code: suffix x suffix",
    ]


def test_kway_shares_predicates() -> None:
    groups = kway(2, {"ranges": [[0, 2]]}, ["age", "code"]).expand(DOMAIN)
    assert predicates_of(groups[0]) == (Ranges(((0, 2),)), Ranges(((0, 2),)))
    groups = kway(2, {"numeric": {"width": 2}}, ["sex", "age", "code"]).expand(DOMAIN)
    assert predicates_of(groups[0])[1] is predicates_of(groups[2])[0]


def test_kway_is_fast() -> None:
    domain = Domain({f"a{number}": 50 for number in range(40)})
    start = time.perf_counter()
    assert len(kway(3, "prefix").expand(domain)) == 9880
    assert time.perf_counter() - start < 5


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
    [group] = product(dict.fromkeys(order, kind)).expand(DOMAIN)
    [plain] = kway(3, kind, ["sex", "age", "code"]).expand(DOMAIN)
    np.testing.assert_array_equal(group.rows(), plain.rows())


def test_product_matrix(tmp_path: Path) -> None:
    matrix = np.array([[1.0, 0.5, 0.0]])
    np.save(tmp_path / "m.npy", matrix)
    for given_matrix in (matrix, matrix.tolist(), tmp_path / "m.npy", str(tmp_path / "m.npy")):
        [group] = product(code={"matrix": given_matrix}).expand(DOMAIN)
        np.testing.assert_array_equal(group.rows(), matrix)
        assert group.name == "code: matrix"


def test_product_names_like_keywords() -> None:
    domain = Domain({"name": ["a", "b"], "weight": 3})
    [group] = product({"name": "identity"}, weight=2.0).expand(domain)
    assert group.attributes == ("name",)
    assert group.weight == 2.0


# pairwise and dense


def test_pairwise() -> None:
    groups = pairwise("abs").expand(DOMAIN)
    assert [group.attributes for group in groups] == list(
        itertools.combinations(["age", "income", "hours", "code"], 2)
    )
    [group] = pairwise("affine", ["code", "age"]).expand(DOMAIN)
    assert group.name == "age, code: affine"
    assert group.attributes == ("age", "code")
    assert group.queries == 7
    assert names(pairwise("abs", ["code", "age"], name="gap")) == ["gap"]


@settings(max_examples=60, deadline=None)
@given(st.permutations(["sex", "age", "code"]), st.integers(0, 2**32 - 1))
def test_dense_columns_are_permuted(order: list[str], seed: int) -> None:
    sizes = [DOMAIN[name].size for name in order]
    matrix = np.random.default_rng(seed).normal(size=(4, math.prod(sizes)))
    [group] = dense(matrix, order, weights=[1, 2, 3, 4]).expand(DOMAIN)
    assert isinstance(group, DenseGroup)
    assert group.attributes == ("sex", "age", "code")
    assert group.name == "sex, age, code: dense"
    table = np.random.default_rng(seed + 1).normal(size=[DOMAIN[name].size for name in group.attributes])
    turned = table.transpose([group.attributes.index(name) for name in order])
    np.testing.assert_allclose(group.rows() @ table.ravel(), matrix @ turned.ravel())
    assert group.query_weights is not None
    assert group.query_weights.tolist() == [1, 2, 3, 4]


# specification form


ENTRIES = [
    marginals(2),
    marginals([0, 1], ["age", "sex"], max_cells=4, weight=2, name="m"),
    marginals([["age", "sex"], []]),
    kway(2, {"numeric": {"width": 2}}, ["age", "code"]),
    kway([1, 2], "prefix", max_cells=15),
    product(age={"ranges": [[0, 2], [3, 4]]}, sex={"sets": [["male"], []]}, weight=0.5, weights=[1, 2, 3, 4]),
    product(code={"matrix": np.array([[1.0, 0.5, 0.0]])}, income={"ranges": [[0, 25]]}),
    product(),
    pairwise("affine", ["age", "hours"], weight=3),
    pairwise("abs"),
    dense(np.arange(20.0).reshape(2, 10), ["age", "sex"], weights=[1, 2], name="d"),
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_to_spec_is_read_back(entry: object) -> None:
    spec = json.loads(json.dumps(entry.to_spec()))  # type: ignore[attr-defined]
    again = entry_from_spec(spec)
    assert again.to_spec() == spec
    left, right = entry.expand(DOMAIN), again.expand(DOMAIN)  # type: ignore[attr-defined]
    assert len(left) == len(right)
    for one, two in zip(left, right, strict=True):
        assert (one.name, one.attributes, one.sizes, one.weight) == (
            two.name,
            two.attributes,
            two.sizes,
            two.weight,
        )
        assert one.key() == two.key()
        np.testing.assert_array_equal(one.query_weights, two.query_weights)


# refusals

BAD_BUILDS = [
    (lambda: marginals(-1), "marginals: found -1"),
    (lambda: marginals(True), "marginals: found true"),
    (lambda: marginals(1.0), "marginals: found 1.0"),  # type: ignore[arg-type]
    (lambda: marginals("age"), "marginals: found 'age'"),
    (lambda: marginals([]), "marginals: found an empty list"),
    (lambda: marginals(["age"]), r"marginals\[0\]: found 'age'; expected a list of attributes"),
    (lambda: marginals([["age"], 1]), r"marginals\[1\]: found 1; expected a list of attributes"),  # type: ignore[arg-type]
    (lambda: marginals([1, ["age"]]), r"marginals\[1\]: found \['age'\]"),  # type: ignore[arg-type]
    (lambda: marginals([["age", 3]]), r"marginals\[0\]\[1\]: found 3; expected the name"),  # type: ignore[arg-type]
    (lambda: marginals([["age", "age"]]), r"marginals\[0\]\[1\]: found 'age' a second time"),
    (lambda: marginals([["age"]], attributes=["age"]), "attributes: found attributes with listed"),
    (lambda: marginals(1, attributes="age"), "attributes: found 'age'; expected a list"),
    (lambda: marginals(1, attributes=["age", "age"]), r"attributes\[1\]: found 'age' a second time"),
    (lambda: marginals(1, max_cells=0), "max_cells: found 0"),
    (lambda: marginals(1, max_cells=2.5), "max_cells: found 2.5"),  # type: ignore[arg-type]
    (lambda: marginals(1, weight=0), "weight: found 0"),
    (lambda: marginals(1, weight=-1), "weight: found -1"),
    (lambda: marginals(1, weight=math.nan), "weight: found nan"),
    (lambda: marginals(1, weight=math.inf), "weight: found inf"),
    (lambda: marginals(1, weight=10**400), "weight: found 1000"),
    (lambda: marginals(1, weight="2"), "weight: found '2'"),  # type: ignore[arg-type]
    (lambda: marginals(1, weight=True), "weight: found true"),
    (lambda: marginals(1, weights=[0.0]), "weights: found a weight that is 0"),
    (lambda: marginals(1, weights=[-1.0]), "weights: found a weight that is 0, negative"),
    (lambda: marginals(1, weights=[math.nan]), "weights: found an array with an entry that is NaN"),
    (lambda: marginals(1, weights=[]), "weights: found an array of shape"),
    (lambda: marginals(1, weights=2.0), "weights: found 2.0; expected a NumPy file"),
    (lambda: marginals(1, weights="none.npy"), "weights: found no such file"),
    (lambda: marginals(1, weight=1e300, weights=[1e300]), "overflows or vanishes"),
    (lambda: marginals(1, name=" "), "name: found ' '"),
    (lambda: marginals(1, name=3), "name: found 3"),  # type: ignore[arg-type]
    (lambda: kway([]), "kway: found an empty list"),
    (lambda: kway("2"), "kway: found '2'"),  # type: ignore[arg-type]
    (lambda: kway([1, -2]), r"kway\[1\]: found -2"),
    (lambda: kway(False), "kway: found false"),
    (lambda: kway(2, "prefx"), "predicates: found 'prefx'; .*did you mean 'prefix'"),
    (lambda: kway(2, ""), "predicates: found ''"),
    (lambda: kway(2, {}), "predicates: found an empty mapping"),
    (
        lambda: kway(2, {"numerc": "prefix"}),
        "predicates.numerc: .*did you mean 'numeric'",
    ),
    (
        lambda: kway(2, {"numeric": "prefix", "text": "total"}),
        "predicates.text: found the unknown key",
    ),
    (lambda: kway(2, {"numeric": "x"}), "predicates.numeric: found 'x'"),
    (lambda: product(age=3), "product.age: found 3"),
    (lambda: product(age=None), "product.age: found nothing"),
    (lambda: product(age={}), "product.age: found an empty mapping"),
    (
        lambda: product(age={"width": 2, "sets": [[1]]}),
        "product.age: found a mapping with the keys width, sets",
    ),
    (lambda: product(age={"rnges": [[1, 2]]}), "did you mean 'ranges'"),
    (lambda: product(age={"width": 0}), "product.age.width: found 0"),
    (lambda: product(age={"width": True}), "product.age.width: found true"),
    (lambda: product(age={"ranges": []}), "product.age.ranges: found an empty list"),
    (lambda: product(age={"ranges": "0-3"}), "product.age.ranges: found '0-3'"),
    (lambda: product(age={"ranges": [3]}), r"product.age.ranges\[0\]: found 3; expected a range"),
    (lambda: product(age={"ranges": [[1, 2, 3]]}), r"product.age.ranges\[0\]: found \[1, 2, 3\]"),
    (lambda: product(age={"ranges": [[None, 3]]}), r"product.age.ranges\[0\]\[0\]: found nothing"),
    (lambda: product(age={"sets": []}), "product.age.sets: found an empty list"),
    (lambda: product(age={"sets": ["a"]}), r"product.age.sets\[0\]: found 'a'"),
    (lambda: product(age={"matrix": [[math.inf]]}), "product.age.matrix: found an array with an entry"),
    (lambda: product(["age"]), "product: found \\['age'\\]"),  # type: ignore[arg-type]
    (lambda: product({3: "identity"}), "product: found the key 3"),  # type: ignore[dict-item]
    (lambda: product({"age": "identity"}, age="prefix"), "product.age: found the attribute a second time"),
    (lambda: pairwise("afine"), "pairwise: found 'afine'; expected affine or abs; did you mean 'affine'"),  # type: ignore[arg-type]
    (lambda: pairwise(2), "pairwise: found 2"),  # type: ignore[arg-type]
    (lambda: dense([[1.0]], []), "attributes: found an empty list"),
    (lambda: dense([[1.0]], None), "attributes: found nothing"),
    (lambda: dense([1.0], ["age"]), r"dense: found an array of shape \(1,\)"),
    (lambda: dense("none.npy", ["age"]), "dense: found no such file at none.npy"),
]


@pytest.mark.parametrize(("build", "message"), BAD_BUILDS)
def test_arguments_refused(build: object, message: str) -> None:
    with pytest.raises(EntryError, match=f"^.*{message}"):
        build()  # type: ignore[operator]


BAD_FITS = [
    (marginals(6), "marginals: found 6 attributes at a time; expected at most 5"),
    (marginals([1, 3], ["age", "sex"]), r"marginals\[1\]: found 3 attributes at a time; expected at most 2"),
    (marginals([["aeg"]]), r"marginals\[0\]\[0\]: found 'aeg'; .*did you mean 'age'"),
    (marginals(1, ["aeg"]), r"attributes\[0\]: found 'aeg'"),
    (marginals(2, max_cells=5), "max_cells: found 5, which leaves nothing; expected at least 6"),
    (marginals([["age"]], max_cells=4), "max_cells: found 4, which leaves nothing; expected at least 5"),
    (marginals(1, weights=[1.0]), "weights: found weights for an entry that stands for 5 groups"),
    (marginals([["age"]], weights=[1.0]), "weights: found 1 weights; expected 5"),
    (kway(7), "kway: found 7 attributes"),
    (kway(1, {"ranges": [[0, 9]]}, ["age"]), r"predicates.ranges\[0\]: found \[0, 9\]"),
    (kway(1, {"numeric": {"width": 9}}, ["age"]), "predicates.numeric.width: found 9; expected at most 5"),
    (product(aeg="prefix"), "product.aeg: found 'aeg'; .*did you mean 'age'"),
    (product(age={"ranges": [[0, 1], [2, 5]]}), r"product.age.ranges\[1\]: found \[2, 5\]; .*from 0 to 4"),
    (product(age={"ranges": [[3, 2]]}), r"product.age.ranges\[0\]: found \[3, 2\]"),
    (product(sex={"ranges": [["male", "female"]]}), r"product.sex.ranges\[0\]: .*in the listed order"),
    (product(income={"ranges": [[0, 9]]}), r"product.income.ranges\[0\]: found \[0, 9\]; expected two edges"),
    (product(income={"sets": [[50]]}), r"product.income.sets\[0\]\[0\]: found 50; expected the lower edge"),
    (product(sex={"sets": [["female", "mal"]]}), r"product.sex.sets\[0\]\[1\]: found 'mal'"),
    (product(code={"sets": [[1, 1]]}), r"product.code.sets\[0\]\[1\]: found 1 again"),
    (product(age={"width": 6}), "product.age.width: found 6; expected at most 5"),
    (product(age={"matrix": np.eye(2)}), "product.age.matrix: found a matrix of 2 columns; expected 5"),
    (product(age="prefix", weights=[1.0, 2.0]), "weights: found 2 weights; expected 5"),
    (pairwise("abs", ["sex", "age"]), r"attributes\[0\]: found 'sex', which lists categories"),
    (pairwise("abs", ["age"]), "attributes: found 1 numeric attributes; expected at least 2"),
    (pairwise("abs", weights=[1.0]), "weights: found weights for an entry that stands for 6 groups"),
    (dense(np.eye(3), ["age"]), "dense: found a matrix of 3 columns; expected 5"),
    (dense(np.eye(5), ["aeg"]), r"attributes\[0\]: found 'aeg'"),
    (dense(np.eye(5), ["age"], weights=[1.0]), "weights: found 1 weights; expected 5"),
]


@pytest.mark.parametrize(("entry", "message"), BAD_FITS)
def test_misfits_refused(entry: object, message: str) -> None:
    with pytest.raises(EntryError, match=rf"^workload\[0\]\.{message}"):
        Workload(DOMAIN, entry)  # type: ignore[arg-type]


def test_too_few_numeric_attributes() -> None:
    with pytest.raises(EntryError, match="pairwise: found 1 numeric attributes"):
        pairwise("affine").expand(Domain({"sex": ["f", "m"], "age": 3}))


def test_too_many_groups() -> None:
    domain = Domain({f"a{number}": 2 for number in range(1500)})
    with pytest.raises(TooLargeError, match="kway: found 561375500 combinations of 1500 attributes"):
        kway(3).expand(domain)
    with pytest.raises(TooLargeError, match="marginals: found"):
        marginals([1, 2]).expand(domain)
    with pytest.raises(TooLargeError, match="pairwise: found 1124250 pairs"):
        pairwise("abs").expand(domain)


def test_workload() -> None:
    workload = Workload(DOMAIN, marginals(1), product(age="prefix"), product(age="prefix"))
    assert len(workload) == 7
    assert workload.queries == 2 + 5 + 3 + 4 + 3 + 5 + 5
    assert [group.name for group in workload][-2:] == ["age: prefix", "age: prefix"]
    assert workload.domain is DOMAIN
    assert len(workload.entries) == 3
    with pytest.raises(WorkloadError, match="found no queries"):
        Workload(DOMAIN)


def test_describe_value_is_short() -> None:
    from matrixdp.errors import format_place
    from matrixdp.forms import describe_value

    assert describe_value("a" * 100).endswith("...")
    assert describe_value([[1], 2]) == "a list of 2"
    assert describe_value([]) == "an empty list"
    assert describe_value(object()) == "a value of type object"
    assert format_place(("domain", "a b", 2)) == "domain['a b'][2]"


@pytest.mark.parametrize("written", [3, "kway", ["kway"], None])
def test_an_entry_is_read_from_a_mapping_alone(written):
    from matrixdp.language import KwayEntry

    with pytest.raises(EntryError, match="expected"):
        KwayEntry.read(written)
