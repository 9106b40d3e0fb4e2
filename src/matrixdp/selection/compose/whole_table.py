"""One strategy for the table of all attributes that the workload asks about, measured as one part.

Attributes on which every group asks proportional queries factor out (the product rule). The rest is one
explicit problem (`dense`, `opt-0`), one product (`opt-kron`), or one product with weighted rows
(`weighted-product`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.resources import check_matrices
from matrixdp.noise import Noise
from matrixdp.plan import Block, Direct, Part, Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.assembly import row_multipliers
from matrixdp.selection.compose.product import (
    AS_MANY_AS_PAY,
    Product,
    free_bases,
    solve_kron,
    solve_structured,
)
from matrixdp.selection.compose.rounding import measured_matrix, product_blocks
from matrixdp.selection.gram import ConvexSolver, solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import Rows
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.kron_sum import KronSum, check_table
from matrixdp.selection.selection import Certificate

__all__ = [
    "dense_bound",
    "few_products",
    "measured_product",
    "product_choice",
    "select_directly",
    "select_kron",
    "select_weighted_product",
    "solve_table",
]

Array = NDArray[np.float64]
Progress = Callable[[str, float | None], None]
Factors = list[tuple[tuple[str, ...], Factor]]

_INSTEAD = "residual, which never forms the whole table."
_UNBOUNDED = "no bound for a union of products"


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
    shape = KronSum.of(workload.domain, workload.groups)
    check_table(workload, shape.attributes, name)
    if shape.joint:
        _check_cells(workload, name, shape.joint, max_cells, instead)
    factors = _factored(workload, shape, name, solve, max_cells if max_axis is None else max_axis, instead)
    if not shape.joint:
        return factors, shape.weight
    sizes = [workload.domain[attribute].size for attribute in shape.joint]
    return [*factors, (shape.joint, solve(shape.dense(shape.joint), sizes))], 1.0


def _factored(
    workload: Workload,
    shape: KronSum,
    name: str,
    solve: Callable[[Array, Sequence[int]], Factor],
    max_axis: float,
    instead: str,
) -> Factors:
    """Return a solution for each attribute that factors out."""
    for attribute, asked in shape.factored.items():
        known = asked.symmetric
        if known is None or known[1] != 0.0:
            _check_cells(workload, name, (attribute,), max_axis, instead)
    factors: Factors = []
    for attribute, asked in shape.factored.items():
        size, known = asked.size, asked.symmetric
        if known is not None and known[1] == 0.0:
            # the identity is optimal for proportional queries on single cells
            factors.append(((attribute,), Factor(IdentityMatrix(size), known[0] * size, known[0] * size)))
        else:
            factors.append(((attribute,), solve(asked.matrix(), [size])))
    return factors


def _check_cells(workload: Workload, name: str, names: tuple[str, ...], limit: float, instead: str) -> None:
    cells = workload.domain.cells(names)
    if cells > limit:
        raise TooLargeError(
            f"{name}: {' x '.join(names)} has {cells} cells that do not factor; the limit is {limit}. "
            f"Use {instead}"
        )
    check_matrices(names, cells)


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
    factors, weight = _table_factors(workload, "dense", _optimum(gap), LIMITS.max_dense_cells, None, _INSTEAD)
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
        LIMITS.max_dense_cells,
        instead=_INSTEAD,
        certified=f"every {noise.title} strategy",
    )


def measured_product(
    domain: Domain, attributes: Sequence[str], product: Product, noise: Noise
) -> tuple[Block, ...]:
    """Return the blocks that measure a product of strategies on single attributes."""
    pairs = zip(attributes, product.factors, strict=True)
    return product_blocks(domain, [((name,), measured_matrix(factor, noise)) for name, factor in pairs])


def select_kron(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = LIMITS.gap,
    seed: int = 0,
    progress: Progress | None = None,
    rows: Rows = AS_MANY_AS_PAY,
) -> tuple[Plan, Certificate]:
    """Select one Kronecker product over all attributes that are asked about.

    References
    ----------
    McKenna et al. 2018, section 6.1 (OPT_kron).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"a": 16, "b": 3})
    >>> workload = mdp.Workload(domain, mdp.product(a="prefix", b="identity"))
    >>> plan, certificate = select_kron(workload, LAPLACE)
    >>> certificate.lower_bound < certificate.loss < 2 * 16 * 17 / 2 * 3
    True
    """
    if progress is not None:
        progress("solving one product over all attributes", None)
    terms = KronSum.of(workload.domain, workload.groups)
    product = solve_kron(terms, noise, gap=gap, seed=seed, rows=rows)
    blocks = measured_product(workload.domain, terms.attributes, product, noise)
    factor = noise.variance_factor
    bound = None if product.bound is None else factor * product.bound
    scope = f"every strategy with {noise} noise" if bound is not None else _UNBOUNDED
    plan = Direct.of(workload.domain, blocks, noise)
    return plan, Certificate(factor * product.loss, bound, scope)


def select_weighted_product(workload: Workload, noise: Noise, gap: float) -> tuple[Plan, Certificate]:
    """Select one product of bases over all attributes that are asked about, its rows weighted.

    Attributes on which all queries agree are solved apart. On the others bases and weights are optimized
    together; explicit queries leave the bases at those of the best product.

    Raises TooLargeError if they have more than ``LIMITS.max_free_cells`` cells, or one of them more than
    ``LIMITS.max_axis_values`` values.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> domain = mdp.Domain({"a": 8, "b": 8, "c": 2})
    >>> crossed = mdp.product(a="prefix", b="identity", c="identity"), mdp.product(b="prefix", c="identity")
    >>> plan, certificate = select_weighted_product(mdp.Workload(domain, *crossed), GAUSSIAN, 1e-6)
    >>> len(plan.parts), [len(block.attributes) for block in plan.parts[0].blocks]
    (1, [1, 1, 1])
    """
    shape = KronSum.of(workload.domain, workload.groups)
    check_table(workload, shape.attributes, "weighted-product")
    largest = max((workload.domain[name].size for name in shape.joint), default=1)
    if shape.cells > LIMITS.max_free_cells or largest > LIMITS.max_axis_values:
        raise TooLargeError(
            f"weighted-product: {' x '.join(shape.joint)} has {shape.cells} cells that do not factor; the "
            f"limit is {LIMITS.max_free_cells} cells, and {LIMITS.max_axis_values} values of an attribute. "
            "Use residual"
        )
    if len(shape.joint) < 2:
        return solve_table(
            workload,
            noise,
            "weighted-product",
            _optimum(gap),
            LIMITS.max_axis_values,
            instead="residual",
            certified=f"every {noise.title} strategy",
        )
    terms = shape.on(shape.joint)
    product = free_bases(terms, solve_structured(terms, ConvexSolver(gap)))
    apart = _factored(workload, shape, "weighted-product", _optimum(gap), LIMITS.max_axis_values, "residual")
    loss = product.loss * math.prod(factor.loss for _, factor in apart)
    matrices = {name: measured_matrix(factor, noise) for (name,), factor in apart}
    weighted = product.multipliers is not None
    own = [measured_matrix(factor, noise, weighted=weighted) for factor in product.factors]
    rows = [matrix.rows for matrix in (*matrices.values(), *own)]
    if math.prod(rows) > LIMITS.max_table_rows:
        raise TooLargeError(
            f"weighted-product: {math.prod(rows)} rows, each with a weight; the limit is "
            f"{LIMITS.max_table_rows}. Use residual"
        )
    multipliers = row_multipliers(product, own)
    if multipliers is not None:
        multipliers = np.ascontiguousarray(np.broadcast_to(multipliers, rows))
    matrices.update(zip(shape.joint, own, strict=True))
    blocks = tuple(Block((name,), matrix) for name, matrix in matrices.items())
    part = Part(workload.domain.sort(matrices), blocks, 1.0, multipliers).at_cost(noise)
    certificate = Certificate(noise.variance_factor * loss, None, _UNBOUNDED)
    return Direct(workload.domain, (part,), noise), certificate


def few_products(shape: KronSum) -> bool:
    """Return whether a workload is a sum of a few products on the two or three attributes that do not factor.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 8, "b": 8})
    >>> crossed = mdp.Workload(domain, mdp.product(a="prefix", b="identity"), mdp.product(b="prefix"))
    >>> few_products(KronSum.of(domain, crossed.groups))
    True
    """
    if not 2 <= len(shape.joint) <= LIMITS.max_few_axes or shape.cells > LIMITS.max_free_cells:
        return False
    return not shape.rows and len(shape.terms) <= LIMITS.max_few_terms
