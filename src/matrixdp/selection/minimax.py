"""The least worst-case variance: reweighting around a mechanism that minimizes a weighted sum.

For any weights p of the queries, sum(p) max_q(v_q) >= sum p_q v_q: a lower bound on the weighted sum is
one on the largest variance. By minimax duality the best weights make both sides equal (for a convex class of
strategies); they are found by multiplicative steps, the weight of a query growing with its variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array, outer
from matrixdp.plans import Plan
from matrixdp.queries import DenseGroup, Group, Matrix, MatrixRows, Predicates, Workload
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.gather_groups import GivenGroups
from matrixdp.selection.registry import Progress, silent
from matrixdp.selection.selection import Certificate

Choice = tuple[Plan, Certificate]
Choose = Callable[[Workload], Choice]
BoundOf = Callable[[Workload], tuple[float, str] | None]

#: What a group weighs at least, as a share of the heaviest, lest solvers lose it; a factor of the whole group
#: above the other takes too much from the lower bound.
_TOLD_APART, _MOST_RAISED = 1e-13, 1e-3
#: Without a bound it stops where the last `_PATIENCE` reweightings together gained less than this share.
_PATIENCE = 12
_GAIN = 5e-3


@dataclass(eq=False)
class _Weights:
    """The weights of one group: of the group as a whole, and of each attribute's predicates."""

    group: Group
    whole: float
    axes: list[Array | None]

    @property
    def total(self) -> float:
        """The sum of the weights of all queries."""
        counts = [
            float(count if axis is None else axis.sum())
            for axis, count in zip(self.axes, _counts(self.group), strict=True)
        ]
        return self.whole * math.prod(counts)

    def weighted(self) -> Group:
        """Return the group with its queries scaled by the roots of their weights."""
        importance = self.group.weight * self.whole
        own = self.group.query_weights
        if isinstance(self.group, DenseGroup) and _summed(self.group):
            # products of weights leave a disjunction a difference of products
            pairs = zip(self.axes, _counts(self.group), strict=True)
            tensor = outer(np.ones(count) if axis is None else axis for axis, count in pairs)
            weights = self.group.arranged(tensor)
            weights = weights if own is None else weights * own
            return replace(self.group, weight=importance, query_weights=weights)
        if isinstance(self.group, DenseGroup):
            rows = self.group.rows()
            factor = np.ones(len(rows)) if self.axes[0] is None else self.axes[0]
            factor = factor if own is None else factor * own
            content = MatrixRows(rows * np.sqrt(factor)[:, None])
            return replace(self.group, content=content, weight=importance, query_weights=None)
        predicates: list[Predicates] = []
        for given, size, axis in zip(self.group.predicates, self.group.sizes, self.axes, strict=True):
            predicates.append(given if axis is None else Matrix(given.rows(size) * np.sqrt(axis)[:, None]))
        return replace(self.group, predicates=tuple(predicates), weight=importance)

    def update(self, variances: Array, largest: float, power: float) -> None:
        """Let weights grow with the variances, which come with the queries' own weights."""
        if isinstance(self.group, DenseGroup) and _summed(self.group):
            tensor = self.group.shaped(variances)
        else:
            tensor = variances.reshape(_counts(self.group))
        peak = float(tensor.max())
        self.whole *= (peak / largest) ** power
        for position, axis in enumerate(self.axes):
            if axis is None:
                continue
            others = tuple(i for i in range(tensor.ndim) if i != position)
            stepped = axis * (tensor.max(axis=others) / peak) ** power
            self.axes[position] = np.maximum(stepped / stepped.max(), LIMITS.least_share)


def _summed(group: DenseGroup) -> bool:
    """Return whether explicit queries are too many to be weighted one by one, and are a sum of products."""
    return bool(group.summands) and group.queries * math.prod(group.sizes) > LIMITS.written_entries


