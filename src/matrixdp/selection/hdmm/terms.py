"""A union of products, attribute by attribute: what the surrogate workloads of OPT_kron are made of."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.plan.quadratic_forms import along
from matrixdp.queries import Group, Predicates, ProductGroup, Total
from matrixdp.selection.hdmm.axis import MAX_AXIS_CELLS

__all__ = ["AxisStrategy", "ProductTerms", "product_terms"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AxisStrategy:
    """A strategy on one attribute, as the others' surrogate workloads see it.

    Attributes
    ----------
    rows : ndarray, shape (m, n), or None
        None for the identity of any size.
    inverse : ndarray, shape (n, m), or None
        Its pseudo-inverse.
    bound : float or None
        A lower bound on the loss for the Gram matrix that it was solved for.
    """

    rows: Array | None
    inverse: Array | None
    bound: float | None

    @classmethod
    def of(cls, rows: Array, bound: float | None) -> AxisStrategy:
        """Return the strategy with its pseudo-inverse; the identity is recognized."""
        if rows.shape[0] == rows.shape[1] and np.array_equal(rows, np.eye(len(rows))):
            return cls(None, None, bound)
        q, r = np.linalg.qr(rows)
        diagonal = np.abs(np.diagonal(r))
        if rows.shape[0] >= rows.shape[1] and diagonal.min() > 1e-9 * diagonal.max():
            return cls(rows, np.asarray(scipy.linalg.solve_triangular(r, q.T)), bound)
        return cls(rows, np.asarray(scipy.linalg.pinv(rows, rtol=1e-10)), bound)


@dataclass(eq=False)
class ProductTerms:
    """Query groups as coefficients and one predicate set for each attribute, with explicit ones beside.

    Parameters
    ----------
    attributes : tuple of str
        Those that some group asks about, in domain order.
    sizes : tuple of int
    sets : list of dict
        For each attribute the distinct predicate sets by key.
    products : list of (float, tuple of keys)
    explicit : list of (float, tuple of int, ndarray)
        Weight, places of the attributes, and queries of shape (m, sizes of those attributes).
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    sets: list[dict[Hashable, Predicates]]
    products: list[tuple[float, tuple[Hashable, ...]]]
    explicit: list[tuple[float, tuple[int, ...], Array]]
    _grams: dict[tuple[int, Hashable], Array] = field(default_factory=dict)

    def gram(self, axis: int, key: Hashable) -> Array:
        """Return the Gram matrix of a predicate set, shape (n, n)."""
        if (self.sizes[axis], key) not in self._grams:
            self._grams[self.sizes[axis], key] = self.sets[axis][key].gram(self.sizes[axis])
        return self._grams[self.sizes[axis], key]

    def proportional(self) -> bool:
        """Return whether the whole is one product: every attribute is asked the same in every group."""
        return not self.explicit and all(len(sets) == 1 for sets in self.sets)

    def large(self, axis: int) -> bool:
        """Return whether an attribute is too large for explicit strategies, so that it is measured whole."""
        return self.sizes[axis] > MAX_AXIS_CELLS

    def trace(self, axis: int, key: Hashable, strategy: AxisStrategy) -> float:
        """Return tr(V (B'B)^+) of one predicate set under a strategy."""
        if strategy.inverse is None:
            return float(self.sets[axis][key].squares(self.sizes[axis]).sum())
        image = self.gram(axis, key) @ strategy.inverse
        return float(np.einsum("ia,ia->", strategy.inverse, image))

    def surrogate(self, axis: int, strategies: Sequence[AxisStrategy | None]) -> Array:
        """Return the Gram matrix that an attribute sees with the strategies of all others fixed.

        A strategy that is None is unknown: its traces are taken as tr(V) / n.
        """
        size = self.sizes[axis]
        coefficients: dict[Hashable, float] = {}
        traces: dict[tuple[int, Hashable], float] = {}

        def trace(other: int, key: Hashable) -> float:
            if (other, key) not in traces:
                strategy = strategies[other]
                if strategy is None:
                    squares = self.sets[other][key].squares(self.sizes[other])
                    traces[other, key] = float(squares.sum()) / self.sizes[other]
                else:
                    traces[other, key] = self.trace(other, key, strategy)
            return traces[other, key]

        for weight, keys in self.products:
            factor = weight
            for other, key in enumerate(keys):
                if other != axis:
                    factor *= trace(other, key)
            coefficients[keys[axis]] = coefficients.get(keys[axis], 0.0) + factor
        total = np.zeros((size, size))
        for key, factor in coefficients.items():
            total += factor * self.gram(axis, key)
        for weight, axes, rows in self.explicit:
            total += weight * self._explicit_surrogate(axis, axes, rows, strategies)
        return total

    def _explicit_surrogate(
        self, axis: int, axes: tuple[int, ...], rows: Array, strategies: Sequence[AxisStrategy | None]
    ) -> Array:
        image = rows
        factor = 1.0
        for position, other in enumerate(axes):
            if other == axis:
                continue
            strategy = strategies[other]
            if strategy is None:
                factor /= self.sizes[other]
            elif strategy.inverse is not None:
                image = along(image, position + 1, strategy.inverse.T)
        for other in range(len(self.sizes)):
            if other not in axes and other != axis:
                factor *= self._total_trace(other, strategies[other])
        if axis not in axes:
            return np.full((self.sizes[axis],) * 2, factor * float((image**2).sum()))
        flat = np.moveaxis(image, axes.index(axis) + 1, -1).reshape(-1, self.sizes[axis])
        return np.asarray(factor * (flat.T @ flat))

    def _total_trace(self, axis: int, strategy: AxisStrategy | None) -> float:
        if strategy is None:
            return 1.0
        if strategy.inverse is None:
            return float(self.sizes[axis])
        return float((strategy.inverse.sum(axis=0) ** 2).sum())

    def loss(self, strategies: Sequence[AxisStrategy]) -> float:
        """Return the error with noise of variance 1 on every row of the product."""
        if not self.sizes:
            return math.fsum(weight for weight, _ in self.products)
        if self.large(0):
            # an attribute of that size is measured whole: its traces need no matrix
            total = 0.0
            for weight, keys in self.products:
                total += weight * math.prod(
                    self.trace(axis, key, strategies[axis]) for axis, key in enumerate(keys)
                )
            return total
        surrogate = self.surrogate(0, strategies)
        first = strategies[0]
        if first.inverse is None:
            return float(np.trace(surrogate))
        return float(np.einsum("ia,ia->", first.inverse, surrogate @ first.inverse))


