"""Query groups: a product of predicate sets over some attributes, or explicit queries over a few."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import ClassVar, final

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError, WorkloadError, placed
from matrixdp.exact.linear import along_axes, kronecker
from matrixdp.forms import describe_value, number
from matrixdp.queries.predicates import (
    Array,
    Indicators,
    Predicates,
    Total,
    check_entries,
    content_key,
    explicit_rows,
    real_array,
)
from matrixdp.queries.structured import Complement, Totals

# Explicit queries over the cells of a few attributes: what they are, written out or by their structure.


@final
@dataclass(frozen=True, eq=False)
class Summands:
    """Queries as a signed sum of products of predicate sets.

    Attributes
    ----------
    order : tuple of int
        The place of each attribute, in the order in which the queries run through their predicates.
    terms : tuple of (float, tuple of Predicates)
        For each product its sign and its sets, one for each attribute in their own order. On an attribute all
        products have as many predicates.
    """

    order: tuple[int, ...]
    terms: tuple[tuple[float, tuple[Predicates, ...]], ...]


class Rows(ABC):
    """Explicit queries over the cells of a few attributes."""

    @abstractmethod
    def matrix(self) -> Array:
        """Return the queries, shape (count, cells), row-major cells."""

    @property
    @abstractmethod
    def count(self) -> int:
        """The number of queries."""

    @abstractmethod
    def key(self) -> Hashable:
        """Return a value equal for equal content."""

    @property
    def summands(self) -> Summands | None:
        """The queries as a sum of products, where they are known to be one of a few."""
        return None

    @property
    def asks(self) -> bool:
        """Whether some query is not zero."""
        return bool(self.matrix().any())

    @abstractmethod
    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        """Describe each query."""


@dataclass(frozen=True)
class _Comparisons(Rows):
    """Queries whether what a function makes of two codes is at most c, for c from 0 on."""

    sizes: tuple[int, int]
    _text: ClassVar[str]
    _compared: ClassVar[np.ufunc]

    def matrix(self) -> Array:
        compared = np.abs(self._compared.outer(*map(np.arange, self.sizes))).ravel()
        return np.asarray(compared[None, :] <= np.arange(self.count)[:, None], dtype=float)

    def key(self) -> Hashable:
        return self

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        return [f"{self._text.format(*attributes)} <= {c}" for c in range(self.count)]


@dataclass(frozen=True)
class Sums(_Comparisons):
    """The affine queries code(A) + code(B) <= c, for every c from 0 to n_A + n_B - 2.

    Parameters
    ----------
    sizes : tuple of two int
        The sizes of A and B.

    Examples
    --------
    >>> Sums((2, 2)).matrix()
    array([[1., 0., 0., 0.],
           [1., 1., 1., 0.],
           [1., 1., 1., 1.]])
    """

    _text, _compared = "{} + {}", np.add

    @property
    def count(self) -> int:
        return sum(self.sizes) - 1


@dataclass(frozen=True)
class AbsoluteDifferences(_Comparisons):
    """The queries |code(A) - code(B)| <= c, for every c from 0 to max(n_A, n_B) - 1.

    Parameters
    ----------
    sizes : tuple of two int
        The sizes of A and B.

    Examples
    --------
    >>> AbsoluteDifferences((2, 2)).matrix()
    array([[1., 0., 0., 1.],
           [1., 1., 1., 1.]])
    """

    _text, _compared = "|{} - {}|", np.subtract

    @property
    def count(self) -> int:
        return max(self.sizes)


class WrittenRows(Rows):
    """Queries that are written out, in ``values``."""

    values: Array

    @property
    def count(self) -> int:
        return len(self.values)

    def matrix(self) -> Array:
        return self.values

    @cached_property
    def _key(self) -> str:
        return content_key(self.values)

    def key(self) -> Hashable:
        return self._key


@dataclass(frozen=True, eq=False)
class MatrixRows(WrittenRows):
    """Queries given as a matrix.

    Parameters
    ----------
    values : ndarray
        Shape (count, cells), finite, row-major cells.

    Raises
    ------
    WorkloadError
        If it is not a finite real matrix with at least one row and one column.

    Examples
    --------
    >>> MatrixRows(np.eye(4)).count
    4
    """

    values: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", explicit_rows(self.values, "dense"))

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        return [f"query {row}" for row in range(self.count)]


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
        raise WorkloadError.at(("weight",), describe_value(weight), WEIGHT.expected, code="out-of-range")
    if query_weights is None:
        return factor, None
    array = real_array(query_weights, "weights").ravel()
    if queries is not None and array.size != queries:
        expected = f"{queries}, one for each query of the group"
        raise WorkloadError.at(("weights",), f"{array.size} weights", expected, code="wrong-size")
    if not (np.isfinite(array) & (array > 0)).all():
        found, expected = "a weight that is 0, negative or not finite", "numbers above 0, one for each query"
        raise WorkloadError.at(("weights",), found, expected, code="out-of-range")
    with np.errstate(over="ignore", under="ignore"):
        joint = array * factor
    if not (np.isfinite(joint).all() and (joint > 0).all()):
        found = "a weight that overflows or vanishes with `weight`"
        raise WorkloadError.at(("weights",), found, "numbers within range", code="out-of-range")
    array.setflags(write=False)
    return factor, array


def _keep_weights(group: Group) -> None:
    weights = group.query_weights
    try:
        weight, weights = check_weights(group.weight, weights, None if weights is None else group.queries)
    except WorkloadError as error:
        raise placed(error, group.name) from None
    object.__setattr__(group, "weight", weight)
    object.__setattr__(group, "query_weights", weights)


def _asked(sets: Sequence[Predicates], sizes: Sequence[int]) -> list[bool]:
    """Return for each set whether one of its queries is not zero."""
    return [bool(own.squares(size).any()) for own, size in zip(sets, sizes, strict=True)]


def _rows(sets: Sequence[Predicates], sizes: Sequence[int]) -> list[Array]:
    return [own.rows(size) for own, size in zip(sets, sizes, strict=True)]


def _counts(sets: Sequence[Predicates], sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple([own.count(size) for own, size in zip(sets, sizes, strict=True)])


def _keys(sets: Sequence[Predicates], sizes: Sequence[int]) -> tuple[Hashable, ...]:
    return tuple([own.key(size) for own, size in zip(sets, sizes, strict=True)])


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
            try:  # not `within`: a workload may have a million groups
                predicates.check(size)
            except MatrixDPError as error:
                raise placed(error, self.name, attribute) from None
        _keep_weights(self)

    @cached_property
    def sets(self) -> dict[str, Predicates]:
        """The predicate set of each attribute."""
        return dict(zip(self.attributes, self.predicates, strict=True))

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of predicates on each attribute."""
        return _counts(self.predicates, self.sizes)

    @property
    def queries(self) -> int:
        """The number of queries."""
        return math.prod(self.counts)

    @cached_property
    def asks(self) -> bool:
        """Whether a query is not zero."""
        return all(_asked(self.predicates, self.sizes))

    def key(self) -> Hashable:
        """Return a value equal for groups that ask the same of attributes of the same sizes."""
        return _keys(self.predicates, self.sizes)

    def answers(self, marginal: Array) -> Array:
        """Return the queries' answers on a marginal of shape ``sizes``, in the shape of ``counts``."""
        return along_axes(marginal, (own.apply for own in self.predicates))

    def rows(self) -> Array:
        """Return the queries as a dense matrix over the cells of the attributes, row-major."""
        check_entries(self.name, self.queries, math.prod(self.sizes))
        return kronecker(_rows(self.predicates, self.sizes))


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
        if self.content.summands is None:
            check_entries(self.name, self.queries, cells)
        if isinstance(self.content, MatrixRows) and self.content.values.shape[1] != cells:
            found = f"{self.name}: dense: found {self.content.values.shape[1]} columns"
            raise WorkloadError(f"{found}; expected {cells}, the cells of {', '.join(self.attributes)}")
        _keep_weights(self)

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
        counts, found = self.summands[0][1].counts, self.content.summands
        order = range(len(counts)) if found is None else found.order
        return values.reshape([counts[axis] for axis in order]).transpose(np.argsort(order))

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


