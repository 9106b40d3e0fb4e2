"""Which method solves a problem on attributes that do not factor: chosen by its sizes, without solving it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from matrixdp.exact.resources import most_cells
from matrixdp.selection.limits import LIMITS, Limits


@dataclass(frozen=True)
class ProblemShape:
    """What the choice of a method sees of a problem.

    Attributes
    ----------
    sizes : tuple of int
        Of its axes: values, or groups of values that no query tells apart.
    products, queries : int
        Kronecker products and explicit queries in its Gram matrix.
    values : int, optional
        Cells over all values, where ``sizes`` count groups of them.
    """

    sizes: tuple[int, ...]
    products: int
    queries: int = 0
    values: int | None = None

    @property
    def cells(self) -> int:
        """The cells of the problem."""
        return math.prod(self.sizes)


@dataclass(frozen=True)
class Method:
    """A way to solve a problem whose attributes do not factor.

    Attributes
    ----------
    name : str
        What certificates and explanations call it.
    optimal : bool
        Whether it finds the optimum, under a noise for which one is known.
    serves : callable
        Whether the method is for problems of this kind, however large.
    excess : callable
        Returns the limit that a problem exceeds, or an empty text where it fits.
    """

    name: str
    optimal: bool
    serves: Callable[[ProblemShape], bool]
    excess: Callable[[ProblemShape, Limits], str]

    def fits(self, shape: ProblemShape, limits: Limits | None = None) -> bool:
        """Return whether the method solves a problem."""
        return self.serves(shape) and not self.excess(shape, limits or LIMITS)


@dataclass(frozen=True)
class Choice:
    """The method for a problem, and why none that stands before it: the limits that it exceeds, by method."""

    method: Method
    passed: dict[str, str]


def _unmeasurable(shape: ProblemShape) -> str:
    """Return which limit of memory a joint strategy exceeds, if any."""
    most = most_cells()
    if shape.cells > most:
        return f"{shape.cells:,} cells; memory allows {most:,}"
    values = min(LIMITS.row_cells, most)
    if shape.values is not None and shape.values > values:
        return f"{shape.values:,} cells of all values; the limit is {values:,}"
    return ""


def _few_queries(shape: ProblemShape) -> bool:
    return not shape.products and 0 < shape.queries < shape.cells


def _excess_of_queries(shape: ProblemShape, limits: Limits) -> str:
    if shape.queries > limits.rows:
        return f"{shape.queries:,} queries; the limit is {limits.rows:,}"
    if shape.cells > limits.row_cells:
        return f"{shape.cells:,} cells; the limit is {limits.row_cells:,}"
    return _unmeasurable(shape)


def _excess_of_cells(shape: ProblemShape, limits: Limits) -> str:
    if shape.cells > limits.joint_cells:
        return f"{shape.cells:,} cells; the limit is {limits.joint_cells:,}"
    # a product over as many values is found much sooner, with hardly more error
    if not shape.queries and shape.values is not None and shape.values > limits.joint_cells:
        return f"{shape.values:,} cells of all values; the limit is {limits.joint_cells:,}"
    return _unmeasurable(shape)


#: In the order in which they are asked: the first that fits is taken.
METHODS = (
    Method("dual by queries", True, _few_queries, _excess_of_queries),
    Method("dual", True, lambda _: True, _excess_of_cells),
    Method("product", False, lambda _: True, lambda *_: ""),
)


def method_for(
    shape: ProblemShape, limits: Limits | None = None, among: Collection[str] | None = None
) -> Choice | None:
    """Return the method for a problem whose attributes do not factor; None where none of some fits.

    Parameters
    ----------
    shape : ProblemShape
    limits : Limits, optional
    among : collection of str, optional
        Names of the methods that may be taken; all where left out.

    Examples
    --------
    >>> [method_for(ProblemShape((size, size), 2)).method.name for size in (40, 50)]
    ['dual', 'product']
    >>> method_for(ProblemShape((50, 50), 2)).passed["dual"]
    '2,500 cells; the limit is 2,000'
    >>> method_for(ProblemShape((50, 50), 2), among=["dual"]) is None
    True
    """
    passed: dict[str, str] = {}
    for method in METHODS:
        if not method.serves(shape) or (among is not None and method.name not in among):
            continue
        if method.fits(shape, limits):
            return Choice(method, passed)
        passed[method.name] = method.excess(shape, limits or LIMITS)
    return None
