"""The Gram matrix of what is asked of one attribute, and that of a query group as a few Kronecker products.

A product of predicate sets is one term. Queries that are sums of products, c_1 W_1 + c_2 W_2 + ..., have the
Gram matrix of all pairs, the sum over i and j of c_i c_j W_i' W_j, each pair a Kronecker product over the
attributes. Weights of a product's queries that are a sum of products of one vector for each attribute do the
same: their term is the Kronecker product of the P' diag(v) P.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import NumericalError
from matrixdp.exact.linear import Array, outer
from matrixdp.queries import Crossed, DenseGroup, Group, Matrix, Predicates, ProductGroup, Total
from matrixdp.queries.predicates import MAX_EXPLICIT_ENTRIES, alike_in_all, content_key, groups_of_all
from matrixdp.queries.structured import Totals
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.entries import query_of, siblings, symmetric_part

Places = NDArray[np.intp]
#: Terms of queries over merged attributes within predicates of others; else they are written out.
MAX_BOX_TERMS = 100


class Gram(ABC):
    """The Gram matrix V of what is asked of one attribute, shape (n, n).

    A kind has a size n, a key and the matrix. The rest are its tags: what solvers and sums read before they
    look at any entry. A tag that is None or empty is not known, and costs time alone: the solver then looks
    for it in the entries. `CrossGram` alone need be neither symmetric nor positive semidefinite.
    """

    size: int

    @property
    @abstractmethod
    def key(self) -> Hashable:
        """A value equal for equal matrices."""

    @abstractmethod
    def matrix(self) -> Array:
        """Return V."""

    @property
    def symmetric(self) -> tuple[float, float] | None:
        """(a, b) if V is known to be a I + b 11': then no matrix of this size is needed anywhere."""
        return None

    @property
    def query(self) -> Array | None:
        """The one query q if V is known to be qq'."""
        return None

    @property
    def definite(self) -> bool:
        """Whether V is symmetric with no negative eigenvalue."""
        return True

    @property
    def flat(self) -> bool:
        """Whether only totals are asked: nothing is left of V without the mean along the attribute."""
        return False

    @property
    def coupling(self) -> bool:
        """Whether it is a cross term with a total on one side alone: its residual couples two marginals."""
        return False

    @property
    def total_only(self) -> bool:
        """Whether V = 11': the total is asked, as of an attribute that is not mentioned."""
        return False

    @property
    def asked(self) -> tuple[Predicates, ...]:
        """The queries that V is about, where they are known: one set, or a pair of sets."""
        return ()

    @property
    def alike(self) -> Places | None:
        """The group of each value, if known: V stays as it is where those of one trade places."""
        return None if self.symmetric is None else np.zeros(self.size, dtype=np.intp)

    def between(self, groups: Places) -> tuple[Array, Array]:
        """Return V over the first value of each group, and its entries of the first with the last value."""
        own, (first, last) = self.matrix(), _ends(groups)
        return own[np.ix_(first, first)], own[first, last]

    @cached_property
    def explicit(self) -> ExplicitGram:
        """V as its entries, in which the tags that are not known are looked for."""
        return ExplicitGram(self.matrix())

    def diagonal(self) -> Array:
        """Return the diagonal of V."""
        known = self.symmetric
        return np.diagonal(self.matrix()) if known is None else np.full(self.size, sum(known))

    def trace(self) -> float:
        """Return tr(V)."""
        return float(self.diagonal().sum())

    def total(self) -> float:
        """Return 1'V1."""
        return float(self.matrix().sum())

    def largest(self) -> float:
        """Return the largest absolute entry on the diagonal."""
        return float(np.abs(self.diagonal()).max())


