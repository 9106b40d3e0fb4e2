"""From a plan and a budget to exact noise scales, with the privacy cost recomputed exactly.

Nothing here trusts the optimizer: the (squared) sensitivity of each part is an exact integer, its noise scale
an exact rational, and their ratios are summed exactly (each rounded up in the 160th bit).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError
from matrixdp.noise import Cost, Noise
from matrixdp.plan import Part, Plan

__all__ = [
    "DEFAULT_MAX_RECORDS",
    "SCALE_BITS",
    "NoiseScale",
    "calibrate",
    "check_entries",
    "check_range",
    "left_for_counts",
    "plan_cost",
]

#: The lattice step is chosen such that the scale in steps lies in [2^12, 2^13): rounding to the lattice
#: then adds less than 5e-9 of the variance.
SCALE_BITS = 12
#: Public bound on the number of records: it decides how wide exact integers are, never a result.
DEFAULT_MAX_RECORDS = 2**33
_FRACTION_BITS = 40
_LARGEST_COST = 1 << 1000
#: What an exact cost is a multiple of: 2 to the minus this.
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
    noise : Noise
    """

    steps: Fraction
    power: int
    noise: Noise

    @classmethod
    def at_least(cls, scale: Fraction, power: int, noise: Noise) -> NoiseScale:
        """Return noise of a scale on a lattice, rounded up in the 40th bit of a step."""
        steps = math.ceil(scale / Fraction(2) ** power * 2**_FRACTION_BITS)
        return cls(Fraction(steps, 2**_FRACTION_BITS), power, noise)

    @property
    def exact(self) -> Fraction:
        """The scale of the continuous noise in counts: what the privacy claim rests on."""
        return self.steps * Fraction(2) ** self.power

    @property
    def variance(self) -> float:
        """The variance of the released noise, rounding to the lattice included."""
        continuous = Fraction(self.noise.variance_factor) * self.steps**2
        return float(continuous + Fraction(1, 12)) * 4.0**self.power


def _scale(part: Part, noise: Noise, cost: float, inflation: float) -> NoiseScale:
    scale = noise.scale(part.variance, cost) * inflation
    if not (math.isfinite(scale) and scale > 0):
        raise PrivacyError(f"part {part.attributes}: noise scale {scale}; expected a finite number above 0")
    return NoiseScale.at_least(Fraction(scale), math.frexp(scale)[1] - 1 - SCALE_BITS, noise)


def plan_cost(
    plan: Plan,
    scales: tuple[NoiseScale, ...],
    neighbours: str = "add_remove",
    outside: Cost | None = None,
) -> Cost:
    """Return the privacy cost of measuring a plan with given noise, or a bound just above it.

    It is that of one record added or removed; under ``replace`` that of each of the two records that are
    exchanged, which together move the answers twice as far. ``outside`` is what a record out of domain costs
    where these are counted.

    Raises
    ------
    PrivacyError
        If a part has no noise or no sensitivity, or noise of another kind than the plan's.
    """
    for scale in scales:
        plan.noise.check_same(scale.noise)
    noise, exact = plan.noise, [scale.exact for scale in scales]
    cost = noise.exact_cost(zip(plan.parts, exact, strict=True))
    alone = cost if outside is None or outside <= cost else outside
    if neighbours == "add_remove":
        return alone
    # a record out of domain moves other rows than one in it, so that their costs add up
    columns = _largest(plan.moves[0], scales) + (0 if outside is None else outside.value)
    between = max(columns, _largest(plan.moves[1], scales))
    return Cost(min(between / 2**noise.norm, alone.value), noise)


