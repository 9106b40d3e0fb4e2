"""Levels that ask several kinds of queries on another attribute, against the optimum of the whole table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import RowTrees, TreeMatrix
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import Workload
from matrixdp.selection.auto import select
from matrixdp.selection.gram.row_trees import Kinds, kinds_bound
from matrixdp.selection.gram.trees import Tree
from matrixdp.selection.limits import override
from matrixdp.selection.problem.gather_groups import GivenGroups
from tests.selection.test_tree import Groups, error, ragged, sets

AGES = {"P": "prefix", "I": "identity", "B": {"ranges": [[0, 1], [2, 3], [4, 5]]}}


def asked(groups: Sequence[Groups], kinds: str, ages: int, weights: Sequence[float] = ()) -> Workload:
    """Return prefixes, single ages, bands of them, or totals at each level from the root."""
    domain, entries = mdp.Domain({"area": len(groups[-1]), "age": ages}), []
    for place, (group, kind) in enumerate(zip(groups, kinds, strict=True)):
        own: dict[str, Any] = {} if kind == "T" else {"age": AGES[kind]}
        if group.any():
            own["area"] = "identity" if len(group) == group.max() + 1 else sets(group)
        entries.append(mdp.product(**own, weight=weights[place]) if weights else mdp.product(**own))
    return Workload(domain, *entries)


def regular(*sizes: int) -> list[Groups]:
    leaves = int(np.prod(sizes))
    return [np.arange(leaves) // (leaves // int(own)) for own in np.cumprod((1, *sizes))]


def measured(plan: Any) -> set[type]:
    return {type(part.blocks[0].matrix) for part in plan.parts}


@pytest.mark.parametrize("kinds", ["PPII", "IIPP", "PIPI", "IPIP"])
def test_two_kinds_on_a_regular_tree_lose_nothing(kinds: str) -> None:
    workload = asked(regular(4, 3, 9), kinds, 6)
    found = select(workload, noise=GAUSSIAN, mechanism="tree")
    best = select(workload, noise=GAUSSIAN, mechanism="dense").certificate
    assert measured(found.plan) == {RowTrees}
    assert best.loss * (1 - 1e-6) <= found.certificate.loss <= best.loss * 1.001
    assert found.certificate.lower_bound == pytest.approx(best.loss, rel=1e-4)
    assert found.certificate.lower_bound <= best.loss
    assert error(found.plan, workload) == pytest.approx(found.certificate.loss, rel=1e-3)
    assert found.plan.cost == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("kinds", "weights"),
    [
        ("PPPI", ()),
        ("PIIP", (110.0, 30.0, 7.0, 1.0)),
        ("PBII", (1.0, 5.0, 1.0, 0.2)),
        ("IPBT", ()),
        ("PITB", ()),
    ],
)
def test_a_ragged_tree_is_near_the_optimum_and_its_bound_below(
    kinds: str, weights: tuple[float, ...]
) -> None:
    state, county, leaf = ragged(3, (5, 16, 110))
    workload = asked([np.zeros_like(leaf), state, county, leaf], kinds, 6, weights)
    found = select(workload, noise=GAUSSIAN, mechanism="tree")
    best = select(workload, noise=GAUSSIAN, mechanism="dense", certify=True).certificate
    bound = found.certificate.lower_bound
    assert bound is not None
    assert best.lower_bound is not None
    assert best.lower_bound * (1 - 1e-6) <= found.certificate.loss <= best.loss * 1.04
    assert best.loss * 0.995 <= bound <= best.loss
    assert error(found.plan, workload) == pytest.approx(found.certificate.loss, rel=1e-3)
    assert found.plan.cost <= 1 + 1e-9


def test_with_other_attributes() -> None:
    state, county, leaf = ragged(4, (4, 12, 110))
    domain = mdp.Domain({"sex": 2, "area": len(leaf), "race": 3, "age": 5})
    workload = Workload(
        domain,
        mdp.product(age="prefix", sex="identity"),
        mdp.product(area=sets(state), age="prefix", sex="identity"),
        mdp.product(area=sets(county), age="prefix"),
        mdp.product(area="identity", age="identity"),
        mdp.product(area="identity", sex="identity", race="identity"),
    )
    found = select(workload, noise=GAUSSIAN, mechanism="tree")
    best = select(workload, noise=GAUSSIAN, mechanism="dense").certificate
    assert {part.attributes for part in found.plan.parts} == {
        domain.sort(("area", "age", *names)) for names in ((), ("sex",), ("race",), ("sex", "race"))
    }
    assert found.certificate.loss <= best.loss * 1.02
    assert found.certificate.lower_bound is not None
    assert best.loss * 0.998 <= found.certificate.lower_bound <= best.loss
    assert error(found.plan, workload) == pytest.approx(found.certificate.loss, rel=1e-3)


def test_values_that_no_query_tells_apart_are_measured_together() -> None:
    state, county, leaf = ragged(5, (4, 12, 110))
    domain = mdp.Domain({"area": len(leaf), "age": 90})
    bands = {"ranges": [[0, 4], [5, 17], [18, 64], [65, 89]]}
    above = {"sets": [[*range(5)], [*range(18)], [*range(65)], [*range(90)]]}
    workload = Workload(
        domain,
        *(mdp.product(area=level, age=above) for level in (sets(state), sets(county))),
        mdp.product(area="identity", age=bands),
    )
    found = select(workload, noise=GAUSSIAN, mechanism="tree")
    [part] = found.plan.parts
    assert part.blocks[0].matrix.columns == 90 * len(leaf)
    assert measured(found.plan) == {RowTrees}
    best = select(workload, noise=GAUSSIAN, mechanism="dense").certificate
    assert found.certificate.loss <= best.loss * 1.03
    assert error(found.plan, workload) == pytest.approx(found.certificate.loss, rel=1e-3)


def test_thousands_of_areas_gain_much() -> None:
    groups = ragged(6, (1, 10, 120, 2_400))
    workload = asked(groups, "PPPI", 21)
    found = select(workload, noise=GAUSSIAN)
    assert found.mechanism == "tree"
    assert found.certificate.gap is not None
    assert found.certificate.gap < 0.03
    with override(row_cells_of_trees=20):
        alone = select(workload, noise=GAUSSIAN)
    assert measured(alone.plan) == {TreeMatrix}
    assert alone.certificate.lower_bound is None
    assert alone.certificate.loss > found.certificate.loss * 1.1
    assert error(alone.plan, workload) == pytest.approx(alone.certificate.loss, rel=1e-3)


def test_one_strategy_where_it_is_as_good_or_the_plan_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    totals = select(asked(regular(4, 3, 9), "TPPP", 6), noise=GAUSSIAN, mechanism="tree")
    assert measured(totals.plan) == {TreeMatrix}
    assert totals.certificate.gap is not None
    assert totals.certificate.gap < 0.01
    workload = asked(ragged(7, (1, 4, 12, 110)), "PPII", 6)
    whole = select(workload, noise=GAUSSIAN, mechanism="tree")
    monkeypatch.setattr("matrixdp.plans.slices.LEAST_CUT", 100)
    cut = select(workload, noise=GAUSSIAN, mechanism="tree")
    assert measured(cut.plan) == {TreeMatrix}
    assert cut.certificate.lower_bound == whole.certificate.lower_bound
    assert cut.certificate.loss > whole.certificate.loss


def test_no_rows_where_single_ages_weigh_differently() -> None:
    workload = asked(ragged(8, (1, 4, 12, 110)), "PPII", 6)
    [*others, last] = workload.groups
    weights = np.tile([9.0, 1.0, 1.0, 1.0, 1.0, 1.0], 110)
    given = Workload(workload.domain, GivenGroups((*others, replace(last, query_weights=weights))))
    found = select(given, noise=GAUSSIAN, mechanism="tree")
    assert measured(found.plan) == {TreeMatrix}


def dense_forms(kinds: Kinds, leaves: int) -> np.ndarray:
    """Return what is asked of all cells; every class has as many dimensions of its own as copies."""
    blocks = []
    for grams in kinds.grams:
        total: Any = 0.0
        for (level, weights), gram in zip(kinds.asked, grams, strict=True):
            own = kinds.tree.nodes(level)[:, None] == np.arange(kinds.tree.counts[level])
            places = kinds.tree.order[level]
            total = total + np.kron((own * weights[places]) @ own.T, gram)
        blocks.append(total)
    return np.array(blocks).reshape(len(blocks), leaves * kinds.grams.shape[2], -1)


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_the_trace_of_a_root(seed: int) -> None:
    """At any prices, with weights of single nodes and Gram matrices of any rank, against eigenvalues."""
    random = np.random.default_rng(seed)
    groups = ragged(seed, (1, 3, 8, 30))
    tree, n = Tree.of(groups), 4
    levels = [*random.integers(0, 3, 4), 3]
    nodes = [random.uniform(0.1, 3.0, tree.counts[level]) for level in levels]
    nodes[0] = np.ones_like(nodes[0])
    roots = random.normal(size=(2, len(levels), n, n)) * (random.random((2, len(levels), n, 1)) < 0.6)
    roots[:, 4, 0, 0] += 1.0
    grams = np.swapaxes(roots, -1, -2) @ roots
    kinds = Kinds(tree, tuple(zip(map(int, levels), nodes, strict=True)), grams, np.array([1.0, 6.0]))
    p, cells = random.dirichlet(np.ones(30)), random.dirichlet(np.ones(n))
    scale = np.sqrt(np.outer(p, cells).ravel())
    values = np.linalg.eigvalsh(scale[:, None] * dense_forms(kinds, 30) * scale)
    exact = float(np.sqrt(np.maximum(values, 0.0)).sum(axis=1) @ kinds.copies) ** 2
    bound = kinds_bound(kinds, p, cells)
    assert bound is not None
    assert exact * (1 - 1e-4) <= bound <= exact
    twice = Kinds(tree, (*kinds.asked, (3, nodes[4][::-1])), grams[:, [*range(5), 4]], kinds.copies)
    assert kinds_bound(twice, p, cells) is None
