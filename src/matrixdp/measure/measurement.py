"""The one door: the only place that reads a table and draws noise."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import OutOfDomain
from matrixdp.errors import NumericalError, PrivacyError, SafeNote
from matrixdp.exact import IdentityMatrix, IntegerTensor, apply_kronecker
from matrixdp.ledger import Ledger, Reservation
from matrixdp.measure.calibration import (
    DEFAULT_MAX_RECORDS,
    NoiseScale,
    calibrate,
    check_entries,
    check_range,
    left_for_counts,
    plan_cost,
)
from matrixdp.measure.gate import Authorization, authorize, debit
from matrixdp.measure.out_of_domain import OutOfDomainCounts, count_scale, counts_cost
from matrixdp.measure.statement import PrivacyStatement, statement
from matrixdp.noise import RandomSource, SeededSource, SystemSource
from matrixdp.plan import Analysis, Estimates, Plan
from matrixdp.privacy import Budget
from matrixdp.sources import Source
from matrixdp.sources.source import OUT_OF_DOMAIN, Marginal

__all__ = ["DEFAULT_MAX_RECORDS", "Measurement", "maximal_marginals", "measure", "noisy", "random_source"]

#: Is told what follows from the plan and the budget alone, before any record is counted; nothing after.
_LOG = logging.getLogger(__name__)


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
        The noisy answers of each part, flat, multiples of 2^power.
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
    reservation : Reservation or None
        The debit of the ledger, for what becomes of it; no file keeps this.
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

    @cached_property
    def analysis(self) -> Analysis:
        """Errors at the noise that was really added, rounding to the lattice included."""
        return self.plan.analysed([scale.variance for scale in self.scales])

    @cached_property
    def estimates(self) -> Estimates:
        """What follows from the noisy answers."""
        return self.analysis.estimates(self.values)

    @cached_property
    def statement(self) -> PrivacyStatement:
        """What is promised of the noisy answers, and so of everything that follows from them."""
        authorization = self.authorization
        return statement(
            authorization.cost,
            authorization.budget,
            private=self.private,
            assumptions=self.assumptions,
            ledger=authorization.ledger,
            counted=self.out_of_domain_counts is not None,
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


def random_source(seed_not_private: int | None) -> RandomSource:
    """Return the operating system's generator, or a seeded one, whose noise protects nobody."""
    return SystemSource() if seed_not_private is None else SeededSource(seed_not_private)


