"""The ends of intervals: how many standard deviations they lie from the estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from matrixdp.errors import TooLargeError
from matrixdp.noise.combinations import combination_quantiles, largest_quantile
from matrixdp.plan import ErrorAnalysis, Pooled
from matrixdp.plan.error import ViewAnalysis
from matrixdp.plan.quadratic_forms import along
from matrixdp.queries import DenseGroup, Group

__all__ = ["MAX_EXACT_QUERIES", "Intervals"]

Array = NDArray[np.float64]

#: Groups of more queries, or of more coefficients altogether, get the bound that holds for all combinations.
MAX_EXACT_QUERIES = 2_000
_MAX_COEFFICIENTS = 4_000_000
#: Beyond it distributions are not inverted: a bound that holds for all is taken.
_MOST_CONFIDENCE = 1.0 - 1e-6
#: Distributions that are inverted for a group at most, and terms of one.
_MAX_DISTINCT = 64
_MAX_TERMS = 128
#: Distributions that are inverted for all groups of a release together.
_MAX_INVERSIONS = 500


@dataclass(eq=False)
class Intervals:
    """Multipliers of standard deviations for pointwise intervals.

    Parameters
    ----------
    analysis : ErrorAnalysis
        Of the plan with the noise that was really added.
    confidence : float
        Above 0 and below 1.

    Attributes
    ----------
    bounded : bool
        Whether some group so far got the bound in the place of its exact distribution.
    """

    analysis: ErrorAnalysis
    confidence: float
    bounded: bool = field(default=False, init=False)
    _known: dict[bytes, float] = field(default_factory=dict, init=False)

    @property
    def description(self) -> str:
        """How intervals are made, in words."""
        text = "pointwise: each holds the true answer with this confidence, taken alone"
        if self.analysis.plan.noise == "gaussian":
            return text
        return (
            f"{text}; by the exact distribution of the answer's Laplace noise in groups of up to "
            f"{MAX_EXACT_QUERIES} queries that combine few measurements, elsewhere by "
            f"{largest_quantile(self.confidence):.4f} standard deviations, which is enough for every "
            "combination of Laplace variables"
        )

    def multipliers(self, group: Group) -> float | Array:
        """Return how many standard deviations the ends lie from the estimates, for all queries or each.

        Under Gaussian noise the normal quantile. Under Laplace noise the quantile of the distribution that
        the answer's noise really has, or a bound on it.
        """
        if self.analysis.plan.noise == "gaussian":
            return float(-ndtri((1.0 - self.confidence) / 2.0))
        shares = self._shares(group)
        if shares is not None and self.confidence <= _MOST_CONFIDENCE:
            rounded = np.round(shares, 9)
            distinct, inverse = np.unique(rounded, axis=0, return_inverse=True)
            new = [row for row in distinct if row.tobytes() not in self._known]
            if len(distinct) <= _MAX_DISTINCT and len(self._known) + len(new) <= _MAX_INVERSIONS:
                if new:
                    # rounding to 9 digits moves quantiles less than they are rounded outward
                    block = np.array(new)
                    found = combination_quantiles(block / block.sum(axis=1, keepdims=True), self.confidence)
                    self._known |= {row.tobytes(): float(q) for row, q in zip(new, found, strict=True)}
                return np.array([self._known[row.tobytes()] for row in distinct])[inverse.ravel()]
        self.bounded = True
        return largest_quantile(self.confidence)

    def _shares(self, group: Group) -> Array | None:
        """Return the sorted shares of the noise terms in every query's variance, or None if too many."""
        cells = math.prod(group.sizes)
        if group.queries > MAX_EXACT_QUERIES or group.queries * cells > _MAX_COEFFICIENTS:
            return None
        try:
            rows = group.rows()
            weights = self.analysis.shares(group)
        except TooLargeError:
            return None
        pieces: list[Array] = []
        for view, weight in zip(self.analysis.views, weights, strict=True):
            if weight is None:
                continue
            if isinstance(self.analysis.plan, Pooled):
                return None
            found = _squared_coefficients(view, group, rows)
            if found is None:
                return None
            pieces += [weight[:, None] ** 2 * squares for squares in found]
        combined = np.concatenate(pieces, axis=1)
        if combined.size > _MAX_COEFFICIENTS:
            return None
        total = combined.sum(axis=1, keepdims=True)
        shares = np.sort(np.where(total > 0, combined / np.where(total > 0, total, 1.0), 0.0), axis=1)[
            :, ::-1
        ]
        shares[total[:, 0] <= 0, 0] = 1.0  # a query that is zero has no noise
        used = int((shares > 1e-9).any(axis=0).sum())
        return None if used > _MAX_TERMS else np.ascontiguousarray(shares[:, :used])


def _squared_coefficients(view: ViewAnalysis, group: Group, rows: Array) -> list[Array] | None:
    """Return for each part the variances of a query's noise terms, shape (queries, measured rows)."""
    asked = group.attributes if isinstance(group, DenseGroup) else view.asked(group)
    if asked != group.attributes:
        keep = [i for i, name in enumerate(group.attributes) if name in asked]
        tensor = rows.reshape(len(rows), *group.sizes)
        for axis in range(len(group.attributes), 0, -1):
            if axis - 1 not in keep:
                tensor = np.take(tensor, 0, axis=axis)
        rows = tensor.reshape(len(rows), -1)
    found = []
    for kept, part in view.pieces(asked):
        if part is None:
            continue
        if math.prod(part.shape) * len(rows) > _MAX_COEFFICIENTS:
            return None
        sizes = [view.plan.domain[name].size for name in kept]
        tensor = view.piece_rows(asked, kept, rows).reshape(len(rows), *sizes)
        order = [kept.index(name) + 1 for block in part.blocks for name in block.attributes]
        tensor = np.transpose(tensor, [0, *order]).reshape(
            len(rows), *[block.matrix.columns for block in part.blocks]
        )
        for axis, block in enumerate(part.blocks):
            tensor = along(tensor, axis + 1, block.matrix.solve(np.eye(block.matrix.rows)).T)
        if part.multipliers is not None:
            tensor = tensor / part.multipliers
        found.append(part.variance * tensor.reshape(len(rows), -1) ** 2)
    return found
