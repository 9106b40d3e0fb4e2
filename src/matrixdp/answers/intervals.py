"""The ends of intervals: how many standard deviations they lie from the estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.noise import Tails
from matrixdp.plan import Analysis
from matrixdp.plan.pieces import PieceAnalysis
from matrixdp.queries import Group, ProductGroup
from matrixdp.texts import ENGLISH, Words

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


_Kinds = tuple[Array, NDArray[np.intp]]
"""Kinds of combinations, (kinds, 2 terms): shares and steps of terms; and of which kind each query is."""


@dataclass(eq=False)
class Intervals:
    """Multipliers of standard deviations for pointwise intervals, at the noise that was really added.

    ``tails`` says how far noise stays from 0; ``bounded`` says whether some group so far got the bound
    in the place of its exact distribution.
    """

    analysis: Analysis
    tails: Tails
    confidence: float
    bounded: bool = field(default=False, init=False)
    _known: dict[bytes, float] = field(default_factory=dict, init=False)

    @property
    def description(self) -> str:
        """How intervals are made, in words."""
        return self.described(ENGLISH)

    def described(self, say: Words) -> str:
        """Return how intervals are made, in words of a language."""
        text, tails = say("pointwise"), self.tails
        if tails.stable:
            return text
        deviations = say.number(tails.largest_quantile(self.confidence), 4)
        noise = tails.noise.title
        told = {"queries": say.number(MAX_EXACT_QUERIES), "noise": noise, "deviations": deviations}
        return say("pointwise_mixed", pointwise=text, **told)

    def alone(self, steps: float) -> float:
        """Return how many standard deviations the ends lie from a noisy count by itself, given its steps."""
        own = Tails(self.tails.noise, (steps,))
        largest = own.largest_quantile(self.confidence)
        if own.stable or self.confidence > _MOST_CONFIDENCE:
            return largest
        found = own.combination_quantiles(np.ones((1, 1)), np.full((1, 1), steps), self.confidence)
        return largest if found is None else float(found[0])

    def multipliers(self, group: Group) -> float | Array:
        """Return how many standard deviations the ends lie from the estimates, for all queries or each.

        The quantile of the distribution that the answer's noise really has, or a bound on it.
        """
        if self.tails.stable:
            return self.tails.largest_quantile(self.confidence)
        # a series grows beyond the limits of exact distributions, and its intervals may not change
        exact = None if self.analysis.through is not None else self._exact(group)
        self.bounded |= exact is None
        return self.tails.largest_quantile(self.confidence) if exact is None else exact

    def _exact(self, group: Group) -> Array | None:
        """Return the quantiles of the answers' own distributions, or None where they are too many."""
        found = self._shares(group) or self._alike(group)
        if found is None or self.confidence > _MOST_CONFIDENCE:
            return None
        terms, kinds = found
        distinct, inverse = np.unique(np.round(terms, 9), axis=0, return_inverse=True)
        new = [row for row in distinct if row.tobytes() not in self._known]
        if len(distinct) > _MAX_DISTINCT or len(self._known) + len(new) > _MAX_INVERSIONS:
            return None
        if new:
            # rounding to 9 digits moves quantiles less than they are rounded outward
            shares, steps = np.split(np.array(new), 2, axis=1)
            quantiles = self.tails.combination_quantiles(
                shares / shares.sum(axis=1, keepdims=True), steps, self.confidence
            )
            if quantiles is None:
                return None
            self._known |= {row.tobytes(): float(q) for row, q in zip(new, quantiles, strict=True)}
        return np.array([self._known[row.tobytes()] for row in distinct])[inverse.ravel()][kinds]

    def _shares(self, group: Group) -> _Kinds | None:
        """Return the shares of the noise terms in every query's variance, or None if too many."""
        cells = math.prod(group.sizes)
        if group.queries > MAX_EXACT_QUERIES or group.queries * cells > _MAX_COEFFICIENTS:
            return None
        try:
            terms = self.analysis.noise_terms(group, _MAX_COEFFICIENTS)
        except TooLargeError:
            return None
        if terms is None or sum(own.size for _, own in terms) > _MAX_COEFFICIENTS:
            return None
        combined = np.concatenate([np.zeros((group.queries, 1)), *(own for _, own in terms)], axis=1)
        sizes = [math.inf, *(self.tails.of(place) for place, _ in terms)]
        steps = np.repeat(sizes, [1, *(own.shape[1] for _, own in terms)])
        total = combined.sum(axis=1, keepdims=True)
        combined /= np.where(total > 0, total, 1.0)
        combined[total[:, 0] <= 0, 0] = 1.0  # a query that is zero has no noise
        order = np.argsort(-combined, axis=1, kind="stable")
        shares = np.take_along_axis(combined, order, axis=1)
        used = int((shares > 1e-9).any(axis=0).sum())
        if used > _MAX_TERMS:
            return None
        shares, steps = shares[:, :used], steps[order[:, :used]]
        steps[shares <= 1e-9] = math.inf
        return np.concatenate([shares, steps], axis=1), np.arange(group.queries)

    def _alike(self, group: Group) -> _Kinds | None:
        """Return the same of a large product of which one part of integer noise says all, equal rows once."""
        if math.isinf(self.tails.least) or not isinstance(group, ProductGroup):
            return None
        if not isinstance(self.analysis, PieceAnalysis) or len(self.tails.steps) > 1:
            return None
        asked = self.analysis.asked(group)
        assert isinstance(asked, ProductGroup)
        found = self.analysis.alike_terms(asked, _MAX_TERMS)
        if found is None or len(found[0]) > _MAX_DISTINCT:
            return None
        shares, kinds = found
        shares = -np.sort(-shares, axis=1)
        steps = np.where(shares > 0, self.tails.least, math.inf)
        return np.concatenate([shares, steps], axis=1), kinds