@dataclass(frozen=True, eq=False)
class QueryGram(Gram):
    """P'P of a predicate set.

    Examples
    --------
    >>> from matrixdp.queries import Prefix
    >>> QueryGram(Prefix(), 2).matrix()
    array([[2., 1.],
           [1., 1.]])
    """

    predicates: Predicates
    size: int

    @property
    def key(self) -> Hashable:
        """See `Gram`."""
        return self.predicates.key(self.size)

    def matrix(self) -> Array:
        """Return P'P."""
        return self.predicates.gram(self.size)

    @property
    def symmetric(self) -> tuple[float, float] | None:
        """See `Gram`."""
        return self.predicates.symmetric(self.size)

    @property
    def query(self) -> Array | None:
        """P where it is one query."""
        return self.predicates.rows(self.size)[0] if self.predicates.count(self.size) == 1 else None

    @property
    def flat(self) -> bool:
        """Whether the total alone is asked, once or more often."""
        return isinstance(self.predicates, Total | Totals)

    @property
    def total_only(self) -> bool:
        """Whether the total is asked once."""
        return type(self.predicates) is Total

    @property
    def asked(self) -> tuple[Predicates]:
        """P."""
        return (self.predicates,)

    @cached_property
    def alike(self) -> Places | None:
        """The groups that the predicates declare."""
        return alike_in_all(self.asked, self.size)

    def between(self, groups: Places) -> tuple[Array, Array]:
        """See `Gram`: P is applied to the values that stand for groups, and P'P is not formed."""
        first, last = _ends(groups)
        chosen = np.zeros((self.size, 2 * len(first)))
        chosen[[*first, *last], np.arange(2 * len(first))] = 1.0
        rows = self.predicates.apply(chosen)
        left, right = rows[:, : len(first)], rows[:, len(first) :]
        return left.T @ left, np.einsum("qi,qi->i", left, right)

    def diagonal(self) -> Array:
        """Return the squared norms of the columns of P."""
        return self.predicates.column_sums(self.size, 2)

    def trace(self) -> float:
        """Return the sum of the squared entries of P."""
        return float(self.predicates.squares(self.size).sum())

    def total(self) -> float:
        """Return the sum of the squared row sums of P."""
        if self.symmetric is not None:
            a, b = self.symmetric
            return self.size * (a + self.size * b)
        return float((self.predicates.apply(np.ones((self.size, 1))) ** 2).sum())


@dataclass(frozen=True, eq=False)
class CrossGram(Gram):
    """P' diag(v) Q for two predicate sets of as many queries.

    Parameters
    ----------
    left, right : Predicates
    size : int
    weights : ndarray, optional
        v, of any sign; all ones where it is left out.

    Examples
    --------
    >>> from matrixdp.queries import Identity, Prefix
    >>> CrossGram(Identity(), Prefix(), 2).matrix()
    array([[1., 0.],
           [1., 1.]])
    """

    left: Predicates
    right: Predicates
    size: int
    weights: Array | None = None

    @property
    def key(self) -> Hashable:
        """See `Gram`."""
        own = None if self.weights is None else hashlib.sha256(self.weights.tobytes()).hexdigest()
        return ("cross", self.left.key(self.size), self.right.key(self.size), own)

    def matrix(self) -> Array:
        """Return P' diag(v) Q."""
        if self.weights is None and isinstance(self.left, Totals):
            return np.tile(self.right.column_sums(self.size, 1), (self.size, 1))
        if self.weights is None and isinstance(self.right, Totals):
            return np.tile(self.left.column_sums(self.size, 1), (self.size, 1)).T
        left, right = self.left.rows(self.size), self.right.rows(self.size)
        return np.asarray((left if self.weights is None else left * self.weights[:, None]).T @ right)

    @property
    def symmetric(self) -> tuple[float, float] | None:
        """The closed form of totals beside queries that ask as much of every value."""
        for one, other in ((self.left, self.right), (self.right, self.left)):
            even = other.symmetric(self.size) is not None
            if self.weights is None and isinstance(one, Totals) and even:
                return 0.0, float(other.column_sums(self.size, 1)[0])
        return None

    @property
    def asked(self) -> tuple[Predicates, ...]:
        """P and Q."""
        return self.left, self.right

    @property
    def alike(self) -> None:
        """None: what leaves P'P and Q'Q as they are may change P'Q."""
        return None

    @property
    def definite(self) -> bool:
        """Whether V is known to be symmetric with no negative eigenvalue: it is not."""
        return False

    @property
    def flat(self) -> bool:
        """Whether one of the two sets asks the total alone."""
        return any(isinstance(side, Total | Totals) for side in (self.left, self.right))

    @property
    def coupling(self) -> bool:
        """Whether only one of them does."""
        both = all(isinstance(side, Total | Totals) for side in (self.left, self.right))
        return self.flat and not both and self.symmetric is None


