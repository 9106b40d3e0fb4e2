"""Fits: they find what was measured, take as many components as noise asks for, and are the same again."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import NumericalError
from matrixdp.model import Mixture, mixture_fit
from matrixdp.model.likelihood import Evidence
from matrixdp.model.mixture_fit import Weights, batches_of, bundles_of, choose, fit

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
def evidence(release):
    return Evidence.of(release.measurement)


@pytest.mark.parametrize("noise", range(6))
def test_it_finds_what_was_measured(strategy, noise):
    """Whatever the noise: rounds of steps follow until noise explains what is left."""
    release = strategy.measure(TABLE, mdp.Budget(mu=2), seed_not_private=noise).reconstruct()
    fitted = fit(Evidence.of(release.measurement), seed=1, components=12, steps=300)
    assert fitted.tests.loss <= fitted.tests.limit
    assert fitted.done > fitted.steps  # one round leaves more
    for group in release.workload.groups:
        far = 5 * np.sqrt(release.analysis.variances(group))
        assert (abs(fitted.mixture.answers(group) - release.measurement.estimates.answers(group)) < far).all()


def test_a_fit_ends_where_further_rounds_do_not_help(evidence):
    fitted = fit(evidence, seed=1, components=1, steps=100)
    assert fitted.tests.loss > fitted.tests.limit
    assert fitted.steps < fitted.done < 800


def test_the_losses_are_those_of_the_mixture(release, evidence):
    """Against dense matrices that leave out what is measured too weakly to be asked."""
    held, fitted = release.measurement, fit(evidence, seed=1, components=12, steps=800)
    losses = evidence.losses(fitted.mixture)
    assert fitted.tests == evidence.tests(losses)
    fitted_to = {part.attributes: loss for part, loss in zip(evidence.parts, losses, strict=True)}
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


def test_large_parts_take_turns_and_weigh_alike(evidence, monkeypatch):
    monkeypatch.setattr(mixture_fit, "_CELLS_A_STEP", 30)
    bundles = bundles_of(evidence)
    assert sorted(place for bundle in bundles for place in bundle.places) == list(range(len(evidence.parts)))
    batches = batches_of(bundles, np.random.default_rng(0))
    number = round(sum(part.size for part in evidence.parts) / 30)
    assert 1 < number < len(bundles)
    for _ in range(3):
        weights = dict.fromkeys(bundles, 0.0)
        for _ in range(number):
            for bundle, times in next(batches):
                weights[bundle] += times
        assert set(weights.values()) == {float(number)}


def test_gradients_are_slopes_of_the_losses(evidence):
    """Of every bundle, at a random place, against differences; in single precision."""
    assert {len(bundle.places) for bundle in bundles_of(evidence)} >= {1, 2}
    for bundle in bundles_of(evidence):
        weights = Weights(3, [len(start) for start in evidence.starts.values()])
        weights.flat[:] = RANDOM.standard_normal(weights.flat.size)
        shares, (own, *factors) = weights.shares()
        gradient = np.zeros_like(weights.flat)
        bundle.descend([own * np.float32(evidence.total), *factors], weights.views(gradient), 1.0)
        weights.chain(shares, gradient)
        step = RANDOM.standard_normal(weights.flat.size).astype(np.float32) * np.float32(1e-2)
        losses, start = [], weights.flat.copy()
        for sign in (1, -1):
            weights.flat[:] = start + sign * step
            losses.append(evidence.losses(weights.mixture(evidence))[bundle.places].sum())
        assert losses[0] - losses[1] == pytest.approx(2 * float(gradient @ step), rel=1e-2)


def test_components_are_added_until_noise_explains_the_rest(correlated, monkeypatch):
    monkeypatch.setattr(mixture_fit, "_LADDER", ((2, 300), (30, 500), (60, 500)))
    monkeypatch.setattr(mixture_fit, "FITS", 2)
    assert not fit(correlated, 0, 2, 300).tests.accepted
    seen = []
    chosen = choose(correlated, seen=lambda *done: seen.append(done))
    assert (chosen.components, chosen.steps) == (30, 500)
    assert chosen.tests.accepted
    chosen.tests.check("Ask for more")
    assert chosen.mixture.components == 60
    assert seen[0] == (1, 600)
    assert seen[300] == (301, 900)  # a second round, which shows that components are missing
    assert seen[-1] == (1_600, 1_600)
    both = Mixture.average([fit(correlated, seed, 30, 500).mixture for seed in (0, 1)])
    assert np.array_equal(both.weights, chosen.mixture.weights)


def test_a_model_that_does_not_fit_is_refused(correlated, monkeypatch):
    monkeypatch.setattr(mixture_fit, "FITS", 1)
    chosen = choose(correlated, seed=3, components=1, steps=200)
    assert (chosen.components, chosen.steps, chosen.done) == (1, 200, 400)
    assert not chosen.tests.accepted
    assert chosen.tests.failed[0] == "a, b"
    with pytest.raises(NumericalError, match=r"further than noise explains from \d of \d+: a, b"):
        chosen.tests.check("Ask for more")
