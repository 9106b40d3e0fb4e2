"""Trees of intervals: H2 and HB, and the quadtree of two attributes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact import GridTree, IdentityMatrix, MeasuredMatrix
from matrixdp.exact.linear import Array
from matrixdp.exact.structured import GridCovariance
from matrixdp.mechanisms import (
    LIMITS,
    NO_BOUND,
    Certificate,
    Choice,
    KronSum,
    Mechanism,
    Options,
    Task,
    check_table,
    numeric_mechanism,
    numeric_product,
    option,
    product_blocks,
    register,
)
from matrixdp.plans import Direct

_BUDGETS = ("geometric", "uniform")
#: The integer weight of the root of a quadtree with geometric budgets.
_ROOT = 1 << 12


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
        height = _height(size, branching)
        return (branching - 1) * height**3 - 2.0 * (branching + 1) * height**2 / 3.0

    return min(range(2, max(size, 2) + 1), key=variance)


def best_grid_branching(side: int) -> int:
    """Return the branching that HB takes on both sides of a grid: the b that minimizes b (n - 1) h^2.

    h = ceil(log_b n) for n cells along a side. The expression is the average variance of all rectangles
    before least squares, up to a factor; of several the smallest b is taken.

    References
    ----------
    Qardaji, Yang, Li: Understanding hierarchical methods for differentially private histograms, PVLDB
    2013, section 5.1, as DPBench (Hay et al., SIGMOD 2016) computes it.

    Examples
    --------
    >>> [best_grid_branching(side) for side in (64, 256)]
    [8, 7]
    """
    return min(range(2, max(side, 2) + 1), key=lambda b: b * _height(side, b) ** 2)


def _height(side: int, branching: int) -> int:
    height, reached = 0, 1
    while reached < side:
        reached *= branching
        height += 1
    return height


@dataclass(frozen=True)
class Leveled(Options):
    """Of the quadtree."""

    budgets: str = option(
        "geometric", "how the levels share the privacy cost: more for smaller cells, or alike", _BUDGETS
    )


def _grid_tree(task: Task[Any], mechanism: str, names: Sequence[str], tree: GridTree) -> Choice:
    """Return the plan that measures a tree over two attributes, and every cell of the others."""
    workload, noise = task.workload, task.noise
    terms = KronSum.of(workload.domain, workload.groups)
    check_table(workload, terms.attributes, mechanism)
    matrices: list[tuple[tuple[str, ...], MeasuredMatrix]] = [(tuple(names), tree)]
    others = [name for name in terms.attributes if name not in names]
    matrices += [((name,), IdentityMatrix(workload.domain[name].size)) for name in others]
    plan = Direct.of(workload.domain, product_blocks(workload.domain, matrices), noise)
    loss = _grid_loss(terms, [terms.attributes.index(name) for name in names], tree.structure)
    scale = noise.variance_factor * float(tree.column_power_sum(noise.norm)) ** (2.0 / noise.norm)
    return plan, Certificate(scale * loss, None, NO_BOUND)


def _grid_loss(terms: KronSum, axes: Sequence[int], form: GridCovariance) -> float:
    """Return the error with noise of variance 1 of a tree over two axes and identities on the others."""
    known: dict[tuple[Hashable, ...], float] = {}
    total = []
    for weight, keys in terms.products:
        own = tuple(keys[axis] for axis in axes)
        if own not in known:
            first, second = (terms.gram(axis, key) for axis, key in zip(axes, own, strict=True))
            known[own] = form.trace(first, second)
        rest = [terms.trace(axis, key, 1.0) for axis, key in enumerate(keys) if axis not in axes]
        total.append(weight * known[own] * math.prod(rest))
    for weight, places, rows in terms.explicit:
        tensor = np.expand_dims(rows, [axis + 1 for axis in range(len(terms.sizes)) if axis not in places])
        tensor = np.broadcast_to(tensor, (len(rows), *terms.sizes))
        flat = np.moveaxis(tensor, [axis + 1 for axis in axes], (0, 1)).reshape(
            terms.sizes[axes[0]] * terms.sizes[axes[1]], -1
        )
        total.append(weight * float(np.vdot(flat, form.times(flat))))
    return math.fsum(total)


def _quadtree(task: Task[Leveled]) -> Choice:
    """Select the quadtree over two attributes.

    Level i from the root has a share of the privacy cost proportional to 2^(i / 3) (geometric budgets), or
    all have the same. Weights are rounded to integers.

    References
    ----------
    Cormode, Procopiuc, Srivastava, Shen, Yu: Differentially private spatial decompositions, ICDE 2012,
    section 4 (geometric budgets) and section 5 (least squares over the tree).
    """
    names = KronSum.of(task.workload.domain, task.workload.groups).attributes
    if len(names) != 2:
        raise WorkloadError(
            f"quadtree: the workload asks about {len(names)} attributes; expected 2. Use hb-product or "
            "hierarchical, which multiply trees of single attributes"
        )
    sizes = _sides(task, names, "quadtree")
    levels = range(_height(max(sizes), 2) + 1)
    geometric = task.options.budgets == "geometric"
    weights = [round(_ROOT * 2.0 ** (level / 3.0)) if geometric else 1 for level in levels]
    return _grid_tree(task, "quadtree", names, GridTree(sizes, 2, tuple(weights)))


def _sides(task: Task[Any], names: Sequence[str], mechanism: str) -> tuple[int, int]:
    """Return the cells along two attributes, whose covariances are written out."""
    first, second = (task.workload.domain[name].size for name in names)
    if max(first, second) > LIMITS.axis_cells:
        raise TooLargeError(
            f"{mechanism}: {' x '.join(names)} has {first} x {second} cells; the limit is "
            f"{LIMITS.axis_cells} along each side. Use coarser bins, or identity"
        )
    return first, second


def _hb(task: Task[Options]) -> Choice:
    """Select HB: the tree of the best branching over one numeric attribute, or over the grid of two.

    The root is not measured; every cell of the other attributes is.

    References
    ----------
    Qardaji, Yang, Li 2013, sections 3.3 and 5.1.
    """
    domain = task.workload.domain
    asked = KronSum.of(domain, task.workload.groups).attributes
    names = [name for name in asked if domain[name].numeric]
    if len(names) > 2:
        raise WorkloadError(
            f"hb: the workload asks about {len(names)} numeric attributes; expected 1 or 2. Use hb-product, "
            "which multiplies the trees of single attributes"
        )
    if len(names) < 2:
        return numeric_product(task, "hb", _hb_rows)
    sizes = _sides(task, names, "hb")
    branching = best_grid_branching(max(sizes))
    weights = [1] * (_height(max(sizes), branching) + 1)
    if len(weights) > 1:
        weights[0] = 0
    return _grid_tree(task, "hb", names, GridTree(sizes, branching, tuple(weights)))


def _hb_rows(terms: KronSum, axis: int) -> Array:
    return tree_rows(terms.sizes[axis], best_branching(terms.sizes[axis]), root=False)


numeric_mechanism(
    "hierarchical",
    "Hay et al. 2010: binary trees (H2), multiplied over attributes",
    lambda terms, axis: tree_rows(terms.sizes[axis], 2, root=True),
)
numeric_mechanism("hb-product", "the trees of HB on single attributes, multiplied", _hb_rows)
register(Mechanism("hb", "Qardaji et al. 2013: trees of the best branching", (1, 2), Options, _hb))
register(
    Mechanism("quadtree", "Cormode et al. 2012: a quadtree over two attributes", (1, 2), Leveled, _quadtree)
)
