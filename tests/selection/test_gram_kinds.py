"""Every kind of Gram matrix is the explicit matrix of the same entries, in its figures, tags and optimum."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.queries import Identity, Matrix, Prefix, Sets, Stacked, Total, Workload
from matrixdp.queries.structured import Totals
from matrixdp.selection.auto import select
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.opt_0 import solve_axis
from matrixdp.selection.problem import grams
from matrixdp.selection.problem.grams import (
    CentredGram,
    CrossGram,
    ExplicitGram,
    Gram,
    QueryGram,
    SumGram,
    SymmetricGram,
)

_ROWS = np.array([[1.0, 2.0, 0.0], [0.0, -1.0, 1.0], [1.0, 1.0, 1.0]])


@dataclass(frozen=True, eq=False)
class LevelGram(Gram):
    """a I + sums of b within the groups of partitions: a kind that the package does not know."""

    a: float
    levels: tuple[tuple[float, np.ndarray], ...]
    most: int = 100

    @property
    def size(self) -> int:  # type: ignore[override]
        return len(self.levels[0][1])

    @property
    def key(self) -> Hashable:
        return ("level", self.a, *((b, groups.tobytes()) for b, groups in self.levels))

    def over(self, places: np.ndarray) -> np.ndarray:
        within = [b * (groups[places][:, None] == groups[places]) for b, groups in self.levels]
        return np.asarray(self.a * np.eye(len(places)) + np.sum(within, axis=0))

    def matrix(self) -> np.ndarray:
        assert self.size <= self.most, "structure that is known is looked for in the entries"
        return self.over(np.arange(self.size))

    @property
    def alike(self) -> np.ndarray:
        return np.unique([groups for _, groups in self.levels], axis=1, return_inverse=True)[1].ravel()

    def between(self, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shared = sum(b for b, _ in self.levels) + self.a * (np.bincount(groups) == 1)
        return self.over(np.unique(groups, return_index=True)[1]), shared

    def diagonal(self) -> np.ndarray:
        return np.full(self.size, self.a + sum(b for b, _ in self.levels))

    def total(self) -> float:
        within = sum(b * float((np.bincount(groups) ** 2).sum()) for b, groups in self.levels)
        return self.size * self.a + within


_GROUPS = np.array([0, 1, 1, 0, 2, 1, 0, 0])
_LEVEL = LevelGram(1.0, ((2.0, _GROUPS), (0.5, np.zeros(8, dtype=np.intp))))
_SETS = Sets(((0, 3, 6, 7), (1, 2, 5)))
KINDS: dict[str, Gram] = {
    "identity": QueryGram(Identity(), 3),
    "total": QueryGram(Total(), 3),
    "totals": QueryGram(Totals(2), 3),
    "prefixes": QueryGram(Prefix(), 3),
    "matrix": QueryGram(Matrix(_ROWS), 3),
    "one query": QueryGram(Matrix(_ROWS[1:2]), 3),
    "one value": QueryGram(Prefix(), 1),
    "sets": QueryGram(_SETS, 8),
    "identity and sets": QueryGram(Stacked((Identity(), _SETS)), 8),
    "pair": CrossGram(Prefix(), Matrix(_ROWS), 3),
    "pair with weights": CrossGram(Prefix(), Identity(), 3, np.array([1.0, -2.0, 0.5])),
    "totals beside prefixes": CrossGram(Totals(3), Prefix(), 3),
    "identity beside totals": CrossGram(Identity(), Totals(3), 3),
    "two totals": CrossGram(Totals(3), Totals(3), 3),
    "symmetric": SymmetricGram(2.0, 0.5, 3),
    "explicit": ExplicitGram(_ROWS.T @ _ROWS),
    "a level": _LEVEL,
    "levels": LevelGram(0.5, ((1.0, _GROUPS), (3.0, _GROUPS % 2))),
    "a sum": SumGram(((0.5, QueryGram(Prefix(), 3)), (2.0, QueryGram(Matrix(_ROWS), 3)))),
    "prefixes without means": CentredGram(QueryGram(Prefix(), 3), np.array([0.5, 0.2, 0.3])),
    "one query without its mean": CentredGram(QueryGram(Matrix(_ROWS[1:2]), 3), np.array([0.5, 0.2, 0.3])),
    "a level without means": CentredGram(_LEVEL, np.bincount(_GROUPS)[_GROUPS] / 26.0),
    "a sum of levels": SumGram(
        (
            (0.5, _LEVEL),
            (2.0, QueryGram(_SETS, 8)),
            (1.0, SymmetricGram(1.0, 3.0, 8)),
        )
    ),
    "a symmetric sum": SumGram(((2.0, SymmetricGram(1.0, 2.0, 4)), (0.5, QueryGram(Identity(), 4)))),
}


def check_gram(gram: Gram) -> None:
    """Compare what a kind says with its matrix."""
    matrix, size = gram.matrix(), gram.size
    assert matrix.shape == (size, size)
    assert gram.trace() == pytest.approx(np.trace(matrix))
    assert gram.total() == pytest.approx(matrix.sum())
    assert gram.largest() == pytest.approx(np.abs(np.diagonal(matrix)).max())
    if gram.symmetric is not None:
        np.testing.assert_allclose(gram.symmetric[0] * np.eye(size) + gram.symmetric[1], matrix)
    if gram.definite:
        np.testing.assert_allclose(matrix, matrix.T)
        assert np.linalg.eigvalsh(matrix)[0] > -1e-12
        assert len(gram.asked) < 2
    assert gram.total_only == (gram.definite and size > 1 and bool((matrix == 1.0).all()))
    away = np.eye(size) - 1 / size
    assert gram.flat == (size > 1 and np.abs(away @ matrix @ away).max() < 1e-12)
    both = (np.abs(away @ matrix).max() > 1e-12, np.abs(matrix @ away).max() > 1e-12)
    assert gram.coupling == (gram.flat and any(both))
    for asked in gram.asked if gram.definite else ():
        np.testing.assert_allclose(asked.gram(size), matrix)
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(matrix))
    np.testing.assert_array_equal(gram.explicit.entries, matrix)
    if gram.query is not None:
        np.testing.assert_allclose(np.outer(gram.query, gram.query), matrix, atol=1e-12)
    groups = gram.alike
    if groups is not None:
        assert set(groups) == set(range(max(groups) + 1))
        for one in range(size):  # values that trade places with the first of their group
            order = np.arange(size)
            first = int(np.argmax(groups == groups[one]))
            order[[first, one]] = order[[one, first]]
            np.testing.assert_allclose(matrix[np.ix_(order, order)], matrix, atol=1e-12)
        between, shared = ExplicitGram(matrix).between(groups)
        own, apart = gram.between(groups)
        np.testing.assert_allclose(own, between)
        np.testing.assert_allclose(apart, shared)


def test_no_kind_is_forgotten() -> None:
    assert set(Gram.__subclasses__()) == {type(gram) for gram in KINDS.values()}


@pytest.mark.parametrize("name", KINDS)
def test_a_gram_says_what_its_matrix_is(name: str) -> None:
    gram = KINDS[name]
    assert [other for other in KINDS.values() if other.key == gram.key] == [gram]
    check_gram(gram)


@pytest.mark.parametrize("name", [name for name, gram in KINDS.items() if gram.definite])
def test_its_strategies_are_those_of_its_entries(name: str) -> None:
    gram = KINDS[name]
    known, entries = solve_gram(gram, gap=1e-11), solve_gram(gram.matrix(), gap=1e-11)
    assert known.loss == pytest.approx(entries.loss, rel=1e-9)
    assert known.bound == pytest.approx(entries.bound, rel=1e-9)
    np.testing.assert_allclose(known.rows.T @ known.rows, entries.rows.T @ entries.rows, atol=1e-4)
    for noise in (GAUSSIAN, LAPLACE):
        of_kind, of_entries = (solve_axis(one, noise, gap=1e-11) for one in (gram, gram.matrix()))
        assert of_kind.loss == pytest.approx(of_entries.loss, rel=1e-9)


def test_what_a_kind_knows_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor is a matrix formed: of levels and what is symmetric, alone and in a sum."""
    levels = LevelGram(1.0, ((2.0, np.arange(400) % 7), (0.5, np.arange(400) % 2)))
    even = SymmetricGram(1.0, 2.0, 400)
    monkeypatch.setattr(SymmetricGram, "matrix", LevelGram.matrix)
    monkeypatch.setattr(SymmetricGram, "most", 100, raising=False)
    expected = solve_gram(levels.over(np.arange(400)) * 3.0 + np.eye(400) + 2.0, gap=1e-9)
    for gram in (levels, even):
        assert solve_gram(gram).loss > 0
    found = solve_gram(SumGram(((3.0, levels), (1.0, even))), gap=1e-9)
    assert found.loss == pytest.approx(expected.loss, rel=1e-8)


def _levels(size: int, groups: int) -> tuple[Workload, Gram]:
    """One level of areas beside the places themselves, by sex; and the kind that knows it."""
    area = np.arange(size) % groups
    sets = [np.flatnonzero(area == one).tolist() for one in range(groups)]
    asked = mdp.product(place=["identity", {"sets": sets}], sex="identity")
    return Workload(mdp.Domain({"place": size, "sex": 2}), asked), LevelGram(1.0, ((1.0, area),))


def test_a_kind_that_the_package_does_not_know_forms_no_large_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    workload, levels = _levels(2_000, 50)
    expected = select(workload, noise=GAUSSIAN)
    known = grams._gram_of
    monkeypatch.setattr(grams, "_gram_of", lambda *own: levels if own[2] == levels.size else known(*own))
    found = select(workload, noise=GAUSSIAN)
    assert found.mechanism == expected.mechanism
    assert found.certificate.loss == pytest.approx(expected.certificate.loss, rel=1e-9)
    digests = [
        [block.matrix.digest() for part in one.plan.parts for block in part.blocks]
        for one in (found, expected)
    ]
    assert digests[0] == digests[1]