@dataclass(frozen=True, eq=False)
class SymmetricGram(Gram):
    """a I + b 11'.

    Examples
    --------
    >>> SymmetricGram(1.0, 2.0, 2).matrix()
    array([[3., 2.],
           [2., 3.]])
    """

    a: float
    b: float
    size: int

    @property
    def key(self) -> Hashable:
        """See `Gram`."""
        return ("symmetric", self.a, self.b, self.size)

    def matrix(self) -> Array:
        """Return a I + b 11'."""
        return self.a * np.eye(self.size) + self.b

    def between(self, groups: Places) -> tuple[Array, Array]:
        """See `Gram`."""
        alone = np.bincount(groups) == 1
        return self.a * np.eye(len(alone)) + self.b, self.a * alone + self.b

    @property
    def symmetric(self) -> tuple[float, float]:
        """(a, b)."""
        return self.a, self.b


@dataclass(frozen=True, eq=False)
class ExplicitGram(Gram):
    """A Gram matrix as it is: its tags are found in its entries."""

    entries: Array

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of values."""
        return len(self.entries)

    @property
    def key(self) -> Hashable:
        """See `Gram`."""
        return content_key(self.entries)

    def matrix(self) -> Array:
        """Return it."""
        return self.entries

    @property
    def explicit(self) -> ExplicitGram:
        """Itself."""
        return self

    @cached_property
    def symmetric(self) -> tuple[float, float] | None:
        """See `Gram`."""
        return symmetric_part(self.entries)

    @cached_property
    def query(self) -> Array | None:
        """See `Gram`."""
        return query_of(self.entries)

    @cached_property
    def alike(self) -> Places | None:
        """See `Gram`; None where they are few."""
        return siblings(self.entries) if self.symmetric is None else super().alike


@dataclass(frozen=True, eq=False)
class SumGram(Gram):
    """A weighted sum of Gram matrices of one attribute, with the tags that all of them have.

    Examples
    --------
    >>> SumGram(((2.0, SymmetricGram(1.0, 2.0, 2)), (1.0, SymmetricGram(1.0, 0.0, 2)))).symmetric
    (3.0, 4.0)
    """

    parts: tuple[tuple[float, Gram], ...]

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of values."""
        return self.parts[0][1].size

    @property
    def key(self) -> Hashable:
        """See `Gram`."""
        return ("sum", *((weight, gram.key) for weight, gram in self.parts))

    def matrix(self) -> Array:
        """Return the sum, symmetric to the last digit: pairs of products stand in it both ways round."""
        total = np.zeros((self.size, self.size))
        for weight, gram in self.parts:
            total += weight * gram.explicit.entries
        return (total + total.T) / 2.0

    @property
    def symmetric(self) -> tuple[float, float] | None:
        """The sum of all closed forms."""
        a = b = 0.0
        for weight, gram in self.parts:
            if gram.symmetric is None:
                return None
            a, b = a + weight * gram.symmetric[0], b + weight * gram.symmetric[1]
        return a, b

    @cached_property
    def alike(self) -> Places | None:
        """The groups whose values may trade places in all of them."""
        return groups_of_all([gram.alike for _, gram in self.parts])

    def between(self, groups: Places) -> tuple[Array, Array]:
        """Return the sums of those of the parts."""
        own = [(weight, *gram.between(groups)) for weight, gram in self.parts]
        between = np.sum([weight * first for weight, first, _ in own], axis=0)
        return between, np.sum([weight * shared for weight, _, shared in own], axis=0)

    def diagonal(self) -> Array:
        """Return the sum of the diagonals."""
        return np.asarray(np.sum([weight * gram.diagonal() for weight, gram in self.parts], axis=0))


