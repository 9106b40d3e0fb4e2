"""From a plan and a budget to exact noise scales, with the privacy cost recomputed exactly.

Nothing here trusts the optimizer: the (squared) sensitivity of each part is an exact integer, its noise scale
an exact rational, and their ratios are summed exactly (each rounded up in the 160th bit).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Amount
from matrixdp.errors import PrivacyError
from matrixdp.exact.walks import UNIT
from matrixdp.noise import Cost, Noise, Tails, Walk
from matrixdp.noise import integers as integer_noise
from matrixdp.plans import Part, Plan, Rounds
from matrixdp.plans.persons import Histories, Steps
from matrixdp.privacy import Budget
from matrixdp.privacy.budget import DEFAULT_MAX_RECORDS

#: The lattice step is chosen such that the scale in steps lies in [2^12, 2^13): rounding to the lattice
#: then adds less than 5e-9 of the variance.
SCALE_BITS = 12
#: The same of joint noise: rounding its widths to the lattice then changes no variance by more than 1e-6.
_JOINT_BITS = 20
_FRACTION_BITS = 40
_LARGEST_COST = 1 << 1000
#: What an exact cost is a multiple of: 2 to the minus this.
_COST_BITS = 160
#: Rows of `Plan.columns` that cost less than the largest by this share are dropped by floating point.
_DROPPED = 1e-9


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
    multiple : int, optional
        A number of which all exact answers are multiples, where the noise is on its multiples alone
        (`matrixdp.noise.integers`), and 2^power is 1. Without it noise is continuous, and rounded.

    Raises
    ------
    PrivacyError
        If there is no such noise.
    """

    steps: Fraction
    power: int
    noise: Noise
    multiple: int | None = None

    def __post_init__(self) -> None:
        if self.multiple is not None and not (
            self.noise.on_integers
            and self.power == 0
            and self.multiple >= 1
            and integer_noise.applies(self.steps / self.multiple)
        ):
            raise PrivacyError(f"{self.noise} noise on multiples of {self.multiple}: there is none")

    @classmethod
    def at_least(cls, scale: Fraction, power: int, noise: Noise) -> NoiseScale:
        """Return noise of a scale on a lattice, rounded up in the 40th bit of a step."""
        steps = math.ceil(scale / Fraction(2) ** power * 2**_FRACTION_BITS)
        return cls(Fraction(steps, 2**_FRACTION_BITS), power, noise)

    @property
    def exact(self) -> Fraction:
        """The scale of the continuous noise in counts: what the privacy claim rests on."""
        return self.steps * Fraction(2) ** self.power

    @classmethod
    def least(cls, scale: float, entry: int | None, noise: Noise) -> NoiseScale:
        """Return noise of a scale: on the multiples of an entry, where that has less variance, or rounded.

        Parameters
        ----------
        scale : float
        entry : int or None
            What all exact answers are multiples of; None where they are no integers.
        noise : Noise

        Examples
        --------
        >>> from matrixdp.noise import GAUSSIAN, LAPLACE
        >>> [NoiseScale.least(1.0, 1, noise).multiple for noise in (GAUSSIAN, LAPLACE)]
        [None, 1]
        """
        if noise.on_integers and entry is not None:
            whole = cls.at_least(Fraction(scale), 0, noise)
            if integer_noise.applies(whole.steps / entry):
                return replace(whole, multiple=entry)
        return cls.at_least(Fraction(scale), math.frexp(scale)[1] - 1 - SCALE_BITS, noise)

    @classmethod
    def joint(cls, scale: float, entry: int, noise: Noise) -> NoiseScale:
        """Return joint noise of a scale: on a lattice that whole counts are on, as fine as widths need.

        Coarser where answers, in units of it, would leave 62-bit integers for the usual bound on records.

        Examples
        --------
        >>> from matrixdp.noise import LAPLACE
        >>> [NoiseScale.joint(scale, 1, LAPLACE).power for scale in (1e9, 1.0, 1e-3)]
        [0, -20, -25]
        """
        exponent = math.frexp(scale)[1] - 1
        finest = min(entry.bit_length() + DEFAULT_MAX_RECORDS.bit_length() - 60, exponent - SCALE_BITS)
        return cls.at_least(Fraction(scale), min(max(exponent - _JOINT_BITS, finest), 0), noise)

    @property
    def ratio(self) -> float:
        """The scale over the number of whose multiples integer noise is; infinite where it is continuous."""
        return math.inf if self.multiple is None else float(self.steps / self.multiple)

    @property
    def variance(self) -> float:
        """The variance of the released noise, rounding to the lattice included."""
        if self.multiple is not None:
            return self.multiple**2 * integer_noise.variance(self.ratio)
        continuous = Fraction(self.noise.variance_factor) * self.steps**2
        return float(continuous + Fraction(1, 12)) * 4.0**self.power


