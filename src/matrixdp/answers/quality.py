"""How reliable figures are, and how readers see those that are not: post-processing, at no privacy cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from matrixdp.errors import SpecificationError
from matrixdp.forms import describe_value

GRADES = (("A", 0.05), ("B", 0.15), ("C", 1 / 3))
"""Letters with the largest coefficient of variation (standard error over estimate) that each stands for."""
UNRELIABLE = "F"
"""The letter of figures beyond all grades, and what stands in place of a suppressed figure."""
GRADE_WORDS = (
    "Quality: A coefficient of variation up to 5%; B up to 15%; C up to 33%; F above, or no more than noise."
)


def grades(estimates: Sequence[float | None], stddevs: Sequence[float | None]) -> list[str]:
    """Return the letter of each figure; nothing for figures without a standard error.

    Examples
    --------
    >>> grades([1000.0, 100.0, 30.0, 3.0, -2.0, 7.0], [12.0, 12.0, 9.0, 9.0, 9.0, None])
    ['A', 'B', 'C', 'F', 'F', '']
    """
    return [
        "" if own is None else next((letter for letter, most in GRADES if own <= most), UNRELIABLE)
        for own in map(_variation, estimates, stddevs)
    ]


def _variation(estimate: float | None, stddev: float | None) -> float | None:
    """Return the coefficient of variation of a figure; None where it has no standard error."""
    if estimate is None or stddev is None or not math.isfinite(stddev):
        return None
    return abs(stddev / estimate) if estimate else (math.inf if stddev else 0.0)


@final
@dataclass(frozen=True)
class Presentation:
    """How figures are shown to readers; files for machines keep every estimate as it is.

    Parameters
    ----------
    suppress_above : float, optional
        Figures whose coefficient of variation is larger are shown as ``F``.
    within_range : bool
        Whether counts below 0 are shown as 0, and shares outside [0, 1] as the nearer end.

    Raises
    ------
    SpecificationError
        If the coefficient of variation is no number above 0.

    Examples
    --------
    >>> Presentation(suppress_above=0.33).suppressed([100.0, 3.0], [5.0, 5.0])
    [False, True]
    """

    suppress_above: float | None = None
    within_range: bool = False

    def __post_init__(self) -> None:
        most = self.suppress_above
        if most is None:
            return
        if isinstance(most, bool) or not isinstance(most, int | float) or not 0 < most < math.inf:
            expected = "a coefficient of variation above 0, such as 0.33"
            raise SpecificationError.at(("suppress_above",), describe_value(most), expected)

    def suppressed(self, estimates: Sequence[float | None], stddevs: Sequence[float | None]) -> list[bool]:
        """Return which figures are not shown."""
        most = math.inf if self.suppress_above is None else self.suppress_above
        return [own is not None and own > most for own in map(_variation, estimates, stddevs)]

    def shown(self, value: float, unit: str) -> float:
        """Return what is shown of a figure of a unit."""
        if not self.within_range or unit not in ("records", "share"):
            return value
        return min(max(value, 0.0), 1.0) if unit == "share" else max(value, 0.0)

    @property
    def words(self) -> list[str]:
        """The rules that are applied, in sentences."""
        found = [GRADE_WORDS]
        if self.suppress_above is not None:
            found.append(
                f"Figures with a coefficient of variation above {100 * self.suppress_above:g}% are too "
                f"unreliable to show: {UNRELIABLE} stands in their place. The files for machines have all."
            )
        if self.within_range:
            found.append(
                "Counts below 0 are shown as 0, and shares outside 0 to 1 as the nearer end; the files for "
                "machines have the unbiased estimates."
            )
        return found
