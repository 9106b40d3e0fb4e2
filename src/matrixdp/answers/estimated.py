"""One estimate with its standard error and its interval."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Self, final

__all__ = ["Estimated"]


@final
@dataclass(frozen=True)
class Estimated:
    """An estimate of a number of records.

    Attributes
    ----------
    estimate, stddev : float
        With its standard error, in records.
    lower, upper : float
        The ends of its interval, of the confidence of the release.

    Examples
    --------
    >>> print(Estimated.within(17.2, 46.8, 1.96))
    17 +- 92
    >>> print(Estimated.within(3.0, 1.0, 0.0))
    3 +- 0
    >>> print(Estimated.within(1461.02, 0.25, 1.96))
    1,461.0 +- 0.5
    """

    estimate: float
    stddev: float
    lower: float
    upper: float

    @classmethod
    def within(cls, estimate: float, stddev: float, multiplier: float) -> Self:
        """Return an estimate with an interval of so many standard errors to either side."""
        half = multiplier * stddev
        return cls(estimate, stddev, estimate - half, estimate + half)

    def as_dict(self) -> dict[str, float]:
        """Return it as JSON has it."""
        return asdict(self)

    def __str__(self) -> str:
        half = (self.upper - self.lower) / 2
        digits = max(0, -math.floor(math.log10(half))) if 0 < half < 10 else 0
        return f"{self.estimate:,.{digits}f} +- {half:,.{digits}f}"
