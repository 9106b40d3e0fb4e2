"""Weighted marginals with one strategy for each attribute, against dense matrices and published figures."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.gram.p_identity import strategy_rows
from matrixdp.selection.problem.residual_traces import residual_traces
from matrixdp.selection.searches import marginals
from matrixdp.selection.searches.coverage import Coverage
from matrixdp.selection.searches.marginals import (
    select_generalized_marginals,
    select_marginals,
)

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
    assert selection.mechanism == "generalized-marginals"
    assert selection.reason.endswith("a fast trial of opt-kron and opt-plus had more")


def test_attributes_that_are_too_large_to_search_keep_their_own_optimum(limits):
    domain = mdp.Domain({"age": range(24), "sex": 2})
    workload = mdp.Workload(domain, mdp.product(age="prefix", sex="identity"), mdp.product(age="range"))
    searched = select_generalized_marginals(workload, LAPLACE)[1].loss
    limits(_MAX_SEARCHED=8)
    kept = select_generalized_marginals(workload, LAPLACE)[1].loss
    assert searched < kept < 1.2 * searched
