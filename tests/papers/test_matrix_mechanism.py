"""The matrix mechanism's own examples, approximations, programs and theorems (Li et al. 2010)."""

import math
import sys

import numpy as np
import pytest
from workload_families import every_predicate

import matrixdp as mdp
from matrixdp.errors import NumericalError, WorkloadError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.papers.matrix_mechanism import Approximation, l2_factor, singular_value_factor
from matrixdp.papers.matrix_programs import (
    MinError,
    MinSensitivity,
    error_factor,
    least_sensitivity,
    sensitivity_factor,
)
from matrixdp.papers.semidefinite import Program
from matrixdp.selection.auto import select
from matrixdp.selection.bounds.lower_bound import svd_bound_workload
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


OTHER = np.random.default_rng(3)


@pytest.mark.parametrize("rows", [np.tri(6), OTHER.standard_normal((9, 5)), OTHER.standard_normal((2, 5))])
def test_the_l2_program_and_its_dual_agree(rows):
    gram = rows.T @ rows
    found, dual = error_factor(gram, GAUSSIAN), solve_gram(gram, gap=1e-7)
    assert found.loss == pytest.approx(dual.loss, rel=1e-5)
    assert found.bound <= found.loss


@pytest.mark.parametrize(("rows", "printed", "known"), [(H4, 2.896, 2.5804), (Y4, 2.210, 2.0)])
def test_rotations_reach_less_than_figure_4(rows, printed, known):
    found = least_sensitivity(rows)
    assert np.allclose(found.T @ found, rows.T @ rows, atol=1e-9)
    assert math.sqrt(3) <= l1(found) <= known + 1e-4 < printed


@pytest.mark.parametrize("rows", [np.array([[1.0, 1.0], [0.0, 0.5]]), np.array([[3.0, 3.0], [1.0, -1.0]])])
def test_least_error_of_two_cells_is_that_of_exhaustive_search(rows):
    gram = rows.T @ rows
    shares = np.linspace(0.0, 1.0, 201)
    first, second, sign = np.meshgrid(shares, shares, [-1.0, 1.0], indexing="ij")
    # columns (a, 1 - a) and (b, +-(1 - b)): the signs of rows and of a column are free
    determinant = first * sign * (1 - second) - (1 - first) * second
    inverse = np.array([[sign * (1 - second), -second], [first - 1, first]])
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = inverse / determinant
        losses = np.einsum("iaxyz,ij,jaxyz->xyz", inverse, gram, inverse)
    found = error_factor(gram, LAPLACE)
    assert l1(found.rows) == pytest.approx(1)
    assert found.bound <= found.loss <= np.nanmin(losses) * 1.002


def test_signed_strategies_are_better_than_noise_on_cells_and_more():
    rows = np.array([*np.eye(4), [4, -4, 4, -4]])
    gram = rows.T @ rows
    found = error_factor(gram, LAPLACE, MinError(restarts=0))
    assert found.bound < found.loss < 0.9 * np.trace(gram)
    assert found.loss == pytest.approx(np.trace(gram @ np.linalg.inv(found.rows.T @ found.rows)))
    longer = error_factor(gram, LAPLACE, MinError(rows=6, restarts=0))
    assert longer.rows.shape == (6, 4)
    assert longer.loss <= np.trace(gram) * (1 + 1e-9)


def test_the_profile_of_an_approximation_is_kept():
    gram = np.tri(4).T @ np.tri(4)
    kept = singular_value_factor(gram, LAPLACE)
    found = sensitivity_factor(gram, LAPLACE, MinSensitivity("singular-value", restarts=1))
    profiles = [rows.T @ rows / np.trace(rows.T @ rows) for rows in (kept.rows, found.rows)]
    assert np.allclose(profiles[0], profiles[1], atol=1e-7)
    assert found.loss < 0.9 * kept.loss
    assert found.bound == kept.bound


def test_without_the_solver_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    with pytest.raises(WorkloadError, match=r"no Clarabel.*\[sdp\]"):
        Program()


def test_what_cannot_hold_is_refused():
    program = Program()
    [x] = program.variables(1)
    program.positive(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[x, -1], [-1, -1]]))
    with pytest.raises(NumericalError, match="no solution"):
        program.minimize(np.ones(1))


@pytest.mark.parametrize(
    ("name", "expected"), [("hierarchical", H4), ("wavelet", Y4), ("identity", np.eye(4))]
)
def test_total_errors_of_all_predicates_have_a_closed_form(name, expected):
    """Proposition 4.4 for W_01: 2 sensitivity^2 (tr M + 1'M1) / 4 on average, M the error profile."""
    workload = mdp.Workload(mdp.Domain({"a": range(4)}), every_predicate("a"))
    profile = np.linalg.inv(expected.T @ expected)
    found = select(workload, mechanism=name, noise=LAPLACE).weighted_squared_error
    assert found == pytest.approx(2 * l1(expected) ** 2 * (np.trace(profile) + profile.sum()) / 4, rel=1e-9)
