"""Every mechanism of another paper against dense matrices, and its release from the table to the answers."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection import MECHANISMS, select
from matrixdp.selection.table import OF_OTHERS
from matrixdp.testing import dense_measurement, dense_queries

DOMAIN = mdp.Domain({"a": range(7), "b": range(4), "unasked": 2})
#: One product whose factors are not symmetric, and a workload that does not factor.
PRODUCT = mdp.Workload(DOMAIN, mdp.product(a="prefix", b="range", weight=2.0))
MIXED = mdp.Workload(
    DOMAIN, mdp.product(a="prefix", b="identity"), mdp.product(b="range"), mdp.product(a="range", weight=3.0)
)
#: Fewer dimensions than cells.
LOW_RANK = mdp.Workload(DOMAIN, mdp.product(a={"ranges": [[0, 6], [0, 2]]}, b="prefix"))
MARGINALS = mdp.Workload(DOMAIN, mdp.marginals([0, 1, 2]))
WORKLOADS = {"product": PRODUCT, "mixed": MIXED, "low rank": LOW_RANK, "marginals": MARGINALS}
MARGINALS_ALONE = ("datacube", "residualplanner")
CASES = [
    (name, noise, kind)
    for name in OF_OTHERS
    for noise in (GAUSSIAN, LAPLACE)
    if noise.norm in MECHANISMS[name].norms
    for kind in WORKLOADS
    if name != "residualplanner-plus"  # its parts are reconstructed one by one, not by least squares
    if not (name in MARGINALS_ALONE and kind != "marginals")
    if not (name == "fourier-thresholds" and kind in ("mixed", "marginals"))  # unions of products
    if not (name == "quadtree" and kind == "marginals")  # it asks about three attributes
]


@pytest.mark.parametrize(("name", "noise", "kind"), CASES)
def test_error_and_cost_are_those_of_the_dense_matrix(name, noise, kind):
    workload = WORKLOADS[kind]
    selection = select(workload, mechanism=name, noise=noise)
    plan, certificate = selection.plan, selection.certificate
    rows = np.vstack([dense_measurement(part, DOMAIN) / math.sqrt(part.variance) for part in plan.parts])
    queries = np.vstack([math.sqrt(group.weight) * dense_queries(group, DOMAIN) for group in workload])
    lift = queries @ np.linalg.pinv(rows, rcond=1e-11)
    assert np.allclose(lift @ rows, queries, atol=1e-7 * np.abs(queries).max())
    analysis = plan.analysis
    found = sum(analysis.group(group).weighted for group in workload)
    assert found == pytest.approx(float((lift**2).sum()), rel=1e-7)
    # measured matrices are integers near the strategy
    assert certificate.loss == pytest.approx(found, rel=5e-3)
    assert certificate.lower_bound is None or certificate.lower_bound <= found * (1 + 1e-9)
    cost = (rows**2).sum(axis=0).max() if noise == GAUSSIAN else math.sqrt(2) * np.abs(rows).sum(axis=0).max()
    assert plan.cost == pytest.approx(1.0)
    assert cost == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("name", OF_OTHERS)
def test_a_release_answers_within_its_standard_errors(name):
    workload = MARGINALS if name in MARGINALS_ALONE else PRODUCT if name == "fourier-thresholds" else MIXED
    rng = np.random.default_rng(5)
    table = {"a": rng.integers(0, 7, 500), "b": rng.integers(0, 4, 500), "unasked": rng.integers(0, 2, 500)}
    for noise in (n for n in (GAUSSIAN, LAPLACE) if n.norm in MECHANISMS[name].norms):
        budget = mdp.Budget(rho=0.5) if noise == GAUSSIAN else mdp.Budget(epsilon=1.0)
        release = mdp.select(workload, mechanism=name, noise=noise).measure(table, budget).reconstruct()
        counts = np.zeros(DOMAIN.shape)
        np.add.at(counts, tuple(table.values()), 1.0)
        answers = release.answers
        exact = np.concatenate([dense_queries(group, DOMAIN) @ counts.ravel() for group in workload])
        errors = np.abs(answers["estimate"].to_numpy() - exact)
        # 1 - 2e-12 of a normal or Laplace combination lies within 20 standard errors, each
        assert (errors <= 20 * answers["stddev"].to_numpy() + 1e-9).all()
        assert errors.max() > 0


@pytest.mark.parametrize("name", OF_OTHERS)
def test_kinds_of_noise_that_a_mechanism_has_not_are_refused(name):
    mechanism = MECHANISMS[name]
    assert mechanism.source[-1] != "."
    if mechanism.norms == (1, 2):
        return
    with pytest.raises(mdp.PrivacyError, match=name):
        mdp.select(MIXED, mechanism=name, noise="laplace")
