"""Pooled plans: the global least squares of one matrix for each attribute, measured on many marginals.

Let B be the matrix of an attribute, G = B'B, M the inverse of G (on what B measures), z = M1, s = 1'z and
w = z / s. For subsets T of S the marginal S holds one estimate of the residual T: sum over S minus T, then
remove the weighted mean, I - w1', along every attribute of T. The estimates of one residual from different
marginals are independent, and their covariances, that of the product of the matrices M - zz'/s over T times
the s of what was summed over, differ by a factor alone: their average by inverse variance is the
least-squares estimate. Residuals of different T are uncorrelated, since (I - w1') M 1 = 0: answers vary as if
the residuals had been measured. Of the identity w is 1/n and s is n. An attribute that every part measures
is not split: least squares with one matrix for it solve that matrix, and its w is zeros.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, final

import numpy as np

from matrixdp.errors import NumericalError, TooLargeError
from matrixdp.exact import MeasuredMatrix
from matrixdp.exact.linear import Array
from matrixdp.plans.axes import without_sums
from matrixdp.plans.part import Block, Part
from matrixdp.plans.pieces import PieceEstimates
from matrixdp.plans.plan import Estimates, NoiseTerms, Plan
from matrixdp.plans.split import SplitAnalysis, residual_weights, subsets
from matrixdp.queries.groups import Group

Names = tuple[str, ...]

#: Pairs of a measured marginal and a residual in it, up to which a pooled plan is analysed.
MAX_PAIRS = 20_000_000
#: Noise variables up to which they are told apart: nearly all of them are in every answer.
_MAX_VARIABLES = 4_096


@final
@dataclass(frozen=True, eq=False)
class Pooled(Plan, kind="pooled"):
    """One matrix for each attribute; each part is their product over a marginal, one for each marginal.

    Answers are the global least squares of all parts. The matrices measure the total of their attribute:
    1 lies in their row space, and is not among what they measure too weakly.
    """

    words: ClassVar[str] = "weighted marginals"
    walks: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_distinct()
        for part in self.parts:
            if part.multipliers is not None or any(len(block.attributes) > 1 for block in part.blocks):
                raise NumericalError(f"part {part.attributes}: a pooled plan measures products of matrices")
            for block in part.blocks:
                [name] = block.attributes
                if block.matrix.digest() != self.matrices[name].digest():
                    raise NumericalError(
                        f"attribute {name!r}: a pooled plan has one matrix for each attribute"
                    )
        for name, matrix in self.matrices.items():
            if not matrix.measures_total:
                raise NumericalError(f"attribute {name!r}: its matrix in a pooled plan measures no total")

    @cached_property
    def matrices(self) -> dict[str, MeasuredMatrix]:
        """The matrix of every attribute that is measured."""
        return {block.attributes[0]: block.matrix for part in self.parts for block in part.blocks}

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
        >>> from matrixdp.exact import IdentityMatrix
        >>> from matrixdp.noise import GAUSSIAN
        >>> domain = mdp.Domain({"a": 2, "b": 3})
        >>> blocks = Block(("a",), IdentityMatrix(2)), Block(("b",), IdentityMatrix(3))
        >>> parts = Part(("a", "b"), blocks, 2.0), Part((), (), 2.0)
        >>> [residual.attributes for residual in Pooled(domain, parts, GAUSSIAN).analysis.parts]
        [(), ('a',), ('b',), ('a', 'b')]
        """
        return _PooledAnalysis(self, noise)


