"""The ends of intervals: how many standard deviations they lie from the estimates."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.plan import Analysis
from matrixdp.queries import Group
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


@dataclass(eq=False)
class Intervals:
    """Multipliers of standard deviations for pointwise intervals, at the noise that was really added.

    ``bounded`` says whether some group so far got the bound in the place of its exact distribution.
    """

    analysis: Analysis
    noise: Noise
    confidence: float
    bounded: bool = field(default=False, init=False)
    _known: dict[bytes, float] = field(default_factory=dict, init=False)

    @property
    def description(self) -> str:
        """How intervals are made, in words."""
        return self.described(ENGLISH)

    def described(self, say: Words) -> str:
        """Return how intervals are made, in words of a language."""
        text, noise = say("pointwise"), self.noise
        if noise.stable:
            return text
        deviations = say.number(noise.largest_quantile(self.confidence), 4)
        told = {"queries": say.number(MAX_EXACT_QUERIES), "noise": noise.title, "deviations": deviations}
        return say("pointwise_mixed", pointwise=text, **told)

    @property
    def alone(self) -> float:
        """How many standard deviations the ends lie from one noisy count by itself."""
        largest = self.noise.largest_quantile(self.confidence)
        if self.noise.stable or self.confidence > _MOST_CONFIDENCE:
            return largest
        found = self.noise.combination_quantiles(np.ones((1, 1)), self.confidence)
        return largest if found is None else float(found[0])

    def multipliers(self, group: Group) -> float | Array:
        """Return how many standard deviations the ends lie from the estimates, for all queries or each.

        The quantile of the distribution that the answer's noise really has, or a bound on it.
        """
        if self.noise.stable:
            return self.noise.largest_quantile(self.confidence)
        # a series grows beyond the limits of exact distributions, and its intervals may not change
        exact = None if self.analysis.through is not None else self._exact(group)
        self.bounded |= exact is None
        return self.noise.largest_quantile(self.confidence) if exact is None else exact

    def _exact(self, group: Group) -> Array | None:
        """Return the quantiles of the answers' own distributions, or None where they are too many."""
        shares = self._shares(group)
        if shares is None or self.confidence > _MOST_CONFIDENCE:
            return None
        distinct, inverse = np.unique(np.round(shares, 9), axis=0, return_inverse=True)
        new = [row for row in distinct if row.tobytes() not in self._known]
        if len(distinct) > _MAX_DISTINCT or len(self._known) + len(new) > _MAX_INVERSIONS:
            return None
        if new:
            # rounding to 9 digits moves quantiles less than they are rounded outward
            block = np.array(new)
            found = self.noise.combination_quantiles(
                block / block.sum(axis=1, keepdims=True), self.confidence
            )
            if found is None:
                return None
            self._known |= {row.tobytes(): float(q) for row, q in zip(new, found, strict=True)}
        return np.array([self._known[row.tobytes()] for row in distinct])[inverse.ravel()]

    def _shares(self, group: Group) -> Array | None:
        """Return the sorted shares of the noise terms in every query's variance, or None if too many."""
        cells = math.prod(group.sizes)
        if group.queries > MAX_EXACT_QUERIES or group.queries * cells > _MAX_COEFFICIENTS:
            return None
        try:
            combined = self.analysis.noise_terms(group, _MAX_COEFFICIENTS)
        except TooLargeError:
            return None
        if combined is None or combined.size > _MAX_COEFFICIENTS:
            return None
        total = combined.sum(axis=1, keepdims=True)
        shares = -np.sort(-combined / np.where(total > 0, total, 1.0), axis=1)
        shares[total[:, 0] <= 0, 0] = 1.0  # a query that is zero has no noise
        used = int((shares > 1e-9).any(axis=0).sum())
        return None if used > _MAX_TERMS else np.ascontiguousarray(shares[:, :used])
