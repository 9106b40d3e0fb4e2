"""Weighted marginals with one strategy for each attribute, against dense matrices and published figures."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.compose.generalized_marginals import select_generalized_marginals
from matrixdp.selection.compose.marginals import select_marginals
from matrixdp.selection.weights import generalized
from matrixdp.selection.weights.axes_of_workload import asked_axes
from matrixdp.selection.weights.incidence import incidence_of, problem_of
from matrixdp.selection.weights.joint import Fixed, Objective, PIdentity, UnitColumns, descend, states_of
from matrixdp.testing import dense_error, dense_gram, dense_measurement

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
MARGINALS = [(), (0,), (0, 1), (0, 1, 2), (0, 3), (1, 2), (2, 3), (3,), (0, 1, 3)]
SHARED = mdp.Workload(
    mdp.Domain({f"a{i}": range(4) for i in range(3)}), mdp.kway([1, 2], "prefix"), mdp.pairwise("affine")
)


def p_identity(size):
    return PIdentity(0.1 + RNG.random((2, size)))


def any_columns(size):
    return UnitColumns(RNG.standard_normal((size + 1, size)))


@pytest.mark.parametrize(("strategy", "power"), [(p_identity, 2), (any_columns, 1)])
@pytest.mark.parametrize("workload", [MIXED, SHARED])
def test_the_loss_is_that_of_the_dense_least_squares_and_its_derivatives_are_differences(
    workload, strategy, power
):
    asked = asked_axes(workload)
    marginals = [one for one in MARGINALS if max(one, default=0) < len(asked.sizes)]
    strategies = {type_: strategy(size) for type_, size in asked.free.items()}
    incidence = incidence_of(marginals, asked.residuals)
    states = states_of(asked, strategies)
    problem = problem_of(marginals, asked.residuals, asked.weights(states), asked.spreads(states))
    shares = RNG.random(len(marginals))
    rows = []
    for marginal, precision in zip(marginals, shares**power, strict=True):
        block = np.sqrt([[precision]])
        for axis, (type_, size) in enumerate(zip(asked.types, asked.sizes, strict=True)):
            own = strategies[type_].rows if type_ in strategies else np.eye(size)
            block = np.kron(block, own if axis in marginal else np.ones((1, size)))
        rows.append(block)
    expected = dense_error(dense_gram(workload, workload.domain.names), np.vstack(rows))
    assert problem.loss(shares**power) == pytest.approx(expected, rel=1e-9)
    objective = Objective(asked, incidence, strategies, power)
    point = objective.packed(shares)
    value, gradient = objective(point)
    assert value == pytest.approx(math.log(expected) + power * math.log(shares.sum()), rel=1e-9)
    assert objective.value(shares, strategies) == pytest.approx(value, rel=1e-12)
    steps = 1e-5 * np.eye(len(point))
    differences = [(objective(point + step)[0] - objective(point - step)[0]) / 2e-5 for step in steps]
    assert np.abs(np.array(differences) - gradient).max() < 1e-6 * np.abs(gradient).max()


def test_attributes_of_one_role_share_their_strategy_and_fixed_ones_stay():
    asked = asked_axes(SHARED)
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


def test_gaussian_strategies_reach_the_optimum_of_the_whole_table():
    domain = mdp.Domain({"age": range(8), "sex": 2, "race": 3})
    workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))
    loss = select_generalized_marginals(workload, GAUSSIAN)[1].loss
    best = mdp.select(workload, mechanism="dense", noise="gaussian").selection.certificate
    assert best.lower_bound <= loss < 1.005 * best.loss


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
    assert selection.reason.endswith("a fast trial of opt-kron and opt-plus and residual had more")


def test_values_that_nothing_asked_tells_apart_are_measured_together():
    domain = mdp.Domain({"age": range(20), "sex": 2, "race": 3})
    ages = {"ranges": [[0, 4], [5, 12], [13, 19]]}
    spread = np.kron(np.repeat(np.eye(3), [5, 8, 7], axis=1), [[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
    workload = mdp.Workload(
        domain,
        mdp.product(age=ages, sex="identity", weights=[1.0, 2.0, 3.0, 4.0, 1.0, 5.0]),
        mdp.product(sex="identity"),
        mdp.dense(spread, ["age", "race"]),
    )
    asked = asked_axes(workload)
    assert asked.free == {0: 3, 1: 2, 2: 3}
    assert asked.merged[0].tolist() == [0] * 5 + [1] * 8 + [2] * 7
    plan, certificate = select_generalized_marginals(workload, LAPLACE)
    rows = np.vstack([dense_measurement(part, domain) / math.sqrt(part.variance) for part in plan.parts])
    expected = dense_error(dense_gram(workload, domain.names), rows)
    assert expected == pytest.approx(certificate.loss, rel=1e-5)
    assert sum(plan.analysis.group(group).weighted for group in workload) == pytest.approx(expected, rel=1e-9)


def test_attributes_that_are_too_large_to_search_keep_their_own_optimum(monkeypatch):
    domain = mdp.Domain({"age": range(24), "sex": 2})
    workload = mdp.Workload(domain, mdp.product(age="prefix", sex="identity"), mdp.product(age="range"))
    searched = select_generalized_marginals(workload, LAPLACE)[1].loss
    monkeypatch.setattr(generalized, "_MAX_SEARCHED", 8)
    kept = select_generalized_marginals(workload, LAPLACE)[1].loss
    assert searched < kept < 1.2 * searched


def test_marginals_need_not_hold_what_nothing_is_asked_of():
    domain = mdp.Domain({"one": 1, "a": 3})
    rows = mdp.dense(np.array([[2.0, 2.0, 2.0]]), ["a"])
    workload = mdp.Workload(domain, rows, mdp.disjunction(one="prefix", a="identity"))
    plan, certificate = select_generalized_marginals(workload, LAPLACE)  # a division by 0 would warn
    loss = sum(plan.analysis.group(group).weighted for group in workload)
    assert loss == pytest.approx(certificate.loss, rel=1e-4)
