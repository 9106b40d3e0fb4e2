"""Every predicate set against dense brute force."""

from dataclasses import dataclass

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from matrixdp.domain import Attribute, Bins, Categorical, Domain, Integers
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import (
    AllRanges,
    Circular,
    Group,
    Identity,
    Labelled,
    Matrix,
    Permuted,
    Predicates,
    Prefix,
    ProductGroup,
    Ranges,
    Sets,
    Stacked,
    Suffix,
    Total,
    Width,
    Workload,
)
from matrixdp.queries import predicates as arrays
from matrixdp.queries import predicates as predicate_set
from matrixdp.queries.structured import seeded_order
from matrixdp.selection.auto import select
from matrixdp.testing import check_predicates


def interval(first: int, last: int, size: int) -> np.ndarray:
    return np.array([float(first <= code <= last) for code in range(size)])


def brute_force(predicates: Predicates, size: int) -> np.ndarray:
    """Write the queries out one by one, from their definition alone."""
    match predicates:
        case Identity():
            rows = [interval(code, code, size) for code in range(size)]
        case Total():
            rows = [interval(0, size - 1, size)]
        case Prefix():
            rows = [interval(0, code, size) for code in range(size)]
        case Suffix():
            rows = [interval(code, size - 1, size) for code in range(size)]
        case AllRanges():
            rows = [interval(a, b, size) for a in range(size) for b in range(a, size)]
        case Width(width=width):
            rows = [interval(a, a + width - 1, size) for a in range(size - width + 1)]
        case Ranges(intervals=intervals):
            rows = [interval(a, b, size) for a, b in intervals]
        case Circular():
            rows = []
            for start in range(size):
                for length in range(1, size + 1):
                    inside = {(start + step) % size for step in range(length)}
                    rows.append(np.array([float(code in inside) for code in range(size)]))
        case Sets(sets=sets):
            rows = [np.array([float(code in codes) for code in range(size)]) for codes in sets]
        case Matrix(matrix=matrix):
            rows = list(matrix)
        case Stacked(sets=stacked):
            rows = [row for part in stacked for row in brute_force(part, size)]
        case Permuted(predicates=inner, order=order):
            rows = []
            for row in brute_force(inner, size):
                moved = np.zeros(size)
                for place, code in enumerate(order):
                    moved[code] = row[place]
                rows.append(moved)
    return np.array(rows)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Predicates, int]:
    size = draw(st.integers(1, 9))
    parts = draw(st.lists(simple(size), min_size=1, max_size=3))
    order = draw(st.none() | st.permutations(range(size)))
    predicates = parts[0] if len(parts) == 1 else Stacked(tuple(parts))
    return (predicates if order is None else Permuted(predicates, tuple(order))), size


@st.composite
def simple(draw: st.DrawFn, size: int) -> Predicates:
    code = st.integers(0, size - 1)
    pairs = st.tuples(code, code).map(lambda pair: (min(pair), max(pair)))
    entry = st.floats(-4, 4).map(lambda value: round(value, 2))
    return draw(
        st.one_of(
            st.sampled_from([Identity(), Total(), Prefix(), Suffix(), AllRanges(), Circular()]),
            st.integers(1, size).map(Width),
            st.lists(pairs, min_size=1, max_size=6).map(lambda items: Ranges(tuple(items))),
            st.lists(st.sets(code), min_size=1, max_size=6).map(
                lambda items: Sets(tuple(tuple(sorted(item)) for item in items))
            ),
            st.lists(st.lists(entry, min_size=size, max_size=size), min_size=1, max_size=6).map(
                lambda rows: Matrix(np.array(rows))
            ),
        )
    )


@settings(max_examples=250, deadline=None)
@given(cases())
def test_against_brute_force(case: tuple[Predicates, int]) -> None:
    predicates, size = case
    rows = brute_force(predicates, size)
    check_predicates(predicates, size)
    assert predicates.count(size) == len(rows)
    np.testing.assert_array_equal(predicates.rows(size), rows)
    for attribute in (Integers("age", 10, 9 + size), Bins("pay", tuple(range(size + 1)))):
        assert len(predicates.describe(attribute)) == len(rows)


@settings(max_examples=100, deadline=None)
@given(cases(), cases())
def test_equal_keys_mean_equal_content(left: tuple[Predicates, int], right: tuple[Predicates, int]) -> None:
    if left[0].key(left[1]) == right[0].key(right[1]):
        np.testing.assert_array_equal(brute_force(*left), brute_force(*right))
    assert hash(left[0].key(left[1])) == hash(left[0].key(left[1]))


def test_inputs_are_left_alone() -> None:
    vectors = np.arange(6.0).reshape(3, 2)
    form = np.arange(9.0).reshape(3, 3)
    kept = vectors.copy(), form.copy()
    for predicates in (Identity(), Total(), Prefix(), Suffix(), AllRanges(), Circular(), Width(2)):
        predicates.apply(vectors)
        predicates.quadratic(form)[...] = -1.0
        np.testing.assert_array_equal(vectors, kept[0])
        np.testing.assert_array_equal(form, kept[1])


