"""OPT_kron: one Kronecker product of strategies on attributes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix, MeasuredMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Block, Direct, Part, Plan
from matrixdp.queries import Workload
from matrixdp.selection.convex import DEFAULT_GAP
from matrixdp.selection.direct import MAX_TABLE_CELLS
from matrixdp.selection.factor import Factor
from matrixdp.selection.hdmm.axis import solve_axis
from matrixdp.selection.hdmm.terms import AxisStrategy, ProductTerms, product_terms
from matrixdp.selection.rounding import measured_factor
from matrixdp.selection.selection import Certificate

__all__ = ["KronStrategy", "kron_part", "select_kron", "solve_kron"]

Progress = Callable[[str, float | None], None]

#: Rounds of alternation: of each start, and of the best of them after that.
_FIRST_SWEEPS, _MORE_SWEEPS = 3, 12
#: Relative decrease of the loss at which alternation stops, and gap of the problems within it.
_TOLERANCE, _LOOP_GAP = 1e-4, 1e-5


@dataclass(frozen=True, eq=False)
class KronStrategy:
    """A product of strategies.

    Attributes
    ----------
    attributes : tuple of str
    axes : tuple of AxisStrategy
    loss : float
        With noise of variance 1 on every row and sensitivity 1.
    bound : float or None
        A lower bound on the loss of every strategy, where the workload is one product.
    """

    attributes: tuple[str, ...]
    axes: tuple[AxisStrategy, ...]
    loss: float
    bound: float | None


def _solve(
    terms: ProductTerms,
    axis: int,
    strategies: Sequence[AxisStrategy | None],
    noise: Noise,
    gap: float,
    seed: int,
    effort: str,
) -> AxisStrategy:
    if terms.large(axis):
        return AxisStrategy(None, None, None)
    before = strategies[axis]
    start = None
    if before is not None and before.rows is not None:
        start = Factor(before.rows, 0.0, None)
    factor = solve_axis(
        terms.surrogate(axis, strategies), noise, gap=gap, seed=seed, start=start, effort=effort
    )
    return AxisStrategy.of(factor.rows, factor.bound)


def _alternate(
    terms: ProductTerms,
    first: Sequence[AxisStrategy | None],
    noise: Noise,
    gap: float,
    seed: int,
    sweeps: int,
) -> tuple[list[AxisStrategy], float, bool]:
    """Alternate over the attributes, the strategies of all others fixed; say whether the loss has settled."""
    gap = max(gap, _LOOP_GAP)
    current: list[AxisStrategy | None] = list(first)
    for axis in range(len(current)):
        if current[axis] is None:
            current[axis] = _solve(terms, axis, first, noise, gap, seed, "fast")
    known = [strategy for strategy in current if strategy is not None]
    best, loss = list(known), terms.loss(known)
    for _ in range(sweeps):
        before = loss
        for axis in range(len(known)):
            known[axis] = _solve(terms, axis, known, noise, gap, seed, "fast")
        found = terms.loss(known)
        if found < loss:
            best, loss = list(known), found
        if found > before * (1.0 - _TOLERANCE):
            return best, loss, True
    return best, loss, False


def solve_kron(
    terms: ProductTerms,
    noise: Noise,
    *,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    effort: str = "full",
) -> KronStrategy:
    """Return the best product found for a union of products.

    Parameters
    ----------
    terms : ProductTerms
        The union.
    noise : Noise
    gap : float
        Relative gap of each attribute's problem, where it is certified.
    seed : int
        Of the searches.
    effort : {"full", "fast"}

    Returns
    -------
    KronStrategy

    Raises
    ------
    TooLargeError
        If the product is over more cells than can be held, or an attribute that is not measured whole has
        too many values.

    References
    ----------
    McKenna et al. 2018, section 6.1 (block-cyclic alternation over surrogate workloads).
    """
    cells = math.prod(terms.sizes)
    if cells > MAX_TABLE_CELLS:
        raise TooLargeError(
            f"opt-kron: {' x '.join(terms.attributes)} has {cells:.3g} cells; the limit is "
            f"{MAX_TABLE_CELLS:,}. Use residual, which never forms the whole table"
        )
    count = len(terms.sizes)
    if terms.proportional():
        axes = [_solve(terms, axis, [None] * count, noise, gap, seed, effort) for axis in range(count)]
        loss = terms.loss(axes)
        return KronStrategy(terms.attributes, tuple(axes), loss, _product_bound(terms, axes))
    starts: list[list[AxisStrategy | None]] = [[None] * count]
    if effort == "full":
        starts.append([AxisStrategy(None, None, None)] * count)
    first = [_alternate(terms, start, noise, gap, seed, _FIRST_SWEEPS) for start in starts]
    axes, loss, settled = min(first, key=lambda item: item[1])
    if not settled:
        axes, loss, _ = _alternate(terms, axes, noise, gap, seed, _MORE_SWEEPS)
    if effort == "full" and noise.norm == 1:
        known = list(axes)
        for axis in range(count):
            known[axis] = _solve(terms, axis, known, noise, gap, seed, "full")
            improved = terms.loss(known)
            if improved < loss:
                axes, loss = list(known), improved
            else:
                known = list(axes)
    return KronStrategy(terms.attributes, tuple(axes), loss, None)


def _product_bound(terms: ProductTerms, axes: Sequence[AxisStrategy]) -> float | None:
    """Return the product of the factors' bounds, each for its own Gram matrix as `_solve` scales it."""
    bound = math.fsum(weight for weight, _ in terms.products)
    for axis, strategy in enumerate(axes):
        if strategy.bound is None:
            return None
        others = 1.0
        for other, sets in enumerate(terms.sets):
            if other != axis:
                [predicates] = sets.values()
                others *= float(predicates.squares(terms.sizes[other]).sum()) / terms.sizes[other]
        bound *= strategy.bound / (others * math.fsum(weight for weight, _ in terms.products))
    return bound


def kron_part(strategy: KronStrategy, sizes: Sequence[int], noise: Noise, share: float = 1.0) -> Part:
    """Return the part that measures a product with a share of the privacy cost.

    Parameters
    ----------
    strategy : KronStrategy
    sizes : sequence of int
        Of its attributes.
    noise : Noise
    share : float
        Of the cost.
    """
    blocks = []
    for name, axis, size in zip(strategy.attributes, strategy.axes, sizes, strict=True):
        matrix: MeasuredMatrix = (
            IdentityMatrix(size) if axis.rows is None else measured_factor(axis.rows, noise)
        )
        blocks.append(Block((name,), matrix))
    return Part(strategy.attributes, tuple(blocks), 1.0).at_cost(noise, share)


def select_kron(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Plan, Certificate]:
    """Select one Kronecker product over all attributes that are asked about.

    Parameters
    ----------
    workload : Workload
    noise : Noise
    gap : float
        Relative gap of each attribute's problem, where it is certified.
    seed : int
        Of the searches.
    progress : callable, optional

    Returns
    -------
    plan : Plan
        One part.
    certificate : Certificate
        With a lower bound where the workload is one product.

    Raises
    ------
    TooLargeError
        If the product is over more cells than can be held.

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
    terms = product_terms(workload.domain, workload.groups)
    strategy = solve_kron(terms, noise, gap=gap, seed=seed)
    part = kron_part(strategy, terms.sizes, noise)
    factor = noise.variance_factor
    bound = None if strategy.bound is None else factor * strategy.bound
    scope = f"every strategy with {noise} noise" if bound is not None else "no bound for a union of products"
    plan = Direct(workload.domain, (part,), noise)
    return plan, Certificate(factor * strategy.loss, bound, scope)
