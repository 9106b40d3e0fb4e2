"""What a model is fitted to: the loss of every kind of plan, its slope, and what is left of the noise."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError, UnsupportedQueryError
from matrixdp.exact import DeficientMatrix, IdentityMatrix
from matrixdp.measure.measurement import measure
from matrixdp.model.parts import Parts, _term
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.plan import Block, Direct, Part
from matrixdp.sources import open_source
from matrixdp.testing import dense_measurement
from tests.plan.test_plans import DOMAIN, PAIR, plans

RANDOM = np.random.default_rng(3)
TABLE = {name: RANDOM.integers(0, DOMAIN[name].size, 60) for name in DOMAIN.names}


def measured(plan, budget=None):
    return measure(plan, open_source(TABLE), budget or mdp.Budget(epsilon=1, delta=1e-6), seed_not_private=1)


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
    parts = Parts.of(measurement, total=60)
    pairs = [(p, s, v) for p, s, v in zip(plan.parts, measurement.scales, measurement.values, strict=True)]
    pairs = [pair for pair in pairs if pair[0].attributes]
    first, second = RANDOM.dirichlet(np.ones(24), 2).reshape(2, *DOMAIN.shape) * 60
    for part, (own, scale, values) in zip(parts.parts, pairs, strict=True):
        rows = dense_measurement(own, DOMAIN)

        def loss(table, rows=rows, scale=scale, values=values):
            return ((rows @ table.ravel() - values) ** 2).sum() / scale.variance / 2

        held = [cells(part, table) for table in (first, second)]
        found = [part.term.loss(own) for own in held]
        # what no table can fit is left out: the same for all
        assert found[0] - found[1] == pytest.approx(loss(first) - loss(second), rel=1e-9, abs=1e-9)
        slopes = [part.term.gradient(own.astype(np.float32)) for own in held]
        step = held[0] - held[1]
        curved = found[0] - found[1] - float(slopes[1] @ step)
        straight = float((slopes[0] - slopes[1]) @ step) / 2
        assert curved == pytest.approx(straight, rel=1e-3, abs=1e-3)  # the gradient of a quadratic form


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
def test_the_loss_of_the_true_table_is_half_the_degrees(noise):
    """Over 200 draws of the noise; false alarm: 5 standard deviations of the mean."""
    plan = plans(noise)["local"]
    measurement = measured(plan)
    parts = Parts.of(measurement, total=60)
    table = np.zeros(DOMAIN.shape)
    np.add.at(table, tuple(TABLE[name] for name in DOMAIN.names), 1)
    draw = RANDOM.standard_normal if noise == GAUSSIAN else lambda size: RANDOM.laplace(0, 0.5**0.5, size)
    losses = np.zeros(200)
    pairs = [(p, s) for p, s in zip(plan.parts, measurement.scales, strict=True) if p.attributes]
    for own, (part, scale) in zip(parts.parts, pairs, strict=True):
        exact = dense_measurement(part, DOMAIN) @ table.ravel()
        for place in range(len(losses)):
            values = exact + scale.variance**0.5 * draw(len(exact))
            losses[place] += _term(part, scale.variance, values, DOMAIN).loss(cells(own, table))
    assert abs(losses.mean() - parts.degrees / 2) < 5 * parts.spread / np.sqrt(len(losses))
    assert 0.4 < losses.std() / parts.spread < 1.2


def test_kurtosis_is_that_of_the_noise():
    assert Parts.of(measured(plans(GAUSSIAN)["pooled"])).kurtosis == pytest.approx(0.0, abs=1e-3)
    assert Parts.of(measured(plans(LAPLACE)["pooled"])).kurtosis == pytest.approx(3.0, abs=1e-2)


def test_a_total_that_does_not_follow_is_asked_for():
    differences = DeficientMatrix(np.array([[1, -1, 0]]))
    plan = Direct(DOMAIN, (Part(("a",), (Block(("a",), differences),), 1.0),), GAUSSIAN)
    measurement = measured(plan)
    with pytest.raises(UnsupportedQueryError, match="the number of records does not follow from what was"):
        Parts.of(measurement)
    parts = Parts.of(measurement, total=60)
    np.testing.assert_allclose(parts.starts["a"], np.full(3, 1 / 3))
    np.testing.assert_allclose(parts.starts["b"], np.full(4, 1 / 4))


def test_marginals_that_are_too_large_are_refused(monkeypatch):
    monkeypatch.setattr("matrixdp.model.parts.MAX_CELLS", 30)
    with pytest.raises(TooLargeError, match="cells; a model is fitted to at most 30"):
        Parts.of(measured(plans(GAUSSIAN)["local"]))
