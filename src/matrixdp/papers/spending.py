"""What mechanisms that choose by the table spent, as exact numbers from which the cost follows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Spent:
    """Noise that was drawn, or a choice that was made; it costs sensitivity / scale.

    Attributes
    ----------
    step : str
        Steps add up. Of those that are named alike the dearest counts: one record pays for one of them.
    sensitivity : Fraction
        How far one record that is added or removed moves the numbers that got noise, together, or a score.
    scale : Fraction
        Of Laplace noise; or of a choice by the exponential mechanism: a score s has the weight
        exp(s / (2 scale)).
    """

    step: str
    sensitivity: Fraction
    scale: Fraction


def cost_of(spent: Iterable[Spent]) -> Fraction:
    """Return the epsilon of one record that is added or removed.

    Examples
    --------
    >>> one, two = Fraction(1), Fraction(2)
    >>> cost_of([Spent("partition", one, two), Spent("partition", one, one), Spent("tree", one, two)])
    Fraction(3, 2)
    """
    steps: dict[str, Fraction] = {}
    for own in spent:
        steps[own.step] = max(steps.get(own.step, Fraction(0)), own.sensitivity / own.scale)
    return sum(steps.values(), Fraction(0))