def noisy(
    answers: IntegerTensor, scale: NoiseScale, source: RandomSource, shift: int = 0
) -> NDArray[np.int64]:
    """Return round((answers / 2^shift + noise) / step) for exact answers, flat."""
    power = scale.power + shift
    quotient, fraction, exact = answers.split(power)
    offsets, exact_offset = (None, None) if power <= 0 else (fraction, exact)
    drawn = scale.noise.draw_rounded(
        scale.steps, len(quotient), offsets=offsets, exact_offset=exact_offset, source=source
    )
    return np.asarray(quotient + drawn)


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
    progress: Callable[[int, int], None] | None = None,
) -> Measurement:
    """Measure a plan on a table: the only step that reads data.

    The exact cost is authorized first, and debited to the ledger, if there is one; then each marginal is
    counted, the plan's integer queries are answered exactly, and exactly rounded noise of the plan's kind is
    added.

    Everything of the budget is spent. Records outside the domain are dropped unless ``out_of_domain`` says
    otherwise; the numbers of them that it asks for are measured within the same cost. A table of more than
    ``max_records`` gives the same results, more slowly. With ``seed_not_private`` THE RESULT IS NOT PRIVATE,
    and says so, and no ledger is debited. ``release`` is where the release will go, for the ledger.
    ``progress`` is called with the number of parts measured and of all, first just before any noise is drawn.

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
        raise PrivacyError.at(("max_records",), repr(max_records), "an integer of at least 1")
    rules = OutOfDomain.drop() if out_of_domain is None else out_of_domain
    between, number = budget.neighbours, len(rules.counts)
    allowed = plan.noise.cost(budget)
    scales, cost = calibrate(plan, allowed, max_records, between, counted=number > 0)
    counted = None
    if number:
        # what the plan leaves them, so that its cost is the cost of both
        counted = count_scale(number, left_for_counts(plan, scales, cost, between), max_records)
        cost = plan_cost(plan, scales, between, counts_cost(counted, number))
    random = random_source(seed_not_private)
    debited = ledger if random.private else None
    authorization = authorize(cost, budget, debited)
    groups = maximal_marginals(plan.positions)
    # what the table cannot answer at all is refused here, and costs nothing
    marginals = source.marginals(plan.domain, list(groups), rules, budget.unit)
    assumptions = source.assumptions(plan.domain)  # a database is opened for them
    reservation: Reservation | None = None
    if debited is not None:
        authorization, reservation = debit(authorization, debited, release)
    _LOG.info("measuring %d parts with %s noise within %r", len(plan.parts), plan.noise, budget)
    _LOG.info("%s", authorization.note)
    if not random.private:
        _LOG.warning("NOT PRIVATE: the noise is seeded")
    with _told_of(reservation):
        values, numbers = _noisy_answers(plan, scales, groups, marginals, max_records, random, progress)
        counts = None if counted is None else _noisy_counts(rules, counted, numbers, max_records, random)
    return Measurement(
        plan,
        scales,
        values,
        authorization,
        random.private,
        max_records,
        rules,
        assumptions,
        reservation,
        counts,
    )


@contextmanager
def _told_of(reservation: Reservation | None) -> Iterator[None]:
    """Let whatever fails after a debit say that it counts."""
    try:
        yield
    except BaseException as error:
        if reservation is not None:
            error.add_note(SafeNote(reservation.note))
        raise


def _noisy_answers(
    plan: Plan,
    scales: tuple[NoiseScale, ...],
    groups: Mapping[tuple[str, ...], list[tuple[str, ...]]],
    marginals: Iterable[Marginal],
    max_records: int,
    random: RandomSource,
    progress: Callable[[int, int], None] | None,
) -> tuple[tuple[NDArray[np.float64], ...], NDArray[np.int64] | None]:
    """Return the noisy answers of each part, in the order of the plan, from the counts of the marginals.

    Beside them the exact counts of records out of domain, if the source returns such.
    """
    values: dict[int, NDArray[np.float64]] = {}
    outside: NDArray[np.int64] | None = None
    for subset, counts in marginals:
        if subset == OUT_OF_DOMAIN:
            outside = counts
            continue
        bound = max_records
        while int(counts.sum()) > bound:
            bound *= 2
        if bound > max(max_records, DEFAULT_MAX_RECORDS):
            check_range(plan, scales, bound)
        for attributes in groups[subset]:
            others = tuple(axis for axis, name in enumerate(subset) if name not in attributes)
            marginal = np.asarray(counts.sum(axis=others) if others else counts, dtype=np.int64)
            for index in plan.positions[attributes]:
                if progress is not None and not values:
                    progress(0, len(plan.parts))
                answers, scale = plan.parts[index].answers(marginal, bound), scales[index]
                values[index] = np.ldexp(noisy(answers, scale, random).astype(np.float64), scale.power)
                if progress is not None:
                    progress(len(values), len(plan.parts))
    if len(values) != len(plan.parts):
        raise NumericalError("the source did not return every marginal that was asked for")
    return tuple(values[i] for i in range(len(scales))), outside


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
        raise NumericalError("the source did not return the counts out of domain that were asked for")
    bound = max(max_records, DEFAULT_MAX_RECORDS)
    while int(counts.max()) > bound:
        bound *= 2
    check_entries(scale, 1, bound)
    answers = apply_kronecker([IdentityMatrix(number)], counts, bound * number)
    values = np.ldexp(noisy(answers, scale, random).astype(np.float64), scale.power)
    return OutOfDomainCounts(rules.counts, scale, values)
