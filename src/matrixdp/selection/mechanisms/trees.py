"""Trees of intervals: H2 and HB, and the quadtree of two attributes."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.selection.compose.whole_table import product_choice
from matrixdp.selection.mechanisms.explicit import factor_of
from matrixdp.selection.mechanisms.options import Options
from matrixdp.selection.mechanisms.products import NO_BOUND, Choice, numeric_mechanism
from matrixdp.selection.mechanisms.table import Mechanism, Task, register
from matrixdp.selection.view.marginal_spectrum import asked_attributes
from matrixdp.selection.view.product_terms import MAX_AXIS_CELLS
from matrixdp.selection.view.table_shape import joint_gram

__all__ = ["best_branching", "quadtree_rows", "tree_rows"]

Array = NDArray[np.float64]


def tree_rows(size: int, branching: int, *, root: bool) -> Array:
    """Return the intervals of a tree: every node has up to ``branching`` children of nearly equal length.

    References
    ----------
    Hay, Rastogi, Miklau, Suciu: Boosting the accuracy of differentially private histograms through
    consistency, PVLDB 2010, section 4.

    Examples
    --------
    >>> tree_rows(3, 2, root=True).astype(int).tolist()
    [[1, 1, 1], [1, 0, 0], [0, 1, 1], [0, 1, 0], [0, 0, 1]]
    """
    intervals: list[tuple[int, int]] = []
    level = [(0, size)]
    while level:
        intervals += level
        children = []
        for low, high in level:
            if high - low > 1:
                edges = np.linspace(low, high, min(branching, high - low) + 1).astype(int).tolist()
                children += list(itertools.pairwise(edges))
        level = children
    if not root and size > 1:
        intervals = intervals[1:]
    rows = np.zeros((len(intervals), size))
    for row, (low, high) in zip(rows, intervals, strict=True):
        row[low:high] = 1.0
    return rows


def best_branching(size: int) -> int:
    """Return the branching that HB takes: the b that minimizes (b - 1) h^3 - 2 (b + 1) h^2 / 3.

    h = ceil(log_b n) is the height of the tree, its root not counted. The expression is the average
    variance of all ranges, up to a factor.

    References
    ----------
    Qardaji, Yang, Li: Understanding hierarchical methods for differentially private histograms, PVLDB
    2013, section 3.3 (with constrained inference).

    Examples
    --------
    >>> [best_branching(size) for size in (64, 256, 1024)]  # 64: one level, the identity
    [64, 16, 32]
    """

    def variance(branching: int) -> float:
        height, reached = 0, 1
        while reached < size:
            reached *= branching
            height += 1
        return (branching - 1) * height**3 - 2.0 * (branching + 1) * height**2 / 3.0

    return min(range(2, max(size, 2) + 1), key=variance)


def quadtree_rows(height: int, width: int) -> Array:
    """Return the rectangles of a quadtree over a grid, shape (m, height * width), row-major cells.

    Every node is divided in the middle of both sides; a side of length 1 stays.

    Examples
    --------
    >>> quadtree_rows(2, 2).astype(int).tolist()
    [[1, 1, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    rectangles: list[tuple[int, int, int, int]] = []
    level = [(0, height, 0, width)]
    while level:
        rectangles += level
        children = []
        for top, bottom, left, right in level:
            if bottom - top == 1 and right - left == 1:
                continue
            children += [
                (*vertical, *horizontal)
                for vertical in _halves(top, bottom)
                for horizontal in _halves(left, right)
            ]
        level = children
    rows = np.zeros((len(rectangles), height, width))
    for row, (top, bottom, left, right) in zip(rows, rectangles, strict=True):
        row[top:bottom, left:right] = 1.0
    return rows.reshape(len(rows), height * width)


def _halves(low: int, high: int) -> list[tuple[int, int]]:
    if high - low == 1:
        return [(low, high)]
    middle = (low + high) // 2
    return [(low, middle), (middle, high)]


def _quadtree(task: Task[Options]) -> Choice:
    """Select the quadtree over two attributes, all levels measured alike.

    References
    ----------
    Cormode, Procopiuc, Srivastava, Shen, Yu: Differentially private spatial decompositions, ICDE 2012,
    section 3.3 (with uniform budgets) and section 5 (least squares over the tree).
    """
    workload, noise = task.workload, task.noise
    names = asked_attributes(workload)
    if len(names) != 2:
        raise WorkloadError(
            f"quadtree: the workload asks about {len(names)} attributes; expected 2. Use hb or hierarchical, "
            "which multiply trees of single attributes"
        )
    sizes = [workload.domain[name].size for name in names]
    if sizes[0] * sizes[1] > MAX_AXIS_CELLS:
        raise TooLargeError(
            f"quadtree: {' x '.join(names)} has {sizes[0] * sizes[1]} cells; the limit is {MAX_AXIS_CELLS}. "
            "Use hb or hierarchical"
        )
    factor = factor_of(quadtree_rows(*sizes), joint_gram(workload, names), noise)
    return product_choice(workload, noise, [(names, factor)], NO_BOUND)


numeric_mechanism(
    "hierarchical",
    "Hay et al. 2010: binary trees (H2)",
    lambda terms, axis: tree_rows(terms.sizes[axis], 2, root=True),
)
numeric_mechanism(
    "hb",
    "Qardaji et al. 2013: trees of the best branching",
    lambda terms, axis: tree_rows(terms.sizes[axis], best_branching(terms.sizes[axis]), root=False),
)
register(
    Mechanism("quadtree", "Cormode et al. 2012: a quadtree over two attributes", (1, 2), Options, _quadtree)
)
