"""Strategies for series: rows that can be measured one period after another, with nothing lost by it.

The attribute of time is measured whole in every part, by a matrix B of its own, which is then replaced by the
lower triangular C with C'C = B'B. No matrix ties it to another attribute: a record whose other values change
between two periods costs no more than one that stays, for a little error where queries tie them. Under
Gaussian noise C costs and errs as B does. Its rows end at periods that never decrease, and they are
independent: row k can be measured when its last period is over, and a query is a combination of the rows
that end by its own last period. Laplace noise is not invariant under rotations: there a matrix that is
triangular from the start is chosen for the attribute of time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from matrixdp.errors import PrivacyError, WorkloadError
from matrixdp.exact import IdentityMatrix, IntegerMatrix, MeasuredMatrix
from matrixdp.exact.linear import Array
from matrixdp.exact.resources import one_blas_thread
from matrixdp.noise import Noise
from matrixdp.plans import Block, Part, Plan, Split
from matrixdp.privacy.unit import Unit, only_per
from matrixdp.queries import ProductGroup, Total, Workload
from matrixdp.selection.auto import Trials, bound_of, with_bound
from matrixdp.selection.compose.assembly import assemble
from matrixdp.selection.compose.decomposition import certify_decomposition, solve_classes, sub_solver_for
from matrixdp.selection.compose.rounding import lower_triangle
from matrixdp.selection.compose.weight_vectors import optimized_weights
from matrixdp.selection.limits import GAP
from matrixdp.selection.persons import select_for_persons
from matrixdp.selection.problem.gather_groups import GivenGroups, gather_groups
from matrixdp.selection.problem.residuals import Pieces, split_workload
from matrixdp.selection.reduce import reduce
from matrixdp.selection.registry import Progress, mechanism_named, silent
from matrixdp.selection.selection import Certificate, Choice, Selection, charged


def select_series(
    workload: Workload,
    attribute: str,
    noise: Noise,
    *,
    neighbours: str = "add_remove",
    unit: Unit | None = None,
    progress: Progress = silent,
) -> Selection:
    """Select a strategy whose rows can be measured one period after another.

    Parameters
    ----------
    workload : Workload
    attribute : str
        The attribute whose values are the periods, in their order.
    noise : Noise
        Under Gaussian noise nothing is lost by measuring period by period. Under Laplace noise the periods
        are measured one by one, or by a tree.
    neighbours : {"add_remove", "replace"}
    unit : Unit, optional
        With `per`, which names the attribute, the strategy is for all records of a person, whichever of them
        count at each period.
    progress : callable
        Is called with what is being done and the share that is done, if known.

    Raises
    ------
    WorkloadError
        If no query asks about the attribute, or the noise is Laplace and a group is no product of predicates.
    PrivacyError
        If the unit has `per` of other attributes, or the noise is Laplace beside one.
    TooLargeError
        If the workload is too large.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"month": range(24)}), mdp.product(month="prefix"))
    >>> selection = select_series(workload, "month", GAUSSIAN)
    >>> round((selection.total_squared_error / 24) ** 0.5, 3), selection.certificate.gap < 1e-6
    (1.807, True)
    """
    if not any(attribute in group.attributes for group in workload):
        found = f"{attribute!r}, about which no query asks"
        raise WorkloadError.at(("series", "attribute"), found, "an attribute that queries are about")
    persons = unit if unit is not None and unit.per else None
    if persons is not None:
        check_persons(persons, attribute, noise)
    reduced = reduce(workload, but=(attribute,))
    asked = gather_groups(reduced.workload)
    with one_blas_thread():
        if noise.norm == 2:
            plan, certificate = _decomposed(asked, attribute, noise, progress)
        else:
            plan, certificate = _triangular(asked, attribute, noise, progress)
        if certificate.gap is None or certificate.gap > GAP:
            trials = Trials(asked, noise, {})
            small = trials.facts.small
            certificate = with_bound(certificate, trials.whole_bound() if small else trials.lower_bound())
    reason = "every row ends at a period, and can be measured when that is over"
    plan = reduced.over_values(plan)
    if persons is not None:
        plan, certificate = _for_persons(workload, plan, certificate, persons)
    return charged(Selection(workload, plan, "series", neighbours, certificate, reason))


def check_persons(unit: Unit, attribute: str, noise: Noise) -> None:
    """Reject a unit with `per` that no strategy of a series is for."""
    if unit.per != (attribute,):
        raise PrivacyError.at(("unit", "per"), ", ".join(unit.per), only_per(attribute), code="not-supported")
    if noise.norm == 1:
        expected = "rho, mu, or epsilon with delta, which have Gaussian noise"
        found = f"{noise} noise beside a unit with per in a series"
        raise PrivacyError.at(("privacy",), found, expected, code="not-supported")


def _for_persons(workload: Workload, plan: Plan, certificate: Certificate, unit: Unit) -> Choice:
    """Return the best strategy for persons; what is proved of single records holds for it, too."""
    with one_blas_thread():
        own = select_for_persons(workload, unit, plan.noise, by_period=True)
    if own is not None:
        return own[0], with_bound(own[1], bound_of(certificate))
    [name] = unit.per
    most = workload.domain[name].size
    parts = tuple(replace(part, variance=part.variance * most) for part in plan.parts)
    certificate = replace(certificate, loss=certificate.loss * most)
    return replace(plan, parts=parts, persons=unit, by_period=True), certificate


def _decomposed(workload: Workload, name: str, noise: Noise, progress: Progress) -> Choice:
    """Return the decomposition into marginals that all have the periods."""
    progress("solving every marginal with all periods", None)
    split = split_workload(workload, undivided=name)
    solver = sub_solver_for(Pieces(split, optimized_weights(split)), noise, GAP)
    solved = solve_classes(split, solver, progress)
    certificate = certify_decomposition(split, solver, solved)
    return staircase(assemble(workload.domain, solver, solved), name), certificate


# Gaussian noise: any strategy, put into staircase form.


def staircase(plan: Plan, time: str) -> Plan:
    """Return the plan with its matrices over time in staircase form, at the same shares of the cost.

    Every part has one matrix over ``time`` alone. It becomes square, lower triangular and nonsingular; where
    it measured nothing along some directions, these are measured very weakly, and queries along them are
    still rejected.

    References
    ----------
    Denisov et al., Improved differential privacy for SGD via optimal private linear operators on adaptive
    streams, 2022, section 4 (square factors of full rank).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"month": range(12)}), mdp.product(month="prefix"))
    >>> plan = mdp.select(workload, noise="gaussian").selection.plan
    >>> [block] = staircase(plan, "month").parts[0].blocks
    >>> block.matrix.lower_triangular
    True
    """
    known: dict[str, MeasuredMatrix] = {}
    parts = []
    for part in plan.parts:
        blocks = []
        for block in part.blocks:
            matrix = block.matrix
            if block.attributes == (time,):
                if matrix.digest() not in known:
                    known[matrix.digest()] = _triangle(matrix)
                matrix = known[matrix.digest()]
            blocks.append(Block(block.attributes, matrix))
        share = plan.noise.share(part, part.variance)
        parts.append(replace(part, blocks=tuple(blocks)).at_cost(plan.noise, share))
    return replace(plan, parts=tuple(parts))


def _triangle(matrix: MeasuredMatrix) -> MeasuredMatrix:
    """Return the lower triangular matrix with the Gram matrix of another."""
    if matrix.lower_triangular:
        return matrix
    rows = matrix.written()
    rows /= float(np.linalg.norm(rows, axis=0).max())
    return lower_triangle(rows, matrix.rank, matrix.unsupported)


# Laplace noise: one triangular matrix over time, times a strategy for everything else.

#: How many periods a node of a tree may cover at each level; beside them, each period alone.
_BRANCHINGS = 16
#: What strategies for all other attributes are searched by: their answers follow period by period.
_OVER_OTHERS = "generalized-marginals", "opt-kron"


def _triangular(workload: Workload, name: str, noise: Noise, progress: Progress) -> Choice:
    """Return the best product of a tree over time and a strategy for all other attributes."""
    size, asked = workload.domain[name].size, list(_apart(workload, name))
    best = min(_trees(size), key=lambda tree: _sum_of_losses(tree, asked))
    inverse = best.covariance()
    groups = [
        replace(rest, weight=rest.weight * float(np.einsum("ij,ij->", inverse, gram))) for gram, rest in asked
    ]
    trials = Trials(Workload(workload.domain, GivenGroups(tuple(groups))), noise, {}, progress, bounded=False)
    fitting = [own for own in _OVER_OTHERS if not trials.facts.beyond(mechanism_named(own).limits)]
    plans = [_over_time(trials.choose(own)[0], name, best) for own in fitting]
    losses = [math.fsum(plan.analysis.group(group).weighted for group in workload) for plan in plans]
    least = int(np.argmin(losses))
    return plans[least], Certificate(losses[least], None, "no bound for trees over time")


def _trees(size: int) -> Iterator[MeasuredMatrix]:
    """Yield the identity, and trees: row t sums the b^k periods up to t, b^k the largest that divides t.

    Their rows are independent and end at periods that increase: the binary mechanism of Chan, Shi and Song
    (2011) and Dwork et al. (2010), without the rows that follow from others.
    """
    yield IdentityMatrix(size)
    for branching in range(2, min(_BRANCHINGS, size) + 1):
        entries = np.zeros((size, size), dtype=np.int64)
        for end in range(1, size + 1):
            width = 1
            while end % (width * branching) == 0:
                width *= branching
            entries[end - 1, end - width : end] = 1
        yield IntegerMatrix(entries)


def _apart(workload: Workload, name: str) -> Iterator[tuple[Array, ProductGroup]]:
    """Yield the Gram matrix over time of each group, and the group on all other attributes."""
    for group in workload:
        if not isinstance(group, ProductGroup) or group.query_weights is not None:
            found = f"{group.name}, which is no product of predicates"
            expected = (
                "products alone under Laplace noise; rho, mu, or epsilon with delta have Gaussian noise"
            )
            raise WorkloadError.at(("workload",), found, expected, code="not-supported")
        own = group.sets.get(name, Total())
        rest = {other: sets for other, sets in group.sets.items() if other != name}
        sizes = tuple(workload.domain[other].size for other in rest)
        alone = replace(group, attributes=tuple(rest), predicates=tuple(rest.values()), sizes=sizes)
        yield own.gram(workload.domain[name].size), alone


def _sum_of_losses(tree: MeasuredMatrix, asked: list[tuple[Array, ProductGroup]]) -> float:
    """Return the error of a tree over time if all other attributes were measured cell by cell."""
    inverse = tree.covariance()
    cells = [float(np.einsum("ij,ij->", inverse, gram)) * one.weight * one.queries for gram, one in asked]
    return tree.sensitivity**2 * math.fsum(cells)


def _over_time(plan: Plan, name: str, matrix: MeasuredMatrix) -> Plan:
    """Return the plan that measures every part of another in the periods that a matrix sums."""
    parts = []
    for part in plan.parts:
        names = plan.domain.sort([*part.attributes, name])
        multipliers = part.multipliers
        if multipliers is not None:
            multipliers = np.repeat(multipliers[None], matrix.rows, axis=0)
        made = Part(names, (Block((name,), matrix), *part.blocks), 1.0, multipliers)
        parts.append(made.at_cost(plan.noise, plan.noise.share(part, part.variance)))
    if isinstance(plan, Split):
        weights = {**plan.weights, name: np.zeros(plan.domain[name].size)}
        return replace(plan, parts=tuple(parts), weights=weights)
    return replace(plan, parts=tuple(parts))
