"""Plans with trees of queries: costs against all records written out, errors, archives, and verifiers."""

import dataclasses
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact import CenteredMatrix, RowTrees
from matrixdp.measure.calibration import calibrate
from matrixdp.noise import GAUSSIAN, LAPLACE, Cost, Noise
from matrixdp.plans import Block, Part, Split
from matrixdp.selection.selection import Selection
from matrixdp.testing import check_plan
from tests.exact.test_row_trees import random_row_trees
from tests.independent import found
from tests.plans.test_trees import dense
from tests.storage.archives import reread

noises = pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)


def plan_of(noise: Noise, seed: int) -> Split:
    """Return a plan with trees of queries on ages in each part."""
    random, kept = np.random.default_rng(seed), list[RowTrees]()
    while len(kept) < 2:
        trees = random_row_trees(random, whole=True)
        kept += [trees] if len(trees.groups[0]) == 5 else []
    domain = mdp.Domain({"sex": 2, "geo": 5, "age": 3})
    one, other = (Block(("geo", "age"), trees) for trees in kept)
    sexes = Block(("sex",), CenteredMatrix(2))
    parts = (
        Part(("geo", "age"), (one,), 1.0).at_cost(noise, 0.7),
        Part(("sex", "geo", "age"), (sexes, other), 1.0).at_cost(noise, 0.3),
    )
    weights = {"sex": np.full(2, 0.5), "geo": np.zeros(5), "age": np.zeros(3)}
    plan = Split(domain, parts, noise, weights)
    whole = (dataclasses.replace(part, variance=part.variance * plan.cost) for part in parts)
    return dataclasses.replace(plan, parts=tuple(whole))


@noises
@pytest.mark.parametrize("seed", range(4))
def test_the_cost_is_that_of_the_record_that_costs_most(noise: Noise, seed: int) -> None:
    plan = plan_of(noise, seed)
    np.testing.assert_allclose(plan.cost, 1.0)
    assert sum(noise.share(part, part.variance) for part in plan.parts) > 1.0 + 1e-6
    drawn, cost = calibrate(plan, Cost(Fraction(3, 10), noise), 2**33, "add_remove")
    own = dense(plan, [1 / scale.exact**noise.norm for scale in drawn])
    assert own <= cost.value <= min(own * (1 + Fraction(1, 2**100)), Fraction(3, 10))


@noises
def test_they_do_what_every_plan_does(noise: Noise) -> None:
    plan = plan_of(noise, 1)
    areas = mdp.product(geo={"sets": [[0], [1, 2, 3, 4]]}, age="prefix")
    check_plan(plan, mdp.Workload(plan.domain, mdp.marginals([0, 1, 2, 3]), areas))


def test_they_come_back_from_an_archive(tmp_path: Path) -> None:
    plan = plan_of(GAUSSIAN, 2)
    again = reread(plan, tmp_path)
    assert [part.key(part.attributes) for part in again.parts] == [
        part.key(part.attributes) for part in plan.parts
    ]
    assert again.cost == plan.cost


@noises
@pytest.mark.parametrize("neighbours", ["add_remove", "replace"])
def test_both_verifiers_find_the_cost_that_was_authorized(
    tmp_path: Path, noise: Noise, neighbours: Any
) -> None:
    plan = plan_of(noise, 3)
    workload = mdp.Workload(plan.domain, mdp.marginals([0, 1, 2, 3]))
    known = mdp.select(workload, noise=noise.name, mechanism="identity", neighbours=neighbours).selection
    if neighbours == "replace":
        cost = plan.replacement_cost
        parts = (dataclasses.replace(part, variance=part.variance * cost) for part in plan.parts)
        plan = dataclasses.replace(plan, parts=tuple(parts))
    selection: Selection = dataclasses.replace(known, plan=plan)
    privacy: dict[str, Any] = {"epsilon": 1} if noise == LAPLACE else {"rho": 0.3}
    budget = mdp.Budget(**privacy, neighbours=neighbours)
    table = {"sex": [0, 1, 1], "geo": [0, 3, 4], "age": [2, 1, 0]}
    release = mdp.Strategy(selection).measure(table, budget).reconstruct()
    mdp.save_release(release, tmp_path / "out")
    assert found(tmp_path / "out")[1] == []
    assert mdp.verify_release(tmp_path / "out").holds
    allowed = noise.cost(release.measurement.authorization.budget).value
    assert allowed * (1 - Fraction(1, 10**6)) <= release.measurement.authorization.cost.value <= allowed
