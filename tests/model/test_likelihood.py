"""What a model is fitted to: the loss of every kind of plan, its slope, and the tests of what is left."""

from dataclasses import replace

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError, UnsupportedQueryError
from matrixdp.exact import DeficientMatrix, IdentityMatrix, IntegerMatrix
from matrixdp.measure.measurement import measure
from matrixdp.model.constraints import Constraints
from matrixdp.model.likelihood import Axis, Evidence, Likelihood
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plans import Block, Direct, Part, Rounds
from matrixdp.sources import open_source
from matrixdp.testing import dense_measurement
from tests.plans.test_plans import DOMAIN, PAIR, plans

RANDOM = np.random.default_rng(3)
TABLE = {name: RANDOM.integers(0, DOMAIN[name].size, 60) for name in DOMAIN.names}


def measured(plan, budget=None):
    return measure(plan, open_source(TABLE), budget or mdp.Budget(epsilon=1, delta=1e-6), seed_not_private=1)


def fitted_to(measurement):
    """What a model of 60 records is fitted to."""
    return Evidence.of(measurement, Constraints.of(DOMAIN, 60))


def sums(table, names):
    """The marginal of a dense table, with the axes in the order of the names."""
    others = tuple(axis for axis, name in enumerate(DOMAIN.names) if name not in names)
    kept = [name for name in DOMAIN.names if name in names]
    return np.transpose(table.sum(axis=others), [kept.index(name) for name in names])


def cells(part, table):
    return np.ascontiguousarray(sums(table, part.free)).ravel()


PAIRED = Direct.of(DOMAIN, [Block(("c",), IdentityMatrix(2)), Block(("b", "a"), PAIR)], GAUSSIAN)
PLANS = {f"{kind} {noise}": plan for noise in (GAUSSIAN, LAPLACE) for kind, plan in plans(noise).items()}


@pytest.mark.parametrize("plan", [*PLANS.values(), PAIRED], ids=[*PLANS, "paired"])
def test_losses_are_those_of_the_dense_matrices(plan):
    measurement = measured(plan)
    evidence = fitted_to(measurement)
    answered = list(zip(plan.parts, measurement.scales, measurement.values, strict=True))
    together = plan.positions.values() if isinstance(plan, Rounds) else [[i] for i in range(len(answered))]
    pairs = [[answered[place] for place in places] for places in together]
    pairs = [answers for answers in pairs if answers[0][0].attributes]
    first, second = RANDOM.dirichlet(np.ones(24), 2).reshape(2, *DOMAIN.shape) * 60
    for part, answers in zip(evidence.parts, pairs, strict=True):

        def loss(table, answers=answers):
            off = [(dense_measurement(own, DOMAIN) @ table.ravel() - values) for own, _, values in answers]
            return sum(
                (o**2).sum() / scale.variance / 2 for o, (_, scale, _) in zip(off, answers, strict=True)
            )

        held = [cells(part, table) for table in (first, second)]
        found = [part.loss(own) for own in held]
        # what no table can fit is left out: the same for all
        assert found[0] - found[1] == pytest.approx(loss(first) - loss(second), rel=1e-9, abs=1e-9)
        slopes = [part.single.gradient(own.astype(np.float32)) for own in held]
        step = held[0] - held[1]
        curved = found[0] - found[1] - float(slopes[1] @ step)
        straight = float((slopes[0] - slopes[1]) @ step) / 2
        assert curved == pytest.approx(straight, rel=1e-3, abs=1e-3)  # the gradient of a quadratic form


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_the_loss_of_the_true_table_is_half_the_degrees(noise):
    """Over 200 draws of the noise; false alarm: 5 standard deviations of the mean."""
    plan = plans(noise)["local"]
    measurement = measured(plan)
    evidence = fitted_to(measurement)
    table = np.zeros(DOMAIN.shape)
    np.add.at(table, tuple(TABLE[name] for name in DOMAIN.names), 1)
    draw = RANDOM.standard_normal if noise == GAUSSIAN else lambda size: RANDOM.laplace(0, 0.5**0.5, size)
    losses = np.zeros(200)
    pairs = [(p, s) for p, s in zip(plan.parts, measurement.scales, strict=True) if p.attributes]
    for own, (part, scale) in zip(evidence.parts, pairs, strict=True):
        exact = dense_measurement(part, DOMAIN) @ table.ravel()
        for place in range(len(losses)):
            values = exact + scale.variance**0.5 * draw(len(exact))
            losses[place] += Likelihood.of(part, scale.variance, values, DOMAIN, {}).loss(cells(own, table))
    assert abs(losses.mean() - evidence.degrees / 2) < 5 * evidence.spread / np.sqrt(len(losses))
    assert 0.4 < losses.std() / evidence.spread < 1.2


