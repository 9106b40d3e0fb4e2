"""The optimum on one table: all attributes that the workload asks about, measured as one part.

Attributes on which every group asks proportional queries factor out (the product rule); the rest is solved
as one explicit problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.resources import check_matrices
from matrixdp.noise import Noise
from matrixdp.plan import Direct, Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.rounding import measured_matrix, product_blocks
from matrixdp.selection.gram import solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.problem.kron_sum import check_table, joint_gram, table_shape
from matrixdp.selection.selection import Certificate

__all__ = ["MAX_DENSE_CELLS", "dense_bound", "product_choice", "select_directly", "solve_table"]

Array = NDArray[np.float64]
Factors = list[tuple[tuple[str, ...], Factor]]

#: The dense optimum is solved up to this many cells that do not factor.
MAX_DENSE_CELLS = 8_500
_INSTEAD = "residual, which never forms the whole table."


def solve_table(
    workload: Workload,
    noise: Noise,
    name: str,
    solve: Callable[[Array, Sequence[int]], Factor],
    max_cells: int,
    *,
    max_axis: float | None = None,
    instead: str,
    certified: str = "",
    scope: str = "",
) -> tuple[Plan, Certificate]:
    """Solve for one table: apart for each attribute that factors out, jointly for the rest.

    ``solve`` gets a Gram matrix and the sizes of its attributes. The certificate has a bound, and says what
    ``certified`` does, where every factor has one; else it says ``scope``. Raises TooLargeError where a
    problem, or the table, has too many cells.

    References
    ----------
    The product rule: the dual distribution of a Kronecker product is the product of the factors'.
    """
    factors, weight = _table_factors(workload, name, solve, max_cells, max_axis, instead)
    return product_choice(workload, noise, factors, scope, weight=weight, certified=certified)


def _table_factors(
    workload: Workload,
    name: str,
    solve: Callable[[Array, Sequence[int]], Factor],
    max_cells: int,
    max_axis: float | None,
    instead: str,
) -> tuple[Factors, float]:
    """Return a solution for each attribute that factors out and for the rest, and what multiplies them."""
    shape = table_shape(workload)
    check_table(workload, (*shape.factored, *shape.joint), name)
    factors: Factors = []
    open_: list[tuple[tuple[str, ...], float]] = [(shape.joint, max_cells)] if shape.joint else []
    for attribute, predicates in shape.factored.items():
        symmetric = predicates.symmetric(workload.domain[attribute].size)
        if symmetric is None or symmetric[1] != 0.0:
            open_.append(((attribute,), max_cells if max_axis is None else max_axis))
            continue
        # the identity is optimal for proportional queries on single cells
        size = workload.domain[attribute].size
        factors.append(((attribute,), Factor(IdentityMatrix(size), symmetric[0] * size, symmetric[0] * size)))
    for names, limit in open_:
        cells = workload.domain.cells(names)
        if cells > limit:
            raise TooLargeError(
                f"{name}: {' x '.join(names)} has {cells} cells that do not factor; the limit is {limit}. "
                f"Use {instead}"
            )
        check_matrices(names, cells)
    for names, _ in open_:
        sizes = [workload.domain[attribute].size for attribute in names]
        known = shape.factored.get(names[0])
        gram = joint_gram(workload, names) if known is None else known.gram(sizes[0])
        factors.append((names, solve(gram, sizes)))
    return factors, 1.0 if shape.joint else shape.weight


def dense_bound(workload: Workload, gap: float) -> float:
    """Return the lower bound that `select_directly` proves, without the plan.

    Raises TooLargeError where that does.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 8}), mdp.product(a="prefix"))
    >>> dense_bound(workload, 1e-6) == select_directly(workload, GAUSSIAN, 1e-6)[1].lower_bound
    True
    """
    factors, weight = _table_factors(workload, "dense", _optimum(gap), MAX_DENSE_CELLS, None, _INSTEAD)
    bound = _proved(factors, weight)
    assert bound is not None
    return bound


def _optimum(gap: float, duals: dict[Any, Any] | None = None) -> Callable[[Array, Sequence[int]], Factor]:
    """Return the solver to a gap, from the dual points of similar problems, which it replaces."""
    duals = {} if duals is None else duals

    def solve(gram: Array, sizes: Sequence[int]) -> Factor:
        found = solve_gram(gram, sizes, gap, duals.get(tuple(sizes)))
        duals[tuple(sizes)] = found.dual
        return found

    return solve


def _proved(factors: Sequence[tuple[tuple[str, ...], Factor]], scale: float) -> float | None:
    """Return the product of the factors' bounds, if all have one."""
    bounds = [factor.bound for _, factor in factors if factor.bound is not None]
    return scale * math.prod(bounds) if len(bounds) == len(factors) else None


def product_choice(
    workload: Workload,
    noise: Noise,
    factors: Sequence[tuple[tuple[str, ...], Factor]],
    scope: str,
    *,
    weight: float = 1.0,
    certified: str = "",
) -> tuple[Plan, Certificate]:
    """Return the plan that measures the product of factors, each for some attributes, as one part."""
    scale = weight * noise.variance_factor
    loss = scale * math.prod(factor.loss for _, factor in factors)
    bound = _proved(factors, scale) if certified else None
    matrices = [(names, measured_matrix(factor, noise)) for names, factor in factors]
    plan = Direct.of(workload.domain, product_blocks(workload.domain, matrices), noise)
    return plan, Certificate(loss, bound, scope if bound is None else certified)


def select_directly(
    workload: Workload, noise: Noise, gap: float, duals: dict[Any, Any] | None = None
) -> tuple[Plan, Certificate]:
    """Select the optimum under noise of norm 2 on the table of all attributes that are asked about.

    ``duals`` are what a selection for similar queries left to start from, and takes what this one leaves.

    References
    ----------
    Yuan et al. 2016 (the explicit problem).
    """
    return solve_table(
        workload,
        noise,
        "dense",
        _optimum(gap, duals),
        MAX_DENSE_CELLS,
        instead=_INSTEAD,
        certified=f"every {noise.title} strategy",
    )
