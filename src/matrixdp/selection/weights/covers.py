"""Which marginals to measure under Laplace noise: covers of all that is asked.

Gradients never add a marginal, since every share of 0 is a local minimum. What decides is a cover: each
asked residual is in some measured marginal, and measuring one marginal pays for all residuals in it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.starting_points import Generator
from matrixdp.selection.weights.incidence import WeightProblem

__all__ = ["greedy_cover", "random_cover"]

Array = NDArray[np.float64]


def greedy_cover(problem: WeightProblem, rng: Generator | None = None, spread: float = 0.0) -> Array:
    """Return shares of a cover: always the marginal that costs least of what measuring apart would cost.

    A marginal costs the cube root of what is left in it over its precision; the residuals in it cost the sum
    of their own cube roots if each is measured as the marginal of its own attributes. Scores are multiplied
    by lognormal noise of a given spread.

    References
    ----------
    Chvatal (1979), "A greedy heuristic for the set-covering problem", with costs that change as sets are
    taken.

    Examples
    --------
    >>> from matrixdp.selection.weights.incidence import incidence_of
    >>> incidence = incidence_of([(0,), (1,), (0, 1)], [(), (0,), (1,)])
    >>> problem = WeightProblem(incidence, np.array([1.0, 8.0, 8.0]), np.array([0.5, 0.5, 0.25]))
    >>> greedy_cover(problem).round(3).tolist()
    [0.0, 0.0, 4.082]
    """
    incidence, scales = problem.incidence, problem.scales
    holds, held = incidence.holds, incidence.held
    own = np.array([incidence.place.get(one, -1) for one in incidence.residuals])
    apart = np.cbrt(problem.weights / np.where(own >= 0, scales[own], scales.min()))
    noise = np.ones(len(scales)) if rng is None else np.exp(spread * rng.standard_normal(len(scales)))
    left, gains = holds @ problem.weights, holds @ apart
    floor = 1e-12 * gains
    open_ = problem.asked.copy()
    shares = np.zeros(len(scales))
    remaining = int(open_.sum())
    score = np.full(len(scales), np.inf)
    stale = np.arange(len(scales))
    while remaining:
        usable = gains[stale] > floor[stale]
        costs = np.cbrt(np.maximum(left[stale], 0.0) / scales[stale]) * noise[stale]
        score[stale] = np.divide(costs, gains[stale], out=np.full(len(stale), np.inf), where=usable)
        best = int(np.argmax(score <= score.min() * (1 + 1e-12)))  # of equals the first
        inside = holds.indices[holds.indptr[best] : holds.indptr[best + 1]]
        new = inside[open_[inside]]
        if not len(new):
            score[best], gains[best] = np.inf, 0.0
            stale = stale[:0]
            continue
        shares[best] = np.cbrt(float(problem.weights[new].sum()) / float(scales[best]))
        open_[new] = False
        remaining -= len(new)
        pieces = [held.indices[held.indptr[one] : held.indptr[one + 1]] for one in new]
        touched = np.concatenate(pieces)
        counts = [len(piece) for piece in pieces]
        np.subtract.at(left, touched, np.repeat(problem.weights[new], counts))
        np.subtract.at(gains, touched, np.repeat(apart[new], counts))
        stale = np.unique(touched)
    return shares


def random_cover(problem: WeightProblem, rng: Generator) -> Array:
    """Return shares of a cover by random marginals: each open residual within a random larger one.

    Merging marginals that are asked into a larger one can pay, and every way to merge is a local minimum of
    its own.
    """
    holds, held, scales = problem.incidence.holds, problem.incidence.held, problem.scales
    sizes = np.array([len(one) for one in problem.incidence.residuals])
    open_ = problem.asked.copy()
    shares = np.zeros(len(scales))
    power = float(rng.choice([0.5, 1.0, 2.0, 4.0]))
    while open_.any():
        largest = np.flatnonzero(open_ & (sizes == sizes[open_].max()))
        residual = int(rng.choice(largest))
        offered = held.indices[held.indptr[residual] : held.indptr[residual + 1]]
        chances = scales[offered] ** power
        chosen = int(rng.choice(offered, p=chances / chances.sum()))
        inside = holds.indices[holds.indptr[chosen] : holds.indptr[chosen + 1]]
        new = inside[open_[inside]]
        shares[chosen] = np.cbrt(float(problem.weights[new].sum()) / float(scales[chosen]))
        open_[new] = False
    return shares
