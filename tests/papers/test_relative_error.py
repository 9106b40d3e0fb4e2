"""Weights for relative errors."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import WorkloadError
from matrixdp.papers.relative_error import relative_error
from matrixdp.testing import dense_queries

DOMAIN = mdp.Domain({"a": range(6), "b": range(3)})
ENTRIES = (
    mdp.product(a="range", b="identity"),
    mdp.product(b="prefix", weights=[1.0, 2.0, 3.0]),
    mdp.dense(np.array([[1.0, 0.0, -2.0]]), ["b"]),
)


def test_weights_are_the_inverse_squares_of_l1_norms():
    workload = mdp.Workload(DOMAIN, *relative_error(DOMAIN, *ENTRIES))
    for group, given in zip(workload, mdp.Workload(DOMAIN, *ENTRIES), strict=True):
        norms = np.abs(dense_queries(group, DOMAIN)).sum(axis=1)
        before = 1.0 if given.query_weights is None else given.query_weights
        assert group.query_weights == pytest.approx(before * (18 / norms) ** 2)


def test_they_lower_the_relative_error_on_even_data():
    plain = mdp.Workload(DOMAIN, ENTRIES[0])
    weighted = mdp.Workload(DOMAIN, *relative_error(DOMAIN, ENTRIES[0]))
    errors = []
    for workload in (plain, weighted):
        analysis = mdp.select(workload, noise="gaussian", mechanism="dense").selection.analysis
        shares = np.abs(dense_queries(plain.groups[0], DOMAIN)).mean(axis=1)
        errors.append(math.sqrt(float((analysis.variances(plain.groups[0]) / shares**2).mean())))
    assert errors[1] < 0.98 * errors[0]


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        (mdp.marginals([1]), "an entry that stands for 2 groups"),
        (mdp.dense(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]), ["b"]), "a query that is zero everywhere"),
    ],
)
def test_what_has_no_share_of_its_own_is_refused(entry, says):
    with pytest.raises(WorkloadError, match=says):
        relative_error(DOMAIN, entry)
