"""The decomposition for Laplace noise, as published: uniform weights, and searches on each marginal."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import LAPLACE
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.gram import opt_0 as laplace
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import LaplaceSolver, rescaled


def _weighted(plan, workload):
    analysis = plan.analysis
    return math.fsum(analysis.group(group).weighted for group in workload)


def test_large_mixed_sums_have_a_strategy():
    domain = mdp.Domain({"a": 21, "b": 20})
    workload = mdp.Workload(domain, mdp.kway(2, "prefix"), mdp.marginals(2))
    plan, certificate = select_by_decomposition(workload, LAPLACE, "querysmasher", 1e-6)
    assert "product instead of the optimum on 1 marginal" in certificate.scope
    assert _weighted(plan, workload) == pytest.approx(certificate.loss, rel=2e-3)
    with pytest.raises(TooLargeError, match="sub_solver optimum"):
        select_by_decomposition(workload, LAPLACE, "querysmasher", 1e-6, sub_solver="optimum")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "better"), [("affine", "product"), ("abs", "optimum")])
def test_explicit_queries_on_many_cells(kind, better):
    """Sums of two codes are best answered by a product, the few differences by strategies of their own."""
    workload = mdp.Workload(mdp.Domain({"a": 21, "b": 20}), mdp.pairwise(kind))
    losses = {}
    for name in ("auto", "product", "optimum"):
        plan, certificate = select_by_decomposition(workload, LAPLACE, "querysmasher", 1e-6, sub_solver=name)
        assert _weighted(plan, workload) == pytest.approx(certificate.loss, rel=2e-2)
        losses[name] = certificate.loss
    assert losses["auto"] == pytest.approx(min(losses.values()), rel=1e-6)
    assert min(losses, key=lambda name: (round(losses[name], 3), name == "auto")) == better


def test_attribute_of_many_categories_is_never_written_out():
    domain = mdp.Domain({"a": 20_000, "b": 2})
    workload = mdp.Workload(domain, mdp.marginals([1, 2]))
    # a table of that many cells squared is 3.2 GB, and would take a minute
    plan, certificate = select_by_decomposition(workload, LAPLACE, "querysmasher", 1e-6)
    assert certificate.loss == pytest.approx(_weighted(plan, workload), rel=1e-9)
    assert mdp.select(workload, noise="laplace").certificate.loss <= certificate.loss * (1 + 1e-9)


def test_sub_solver_takes_the_best(monkeypatch):
    gram = np.array([[2.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 2.0]])
    found = LaplaceSolver().gram(gram, (3,))
    assert float(LAPLACE.column_norms(found.rows).max()) <= 1 + 1e-12
    assert found.loss <= rescaled(np.eye(3), gram).loss * (1 + 1e-9)
    inverse = np.linalg.pinv(found.rows)
    assert found.loss == pytest.approx(np.trace(gram @ inverse @ inverse.T), rel=1e-9)
    # a solver that finds nothing good leaves the Gaussian optimum
    poor = Factor(np.eye(3), 1e9, None)
    monkeypatch.setattr(laplace, "solve_axis", lambda *_, **__: poor)
    gaussian = solve_gram(gram).rows
    assert LaplaceSolver().gram(gram, (3,)).loss == pytest.approx(rescaled(gaussian, gram).loss, rel=1e-4)
    query = np.array([[0.5, -2.0, 1.0]])
    assert LaplaceSolver().gram(query.T @ query, (3,)).loss == pytest.approx(4.0, rel=1e-9)
    assert LaplaceSolver().queries(query, (3,)).loss == pytest.approx(4.0, rel=1e-9)
    # queries on disjoint cells are best measured as they are, however many cells there are
    disjoint = np.repeat(np.eye(3), 200, axis=1)
    assert LaplaceSolver().queries(disjoint, (600,)).loss == pytest.approx(3.0, rel=1e-9)
