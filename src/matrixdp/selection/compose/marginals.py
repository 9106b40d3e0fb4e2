"""OPT_M: a strategy of weighted marginals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError
from matrixdp.exact import IdentityMatrix
from matrixdp.exact.subsets import subset_products
from matrixdp.noise import Noise
from matrixdp.plan import Block, Part, Plan, Pooled
from matrixdp.queries import Workload
from matrixdp.selection.compose.marginal_weights import MarginalWeights, solve_marginal_weights
from matrixdp.selection.selection import Certificate
from matrixdp.selection.view.marginal_spectrum import MarginalSpectrum, marginal_spectrum

__all__ = ["MAX_COUNTED_CELLS", "MAX_MARGINAL_CELLS", "marginals_plan", "select_marginals"]

Progress = Callable[[str, float | None], None]

#: Larger marginals are measured only if the workload asks for them.
MAX_MARGINAL_CELLS = 10_000_000
#: No marginal of more cells is counted.
MAX_COUNTED_CELLS = 100_000_000


def marginals_plan(
    workload: Workload, spectrum: MarginalSpectrum, precisions: np.ndarray, noise: Noise
) -> Plan:
    """Return the plan that measures marginals with given precisions."""
    parts = []
    for place in np.argwhere(precisions > 0):
        names = tuple(n for n, member in zip(spectrum.attributes, place, strict=True) if member)
        blocks = tuple(Block((name,), IdentityMatrix(workload.domain[name].size)) for name in names)
        parts.append(Part(names, blocks, noise.variance_factor / float(precisions[tuple(place)])))
    return Pooled(workload.domain, tuple(parts), noise)


def _allowed(spectrum: MarginalSpectrum, max_cells: int) -> NDArray[np.bool_]:
    cells = subset_products([1.0] * len(spectrum.sizes), [float(size) for size in spectrum.sizes])
    asked = spectrum.weights > 0
    largest = float(cells[asked].max())
    if largest > MAX_COUNTED_CELLS:
        raise TooLargeError(
            f"weighted marginals: the workload asks about a marginal of {largest:.3g} cells; the limit is "
            f"{MAX_COUNTED_CELLS:,}. Use residual, or ask about fewer attributes together"
        )
    return np.asarray((cells <= max_cells) | asked)


def select_marginals(
    workload: Workload,
    noise: Noise,
    *,
    seed: int = 0,
    restarts: int = 40,
    max_cells: int = MAX_MARGINAL_CELLS,
    progress: Progress | None = None,
) -> tuple[Plan, Certificate]:
    """Select the best weights of measured marginals.

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
    spectrum = marginal_spectrum(workload)
    found = best_weights(spectrum, noise, max_cells, seed, restarts)
    plan = marginals_plan(workload, spectrum, found.precisions, noise)
    factor = noise.variance_factor
    scope = "no bound on all strategies"
    if found.bound is not None:
        gap = found.loss / found.bound - 1.0
        scope = f"no bound on all strategies; within {max(gap, 0.0):.1e} of the best weighted marginals"
    return plan, Certificate(factor * found.loss, None, scope)


def best_weights(
    spectrum: MarginalSpectrum, noise: Noise, max_cells: int, seed: int, restarts: int
) -> MarginalWeights:
    """Return the best weights of marginals within a limit of cells; see `select_marginals`."""
    allowed = _allowed(spectrum, max_cells)
    return solve_marginal_weights(
        spectrum.weights, spectrum.sizes, noise, allowed, seed=seed, restarts=restarts
    )
