"""Which noises a strategy is made for, by the name that was asked for."""

from __future__ import annotations

from matrixdp.noise import Noise, noise_named
from matrixdp.privacy import Budget
from matrixdp.selection.noise_choice import noises_for

__all__ = ["possible_noises"]


def possible_noises(noise: str, budget: Budget | None, mechanism: str) -> tuple[tuple[Noise, ...], str]:
    """Return the noises to select for by the name that was asked for, and why.

    Examples
    --------
    >>> possible_noises("auto", Budget(epsilon=1), "auto")[0], possible_noises("gaussian", None, "auto")[0]
    ((laplace,), (gaussian,))
    """
    return noises_for(None if noise == "auto" else noise_named(noise), budget, mechanism)
