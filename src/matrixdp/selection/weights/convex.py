"""The best weights under Gaussian noise: a convex problem, solved to a certified gap."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.weights.incidence import WeightProblem

__all__ = ["convex_weights", "lower_bound"]

Array = NDArray[np.float64]

#: Multiplicative steps at most, and the relative gap at which they stop.
_STEPS, _GAP = 4_000, 1e-6


def lower_bound(problem: WeightProblem, measured: Array) -> float:
    """Return loss^2 / the steepest slope: below the loss of every u with sum 1.

    The loss is convex and of degree -1, so that loss(v) >= 2 loss(u) - slope . v for every v; scaled to where
    that is largest it is the bound.

    Examples
    --------
    >>> from matrixdp.selection.weights.incidence import incidence_of
    >>> problem = WeightProblem(incidence_of([()], [()]), np.ones(1), np.ones(1))
    >>> lower_bound(problem, np.ones(1))
    1.0
    """
    loss, slopes = problem.loss_and_slopes(measured)
    return loss * loss / float(slopes.max())


def convex_weights(problem: WeightProblem, costs: Array) -> Array:
    """Return the u_S with sum 1 and the least loss.

    ``costs`` are what a precision of 1 of each residual adds to the sum of the u_S: the product of s - 1 over
    its attributes, with identities the dimension of the residual space.

    References
    ----------
    McKenna et al., journal version, section 7 (Theorem 13 for the closed form).

    Examples
    --------
    >>> from matrixdp.selection.weights.incidence import incidence_of
    >>> incidence = incidence_of([(), (0,)], [(), (0,)])
    >>> problem = WeightProblem(incidence, np.array([0.25, 0.25]), np.array([1.0, 0.5]))
    >>> convex_weights(problem, np.ones(2)).tolist()
    [0.0, 1.0]
    """
    closed = _closed_form(problem, costs)
    return _multiplied(problem) if closed is None else closed


def _closed_form(problem: WeightProblem, costs: Array) -> Array | None:
    """Return the weights at which lambda_T is as if every residual could be weighted on its own.

    They minimize sum(delta / lambda) subject to the sensitivity in terms of lambda; they are a strategy where
    none of them is negative. None where one is.
    """
    incidence = problem.incidence
    wanted = np.sqrt(problem.weights / costs)
    wanted = wanted / float((wanted * costs).sum())
    # u_S kappa_S = sum over T that hold S of (-1)^(|T| - |S|) lambda_T, S among the residuals
    own = [incidence.place[residual] for residual in incidence.residuals]
    signs = np.array([(-1.0) ** len(residual) for residual in incidence.residuals])
    inside = incidence.holds[own].T.tocsr()
    found = signs * (inside @ (signs * wanted))
    # what is left of differences of equal numbers
    rounding = 1e-12 * (inside @ wanted)
    if bool((found < -rounding).any()):
        return None
    measured = np.zeros(len(incidence.marginals))
    measured[own] = np.where(found > rounding, found, 0.0) / problem.scales[own]
    measured = measured / float(measured.sum())
    return measured if np.isfinite(problem.loss(measured)) else None


def _multiplied(problem: WeightProblem) -> Array:
    """Minimize the loss over u >= 0 with sum 1 by multiplicative steps u <- u (slope / loss)^0.9.

    At the optimum the slope equals the loss wherever u > 0 and is below it elsewhere; what remains of the
    difference is the certified gap.
    """
    measured = np.full(len(problem.scales), 1.0 / len(problem.scales))
    loss = problem.loss(measured)
    for _ in range(_STEPS):
        loss, slopes = problem.loss_and_slopes(measured)
        ratios = slopes / loss
        if float(ratios.max()) <= 1.0 + _GAP:
            break
        measured = measured * ratios**0.9
        measured = measured / float(measured.sum())
    for negligible in (1e-6, 1e-9, 1e-12, 1e-15, 1e-18):
        kept = np.where(measured > negligible * measured.max(), measured, 0.0)
        kept = kept / float(kept.sum())
        if problem.loss(kept) <= loss * (1.0 + _GAP):
            return np.asarray(kept)
    return measured
