"""The second of two rounds: the noise with which most cells can be published, planned from noisy answers.

The first round measures every part with half of the privacy cost. A cell can be published where its standard
error is below a third of its count. Which weights of the groups lead to most such cells depends on how many
cells there are of each size, and that is estimated from the noisy answers: it costs no privacy. Both rounds
measure the same rows, so that least squares adds their precisions up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import SpecificationError, TooLargeError
from matrixdp.exact.resources import one_blas_thread
from matrixdp.noise import GAUSSIAN
from matrixdp.plan import Estimates, Plan, Split
from matrixdp.queries import Workload

__all__ = ["check_rounds", "second_round"]

Array = NDArray[np.float64]

#: A cell can be published where its count is this many standard errors.
CV = 3.0
#: All answers to a group are looked at.
_MOST_QUERIES = 20_000_000
#: A part is measured again where that adds this share of its precision at least.
_LEAST = 1e-6
#: Cells of a group that are looked at: its quantiles where it has more; points of the grid of counts.
_CELLS, _POINTS, _STEPS = 2_000, 60, 60
#: A sigmoid of log counts stands for the share of cells, ever steeper; steps at each width.
_WIDTHS, _STEPS_AT_WIDTH = (2.0, 1.5, 1.0, 0.7, 0.5, 0.35, 0.25), 15
#: Logarithms of counts over `CV`, in the bins of which cells are counted.
_EDGES = np.linspace(-2.0, 20.0, 221)
#: Relative weights do not fall below this; what is no divisor otherwise.
_FLOOR, _TINY = 1e-12, 1e-300
#: The search starts from groups weighted by these powers of their queries.
_POWERS = (-1.0, 0.0, 1.0)


def check_rounds(plan: Plan, workload: Workload, noise_reason: str = "") -> None:
    """Reject a plan, or a workload, that cannot be measured in rounds.

    Parameters
    ----------
    plan : Plan
        What is measured first.
    workload : Workload
        Its counts are to be published.
    noise_reason : str
        Why the plan has its noise.

    Raises
    ------
    SpecificationError
        If the plan does not measure several marginals, one part on each, with Gaussian noise.
    TooLargeError
        If the answers to a group are too many to look at.
    """
    if plan.noise is not GAUSSIAN:
        # averaging halves the variance, and half of epsilon makes it larger by more than that
        found = f"2 with {plan.noise} noise" + (f" ({noise_reason})" if noise_reason else "")
        expected = "1, or Gaussian noise: `noise` gaussian, which needs a delta, rho or mu in the budget"
        raise SpecificationError.at(("rounds",), found, expected, code="conflict")
    if not isinstance(plan, Split) or len(plan.parts) < 2:
        measured = "one marginal" if isinstance(plan, Split) else plan.words
        found = f"2 with a strategy that measures {measured}"
        expected = "one part for each of several marginals, as residual, querysmasher and fourier have; or 1"
        raise SpecificationError.at(("rounds",), found, expected, code="not-supported")
    for group in workload:
        if group.queries > _MOST_QUERIES:
            found = f"2 with {group.queries:,} queries in {group.name}"
            raise TooLargeError.at(("rounds",), found, f"at most {_MOST_QUERIES:,} in a group, or 1")


def second_round(plan: Split, noise: Sequence[float], estimates: Estimates, workload: Workload) -> Split:
    """Return what to measure in the second round, at privacy cost 1.

    Parameters
    ----------
    plan : Split
        What the first round measured.
    noise : sequence of float
        The noise variances of its parts.
    estimates : Estimates
        What followed from them.
    workload : Workload
        Its counts are to be published.

    Returns
    -------
    Split
        The parts that are measured again, their variances chosen such that after both rounds, of equal cost,
        most cells have standard errors below a third of their counts.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 40}), mdp.marginals([1]))
    >>> first = mdp.select(workload, mechanism="residual").selection.plan
    >>> values = [np.full(part.rows, 2.0) for part in first.parts]
    >>> noise = [part.variance for part in first.parts]
    >>> found = second_round(first, noise, first.analysed(noise).estimates(values), workload)
    >>> round(found.cost, 9)
    1.0
    """
    with one_blas_thread():
        problem = _Problem.of(plan, noise, workload)
        errors = problem.errors(problem.begun)
        counts = [
            _counts(estimates.answers(group), float(error))
            for group, error in zip(workload, errors, strict=True)
        ]
        again = problem.best(counts) - problem.begun
    parts = [
        replace(part, variance=1.0 / float(own))
        for part, own, known in zip(plan.parts, again, problem.begun, strict=True)
        if own > _LEAST * known
    ]
    share = sum(plan.noise.share(part, part.variance) for part in parts)
    parts = [replace(part, variance=part.variance * share) for part in parts]
    return Split(plan.domain, tuple(parts), plan.noise, plan.weights)


@final
@dataclass(frozen=True, eq=False)
class _Problem:
    """How the errors of groups follow from the precisions of parts, and what precision costs.

    Attributes
    ----------
    costs : ndarray, shape (parts,)
        Of a unit of precision.
    shares : ndarray, shape (groups, parts)
        What a unit of variance of a part adds to the mean variance of the queries of a group.
    queries : ndarray, shape (groups,)
        Their numbers, times the weights of the groups.
    begun : ndarray, shape (parts,)
        The precisions of the first round; the second costs as much.
    """

    costs: Array
    shares: Array
    queries: Array
    begun: Array

    @classmethod
    def of(cls, plan: Split, noise: Sequence[float], workload: Workload) -> _Problem:
        analysis = plan.analysed(np.ones(len(noise)).tolist())
        shares = np.zeros((len(workload), len(plan.parts)))
        for place, group in enumerate(workload):
            for part, total in analysis.by_part(group).items():
                shares[place, part] = total / group.queries
        costs = np.array([plan.noise.share(part, 1.0) for part in plan.parts])
        queries = np.array([group.queries * group.weight for group in workload])
        return cls(costs, shares, queries, 1.0 / np.asarray(noise))

    def errors(self, precisions: Array) -> Array:
        """Return the root of the mean variance of each group."""
        return np.asarray(np.sqrt(self.shares @ (1.0 / precisions)))

    def optimum(self, weights: Array) -> Array:
        """Return the precisions of least weighted variance after both rounds, none below the first's."""
        asked, begun = self.shares.T @ weights, self.begun
        total, free = 2.0 * float(self.costs @ begun), np.ones(len(begun), dtype=bool)
        while True:
            left = total - float((self.costs * begun)[~free].sum())
            wanted = np.sqrt(asked / self.costs) * left / float(np.sqrt(self.costs * asked)[free].sum())
            low = free & (wanted < begun)
            if not low.any():
                return np.where(free, wanted, begun)
            free &= ~low

    def best(self, counts: Sequence[tuple[Array, Array]]) -> Array:
        """Return precisions with which many cells can be published: the best of a few local searches.

        Parameters
        ----------
        counts : sequence of (ndarray, ndarray)
            For each group some counts, and how many cells have each.
        """
        logs = [np.log(np.maximum(own, 0.1) / CV) for own, _ in counts]
        ends = float(_EDGES[0]), float(_EDGES[-1])
        held = np.array(
            [
                np.histogram(np.clip(own, *ends), _EDGES, weights=cells * (size > 0.5))[0]
                for own, (size, cells) in zip(logs, counts, strict=True)
            ]
        )
        held *= (self.queries / np.maximum([cells.sum() for _, cells in counts], 1.0))[:, None]
        middles = (_EDGES[1:] + _EDGES[:-1]) / 2
        # how many cells of a group lie above the middle of each bin
        above = held.sum(axis=1, keepdims=True) - np.cumsum(held, axis=1) + held / 2
        best, most = 2.0 * self.begun, -math.inf
        for power in _POWERS:
            weights = self.queries ** (1.0 + power)
            found = self.optimum(weights)
            for width in np.repeat(_WIDTHS, _STEPS_AT_WIDTH):
                limits = np.log(self.errors(found))
                reached = sum(
                    float(np.interp(limit, middles, own)) for limit, own in zip(limits, above, strict=True)
                )
                if reached > most:
                    best, most = found, reached
                step = 1.0 / (1.0 + np.exp(np.clip((limits[:, None] - middles) / width, -500.0, 500.0)))
                slope = (held * step * (1.0 - step)).sum(axis=1) / np.exp(2.0 * limits)
                slope = slope / max(slope.max(), _TINY) + _FLOOR
                weights = np.sqrt((weights / weights.max() + _FLOOR) * slope)
                found = self.optimum(weights)
        return best


def _counts(noisy: Array, error: float) -> tuple[Array, Array]:
    """Return counts that explain noisy ones, and how many cells have each: maximum likelihood, by EM.

    The noise has one standard deviation; a count that is large beside it is known well enough.
    """
    seen = noisy if noisy.size <= _CELLS else np.quantile(noisy, (np.arange(_CELLS) + 0.5) / _CELLS)
    low, high = max(error / 3.0, 0.5), 1.05 * max(float(noisy.max()), error) + 1.0
    grid = np.concatenate([[0.0], np.geomspace(low, high, _POINTS)])
    powers = -0.5 * ((seen[:, None] - grid) / np.maximum(error, 0.1 * grid)) ** 2
    likelihood = np.exp(powers - powers.max(axis=1, keepdims=True))
    shares = np.full(len(grid), 1.0 / len(grid))
    for _ in range(_STEPS):
        posterior = likelihood * shares
        shares = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    return grid, shares * noisy.size
