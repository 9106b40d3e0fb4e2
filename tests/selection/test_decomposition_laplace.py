"""The decomposition for Laplace noise against dense brute force: cost, bias, variance, split, bounds."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.selection.compose.decomposition import select_by_decomposition
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.compose.weight_vectors import Objective, uniform_weights
from matrixdp.selection.compose.whole_attributes import laplace_weights, may_stay_whole
from matrixdp.selection.gram import l1_search as laplace
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.l1_search import LaplaceSolver, rescaled
from matrixdp.selection.view.pieces import Pieces
from matrixdp.selection.view.sub_workloads import split_workload

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


@pytest.mark.parametrize("entries", MIXES)
def test_no_other_split_of_the_budget_is_better(entries):
    workload = mdp.Workload(DOMAIN, *entries)
    plan, _ = select_by_decomposition(workload, LAPLACE, "residual", 1e-6)
    best = _weighted(plan, workload)
    rng = np.random.default_rng(1)
    shares = np.array([LAPLACE.share(part, part.variance) for part in plan.parts])
    for size in (0.02, 0.3):
        moved = shares * np.exp(size * rng.normal(size=len(shares)))
        moved /= moved.sum()
        parts = tuple(
            replace(part, variance=part.variance * (old / new) ** 2)
            for part, old, new in zip(plan.parts, shares, moved, strict=True)
        )
        assert _weighted(replace(plan, parts=parts), workload) >= best * (1 - 1e-9)


class _Measured:
    def __init__(self, power_sum):
        self.power_sum = power_sum

    def column_power_sum(self, _power):
        return self.power_sum


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(1, 4), st.floats(1e-3, 1e6), st.integers(1, 10**6)), min_size=1, max_size=5
    ),
    st.sampled_from([GAUSSIAN, LAPLACE]),
    st.integers(0, 2**31),
)
def test_split_in_closed_form(costs, noise, seed):
    def spent(variances):
        scaled = zip(costs, variances, strict=True)
        if noise == LAPLACE:
            return math.fsum(k * c * math.sqrt(2.0 / v) for (k, _, c), v in scaled)
        return math.fsum(k * c / v for (k, _, c), v in scaled)

    def error(variances):
        return math.fsum(k * v * trace for (k, trace, _), v in zip(costs, variances, strict=True))

    matrices = [_Measured(c) for _, _, c in costs]
    losses = [trace * noise.variance(m) for (_, trace, _), m in zip(costs, matrices, strict=True)]
    shares = noise.best_shares(losses, [k for k, _, _ in costs])
    best = [noise.variance(m, share) for m, share in zip(matrices, shares, strict=True)]
    assert [noise.share(m, v) for m, v in zip(matrices, best, strict=True)] == pytest.approx(shares)
    assert error(best) == pytest.approx(noise.total_loss(losses, [k for k, _, _ in costs]))
    assert spent(best) == pytest.approx(1.0, rel=1e-9)
    moved = np.array(best) * np.exp(0.1 * np.random.default_rng(seed).normal(size=len(best)))
    moved *= spent(moved) ** (2.0 if noise == LAPLACE else 1.0)
    assert spent(moved) == pytest.approx(1.0, rel=1e-9)
    assert error(moved) >= error(best) * (1 - 1e-12)


@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_symmetric_attributes(size):
    centered = np.eye(size) - 1.0 / size
    known = LaplaceSolver().centered(size)
    chosen = rescaled(known.rows, centered)
    assert chosen.loss == pytest.approx(known.loss, rel=1e-12)
    differences = np.array([np.eye(size)[i] - np.eye(size)[j] for i in range(size) for j in range(i)])
    for other in (np.eye(size), centered, differences, np.vstack([np.eye(size), np.ones(size)])):
        assert chosen.loss <= rescaled(other, centered).loss * (1 + 1e-12)


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


@pytest.mark.parametrize("entries", [[mdp.kway(2, "prefix")], [mdp.marginals([1, 2, 3])], MIXES[0], MIXES[4]])
def test_never_worse_than_marginals_apart_or_uniform_weights(entries):
    workload = mdp.Workload(DOMAIN, *entries)
    losses = {
        mechanism: select_by_decomposition(workload, LAPLACE, mechanism, 1e-6)[1].loss
        for mechanism in ("residual", "querysmasher")
    }
    assert losses["residual"] <= losses["querysmasher"] * (1 + 1e-3)
    grams: dict[tuple[str, ...], np.ndarray] = {}
    for group in workload:
        rows = group.rows()
        weights = np.ones(len(rows)) if group.query_weights is None else group.query_weights
        own = group.weight * (rows * weights[:, None]).T @ rows
        grams[group.attributes] = grams.get(group.attributes, 0.0) + own
    apart = (
        2.0 * sum(LaplaceSolver().gram(gram, (len(gram),)).loss ** (1 / 3) for gram in grams.values()) ** 3
    )
    assert losses["residual"] <= apart * 1.02


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


def test_whole_attribute_has_its_own_gram_matrix():
    workload = mdp.Workload(mdp.Domain({"a": 5, "b": 3}), mdp.product(a="identity", b="prefix"))
    split = split_workload(workload)
    weights = [np.zeros(size) if size == 5 else np.full(size, 1.0 / size) for size in split.sizes]
    pieces = Pieces(split, weights)
    solver = SubSolver(pieces, LAPLACE, LaplaceSolver())
    [whole] = [number for number, slot in enumerate(split.slots) if slot.size == 5]
    assert np.array_equal(solver.slot_gram(whole), np.eye(5))
    assert pieces.slots[whole].mean_square == 0.0


@settings(max_examples=5, deadline=None)
@given(
    st.lists(st.integers(2, 5), min_size=2, max_size=3),
    st.lists(st.integers(1, 2), min_size=1, max_size=2, unique=True),
    st.floats(0.1, 10.0),
)
def test_weighted_marginals_contain_products_and_unions(sizes, ways, weight):
    domain = mdp.Domain({f"a{i}": size for i, size in enumerate(sizes)})
    workload = mdp.Workload(domain, mdp.marginals(ways, weight=weight), mdp.marginals(1))
    losses = {
        name: mdp.select(workload, noise="laplace", mechanism=name, seed=0).certificate.loss
        for name in ("opt-m", "opt-kron", "opt-plus")
    }
    assert losses["opt-m"] <= min(losses.values()) * (1.0 + 1e-6)
