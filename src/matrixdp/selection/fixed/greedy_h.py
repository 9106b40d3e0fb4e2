"""GreedyH: a binary tree of intervals whose weights follow the workload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from matrixdp.noise import Noise
from matrixdp.queries import Workload
from matrixdp.selection.fixed.products import Choice, axis_gram, numeric_product
from matrixdp.selection.options import Options
from matrixdp.selection.table import Mechanism, register

__all__ = ["greedy_rows", "select_greedy_h"]

Array = NDArray[np.float64]

#: Shares of a node's budget that are tried: multiples of 1 / 100.
_STEPS = 100


@dataclass(frozen=True, eq=False)
class _Subtree:
    """A weighted tree on an interval, of sensitivity 1.

    Attributes
    ----------
    rows : ndarray, shape (m, n)
    covariance : ndarray, shape (n, n)
        Of the estimates of its cells at noise variance 1.
    error : float
        That of the queries within the interval, as the greedy step estimates it.
    spread : float
        Squared norm of the queries applied to the row sums of ``covariance``.
    """

    rows: Array
    covariance: Array
    error: float
    spread: float


def greedy_rows(queries: Array) -> Array:
    """Return the weighted intervals that GreedyH chooses, from the leaves to the root.

    At a node, a share 1 - p of the budget goes to its own interval and p to both subtrees, whose weights
    are fixed by then. The estimated error is that of the queries inside the node, where the share of a query
    that cuts across the two halves counts by 2^(-depth / 2): rows further up will serve it too.

    Parameters
    ----------
    queries : ndarray, shape (q, n)
        What is asked. McKenna et al. give the Gram matrix here: then their figures follow to the printed
        digits.

    Returns
    -------
    ndarray, shape (m, n)
        The weights of the rows over each column add up to 1.

    References
    ----------
    Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under differential
    privacy, PVLDB 2014, section 4.

    Examples
    --------
    >>> greedy_rows(np.eye(2)).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> greedy_rows(np.array([[1.0, 1.0]])).round(2).tolist()  # nothing but the total is asked
    [[0.99, 0.99], [0.01, 0.0], [0.0, 0.01]]
    """

    def solve(low: int, high: int, depth: int) -> _Subtree:
        if high - low == 1:
            spread = float(queries[:, low] @ queries[:, low])
            return _Subtree(np.ones((1, 1)), np.ones((1, 1)), spread, spread)
        middle = low + (high - low) // 2
        left, right = solve(low, middle, depth + 1), solve(middle, high, depth + 1)
        covariance = scipy.linalg.block_diag(left.covariance, right.covariance)
        sums = covariance.sum(axis=0)
        total = float(sums.sum())
        within = left.spread + right.spread
        image = queries[:, low:high] @ sums
        across = float(image @ image) - within
        decay = 2.0 ** (-depth / 2.0)
        below = np.arange(_STEPS, 0, -1) / _STEPS
        own = (1.0 - below) ** 2 * decay
        gain = (across * decay + within) * own / (below**2 + own * total)
        errors = (left.error + right.error - gain) / below**2
        best = int(np.argmin(errors))
        p = float(below[best])
        square = (1.0 - p) ** 2
        covariance = (covariance - square / (p * p + total * square) * np.outer(sums, sums)) / (p * p)
        rows = p * scipy.linalg.block_diag(left.rows, right.rows)
        if p < 1.0:
            rows = np.vstack([np.full((1, high - low), 1.0 - p), rows])
        image = queries[:, low:high] @ covariance.sum(axis=0)
        return _Subtree(rows, covariance, float(errors[best]), float(image @ image))

    return solve(0, queries.shape[1], 0).rows


def select_greedy_h(workload: Workload, noise: Noise) -> Choice:
    """Select GreedyH: binary trees on numeric attributes with greedily chosen weights.

    Parameters
    ----------
    workload : Workload
    noise : Noise
        The weights are those for Laplace noise in either case.

    Returns
    -------
    plan : Plan
        One product; categorical attributes are measured value by value.
    certificate : Certificate
        Without a bound.

    Raises
    ------
    TooLargeError
        If the table has too many cells, or a numeric attribute too many values.

    References
    ----------
    Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under differential
    privacy, PVLDB 2014, section 4.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> from matrixdp.noise import LAPLACE
    >>> workload = mdp.Workload(mdp.Domain({"a": range(64)}), mdp.product(a="range"))
    >>> _, certificate = select_greedy_h(workload, LAPLACE)
    >>> round((certificate.loss / workload.queries) ** 0.5, 2)  # McKenna et al. 2018, Table 4
    6.34
    """
    return numeric_product(
        workload, noise, "greedy-h", lambda terms, axis: greedy_rows(axis_gram(terms, axis))
    )


register(
    Mechanism(
        "greedy-h",
        "Li et al. 2014: binary trees with greedy weights",
        (1, 2),
        Options,
        lambda task: select_greedy_h(task.workload, task.noise),
    )
)