def product_terms(domain: Domain, groups: Sequence[Group]) -> ProductTerms:
    """Return query groups, attribute by attribute.

    Parameters
    ----------
    domain : Domain
    groups : sequence of Group

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 4, "b": 3, "c": 2})
    >>> workload = mdp.Workload(domain, mdp.product(a="prefix"), mdp.product(a="identity", b="identity"))
    >>> terms = product_terms(domain, workload.groups)
    >>> terms.attributes, [len(sets) for sets in terms.sets]
    (('a', 'b'), [2, 2])
    """
    asked: set[str] = set()
    for group in groups:
        if not isinstance(group, ProductGroup) or group.query_weights is not None:
            asked.update(group.attributes)
            continue
        for name, predicates, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
            if predicates.key(size) != Total().key(size):
                asked.add(name)
    attributes = domain.sort(asked)
    sizes = tuple(domain[name].size for name in attributes)
    sets: list[dict[Hashable, Predicates]] = [{} for _ in attributes]
    products: dict[tuple[Hashable, ...], float] = {}
    explicit = []
    for group in groups:
        if not isinstance(group, ProductGroup) or group.query_weights is not None:
            rows = group.rows()
            if group.query_weights is not None:
                rows = rows * np.sqrt(group.query_weights)[:, None]
            axes = tuple(attributes.index(name) for name in group.attributes)
            explicit.append((group.weight, axes, rows.reshape(len(rows), *group.sizes)))
            continue
        given = dict(zip(group.attributes, group.predicates, strict=True))
        keys = []
        for axis, (name, size) in enumerate(zip(attributes, sizes, strict=True)):
            predicates = given.get(name, Total())
            key = predicates.key(size)
            sets[axis].setdefault(key, predicates)
            keys.append(key)
        products[tuple(keys)] = products.get(tuple(keys), 0.0) + group.weight
    return ProductTerms(attributes, sizes, sets, [(w, keys) for keys, w in products.items()], explicit)