@final
class _PooledAnalysis(SplitAnalysis):
    """Estimates and errors of the residuals: one part for each, as if it alone had been measured."""

    def __init__(self, plan: Pooled, noise: Sequence[float]) -> None:
        self.measured = plan.parts
        self.measured_noise = tuple(noise)
        weights = {name: residual_weights(plan.domain[name].size) for name in plan.domain.names}
        spread: dict[str, float] = {}
        different = {matrix.digest(): matrix for matrix in plan.matrices.values()}
        known = {digest: _direction(matrix) for digest, matrix in different.items()}
        shared = frozenset.intersection(*(frozenset(part.attributes) for part in plan.parts))
        shared = frozenset(name for name in shared if plan.domain[name].size > 1)
        for name, matrix in plan.matrices.items():
            weights[name], spread[name] = known[matrix.digest()]
            if name in shared:
                weights[name] = np.zeros(matrix.columns)
        #: By residual, then by part: 1 / (variance of the part x the s of what is summed over).
        self.precisions = _precisions(plan, noise, spread, shared)
        parts = []
        for kept, own in self.precisions.items():
            blocks = tuple(Block((name,), plan.matrices[name]) for name in kept)
            parts.append(Part(kept, blocks, 1.0 / math.fsum(own.values())))
        super().__init__(plan.domain, parts, [part.variance for part in parts], weights)

    def share(self, kept: Names, place: int) -> float:
        """Return the share that a part's estimate has in that of a residual."""
        return self.precisions[kept][place] * self.noise[self.places[kept]]

    def estimates(self, values: Sequence[Array]) -> Estimates:
        totals: list[Array] = [np.zeros(()) for _ in self.parts]
        for place, (part, flat) in enumerate(zip(self.measured, values, strict=True)):
            estimate = part.estimate(flat, self.domain)
            for kept, residual in _residuals(estimate, part.attributes, self.axes.weights):
                own = self.places[kept]
                totals[own] = totals[own] + self.share(kept, place) * residual
        return PieceEstimates(self, totals.__getitem__)

    def noise_terms(self, group: Group, most: int) -> NoiseTerms | None:
        variables = sum(part.rows for part in self.measured)
        if variables > _MAX_VARIABLES or variables * group.queries > most:
            return None
        group = self.asked(group)
        rows = group.rows()
        found: NoiseTerms = {}
        for place, part in enumerate(self.measured):
            inside = tuple(name for name in group.attributes if name in part.attributes)
            cells = np.zeros((len(rows), *self.axes.sizes(part.attributes)))
            for kept, spread in self.pieces(inside):
                if spread is not None:
                    piece = self.axes.piece_rows(group.attributes, kept, rows)
                    shape = [self.domain[n].size if n in kept else 1 for n in part.attributes]
                    cells += self.share(kept, place) * piece.reshape(-1, *shape)
            found[place] = np.sqrt(self.measured_noise[place]) * self._measured_rows(part, cells)
        return found


def _direction(matrix: MeasuredMatrix) -> tuple[Array, float]:
    """Return w = M1 / s, along which a total is spread over the cells, and s = 1'M1."""
    spread = matrix.covariance_times(np.ones((matrix.columns, 1)))[:, 0]
    total = float(spread.sum())
    return spread / total, total


def _precisions(
    plan: Pooled, noise: Sequence[float], spread: Mapping[str, float], shared: frozenset[str]
) -> dict[Names, dict[int, float]]:
    varying = [tuple(n for n in part.attributes if plan.domain[n].size > 1) for part in plan.parts]
    pairs = sum(2 ** len(names) for names in varying)
    if pairs > MAX_PAIRS:
        raise TooLargeError(f"weighted marginals: {pairs} residuals of marginals; the limit is {MAX_PAIRS}")
    found: dict[Names, dict[int, float]] = {}
    for place, (part, names, variance) in enumerate(zip(plan.parts, varying, noise, strict=True)):
        for own in subsets(tuple(name for name in names if name not in shared)):
            kept = plan.domain.sort(shared.union(own))
            summed = math.prod(spread[name] for name in part.attributes if name not in kept)
            found.setdefault(kept, {})[place] = 1.0 / (variance * summed)
    return found


def _residuals(
    tensor: Array, names: Names, weights: Mapping[str, Array], kept: Names = ()
) -> Iterator[tuple[Names, Array]]:
    """Yield every residual of a marginal: attributes, and the sums less weighted means in their shape."""
    if not names:
        yield kept, tensor
        return
    name, *others = names
    axis = len(kept)
    if not weights[name].any():
        yield from _residuals(tensor, tuple(others), weights, (*kept, name))
        return
    yield from _residuals(tensor.sum(axis=axis), tuple(others), weights, kept)
    if tensor.shape[axis] > 1:
        residual = without_sums(tensor, axis, weights[name])
        yield from _residuals(residual, tuple(others), weights, (*kept, name))
