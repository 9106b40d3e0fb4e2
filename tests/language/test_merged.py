"""Disjunctions, sets of cells and `by`, against a check of every single record."""

import itertools
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.language import cells, dense, disjunction, product
from matrixdp.plans.plan import one_query
from matrixdp.queries import DenseGroup, Entry, Group
from matrixdp.queries import predicates as limits
from matrixdp.selection.problem.grams import gram_terms

DOMAIN = Domain({"sex": ["female", "male"], "age": {"min": 10, "max": 13}, "pay": {"edges": [0, 10, 25, 50]}})
RECORDS = list(itertools.product(range(2), range(10, 14), (0, 10, 25)))
SETS: dict[str, dict[str, Any]] = {
    "sex": {"female": "identity", "either": ["identity", "total"]},
    "age": {"prefix": "prefix", "ranges": {"ranges": [[10, 11], [13, 13]]}, "all": "total"},
    "pay": {"sets": {"sets": [[0, 25], []]}, "suffix": "suffix"},
}
#: The same predicates, by what they say of a value.
MEANT = {
    ("sex", "female"): [{0}, {1}],
    ("sex", "either"): [{0}, {1}, {0, 1}],
    ("age", "prefix"): [{10}, {10, 11}, {10, 11, 12}, {10, 11, 12, 13}],
    ("age", "ranges"): [{10, 11}, {13}],
    ("age", "all"): [{10, 11, 12, 13}],
    ("pay", "sets"): [{0, 25}, set()],
    ("pay", "suffix"): [{0, 10, 25}, {10, 25}, {25}],
}


def only(entry: Entry) -> Group:
    [group] = entry.expand(DOMAIN)
    return group


def described(group: Group) -> list[str]:
    assert isinstance(group, DenseGroup)
    return group.content.describe(DOMAIN, group.attributes)


def over_all(group: Group) -> np.ndarray:
    """The queries of a group over the cells of the whole domain."""
    rows = group.rows().reshape(-1, *(DOMAIN[n].size if n in group.attributes else 1 for n in DOMAIN.names))
    return np.broadcast_to(rows, (len(rows), *DOMAIN.shape)).reshape(len(rows), -1)


@st.composite
def choices(draw: st.DrawFn, least: int) -> dict[str, str]:
    names = draw(st.permutations(DOMAIN.names))[: draw(st.integers(least, 3))]
    return {name: draw(st.sampled_from(sorted(SETS[name]))) for name in names}


def disjoined(chosen: dict[str, str], by_last: int) -> tuple[Entry, list[str], list[str]]:
    """A disjunction of chosen sets, the last of three within which it is asked; and both lists of names."""
    names = list(chosen)
    joined = names[: len(names) - (by_last if len(names) == 3 else 0)]
    within = names[len(joined) :]
    own = {name: SETS[name][which] for name, which in chosen.items()}
    entry = disjunction({name: own[name] for name in joined}, by={name: own[name] for name in within})
    return entry, joined, within


@settings(max_examples=80, deadline=None)
@given(choices(2), st.integers(0, 1))
def test_disjunctions_count_the_records_of_which_one_predicate_holds(
    chosen: dict[str, str], by_last: int
) -> None:
    entry, joined, within = disjoined(chosen, by_last)
    in_order = [n for n in DOMAIN.names if n in joined]
    expected = []
    for predicates in itertools.product(*(MEANT[n, chosen[n]] for n in (*in_order, *within))):
        row = []
        for record in RECORDS:
            holds = [
                record[DOMAIN.index(name)] in allowed
                for name, allowed in zip((*in_order, *within), predicates, strict=True)
            ]
            row.append(float(any(holds[: len(joined)]) and all(holds[len(joined) :])))
        expected.append(row)
    group = only(entry)
    np.testing.assert_array_equal(over_all(group), expected)
    assert len(described(group)) == group.queries == len(expected)


BOXES: list[list[dict[str, object]] | dict[str, object]] = [
    [{"sex": "female", "age": {"range": [10, 11]}}, {"pay": [0, 25], "sex": "male"}],
    {"age": 13},
    [{"sex": ["female", "male"], "age": [10, 11, 12, 13]}],
    [{"age": 10}, {"age": {"range": [10, 12]}}],
]


def in_boxes(record: tuple[int, int, int]) -> list[bool]:
    sex, age, pay = record
    return [(sex == 0 and age <= 11) or (sex == 1 and pay in (0, 25)), age == 13, True, age <= 12]


def test_cells_count_the_records_in_a_box() -> None:
    expected = np.array([in_boxes(record) for record in RECORDS], dtype=float).T
    group = only(cells(BOXES))
    assert group.name == "sex, age, pay: cells"
    np.testing.assert_array_equal(over_all(group), expected)
    assert described(group) == [
        "sex female and age 10-11 or sex male and pay [0, 10) | [25, 50)",
        "age 13",
        "sex female | male and age 10 | 11 | 12 | 13",
        "age 10 or age 10-12",
    ]


