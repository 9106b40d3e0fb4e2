"""Weighted marginals against dense matrices and published figures."""

import math
from itertools import combinations

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.exact.linear import kronecker
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.problem.residual_traces import marginal_spectrum
from matrixdp.selection.searches import coverage as search
from matrixdp.selection.searches.coverage import (
    Coverage,
    convex_weights,
    coverage,
    laplace_shares,
    lower_bound,
    polished,
)
from matrixdp.selection.searches.marginals import select_marginals

MU_SQUARED = 0.236704**2  # (epsilon, delta) = (1, 1e-6)
SIZES = (3, 2, 4)
DOMAIN = mdp.Domain({"a": 3, "b": 2, "c": 4, "unasked": 5})
MIXED = mdp.Workload(
    DOMAIN,
    mdp.product(a="prefix", c="range", weight=2.0),
    mdp.marginals([0, 1], ["a", "b", "c"]),
    mdp.dense(np.arange(24).reshape(3, 8) % 5, ["b", "c"], weights=[1.0, 2.0, 0.5]),
    mdp.product(b="identity", a="identity", weights=[1, 2, 3, 4, 5, 6]),
)
CPS = mdp.Domain(
    {"income": {"min": 0, "max": 99}, "age": {"min": 0, "max": 49}, "marital": 7, "race": 4, "sex": 2}
)


def every(spectrum):
    """All marginals of the attributes may be measured."""
    return coverage(spectrum.residuals, spectrum.weights, spectrum.sizes, lambda one: True, 2)


def dense_loss(problem, precisions):
    """The loss by dense projections onto residual spaces: every marginal's identity is measured."""
    sizes = [int(size) for size in problem.spreads]
    measured = np.zeros((math.prod(sizes),) * 2)
    for marginal, precision in zip(problem.marginals, precisions, strict=True):
        factors = [np.eye(n) if i in marginal else np.ones((n, n)) for i, n in enumerate(sizes)]
        measured += precision * kronecker(factors)
    asked = np.zeros_like(measured)
    for residual, weight in zip(problem.residuals, problem.weights, strict=True):
        means = [np.full((n, n), 1.0 / n) for n in sizes]
        factors = [np.eye(len(m)) - m if i in residual else m for i, m in enumerate(means)]
        space = kronecker(factors)
        asked += weight * math.prod(sizes) / np.trace(space) * space
    return float(np.trace(np.linalg.pinv(measured, rcond=1e-9, hermitian=True) @ asked))


def test_losses_are_those_of_dense_matrices():
    rng = np.random.default_rng(5)
    residuals = [(), (0,), (1,), (2,), (0, 1)]
    problem = Coverage.of([(0, 1), (2,), (0, 2), (0, 1, 2)], residuals, rng.random(5), SIZES)
    precisions = rng.random(4)
    assert problem.loss(precisions) == pytest.approx(dense_loss(problem, precisions), rel=1e-9)
    part = problem.restricted(np.array([0, 1]))
    assert part.loss(precisions[:2]) == pytest.approx(dense_loss(part, precisions[:2]), rel=1e-9)
    assert problem.restricted(np.array([0])).loss(precisions[:1]) == math.inf
    step = 1e-6 * np.eye(4)
    slopes = [(problem.loss(precisions - one) - problem.loss(precisions + one)) / 2e-6 for one in step]
    assert problem.loss_and_slopes(precisions)[1] == pytest.approx(np.array(slopes), rel=1e-6)


def test_moves_are_scored_as_the_losses_after_them():
    spectrum = marginal_spectrum(MIXED)
    problem = every(spectrum)
    place = problem.place
    start = np.zeros(8)
    start[[place[0, 2], place[0, 1], place[1, 2]]] = 1.0
    loss, shares = polished(problem, start)
    moves = [
        (place[0, 1, 2], ()),
        (place[0, 1, 2], (place[0, 1], place[0, 2])),
        (-1, (place[1, 2],)),
        (-1, (place[0, 2],)),
    ]
    found, tried = search._scored(problem, shares, loss, moves)
    for (into, out), scored, share in zip(moves, found, tried, strict=True):
        after = shares.copy()
        after[list(out)] = 0.0
        if into >= 0:
            after[into] = share
        assert problem.loss(after**2) * after.sum() ** 2 == pytest.approx(scored, rel=1e-9)
    assert found[3] == math.inf  # nothing else tells of both


def test_weights_of_all_marginals_attain_the_singular_value_bound():
    """All marginals: every residual could be weighted on its own, and the weights are not negative."""
    workload = mdp.Workload(CPS, mdp.marginals([0, 1, 2, 3, 4, 5]))
    _, certificate = select_marginals(workload, GAUSSIAN)
    # the optimum of a workload of all marginals is the SVD bound (published: 7.85)
    axes = [math.sqrt(n + 1) + (n - 1) for n in (100, 50, 7, 4, 2)]
    bound = math.prod(axes) ** 2 / math.prod((100, 50, 7, 4, 2))
    assert bound <= certificate.loss <= bound * (1 + 2e-6)


def _prefix_marginals():
    numeric = {"income": "prefix", "age": "prefix"}
    chosen = [names for count in range(4) for names in combinations(["marital", "race", "sex"], count)]
    return mdp.Workload(CPS, *[mdp.product(numeric | dict.fromkeys(names, "identity")) for names in chosen])


@pytest.mark.parametrize(
    ("workload", "noise", "published"),
    [
        (mdp.Workload(CPS, mdp.marginals([0, 1, 2, 3, 4, 5])), LAPLACE, 4.84),
        (mdp.Workload(CPS, mdp.marginals([0, 1, 2, 3, 4, 5])), GAUSSIAN, 7.86),
        (_prefix_marginals(), LAPLACE, 69.38),
        (_prefix_marginals(), GAUSSIAN, 104.09),
    ],
)
def test_published_figures_of_cps(workload, noise, published):
    _, certificate = select_marginals(workload, noise)
    cost = MU_SQUARED if noise == GAUSSIAN else 1.0
    assert math.sqrt(certificate.loss / workload.queries / cost) < published + 0.005


