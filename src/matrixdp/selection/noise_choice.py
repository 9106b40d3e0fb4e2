"""Which noise to select for, given a budget: the one with the narrowest intervals."""

from __future__ import annotations

import math

from matrixdp.noise import NOISES, Noise, natural_noise
from matrixdp.privacy import Budget
from matrixdp.selection.registry import mechanism_named

#: Of the intervals by which noises are compared: what releases report by default.
CONFIDENCE = 0.95
#: How much better joint noise has been for many queries, beside Gaussian noise, than for one of them.
_JOINT = 1.15


def noises_for(noise: Noise | None, budget: Budget | None, mechanism: str) -> tuple[tuple[Noise, ...], str]:
    """Return the noises to select for, and why.

    Examples
    --------
    >>> noises_for(None, Budget(epsilon=1), "auto")
    ((laplace,), 'the noise of pure differential privacy')
    """
    if noise is not None:
        return (noise,), "asked for"
    first = natural_noise(budget)
    if budget is None or budget.kind != "approx":
        return (first,), f"the noise of {first.known_for}"
    norms = (1, 2) if mechanism == "auto" else mechanism_named(mechanism).norms
    others = [other for other in NOISES.values() if other != first and other.norm in norms]
    if not others:
        return (first,), f"the noise of {mechanism}"
    # an L1 norm is at least the L2 norm: other noise can win only where one variable of it alone nearly does
    own = _alone(first, budget)
    better = [
        other
        for other in others
        if any(its < _JOINT * least for its, least in zip(_alone(other, budget), own, strict=True))
    ]
    if not better:
        names = " and ".join(other.title for other in others)
        return (first,), f"narrower intervals than {names} noise at this budget, whatever the strategy"
    return (first, *better), ""


def _alone(noise: Noise, budget: Budget) -> tuple[float, float]:
    """Return the standard error of a query of norm 1, and the half width of its interval."""
    return math.sqrt(noise.variance_factor / noise.error_scale(budget)), interval(
        noise.variance_factor, noise, budget
    )


def interval(loss: float, noise: Noise, budget: Budget) -> float:
    """Return the half width of 95 % intervals for a loss at cost 1, the root mean square or the largest.

    It is that which is wide enough for every answer with the noise, in the weighted objective.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, LAPLACE
    >>> [round(interval(4.0, noise, Budget(epsilon=1, delta=1e-6)), 2) for noise in (GAUSSIAN, LAPLACE)]
    [16.56, 4.34]
    """
    return noise.largest_quantile(CONFIDENCE) * math.sqrt(loss / noise.error_scale(budget))
