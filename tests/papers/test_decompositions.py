"""The decomposition as papers have it: in the Fourier basis, ResidualPlanner and ResidualPlanner+."""

import math
from collections.abc import Hashable

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN
from matrixdp.papers.fourier import Characters, fourier_energies, fourier_strategy
from matrixdp.papers.residual_planner import (
    fixed_factor,
    residual_basis,
    select_residual_planner,
    select_residual_planner_plus,
)
from matrixdp.selection.compose.decomposition import solve_classes, sub_solver_for
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.problem.grams import ExplicitGram, Gram
from matrixdp.selection.problem.kron_sum import KronSum, Rows, WrittenQueries
from matrixdp.selection.problem.residuals import Pieces, split_workload

PAIR = mdp.Domain({"a": 9, "b": 6})
SIZES = {
    "CPS": {"categorical": [7, 4, 2], "numeric": [100, 50]},
    "Adult": {"categorical": [42, 16, 15, 9, 7, 6, 5, 2, 2], "numeric": [100, 100, 100, 99, 85]},
}


def _hybrid(data, ways):
    kinds = SIZES[data]
    named = {f"c{i}": [str(v) for v in range(n)] for i, n in enumerate(kinds["categorical"])}
    domain = mdp.Domain({**named, **{f"n{i}": n for i, n in enumerate(kinds["numeric"])}})
    return mdp.Workload(domain, mdp.kway(ways, {"categorical": "identity", "numeric": "prefix"}))


def _rmse(workload, certificate):
    return math.sqrt(certificate.loss / sum(group.queries for group in workload))


def _weighted(plan, workload):
    analysis = plan.analysis
    return math.fsum(analysis.group(group).weighted for group in workload)


def test_pairs_past_what_is_measured_have_the_error_of_the_fourier_basis():
    """By FFT; the characters of the same pair by definition, a few of them, carry the same energies."""
    workload = mdp.Workload(mdp.Domain({"a": 100, "b": 100}), mdp.pairwise("affine"))
    split = split_workload(workload)
    pieces = Pieces(split, uniform_weights(split))
    solver = sub_solver_for(pieces, GAUSSIAN, 1e-6, construction=Characters())
    losses = [(sub, solution.loss) for sub, solution in solve_classes(split, solver)]
    total = GAUSSIAN.total_loss([loss for _, loss in losses], [len(sub.marginals) for sub, _ in losses])
    [group] = workload.groups
    spectrum = np.fft.fft2(group.rows().reshape(-1, 100, 100))
    energies = (np.abs(spectrum) ** 2).sum(axis=0) / 100**2
    assert total == pytest.approx(np.sqrt(energies).sum() ** 2 / energies.size, rel=1e-6)
    assert math.sqrt(total / workload.queries) == pytest.approx(7.5669, abs=1e-4)
    with pytest.raises(TooLargeError, match="fourier: a sub-workload of 10000 cells"):
        mdp.select(workload, mechanism="fourier")


def test_fourier_energies_by_terms():
    rng = np.random.default_rng(0)
    grams = [(m.T @ m) for m in (rng.normal(size=(4, 4)), rng.normal(size=(3, 3)))]
    rows = rng.normal(size=(2, 4, 3))
    sets: list[dict[Hashable, Gram]] = [{0: ExplicitGram(gram)} for gram in grams]
    problem = KronSum((), (4, 3), sets, [(1.5, {0: 0, 1: 0})], [Rows(0.5, (0, 1), WrittenQueries(rows))])
    gram = 1.5 * np.kron(*grams) + 0.5 * rows.reshape(2, -1).T @ rows.reshape(2, -1)
    energies = fourier_energies(problem)
    fourier = np.kron(np.fft.fft(np.eye(4)), np.fft.fft(np.eye(3)))
    expected = np.sqrt(np.diagonal(fourier @ gram @ fourier.conj().T).real / 12).sum() ** 2 / 12
    assert np.sqrt(energies).sum() ** 2 / energies.size == pytest.approx(expected, rel=1e-9)
    strategy = fourier_strategy(energies, (4, 3)).rows
    inverse = np.linalg.pinv(strategy)
    assert np.trace(gram @ inverse @ inverse.T) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("data", "ways", "published"),
    [
        ("CPS", 1, 3.18), ("CPS", 2, 6.36), ("CPS", 3, 8.12), ("CPS", [1, 2, 3], 8.39),
        ("Adult", 1, 5.11), ("Adult", 2, 17.63), ("Adult", 3, 47.19), ("Adult", [1, 2, 3], 47.10),
    ],
)  # fmt: skip
def test_residual_planner_plus_as_published(data, ways, published):
    workload = _hybrid(data, ways)
    _, certificate = select_residual_planner_plus(workload, GAUSSIAN)
    assert _rmse(workload, certificate) == pytest.approx(published, rel=1e-3)
    assert certificate.lower_bound is None


@pytest.mark.parametrize(("pairs", "published"), [("prefix", 36.23), ("affine", 62.48), ("abs", 85.99)])
def test_residual_planner_plus_on_many_attributes(pairs, published):
    domain = mdp.Domain({f"a{i}": 10 for i in range(40)})
    second = mdp.kway(2, "prefix") if pairs == "prefix" else mdp.pairwise(pairs)
    workload = mdp.Workload(domain, mdp.kway(1, "prefix"), second)
    _, certificate = select_residual_planner_plus(workload, GAUSSIAN)
    assert _rmse(workload, certificate) == pytest.approx(published, rel=2e-4)


