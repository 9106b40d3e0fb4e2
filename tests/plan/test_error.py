"""Variances and covariances of queries."""

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import (
    TooLargeError,
    UnsupportedQueryError,
    WorkloadError,
)
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import GAUSSIAN
from matrixdp.plan import Analysis, Block, Direct, Part, pieces, pooled
from matrixdp.plan import analysis as analysis_module
from matrixdp.selection.auto import select

DOMAIN = mdp.Domain({"a": 5, "b": 4, "c": ["x", "y", "z"]})
WORKLOAD = mdp.Workload(DOMAIN, mdp.kway([1, 2], "prefix"), mdp.pairwise("affine"), mdp.marginals([0, 2]))


@pytest.mark.parametrize("mechanism", ["dense", "residual", "fourier"])
def test_covariances_agree_with_variances(mechanism):
    analysis = select(WORKLOAD, mechanism=mechanism, noise=GAUSSIAN).analysis
    for group in (WORKLOAD.groups[0], WORKLOAD.groups[4], WORKLOAD.groups[-1]):
        variances = analysis.variances(group)
        last = group.queries - 1
        assert analysis.covariance(group, last, group, last) == pytest.approx(variances[last], rel=1e-9)
    first, other = WORKLOAD.groups[0], WORKLOAD.groups[1]
    forward = analysis.covariance(first, 1, other, 2)
    assert forward == pytest.approx(analysis.covariance(other, 2, first, 1), rel=1e-9)
    # a difference of two queries, through their covariance and as a query of its own
    rows = first.rows()
    size = DOMAIN[first.attributes[0]].size
    difference = mdp.Workload(DOMAIN, mdp.product({first.attributes[0]: {"matrix": rows[3:4] - rows[1:2]}}))
    own = analysis.variances(difference.groups[0])[0]
    parts = [analysis.covariance(first, i, first, j) for i, j in ((3, 3), (1, 1), (3, 1))]
    assert size == 5
    assert own == pytest.approx(parts[0] + parts[1] - 2 * parts[2], rel=1e-9)


def test_product_groups_equal_their_explicit_rows():
    analysis = select(WORKLOAD, mechanism="residual", noise=GAUSSIAN).analysis
    product = mdp.Workload(DOMAIN, mdp.kway(2, "prefix")).groups[0]
    explicit = mdp.Workload(DOMAIN, mdp.dense(product.rows(), list(product.attributes))).groups[0]
    np.testing.assert_allclose(analysis.variances(product), analysis.variances(explicit), rtol=1e-9)


def test_large_identities_need_no_matrix_of_their_size():
    domain = mdp.Domain({"zip": [str(i) for i in range(60_000)], "sex": ["f", "m"]})
    selection = select(mdp.Workload(domain, mdp.marginals([0, 1, 2])), noise=GAUSSIAN)
    assert selection.certificate.gap < 1e-9
    assert selection.total_squared_error == pytest.approx(selection.certificate.loss, rel=1e-9)


def test_multiplied_rows():
    blocks = (Block(("a",), IdentityMatrix(5)), Block(("b",), IdentityMatrix(4)))
    multipliers = np.random.default_rng(0).integers(1, 9, (5, 4))
    part = Part(("a", "b"), blocks, 200.0, multipliers)
    assert part.squared_sensitivity == int((multipliers**2).max())
    analysis = Direct(DOMAIN, (part,), GAUSSIAN).analysis
    group = mdp.Workload(DOMAIN, mdp.marginals([["a", "b"]])).groups[0]
    np.testing.assert_allclose(analysis.variances(group), (200.0 / multipliers**2).ravel())
    assert analysis.covariance(group, 3, group, 3) == pytest.approx(200.0 / multipliers.ravel()[3] ** 2)


def test_a_missing_attribute_is_named():
    analysis = select(
        mdp.Workload(DOMAIN, mdp.product(a="prefix")), mechanism="dense", noise=GAUSSIAN
    ).analysis
    group = mdp.Workload(DOMAIN, mdp.marginals([["c"]])).groups[0]
    with pytest.raises(UnsupportedQueryError, match="'c' was not measured"):
        analysis.variances(group)


