"""Measuring every kind of plan with either noise: cost, distribution, and what is saved."""

import numpy as np
import pytest
from scipy import stats

from matrixdp.measure.measurement import measure
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.privacy import Budget
from matrixdp.sources import open_source
from matrixdp.storage.formats import load_measurement, save_measurement
from tests.measure.plans import DOMAIN, TABLE, WORKLOAD, plan


def test_laplace_noise_serves_budgets_in_every_definition():
    for budget in (Budget(epsilon=2), Budget(rho=2), Budget(epsilon=2, delta=1e-6)):
        measured = measure(plan("direct"), open_source(TABLE), budget)
        assert float(measured.authorization.cost.value) == pytest.approx(2)
        assert measured.scales[0].variance == pytest.approx(2 * 80**2 / 2**2, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=str)
@pytest.mark.parametrize("kind", ["direct", "pooled", "local"])
def test_errors_are_distributed_and_estimates_vary_as_stated(kind, noise):
    """Standardized errors against exact moments; limits of 6.5 standard deviations, about 1e-10 each."""
    law, budget = ("norm", Budget(mu=1)) if noise is GAUSSIAN else ("laplace", Budget(epsilon=1))
    source, draws = open_source(TABLE), 120
    truth = np.zeros(DOMAIN.shape)
    np.add.at(truth, (TABLE["a"], TABLE["b"]), 1)
    standardized, errors = [], []
    for seed in range(draws):
        measured = measure(plan(kind, noise), source, budget, seed_not_private=seed)
        for part, drawn, values in zip(measured.plan.parts, measured.scales, measured.values, strict=True):
            marginal = truth if len(part.attributes) == 2 else truth.sum(axis=1)
            exact = part.answers(marginal.astype(np.int64), 2**33).values()
            scale = np.sqrt(drawn.variance / noise.variance_factor)
            standardized.append((values - np.array(exact, dtype=float)) / scale)
        estimates = measured.estimates
        answers = np.concatenate([estimates.answers(group) for group in WORKLOAD])
        errors.append(answers - np.concatenate([
            np.cumsum(truth, axis=0).ravel(), [500.0], truth.sum(axis=1), truth.sum(axis=0)
        ]))  # fmt: skip
    z = np.concatenate(standardized)
    assert stats.kstest(z, law).pvalue > 1e-9
    assert stats.kstest(1.4 * z, law).pvalue < 1e-6
    stated = np.concatenate([measured.analysis.variances(group) for group in WORKLOAD])
    found = np.array(errors) / np.sqrt(stated)
    assert np.abs(found.mean(axis=0)).max() < 6.5 / np.sqrt(draws)
    # the fourth moment of a combination of Laplace variables is at most 6, so squares vary by at most 5
    assert np.abs((found**2).mean(axis=0) - 1).max() < 6.5 * np.sqrt(5 / draws)
    assert abs((found**2).mean() - 1) < 6.5 * np.sqrt(5 / draws)


@pytest.mark.parametrize("kind", ["direct", "pooled", "local"])
def test_measurements_are_saved_whole(kind, tmp_path):
    measured = measure(plan(kind), open_source(TABLE), Budget(epsilon=1))
    save_measurement(tmp_path / "m.mdp", measured, WORKLOAD)
    again, _ = load_measurement(tmp_path / "m.mdp")
    assert again.plan.noise == LAPLACE
    assert again.plan.kind == kind
    assert again.authorization == measured.authorization
    for left, right in zip(again.values, measured.values, strict=True):
        np.testing.assert_array_equal(left, right)
    for group in WORKLOAD:
        np.testing.assert_array_equal(again.estimates.answers(group), measured.estimates.answers(group))
