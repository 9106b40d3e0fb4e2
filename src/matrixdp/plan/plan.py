"""What is measured, as four kinds of plans: how answers follow from the parts.

A plan is a list of parts with their shares of the noise. Its kind says how queries are estimated from them.
"""

from __future__ import annotations

import math
from abc import ABC
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError, PrivacyError
from matrixdp.exact import IdentityMatrix
from matrixdp.plan.part import Part

__all__ = ["PLAN_KINDS", "Direct", "Local", "Plan", "Pooled", "Split", "residual_weights"]

Array = NDArray[np.float64]

#: Every kind of plan by its name, which archives refer to it by.
PLAN_KINDS: dict[str, type[Plan]] = {}
#: How far from 1 the sum of a weight vector may be.
_WEIGHT_SUM = 1e-6


def residual_weights(size: int) -> Array:
    """Return the uniform weight vector of QuerySmasher: 1/n for each of n values."""
    return np.full(size, 1.0 / size)


@dataclass(frozen=True, eq=False)
class Plan(ABC):
    """The frozen plan of a measurement: parts, their noise, and how answers follow from them.

    Every kind is a subclass that names itself, ``class Own(Plan, kind="own")``, and is a frozen dataclass.
    What it has beside these fields are mappings of names to arrays of floats, which archives keep.

    Parameters
    ----------
    domain : Domain
        The attributes.
    parts : tuple of Part
        Their costs at ``variance`` add up to at most 1.
    noise : {"gaussian", "laplace"}
        The noise that every row is measured with.

    Attributes
    ----------
    kind : str
        The name of the kind.
    words : str
        What is measured, for records.
    """

    kind: ClassVar[str]
    words: ClassVar[str]

    domain: Domain
    parts: tuple[Part, ...]
    noise: str

    def __init_subclass__(cls, kind: str) -> None:
        cls.kind = kind
        if PLAN_KINDS.setdefault(kind, cls).__qualname__ != cls.__qualname__:
            raise TypeError(f"two kinds of plans are called {kind!r}")

    def __post_init__(self) -> None:
        if not self.parts:
            raise PrivacyError("a plan without parts measures nothing")
        if self.noise not in ("gaussian", "laplace"):
            raise PrivacyError(f"noise: found {self.noise!r}; expected gaussian or laplace")

    def _check_distinct(self) -> None:
        if len(self.positions) != len(self.parts):
            raise NumericalError("a plan has one part for each marginal")

    @cached_property
    def positions(self) -> dict[tuple[str, ...], tuple[int, ...]]:
        """The places of the parts on each marginal."""
        found: dict[tuple[str, ...], tuple[int, ...]] = {}
        for place, part in enumerate(self.parts):
            found[part.attributes] = (*found.get(part.attributes, ()), place)
        return found

    @cached_property
    def index(self) -> dict[tuple[str, ...], int]:
        """The place of the first part on each marginal."""
        return {attributes: places[0] for attributes, places in self.positions.items()}

    @property
    def cost(self) -> float:
        """The privacy cost by which variances scale: mu squared, or epsilon squared.

        A float; the measurement recomputes it exactly.
        """
        total = math.fsum(part.share(self.noise) for part in self.parts)
        return total if self.noise == "gaussian" else total * total

    def views(self) -> tuple[Plan, ...]:
        """Return the plans, each `Direct` or `Split`, that answers are estimated from."""
        return (self,)

    def rescaled(self, factor: float) -> Self:
        """Return the plan with every noise variance multiplied by ``factor``."""
        return self.with_parts(tuple(replace(part, variance=part.variance * factor) for part in self.parts))

    def with_parts(self, parts: tuple[Part, ...]) -> Self:
        """Return the plan with other parts."""
        return replace(self, parts=parts)


@final
@dataclass(frozen=True, eq=False)
class Direct(Plan, kind="direct"):
    """One part, on whose marginal every query is answered as it stands."""

    words: ClassVar[str] = "one table"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.parts) != 1:
            raise NumericalError("a direct plan has one part")


@final
@dataclass(frozen=True, eq=False)
class Split(Plan, kind="split"):
    """One part for each marginal, on which a piece of every query is answered.

    A query on attributes A splits into one piece for each subset A' of A, by contracting it with the weights
    over A minus A' and removing its weighted mean along A'.

    Parameters
    ----------
    domain, parts, noise
        See `Plan`.
    weights : dict of str to ndarray
        For each attribute a vector with sum 1; all zeros where the attribute stays whole, and no piece of a
        query is contracted along it.
    """

    words: ClassVar[str] = "one part for each marginal"

    weights: dict[str, Array]

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_distinct()
        for name in self.domain.names:
            vector = self.weights[name]
            sums_up = not vector.any() or abs(float(vector.sum()) - 1.0) < _WEIGHT_SUM
            if vector.shape != (self.domain[name].size,) or not sums_up:
                raise NumericalError(f"the weights of attribute {name!r} do not fit it, or do not sum to 1")


@final
@dataclass(frozen=True, eq=False)
class Pooled(Plan, kind="pooled"):
    """Identities on marginals, one part for each; answers are their global least squares."""

    words: ClassVar[str] = "weighted marginals"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_distinct()
        for part in self.parts:
            plain = all(isinstance(block.matrix, IdentityMatrix) for block in part.blocks)
            if part.multipliers is not None or not plain:
                raise NumericalError(f"part {part.attributes}: a pooled plan measures identities")


@final
@dataclass(frozen=True, eq=False)
class Local(Plan, kind="local"):
    """Parts that each determine some queries by themselves.

    A query is estimated from each part that determines it; the estimates are averaged by inverse variance.
    """

    words: ClassVar[str] = "one part for each union of queries"

    def views(self) -> tuple[Plan, ...]:
        """Return one plan for each part."""
        return tuple(Direct(self.domain, (part,), self.noise) for part in self.parts)
