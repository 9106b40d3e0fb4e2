"""Every predicate set against dense brute force."""

from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import matrixdp as mdp
from matrixdp import queries as q
from matrixdp.domain import Attribute, Bins, Categorical, Domain, Integers
from matrixdp.queries import predicates as predicate_sets
from matrixdp.queries.structured import Complement, Totals, seeded_order
from matrixdp.testing import check_predicates


def interval(first: int, last: int, size: int) -> np.ndarray:
    return np.array([float(first <= code <= last) for code in range(size)])


def members(codes: object, size: int) -> np.ndarray:
    return np.isin(np.arange(size), list(codes)).astype(float)  # type: ignore[call-overload]


def brute_force(predicates: q.Predicates, size: int) -> np.ndarray:
    """Write the queries out one by one, from their definition alone."""
    every = range(size)
    match predicates:
        case q.Identity():
            rows = [interval(code, code, size) for code in every]
        case q.Total():
            rows = [interval(0, size - 1, size)]
        case q.Prefix():
            rows = [interval(0, code, size) for code in every]
        case q.Suffix():
            rows = [interval(code, size - 1, size) for code in every]
        case q.AllRanges():
            rows = [interval(a, b, size) for a in every for b in range(a, size)]
        case q.Sliding(width=width):
            rows = [interval(a, a + width - 1, size) for a in range(size - width + 1)]
        case q.Ranges(intervals=intervals):
            rows = [interval(a, b, size) for a, b in intervals]
        case q.Circular():
            arcs = [
                [(start + step) % size for step in range(length + 1)] for start in every for length in every
            ]
            rows = [members(arc, size) for arc in arcs]
        case q.Sets(sets=sets):
            rows = [members(codes, size) for codes in sets]
        case q.Matrix(matrix=matrix):
            rows = list(matrix)
        case q.Stacked(sets=stacked):
            rows = [row for part in stacked for row in brute_force(part, size)]
        case q.Permuted(predicates=inner, order=order):
            rows = list(brute_force(inner, size)[:, [order.index(code) for code in every]])
        case Complement(predicates=inner):
            rows = [1.0 - row for row in brute_force(inner, size)]
        case Totals(number=number):
            rows = [np.ones(size)] * number
    return np.array(rows)


@st.composite
def cases(draw: st.DrawFn) -> tuple[q.Predicates, int]:
    size = draw(st.integers(1, 9))
    parts = draw(st.lists(simple(size), min_size=1, max_size=3))
    order = draw(st.none() | st.permutations(range(size)))
    predicates = parts[0] if len(parts) == 1 else q.Stacked(tuple(parts))
    return (predicates if order is None else q.Permuted(predicates, tuple(order))), size


@st.composite
def simple(draw: st.DrawFn, size: int) -> q.Predicates:
    code = st.integers(0, size - 1)
    pairs = st.tuples(code, code).map(lambda pair: (min(pair), max(pair)))
    entry = st.floats(-4, 4).map(lambda value: round(value, 2))
    known = [q.Identity(), q.Total(), q.Prefix(), q.Suffix(), q.AllRanges(), q.Circular()]
    listed = st.one_of(
        st.sampled_from(known),
        st.integers(1, size).map(q.Sliding),
        st.lists(pairs, min_size=1, max_size=6).map(lambda items: q.Ranges(tuple(items))),
        st.lists(st.sets(code), min_size=1, max_size=6).map(
            lambda items: q.Sets(tuple(tuple(sorted(item)) for item in items))
        ),
    )
    rows = st.lists(st.lists(entry, min_size=size, max_size=size), min_size=1, max_size=6)
    others = st.one_of(
        rows.map(np.array).map(q.Matrix), listed.map(Complement), st.integers(1, 3).map(Totals)
    )
    return draw(st.one_of(listed, others))


