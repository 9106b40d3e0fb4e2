"""Moves between supports: measured marginals are dropped, exchanged for neighbours, or merged.

Every move puts at most one marginal in and takes some out. What it changes is scored on the residuals of
those marginals alone, at a few shares of the new one; moves that promise most and do not overlap are made
together, and then all shares are polished.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from matrixdp.selection.weights.incidence import Subset, WeightProblem
from matrixdp.selection.weights.shares import polished

__all__ = ["improved"]

Array = NDArray[np.float64]
Places = NDArray[np.intp]
#: The marginal that is put in (or -1), and those that are taken out.
Move = tuple[int, tuple[int, ...]]

#: Shares of a new marginal that are tried, in those of all that it replaces.
_TRIED = (0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
#: Least relative gain of a move, and of a round that is worth another.
_LEAST_GAIN, _LEAST_ROUND = 1e-7, 1e-5
#: Moves that are scored at once.
_AT_ONCE = 20_000
#: Attributes of the marginals that are looked for within another.
_DEEPEST = 6
#: Pairs of measured marginals that are looked at for merging.
_PAIRS = 4_000_000


def improved(
    problem: WeightProblem, support: Places, shares: Array, loss: float, rounds: int
) -> tuple[float, Places, Array]:
    """Return the loss, support and shares after moves, as long as they lower the loss.

    Examples
    --------
    >>> from matrixdp.selection.weights.incidence import incidence_of
    >>> incidence = incidence_of([(0,), (1,), (0, 1)], [(), (0,), (1,)])
    >>> problem = WeightProblem(incidence, np.array([1.0, 8.0, 8.0]), np.array([0.5, 0.5, 0.25]))
    >>> start = np.array([0, 1])
    >>> loss, shares = polished(problem.restricted(start), np.ones(2))
    >>> improved(problem, start, shares, loss, 5)[1].tolist()
    [2]
    """
    batch = 1 << 30
    for _ in range(rounds):
        promised = _promising(problem, support, shares, loss)
        made = None
        while promised and made is None:
            chosen = _apart(problem, support, promised, batch)
            made = _made(problem, support, shares, loss, chosen)
            if made is None:
                if len(chosen) == 1:
                    promised = promised[1 : 1 + len(promised) // 2]
                batch = max(1, len(chosen) // 2)
        if made is None:
            break
        gained = 1.0 - made[0] / loss
        loss, support, shares = made
        batch = max(2 * batch, 1)
        if gained < _LEAST_ROUND:
            break
    return loss, support, shares


def _made(
    problem: WeightProblem, support: Places, shares: Array, loss: float, chosen: list[tuple[Move, float]]
) -> tuple[float, Places, Array] | None:
    """Return what moves lead to, or None if that is not below a loss."""
    full = np.zeros(len(problem.scales))
    full[support] = shares
    for (_, out), _ in chosen:
        full[list(out)] = 0.0
    for (into, _), share in chosen:
        if into >= 0:
            full[into] = share
    support = np.flatnonzero(full)
    restricted = problem.restricted(support)
    if not np.isfinite(restricted.loss(full[support])):
        return None
    found, shares = polished(restricted, full[support])
    return (found, support, shares) if found < loss * (1.0 - _LEAST_GAIN) else None


def _apart(
    problem: WeightProblem, support: Places, promised: list[tuple[float, Move, float]], most: int
) -> list[tuple[Move, float]]:
    """Return the moves that promise most and have no measured marginal with a residual in common."""
    holds = problem.incidence.holds
    count = np.asarray(problem.incidence.held[:, support].sum(axis=1)).ravel()
    taken = np.zeros(len(count), dtype=bool)
    put: set[int] = set()
    chosen: list[tuple[Move, float]] = []
    for _, move, share in promised:
        into, out = move
        # residuals in which the move is felt: not those that many marginals hold
        felt = np.concatenate(
            [holds.indices[holds.indptr[one] : holds.indptr[one + 1]] for one in (*out, into) if one >= 0]
        )
        felt = felt[count[felt] <= 3]
        if into in put or taken[felt].any():
            continue
        taken[felt] = True
        put.add(into)
        chosen.append((move, share))
        if len(chosen) >= most:
            break
    return chosen


def _promising(
    problem: WeightProblem, support: Places, shares: Array, loss: float
) -> list[tuple[float, Move, float]]:
    """Return the moves that lower the loss at fixed other shares: gain, move, share; the best first."""
    moves = list(dict.fromkeys(_moves(problem, support)))
    found: list[tuple[float, Move, float]] = []
    for begin in range(0, len(moves), _AT_ONCE):
        some = moves[begin : begin + _AT_ONCE]
        losses, best = _scored(problem, support, shares, loss, some)
        better = np.flatnonzero(losses < loss * (1.0 - _LEAST_GAIN))
        found += [(float(1.0 - losses[i] / loss), some[i], float(best[i])) for i in better]
    return sorted(found, key=lambda item: (-item[0], item[1]))


def _moves(problem: WeightProblem, support: Places) -> Iterator[Move]:
    """Yield the moves: drop, one attribute more, less or exchanged, the subsets absorbed, two merged."""
    place, marginals = problem.incidence.place, problem.incidence.marginals
    measured = {marginals[number]: int(number) for number in support}
    axes = sorted({axis for one in marginals for axis in one})
    for own, number in measured.items():
        yield -1, (number,)
        for near in _neighbours(own, axes):
            into = place.get(near)
            if into is not None and near not in measured:
                yield into, (number,)
                inside = {measured[one] for one in _held(near) if one in measured}
                if not inside <= {number}:
                    yield into, tuple(sorted({*inside, number}))
    if len(measured) ** 2 <= _PAIRS:
        known = list(measured.items())
        for i, (first, one) in enumerate(known):
            for second, other in known[:i]:
                both = tuple(sorted({*first, *second}))
                into = place.get(both)
                if into is not None and both not in measured:
                    yield into, (min(one, other), max(one, other))


def _held(subset: Subset) -> Iterator[Subset]:
    for count in range(min(len(subset), _DEEPEST) + 1):
        yield from combinations(subset, count)


def _neighbours(subset: Subset, axes: list[int]) -> Iterator[Subset]:
    inside = set(subset)
    for axis in subset:
        yield tuple(other for other in subset if other != axis)
    for axis in axes:
        if axis not in inside:
            yield tuple(sorted((*subset, axis)))
            for out in subset:
                yield tuple(sorted(inside - {out} | {axis}))


def _scored(
    problem: WeightProblem, support: Places, shares: Array, loss: float, moves: list[Move]
) -> tuple[Array, Array]:
    """Return the loss after each move at its best share among those tried, and that share."""
    holds, weights = problem.incidence.holds, problem.weights
    full = np.zeros(len(problem.scales))
    full[support] = shares
    lambdas = problem.precisions(full * full)
    count = np.asarray(problem.incidence.held[:, support].sum(axis=1)).ravel()
    into = np.array([move[0] for move in moves])
    sizes = np.array([len(move[1]) for move in moves])
    out = np.fromiter((one for move in moves for one in move[1]), dtype=np.intp, count=int(sizes.sum()))
    of_out = np.repeat(np.arange(len(moves)), sizes)
    # entries (move, residual): precision that goes, marginals that go, precision for a share of 1 that comes
    puts = np.flatnonzero(into >= 0)
    marginal = np.concatenate([out, into[puts]])
    move = np.concatenate([of_out, puts])
    gone = np.concatenate([full[out] ** 2 * problem.scales[out], np.zeros(len(puts))])
    comes = np.concatenate([np.zeros(len(out)), problem.scales[into[puts]]])
    ones = np.concatenate([np.ones(len(out)), np.zeros(len(puts))])
    lengths = np.diff(holds.indptr)[marginal]
    entries = np.repeat(holds.indptr[marginal], lengths) + _ramps(lengths)
    residual = holds.indices[entries].astype(np.int64)
    keys = np.repeat(move, lengths).astype(np.int64) * len(weights) + residual
    unique, back = np.unique(keys, return_inverse=True)
    gone, comes, ones = (np.bincount(back, np.repeat(v, lengths), len(unique)) for v in (gone, comes, ones))
    of_move, residual = unique // len(weights), unique % len(weights)
    asked = weights[residual]
    left = np.where(count[residual] - ones > 0.5, np.maximum(lambdas[residual] - gone, 0.0), 0.0)
    before = np.divide(asked, lambdas[residual], out=np.zeros_like(asked), where=asked > 0)
    base = loss - np.bincount(of_move, before, len(moves))
    replaced = np.bincount(of_out, full[out], len(moves))
    best, share = np.full(len(moves), np.inf), np.zeros(len(moves))
    for factor in _TRIED:
        tried = np.where(into >= 0, factor * replaced, 0.0)
        precisions = left + tried[of_move] ** 2 * comes
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(asked > 0, asked / precisions, 0.0)
            found = (base + np.bincount(of_move, terms, len(moves))) * (1.0 - replaced + tried) ** 2
        found[np.isnan(found)] = np.inf  # nothing is measured any more
        better = found < best
        best[better], share[better] = found[better], tried[better]
    return best, share


def _ramps(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return 0 .. n - 1 for each of some n, one after the other."""
    ends = np.cumsum(lengths)
    return np.asarray(np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - lengths, lengths))
