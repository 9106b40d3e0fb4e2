"""Weighted marginals with one strategy for each attribute, against dense matrices and published figures."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.compose.generalized_marginals import select_generalized_marginals
from matrixdp.selection.compose.marginals import select_marginals
from matrixdp.selection.problem.residual_traces import residual_traces
from matrixdp.selection.weights import generalized
from matrixdp.selection.weights.incidence import incidence_of
from matrixdp.selection.weights.joint import Fixed, Objective, PIdentity, descend

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
    return PIdentity(0.1 + RNG.random((2, size)))


def test_attributes_of_one_role_share_their_strategy_and_fixed_ones_stay():
    asked = residual_traces(SHARED)
    assert asked.types == (0, 0, 0)
    assert len(asked.rows) == 1  # three pairs, asked the same
    incidence = incidence_of([(0, 1), (0, 2), (1, 2)], asked.residuals)
    free = p_identity(4)
    fixed = Fixed(free.rows)
    shares = np.array([1.0, 2.0, 1.0])
    before = math.exp(Objective(asked, incidence, {0: free}, 2).value(shares, {0: free}))
    kept = descend(asked, incidence, shares, {0: fixed}, 2, 50)
    assert kept.strategies[0] is fixed
    moved = descend(asked, incidence, shares, {0: free}, 2, 50)
    assert moved.loss < kept.loss < before
    assert moved.shares.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
def test_plans_cost_one_and_their_error_is_what_is_said(noise):
    plan, certificate = select_generalized_marginals(MIXED, noise, restarts=2)
    assert plan.cost == pytest.approx(1.0, rel=1e-9)
    weighted = sum(plan.analysis.group(group).weighted for group in MIXED)
    # rounding to integers: 2^-14 of a Gaussian strategy, 2^-18 of a Laplace one
    assert weighted == pytest.approx(certificate.loss, rel=2e-4 if noise == GAUSSIAN else 1e-5)
    again = select_generalized_marginals(MIXED, noise, restarts=2)[1]
    assert again.loss == certificate.loss
    assert certificate.loss < select_marginals(MIXED, noise, restarts=2)[1].loss


def test_published_figures_of_pairs_of_prefixes_are_passed():
    """RMSE at epsilon = 1 of the 1- and 2-way prefixes of 40 attributes; the decomposition: 2,126."""
    domain = mdp.Domain({f"a{i}": range(10) for i in range(40)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    plan, certificate = select_generalized_marginals(workload, LAPLACE, restarts=0)
    assert math.sqrt(certificate.loss / workload.queries) < 1_930
    assert len({id(block.matrix) for part in plan.parts for block in part.blocks}) == 1


def test_auto_takes_it_where_it_is_best():
    domain = mdp.Domain({f"a{i}": range(16) for i in range(4)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    selection = select(workload, noise=LAPLACE, restarts=1)
    assert selection.mechanism == "generalized-marginals"
    assert selection.reason.endswith("a fast trial of opt-kron and opt-plus had more")


def test_attributes_that_are_too_large_to_search_keep_their_own_optimum(monkeypatch):
    domain = mdp.Domain({"age": range(24), "sex": 2})
    workload = mdp.Workload(domain, mdp.product(age="prefix", sex="identity"), mdp.product(age="range"))
    searched = select_generalized_marginals(workload, LAPLACE)[1].loss
    monkeypatch.setattr(generalized, "_MAX_SEARCHED", 8)
    kept = select_generalized_marginals(workload, LAPLACE)[1].loss
    assert searched < kept < 1.2 * searched