@dataclass(frozen=True, eq=False)
class CentredGram(Gram):
    """P'VP with P = I - w1': what is left of V without the mean of its queries under weights of sum 1.

    Examples
    --------
    >>> own = CentredGram(SymmetricGram(1.0, 2.0, 2), np.array([0.5, 0.5]))
    >>> own.matrix().tolist(), own.mean_square
    ([[0.5, -0.5], [-0.5, 0.5]], 2.5)
    """

    gram: Gram
    weights: Array

    @property
    def size(self) -> int:  # type: ignore[override]
        """The number of values."""
        return self.gram.size

    @property
    def key(self) -> Hashable:
        """See `Gram`."""
        return ("centred", self.gram.key, content_key(self.weights))

    @cached_property
    def _parts(self) -> tuple[Array, float]:
        """P'VP and w'Vw, from one V."""
        own, w = self.gram.matrix(), self.weights
        seen = own @ w
        square = w @ seen
        left = own - (seen if self.definite else w @ own)[None, :] - seen[:, None] + square
        return np.asarray(left), float(square)

    @property
    def mean_square(self) -> float:
        """w'Vw: what is left of V where its attribute is contracted."""
        square = self._parts[1]
        return max(square, 0.0) if self.gram.definite else square

    def matrix(self) -> Array:
        """Return P'VP."""
        return self._parts[0]

    def diagonal(self) -> Array:
        """See `Gram`."""
        return np.diagonal(self.explicit.entries)

    @property
    def query(self) -> Array | None:
        """One query less its mean, its largest entry positive, or None where V is not known to be one."""
        own = self.gram.query
        if own is None:
            return None
        rest = own - own @ self.weights
        return np.asarray(rest * np.sign(rest[np.argmax(np.abs(rest))]))

    @property
    def definite(self) -> bool:
        """Whether V is."""
        return self.gram.definite

    @cached_property
    def alike(self) -> Places | None:
        """Values of one weight that trade places in V."""
        return groups_of_all([self.gram.alike, np.unique(self.weights, return_inverse=True)[1]])


def _ends(groups: Places) -> tuple[Places, Places]:
    """Return the first and the last value of each group."""
    counts, order = np.bincount(groups), np.argsort(groups, kind="stable")
    ends = np.cumsum(counts)
    return order[ends - counts], order[ends - 1]


def as_gram(gram: Gram | Array) -> Gram:
    """Return a Gram matrix, an array as its entries. Raises NumericalError where they are not finite."""
    if isinstance(gram, Gram):
        return gram
    if not np.isfinite(gram).all():
        raise NumericalError("a Gram matrix that is zero or not finite has no strategy")
    return ExplicitGram(np.asarray(gram, dtype=np.float64))


GramTerm = tuple[float, tuple[Gram, ...]]
"""A coefficient, and what is asked of each attribute of the group."""
WeightProduct = tuple[float, tuple[Array, ...]]
"""A coefficient, and a vector for each axis of a tensor of weights."""


def gram_terms(group: Group) -> list[GramTerm] | None:
    """Return the Gram matrix of a group, its own weight left out, as terms; None if it is to be written out.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 4, "b": 3})
    >>> [group] = mdp.disjunction(a="prefix", b="identity").expand(domain)
    >>> [coefficient for coefficient, _ in gram_terms(group)]
    [1.0, -1.0, -1.0, 1.0]
    """
    if isinstance(group, DenseGroup) and isinstance(group.content, Crossed) and not group.summands:
        return _boxed_terms(group, group.content) if group.query_weights is None else None
    products = ((1.0, group),) if isinstance(group, ProductGroup) else group.summands
    weights: Sequence[tuple[float, Sequence[Array | None]]] | None = [(1.0, [None] * len(group.sizes))]
    if group.query_weights is not None and products:
        if isinstance(group, ProductGroup):
            weights = weight_products(group.query_weights.reshape(group.counts))
        else:
            weights = weight_products(group.shaped(group.query_weights))
    if weights is None or not products:
        return None
    terms: list[GramTerm] = []
    for sign, left in products:
        for other, right in products:
            for scale, vectors in weights:
                sets = zip(left.predicates, right.predicates, group.sizes, vectors, strict=True)
                grams = [_gram_of(*own) for own in sets]
                if None in grams:
                    return None
                terms.append((scale * sign * other, tuple([gram for gram in grams if gram is not None])))
    return terms


def _boxed_terms(group: DenseGroup, content: Crossed) -> list[GramTerm] | None:
    """Return queries over merged attributes, within predicates of others, as terms of boxes of cells.

    The other attributes stand in all terms alike, and factor out.
    """
    sizes = [group.sizes[place] for place in content.merged]
    within = zip(content.others, content.predicates, strict=True)
    others: dict[int, Gram] = {place: QueryGram(own, group.sizes[place]) for place, own in within}
    rows = content.content.matrix()
    if len(sizes) == 1:
        others[content.merged[0]] = QueryGram(Matrix(rows), sizes[0])
        return [(1.0, tuple(others[place] for place in range(len(group.sizes))))]
    terms: list[GramTerm] = []
    for row in rows:
        boxes = _boxes(row.reshape(sizes), math.isqrt(MAX_BOX_TERMS))
        if boxes is None or len(terms) + len(boxes) ** 2 > MAX_BOX_TERMS:
            return None
        for left in boxes:
            for right in boxes:
                grams = dict(others)
                for place, own, other in zip(content.merged, left, right, strict=True):
                    found = _gram_of(_vector(own), _vector(other), group.sizes[place])
                    assert found is not None
                    grams[place] = found
                terms.append((1.0, tuple(grams[place] for place in range(len(group.sizes)))))
    return terms


