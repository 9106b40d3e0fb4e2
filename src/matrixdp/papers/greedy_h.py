"""GreedyH: a binary tree of intervals whose weights follow the workload."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used

from matrixdp.exact.linear import Array
from matrixdp.mechanisms import axis_gram, numeric_mechanism

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
        best = int(np.argmax(errors <= errors.min() * (1 + 1e-12)))  # of equals the first
        p = float(below[best])
        square = (1.0 - p) ** 2
        covariance = (covariance - square / (p * p + total * square) * np.outer(sums, sums)) / (p * p)
        rows = p * scipy.linalg.block_diag(left.rows, right.rows)
        if p < 1.0:
            rows = np.vstack([np.full((1, high - low), 1.0 - p), rows])
        image = queries[:, low:high] @ covariance.sum(axis=0)
        return _Subtree(rows, covariance, float(errors[best]), float(image @ image))

    return solve(0, queries.shape[1], 0).rows


numeric_mechanism(
    "greedy-h",
    "Li et al. 2014: binary trees with greedy weights",
    lambda terms, axis: greedy_rows(axis_gram(terms, axis)),
)
