"""The likeliest non-negative table with given sums, compared with a general solver."""

from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

from matrixdp.model.transport import Directions, balanced, centered_basis, nearest, rounded

ROWS, COLUMNS = np.array([30.0, 8.0, 0.0, 2.0]), np.array([25.0, 12.0, 3.0])
START = np.multiply.outer(ROWS, COLUMNS) / ROWS.sum()
RANDOM = np.random.default_rng(5)
TARGET = RANDOM.normal(size=(4, 3)) * 6 + START
SUMS = np.vstack([np.kron(np.eye(4), np.ones(3)), np.kron(np.ones(4), np.eye(3))])
ALLOWED = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1], [1, 1, 0]], dtype=bool)


def solved(metric: Any, allowed: Any) -> Any:
    """What a general solver finds, which is given gradients and bounds and nothing else."""
    free = SUMS @ START.ravel()
    known: dict[str, Any] = {
        "jac": lambda x: metric @ (x - TARGET.ravel()),
        "bounds": [(0, None if cell else 0) for cell in allowed.ravel()],
        "constraints": LinearConstraint(SUMS[:-1], free[:-1], free[:-1]),
        "options": {"gtol": 1e-9, "xtol": 1e-12, "maxiter": 3000},
    }

    def loss(x: Any) -> float:
        return float(0.5 * (x - TARGET.ravel()) @ metric @ (x - TARGET.ravel()))

    found: Any = minimize(loss, START.ravel(), method="trust-constr", **known)
    return found.x.reshape(START.shape)


def directions(metrics):
    bases, curved = [], []
    for metric in metrics:
        basis = centered_basis(len(metric))
        values, turned = np.linalg.eigh(basis.T @ metric @ basis)
        bases.append(basis @ turned)
        curved.append(values)
    return Directions(tuple(bases), np.multiply.outer(*curved))


@pytest.mark.parametrize("allowed", [np.ones_like(ALLOWED), ALLOWED], ids=["all cells", "some cells"])
@pytest.mark.parametrize("kind", ["white", "by axes", "bounded"])
def test_the_table_is_that_of_a_general_solver(kind, allowed):
    prefixes = [np.tril(np.ones((size, size))) for size in START.shape]
    metrics = [
        np.eye(size) if kind == "white" else own.T @ own
        for size, own in zip(START.shape, prefixes, strict=True)
    ]
    metric = np.kron(*metrics)
    largest = float(np.linalg.norm(metric, 2))
    chosen = {
        "white": Directions(None, 1.0),
        "by axes": directions(metrics),
        "bounded": Directions(None, largest, exact=False),
    }[kind]
    # a start that fits the allowed cells has the same sums
    start = START if allowed.all() else balanced(np.where(allowed, START, 0.0), ROWS, COLUMNS)
    found = nearest(start, lambda x: (metric @ (x - TARGET).ravel()).reshape(x.shape), chosen, allowed)
    expected = solved(metric, allowed)
    assert (found >= 0).all()
    assert (found[~allowed] == 0).all()

    def loss(x):
        return 0.5 * (x - TARGET).ravel() @ metric @ (x - TARGET).ravel()

    assert loss(found) == pytest.approx(loss(expected), rel=2e-3)
    assert abs(found.sum(axis=1) - ROWS).max() < 0.05
    assert abs(found.sum(axis=0) - COLUMNS).max() < 0.05


def test_sums_are_exact_after_rounding_and_zeros_stay():
    held = np.maximum(TARGET, 0.0)
    for made in (rounded(held, ROWS, COLUMNS), rounded(np.zeros((4, 3)), ROWS, COLUMNS)):
        assert (made >= 0).all()
        np.testing.assert_allclose(made.sum(axis=1), ROWS, atol=1e-12)
        np.testing.assert_allclose(made.sum(axis=0), COLUMNS, atol=1e-12)
    exact = balanced(START, ROWS, COLUMNS)
    np.testing.assert_array_equal(rounded(exact, exact.sum(axis=1), exact.sum(axis=0)), exact)


def test_further_sums_are_kept_too():
    basis = centered_basis(5, np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]))
    assert basis.shape == (5, 3)
    np.testing.assert_allclose(basis[:2].sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
