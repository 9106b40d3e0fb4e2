"""One product of bases with weighted rows over the whole table: what a sum of few products wants."""

from __future__ import annotations

import math

import numpy as np

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Block, Direct, Part, Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.assembly import row_multipliers
from matrixdp.selection.compose.free_bases import MAX_FREE_CELLS, free_bases
from matrixdp.selection.compose.product import solve_structured
from matrixdp.selection.compose.rounding import measured_matrix
from matrixdp.selection.compose.whole_table import solve_table
from matrixdp.selection.gram import ConvexSolver, solve_gram
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.problem.grams import Question, gram_terms
from matrixdp.selection.problem.kron_sum import KronSum, TableShape, check_table, table_shape
from matrixdp.selection.selection import Certificate

__all__ = ["MAX_AXIS_VALUES", "few_products", "select_weighted_product"]

#: Values of an attribute whose strategy is searched.
MAX_AXIS_VALUES = 1_000
#: Rows of the whole table, each with a weight of its own.
MAX_TABLE_ROWS = 10_000_000
#: What counts as a sum of few products: on how many attributes, and how many terms.
MAX_FEW_AXES, MAX_FEW_TERMS = 3, 4
_SCOPE = "no bound for a union of products"


def select_weighted_product(workload: Workload, noise: Noise, gap: float) -> tuple[Plan, Certificate]:
    """Select one product of bases over all attributes that are asked about, its rows weighted.

    Attributes on which all queries agree are solved apart. On the others bases and weights are optimized
    together; explicit queries leave the bases at those of the best product.

    Raises TooLargeError if they have more than ``MAX_FREE_CELLS`` cells, or one of them more than
    ``MAX_AXIS_VALUES`` values.

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
    shape = table_shape(workload)
    check_table(workload, (*shape.factored, *shape.joint), "weighted-product")
    largest = max((workload.domain[name].size for name in shape.joint), default=1)
    if shape.cells > MAX_FREE_CELLS or largest > MAX_AXIS_VALUES:
        raise TooLargeError(
            f"weighted-product: {' x '.join(shape.joint)} has {shape.cells} cells that do not factor; the "
            f"limit is {MAX_FREE_CELLS} cells, and {MAX_AXIS_VALUES} values of an attribute. Use residual"
        )
    if len(shape.joint) < 2:
        return solve_table(
            workload,
            noise,
            "weighted-product",
            lambda gram, sizes: solve_gram(gram, sizes, gap),
            MAX_AXIS_VALUES,
            instead="residual",
            certified=f"every {noise.title} strategy",
        )
    terms = _joint_terms(workload, shape)
    product = free_bases(terms, solve_structured(terms, ConvexSolver(gap)))
    apart = {
        name: _factor(question, workload.domain[name].size, gap) for name, question in shape.factored.items()
    }
    loss = product.loss * math.prod(factor.loss for factor in apart.values())
    matrices = {name: measured_matrix(factor, noise) for name, factor in apart.items()}
    weighted = product.multipliers is not None
    own = [measured_matrix(factor, noise, weighted=weighted) for factor in product.factors]
    rows = [matrix.rows for matrix in (*matrices.values(), *own)]
    if math.prod(rows) > MAX_TABLE_ROWS:
        raise TooLargeError(
            f"weighted-product: {math.prod(rows)} rows, each with a weight; the limit is {MAX_TABLE_ROWS}. "
            "Use residual"
        )
    multipliers = row_multipliers(product, own)
    if multipliers is not None:
        multipliers = np.ascontiguousarray(np.broadcast_to(multipliers, rows))
    matrices.update(zip(shape.joint, own, strict=True))
    blocks = tuple(Block((name,), matrix) for name, matrix in matrices.items())
    part = Part(workload.domain.sort(matrices), blocks, 1.0, multipliers).at_cost(noise)
    certificate = Certificate(noise.variance_factor * loss, None, _SCOPE)
    return Direct(workload.domain, (part,), noise), certificate


def few_products(workload: Workload, shape: TableShape) -> bool:
    """Return whether a workload is a sum of a few products on the two or three attributes that do not factor.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 8, "b": 8})
    >>> crossed = mdp.Workload(domain, mdp.product(a="prefix", b="identity"), mdp.product(b="prefix"))
    >>> few_products(crossed, table_shape(crossed))
    True
    """
    if not 2 <= len(shape.joint) <= MAX_FEW_AXES or shape.cells > MAX_FREE_CELLS:
        return False
    terms = [gram_terms(group) for group in workload]
    return None not in terms and sum(len(own) for own in terms if own is not None) <= MAX_FEW_TERMS


def _joint_terms(workload: Workload, shape: TableShape) -> KronSum[Question]:
    """Return the terms of a workload on the attributes that do not factor out."""
    whole = KronSum.of(workload.domain, workload.groups)
    places = [whole.attributes.index(name) for name in shape.joint]
    # explicit queries leave no attribute to factor out
    return KronSum(
        shape.joint,
        tuple(whole.sizes[place] for place in places),
        [whole.sets[place] for place in places],
        [(weight, tuple(keys[place] for place in places)) for weight, keys in whole.products],
        whole.explicit,
    )


def _factor(question: Question, size: int, gap: float) -> Factor:
    """Return the optimum on an attribute that factors out."""
    symmetric = question.symmetric(size)
    if symmetric is not None and symmetric[1] == 0.0:
        return Factor(IdentityMatrix(size), symmetric[0] * size, symmetric[0] * size)
    if size > MAX_AXIS_VALUES:
        raise TooLargeError(
            f"weighted-product: an attribute of {size} values; the limit is {MAX_AXIS_VALUES}. Use residual"
        )
    return solve_gram(question.gram(size), gap=gap)
