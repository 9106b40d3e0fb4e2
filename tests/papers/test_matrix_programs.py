"""The programs of least error and of least sensitivity (Li et al. 2010, programs 5.1, 5.2 and 5.3)."""

import math
import sys

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.errors import NumericalError, WorkloadError
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.papers.every_predicate import every_predicate
from matrixdp.papers.matrix_mechanism import singular_value_factor
from matrixdp.papers.matrix_programs import (
    MinError,
    MinSensitivity,
    error_factor,
    least_sensitivity,
    sensitivity_factor,
)
from matrixdp.papers.semidefinite import Program
from matrixdp.selection.auto import select
from matrixdp.selection.gram import solve_gram
from tests.papers.test_matrix_mechanism import H4, Y4, l1

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("rows", [np.tri(6), RNG.standard_normal((9, 5)), RNG.standard_normal((2, 5))])
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
    with pytest.raises(WorkloadError, match=r"no Clarabel.*matrixdp\[sdp\]"):
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
