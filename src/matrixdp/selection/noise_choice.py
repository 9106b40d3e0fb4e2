"""Which noise to select for, given a budget."""

from __future__ import annotations

from matrixdp.privacy import Budget
from matrixdp.selection.table import mechanism_named

__all__ = ["noises_for"]


def noises_for(noise: str, budget: Budget | None, mechanism: str) -> tuple[tuple[str, ...], str]:
    """Return the kinds of noise to select for, and why.

    Parameters
    ----------
    noise : str
        ``auto``, or a kind.
    budget : Budget or None
        What will be spent, if it is known.
    mechanism : str
        Which may select for one kind alone.

    Examples
    --------
    >>> noises_for("auto", Budget(epsilon=1), "auto")[0]
    ('laplace',)
    """
    if noise != "auto":
        return (noise,), "asked for"
    if budget is None or budget.kind in ("rho", "mu"):
        return ("gaussian",), "the noise of zCDP and Gaussian differential privacy"
    if budget.kind == "pure":
        return ("laplace",), "the noise of pure differential privacy"
    if mechanism != "auto" and "laplace" not in mechanism_named(mechanism).noises:
        return ("gaussian",), f"the noise of {mechanism}"
    # an L1 norm is at least the L2 norm: Laplace noise can win only where its scale alone is smaller
    if 2.0 / budget.error_scale("laplace") >= 1.0 / budget.error_scale("gaussian"):
        return ("gaussian",), "less error than Laplace noise at this budget, whatever the strategy"
    return ("gaussian", "laplace"), ""
