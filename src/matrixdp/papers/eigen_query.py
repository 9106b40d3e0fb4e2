"""The adaptive mechanism: weighted eigenvectors of the workload as queries."""

from __future__ import annotations

import numpy as np

from matrixdp.exact.linear import Array
from matrixdp.mechanisms import (
    Factor,
    best_factor,
    explicit_mechanism,
    spectrum_of,
)
from matrixdp.noise import Noise

MAX_CELLS = 2_048
_ITERATIONS = 20_000
_GAP = 1e-7


def design_weights(costs: Array, squares: Array, power: float) -> tuple[Array, float]:
    """Minimize sum(costs / u^power) over u > 0 with squares' u <= 1.

    The problem is convex. Prices p of the columns, with sum 1, give weights u in closed form; a price is
    multiplied by a root of how much of its column is used, until the weights, scaled to be feasible, are
    within the gap of the lower bound that the prices prove.

    Examples
    --------
    >>> u, bound = design_weights(np.array([1.0, 4.0]), np.ones((2, 1)), 1.0)
    >>> u.round(6).tolist(), round(bound, 6)  # shares proportional to the roots
    ([0.333333, 0.666667], 9.0)
    """
    prices = np.full(squares.shape[1], 1.0 / squares.shape[1])
    best, best_loss, bound = np.ones(len(costs)), np.inf, 0.0
    for _ in range(_ITERATIONS):
        charged = squares @ prices
        u = (power * costs / charged) ** (1.0 / (1.0 + power))
        # sum(costs / u^power) subject to charged' u <= 1 alone has its minimum along this u
        spent = float(charged @ u)
        loss = float((costs / u**power).sum())
        bound = max(bound, loss * spent**power)
        used = u @ squares
        peak = float(used.max())
        if loss * peak**power < best_loss:
            best, best_loss = u / peak, loss * peak**power
        if best_loss <= bound * (1.0 + _GAP):
            break
        prices = prices * (used / spent) ** (1.0 if power == 1.0 else 0.8)
        prices = np.maximum(prices / prices.sum(), 1e-300)
    return best, bound


@explicit_mechanism(
    "eigen-query",
    "Li and Miklau 2012: weighted eigenvectors (the adaptive mechanism)",
    (1, 2),
    MAX_CELLS,
    "no bound: optimal among weighted eigenvectors alone",
)
def eigen_factor(gram: Array, noise: Noise) -> Factor:
    """Return the eigenvectors of a Gram matrix as queries, their weights optimal, columns completed.

    References
    ----------
    Li, Miklau: An adaptive mechanism for accurate query answering under differential privacy, PVLDB 2012,
    section 3 (the Eigen-Design algorithm: weighting the eigen-queries, completing deficient columns).

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> gram = np.tri(8) @ np.tri(8).T
    >>> bool(eigen_factor(gram, GAUSSIAN).loss < np.trace(gram))
    True
    """
    spectrum = spectrum_of(gram)
    if noise.norm == 2:
        squared, _ = design_weights(spectrum.values, spectrum.vectors**2, 1.0)
        weights = np.sqrt(squared)
    else:
        weights, _ = design_weights(spectrum.values, np.abs(spectrum.vectors), 2.0)
    return best_factor([weights[:, None] * spectrum.vectors], gram, noise)
