"""Weighted marginals as residuals: the global least squares of identities measured on many marginals.

For subsets T of S the marginal S holds one estimate of the residual T: sum over S minus T, then remove the
mean along every attribute of T. The estimates of one residual from different marginals are independent and
all of the form sigma^2 (I - J/n) x ..., so their average by inverse variance is the least-squares estimate,
and residuals of different T are uncorrelated. What comes out is a ``split`` plan with uniform weights.
"""

from __future__ import annotations

import math
from itertools import combinations

from matrixdp.errors import TooLargeError
from matrixdp.exact import CenteredMatrix
from matrixdp.plan.part import Block, Part
from matrixdp.plan.plan import Plan, Split, residual_weights

__all__ = ["MAX_PAIRS", "pooled_plan", "residual_precisions"]

#: Pairs of a measured marginal and a residual in it, up to which a pooled plan is analysed.
MAX_PAIRS = 20_000_000


def residual_precisions(plan: Plan) -> dict[tuple[str, ...], dict[int, float]]:
    """Return for each residual the inverse variance of its estimate from each part that holds it.

    Parameters
    ----------
    plan : Plan
        Of kind ``pooled``.

    Returns
    -------
    dict of tuple of str to dict of int to float
        By residual, then by the part's place: 1 / (variance of the part x the number of cells summed).

    Raises
    ------
    TooLargeError
        If there are more than ``MAX_PAIRS``.
    """
    sizes = {name: plan.domain[name].size for name in plan.domain.names}
    varying = [tuple(n for n in part.attributes if sizes[n] > 1) for part in plan.parts]
    pairs = sum(2 ** len(names) for names in varying)
    if pairs > MAX_PAIRS:
        raise TooLargeError(f"weighted marginals: {pairs} residuals of marginals; the limit is {MAX_PAIRS}")
    found: dict[tuple[str, ...], dict[int, float]] = {}
    for place, (part, names) in enumerate(zip(plan.parts, varying, strict=True)):
        cells = math.prod(sizes[name] for name in names)
        for count in range(len(names) + 1):
            for kept in combinations(names, count):
                summed = cells / math.prod(sizes[name] for name in kept)
                found.setdefault(kept, {})[place] = 1.0 / (part.variance * summed)
    return found


def pooled_plan(plan: Plan) -> Plan:
    """Return the ``split`` plan with the same estimates as a ``pooled`` one.

    Parameters
    ----------
    plan : Plan
        Of kind ``pooled``.

    Returns
    -------
    Plan
        One part n I - 11' x ... for each residual; its variance is that of the pooled estimate.

    References
    ----------
    McKenna et al., journal version, section 7 (the marginals algebra); the residual basis is that of
    ResidualPlanner.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.exact import IdentityMatrix
    >>> from matrixdp.plan import Pooled
    >>> domain = mdp.Domain({"a": 2, "b": 3})
    >>> part = Part(("a", "b"), (Block(("a",), IdentityMatrix(2)), Block(("b",), IdentityMatrix(3))), 1.0)
    >>> [part.attributes for part in pooled_plan(Pooled(domain, (part,), "gaussian")).parts]
    [(), ('a',), ('b',), ('a', 'b')]
    """
    parts = []
    for kept, precisions in residual_precisions(plan).items():
        blocks = tuple(Block((name,), CenteredMatrix(plan.domain[name].size)) for name in kept)
        scale = math.prod(plan.domain[name].size ** 2 for name in kept)
        parts.append(Part(kept, blocks, scale / math.fsum(precisions.values())))
    weights = {name: residual_weights(plan.domain[name].size) for name in plan.domain.names}
    return Split(plan.domain, tuple(parts), plan.noise, weights)
