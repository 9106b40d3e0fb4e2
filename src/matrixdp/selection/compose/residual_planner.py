"""ResidualPlanner and ResidualPlanner+: the decomposition with uniform weights and given bases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from matrixdp.errors import WorkloadError
from matrixdp.noise import Noise
from matrixdp.plan import Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.assembly import assemble
from matrixdp.selection.compose.decomposition import certify_decomposition, solve_classes
from matrixdp.selection.compose.given_bases import own_bases
from matrixdp.selection.compose.sub_solver import SubSolver
from matrixdp.selection.compose.weight_vectors import uniform_weights
from matrixdp.selection.gram import DEFAULT_GAP, ConvexSolver
from matrixdp.selection.problem.residuals import Pieces, Split, split_workload
from matrixdp.selection.selection import Certificate

__all__ = ["select_residual_planner", "select_residual_planner_plus"]

Array = NDArray[np.float64]


def _select(workload: Workload, split: Split, solver: SubSolver, gap: float) -> tuple[Plan, Certificate]:
    solved = solve_classes(split, solver)
    certificate = certify_decomposition(split, solver, solved, gap)
    return assemble(workload.domain, split, solver, solved), certificate


def select_residual_planner(workload: Workload, noise: Noise) -> tuple[Plan, Certificate]:
    """Select by ResidualPlanner: marginals, each residual measured with its own noise, in closed form.

    References
    ----------
    Xiao, He, Zhang and Kifer (2023), "An optimal and scalable matrix mechanism for noisy marginals under
    convex loss functions", Theorem 3.2 and section 5.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals([1, 2]))
    >>> plan, certificate = select_residual_planner(workload, GAUSSIAN)
    >>> len(plan.parts), certificate.gap < 1e-9
    (4, True)
    """
    split = split_workload(workload)
    if any(split.free) or split.explicit:
        raise WorkloadError(
            "workload: residualplanner answers marginals only; use residualplanner-plus or querysmasher"
        )
    solver = SubSolver(Pieces(split, uniform_weights(split)), noise, ConvexSolver(DEFAULT_GAP))
    return _select(workload, split, solver, DEFAULT_GAP)


def select_residual_planner_plus(
    workload: Workload, noise: Noise, bases: Mapping[str, ArrayLike] | None = None, gap: float = DEFAULT_GAP
) -> tuple[Plan, Certificate]:
    """Select by ResidualPlanner+: one given strategy for each attribute, its mean removed, everywhere.

    References
    ----------
    ResidualPlanner+ (2024): the strategy of an attribute is the user's choice.

    Notes
    -----
    An attribute whose basis is not given gets the same one in every sub-workload. With these bases the
    figures that are published for ResidualPlanner+ on prefix, marginal and 10-valued pair workloads are
    reproduced; on ranges the published figure is that of a basis made for prefix queries.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 8}), mdp.kway(2, "prefix"))
    >>> plan, _ = select_residual_planner_plus(workload, GAUSSIAN, {"b": np.tril(np.ones((8, 8)))})
    >>> round(plan.cost, 9)
    1.0
    """
    split = split_workload(workload)
    known = {name: _checked(workload, name, basis) for name, basis in (bases or {}).items()}
    chosen: dict[int, Array] = {}
    # attributes of one type share a solution, so they have to share their basis
    types: dict[str, int] = {}
    for name, type_ in split.types.items():
        types[name] = type_
        if name in known:
            other = chosen.get(type_)
            if other is not None and not np.array_equal(other, known[name]):
                raise WorkloadError(
                    f"bases: {name!r} plays the same role as another attribute; give both one basis"
                )
            chosen[type_] = known[name]
    missing = {name for name in known if name not in types}
    if missing:
        raise WorkloadError(f"bases: the workload asks nothing about {sorted(missing)[0]!r}")
    solver = SubSolver(
        Pieces(split, uniform_weights(split)),
        noise,
        ConvexSolver(gap),
        sub_solver="fixed",
        bases={**own_bases(split, gap), **chosen},
    )
    plan, certificate = _select(workload, split, solver, gap)
    return plan, replace(certificate, lower_bound=None)


def _checked(workload: Workload, name: str, basis: ArrayLike) -> Array:
    if name not in workload.domain.names:
        raise WorkloadError(f"bases: there is no attribute {name!r}")
    rows = np.asarray(basis, dtype=np.float64)
    size = workload.domain[name].size
    if rows.ndim != 2 or rows.shape[1] != size or not np.isfinite(rows).all():
        raise WorkloadError(f"bases: {name!r} needs a finite matrix with {size} columns; found {rows.shape}")
    return rows
