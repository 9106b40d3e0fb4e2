"""Target errors: a largest standard error for every query of some groups, and what meeting them takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from matrixdp.noise import Noise
from matrixdp.plans import Analysis
from matrixdp.privacy import Budget, LeastBudget
from matrixdp.queries import Group, Workload
from matrixdp.queries.workload import Precision, Targets, figure_targets, group_targets, largest_value
from matrixdp.selection.problem.gather_groups import GivenGroups
from matrixdp.selection.selection import Certificate

#: Groups without one may have standard errors this many times the largest.
OTHER_GROUPS = 10.0


@dataclass(frozen=True)
class TargetError:
    """A target and what a strategy has.

    Attributes
    ----------
    group : str
        Or the name of a statistic.
    target : float or None
        The largest standard error that is allowed; None for a group without a target. Of figures of at least
        so many records, their largest standard error or coefficient of variation.
    stddev : float
        The largest of a query or figure at privacy cost 1.
    """

    group: str
    target: float | None
    stddev: float


def targeted(workload: Workload, targets: Targets) -> Workload:
    """Return the workload with groups weighted such that the largest weight x variance is what matters.

    A group with target t has weight 1 / t^2, so that all targets are met at privacy cost 1 if the largest
    weighted variance is at most 1. Targets of figures add groups that must meet theirs for them. Other groups
    count as if their target were `OTHER_GROUPS` times the largest, and sums of values are compared in their
    largest value. Weights of the workload itself have no influence.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "age": 5}), mdp.marginals(1))
    >>> [group.weight for group in targeted(workload, {"age": 2.0})]
    [0.0025, 0.25]
    """
    asked: list[tuple[Group, float | None]] = [
        *zip(workload, group_targets(workload, targets), strict=True),
        *(pair for _, own in figure_targets(workload, targets).values() for pair in own.planned),
    ]
    units = [largest_value(group) or 1.0 for group, _ in asked]
    largest = max((target or 0.0) / unit for (_, target), unit in zip(asked, units, strict=True))
    groups = [
        replace(group, weight=(target or OTHER_GROUPS * largest * unit) ** -2.0, query_weights=None)
        for (group, target), unit in zip(asked, units, strict=True)
    ]
    return Workload(workload.domain, GivenGroups(tuple(groups)))


def check_targets(workload: Workload, targets: Targets, analysis: Analysis) -> list[TargetError]:
    """Compare the errors of a strategy with each target, at privacy cost 1: of groups, then of figures."""
    errors = [
        TargetError(group.name, target, math.sqrt(analysis.group(group).largest))
        for group, target in zip(workload, group_targets(workload, targets), strict=True)
    ]
    for name, (target, own) in figure_targets(workload, targets).items():
        errors.append(TargetError(name, target.most, target.most * _ratio(own, analysis)))
    return errors


def of_figures(
    certificate: Certificate, workload: Workload, targets: Targets | None, analysis: Analysis
) -> Certificate:
    """Return a certificate about `targeted` groups with what it says of figures with targets."""
    own = [precision for _, precision in figure_targets(workload, targets).values()] if targets else []
    if not own:
        return certificate
    certificate = certificate.scaled(max(precision.slack for precision in own) ** -2.0)
    found = largest_ratio(check_targets(workload, targets or {}, analysis))
    return replace(certificate, loss=max(certificate.loss, found**2))


def _ratio(own: Precision, analysis: Analysis) -> float:
    """Return the largest ratio of the standard error of X - r N to its limit.

    Where the estimate of a difference is not the difference of estimates, errors are added.
    """
    left, right = analysis.variances(own.left), analysis.variances(own.right)
    if analysis.additive:
        paired = own.left.queries == own.right.queries
        both = analysis.covariances(own.left, own.right, paired=paired)
        both = both if paired else both[:, 0]
    squares = []
    for ratio, limit in own.limits:
        cross = -ratio * both if analysis.additive else abs(ratio) * np.sqrt(left * right)
        squares.append(float((left + 2.0 * cross + ratio**2 * right).max()) / limit**2)
    return math.sqrt(max(squares))


def largest_ratio(errors: Sequence[TargetError]) -> float:
    """Return the largest ratio of a standard error to its target: targets are met where it is at most 1.

    Examples
    --------
    >>> largest_ratio([TargetError("age", 2.0, 3.0), TargetError("sex", None, 9.0)])
    1.5
    """
    return max(error.stddev / error.target for error in errors if error.target is not None)


def least_budget(errors: Sequence[TargetError], noise: Noise, form: LeastBudget) -> Budget:
    """Return the least budget of a form at which errors at privacy cost 1 meet their targets.

    Examples
    --------
    >>> from matrixdp.noise import GAUSSIAN
    >>> least_budget([TargetError("age", 2.0, 3.0)], GAUSSIAN, LeastBudget("mu"))
    Budget(mu=1.5, neighbours='add_remove')
    """
    return form.least(noise.error_scale, largest_ratio(errors) ** 2)
