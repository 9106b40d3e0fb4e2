"""Pooled plans of one matrix for each attribute: their answers are least squares, whatever the matrices."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.errors import UnsupportedQueryError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plans import pooled
from matrixdp.selection.searches.marginals import pooled_products
from matrixdp.testing import check_plan, dense_error, dense_gram, dense_measurement

DOMAIN = mdp.Domain({"a": 3, "b": 4, "c": 2, "one": 1})
PRECISIONS = {("a", "b"): 0.3, ("b", "c"): 0.2, ("a",): 0.1, (): 0.05, ("a", "c", "one"): 0.04}
PAIR = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.25, 0.75]])


def strategy(seed, rows, columns, noise):
    found = np.random.default_rng(seed).normal(size=(rows, columns))
    return found / noise.column_norms(found).max()


def bases(seed, noise, **given):
    own = {"a": strategy(seed, 4, 3, noise), "b": strategy(seed + 1, 4, 4, noise)}
    return own | {"c": None, "one": np.array([[1.0]])} | given


def dense_loss(plan, workload):
    rows = [dense_measurement(part, DOMAIN) / np.sqrt(part.variance) for part in plan.parts]
    return dense_error(dense_gram(workload), np.vstack(rows))


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([GAUSSIAN, LAPLACE]))
def test_answers_are_the_least_squares_of_all_parts(seed, noise):
    rows = np.random.default_rng(seed).integers(0, 2, (3, 8))
    workload = mdp.Workload(
        DOMAIN, mdp.product(a="prefix", b="range"), mdp.marginals([0, 1]), mdp.dense(rows, ["b", "c"])
    )
    plan = pooled_products(DOMAIN, bases(seed, noise), PRECISIONS, noise)
    assert plan.cost == pytest.approx(1.0, rel=1e-12)
    check_plan(plan, workload)
    loss = sum(plan.analysis.group(group).weighted for group in workload)
    assert loss == pytest.approx(dense_loss(plan, workload), rel=1e-8)


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize(
    "low",
    [
        PAIR,  # integers after scaling: a matrix of lower rank that determines the total
        np.array([[0.6, 0.1, 0.2, 0.3]]),  # rounded, and the total measured faintly beside it
        np.array([[1.0, 0.0, 0.0, 0.0]]),
    ],
)
def test_matrices_of_lower_rank_answer_what_they_measure_and_refuse_the_rest(low, noise):
    rows = low / noise.column_norms(low).max()
    plan = pooled_products(DOMAIN, bases(5, noise, b=rows), PRECISIONS, noise)
    workload = mdp.Workload(
        DOMAIN, mdp.product({"a": "prefix", "b": {"matrix": low}}), mdp.marginals([0, 1], ["a", "c"])
    )
    check_plan(plan, workload)
    loss = sum(plan.analysis.group(group).weighted for group in workload)
    assert loss == pytest.approx(dense_loss(plan, workload), rel=1e-6)
    [outside] = mdp.product(b="prefix").expand(DOMAIN)
    with pytest.raises(UnsupportedQueryError, match="asks more of b"):
        plan.analysis.variances(outside)


def test_precisions_and_scales_of_the_matrices_are_those_given():
    plan = pooled_products(DOMAIN, bases(1, GAUSSIAN, a=None, b=None), PRECISIONS, GAUSSIAN)
    total = sum(PRECISIONS.values())
    assert [1.0 / part.variance for part in plan.parts] == pytest.approx(
        [own / total for own in PRECISIONS.values()]
    )
    rows = strategy(3, 5, 4, LAPLACE)
    plan = pooled_products(DOMAIN, bases(1, LAPLACE, b=rows), {("b",): 1.0}, LAPLACE)
    measured = dense_measurement(plan.parts[0], DOMAIN, ["b"]) / np.sqrt(plan.parts[0].variance / 2.0)
    np.testing.assert_allclose(measured, rows, atol=2e-5)


def test_many_noise_variables_are_not_listed(monkeypatch: pytest.MonkeyPatch):
    plan = pooled_products(DOMAIN, bases(1, LAPLACE), PRECISIONS, LAPLACE)
    [group] = mdp.product(a="prefix").expand(DOMAIN)
    variables = sum(part.rows for part in plan.parts)
    found = plan.analysis.noise_terms(group, 3 * variables)
    assert found is not None
    assert [(place, own.shape) for place, own in found.items()] == [
        (place, (3, part.rows)) for place, part in enumerate(plan.parts)
    ]
    assert plan.analysis.noise_terms(group, 3 * variables - 1) is None
    monkeypatch.setattr(pooled, "_MAX_VARIABLES", variables - 1)
    assert plan.analysis.noise_terms(group, 3 * variables) is None
