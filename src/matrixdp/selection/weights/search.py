"""The search for measured marginals and their shares under Laplace noise: covers, polish, moves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.starting_points import Generator, generator
from matrixdp.selection.weights.convex import convex_weights
from matrixdp.selection.weights.covers import greedy_cover, random_cover
from matrixdp.selection.weights.incidence import WeightProblem
from matrixdp.selection.weights.moves import improved
from matrixdp.selection.weights.shares import balanced, polished

__all__ = ["Shares", "laplace_shares"]

Array = NDArray[np.float64]

#: Spreads of the lognormal noise on the scores of a greedy cover, in turn.
_SPREADS = (0.03, 0.08, 0.15)
#: Marginals up to which random shares are tried too, as many times a restart.
_FEW, _TIMES = 64, 3
#: Attributes up to which random covers are tried, as many times a restart.
_FEW_ATTRIBUTES = 6
#: How many of the best starts are moved on, and rounds of moves at most.
_FINALISTS, _ROUNDS = 3, 40
#: A share below this is dropped where nothing is lost by it.
_NEGLIGIBLE = 1e-6
#: Residuals that marginals hold in all, up to which all finalists are moved.
_LARGE = 400_000


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of epsilon.

    Attributes
    ----------
    loss : float
        sum of delta_T / lambda_T, before the variance factor of the noise.
    shares : ndarray, shape (marginals,)
        With sum 1; 0 for what is not measured.
    """

    loss: float
    shares: Array


def laplace_shares(
    problem: WeightProblem,
    costs: Array,
    *,
    seed: int = 0,
    restarts: int = 10,
    given: tuple[Array, ...] = (),
) -> Shares:
    """Return the best shares of epsilon that are found; equal seeds give equal shares.

    Parameters
    ----------
    problem : WeightProblem
    costs : ndarray, shape (residuals,)
        See `convex_weights`.
    seed, restarts : int
        Of the random starts, and how many.
    given : tuple of ndarray
        Further starts.

    References
    ----------
    McKenna et al. 2018, section 6.3 (OPT_M), whose search starts from random shares.

    Examples
    --------
    >>> from matrixdp.selection.weights.incidence import incidence_of
    >>> incidence = incidence_of([(), (0,), (1,), (0, 1)], [(), (0,), (1,)])
    >>> problem = WeightProblem(incidence, np.array([1.0, 8.0, 8.0]), np.array([1.0, 0.5, 0.5, 0.25]))
    >>> laplace_shares(problem, np.ones(3)).shares.tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    rng = generator(seed)
    found = []
    for start in (*given, *_starts(problem, costs, rng, restarts)):
        support = np.flatnonzero(start)
        restricted = problem.restricted(support)
        if np.isfinite(restricted.loss(start[support])):
            loss, shares = polished(restricted, start[support], 300, 1e-8)
            found.append((loss, support, shares))
    found.sort(key=lambda item: item[0])
    finalists = found[: _FINALISTS if problem.incidence.holds.nnz <= _LARGE else 1]
    best = min((_finished(problem, *finalist) for finalist in finalists), key=lambda item: item[0])
    full = np.zeros(len(problem.scales))
    full[best[1]] = best[2]
    return Shares(best[0], full)


def _finished(
    problem: WeightProblem, loss: float, support: NDArray[np.intp], shares: Array
) -> tuple[float, NDArray[np.intp], Array]:
    """Return a start after moves, without negligible shares, polished to the end."""
    loss, support, shares = improved(problem, support, shares, loss, _ROUNDS)
    kept = shares > _NEGLIGIBLE
    if not kept.all() and np.isfinite(problem.restricted(support[kept]).loss(shares[kept])):
        less, of_kept = polished(problem.restricted(support[kept]), shares[kept])
        if less <= loss * (1.0 + 1e-6):
            loss, support, shares = less, support[kept], of_kept
    less, last = polished(problem.restricted(support), shares, 3_000, 1e-13)
    return (less, support, last) if less < loss else (loss, support, shares)


def _starts(problem: WeightProblem, costs: Array, rng: Generator, restarts: int) -> Iterator[Array]:
    """Yield shares to start from: all that is asked, what is best for Gaussian noise, covers, random ones."""
    incidence, scales = problem.incidence, problem.scales
    full = np.ones(len(scales))
    by_precision = np.argsort(-scales, kind="stable")
    asked = {one for one, weight in zip(incidence.residuals, problem.weights, strict=True) if weight > 0}
    own = np.array([place for place in by_precision if incidence.marginals[place] in asked], dtype=np.intp)
    yield balanced(problem, own)
    maximal = _maximal(problem)
    yield balanced(problem, np.array([place for place in by_precision if maximal[place]], dtype=np.intp))
    yield greedy_cover(problem)
    if len(scales) <= _FEW:
        convex = convex_weights(problem, costs)
        yield np.sqrt(convex) + 1e-3 * full
        yield np.where(convex > 0, np.cbrt(convex), 0.0)
        yield full / np.cbrt(scales)
    attributes = len({axis for one in incidence.marginals for axis in one})
    for restart in range(restarts):
        yield greedy_cover(problem, rng, _SPREADS[restart % len(_SPREADS)])
        for _ in range(_TIMES if attributes <= _FEW_ATTRIBUTES else 0):
            yield random_cover(problem, rng)
        for _ in range(_TIMES if len(scales) <= _FEW else 0):
            kept = rng.random(len(scales)) < rng.choice([0.3, 0.5, 0.8, 1.0])
            yield full * kept * rng.random(len(scales)) ** int(rng.choice([1, 2, 4, 8]))


def _maximal(problem: WeightProblem) -> NDArray[np.bool_]:
    """Return which marginals are asked residuals without an asked one above them."""
    incidence = problem.incidence
    above: set[tuple[int, ...]] = set()
    for one, weight in zip(incidence.residuals, problem.weights, strict=True):
        if weight > 0:
            above |= {tuple(axis for axis in one if axis != without) for without in one}
    # residuals are closed downwards: one that is covered by two steps is covered by one
    asked = {one for one, weight in zip(incidence.residuals, problem.weights, strict=True) if weight > 0}
    return np.array([marginal in asked and marginal not in above for marginal in incidence.marginals])