def test_residual_planner_plus_with_given_bases():
    """Published for a mix of ranges, affine queries and prefixes, measured in the basis made for prefixes."""
    prefix = np.tril(np.ones((10, 10)))
    centered = prefix - prefix.mean(axis=1, keepdims=True)
    basis = solve_gram(centered.T @ centered + 1.0).rows
    domain = mdp.Domain({f"a{i}": 10 for i in range(10)})
    workload = mdp.Workload(domain, mdp.kway(1, "range"), mdp.pairwise("affine"), mdp.kway(3, "prefix"))
    _, certificate = select_residual_planner_plus(workload, GAUSSIAN, dict.fromkeys(domain.names, basis))
    assert _rmse(workload, certificate) == pytest.approx(22.49, rel=5e-4)


def test_bases_as_an_option(tmp_path):
    workload = mdp.Workload(PAIR, mdp.kway(2, "prefix"))
    np.save(tmp_path / "b.npy", np.tril(np.ones((6, 6))))
    (tmp_path / "bases.yaml").write_text("bases: {a: identity, b: {matrix: b.npy}}")
    own = {"a": np.eye(9), "b": np.tril(np.ones((6, 6)))}
    expected = select_residual_planner_plus(workload, GAUSSIAN, own)[1].loss
    for bases in (own, {"a": "identity", "b": "prefix"}, tmp_path / "bases.yaml", f"{tmp_path}/bases.yaml"):
        found = mdp.select(workload, mechanism="residualplanner-plus", bases=bases).certificate.loss
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    "pairs",
    [
        [mdp.product({name: "prefix", "z": "identity"}) for name in "ab"],
        [mdp.dense(np.tril(np.ones((4, 12))), [name, "z"]) for name in "ab"],
    ],
    ids=["products", "explicit"],
)
def test_attributes_of_other_roles_keep_their_own_bases(pairs):
    """Where the same is asked of both in some marginals."""
    workload = mdp.Workload(mdp.Domain({"a": 4, "b": 4, "z": 3}), *pairs, mdp.product(b="range"))
    bases = {"a": np.tril(np.ones((4, 4))), "b": np.eye(4), "z": np.eye(3)}
    centred = {
        name: residual_basis(basis, np.full(len(basis.T), 1 / len(basis.T))) for name, basis in bases.items()
    }
    plan, _ = select_residual_planner_plus(workload, GAUSSIAN, bases)
    measured = [(block.attributes[0], block.matrix) for part in plan.parts for block in part.blocks]
    assert len([name for name, _ in measured if name in "ab"]) >= 4
    for name, matrix in measured:
        rows = np.array(matrix.written(), dtype=float)
        rows -= rows.mean(axis=1, keepdims=True)
        rows /= np.linalg.norm(rows, axis=0).max()
        assert rows.T @ rows == pytest.approx(centred[name].T @ centred[name], abs=1e-3)


def test_given_bases_against_brute_force():
    domain = mdp.Domain({"a": 4, "b": 3})
    basis = np.tril(np.ones((4, 4)))
    plan, certificate = select_residual_planner_plus(
        mdp.Workload(domain, mdp.kway([1, 2], "identity")), GAUSSIAN, {"a": basis}
    )
    centered = basis @ (np.eye(4) - 0.25)
    squared = centered.T @ centered
    one = np.trace(np.linalg.pinv(squared)) * squared.diagonal().max()
    other = 2.0 * 2.0 / 3.0
    # contracted identity queries weigh 1/n; each 1-way residual serves its own marginal and the pair's
    losses = [1 / 4 + 1 / 3 + 1 / 12, one * (1 + 1 / 3), other * (1 + 1 / 4), one * other]
    assert certificate.loss == pytest.approx(sum(math.sqrt(x) for x in losses) ** 2, rel=1e-9)
    assert plan.cost == pytest.approx(1.0, rel=1e-9)


def test_a_basis_keeps_its_gram_matrix():
    rng = np.random.default_rng(2)
    basis, w = rng.normal(size=(7, 5)), rng.dirichlet(np.ones(5))
    found = residual_basis(basis, w)
    assert found.shape == (4, 5)
    np.testing.assert_allclose(found @ w, 0.0, atol=1e-12)
    expected = basis @ (np.eye(5) - np.outer(w, np.ones(5)))
    gram = expected.T @ expected
    np.testing.assert_allclose(found.T @ found, gram / gram.diagonal().max(), atol=1e-12)
    assert fixed_factor(residual_basis(basis, w), gram).loss == pytest.approx(4 * gram.diagonal().max())


def test_residual_planner_is_optimal_on_marginals():
    domain = mdp.Domain({"a": 4, "b": 3, "c": 2})
    workload = mdp.Workload(domain, mdp.marginals(2), mdp.marginals(1, weight=2.5))
    plan, certificate = select_residual_planner(workload, GAUSSIAN)
    gram = np.zeros((24, 24))
    for group in workload:
        shape = [domain[n].size if n in group.attributes else 1 for n in domain.names]
        rows = np.broadcast_to(group.rows().reshape(-1, *shape), (group.queries, 4, 3, 2)).reshape(-1, 24)
        gram += group.weight * rows.T @ rows
    assert certificate.loss == pytest.approx(solve_gram(gram, gap=1e-9).loss, rel=1e-6)
    assert certificate.gap is not None
    assert certificate.gap < 1e-9
    assert _weighted(plan, workload) == pytest.approx(certificate.loss, rel=1e-9)
