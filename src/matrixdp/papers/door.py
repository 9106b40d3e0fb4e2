"""The only module of papers that reads a table; noise is drawn where that of every release is.

Releases of every other mechanism go through `matrixdp.measure.measurement.measure`, and never through here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import PrivacyError, SourceError
from matrixdp.exact import IntegerTensor
from matrixdp.measure.measurement import SCALE_BITS, Authorization, NoiseScale, noisy
from matrixdp.measure.statement import PrivacyStatement, statement
from matrixdp.noise import LAPLACE, RandomSource
from matrixdp.privacy import Clause, Unit
from matrixdp.queries import Workload
from matrixdp.sources import open_source

__all__ = [
    "MOST_RECORDS",
    "lattice_scale",
    "noisy_quotients",
    "paid_statement",
    "read_counts",
    "table_assumptions",
]

Integers = NDArray[np.int64]

#: The count of a cell is cut to this, so that integers never overflow; one record still changes it by one.
MOST_RECORDS = 2**33
#: Of the lower part of an integer of 63 bits: both parts are exact as floating-point numbers.
_BITS = 32


def read_counts(
    table: object,
    domain: Domain,
    marginals: Sequence[tuple[str, ...]],
    out_of_domain: OutOfDomain | None,
    mechanism: str,
    table_name: str | None = None,
    unit: Unit | None = None,
) -> dict[tuple[str, ...], Integers]:
    """Return how many records are in each cell of marginals, cut to `MOST_RECORDS`."""
    rule = OutOfDomain.drop() if out_of_domain is None else out_of_domain
    if rule.counts:
        expected = f"no counts: the mechanism {mechanism} does not measure how many records are out of domain"
        raise PrivacyError.at(("out_of_domain", "count"), "counts of records", expected)
    for attribute in {name for marginal in marginals for name in marginal}:
        if domain[attribute].divided:
            expected = "an attribute with values of its own, such as {edges: [0, 1000, 5000]}"
            raise PrivacyError.at(("domain", attribute), "an amount", expected, code="not-supported")
    source = open_source(table, table_name=table_name)
    found = {
        marginal: np.minimum(np.asarray(counts, dtype=np.int64), MOST_RECORDS)
        for marginal, counts in source.marginals(domain, list(marginals), rule, unit)
    }
    if set(marginals) - set(found):
        raise SourceError("the source did not return the marginal that was asked for")
    return found


def table_assumptions(table: object, workload: Workload, table_name: str | None = None) -> tuple[str, ...]:
    """Return what the promise assumes of a table; no record of it is read."""
    return open_source(table, table_name=table_name).assumptions(workload.domain)


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
    promise = statement(authorization.cost, authorization.budget, private=private, assumptions=assumptions)
    text = "The domain, the workload and the budget were chosen without looking at the data"
    paid = Clause("chosen-without-data", f"{text}; {chosen} chosen from the data, and the cost includes it.")
    return replace(promise, assumed=tuple(paid if own.id == paid.id else own for own in promise.assumed))
