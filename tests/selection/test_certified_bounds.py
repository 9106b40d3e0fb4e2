"""Lower bounds that take longer: the eigenvalues of larger sectors, never above the optimum."""

import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.auto import select
from matrixdp.selection.bounds.lower_bound import product_bound
from tests.limits import Override


@pytest.fixture(scope="module")
def workload():
    """Several predicate sets for an attribute, weights, a symmetric attribute, subsets of three orders."""
    domain = mdp.Domain({"a": range(4), "b": range(5), "c": ["x", "y", "z"], "d": range(4)})
    return mdp.Workload(
        domain,
        mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}),
        mdp.product(a="range", weight=3.0),
        mdp.product(a="prefix", b="prefix", c="identity"),
    )


def test_larger_sectors_raise_the_bound(workload, limits: Override):
    optimum = select(workload, noise=GAUSSIAN, mechanism="dense").certificate.loss
    exact = product_bound(workload)[0]
    # as if all sectors were too large but to certify
    limits(MOST_SECTOR_WORK=0.0)
    closed = product_bound(workload)[0]
    certified = product_bound(workload, certify=True)[0]
    assert closed < certified <= optimum
    assert certified == pytest.approx(exact, rel=1e-2)
    limits(THOROUGH_WORK=0.0)
    assert product_bound(workload, certify=True)[0] == pytest.approx(closed, rel=1e-12)


def test_sums_of_two_products_have_a_bound(limits: Override):
    """Cells and cumulative counts of the same pairs, none of which is one product."""
    domain = mdp.Domain({"a": range(4), "b": range(3), "c": range(5)})
    entries = mdp.marginals([1, 2]), mdp.kway([1, 2], "prefix")
    optimum = select(mdp.Workload(domain, *entries), noise=GAUSSIAN, mechanism="dense").certificate.loss
    assert 0.98 * optimum < product_bound(mdp.Workload(domain, *entries))[0] <= optimum * (1.0 + 1e-9)
    # as if their sectors were too large for eigenvalues
    limits(MOST_SECTOR_WORK=0.0)
    assert 0.9 * optimum < product_bound(mdp.Workload(domain, *entries))[0] <= optimum


def test_certificates_take_it_for_both_noises(workload):
    """Or that of the whole table, where it proves more."""
    bound = product_bound(workload, certify=True)[0]
    optimum = select(workload, noise=GAUSSIAN, mechanism="dense").certificate.loss
    for noise in (GAUSSIAN, LAPLACE):
        found = select(workload, noise=noise, mechanism="identity", certify=True).certificate
        assert found.scope == f"every strategy with {noise} noise"
        assert bound * (1 - 1e-9) <= found.lower_bound / noise.variance_factor <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("with_targets", [False, True])
def test_largest_variances_have_a_product_bound(with_targets, monkeypatch, limits: Override):
    """Under `max` and targets, not above what the whole table proves possible."""
    domain = mdp.Domain({f"a{i}": range(4) for i in range(2)})
    workload = mdp.Workload(domain, mdp.kway([1, 2], "prefix"))
    targets = {next(group.name for group in workload): 2.0} if with_targets else None
    best = select(workload, noise=GAUSSIAN, mechanism="dense", objective="max", targets=targets).certificate
    limits(max_compared_cells=1)
    monkeypatch.setattr("matrixdp.selection.auto._BALANCING_STEPS", {2: 4})
    found = select(workload, noise=GAUSSIAN, mechanism="residual", objective="max", targets=targets)
    assert 0.5 * best.loss < found.certificate.lower_bound <= best.loss
    assert found.certificate.scope.endswith("about the largest (weighted) variance")
    certified = select(
        workload, noise=GAUSSIAN, mechanism="residual", objective="max", targets=targets, certify=True
    )
    assert found.certificate.lower_bound <= certified.certificate.lower_bound <= best.loss


def test_none_where_it_is_out_of_reach(workload, limits: Override):
    limits(MOST_ENTRIES=10)
    assert product_bound(workload, certify=True) is None
    limits(spectral_cells=2)
    assert product_bound(workload, certify=True) is None