def _entry(plan: Plan, part: Part) -> int | None:
    """Return what the exact answers to a part are multiples of; None where records are divided."""
    divided = any(isinstance(plan.domain[name], Amount) for name in part.attributes)
    return None if divided else part.divisor


def _check_joint(plan: Plan, part: Part, scale: NoiseScale | None = None) -> None:
    """Reject joint noise over answers that are not on its lattice."""
    told = f"part {part.attributes}: {'a walk' if part.walk is not None else 'one radius'}"
    if _entry(plan, part) is None:
        told = f"{told} over amounts, whose records are divided"
        raise PrivacyError(f"{told}; expected another mechanism", code="not-supported")
    if scale is not None and (scale.power > 0 or scale.multiple is not None):
        raise PrivacyError(f"{told} on a lattice that its answers are not on", "conflict")


def _largest_entry(plan: Plan, part: Part) -> int:
    """Return the largest entry of a part, or of those that have its noise on one lattice."""
    under = [plan.parts[place].max_entry for place in plan.under_radius] if part.width is not None else []
    return max(part.max_entry, *under) if under else part.max_entry


def noise_scale(plan: Plan, part: Part, cost: float, inflation: float) -> NoiseScale:
    """Return the noise of a part whose plan may cost so much, enlarged by a factor."""
    noise = plan.noise
    scale = noise.scale(part.variance, cost) * inflation
    if not (math.isfinite(scale) and scale > 0):
        told = f"part {part.attributes}: noise scale {scale}; expected a finite number above 0"
        raise PrivacyError(told, "out-of-range")
    if part.walk is not None or part.width is not None:
        _check_joint(plan, part)
        return NoiseScale.joint(scale, _largest_entry(plan, part), noise)
    return NoiseScale.least(scale, _entry(plan, part), noise)


def plan_cost(
    plan: Plan, scales: tuple[NoiseScale, ...], neighbours: str = "add_remove", outside: Cost | None = None
) -> Cost:
    """Return the privacy cost of measuring a plan with given noise, or a bound just above it.

    It is that of one record added or removed; under ``replace`` that of each of the two records that are
    exchanged, which together move the answers twice as far. ``outside`` is what a record out of domain costs
    where these are counted. Of a plan for persons with `per` it is what all records of a person cost, over
    the square of their number; under Laplace noise over their number.

    Raises
    ------
    PrivacyError
        If a part has no noise or no sensitivity, noise of another kind than the plan's, noise on the
        multiples of a number that does not divide its answers, joint noise on a lattice that they are not
        on, or one radius of several scales.
    """
    for part, scale in zip(plan.parts, scales, strict=True):
        plan.noise.check_same(scale.noise)
        if part.walk is not None or part.width is not None:
            _check_joint(plan, part, scale)
        entry = None if scale.multiple is None else _entry(plan, part)
        if scale.multiple is not None and (entry is None or entry % scale.multiple):
            told = (
                f"part {part.attributes}: noise on multiples of {scale.multiple}, which its answers are not"
            )
            raise PrivacyError(told, "conflict")
    if len({scales[place] for place in plan.under_radius}) > 1:
        raise PrivacyError("parts under one radius have noise of one scale", "conflict")
    noise = plan.noise
    exact = [scales[at].exact / plan.charged_share(at) for at in plan.charged]
    costs = [noise.exact_cost(zip(row, exact, strict=True)) for row in _costly(plan, exact)]
    cost = max(costs, key=lambda own: own.value)
    alone = cost if outside is None or outside <= cost else outside
    if plan.persons is not None and outside is not None:
        told = "counts of records out of domain beside a unit with per, which bounds none of them"
        raise PrivacyError(f"{told}; expected no counts", "not-supported")
    if plan.histories is not None:
        charge = _charge(plan.histories, scales)
        # where other records may count at each period, those that do have no number in all
        return Cost(charge if plan.by_period else min(charge, alone.value), noise)
    if neighbours == "add_remove":
        return alone
    # a record out of domain moves other rows than one in it, so that their costs add up
    charged = tuple(scales[place] for place in plan.charged)
    columns = _largest(plan.moves[0], charged) + (0 if outside is None else outside.value)
    between = max(columns, _largest(plan.moves[1], charged))
    return Cost(min(between / 2**noise.norm, alone.value), noise)


def _costly(plan: Plan, scales: Sequence[Fraction]) -> NDArray[np.object_]:
    """Return the rows of `Plan.columns` that may cost most: floating point is exact enough to drop others."""
    table, norm = plan.columns, plan.noise.norm
    if len(table) == 1:
        return table
    most = [own / scale**norm for own, scale in zip(table.max(axis=0), scales, strict=True)]
    costs = plan.column_shares @ [float(own / max(most)) for own in most]
    return np.asarray(table[costs >= (1.0 - _DROPPED) * costs.max()])


