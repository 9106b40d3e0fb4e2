"""Which noise to select for, given a budget."""

from __future__ import annotations

from matrixdp.noise import NOISES, Noise, natural_noise
from matrixdp.privacy import Budget
from matrixdp.selection.mechanisms.table import mechanism_named

__all__ = ["noises_for"]


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
    # an L1 norm is at least the L2 norm: another noise can win only where its scale alone is smaller
    own = first.variance_factor / first.error_scale(budget)
    better = [other for other in others if other.variance_factor / other.error_scale(budget) < own]
    if not better:
        names = " and ".join(other.title for other in others)
        return (first,), f"less error than {names} noise at this budget, whatever the strategy"
    return (first, *better), ""
