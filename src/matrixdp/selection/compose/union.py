"""OPT_plus: a union of products, each for some of the query groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.plan import Direct, Local, Part, Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.grouping import Members, group_products, group_subset
from matrixdp.selection.compose.kron import measured_product, solve_kron
from matrixdp.selection.compose.product import Product
from matrixdp.selection.gram import DEFAULT_GAP
from matrixdp.selection.selection import Certificate
from matrixdp.selection.view.product_terms import product_terms

__all__ = ["select_union"]

Progress = Callable[[str, float | None], None]


def select_union(
    workload: Workload,
    noise: Noise,
    *,
    gap: float = DEFAULT_GAP,
    seed: int = 0,
    progress: Progress | None = None,
) -> tuple[Plan, Certificate]:
    """Select a union of products.

    Groups that ask about the same attributes share a product; sets of groups are merged while the total
    error falls. The privacy cost is split in closed form.

    References
    ----------
    McKenna et al. 2018, section 6.2 (OPT_plus).

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100})
    >>> _, certificate = select_union(mdp.Workload(domain, mdp.marginals(2)), LAPLACE)
    >>> certificate.loss / 2 < 85_070  # McKenna et al., Table 3
    True
    """
    solved: dict[Members, tuple[tuple[str, ...], Product]] = {}
    contents: dict[Hashable, Product] = {}

    def solve(members: Members, effort: str = "fast") -> float:
        terms = product_terms(workload.domain, group_subset(workload, members))
        content = (terms.sizes, frozenset((keys, weight) for weight, keys in terms.products), effort)
        known = None if terms.explicit else contents.get(content)
        if known is None:
            try:
                known = solve_kron(terms, noise, gap=max(gap, 1e-4), seed=seed, effort=effort)
            except TooLargeError:
                return math.inf
            if not terms.explicit:
                contents[content] = known
            if progress is not None:
                progress(f"grouping products ({len(solved) + 1} tried)", None)
        solved[members] = terms.attributes, known
        return known.loss

    sets, total = group_products(workload, noise, solve)
    if not math.isfinite(total):
        raise TooLargeError("opt-plus: a group asks about a table of too many cells. Use residual or opt-m")
    losses = [solve(members, "full") for members in sets]
    parts = []
    for members, share in zip(sets, noise.best_shares(losses), strict=True):
        attributes, product = solved[members]
        blocks = measured_product(workload.domain, attributes, product, noise)
        parts.append(Part(attributes, blocks, 1.0).at_cost(noise, share))
    kind = Direct if len(parts) == 1 else Local
    plan: Plan = kind(workload.domain, tuple(parts), noise)
    loss = noise.variance_factor * noise.total_loss(losses)
    if kind is Local:
        # queries that several parts determine are estimated from all of them
        analysis = plan.analysis
        loss = min(loss, math.fsum(analysis.group(group).weighted for group in workload))
    return plan, Certificate(loss, None, "no bound for a union of products")