def test_explicit_queries_outside_what_was_measured_are_refused():
    analysis = select(
        mdp.Workload(DOMAIN, mdp.marginals([["b"]])), mechanism="residual", noise=GAUSSIAN
    ).plan.analysis
    [missing] = mdp.dense(np.eye(5)[:1], ["a"]).expand(DOMAIN)
    coarse = mdp.product({"b": {"sets": [[0, 1], [2, 3]]}})
    merged = select(mdp.Workload(DOMAIN, coarse), mechanism="dense", noise=GAUSSIAN).plan.analysis
    [finer] = mdp.dense(np.eye(4)[:1], ["b"]).expand(DOMAIN)
    for refusing, group, says in (
        (analysis, missing, "needs the marginal of a, which was not measured"),
        (merged, finer, "asks more of b than was measured there"),
    ):
        ask = refusing.estimates([np.zeros(9)] * 2).answers
        for refused in (refusing.variances, refusing.check_support, ask):
            with pytest.raises(UnsupportedQueryError, match=says):
                refused(group)
    # of the total, which all of them determine, nothing is refused
    [total] = mdp.dense(np.ones((1, 4)), ["b"]).expand(DOMAIN)
    assert merged.variances(total)[0] > 0


def test_figures_of_too_many_queries_or_cells_are_refused(monkeypatch):
    analysis = select(WORKLOAD, mechanism="residual", noise=GAUSSIAN).plan.analysis
    monkeypatch.setattr(pieces, "MAX_VARIANCES", 19)
    [ab, total] = [*mdp.marginals([["a", "b"]]).expand(DOMAIN), *mdp.marginals(0).expand(DOMAIN)]
    with pytest.raises(TooLargeError, match="20 variances would be formed at once"):
        analysis.variances(ab)
    with pytest.raises(TooLargeError, match="covariance: a table of a, b has too many cells"):
        analysis.covariance(total, 0, ab, 0)
    assert analysis.covariance(total, 0, total, 0) > 0
    monkeypatch.undo()
    monkeypatch.setattr(pieces, "MAX_COVARIANCES", 399)
    with pytest.raises(TooLargeError, match="a table of a, b has too many cells times 20 queries"):
        analysis.covariances(ab, total)
    monkeypatch.undo()
    monkeypatch.setattr(analysis_module, "MAX_COVARIANCE_ENTRIES", 399)
    with pytest.raises(TooLargeError, match="a matrix of 20 by 20; the limit is 399"):
        analysis.covariances(ab, ab)
    assert analysis.covariances(ab, ab, paired=True).shape == (20,)
    with pytest.raises(WorkloadError, match="found 20 and 1 queries; expected as many"):
        analysis.covariances(ab, total, paired=True)


def test_covariances_of_any_analysis_are_those_of_its_pairs():
    analysis = select(WORKLOAD, mechanism="residual", noise=GAUSSIAN).plan.analysis
    [a, total] = [*mdp.marginals([["a"]]).expand(DOMAIN), *mdp.marginals(0).expand(DOMAIN)]
    for left, right, paired in ((a, a, False), (a, total, False), (a, a, True)):
        default = Analysis.covariances(analysis, left, right, paired=paired)
        np.testing.assert_allclose(analysis.covariances(left, right, paired=paired), default, atol=1e-12)


def test_pooled_plans_of_too_many_residuals_are_refused(monkeypatch):
    plan = select(mdp.Workload(DOMAIN, mdp.marginals(2)), mechanism="opt-m", noise=GAUSSIAN).plan
    residuals = sum(2 ** len(part.attributes) for part in plan.parts)
    monkeypatch.setattr(pooled, "MAX_PAIRS", residuals - 1)
    with pytest.raises(TooLargeError, match=f"{residuals} residuals of marginals"):
        _ = plan.analysis
    monkeypatch.setattr(pooled, "MAX_PAIRS", residuals)
    assert plan.analysis is not None
