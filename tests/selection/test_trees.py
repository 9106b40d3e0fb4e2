"""Shares of nodes of trees against dense matrices: errors, optima and lower bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from matrixdp.selection.gram.trees import Shares, Tree, tree_bound, tree_loss, tree_shares
from tests.limits import Override

Array = NDArray[np.float64]
Groups = list[NDArray[np.int64]]

#: Bound and loss of regular trees differ by the terms of the bound and by rounding.
EXACT = 1e-6
#: What a strategy of one precision a node and class may lose on small ragged trees (squared error).
SMALL_LOSS = 6e-3


def _regular(*children: int) -> Groups:
    size = math.prod(children)
    return [np.arange(size) // math.prod(children[level:]) for level in range(len(children) + 1)]


def _of_counts(*levels: Sequence[int]) -> Groups:
    """Return the tree whose nodes have so many children, level by level."""
    groups = [np.arange(sum(levels[-1]))]
    for children in reversed(levels):
        groups.insert(0, np.repeat(np.arange(len(children)), children)[groups[0]])
    return groups


def _rows(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    return (np.arange(nodes.max() + 1)[:, None] == nodes).astype(np.int64)


def _gram(groups: Sequence[NDArray[np.int64]], values: Sequence[NDArray[Any]], one: int) -> NDArray[Any]:
    """Return the sum of the squares of the rows of all nodes, times what a class has there."""
    found: NDArray[Any] = np.zeros((len(groups[0]), len(groups[0])), dtype=np.int64)
    for nodes, own in zip(groups, values, strict=True):
        rows = _rows(nodes)
        found = found + (rows.T * np.broadcast_to(own[..., one], (len(rows),))) @ rows
    return found


def _roots(gram: Array, p: Array) -> tuple[float, Array]:
    """Return tr (D V D)^(1/2) and the diagonal of that root."""
    root = np.sqrt(p)
    values, vectors = np.linalg.eigh(root[:, None] * gram * root)
    roots = np.sqrt(np.where(values > 1e-12 * values.max(), values, 0.0))
    return float(roots.sum()), (vectors**2) @ roots


def _dual(groups: Groups, weights: Sequence[Array], losses: Array, p: Array) -> tuple[float, Array]:
    """Return F(p) and its slopes: no loss is below F^2, and some strategy has F times the largest slope."""
    found = [_roots(factor * _gram(groups, weights, one), p) for one, factor in enumerate(losses)]
    return sum(own for own, _ in found), np.sum([own for _, own in found], axis=0) / p


def _optimum(groups: Groups, weights: Sequence[Array], losses: Array) -> tuple[float, float]:
    """Return numbers that the least loss of all Gaussian strategies lies between."""
    p = np.full(len(groups[0]), 1.0 / len(groups[0]))
    lower, upper = 0.0, np.inf
    for _ in range(300):
        trace, slopes = _dual(groups, weights, losses, p)
        lower, upper = max(lower, trace**2), min(upper, trace * float(slopes.max()))
        p = p * slopes / trace
    return lower, upper


def _loss(
    groups: Groups, weights: Sequence[Array], losses: Array, shares: Sequence[Array], norm: int
) -> float:
    """Return the loss by least squares in rational numbers: precisions may be any factor apart."""
    precisions = [np.vectorize(Fraction, otypes=[object])(own) ** (3 - norm) for own in shares]
    loss = 0.0
    for one, factor in enumerate(losses):
        depth = max(level for level, asked in enumerate(weights) if (asked[..., one] > 0).any())
        firsts = np.unique(groups[depth], return_index=True)[1]  # one value of each node
        nodes = [own[firsts] for own in groups[: depth + 1]]
        measured = _gram(nodes, precisions[: depth + 1], one)
        asked = _gram(nodes, weights[: depth + 1], one)
        loss += float(factor) * float((asked * _inverse(measured)).sum())
    return loss


def _inverse(matrix: NDArray[Any]) -> Array:
    entries = [flint.fmpq(one.numerator, one.denominator) for one in matrix.ravel()]
    table = flint.fmpq_mat(len(matrix), len(matrix), entries).inv().table()
    return np.array([[int(one.p) / int(one.q) for one in row] for row in table])


def _spent(groups: Groups, found: Shares) -> Array:
    """Return what each value's path spends."""
    return np.sum(
        [own.sum(axis=1)[nodes] for own, nodes in zip(found.precisions, groups, strict=True)], axis=0
    )


