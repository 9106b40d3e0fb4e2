"""Which measured marginals hold which asked residuals, sparse: the marginals algebra without 2^d arrays."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

__all__ = ["Incidence", "Subset", "WeightProblem", "incidence_of", "problem_of", "weight_problem"]

Array = NDArray[np.float64]
#: Places of attributes, ascending.
Subset = tuple[int, ...]

#: Pairs of a marginal and a residual in it, up to which larger marginals than asked ones may be measured.
MAX_PAIRS = 2_000_000
#: The same for those of two attributes and more beyond the asked ones.
_MORE_PAIRS = 400_000
#: How much dearer than its residuals apart a larger marginal may seem; the convex search takes more of them.
_SLACK = {2: 4.0, 3: 1.25}
#: Attributes up to which every marginal may be measured.
_FEW = 10


def _held(subset: Subset) -> Iterable[Subset]:
    for count in range(len(subset) + 1):
        yield from combinations(subset, count)


@dataclass(frozen=True, eq=False)
class Incidence:
    """Marginals that may be measured, and the asked residuals that each of them holds.

    Attributes
    ----------
    marginals : tuple of tuple of int
        S: places of attributes.
    residuals : tuple of tuple of int
        T, closed downwards: every subset of one is one.
    holds : sparse matrix, shape (marginals, residuals)
        1 where T is a subset of S.
    """

    marginals: tuple[Subset, ...]
    residuals: tuple[Subset, ...]
    holds: scipy.sparse.csr_array

    @cached_property
    def held(self) -> scipy.sparse.csr_array:
        """The transpose of ``holds``."""
        return self.holds.T.tocsr()

    @cached_property
    def place(self) -> dict[Subset, int]:
        """Where each marginal stands."""
        return {marginal: place for place, marginal in enumerate(self.marginals)}

    def products(self, factors: Sequence[float]) -> Array:
        """Return for every marginal the product of a factor for each of its attributes."""
        known = [float(factor) for factor in factors]
        return np.array([math.prod(known[axis] for axis in one) for one in self.marginals])


def incidence_of(marginals: Sequence[Subset], residuals: Sequence[Subset]) -> Incidence:
    """Return which marginals hold which residuals.

    Examples
    --------
    >>> incidence_of([(0,), (0, 1)], [(), (0,)]).holds.toarray().tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    place = {residual: number for number, residual in enumerate(residuals)}
    deepest = max(map(len, residuals), default=0)
    starts, columns = [0], array("i")
    for marginal in marginals:
        for count in range(min(deepest, len(marginal)) + 1):
            columns.extend(place[one] for one in combinations(marginal, count) if one in place)
        starts.append(len(columns))
    shape = (len(marginals), len(residuals))
    holds = scipy.sparse.csr_array(
        (np.ones(len(columns)), np.array(columns, np.int32), np.array(starts)), shape
    )
    return Incidence(tuple(marginals), tuple(residuals), holds)


@dataclass(frozen=True, eq=False)
class WeightProblem:
    """Choose u_S >= 0 for the least sum of delta_T / lambda_T.

    The precision of residual T is lambda_T = sum over S that hold T of kappa_S u_S.

    Attributes
    ----------
    incidence : Incidence
    weights : ndarray, shape (residuals,)
        delta_T: what is asked of each residual, relative to the residual's variance.
    scales : ndarray, shape (marginals,)
        kappa_S: the precision of every residual in marginal S if S is measured with precision 1. With
        identities, 1 / the cells of S.
    """

    incidence: Incidence
    weights: Array
    scales: Array

    @cached_property
    def asked(self) -> NDArray[np.bool_]:
        """The residuals of which something is asked."""
        return self.weights > 0

    def precisions(self, measured: Array) -> Array:
        """Return lambda_T."""
        return np.asarray(self.incidence.held @ (self.scales * measured))

    def loss(self, measured: Array) -> float:
        """Return sum delta_T / lambda_T; infinite where something that is asked is not held."""
        precisions = self.precisions(measured)[self.asked]
        if not (precisions > 0).all():
            return math.inf
        return float((self.weights[self.asked] / precisions).sum())

    def loss_and_slopes(self, measured: Array) -> tuple[float, Array]:
        """Return the loss and its derivatives by the u_S, each with its sign changed: all at least 0.

        References
        ----------
        McKenna et al., journal version, section 7 (Theorems 9 to 11).
        """
        precisions = self.precisions(measured)
        if not (precisions[self.asked] > 0).all():
            return math.inf, np.zeros_like(measured)
        ratios = np.divide(self.weights, precisions, out=np.zeros_like(precisions), where=self.asked)
        slopes = np.divide(ratios, precisions, out=np.zeros_like(precisions), where=self.asked)
        return float(ratios.sum()), self.scales * (self.incidence.holds @ slopes)

    def restricted(self, places: NDArray[np.intp]) -> WeightProblem:
        """Return the problem in which only some marginals may be measured."""
        own = self.incidence
        kept = Incidence(tuple(own.marginals[place] for place in places), own.residuals, own.holds[places])
        return WeightProblem(kept, self.weights, self.scales[places])