def test_kurtosis_is_that_of_the_noise():
    assert Evidence.of(measured(plans(GAUSSIAN)["pooled"])).kurtosis == pytest.approx(0.0, abs=1e-3)
    assert Evidence.of(measured(plans(LAPLACE)["pooled"])).kurtosis == pytest.approx(3.0, abs=1e-2)


def test_a_total_that_does_not_follow_is_asked_for():
    differences = DeficientMatrix(np.array([[1, -1, 0]]))
    plan = Direct(DOMAIN, (Part(("a",), (Block(("a",), differences),), 1.0),), GAUSSIAN)
    measurement = measured(plan)
    with pytest.raises(UnsupportedQueryError, match="the number of records does not follow from what was"):
        Evidence.of(measurement)
    evidence = fitted_to(measurement)
    np.testing.assert_allclose(evidence.starts["a"], np.full(3, 1 / 3))
    np.testing.assert_allclose(evidence.starts["b"], np.full(4, 1 / 4))


def test_marginals_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr("matrixdp.model.likelihood.MAX_CELLS", 30)
    with pytest.raises(TooLargeError, match="cells; a model is fitted to at most 30"):
        Evidence.of(measured(plans(GAUSSIAN)["local"]))


@pytest.mark.parametrize("mechanism", ["residual", "opt-m"])
def test_gradients_are_those_of_written_out_rows(mechanism):
    """Every form says the same as the measured rows themselves, over derived attributes too."""
    domain = mdp.Domain({"a": 3, "b": 4, "c": {"of": ["a"], "map": {0: "x", 1: "x", 2: "y"}}})
    plan = mdp.select(mdp.Workload(domain, mdp.marginals([1, 2])), mechanism=mechanism).selection.plan
    for part in plan.parts:
        values = RANDOM.normal(size=part.rows)
        one = Likelihood.of(part, 2.0, values, domain, {})
        sizes = [domain[name].size for name in one.free]
        whole = dense_measurement(part, domain).reshape(part.rows, *domain.shape)
        # a table over the free attributes, put where the derived attribute says
        lifted = np.zeros((part.rows, *sizes))
        for cell in np.ndindex(*sizes):
            code = dict(zip(one.free, cell, strict=True))
            place = (code.get("a", 0), code.get("b", 0), 0 if code.get("a", 0) < 2 else 1)
            lifted[(slice(None), *cell)] = whole[(slice(None), *place)]
        rows, table = lifted.reshape(part.rows, -1), RANDOM.normal(size=np.prod(sizes, dtype=int))
        expected = rows.T @ (rows @ table - values) / 2.0
        np.testing.assert_allclose(one.gradient(table), expected, atol=1e-9)
        single = one.single.gradient(table.astype(np.float32))
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, expected, rtol=1e-3, atol=1e-4)
        assert one.steepest >= np.linalg.norm(rows, 2) ** 2 / 2.0 * (1 - 1e-9)


def test_a_matrix_that_is_alike_in_all_directions_is_found():
    plain = Axis.of(IntegerMatrix(2 * np.eye(3, dtype=np.int64)))
    assert (plain.alike, plain.scale) == (1.0, 4.0)
    prefix = Axis.of(IntegerMatrix(np.tril(np.ones((3, 3), dtype=np.int64))))
    assert prefix.alike is None
    assert prefix.sum_variance == pytest.approx(prefix.scale)


def test_one_table_that_does_not_fit_is_enough(correlated):
    limits, losses = correlated.limits, np.zeros(len(correlated.parts))
    assert correlated.tests(losses).accepted
    losses[0] = 0.999 * limits[0]
    assert correlated.tests(losses).accepted
    losses[0] = 1.001 * limits[0]
    found = correlated.tests(losses)
    assert found.loss < correlated.limit
    assert found.failed == (", ".join(correlated.parts[0].attributes),)
    assert not found.accepted
    spread = np.full(len(losses), 1.01 * correlated.limit / len(losses))
    assert not replace(correlated.tests(spread), failed=()).accepted


@pytest.mark.parametrize("heavy", [False, True])
def test_the_true_table_passes(correlated, heavy):
    """In all of 400 draws; a draw fails with probability 0.0014 + 0.001: false alarm below 1e-4 at 6."""
    own = replace(correlated, kurtosis=3.0 if heavy else 0.0)
    draw = (lambda rank: RANDOM.laplace(0, 0.5**0.5, rank)) if heavy else RANDOM.standard_normal
    draws = [[0.5 * (draw(part.degrees) ** 2).sum() for part in own.parts] for _ in range(400)]
    assert sum(not own.tests(np.array(losses)).accepted for losses in draws) <= 6
