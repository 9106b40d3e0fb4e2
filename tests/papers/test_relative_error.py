"""Weights for relative errors."""

import numpy as np
import pytest

import matrixdp as mdp
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