def problem_of(
    marginals: Sequence[Subset], residuals: Sequence[Subset], weights: Array, scales: Sequence[float]
) -> WeightProblem:
    """Return the choice of weights for given marginals."""
    incidence = incidence_of(marginals, residuals)
    return WeightProblem(incidence, weights, 1.0 / incidence.products(scales))


def weight_problem(
    residuals: Sequence[Subset],
    weights: Array,
    scales: Sequence[float],
    allowed: Callable[[Subset], bool],
    root: int,
) -> WeightProblem:
    """Return the choice of weights for the marginals that may be measured.

    Those are the asked residuals' own, and larger ones that are allowed: of few attributes all, of more
    attributes those that may cost less than all residuals in them on their own, level by level.

    Parameters
    ----------
    residuals : sequence of tuple of int
        Closed downwards.
    weights : ndarray
        delta_T.
    scales : sequence of float
        s_i: a marginal of S measured with precision 1 knows its residuals with 1 / the product of the s_i.
    allowed : callable
        Whether a marginal larger than the residuals may be measured.
    root : int
        What parts add up by: cube roots of losses for Laplace noise, square roots for Gaussian noise.

    Examples
    --------
    >>> problem = weight_problem([(), (0,)], np.ones(2), [2.0, 3.0], lambda one: len(one) < 2, 3)
    >>> problem.incidence.marginals
    ((), (0,), (1,))
    """
    axes = range(len(scales))
    known = set(residuals)
    offered: list[Subset] = []
    if len(scales) <= _FEW:
        offered = [one for one in _held(tuple(axes)) if one not in known and allowed(one)]
    else:
        last: Sequence[Subset] = residuals
        most = MAX_PAIRS
        while last:
            depth = max(map(len, last)) + 1
            wider = len(last) * len(scales) / depth * _count(depth, max(map(len, residuals)))
            if wider > most:
                break
            level = {tuple(sorted((*one, axis))) for one in last for axis in axes if axis not in one}
            fresh = sorted(one for one in level if one not in known and allowed(one))
            last = _promising(problem_of(fresh, residuals, weights, scales), scales, root)
            offered += last
            most = _MORE_PAIRS
    marginals = sorted(known | set(offered), key=lambda one: (len(one), one))
    return problem_of(marginals, residuals, weights, scales)


def _count(size: int, most: int) -> int:
    """Return the number of subsets of at most some elements."""
    return sum(math.comb(size, count) for count in range(most + 1))


def _promising(problem: WeightProblem, scales: Sequence[float], root: int) -> list[Subset]:
    """Return the marginals that may cost less than the residuals in them, each measured alone."""
    holds = problem.incidence.holds
    own = np.array([math.prod(1.0 / scales[axis] for axis in one) for one in problem.incidence.residuals])
    apart = holds @ (problem.weights / own) ** (1.0 / root)
    together = (holds @ problem.weights / problem.scales) ** (1.0 / root)
    kept = np.flatnonzero(together < _SLACK[root] * apart)
    return [problem.incidence.marginals[place] for place in kept]
