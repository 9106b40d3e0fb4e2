"""Plans: parts with their shares of the noise, and how answers follow from them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.noise import Noise
from matrixdp.plan.analysis import Analysis
from matrixdp.plan.part import Part
from matrixdp.plan.replacement import Moves, moves

__all__ = ["PLAN_KINDS", "Plan"]

#: Every kind of plan by its name, which archives refer to it by.
PLAN_KINDS: dict[str, type[Plan]] = {}
#: How far the cost of a plan may lie above 1, in floating point.
_COST_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Plan(ABC):
    """What will be measured at privacy cost 1: parts, their noise, and how answers follow from them.

    Every kind of plan is a subclass that names itself, ``class Own(Plan, kind="own")``, and is a frozen
    dataclass. What it has beside these fields are mappings of names to arrays of floats; archives keep them.

    Parameters
    ----------
    domain : Domain
        The attributes.
    parts : tuple of Part
        Their costs at ``variance`` add up to at most 1.
    noise : Noise
        The noise that every row is measured with.

    Attributes
    ----------
    kind : str
        The name of the kind.
    words : str
        What is measured, for records.

    Raises
    ------
    PrivacyError
        If nothing is measured, or at a cost above 1: its figures would be those of another budget.
    """

    kind: ClassVar[str]
    words: ClassVar[str]

    domain: Domain
    parts: tuple[Part, ...]
    noise: Noise

    def __init_subclass__(cls, kind: str) -> None:
        cls.kind = kind
        if PLAN_KINDS.setdefault(kind, cls).__qualname__ != cls.__qualname__:
            raise TypeError(f"two kinds of plans are called {kind!r}")

    def __post_init__(self) -> None:
        if not self.parts:
            raise PrivacyError("a plan without parts measures nothing")
        if not isinstance(self.noise, Noise):
            raise PrivacyError(f"noise: found {self.noise!r}; expected a Noise")
        if not self.cost <= 1.0 + _COST_TOLERANCE:
            raise PrivacyError(f"a plan that costs {self.cost:.9g}; expected at most 1")

    def check_distinct(self) -> None:
        """Refuse two parts on one marginal."""
        if len(self.positions) != len(self.parts):
            raise NumericalError("a plan has one part for each marginal")

    @cached_property
    def positions(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        """The places of the parts on each marginal."""
        found: dict[tuple[str, ...], tuple[int, ...]] = {}
        for place, part in enumerate(self.parts):
            found[part.attributes] = (*found.get(part.attributes, ()), place)
        return found

    @property
    def cost(self) -> float:
        """The privacy cost by which variances scale: mu squared, or epsilon squared.

        A float; the measurement recomputes it exactly.
        """
        total = math.fsum(self.noise.share(part, part.variance) for part in self.parts)
        return float(total ** (2.0 / self.noise.norm))

    @cached_property
    def moves(self) -> Moves:
        """How far a record moves each part, and how far replacing one does: exact, see `moves`."""
        return moves(self.domain, self.parts, self.noise.norm)

    @property
    def replacement_cost(self) -> float:
        """The privacy cost of one record replaced by another, or by one out of domain; see `cost`."""
        shares = [self.noise.share(part, part.variance) / self.noise.power_sum(part) for part in self.parts]
        largest = max(float((table.astype(float) @ shares).max()) for table in self.moves)
        return float(largest ** (2.0 / self.noise.norm))

    @abstractmethod
    def analysed(self, noise: Sequence[float]) -> Analysis:
        """Return estimates and errors if the parts are measured with given noise variances."""

    @cached_property
    def analysis(self) -> Analysis:
        """Estimates and errors at privacy cost 1."""
        return self.analysed([part.variance for part in self.parts])
