"""The Gram matrix of one query group as a few Kronecker products, with signs.

A product is one term. Queries that are sums of products, c_1 W_1 + c_2 W_2 + ..., have the Gram matrix of
all pairs, the sum over i and j of c_i c_j W_i' W_j, each pair a Kronecker product over the attributes.
Weights of a product's queries that are a sum of products of one vector for each attribute do the same: their
term is the Kronecker product of the P' diag(v) P.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.queries import Crossed, DenseGroup, Group, Matrix, Predicates, ProductGroup, Total
from matrixdp.queries.predicates import MAX_EXPLICIT_ENTRIES
from matrixdp.queries.structured import Totals

__all__ = ["CrossGram", "GramTerm", "Question", "distinct_cells", "gram_terms", "is_flat", "weight_products"]

Array = NDArray[np.float64]

#: Weights that are a sum of more products than this are written out.
MAX_WEIGHT_TERMS = 4
#: Terms that queries over merged attributes within predicates of others may have, else they are written out.
MAX_BOX_TERMS = 100
#: How far the products may be from the weights, relative to each weight.
_WEIGHT_ERROR = 1e-10
#: Rows of a Gram matrix are different where one combination of them differs by this share of its entries.
_TOLD_APART = 1e-9


@dataclass(frozen=True, eq=False)
class CrossGram:
    """P' diag(v) Q for two predicate sets of as many queries on one attribute.

    Parameters
    ----------
    left, right : Predicates
    weights : ndarray, optional
        v, of any sign; all ones where it is left out.

    Examples
    --------
    >>> from matrixdp.queries import Identity, Prefix
    >>> CrossGram(Identity(), Prefix()).gram(2)
    array([[1., 0.],
           [1., 1.]])
    """

    left: Predicates
    right: Predicates
    weights: Array | None = None

    def key(self, size: int) -> Hashable:
        """Return a value equal for equal matrices."""
        own = None if self.weights is None else hashlib.sha256(self.weights.tobytes()).hexdigest()
        return ("cross", self.left.key(size), self.right.key(size), own)

    def gram(self, size: int) -> Array:
        """Return the matrix, shape (size, size); not symmetric in general."""
        if self.weights is None and isinstance(self.left, Totals):
            return np.tile(self.right.column_sums(size, 1), (size, 1))
        if self.weights is None and isinstance(self.right, Totals):
            return np.tile(self.left.column_sums(size, 1), (size, 1)).T
        left, right = self.left.rows(size), self.right.rows(size)
        return np.asarray((left if self.weights is None else left * self.weights[:, None]).T @ right)

    def squares(self, size: int) -> Array:
        """Return its diagonal, which adds up to its trace."""
        for one, other in ((self.left, self.right), (self.right, self.left)):
            if self.weights is None and isinstance(one, Totals):
                return other.column_sums(size, 1)
        return np.diagonal(self.gram(size)).copy()

    def symmetric(self, size: int) -> tuple[float, float] | None:
        """Return (a, b) if the matrix is known to be a I + b 11', else None."""
        for one, other in ((self.left, self.right), (self.right, self.left)):
            if self.weights is None and isinstance(one, Totals) and other.symmetric(size) is not None:
                return 0.0, float(other.column_sums(size, 1)[0])
        return None


Question = Predicates | CrossGram
"""What is asked of one attribute in a term: a predicate set, or a factor of a pair of two products."""
GramTerm = tuple[float, tuple[Question, ...]]
"""A coefficient, and what is asked of each attribute of the group."""
WeightProduct = tuple[float, tuple[Array, ...]]
"""A coefficient, and a vector for each axis of a tensor of weights."""


