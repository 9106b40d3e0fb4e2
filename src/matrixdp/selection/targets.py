"""Target errors: a largest standard error for every query of some groups, and what meeting them takes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from matrixdp.noise import Noise
from matrixdp.plans import Analysis
from matrixdp.privacy import Budget, LeastBudget
from matrixdp.queries import Workload
from matrixdp.queries.workload import group_targets, largest_value
from matrixdp.selection.problem.gather_groups import GivenGroups

#: Groups without one may have standard errors this many times the largest.
OTHER_GROUPS = 10.0


@dataclass(frozen=True)
class TargetError:
    """A target and what a strategy has.

    Attributes
    ----------
    group : str
    target : float or None
        The largest standard error that is allowed; None for a group without a target.
    stddev : float
        The largest standard error of a query at privacy cost 1.
    """

    group: str
    target: float | None
    stddev: float


def targeted(workload: Workload, targets: Mapping[str, float]) -> Workload:
    """Return the workload with groups weighted such that the largest weight x variance is what matters.

    A group with target t has weight 1 / t^2, so that all targets are met at privacy cost 1 if the largest
    weighted variance is at most 1. Other groups count as if their target were `OTHER_GROUPS` times the
    largest, and sums of values are compared in their largest value. Weights of the workload itself have no
    influence.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": 2, "age": 5}), mdp.marginals(1))
    >>> [group.weight for group in targeted(workload, {"age": 2.0})]
    [0.0025, 0.25]
    """
    found = group_targets(workload, targets)
    units = [largest_value(group) or 1.0 for group in workload]
    largest = max((target or 0.0) / unit for target, unit in zip(found, units, strict=True))
    groups = [
        replace(group, weight=(target or OTHER_GROUPS * largest * unit) ** -2.0, query_weights=None)
        for group, target, unit in zip(workload, found, units, strict=True)
    ]
    return Workload(workload.domain, GivenGroups(tuple(groups)))


def check_targets(workload: Workload, targets: Mapping[str, float], analysis: Analysis) -> list[TargetError]:
    """Compare the errors of a strategy with each target, at privacy cost 1."""
    return [
        TargetError(group.name, target, math.sqrt(analysis.group(group).largest))
        for group, target in zip(workload, group_targets(workload, targets), strict=True)
    ]


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