def test_symmetric_sets_are_known() -> None:
    assert Identity().symmetric(5) == (1.0, 0.0)
    assert Total().symmetric(5) == (0.0, 1.0)
    assert Prefix().symmetric(5) is None
    assert Matrix(np.array([[3.0]])).symmetric(1) == (9.0, 0.0)
    assert Sets(((),)).symmetric(1) == (0.0, 0.0)
    assert Stacked((Identity(), Total(), Total())).symmetric(5) == (1.0, 2.0)
    assert Stacked((Identity(), Prefix())).symmetric(5) is None
    assert Permuted(Stacked((Identity(), Total())), (1, 0)).symmetric(2) == (1.0, 1.0)


def test_a_stack_of_one_is_that_one() -> None:
    assert Stacked((Prefix(),)).key(4) == Prefix().key(4)
    assert Stacked((Prefix(), Total())).key(4) != Stacked((Total(), Prefix())).key(4)


def test_a_seed_means_one_order_for_ever() -> None:
    assert seeded_order(8, 3) == (5, 4, 1, 2, 3, 7, 6, 0)
    assert sorted(seeded_order(100, 0)) == list(range(100))
    assert len({seeded_order(50, seed) for seed in range(20)}) == 20


AGE = Integers("age", 20, 22)


@pytest.mark.parametrize(
    ("predicates", "texts"),
    [
        (Identity(), ["20", "21", "22"]),
        (Total(), ["all"]),
        (Prefix(), ["20", "20-21", "20-22"]),
        (Suffix(), ["20-22", "21-22", "22"]),
        (AllRanges(), ["20", "20-21", "20-22", "21", "21-22", "22"]),
        (Width(2), ["20-21", "21-22"]),
        (Ranges(((1, 2), (0, 0))), ["21-22", "20"]),
        (Sets(((0, 2), (), (1,))), ["20 | 22", "none", "21"]),
        (Matrix(np.eye(3)[:2]), ["query 0", "query 1"]),
        (
            Circular(),
            ["20", "20-21", "20-22", "21", "21-22", "21-22 and 20", "22", "22 and 20", "22 and 20-21"],
        ),
        (Stacked((Identity(), Total())), ["20", "21", "22", "all"]),
        (Labelled(Sets(((0, 2), (1,))), ("ends", "middle")), ["ends", "middle"]),
        (Permuted(Prefix(), (2, 0, 1)), ["22", "22..20 (permuted)", "22..21 (permuted)"]),
    ],
)
def test_describe(predicates: Predicates, texts: list[str]) -> None:
    assert predicates.describe(AGE) == texts


def test_describe_categories_and_bins() -> None:
    assert Identity().describe(Categorical("sex", ("female", "male"))) == ["female", "male"]
    assert Prefix().describe(Bins("pay", (0, 10, 25))) == ["[0, 10)", "[0, 25)"]


def test_matrix_is_a_read_only_copy() -> None:
    given_matrix = np.array([[1, -0.0]])
    matrix = Matrix(given_matrix)
    given_matrix[0, 0] = 7
    assert matrix.matrix.tolist() == [[1.0, 0.0]]
    assert matrix.key(2) == Matrix(np.array([[1.0, 0.0]])).key(2)
    with pytest.raises(ValueError, match="read-only"):
        matrix.matrix[0, 0] = 2


def test_matrix_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrays, "MAX_EXPLICIT_ENTRIES", 3)
    with pytest.raises(TooLargeError, match="4 entries; the limit is 3"):
        Matrix(np.eye(2))


class Halves(Predicates):
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

    predicates: Predicates

    def expand(self, domain: Domain) -> list[Group]:
        [name] = domain.names
        return [ProductGroup("asked", (name,), (self.predicates,), (domain[name].size,))]

    def to_spec(self) -> dict[str, object]:
        return {}


@pytest.mark.parametrize("size", [3, 64, 600])
def test_errors_of_sets_with_real_entries_are_those_of_their_rows(size: int) -> None:
    predicates = Halves()
    np.testing.assert_array_equal(predicates.squares(size), np.full(size, 0.25))
    workload = Workload(Domain({"age": size}), Asked(predicates))
    variance = select(workload, mechanism="identity", noise=GAUSSIAN).analysis.variances(workload.groups[0])
    np.testing.assert_allclose(variance, np.full(size, 0.25), rtol=1e-12)


def test_squares_and_column_sums_are_taken_over_blocks_of_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, sums = Halves().squares(50), Halves().column_sums(50, 1)
    monkeypatch.setattr(predicate_set, "_BLOCK", 350)
    np.testing.assert_array_equal(Halves().squares(50), whole)
    np.testing.assert_array_equal(Halves().column_sums(50, 1), sums)
