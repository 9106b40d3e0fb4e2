"""The one door: the only place that reads a table and draws noise."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import cast, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.display import without_caches
from matrixdp.domain import Amount, Attribute, Domain, OutOfDomain
from matrixdp.domain.rules import canonical_value, is_category
from matrixdp.errors import MatrixDPError, PrivacyError, SafeNote, SourceError, withholding
from matrixdp.exact import IdentityMatrix, IntegerTensor, apply_kronecker
from matrixdp.exact.walks import UNIT
from matrixdp.ledger import Ledger, LedgerEntry, Reservation
from matrixdp.ledger.ledger import now
from matrixdp.mapped import Multiples, room
from matrixdp.measure.statement import PrivacyStatement, statement
from matrixdp.noise import (
    LAPLACE,
    Cost,
    Mechanism,
    Noise,
    RandomSource,
    SeededSource,
    SystemSource,
    Tails,
    Walk,
    checked_cost,
)
from matrixdp.noise import integers as integer_noise
from matrixdp.plans import (
    Analysis,
    Estimates,
    Part,
    Plan,
    Rounds,
    SlicedEstimates,
    Slices,
    Split,
    SplitAnalysis,
    check_held,
)
from matrixdp.plans.persons import Histories, Steps
from matrixdp.plans.rounds import FIRST_SHARE, averaged
from matrixdp.privacy import Budget, Unit
from matrixdp.privacy.budget import DEFAULT_MAX_RECORDS
from matrixdp.sources import Source
from matrixdp.sources.base import OUT_OF_DOMAIN, Marginal

# From a plan and a budget to exact noise scales, with the privacy cost recomputed exactly.
#
# Nothing here trusts the optimizer: the (squared) sensitivity of each part is an exact integer, its noise
# scale an exact rational, and their ratios are summed exactly (each rounded up in the 160th bit).

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


def _scale(plan: Plan, part: Part, cost: float, inflation: float) -> NoiseScale:
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
        scales = tuple(_scale(plan, part, target, inflation) for part in plan.parts)
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
    scales = [_scale(plan, part, _whole_cost(noise, budget), 1.0) for part in plan.parts]
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


# The one gate before noise: no cost is spent that was not authorized here, and debited to the ledger.


@dataclass(frozen=True)
class Authorization:
    """The record of a cost that the gate let through; it cannot be made for a cost above the budget.

    Parameters
    ----------
    cost : Cost
        The exact privacy cost of one record that moves, with the noise that it is the cost of.
    budget : Budget
        What may be spent.
    time : str
        When it was authorized: UTC, ISO 8601.
    ledger : LedgerEntry, optional
        The entry of the ledger that was debited; None if none was.

    Raises
    ------
    PrivacyError
        If the cost is not within the budget, or the entry of the ledger is not that of this cost.
    """

    cost: Cost
    budget: Budget
    time: str
    ledger: LedgerEntry | None = None

    def __post_init__(self) -> None:
        checked_cost(self.cost, self.budget)
        if self.ledger is not None:
            self.ledger.check(self.cost, self.budget)

    @property
    def note(self) -> str:
        """Whether a ledger was debited, in words."""
        if self.ledger is None:
            return "No ledger was used: earlier or later releases about the same people add to this cost."
        return f"Debited to the ledger of {self.ledger.dataset} before any record was counted."

    def as_dict(self) -> dict[str, object]:
        """Return the record as JSON has it; the exact cost is text, numerator/denominator."""
        return {
            "noise": self.cost.noise.name,
            "cost": str(self.cost.value),
            "budget": self.budget.as_dict(),
            "time": self.time,
            "ledger": None if self.ledger is None else self.ledger.as_dict(),
            "note": self.note,
        }


def authorize(cost: Cost, budget: Budget, ledger: Ledger | None = None) -> Authorization:
    """Authorize one measurement of an exact, recomputed cost, before any data are read.

    With a ledger it must have so much left; `debit` writes to it.

    Raises
    ------
    PrivacyError
        If the cost exceeds the budget or what the ledger has left, or the budget is one that the noise cannot
        honour.
    StorageError
        If the ledger cannot be read.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from matrixdp.noise import GAUSSIAN
    >>> authorize(Cost(Fraction(1), GAUSSIAN), Budget(rho=0.5)).ledger is None
    True
    """
    authorization = Authorization(cost, budget, now())
    if ledger is not None:
        if not isinstance(ledger, Ledger):
            told = f"ledger: found a {type(ledger).__name__}; expected a Ledger: Ledger.open(path)"
            raise PrivacyError(told, "wrong-type")
        ledger.check(cost, budget)
    return authorization


def debit(
    authorization: Authorization, ledger: Ledger, release: Path | None
) -> tuple[Authorization, Reservation]:
    """Debit what was authorized to a ledger: durably, before anything is counted or noise is drawn.

    Raises
    ------
    PrivacyError
        If others have meanwhile spent what was left.
    StorageError
        If the ledger cannot be written.
    """
    reservation = ledger.reserve(authorization.cost, authorization.budget, release)
    return replace(authorization, ledger=reservation.record), reservation


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


#: Returns what is measured again, given the noise variances of the first round and its estimates.
NextRound = Callable[[Sequence[float], Estimates], Split]

#: The share of a budget that two rounds may spend.
_NEARLY = 1 - Fraction(1, 2**40)
#: Is called with what follows from the plan and the budget alone, before any record is counted; never after.
_LOG = logging.getLogger(__name__)


@final
@dataclass(frozen=True)
class Periods:
    """How far a plan over time is measured: row by row, each once its last period is over.

    Parameters
    ----------
    attribute : str
        The attribute whose values are the periods. Every part has one block over it alone, lower triangular:
        row k of the block needs nothing of later periods.
    published : tuple of int
        For each publication how many periods were over by then; increasing.

    Raises
    ------
    PrivacyError
        If the numbers do not increase, or are above the number of periods.
    """

    attribute: str
    published: tuple[int, ...] = ()

    @property
    def through(self) -> int:
        """How many periods are measured."""
        return self.published[-1] if self.published else 0

    def check(self, plan: Plan) -> None:
        """Reject a plan whose rows cannot be measured one period after another."""
        size = plan.domain[self.attribute].size
        if plan.persons is not None and not (plan.by_period and plan.persons.per == (self.attribute,)):
            found, expected = repr(plan.persons), f"per {self.attribute!r}, and a strategy for its series"
            raise PrivacyError.at(("privacy", "unit"), found, expected, code="not-supported")
        if [*self.published] != sorted({*self.published}) or not 0 <= self.through <= size:
            found = f"{list(self.published)}"
            raise PrivacyError.at(("series", "published"), found, f"increasing numbers up to {size}")
        if len(plan.columns) > 1 and not plan.by_period:  # a record may change its value from row to row
            raise PrivacyError("trees of which values cost different amounts, in a series", "not-supported")
        for part in plan.parts:
            if part.walk is not None:  # what it added so far would have to be kept, in secret
                raise PrivacyError(f"part {part.attributes}: a walk in a series", code="not-supported")
            axis, weights = self._axis(part), part.multipliers
            ordered = axis is not None and part.blocks[axis].matrix.lower_triangular
            # weights that change over time would tie it to other attributes
            if not ordered or (weights is not None and np.ptp(weights, axis=axis).any()):
                found = f"part {part.attributes}: rows that need later periods"
                raise PrivacyError(f"{found}; expected a strategy that was selected for a series")

    def due(self, part: Part, through: int) -> NDArray[np.bool_]:
        """Return which rows of a part, flat, end at periods after those measured, up to period `through`."""
        axis = self._axis(part)
        assert axis is not None  # as checked
        ends = np.arange(part.shape[axis])
        asked = (self.through <= ends) & (ends < through)
        return np.broadcast_to(asked.reshape([-1, *[1] * (len(part.shape) - axis - 1)]), part.shape).ravel()

    def _axis(self, part: Part) -> int | None:
        """Return which block of a part is over the periods alone, if one is."""
        names = [block.attributes for block in part.blocks]
        return names.index((self.attribute,)) if (self.attribute,) in names else None


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy answers to the plan's queries: all that is ever known of the table.

    Attributes
    ----------
    plan : Plan
        What was measured.
    scales : tuple of NoiseScale
        The noise that was really added to each part, exact.
    values : tuple of ndarray
        The noisy answers of each part, flat, multiples of 2^power. Of a plan that is cut into slices
        `Multiples`, of which slices are read.
    authorization : Authorization
        The cost that was authorized before any noise was drawn.
    private : bool
        False if the noise was seeded: then nothing is protected.
    max_records : int
    out_of_domain : OutOfDomain
    assumptions : tuple of str
        What the promise assumes of the table, in sentences.
    out_of_domain_counts : OutOfDomainCounts or None
        The noisy numbers of records out of domain, if `out_of_domain` asks for any.
    periods : Periods or None
        Of a series: how far it is measured. Rows that are not measured yet are 0.
    reservation : Reservation or None
        The debit of the ledger, for what becomes of it; no file keeps this.
    answers : callable or None
        Returns estimates that read what was answered before, given those that compute it; no file keeps this.
    """

    plan: Plan
    scales: tuple[NoiseScale, ...]
    values: tuple[NDArray[np.float64], ...]
    authorization: Authorization
    private: bool
    max_records: int
    out_of_domain: OutOfDomain
    assumptions: tuple[str, ...] = ()
    reservation: Reservation | None = None
    out_of_domain_counts: OutOfDomainCounts | None = None
    periods: Periods | None = None
    answers: Callable[[Estimates], Estimates] | None = None

    __getstate__ = without_caches

    @cached_property
    def analysis(self) -> Analysis:
        """Errors at the noise that was really added, rounding to the lattice included."""
        analysis = self.plan.analysed(row_variances(self.plan, self.scales))
        if self.periods is not None:
            analysis.through = (self.periods.attribute, self.periods.through)
        return analysis

    @cached_property
    def tails(self) -> Tails:
        """How far the noise of answers stays from 0."""
        return tails_of(self.plan, [scale.ratio for scale in self.scales])

    @cached_property
    def answered(self) -> tuple[tuple[Part, float, NDArray[np.float64]], ...]:
        """The parts with the variances of their noisy answers, and these; of rounds their averages."""
        variances = row_variances(self.plan, self.scales)
        if not isinstance(self.plan, Rounds):
            return tuple(zip(self.plan.parts, variances, self.values, strict=True))
        averages = self.plan.averages(variances)
        known = [variance for variance, _ in averages], averaged(averages, self.values)
        return tuple(zip(self.plan.begun, *known, strict=True))

    @property
    def whole(self) -> bool:
        """Whether all of the plan is measured: of a series, every period."""
        periods = self.periods
        return periods is None or periods.through == self.plan.domain[periods.attribute].size

    @property
    def newest(self) -> tuple[str, range] | None:
        """Of a series its attribute, and the codes of the periods that were measured last; else None."""
        if self.periods is None or not self.periods.published:
            return None
        before = (0, *self.periods.published)[-2]
        return self.periods.attribute, range(before, self.periods.through)

    @cached_property
    def as_if_ended(self) -> Measurement:
        """The same of a series as if all periods were over: what is known by now is right, and nothing else.

        Rows of later periods are 0 in it. So a table can be computed as it will be when the series ends, and
        the figures that are known by now are those that it will have then, to the bit.
        """
        if self.whole:
            return self
        assert self.periods is not None
        name, size = self.periods.attribute, self.plan.domain[self.periods.attribute].size
        return replace(self, periods=Periods(name, (*self.periods.published, size)))

    def continues(self, earlier: Measurement) -> bool:
        """Return whether this is an earlier measurement of a series with later periods measured as well."""
        begun, now = earlier.periods, self.periods
        if begun is None or now is None or now.published[: len(begun.published)] != begun.published:
            return False
        same = (begun.attribute, earlier.scales, earlier.authorization, earlier.private)
        if same != (now.attribute, self.scales, self.authorization, self.private):
            return False
        start = Periods(begun.attribute)
        for part, other, new, old in zip(
            self.plan.parts, earlier.plan.parts, self.values, earlier.values, strict=True
        ):
            if part.attributes != other.attributes or part.key(part.attributes) != other.key(part.attributes):
                return False
            measured = start.due(part, begun.through)
            if not np.array_equal(new[measured], old[measured]):
                return False
        return True

    @cached_property
    def estimates(self) -> Estimates:
        """The estimates that follow from the noisy answers."""
        slices = None if self.periods is not None else Slices.of(self.plan)
        if slices is not None and isinstance(self.analysis, SplitAnalysis):
            found: Estimates = SlicedEstimates(slices, self.analysis, self.values)
        else:
            found = self.analysis.estimates(self.values)
        return found if self.answers is None else self.answers(found)

    @cached_property
    def statement(self) -> PrivacyStatement:
        """The promise about the noisy answers, and so about everything computed from them."""
        authorization = self.authorization
        return statement(
            authorization.cost,
            authorization.budget,
            private=self.private,
            assumptions=self.assumptions,
            ledger=authorization.ledger,
            counted=self.out_of_domain_counts is not None,
            reading={own.name: own.reading for own in self.plan.domain if own.reading},
            rounds=isinstance(self.plan, Rounds),
            series=self.periods is not None,
            discovered=self.plan.domain.discovered,
        )


