"""Families of workloads: what they ask, and that seeds repeat them; weights for relative errors."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import workload_families as families
from workload_families import relative_error

import matrixdp as mdp
from matrixdp.domain import Domain
from matrixdp.language.entries import DenseEntry
from matrixdp.queries import Workload
from matrixdp.specification import entry_from_spec
from matrixdp.testing import dense_queries

DOMAIN = Domain({"sex": ["female", "male"], "age": {"min": 10, "max": 14}, "pay": {"edges": [0, 1, 5, 9]}})
LINE = Domain({"x": 200})
RANDOM: dict[str, Callable[..., DenseEntry]] = {
    "w_discrete": families.w_discrete,
    "random_predicates": families.random_predicates,
    "w_range": families.w_range,
    "w_related": families.w_related,
}


@pytest.mark.parametrize("name", RANDOM)
def test_seeds_repeat_and_tell_apart(name: str) -> None:
    family = RANDOM[name]
    first = family(DOMAIN, 20, seed=5)
    assert first.matrix.shape == (20, 30)
    np.testing.assert_array_equal(first.matrix, family(DOMAIN, 20, seed=5).matrix)
    assert (first.matrix != family(DOMAIN, 20, seed=6).matrix).any()
    assert family(DOMAIN, 3, attributes=["pay", "sex"]).matrix.shape == (3, 6)
    assert Workload(DOMAIN, entry_from_spec(first.to_spec())).queries == 20


def test_entries_of_discrete_queries() -> None:
    matrix = families.w_discrete(LINE, 500, 0.02, seed=1).matrix
    assert set(np.unique(matrix)) == {-1.0, 1.0}
    assert abs((matrix == 1).mean() - 0.02) < 0.0025
    assert set(np.unique(families.random_predicates(LINE, 5, 0.3).matrix)) == {0.0, 1.0}
    assert (families.random_predicates(LINE, 5, 1.0).matrix == 1).all()


def test_ranges_are_ranges_with_uniform_ends() -> None:
    matrix = families.w_range(LINE, 4000, seed=2).matrix
    assert set(np.unique(matrix)) == {0.0, 1.0}
    steps = np.abs(np.diff(np.pad(matrix, ((0, 0), (1, 1))), axis=1)).sum(axis=1)
    assert (steps == 2).all()
    lengths = matrix.sum(axis=1)
    # two uniform ends lie (n^2 - 1) / 3n apart on average
    assert abs(lengths.mean() - 1 - (200**2 - 1) / 600) < 4 * lengths.std() / np.sqrt(4000)


@pytest.mark.parametrize(
    ("queries", "ratio", "rank"), [(30, 0.2, 6), (1000, 0.1, 20), (4, 0.01, 1), (10, 1, 10)]
)
def test_the_rank_of_related_queries(queries: int, ratio: float, rank: int) -> None:
    assert np.linalg.matrix_rank(families.w_related(LINE, queries, ratio, seed=3).matrix) == rank


def test_marginal_queries_are_different_cells_of_marginals() -> None:
    asked = set()
    entries = families.w_marginal(DOMAIN, 31, seed=4)
    assert Workload(DOMAIN, *entries).queries == 31  # all there are: 10 + 6 + 15
    for entry in entries:
        [group] = entry.expand(DOMAIN)
        assert len(group.attributes) == 2
        np.testing.assert_array_equal(group.rows().sum(axis=1), 1)
        asked |= {(group.attributes, int(row.argmax())) for row in group.rows()}
    assert len(asked) == 31
    some: list[dict[str, Any]] = [entry.to_spec() for entry in families.w_marginal(DOMAIN, 9, seed=4)]
    assert some == [entry.to_spec() for entry in families.w_marginal(DOMAIN, 9, seed=4)]
    assert sum(len(spec["cells"]) for spec in some) == 9
    [one] = families.w_marginal(DOMAIN, 3, ways=1, attributes=["age"])
    assert one.expand(DOMAIN)[0].attributes == ("age",)


def test_marginal_queries_are_drawn_uniformly() -> None:
    drawn = [families.w_marginal(DOMAIN, 1, seed=seed)[0].expand(DOMAIN)[0] for seed in range(1500)]
    share = sum(group.attributes == ("age", "pay") for group in drawn) / 1500
    assert abs(share - 15 / 31) < 4 * np.sqrt(0.25 / 1500)


def test_permuted_ranges_are_ranges_of_an_order() -> None:
    [group] = families.permuted_ranges("age", seed=3).expand(DOMAIN)
    [plain] = families.width_ranges("age", 2).expand(DOMAIN)
    assert (group.queries, plain.queries) == (15, 4)
    singles = group.rows()[group.rows().sum(axis=1) == 1].argmax(axis=1)
    ordered = group.rows()[:, singles]
    expected = [[float(a <= c <= b) for c in range(5)] for a in range(5) for b in range(a, 5)]
    np.testing.assert_array_equal(ordered, expected)


def test_published_numbers_of_queries() -> None:
    cps = Domain(
        {"income": 100, "age": 50, "marital": list("abcdefg"), "race": list("abcd"), "sex": ["f", "m"]}
    )
    [every] = families.all_marginals(cps).expand(cps)
    assert every.queries == 101 * 51 * 8 * 5 * 3
    [prefix] = families.all_marginals(cps, "prefix").expand(cps)
    assert prefix.queries == 100 * 50 * 8 * 5 * 3
    [ranges] = families.all_marginals(cps, "range", attributes=["age", "sex"]).expand(cps)
    assert ranges.queries == 1275 * 3


def test_all_marginals_ask_the_cells_of_every_marginal() -> None:
    [group] = families.all_marginals(DOMAIN).expand(DOMAIN)
    gram = sum(
        np.kron(np.kron(a, b), c)
        for a, b, c in itertools.product(*[(np.eye(n), np.ones((n, n))) for n in DOMAIN.shape])
    )
    np.testing.assert_allclose(group.rows().T @ group.rows(), gram)


def test_small_products_leave_out_the_large() -> None:
    groups = families.small_products(DOMAIN, "range", max_cells=10).expand(DOMAIN)
    assert [group.attributes for group in groups] == [
        (),
        ("sex",),
        ("age",),
        ("pay",),
        ("sex", "age"),
        ("sex", "pay"),
    ]
    assert [group.queries for group in groups] == [1, 2, 15, 6, 30, 12]
    assert len(families.small_products(DOMAIN).expand(DOMAIN)) == 8


GRID = mdp.Domain({"a": range(6), "b": range(3)})
ENTRIES = (
    mdp.product(a="range", b="identity"),
    mdp.product(b="prefix", weights=[1.0, 2.0, 3.0]),
    mdp.dense(np.array([[1.0, 0.0, -2.0]]), ["b"]),
)


def test_weights_are_the_inverse_squares_of_l1_norms():
    workload = mdp.Workload(GRID, *relative_error(GRID, *ENTRIES))
    for group, given in zip(workload, mdp.Workload(GRID, *ENTRIES), strict=True):
        norms = np.abs(dense_queries(group, GRID)).sum(axis=1)
        before = 1.0 if given.query_weights is None else given.query_weights
        assert group.query_weights == pytest.approx(before * (18 / norms) ** 2)
