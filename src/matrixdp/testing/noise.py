"""What every noise must do, and a source of bits that were written down."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
from flint import arb, ctx
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from matrixdp.errors import PrivacyError
from matrixdp.noise import Distribution, Guarantee, Noise, SeededSource
from matrixdp.privacy import Budget
from matrixdp.testing.agreement import probes, require, require_close

__all__ = ["RecordedSource", "check_noise"]

Array = NDArray[np.float64]

_DELTA = Fraction(1, 10**6)
_SLACK = 1.0 + 1e-9
#: One budget of each kind, each within what a single bit or a few may promise.
_BUDGETS = [
    given | {"neighbours": neighbours}
    for given in ({"rho": 0.5}, {"mu": 0.75}, {"epsilon": 1.0, "delta": 1e-6}, {"epsilon": 1.5})
    for neighbours in ("add_remove", "replace")
]


class RecordedSource:
    """A source of random bits that hands out recorded words in turn: for tests, as nothing is private.

    Parameters
    ----------
    words : iterable of int
        Each in [0, 2**64).

    Attributes
    ----------
    taken : int
        How many words were handed out.

    Raises
    ------
    PrivacyError
        Where more words are asked for than were recorded.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> LAPLACE.draw_rounded(Fraction(1000), 2, source=RecordedSource([2**62, 2**63 + 2**61]))
    array([  693, -1386])
    """

    private = False

    def __init__(self, words: Iterable[int]) -> None:
        self._words = list(words)
        self.taken = 0

    def bits64(self, count: int) -> NDArray[np.uint64]:
        """Return the next words, shape (count,)."""
        return np.array([self.more_bits(64) for _ in range(count)], dtype=np.uint64)

    def more_bits(self, count: int) -> int:
        """Return the leading bits of the next word."""
        if self.taken == len(self._words):
            raise PrivacyError(f"the source has {self.taken} recorded words; all are taken")
        self.taken += 1
        return self._words[self.taken - 1] >> (64 - count)


def check_noise(noise: Noise, samples: int = 20_000) -> None:
    """Check that a noise keeps its contract.

    Its norm, shares and costs are compared with their definitions, its promises with what thresholds and
    bins of its distribution tell about one record, its filter with exact decisions, and its samples with the
    distribution. That a promise holds for every event is for a proof to say: a check can only refute it.

    Parameters
    ----------
    noise : Noise
        It need not be registered.
    samples : int
        How many samples are drawn, from a fixed seed; fewer for a noise without a filter, which is slow.

    Raises
    ------
    AssertionError
        Names what does not hold.

    Examples
    --------
    >>> from matrixdp.noise import LAPLACE
    >>> check_noise(LAPLACE)
    """
    require(str(noise) == noise.name, "str: not the name")
    require(hash(noise) == hash(type(noise)()) and noise == type(noise)(), "equal noises are not equal")
    _check_norm(noise)
    _check_shares(noise)
    honoured = [budget for budget in map(_budget, _BUDGETS) if _check_budget(noise, budget)]
    require(bool(honoured), "no kind of budget is honoured")
    _check_tail(noise)
    for budget in honoured:
        _check_promise(noise, budget)
    _check_filter(noise.distribution)
    _check_samples(noise, samples if noise.distribution.approximate else min(samples, 3000))


def _budget(given: Mapping[str, object]) -> Budget:
    return Budget(**given)  # type: ignore[arg-type]


class _Whole:
    """An integer matrix, as a noise sees it."""

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self.rows = rows

    def column_power_sum(self, power: int) -> int:
        return int((np.abs(self.rows) ** power).sum(axis=0).max())


_MATRIX = _Whole(np.array([[3, -1, 0], [-4, 2, 5]]))


def _check_norm(noise: Noise) -> None:
    require(noise.norm in (1, 2), f"norm: {noise.norm}; expected 1 or 2")
    rows = probes(4, 6)
    expected = (np.abs(rows) ** noise.norm).sum(axis=0) ** (1.0 / noise.norm)
    require_close(noise.column_norms(rows), expected, "column_norms")
    require(noise.power_sum(_MATRIX) == {1: 7, 2: 25}[noise.norm], "power_sum: not that of the columns")
    exact = noise.exact_cost([(_MATRIX, Fraction(10, 3))]).value
    least = noise.power_sum(_MATRIX) / Fraction(10, 3) ** noise.norm
    require(least <= exact <= least * (1 + Fraction(1, 2**60)), "exact_cost: not sensitivity over scale")


def _check_shares(noise: Noise) -> None:
    for share in (0.1, 1.0):
        variance = noise.variance(_MATRIX, share)
        require_close(noise.share(_MATRIX, variance), share, "share: not the inverse of variance")
        scale = noise.scale(variance, 1.0)
        require_close(scale**2 * noise.variance_factor, variance, "scale: not that of the variance")
        require_close(noise.power_sum(_MATRIX) / scale**noise.norm, share, "variance: it costs more")
    losses, counts = [3.0, 40.0, 700.0], [1, 4, 2]
    shares = np.array(noise.best_shares(losses, counts))
    require_close(shares @ counts, 1.0, "best_shares: they do not sum to 1")
    best = noise.total_loss(losses, counts)

    def total(chosen: Array) -> float:
        return float((np.array(counts) * losses / chosen ** (2.0 / noise.norm)).sum())

    require_close(total(shares), best, "total_loss: not that of the best shares")
    for step in probes(20, 3):
        other = shares * np.exp(0.3 * step)
        require(total(other / (other @ counts)) >= best / _SLACK, "best_shares: other shares are better")


def _check_budget(noise: Noise, budget: Budget) -> bool:
    """Check the cost of a budget; return whether it is honoured."""
    if not noise.honours(budget):
        try:
            noise.cost(budget)
        except PrivacyError:
            return False
        raise AssertionError(f"cost: {budget} is not honoured, and has a cost")
    cost = noise.cost(budget)
    require(cost.noise == noise, "cost: that of another noise")
    halves = {name: v / 2 if isinstance(v, float) else v for name, v in budget.as_dict().items()}
    less = noise.cost(_budget(halves))
    require(less.value < cost.value, f"cost: half of {budget} does not cost less")
    if budget.neighbours == "replace":
        alone = noise.cost(_budget(budget.as_dict() | {"neighbours": "add_remove"}))
        require(cost.value * 2**noise.norm == alone.value, "cost: replacing moves twice as far")
    three = noise.cost(_budget(budget.as_dict() | {"unit": {"records": 3}}))
    require(three.value * 3**noise.norm == cost.value, "cost: three records move three times as far")
    between = noise.allowed(budget) / budget.unit.records**noise.norm
    require_close(noise.error_scale(budget), float(between) ** (2.0 / noise.norm), "error_scale")
    return True


def _tail(noise: Noise, point: float) -> float:
    """Return P(Z > point) at scale 1, for either sign."""
    if point < 0:
        return 1.0 - _tail(noise, -point)
    return float(noise.distribution.upper_tail(Fraction(point)))


def _check_tail(noise: Noise) -> None:
    points = np.linspace(0.0, 40.0 * math.sqrt(noise.variance_factor), 2001)
    tails = np.array([_tail(noise, point) for point in points])
    require_close(tails[0], 0.5, "distribution: P(Z > 0)")
    require(bool((np.diff(tails) <= 0).all()), "distribution: its tail rises")
    # E Z^2 = 4 integral of x P(Z > x), by Simpson's rule
    weights = np.tile([2.0, 4.0], 1001)[:2001] * points[1] / 3
    weights[[0, -1]] /= 2
    require_close(4 * (weights * points * tails).sum(), noise.variance_factor, "variance_factor", 1e-4)
    for point, tail in zip(points[1:100:7], tails[1:100:7], strict=True):
        guess = noise.distribution.guess(math.log(tail))
        require(abs(guess - point) < 0.01 * (1 + point), "guess: far from the point")
    _check_quantiles(noise)


def _check_quantiles(noise: Noise) -> None:
    deviation = math.sqrt(noise.variance_factor)
    last = 0.0
    for confidence in (0.5, 0.8, 0.95, 0.999):
        quantile = noise.largest_quantile(confidence)
        covered = 1.0 - 2.0 * _tail(noise, quantile * deviation)
        require(covered >= confidence - 1e-9, f"largest_quantile: one term is covered with {covered:.6g}")
        require(quantile >= last, "largest_quantile: it falls")
        last = quantile
        own = noise.combination_quantiles(np.ones((1, 1)), confidence)
        if own is not None:
            require(own[0] <= quantile * (1 + 1e-4), "combination_quantiles: above the largest")
            covered = 1.0 - 2.0 * _tail(noise, float(own[0]) * deviation)
            within = confidence - 1e-9 <= covered <= confidence + 1e-4
            require(within, f"combination_quantiles: one term is covered with {covered:.6g}")


def _check_promise(noise: Noise, budget: Budget) -> None:
    """Compare what a budget's cost promises with the budget, and with thresholds and bins of one answer."""
    cost = noise.cost(budget)
    found = noise.promise(cost, budget, _DELTA)
    _check_within(found, budget)
    # one row of sensitivity 1 whose noise has this cost: how far one record moves the answer, in scales
    shift = budget.moved * float(cost.value) ** (1.0 / noise.norm)
    edges = np.linspace(-12.0, 12.0, 193) * math.sqrt(noise.variance_factor)
    mine = np.array([_tail(noise, edge) for edge in edges])
    moved = np.array([_tail(noise, edge - shift) for edge in edges])
    for one, other in ((moved, mine), (1.0 - mine, 1.0 - moved)):
        if found.pure_epsilon is not None:
            bound = math.exp(found.pure_epsilon) * other
            require(bool((one <= bound * _SLACK + 1e-15).all()), f"{budget}: pure epsilon is not kept")
        bound = math.exp(found.epsilon) * other + float(_DELTA)
        require(bool((one <= bound * _SLACK).all()), f"{budget}: epsilon at the reference delta is not kept")
        if budget.epsilon is not None and found.delta is not None:
            bound = math.exp(budget.epsilon) * other + float(found.delta)
            require(bool((one <= bound * _SLACK + 1e-15).all()), f"{budget}: delta is not kept")
        inside = other > 1e-12
        bound = ndtr(ndtri(other[inside]) + float(found.mu))
        require(bool((one[inside] <= bound + 1e-9).all()), f"{budget}: mu is not kept")
    first, second = -np.diff(moved), -np.diff(mine)
    held = (first > 1e-13) & (second > 1e-13)
    for order in (1.5, 2.0, 4.0):
        moment = float((first[held] ** order * second[held] ** (1.0 - order)).sum())
        divergence = math.log(moment) / (order - 1.0)
        require(divergence <= order * float(found.rho) + 1e-9, f"{budget}: rho is not kept")


