"""One strategy for the table of all attributes that the workload asks about, measured as one part.

Attributes on which every group asks proportional queries factor out (the product rule: the dual distribution
of a Kronecker product is the product of the factors'). The rest is one explicit problem, one product, or one
product of bases with weighted rows. The mechanisms `dense`, `opt-0`, `opt-kron` and `weighted-product` are
names for one of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.resources import check_matrices
from matrixdp.noise import Noise
from matrixdp.plans import Direct, Part, Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.assembly import row_multipliers
from matrixdp.selection.compose.product import (
    Product,
    free_bases,
    solve_kron,
    solve_structured,
)
from matrixdp.selection.compose.rounding import measured_matrix, product_blocks
from matrixdp.selection.gram import ConvexSolver, solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import AS_MANY_AS_PAY, Rows, solve_axis
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem.grams import ExplicitGram, Gram
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.registry import Progress, silent
from matrixdp.selection.selection import Certificate

#: From a Gram matrix and the sizes of its attributes to a strategy.
Solve = Callable[[Gram, Sequence[int]], Factor]

#: On more attributes a sum of products is none of few.
_FEW_AXES = 3
_UNBOUNDED = "no bound for a union of products"


def select_table(
    workload: Workload,
    noise: Noise,
    method: str = "optimum",
    *,
    gap: float = GAP,
    seed: int = 0,
    rows: Rows = AS_MANY_AS_PAY,
    progress: Progress = silent,
    duals: dict[Any, Any] | None = None,
) -> tuple[Plan, Certificate]:
    """Select one strategy for the table of all attributes that are asked about.

    Parameters
    ----------
    workload : Workload
    noise : Noise
    method : {"optimum", "product", "weighted product"}
        How attributes that do not factor are solved: as one explicit problem, to its optimum under Gaussian
        noise; by one Kronecker product; or under Gaussian noise by one product of bases whose rows are
        weighted, bases and weights optimized together (explicit queries leave the bases at those of the
        best product).
    gap : float
        Relative gap of certified problems.
    seed : int
        Of random starts.
    rows : Rows
        Of p-Identity strategies, under Laplace noise.
    progress : callable, optional
    duals : dict, optional
        What a selection for similar queries left to start from; takes what this one leaves.

    References
    ----------
    Yuan et al. 2016 (the explicit problem). McKenna et al. 2018, sections 5 (OPT_0) and 6.1 (OPT_kron).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> domain = mdp.Domain({"a": 8, "b": 8, "c": 2})
    >>> crossed = mdp.product(a="prefix", b="identity", c="identity"), mdp.product(b="prefix", c="identity")
    >>> workload = mdp.Workload(domain, *crossed)
    >>> methods = "optimum", "weighted product", "product"
    >>> [round(select_table(workload, GAUSSIAN, method)[1].loss) for method in methods]
    [393, 395, 414]
    """
    progress(f"solving the whole table: {method}", None)
    terms = KronSum.of(workload.domain, workload.groups)

    def search(gram: Gram, _: Sequence[int]) -> Factor:
        return solve_axis(gram, noise, gap=gap, seed=seed, rows=rows, progress=progress)

    names: Sequence[tuple[str, ...]] = [(name,) for name in terms.attributes]
    if method == "product":
        found = solve_kron(terms, noise, gap=gap, seed=seed, rows=rows)
    else:
        solve = _optimum(gap, duals) if noise.norm == 2 else search
        weighted = method == "weighted product" and len(terms.joint) > 1
        names, found = solve_table(terms, solve, gap if weighted else None)
    return product_choice(workload, noise, names, found, _UNBOUNDED)


def solve_table(
    terms: KronSum, solve: Solve, weighted: float | None = None
) -> tuple[list[tuple[str, ...]], Product]:
    """Solve apart for each attribute that factors out, and jointly for the rest.

    Returns the attributes of each factor, and their product. With ``weighted``, a relative gap, the rest is
    one product with weighted rows.
    """
    names: list[tuple[str, ...]] = [(name,) for name in terms.factored]
    factors = []
    for name, asked in terms.factored.items():
        factor = _identity(asked)
        if factor is None:
            check_matrices((name,), asked.size)
            factor = solve(copy(asked), [asked.size])  # its entries go with the copy
        factors.append(factor)
    if weighted is not None:
        joint = terms.on(terms.joint)
        own = free_bases(joint, solve_structured(joint, ConvexSolver(weighted)))
        loss = own.loss * math.prod(factor.loss for factor in factors)
        multipliers = own.multipliers
        if multipliers is not None:
            multipliers = multipliers.reshape((1,) * len(factors) + multipliers.shape)
        names += [(name,) for name in terms.joint]
        return names, Product((*factors, *own.factors), loss, None, multipliers)
    if terms.joint:
        sizes = [terms.sizes[terms.attributes.index(name)] for name in terms.joint]
        factors.append(solve(ExplicitGram(terms.dense(terms.joint)), sizes))
        names.append(terms.joint)
    scale = 1.0 if terms.joint else terms.weight
    bounds = [factor.bound for factor in factors if factor.bound is not None]
    bound = scale * math.prod(bounds) if len(bounds) == len(factors) else None
    return names, Product(tuple(factors), scale * math.prod(factor.loss for factor in factors), bound)


def _identity(asked: Gram) -> Factor | None:
    """Return the identity where it is optimal: for proportional queries on single cells."""
    known = asked.symmetric
    if known is None or known[1] != 0.0:
        return None
    return Factor(IdentityMatrix(asked.size), known[0] * asked.size, known[0] * asked.size)


def _optimum(gap: float, duals: dict[Any, Any] | None = None) -> Solve:
    """Return the solver to a gap, from the dual points of similar problems, which it replaces."""
    duals = {} if duals is None else duals

    def solve(gram: Gram, sizes: Sequence[int]) -> Factor:
        found = solve_gram(gram, sizes, gap, duals.get(tuple(sizes)))
        duals[tuple(sizes)] = found.dual
        return found

    return solve


def dense_bound(workload: Workload, gap: float) -> float:
    """Return the lower bound that `select_table` proves for the optimum, without the plan.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import GAUSSIAN
    >>> workload = mdp.Workload(mdp.Domain({"a": 8}), mdp.product(a="prefix"))
    >>> dense_bound(workload, 1e-6) == select_table(workload, GAUSSIAN, gap=1e-6)[1].lower_bound
    True
    """
    bound = solve_table(KronSum.of(workload.domain, workload.groups), _optimum(gap))[1].bound
    assert bound is not None
    return bound


def product_choice(
    workload: Workload, noise: Noise, names: Sequence[tuple[str, ...]], product: Product, scope: str
) -> tuple[Plan, Certificate]:
    """Return the plan that measures a product, each factor for some attributes, as one part.

    ``scope`` is what the certificate says of a product without a bound. Raises TooLargeError past
    ``LIMITS.max_table_rows`` rows, each with a weight of its own.
    """
    weights = product.multipliers
    # rows that may be replaced by others with the same Gram matrix have one weight all together
    own = [False] * len(names) if weights is None else [size > 1 for size in weights.shape]
    pairs = zip(product.factors, own, strict=True)
    matrices = [measured_matrix(factor, noise, weighted=weighted) for factor, weighted in pairs]
    rows = math.prod(matrix.rows for matrix in matrices)
    if weights is not None and rows > LIMITS.max_table_rows:
        raise TooLargeError(
            f"weighted-product: {rows} rows, each with a weight; the limit is {LIMITS.max_table_rows}. "
            "Use residual"
        )
    blocks = product_blocks(workload.domain, zip(names, matrices, strict=True))
    attributes = workload.domain.sort([name for block in blocks for name in block.attributes])
    part = Part(attributes, blocks, 1.0, row_multipliers(product, matrices)).at_cost(noise)
    bound = None if product.bound is None else noise.variance_factor * product.bound
    every = scope if bound is None else f"every strategy with {noise} noise"
    plan = Direct(workload.domain, (part,), noise)
    return plan, Certificate(noise.variance_factor * product.loss, bound, every)


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
    if not 2 <= len(shape.joint) <= _FEW_AXES or shape.cells > LIMITS.max_free_cells:
        return False
    return not shape.rows and len(shape.terms) <= LIMITS.few_terms
