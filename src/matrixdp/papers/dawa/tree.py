"""Stage 2 of DAWA without its noise: GreedyH on the buckets, with integer weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy  # its parts are read when they are first used
from numpy.typing import NDArray

from matrixdp.exact.linear import Array
from matrixdp.papers.greedy_h import greedy_rows

Integers = NDArray[np.int64]

#: Weights are multiples of 2^-14 of the largest.
_BITS = 14


@dataclass(frozen=True, eq=False)
class WeightedTree:
    """A binary tree of intervals of buckets, nodes before their children; each node has an integer weight.

    Attributes
    ----------
    starts, stops : ndarray of int64, shape (m,)
        A node's buckets, from start up to, not including, stop.
    right : ndarray of int64, shape (m,)
        The place of the right child, the left one comes next; 0 for leaves.
    weights : ndarray of int64, shape (m,)
        What the node's sum is multiplied by before it is measured; 0 where it is not measured. Leaves have at
        least 1, so that every bucket is determined.
    """

    starts: Integers
    stops: Integers
    right: Integers
    weights: Integers

    @property
    def sensitivity(self) -> int:
        """The largest sum of weights over a bucket, exact: how far one record moves the answers."""
        edges = np.zeros(int(self.stops[0]) + 1, dtype=np.int64)
        np.add.at(edges, self.starts, self.weights)
        np.subtract.at(edges, self.stops, self.weights)
        return int(np.cumsum(edges).max())

    def answers(self, sums: Integers) -> Integers:
        """Return weight times sum for every node, shape (m,), from the counts of the buckets, shape (k,)."""
        totals = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(sums)])
        return np.asarray(self.weights * (totals[self.stops] - totals[self.starts]))

    def estimate(self, measured: Array) -> Array:
        """Return the least-squares estimates of the buckets, shape (k,), from noisy answers of one variance.

        Notes
        -----
        Two passes: upwards each node's sum is estimated from its subtree by inverse variance; downwards what
        is known from above is shared out to the children by their variances.

        References
        ----------
        Hay, Rastogi, Miklau, Suciu: Boosting the accuracy of differentially private histograms through
        consistency, PVLDB 2010, section 4.1, here with weights.
        """
        weights = self.weights.tolist()
        right = self.right.tolist()
        values = measured.tolist()
        best, variance = [0.0] * len(weights), [0.0] * len(weights)
        for node in range(len(weights) - 1, -1, -1):
            weight = weights[node]
            precision, total = float(weight * weight), float(weight) * values[node] if weight else 0.0
            if right[node]:
                below = variance[node + 1] + variance[right[node]]
                precision += 1.0 / below
                total += (best[node + 1] + best[right[node]]) / below
            best[node], variance[node] = total / precision, 1.0 / precision
        leaves = []
        for node, other in enumerate(right):
            if not other:
                leaves.append(best[node])
                continue
            left = node + 1
            missing = (best[node] - best[left] - best[other]) / (variance[left] + variance[other])
            best[left] += missing * variance[left]
            best[other] += missing * variance[other]
        return np.array(leaves)


def greedy_tree(gram: Array, lengths: Integers) -> WeightedTree:
    """Return GreedyH's tree over buckets for a workload over cells.

    A query that takes part of a bucket takes that share of its count.

    References
    ----------
    Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under differential privacy,
    PVLDB 2014, section 4.

    Examples
    --------
    >>> tree = greedy_tree(np.eye(4), np.array([2, 1, 1]))
    >>> tree.starts, tree.stops, tree.weights
    (array([0, 0, 1, 1, 2]), array([3, 1, 3, 2, 3]), array([    0, 16384,     0, 16384, 16384]))
    >>> tree.estimate(tree.answers(np.array([5, 7, 9])).astype(float))
    array([5., 7., 9.])
    """
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)[:-1]])
    joined = np.add.reduceat(np.add.reduceat(gram, starts, axis=0), starts, axis=1)
    joined /= np.outer(lengths, lengths)
    values, vectors = scipy.linalg.eigh(joined, check_finite=False)
    rows = greedy_rows(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T)
    chosen: dict[tuple[int, int], float] = {}
    for row in rows:
        places = np.flatnonzero(row)
        if len(places):
            chosen[int(places[0]), int(places[-1]) + 1] = float(row[places[0]])
    nodes: list[tuple[int, int]] = []
    right: list[int] = []

    def add(low: int, high: int) -> None:
        place = len(nodes)
        nodes.append((low, high))
        right.append(0)
        if high - low > 1:
            middle = low + (high - low) // 2
            add(low, middle)
            right[place] = len(nodes)
            add(middle, high)

    add(0, len(lengths))
    weights = [max(int(chosen.get(node, 0.0) * 2**_BITS), int(node[1] - node[0] == 1)) for node in nodes]
    bounds = np.array(nodes, dtype=np.int64)
    return WeightedTree(
        bounds[:, 0], bounds[:, 1], np.array(right, dtype=np.int64), np.array(weights, dtype=np.int64)
    )
