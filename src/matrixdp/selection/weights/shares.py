"""The best shares of epsilon for given measured marginals under Laplace noise."""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.selection.weights.incidence import WeightProblem

__all__ = ["balanced", "polished", "shares_loss"]

Array = NDArray[np.float64]

#: Shares lie within this factor of the start's largest.
_LEAST = 1e-9


def shares_loss(problem: WeightProblem, shares: Array) -> float:
    """Return the loss at cost 1 of shares of any sum: precisions are their squares.

    Examples
    --------
    >>> from matrixdp.selection.weights.incidence import incidence_of
    >>> problem = WeightProblem(incidence_of([()], [()]), np.ones(1), np.ones(1))
    >>> shares_loss(problem, np.array([3.0]))
    1.0
    """
    total = float(shares.sum())
    return problem.loss(shares * shares) * total * total


def polished(
    problem: WeightProblem, shares: Array, iterations: int = 1_000, tolerance: float = 1e-9
) -> tuple[float, Array]:
    """Return the loss and the best shares near given ones, each of which stays above 0; their sum is 1.

    Over logarithms the loss is smooth and of degree 0, so that the search has no constraints.

    Examples
    --------
    >>> from matrixdp.selection.weights.incidence import incidence_of
    >>> incidence = incidence_of([(0,), (1,)], [(), (0,), (1,)])
    >>> problem = WeightProblem(incidence, np.array([0.0, 8.0, 1.0]), np.ones(2))
    >>> loss, shares = polished(problem, np.ones(2))
    >>> round(loss, 6), round(float(shares[0] / shares[1]), 3)  # cube roots: (2 + 1)^3
    (27.0, 2.0)
    """
    first = np.log(shares / float(shares.sum()))
    holds, held, scales = problem.incidence.holds, problem.incidence.held, problem.scales
    asked = problem.asked
    weights = problem.weights[asked]
    holds, held = holds[:, asked], held[asked]

    def objective(logarithms: Array) -> tuple[float, Array]:
        theta = np.exp(logarithms)
        measured = theta * theta * scales
        ratios = weights / (held @ measured)
        loss, total = float(ratios.sum()), float(theta.sum())
        slopes = measured * (holds @ (ratios * ratios / weights))
        return math.log(loss) + 2.0 * math.log(total), 2.0 * theta / total - 2.0 / loss * slopes

    found = scipy.optimize.minimize(
        objective,
        first,
        jac=True,
        method="L-BFGS-B",
        bounds=[(math.log(_LEAST), 1.0)] * len(first),
        options={
            "maxiter": iterations,
            "maxfun": 2 * iterations,
            "ftol": tolerance,
            "gtol": 1e-10,
            "maxcor": 20,
        },
    )
    theta = np.exp(found.x)
    theta = theta / float(theta.sum())
    return shares_loss(problem, theta), theta


def balanced(problem: WeightProblem, order: NDArray[np.intp]) -> Array:
    """Return the best shares if every residual is estimated from one marginal alone, the first in an order.

    They are proportional to the cube root of what is left for each marginal.
    """
    left = problem.weights.copy()
    shares = np.zeros(len(problem.scales))
    holds = problem.incidence.holds
    for place in order:
        own = holds.indices[holds.indptr[place] : holds.indptr[place + 1]]
        shares[place] = float(left[own].sum()) / float(problem.scales[place])
        left[own] = 0.0
    return np.cbrt(shares)
