"""Query groups: a product of predicate sets over some attributes, or explicit queries over a few."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from matrixdp.errors import TooLargeError, WorkloadError, within
from matrixdp.forms import describe_value, number
from matrixdp.queries.arrays import MAX_EXPLICIT_ENTRIES, Array, real_array
from matrixdp.queries.predicates import Predicates
from matrixdp.queries.rows import AbsoluteDifferences, MatrixRows, Rows, Sums, WrittenRows

__all__ = [
    "MAX_EXPLICIT_ENTRIES",
    "WEIGHT",
    "AbsoluteDifferences",
    "DenseGroup",
    "Group",
    "MatrixRows",
    "ProductGroup",
    "Rows",
    "Sums",
    "WrittenRows",
    "check_weights",
]


WEIGHT = number("a finite number above 0", above=0)
"""What the variance of queries is multiplied with in the objective."""


def check_weights(
    weight: object, query_weights: object, queries: int | None = None
) -> tuple[float, Array | None]:
    """Return the weight of a group and those of its queries, each and their products finite and above 0.

    Parameters
    ----------
    weight : float
        The weight of the group.
    query_weights : array of float, optional
        One more factor for each query; returned flat and read-only.
    queries : int, optional
        The number of queries of the group, where it is known.

    Raises
    ------
    WorkloadError
        If they are not; at ``weight`` or ``weights``.

    Examples
    --------
    >>> check_weights(2, [1, 3], 2)
    (2.0, array([1., 3.]))
    """
    factor = WEIGHT.accept(weight)
    if factor is None:
        raise WorkloadError.at(("weight",), describe_value(weight), WEIGHT.expected)
    if query_weights is None:
        return factor, None
    array = real_array(query_weights, "weights").ravel()
    if queries is not None and array.size != queries:
        expected = f"{queries}, one for each query of the group"
        raise WorkloadError.at(("weights",), f"{array.size} weights", expected)
    if not (np.isfinite(array) & (array > 0)).all():
        found, expected = "a weight that is 0, negative or not finite", "numbers above 0, one for each query"
        raise WorkloadError.at(("weights",), found, expected)
    with np.errstate(over="ignore", under="ignore"):
        joint = array * factor
    if not (np.isfinite(joint).all() and (joint > 0).all()):
        found = "a weight that overflows or vanishes with `weight`"
        raise WorkloadError.at(("weights",), found, "numbers within range")
    array.setflags(write=False)
    return factor, array


@dataclass(frozen=True, eq=False)
class ProductGroup:
    """Every combination of one predicate from each attribute's set; other attributes are totals.

    Parameters
    ----------
    name : str
        What the group is called in tables.
    attributes : tuple of str
        In domain order; empty for the single total.
    predicates : tuple of Predicates
        One set for each attribute.
    sizes : tuple of int
        The attributes' sizes.
    weight : float
        Multiplies the variance of the queries in the objective.
    query_weights : ndarray, optional
        One more factor for each query, row-major over the attributes.

    Raises
    ------
    WorkloadError
        If a predicate set does not fit its attribute, or a weight is wrong (see `check_weights`).

    Examples
    --------
    >>> from matrixdp.queries.predicates import Identity, Prefix
    >>> group = ProductGroup("age by sex", ("sex", "age"), (Identity(), Prefix()), (2, 115))
    >>> group.counts, group.queries
    ((2, 115), 230)
    """

    name: str
    attributes: tuple[str, ...]
    predicates: tuple[Predicates, ...]
    sizes: tuple[int, ...]
    weight: float = 1.0
    query_weights: Array | None = None

    def __post_init__(self) -> None:
        for attribute, predicates, size in zip(self.attributes, self.predicates, self.sizes, strict=True):
            try:
                predicates.check(size)
            except WorkloadError as error:
                raise WorkloadError(f"{self.name}: {attribute}: {error}") from None
        with within(self.name):
            weight, weights = check_weights(self.weight, self.query_weights, self.queries)
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "query_weights", weights)

    @cached_property
    def sets(self) -> dict[str, Predicates]:
        """The predicate set of each attribute."""
        return dict(zip(self.attributes, self.predicates, strict=True))

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of predicates on each attribute."""
        return tuple(p.count(n) for p, n in zip(self.predicates, self.sizes, strict=True))

    @cached_property
    def queries(self) -> int:
        """The number of queries."""
        return math.prod(self.counts)

    @cached_property
    def asks(self) -> bool:
        """Whether a query is not zero."""
        pairs = zip(self.predicates, self.sizes, strict=True)
        return all(bool(predicates.squares(size).any()) for predicates, size in pairs)

    def key(self) -> Hashable:
        """Return a value equal for groups that ask the same of attributes of the same sizes."""
        return tuple(p.key(n) for p, n in zip(self.predicates, self.sizes, strict=True))

    def answers(self, marginal: Array) -> Array:
        """Return the queries' answers on a marginal of shape ``sizes``, in the shape of ``counts``."""
        for axis, predicates in enumerate(self.predicates):
            moved = np.moveaxis(marginal, axis, 0)
            out = predicates.apply(np.ascontiguousarray(moved).reshape(moved.shape[0], -1))
            marginal = np.moveaxis(out.reshape(out.shape[0], *moved.shape[1:]), 0, axis)
        return marginal

    def rows(self) -> Array:
        """Return the queries as a dense matrix over the cells of the attributes, row-major."""
        cells = math.prod(self.sizes)
        if self.queries * cells > MAX_EXPLICIT_ENTRIES:
            raise TooLargeError(
                f"{self.name}: {self.queries} queries over {cells} cells would be written out; the limit is "
                f"{MAX_EXPLICIT_ENTRIES} entries. Use fewer attributes, or a weight for the whole group."
            )
        rows: Array = np.ones((1, 1))
        for predicates, size in zip(self.predicates, self.sizes, strict=True):
            rows = np.asarray(np.kron(rows, predicates.rows(size)), dtype=float)
        return rows