def _charge(histories: Histories | Steps, scales: tuple[NoiseScale, ...]) -> Fraction:
    """Return a person's charge over the square of her records, rounded up."""
    inverse = [2**_COST_BITS / scale.exact**2 for scale in scales]
    # records may have less than nothing in common in a part
    charge = histories.charge([(math.floor(own), math.ceil(own)) for own in inverse])
    return Fraction(-(-charge // histories.unit.records**2), 2**_COST_BITS)


def left_for_counts(plan: Plan, scales: tuple[NoiseScale, ...], cost: Cost, neighbours: str) -> Cost:
    """Return the cost that counts out of domain may have, given a plan's noise and its cost.

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
    charged = tuple(scales[place] for place in plan.charged)
    return Cost(cost.value * 2**plan.noise.norm - _largest(plan.moves[0], charged), plan.noise)


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
        raise PrivacyError(f"privacy cost allowed: {target} leaves floating-point range", code="out-of-range")
    outside = Cost(between / 4, plan.noise) if counted and neighbours == "replace" else None
    inflation = 1.0
    for attempt in range(60):
        scales = tuple(noise_scale(plan, part, target, inflation) for part in plan.parts)
        cost = plan_cost(plan, scales, neighbours, outside)
        if cost <= allowed:
            break
        inflation *= float(cost.value / allowed.value) ** (1.0 / norm) * (1.0 + 2.0 ** (attempt - 50))
    else:
        raise PrivacyError("the plan's shares of the noise do not fit its sensitivities")
    # a small bound on the records is no promise: tables up to the usual one are measured all the same
    check_range(plan, scales, max(max_records, DEFAULT_MAX_RECORDS))
    return scales, cost


def _whole_cost(noise: Noise, budget: Budget) -> float:
    """Return what a plan may cost under a budget: for replacements that of both records."""
    return float(noise.cost(budget).value * (1 if budget.neighbours == "add_remove" else 2**noise.norm))


def least_drawn(noise: Noise, budget: Budget) -> float:
    """Return the least ratio of a variance that is drawn to its share of the cost, whatever the strategy.

    The answers of a part move by a multiple of an integer g for some record, so that its scale b is at least
    g over the whole cost, and b / g is what the variance on integers depends on.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> [round(least_drawn(LAPLACE, Budget(epsilon=epsilon)), 3) for epsilon in (0.4, 1, 4)]
    [1.0, 0.921, 0.304]
    """
    if not noise.on_integers:
        return 1.0
    least = max(1.0 / _whole_cost(noise, budget), float(integer_noise.LEAST_STEPS))
    whole = least <= integer_noise.MOST_STEPS
    return integer_noise.variance(least) / (2.0 * least**2) if whole else 1.0


def drawn_variances(plan: Plan, budget: Budget) -> list[float] | None:
    """Return the variances at privacy cost 1 of noise as a budget has it; None where they are the plan's.

    What they are is `Noise.error_scale` times the variances under the budget: noise on integers has less than
    its share.
    """
    noise = plan.noise
    if not noise.on_integers:
        return None
    scales = [noise_scale(plan, part, _whole_cost(noise, budget), 1.0) for part in plan.parts]
    if all(scale.multiple is None for scale in scales):
        return None
    return [own * noise.error_scale(budget) for own in row_variances(plan, scales)]


def row_variances(plan: Plan, scales: Sequence[NoiseScale]) -> list[float]:
    """Return the variance of each part's noise as it is drawn; see `Plan.row_variances`."""
    return plan.row_variances([scale.variance for scale in scales])


def tails_of(plan: Plan, steps: Sequence[float] = ()) -> Tails:
    """Return how far the noise of a plan's answers stays from 0, given the steps of noise on integers."""
    walks = {place: part.walk for place, part in enumerate(plan.parts) if part.walk is not None}
    own = tuple(steps) or (math.inf,) * len(plan.parts)
    return Tails(plan.noise, own, walks, plan.radius, plan.under_radius)


def check_range(plan: Plan, scales: tuple[NoiseScale, ...], records: int) -> None:
    """Reject noise so small that answers about `records` records would leave 62-bit integers.

    Raises
    ------
    PrivacyError
        If it is.
    """
    for part, scale in zip(plan.parts, scales, strict=True):
        check_entries(scale, part.max_entry, records, part.walk)
        if plan.radius is not None and part.width is not None:
            # more than the mean norm, and 64-fold below; entries are at most twice the cells times a norm
            steps = max(plan.radius.lattice_widths(scale.steps)) + (plan.radius.dimension + 64) * scale.steps
            check_entries(replace(scale, steps=2 * part.cells * steps), part.max_entry, records)


def check_entries(scale: NoiseScale, entry: int, records: int, walk: Walk | None = None) -> None:
    """Reject noise so small that counts of `records` records, times `entry`, would leave 62-bit integers.

    Raises
    ------
    PrivacyError
        If it is.
    """
    # a walk adds up at most as many steps as there are rows, and an innovation within its width
    scales = 64 if walk is None else 64 * (len(walk.widths) + 1) + math.ceil(max(walk.widths) / UNIT)
    if Fraction(entry * records) / Fraction(2) ** scale.power + scales * scale.steps >= 2**61:
        told = "budget: so large that answers in units of the noise exceed 62 bits"
        expected = "a mu or epsilon above about 10,000 is no protection and is not supported"
        raise PrivacyError(f"{told}; {expected}", "out-of-range")


# Counts of records out of domain, measured at no further cost.
#
# A record is either in the domain, and then in one cell of every marginal, or out of it, and then in these
# counts alone. So one record moves the answers of the plan or these counts, and never both: adding or
# removing it costs the larger of the two costs, replacing one by the other their sum. The noise of the
# counts is chosen such that the plan and they cost no more than the plan does. docs/privacy.md has the
# proof.

#: Exact binary fractions of a scale, by which it is enlarged until the cost fits.
_STEP = Fraction(1, 2**50)


@final
@dataclass(frozen=True, eq=False)
class OutOfDomainCounts:
    """Noisy numbers of records out of domain.

    Attributes
    ----------
    attributes : tuple of str or None
        What each of them counts: the records whose value of that attribute is out of domain, or, for None,
        all records that were dropped. As in `OutOfDomain.counts`.
    scale : NoiseScale
        The noise that was added to each, exact.
    values : ndarray of float64, shape (len(attributes),)
        Multiples of 2^power.
    """

    attributes: tuple[str | None, ...]
    scale: NoiseScale
    values: NDArray[np.float64]

    @property
    def cost(self) -> Cost:
        """The cost of a record that is in all of them."""
        return counts_cost(self.scale, len(self.attributes))


def counts_cost(scale: NoiseScale, number: int) -> Cost:
    """Return the exact cost of one record in `number` counts with noise of a scale, or a bound just above it.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, LAPLACE
    >>> float(counts_cost(NoiseScale(Fraction(2), 0, GAUSSIAN), 3).value)
    0.75
    >>> float(counts_cost(NoiseScale(Fraction(2), 0, LAPLACE), 3).value)
    1.5
    """
    return scale.noise.exact_cost([(1, scale.exact)] * number)


def count_scale(number: int, allowed: Cost, max_records: int = DEFAULT_MAX_RECORDS) -> NoiseScale:
    """Return the least noise, to about 2^-40, at which `number` counts together cost at most what is allowed.

    Raises
    ------
    PrivacyError
        If answers about `max_records` records would leave 62-bit integers.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> scale = count_scale(2, Cost(Fraction(1, 2), GAUSSIAN))
    >>> float(scale.exact), counts_cost(scale, 2) <= Cost(Fraction(1, 2), GAUSSIAN)
    (2.0, True)
    """
    noise = allowed.noise
    wanted = float(number / allowed.value) ** (1.0 / noise.norm)
    for attempt in range(60):
        scale = NoiseScale.least(float(wanted * (1 + (2**attempt - 1) * _STEP)), 1, noise)
        if counts_cost(scale, number) <= allowed:
            check_entries(scale, 1, max(max_records, DEFAULT_MAX_RECORDS))
            return scale
    raise PrivacyError("out_of_domain: no noise for its counts fits the cost of the plan")


def measured_cost(
    plan: Plan,
    scales: tuple[NoiseScale, ...],
    counts: OutOfDomainCounts | None,
    neighbours: str = "add_remove",
) -> Cost:
    """Return the exact cost of a measurement, the plan and its counts together; see `plan_cost`.

    Of rounds it is the sum of what each costs: the second is planned from noisy answers to the first.

    Raises
    ------
    PrivacyError
        If a part has no noise or no sensitivity, or noise of another kind than the plan's.
    """
    if isinstance(plan, Rounds):
        first, second = rounds_cost(plan, scales, counts, neighbours)
        return Cost(first.value + second.value, plan.noise)
    return plan_cost(plan, scales, neighbours, None if counts is None else counts.cost)


def rounds_cost(
    plan: Rounds,
    scales: tuple[NoiseScale, ...],
    counts: OutOfDomainCounts | None,
    neighbours: str = "add_remove",
) -> tuple[Cost, Cost]:
    """Return the exact costs of the two rounds; the first measures counts of records out of domain, too."""
    begun = len(plan.begun)
    first = plan_cost(plan.first, scales[:begun], neighbours, None if counts is None else counts.cost)
    return first, plan_cost(plan.second, scales[begun:], neighbours)
