"""The one door: the only place that reads a table and draws noise."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.display import without_caches
from matrixdp.domain import Attribute, Domain, OutOfDomain
from matrixdp.domain.rules import canonical_value, is_category
from matrixdp.errors import MatrixDPError, PrivacyError, SafeNote, withholding
from matrixdp.ledger import Ledger, LedgerEntry, Reservation
from matrixdp.ledger.ledger import now
from matrixdp.measure.calibration import (
    NoiseScale,
    OutOfDomainCounts,
    calibrate,
    check_entries,
    count_scale,
    counts_cost,
    left_for_counts,
    measured_cost,
    noise_scale,
    plan_cost,
    row_variances,
    tails_of,
)
from matrixdp.measure.noisy_answers import (
    Room,
    every_table,
    maximal_marginals,
    noisy_answers,
    noisy_counts,
    random_source,
    times,
    whole_tables,
)
from matrixdp.measure.statement import PrivacyStatement, statement
from matrixdp.measure.workers import Job, Workers, measured_by, shared, slices_for
from matrixdp.noise import (
    Cost,
    Mechanism,
    RandomSource,
    Tails,
    checked_cost,
)
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
from matrixdp.plans.rounds import FIRST_SHARE, averaged
from matrixdp.privacy import Budget, Unit
from matrixdp.privacy.budget import DEFAULT_MAX_RECORDS
from matrixdp.sources import Source
from matrixdp.sources.base import Marginal

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
    workers: Workers | None = None,
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

    ``workers`` count and measure a run of areas each; a plan that cannot be cut, or counts what is in no run,
    is rejected. Their noise is drawn after ``before_noise``, and never twice.

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
    slices = Slices.of(plan) if second is None else None
    if workers is not None:
        slices = slices_for(plan, rules, budget.unit, rounds=second is not None)
    marginals: Iterable[Marginal] = ()
    reservation: Reservation | None = None
    with ExitStack() as stack:
        # what the table cannot answer at all is rejected here, and costs nothing
        if workers is not None and slices is not None:
            source.check(plan.domain, rules)
            runs = slices.runs()
            known = scales, groups, source, rules, max_records, seed_not_private
            job = Job(slices, runs, slices.within(runs), *known)
            folder = stack.enter_context(shared(job, workers))
        else:
            if slices is None:
                check_held(plan)
            cut = None if slices is None else (slices.attribute, slices.width)
            marginals = source.marginals(plan.domain, list(groups), rules, budget.unit, cut)
        assumptions = source.assumptions(plan.domain)  # a database is opened for them
        room = Room(plan, scales)  # a disk without a place for the answers is rejected, too
        try:
            if debited is not None:
                authorization, reservation = debit(authorization, debited, release)
            _LOG.info("measuring %d parts with %s noise within %r", len(plan.parts), plan.noise, budget)
            _LOG.info("%s", authorization.note)
            if not random.private:
                _LOG.warning("NOT PRIVATE: the noise is seeded")
            numbers = None
            if workers is not None:
                if before_noise is not None:
                    before_noise()
                measured_by(workers, job, folder, room.keep, progress)
            else:
                if second is not None:
                    marginals = list(marginals)
                tables = every_table(plan, groups, marginals, slices)
                numbers = noisy_answers(
                    plan, scales, groups, tables, room.keep, max_records, random,
                    before_noise=before_noise, progress=progress, times=times(plan, slices),
                )  # fmt: skip
            counts = None if counted is None else noisy_counts(rules, counted, numbers, max_records, random)
            facts = random.private, max_records, rules, assumptions, reservation, counts
            measured = Measurement(plan, scales, room.values(), authorization, *facts)
            if second is not None:
                measured = _measured_again(measured, second, cost, groups, marginals, random, progress)
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
        check_entries(
            noise_scale(plan, part.at_cost(plan.noise), whole, 1.0), part.max_entry, records, part.walk
        )


def _measured_again(
    first: Measurement,
    second: NextRound,
    cost: Cost,
    groups: Mapping[tuple[str, ...], Sequence[tuple[str, ...]]],
    held: Iterable[Marginal],
    random: RandomSource,
    progress: Callable[[int, int], None] | None,
) -> Measurement:
    """Measure a second round, planned from the noisy answers of the first, with what the first left."""
    begun, budget = first.plan, first.authorization.budget
    assert isinstance(begun, Split)  # checked where it was planned
    plan = second([scale.variance for scale in first.scales], first.estimates)
    left = Cost(first.authorization.cost.value - cost.value, plan.noise)
    scales, _ = calibrate(plan, left, first.max_records, budget.neighbours)
    both, both_scales = Rounds.of(begun, plan), (*first.scales, *scales)
    if not as_authorized(first.authorization, both, both_scales, first.out_of_domain_counts):
        raise PrivacyError("rounds: the second costs more than the first left of the budget")
    every = {holder: [own for own in names if own in plan.positions] for holder, names in groups.items()}
    again = {holder: own for holder, own in every.items() if own}
    marginals = [(holder, counts) for holder, counts in held if holder in again]
    room, tables = Room(plan, scales), whole_tables(plan, again, marginals)
    noisy_answers(
        plan, scales, again, tables, room.keep, first.max_records, random,
        progress=progress, times=len(plan.parts),
    )  # fmt: skip
    return replace(first, plan=both, scales=both_scales, values=(*first.values, *room.values()))


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
    values = [np.array(old) for old in earlier.values]

    def keep(place: int, _rows: slice, steps: NDArray[np.int64]) -> None:
        values[place][due[place]] = np.ldexp(steps.astype(np.float64), earlier.scales[place].power)

    tables = whole_tables(plan, groups, marginals)
    noisy_answers(
        plan, earlier.scales, groups, tables, keep, earlier.max_records, random,
        before_noise=before_noise, progress=progress, times=len(plan.parts), due=due,
    )  # fmt: skip
    return replace(
        earlier,
        values=tuple(values),
        assumptions=tuple(dict.fromkeys((*earlier.assumptions, *assumptions))),
        reservation=None,
        periods=Periods(periods.attribute, (*periods.published, through)),
    )


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