@dataclass(frozen=True, eq=False)
class DenseGroup:
    """Explicit queries over the cells of a few attributes, in domain order.

    Parameters
    ----------
    name : str
        What the group is called in tables.
    attributes : tuple of str
        In domain order.
    content : Rows
        The queries.
    sizes : tuple of int
        The attributes' sizes.
    weight : float
        Multiplies the variance of the queries in the objective.
    query_weights : ndarray, optional
        One more factor for each query.

    Raises
    ------
    WorkloadError
        If the queries do not fit the cells, or a weight is wrong (see `check_weights`).
    TooLargeError
        If the queries over the cells are more than `MAX_EXPLICIT_ENTRIES` numbers.

    Examples
    --------
    >>> DenseGroup("sums", ("age", "hours"), Sums((3, 4)), (3, 4)).queries
    6
    """

    name: str
    attributes: tuple[str, ...]
    content: Rows
    sizes: tuple[int, ...]
    weight: float = 1.0
    query_weights: Array | None = None

    def __post_init__(self) -> None:
        cells = math.prod(self.sizes)
        if self.queries * cells > MAX_EXPLICIT_ENTRIES and not self.summands:
            raise TooLargeError(
                f"{self.name}: {self.queries} explicit queries over {cells} cells; the limit is "
                f"{MAX_EXPLICIT_ENTRIES} entries"
            )
        if isinstance(self.content, MatrixRows) and self.content.values.shape[1] != cells:
            raise WorkloadError(
                f"{self.name}: dense: found {self.content.values.shape[1]} columns; expected {cells}, "
                f"the cells of {', '.join(self.attributes)}"
            )
        with within(self.name):
            weight, weights = check_weights(self.weight, self.query_weights, self.queries)
        object.__setattr__(self, "weight", weight)
        object.__setattr__(self, "query_weights", weights)

    @property
    def asks(self) -> bool:
        """Whether a query is not zero."""
        return self.content.asks

    @property
    def queries(self) -> int:
        """The number of queries."""
        return self.content.count

    @cached_property
    def summands(self) -> tuple[tuple[float, ProductGroup], ...]:
        """The products that the queries are a signed sum of, in attribute order; empty if not known.

        Examples
        --------
        >>> from matrixdp.queries import Disjunctions, Prefix
        >>> content = Disjunctions((Prefix(), Prefix()), (3, 2))
        >>> group = DenseGroup("a or b", ("a", "b"), content, (3, 2))
        >>> [(sign, product.counts) for sign, product in group.summands]
        [(1.0, (3, 2)), (-1.0, (3, 2))]
        """
        found = self.content.summands
        terms = () if found is None else found.terms
        return tuple((c, ProductGroup(self.name, self.attributes, own, self.sizes)) for c, own in terms)

    def arranged(self, values: Array) -> Array:
        """Return numbers of the shape of the summands' ``counts`` in the order of the queries, flat."""
        found = self.content.summands
        return np.ascontiguousarray(values if found is None else values.transpose(found.order)).ravel()

    def shaped(self, values: Array) -> Array:
        """Return numbers in the order of the queries in the shape of the summands' ``counts``."""
        counts = self.summands[0][1].counts
        order = self.arranged(np.arange(self.queries, dtype=np.float64).reshape(counts)).astype(np.intp)
        tensor = np.empty(self.queries)
        tensor[order] = values
        return tensor.reshape(counts)

    def place(self, index: int) -> int:
        """Return which query of the summands the query at a place is."""
        found = self.content.summands
        if found is None:
            return index
        counts = self.summands[0][1].counts
        positions = np.unravel_index(index, [counts[axis] for axis in found.order])
        own = [int(positions[found.order.index(axis)]) for axis in range(len(counts))]
        return int(np.ravel_multi_index(own, counts))

    def answers(self, marginal: Array) -> Array:
        """Return the queries' answers on a marginal of shape ``sizes``, flat."""
        if not self.summands:
            return np.asarray(self.rows() @ marginal.ravel())
        return self.arranged(np.sum([sign * own.answers(marginal) for sign, own in self.summands], axis=0))

    def key(self) -> Hashable:
        """Return a value equal for groups that ask the same of attributes of the same sizes."""
        return (self.sizes, self.content.key())

    def rows(self) -> Array:
        """Return the queries as a dense matrix over the cells of the attributes, row-major."""
        return self.content.matrix()


Group = ProductGroup | DenseGroup
