"""Every predicate family against its definition and against dense matrices; wrong families are found."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp import queries as q
from matrixdp.queries.structured import seeded_order
from matrixdp.testing import check_predicates

SIZES = (3, 64, 600)


def real_rows(size: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=(5, size))


#: For each family a set on so many values, and its queries one by one: the codes they count, round
#: the circle, or the weights of codes.
FAMILIES = {
    q.Identity: lambda n: (q.Identity(), [{code} for code in range(n)]),
    q.Total: lambda n: (q.Total(), [set(range(n))]),
    q.Prefix: lambda n: (q.Prefix(), [set(range(last + 1)) for last in range(n)]),
    q.Suffix: lambda n: (q.Suffix(), [set(range(first, n)) for first in range(n)]),
    q.AllRanges: lambda n: (q.AllRanges(), (range(a, b + 1) for a in range(n) for b in range(a, n))),
    q.Circular: lambda n: (
        q.Circular(),
        (range(a, a + length) for a in range(n) for length in range(1, n + 1)),
    ),
    q.Sliding: lambda n: (q.Sliding(n // 2), [set(range(a, a + n // 2)) for a in range(n - n // 2 + 1)]),
    q.Ranges: lambda n: (q.Ranges(((0, 1), (1, n - 1), (2, 2))), [{0, 1}, set(range(1, n)), {2}]),
    q.Sets: lambda n: (q.Sets(((0, n - 1), (), (1,))), [{0, n - 1}, set(), {1}]),
    q.Matrix: lambda n: (q.Matrix(real_rows(n)), [dict(enumerate(row)) for row in real_rows(n)]),
    q.Stacked: lambda n: (
        q.Stacked((q.Matrix(real_rows(n)), q.Total(), q.Suffix())),
        [*map(dict, map(enumerate, real_rows(n))), set(range(n)), *(set(range(a, n)) for a in range(n))],
    ),
    q.YearToDate: lambda n: (q.YearToDate(((0, 0), (0, 1), (2, 2))), [{0}, {0, 1}, {2}]),
    q.Changes: lambda n: (
        q.Changes(((0, 1), (0, n - 1))),
        [{1: 1.0, 0: -1.0}, {n - 1: 1.0, 0: -1.0}],
    ),
    q.Chosen: lambda n: (q.Chosen(q.Stacked((q.Prefix(), q.Total())), (1, n)), [{0, 1}, set(range(n))]),
    q.Labelled: lambda n: (q.Labelled(q.Sets(((0, n - 1), (1,))), ("ends", "second")), [{0, n - 1}, {1}]),
    q.Permuted: lambda n: (
        q.Permuted(q.Prefix(), seeded_order(n, 1)),
        [set(seeded_order(n, 1)[: last + 1]) for last in range(n)],
    ),
}


def test_no_family_is_forgotten() -> None:
    exported = [face for face in vars(q).values() if isinstance(face, type)]
    families = {face for face in exported if issubclass(face, q.Predicates)}
    assert set(FAMILIES) == families - {q.Predicates, q.Indicators}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_families_keep_their_contract(family: type[q.Predicates], size: int) -> None:
    check_predicates(FAMILIES[family](size)[0], size)


def defined(asked: Iterable[Any], size: int) -> Iterator[np.ndarray]:
    for weights in asked:
        row = np.zeros(size)
        if isinstance(weights, dict):
            row[list(weights)] = list(weights.values())
        else:
            row[np.array(list(weights), dtype=int) % size] = 1.0
        yield row


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_families_ask_what_they_are_defined_to_ask(family: type[q.Predicates], size: int) -> None:
    predicates, asked = FAMILIES[family](size)
    vector = np.random.default_rng(0).integers(-9, 10, size).astype(float)
    found = predicates.apply(vector[:, None])[:, 0]
    step = max(1, len(found) // 5000)
    places = range(0, len(found), step)
    sampled = np.array([row @ vector for row in defined(list(asked)[::step], size)])
    np.testing.assert_allclose(found[places], sampled, rtol=1e-12, atol=1e-12)
    assert predicates.count(size) == len(found)


class Halves(q.Prefix):
    """Half of every prefix."""

    def apply(self, matrix: np.ndarray) -> np.ndarray:
        return 0.5 * super().apply(matrix)

    def rows(self, size: int) -> np.ndarray:
        return q.Predicates.rows(self, size)

    def entries(self, size: int) -> Any:
        return q.Predicates.entries(self, size)

    def gram(self, size: int) -> np.ndarray:
        return 0.25 * super().gram(size)

    def quadratic(self, form: np.ndarray) -> np.ndarray:
        return 0.25 * super().quadratic(form)

    def weighted_squares(self, weights: np.ndarray) -> np.ndarray:
        return q.Predicates.weighted_squares(self, weights)

    def column_sums(self, size: int, power: int) -> np.ndarray:
        return q.Predicates.column_sums(self, size, power)

    def spans(self, size: int) -> q.Spans:
        return q.Predicates.spans(self, size)


def doubled(right: Any) -> Any:
    return lambda *given: 2 * right(*given)


#: What each method becomes, from what it is.
WRONG: dict[str, Callable[[Any], Any]] = {
    "count": lambda right: lambda size: right(size) + 1,
    "apply": lambda right: lambda matrix: right(matrix) + 1.0,
    "rows": lambda right: lambda size: right(size).T,
    "gram": doubled,
    "quadratic": doubled,
    "squares": doubled,
    "column_sums": doubled,
    "symmetric": lambda _: lambda size: (1.0, 0.0),
    "describe": lambda right: lambda attribute: right(attribute)[:-1],
    "key": lambda _: lambda size: object(),
}


def check(monkeypatch: pytest.MonkeyPatch, name: str, wrong: Callable[[Any], Any], size: int) -> None:
    """Check halves of prefixes of which one method is wrong."""
    value = wrong(getattr(Halves(), name))
    monkeypatch.setattr(Halves, name, lambda _self, *given: value(*given))
    check_predicates(Halves(), size)


@pytest.mark.parametrize("size", SIZES)
def test_families_of_real_entries_keep_it(size: int) -> None:
    check_predicates(Halves(), size)


@pytest.mark.parametrize("size", [3, 600])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_methods_are_found(monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> None:
    with pytest.raises(AssertionError, match=name):
        check(monkeypatch, name, WRONG[name], size)


def test_wrong_weights_of_squares_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="weighted_squares"):
        check(monkeypatch, "weighted_squares", lambda right: lambda weights: right(np.sort(weights)), 3)


def test_wrong_spans_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="spans: whole"):
        check(monkeypatch, "spans", lambda _: q.Prefix().spans, 3)


def test_families_that_write_into_what_they_are_given_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="read-only"):
        check(monkeypatch, "apply", lambda right: lambda matrix: right(np.multiply(matrix, 1, out=matrix)), 3)


def test_few_ranges_of_many_values_take_no_square_matrix():
    """The identity of 100,000 values has 75 GiB."""
    size = 100_000
    ends = (0, 99), (100, 299), (300, size - 1)
    assert q.Ranges(ends).rows(size).sum(axis=1).tolist() == [100, 200, size - 300]
    asked = mdp.product(income={"ranges": [list(pair) for pair in ends]})
    strategy = mdp.select(mdp.Workload(mdp.Domain({"income": size}), asked))
    assert strategy.selection.max_variance == pytest.approx(1.0, rel=1e-4)
