"""Which noises a strategy is made for, by the name that was asked for, and which of them it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matrixdp.noise import Noise, noise_named
from matrixdp.privacy import Budget, LeastBudget
from matrixdp.selection import Selection
from matrixdp.selection.noise_choice import interval, noises_for
from matrixdp.selection.targets import check_targets, least_budget

__all__ = ["possible_noises", "preferred"]


def possible_noises(noise: str, budget: Budget | None, mechanism: str) -> tuple[tuple[Noise, ...], str]:
    """Return the noises to select for by the name that was asked for, and why.

    Examples
    --------
    >>> possible_noises("auto", Budget(epsilon=1), "auto")[0], possible_noises("gaussian", None, "auto")[0]
    ((laplace,), (gaussian,))
    """
    return noises_for(None if noise == "auto" else noise_named(noise), budget, mechanism)


def preferred(
    selections: Sequence[Selection], budget: Budget, targets: Mapping[str, float] | None
) -> tuple[int, str]:
    """Return which of several selections is best at a budget, each for a noise of its own, and why.

    It has the narrowest intervals, or meets targets with the least epsilon.
    """
    if targets is None:
        what = "narrower intervals"
        values = [interval(one.certificate.loss, one.noise, budget) for one in selections]
    else:
        what, form, values = "less epsilon", LeastBudget.within(budget), []
        for one in selections:
            needed = least_budget(check_targets(one.workload, targets, one.analysis), one.noise, form)
            values.append(float(needed.epsilon or 0))
    best, other, *_ = sorted(range(len(values)), key=values.__getitem__)
    share = 100 * (1 - values[best] / values[other])
    return best, f"{share:.3g} % {what} than {selections[other].noise} noise"
