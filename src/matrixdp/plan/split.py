"""Split plans: a query is the sum of one piece on each marginal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import NumericalError
from matrixdp.plan.pieces import PieceAnalysis
from matrixdp.plan.plan import Plan

__all__ = ["Split", "SplitAnalysis", "check_weight_vectors", "residual_weights"]

Array = NDArray[np.float64]

#: How far from 1 the sum of a weight vector may be.
_WEIGHT_SUM = 1e-6


def residual_weights(size: int) -> Array:
    """Return the uniform weight vector of QuerySmasher: 1/n for each of n values."""
    return np.full(size, 1.0 / size)


def check_weight_vectors(domain: Domain, weights: Mapping[str, Array]) -> None:
    """Refuse weights that do not fit an attribute, or sum neither to 1 nor are all zero."""
    for name in domain.names:
        vector = weights[name]
        sums_up = not vector.any() or abs(float(vector.sum()) - 1.0) < _WEIGHT_SUM
        if vector.shape != (domain[name].size,) or not sums_up:
            raise NumericalError(f"the weights of attribute {name!r} do not fit it, or do not sum to 1")


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
        self.check_distinct()
        check_weight_vectors(self.domain, self.weights)

    def analysed(self, noise: Sequence[float]) -> SplitAnalysis:
        return SplitAnalysis(self.domain, self.parts, noise, self.weights)


class SplitAnalysis(PieceAnalysis):
    """Estimates and errors of queries that split over the subsets of their attributes."""

    def pieces(self, attributes: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
        for size in range(len(attributes) + 1):
            for kept in combinations(attributes, size):
                yield kept, self.places.get(kept)

    def marginal(self, attributes: tuple[str, ...], residual: Callable[[int], Array]) -> Array:
        estimate = self._spread(attributes, len(attributes), attributes, residual)
        if estimate is None:
            return np.zeros([self.domain[name].size for name in attributes])
        return estimate

    def _spread(
        self,
        attributes: tuple[str, ...],
        position: int,
        kept: tuple[str, ...],
        residual: Callable[[int], Array],
    ) -> Array | None:
        """Return the sum over subsets that agree with ``kept`` from ``position`` on, spread before it.

        Shape: the sizes of the first ``position`` attributes, then of those in ``kept`` after them.
        """
        if position == 0:
            place = self.places.get(kept)
            return None if place is None else residual(place)
        axis = position - 1
        name = attributes[axis]
        within = self._spread(attributes, axis, kept, residual)
        without = self._spread(attributes, axis, tuple(n for n in kept if n != name), residual)
        if without is None:
            return within
        shape = [1] * (without.ndim + 1)
        shape[axis] = -1
        spread = np.expand_dims(without, axis) * self.axes.weights[name].reshape(shape)
        return spread if within is None else spread + within
