"""Weighted marginals with one strategy for each attribute, against dense matrices and published figures."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import WorkloadError
from matrixdp.exact import WalkMatrix
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plans import Block
from matrixdp.selection.auto import select
from matrixdp.selection.gram.p_identity import strategy_rows
from matrixdp.selection.problem.residual_traces import residual_traces
from matrixdp.selection.searches import marginals
from matrixdp.selection.searches.coverage import Coverage
from matrixdp.selection.searches.marginals import (
    first_walk_marginals_loss,
    select_generalized_marginals,
    select_marginals,
    select_walk_marginals,
)
from matrixdp.testing import check_plan
from tests.builders import saved
from tests.measure.test_integer_noise import checked

RNG = np.random.default_rng(7)
DOMAIN = mdp.Domain({"a": 5, "b": 4, "one": 1, "c": 3, "e": 4})
#: Products, weights that are no product, explicit queries, a disjunction, and an attribute of one value.
MIXED = mdp.Workload(
    DOMAIN,
    mdp.product(a="prefix", b="range", weight=2.0),
    mdp.product(b="identity", c="identity", one="identity"),
    mdp.product(e="prefix", a="total"),
    mdp.product(a="range", e="identity", weights=RNG.random(15 * 4) + 0.1),
    mdp.dense(RNG.integers(-1, 3, (4, 12)), ["b", "c"], weights=[1.0, 2.0, 0.5, 1.0]),
    mdp.disjunction(a="prefix", e="identity"),
)
SHARED = mdp.Workload(
    mdp.Domain({f"a{i}": range(4) for i in range(3)}), mdp.kway([1, 2], "prefix"), mdp.pairwise("affine")
)


def p_identity(size):
    return marginals._Strategy(strategy_rows(0.1 + RNG.random((2, size))))


def searched(workload, strategies, measured):
    """A search, and three marginals with strategies for it."""
    asked = residual_traces(workload)
    search = marginals._Search(asked, LAPLACE, lambda _: True, 0, 2, marginals._Effort())
    states = search.states(strategies)
    problem = Coverage.of(measured, asked.residuals, asked.weights(states), asked.spreads(states))
    shares = np.array([0.25, 0.5, 0.25])
    return search, marginals._Found(problem.loss(shares**2), problem, shares, strategies)


def test_attributes_of_one_role_share_their_strategy():
    asked = residual_traces(SHARED)
    assert asked.types == (0, 0, 0)
    assert len(asked.rows) == 1  # three pairs, asked the same
    search, start = searched(SHARED, {0: p_identity(4)}, [(0, 1), (0, 2), (1, 2)])
    moved = search.alternated(start)
    assert moved.strategies.keys() == {0}
    assert moved.loss < 0.9 * start.loss
    assert moved.shares[0] == pytest.approx(moved.shares[2], rel=1e-3)  # ends alike
    assert moved.shares.sum() == pytest.approx(1.0)


def test_what_a_role_sees_is_the_slope_of_the_loss_by_its_covariance():
    asked = residual_traces(MIXED)
    strategies = {
        role: marginals._Strategy(strategy_rows(0.1 + RNG.random((2, size))))
        for role, size in asked.free.items()
    }
    search, found = searched(MIXED, strategies, [(0, 3), (1, 2), (0, 1, 2, 3)])
    seen = search.seen(found)
    assert len(seen) > 2
    for role, own in strategies.items():
        size = len(own.covariance)
        change = RNG.random((size, size)) @ np.diag(RNG.random(size))
        change = 1e-5 * (change + change.T)
        ends = []
        for sign in (-1, 1):
            rows = np.linalg.cholesky(np.linalg.inv(own.covariance + sign * change)).T
            states = search.states({**strategies, role: marginals._Strategy(rows)})
            problem = Coverage.of(
                found.problem.marginals, asked.residuals, asked.weights(states), asked.spreads(states)
            )
            ends.append(problem.loss(found.shares**2))
        assert ends[1] - ends[0] == pytest.approx(2 * np.vdot(seen[role], change), rel=1e-4)


def test_identities_for_every_attribute_are_weighted_marginals():
    workload = mdp.Workload(mdp.Domain({"a": 50, "b": 7, "c": 4}), mdp.marginals([1, 2], weight=2.0))
    for noise in (LAPLACE, GAUSSIAN):
        general, plain = (
            choose(workload, noise)[1] for choose in (select_generalized_marginals, select_marginals)
        )
        assert general.loss == pytest.approx(plain.loss, rel=1e-9)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_plans_cost_one_and_their_error_is_what_is_said(noise):
    plan, certificate = select_generalized_marginals(MIXED, noise, restarts=2)
    assert plan.cost == pytest.approx(1.0, rel=1e-9)
    weighted = sum(plan.analysis.group(group).weighted for group in MIXED)
    # rounding to integers: 2^-14 of a Gaussian strategy, 2^-18 of a Laplace one
    assert weighted == pytest.approx(certificate.loss, rel=2e-4 if noise == GAUSSIAN else 1e-5)
    again = select_generalized_marginals(MIXED, noise, restarts=2)[1]
    assert again.loss == certificate.loss
    identities = select_marginals(MIXED, noise, restarts=2)[1]
    assert certificate.loss <= identities.loss * (1.0 + 1e-9 if noise == LAPLACE else 0.9)


def test_published_figures_of_pairs_of_prefixes_are_passed():
    """RMSE at epsilon = 1 of the 1- and 2-way prefixes of 40 attributes; the decomposition: 2,126."""
    domain = mdp.Domain({f"a{i}": range(10) for i in range(40)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    plan, certificate = select_generalized_marginals(workload, LAPLACE, restarts=0)
    assert math.sqrt(certificate.loss / workload.queries) < 1_930
    assert len({id(block.matrix) for part in plan.parts for block in part.blocks}) == 1


def test_auto_takes_it_where_it_is_best():
    domain = mdp.Domain({f"a{i}": range(24) for i in range(4)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    selection = select(workload, noise=LAPLACE, restarts=1)
    assert selection.mechanism == "walk-marginals"
    told = {one.mechanism for one in selection.candidates if one.status == "passed"}
    assert {"generalized-marginals", "opt-kron", "opt-plus"} <= told


LONG = {"age": 7, "income": range(5), "sex": 2, "race": 2}
ONE_OF_TWO = mdp.Workload(
    mdp.Domain(LONG),
    mdp.product(age="prefix", sex="identity"),
    mdp.product(income="prefix", race="identity", weight=2.0),
    mdp.product(race="identity", sex="identity"),
    mdp.product(age={"ranges": [[0, 3], [4, 6]]}, race="identity"),
)
ALIKE = mdp.Workload(mdp.Domain({f"a{i}": 5 for i in range(3)}), mdp.kway([1, 2], "prefix"))
WALKED = {"one of two": (ONE_OF_TWO, {"age", "income"}), "alike": (ALIKE, {"a0"})}


@pytest.mark.parametrize("name", WALKED)
def test_ordered_attributes_have_walks_where_no_marginal_has_two(name: str):
    workload, expected = WALKED[name]
    plan, certificate = select_walk_marginals(workload, LAPLACE, restarts=2)
    check_plan(plan, workload)
    blocks = [block for part in plan.parts for block in part.blocks]
    assert {n for own in blocks if own.matrix.walk for n in own.attributes} == expected
    # the loss that was searched for is that of the least squares of all that is measured
    total = math.fsum(plan.analysis.group(group).weighted for group in workload)
    assert certificate.loss == pytest.approx(total, rel=1e-6)
    assert certificate.lower_bound is None
    assert total < 0.9 * select_generalized_marginals(workload, LAPLACE, restarts=2)[1].loss
    found = select(workload, noise=LAPLACE)
    assert found.mechanism == "walk-marginals"
    assert found.certificate.loss <= total * 1.001
    assert found.certificate.lower_bound is None


def test_no_marginal_has_two_walks_though_it_would_err_less():
    """Of few values their table says more of both than a share of the cost for each."""
    workload = mdp.Workload(mdp.Domain({"a": 3, "b": 2}), mdp.product(a="prefix"), mdp.product(b="prefix"))
    plan, _ = select_walk_marginals(workload, LAPLACE)
    assert {part.attributes for part in plan.parts} == {("a",), ("b",)}


def test_widths_of_walks_in_marginals_are_at_a_least_error():
    """Against widths that are moved, the shares of the cost as they are."""
    plan, certificate = select_walk_marginals(ONE_OF_TWO, LAPLACE)
    random = np.random.default_rng(3)
    for name in ("age", "income"):
        [matrix] = {b.matrix for part in plan.parts for b in part.blocks if b.attributes == (name,)}
        for _ in range(4):
            moved = np.add(matrix.walk, random.integers(-150, 151, len(matrix.walk)))
            other = WalkMatrix(tuple(np.maximum(moved, 0).tolist()))
            parts = [
                replace(
                    part,
                    blocks=tuple(
                        Block(b.attributes, other if b.matrix is matrix else b.matrix) for b in part.blocks
                    ),
                )
                for part in plan.parts
            ]
            near = replace(plan, parts=tuple(parts))
            loss = math.fsum(near.analysis.group(group).weighted for group in ONE_OF_TWO)
            assert loss >= certificate.loss * (1 - 1e-6)


def test_released_marginals_with_walks_are_verified(tmp_path: Path):
    made = saved(tmp_path / "out", ONE_OF_TWO, mdp.Budget(epsilon=1), noise="laplace")
    assert len(made.measurement.tails.walks) > 1
    assert mdp.verify_release(tmp_path / "out").failed == ()
    checked(tmp_path / "out")


def test_walk_marginals_of_nothing_ordered_are_rejected():
    for workload, noise in (
        (ONE_OF_TWO, GAUSSIAN),
        (mdp.Workload(mdp.Domain(LONG), mdp.marginals(2)), LAPLACE),
    ):
        with pytest.raises(WorkloadError, match="walk"):
            select_walk_marginals(workload, noise)
        assert first_walk_marginals_loss(workload, noise) == math.inf


def test_attributes_that_are_too_large_to_search_keep_their_own_optimum(limits):
    domain = mdp.Domain({"age": range(24), "sex": 2})
    workload = mdp.Workload(domain, mdp.product(age="prefix", sex="identity"), mdp.product(age="range"))
    searched = select_generalized_marginals(workload, LAPLACE)[1].loss
    limits(_MAX_SEARCHED=8)
    kept = select_generalized_marginals(workload, LAPLACE)[1].loss
    assert searched < kept < 1.2 * searched
