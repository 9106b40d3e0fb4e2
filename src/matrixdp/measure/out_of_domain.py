"""Counts of records out of domain, measured at no further cost.

A record is either in the domain, and then in one cell of every marginal, or out of it, and then in these
counts alone. So one record moves the answers of the plan or these counts, and never both: adding or removing
it costs the larger of the two costs, replacing one by the other their sum. The noise of the counts is chosen
such that the plan and they cost no more than the plan does. docs/privacy.md has the proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import PrivacyError
from matrixdp.exact import IdentityMatrix
from matrixdp.measure.calibration import DEFAULT_MAX_RECORDS, SCALE_BITS, NoiseScale, check_entries, plan_cost
from matrixdp.noise import Cost
from matrixdp.plan import Plan

__all__ = ["OutOfDomainCounts", "count_scale", "counts_cost", "measured_cost"]

_ONE = IdentityMatrix(1)
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
        """What they cost a record that is in all of them."""
        return counts_cost(self.scale, len(self.attributes))


def counts_cost(scale: NoiseScale, number: int) -> Cost:
    """Return the exact cost of one record in so many counts with noise of a scale, or a bound just above it.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, LAPLACE
    >>> float(counts_cost(NoiseScale(Fraction(2), 0, GAUSSIAN), 3).value)
    0.75
    >>> float(counts_cost(NoiseScale(Fraction(2), 0, LAPLACE), 3).value)
    1.5
    """
    return scale.noise.exact_cost([(_ONE, scale.exact)] * number)


def count_scale(number: int, allowed: Cost, max_records: int = DEFAULT_MAX_RECORDS) -> NoiseScale:
    """Return the least noise, to about 2^-40, at which so many counts together cost at most what is allowed.

    Raises
    ------
    PrivacyError
        If there is none for which answers about so many records stay in range.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> scale = count_scale(2, Cost(Fraction(1, 2), GAUSSIAN))
    >>> float(scale.exact), counts_cost(scale, 2) <= Cost(Fraction(1, 2), GAUSSIAN)
    (2.0, True)
    """
    noise = allowed.noise
    wanted = Fraction(float(number / allowed.value) ** (1.0 / noise.norm))
    power = math.frexp(float(wanted))[1] - 1 - SCALE_BITS
    for attempt in range(60):
        scale = NoiseScale.at_least(wanted * (1 + (2**attempt - 1) * _STEP), power, noise)
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

    Raises
    ------
    PrivacyError
        If a part has no noise or no sensitivity, or noise of another kind than the plan's.
    """
    return plan_cost(plan, scales, neighbours, None if counts is None else counts.cost)
