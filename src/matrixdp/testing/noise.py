"""What every noise must do."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.integrate
from flint import ctx
from scipy import stats

from matrixdp.errors import PrivacyError
from matrixdp.exact import DeficientMatrix
from matrixdp.noise import Noise, SeededSource
from matrixdp.privacy import Budget
from matrixdp.testing.agreement import require, require_close

__all__ = ["check_noise"]

_MATRIX = np.array([[3, 1, 0], [-4, 1, 2]])
_LOSSES, _COUNTS = [3.0, 40.0, 700.0], [1, 5, 2]
_BUDGETS: list[dict[str, Any]] = [
    {"rho": 0.3},
    {"mu": 0.7},
    {"epsilon": 0.9, "delta": 1e-6},
    {"epsilon": 0.9},
]
_DELTA = Fraction(1, 10**6)
#: Bounds are proved, and rounded by less than this.
_ROUNDING = Fraction(1, 2**50)
_SAMPLES, _SEED = 20_000, 1
#: A sound sampler is taken for a wrong one with less than this probability.
_FALSE_ALARM = 1e-10


def check_noise(noise: Noise) -> None:
    """Check that a noise keeps its contract.

    Its costs, shares and variances fit one another; what a budget allows promises no more than the budget;
    its distribution has the variance that it says, decays no faster than a pure guarantee allows, and is that
    of its samples; and its quantiles cover what they say.

    Parameters
    ----------
    noise : Noise
        It need not be registered.

    Raises
    ------
    AssertionError
        Names what disagrees.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN, LAPLACE
    >>> check_noise(GAUSSIAN)
    >>> check_noise(LAPLACE)
    """
    _check_costs(noise)
    _check_shares(noise)
    for given in _BUDGETS:
        _check_budget(noise, given)
    _check_distribution(noise)
    samples = noise.draw_rounded(Fraction(64), _SAMPLES, source=SeededSource(_SEED))
    _check_samples(noise, samples)
    _check_quantiles(noise, samples / 64)


def _tail(noise: Noise, point: Fraction) -> float:
    """Return P(Z > point)."""
    with ctx.workprec(128):
        tail = float(noise.distribution.upper_tail(abs(point)))
    return tail if point >= 0 else 1.0 - tail


def _check_costs(noise: Noise) -> None:
    matrix = DeficientMatrix(_MATRIX)
    sums = (np.abs(_MATRIX) ** noise.norm).sum(axis=0)
    require(noise.power_sum(matrix) == sums.max(), "power_sum: not that of the largest column")
    require_close(noise.column_norms(_MATRIX.astype(float)) ** noise.norm, sums, "column_norms")
    for share in (1.0, 0.2):
        variance = noise.variance(matrix, share)
        require_close(noise.share(matrix, variance), share, "share: not that of the variance")
        cost = noise.exact_cost(matrix, Fraction(noise.scale(variance, 1.0))).value
        require_close(float(cost), share, "exact_cost: not the share of the cost 1")
        quarter = noise.exact_cost(matrix, Fraction(noise.scale(variance, 0.25))).value
        require_close(float(quarter), share / 4, "scale: does not cost what it should")
    scale = Fraction(22, 7)
    exact = Fraction(int(sums.max())) / scale**noise.norm
    found = noise.exact_cost(matrix, scale).value
    require(exact <= found <= exact * (1 + _ROUNDING), "exact_cost: not just above the exact one")


def _check_shares(noise: Noise) -> None:
    losses, counts = np.array(_LOSSES), np.array(_COUNTS)

    def total(shares: np.ndarray) -> float:
        return float((counts * losses / shares ** (2.0 / noise.norm)).sum())

    shares = np.array(noise.best_shares(_LOSSES, _COUNTS))
    require_close(float((counts * shares).sum()), 1.0, "best_shares: do not sum to 1")
    require_close(noise.total_loss(_LOSSES, _COUNTS), total(shares), "total_loss: not of the best shares")
    for place in range(len(shares)):
        moved = shares * np.where(np.arange(len(shares)) == place, 1.1, 1.0)
        require(total(moved / (counts * moved).sum()) > total(shares), "best_shares: others are better")


def _check_budget(noise: Noise, given: dict[str, Any]) -> None:
    budget, replaced = Budget(**given), Budget(**given, neighbours="replace")
    if not noise.honours(budget):
        try:
            noise.cost(budget)
        except PrivacyError:
            return
        raise AssertionError(f"honours: says no to {budget!r}, which has a cost")
    cost = noise.cost(budget)
    require(noise.cost(replaced).value * 2**noise.norm == cost.value, "cost: replacing moves twice as far")
    require_close(noise.error_scale(budget), float(cost.value) ** (2.0 / noise.norm), "error_scale")
    for own, spent in ((budget, cost), (replaced, noise.cost(replaced))):
        promised = noise.promise(spent, own, _DELTA)
        if budget.kind == "rho" and budget.rho is not None:
            require(promised.rho <= budget.rho * (1 + _ROUNDING), "promise: more rho than the budget")
        if budget.kind == "mu":
            require(promised.mu <= budget.mu * (1 + _ROUNDING), "promise: more mu than the budget")
        if budget.epsilon is not None:
            pure, limit = promised.pure_epsilon, budget.epsilon * (1 + _ROUNDING)
            require(promised.delta is not None, "promise: no delta for a budget in epsilon")
            within = pure is not None and pure <= limit
            if budget.delta is not None and promised.delta is not None:
                within = within or promised.delta <= budget.delta * (1 + _ROUNDING)
            require(within, "promise: more epsilon and delta than the budget")


def _check_distribution(noise: Noise) -> None:
    require_close(_tail(noise, Fraction(0)), 0.5, "upper_tail: not symmetric")
    points = [Fraction(k, 8) for k in range(1, 65)]
    tails = [_tail(noise, point) for point in points]
    require(all(one > other > 0 for one, other in pairwise(tails)), "upper_tail: no tail")
    for point, tail in zip(points, tails, strict=True):
        guess = noise.distribution.guess(math.log(tail))
        require(abs(guess - float(point)) < 0.01 * (1 + float(point)), "guess: far from the point")
    found = scipy.integrate.quad(lambda a: 4.0 * a * _tail(noise, Fraction(a)), 0.0, 100.0, limit=200)[0]
    require_close(found, noise.variance_factor, "variance_factor: not the distribution's", 1e-6)
    budget = Budget(epsilon=1)
    if noise.honours(budget):
        # shifted by 1 / cost, no tail may shrink by more than e^epsilon
        shift = 1 / noise.allowed(budget)
        for point in points:
            shrunk = _tail(noise, point + shift) / _tail(noise, point)
            require(shrunk >= math.exp(-1.0) * (1 - 1e-12), "allowed: tails shrink faster than e^epsilon")


def _check_samples(noise: Noise, samples: np.ndarray) -> None:
    edges = range(-256, 257, 16)
    tails = [1.0, *(_tail(noise, (k + Fraction(1, 2)) / 64) for k in edges), 0.0]
    expected = -np.diff(tails) * len(samples)
    observed = np.bincount(np.searchsorted(edges, samples, side="left"), minlength=len(expected))
    statistic = float(((observed - expected) ** 2 / expected).sum())
    chance = float(stats.chi2.sf(statistic, len(expected) - 1))
    require(chance > _FALSE_ALARM, "draw_rounded: not of the distribution")


def _check_quantiles(noise: Noise, samples: np.ndarray) -> None:
    deviation = math.sqrt(noise.variance_factor)
    for confidence in (0.8, 0.95, 0.99):
        largest = noise.largest_quantile(confidence)
        single = _tail(noise, Fraction(largest * deviation))
        require(2 * single <= (1 - confidence) * (1 + 1e-6), "largest_quantile: too small for one variable")
        for terms in (1, 2, 8):
            combined = samples[: len(samples) // terms * terms].reshape(-1, terms).sum(axis=1)
            combined = np.abs(combined / (deviation * math.sqrt(terms)))
            slack = 6.5 * math.sqrt(confidence * (1 - confidence) / len(combined))
            exact = noise.combination_quantiles(np.full((1, terms), 1.0 / terms), confidence)
            quantile = largest if exact is None else float(exact[0])
            covered = float((combined <= quantile).mean())
            require(quantile <= largest * (1 + 1e-4), "combination_quantiles: above the largest")
            require(covered >= confidence - slack, f"quantiles: too small for {terms} terms")
            if noise.stable or exact is not None:
                require(covered <= confidence + slack + 0.01, f"quantiles: too large for {terms} terms")