@settings(max_examples=300, deadline=None)
@given(cases())
def test_against_brute_force(case: tuple[q.Predicates, int]) -> None:
    predicates, size = case
    rows = brute_force(predicates, size)
    check_predicates(predicates, size)
    np.testing.assert_array_equal(predicates.rows(size), rows)
    for attribute in (Integers("age", 10, 9 + size), Bins("pay", tuple(range(size + 1)))):
        assert len(predicates.describe(attribute)) == predicates.count(size) == len(rows)


@settings(max_examples=100, deadline=None)
@given(cases(), cases())
def test_equal_keys_mean_equal_content(
    left: tuple[q.Predicates, int], right: tuple[q.Predicates, int]
) -> None:
    if left[0].key(left[1]) == right[0].key(right[1]):
        np.testing.assert_array_equal(brute_force(*left), brute_force(*right))


def test_inputs_are_left_alone() -> None:
    vectors, form = np.arange(6.0).reshape(3, 2), np.arange(9.0).reshape(3, 3)
    kept = vectors.copy(), form.copy()
    for predicates in (
        q.Identity(),
        q.Total(),
        q.Prefix(),
        q.Suffix(),
        q.AllRanges(),
        q.Circular(),
        q.Sliding(2),
    ):
        predicates.apply(vectors)
        predicates.quadratic(form)[...] = -1.0
        np.testing.assert_array_equal(vectors, kept[0])
        np.testing.assert_array_equal(form, kept[1])


BOTH = q.Stacked((q.Identity(), q.Total()))


@pytest.mark.parametrize(
    ("predicates", "size", "known"),
    [
        (q.Identity(), 5, (1.0, 0.0)),
        (q.Total(), 5, (0.0, 1.0)),
        (q.Prefix(), 5, None),
        (q.Matrix(np.array([[3.0]])), 1, (9.0, 0.0)),
        (q.Sets(((),)), 1, (0.0, 0.0)),
        (q.Stacked((q.Identity(), q.Total(), q.Total())), 5, (1.0, 2.0)),
        (q.Stacked((q.Identity(), q.Prefix())), 5, None),
        (q.Permuted(BOTH, (1, 0)), 2, (1.0, 1.0)),
        (Totals(3), 5, (0.0, 3.0)),
        (Complement(BOTH), 5, (1.0, 3.0)),
    ],
)
def test_symmetric_sets_are_known(
    predicates: q.Predicates, size: int, known: tuple[float, float] | None
) -> None:
    assert predicates.symmetric(size) == known


def test_keys_tell_sets_apart() -> None:
    assert q.Stacked((q.Prefix(),)).key(4) == q.Prefix().key(4)
    assert q.Stacked((q.Prefix(), q.Total())).key(4) != q.Stacked((q.Total(), q.Prefix())).key(4)
    assert Complement(q.Prefix()).key(5) != Complement(q.Identity()).key(5)


def test_a_seed_means_one_order_for_ever() -> None:
    assert seeded_order(8, 3) == (5, 4, 1, 2, 3, 7, 6, 0)


AGE = Integers("age", 20, 22)


@pytest.mark.parametrize(
    ("predicates", "texts"),
    [
        (q.Prefix(), ["20", "20-21", "20-22"]),
        (q.Suffix(), ["20-22", "21-22", "22"]),
        (q.AllRanges(), ["20", "20-21", "20-22", "21", "21-22", "22"]),
        (q.Sliding(2), ["20-21", "21-22"]),
        (q.Ranges(((1, 2), (0, 0))), ["21-22", "20"]),
        (q.Sets(((0, 2), (), (1,))), ["20 | 22", "none", "21"]),
        (q.Matrix(np.eye(3)[:2]), ["query 0", "query 1"]),
        (
            q.Circular(),
            ["20", "20-21", "20-22", "21", "21-22", "21-22 and 20", "22", "22 and 20", "22 and 20-21"],
        ),
        (BOTH, ["20", "21", "22", "all"]),
        (q.Labelled(q.Sets(((0, 2), (1,))), ("ends", "middle")), ["ends", "middle"]),
        (q.Permuted(q.Prefix(), (2, 0, 1)), ["22", "22..20 (permuted)", "22..21 (permuted)"]),
        (Complement(q.Sets(((1,), (0, 2)))), ["not 21", "not 20 | 22"]),
        (Totals(2), ["all", "all"]),
    ],
)
def test_describe(predicates: q.Predicates, texts: list[str]) -> None:
    assert predicates.describe(AGE) == texts


