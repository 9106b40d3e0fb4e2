"""Stage 1 of DAWA without its noise: what a bucket costs, and the partition that costs least.

Buckets are intervals of cells whose length is a power of two. Costs are exact: integers over a power of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError

Integers = NDArray[np.int64]

#: By how much one record more or less changes the cost of a bucket, at most; see `deviations`.
COST_SENSITIVITY = 2

_CHUNK = 1 << 22


@dataclass(frozen=True, eq=False)
class Partition:
    """Cells in order, cut into buckets: b holds those from ``edges[b]`` up to ``edges[b + 1]``, not included.

    Examples
    --------
    >>> partition = Partition(np.array([0, 2, 3]))
    >>> partition.buckets, partition.sums(np.array([1, 2, 3])), partition.spread(np.array([6.0, 5.0]))
    (2, array([3, 3]), array([3., 3., 5.]))
    """

    edges: Integers

    def __post_init__(self) -> None:
        if (
            self.edges.ndim != 1
            or len(self.edges) < 2
            or self.edges[0] != 0
            or (np.diff(self.edges) < 1).any()
        ):
            raise NumericalError("the edges of a partition start at 0 and increase")

    @property
    def buckets(self) -> int:
        """The number of buckets, k."""
        return len(self.edges) - 1

    @property
    def lengths(self) -> Integers:
        """The number of cells of each bucket, shape (k,)."""
        return np.diff(self.edges)

    def sums(self, counts: Integers) -> Integers:
        """Return the count of each bucket, shape (k,), from those of the cells, shape (n,)."""
        return np.asarray(np.add.reduceat(counts, self.edges[:-1]), dtype=np.int64)

    def spread(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the counts of buckets, shape (k,), spread evenly over their cells, shape (n,)."""
        return np.asarray(np.repeat(sums / self.lengths, self.lengths))


def bucket_lengths(cells: int) -> list[int]:
    """Return the lengths that buckets may have: the powers of two up to the number of cells.

    Examples
    --------
    >>> bucket_lengths(5)
    [1, 2, 4]
    """
    return [1 << power for power in range(cells.bit_length())]


def deviations(counts: Integers, length: int) -> Integers:
    """Return the costs of all buckets of one length, times that length, exactly.

    The cost of a bucket I of m cells is dev(I) = sum over j in I of |x_j - mean_I|, and m dev(I) is the
    integer sum of |m x_j - sum_I|. n^2 times the largest count must stay below 2^63.

    Notes
    -----
    One record more or less changes dev(I) by at most 2 - 2/m, which is below `COST_SENSITIVITY`. Proof: let
    x' have one record more than x, in cell j. If j is not in I nothing changes. Else the mean grows by 1/m,
    so x_j - mean changes by 1 - 1/m, and x_i - mean by -1/m for each of the m - 1 other cells i. By the
    triangle inequality the sum of absolute values changes by at most (1 - 1/m) + (m - 1)/m = 2 - 2/m. It is
    attained: the cost of an empty table is 0, and one record makes it 2 - 2/m.

    References
    ----------
    Li, Hay, Miklau, Wang: A data- and workload-aware algorithm for range queries under differential privacy,
    PVLDB 2014, section 3 (the cost of a bucket).

    Examples
    --------
    >>> deviations(np.array([0, 0, 4, 4]), 2).tolist()  # 0, 4 and 0, times 2
    [0, 8, 0]
    """
    cells = len(counts)
    sums = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
    totals = sums[length:] - sums[:-length]
    windows = np.lib.stride_tricks.sliding_window_view(counts, length)
    result = np.empty(cells - length + 1, dtype=np.int64)
    step = max(1, _CHUNK // length)
    for start in range(0, len(result), step):
        part = slice(start, start + step)
        result[part] = np.abs(length * windows[part] - totals[part, None]).sum(axis=1)
    return result


def least_cost_partition(costs: Sequence[Integers]) -> Partition:
    """Return the partition into buckets whose costs add up to the least.

    Notes
    -----
    Integers, so that sums are exact. Among partitions of equal cost the one with the shortest last bucket is
    taken, then the one with the shortest last but one, and so on: an order that does not depend on the costs,
    which the proof of privacy needs (`matrixdp.papers.dawa.dawa`).

    Examples
    --------
    >>> exact = np.array([0, 0, 4, 4])
    >>> costs = [deviations(exact, length) // length + 1 for length in bucket_lengths(4)]
    >>> least_cost_partition(costs).edges
    array([0, 2, 4])
    """
    cells = len(costs[0])
    lists = [cost.tolist() for cost in costs]
    best = [0] * (cells + 1)
    last = [0] * (cells + 1)
    for end in range(1, cells + 1):
        least: int | None = None
        for power, listed in enumerate(lists):
            start = end - (1 << power)
            if start < 0:
                break
            total = best[start] + listed[start]
            if least is None or total < least:
                least, last[end] = total, start
        assert least is not None
        best[end] = least
    edges = [cells]
    while edges[-1] > 0:
        edges.append(last[edges[-1]])
    return Partition(np.array(edges[::-1], dtype=np.int64))