def test_published_figure_of_two_way_marginals():
    domain = mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100})
    plan, certificate = select_marginals(mdp.Workload(domain, mdp.marginals(2)), LAPLACE)
    assert certificate.loss / 2 < 62_886.5
    # ten table cells are not worth a measurement of their own
    assert len(plan.parts) == 3


def test_forty_attributes_have_no_arrays_of_all_subsets():
    """Published for HDMM: 52.35; the best weights are 48.81."""
    domain = mdp.Domain({f"a{i}": range(10) for i in range(40)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    _, certificate = select_marginals(workload, GAUSSIAN)
    assert math.sqrt(certificate.loss / workload.queries) < 48.82
    assert "considered" in certificate.scope


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("weight", [1e-20, 1e-4, 1e20])
def test_weights_of_any_ratio_keep_every_query_determined(weight, noise):
    domain = mdp.Domain({"a": 3, "b": 4, "c": 2, "one": 1})
    workload = mdp.Workload(
        domain, mdp.marginals([["a"]]), mdp.marginals([["b", "c"]], weight=weight), mdp.product(one="prefix")
    )
    plan, certificate = select_marginals(workload, noise)
    assert plan.cost == pytest.approx(1.0, rel=1e-9)
    assert all("one" not in part.attributes for part in plan.parts)
    analysis = plan.analysis
    weighted = sum(analysis.group(group).weighted for group in workload)
    assert weighted == pytest.approx(certificate.loss, rel=1e-9)
    if noise == LAPLACE:
        # the two marginals on their own with the best split, the total from the first
        assert certificate.loss <= 2 * (6 ** (1 / 3) + (8 * weight) ** (1 / 3)) ** 3 * (1 + 1e-6)


def test_weighted_queries_need_no_rows():
    domain = mdp.Domain({"a": 300, "unasked": 5, "b": 300})
    weights = np.arange(1.0, 90_001.0)
    entry = mdp.product(a="identity", unasked="total", b="identity", weights=weights)
    spectrum = marginal_spectrum(mdp.Workload(domain, entry))
    assert spectrum.attributes == ("a", "b")
    for residual, found in zip(spectrum.residuals, spectrum.weights, strict=True):
        expected = weights.sum() * 299 ** len(residual) / 300**4
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE])
def test_only_marginals_within_the_limit_are_measured(noise, limits):
    domain = mdp.Domain({"a": 4, "b": 5, "c": 3})
    workload = mdp.Workload(domain, mdp.marginals([1, 2]))
    free = select_marginals(workload, noise)[1]
    limits(max_marginal_cells=4)
    plan, certificate = select_marginals(workload, noise)
    asked = {group.attributes for group in workload}
    assert all(part.attributes in asked | {()} for part in plan.parts)
    assert free.loss <= certificate.loss * (1 + 1e-9)


def test_marginals_that_may_not_be_measured_cost_what_they_are_of_use():
    """Forbidding a marginal that is not measured changes nothing; one that is, a little."""
    workload = mdp.Workload(
        mdp.Domain({"a": 4, "b": 5, "c": 3}), mdp.marginals([1, 2]), mdp.marginals(0, weight=30)
    )
    spectrum = marginal_spectrum(workload)
    problem = every(spectrum)
    found = convex_weights(problem)
    bound = lower_bound(problem, found)
    assert problem.loss(found) / bound - 1 < 2e-6
    unused, used = problem.place[0, 1, 2], problem.place[2,]
    assert found[unused] == 0.0 < found[used]
    losses = []
    for place in (unused, used):
        fewer = problem.restricted(np.flatnonzero(np.arange(8) != place))
        other = convex_weights(fewer)
        losses.append(fewer.loss(other))
        assert losses[-1] / lower_bound(fewer, other) - 1 < 2e-6
    assert bound <= losses[0] < bound * (1 + 2e-6) < losses[1] < 1.05 * bound


def test_no_small_change_of_the_shares_lessens_the_loss_under_laplace_noise():
    spectrum = marginal_spectrum(MIXED)
    problem = every(spectrum)
    loss, shares = laplace_shares(problem)
    assert float(shares.sum()) == pytest.approx(1.0)
    rng = np.random.default_rng(3)
    for _ in range(200):
        other = (1 - 1e-3) * shares + 1e-3 * rng.dirichlet(np.full(8, 0.5))
        assert problem.loss(other**2) >= loss * (1 - 1e-9)


def test_supports_of_few_marginals_are_the_best_of_all():
    """Every support of CPS's two-way marginals of three attributes, each polished."""
    domain = mdp.Domain({"a": 50, "b": 7, "c": 4})
    problem = every(marginal_spectrum(mdp.Workload(domain, mdp.marginals([1, 2]))))
    supports = [np.array([number >> place & 1 for place in range(8)]) for number in range(1, 256)]
    best = min(polished(problem, 1.0 * support)[0] for support in supports)
    assert laplace_shares(problem)[0] == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("ways", [[3], [1, 2, 3]])
def test_without_random_covers_the_largest_marginals_are_a_start(ways):
    domain = mdp.Domain({"a": 100, "b": 50, "c": 7, "d": 4, "e": 2})
    problem = every(marginal_spectrum(mdp.Workload(domain, mdp.marginals(ways))))
    best = laplace_shares(problem)[0]
    assert laplace_shares(problem, restarts=0)[0] == pytest.approx(best, rel=1e-6)