def test_describe_categories_and_bins() -> None:
    assert q.Identity().describe(Categorical("sex", ("female", "male"))) == ["female", "male"]
    assert q.Prefix().describe(Bins("pay", (0, 10, 25))) == ["[0, 10)", "[0, 25)"]


def test_matrix_is_a_read_only_copy() -> None:
    given_matrix = np.array([[1, -0.0]])
    matrix = q.Matrix(given_matrix)
    given_matrix[0, 0] = 7
    assert matrix.matrix.tolist() == [[1.0, 0.0]]
    assert matrix.key(2) == q.Matrix(np.array([[1.0, 0.0]])).key(2)
    with pytest.raises(ValueError, match="read-only"):
        matrix.matrix[0, 0] = 2


class Halves(q.Predicates):
    """A family with entries other than 0 and 1 that defines only what it must: half of each value's count."""

    def count(self, size: int) -> int:
        return size

    def apply(self, matrix: np.ndarray) -> np.ndarray:
        return 0.5 * matrix

    def describe(self, attribute: Attribute) -> list[str]:
        return [f"half of {attribute.label(code)}" for code in range(attribute.size)]


@dataclass(frozen=True)
class Asked:
    """An entry that asks one predicate set on one attribute."""

    predicates: q.Predicates

    def expand(self, domain: Domain) -> list[q.Group]:
        [name] = domain.names
        return [q.ProductGroup("asked", (name,), (self.predicates,), (domain[name].size,))]

    def to_spec(self) -> dict[str, object]:
        return {}


@pytest.mark.parametrize("size", [3, 64, 600])
def test_errors_of_sets_with_real_entries_are_those_of_their_rows(size: int) -> None:
    np.testing.assert_array_equal(Halves().squares(size), np.full(size, 0.25))
    workload = mdp.Workload(Domain({"age": size}), Asked(Halves()))
    selected = mdp.select(workload, mechanism="identity", noise="gaussian").selection
    variance = selected.analysis.variances(workload.groups[0])
    np.testing.assert_allclose(variance, np.full(size, 0.25), rtol=1e-12)


def test_large_sets_are_not_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sets, values = q.Sets(((0, 2), (), (1, 2, 3), ())), np.arange(10.0).reshape(5, 2)
    expected, squares = sets.rows(5) @ values, sets.squares(5)
    stacked = q.Stacked((sets, q.Identity()))
    monkeypatch.setattr(predicate_sets, "_BLOCK", 0)
    np.testing.assert_array_equal(sets.apply(values), expected)
    np.testing.assert_array_equal(sets.squares(5), squares)
    np.testing.assert_array_equal(sets.column_sums(5, 2), [1, 1, 2, 1, 0])
    entries = stacked.entries(5)
    assert entries is not None
    query, value, entry = entries
    named = np.zeros((9, 5))
    named[query, value] = entry
    np.testing.assert_array_equal(named, np.vstack([sets.rows(5), np.eye(5)]))
    assert q.Stacked((sets, q.Prefix())).entries(5) is None


def test_squares_and_column_sums_are_taken_over_blocks_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, sums = Halves().squares(50), Halves().column_sums(50, 1)
    monkeypatch.setattr(predicate_sets, "_BLOCK", 350)
    np.testing.assert_array_equal(Halves().squares(50), whole)
    np.testing.assert_array_equal(Halves().column_sums(50, 1), sums)
