"""A lower bound on the loss of every Gaussian strategy, for a workload alone."""

from __future__ import annotations

from matrixdp.errors import TooLargeError
from matrixdp.noise import GAUSSIAN
from matrixdp.queries import Workload
from matrixdp.selection.bounds.decomposed import decomposition_bound, within_reach
from matrixdp.selection.compose.decomposition import solve_decomposition
from matrixdp.selection.problem.residuals import split_workload

__all__ = ["product_bound"]

#: The relative gap of the sub-workloads whose solutions prove the bound.
_GAP = 1e-4


def product_bound(workload: Workload, certify: bool = False) -> tuple[float, str] | None:
    """Return a lower bound on the weighted loss of every Gaussian strategy at privacy cost 1, and its scope.

    Twice that is one for Laplace noise. None where the workload is too large; see `decomposition_bound`.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"a": 3, "b": 4}), mdp.marginals(1))
    >>> round(product_bound(workload)[0], 6), product_bound(workload)[1]
    (11.68589, 'every Gaussian strategy')
    """
    try:
        if not within_reach(split_workload(workload)):
            return None
        bound = decomposition_bound(*solve_decomposition(workload, _GAP), certify)
    except TooLargeError:
        return None
    return None if bound is None else (bound, f"every {GAUSSIAN.title} strategy")