def _check_within(found: Guarantee, budget: Budget) -> None:
    pairs = {
        "rho": (found.rho, budget.rho),
        "mu": (found.mu, budget.mu if budget.kind == "mu" else None),
        "pure": (found.pure_epsilon, budget.epsilon if budget.kind == "pure" else None),
        "approx": (found.delta, budget.delta),
    }
    promised, asked = pairs[budget.kind]
    if asked is not None:
        kept = promised is not None and float(promised) <= float(asked) * _SLACK
        require(kept, f"promise: more than {budget}")


def _check_filter(distribution: Distribution) -> None:
    """Compare the approximations that a filter says it proved with the tail itself."""
    if distribution.approximate is None:
        return
    random = SeededSource(3).bits64(200) >> np.uint64(1)
    small = np.array([1, 2, 2**20, 2**41, 2**42, 2**43, 2**50, 2**63 - 1], dtype=np.uint64)
    words = np.concatenate([small, random])
    values, proved = distribution.approximate(words.copy())
    require(bool(proved[-len(random) :].mean() > 0.9), "approximate: it proves next to nothing")
    for word, value in zip(words[proved].tolist(), values[proved].tolist(), strict=True):
        low, high = Fraction(value) - distribution.epsilon, Fraction(value) + distribution.epsilon
        with ctx.workprec(200):
            above = low <= 0 or distribution.upper_tail(low) >= arb((word + 1, -64))
            below = distribution.upper_tail(max(high, Fraction(0))) <= arb((word, -64))
        require(bool(above and below), f"approximate: {value} is not within epsilon for the word {word}")


