"""Which marginals are measured, and how precisely: every residual that is asked is covered by some of them.

delta_T is what is asked of residual T, relative to its variance. A marginal S that is measured with
precision u_S tells each residual in it with precision kappa_S u_S, so that the loss is the sum of
delta_T / lambda_T with lambda_T the sum of kappa_S u_S over the S that hold T. Under Gaussian noise
precisions add up to the cost, and the problem is convex; under Laplace noise their roots do, every support
has a local minimum, and supports are searched.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.selection.descent import Effort, descend
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.starting_points import Generator, generator

#: Spreads of the lognormal noise on the scores of a greedy cover, in turn.
_SPREADS = (0.03, 0.08, 0.15, 0.5)
#: Moves that are scored at once: their scores stay in memory.
_AT_ONCE = 20_000

Places = NDArray[np.intp]
#: Places of attributes, ascending.
Subset = tuple[int, ...]
#: The marginal that is put in (or -1), and those that are taken out.
Move = tuple[int, tuple[int, ...]]

#: How much more than its residuals apart a larger marginal may seem to cost, by the norm of the noise.
_SLACK = {2: 4.0, 1: 1.25}


#: Shares of a new marginal that are tried: in those of all that it replaces, or of the whole where it comes
#: beside them.
_REPLACING = (0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
_ADDED = (0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.3)
#: A share below this is dropped where nothing is lost by it.
_NEGLIGIBLE = 1e-6
#: Attributes up to which every marginal may be measured; pairs of a marginal and a residual in it up to which
#: larger ones than asked are tried, and those of two attributes beyond the asked ones.
_FEW_ATTRIBUTES = 10
_MOST_PAIRS = 2_000_000
_MORE_PAIRS = 400_000
#: With at most this many marginals there are this many times the random covers.
_FEW_MARGINALS = 64
_MORE_COVERS = 3
#: Steps of a descent, and of one that only compares supports; rounds of moves.
_STEPS = 4_000
_SCREEN_STEPS = 60
_ROUNDS = 40
#: Covers that moves start from: the best few, or where marginals hold few residuals, as many as have this
#: many together; one past `_MORE_PAIRS`.
_FINALISTS = 5
_FINALISTS_WORK = 8_000
#: Marginals up to which each may be added; pairs of measured ones up to which any two are merged; attributes
#: of marginals looked for within another.
_ADDABLE = 5_000
_MOST_MERGED = 4_000_000
_DEEPEST = 8


def _within(subset: Subset, most: int) -> Iterable[Subset]:
    for count in range(min(most, len(subset)) + 1):
        yield from combinations(subset, count)


@dataclass(frozen=True, eq=False)
class Coverage:
    """Marginals that may be measured, and the residuals that each of them holds.

    Attributes
    ----------
    marginals : tuple of tuple of int
        S: places of attributes.
    residuals : tuple of tuple of int
        T, closed downwards: every subset of one is one.
    holds : sparse matrix, shape (marginals, residuals)
        1 where T is a subset of S.
    weights : ndarray, shape (residuals,)
        delta_T.
    spreads : tuple of float
        For each attribute the sum s of the covariances of its strategy: with identities the number of values.

    Examples
    --------
    >>> found = Coverage.of([(0,), (0, 1)], [(), (0,)], np.ones(2), [2.0, 3.0])
    >>> found.holds.toarray().tolist(), found.scales.round(3).tolist()
    ([[1.0, 1.0], [1.0, 1.0]], [0.5, 0.167])
    """

    marginals: tuple[Subset, ...]
    residuals: tuple[Subset, ...]
    holds: scipy.sparse.csr_array
    weights: Array
    spreads: tuple[float, ...]

    @classmethod
    def of(
        cls,
        marginals: Sequence[Subset],
        residuals: Sequence[Subset],
        weights: Array,
        spreads: Sequence[float],
    ) -> Coverage:
        """Return the problem in which given marginals may be measured."""
        place = {residual: number for number, residual in enumerate(residuals)}
        deepest = max(map(len, residuals), default=0)
        starts, columns = [0], array("i")
        for marginal in marginals:
            columns.extend(place[one] for one in _within(marginal, deepest) if one in place)
            starts.append(len(columns))
        entries = np.ones(len(columns)), np.array(columns, np.int32), np.array(starts)
        holds = scipy.sparse.csr_array(entries, (len(marginals), len(residuals)))
        return cls(tuple(marginals), tuple(residuals), holds, weights, tuple(map(float, spreads)))

    @cached_property
    def held(self) -> scipy.sparse.csr_array:
        """The transpose of ``holds``."""
        return self.holds.T.tocsr()

    @cached_property
    def place(self) -> dict[Subset, int]:
        """Where each marginal stands."""
        return {marginal: place for place, marginal in enumerate(self.marginals)}

    @cached_property
    def masks(self) -> list[int]:
        """The attributes of each marginal as the bits of a number."""
        return [sum(1 << axis for axis in one) for one in self.marginals]

    @cached_property
    def scales(self) -> Array:
        """kappa_S: the precision of every residual in marginal S if S is measured with precision 1."""
        return np.array([math.prod(1.0 / self.spreads[axis] for axis in one) for one in self.marginals])

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        """The residuals of which something is asked."""
        return self.weights > 0

    def loss(self, precisions: Array) -> float:
        """Return sum delta_T / lambda_T; infinite where something that is asked is not held."""
        return self.loss_and_slopes(precisions)[0]

    def loss_and_slopes(self, precisions: Array) -> tuple[float, Array]:
        """Return the loss and its derivatives by the u_S, each with its sign changed: all at least 0.

        References
        ----------
        McKenna et al., journal version, section 7 (Theorems 9 to 11).
        """
        known = self.held @ (self.scales * precisions)
        if not (known[self.asked] > 0).all():
            return math.inf, np.zeros_like(precisions)
        ratios = np.divide(self.weights, known, out=np.zeros_like(known), where=self.asked)
        slopes = np.divide(ratios, known, out=np.zeros_like(known), where=self.asked)
        return float(ratios.sum()), self.scales * (self.holds @ slopes)

    def restricted(self, places: Places) -> Coverage:
        """Return the problem in which only some marginals may be measured."""
        marginals = tuple(self.marginals[place] for place in places)
        return replace(self, marginals=marginals, holds=self.holds[places])


def coverage(
    residuals: Sequence[Subset],
    weights: Array,
    spreads: Sequence[float],
    allowed: Callable[[Subset], bool],
    norm: int,
) -> Coverage:
    """Return the problem with all candidate marginals.

    Those are the residuals' own, and larger ones that are allowed: of few attributes all, of more attributes
    those that may cost less than all residuals in them on their own, level by level.

    Parameters
    ----------
    residuals : sequence of tuple of int
        Closed downwards.
    weights : ndarray, shape (residuals,)
    spreads : sequence of float
        See `Coverage`.
    allowed : callable
        Whether a marginal larger than the residuals may be measured.
    norm : int
        Of the noise.

    Examples
    --------
    >>> coverage([(), (0,)], np.ones(2), [2.0, 3.0], lambda one: len(one) < 2, 1).marginals
    ((), (0,), (1,))
    """
    axes = range(len(spreads))
    known = set(residuals)
    offered: list[Subset] = []
    if len(spreads) <= _FEW_ATTRIBUTES:
        offered = [one for one in _within(tuple(axes), len(axes)) if one not in known and allowed(one)]
    else:
        last: Sequence[Subset] = residuals
        most, deepest = _MOST_PAIRS, max(map(len, residuals))
        while last:
            depth = max(map(len, last)) + 1
            held = sum(math.comb(depth, count) for count in range(deepest + 1))
            if len(last) * len(spreads) / depth * held > most:
                break
            level = {tuple(sorted((*one, axis))) for one in last for axis in axes if axis not in one}
            fresh = sorted(one for one in level if one not in known and allowed(one))
            last = _promising(Coverage.of(fresh, residuals, weights, spreads), norm)
            offered += last
            most = _MORE_PAIRS
    marginals = sorted(known | set(offered), key=lambda one: (len(one), one))
    return Coverage.of(marginals, residuals, weights, spreads)


def _promising(problem: Coverage, norm: int) -> list[Subset]:
    """Return the marginals that may cost less than the residuals in them, each measured alone."""
    power = norm / (norm + 2.0)  # what losses at one cost add up by
    own = [math.prod(problem.spreads[axis] for axis in one) for one in problem.residuals]
    apart = problem.holds @ (problem.weights * np.array(own)) ** power
    together = (problem.holds @ problem.weights / problem.scales) ** power
    kept = np.flatnonzero(together < _SLACK[norm] * apart)
    return [problem.marginals[place] for place in kept]


def lower_bound(problem: Coverage, precisions: Array) -> float:
    """Return loss^2 / the steepest slope: below the loss of every u with sum 1.

    The loss is convex and of degree -1, so that loss(v) >= 2 loss(u) - slope . v for every v; scaled to where
    that is largest it is the bound.

    Examples
    --------
    >>> lower_bound(Coverage.of([()], [()], np.ones(1), []), np.ones(1))
    1.0
    """
    loss, slopes = problem.loss_and_slopes(precisions)
    return loss * loss / float(slopes.max())


def convex_weights(problem: Coverage) -> Array:
    """Return the u_S with sum 1 and the least loss: the best weights under Gaussian noise.

    By multiplicative steps u <- u (slope / loss)^0.9. At the optimum the slope equals the loss wherever u > 0
    and is below it elsewhere; what remains of the difference is the certified gap.

    References
    ----------
    McKenna et al., journal version, section 7 (the problem).

    Examples
    --------
    >>> problem = Coverage.of([(), (0,)], [(), (0,)], np.array([0.25, 0.25]), [2.0])
    >>> convex_weights(problem).tolist()
    [0.0, 1.0]
    """
    found = np.full(len(problem.marginals), 1.0 / len(problem.marginals))
    loss = problem.loss(found)
    for _ in range(_STEPS):
        loss, slopes = problem.loss_and_slopes(found)
        ratios = slopes / loss
        if float(ratios.max()) <= 1.0 + GAP:
            break
        found = found * ratios**0.9
        found = found / float(found.sum())
    for negligible in (1e-2, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12, 1e-15, 1e-18):
        kept = np.where(found > negligible * found.max(), found, 0.0)
        kept = kept / float(kept.sum())
        if problem.loss(kept) <= loss * (1.0 + GAP):
            return np.asarray(kept)
    return found


def laplace_shares(
    problem: Coverage, *, seed: int = 0, restarts: int = 10, known: Array | None = None
) -> tuple[float, Array]:
    """Return the least loss that is found under Laplace noise, and shares of epsilon, shape (marginals,).

    Shares have sum 1 and are 0 for what is not measured. Supports start from greedy covers, the random ones
    among them with noise on the scores, and are improved by moves; equal seeds give equal shares.

    Parameters
    ----------
    problem : Coverage
    seed, restarts : int
        Of the random covers, and how many.
    known : ndarray, optional
        Shares to start from as well.

    References
    ----------
    McKenna et al. 2018, section 6.3 (OPT_M), whose search starts from random shares.

    Examples
    --------
    >>> marginals = [(), (0,), (1,), (0, 1)]
    >>> problem = Coverage.of(marginals, marginals[:3], np.array([1.0, 8.0, 8.0]), [2.0, 2.0])
    >>> laplace_shares(problem)[1].tolist()
    [0.0, 0.0, 0.0, 1.0]
    """
    found: dict[bytes, tuple[float, Array]] = {}
    for start in _covers(problem, generator(seed), restarts):
        support = (start > 0).tobytes()
        if support not in found:
            found[support] = polished(problem, start, _SCREEN_STEPS, LIMITS.gain)
    if known is not None:
        found[b""] = polished(problem, known, _SCREEN_STEPS, LIMITS.gain)
    pairs = max(1, problem.holds.nnz)
    most = max(_FINALISTS if pairs <= _MORE_PAIRS else 1, _FINALISTS_WORK // pairs)
    covering = [one for one in found.values() if math.isfinite(one[0])]
    finalists = sorted(covering, key=lambda item: item[0])[:most]
    return min((_finished(problem, *_moved(problem, *one)) for one in finalists), key=lambda item: item[0])


def polished(
    problem: Coverage, shares: Array, iterations: int = 1_000, tolerance: float = 1e-9
) -> tuple[float, Array]:
    """Return the loss and the best shares with the same support as given ones; their sum is 1.

    Precisions are squares of shares. Over logarithms the loss is smooth and of degree 0, so that the search
    has no constraints. Where the support does not cover what is asked the loss is infinite.

    Examples
    --------
    >>> problem = Coverage.of([(0,), (1,)], [(), (0,), (1,)], np.array([0.0, 8.0, 1.0]), [1.0, 1.0])
    >>> loss, shares = polished(problem, np.ones(2))
    >>> round(loss, 6), round(float(shares[0] / shares[1]), 3)  # cube roots: (2 + 1)^3
    (27.0, 2.0)
    """
    support = np.flatnonzero(shares)
    holds, scales, asked = problem.holds[support][:, problem.asked], problem.scales[support], problem.asked
    held, weights = holds.T.tocsr(), problem.weights[asked]
    full = np.zeros(len(problem.marginals))
    if not (held @ np.ones(len(support)) > 0).all():
        return math.inf, full

    def objective(logarithms: Array) -> tuple[float, Array]:
        theta = np.exp(logarithms)
        precisions = theta * theta * scales
        ratios = weights / (held @ precisions)
        loss, total = float(ratios.sum()), float(theta.sum())
        slopes = precisions * (holds @ (ratios * ratios / weights))
        return math.log(loss) + 2.0 * math.log(total), 2.0 * theta / total - 2.0 / loss * slopes

    start, within = np.log(shares[support] / float(shares.sum())), (math.log(LIMITS.least_share), 1.0)
    found = descend(objective, start, Effort(iterations, tolerance, 1e-10), within)
    full[support] = np.exp(found)
    return math.exp(objective(found)[0]), full / float(full.sum())


def _covers(problem: Coverage, rng: Generator, restarts: int) -> Iterator[Array]:
    """Yield shares of covers: a greedy one, the largest marginals that are asked, then random greedy ones."""
    count = len(problem.marginals)
    yield greedy_cover(problem)
    asked = [place for place, one in enumerate(problem.residuals) if one in problem.place]
    asked = [place for place in asked if problem.weights[place] > 0]
    own = np.array([problem.place[problem.residuals[place]] for place in asked], dtype=np.intp)
    largest = np.zeros(count)
    largest[own[problem.holds[own].sum(axis=0)[asked] == 1]] = 1.0  # no other of them holds their residual
    yield largest
    for number in range(restarts * (_MORE_COVERS if count <= _FEW_MARGINALS else 1)):
        noise = _SPREADS[number % len(_SPREADS)] * rng.standard_normal(count)
        yield greedy_cover(problem, np.exp(noise))


def greedy_cover(problem: Coverage, factors: Array | None = None) -> Array:
    """Return shares of a cover: always the marginal that costs least of what measuring apart would cost.

    A marginal costs the cube root of what is left in it over its precision; the residuals in it cost the sum
    of their own cube roots if each is measured as the marginal of its own attributes. Costs are multiplied by
    given factors. Gradients never add a marginal, since every share of 0 is a local minimum; what decides is
    the cover.

    References
    ----------
    Chvatal (1979), "A greedy heuristic for the set-covering problem", with costs that change as sets are
    taken.

    Examples
    --------
    >>> marginals = [(0,), (1,), (0, 1)]
    >>> problem = Coverage.of(marginals, [(), (0,), (1,)], np.array([1.0, 8.0, 8.0]), [2.0, 2.0])
    >>> greedy_cover(problem).round(3).tolist()
    [0.0, 0.0, 4.082]
    """
    holds, held, scales = problem.holds, problem.held, problem.scales
    own = np.array([problem.place.get(one, -1) for one in problem.residuals])
    weights = problem.weights.copy()
    apart = np.cbrt(weights / np.where(own >= 0, scales[own], scales.min()))
    shares, score = np.zeros(len(scales)), np.zeros(len(scales))
    factors = np.ones(len(scales)) if factors is None else factors
    stale = np.arange(len(scales))
    while weights.any():
        inside, of = _columns(holds, stale)
        left, gains = (np.bincount(of, known[inside], len(stale)) for known in (weights, apart))
        costs = np.cbrt(left / scales[stale]) * factors[stale]
        score[stale] = np.divide(costs, gains, out=np.full(len(stale), np.inf), where=gains > 0)
        best = int(np.argmax(score <= score.min() * (1 + 1e-12)))  # of equals the first
        inside, _ = _columns(holds, np.array([best]))
        new = inside[weights[inside] > 0]
        shares[best] = np.cbrt(float(weights[new].sum()) / float(scales[best]))
        weights[new] = apart[new] = 0.0
        stale = np.unique(_columns(held, new)[0])
    return shares


def _columns(matrix: scipy.sparse.csr_array, rows: Places) -> tuple[Places, Places]:
    """Return the columns that some rows of a sparse matrix hold, and for each the place of its row."""
    starts, counts = matrix.indptr[rows], np.diff(matrix.indptr)[rows]
    of = np.repeat(np.arange(len(rows)), counts)
    first = np.cumsum(counts) - counts
    return matrix.indices[np.arange(len(of)) + (starts - first)[of]], of


def _finished(problem: Coverage, loss: float, shares: Array) -> tuple[float, Array]:
    """Return the loss and shares without negligible ones, polished to the end."""
    kept = np.where(shares > _NEGLIGIBLE, shares, 0.0)
    fewer = polished(problem, kept)
    if fewer[0] <= loss * (1.0 + 1e-6):
        loss, shares = fewer
    return min((loss, shares), polished(problem, shares, 3_000, 1e-13), key=lambda item: item[0])


def _moved(problem: Coverage, loss: float, shares: Array) -> tuple[float, Array]:
    """Return the loss and shares after moves from support to support, as long as they lower the loss.

    Moves that promise most and do not overlap are made together, and then all shares are polished.
    """
    batch = _AT_ONCE
    for _ in range(_ROUNDS):
        before = loss
        promised = _promised(problem, shares, loss)
        while promised and loss == before:
            chosen = _disjoint(problem, shares, promised, batch)
            tried = shares.copy()
            for (_, out), _ in chosen:
                tried[list(out)] = 0.0
            for (into, _), share in chosen:
                if into >= 0:
                    tried[into] = share
            found = polished(problem, tried)
            if found[0] < loss * (1.0 - LIMITS.fine_gain):
                loss, shares = found
                batch = 2 * batch
            else:
                if len(chosen) == 1:
                    promised = promised[1 : 1 + len(promised) // 2]
                batch = max(1, len(chosen) // 2)
        if loss >= before * (1.0 - LIMITS.gain):
            break
    return loss, shares


def _disjoint(
    problem: Coverage, shares: Array, promised: list[tuple[float, Move, float]], most: int
) -> list[tuple[Move, float]]:
    """Return the moves that promise most and have no measured marginal with a residual in common."""
    count = problem.held @ (shares > 0)
    taken = np.zeros(len(count), dtype=bool)
    put: set[int] = set()
    found: list[tuple[Move, float]] = []
    for _, move, share in promised:
        # residuals in which the move is felt: not those that many marginals hold
        felt, _ = _columns(problem.holds, np.array([one for one in (*move[1], move[0]) if one >= 0]))
        felt = felt[count[felt] <= 3]
        if move[0] in put or taken[felt].any():
            continue
        taken[felt] = True
        put.add(move[0])
        found.append((move, share))
        if len(found) >= most:
            break
    return found


def _promised(problem: Coverage, shares: Array, loss: float) -> list[tuple[float, Move, float]]:
    """Return the moves that lower the loss at fixed other shares: gain, move, share; the best first."""
    moves = list(dict.fromkeys(_moves(problem, np.flatnonzero(shares))))
    found: list[tuple[float, Move, float]] = []
    for begin in range(0, len(moves), _AT_ONCE):
        some = moves[begin : begin + _AT_ONCE]
        losses, best = _scored(problem, shares, loss, some)
        better = np.flatnonzero(losses < loss * (1.0 - LIMITS.fine_gain))
        found += [(float(1.0 - losses[i] / loss), some[i], float(best[i])) for i in better]
    return sorted(found, key=lambda item: (-item[0], item[1]))


def _moves(problem: Coverage, support: Places) -> Iterator[Move]:
    """Yield the moves: drop, one attribute more or less, the subsets absorbed as well, merge two, add."""
    place = {mask: number for number, mask in enumerate(problem.masks)}
    measured = {problem.masks[number]: int(number) for number in support}
    for own, number in measured.items():
        yield -1, (number,)
        for axis in range(len(problem.spreads)):
            near = own ^ (1 << axis)
            into = -1 if near in measured else place.get(near, -1)
            if into >= 0:
                yield into, (number,)
                if near.bit_count() <= _DEEPEST:
                    inside = {measured[one] for one in _submasks(near) if one in measured}
                    yield into, tuple(sorted({*inside, number}))
    if len(measured) ** 2 <= _MOST_MERGED:
        for (one, first), (other, second) in combinations(measured.items(), 2):
            into = -1 if one | other in measured else place.get(one | other, -1)
            if into >= 0:
                yield into, (first, second)
    if len(place) <= _ADDABLE:
        yield from ((into, ()) for mask, into in place.items() if mask not in measured)


def _submasks(mask: int) -> Iterator[int]:
    """Yield the sets of attributes within one, each as the bits of a number."""
    sub = mask
    while sub:
        yield sub
        sub = (sub - 1) & mask
    yield 0


def _scored(problem: Coverage, shares: Array, loss: float, moves: list[Move]) -> tuple[Array, Array]:
    """Return the loss after each move at its best share among those tried, and that share."""
    count, scales = len(moves), problem.scales
    into = np.array([move[0] for move in moves])
    sizes = np.array([len(move[1]) for move in moves])
    out = np.fromiter((one for move in moves for one in move[1]), dtype=np.intp, count=int(sizes.sum()))
    of_out = np.repeat(np.arange(count), sizes)
    puts = np.flatnonzero(into >= 0)
    # for each move and residual the precision that goes, and as imaginary part what a share of 1 brings
    changes = np.concatenate([shares[out] ** 2 * scales[out], 1j * scales[into[puts]]])
    entries = np.concatenate([of_out, puts]), np.concatenate([out, into[puts]])
    change = scipy.sparse.csr_array((changes, entries), shape=(count, len(scales))) @ problem.holds
    of_move, residual = np.repeat(np.arange(count), np.diff(change.indptr)), change.indices
    asked, now = problem.weights[residual], (problem.held @ (scales * shares**2))[residual]
    left = now - change.data.real
    left[left <= 1e-12 * now] = 0.0
    before = np.divide(asked, now, out=np.zeros_like(asked), where=asked > 0)
    base = loss - np.bincount(of_move, before, count)
    replaced = np.bincount(of_out, shares[out], count)
    best, share = np.full(count, np.inf), np.zeros(count)
    for factor, added in zip(_REPLACING, _ADDED, strict=True):
        tried = np.where(into < 0, 0.0, np.where(sizes > 0, factor * replaced, added))
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(asked > 0, asked / (left + tried[of_move] ** 2 * change.data.imag), 0.0)
            found = (base + np.bincount(of_move, terms, count)) * (1.0 - replaced + tried) ** 2
        found[np.isnan(found)] = np.inf  # nothing is measured any more
        better = found < best
        best[better], share[better] = found[better], tried[better]
    return best, share
