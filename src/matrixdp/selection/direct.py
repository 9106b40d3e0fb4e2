"""The optimum on one table: all attributes that the workload asks about, measured as one part.

Attributes on which every group asks proportional queries factor out (the product rule); the rest is solved
as one explicit problem.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Block, Direct, Part, Plan
from matrixdp.queries import Predicates, ProductGroup, Total, Workload
from matrixdp.selection.convex import solve_gram
from matrixdp.selection.factor import Factor
from matrixdp.selection.rounding import measured_matrix
from matrixdp.selection.selection import Certificate

__all__ = [
    "MAX_DENSE_CELLS",
    "MAX_TABLE_CELLS",
    "DirectShape",
    "check_table",
    "direct_shape",
    "joint_gram",
    "select_directly",
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
    factored : tuple of str
        Attributes with proportional queries in every group.
    joint : tuple of str
        The others.
    cells : int
        Cells of the joint attributes.
    """

    factored: tuple[str, ...]
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
    factored, joint = [], []
    for name, column in _asked(workload).items():
        size = workload.domain[name].size
        if all(p is not None for p in column) and len({p.key(size) for p in column if p is not None}) == 1:
            factored.append(name)
        else:
            joint.append(name)
    cells = math.prod(workload.domain[name].size for name in joint)
    return DirectShape(tuple(factored), tuple(joint), cells)


def _axis_factor(predicates: Predicates, size: int, gap: float) -> Factor:
    symmetric = predicates.symmetric(size)
    if symmetric is not None and symmetric[1] == 0.0:
        loss = symmetric[0] * size
        return Factor(IdentityMatrix(size), loss, loss)
    if size > MAX_DENSE_CELLS:
        raise TooLargeError(f"dense: an attribute of {size} values; the limit is {MAX_DENSE_CELLS}")
    return solve_gram(predicates.gram(size), gap=gap)


def joint_gram(workload: Workload, joint: tuple[str, ...]) -> Array:
    """Return the sum over groups of the Gram matrices on the joint attributes, weights included."""
    sizes = [workload.domain[name].size for name in joint]
    cells = math.prod(sizes)
    total = np.zeros((cells, cells))
    merged: dict[object, tuple[float, list[Array]]] = {}
    for group in workload:
        if isinstance(group, ProductGroup) and group.query_weights is None:
            sets = dict(zip(group.attributes, group.predicates, strict=True))
            chosen = [sets.get(name, Total()) for name in joint]
            key = tuple(p.key(n) for p, n in zip(chosen, sizes, strict=True))
            if key in merged:
                merged[key] = (merged[key][0] + group.weight, merged[key][1])
            else:
                merged[key] = (group.weight, [p.gram(n) for p, n in zip(chosen, sizes, strict=True)])
            continue
        rows = group.rows()
        if group.query_weights is not None:
            rows = rows * np.sqrt(group.query_weights)[:, None]
        own = [name for name in joint if name in group.attributes]
        skipped = [i for i, name in enumerate(group.attributes) if name not in joint]
        tensor = rows.reshape(len(rows), *group.sizes)
        tensor = np.squeeze(tensor, axis=tuple(i + 1 for i in skipped))
        shape = [n if name in own else 1 for name, n in zip(joint, sizes, strict=True)]
        spread = np.broadcast_to(tensor.reshape(len(rows), *shape), (len(rows), *sizes))
        flat = spread.reshape(len(rows), cells)
        total += group.weight * (flat.T @ flat)
    for weight, grams in merged.values():
        product = np.full((1, 1), weight)
        for gram in grams:
            product = np.kron(product, gram)
        total += product
    return total


def select_directly(workload: Workload, noise: Noise, gap: float) -> tuple[Plan, Certificate]:
    """Select the optimal strategy on the table of all attributes that are asked about.

    Parameters
    ----------
    workload : Workload
    noise : Noise
        Of norm 2.
    gap : float
        Relative gap to reach.

    Returns
    -------
    plan : Plan
        One part.
    certificate : Certificate
        Its bound covers every strategy.

    Raises
    ------
    TooLargeError
        If more than ``MAX_DENSE_CELLS`` cells do not factor.

    References
    ----------
    Yuan et al. 2016 (the explicit problem). The product rule: the dual distribution of a Kronecker
    product is the product of the factors' dual distributions.
    """
    shape = direct_shape(workload)
    check_table(workload, (*shape.factored, *shape.joint), "dense")
    if shape.cells > MAX_DENSE_CELLS:
        raise TooLargeError(
            f"dense: {' x '.join(shape.joint)} has {shape.cells} cells that do not factor; the limit is "
            f"{MAX_DENSE_CELLS}. Use residual, which never forms the whole table."
        )
    asked = _asked(workload)
    factors: list[tuple[tuple[str, ...], Factor]] = []
    for name in shape.factored:
        predicates = next(p for p in asked[name] if p is not None)
        factors.append(((name,), _axis_factor(predicates, workload.domain[name].size, gap)))
    weight = 1.0
    if shape.joint:
        sizes = [workload.domain[name].size for name in shape.joint]
        factors.append((shape.joint, solve_gram(joint_gram(workload, shape.joint), sizes, gap)))
    else:
        weight = math.fsum(group.weight for group in workload)
    loss = weight * math.prod(factor.loss for _, factor in factors)
    bound = weight * math.prod(factor.bound or 0.0 for _, factor in factors)
    blocks = tuple(Block(names, measured_matrix(factor, noise)) for names, factor in factors)
    part = Part(workload.domain.sort([*shape.factored, *shape.joint]), blocks, 1.0).at_cost(noise)
    scale = noise.variance_factor
    plan = Direct(workload.domain, (part,), noise)
    return plan, Certificate(scale * loss, scale * bound, f"every {noise.title} strategy")