def _check(groups: Groups, weights: Sequence[Array], losses: Array, norm: int = 2) -> Shares:
    tree = Tree.of(groups)
    found = tree_shares(tree, weights, losses, norm)
    assert found.loss == pytest.approx(_loss(groups, weights, losses, found.precisions, norm), rel=1e-9)
    assert tree_loss(tree, weights, losses, found.precisions, norm) == pytest.approx(found.loss, rel=1e-12)
    spent = _spent(groups, found)
    assert spent.max() <= 1 + 1e-12
    np.testing.assert_allclose(spent, 1, rtol=1e-12)
    assert found.prices.min() > 0
    assert found.prices.sum() == pytest.approx(1, rel=1e-12)
    dense, _ = _dual(groups, weights, losses, found.prices)
    bound = tree_bound(tree, weights, losses, found.prices)
    assert dense**2 * (1 - 1e-4) <= bound <= dense**2 * (1 + 1e-12)
    if norm == 2:
        assert bound <= found.loss
    return found


# 1. Regular trees: the optimum of whole tables of marginals.

SIZES = (2, 3)
SUBSETS = [own for k in range(3) for own in itertools.combinations(range(2), k)]
LOSSES = np.array([math.prod((SIZES[i] - 1) ** 2 / SIZES[i] for i in own) for own in SUBSETS])
Asked = dict[tuple[int, ...], float]
EVERY: Asked = dict.fromkeys(SUBSETS, 1.0)
RNG = np.random.default_rng(7)
REGULAR: dict[str, tuple[tuple[int, ...], list[Asked]]] = {
    "all marginals at every level, random weights": (
        (4, 3),
        [{one: float(RNG.lognormal()) for one in SUBSETS} for _ in range(3)],
    ),
    "all above, one below, totals of leaves": ((4, 3, 2), [EVERY, EVERY, {(1,): 1.0}, {(): 1.0}]),
    "nothing at states": ((4, 3), [EVERY, {}, {(0,): 1.0}]),
    "all at leaves alone": ((4, 3), [{}, {}, EVERY]),
    "children of one": ((1, 3, 1, 2), [EVERY, EVERY, {(0,): 1.0}, EVERY, {(1,): 2.0}]),
}


def _marginal_weights(asked: Asked) -> Array:
    """Return how much a residual's variance counts in the marginals that contain it."""
    return np.array(
        [
            sum(
                w / math.prod(SIZES[i] for i in m if i not in one) for m, w in asked.items() if {*one} <= {*m}
            )
            for one in SUBSETS
        ],
        dtype=np.float64,
    )


def _marginal_gram(asked: Asked) -> Array:
    found = np.zeros((math.prod(SIZES), math.prod(SIZES)))
    for marginal, weight in asked.items():
        first, second = (np.eye(n) if i in marginal else np.ones((n, n)) for i, n in enumerate(SIZES))
        found += weight * np.kron(first, second)
    return found


@pytest.mark.parametrize(("children", "asked"), REGULAR.values(), ids=REGULAR)
def test_regular_trees_have_the_optimum_of_the_whole_table(
    children: tuple[int, ...], asked: list[Asked]
) -> None:
    groups = _regular(*children)
    pairs = zip(groups, asked, strict=True)
    table = np.sum(
        [np.kron(_rows(nodes).T @ _rows(nodes), _marginal_gram(own)) for nodes, own in pairs], axis=0
    )
    size = len(table)
    trace, _ = _roots(table, np.full(size, 1.0 / size))  # cells trade places: p is uniform
    found = _check(groups, [_marginal_weights(own) for own in asked], LOSSES)
    assert found.loss == pytest.approx(trace**2, rel=EXACT)


