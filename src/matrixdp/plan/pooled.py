"""Pooled plans: the global least squares of identities measured on many marginals.

For subsets T of S the marginal S holds one estimate of the residual T: sum over S minus T, then remove the
mean along every attribute of T. The estimates of one residual from different marginals are independent and
all of the form sigma^2 (I - J/n) x ..., so their average by inverse variance is the least-squares estimate,
and residuals of different T are uncorrelated: answers vary as if the residuals had been measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact import CenteredMatrix, IdentityMatrix
from matrixdp.plan.analysis import Estimates
from matrixdp.plan.part import Block, Part
from matrixdp.plan.plan import Plan
from matrixdp.plan.split import SplitAnalysis, residual_weights
from matrixdp.queries.groups import Group

__all__ = ["MAX_PAIRS", "Pooled"]

Array = NDArray[np.float64]

#: Pairs of a measured marginal and a residual in it, up to which a pooled plan is analysed.
MAX_PAIRS = 20_000_000


@final
@dataclass(frozen=True, eq=False)
class Pooled(Plan, kind="pooled"):
    """Identities on marginals, one part for each; answers are their global least squares."""

    words: ClassVar[str] = "weighted marginals"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_distinct()
        for part in self.parts:
            plain = all(isinstance(block.matrix, IdentityMatrix) for block in part.blocks)
            if part.multipliers is not None or not plain:
                raise NumericalError(f"part {part.attributes}: a pooled plan measures identities")

    def analysed(self, noise: Sequence[float]) -> _PooledAnalysis:
        """Return estimates and errors if the parts are measured with given noise variances.

        Raises
        ------
        TooLargeError
            If the marginals hold more than ``MAX_PAIRS`` residuals.

        References
        ----------
        McKenna et al., journal version, section 7 (the marginals algebra); the residual basis is that of
        ResidualPlanner.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> from matrixdp.noise import GAUSSIAN
        >>> domain = mdp.Domain({"a": 2, "b": 3})
        >>> part = Part(("a", "b"), (Block(("a",), IdentityMatrix(2)), Block(("b",), IdentityMatrix(3))), 1.0)
        >>> [residual.attributes for residual in Pooled(domain, (part,), GAUSSIAN).analysis.parts]
        [(), ('a',), ('b',), ('a', 'b')]
        """
        return _PooledAnalysis(self, noise)


@final
class _PooledAnalysis(SplitAnalysis):
    """Estimates and errors of the residuals: one part n I - 11' x ... for each."""

    def __init__(self, plan: Pooled, noise: Sequence[float]) -> None:
        self.measured = plan.parts
        sizes = {name: plan.domain[name].size for name in plan.domain.names}
        #: By residual, then by part: 1 / (variance of the part x the number of cells summed).
        self.precisions = _precisions(plan.parts, noise, sizes)
        parts = []
        for kept, own in self.precisions.items():
            blocks = tuple(Block((name,), CenteredMatrix(sizes[name])) for name in kept)
            scale = math.prod(sizes[name] ** 2 for name in kept)
            parts.append(Part(kept, blocks, scale / math.fsum(own.values())))
        weights = {name: residual_weights(size) for name, size in sizes.items()}
        super().__init__(plan.domain, parts, [part.variance for part in parts], weights)

    def estimates(self, values: Sequence[Array]) -> Estimates:
        totals: list[Array | float] = [0.0] * len(self.parts)
        for place, (part, flat) in enumerate(zip(self.measured, values, strict=True)):
            for kept, residual in _residuals(part.estimate(flat, self.domain), part.attributes):
                own = self.precisions[kept]
                scale = math.prod(self.domain[name].size for name in kept)
                share = own[place] / math.fsum(own.values()) * scale
                totals[self.places[kept]] = totals[self.places[kept]] + share * residual
        return super().estimates([np.asarray(total).ravel() for total in totals])

    def noise_terms(self, group: Group, most: int) -> None:
        """Return nothing: the residuals of one marginal share their noise variables."""


def _precisions(
    parts: Sequence[Part], noise: Sequence[float], sizes: dict[str, int]
) -> dict[tuple[str, ...], dict[int, float]]:
    varying = [tuple(name for name in part.attributes if sizes[name] > 1) for part in parts]
    pairs = sum(2 ** len(names) for names in varying)
    if pairs > MAX_PAIRS:
        raise TooLargeError(f"weighted marginals: {pairs} residuals of marginals; the limit is {MAX_PAIRS}")
    found: dict[tuple[str, ...], dict[int, float]] = {}
    for place, (names, variance) in enumerate(zip(varying, noise, strict=True)):
        cells = math.prod(sizes[name] for name in names)
        for count in range(len(names) + 1):
            for kept in combinations(names, count):
                summed = cells / math.prod(sizes[name] for name in kept)
                found.setdefault(kept, {})[place] = 1.0 / (variance * summed)
    return found


def _residuals(tensor: Array, names: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Array]]:
    """Yield every residual of a marginal: attributes, and the centered sums in their shape."""
    stack: list[tuple[Array, int, tuple[str, ...]]] = [(tensor, 0, ())]
    while stack:
        current, position, kept = stack.pop()
        if position == len(names):
            yield kept, current
            continue
        axis = len(kept)
        stack.append((current.sum(axis=axis), position + 1, kept))
        if current.shape[axis] > 1:
            centered = current - current.mean(axis=axis, keepdims=True)
            stack.append((centered, position + 1, (*kept, names[position])))
