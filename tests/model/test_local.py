"""Tables of one and two attributes that are nowhere negative and agree in every sum."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.exact import IntegerMatrix
from matrixdp.model.local import fit_local
from matrixdp.model.measured import Axis, evidence_of
from matrixdp.queries.groups import DenseGroup, MatrixRows, ProductGroup
from matrixdp.testing.plugins import dense_measurement
from tests.model import builders

DOMAIN = mdp.Domain(
    {
        "age": {"min": 0, "max": 8},
        "sex": ["f", "m"],
        "smokes": ["no", "yes"],
        "city": 12,
        "adult": {"of": ["age"], "map": {code: "no" if code < 3 else "yes" for code in range(9)}},
        "smoking woman": {
            "of": ["sex", "smokes"],
            "cases": [{"when": {"sex": "f", "smokes": "yes"}, "then": "yes"}],
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
    np.add.at(cells, tuple(CODES[name] for name in names), 1)
    return cells


CODES = people()
WORDS = {"sex": np.array(["f", "m"])[CODES["sex"]], "smokes": np.array(["no", "yes"])[CODES["smokes"]]}
PEOPLE = CODES | WORDS
BASE = list(NAMES)


def measured(workload, mechanism="residual", budget=BUDGET, seed=3, **options):
    if mechanism == "given":
        strategy = mdp.Strategy.from_parts(workload.domain, workload.entries, budget=budget, **options)
    else:
        strategy = mdp.select(workload, mechanism=mechanism, budget=budget, **options)
    return strategy.measure(PEOPLE, budget, seed_not_private=seed).measurement


@pytest.fixture(scope="module")
def strategy():
    return mdp.select(mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2], attributes=BASE)), mechanism="residual")


@pytest.fixture(scope="module")
def tables(strategy):
    return fit_local(strategy.measure(PEOPLE, BUDGET, seed_not_private=3).measurement)


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
    fitted = fit_local(held)
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
    asked = mdp.Workload(domain, *entries)
    budget = BUDGET if noise == "gaussian" else mdp.Budget(epsilon=0.7)
    error = baseline = 0.0
    for seed in range(4):
        held = measured(asked, mechanism, budget, seed, noise=noise)
        assert type(held.plan).__name__ == plan
        fitted = fit_local(held)
        for group in asked.groups:
            assert isinstance(group, ProductGroup)
            if len(group.attributes) != 2:
                continue
            truth = counted(group.attributes)
            for axis, name in enumerate(group.attributes):
                rows = group.sets[name].rows(DOMAIN[name].size)
                truth = np.moveaxis(np.tensordot(rows, truth, axes=(1, axis)), 0, axis)
            error += float(((fitted.answers(group) - truth.ravel()) ** 2).sum())
            baseline += float(((held.estimates.answers(group) - truth.ravel()) ** 2).sum())
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
    fitted = fit_local(measured(mdp.Workload(DOMAIN, mdp.marginals([0, 1], attributes=BASE), *derived)))
    ages = counted(("age", "city"))
    truth = np.stack([ages[:3].sum(axis=0), ages[3:].sum(axis=0)])
    error = np.sqrt(((fitted.marginal(["adult", "city"]) - truth) ** 2).mean())
    alone = fitted.marginal(["adult"])[:, None] * fitted.marginal(["city"]) / fitted.total
    assert error < np.sqrt(((alone - truth) ** 2).mean())


def test_a_pair_of_which_nothing_was_measured_is_independent():
    held = measured(mdp.Workload(DOMAIN, mdp.marginals([0, 1], attributes=BASE[:2])))
    fitted = fit_local(held)
    expected = np.multiply.outer(fitted.marginal(["age"]), fitted.marginal(["sex"])) / fitted.total
    np.testing.assert_allclose(fitted.marginal(["age", "sex"]), expected)
    np.testing.assert_allclose(fitted.marginal(["city"]), fitted.total / 12)  # nothing is known of it


def test_more_than_two_attributes_are_refused_by_name(tables):
    with pytest.raises(UnsupportedQueryError, match=r"needs age, sex, city together.*method='mixture'"):
        tables.marginal(["age", "sex", "city"])
    with pytest.raises(UnsupportedQueryError, match=r"and age, sex, smokes were measured together"):
        fit_local(measured(mdp.Workload(DOMAIN, mdp.marginals(3, attributes=BASE[:3]))))


@pytest.mark.parametrize("mechanism", ["residual", "opt-m"])
def test_gradients_are_those_of_written_out_rows(mechanism):
    """Every form of evidence says the same as the measured rows themselves."""
    domain = mdp.Domain({"a": 3, "b": 4, "c": {"of": ["a"], "map": {0: "x", 1: "x", 2: "y"}}})
    asked = mdp.Workload(domain, mdp.marginals([1, 2]))
    plan = mdp.select(asked, mechanism=mechanism).selection.plan
    random = np.random.default_rng(2)
    for part in plan.parts:
        values = random.normal(size=part.rows)
        one = evidence_of(part, 2.0, values, domain)
        sizes = [domain[name].size for name in one.free]
        whole = dense_measurement(part, domain).reshape(part.rows, *domain.shape)
        # a table over the free attributes, put where the derived attribute says
        lifted = np.zeros((part.rows, *sizes))
        for cell in np.ndindex(*sizes):
            code = dict(zip(one.free, cell, strict=True))
            place = (code.get("a", 0), code.get("b", 0), 0 if code.get("a", 0) < 2 else 1)
            lifted[(slice(None), *cell)] = whole[(slice(None), *place)]
        rows = lifted.reshape(part.rows, -1)
        table = random.normal(size=sizes)
        if hasattr(one, "target"):
            values = rows @ one.target.ravel()  # what no table can fit has no gradient
        expected = rows.T @ (rows @ table.ravel() - values) / 2.0
        np.testing.assert_allclose(one.gradient(table).ravel(), expected, atol=1e-9)
        assert one.most_curved() >= np.linalg.norm(rows, 2) ** 2 / 2.0 * (1 - 1e-9)


def test_sums_of_many_cells_are_met_though_single_cells_are_hardly_known():
    ranges = mdp.product(visits={"ranges": [[0, 0], [1, 4], [5, 39]]}, health={"sets": [[0, 1], [2, 3]]})
    random = np.random.default_rng(3)
    visits = np.minimum(random.geometric(0.3, 2000) - 1, 39)
    health = np.where(visits == 0, 0, random.binomial(3, 0.2, 2000))
    table = {"visits": visits, "health": health}
    held = builders.measured({"visits": range(40), "health": 4}, table, mdp.marginals(1), ranges)
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


def test_a_matrix_that_is_alike_in_all_directions_is_found():
    plain = Axis.of(IntegerMatrix(2 * np.eye(3, dtype=np.int64)))
    assert (plain.alike, plain.common, plain.gram) == (4.0, 0.0, None)
    prefix = Axis.of(IntegerMatrix(np.tril(np.ones((3, 3), dtype=np.int64))))
    assert prefix.gram is not None
    assert prefix.total_variance() == pytest.approx(1.0)
