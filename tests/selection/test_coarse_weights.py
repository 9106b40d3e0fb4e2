"""Weight vectors of large ordered attributes, searched on a grid: close to those searched on all values."""

from __future__ import annotations

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import Prefix
from matrixdp.selection.compose import coarse_weights, weight_vectors
from matrixdp.selection.compose.coarse_weights import CoarseSplit, coarse_split
from matrixdp.selection.compose.weight_vectors import Objective, optimized_weights
from matrixdp.selection.view.sub_workloads import Split, split_workload

DOMAIN = mdp.Domain({"x": range(72), "sex": ["f", "m"], "race": ["a", "b", "c"]})


def _split(*entries: object) -> Split:
    return split_workload(mdp.Workload(DOMAIN, *entries))  # type: ignore[arg-type]


@pytest.fixture
def small_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarse_weights, "MAX_SEARCHED_SIZE", 64)
    monkeypatch.setattr(coarse_weights, "GRID_POINTS", 36)


MIXED = {
    "one set of queries": [mdp.product(x="prefix", sex="identity"), mdp.marginals(1)],
    "two sets of queries": [mdp.product(x="prefix", sex="identity"), mdp.product(x="range", race="identity")],
}


@pytest.mark.parametrize("entries", MIXED.values(), ids=MIXED)
def test_weights_found_on_a_grid_are_nearly_as_good(
    entries: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    split = _split(*entries)
    objective = Objective(split, GAUSSIAN)
    best = objective(optimized_weights(split))[0]
    own = objective(weight_vectors._starting_points(split)[0])[0]
    monkeypatch.setattr(coarse_weights, "MAX_SEARCHED_SIZE", 64)
    monkeypatch.setattr(coarse_weights, "GRID_POINTS", 36)
    found = objective(optimized_weights(split))[0]
    assert best * (1 - 1e-7) <= found <= best * (1 + 1e-3)
    assert found <= own * (1 + 1e-9)


@pytest.mark.usefixtures("small_grid")
def test_only_smooth_product_queries_are_sampled() -> None:
    assert coarse_split(_split(mdp.product(x="prefix"))) is not None
    assert coarse_split(_split(mdp.product(race="prefix"))) is None
    every_other = {"sets": [list(range(0, 72, 2))]}
    assert coarse_split(_split(mdp.product(x=every_other))) is None
    weighted = mdp.product(x="prefix", sex="identity", weights=np.arange(144) + 1.0)
    assert coarse_split(_split(weighted)) is None


@pytest.mark.usefixtures("small_grid")
def test_sampled_prefixes_are_prefixes() -> None:
    coarse = coarse_split(_split(mdp.product(x="prefix", sex="identity")))
    assert coarse is not None
    [prefix] = [slot for slot in coarse.split.slots if slot.size == 36]
    wide = 73 / 37
    exact = wide * Prefix().gram(36)
    # interpolation rounds the corner on the diagonal, by a quarter of a step at most
    np.testing.assert_allclose(prefix.predicates.gram(36), exact, atol=0.26)


def test_what_changes_sign_is_carried_over_by_differences() -> None:
    places = np.array([0.5, 2.5])
    coarse = CoarseSplit(_split(mdp.product(x="prefix")), {0: places})
    own, fine = [np.array([1.5, -0.5])], [np.array([1.0, 0.5, -0.25, -0.25])]
    [same] = coarse.carried(own, own, fine)
    np.testing.assert_allclose(same, fine[0], rtol=1e-12)
    [moved] = coarse.carried([np.array([1.3, -0.3])], own, fine)
    np.testing.assert_allclose(moved, [0.9, 0.45, -0.2, -0.15], atol=1e-12)
    assert moved.sum() == pytest.approx(1.0)
