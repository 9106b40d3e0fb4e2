"""Areas beside a tree against dense matrices: errors, slopes, shares and lower bounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from matrixdp.selection.gram.beside import Beside
from matrixdp.selection.gram.trees import Shares, Tree, tree_bound, tree_shares
from tests.limits import Override

Array = NDArray[np.float64]
Groups = list[NDArray[np.int64]]


def of_counts(*levels: Sequence[int]) -> Groups:
    """Return the tree whose nodes have so many children, level by level."""
    groups = [np.arange(sum(levels[-1]))]
    for children in reversed(levels):
        groups.insert(0, np.repeat(np.arange(len(children)), children)[groups[0]])
    return groups


def divided(nodes: NDArray[np.int64], size: int, shift: int) -> NDArray[np.int64]:
    """Divide every node into areas of about so many values, starting somewhere within it."""
    areas, last = np.zeros_like(nodes), 0
    for node in range(nodes.max() + 1):
        values = np.roll(np.flatnonzero(nodes == node), shift)
        for part in np.array_split(values, max(1, round(len(values) / size))):
            areas[part] = last
            last += 1
    return areas


def rows(nodes: NDArray[np.int64]) -> Array:
    return (np.arange(nodes.max() + 1)[:, None] == nodes).astype(np.float64)


class Case:
    """A tree, families of areas beside it, and what classes ask."""

    def __init__(
        self, groups: Groups, home: int, areas: Groups, weights: Sequence[Array], asked: Sequence[Array]
    ) -> None:
        self.groups, self.home, self.areas = groups, home, areas
        self.weights, self.asked, self.tree = list(weights), tuple(asked), Tree.of(groups)
        self.beside = Beside(self.tree, home, tuple(areas), self.asked)
        self.classes = self.weights[0].shape[-1]
        self.losses = np.array([1.0, 7.0, 0.5])[: self.classes]
        # the node of the home that each area lies in
        self.homes = [groups[home][np.unique(own, return_index=True)[1]] for own in areas]

    def depth(self, one: int) -> int:
        levels = [k for k, own in enumerate(self.weights) if (own[..., one] > 0).any()]
        across = any((own[..., one] > 0).any() for own in self.asked)
        return max(*levels, self.beside.depth if across else 0)

    def gram(self, nodes: Sequence[Array], areas: Sequence[Array], one: int) -> Array:
        """Return the sum of squares of rows over the last nodes of a class, times what it has for them."""
        depth = self.depth(one)
        first = np.unique(self.groups[depth], return_index=True)[1]
        found = np.zeros((len(first), len(first)))
        pairs = [*zip(self.groups[: depth + 1], nodes, strict=False), *zip(self.areas, areas, strict=True)]
        for own, value in pairs:
            row = rows(own)[:, first]
            found += (row.T * np.broadcast_to(value[..., one], (len(row),))) @ row
        return found

    def loss(self, shares: Shares, norm: int = 2) -> float:
        nodes = [own ** (3 - norm) for own in shares.precisions]
        areas = [own[at] ** (3 - norm) for own, at in zip(shares.beside, self.homes, strict=True)]
        found = [
            np.trace(self.gram(self.weights, self.asked, one) @ np.linalg.inv(self.gram(nodes, areas, one)))
            for one in range(self.classes)
        ]
        return float(self.losses @ found)

    def spent(self, shares: Shares) -> Array:
        own = [one.sum(axis=1)[at] for one, at in zip(shares.precisions, self.groups, strict=True)]
        return np.sum([*own, *(one.sum(axis=1)[self.groups[self.home]] for one in shares.beside)], axis=0)

    def dual(self, prices: Array) -> tuple[float, Array]:
        """Return F(p), whose square no loss is below, and its slopes for p."""
        trace, slopes = 0.0, np.zeros(len(prices))
        for one, factor in enumerate(self.losses):
            nodes = self.groups[self.depth(one)]
            root = np.sqrt(np.bincount(nodes, prices))
            gram = factor * self.gram(self.weights, self.asked, one)
            values, vectors = np.linalg.eigh(root[:, None] * gram * root)
            values = np.sqrt(np.maximum(values, 0.0))
            trace += float(values.sum())
            slopes += ((vectors**2) @ values / root**2)[nodes]
        return trace, slopes

    def optimum(self) -> float:
        p, best = np.full(len(self.groups[0]), 1.0 / len(self.groups[0])), 0.0
        for _ in range(400):
            trace, slopes = self.dual(p)
            best, p = max(best, trace**2), p * slopes / trace
            p /= p.sum()
        return best


def cases() -> dict[str, Case]:
    one, counties = [np.ones(1)], of_counts([3], [3, 1, 4], [9, 2, 5, 6, 1, 3, 12, 2])
    state, county = counties[1:3]
    district, ward, zone = divided(state, 7, 3), divided(county, 4, 1), divided(state, 9, 5)
    order = np.random.default_rng(5).permutation(len(state))
    numbers = np.random.default_rng(6).permutation(int(district.max()) + 1)
    shuffled = [own[order] for own in counties]
    several = [np.array([1.0, 9.0, 4.0]), np.array([1.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0])]
    random = np.random.default_rng(7)
    return {
        "districts": Case(counties, 1, [district], one * 4, one),
        "heavy districts": Case(counties, 1, [district], one * 4, [np.full(1, 50.0)]),
        "light districts": Case(counties, 1, [district], one * 4, [np.full(1, 0.01)]),
        "wards in counties": Case(counties, 2, [ward], one * 4, one),
        "across states": Case(counties, 0, [divided(counties[0], 7, 4)], one * 4, one),
        "two families": Case(counties, 1, [district, zone], one * 4, [np.ones(1), np.full(1, 3.0)]),
        "two families, one finer": Case(counties, 1, [district, ward], one * 4, one * 2),
        "in any order": Case(shuffled, 1, [numbers[district[order]]], one * 4, one),
        "classes that ask areas, or do not": Case(
            counties,
            1,
            [district],
            [*several, np.array([1.0, 0.0, 0.0])],
            [np.array([3.0, 0.0, 1.0])],
        ),
        "weights by area": Case(
            counties,
            1,
            [district],
            [random.lognormal(size=(own.max() + 1, 2)) for own in counties],
            [random.lognormal(size=(district.max() + 1, 2))],
        ),
        "some areas unasked": Case(
            counties, 1, [district], one * 4, [(np.arange(district.max() + 1) % 2)[:, None].astype(float)]
        ),
    }


CASES = cases()
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@every_case
@pytest.mark.parametrize("measured", [True, False])
def test_errors_and_slopes_are_those_of_the_matrix(case: Case, measured: bool) -> None:
    random = np.random.default_rng(3)
    for one in range(case.classes):
        depth = max(case.depth(one), case.beside.depth)
        nodes = [random.lognormal(size=(count, case.classes)) for count in case.tree.counts]
        given = [random.lognormal(size=(case.tree.counts[case.home], case.classes)) for _ in case.areas]
        given = [own * measured for own in given]
        areas = [own[at] for own, at in zip(given, case.homes, strict=True)]
        weights = [
            np.broadcast_to(own.reshape(-1, case.classes), (count, case.classes))
            for own, count in zip(case.weights, case.tree.counts, strict=True)
        ]
        by_place = [
            [own[case.tree.order[k], one][None] for k, own in enumerate(every[: depth + 1])]
            for every in (nodes, weights)
        ]
        by_place[0] += [own[case.tree.order[case.home], one][None] for own in given]
        error, slopes = case.beside.slopes(by_place[0], by_place[1], np.array([one]))
        asked = [
            np.broadcast_to(own.reshape(-1, case.classes), (at.max() + 1, case.classes))
            for own, at in zip(case.asked, case.areas, strict=True)
        ]
        first = np.unique(case.groups[depth], return_index=True)[1]
        levels = [rows(own)[:, first] for own in case.groups[: depth + 1]]
        across = [rows(own)[:, first] for own in case.areas]
        x = sum(
            (row.T * value[:, one]) @ row
            for row, value in zip([*levels, *across], [*nodes[: depth + 1], *areas], strict=True)
        )
        v = sum(
            (row.T * value[:, one]) @ row
            for row, value in zip([*levels, *across], [*weights[: depth + 1], *asked], strict=True)
        )
        inverse = np.linalg.inv(x)
        both = inverse @ v @ inverse
        assert error[0] == pytest.approx(np.trace(v @ inverse), rel=1e-10)
        for k, row in enumerate(levels):
            expected = np.einsum("ij,jk,ik->i", row, both, row)[case.tree.order[k]]
            np.testing.assert_allclose(slopes[k][0], expected, rtol=1e-8)
        for row, at, found in zip(across, case.homes, slopes[depth + 1 :], strict=True):
            each = np.einsum("ij,jk,ik->i", row, both, row)
            expected = np.bincount(at, each, case.tree.counts[case.home])[case.tree.order[case.home]]
            np.testing.assert_allclose(found[0], expected, rtol=1e-8)


@every_case
@pytest.mark.parametrize("norm", [1, 2])
def test_shares_are_spent_and_have_the_dense_loss(case: Case, norm: int) -> None:
    found = tree_shares(case.tree, case.weights, case.losses, norm, beside=case.beside)
    assert found.loss == pytest.approx(case.loss(found, norm), rel=1e-6)
    np.testing.assert_allclose(case.spent(found), 1, rtol=1e-12)
    for prices in (found.prices, np.arange(1.0, len(case.groups[0]) + 1)):
        bound = tree_bound(case.tree, case.weights, case.losses, prices, case.beside)
        dense, _ = case.dual(prices / prices.sum())
        assert dense**2 * (1 - 1e-3) <= bound <= dense**2 * (1 + 1e-9)
        if norm == 2:
            assert bound <= found.loss


@every_case
def test_losses_are_near_the_dense_optimum(case: Case) -> None:
    found = tree_shares(case.tree, case.weights, case.losses, beside=case.beside)
    optimum = case.optimum()
    assert optimum * (1 - 1e-9) <= found.loss <= optimum * 1.06


def test_heavy_areas_take_rows_of_their_own() -> None:
    case = CASES["heavy districts"]
    alone = tree_shares(case.tree, case.weights, case.losses)
    without = replace(alone, beside=(np.zeros((3, 1)),))
    found = tree_shares(case.tree, case.weights, case.losses, beside=case.beside)
    assert found.loss < case.loss(without) * 0.5


def test_no_step_errs_more(limits: Override) -> None:
    limits(max_iterations=0)
    case = CASES["classes that ask areas, or do not"]
    found = [
        tree_shares(case.tree, case.weights, case.losses, steps=steps, beside=case.beside).loss
        for steps in range(8)
    ]
    assert all(after < before * (1 + 1e-9) for before, after in pairwise(found))
    assert found[1] < found[0]


def test_classes_a_few_at_a_time_are_the_same(limits: Override) -> None:
    case = CASES["weights by area"]
    together = tree_shares(case.tree, case.weights, case.losses, beside=case.beside)
    limits(_ENTRIES=1)
    apart = tree_shares(case.tree, case.weights, case.losses, beside=case.beside)
    assert apart.loss == pytest.approx(together.loss, rel=1e-12)
    np.testing.assert_allclose(apart.beside[0], together.beside[0], rtol=1e-9)


def test_a_class_that_asks_no_areas_has_no_share_of_theirs() -> None:
    case = CASES["classes that ask areas, or do not"]
    [found] = tree_shares(case.tree, case.weights, case.losses, beside=case.beside).beside
    assert (found > 0).all(axis=0).tolist() == [True, False, True]
    assert not found[:, 1].any()
