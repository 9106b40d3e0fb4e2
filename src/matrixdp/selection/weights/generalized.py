"""The search for weighted marginals with one optimized strategy for each type of attribute."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from matrixdp.noise import Noise
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import solve_axis
from matrixdp.selection.gram.p_identity import tree_start
from matrixdp.selection.problem.residual_traces import ResidualTraces
from matrixdp.selection.weights.convex import convex_weights
from matrixdp.selection.weights.covers import greedy_cover
from matrixdp.selection.weights.incidence import Subset, WeightProblem, incidence_of, weight_problem
from matrixdp.selection.weights.joint import (
    Fixed,
    Objective,
    PIdentity,
    Strategy,
    UnitColumns,
    descend,
    states_of,
)
from matrixdp.selection.weights.search import laplace_shares
from matrixdp.selection.weights.shares import polished

__all__ = ["Generalized", "first_generalized", "search_generalized"]

Array = NDArray[np.float64]

#: Larger attributes keep the strategy that is best for them alone.
_MAX_SEARCHED = 1_024
#: Up to this many values an attribute's own problem is searched thoroughly.
_THOROUGH = 256
#: Steps of a descent, at most, and what they may cost together, in multiplications.
_STEPS, _WORK = 400, 2e10
#: ... and of a descent that only tries what a search may find, with its tolerance.
_FIRST_STEPS, _FIRST_TOLERANCE = 60, 1e-5
#: Rounds in which marginals are searched again for the strategies found, and the gain that is worth another.
_ROUNDS, _GAIN = 4, 1e-4


@dataclass(frozen=True, eq=False)
class Generalized:
    """Measured marginals, shares and strategies.

    Attributes
    ----------
    loss : float
        At cost 1, before the variance factor of the noise.
    marginals : tuple of tuple of int
    shares : ndarray
        Of what adds up to the cost: roots of precisions for Laplace noise, precisions for Gaussian noise.
    strategies : dict of int to Strategy
        By attribute type; the identity on all others.
    """

    loss: float
    marginals: tuple[Subset, ...]
    shares: Array
    strategies: dict[int, Strategy]


@dataclass(frozen=True, eq=False)
class _Search:
    asked: ResidualTraces
    noise: Noise
    allowed: Callable[[Subset], bool]
    seed: int
    restarts: int

    @property
    def power(self) -> int:
        """The precision of a share is this power of it."""
        return 2 // self.noise.norm

    def problem(self, strategies: Mapping[int, Strategy]) -> tuple[WeightProblem, Array]:
        """Return the choice of weights for given strategies, and what precisions cost."""
        states = states_of(self.asked, strategies)
        spreads = self.asked.spreads(states)
        weights, residuals = self.asked.weights(states), self.asked.residuals
        problem = weight_problem(residuals, weights, spreads, self.allowed, 1 + self.power)
        costs = [math.prod(max(spreads[axis] - 1.0, 1e-12) for axis in one) for one in residuals]
        return problem, np.array(costs)

    def weighted(self, strategies: Mapping[int, Strategy], known: Generalized | None) -> Generalized:
        """Return the best weights for given strategies: found quickly, or from known ones and thoroughly."""
        problem, costs = self.problem(strategies)
        if self.power == 1:
            shares = convex_weights(problem, costs)
            loss = problem.loss(shares)
        elif known is None:
            shares = greedy_cover(problem)
            support = np.flatnonzero(shares)
            loss, shares[support] = polished(problem.restricted(support), shares[support], 300, 1e-8)
        else:
            start = np.zeros(len(problem.scales))
            place = problem.incidence.place
            for marginal, share in zip(known.marginals, known.shares, strict=True):
                if marginal in place:
                    start[place[marginal]] = share
            found = laplace_shares(problem, costs, seed=self.seed, restarts=self.restarts, given=(start,))
            loss, shares = found.loss, found.shares
        support = np.flatnonzero(shares)
        marginals = tuple(problem.incidence.marginals[place] for place in support)
        return Generalized(loss, marginals, shares[support] / float(shares.sum()), dict(strategies))

    def descended(self, known: Generalized, most: int = _STEPS, tolerance: float = 1e-7) -> Generalized:
        """Return what shares and strategies descend to, if that is better."""
        work = sum(own.work for own in known.strategies.values())
        if work == 0:
            return known
        steps = int(np.clip(_WORK / work, 20, most))
        incidence = incidence_of(known.marginals, self.asked.residuals)
        found = descend(self.asked, incidence, known.shares, known.strategies, self.power, steps, tolerance)
        if not found.loss < known.loss:
            return known
        return Generalized(found.loss, known.marginals, found.shares, found.strategies)

    def axes(self, known: Generalized, effort: str) -> Generalized:
        """Return the same with each strategy replaced by one for the Gram matrix that its attribute sees.

        The loss is concave in the covariance of one attribute's strategy, all else fixed, so that its
        derivative is a Gram matrix whose own problem bounds it: what is better there is better here, where
        only one attribute has the type.
        """
        incidence = incidence_of(known.marginals, self.asked.residuals)
        objective = Objective(self.asked, incidence, known.strategies, self.power)
        seen = objective.seen(known.shares, known.strategies)
        for type_, old in sorted(known.strategies.items()):
            gram = seen[type_]
            if old.work == 0 or not float(np.trace(gram)) > 0.0:
                continue
            factor = solve_axis(_definite(gram), self.noise, gap=1e-4, seed=self.seed, effort=effort)
            new = _strategy(factor, self.noise)
            if new is None or factor.loss >= float(np.vdot(gram, old.covariance())):
                continue
            tried = {**known.strategies, type_: new}
            loss = math.exp(Objective(self.asked, incidence, tried, self.power).value(known.shares, tried))
            if loss < known.loss:
                known = replace(known, loss=loss, strategies=tried)
        return known

    def starts(self) -> Iterator[dict[int, Strategy]]:
        """Yield strategies to start from: each attribute's own optimum, trees, and nearly identities."""
        own = self.own(_THOROUGH)
        yield own
        if self.power == 1:
            return
        for weight in (0.5, 0.05):
            yield self.trees(own, weight)

    def own(self, thorough: int) -> dict[int, Strategy]:
        """Return each attribute's own optimum, up to some number of values thoroughly."""
        own: dict[int, Strategy] = {}
        for type_, size in sorted(self.asked.free.items()):
            gram = self.asked.gram(type_)
            effort = "full" if size <= thorough else "fast"
            factor = solve_axis(gram, self.noise, gap=1e-4, seed=self.seed, effort=effort)
            found = _strategy(factor, self.noise)
            if size > _MAX_SEARCHED:
                found = Fixed(factor.rows)
            own[type_] = self._tree(size, 0.5) if found is None else found
        return own

    def trees(self, own: Mapping[int, Strategy], weight: float) -> dict[int, Strategy]:
        """Return trees in the place of those of some strategies that may be changed."""
        sizes = self.asked.free
        return {type_: self._tree(sizes[type_], weight) if old.work else old for type_, old in own.items()}

    def _tree(self, size: int, weight: float) -> Strategy:
        if self.power == 1:
            return UnitColumns(np.eye(size))
        return PIdentity(tree_start(size, max(2, min(16, size // 2)), weight))


def _definite(gram: Array) -> Array:
    """Return a Gram matrix that is only so up to rounding, without negative eigenvalues."""
    values, vectors = np.linalg.eigh((gram + gram.T) / 2.0)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)


def _strategy(factor: Factor, noise: Noise) -> Strategy | None:
    """Return a factor by numbers that may be changed, or None if it is of another kind."""
    rows = factor.rows
    size = rows.shape[1]
    if noise.norm == 2:
        return UnitColumns(np.vstack([rows, 1e-3 * np.eye(size)]))
    diagonal = np.diagonal(rows)
    if len(rows) < size or not (diagonal > 0).all() or np.count_nonzero(rows[:size]) != size:
        return None
    if len(rows) == size:
        return PIdentity(np.full((1, size), 0.01))
    return PIdentity(np.maximum(rows[size:] / diagonal, 0.0))


def search_generalized(
    asked: ResidualTraces,
    noise: Noise,
    allowed: Callable[[Subset], bool],
    *,
    seed: int = 0,
    restarts: int = 10,
    progress: Callable[[str, float | None], None],
) -> Generalized:
    """Return the best marginals, shares and strategies that are found; equal seeds find the same.

    Parameters
    ----------
    asked : ResidualTraces
    noise : Noise
    allowed : callable
        Whether a marginal larger than the asked ones may be measured.
    seed, restarts : int
        Of the random starts, and how many covers.
    progress : callable
    """
    search = _Search(asked, noise, allowed, seed, restarts)
    tried = []
    for number, strategies in enumerate(search.starts() if asked.free else [{}]):
        progress("searching strategies of attributes", number / 3)
        found = search.descended(search.weighted(strategies, None))
        if strategies:
            found = search.descended(search.axes(found, "fast"))
        tried.append(found)
    best = min(tried, key=lambda one: one.loss)
    for _ in range(_ROUNDS if best.strategies else 1):
        progress("searching marginals", None)
        before = best.loss
        weighted = search.weighted(best.strategies, best)
        found = search.descended(weighted if weighted.loss < before else best)
        if found.loss < before:
            best = found
        if best.loss >= before * (1.0 - _GAIN):
            break
    return best


def first_generalized(asked: ResidualTraces, noise: Noise, allowed: Callable[[Subset], bool]) -> float:
    """Return the least loss at cost 1 of the first starts, and of identities; marginals are searched once."""
    search = _Search(asked, noise, allowed, 0, 0)
    starts = [search.own(0)]
    if noise.norm == 1 and asked.free:
        # identities are over all values, and what is asked of values that nothing tells apart is not
        merged = {type_: own for type_, own in starts[0].items() if type_ in asked.merged}
        starts += [search.trees(starts[0], 0.5), merged]
    tried = [search.descended(search.weighted(one, None), _FIRST_STEPS, _FIRST_TOLERANCE) for one in starts]
    best = min(tried, key=lambda one: one.loss)
    return min(best.loss, search.weighted(best.strategies, best).loss)
