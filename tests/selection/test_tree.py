"""Trees of areas: what is found node by node, against the optimum of the whole table and its errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import matrixdp as mdp
from matrixdp.errors import WorkloadError
from matrixdp.noise import GAUSSIAN, LAPLACE, Noise
from matrixdp.plans import Plan
from matrixdp.queries import Workload
from matrixdp.selection.auto import select
from matrixdp.selection.problem.gather_groups import GivenGroups
from matrixdp.selection.problem.levels import levels_of

Groups = NDArray[np.int64]


def ragged(seed: int, sizes: Sequence[int]) -> list[Groups]:
    """Return the node of each leaf by level, of a tree of these numbers of nodes; heavy tails."""
    rng = np.random.default_rng(seed)
    below = np.arange(sizes[-1])
    found = [below]
    for own, under in zip(sizes[-2::-1], sizes[:0:-1], strict=True):
        shares = rng.dirichlet(np.full(own, 0.6))
        parents = np.sort(np.concatenate([np.arange(own), rng.choice(own, under - own, p=shares)]))
        below = parents[below]
        found.append(below)
    return found[::-1]


def sets(groups: Groups, without: Sequence[int] = ()) -> dict[str, list[list[int]]]:
    return {
        "sets": [
            np.flatnonzero(groups == node).tolist() for node in range(groups.max() + 1) if node not in without
        ]
    }


def workload(levels: Sequence[object], ways: Sequence[Sequence[Sequence[str]]], leaves: int) -> Workload:
    """Return marginals on attributes beside the area at each level; None is the total."""
    domain = mdp.Domain({"area": leaves, "sex": 2, "age": 4})
    entries = []
    for level, marginals in zip(levels, ways, strict=True):
        for names in marginals:
            own: dict[str, Any] = dict.fromkeys(names, "identity")
            if level is not None:
                own["area"] = level
            entries.append(mdp.product(**own) if own else mdp.marginals(0))
    return Workload(domain, *entries)


def error(plan: Plan, asked: Workload) -> float:
    return math.fsum(plan.analysis.group(group).weighted for group in asked) * plan.cost


BOTH = ((), ("sex",), ("age",), ("sex", "age"))
ONE = ((), ("sex",), ("age",))
CASES = {
    "all at every level": (BOTH, BOTH, BOTH, BOTH),
    "less below": (BOTH, BOTH, ONE, ((),)),
    "nothing between": ((), BOTH, (), ONE),
    "more below": (((),), ONE, BOTH, BOTH),
    "ends above the leaves": (BOTH, BOTH, ONE, ()),
}


@pytest.mark.parametrize("case", CASES)
def test_within_a_hundredth_of_the_optimum(case: str) -> None:
    state, county, leaf = ragged(3, (5, 16, 110))
    asked = workload((None, sets(state), sets(county), "identity"), CASES[case], len(leaf))
    found = select(asked, noise=GAUSSIAN, mechanism="tree")
    best = select(asked, noise=GAUSSIAN, mechanism="dense", certify=True)
    bound, optimum = found.certificate.lower_bound, best.certificate
    assert bound is not None
    assert optimum.lower_bound is not None
    assert optimum.lower_bound * (1 - 1e-6) <= found.certificate.loss <= optimum.loss * 1.01
    assert optimum.loss * 0.999 <= bound <= optimum.loss * (1 + 1e-6)
    assert error(found.plan, asked) == pytest.approx(found.certificate.loss, rel=1e-3)
    assert found.plan.cost <= 1 + 1e-9


def test_areas_that_skip_a_level() -> None:
    state, county, leaf = ragged(4, (5, 16, 110))
    asked = workload((sets(state), sets(county, (2, 7)), "identity"), (BOTH, BOTH, ONE), len(leaf))
    found = select(asked, noise=GAUSSIAN, mechanism="tree")
    best = select(asked, noise=GAUSSIAN, mechanism="dense")
    assert found.certificate.loss <= best.certificate.loss * 1.01
    assert error(found.plan, asked) == pytest.approx(found.certificate.loss, rel=1e-3)


def test_levels_in_one_entry_and_in_any_order() -> None:
    state, county, leaf = ragged(5, (4, 12, 110))
    domain = mdp.Domain({"area": len(leaf), "sex": 2})
    backwards = {"sets": sets(state)["sets"][::-1]}
    apart = Workload(
        domain,
        *[mdp.product(area=level, sex="identity") for level in ("identity", sets(county), sets(state))],
    )
    together = Workload(domain, mdp.product(area=[backwards, sets(county), "identity"], sex="identity"))
    losses = [select(one, noise=GAUSSIAN, mechanism="tree").certificate.loss for one in (apart, together)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-9)


def test_weights_of_single_areas_count() -> None:
    state, county, leaf = ragged(6, (4, 12, 110))
    domain = mdp.Domain({"area": len(leaf)})
    weights = np.where(np.arange(len(leaf)) < 20, 100.0, 1.0)
    entries = [mdp.product(area=sets(state)), mdp.product(area=sets(county)), mdp.product(area="identity")]
    plain = Workload(domain, *entries)
    [*others, last] = plain.groups
    asked = Workload(domain, GivenGroups((*others, replace(last, query_weights=weights))))
    found = select(asked, noise=GAUSSIAN, mechanism="tree")
    best = select(asked, noise=GAUSSIAN, mechanism="dense")
    assert found.certificate.loss <= best.certificate.loss * 1.02
    assert error(select(plain, noise=GAUSSIAN, mechanism="tree").plan, asked) > found.certificate.loss * 1.05


def test_prefixes_of_another_attribute_at_every_level() -> None:
    state, county, leaf = ragged(7, (4, 12, 110))
    domain = mdp.Domain({"area": len(leaf), "age": 8})
    asked = Workload(
        domain, *[mdp.product(area=level, age="prefix") for level in (sets(state), sets(county), "identity")]
    )
    found = select(asked, noise=GAUSSIAN, mechanism="tree")
    best = select(asked, noise=GAUSSIAN, mechanism="dense")
    assert found.certificate.loss <= best.certificate.loss * 1.01
    assert error(found.plan, asked) == pytest.approx(found.certificate.loss, rel=1e-3)


def test_auto_compares_small_trees_and_takes_large_ones_alone() -> None:
    state, county, leaf = ragged(8, (4, 12, 110))
    few = workload((sets(state), sets(county), "identity"), (BOTH, ONE, ((),)), len(leaf))
    found = select(few, noise=GAUSSIAN)
    assert {"tree", "residual"} <= {one.mechanism for one in found.candidates if one.loss}
    state, county, leaf = ragged(9, (10, 100, 3_000))
    many = workload((sets(state), sets(county), "identity"), (BOTH, ONE, ((),)), len(leaf))
    found = select(many, noise=GAUSSIAN)
    assert found.mechanism == "tree"
    assert [one.mechanism for one in found.candidates if one.loss] == ["tree"]
    assert found.certificate.gap is not None
    assert found.certificate.gap < 4e-3


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_weights_of_entries_count(noise: Noise) -> None:
    state, county, leaf = ragged(11, (4, 12, 110))
    domain = mdp.Domain({"area": len(leaf), "sex": 2})
    asked = Workload(
        domain,
        mdp.product(area=sets(state), sex="identity", weight=200.0),
        mdp.product(area=sets(county), sex="identity"),
        mdp.product(area="identity", sex="identity"),
    )
    found = select(asked, noise=noise, mechanism="tree")
    assert error(found.plan, asked) == pytest.approx(found.certificate.loss, rel=1e-3)
    assert found.certificate.lower_bound is not None
    assert found.certificate.lower_bound <= found.certificate.loss
    if noise == GAUSSIAN:
        best = select(asked, noise=noise, mechanism="dense").certificate
        assert best.loss * 0.999 <= found.certificate.loss <= best.loss * 1.01
        assert found.certificate.lower_bound <= best.loss * (1 + 1e-6)
    else:  # less than counts of single areas alone, or of all levels alike, have
        shares = [1 / 3] * 3
        alike = sum(
            group.queries * group.weight * 2 / share**2 for group, share in zip(asked, shares, strict=True)
        )
        assert found.certificate.loss < alike


def test_the_largest_variance_falls() -> None:
    state, county, leaf = ragged(10, (4, 12, 500))
    domain = mdp.Domain({"area": len(leaf)})
    asked = Workload(domain, *[mdp.product(area=one) for one in (sets(state), sets(county), "identity")])
    by_sum = select(asked, noise=GAUSSIAN, mechanism="tree").plan
    by_max = select(asked, noise=GAUSSIAN, mechanism="tree", objective="max").plan

    def largest(plan: Plan) -> float:
        return max(plan.analysis.group(group).largest for group in asked) * plan.cost

    assert largest(by_max) < largest(by_sum)


def test_sets_that_are_no_levels_are_rejected_by_name() -> None:
    asked = Workload(
        mdp.Domain({"area": 200}),
        mdp.product(area={"sets": [[*range(120)], [*range(120, 200)]]}),
        mdp.product(area={"sets": [[*range(100)], [*range(100, 200)]]}),
    )
    with pytest.raises(WorkloadError) as caught:
        select(asked, noise=GAUSSIAN, mechanism="tree")
    assert caught.value.code == "not-supported"


def districts(home: Groups, size: int, shift: int) -> Groups:
    """Divide every node into runs of about so many leaves, which start somewhere within it."""
    found, last = np.zeros_like(home), 0
    for node in range(home.max() + 1):
        leaves = np.roll(np.flatnonzero(home == node), shift)
        for part in np.array_split(leaves, max(1, round(len(leaves) / size))):
            found[part] = last
            last += 1
    return found


ACROSS = {
    "districts": (BOTH, ONE, ((),), ONE, ()),
    "much about districts": (((),), ((),), ((),), ((), ()), ()),
    "two families": (BOTH, ONE, ((),), ONE, ((),)),
    "nothing about leaves": (BOTH, ONE, (), ONE, ()),
    "some attributes in districts alone": (((),), ((),), ((),), BOTH, ()),
}


@pytest.mark.parametrize("case", ACROSS)
def test_areas_that_cut_across_are_near_the_optimum(case: str) -> None:
    state, county, leaf = ragged(3, (5, 16, 110))
    families = [sets(districts(state, 9, 3)), sets(districts(state, 14, 6))]
    asked = workload((sets(state), sets(county), "identity", *families), ACROSS[case], len(leaf))
    found = select(asked, noise=GAUSSIAN, mechanism="tree")
    best = select(asked, noise=GAUSSIAN, mechanism="dense", certify=True)
    bound, optimum = found.certificate.lower_bound, best.certificate
    assert bound is not None
    assert optimum.loss * (1 - 1e-4) <= found.certificate.loss <= optimum.loss * 1.025
    assert optimum.loss * 0.99 <= bound <= optimum.loss * (1 + 1e-6)
    assert error(found.plan, asked) == pytest.approx(found.certificate.loss, rel=1e-3)
    assert found.plan.cost <= 1 + 1e-9


def test_areas_that_cut_across_and_leave_values_out() -> None:
    state, county, leaf = ragged(4, (5, 16, 110))
    some = sets(districts(state, 9, 3), (1, 4))
    asked = workload((sets(state), sets(county), "identity", some), (BOTH, ONE, ((),), ONE), len(leaf))
    found = select(asked, noise=GAUSSIAN, mechanism="tree")
    best = select(asked, noise=GAUSSIAN, mechanism="dense")
    assert found.certificate.loss <= best.certificate.loss * 1.02
    assert error(found.plan, asked) == pytest.approx(found.certificate.loss, rel=1e-3)


def test_the_longest_chain_of_levels_is_the_tree() -> None:
    state, county, leaf = ragged(5, (4, 12, 110))
    across, leaves = districts(state, 20, 7), len(leaf)
    for levels in itertools.permutations([sets(across), sets(state), sets(county)]):
        found = levels_of(workload((*levels, "identity"), [((),)] * 4, leaves))
        assert found is not None
        [own] = found.beside
        assert len(np.unique(own * 200 + across)) == across.max() + 1
        assert found.home == 1
        pieces = len(np.unique(county * 200 + across))
        assert [int(level.max()) + 1 for level in found.groups] == [1, 4, 12, pieces, 110]
        assert [place for place, _ in found.asked if place == 5] == [5]


def test_auto_takes_districts_beside_many_tracts() -> None:
    state, county, leaf = ragged(9, (10, 100, 3_000))
    levels = (sets(state), sets(county), "identity", sets(districts(state, 60, 11)))
    found = select(workload(levels, (BOTH, ONE, ((),), ONE), len(leaf)), noise=GAUSSIAN)
    assert found.mechanism == "tree"
    assert found.certificate.gap is not None
    assert found.certificate.gap < 0.02
    few = ragged(8, (4, 12, 110))
    small = workload(
        (sets(few[0]), sets(few[1]), "identity", sets(districts(few[0], 9, 3))),
        (BOTH, ONE, ((),), ((),)),
        110,
    )
    compared = {one.mechanism for one in select(small, noise=GAUSSIAN).candidates if one.loss}
    assert {"tree", "residual"} <= compared


def test_areas_that_cut_across_under_laplace_noise() -> None:
    state, county, leaf = ragged(3, (5, 16, 110))
    levels = (sets(state), sets(county), "identity", sets(districts(state, 9, 3)))
    asked = workload(levels, [(("sex",),)] * 4, len(leaf))
    found = select(asked, noise=LAPLACE, mechanism="tree")
    assert error(found.plan, asked) == pytest.approx(found.certificate.loss, rel=1e-3)
    assert found.plan.cost <= 1 + 1e-9
    assert found.certificate.lower_bound is not None
    assert found.certificate.lower_bound < found.certificate.loss


def test_sets_that_are_more_than_levels_have_are_counted_only() -> None:
    """All ranges of a million values are too many for an array of their weights."""
    asked = Workload(mdp.Domain({"area": 1_000_000}), mdp.product(area="range"))
    assert levels_of(asked) is None