def _check_samples(noise: Noise, count: int) -> None:
    scale = Fraction(3000)
    drawn = noise.draw_rounded(scale, count, source=SeededSource(1))
    require(drawn.dtype == np.int64 and drawn.shape == (count,), "draw_rounded: not int64 of the size")
    ordered = np.sort(drawn)
    ends = (ordered + 0.5) / float(scale)
    expected = 1.0 - np.array([_tail(noise, end) for end in ends.tolist()])
    distance = float(np.abs(expected - np.searchsorted(ordered, ordered, side="right") / count).max())
    require(distance * math.sqrt(count) < 2.5, f"draw_rounded: {distance:.3g} from the distribution")
    unfiltered = {"__slots__": (), "distribution": replace(noise.distribution, approximate=None)}
    slow: Noise = type("Unfiltered", (type(noise),), unfiltered)()
    exact = slow.draw_rounded(scale, 300, source=SeededSource(1))
    require(bool((exact == drawn[:300]).all()), "draw_rounded: the filter decides otherwise than the proof")
    offsets, third = np.full(count, 1.0 / 3.0), Fraction(1, 3)
    moved = noise.draw_rounded(
        scale, count, offsets=offsets, exact_offset=lambda _: third, source=SeededSource(1)
    )
    rise = moved - drawn
    require(bool(((rise == 0) | (rise == 1)).all()), "draw_rounded: an offset moves a sample by more than 1")
    require(abs(rise.mean() - 1 / 3) < 5 / math.sqrt(count), "draw_rounded: offsets are not added")
    for terms in (2, 8):
        sums = drawn[: count // terms * terms].reshape(-1, terms).sum(axis=1)
        sizes = np.abs(sums) / (math.sqrt(terms * noise.variance_factor) * float(scale))
        largest, slack = noise.largest_quantile(0.9), 1.5 / math.sqrt(len(sums))
        covered = float((sizes <= largest).mean())
        require(covered > 0.9 - slack, f"largest_quantile: {terms} terms are covered with {covered:.3g}")
        own = noise.combination_quantiles(np.full((1, terms), 1.0 / terms), 0.9)
        if own is not None:
            covered = float((sizes <= own[0]).mean())
            near = abs(covered - 0.9) < slack + 0.01
            require(near, f"combination_quantiles: {terms} terms are covered with {covered:.3g}")
