"""What a release says of the table as a whole: whether it looks as if the domain did not fit.

All of it is computed from the noisy measurement and public figures, so it costs nothing and tells nothing
more than the answers do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from matrixdp.answers.estimated import Estimated
from matrixdp.answers.intervals import Intervals
from matrixdp.domain import Domain
from matrixdp.errors import UnsupportedQueryError
from matrixdp.language import marginals
from matrixdp.measure import Measurement
from matrixdp.plan import Analysis
from matrixdp.queries import Group

__all__ = ["SizeCheck", "check_size", "groups_within_noise", "total_of"]

#: What noise alone exceeds with this probability at most is taken for more than noise.
_CHANCE = 1e-4
#: Groups of more queries are not looked at, nor any after so many queries of all groups.
_QUERIES, _QUERIES_OF_ALL = 10_000, 200_000
_NAMED = 3
_ADVICE = "check the domain against the values and the spelling in the table"
_TO_COUNT = "; `out_of_domain: {count: true}` measures how many records are dropped, at no further cost"


@final
@dataclass(frozen=True)
class SizeCheck:
    """The number of records in the domain, as released, beside what was expected.

    Attributes
    ----------
    total : Estimated or None
        The estimate of the number of records; None where the measurement does not determine it.
    expect : int or None
        The number that was expected: a public figure.
    far : float
        How many standard errors noise alone exceeds with a probability of at most 1 in 10,000.
    groups_within_noise : tuple of str
        Groups of which no answer can be told from noise, among those that were looked at: of at most 10,000
        queries, and 200,000 in all.
    counted : bool
        Whether records out of domain were counted.

    Examples
    --------
    >>> check = SizeCheck(Estimated.within(175, 10, 1.96), 1461, 4.0, ())
    >>> check.agrees, check.warnings[0][:77]
    (False, 'the whole table is estimated at 175 +- 20 records, and 1,461 were expected: a')
    """

    total: Estimated | None
    expect: int | None
    far: float
    groups_within_noise: tuple[str, ...]
    counted: bool = False

    @property
    def agrees(self) -> bool | None:
        """Whether the total is as expected, up to its noise; None where there is nothing to compare."""
        if self.total is None or self.expect is None:
            return None
        return abs(self.total.estimate - self.expect) <= self.far * self.total.stddev

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks wrong, in sentences."""
        return tuple(self._warnings())

    @property
    def _advice(self) -> str:
        return _ADVICE if self.counted else _ADVICE + _TO_COUNT

    def _warnings(self) -> Iterator[str]:
        total, expect = self.total, self.expect
        if total is not None and expect is not None and not self.agrees:
            off = Estimated(abs(total.estimate - expect), total.stddev, 0.0, total.upper - total.lower)
            which = "too few" if total.estimate < expect else "too many"
            yield (
                f"the whole table is estimated at {total} records, and {expect:,} were expected: about "
                f"{str(off).split(' ')[0]} {which}; {self._advice}"
            )
        elif total is not None and total.estimate < self.far * total.stddev:
            yield (
                f"the whole table is estimated at {total} records, which cannot be told from none: "
                f"{self._advice}, and a larger budget or fewer queries make the noise smaller"
            )
        elif total is None and expect is not None:
            yield f"{expect:,} records were expected, and how many there are does not follow from the release"
        quiet = self.groups_within_noise
        if quiet:
            more = "" if len(quiet) <= _NAMED else f" and {len(quiet) - _NAMED:,} more"
            yield (
                f"no answer can be told from noise in {len(quiet):,} of the groups: "
                f"{'; '.join(quiet[:_NAMED])}{more}"
            )

    def as_dict(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "total": None if self.total is None else self.total.as_dict(),
            "expect": self.expect,
            "agrees": self.agrees,
            "groups_within_noise": list(self.groups_within_noise),
        }


def total_of(analysis: Analysis, domain: Domain) -> Group | None:
    """Return the query for the number of records; None where what is measured does not determine it."""
    (group,) = marginals(0).expand(domain)
    try:
        analysis.check_support(group)
    except UnsupportedQueryError:
        return None
    return group


def groups_within_noise(measurement: Measurement, groups: Sequence[Group]) -> Iterator[str]:
    """Yield the names of the groups of which no answer can be told from noise."""
    left = _QUERIES_OF_ALL
    for group in groups:
        if group.queries > _QUERIES or group.queries > left:
            continue
        left -= group.queries
        variances = measurement.analysis.variances(group)
        estimates = np.abs(measurement.estimates.answers(group))
        far = measurement.plan.noise.largest_quantile(1 - _CHANCE / group.queries)
        if (estimates < far * np.sqrt(variances)).all():
            yield group.name


def check_size(
    measurement: Measurement, groups: Sequence[Group], confidence: float, expect: int | None
) -> SizeCheck:
    """Compare what was released with what was expected; the interval of the total has a confidence."""
    total: Estimated | None = None
    query = total_of(measurement.analysis, measurement.plan.domain)
    if query is not None:
        deviation = float(np.sqrt(measurement.analysis.variances(query))[0])
        value = float(measurement.estimates.answers(query)[0])
        # of its own: those of the answers depend on which were asked for before
        intervals = Intervals(measurement.analysis, measurement.plan.noise, confidence)
        multiplier = float(np.ravel(intervals.multipliers(query))[0])
        total = Estimated.within(value, deviation, multiplier)
    far = measurement.plan.noise.largest_quantile(1 - _CHANCE)
    quiet = tuple(groups_within_noise(measurement, groups))
    return SizeCheck(total, expect, far, quiet, measurement.out_of_domain_counts is not None)
