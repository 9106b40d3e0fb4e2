"""The matrix mechanism's own examples, approximations and theorems (Li et al. 2010)."""

import math

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.papers.matrix_mechanism import Approximation, l2_factor, singular_value_factor
from matrixdp.selection.auto import select
from matrixdp.selection.compose.svd_bound import svd_bound_workload
from matrixdp.selection.gram import solve_gram
from matrixdp.testing import dense_measurement

#: Figure 1.
H4 = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4).tolist()])
Y4 = np.array([[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]], dtype=float)
RNG = np.random.default_rng(7)
WORKLOADS = {
    "prefix": np.tri(7),
    "ranges": np.array([[float(a <= v <= b) for v in range(6)] for a in range(6) for b in range(a, 6)]),
    "predicates": (RNG.random((9, 6)) < 0.5).astype(float),
    "few": RNG.standard_normal((3, 6)),
}


def asking(rows: np.ndarray) -> mdp.Workload:
    return mdp.Workload(mdp.Domain({"a": rows.shape[1]}), mdp.dense(rows, ["a"]))


def measured(name: str, size: int) -> np.ndarray:
    workload = mdp.Workload(mdp.Domain({"a": range(size)}), mdp.product(a="range"))
    [part] = select(workload, mechanism=name, noise=LAPLACE).plan.parts
    return dense_measurement(part, workload.domain)


def l1(rows: np.ndarray) -> float:
    return float(np.abs(rows).sum(axis=0).max())


@pytest.mark.parametrize(("name", "figure"), [("hierarchical", H4), ("wavelet", Y4)])
def test_trees_and_wavelets_are_those_of_figure_1(name, figure):
    rows = measured(name, 4)
    assert l1(rows) == 3  # example 2
    assert sorted(map(tuple, rows)) == sorted(map(tuple, figure))


@pytest.mark.parametrize("solve", [l2_factor, singular_value_factor])
@pytest.mark.parametrize("kind", WORKLOADS)
def test_approximations_are_as_published_and_keep_their_bound(solve, kind):
    """Theorem 4.13 with Q = I (theorem 5.23), problems 5.19 and 5.24, theorems 5.20, 5.25 and 5.26."""
    gram = WORKLOADS[kind].T @ WORKLOADS[kind]
    size = len(gram)
    rows = solve(gram, LAPLACE).rows
    assert np.allclose(rows @ rows.T, np.diag(np.diagonal(rows @ rows.T)), atol=1e-7)  # D P'
    profile = rows.T @ rows
    if solve is singular_value_factor:
        values, vectors = np.linalg.eigh(gram)
        chosen = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    else:
        design = solve_gram(gram, gap=1e-6).rows
        chosen = design.T @ design
    assert np.allclose(profile / np.trace(profile), chosen / np.trace(chosen), atol=1e-6)
    found = solve(gram, LAPLACE)
    assert l1(rows) == pytest.approx(1)
    assert found.loss == pytest.approx(np.trace(gram @ np.linalg.pinv(profile)), rel=1e-6)
    # every strategy's L1 sensitivity is at least its L2 sensitivity
    least = solve_gram(gram, gap=1e-6).bound
    assert found.bound <= least * (1 + 1e-6)
    assert found.loss <= size * found.bound * (1 + 1e-5)


@pytest.mark.parametrize("kind", WORKLOADS)
def test_singular_values_alone_prove_the_svd_bound(kind):
    workload = asking(WORKLOADS[kind])
    for noise in (LAPLACE, GAUSSIAN):
        certificate = select(workload, mechanism="singular-value", noise=noise).certificate
        assert certificate.lower_bound == pytest.approx(noise.variance_factor * svd_bound_workload(workload))


def test_other_roots_and_more_rows_help():
    gram = np.tri(7).T @ np.tri(7)
    for solve in (l2_factor, singular_value_factor):
        losses = {
            (root, augment): solve(gram, LAPLACE, Approximation(root, augment)).loss
            for root in ("spectral", "symmetric", "triangular", "best")
            for augment in ("no", "yes")
        }
        assert losses["best", "no"] == min(loss for (_, augment), loss in losses.items() if augment == "no")
        assert losses["best", "no"] < losses["spectral", "no"]
        assert all(losses[root, "yes"] <= losses[root, "no"] for root, _ in losses)
        assert losses["spectral", "yes"] < 0.99 * losses["spectral", "no"]


@pytest.mark.parametrize("size", [8, 32])
def test_trees_and_wavelets_are_within_a_factor_of_two(size):
    """Theorem 6.29 and table 1: equal sensitivities, and eigenvalues whose ratios are within 1/2 and 2."""
    tree, haar = measured("hierarchical", size), measured("wavelet", size)
    levels = round(math.log2(size))
    assert l1(tree) == l1(haar) == levels + 1
    ratios = np.linalg.eigvals(np.linalg.solve(tree.T @ tree, haar.T @ haar)).real
    expected = [2**j / (2**j - 1) for j in range(1, levels + 1) for _ in range(size >> j)]
    expected.append(size / (2 * size - 1))
    assert np.allclose(np.sort(ratios), np.sort(expected))
    assert 0.5 <= ratios.min() <= ratios.max() <= 2 + 1e-9
