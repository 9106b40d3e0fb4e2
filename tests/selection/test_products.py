"""OPT_kron, OPT_plus and OPT_HDMM against dense matrices and published figures."""

import math
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import Trials
from matrixdp.selection.compose.product import solve_kron
from matrixdp.selection.compose.whole_table import select_table
from matrixdp.selection.gram.factor import Factor, right_inverse
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.searches.marginals import select_marginals
from matrixdp.selection.searches.unions import select_union
from matrixdp.testing import dense_error, dense_gram
from tests.limits import Override

select_kron = partial(select_table, method="product")

MU_SQUARED = 0.236704**2  # (epsilon, delta) = (1, 1e-6)
EXAMPLES = Path(__file__).parents[2] / "examples"
NOISES = [GAUSSIAN, LAPLACE]
DOMAIN = mdp.Domain({"a": 6, "b": 4, "c": 3, "unasked": 7})
WORKLOAD = mdp.Workload(
    DOMAIN,
    mdp.product(a="prefix", b="range", weight=2.0),
    mdp.product(b="prefix", c="identity"),
    mdp.marginals([0, 1], ["a", "b", "c"]),
    mdp.dense(np.arange(24).reshape(2, 12) % 3, ["b", "c"], weights=[1.0, 2.0]),
)
ALL = ["identity", "total"]
CPS = mdp.Domain(
    {"income": {"min": 0, "max": 99}, "age": {"min": 0, "max": 49}, "marital": 7, "race": 4, "sex": 2}
)
CPS_ALL = mdp.Workload(CPS, mdp.product(income=ALL, age=ALL, marital=ALL, race=ALL, sex=ALL))
CPS_PREFIX = mdp.Workload(CPS, mdp.product(income="prefix", age="prefix", marital=ALL, race=ALL, sex=ALL))
TWO_WAY = mdp.Workload(mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100}), mdp.marginals(2))
CROSS = mdp.Workload(mdp.Domain({"a": 100, "b": 100}), mdp.product(a="prefix"), mdp.product(b="prefix"))


def rmse(workload, certificate, noise):
    return math.sqrt(certificate.loss / workload.queries / (MU_SQUARED if noise == GAUSSIAN else 1.0))


def test_losses_of_products_agree_from_every_axis():
    terms = KronSum.of(DOMAIN, WORKLOAD.groups)
    rng = np.random.default_rng(2)
    axes = [rng.random((n + 2, n)) for n in terms.sizes]
    inverses = [right_inverse(axis) for axis in axes]
    rows: np.ndarray = np.ones((1, 1))
    for factor in axes:
        rows = np.kron(rows, factor)
    expected = dense_error(dense_gram(WORKLOAD, ["a", "b", "c"]), rows)
    assert terms.loss(inverses) == pytest.approx(expected, rel=1e-8)
    for axis, inverse in enumerate(inverses):
        surrogate = terms.surrogate(axis, inverses).matrix()
        found = float(np.einsum("ia,ij,ja->", inverse, surrogate, inverse))
        assert found == pytest.approx(expected, rel=1e-8)
    # a number stands for so many times the identity
    for numbers in ([1.0, 1.0, 1.0], terms.unknown):
        roots = [math.sqrt(c) * np.eye(n) for c, n in zip(numbers, terms.sizes, strict=True)]
        assert terms.loss(numbers) == pytest.approx(terms.loss(roots), rel=1e-12)
        seen, by_roots = (terms.surrogate(1, own).matrix() for own in (numbers, roots))
        np.testing.assert_allclose(seen, by_roots, rtol=1e-12)
    assert Factor(np.eye(3), 3.0).estimator == 1.0


def test_attributes_that_are_measured_whole_count_explicit_queries(limits: Override):
    terms = KronSum.of(DOMAIN, WORKLOAD.groups)
    expected = terms.loss([1.0, 1.0, 1.0])
    limits(axis_cells=1)
    assert terms.large(0)
    assert terms.loss([1.0, 1.0, 1.0]) == pytest.approx(expected, rel=1e-12)


def test_the_closed_form_split_is_the_least():
    losses, rng = [3.0, 40.0, 700.0], np.random.default_rng(0)
    for noise, power in ((GAUSSIAN, 1), (LAPLACE, 2)):
        best = noise.total_loss(losses)
        for _ in range(200):
            shares = rng.dirichlet([1.0, 1.0, 1.0])
            assert sum(loss / share**power for loss, share in zip(losses, shares, strict=True)) >= best * (
                1 - 1e-12
            )