def asked_attributes(group: Group) -> tuple[str, ...]:
    """Return the attributes of which a group asks more than the total, in domain order."""
    if isinstance(group, DenseGroup):
        return group.attributes
    return tuple(name for name, own in group.sets.items() if not isinstance(own, Total))


def over(group: Group, names: tuple[str, ...], sizes: tuple[int, ...]) -> Group:
    """Return a group that asks the same, as the total over further attributes."""
    if isinstance(group, ProductGroup):
        sets = tuple(group.sets.get(name, Total()) for name in names)
        return replace(group, attributes=names, predicates=sets, sizes=sizes)
    shape = [size if name in group.attributes else 1 for name, size in zip(names, sizes, strict=True)]
    rows = np.broadcast_to(group.rows().reshape(-1, *shape), (group.queries, *sizes))
    return DenseGroup(group.name, names, MatrixRows(rows.reshape(group.queries, -1)), sizes, group.weight)


def subtracts(group: Group) -> bool:
    """Return whether queries of a group subtract, as differences and sums of distances do.

    Examples
    --------
    >>> from matrixdp.queries.predicates import Changes, Prefix
    >>> subtracts(ProductGroup("g", ("a",), (Prefix(),), (2,)))
    False
    >>> subtracts(ProductGroup("g", ("a",), (Changes(((0, 1),)),), (2,)))
    True
    """
    if isinstance(group, ProductGroup):
        return any(own.subtracts for own in group.predicates)
    rows = group.content.content if isinstance(group.content, ChosenRows) else group.content
    return isinstance(rows, MatrixRows) and bool((rows.values < 0).any())


