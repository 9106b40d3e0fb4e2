"""COA: its Newton steps against a dense Hessian, its descent, and its homotopy."""

from itertools import islice, pairwise

import numpy as np
import pytest

from matrixdp.noise import GAUSSIAN
from matrixdp.papers import coa
from matrixdp.papers.coa import Newton, newton_factor, newton_iterates
from matrixdp.selection.gram import solve_gram

#: Of rank 3 over 9 cells.
MIXING = np.random.default_rng(4).standard_normal((3, 9))
SINGULAR = MIXING.T @ MIXING


def test_directions_solve_the_newton_system_with_a_zero_diagonal():
    random = np.random.default_rng(1)
    n = 5
    gram = np.tri(n).T @ np.tri(n)
    root = random.standard_normal((n, n))
    x = root @ root.T + n * np.eye(n)
    x /= np.sqrt(np.outer(np.diag(x), np.diag(x)))
    inverse = np.asarray(np.linalg.inv(x), dtype=np.float64)
    image = inverse @ gram @ inverse
    hessian = np.kron(image, inverse) + np.kron(inverse, image)
    free = ~np.eye(n, dtype=bool).ravel()
    expected = np.zeros(n * n)
    expected[free] = np.linalg.solve(hessian[np.ix_(free, free)], image.ravel()[free])
    descent = image * ~np.eye(n, dtype=bool)
    found = coa._direction(inverse, image, descent.copy(), 40)
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-9)
    assert np.abs(coa._direction(inverse, image, descent, 2).ravel() - expected).max() > 1e-4


@pytest.mark.parametrize("gram", [np.tri(12).T @ np.tri(12), SINGULAR], ids=["prefix", "singular"])
def test_the_objective_falls_over_matrices_with_unit_diagonal(gram):
    points = list(islice(newton_iterates(gram, 1e-3), 25))
    assert points[0].objective == pytest.approx(np.trace(gram) + 1e-3 * len(gram))
    for before, after in pairwise(points):
        assert after.objective < before.objective
        np.testing.assert_allclose(np.diag(after.matrix), 1.0)
        assert np.linalg.eigvalsh(after.matrix)[0] > 0
        ridged = gram + 1e-3 * np.eye(len(gram))
        assert after.objective == pytest.approx(np.trace(np.linalg.solve(after.matrix, ridged)))
        gradient = -after.inverse @ ridged @ after.inverse
        np.fill_diagonal(gradient, 0.0)
        assert after.optimality == pytest.approx(np.linalg.norm(gradient), rel=1e-6)


def test_the_homotopy_is_nearer_the_optimum_of_a_singular_workload():
    optimum = solve_gram(SINGULAR).loss
    plain = newton_factor(SINGULAR, GAUSSIAN)
    homotopy = newton_factor(SINGULAR, GAUSSIAN, Newton(homotopy="yes"))
    assert optimum * (1 - 1e-6) < homotopy.loss < 1.01 * optimum
    assert plain.loss > homotopy.loss
    # theta is absolute: larger queries are hindered less by it
    scaled = newton_factor(100.0 * SINGULAR, GAUSSIAN, Newton(tolerance=1e-9)).loss / 100.0
    assert scaled < newton_factor(SINGULAR, GAUSSIAN, Newton(tolerance=1e-9)).loss


def test_iterations_and_tolerance_end_a_descent():
    gram = np.tri(16).T @ np.tri(16)
    losses = [
        newton_factor(gram, GAUSSIAN, given).loss
        for given in (Newton(iterations=1), Newton(tolerance=0.05), Newton(), Newton(tolerance=1e-9))
    ]
    assert losses == sorted(losses, reverse=True)
    assert losses[0] > losses[1] > losses[3]
    first = list(islice(newton_iterates(gram, 1e-3), 2))[1]
    assert losses[0] == pytest.approx(np.trace(first.inverse @ gram))