def is_flat(question: Question) -> bool:
    """Return whether nothing is left of what is asked once its mean along the attribute is removed."""
    if isinstance(question, CrossGram):
        return any(isinstance(side, Total | Totals) for side in (question.left, question.right))
    return isinstance(question, Total | Totals)


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
    if isinstance(group, ProductGroup) and group.query_weights is None:
        return [(1.0, group.predicates)]
    if isinstance(group, DenseGroup) and isinstance(group.content, Crossed) and not group.summands:
        return _boxed_terms(group, group.content) if group.query_weights is None else None
    products = ((1.0, group),) if isinstance(group, ProductGroup) else group.summands
    weights: list[WeightProduct] | None = None
    if group.query_weights is not None and products:
        if isinstance(group, ProductGroup):
            weights = weight_products(group.query_weights.reshape(group.counts))
        else:
            weights = weight_products(group.shaped(group.query_weights))
        if weights is None:
            return None
    if not products:
        return None
    terms: list[GramTerm] = []
    for i, (sign, left) in enumerate(products):
        for j, (other, right) in enumerate(products):
            pairs = list(zip(left.predicates, right.predicates, group.sizes, strict=True))
            if weights is None:
                asked = [own if i == j else CrossGram(own, another) for own, another, _ in pairs]
                terms.append((sign * other, tuple(asked)))
                continue
            for scale, vectors in weights:
                made = [_weighted(a, b, n, v) for (a, b, n), v in zip(pairs, vectors, strict=True)]
                if None in made:
                    return None
                terms.append((scale * sign * other, tuple(one for one in made if one is not None)))
    return terms


def _boxed_terms(group: DenseGroup, content: Crossed) -> list[GramTerm] | None:
    """Return queries over merged attributes, within predicates of others, as terms of boxes of cells.

    The other attributes stand in all terms alike, and factor out.
    """
    sizes = [group.sizes[place] for place in content.merged]
    others: dict[int, Question] = dict(zip(content.others, content.predicates, strict=True))
    if len(sizes) == 1:
        others[content.merged[0]] = Matrix(content.content.matrix())
        return [(1.0, tuple(others[place] for place in range(len(group.sizes))))]
    terms: list[GramTerm] = []
    for row in content.content.matrix():
        boxes = _boxes(row.reshape(sizes), math.isqrt(MAX_BOX_TERMS))
        if boxes is None or len(terms) + len(boxes) ** 2 > MAX_BOX_TERMS:
            return None
        for i, left in enumerate(boxes):
            for j, right in enumerate(boxes):
                asked = dict(others)
                for place, own, other in zip(content.merged, left, right, strict=True):
                    asked[place] = _vector(own) if i == j else CrossGram(_vector(own), _vector(other))
                terms.append((1.0, tuple(asked[place] for place in range(len(group.sizes)))))
    return terms


def _boxes(tensor: Array, most: int) -> list[tuple[Array, ...]] | None:
    """Return a tensor as a sum of at most so many outer products: of its different slices, axis by axis."""
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


def _weighted(left: Predicates, right: Predicates, size: int, weights: Array) -> Question | None:
    """Return what is asked of one attribute with a weight for each predicate; None if it is too large."""
    if left is right and (weights == 1.0).all():
        return left
    if len(weights) * size > MAX_EXPLICIT_ENTRIES:
        return None
    if left is right and (weights > 0).all():
        return Matrix(left.rows(size) * np.sqrt(weights)[:, None])
    return CrossGram(left, right, weights)


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
    axes = range(weights.ndim)
    pivot = float(weights[(0,) * weights.ndim])
    one = pivot, tuple(weights[tuple(slice(None) if i == axis else 0 for i in axes)] / pivot for axis in axes)
    if _fits([one], weights):
        return [one]
    found = _sum_of_products(weights, MAX_WEIGHT_TERMS)
    return found if found is not None and _fits(found, weights) else None


def _sum_of_products(weights: Array, most: int) -> list[WeightProduct] | None:
    """Return a tensor as at most so many outer products, by the singular vectors along its first axis."""
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
        outer = np.full((), scale)
        for vector in vectors:
            outer = np.multiply.outer(outer, vector)
        total += outer
    return bool((np.abs(total - weights) <= _WEIGHT_ERROR * weights).all())


def distinct_cells(gram: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return one cell of each set that no query tells apart, in order, and where each cell's stands.

    Examples
    --------
    >>> pairs = np.kron(np.eye(2), np.ones((1, 2)))
    >>> [found.tolist() for found in distinct_cells(pairs.T @ pairs)]
    [[0, 2], [0, 0, 1, 1]]
    """
    # of every row a number: only rows with equal numbers can be equal, and most differ
    numbers = np.sort(gram @ np.cos(np.arange(len(gram)) ** 2.0)) / np.abs(gram).max()
    if float(np.diff(numbers).min(initial=np.inf)) > _TOLD_APART:
        return np.arange(len(gram)), np.arange(len(gram))
    scaled = np.round(gram / np.abs(gram).max(), 13) + 0.0
    _, first, inverse = np.unique(scaled, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return first[order], rank[inverse.ravel()]