# 2. Ragged trees.

SMALL: dict[str, tuple[Groups, list[Array]]] = {
    "one class": (_of_counts([4], [3, 1, 9, 2]), [np.ones(1)] * 3),
    "a class at every level, one above, one at the root": (
        _of_counts([4], [3, 1, 6, 2]),
        [np.array([1.0, 9.0, 4.0]), np.array([1.0, 2.0, 0.0]), np.array([1.0, 0.0, 0.0])],
    ),
    "a class that skips a level": (
        _of_counts([3], [2, 1, 7]),
        [np.array([1.0, 5.0]), np.array([1.0, 0.0]), np.array([1.0, 2.0])],
    ),
    "a star": (_of_counts([9]), [np.array([2.0, 1.0]), np.array([1.0, 0.0])]),
    "one level": ([np.zeros(5, dtype=np.int64)], [np.array([1.0, 3.0])]),
    "chains of single children": (_of_counts([1], [1], [3], [1, 1, 1], [1, 5, 2]), [np.ones(2)] * 6),
    "leaves of several values": (
        [np.zeros(6, dtype=np.int64), np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 2, 2, 2])],
        [np.ones(1)] * 3,
    ),
    "the last level unasked": (_of_counts([2], [3, 2]), [np.ones(2), np.ones(2), np.zeros(2)]),
    "weights by area": (
        _of_counts([3], [2, 1, 5]),
        [np.array([1.0, 2.0]), RNG.lognormal(0, 1, (3, 2)), RNG.lognormal(0, 1, (8, 2))],
    ),
}


@pytest.mark.parametrize(("groups", "weights"), SMALL.values(), ids=SMALL)
def test_ragged_trees_are_near_the_dense_optimum(groups: Groups, weights: list[Array]) -> None:
    losses = np.array([1.0, 7.0, 0.5])[: weights[0].shape[-1]]
    found = _check(groups, weights, losses)
    lower, upper = _optimum(groups, weights, losses)
    assert lower * (1 - 1e-9) <= found.loss <= lower * (1 + SMALL_LOSS)
    bound = tree_bound(Tree.of(groups), weights, losses, found.prices)
    assert lower * (1 - 1e-3) <= bound <= upper


@pytest.mark.parametrize(("groups", "weights"), SMALL.values(), ids=SMALL)
def test_laplace_shares_are_spent_and_have_the_dense_loss(groups: Groups, weights: list[Array]) -> None:
    _check(groups, weights, np.ones(weights[0].shape[-1]), norm=1)


