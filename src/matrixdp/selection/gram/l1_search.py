"""The sub-solver for Laplace noise: strategies with L1 sensitivity 1 for one Gram matrix.

No convex form is known. A sub-workload takes the best of a p-Identity strategy and of the strategy that is
optimal for Gaussian noise, rescaled to L1 sensitivity 1; the latter is the optimum where there is one query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.exact import IdentityMatrix
from matrixdp.noise import LAPLACE
from matrixdp.selection.gram import DEFAULT_GAP, solve_gram, solve_rows
from matrixdp.selection.gram.factor import Factor, right_inverse
from matrixdp.selection.gram.opt_0 import solve_axis

__all__ = ["MAX_FAST_CELLS", "MAX_SUM_CELLS", "LaplaceSolver", "rescaled"]

Array = NDArray[np.float64]

#: Sub-workloads are solved jointly up to this many cells.
MAX_SUM_CELLS = 400
#: ... and, where they are solved many times, explicit queries up to this many.
MAX_FAST_CELLS = 100


def rescaled(rows: Array, gram: Array) -> Factor:
    """Return a strategy rescaled to L1 sensitivity 1, with its loss on a Gram matrix in its row space.

    Examples
    --------
    >>> rescaled(3.0 * np.eye(2), np.eye(2)).loss
    2.0
    """
    scaled = rows / float(LAPLACE.column_norms(rows).max())
    inverse = right_inverse(scaled)
    return Factor(scaled, float(np.einsum("ia,ia->", inverse, gram @ inverse)))


@dataclass(frozen=True)
class LaplaceSolver:
    """The best strategy found for Laplace noise.

    Attributes
    ----------
    gap : float
        Relative gap of the Gaussian optimum that is tried.
    effort : {"full", "fast"}
    seed : int
        Of the restarts.

    References
    ----------
    McKenna et al. (2018), section 5.2 (OPT_0).

    Examples
    --------
    >>> round(LaplaceSolver().gram(np.array([[1.0, -1.0], [-1.0, 1.0]]), (2,)).loss, 9)
    1.0
    """

    gap: float = DEFAULT_GAP
    effort: str = "full"
    seed: int = 0
    optimal: ClassVar[bool] = False

    def gram(self, gram: Array, sizes: Sequence[int], start: Factor | None = None, /) -> Factor:
        """Solve for a Gram matrix, from the p-Identity strategy of a similar one."""
        peak = float(gram[0, 0])
        if peak > 0.0 and float(np.abs(gram - peak * np.eye(len(gram))).max()) <= 1e-12 * peak:
            return rescaled(np.eye(len(gram)), gram)  # all cells alike
        best = rescaled(solve_gram(gram, sizes, max(self.gap, 1e-5)).rows, gram)
        if len(best.rows) == 1:
            return best  # one query, measured as it is: no strategy of any kind does better
        found = solve_axis(gram, LAPLACE, gap=self.gap, seed=self.seed, start=start, effort=self.effort)
        return found if found.loss < best.loss else best

    def queries(self, rows: Array, sizes: Sequence[int], start: Factor | None = None, /) -> Factor:
        """Solve for explicit queries: as they are, by the Gaussian optimum and, on few cells, as above.

        Examples
        --------
        >>> queries = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
        >>> round(LaplaceSolver().queries(queries, (4,)).loss, 9)
        2.0
        """
        found = [_on_queries(chosen, rows) for chosen in (solve_rows(rows, max(self.gap, 1e-5)).rows, rows)]
        if rows.shape[1] <= (MAX_SUM_CELLS if self.effort == "full" else MAX_FAST_CELLS):
            found.append(LaplaceSolver.gram(self, rows.T @ rows, sizes, start))
        return min(found, key=lambda factor: factor.loss)

    def centered(self, size: int) -> Factor:
        """Return the identity, or the difference of two values.

        The identity has L1 sensitivity 1; centering it would raise that to 2 (n - 1) / n.

        Examples
        --------
        >>> LaplaceSolver().centered(2).loss, LaplaceSolver().centered(5).loss
        (0.5, 4.0)
        """
        if size == 2:
            return Factor(np.array([[1.0, -1.0]]), 0.5)
        return Factor(IdentityMatrix(size), size - 1.0)


def _on_queries(chosen: Array, rows: Array) -> Factor:
    """Return a strategy rescaled to L1 sensitivity 1, with its loss on explicit queries."""
    scaled = chosen / float(LAPLACE.column_norms(chosen).max())
    return Factor(scaled, float(((rows @ right_inverse(scaled)) ** 2).sum()))
