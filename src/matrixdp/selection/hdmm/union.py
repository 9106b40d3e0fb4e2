"""OPT_plus: a union of products, each for some of the query groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from matrixdp.errors import TooLargeError
from matrixdp.noise import Noise
from matrixdp.plan import Direct, Local, Plan
from matrixdp.queries import Workload
from matrixdp.selection.convex import DEFAULT_GAP
from matrixdp.selection.hdmm.grouping import Members, group_products, group_subset
from matrixdp.selection.hdmm.kron import KronStrategy, kron_part, solve_kron
from matrixdp.selection.hdmm.terms import product_terms
from matrixdp.selection.selection import Certificate

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
        Of kind ``local`` (each query is estimated from the parts that determine it), or ``direct`` where one
        product serves all.
    certificate : Certificate
        Its loss is what each group has from its own product; averaging over parts can only lower it.

    Raises
    ------
    TooLargeError
        If a group asks about a table of more cells than can be held.

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
    solved: dict[Members, KronStrategy] = {}
    contents: dict[Hashable, KronStrategy] = {}

    def solve(members: Members, effort: str = "fast") -> float:
        terms = product_terms(workload.domain, group_subset(workload, members))
        content = None
        if not terms.explicit:
            content = (terms.sizes, frozenset((keys, weight) for weight, keys in terms.products), effort)
        if content in contents:
            known = contents[content]
            solved[members] = KronStrategy(terms.attributes, known.axes, known.loss, known.bound)
            return known.loss
        try:
            strategy = solve_kron(terms, noise, gap=max(gap, 1e-4), seed=seed, effort=effort)
        except TooLargeError:
            return math.inf
        solved[members] = strategy
        if content is not None:
            contents[content] = strategy
        if progress is not None:
            progress(f"grouping products ({len(solved)} tried)", None)
        return strategy.loss

    sets, total = group_products(workload, noise, solve)
    if not math.isfinite(total):
        raise TooLargeError("opt-plus: a group asks about a table of too many cells. Use residual or opt-m")
    losses = [solve(members, "full") for members in sets]
    strategies = [solved[members] for members in sets]
    parts = []
    for strategy, share in zip(strategies, noise.best_shares(losses), strict=True):
        sizes = [workload.domain[name].size for name in strategy.attributes]
        parts.append(kron_part(strategy, sizes, noise, share))
    kind = Direct if len(parts) == 1 else Local
    plan: Plan = kind(workload.domain, tuple(parts), noise)
    loss = noise.variance_factor * noise.total_loss(losses)
    if kind is Local:
        # queries that several parts determine are estimated from all of them
        analysis = plan.analysis
        loss = min(loss, math.fsum(analysis.group(group).weighted for group in workload))
    return plan, Certificate(loss, None, "no bound for a union of products")