def test_cells_within_predicates_of_another_attribute() -> None:
    boxes: list[list[dict[str, object]] | dict[str, object]] = [
        [{"sex": "female", "pay": 0}, {"sex": "male", "pay": 10}],
        {"sex": "male"},
    ]
    entry = cells(boxes, by={"age": ["total", {"ranges": [[11, 12]]}]})
    expected = [
        [float((sex, pay) in asked and age in ages) for sex, age, pay in RECORDS]
        for asked in ({(0, 0), (1, 10)}, {(1, 0), (1, 10), (1, 25)})
        for ages in (range(10, 14), (11, 12))
    ]
    group = only(entry)
    np.testing.assert_array_equal(over_all(group), expected)
    assert group.name == "sex, age, pay: cells x total + ranges"
    assert described(group) == [
        "(sex female and pay [0, 10) or sex male and pay [10, 25)) and age all",
        "(sex female and pay [0, 10) or sex male and pay [10, 25)) and age 11-12",
        "sex male and age all",
        "sex male and age 11-12",
    ]


def test_dense_within_predicates_is_a_product() -> None:
    by = {"pay": "prefix", "sex": "identity"}
    group = only(dense(np.eye(4), ["age"], by=by))
    same = only(product({"age": "identity", **by}))
    # the rows of the matrix come first, then the attributes of `by` in domain order
    order = np.arange(24).reshape(2, 4, 3).transpose(1, 0, 2).ravel()
    np.testing.assert_array_equal(group.rows(), same.rows()[order])


def test_weights_stand_in_the_order_of_the_answers() -> None:
    weights = np.arange(1.0, 13.0)
    entry = disjunction(
        {"pay": {"ranges": [[0, 10], [0, 25]]}, "sex": "identity"},
        by={"age": {"ranges": [[10, 10], [11, 11], [12, 13]]}},
        weights=weights,
    )
    group = only(entry)
    assert group.attributes == ("sex", "age", "pay")
    # written: pay, sex, age; in the group: sex, pay (the disjunctions), age
    np.testing.assert_array_equal(group.query_weights, weights)
    texts = described(group)
    assert texts[4] == "(sex female or pay [0, 25)) and age 11"
    assert group.query_weights[4] == 5.0


def test_keys_are_equal_for_equal_questions_alone() -> None:
    first = only(disjunction(age="prefix", sex="identity"))
    assert first.key() == only(disjunction(sex="identity", age="prefix")).key()
    assert first.key() != only(disjunction(sex="identity", age="suffix")).key()
    assert first.key() != only(product(sex="identity", age="prefix")).key()
    one, two = (only(cells([{"age": 10}], by={"pay": form})).key() for form in ("prefix", "suffix"))
    assert one != two
    assert only(cells([{"age": 10}])).key() == only(dense([[1, 0, 0, 0]], ["age"])).key()


def test_what_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_EXPLICIT_ENTRIES", 60)
    for entry in (
        cells([{"age": age, "pay": 0} for age in range(10, 14)] * 2),
        cells([{"age": 10}], by={"pay": "identity", "sex": "identity"}),
    ):
        with pytest.raises(TooLargeError, match=r"the limit is 60 entries\. Use fewer"):
            entry.expand(DOMAIN)


def test_disjunctions_that_are_too_large_are_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_EXPLICIT_ENTRIES", 20)
    plain = only(disjunction(age="prefix", pay="suffix"))
    assert plain.name == "age, pay: prefix or suffix"
    within = only(disjunction(age="prefix", sex="identity", by={"pay": {"sets": [[0], [10]]}}))
    assert (plain.queries, within.queries) == (12, 16)
    for group, cells_of in ((plain, 12), (within, 24)):
        with pytest.raises(TooLargeError, match=f"{group.queries} .* over {cells_of} cells"):
            group.rows()
    for entry in (
        disjunction(age="prefix", sex="identity", pay="suffix"),
        disjunction(age="prefix", sex="identity", by={"pay": "identity"}),
    ):
        with pytest.raises(TooLargeError, match="24 queries over 1 cells"):
            only(entry)


@settings(max_examples=40, deadline=None)
@given(choices(2), st.integers(0, 1), st.integers(0, 2**32 - 1))
def test_disjunctions_are_differences_of_products(chosen: dict[str, str], by_last: int, seed: int) -> None:
    group = only(disjoined(chosen, by_last)[0])
    assert isinstance(group, DenseGroup)
    assert [sign for sign, _ in group.summands] == [1.0, -1.0]
    rows = group.rows()
    counts = np.random.default_rng(seed).integers(0, 9, group.sizes).astype(float)
    np.testing.assert_array_equal(group.answers(counts), rows @ counts.ravel())
    answers = group.answers(counts)
    counted = [
        p.count(n) for (_, own) in group.summands[:1] for p, n in zip(own.predicates, own.sizes, strict=True)
    ]
    assert group.shaped(answers).shape == tuple(counted)
    np.testing.assert_array_equal(group.arranged(group.shaped(answers)), answers)
    index = seed % group.queries
    np.testing.assert_array_equal(one_query(group, index).rows(), rows[index : index + 1])
    assert group.content.asks == bool(rows.any())
    total = np.zeros((counts.size, counts.size))
    for coefficient, questions in gram_terms(group) or []:
        term = np.full((1, 1), coefficient)
        for question in questions:
            term = np.kron(term, question.matrix())
        total += term
        for question, size in zip(questions, group.sizes, strict=True):
            np.testing.assert_allclose(question.trace(), np.trace(question.matrix()))
            known = question.symmetric
            if known is not None:
                expected = known[0] * np.eye(size) + known[1]
                np.testing.assert_allclose(question.matrix(), expected, atol=1e-12)
    np.testing.assert_allclose(total, rows.T @ rows, atol=1e-9)
