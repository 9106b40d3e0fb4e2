"""SVD bounds of workloads that are symmetric on some attributes alone."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.selection.bounds import lower_bound as bounds
from matrixdp.selection.bounds.lower_bound import svd_bound_workload
from matrixdp.selection.gram.singular_values import svd_bound_gram
from matrixdp.testing import dense_gram

KINDS = ["identity", "total", "prefix", "range", ["identity", "total"]]


@settings(max_examples=15, deadline=None)
@given(st.lists(st.tuples(*[st.sampled_from(KINDS)] * 3, st.floats(0.1, 10)), min_size=1, max_size=3))
def test_blocks_agree_with_the_dense_spectrum(entries):
    domain = mdp.Domain({"a": {"min": 0, "max": 2}, "b": {"min": 0, "max": 3}, "c": {"min": 0, "max": 1}})
    workload = mdp.Workload(domain, *[mdp.product(a=a, b=b, c=c, weight=w) for a, b, c, w in entries])
    expected = svd_bound_gram(dense_gram(workload))
    assert bounds.uniform_bound(workload) == pytest.approx(expected, rel=1e-9)
    assert svd_bound_workload(workload) == pytest.approx(expected, rel=1e-9)


def test_ordered_attributes_among_many_categories():
    """Past the cells of one table: 40 x 2^10, prefix on the first attribute in some groups."""
    domain = mdp.Domain({"age": {"min": 0, "max": 39}} | {f"c{i}": 2 for i in range(10)})
    entries = [mdp.product(age="prefix"), mdp.marginals([1, 2], [f"c{i}" for i in range(10)])]
    entries += [mdp.product({"age": "prefix", f"c{i}": "identity"}) for i in range(10)]
    workload = mdp.Workload(domain, *entries)
    tail = np.tri(40)
    total, ones = 0.0, np.ones((40, 40))
    for place in product((0, 1), repeat=10):
        order = sum(place)
        marginals = 10 * 2**9 * (order == 0) + 2**9 * (order == 1)  # one-way: n / 2 where it holds the subset
        marginals += 45 * 2**8 * (order == 0) + 9 * 2**8 * (order == 1) + 2**8 * (order == 2)
        prefixes = 2**10 * (order == 0) + 10 * 2**9 * (order == 0) + 2**9 * (order == 1)
        values = np.linalg.eigvalsh(marginals * ones + prefixes * tail @ tail.T)
        total += np.sqrt(np.maximum(values, 0)).sum()
    assert svd_bound_workload(workload) == pytest.approx(total**2 / (40 * 2**10), rel=1e-6)


def test_rounding_errors_do_not_raise_the_bound():
    rows = np.tri(4)[:, np.arange(400) // 100]
    exact = np.linalg.svd(rows, compute_uv=False).sum() ** 2 / 400
    assert svd_bound_gram(rows.T @ rows) <= exact * (1 + 1e-12)


def test_what_is_not_a_product_or_too_much_work_has_no_bound(monkeypatch):
    domain = mdp.Domain({"a": {"min": 0, "max": 99}, "b": {"min": 0, "max": 99}, "c": 3})
    dense = mdp.Workload(domain, mdp.pairwise("affine"), mdp.marginals(1))
    assert bounds.uniform_bound(dense) is None
    mixed = mdp.Workload(domain, mdp.product(a="prefix", c="identity"), mdp.product(b="identity"))
    assert svd_bound_workload(mixed) is not None
    monkeypatch.setattr(bounds, "_MOST_SPECTRAL_WORK", 10**5)
    assert svd_bound_workload(mixed) is None
