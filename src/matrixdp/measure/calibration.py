"""From a plan and a budget to exact noise scales, with the privacy cost recomputed exactly.

Nothing here trusts the optimizer: the (squared) sensitivity of each part is an exact integer, its noise scale
an exact rational, and their ratios are summed exactly (each rounded up in the 160th bit).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from matrixdp.errors import PrivacyError
from matrixdp.plan import Part, Plan

__all__ = ["NoiseScale", "calibrate", "plan_cost"]

#: The lattice step is chosen such that the scale in steps lies in [2^12, 2^13): rounding to the lattice
#: then adds less than 5e-9 of the variance.
_SCALE_BITS = 12
_FRACTION_BITS = 40
_COST_BITS = 160


@dataclass(frozen=True)
class NoiseScale:
    """Noise on the lattice of multiples of 2^power.

    Attributes
    ----------
    steps : Fraction
        The scale of the continuous noise in lattice steps, exact: the standard deviation of Gaussian
        noise, the parameter b of Laplace noise.
    power : int
        The lattice step is 2^power.
    noise : {"gaussian", "laplace"}
    """

    steps: Fraction
    power: int
    noise: str = "gaussian"

    @property
    def exact(self) -> Fraction:
        """The scale of the continuous noise in counts: what the privacy claim rests on."""
        return self.steps * Fraction(2) ** self.power

    @property
    def variance(self) -> float:
        """The variance of the released noise, rounding to the lattice included."""
        continuous = self.steps**2 if self.noise == "gaussian" else 2 * self.steps**2
        return float(continuous + Fraction(1, 12)) * 4.0**self.power


def _scale(part: Part, noise: str, cost: float, inflation: float) -> NoiseScale:
    at_unit = math.sqrt(part.variance / cost) if noise == "gaussian" else math.sqrt(part.variance / 2) / cost
    scale = at_unit * inflation
    if not (math.isfinite(scale) and scale > 0):
        raise PrivacyError(f"part {part.attributes}: noise scale {scale}; expected a finite number above 0")
    power = math.frexp(scale)[1] - 1 - _SCALE_BITS
    steps = Fraction(math.ceil(Fraction(scale) / Fraction(2) ** power * 2**_FRACTION_BITS), 2**_FRACTION_BITS)
    if steps < 1:
        raise PrivacyError(f"part {part.attributes}: the noise scale vanished in rounding")
    return NoiseScale(steps, power, noise)


def plan_cost(plan: Plan, scales: tuple[NoiseScale, ...]) -> Fraction:
    """Return the privacy cost of measuring a plan with given noise, or a bound above it.

    Gaussian: max diag(B' S^-1 B), the sum over parts of squared sensitivity over noise variance, which is
    mu squared. Laplace: the sum over parts of L1 sensitivity over noise scale, which is epsilon.

    Raises
    ------
    PrivacyError
        If a part has no noise or no sensitivity, or noise of another kind than the plan's.
    """
    total = 0
    for part, scale in zip(plan.parts, scales, strict=True):
        if scale.noise != plan.noise:
            raise PrivacyError(
                f"part {part.attributes}: {scale.noise} noise in a plan for {plan.noise} noise"
            )
        gaussian = plan.noise == "gaussian"
        sensitivity = part.squared_sensitivity if gaussian else part.sensitivity
        divisor = scale.exact**2 if gaussian else scale.exact
        if sensitivity < 1 or divisor <= 0:
            raise PrivacyError(f"part {part.attributes}: would be measured without noise")
        total += -((-sensitivity * divisor.denominator << _COST_BITS) // divisor.numerator)
    return Fraction(total, 1 << _COST_BITS)


def calibrate(plan: Plan, allowed: Fraction, max_records: int) -> tuple[tuple[NoiseScale, ...], Fraction]:
    """Return the noise scales with which measuring a plan costs at most ``allowed``, and the exact cost.

    Parameters
    ----------
    plan : Plan
        Its variances say how the noise is shared among the parts.
    allowed : Fraction
        The privacy cost allowed: mu^2 (twice rho) for Gaussian noise, epsilon for Laplace noise.
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
        scales = tuple(_scale(part, plan.noise, target, inflation) for part in plan.parts)
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
                "budget: so large that answers in units of the noise exceed 62 bits; a mu or epsilon above "
                "about 10,000 is no protection and is not supported"
            )
    return scales, cost