@pytest.mark.parametrize(
    ("workload", "noise", "select", "published"),
    [
        (CPS_ALL, LAPLACE, select_kron, 4.85),
        (CPS_ALL, GAUSSIAN, select_kron, 7.85),
        (CPS_PREFIX, LAPLACE, select_kron, 40.59),
        (CPS_PREFIX, GAUSSIAN, select_kron, 29.48),
        (CPS_ALL, LAPLACE, select_union, 4.85),
        (CPS_PREFIX, GAUSSIAN, select_union, 29.49),
    ],
)
def test_published_figures_of_cps(workload, noise, select, published):
    """McKenna et al., journal version, Tables 6 and 7."""
    _, certificate = select(workload, noise)
    assert rmse(workload, certificate, noise) < published + 0.005


@pytest.mark.slow
def test_published_figures_of_table_3_and_example_13():
    assert select_kron(TWO_WAY, LAPLACE)[1].loss / 2 < 213_270.5
    assert select_union(TWO_WAY, LAPLACE)[1].loss / 2 < 85_070
    assert select_marginals(TWO_WAY, LAPLACE)[1].loss / 2 < 62_886.5
    assert select_kron(CROSS, LAPLACE)[1].loss / 2 < 33_385
    assert select_union(CROSS, LAPLACE)[1].loss / 2 < 14_252


@pytest.mark.parametrize(
    ("select", "noise", "published"),
    [
        (select_kron, LAPLACE, 7.30),
        (select_kron, GAUSSIAN, 9.80),
        (select_marginals, LAPLACE, 9.56),
        (select_marginals, GAUSSIAN, 14.31),
    ],
)
def test_published_figures_of_sf1(select, noise, published):
    workload = mdp.load_specification(EXAMPLES / "sf1.yaml").workload
    assert workload.queries == 4_151
    assert len(workload) == 33
    assert rmse(workload, select(workload, noise)[1], noise) < published + 0.005


@pytest.mark.slow
def test_published_figures_of_sf1_by_unions():
    workload = mdp.load_specification(EXAMPLES / "sf1.yaml").workload
    # without a bound on all strategies, which no figure needs
    _, certificate = Trials(workload, LAPLACE, {}, bounded=False).choose("opt-plus")
    assert rmse(workload, certificate, LAPLACE) < 7.0  # published: 30.55


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize(
    "entry", [mdp.product(a="identity", b="prefix"), mdp.dense(np.eye(20)[:7].reshape(7, 20), ["a", "b"])]
)
def test_strategies_that_do_not_measure_what_is_asked_are_not_begun_with(noise, entry):
    domain = mdp.Domain({"a": 4, "b": 5})
    terms = KronSum.of(domain, mdp.Workload(domain, entry, mdp.product(a="prefix", b="range")).groups)
    totals = [Factor(np.ones((1, size)), float(size)) for size in terms.sizes]
    found = solve_kron(terms, noise, effort="fast", start=totals, worth=1e6)
    # their loss is small, for they answer the totals that are in the queries and nothing else
    assert terms.loss([factor.estimator for factor in totals]) < found.loss
    alone = solve_kron(terms, noise, effort="fast")
    assert found.loss == pytest.approx(alone.loss, rel=0.02)
    begun = solve_kron(terms, noise, effort="fast", start=alone.factors, worth=1e6)
    assert begun.loss <= alone.loss * (1 + 1e-9)


def test_ranges_of_one_attribute_are_bounded_by_the_gaussian_optimum():
    workload = mdp.Workload(mdp.Domain({"a": 32}), mdp.product(a="range"))
    certificate, gaussian = (Trials(workload, noise, {}).choose("opt-0")[1] for noise in (LAPLACE, GAUSSIAN))
    assert certificate.lower_bound == pytest.approx(2 * gaussian.lower_bound, rel=1e-4)


def test_large_identities_are_measured_whole():
    domain = mdp.Domain({"zip": [str(i) for i in range(30_000)], "sex": ["f", "m"]})
    plan, certificate = select_kron(mdp.Workload(domain, mdp.marginals([["zip", "sex"]])), LAPLACE)
    assert certificate.loss == pytest.approx(2 * 60_000)
    assert plan.parts[0].column_power_sum(1) == 1


def test_groups_over_many_attributes_split_by_what_they_ask():
    domain = mdp.Domain({f"a{i}": 3 for i in range(6)})
    entries = [mdp.product({x: "prefix", y: "identity"}) for x, y in combinations(domain.names, 2)]
    plan, certificate = select_union(mdp.Workload(domain, *entries), LAPLACE)
    assert len(plan.parts) > 1
    assert certificate.loss <= 2 * LAPLACE.total_loss([6 * 9.0] * 15)


def test_one_product_is_solved_once():
    told = []
    workload = mdp.Workload(mdp.Domain({"a": 6, "b": 3}), mdp.product(a="prefix", b="identity"))
    chosen = mdp.select(workload, noise="gaussian", progress=lambda text, _: told.append(text))
    apart = mdp.select(workload, noise="gaussian", mechanism="residual")
    assert [text for text in told if text.startswith("trying")] == ["trying dense"]
    assert chosen.mechanism == "dense"
    assert chosen.certificate.loss <= apart.certificate.loss * (1.0 + 1e-6)
