"""Every predicate family against its definition and against dense matrices; wrong families are found."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from matrixdp import queries
from matrixdp.queries import (
    AllRanges,
    Circular,
    Identity,
    Indicators,
    Labelled,
    Matrix,
    Permuted,
    Predicates,
    Prefix,
    Ranges,
    Sets,
    Spans,
    Stacked,
    Suffix,
    Total,
    Width,
)
from matrixdp.queries.structured import seeded_order
from matrixdp.testing import check_predicates

SIZES = (3, 64, 600)


def real_rows(size: int) -> np.ndarray:
    return np.random.default_rng(size).normal(size=(5, size))


#: For each family a set on so many values, and its queries one by one: the codes they count, round
#: the circle, or the weights of codes.
FAMILIES = {
    Identity: lambda n: (Identity(), [{code} for code in range(n)]),
    Total: lambda n: (Total(), [set(range(n))]),
    Prefix: lambda n: (Prefix(), [set(range(last + 1)) for last in range(n)]),
    Suffix: lambda n: (Suffix(), [set(range(first, n)) for first in range(n)]),
    AllRanges: lambda n: (AllRanges(), (range(a, b + 1) for a in range(n) for b in range(a, n))),
    Circular: lambda n: (
        Circular(),
        (range(a, a + length) for a in range(n) for length in range(1, n + 1)),
    ),
    Width: lambda n: (Width(n // 2), [set(range(a, a + n // 2)) for a in range(n - n // 2 + 1)]),
    Ranges: lambda n: (Ranges(((0, 1), (1, n - 1), (2, 2))), [{0, 1}, set(range(1, n)), {2}]),
    Sets: lambda n: (Sets(((0, n - 1), (), (1,))), [{0, n - 1}, set(), {1}]),
    Matrix: lambda n: (Matrix(real_rows(n)), [dict(enumerate(row)) for row in real_rows(n)]),
    Stacked: lambda n: (
        Stacked((Matrix(real_rows(n)), Total(), Suffix())),
        [*map(dict, map(enumerate, real_rows(n))), set(range(n)), *(set(range(a, n)) for a in range(n))],
    ),
    Labelled: lambda n: (Labelled(Sets(((0, n - 1), (1,))), ("ends", "second")), [{0, n - 1}, {1}]),
    Permuted: lambda n: (
        Permuted(Prefix(), seeded_order(n, 1)),
        [set(seeded_order(n, 1)[: last + 1]) for last in range(n)],
    ),
}


def test_no_family_is_forgotten() -> None:
    exported = {getattr(queries, name) for name in queries.__all__}
    families = {face for face in exported if isinstance(face, type) and issubclass(face, Predicates)}
    assert set(FAMILIES) == families - {Predicates, Indicators}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("family", FAMILIES)
def test_families_keep_their_contract(family: type[Predicates], size: int) -> None:
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
def test_families_ask_what_they_are_defined_to_ask(family: type[Predicates], size: int) -> None:
    predicates, asked = FAMILIES[family](size)
    vector = np.random.default_rng(0).integers(-9, 10, size).astype(float)
    found = predicates.apply(vector[:, None])[:, 0]
    step = max(1, len(found) // 5000)
    places = range(0, len(found), step)
    sampled = np.array([row @ vector for row in defined(list(asked)[::step], size)])
    np.testing.assert_allclose(found[places], sampled, rtol=1e-12, atol=1e-12)
    assert predicates.count(size) == len(found)


class Halves(Prefix):
    """Half of every prefix."""

    def apply(self, matrix: np.ndarray) -> np.ndarray:
        return 0.5 * super().apply(matrix)

    def gram(self, size: int) -> np.ndarray:
        return 0.25 * super().gram(size)

    def quadratic(self, form: np.ndarray) -> np.ndarray:
        return 0.25 * super().quadratic(form)

    def squares(self, size: int) -> np.ndarray:
        return Predicates.squares(self, size)

    def column_sums(self, size: int, power: int) -> np.ndarray:
        return Predicates.column_sums(self, size, power)

    def spans(self, size: int) -> Spans:
        return Predicates.spans(self, size)


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


def test_wrong_spans_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="spans: whole"):
        check(monkeypatch, "spans", lambda _: Prefix().spans, 3)


def test_families_that_write_into_what_they_are_given_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="read-only"):
        check(monkeypatch, "apply", lambda right: lambda matrix: right(np.multiply(matrix, 1, out=matrix)), 3)
