"""The second of two rounds: the noise with which most cells can be published, planned from noisy answers.

The first round measures every part with half of the privacy cost. A cell can be published where its standard
error is below a third of its count. Which weights of the groups lead to most such cells depends on how many
cells there are of each size, and that is estimated from the noisy answers: it costs no privacy. Both rounds
measure the same rows, so that least squares adds their precisions up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, final

import numpy as np

from matrixdp.errors import SpecificationError, TooLargeError
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import one_blas_thread
from matrixdp.noise import GAUSSIAN
from matrixdp.plans import Estimates, Plan, Split
from matrixdp.queries import Workload

if TYPE_CHECKING:
    from scipy.sparse import csr_array


#: A cell can be published where its count is this many standard errors.
CV = 3.0
#: All answers to a group are looked at, and the counts of all marginals are held between the rounds.
_MOST_QUERIES, _MOST_ROWS = 20_000_000, 100_000_000
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
#: A plan replaces another only where it is better by more than rounding, alike on every processor.
_BETTER = 1.0 + 1e-9
_NONE = np.zeros(0)
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
    if plan.persons is not None:  # what a person costs in both is no sum of their costs for single records
        expected = "1, or a unit without per"
        raise SpecificationError.at(("rounds",), f"2 with {plan.persons!r}", expected, code="not-supported")
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
    rows = sum(part.rows for part in plan.parts)
    if rows > _MOST_ROWS:
        found = f"2 with {rows:,} rows to measure"
        raise TooLargeError.at(("rounds",), found, f"at most {_MOST_ROWS:,}, or 1")
    for group in workload:
        if group.queries > _MOST_QUERIES:
            found = f"2 with {group.queries:,} queries in {group.name}"
            raise TooLargeError.at(("rounds",), found, f"at most {_MOST_QUERIES:,} in a group, or 1")


@final
@dataclass(frozen=True, eq=False)
class SecondRound:
    """Plans the second round from the noisy answers to the first; made before anything is measured.

    Attributes
    ----------
    plan : Split
        What the first round measures.
    workload : Workload
        Its counts are to be published.
    costs : ndarray, shape (parts,)
        What a unit of precision of each part costs.
    shares : csr_array, shape (groups, parts)
        What a unit of variance of a part adds to the mean variance of the queries of a group.
    queries : ndarray, shape (groups,)
        Numbers of queries times the weights of the groups, relative to the largest.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 40}), mdp.marginals([1]))
    >>> first = mdp.select(workload, rounds=2).selection.plan
    >>> values = [np.full(part.rows, 2.0) for part in first.parts]
    >>> noise = [part.variance for part in first.parts]
    >>> second = SecondRound.of(first, workload)(noise, first.analysed(noise).estimates(values))
    >>> round(second.cost, 9)
    1.0
    """

    plan: Split
    workload: Workload
    costs: Array
    shares: csr_array
    queries: Array

    @classmethod
    def of(cls, plan: Split, workload: Workload) -> Self:
        """Prepare the second round of a plan for a workload.

        Parameters
        ----------
        plan : Split
            What the first round measures.
        workload : Workload
            Its counts are to be published.
        """
        from scipy.sparse import csr_array  # takes long to load

        analysis = plan.analysed([1.0] * len(plan.parts))
        found = [analysis.by_part(group) for group in workload]
        ends = np.cumsum([0, *map(len, found)])
        means = [
            total / max(group.queries, 1)
            for group, own in zip(workload, found, strict=True)
            for total in own.values()
        ]
        places = [place for own in found for place in own]
        shares = csr_array((means, places, ends), shape=(len(found), len(plan.parts)))
        costs = np.array([plan.noise.share(part, 1.0) for part in plan.parts])
        queries = np.array([group.queries * group.weight for group in workload])
        return cls(plan, workload, costs, shares, queries / queries.max())

    def __call__(self, noise: Sequence[float], estimates: Estimates) -> Split:
        """Plan the second round, at privacy cost 1.

        Parameters
        ----------
        noise : sequence of float
            The noise variances of the first round.
        estimates : Estimates
            What followed from its answers.

        Returns
        -------
        Split
            The parts that are measured again, their variances chosen such that after both rounds, of equal
            cost, most cells have standard errors below a third of their counts.
        """
        plan, begun = self.plan, 1.0 / np.asarray(noise)
        # a number that overflows or is none loses a comparison below; nothing may fail once noise is drawn
        with one_blas_thread(), np.errstate(all="ignore"):
            errors = self.errors(begun)
            counts = [
                _counts(estimates.answers(group), float(error)) if error > 0.0 else (_NONE, _NONE)
                for group, error in zip(self.workload, errors, strict=True)
            ]
            again = self.best(counts, begun) - begun
        parts = [
            replace(part, variance=1.0 / float(own))
            for part, own, known in zip(plan.parts, again, begun, strict=True)
            if own > _LEAST * known
        ]
        share = sum(plan.noise.share(part, part.variance) for part in parts)
        parts = [replace(part, variance=part.variance * share) for part in parts]
        return Split(plan.domain, tuple(parts), plan.noise, plan.weights)

    def errors(self, precisions: Array) -> Array:
        """Return the root of the mean variance of each group."""
        return np.asarray(np.sqrt(self.shares @ (1.0 / precisions)))

    def optimum(self, weights: Array, begun: Array) -> Array:
        """Return the precisions of least weighted variance after both rounds, none below the first's."""
        asked = self.shares.T @ weights
        total, free = 2.0 * float(self.costs @ begun), np.ones(len(begun), dtype=bool)
        while True:
            left = total - float((self.costs * begun)[~free].sum())
            wanted = np.sqrt(asked / self.costs) * left / float(np.sqrt(self.costs * asked)[free].sum())
            low = free & (wanted < begun)
            if not low.any():
                return np.where(free, wanted, begun)
            free &= ~low

    def best(self, counts: Sequence[tuple[Array, Array]], begun: Array) -> Array:
        """Return precisions with which many cells can be published: the best of a few local searches.

        Parameters
        ----------
        counts : sequence of (ndarray, ndarray)
            For each group some counts, and how many cells have each.
        begun : ndarray, shape (parts,)
            The precisions of the first round; the second costs as much.
        """
        ends = float(_EDGES[0]), float(_EDGES[-1])
        held = np.zeros((len(counts), len(_EDGES) - 1))
        for row, queries, (sizes, cells) in zip(held, self.queries, counts, strict=True):
            logs = np.clip(np.log(np.maximum(sizes, 0.1) / CV), *ends)
            row += np.histogram(logs, _EDGES, weights=cells * (sizes > 0.5))[0]
            row *= queries / max(float(cells.sum()), 1.0)
        middles = (_EDGES[1:] + _EDGES[:-1]) / 2
        # how many cells of a group lie above the middle of each bin
        above = held.sum(axis=1, keepdims=True) - np.cumsum(held, axis=1) + held / 2
        best, most = 2.0 * begun, 0.0
        for power in _POWERS:
            weights = self.queries ** (1.0 + power)
            found = self.optimum(weights, begun)
            for width in np.repeat(_WIDTHS, _STEPS_AT_WIDTH):
                limits = np.log(self.errors(found))
                reached = sum(
                    float(np.interp(limit, middles, own)) for limit, own in zip(limits, above, strict=True)
                )
                if reached > most * _BETTER:
                    best, most = found, reached
                step = 1.0 / (1.0 + np.exp(np.clip((limits[:, None] - middles) / width, -500.0, 500.0)))
                slope = (held * step * (1.0 - step)).sum(axis=1) / np.exp(2.0 * limits)
                slope = slope / max(slope.max(), _TINY) + _FLOOR
                weights = np.sqrt((weights / weights.max() + _FLOOR) * slope)
                found = self.optimum(weights, begun)
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
