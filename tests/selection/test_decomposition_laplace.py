"""The decomposition for Laplace noise against dense brute force: cost, bias, variance, split, bounds."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import LAPLACE
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.compose.weight_vectors import Objective, uniform_weights
from matrixdp.selection.compose.whole_attributes import laplace_weights, may_stay_whole
from matrixdp.selection.gram import l1_search as laplace
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.l1_search import LaplaceSolver, rescaled
from matrixdp.selection.problem.residuals import split_workload

DOMAIN = mdp.Domain({"a": 5, "b": 3, "c": ["x", "y"], "d": 2})
MIXES = [
    [mdp.kway(2, {"categorical": "identity", "numeric": "prefix"})],
    [mdp.kway([0, 1, 2, 3], "range"), mdp.marginals(2)],
    [mdp.pairwise("affine")],
    [mdp.pairwise("abs", ["a", "b"]), mdp.kway(3, "prefix"), mdp.kway(1, "range")],
    [mdp.product(a="prefix", c="identity", weight=3.0), mdp.product(a="range", weights=np.arange(1.0, 16.0))],
    [mdp.marginals([1, 3]), mdp.product(a="total", b="prefix")],
]


def _weighted(plan, workload):
    analysis = plan.analysis
    return math.fsum(analysis.group(group).weighted for group in workload)


@pytest.mark.parametrize("entries", [MIXES[0], MIXES[3]])
def test_gradient_at_fixed_strategies(entries, monkeypatch):
    """The derivative of phi is that of its terms with all strategies held, by the envelope theorem."""
    split = split_workload(mdp.Workload(DOMAIN, *entries))
    objective = Objective(split, LAPLACE)
    solver_of = objective._solver

    class Held(LaplaceSolver):
        def gram(self, gram, *_):
            return rescaled(np.vstack([np.eye(len(gram)), np.ones(len(gram))]), gram)

        def queries(self, rows, *_):
            return self.gram(rows.T @ rows)

    def fixed(pieces, gap):
        solver = solver_of(pieces, gap)
        solver.solver = Held()
        return solver

    monkeypatch.setattr(objective, "_solver", fixed)
    rng = np.random.default_rng(0)
    free = split.free
    at = uniform_weights(split)
    draws = [rng.normal(size=n) for n in split.sizes]
    step = [f * (v - v.mean()) for f, v in zip(free, draws, strict=True)]
    at = [a + 0.05 * s for a, s in zip(at, step, strict=True)]
    _, gradient = objective(at)
    ends = [objective([a + s * 1e-4 * d for a, d in zip(at, step, strict=True)])[0] for s in (-1, 1)]
    slope = sum(float(g @ d) for g, d in zip(gradient, step, strict=True))
    assert (ends[1] - ends[0]) / 2e-4 == pytest.approx(slope, rel=1e-4)


def test_attributes_stay_whole_where_that_pays():
    domain = mdp.Domain({"a": 12, "b": 12})
    split = split_workload(mdp.Workload(domain, mdp.marginals(2)))
    assert not laplace_weights(split)[0].any()
    workload = mdp.Workload(domain, mdp.marginals(2))
    plan, certificate = select_by_decomposition(workload, LAPLACE, "residual", 1e-6)
    assert [part.attributes for part in plan.parts] == [("a", "b")]
    assert certificate.loss == pytest.approx(2 * 144, rel=1e-9)
    # a total that is asked along an attribute has to be measured: the attribute cannot stay whole
    asked = mdp.Workload(domain, mdp.product(a="total", b="prefix"), mdp.marginals(2))
    split = split_workload(asked)
    assert not may_stay_whole(split)[split.types["a"]]
    assert may_stay_whole(split)[split.types["b"]]


def test_large_mixed_sums_have_a_strategy():
    domain = mdp.Domain({"a": 24, "b": 20})
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
    workload = mdp.Workload(mdp.Domain({"a": 24, "b": 22}), mdp.pairwise(kind))
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
    plan, certificate = select_by_decomposition(workload, LAPLACE, "residual", 1e-6)
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
