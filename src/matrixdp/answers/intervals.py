"""The ends of intervals: how many standard deviations they lie from the estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array
from matrixdp.noise import Tails, Walk
from matrixdp.noise.walks import MOST_COEFFICIENTS, combination_quantiles
from matrixdp.plans import Analysis, NoiseTerms
from matrixdp.plans.pieces import PieceAnalysis
from matrixdp.queries import Group, ProductGroup
from matrixdp.statistics.intervals import Term
from matrixdp.texts import ENGLISH, Words

#: Groups of more queries, or of more coefficients altogether, get the bound that holds for all combinations.
MAX_EXACT_QUERIES = 2_000
_MAX_COEFFICIENTS = 4_000_000
#: Beyond it distributions are not inverted: a bound that holds for all is taken.
_MOST_CONFIDENCE = 1.0 - 1e-6
#: Distributions that are inverted for a group at most, and terms of one; on integers most are alike.
_MAX_DISTINCT = 64
_MAX_TERMS, _MAX_ALIKE = 128, 4_096
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
    #: The same of shares of the blocks under one radius.
    _of_blocks: dict[bytes, float] = field(default_factory=dict, init=False)

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
        if tails.joint:
            return say("pointwise_walk", pointwise=text, deviations=deviations)
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

    def multipliers(self, *terms: Term) -> float | Array:
        """Return how many standard deviations the ends lie from the estimates, for all sums of terms or each.

        The quantile of the distribution that the noise of such a sum really has, or a bound on it.

        Parameters
        ----------
        *terms : tuple
            Numbers, one for all or one for each sum; a group; and which of its queries they multiply.
        """
        if self.tails.stable:
            return self.tails.largest_quantile(self.confidence)
        # a series grows beyond the limits of exact distributions, and its intervals may not change
        exact = None if self.analysis.through is not None else self._exact(terms)
        self.bounded |= exact is None
        return self.tails.largest_quantile(self.confidence) if exact is None else exact

    def _exact(self, terms: Sequence[Term]) -> Array | None:
        """Return the quantiles of the sums' own distributions, or None where they are too many."""
        if self.confidence > _MOST_CONFIDENCE:
            return None
        if self.tails.joint:
            moved, quantiles = self._of_walks(terms) if self.tails.walks else self._of_radius(terms)
            if moved:
                return quantiles
        found = self._shares(terms) or (self._alike(terms[0][1]) if len(terms) == 1 else None)
        if found is None:
            return None
        listed, kinds = found
        distinct, inverse = np.unique(np.round(listed, 9), axis=0, return_inverse=True)
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

    def _of_walks(self, terms: Sequence[Term]) -> tuple[bool, Array | None]:
        """Return whether the noise of a walk is in the sums, and then their quantiles or None."""
        walks = self.tails.walks
        [(factors, group, places), *more] = terms
        alone = not more and np.size(factors) == 1 and isinstance(group, ProductGroup)
        if alone and len(self.tails.steps) == 1 and isinstance(self.analysis, PieceAnalysis):
            # a product's by those that are alike
            asked = self.analysis.asked(group)
            assert isinstance(asked, ProductGroup)
            alike = self.analysis.walk_terms(asked, MOST_COEFFICIENTS)
            if alike is not None:
                own, coefficients, kinds = alike
                return True, combination_quantiles([(own, coefficients)], self.confidence)[kinds][places]
        most = MOST_COEFFICIENTS if len(self.tails.steps) == 1 else _MAX_COEFFICIENTS
        found = self._moves(terms, most, most)
        if found is None:
            return True, None
        moves = {place: own for place, own in found[1].items() if own.any()}
        if not moves.keys() & walks.keys():
            return False, None
        other = {place for place in moves if math.isfinite(self.tails.of(place))}.union(
            self.tails.under_radius
        )
        if not moves.keys().isdisjoint(other):  # no series for several kinds of noise
            return True, None
        parts = [(walks.get(place) or Walk((0,), own.shape[1]), own) for place, own in moves.items()]
        return True, combination_quantiles(parts, self.confidence)

    def _of_radius(self, terms: Sequence[Term]) -> tuple[bool, Array | None]:
        """Return whether the noise of one radius is in the sums, and then their quantiles or None.

        They are known of blocks of two cells, without copies.
        """
        radius, found = self.tails.radius, self._moves(terms, MAX_EXACT_QUERIES, _MAX_COEFFICIENTS)
        assert radius is not None
        if found is None:
            return True, None
        moves = {place: own for place, own in found[1].items() if own.any()}
        blocks = {place: block for block, place in enumerate(self.tails.under_radius)}
        if not moves.keys() & blocks.keys():
            return False, None
        if radius.copies > 1 or any(p not in blocks or radius.cells[blocks[p]] > 2 for p in moves):
            return True, None
        shares = np.zeros((found[0], len(blocks)))
        for place, own in moves.items():
            shares[:, blocks[place]] = (own**2).sum(axis=1)
        total = shares.sum(axis=1, keepdims=True)
        shares /= np.where(total > 0, total, 1.0)
        for width in set(radius.widths):  # blocks of one width may trade places
            alike = [
                block for block, own in enumerate(radius.widths) if own == width and radius.cells[block] == 2
            ]
            shares[:, alike] = -np.sort(-shares[:, alike], axis=1)
        distinct, inverse = np.unique(np.round(shares, 9), axis=0, return_inverse=True)
        if len(distinct) > _MAX_DISTINCT:
            return True, None
        new = [row for row in distinct if row.tobytes() not in self._of_blocks]
        if new:
            quantiles = radius.quantiles(np.array(new), self.confidence).tolist()
            self._of_blocks |= dict(zip((row.tobytes() for row in new), quantiles, strict=True))
        return True, np.array([self._of_blocks[row.tobytes()] for row in distinct])[inverse.ravel()]

    def _moves(self, terms: Sequence[Term], queries: int, most: int) -> tuple[int, dict[int, Array]] | None:
        """Return how many sums there are, and how far the noise of each part moves every one of them.

        None if that would be too much.
        """
        parts: dict[int, Array] = {}
        each = [max(np.size(own), np.arange(group.queries)[places].size) for own, group, places in terms]
        if (rows := max(each)) > queries:
            return None
        for factors, group, places in terms:
            own = self._noise_terms(group, queries, most)
            if own is None or rows * sum(moves.shape[1] for moves in own.values()) > most:
                return None
            for place, moves in own.items():
                parts[place] = parts.get(place, 0.0) + np.reshape(factors, (-1, 1)) * moves[places]
        return rows, {place: np.broadcast_to(own, (rows, own.shape[1])) for place, own in parts.items()}

    def _shares(self, terms: Sequence[Term]) -> _Kinds | None:
        """Return the shares of the noise variables in every sum's variance, or None if too many."""
        found = self._moves(terms, MAX_EXACT_QUERIES, _MAX_COEFFICIENTS)
        if found is None:
            return None
        rows, parts = found
        squares = [own**2 for own in parts.values()]
        combined = np.concatenate([np.zeros((rows, 1)), *squares], axis=1)
        sizes = [math.inf, *map(self.tails.of, parts)]
        steps = np.repeat(sizes, [1, *(own.shape[1] for own in parts.values())])
        total = combined.sum(axis=1, keepdims=True)
        combined /= np.where(total > 0, total, 1.0)
        combined[total[:, 0] <= 0, 0] = 1.0  # a query that is zero has no noise
        order = np.argsort(-combined, axis=1, kind="stable")
        shares = np.take_along_axis(combined, order, axis=1)
        used = int((shares > 1e-9).any(axis=0).sum())
        if used > (_MAX_TERMS if math.isinf(self.tails.least) else _MAX_ALIKE):
            return None
        shares, steps = shares[:, :used], steps[order[:, :used]]
        steps[shares <= 1e-9] = math.inf
        return np.concatenate([shares, steps], axis=1), np.arange(rows)

    def _noise_terms(self, group: Group, queries: int, most: int) -> NoiseTerms | None:
        """Return the noise in the answers to a group, or None if that would be too much."""
        cells = math.prod(group.sizes)
        if group.queries > queries or group.queries * cells > most:
            return None
        try:
            return self.analysis.noise_terms(group, most)
        except TooLargeError:
            return None

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