# Explicit queries over merged attributes, each asked within every predicate of further attributes.


@dataclass(frozen=True)
class Crossed(Rows):
    """The product of explicit queries over merged attributes and predicate sets on others.

    The merged attributes behave like one attribute, whose predicates are the explicit queries.

    Parameters
    ----------
    content : Rows
        The queries over the merged attributes.
    merged : tuple of int
        The places of the merged attributes among all.
    predicates : tuple of Predicates
        The sets of the other attributes, in their order.
    sizes : tuple of int
        The sizes of all attributes.

    Raises
    ------
    TooLargeError
        If the queries over the cells are more than `MAX_EXPLICIT_ENTRIES` numbers, and are not sums of
        products that need not be written out; or if there are more queries than that.

    References
    ----------
    McKenna et al., journal version, appendix A (predicates over merged attributes).

    Examples
    --------
    >>> from matrixdp.queries import Identity, MatrixRows
    >>> Crossed(MatrixRows(np.array([[1.0, 0.0]])), (1,), (Identity(),), (2, 2)).matrix()
    array([[1., 0., 0., 0.],
           [0., 0., 1., 0.]])
    """

    content: Rows
    merged: tuple[int, ...]
    predicates: tuple[Predicates, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        check_entries("by", self.count, 1 if self.content.summands else math.prod(self.sizes))

    @property
    def others(self) -> tuple[int, ...]:
        """The places of the attributes that are not merged."""
        return tuple(place for place in range(len(self.sizes)) if place not in self.merged)

    @property
    def _sizes(self) -> list[int]:
        return [self.sizes[place] for place in self.others]

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of explicit queries, then that of the predicates on each other attribute."""
        return (self.content.count, *_counts(self.predicates, self._sizes))

    @property
    def count(self) -> int:
        return math.prod(self.counts)

    @property
    def summands(self) -> Summands | None:
        own = self.content.summands
        if own is None:
            return None
        terms = []
        for sign, sets in own.terms:
            given = dict(zip((*self.merged, *self.others), (*sets, *self.predicates), strict=True))
            terms.append((sign, tuple(given[place] for place in range(len(self.sizes)))))
        return Summands((*(self.merged[place] for place in own.order), *self.others), tuple(terms))

    @property
    def asks(self) -> bool:
        return self.content.asks and all(_asked(self.predicates, self._sizes))

    def matrix(self) -> Array:
        check_entries("by", self.count, math.prod(self.sizes))
        places = (*self.merged, *self.others)
        rows = kronecker([self.content.matrix(), *_rows(self.predicates, self._sizes)])
        tensor = rows.reshape(len(rows), *(self.sizes[place] for place in places))
        axes = [0, *(1 + int(axis) for axis in np.argsort(places))]
        return np.ascontiguousarray(tensor.transpose(axes)).reshape(len(rows), -1)

    def key(self) -> Hashable:
        return ("by", self.content.key(), self.merged, *_keys(self.predicates, self._sizes))

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        texts = [
            f"({text})" if " or " in text else text
            for text in self.content.describe(domain, tuple(attributes[place] for place in self.merged))
        ]
        others = []
        for predicates, place in zip(self.predicates, self.others, strict=True):
            name = attributes[place]
            total = isinstance(predicates, Total)
            others.append([""] if total else [f" and {name} {t}" for t in predicates.describe(domain[name])])
        return ["".join(parts) for parts in product(texts, *others)]


# Queries that are no conjunctions: disjunctions, and predicates over merged attributes.


@dataclass(frozen=True)
class Disjunctions(Rows):
    """Every combination of one predicate of each set, joined by OR.

    A record counts if at least one of the predicates holds: 1 - the product of the complements, so that the
    matrix of the queries is the difference of two Kronecker products, and need not be written out.

    Parameters
    ----------
    predicates : tuple of Predicates
        One set for each attribute, of entries 0 and 1.
    sizes : tuple of int
        The attributes' sizes.

    Raises
    ------
    WorkloadError
        If a set has entries other than 0 and 1.
    TooLargeError
        If there are more than `MAX_EXPLICIT_ENTRIES` queries.

    References
    ----------
    McKenna et al., journal version, appendix A (disjunctive queries).

    Examples
    --------
    >>> from matrixdp.queries.predicates import Identity
    >>> Disjunctions((Identity(), Identity()), (2, 2)).matrix()[0]
    array([1., 1., 1., 0.])
    """

    predicates: tuple[Predicates, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        check_entries("any", self.count, 1)
        for predicates, size in zip(self.predicates, self.sizes, strict=True):
            if not isinstance(predicates, Indicators) and not np.isin(predicates.rows(size), (0, 1)).all():
                told = "any: found a predicate with entries other than 0 and 1"
                raise WorkloadError(told, code="wrong-kind")

    @property
    def count(self) -> int:
        return math.prod(_counts(self.predicates, self.sizes))

    def matrix(self) -> Array:
        check_entries("any", self.count, math.prod(self.sizes))
        return np.asarray(1.0 - kronecker(1.0 - rows for rows in _rows(self.predicates, self.sizes)))

    @property
    def summands(self) -> Summands:
        every, outside = map(Totals, _counts(self.predicates, self.sizes)), map(Complement, self.predicates)
        return Summands(tuple(range(len(self.sizes))), ((1.0, tuple(every)), (-1.0, tuple(outside))))

    @property
    def asks(self) -> bool:
        return any(_asked(self.predicates, self.sizes))

    def key(self) -> Hashable:
        return ("any", *_keys(self.predicates, self.sizes))

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        texts = [
            [f"{name} {text}" for text in predicates.describe(domain[name])]
            for name, predicates in zip(attributes, self.predicates, strict=True)
        ]
        return [" or ".join(parts) for parts in product(*texts)]


@dataclass(frozen=True, eq=False)
class CellSets(WrittenRows):
    """Predicates over merged attributes, each a set of cells.

    Parameters
    ----------
    values : ndarray of 0 and 1
        Shape (count, cells), row-major cells.
    texts : tuple of str
        What each query asks.

    Examples
    --------
    >>> CellSets(np.array([[1.0, 0.0, 0.0, 1.0]]), ("equal",)).count
    1
    """

    values: Array
    texts: tuple[str, ...]

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        return list(self.texts)


@final
@dataclass(frozen=True, eq=False)
class ChosenRows(Rows):
    """Some of explicit queries.

    Parameters
    ----------
    content : Rows
        The queries.
    positions : tuple of int
        The places of those that are kept.

    Examples
    --------
    >>> ChosenRows(Sums((2, 2)), (1,)).matrix()
    array([[1., 1., 1., 0.]])
    """

    content: Rows
    positions: tuple[int, ...]

    @property
    def count(self) -> int:
        return len(self.positions)

    def matrix(self) -> Array:
        return self.content.matrix()[list(self.positions)]

    def key(self) -> Hashable:
        return ("chosen", self.positions, self.content.key())

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        texts = self.content.describe(domain, attributes)
        return [texts[place] for place in self.positions]
