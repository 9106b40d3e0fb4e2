"""SVD bounds: published columns, and never above what is reached."""

import math

import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import AllRanges, Prefix
from matrixdp.selection.auto import select
from matrixdp.selection.bounds.lower_bound import svd_bound_workload
from matrixdp.selection.gram.singular_values import svd_bound_gram

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
    apart = mdp.Workload(domain, mdp.product(a="prefix"), mdp.product(b="prefix"))
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
