"""Fits: they find what was measured where there is hardly any noise, and are the same again."""

import sys

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.model.bundles import bundles_of
from matrixdp.model.fit import _batches, _Weights, fit
from matrixdp.model.mixture import Mixture
from matrixdp.model.parts import Parts

RANDOM = np.random.default_rng(5)
RECORDS = 4_000


def table():
    """Three attributes that depend on one another, and one that follows from another."""
    kind = RANDOM.random(RECORDS) < 0.4
    age = np.where(kind, RANDOM.binomial(7, 0.2, RECORDS), RANDOM.binomial(7, 0.8, RECORDS))
    smokes = RANDOM.random(RECORDS) < np.where(kind, 0.1, 0.6)
    return {"age": age, "smokes": smokes.astype(int), "region": RANDOM.integers(0, 3, RECORDS) * kind}


TABLE = table()
ADULT = {"of": ["age"], "map": {age: "no" if age < 4 else "yes" for age in range(8)}}
DOMAIN = mdp.Domain({"age": {"min": 0, "max": 7}, "smokes": 2, "region": 3, "adult": ADULT})


@pytest.fixture(scope="module")
def strategy():
    workload = mdp.Workload(
        DOMAIN,
        mdp.kway([0, 1, 2], {"categorical": "identity", "numeric": "prefix"}, ["age", "smokes", "region"]),
        mdp.marginals([["region", "adult"]]),
    )
    return mdp.select(workload, mechanism="residual")


@pytest.fixture(scope="module")
def release(strategy):
    return strategy.measure(TABLE, mdp.Budget(mu=2), seed_not_private=1).reconstruct()


@pytest.fixture(scope="module")
def parts(release):
    return Parts.of(release.measurement)


@pytest.fixture(scope="module")
def fitted(parts):
    return fit(parts, seed=1, components=12, steps=800)


@pytest.mark.parametrize("noise", range(6))
def test_it_finds_what_was_measured(strategy, noise):
    """Whatever the noise: rounds of steps follow until noise explains what is left."""
    release = strategy.measure(TABLE, mdp.Budget(mu=2), seed_not_private=noise).reconstruct()
    parts = Parts.of(release.measurement)
    fitted = fit(parts, seed=1, components=12, steps=300)
    assert fitted.loss <= parts.limit
    assert fitted.done > fitted.steps  # one round leaves more
    for group in release.workload.groups:
        far = 5 * np.sqrt(release.analysis.variances(group))
        assert (abs(fitted.mixture.answers(group) - release.measurement.estimates.answers(group)) < far).all()


def test_a_fit_ends_where_further_rounds_do_not_help(parts):
    fitted = fit(parts, seed=1, components=1, steps=100)
    assert fitted.loss > parts.limit
    assert fitted.steps < fitted.done < 800


def test_the_losses_are_those_of_the_mixture(release, parts, fitted):
    """Against dense matrices that leave out what is measured too weakly to be asked."""
    held = release.measurement
    fitted_to = {part.attributes: loss for part, loss in zip(parts.parts, fitted.losses, strict=True)}
    for part, scale, values in zip(held.plan.parts, held.scales, held.values, strict=True):
        if part.attributes:
            whole, kept = np.ones((1, 1)), np.ones((1, 1))
            for block in part.blocks:
                rows, outside = block.matrix.written(), block.matrix.unsupported
                weak = np.zeros((len(rows), 1)) if outside is None else rows @ outside.T
                whole, kept = np.kron(whole, rows), np.kron(kept, rows - weak @ np.linalg.pinv(weak) @ rows)
            off = fitted.mixture.marginal(part.listed).ravel() - np.linalg.pinv(whole) @ values
            expected = ((kept @ off) ** 2).sum() / scale.variance / 2
            assert fitted_to[part.attributes] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_large_parts_take_turns_and_weigh_alike(parts, monkeypatch):
    monkeypatch.setattr(sys.modules["matrixdp.model.fit"], "_CELLS_A_STEP", 30)
    bundles = bundles_of(parts)
    assert sorted(place for bundle in bundles for place in bundle.places) == list(range(len(parts.parts)))
    batches = _batches(bundles, np.random.default_rng(0))
    number = round(sum(part.size for part in parts.parts) / 30)
    assert 1 < number < len(bundles)
    for _ in range(3):
        weights = dict.fromkeys(bundles, 0.0)
        for _ in range(number):
            for bundle, times in next(batches):
                weights[bundle] += times
        assert set(weights.values()) == {float(number)}


def test_gradients_are_slopes_of_the_losses(parts):
    """Of every bundle, at a random place, against differences; in single precision."""
    sizes = [len(start) for start in parts.starts.values()]
    assert {len(bundle.places) for bundle in bundles_of(parts)} >= {1, 2}
    for bundle in bundles_of(parts):
        weights = _Weights(3, sizes)
        weights.flat[:] = RANDOM.standard_normal(weights.flat.size)
        shares, own, factors = weights.shares()
        gradient = np.zeros_like(weights.flat)
        bundle.descend(own * np.float32(4000), factors, weights.views(gradient), 1.0)
        weights.chain(shares, gradient)
        step = RANDOM.standard_normal(weights.flat.size).astype(np.float32) * np.float32(1e-2)
        losses, start = [], weights.flat.copy()
        for sign in (1, -1):
            weights.flat[:] = start + sign * step
            _, own, factors = weights.shares()
            named = dict(zip(parts.starts, [factor.astype(float) for factor in factors], strict=True))
            mixture = Mixture(parts.domain, 4000, own.astype(float), named)
            losses.append(parts.losses(mixture)[bundle.places].sum())
        assert losses[0] - losses[1] == pytest.approx(2 * float(gradient @ step), rel=1e-2)