def maximal_marginals(marginals: Iterable[tuple[str, ...]]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Assign every marginal to a largest one that contains it; only those are counted.

    Examples
    --------
    >>> maximal_marginals([(), ("a",), ("a", "b"), ("c",)])
    {('a', 'b'): [('a', 'b'), ('a',), ()], ('c',): [('c',)]}
    """
    chosen: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    holders: dict[str, list[tuple[str, ...]]] = {}
    for marginal in sorted(marginals, key=len, reverse=True):
        wanted = set(marginal)
        candidates = holders.get(marginal[0], []) if marginal else list(chosen)[:1]
        holder = next((c for c in candidates if wanted <= set(c)), None)
        if holder is None:
            holder = marginal
            chosen[holder] = []
            for name in holder:
                holders.setdefault(name, []).append(holder)
        chosen[holder].append(marginal)
    return chosen


def as_authorized(
    authorization: Authorization,
    plan: Plan,
    scales: tuple[NoiseScale, ...],
    counts: OutOfDomainCounts | None = None,
) -> bool:
    """Return whether a measurement costs what was authorized: of rounds, at most that.

    What the second round costs is not known to the last digit when the whole budget is authorized.
    """
    plan.check_unit(authorization.budget.unit)
    cost = measured_cost(plan, scales, counts, authorization.budget.neighbours)
    if isinstance(plan, Rounds):
        return cost <= authorization.cost
    return authorization.cost == cost


def random_source(seed_not_private: int | None) -> RandomSource:
    """Return the operating system's generator, or a seeded one, whose noise protects nobody."""
    return SystemSource() if seed_not_private is None else SeededSource(seed_not_private)


def noisy(
    answers: IntegerTensor,
    scale: NoiseScale,
    source: RandomSource,
    shift: int = 0,
    weight: int = 1,
    walk: Walk | None = None,
    joint: NDArray[np.int64] | None = None,
) -> NDArray[np.int64]:
    """Return round((answers / (2^shift weight) + noise) / step) for exact answers, flat.

    The noise is independent, that of a walk, or integers that were drawn together with those of other parts.
    """
    if joint is not None:
        if shift or weight != 1 or scale.power > 0 or scale.noise != LAPLACE:
            raise PrivacyError("one radius for answers that are not on its lattice", "conflict")
        whole, _, _ = answers.split(scale.power)
        return np.asarray(whole + joint)
    if walk is not None:
        if shift or weight != 1 or scale.power > 0 or scale.noise != LAPLACE:
            raise PrivacyError("a walk for answers that are not on its lattice", "conflict")
        whole, _, _ = answers.split(scale.power)
        return np.asarray(whole + walk.draw(scale.steps, source))
    if scale.multiple is not None:
        if shift or weight != 1:
            raise PrivacyError("noise on integers for answers that are none", "conflict")
        steps = scale.steps / scale.multiple
        whole, _, _ = answers.split(0)
        return np.asarray(whole + scale.multiple * integer_noise.draw_integers(steps, len(whole), source))
    power = scale.power + shift
    quotient, fraction, exact = answers.split(power, weight)
    offsets, exact_offset = (None, None) if power <= 0 and weight == 1 else (fraction, exact)
    drawn = scale.noise.draw_rounded(
        scale.steps, len(quotient), offsets=offsets, exact_offset=exact_offset, source=source
    )
    return np.asarray(quotient + drawn)


@withholding
def measure(
    plan: Plan,
    source: Source,
    budget: Budget,
    *,
    out_of_domain: OutOfDomain | None = None,
    max_records: int = DEFAULT_MAX_RECORDS,
    seed_not_private: int | None = None,
    ledger: Ledger | None = None,
    release: Path | None = None,
    before_noise: Callable[[], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    second: NextRound | None = None,
) -> Measurement:
    """Measure a plan on a table: the only step that reads data.

    The exact cost is authorized first, and debited to the ledger, if there is one; then each marginal is
    counted, the plan's integer queries are answered exactly, and exactly rounded noise of the plan's kind is
    added.

    Everything of the budget is spent. Records outside the domain are dropped unless ``out_of_domain`` says
    otherwise; the numbers of them that it asks for are measured within the same cost. A table of more than
    ``max_records`` gives the same results, more slowly. With ``seed_not_private`` THE RESULT IS NOT PRIVATE,
    and says so, and no ledger is debited. ``release`` is where the release will go, for the ledger.
    ``before_noise`` is called once, before any noise is drawn: what it raises ends the measurement, and no
    noise was drawn. ``progress`` is called with the number of parts measured and the number of all.

    With ``second`` the plan is measured with half of the budget. From its noisy answers ``second`` plans what
    is measured with the rest, of the same counts: all of them are held meanwhile. The whole budget is
    authorized before the first.

    Raises
    ------
    PrivacyError
        If the budget cannot be honoured by the plan's noise, or the ledger has less left, or `max_records` is
        no bound. Before any data is read.
    StorageError
        If the ledger cannot be read or written. Before any record is counted.
    SourceError
        If the table cannot be read.

    Notes
    -----
    Guarantee: with noise from the operating system's generator the values are a post-processing of the
    mechanism with the plan's noise, of cost at most ``plan.noise.cost(budget)``; see the page on noise for
    the proof.
    """
    if type(max_records) is not int or max_records < 1:
        found, expected = repr(max_records), "an integer of at least 1"
        raise PrivacyError.at(("max_records",), found, expected, code="out-of-range")
    plan.check_unit(budget.unit)
    rules = OutOfDomain.drop() if out_of_domain is None else out_of_domain
    between, number = budget.neighbours, len(rules.counts)
    allowed = plan.noise.cost(budget)
    share = allowed
    if second is not None:
        # a little less than the budget, lest figures that are rounded up exceed it
        allowed = Cost(allowed.value * _NEARLY, plan.noise)
        share = Cost(allowed.value * FIRST_SHARE, plan.noise)
        _check_alone(plan, allowed, max_records, between)
    scales, cost = calibrate(plan, share, max_records, between, counted=number > 0)
    counted = None
    if number:
        # what the plan leaves them, so that its cost is the cost of both
        counted = count_scale(number, left_for_counts(plan, scales, cost, between), max_records)
        cost = plan_cost(plan, scales, between, counts_cost(counted, number))
    random = random_source(seed_not_private)
    debited = ledger if random.private else None
    authorization = authorize(cost if second is None else allowed, budget, debited)
    groups = maximal_marginals(plan.positions)
    # what the table cannot answer at all is refused here, and costs nothing
    slices = Slices.of(plan) if second is None else None
    if slices is None:
        check_held(plan)
    sliced = None if slices is None else (slices.attribute, slices.width)
    marginals = source.marginals(plan.domain, list(groups), rules, budget.unit, sliced)
    assumptions = source.assumptions(plan.domain)  # a database is opened for them
    # a disk without room for the answers is rejected here, too
    cut = None if slices is None else (slices, _rooms(plan, scales))
    reservation: Reservation | None = None
    try:
        if debited is not None:
            authorization, reservation = debit(authorization, debited, release)
        _LOG.info("measuring %d parts with %s noise within %r", len(plan.parts), plan.noise, budget)
        _LOG.info("%s", authorization.note)
        if not random.private:
            _LOG.warning("NOT PRIVATE: the noise is seeded")
        if second is not None:
            marginals = iter(held := list(marginals))
        values, numbers = _noisy_answers(
            plan, scales, groups, marginals, max_records, random, before_noise, progress, cut=cut
        )
        counts = None if counted is None else _noisy_counts(rules, counted, numbers, max_records, random)
        known = random.private, max_records, rules, assumptions, reservation, counts
        measured = Measurement(plan, scales, values, authorization, *known)
        if second is not None:
            measured = _measured_again(measured, second, cost, groups, held, random, progress)
    except BaseException as error:
        note_debit(error, reservation, debited)
        raise
    return measured


def note_debit(error: BaseException, reservation: Reservation | None, ledger: Ledger | None) -> None:
    """Let an error say what a ledger counts as spent."""
    if reservation is not None:
        error.add_note(SafeNote(reservation.note))
    elif ledger is not None and not isinstance(error, MatrixDPError):
        # an interrupt that came as the debit was made
        listed = f"`matrixdp ledger show {ledger.path}` lists what counts as spent"
        error.add_note(SafeNote(f"The ledger {ledger.path} may have been debited; {listed}"))


def _check_alone(plan: Plan, allowed: Cost, max_records: int, neighbours: str) -> None:
    """Reject, before any noise, a budget at which a second round could leave the range of answers."""
    whole = float(allowed.value) * (1 if neighbours == "add_remove" else 2**plan.noise.norm)
    records = max(max_records, DEFAULT_MAX_RECORDS)
    for part in plan.parts:
        check_entries(_scale(plan, part.at_cost(plan.noise), whole, 1.0), part.max_entry, records, part.walk)


def _measured_again(
    first: Measurement,
    second: NextRound,
    cost: Cost,
    groups: Mapping[tuple[str, ...], Sequence[tuple[str, ...]]],
    held: Sequence[Marginal],
    random: RandomSource,
    progress: Callable[[int, int], None] | None,
) -> Measurement:
    """Measure a second round, planned from the noisy answers of the first, with what the first left."""
    begun, budget = first.plan, first.authorization.budget
    assert isinstance(begun, Split)  # checked where it was planned
    plan = second([scale.variance for scale in first.scales], first.estimates)
    left = Cost(first.authorization.cost.value - cost.value, plan.noise)
    scales, _ = calibrate(plan, left, first.max_records, budget.neighbours)
    both, every = Rounds.of(begun, plan), (*first.scales, *scales)
    if not as_authorized(first.authorization, both, every, first.out_of_domain_counts):
        raise PrivacyError("rounds: the second costs more than the first left of the budget")
    again = {holder: [own for own in names if own in plan.positions] for holder, names in groups.items()}
    marginals = [(holder, counts) for holder, counts in held if again.get(holder)]
    values, _ = _noisy_answers(plan, scales, again, marginals, first.max_records, random, None, progress)
    return replace(first, plan=both, scales=every, values=(*first.values, *values))


# Series: authorized and debited once, measured row by row.


def begin(
    plan: Plan,
    attribute: str,
    budget: Budget,
    *,
    max_records: int = DEFAULT_MAX_RECORDS,
    private: bool = True,
    ledger: Ledger | None = None,
    folder: Path | None = None,
) -> Measurement:
    """Authorize the measurement of a whole series, and debit it, before any row is measured.

    Raises
    ------
    PrivacyError
        If the budget cannot be honoured by the plan's noise, is for replacements or another unit than the
        plan, the ledger has less left, or the plan has rows that cannot be measured one period after another.
    StorageError
        If the ledger cannot be read or written.
    """
    periods = Periods(attribute)
    periods.check(plan)
    plan.check_unit(budget.unit)
    if budget.neighbours != "add_remove":  # two records that come or vanish apart differ by more than columns
        raise PrivacyError.at(
            ("privacy", "neighbours"), budget.neighbours, "add_remove in a series", code="not-supported"
        )
    scales, cost = calibrate(plan, plan.noise.cost(budget), max_records)
    authorization, reservation = authorize(cost, budget, ledger if private else None), None
    if private and ledger is not None:
        authorization, reservation = debit(authorization, ledger, folder)
    values = tuple(np.zeros(part.rows) for part in plan.parts)
    known = private, max_records, OutOfDomain.drop()
    return Measurement(plan, scales, values, authorization, *known, reservation=reservation, periods=periods)


@withholding
def proceed(
    earlier: Measurement,
    source: Source,
    through: int,
    *,
    seed_not_private: int | None = None,
    before_noise: Callable[[], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure the rows of a series that end by a period and are not measured yet; all others stay.

    Nothing is authorized: the cost of every row was, when the series began. What was measured before is not
    measured again.

    Raises
    ------
    PrivacyError
        If there is nothing left to be measured up to that period, or the noise of the series is of another
        kind: seeded, or not.
    SourceError
        If the table cannot be read.
    """
    plan, periods, random = earlier.plan, earlier.periods, random_source(seed_not_private)
    if periods is None or not periods.through < through <= plan.domain[periods.attribute].size:
        raise PrivacyError("series: no period is left to be measured up to that one", "out-of-range")
    if random.private != earlier.private:
        found = "a seed" if seed_not_private is not None else "no seed"
        raise PrivacyError.at(("seed_not_private",), found, "what the series began with", code="conflict")
    periods.check(plan)
    due = [periods.due(part, through) for part in plan.parts]
    groups = maximal_marginals(plan.positions)
    unit = earlier.authorization.budget.unit
    marginals = source.marginals(plan.domain, list(groups), earlier.out_of_domain, unit)
    assumptions = source.assumptions(plan.domain)
    drawn, _ = _noisy_answers(
        plan, earlier.scales, groups, marginals, earlier.max_records, random, before_noise, progress, due
    )
    values = [old.copy() for old in earlier.values]
    for own, new, rows in zip(values, drawn, due, strict=True):
        own[rows] = new
    return replace(
        earlier,
        values=tuple(values),
        assumptions=tuple(dict.fromkeys((*earlier.assumptions, *assumptions))),
        reservation=None,
        periods=Periods(periods.attribute, (*periods.published, through)),
    )


def _rooms(plan: Plan, scales: Sequence[NoiseScale]) -> list[Multiples]:
    """Return room for the noisy answers of each part, on disk where they are many."""
    pairs = zip(plan.parts, scales, strict=True)
    return [Multiples(room(part.rows), scale.power) for part, scale in pairs]


def _noisy_answers(
    plan: Plan,
    scales: tuple[NoiseScale, ...],
    groups: Mapping[tuple[str, ...], list[tuple[str, ...]]],
    marginals: Iterable[Marginal],
    max_records: int,
    random: RandomSource,
    before_noise: Callable[[], None] | None,
    progress: Callable[[int, int], None] | None,
    due: Sequence[NDArray[np.bool_]] | None = None,
    cut: tuple[Slices, Sequence[Multiples]] | None = None,
) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.int64] | None]:
    """Return the noisy answers of each part, in the order of the plan, from the counts of the marginals.

    Of each part only the rows that are ``due``, where that is given; no noise is drawn for others. Beside
    them the exact counts of records out of domain, if the source returns such. Where the plan is ``cut``
    marginals come in slices, and the answers go into the rooms of their parts.
    """
    values: dict[int, NDArray[np.float64]] = {}
    joint: dict[int, NDArray[np.int64]] = {}
    outside: NDArray[np.int64] | None = None
    done, times = 0, len(plan.parts)
    if cut is not None:
        times = sum(
            (len(cut[0]) if cut[0].own(part, slice(0, 1)) else 0) + bool(cut[0].above(part))
            for part in plan.parts
        )
    for subset, counts, asked in _tables(plan, groups, marginals, None if cut is None else cut[0]):
        if subset == OUT_OF_DOMAIN:
            outside = counts
            continue
        # records with amounts are divided among cells, and counted in integers of which each is `weight`
        weight = plan.domain.weight(subset)
        bound = max_records
        while int(counts.sum()) > bound * weight:
            bound *= 2
        if bound > max(max_records, DEFAULT_MAX_RECORDS):
            check_range(plan, scales, bound)
        for attributes in groups[subset]:
            others = tuple(axis for axis, name in enumerate(subset) if name not in attributes)
            own = plan.domain.weight(attributes)
            marginal = np.asarray(counts.sum(axis=others) if others else counts)
            if weight > own:
                marginal = marginal // (weight // own)  # added up over an amount, records are whole again
            marginal = marginal.astype(object if own > 1 else np.int64, copy=False)
            for index in plan.positions[attributes]:
                if index not in asked:
                    continue
                if before_noise is not None and not values:
                    before_noise()
                scale, (part, chosen, rows) = scales[index], asked[index]
                answers = part.answers(marginal, bound * own)
                if due is not None:
                    answers = answers.chosen(due[index])
                if chosen is not None:
                    answers = answers.chosen(chosen)
                if part.width is not None and not joint:
                    joint = _radius_noise(plan, scale, random)
                drawn = noisy(answers, scale, random, weight=own, walk=part.walk, joint=joint.get(index))
                if cut is None:
                    values[index] = np.ldexp(drawn.astype(np.float64), scale.power)
                else:
                    cut[1][index].put(rows, drawn)
                    values[index] = cast("NDArray[np.float64]", cut[1][index])
                done += 1
                if progress is not None:
                    progress(done, times)
    if done != times:
        raise SourceError("the source did not return every marginal that was asked for")
    return tuple(values[i] for i in range(len(scales))), outside


#: By the place of a part what is measured of counts, which of its rows, and where in those of the part.
_Measured = dict[int, tuple[Part, NDArray[np.bool_] | None, slice]]


def _tables(
    plan: Plan,
    groups: Mapping[tuple[str, ...], list[tuple[str, ...]]],
    marginals: Iterable[Marginal],
    slices: Slices | None,
) -> Iterator[tuple[tuple[str, ...], NDArray[np.int64], _Measured]]:
    """Yield tables of counts with what is measured of each: of slices what is of each value alone, then sums.

    Of sums over the nodes of trees only the lowest are added up meanwhile; there are fewer nodes than values.
    """
    if slices is None:
        every: _Measured = {place: (part, None, slice(None)) for place, part in enumerate(plan.parts)}
        yield from ((subset, counts, every) for subset, counts in marginals)
        return
    above = {place: found for place, part in enumerate(plan.parts) if (found := slices.above(part))}
    nodes = {found.nodes.tobytes(): found.nodes for found in above.values()}
    sums: dict[tuple[tuple[str, ...], bytes], NDArray[np.int64]] = {}
    ended = dict.fromkeys(groups, 0)
    for subset, counts in marginals:
        if subset == OUT_OF_DOMAIN:
            yield subset, counts, {}
            continue
        first = ended[subset]
        counts = counts[: slices.size - first]
        values = slice(first, first + len(counts))
        ended[subset] = values.stop
        for key, own in nodes.items():
            added = sums.setdefault((subset, key), np.zeros((own.max() + 1, *counts.shape[1:]), counts.dtype))
            for node in np.unique(own[values]):
                added[node] += counts[own[values] == node].sum(axis=0)
        alone = ((place, slices.own(part, values)) for place, part in enumerate(plan.parts))
        yield subset, counts, {place: (own[0], None, own[1]) for place, own in alone if own is not None}
    for (subset, key), counts in sums.items():
        if ended[subset] == slices.size:
            held = {place: one for place, one in above.items() if one.nodes.tobytes() == key}
            yield subset, counts, {place: (one.part, one.chosen, one.rows) for place, one in held.items()}


def _radius_noise(plan: Plan, scale: NoiseScale, random: RandomSource) -> dict[int, NDArray[np.int64]]:
    """Draw the noise of the parts that share one radius, by their places."""
    assert plan.radius is not None
    copies = [plan.radius.draw(scale.steps, random) for _ in range(plan.radius.copies)]
    drawn = zip(plan.under_radius, zip(*copies, strict=True), strict=True)
    return {place: plan.parts[place].radius_noise(np.array(own)) for place, own in drawn}


def _noisy_counts(
    rules: OutOfDomain,
    scale: NoiseScale,
    counts: NDArray[np.int64] | None,
    max_records: int,
    random: RandomSource,
) -> OutOfDomainCounts:
    """Return the counts of records out of domain with noise."""
    number = len(rules.counts)
    if counts is None or counts.shape != (number,):
        raise SourceError("the source did not return the counts out of domain that were asked for")
    bound = max(max_records, DEFAULT_MAX_RECORDS)
    while int(counts.max()) > bound:
        bound *= 2
    check_entries(scale, 1, bound)
    answers = apply_kronecker([IdentityMatrix(number)], counts, bound * number)
    values = np.ldexp(noisy(answers, scale, random).astype(np.float64), scale.power)
    return OutOfDomainCounts(rules.counts, scale, values)


# Discoveries: which values persons have in a column, told by a mechanism that is exact.


@final
@dataclass(frozen=True)
class FoundValues:
    """Values of a column that a discovery tells: all that is ever known of it.

    Attributes
    ----------
    values : tuple of (str or float)
        Canonical values, by number and then by text.
    authorization : Authorization
        The cost that was authorized before any value was drawn.
    private : bool
        False if the random bits were seeded: then nothing is protected.
    assumptions : tuple of str
        What the promise assumes of the table, in sentences.
    reservation : Reservation or None
        The debit of the ledger.
    """

    values: tuple[str | float, ...]
    authorization: Authorization
    private: bool
    assumptions: tuple[str, ...]
    reservation: Reservation | None = None


@withholding
def find_values(
    mechanism: Mechanism,
    source: Source,
    attribute: Attribute,
    budget: Budget,
    *,
    seed_not_private: int | None = None,
    ledger: Ledger | None = None,
    release: Path | None = None,
    before_noise: Callable[[], None] | None = None,
    reading: Unit | None = None,
) -> FoundValues:
    """Find the values of a column that a mechanism tells; like `measure` in all that concerns the table.

    The attribute says how the column is read; the values that it lists itself are not looked for. Of each
    person the first records count, as everywhere, and of these the values in their order, or what `reading`
    says instead: the mechanism bounds what a person's list does, whatever is in it.

    Raises
    ------
    PrivacyError
        If the cost is not within the budget, or the ledger has less left. Before any record is read.
    StorageError
        If the ledger cannot be read or written. Before any record is read.
    SourceError
        If the table cannot be read.
    """
    random = random_source(seed_not_private)
    charged = None if seed_not_private is not None else ledger
    authorization = authorize(mechanism.cost(budget.moved), budget, charged)
    read = source.person_values(attribute, reading or budget.unit)
    assumptions = source.assumptions(Domain([attribute]))
    entry: Reservation | None = None
    try:
        if charged is not None:
            authorization, entry = debit(authorization, charged, release)
        _LOG.info("discovering values of %s within %r", attribute.name, budget)
        _LOG.info("%s", authorization.note)
        if not random.private:
            _LOG.warning("NOT PRIVATE: the random bits are seeded")
        held = read()
        left_out = {canonical_value(attribute.label(code)) for code in attribute.all_codes}
        allowed = [is_category(text) and text not in left_out for text in held.texts]
        kept = np.array(allowed, dtype=np.bool_)[held.places]
        if before_noise is not None:
            before_noise()
        told = mechanism.found(held.persons[kept], held.places[kept], len(allowed), random)
        values = tuple(held.texts[place] for place in told)
    except BaseException as error:
        note_debit(error, entry, charged)
        raise
    return FoundValues(values, authorization, random.private, assumptions, entry)
