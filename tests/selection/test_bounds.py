"""SVD bounds: published columns, those of dense spectra, and never above what is reached."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import AllRanges, Prefix
from matrixdp.selection.auto import select
from matrixdp.selection.bounds import lower_bound as bounds
from matrixdp.selection.bounds.lower_bound import svd_bound_workload
from matrixdp.selection.gram.singular_values import svd_bound_gram
from matrixdp.testing import dense_gram

MU = 0.236704
ALL = ["identity", "total"]
CPS = mdp.Domain(
    {"income": {"min": 0, "max": 99}, "age": {"min": 0, "max": 49}, "marital": 7, "race": 4, "sex": 2}
)


@pytest.mark.parametrize(
    ("predicates", "size", "laplace", "gaussian"),
    [
        (AllRanges(), 64, 3.22, 9.62),
        (AllRanges(), 256, 4.07, 12.15),
        (AllRanges(), 1024, 4.94, None),
        (Prefix(), 64, 2.89, 8.62),
        (Prefix(), 256, 3.50, 10.44),
        (Prefix(), 1024, 4.11, None),
    ],
)
def test_published_bounds_of_one_attribute(predicates, size, laplace, gaussian):
    mean = svd_bound_gram(predicates.gram(size)) / predicates.count(size)
    assert round(math.sqrt(2 * mean), 2) == laplace
    if gaussian is not None:
        assert math.sqrt(mean) / MU == pytest.approx(gaussian, abs=0.0051)


@pytest.mark.parametrize(
    ("sets", "laplace", "gaussian"), [((ALL, ALL), 2.63, 7.85), (("prefix", "prefix"), 9.32, 27.85)]
)
def test_published_bounds_of_cps(sets, laplace, gaussian):
    workload = mdp.Workload(CPS, mdp.product(income=sets[0], age=sets[1], marital=ALL, race=ALL, sex=ALL))
    mean = svd_bound_workload(workload) / workload.queries
    assert round(math.sqrt(2 * mean), 2) == laplace
    assert math.sqrt(mean) / MU == pytest.approx(gaussian, abs=0.0051)


def test_large_workloads_have_no_bound_of_this_kind():
    domain = mdp.Domain({"a": 100, "b": 100})
    assert svd_bound_workload(mdp.Workload(domain, mdp.kway([1, 2], "prefix"))) is None
    apart = mdp.Workload(mdp.Domain({"a": 30, "b": 30}), mdp.product(a="prefix"), mdp.product(b="prefix"))
    assert svd_bound_workload(apart) <= select(apart, noise=GAUSSIAN).certificate.lower_bound
    wide = mdp.Workload(mdp.Domain({f"a{i}": 2 for i in range(16)}), mdp.marginals(1))
    best = select(wide, noise=GAUSSIAN).certificate.lower_bound
    assert svd_bound_workload(wide) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("kinds", [[0, 0, 1, 2], [0, 1, 0, 1, 1, 2]])
def test_queries_that_tell_few_values_apart_have_a_bound_that_nothing_is_below(kinds):
    rows = [[[1.79970738, 1.14416587, -0.32542284][k] for k in kinds]]
    rows.append([[0.77380659, 0.28121067, -0.55382284][k] for k in kinds])
    entry = mdp.product(a="prefix", b={"matrix": rows})
    workload = mdp.Workload(mdp.Domain({"a": 4, "b": len(kinds)}), entry)
    best = select(workload, noise=GAUSSIAN, mechanism="dense").certificate.loss
    found = select(workload, noise=GAUSSIAN, mechanism="residual").certificate
    assert 0.9 * best < found.lower_bound <= best * (1.0 + 1e-7)


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


def test_what_is_not_a_product_or_too_much_work_has_no_bound(limits):
    domain = mdp.Domain({"a": {"min": 0, "max": 29}, "b": {"min": 0, "max": 29}, "c": 3})
    dense = mdp.Workload(domain, mdp.pairwise("affine"), mdp.marginals(1))
    mixed = mdp.Workload(domain, mdp.product(a="prefix", c="identity"), mdp.product(b="identity"))
    assert bounds.uniform_bound(dense) is not None
    assert svd_bound_workload(mixed) is not None
    limits(spectral_cells=500)
    assert bounds.uniform_bound(dense) is None
    limits(_MOST_SPECTRAL_WORK=10**4)
    assert svd_bound_workload(mixed) is None
