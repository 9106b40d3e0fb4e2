"""Generalized marginals: weighted marginals with one optimized strategy for each attribute."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from matrixdp.noise import Noise
from matrixdp.plan import Plan
from matrixdp.queries import Workload
from matrixdp.selection.compose.marginals import MAX_MARGINAL_CELLS, check_cells
from matrixdp.selection.compose.pooled_products import pooled_products
from matrixdp.selection.problem.residual_traces import ResidualTraces, residual_traces
from matrixdp.selection.selection import Certificate
from matrixdp.selection.weights.generalized import first_generalized, search_generalized
from matrixdp.selection.weights.incidence import Subset

__all__ = ["first_generalized_loss", "select_generalized_marginals"]

Array = NDArray[np.float64]
Progress = Callable[[str, float | None], None]


def _silent(_what: str, _share: float | None) -> None:
    """Tell nobody of the progress."""


def select_generalized_marginals(
    workload: Workload,
    noise: Noise,
    *,
    seed: int = 0,
    restarts: int = 10,
    max_cells: int = MAX_MARGINAL_CELLS,
    progress: Progress = _silent,
) -> tuple[Plan, Certificate]:
    """Select weighted marginals, each measured by the product of its attributes' strategies.

    Which marginals are measured, their shares and the strategy of every attribute (p-Identity under Laplace
    noise) are searched together, for the error of the global least squares of all that is measured.
    Attributes that play the same role share their strategy; those that are asked for identities and totals
    alone keep the identity.

    References
    ----------
    McKenna et al. 2018, sections 5.2 (p-Identity) and 6.3 (weighted marginals), which this joins.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"age": range(32), "sex": ["f", "m"], "race": 4})
    >>> workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))
    >>> plan, certificate = select_generalized_marginals(workload, LAPLACE, restarts=2)
    >>> round(plan.cost, 6), (certificate.loss / workload.queries) ** 0.5 < 14.3
    (1.0, True)
    """
    check_cells(workload)
    asked = residual_traces(workload)
    allowed = _allowed(asked, max_cells)
    found = search_generalized(asked, noise, allowed, seed=seed, restarts=restarts, progress=progress)
    bases: dict[str, Array | None] = {}
    for name, type_ in zip(asked.attributes, asked.types, strict=True):
        rows = found.strategies[type_].rows if type_ in found.strategies else None
        bases[name] = rows if rows is None or type_ not in asked.merged else rows[:, asked.merged[type_]]
    power = 2 // noise.norm
    precisions = {
        tuple(asked.attributes[axis] for axis in marginal): float(share) ** power
        for marginal, share in zip(found.marginals, found.shares, strict=True)
    }
    plan = pooled_products(workload.domain, bases, precisions, noise)
    return plan, Certificate(noise.variance_factor * found.loss, None, "no bound on all strategies")


def first_generalized_loss(workload: Workload, noise: Noise) -> float:
    """Return the loss at cost 1 of a fast trial of `select_generalized_marginals`.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> domain = mdp.Domain({"age": range(32), "sex": ["f", "m"]})
    >>> workload = mdp.Workload(domain, mdp.kway([1, 2], {"numeric": "prefix", "categorical": "identity"}))
    >>> searched = select_generalized_marginals(workload, LAPLACE)[1].loss
    >>> searched <= first_generalized_loss(workload, LAPLACE) < 1.1 * searched
    True
    """
    check_cells(workload)
    asked = residual_traces(workload)
    return noise.variance_factor * first_generalized(asked, noise, _allowed(asked, MAX_MARGINAL_CELLS))


def _allowed(asked: ResidualTraces, max_cells: int) -> Callable[[Subset], bool]:
    """Return whether a marginal that is larger than what is asked may be measured."""
    sizes = asked.sizes
    return lambda marginal: math.prod(sizes[axis] for axis in marginal) <= max_cells
