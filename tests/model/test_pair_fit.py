"""Tables of one and two attributes that are nowhere negative and agree in every sum."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact.linear import contrasts
from matrixdp.model.pair_fit import Directions, balanced, nearest, rounded
from matrixdp.queries.groups import DenseGroup, MatrixRows, ProductGroup
from tests.model.builders import local, measured

DOMAIN = mdp.Domain(
    {
        "age": {"min": 0, "max": 8},
        "sex": 2,
        "smokes": 2,
        "city": 12,
        "adult": {"of": ["age"], "map": {code: "no" if code < 3 else "yes" for code in range(9)}},
        "smoking woman": {
            "of": ["sex", "smokes"],
            "cases": [{"when": {"sex": 0, "smokes": 1}, "then": "yes"}],
            "otherwise": "no",
        },
    }
)
NAMES = ("age", "sex", "smokes", "city")
BUDGET = mdp.Budget(mu=0.5)


def people(number=400):
    """Records of which few cells hold many, as of most tables."""
    random = np.random.default_rng(8)
    age = np.minimum(random.geometric(0.3, number) - 1, 8)
    city = np.minimum(random.geometric(0.5, number) - 1 + (age > 4), 11)
    sex = random.integers(0, 2, number)
    smokes = (random.random(number) < np.where(age < 3, 0.0, 0.4)).astype(int)
    return {"age": age, "sex": sex, "smokes": smokes, "city": city}


def counted(names):
    cells = np.zeros([DOMAIN[name].size for name in names])
    np.add.at(cells, tuple(PEOPLE[name] for name in names), 1)
    return cells


PEOPLE = people()
BASE = list(NAMES)


def of_people(*entries):
    return measured(DOMAIN, PEOPLE, *entries, budget=BUDGET, seed=3).measurement


@pytest.fixture(scope="module")
def strategy():
    return mdp.select(mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2], attributes=BASE)), mechanism="residual")


@pytest.fixture(scope="module")
def tables(strategy):
    return local(strategy.measure(PEOPLE, BUDGET, seed_not_private=3).measurement)


def test_tables_agree_in_every_sum_and_are_not_negative(tables):
    for pair in combinations(NAMES, 2):
        table = tables.marginal(pair)
        assert (table >= 0).all()
        for axis, name in enumerate(pair):
            np.testing.assert_allclose(table.sum(axis=1 - axis), tables.marginal([name]), atol=1e-9)
        np.testing.assert_array_equal(tables.marginal(pair[::-1]), table.T)
    assert tables.marginal([]) == pytest.approx(tables.total)
    assert tables.marginal(["city"]).sum() == pytest.approx(tables.total)


@pytest.mark.parametrize("seed", range(3))
def test_errors_are_less_than_those_of_unbiased_answers(strategy, seed):
    held = strategy.measure(PEOPLE, BUDGET, seed_not_private=seed).measurement
    fitted = local(held)
    own, unbiased = [], []
    for pair in combinations(NAMES, 2):
        own.append(((fitted.marginal(pair) - counted(pair)) ** 2).sum())
        unbiased.append(((held.estimates.marginal(pair) - counted(pair)) ** 2).sum())
    # half of the cells hold nobody
    assert np.sqrt(sum(own)) < 0.9 * np.sqrt(sum(unbiased))


KINDS: dict[str, tuple[list[Any], str, str]] = {
    "split with prefixes": ([mdp.kway([1, 2], "prefix", attributes=BASE[:2])], "residual", "Split"),
    "weighted marginals": ([mdp.marginals([1, 2], attributes=BASE)], "opt-m", "Pooled"),
    "weighted marginals of prefixes and cells": (
        [mdp.product({"age": ["prefix", "identity"], other: "identity"}) for other in ("sex", "city")],
        "given",
        "Pooled",
    ),
    "one table": ([mdp.product(age="range", sex="identity")], "opt-kron", "Direct"),
    "a union": (
        [mdp.product(age="prefix", sex="identity"), mdp.product(age="identity", city="prefix")],
        "opt-plus",
        "Union",
    ),
}


@pytest.mark.parametrize(
    ("kind", "noise"), [*((kind, "gaussian") for kind in KINDS), ("one table", "laplace")]
)
def test_every_kind_of_plan_and_noise_serves(kind, noise):
    entries, mechanism, plan = KINDS[kind]
    domain = DOMAIN if plan != "Direct" else mdp.Domain([DOMAIN["age"], DOMAIN["sex"]])
    budget = BUDGET if noise == "gaussian" else mdp.Budget(epsilon=0.7)
    error = baseline = 0.0
    for seed in range(4):
        options: dict[str, Any] = {"mechanism": mechanism, "budget": budget, "seed": seed, "noise": noise}
        held = measured(domain, PEOPLE, *entries, **options).measurement
        assert type(held.plan).__name__ == plan
        fitted = local(held)
        for group in mdp.Workload(domain, *entries):
            assert isinstance(group, ProductGroup)
            if len(group.attributes) != 2:
                continue
            truth = group.rows() @ counted(group.attributes).ravel()
            error += float(((fitted.answers(group) - truth) ** 2).sum())
            baseline += float(((held.estimates.answers(group) - truth) ** 2).sum())
    # sums over many cells gain little by what is known of single cells, and noise may hide it
    assert error < baseline * (0.95 if plan in ("Pooled", "Union") else 1.05)


def test_derived_attributes_follow_from_the_others(tables):
    table = tables.marginal(["adult", "city"])
    np.testing.assert_allclose(table[0], tables.marginal(["age", "city"])[:3].sum(axis=0))
    both = tables.marginal(["adult", "age"])
    assert (both[0, 3:] == 0).all()
    assert (both[1, :3] == 0).all()
    woman = tables.marginal(["smoking woman"])
    assert tables.marginal(["sex", "smokes"])[0, 1] == pytest.approx(woman.min())


def test_what_was_measured_of_derived_attributes_counts():
    derived = [mdp.product(adult="identity", city="identity"), mdp.product({"smoking woman": "identity"})]
    fitted = local(of_people(mdp.marginals([0, 1], attributes=BASE), *derived))
    ages = counted(("age", "city"))
    truth = np.stack([ages[:3].sum(axis=0), ages[3:].sum(axis=0)])
    error = np.sqrt(((fitted.marginal(["adult", "city"]) - truth) ** 2).mean())
    alone = fitted.marginal(["adult"])[:, None] * fitted.marginal(["city"]) / fitted.total
    assert error < np.sqrt(((alone - truth) ** 2).mean())


def test_a_pair_of_which_nothing_was_measured_is_independent():
    fitted = local(of_people(mdp.marginals([0, 1], attributes=BASE[:2])))
    expected = np.multiply.outer(fitted.marginal(["age"]), fitted.marginal(["sex"])) / fitted.total
    np.testing.assert_allclose(fitted.marginal(["age", "sex"]), expected)
    np.testing.assert_allclose(fitted.marginal(["city"]), fitted.total / 12)  # nothing is known of it


def test_more_than_two_attributes_are_refused_by_name(tables):
    with pytest.raises(UnsupportedQueryError, match=r"needs age, sex, city together.*method='mixture'"):
        tables.marginal(["age", "sex", "city"])
    with pytest.raises(UnsupportedQueryError, match=r"and age, sex, smokes were measured together"):
        local(of_people(mdp.marginals(3, attributes=BASE[:3])))


def test_sums_of_many_cells_are_met_though_single_cells_are_hardly_known():
    ranges = mdp.product(visits={"ranges": [[0, 0], [1, 4], [5, 39]]}, health={"sets": [[0, 1], [2, 3]]})
    random = np.random.default_rng(3)
    visits = np.minimum(random.geometric(0.3, 2000) - 1, 39)
    health = np.where(visits == 0, 0, random.binomial(3, 0.2, 2000))
    table = {"visits": visits, "health": health}
    held = measured({"visits": range(40), "health": 4}, table, mdp.marginals(1), ranges)
    answers = held.reconstruct().model("local").answers.slice(44)
    off = np.subtract(answers["modelled"].to_pylist(), answers["estimate"].to_pylist())
    assert float(abs(off / answers["stddev"].to_numpy()).max()) < 2.5


def test_answers_are_the_queries_of_the_tables(tables):
    [group] = mdp.product(age="prefix", city="identity", sex="total").expand(DOMAIN)
    expected = tables.marginal(["age", "city"]).cumsum(axis=0).ravel()
    np.testing.assert_allclose(tables.answers(group), expected)
    matrix = np.arange(18.0).reshape(1, 18)
    dense = DenseGroup("dense", ("age", "sex"), MatrixRows(matrix), (9, 2))
    np.testing.assert_allclose(tables.answers(dense), matrix @ tables.marginal(["age", "sex"]).ravel())


# The likeliest non-negative table with given sums, compared with a general solver.

ROWS, COLUMNS = np.array([30.0, 8.0, 0.0, 2.0]), np.array([25.0, 12.0, 3.0])
START = np.multiply.outer(ROWS, COLUMNS) / ROWS.sum()
TARGET = np.random.default_rng(5).normal(size=(4, 3)) * 6 + START
SUMS = np.vstack([np.kron(np.eye(4), np.ones(3)), np.kron(np.ones(4), np.eye(3))])
ALLOWED = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1], [1, 1, 0]], dtype=bool)


def solved(metric: Any, allowed: Any) -> Any:
    """What a general solver finds, which is given gradients and bounds and nothing else."""
    free = SUMS @ START.ravel()
    known: dict[str, Any] = {
        "jac": lambda x: metric @ (x - TARGET.ravel()),
        "bounds": [(0, None if cell else 0) for cell in allowed.ravel()],
        "constraints": LinearConstraint(SUMS[:-1], free[:-1], free[:-1]),
        "options": {"gtol": 1e-9, "xtol": 1e-12, "maxiter": 3000},
    }

    def loss(x: Any) -> float:
        return float(0.5 * (x - TARGET.ravel()) @ metric @ (x - TARGET.ravel()))

    found: Any = minimize(loss, START.ravel(), method="trust-constr", **known)
    return found.x.reshape(START.shape)


def directions(metrics):
    bases, curved = [], []
    for metric in metrics:
        basis = contrasts(len(metric))
        values, turned = np.linalg.eigh(basis.T @ metric @ basis)
        bases.append(basis @ turned)
        curved.append(values)
    return Directions(tuple(bases), np.multiply.outer(*curved))


@pytest.mark.parametrize("allowed", [np.ones_like(ALLOWED), ALLOWED], ids=["all cells", "some cells"])
@pytest.mark.parametrize("kind", ["white", "by axes", "bounded"])
def test_the_table_is_that_of_a_general_solver(kind, allowed):
    prefixes = [np.tril(np.ones((size, size))) for size in START.shape]
    metrics = [
        np.eye(size) if kind == "white" else own.T @ own
        for size, own in zip(START.shape, prefixes, strict=True)
    ]
    metric = np.kron(*metrics)
    largest = float(np.linalg.norm(metric, 2))
    chosen = {
        "white": Directions(None, 1.0),
        "by axes": directions(metrics),
        "bounded": Directions(None, largest, exact=False),
    }[kind]
    # a start that fits the allowed cells has the same sums
    start = START if allowed.all() else balanced(np.where(allowed, START, 0.0), {0: ROWS, 1: COLUMNS})
    found = nearest(start, lambda x: (metric @ (x - TARGET).ravel()).reshape(x.shape), chosen, allowed)
    expected = solved(metric, allowed)
    assert (found >= 0).all()
    assert (found[~allowed] == 0).all()

    def loss(x):
        return 0.5 * (x - TARGET).ravel() @ metric @ (x - TARGET).ravel()

    assert loss(found) == pytest.approx(loss(expected), rel=2e-3)
    assert abs(found.sum(axis=1) - ROWS).max() < 0.05
    assert abs(found.sum(axis=0) - COLUMNS).max() < 0.05


def test_sums_are_exact_after_rounding_and_zeros_stay():
    held = np.maximum(TARGET, 0.0)
    for made in (rounded(held, ROWS, COLUMNS), rounded(np.zeros((4, 3)), ROWS, COLUMNS)):
        assert (made >= 0).all()
        np.testing.assert_allclose(made.sum(axis=1), ROWS, atol=1e-12)
        np.testing.assert_allclose(made.sum(axis=0), COLUMNS, atol=1e-12)
    exact = balanced(START, {0: ROWS, 1: COLUMNS})
    np.testing.assert_array_equal(rounded(exact, exact.sum(axis=1), exact.sum(axis=0)), exact)
