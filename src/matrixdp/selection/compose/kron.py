"""OPT_kron: one Kronecker product of strategies on attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from matrixdp.domain import Domain
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Block, Direct, Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.product import Product, alternate
from matrixdp.selection.compose.rounding import measured_matrix, product_blocks
from matrixdp.selection.gram import DEFAULT_GAP
from matrixdp.selection.gram.factor import Factor
from matrixdp.selection.gram.opt_0 import Rows, solve_axis, solve_symmetric
from matrixdp.selection.problem.grams import Question
from matrixdp.selection.problem.kron_sum import Inverse, KronSum, check_cells
from matrixdp.selection.selection import Certificate

__all__ = ["AS_MANY_AS_PAY", "measured_product", "select_kron", "solve_kron"]

Progress = Callable[[str, float | None], None]

AS_MANY_AS_PAY = Rows()
#: Rounds of alternation: of each start, and of the best of them after that.
_FIRST_SWEEPS, _MORE_SWEEPS = 3, 12
#: After a round a loss this many times what is wanted does not fall to it.
_HOPELESS = 1.3
#: What a strategy leaves of a Gram matrix that is in its row space, relative to its largest entry.
_SPAN = 1e-9
#: Relative decrease of the loss at which alternation stops, and gap of the problems within it.
_TOLERANCE, _LOOP_GAP = 1e-4, 1e-5


def solve_kron(
    terms: KronSum[Question],
    noise: Noise,
    *,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    effort: str = "full",
    start: Sequence[Factor | None] | None = None,
    worth: float = math.inf,
    most_symmetric: int | None = None,
    rows: Rows = AS_MANY_AS_PAY,
    max_cells: float | None = None,
) -> Product:
    """Return the best product found for a union of products, bounded where that is one product.

    ``start`` are strategies of attributes that suit some of what is asked, to search from. Searches
    end early where their loss is far above ``worth``. Attributes of more than ``most_symmetric`` values that
    nothing tells apart are measured whole; where it is None, of more than explicit strategies may have. With
    an infinite limit of cells the product may be one that could not be measured.

    Raises TooLargeError if it is over more cells than can be held, or an attribute that is not measured
    whole has too many values.

    References
    ----------
    McKenna et al. 2018, section 6.1 (block-cyclic alternation over surrogate workloads).
    """
    check_cells(math.prod(terms.sizes), terms.attributes, "opt-kron", max_cells)

    def solve(
        axis: int, inverses: Sequence[Inverse], own: Factor | None, gap: float = gap, effort: str = effort
    ) -> Factor:
        if terms.large(axis, most_symmetric):
            whole = [1.0 if other == axis else inverse for other, inverse in enumerate(inverses)]
            return Factor(IdentityMatrix(terms.sizes[axis]), terms.loss(whole))
        known = terms.symmetric_surrogate(axis, inverses) if terms.sizes[axis] > 1 else None
        if known is not None and known[0] > 0.0:
            return solve_symmetric(terms.sizes[axis], *known, noise)
        gram = terms.surrogate(axis, inverses)
        p = rows.of(terms.sizes[axis])
        again = rows.restarts or None
        return solve_axis(gram, noise, gap=gap, seed=seed, restarts=again, start=own, effort=effort, p=p)

    def fast(axis: int, inverses: Sequence[Inverse], own: Factor | None) -> Factor:
        return solve(axis, inverses, own, max(gap, _LOOP_GAP), "fast")

    axes = range(len(terms.sizes))
    if terms.proportional() or len(terms.sizes) == 1:
        return _bounded(terms, [solve(axis, terms.unknown, None) for axis in axes])
    given = start or [None for _ in axes]
    begun = _begun(terms, given) if worth < math.inf else None
    starts = [begun or [fast(axis, terms.unknown, given[axis]) for axis in axes]]
    if effort == "full":
        loss = terms.loss([1.0 for _ in axes])
        starts.append([Factor(IdentityMatrix(size), loss) for size in terms.sizes])
    first = []
    for begin in starts:
        loss = terms.loss([factor.estimator for factor in begin])
        if worth < math.inf:
            begin, loss, _ = alternate(fast, begin, loss, 1, _TOLERANCE)
            if loss > _HOPELESS * worth:
                return Product(tuple(begin), loss)
        first.append(alternate(fast, begin, loss, _FIRST_SWEEPS, _TOLERANCE))
    known, loss, settled = min(first, key=lambda item: item[1])
    if not settled:
        known, loss, _ = alternate(fast, known, loss, _MORE_SWEEPS, _TOLERANCE)
    if effort == "full" and noise.norm == 1:
        for axis in axes:
            improved = solve(axis, [factor.estimator for factor in known], known[axis])
            if improved.loss < loss:
                known, loss = [*known[:axis], improved, *known[axis + 1 :]], improved.loss
    return Product(tuple(known), loss)


def _begun(terms: KronSum[Question], given: Sequence[Factor | None]) -> list[Factor] | None:
    """Return the strategies to start from, if every attribute has one that measures all that is asked."""
    known = [factor for factor in given if factor is not None]
    if len(known) == len(given) and all(_measures(terms, axis, own) for axis, own in enumerate(known)):
        return known
    return None


def _measures(terms: KronSum[Question], axis: int, factor: Factor) -> bool:
    """Return whether a strategy's row space holds each question about an attribute, by its own scale."""
    if factor.identity:
        return True
    asked = [terms.gram(axis, key) for key in terms.sets[axis]]
    asked += [terms.explicit_surrogate(axis, axes, rows, terms.unknown) for _, axes, rows in terms.explicit]
    apart = [gram - (gram @ factor.inverse) @ factor.rows for gram in asked]
    pairs = zip(apart, asked, strict=True)
    return all(np.abs(left).max() <= _SPAN * np.abs(gram).max() for left, gram in pairs)


def _bounded(terms: KronSum[Question], known: Sequence[Factor]) -> Product:
    """Return the product of the optima of attributes that factor, with the product of their bounds."""
    loss = terms.loss([factor.estimator for factor in known])
    ratios = [None if factor.bound is None else factor.bound / factor.loss for factor in known]
    bounded = [ratio for ratio in ratios if ratio is not None]
    return Product(tuple(known), loss, loss * math.prod(bounded) if len(bounded) == len(ratios) else None)


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
    gap: float = DEFAULT_GAP,
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
    scope = f"every strategy with {noise} noise" if bound is not None else "no bound for a union of products"
    plan = Direct.of(workload.domain, blocks, noise)
    return plan, Certificate(factor * product.loss, bound, scope)
