"""Variances and covariances of queries that are many, or of which many are alike."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.plan import Analysis
from matrixdp.selection.auto import select
from tests.selection.oracle import lowered

DOMAIN = mdp.Domain({"a": 6, "b": 5, "c": 4})


@pytest.mark.parametrize(
    "mechanism", ["residual", "querysmasher", "fourier", "opt-kron", "opt-m", "opt-plus"]
)
def test_large_groups_are_analysed_by_their_different_queries(mechanism):
    repeated = mdp.product(a="range", b="circular", c=["identity", "total"], weight=3.0)
    workload = mdp.Workload(DOMAIN, repeated, mdp.marginals([1, 2]))
    analysis = select(workload, mechanism=mechanism, noise=GAUSSIAN).plan.analysis
    [group, *_] = workload
    values = analysis.variances(group)
    with lowered({"COMPRESSED_QUERIES": 1, "MAX_VARIANCES": values.size - 1}):
        error = analysis.group(group)
    figures = values.sum(), group.weight * values.sum(), values.max()
    assert (error.total, error.weighted, error.largest) == pytest.approx(figures, rel=1e-9)


def test_large_identities_need_no_matrix_of_their_size():
    domain = mdp.Domain({"zip": [str(i) for i in range(60_000)], "sex": ["f", "m"]})
    selection = select(mdp.Workload(domain, mdp.marginals([0, 1, 2])), noise=GAUSSIAN)
    assert selection.certificate.gap < 1e-9
    assert selection.total_squared_error == pytest.approx(selection.certificate.loss, rel=1e-9)


def test_covariances_of_any_analysis_are_those_of_its_pairs():
    workload = mdp.Workload(DOMAIN, mdp.kway([1, 2], "prefix"))
    analysis = select(workload, mechanism="residual", noise=GAUSSIAN).plan.analysis
    [a, total] = [*mdp.marginals([["a"]]).expand(DOMAIN), *mdp.marginals(0).expand(DOMAIN)]
    for left, right, paired in ((a, a, False), (a, total, False), (a, a, True)):
        default = Analysis.covariances(analysis, left, right, paired=paired)
        np.testing.assert_allclose(analysis.covariances(left, right, paired=paired), default, atol=1e-12)
