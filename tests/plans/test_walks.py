"""Walks beside other parts, in every kind of plan that may have one: least squares, costs, intervals."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import block_diag

import matrixdp as mdp
from matrixdp.errors import PrivacyError, UnsupportedQueryError
from matrixdp.exact import (
    IdentityMatrix,
    IntegerMatrix,
    MeasuredMatrix,
    MergedMatrix,
    TreeWalkMatrix,
    WalkMatrix,
)
from matrixdp.noise import LAPLACE
from matrixdp.plans import Block, Joint, Local, Part, Plan, Pooled, Rounds, Split, Union
from matrixdp.testing import check_plan, dense_measurement, dense_queries
from tests.measure.test_integer_noise import checked

DOMAIN = mdp.Domain({"a": 4, "b": 3, "c": 2})
WALK, OTHER, SHORT = (
    WalkMatrix((1500, 1000, 700, 0)),
    WalkMatrix((0, 3000, 500, 900)),
    WalkMatrix((800, 0, 0)),
)
GROUPS = MergedMatrix(WalkMatrix((900, 200)), (np.array([0, 0, 1, 1]),))
TREE = IntegerMatrix(np.array([[1, 1, 1, 1], [2, 0, 0, 0], [0, 2, 0, 0], [0, 0, 1, 0]]))
UPWARDS = TreeWalkMatrix(
    IntegerMatrix(
        np.array([[2, 0, 0, 0], [0, 1, 1, 0], [0, 2, 0, 0], [0, 0, 1, 0], [0, 1, 0, 3], [0, 0, 0, 0]])
    ),
    (4, 3, 4, 5, 5, 6),
    (900, 0, 1500, 400, 2000, 300),
)
CELLS = {name: IdentityMatrix(DOMAIN[name].size) for name in DOMAIN.names}
EVEN = {name: np.full(DOMAIN[name].size, 1.0 / DOMAIN[name].size) for name in DOMAIN.names}


def parts(*asked: dict[str, MeasuredMatrix]) -> tuple[Part, ...]:
    """Parts that share the cost unevenly."""
    shares = np.arange(1.0, len(asked) + 1.0) / np.arange(1.0, len(asked) + 1.0).sum()
    own = [Part(tuple(few), tuple(Block((n,), m) for n, m in few.items()), 1.0) for few in asked]
    return tuple(part.at_cost(LAPLACE, share) for part, share in zip(own, shares.tolist(), strict=True))


TWO = parts({"a": WALK, "b": CELLS["b"]}, {"a": OTHER, "c": CELLS["c"]})
PLANS: dict[str, Plan] = {
    "pooled": Pooled(
        DOMAIN,
        parts({"a": WALK, "b": CELLS["b"]}, {"b": CELLS["b"], "c": CELLS["c"]}, {"a": WALK}, {}),
        LAPLACE,
    ),
    "two tables": Union(DOMAIN, TWO, LAPLACE),
    "a walk and cells": Union(DOMAIN, parts({"a": WALK, "b": CELLS["b"]}, {"a": TREE}), LAPLACE),
    "walks across": Union(
        DOMAIN, parts({"a": WALK, "b": CELLS["b"]}, {"a": CELLS["a"], "b": SHORT}), LAPLACE
    ),
    "a walk of groups": Union(DOMAIN, parts({"a": CELLS["a"], "b": CELLS["b"]}, {"a": GROUPS}), LAPLACE),
    "three tables": Union(
        DOMAIN,
        parts({"a": WALK, "c": CELLS["c"]}, {"b": SHORT, "c": CELLS["c"]}, {"a": TREE}),
        LAPLACE,
    ),
    "trees": Union(DOMAIN, parts({"a": UPWARDS, "b": CELLS["b"]}, {"a": OTHER}), LAPLACE),
    "pooled trees": Pooled(DOMAIN, parts({"a": UPWARDS, "b": CELLS["b"]}, {"a": UPWARDS}, {}), LAPLACE),
    "joint": Joint(DOMAIN, TWO, LAPLACE, EVEN, {"parts": np.ones(2)}),
}
SPLIT = parts({}, {"a": WALK}, {"b": CELLS["b"]}, {"a": OTHER, "b": CELLS["b"]})
OTHERS: dict[str, Plan] = {
    "split": Split(DOMAIN, SPLIT, LAPLACE, EVEN),
    "local": Local(DOMAIN, parts({"a": WALK, "b": CELLS["b"]}, {"a": TREE}), LAPLACE),
}


def workload_of(plan: Plan) -> mdp.Workload:
    """Prefixes of "a" by the cells of others, as far as parts tell the values apart, and explicit queries."""
    told = [part.attributes for part in plan.parts if all(own.matrix != GROUPS for own in part.blocks)]
    asked = [{name: "prefix" if name == "a" else "identity" for name in names} for names in told if names]
    explicit = mdp.dense(np.random.default_rng(1).integers(-1, 3, (3, DOMAIN["a"].size)), ["a"])
    return mdp.Workload(DOMAIN, *map(mdp.product, asked), explicit)


@pytest.mark.parametrize("name", PLANS | OTHERS)
def test_variances_and_covariances_are_those_of_the_estimates(name: str):
    plan = (PLANS | OTHERS)[name]
    check_plan(plan, workload_of(plan))


@pytest.mark.parametrize("name", PLANS)
def test_estimates_have_the_least_variance_of_all_unbiased_ones(name: str):
    plan = PLANS[name]
    rows = np.vstack([dense_measurement(part, DOMAIN) for part in plan.parts])
    noise = block_diag(
        *(
            part.variance * (np.eye(part.rows) if part.walk is None else part.walk.covariance())
            for part in plan.parts
        )
    )
    known = np.linalg.pinv(rows.T @ np.linalg.solve(noise, rows), rcond=1e-11)
    for group in workload_of(plan):
        asked = dense_queries(group, DOMAIN)
        expected = np.einsum("qi,ij,qj->q", asked, known, asked)
        np.testing.assert_allclose(plan.analysis.variances(group), expected, rtol=1e-8)


def strategy_of(plan: Plan) -> mdp.Strategy:
    selection = mdp.select(workload_of(plan), noise="laplace", mechanism="identity").selection
    return mdp.Strategy(replace(selection, plan=plan))


@pytest.mark.parametrize(("name", "epsilon"), [("walks across", 1.0), ("pooled", 1.0), ("split", 6.0)])
def test_intervals_hold(name: str, epsilon: float):
    """Of 150 measurements of a table with a record in each cell: at 6 deviations."""
    plan, count, budget = (PLANS | OTHERS)[name], 150, mdp.Budget(epsilon=epsilon)
    workload, strategy = workload_of(plan), strategy_of(plan)
    table = dict(zip(DOMAIN.names, np.indices(DOMAIN.shape).reshape(3, -1).tolist(), strict=True))
    release = strategy.measure(table, budget, seed_not_private=1).reconstruct()
    lower, upper, deviations = (
        release.answers.column(own).to_numpy() for own in ("lower", "upper", "stddev")
    )
    far = (upper - lower) / 2.0
    exact = np.concatenate([dense_queries(group, DOMAIN).sum(axis=1) for group in workload])
    errors = []
    for seed in range(count):
        estimates = strategy.measure(table, budget, seed_not_private=seed).measurement.estimates
        errors.append(np.concatenate([estimates.answers(group) for group in workload]) - exact)
    inside = (np.abs(errors) <= far * (1 + 1e-9)).mean(axis=0)
    assert (inside > 0.95 - 6 * np.sqrt(0.95 * 0.05 / count)).all()
    assert abs(np.mean((np.array(errors) / deviations) ** 2) - 1) < 0.15
    if release.measurement.tails.least == np.inf:
        assert inside.mean() == pytest.approx(0.95, abs=0.02)
        assert (far / deviations < 2.13).all()  # one Laplace variable has 2.118


@pytest.mark.parametrize("name", ["two tables", "joint", "split"])
def test_releases_are_verified_and_say_so(name: str, tmp_path: Path):
    table, budget = {"a": [1], "b": [2], "c": [0]}, mdp.Budget(epsilon=1)
    made = strategy_of((PLANS | OTHERS)[name]).measure(table, budget).reconstruct()
    folder = mdp.save_release(made, tmp_path / "out")
    assert mdp.verify_release(folder).failed == ()
    checked(folder)
    assert "The rows of a walk" in mdp.explain_release(folder)
    again = mdp.load_release(folder).measurement
    assert again.tails.walks == made.measurement.tails.walks != {}
    with pytest.raises(UnsupportedQueryError):
        made.to_mbi()


def test_rounds_have_no_walk():
    part = Part(("a",), (Block(("a",), WALK),), 99.0)
    with pytest.raises(PrivacyError, match="walk"):
        Rounds(DOMAIN, (part, part), LAPLACE, EVEN)
