"""What every kind of plan must do: answers without bias, whose variances and costs are those of matrices."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import UnsupportedQueryError
from matrixdp.plan import Plan
from matrixdp.queries import Group, Identity, ProductGroup, Workload
from matrixdp.testing.agreement import probes, require, require_close
from matrixdp.testing.dense import dense_measurement, dense_queries

__all__ = ["check_plan"]

Array = NDArray[np.float64]

_RECORDS = 2**33


def check_plan(plan: Plan, workload: Workload) -> None:
    """Check that a plan answers a workload as it says.

    What it measures, and the linear map from its measurements to its answers, are written out as matrices:
    the answers must be unbiased, and their covariances and the privacy cost must be those of the matrices.

    Parameters
    ----------
    plan : Plan
        The plan, on a domain of at most some thousand cells.
    workload : Workload
        On the same domain; the plan must determine it.

    Raises
    ------
    AssertionError
        Names what does not hold.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"age": 8, "sex": ["f", "m"]}), mdp.kway([1, 2], "range"))
    >>> check_plan(mdp.select(workload).selection.plan, workload)
    """
    require(plan.domain == workload.domain, "the workload is over another domain")
    measured = [dense_measurement(part, plan.domain) for part in plan.parts]
    _check_parts(plan, measured)
    groups = list(workload)
    for group in groups:
        plan.analysis.check_support(group)
    if _is_answered(plan, cells := _all_cells(workload)):
        groups.append(cells)
    linear = _estimator(plan, groups)
    queries = np.vstack([dense_queries(group, plan.domain) for group in groups])
    require_close(linear @ np.vstack(measured), queries, "answers are biased", 1e-8)
    pairs = zip(measured, plan.parts, strict=True)
    variances = np.concatenate([np.full(len(rows), part.variance) for rows, part in pairs])
    _check_errors(plan, groups, (linear * variances) @ linear.T)


def _check_parts(plan: Plan, measured: list[Array]) -> None:
    """Compare sensitivities, costs and exact answers with the measured rows."""
    noise = plan.noise
    counts = np.floor(500.0 * (1.0 + probes(*plan.domain.shape))).astype(np.int64)
    for part, rows in zip(plan.parts, measured, strict=True):
        label, whole = f"the part on {part.attributes}", np.rint(rows).astype(np.int64)
        sizes = np.abs(whole)
        if len(whole) * int(sizes.max()) ** noise.norm >= 2**63:
            sizes = sizes.astype(object)  # integers of any width
        exact = int((sizes**noise.norm).sum(axis=0).max())
        require(noise.power_sum(part) == exact, f"{label}: its sensitivity is not that of its rows")
        others = tuple(axis for axis, name in enumerate(plan.domain.names) if name not in part.attributes)
        answers = part.answers(np.asarray(counts.sum(axis=others)), _RECORDS).values()
        expected = (whole @ counts.ravel()).tolist()
        require(answers == expected, f"{label}: its answers are not those of its rows")
    scales = [math.sqrt(part.variance / noise.variance_factor) for part in plan.parts]
    scaled = np.vstack([rows / scale for rows, scale in zip(measured, scales, strict=True)])
    dense = float(noise.column_norms(scaled).max()) ** 2
    require(dense <= plan.cost * (1 + 1e-9), f"cost: {plan.cost:.9g}; that of the rows is {dense:.9g}")
    require(plan.cost <= 1 + 1e-6, f"cost: {plan.cost:.9g}; expected at most 1")
    cost = plan.replacement_cost
    between = max(noise.column_norms(scaled - column[:, None]).max() for column in scaled.T) ** 2
    require(
        max(dense, between) <= cost * (1 + 1e-9), f"replacement_cost: {cost:.9g}; less than that of the rows"
    )
    require(
        cost <= 4 * plan.cost * (1 + 1e-9), f"replacement_cost: {cost:.9g}; more than that of two records"
    )


def _all_cells(workload: Workload) -> Group:
    """Return every cell of the attributes that are asked about."""
    names = workload.domain.sort({name for group in workload for name in group.attributes})
    sizes = tuple(workload.domain[name].size for name in names)
    return ProductGroup("every cell", names, tuple(Identity() for _ in names), sizes)


def _is_answered(plan: Plan, group: Group) -> bool:
    """Return whether a group is answered; every way to ask must agree."""
    blank = plan.analysis.estimates([np.zeros(math.prod(part.shape)) for part in plan.parts])
    ways = (plan.analysis.check_support, plan.analysis.variances, plan.analysis.group, blank.answers)
    refused = 0
    for ask in ways:
        try:
            ask(group)
        except UnsupportedQueryError:
            refused += 1
    require(refused in (0, len(ways)), "a query is answered in one way and refused in another")
    return refused == 0


def _estimator(plan: Plan, groups: list[Group]) -> Array:
    """Return the matrix from measurements to answers, shape (queries, measurements)."""
    counts = [math.prod(part.shape) for part in plan.parts]
    columns = []
    for unit in np.eye(sum(counts)):
        estimates = plan.analysis.estimates(np.split(unit, np.cumsum(counts)[:-1]))
        columns.append(np.concatenate([estimates.answers(group) for group in groups]))
    return np.array(columns).T


def _check_errors(plan: Plan, groups: list[Group], covariance: Array) -> None:
    """Compare variances, covariances and sums of them with the covariance matrix of all answers."""
    analysis, again = plan.analysis, plan.analysed([4.0 * part.variance for part in plan.parts])
    starts = np.cumsum([0, *(group.queries for group in groups)])
    for start, group in zip(starts, groups, strict=False):
        own, name = np.diagonal(covariance)[start : start + group.queries], group.name
        found = analysis.variances(group)
        require_close(found, own, f"{name}: variances", 1e-7)
        require_close(again.variances(group), 4.0 * own, f"{name}: variances at four times the noise", 1e-7)
        weights = 1.0 if group.query_weights is None else group.query_weights
        sums = [own.sum(), group.weight * (own * weights).sum(), own.max()]
        error = analysis.group(group)
        require_close([error.total, error.weighted, error.largest], sums, f"{name}: sums of variances", 1e-7)
        terms = analysis.noise_terms(group, 1 << 24)
        if terms is not None:
            require_close(terms.sum(axis=1), own, f"{name}: noise_terms do not sum to variances", 1e-7)
    for left, right in {(0, 0), (0, len(groups) - 1), (len(groups) // 2, len(groups) - 1)}:
        i, j = groups[left].queries - 1, groups[right].queries // 2
        place = covariance[starts[left] + i, starts[right] + j]
        found_pair = analysis.covariance(groups[left], i, groups[right], j)
        scale = float(np.abs(covariance).max())
        names = f"{groups[left].name} and {groups[right].name}"
        require_close(found_pair / scale, place / scale, f"covariance of {names}", 1e-7)
        block = covariance[starts[left] : starts[left + 1], starts[right] : starts[right + 1]]
        found = analysis.covariances(groups[left], groups[right])
        require_close(found / scale, block / scale, f"covariances of {names}", 1e-7)
        if left == right:
            found = analysis.covariances(groups[left], groups[right], paired=True)
            require_close(found, np.diagonal(block), f"covariances of {names}, in pairs", 1e-7)
