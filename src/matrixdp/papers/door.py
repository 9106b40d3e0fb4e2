"""The only module of papers that reads a table; noise is drawn where that of every release is.

Releases of every other mechanism go through `matrixdp.measure.measurement.measure`, and never through here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import PrivacyError, SourceError
from matrixdp.exact import IntegerTensor
from matrixdp.ledger import Ledger, Reservation
from matrixdp.measure.calibration import SCALE_BITS, NoiseScale
from matrixdp.measure.measurement import Authorization, authorize, debit, note_debit
from matrixdp.measure.noisy_answers import noisy
from matrixdp.measure.statement import PrivacyStatement, statement
from matrixdp.noise import LAPLACE, Cost, RandomSource
from matrixdp.privacy import Budget, Clause
from matrixdp.sources import Source, open_source

Integers = NDArray[np.int64]

#: The count of a cell is cut to this, so that integers never overflow; one record still changes it by one.
MOST_RECORDS = 2**33
#: Of the lower part of an integer of 63 bits: both parts are exact as floating-point numbers.
_BITS = 32


@dataclass(frozen=True)
class Asked:
    """What a mechanism asks of a table.

    Attributes
    ----------
    mechanism : str
    domain : Domain
    attributes : tuple of str
        Those that are counted.
    budget : Budget
    out_of_domain : OutOfDomain, optional
        None drops such records.
    table_name : str, optional
    """

    mechanism: str
    domain: Domain
    attributes: tuple[str, ...]
    budget: Budget
    out_of_domain: OutOfDomain | None = None
    table_name: str | None = None

    def open(self, table: object) -> OpenTable:
        """Return a table that has all that is asked, by the names and types of its columns.

        No record is read.
        """
        rule = OutOfDomain.drop() if self.out_of_domain is None else self.out_of_domain
        if rule.counts:
            told = f"the mechanism {self.mechanism} does not measure how many records are out of domain"
            expected = f"no counts: {told}"
            raise PrivacyError.at(("out_of_domain", "count"), "counts of records", expected)
        for attribute in self.attributes:
            if self.domain[attribute].divided:
                expected = "an attribute with values of its own, such as {edges: [0, 1000, 5000]}"
                raise PrivacyError.at(("domain", attribute), "an amount", expected, code="not-supported")
        source = open_source(table, table_name=self.table_name)
        source.check(self.domain, rule, self.budget.unit)
        return OpenTable(self, source, rule, source.assumptions(self.domain))


@dataclass(frozen=True)
class OpenTable:
    """A table of which no record was read yet.

    Attributes
    ----------
    asked : Asked
    source : Source
    rule : OutOfDomain
    assumptions : tuple of str
        What the promise assumes of it.
    """

    asked: Asked
    source: Source
    rule: OutOfDomain
    assumptions: tuple[str, ...]

    def counts(self, marginals: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Integers]:
        """Return how many records are in each cell of marginals, cut to `MOST_RECORDS`."""
        domain, unit = self.asked.domain, self.asked.budget.unit
        found = {
            marginal: np.minimum(np.asarray(counts, dtype=np.int64), MOST_RECORDS)
            for marginal, counts in self.source.marginals(domain, list(marginals), self.rule, unit)
        }
        if set(marginals) - set(found):
            raise SourceError("the source did not return the marginal that was asked for")
        return found


@contextmanager
def paid_table(
    table: object, asked: Asked, cost: Cost, ledger: Ledger | str | os.PathLike[str] | None, private: bool
) -> Iterator[tuple[OpenTable, Authorization]]:
    """Open a table whose whole cost is authorized, and debited to the ledger, before any record is read.

    With seeded noise no ledger is debited.

    Raises
    ------
    PrivacyError
        If the ledger has less left. Before the table is opened, or before any record is read.
    StorageError
        If the ledger cannot be read or written. Before any record is read.
    SourceError
        If the table has not what is asked for. Before the debit.
    """
    if not private:
        ledger = None
    elif isinstance(ledger, str | os.PathLike):
        ledger = Ledger.open(ledger)
    authorization = authorize(cost, asked.budget, ledger)
    opened = asked.open(table)
    reservation: Reservation | None = None
    try:
        if ledger is not None:
            authorization, reservation = debit(authorization, ledger, None)
        yield opened, authorization
    except BaseException as error:
        note_debit(error, reservation, ledger)
        raise


def lattice_scale(sensitivity: Fraction | int, epsilon: Fraction, least: int, most: int) -> NoiseScale:
    """Return Laplace noise of a scale of at least sensitivity / epsilon on a lattice of multiples of 2^power.

    Examples
    --------
    >>> scale = lattice_scale(2, Fraction(1, 3), -14, -2)
    >>> scale.power, 0 <= scale.exact - 6 < 1e-9
    (-10, True)
    """
    wanted = Fraction(sensitivity) / epsilon
    exponent = wanted.numerator.bit_length() - wanted.denominator.bit_length()
    scale = NoiseScale.at_least(wanted, min(max(exponent - SCALE_BITS, least), most), LAPLACE)
    if not 1 <= scale.steps <= 2**20:
        raise PrivacyError("budget: an epsilon so small or so large that noise of its scale is not supported")
    return scale


def noisy_quotients(values: Integers, shift: int, scale: NoiseScale, random: RandomSource) -> Integers:
    """Return the integers round((v + noise) / 2^power) for the exact values v = values / 2^shift."""
    limbs = [(values & ((1 << _BITS) - 1)).astype(np.float64), (values >> _BITS).astype(np.float64)]
    return noisy(IntegerTensor(limbs, _BITS), scale, random, shift)


def paid_statement(
    authorization: Authorization, private: bool, assumptions: tuple[str, ...], chosen: str
) -> PrivacyStatement:
    """Return the promise of a mechanism that chose something from the data, which its cost includes."""
    cost, budget, ledger = authorization.cost, authorization.budget, authorization.ledger
    promise = statement(cost, budget, private=private, assumptions=assumptions, ledger=ledger)
    text = "The domain, the workload and the budget were chosen without looking at the data"
    paid = Clause("chosen-without-data", f"{text}; {chosen} chosen from the data, and the cost includes it.")
    return replace(promise, assumed=tuple(paid if own.id == paid.id else own for own in promise.assumed))
