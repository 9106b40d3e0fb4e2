"""OPT_M: a strategy of weighted marginals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.noise import Noise
from matrixdp.plan import Block, Part, Plan, Pooled
from matrixdp.queries import DenseGroup, ProductGroup, Workload
from matrixdp.selection.problem.kron_sum import KronSum
from matrixdp.selection.problem.residual_traces import marginal_spectrum
from matrixdp.selection.selection import Certificate
from matrixdp.selection.weights.convex import convex_weights, lower_bound
from matrixdp.selection.weights.incidence import Subset, weight_problem
from matrixdp.selection.weights.search import laplace_shares

__all__ = [
    "MAX_COUNTED_CELLS",
    "MAX_MARGINAL_CELLS",
    "check_cells",
    "marginals_plan",
    "select_marginals",
]

Array = NDArray[np.float64]
Progress = Callable[[str, float | None], None]

#: Larger marginals are measured only if the workload asks for them.
MAX_MARGINAL_CELLS = 10_000_000
#: No marginal of more cells is counted.
MAX_COUNTED_CELLS = 100_000_000


def marginals_plan(
    workload: Workload,
    attributes: Sequence[str],
    marginals: Sequence[Subset],
    precisions: Array,
    noise: Noise,
) -> Plan:
    """Return the plan that measures marginals with given precisions, those of precision 0 left out."""
    parts = []
    for marginal, precision in zip(marginals, precisions, strict=True):
        if precision > 0:
            names = tuple(attributes[axis] for axis in marginal)
            blocks = tuple(Block((name,), IdentityMatrix(workload.domain[name].size)) for name in names)
            parts.append(Part(names, blocks, noise.variance_factor / float(precision)))
    return Pooled(workload.domain, tuple(parts), noise)


def select_marginals(
    workload: Workload,
    noise: Noise,
    *,
    seed: int = 0,
    restarts: int = 10,
    max_cells: int = MAX_MARGINAL_CELLS,
    progress: Progress | None = None,
) -> tuple[Plan, Certificate]:
    """Select the best weights of measured marginals.

    What is weighted are the marginals on the downward closure of what is asked and, as far as they are few,
    larger ones: any number of attributes will do. Under Gaussian noise the problem is convex and solved to a
    certified gap; under Laplace noise supports are searched by covers and moves.

    References
    ----------
    McKenna et al. 2018, section 6.3 (OPT_M); journal version, section 7.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"a": 2, "b": 5, "c": 50, "d": 100})
    >>> _, certificate = select_marginals(mdp.Workload(domain, mdp.marginals(2)), LAPLACE)
    >>> certificate.loss / 2 < 62_886.5  # McKenna et al., Table 3
    True
    """
    if progress is not None:
        progress("weighting marginals", None)
    check_cells(workload)
    spectrum = marginal_spectrum(workload)
    sizes = spectrum.sizes

    def allowed(marginal: Subset) -> bool:
        return math.prod(sizes[axis] for axis in marginal) <= max_cells

    root = {1: 3, 2: 2}[noise.norm]
    problem = weight_problem(spectrum.residuals, spectrum.weights, sizes, allowed, root)
    factor = noise.variance_factor
    scope = "no bound on all strategies"
    if noise.norm == 2:
        precisions = convex_weights(problem, spectrum.dimensions)
        loss = problem.loss(precisions)
        gap = loss / lower_bound(problem, precisions) - 1.0
        scope = f"no bound on all strategies; within {max(gap, 0.0):.1e} of the best weighted marginals"
        if len(problem.scales) < 2 ** len(sizes):
            scope += f" of the {len(problem.scales):,} considered"
    else:
        found = laplace_shares(problem, spectrum.dimensions, seed=seed, restarts=restarts)
        loss, precisions = found.loss, found.shares**2
    plan = marginals_plan(workload, spectrum.attributes, problem.incidence.marginals, precisions, noise)
    return plan, Certificate(factor * loss, None, scope)


def check_cells(workload: Workload) -> None:
    """Refuse asked marginals of more cells than are counted."""
    asked = set(KronSum.of(workload.domain, workload.groups).attributes)
    largest = max(
        math.prod(
            float(size)
            for name, size in zip(group.attributes, group.sizes, strict=True)
            if name in asked and (isinstance(group, DenseGroup) or _varies(group, name))
        )
        for group in workload
    )
    if largest > MAX_COUNTED_CELLS:
        raise TooLargeError(
            f"weighted marginals: the workload asks about a marginal of {largest:.3g} cells; the limit is "
            f"{MAX_COUNTED_CELLS:,}. Use residual, or ask about fewer attributes together"
        )


def _varies(group: ProductGroup, name: str) -> bool:
    """Return whether a group asks more of an attribute than its total."""
    place = group.attributes.index(name)
    symmetric = group.predicates[place].symmetric(group.sizes[place])
    return symmetric is None or symmetric[0] > 0
