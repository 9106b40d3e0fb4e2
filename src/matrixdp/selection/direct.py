"""The optimum on one table: all attributes that the workload asks about, measured as one part.

Attributes on which every group asks proportional queries factor out (the product rule); the rest is solved
as one explicit problem.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Direct, Plan
from matrixdp.queries import Predicates, ProductGroup, Total, Workload
from matrixdp.selection.convex import solve_gram
from matrixdp.selection.factor import Factor
from matrixdp.selection.hdmm.terms import product_terms
from matrixdp.selection.rounding import measured_matrix, product_blocks
from matrixdp.selection.selection import Certificate

__all__ = [
    "MAX_DENSE_CELLS",
    "MAX_TABLE_CELLS",
    "DirectShape",
    "check_table",
    "direct_shape",
    "joint_gram",
    "product_choice",
    "select_directly",
    "solve_table",
]

Array = NDArray[np.float64]

#: A part on several attributes is measured over the data vector of their table: up to this many cells.
MAX_TABLE_CELLS = 100_000_000
#: The dense optimum is solved up to this many cells that do not factor.
MAX_DENSE_CELLS = 4_096


def check_table(workload: Workload, names: tuple[str, ...], mechanism: str) -> None:
    """Raise TooLargeError if the table of some attributes has more cells than can be counted."""
    cells = workload.domain.cells(names)
    if cells > MAX_TABLE_CELLS:
        raise TooLargeError(
            f"{mechanism}: {' x '.join(names)} has {cells:.3g} cells; the limit is {MAX_TABLE_CELLS:,}. Use "
            "residual, which never forms the whole table"
        )


@dataclass(frozen=True)
class DirectShape:
    """How a workload looks as one table.

    Attributes
    ----------
    factored : dict of str to Predicates
        Attributes with proportional queries in every group, and which.
    joint : tuple of str
        The others.
    cells : int
        Cells of the joint attributes.
    """

    factored: dict[str, Predicates]
    joint: tuple[str, ...]
    cells: int


def _asked(workload: Workload) -> dict[str, list[Predicates | None]]:
    """Return for each attribute that is asked about its set in every group; None for explicit queries."""
    asked: dict[str, list[Predicates | None]] = {}
    for name in workload.domain.names:
        column: list[Predicates | None] = []
        for group in workload:
            if name not in group.attributes:
                column.append(Total())
            elif isinstance(group, ProductGroup) and group.query_weights is None:
                column.append(group.predicates[group.attributes.index(name)])
            else:
                column.append(None)
        size = workload.domain[name].size
        total = Total().key(size)
        if any(p is None or p.key(size) != total for p in column):
            asked[name] = column
    return asked


def direct_shape(workload: Workload) -> DirectShape:
    """Return which attributes factor out of a workload.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 10, "b": 10})
    >>> direct_shape(mdp.Workload(domain, mdp.product(a="prefix", b="range"))).cells
    1
    """
    factored, joint = {}, []
    for name, column in _asked(workload).items():
        size = workload.domain[name].size
        known = {p.key(size): p for p in column if p is not None}
        if None not in column and len(known) == 1:
            [factored[name]] = known.values()
        else:
            joint.append(name)
    return DirectShape(factored, tuple(joint), workload.domain.cells(tuple(joint)))


def joint_gram(workload: Workload, joint: tuple[str, ...]) -> Array:
    """Return the sum over groups of the Gram matrices on the joint attributes, weights included."""
    terms = product_terms(workload.domain, workload.groups)
    axes = [terms.attributes.index(name) for name in joint]
    sizes = tuple(terms.sizes[axis] for axis in axes)
    merged: dict[tuple[Hashable, ...], float] = {}
    for weight, keys in terms.products:
        own = tuple(keys[axis] for axis in axes)
        merged[own] = merged.get(own, 0.0) + weight
    total = np.zeros((math.prod(sizes),) * 2)
    for weight, places, rows in terms.explicit:
        shape = [size if axis in places else 1 for axis, size in zip(axes, sizes, strict=True)]
        spread = np.broadcast_to(rows.reshape(len(rows), *shape), (len(rows), *sizes))
        flat = spread.reshape(len(rows), len(total))
        total += weight * (flat.T @ flat)
    for own, weight in merged.items():
        product = np.full((1, 1), weight)
        for axis, key in zip(axes, own, strict=True):
            product = np.kron(product, terms.gram(axis, key))
        total += product
    return total


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
    shape = direct_shape(workload)
    check_table(workload, (*shape.factored, *shape.joint), name)
    factors: list[tuple[tuple[str, ...], Factor]] = []
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
    for names, _ in open_:
        sizes = [workload.domain[attribute].size for attribute in names]
        known = shape.factored.get(names[0])
        gram = joint_gram(workload, names) if known is None else known.gram(sizes[0])
        factors.append((names, solve(gram, sizes)))
    weight = 1.0 if shape.joint else math.fsum(group.weight for group in workload)
    return product_choice(workload, noise, factors, scope, weight=weight, certified=certified)


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
    bounds = [factor.bound for _, factor in factors if factor.bound is not None]
    bound = scale * math.prod(bounds) if certified and len(bounds) == len(factors) else None
    matrices = [(names, measured_matrix(factor, noise)) for names, factor in factors]
    plan = Direct.of(workload.domain, product_blocks(workload.domain, matrices), noise)
    return plan, Certificate(loss, bound, scope if bound is None else certified)


def select_directly(workload: Workload, noise: Noise, gap: float) -> tuple[Plan, Certificate]:
    """Select the optimum under noise of norm 2 on the table of all attributes that are asked about.

    References
    ----------
    Yuan et al. 2016 (the explicit problem).
    """
    return solve_table(
        workload,
        noise,
        "dense",
        lambda gram, sizes: solve_gram(gram, sizes, gap),
        MAX_DENSE_CELLS,
        instead="residual, which never forms the whole table.",
        certified=f"every {noise.title} strategy",
    )