def left_for_counts(plan: Plan, scales: tuple[NoiseScale, ...], cost: Cost, neighbours: str) -> Cost:
    """Return what a record out of domain may cost where a plan with given noise costs so much.

    Examples
    --------
    A replacement of 2 by a record out of domain costs what the first moves, 1, and what the second does.

    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 4}), mdp.marginals(1))
    >>> plan = mdp.select(workload, neighbours="replace").selection.plan
    >>> budget = mdp.Budget(mu=1, neighbours="replace")
    >>> scales, cost = calibrate(plan, GAUSSIAN.cost(budget), 2**33, "replace")
    >>> round(float(left_for_counts(plan, scales, cost, "replace").value), 6)
    0.5
    """
    if neighbours == "add_remove":
        return cost
    return Cost(cost.value * 2**plan.noise.norm - _largest(plan.moves[0], scales), plan.noise)


def _largest(table: NDArray[np.object_], scales: tuple[NoiseScale, ...]) -> Fraction:
    """Return the largest cost of a row of integers, one for each part; every weight is rounded up."""
    weights = [math.ceil(2**_COST_BITS / scale.exact**scale.noise.norm) for scale in scales]
    return Fraction(max(table @ np.array(weights, dtype=object)), 2**_COST_BITS)


def calibrate(
    plan: Plan, allowed: Cost, max_records: int, neighbours: str = "add_remove", *, counted: bool = False
) -> tuple[tuple[NoiseScale, ...], Cost]:
    """Return the noise scales with which measuring a plan costs at most ``allowed``, and the exact cost.

    Parameters
    ----------
    plan : Plan
        Its variances say how the noise is shared among the parts.
    allowed : Cost
        What the plan's noise may cost.
    max_records : int
        Public bound on the number of records, for the range of the lattice.
    neighbours : {"add_remove", "replace"}
    counted : bool
        Whether records out of domain are counted, for which a quarter is left at least.

    Raises
    ------
    PrivacyError
        If ``allowed`` is so large that answers would leave 62-bit integers.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> plan = mdp.select(mdp.Workload(mdp.Domain({"a": 4}), mdp.marginals(1))).selection.plan
    >>> allowed = GAUSSIAN.cost(mdp.Budget(mu=0.5))
    >>> scales, cost = calibrate(plan, allowed, 2**33)
    >>> cost <= allowed, float(cost.value) > 0.2499999
    (True, True)
    """
    norm = plan.noise.norm
    # what a plan costs 1 of: the removal of a record, or the replacement of one
    between = allowed.value if neighbours == "add_remove" else allowed.value * 2**norm
    target = float(between) if between < _LARGEST_COST else math.inf
    if not 0 < target < math.inf:
        raise PrivacyError(f"privacy cost allowed: {target} leaves floating-point range")
    outside = Cost(between / 4, plan.noise) if counted and neighbours == "replace" else None
    inflation = 1.0
    for attempt in range(60):
        scales = tuple(_scale(part, plan.noise, target, inflation) for part in plan.parts)
        cost = plan_cost(plan, scales, neighbours, outside)
        if cost <= allowed:
            break
        inflation *= float(cost.value / allowed.value) ** (1.0 / norm) * (1.0 + 2.0 ** (attempt - 50))
    else:
        raise PrivacyError("the plan's shares of the noise do not fit its sensitivities")
    # a small bound on the records is no promise: tables up to the usual one are measured all the same
    check_range(plan, scales, max(max_records, DEFAULT_MAX_RECORDS))
    return scales, cost


def check_range(plan: Plan, scales: tuple[NoiseScale, ...], records: int) -> None:
    """Refuse noise so small that answers about so many records would leave 62-bit integers.

    Raises
    ------
    PrivacyError
        If it is.
    """
    for part, scale in zip(plan.parts, scales, strict=True):
        check_entries(scale, part.max_entry, records)


def check_entries(scale: NoiseScale, entry: int, records: int) -> None:
    """Refuse noise so small that counts of so many records, times an entry, would leave 62-bit integers.

    Raises
    ------
    PrivacyError
        If it is.
    """
    if Fraction(entry * records) / Fraction(2) ** scale.power + 64 * scale.steps >= 2**61:
        raise PrivacyError(
            "budget: so large that answers in units of the noise exceed 62 bits; a mu or epsilon above "
            "about 10,000 is no protection and is not supported"
        )