def _boxes(tensor: Array, most: int) -> list[tuple[Array, ...]] | None:
    """Return a tensor as a sum of at most `most` outer products: of its different slices, axis by axis."""
    if tensor.ndim == 1:
        return [(tensor,)] if tensor.any() else []
    slices, alike = np.unique(tensor.reshape(len(tensor), -1), axis=0, return_inverse=True)
    found: list[tuple[Array, ...]] = []
    for number, one in enumerate(slices):
        rest = _boxes(one.reshape(tensor.shape[1:]), most - len(found))
        if rest is None or len(found) + len(rest) > most:
            return None
        found += [((alike.ravel() == number).astype(np.float64), *vectors) for vectors in rest]
    return found


def _vector(values: Array) -> Predicates:
    """Return one query on an attribute."""
    return Total() if (values == 1.0).all() else Matrix(values[None, :])


def _gram_of(left: Predicates, right: Predicates, size: int, weights: Array | None = None) -> Gram | None:
    """Return P' diag(v) Q, the Gram matrix of queries where it is one; None if it is too large."""
    alike = left is right or left.key(size) == right.key(size)
    if weights is None or (weights == 1.0).all():
        return QueryGram(left, size) if alike else CrossGram(left, right, size)
    if len(weights) * size > MAX_EXPLICIT_ENTRIES:
        return None
    if alike and (weights > 0).all():
        return QueryGram(Matrix(left.rows(size) * np.sqrt(weights)[:, None]), size)
    return CrossGram(left, right, size, weights)


def weight_products(weights: Array) -> list[WeightProduct] | None:
    """Return a tensor as a sum of few outer products of one vector for each axis, or None.

    Examples
    --------
    >>> [(scale, vectors)] = weight_products(np.outer([1.0, 2.0], [3.0, 6.0]))
    >>> scale, [vector.tolist() for vector in vectors]
    (3.0, [[1.0, 2.0], [1.0, 2.0]])
    >>> len(weight_products(np.array([[1.0, 2.0], [2.0, 1.0]])))
    2
    """
    if 1 in weights.shape:  # a single query has its weight in the coefficient
        inner = weight_products(weights.squeeze())
        sides = [(scale, iter(vectors)) for scale, vectors in inner or ()]
        found = [(s, tuple(np.ones(1) if n == 1 else next(own) for n in weights.shape)) for s, own in sides]
        return None if inner is None else found
    axes = range(weights.ndim)
    pivot = float(weights[(0,) * weights.ndim])
    one = pivot, tuple(weights[tuple(slice(None) if i == axis else 0 for i in axes)] / pivot for axis in axes)
    if _fits([one], weights):
        return [one]
    more = _sum_of_products(weights, LIMITS.few_terms)
    return more if more is not None and _fits(more, weights) else None


def _sum_of_products(weights: Array, most: int) -> list[WeightProduct] | None:
    """Return a tensor as at most `most` outer products, by the singular vectors along its first axis."""
    if weights.ndim == 1:
        return [(1.0, (weights,))]
    left, values, right = np.linalg.svd(weights.reshape(len(weights), -1), full_matrices=False)
    rank = int((values > 1e-13 * values[0]).sum())
    found: list[WeightProduct] = []
    for place in range(rank):
        rest = _sum_of_products((values[place] * right[place]).reshape(weights.shape[1:]), most - len(found))
        if rest is None or len(found) + len(rest) > most:
            return None
        found += [(scale, (left[:, place], *vectors)) for scale, vectors in rest]
    return found


def _fits(products: list[WeightProduct], weights: Array) -> bool:
    total = np.zeros(weights.shape)
    for scale, vectors in products:
        total += scale * outer(vectors)
    return bool((np.abs(total - weights) <= LIMITS.same * weights).all())