def _counts(group: Group) -> tuple[int, ...]:
    """Return the shape of a group's queries: of products by attributes, of explicit ones flat."""
    if isinstance(group, DenseGroup):
        return group.summands[0][1].counts if _summed(group) else (group.queries,)
    return group.counts


def _start(group: Group) -> _Weights:
    if isinstance(group, DenseGroup) and not _summed(group):
        return _Weights(group, 1.0, [np.ones(group.queries)])
    axes: list[Array | None] = []
    own = group.summands[-1][1] if isinstance(group, DenseGroup) else group
    for predicates, size in zip(own.predicates, group.sizes, strict=True):
        count = predicates.count(size)
        even = predicates.symmetric(size) is not None or count == 1
        axes.append(None if even or count * size > LIMITS.written_entries else np.ones(count))
    return _Weights(group, 1.0, axes)


def uniform_variance(variances: Array, group: Group) -> Array:
    """Return variances multiplied by the weights of their queries: what the objective ``max`` compares."""
    own = variances if group.query_weights is None else variances * group.query_weights
    return np.asarray(own * group.weight)


def select_minimax(
    workload: Workload,
    choose: Choose,
    *,
    iterations: int = 100,
    bound_of: BoundOf | None = None,
    progress: Progress = silent,
) -> Choice:
    """Select for the least largest (weighted) variance of a query.

    References
    ----------
    Xiao et al. 2023 (ResidualPlanner) has the objective; the reweighting is that of optimal experimental
    design (Silvey, Titterington and Torsney 1978).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> from matrixdp.selection.compose.whole_table import select_table
    >>> workload = mdp.Workload(mdp.Domain({"a": 8}), mdp.product(a="prefix"))
    >>> plan, certificate = select_minimax(workload, lambda w: select_table(w, GAUSSIAN))
    >>> certificate.gap < 1e-3
    True
    """
    weights = [_start(group) for group in workload]
    best: Choice | None = None
    least, bound, scope = math.inf, None, ""
    power = 1.0
    history: list[float] = []
    for step in range(iterations):
        asked = Workload(workload.domain, GivenGroups(tuple(item.weighted() for item in weights)))
        plan, certificate = choose(asked)
        analysis = plan.analysis
        found = [uniform_variance(analysis.variances(group), group) for group in workload]
        largest = max(float(values.max()) for values in found)
        if certificate.lower_bound is not None:
            total = math.fsum(item.total for item in weights)
            if bound is None or certificate.lower_bound / total > bound:
                bound, scope = certificate.lower_bound / total, certificate.scope
        if step == 0 and certificate.lower_bound is not None:
            # with a part of its own a query has a variance that falls with the root of its weight; where
            # strategies are only searched, such steps are too long
            power = 2.0
        last = asked, math.fsum(item.total for item in weights)
        if largest < least:
            least, best, at_best = largest, (plan, certificate), last
        elif power > 0.3:
            power *= 0.7
        progress(f"balancing variances (step {step + 1}, largest {math.sqrt(least):.6g})", None)
        history.append(least)
        if bound is not None and least <= bound * (1.0 + LIMITS.loose_gap):
            break
        stalled = len(history) > _PATIENCE and least > history[-1 - _PATIENCE] * (1.0 - _GAIN)
        if bound is None and stalled:
            break
        for item, values in zip(weights, found, strict=True):
            item.update(values, largest, power)
        peak = max(item.whole for item in weights)
        heaviest = max(item.group.weight * item.whole / peak for item in weights)
        for item in weights:
            told = min(_TOLD_APART * heaviest / item.group.weight, _MOST_RAISED)
            item.whole = max(item.whole / peak, LIMITS.least_share, told)
    if best is None:
        raise TooLargeError("objective max: no iteration was allowed")
    if bound is None and bound_of is not None:
        for weighted, total in (at_best, last):
            known = bound_of(weighted)
            if known is not None and (bound is None or known[0] / total > bound):
                bound, scope = known[0] / total, known[1]
    scope = scope or best[1].scope
    return best[0], Certificate(least, bound, f"{scope}; about the largest (weighted) variance")