def test_areas_that_skip_a_level_weigh_nothing_there() -> None:
    # the second area has no counties: its places at their level are its own, and a class asks counties alone
    groups = _of_counts([3], [2, 1, 3], [2, 4, 5, 2, 1, 2])
    counties = np.array([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    weights = [np.array([1.0, 0.0]), np.array([1.0, 0.0]), counties, np.array([1.0, 0.0])]
    found = _check(groups, weights, np.array([1.0, 2.0]))
    shares = found.precisions[2][:, 1]
    assert 0 < shares[2] < 1e-6 < np.delete(shares, 2).min()
    lower, _ = _optimum(groups, weights, np.array([1.0, 2.0]))
    assert found.loss <= lower * (1 + SMALL_LOSS)


def test_classes_have_nothing_below_their_last_level() -> None:
    groups, weights = SMALL["a class at every level, one above, one at the root"]
    found = _check(groups, weights, np.ones(3))
    given_ = np.array([own.any(axis=0) for own in found.precisions])
    assert given_.tolist() == [[True, True, True], [True, True, False], [True, False, False]]


def test_a_class_that_nobody_asks_gets_nothing() -> None:
    groups = _of_counts([2], [3, 2])
    both = tree_shares(Tree.of(groups), [np.array([1.0, 0.0])] * 3, np.array([1.0, 5.0]))
    alone = tree_shares(Tree.of(groups), [np.ones(1)] * 3, np.ones(1))
    assert both.loss == alone.loss
    assert not any(own[:, 1].any() for own in both.precisions)


def test_shares_of_all_classes_err_less_than_shares_of_each() -> None:
    groups = _of_counts([4], [1, 1, 2, 30])
    weights = [np.ones(2), np.ones(2), np.array([1.0, 0.0])]
    tree, losses = Tree.of(groups), np.array([1.0, 10.0])
    joint = tree_shares(tree, weights, losses).loss
    each = [
        tree_shares(tree, [own[[one]] for own in weights], losses[[one]], steps=40).loss for one in (0, 1)
    ]
    assert joint < np.sqrt(each).sum() ** 2 * 0.95


@pytest.mark.parametrize("norm", [1, 2])
def test_no_step_errs_more(norm: int, limits: Override) -> None:
    limits(max_iterations=0)
    groups = _of_counts([4], [1, 3, 2, 30], [*range(1, 37)])
    weights = [np.array([3.0, 1.0]), np.array([1.0, 8.0]), np.array([1.0, 0.0]), np.array([0.1, 0.0])]
    found = [
        tree_shares(Tree.of(groups), weights, np.array([1.0, 9.0]), norm, steps).loss for steps in range(8)
    ]
    assert all(after < before * (1 + 1e-12) for before, after in itertools.pairwise(found))
    assert found[1] < found[0]


def test_laplace_noise_leaves_levels_out() -> None:
    # a level costs a share, and few nodes are worth one: only leaves are
    groups = _of_counts([2], [2, 2])
    found = _check(groups, [np.zeros(1), np.ones(1), np.ones(1)], np.ones(1), norm=1)
    everywhere = [np.full((n, 1), 1 / 2) for n in (2, 4)]
    leaves = [np.zeros((2, 1)), np.ones((4, 1))]
    others = [
        tree_loss(
            Tree.of(groups), [np.zeros(1), np.ones(1), np.ones(1)], np.ones(1), [np.zeros((1, 1)), *own], 1
        )
        for own in (everywhere, leaves)
    ]
    assert found.loss <= min(others) * (1 + 1e-9)


def test_numbers_of_nodes_and_order_of_values_do_not_matter() -> None:
    groups = _of_counts([4], [3, 1, 6, 2])
    rng = np.random.default_rng(2)
    weights = [rng.lognormal(size=(nodes.max() + 1, 2)) for nodes in groups]
    losses = np.array([1.0, 4.0])
    found = tree_shares(Tree.of(groups), weights, losses)
    values = rng.permutation(len(groups[0]))
    numbers = [rng.permutation(nodes.max() + 1) for nodes in groups]  # the new number of each node
    shuffled = [number[nodes][values] for number, nodes in zip(numbers, groups, strict=True)]
    moved = [own[np.argsort(number)] for number, own in zip(numbers, weights, strict=True)]
    other = tree_shares(Tree.of(shuffled), moved, losses)
    for number, own, there in zip(numbers, found.precisions, other.precisions, strict=True):
        np.testing.assert_allclose(there[number], own, rtol=1e-12)
    np.testing.assert_allclose(other.prices, found.prices[values], rtol=1e-12)
    assert tree_bound(Tree.of(shuffled), moved, losses, other.prices) == pytest.approx(
        tree_bound(Tree.of(groups), weights, losses, found.prices), rel=1e-12
    )


def test_a_root_is_added_to_a_forest() -> None:
    forest = _of_counts([3], [2, 1, 4])[1:]
    assert Tree.of(forest).counts == (1, 3, 7)
    weights = [np.zeros(1), np.ones(1), np.ones(1)]
    found = tree_shares(Tree.of(forest), weights, np.ones(1))
    assert [len(own) for own in found.precisions] == [1, 3, 7]
    assert found.precisions[0].sum() == 0


def test_classes_a_few_at_a_time_are_the_same(limits: Override) -> None:
    groups, weights = SMALL["weights by area"]
    losses = np.array([1.0, 7.0])
    together = tree_shares(Tree.of(groups), weights, losses)
    bound = tree_bound(Tree.of(groups), weights, losses, together.prices)
    limits(_ENTRIES=1)
    apart = tree_shares(Tree.of(groups), weights, losses)
    assert apart.loss == pytest.approx(together.loss, rel=1e-13)
    for own, there in zip(apart.precisions, together.precisions, strict=True):
        np.testing.assert_allclose(own, there, rtol=1e-12)
    assert tree_bound(Tree.of(groups), weights, losses, apart.prices) == pytest.approx(bound, rel=1e-12)


@pytest.mark.parametrize("ends", [1e-14, 1e-8, 1.0, 1e8])
def test_the_bound_holds_for_weights_and_prices_far_apart(ends: float) -> None:
    groups = _of_counts([3], [2, 1, 5])
    weights = [np.array([1.0]), np.array([1.0]), np.geomspace(ends, 1, 8)[:, None]]
    prices = np.geomspace(1e-5, 1, 8)[::-1]
    dense, _ = _dual(groups, weights, np.ones(1), prices / prices.sum())
    bound = tree_bound(Tree.of(groups), weights, np.ones(1), prices)
    assert dense**2 * (1 - 1e-3) <= bound <= dense**2


def test_prices_of_zero_give_a_bound() -> None:
    groups = _of_counts([3], [2, 1, 5])
    weights, prices = [np.ones(1)] * 3, np.array([0.5, 0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
    dense, _ = _dual(groups, weights, np.ones(1), np.maximum(prices, 1e-300))
    bound = tree_bound(Tree.of(groups), weights, np.ones(1), prices)
    assert bound == pytest.approx(dense**2, rel=1e-2)
    assert bound <= tree_shares(Tree.of(groups), weights, np.ones(1)).loss


@st.composite
def _problems(draw: st.DrawFn) -> tuple[Groups, list[Array], Array]:
    levels, nodes = [], 1
    for _ in range(draw(st.integers(0, 3))):
        children = draw(st.lists(st.integers(1, 4), min_size=nodes, max_size=nodes))
        levels.append(children)
        nodes = sum(children)
        if nodes > 12:
            break
    groups = _of_counts(*levels) if levels else [np.zeros(draw(st.integers(1, 3)), dtype=np.int64)]
    classes = draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = []
    for nodes_ in groups:
        shape = (classes,) if draw(st.booleans()) else (int(nodes_.max()) + 1, classes)
        weights.append(rng.lognormal(0, 2, shape) * (rng.random(shape) < draw(st.sampled_from([0.5, 1.0]))))
    weights[draw(st.integers(0, len(groups) - 1))] = np.ones(classes)
    return groups, weights, rng.lognormal(0, 2, classes)


@settings(max_examples=60, deadline=None)
@given(_problems(), st.sampled_from([1, 2]))
def test_bounds_are_below_and_paths_spent_on_random_trees(
    problem: tuple[Groups, list[Array], Array], norm: int
) -> None:
    groups, weights, losses = problem
    tree = Tree.of(groups)
    found = tree_shares(tree, weights, losses, norm)
    assert _spent(groups, found).max() <= 1 + 1e-12
    assert found.loss == pytest.approx(_loss(groups, weights, losses, found.precisions, norm), rel=1e-6)
    assert found.prices.min() > 0
    for prices in (found.prices, np.arange(1.0, len(groups[0]) + 1)):
        bound = tree_bound(tree, weights, losses, prices)
        dense, _ = _dual(groups, weights, losses, prices / prices.sum())
        assert bound <= dense**2 * (1 + 1e-9)
        if norm == 2:
            assert bound <= found.loss
