"""From a plan and a budget to exact noise scales, with the privacy cost recomputed exactly.

Nothing here trusts the optimizer: the squared sensitivity of each part is an exact integer, its noise scale
an exact rational, and their ratios are summed exactly (each rounded up in the 160th bit).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from matrixdp.errors import PrivacyError
from matrixdp.strategy import Part, Plan

__all__ = ["NoiseScale", "calibrate", "plan_cost"]

#: The lattice step is chosen such that the scale in steps lies in [2^12, 2^13): rounding to the lattice
#: then adds less than 5e-9 of the variance.
_SCALE_BITS = 12
_FRACTION_BITS = 40
_COST_BITS = 160


@dataclass(frozen=True)
class NoiseScale:
    """Gaussian noise on the lattice of multiples of 2^power.

    Attributes
    ----------
    steps : Fraction
        The standard deviation of the continuous noise in lattice steps, exact.
    power : int
        The lattice step is 2^power.
    """

    steps: Fraction
    power: int

    @property
    def squared(self) -> Fraction:
        """The variance of the continuous noise: what the privacy claim rests on."""
        step = Fraction(2) ** self.power
        return self.steps**2 * step**2

    @property
    def variance(self) -> float:
        """The variance of the released noise, rounding to the lattice included."""
        return float(self.steps**2 + Fraction(1, 12)) * 4.0**self.power


def _scale(part: Part, cost: float, inflation: float) -> NoiseScale:
    sigma = math.sqrt(part.variance / cost) * inflation
    if not (math.isfinite(sigma) and sigma > 0):
        raise PrivacyError(f"part {part.attributes}: noise scale {sigma}; expected a finite number above 0")
    power = math.frexp(sigma)[1] - 1 - _SCALE_BITS
    steps = Fraction(math.ceil(Fraction(sigma) / Fraction(2) ** power * 2**_FRACTION_BITS), 2**_FRACTION_BITS)
    if steps < 1:
        raise PrivacyError(f"part {part.attributes}: the noise scale vanished in rounding")
    return NoiseScale(steps, power)


def plan_cost(plan: Plan, scales: tuple[NoiseScale, ...]) -> Fraction:
    """Return the privacy cost of measuring a plan with given noise: max diag(B' S^-1 B), or a bound above.

    The cost of parts adds up; each part's is its squared sensitivity over its noise variance.

    Raises
    ------
    PrivacyError
        If a part has no noise or no sensitivity.
    """
    total = 0
    for part, scale in zip(plan.parts, scales, strict=True):
        sensitivity = part.squared_sensitivity
        squared = scale.squared
        if sensitivity < 1 or squared <= 0:
            raise PrivacyError(f"part {part.attributes}: would be measured without noise")
        total += -((-sensitivity * squared.denominator << _COST_BITS) // squared.numerator)
    return Fraction(total, 1 << _COST_BITS)


def calibrate(plan: Plan, allowed: Fraction, max_records: int) -> tuple[tuple[NoiseScale, ...], Fraction]:
    """Return the noise scales with which measuring a plan costs at most ``allowed``, and the exact cost.

    Parameters
    ----------
    plan : Plan
        Its variances say how the noise is shared among the parts.
    allowed : Fraction
        The privacy cost allowed (mu^2, twice rho).
    max_records : int
        Public bound on the number of records, for the range of the lattice.

    Raises
    ------
    PrivacyError
        If ``allowed`` is not positive, or so large that answers would leave 62-bit integers.

    Examples
    --------
    >>> from fractions import Fraction
    >>> import matrixdp as mdp
    >>> from matrixdp.selection import select
    >>> plan = select(mdp.Workload(mdp.Domain({"a": 4}), mdp.marginals(1))).plan
    >>> scales, cost = calibrate(plan, Fraction(1, 4), 2**33)
    >>> cost <= Fraction(1, 4), float(cost) > 0.2499999
    (True, True)
    """
    if not isinstance(allowed, Fraction) or allowed <= 0:
        raise PrivacyError(f"privacy cost allowed: found {allowed}; expected an exact number above 0")
    target = float(allowed)
    if not (math.isfinite(target) and target > 0):
        raise PrivacyError(f"privacy cost allowed: {target} leaves floating-point range")
    inflation = 1.0
    for attempt in range(60):
        scales = tuple(_scale(part, target, inflation) for part in plan.parts)
        cost = plan_cost(plan, scales)
        if cost <= allowed:
            break
        inflation = 1.0 + 2.0 ** (attempt - 50)
    else:
        raise PrivacyError("the plan's shares of the noise do not fit its sensitivities")
    for part, scale in zip(plan.parts, scales, strict=True):
        largest = Fraction(part.max_entry * max_records) / Fraction(2) ** scale.power
        if largest + 64 * scale.steps >= 2**61:
            raise PrivacyError(
                "budget: so large that answers in units of the noise exceed 62 bits; mu above about 10,000 "
                "is no protection and is not supported"
            )
    return scales, cost
