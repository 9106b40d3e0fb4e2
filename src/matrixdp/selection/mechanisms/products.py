"""One Kronecker product of strategies that are given attribute by attribute: what most baselines are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Direct, Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.rounding import measured_factor, product_blocks
from matrixdp.selection.gram.factor import right_inverse
from matrixdp.selection.mechanisms.options import Options
from matrixdp.selection.mechanisms.table import Mechanism, Task, register
from matrixdp.selection.problem.grams import Question
from matrixdp.selection.problem.kron_sum import MAX_AXIS_CELLS, Inverse, KronSum, check_table
from matrixdp.selection.selection import Certificate

__all__ = ["NO_BOUND", "Choice", "axis_gram", "numeric_mechanism", "numeric_product", "product_of"]

Array = NDArray[np.float64]
Choice = tuple[Plan, Certificate]

#: What a certificate says of a strategy that is not optimized.
NO_BOUND = "no bound: the strategy is fixed by its paper"


def axis_gram(terms: KronSum[Question], axis: int) -> Array:
    """Return the Gram matrix of what is asked about one attribute, all others taken as tr(V) / n.

    Shape (n, n); group weights are included.
    """
    return terms.surrogate(axis, terms.unknown)


def product_of(
    workload: Workload,
    noise: Noise,
    terms: KronSum[Question],
    rows: list[Array | None],
    scope: str = NO_BOUND,
) -> Choice:
    """Return the plan that measures the Kronecker product of given strategies.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": 4}), mdp.product(a="prefix"))
    >>> terms = KronSum.of(workload.domain, workload.groups)
    >>> product_of(workload, LAPLACE, terms, [None])[1].loss  # 2 (1 + 2 + 3 + 4)
    20.0
    """
    matrices: list[tuple[tuple[str, ...], MeasuredMatrix]] = []
    inverses: list[Inverse] = []
    for name, size, own in zip(terms.attributes, terms.sizes, rows, strict=True):
        if own is None:
            inverses.append(1.0)
            matrices.append(((name,), IdentityMatrix(size)))
        else:
            scaled = own / float(noise.column_norms(own).max())
            inverses.append(right_inverse(scaled))
            matrices.append(((name,), measured_factor(scaled, noise)))
    plan = Direct.of(workload.domain, product_blocks(workload.domain, matrices), noise)
    return plan, Certificate(noise.variance_factor * terms.loss(inverses), None, scope)


Rows = Callable[[KronSum[Question], int], Array]


def numeric_product(task: Task[Options], name: str, rows: Rows) -> Choice:
    """Return the product of strategies on numeric attributes and identities on all others.

    ``rows`` makes a strategy from the terms of the workload and the place of an attribute.
    """
    domain = task.workload.domain
    terms = KronSum.of(domain, task.workload.groups)
    check_table(task.workload, terms.attributes, name)
    chosen: list[Array | None] = []
    for axis, (attribute, size) in enumerate(zip(terms.attributes, terms.sizes, strict=True)):
        if domain[attribute].numeric and size > MAX_AXIS_CELLS:
            raise TooLargeError(
                f"{name}: attribute {attribute!r} has {size} values; the limit is {MAX_AXIS_CELLS}. "
                "Use coarser bins, or identity"
            )
        chosen.append(rows(terms, axis) if domain[attribute].numeric else None)
    return product_of(task.workload, task.noise, terms, chosen)


def numeric_mechanism(name: str, source: str, rows: Rows) -> None:
    """Register the product of strategies on numeric attributes and identities on all others."""
    register(Mechanism(name, source, (1, 2), Options, lambda task: numeric_product(task, name, rows)))
