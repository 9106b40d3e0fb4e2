"""A union of products, attribute by attribute: what the strategy of one attribute sees of all others.

Each attribute's strategy enters through a right inverse R of it, shape (n, m), with covariance R R'; a number
c stands for the covariance c I: 1 for the identity, 1/n for a strategy that is not known yet.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.exact.resources import check_matrices
from matrixdp.plan.quadratic_forms import along
from matrixdp.queries import Group, Total
from matrixdp.selection.view.gram_terms import Question, gram_terms

__all__ = ["MAX_AXIS_CELLS", "GivenGram", "Inverse", "ProductTerms", "energies", "product_terms"]

Array = NDArray[np.float64]
Inverse = Array | float

#: Cells of an explicit problem; an attribute of more values is measured whole.
MAX_AXIS_CELLS = 4_096


class Asked(Protocol):
    """What is asked about one attribute: predicates, or whatever has a Gram matrix."""

    def gram(self, size: int, /) -> Array:
        """Return the Gram matrix, shape (n, n)."""

    def squares(self, size: int, /) -> Array:
        """Return numbers that add up to its trace."""

    def symmetric(self, size: int, /) -> tuple[float, float] | None:
        """Return (a, b) if the Gram matrix is known to be a I + b 11'."""


A = TypeVar("A", bound=Asked)


@dataclass(frozen=True, eq=False)
class GivenGram:
    """A Gram matrix as it is."""

    matrix: Array

    def gram(self, _: int, /) -> Array:
        """Return it."""
        return self.matrix

    def squares(self, _: int, /) -> Array:
        """Return its diagonal."""
        return np.diagonal(self.matrix)

    def symmetric(self, _: int, /) -> None:
        """Return None: nothing is known of it."""


@dataclass(eq=False)
class ProductTerms(Generic[A]):
    """A Gram matrix as a sum of Kronecker products and of Gram matrices of explicit queries.

    Parameters
    ----------
    attributes : tuple of str
    sizes : tuple of int
    sets : list of dict
        For each attribute what is asked about it, by key.
    products : list of (float, tuple of keys)
    explicit : list of (float, tuple of int, ndarray)
        Weight, places of the attributes, and queries of shape (m, sizes of those attributes).
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    sets: Sequence[dict[Hashable, A]]
    products: list[tuple[float, tuple[Hashable, ...]]]
    explicit: list[tuple[float, tuple[int, ...], Array]]
    _grams: dict[tuple[int, Hashable], Array] = field(default_factory=dict)
    #: By axis, the right inverse that was last asked about, and its covariance R R'.
    _covariances: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    def gram(self, axis: int, key: Hashable) -> Array:
        """Return the Gram matrix of what is asked about an attribute, shape (n, n)."""
        if (axis, key) not in self._grams:
            check_matrices(self.attributes[axis : axis + 1], self.sizes[axis])
            self._grams[axis, key] = self.sets[axis][key].gram(self.sizes[axis])
        return self._grams[axis, key]

    @property
    def unknown(self) -> list[Inverse]:
        """What stands for strategies of which nothing is known."""
        return [1.0 / size for size in self.sizes]

    def proportional(self) -> bool:
        """Return whether the whole is one product: every attribute is asked the same in every group."""
        return not self.explicit and all(len(sets) == 1 for sets in self.sets)

    def plain(self) -> bool:
        """Return whether every query set of every attribute has a Gram matrix a I + b 11'."""
        asked = zip(self.sets, self.sizes, strict=True)
        plain = all(one.symmetric(size) is not None for sets, size in asked for one in sets.values())
        return plain and not self.explicit

    def large(self, axis: int, most: int | None = None) -> bool:
        """Return whether an attribute is too large for explicit strategies, so that it is measured whole.

        Past ``most`` values it is where nothing tells its values apart.
        """
        size = self.sizes[axis]
        if size <= (MAX_AXIS_CELLS if most is None else most):
            return False
        return size > MAX_AXIS_CELLS or all(s.symmetric(size) is not None for s in self.sets[axis].values())

    def trace(self, axis: int, key: Hashable, inverse: Inverse) -> float:
        """Return tr(V R R') of what is asked about one attribute."""
        if isinstance(inverse, float):
            return inverse * float(self.sets[axis][key].squares(self.sizes[axis]).sum())
        known = self.sets[axis][key].symmetric(self.sizes[axis])
        if known is not None:
            return known[0] * float(np.vdot(inverse, inverse)) + known[1] * _total_trace(
                inverse, len(inverse)
            )
        return float(np.vdot(self._covariance(axis, inverse), self.gram(axis, key)))

    def _covariance(self, axis: int, inverse: Array) -> Array:
        if axis not in self._covariances or self._covariances[axis][0] is not inverse:
            self._covariances[axis] = inverse, inverse @ inverse.T
        return self._covariances[axis][1]

    def surrogate(self, axis: int, inverses: Sequence[Inverse]) -> Array:
        """Return the Gram matrix that an attribute sees with the strategies of all others fixed."""
        size = self.sizes[axis]
        total = np.zeros((size, size))
        for key, factor in self._coefficients(axis, inverses).items():
            total += factor * self.gram(axis, key)
        # pairs of different products stand in it both ways round: what is not symmetric are rounding errors
        total = (total + total.T) / 2.0
        for weight, axes, rows in self.explicit:
            total += weight * self.explicit_surrogate(axis, axes, rows, inverses)
        return total

    def symmetric_surrogate(self, axis: int, inverses: Sequence[Inverse]) -> tuple[float, float] | None:
        """Return (a, b) if what `surrogate` returns is known to be a I + b 11', without forming it."""
        if self.explicit:
            return None
        size = self.sizes[axis]
        a, b = 0.0, 0.0
        for key, factor in self._coefficients(axis, inverses).items():
            known = self.sets[axis][key].symmetric(size)
            if known is None:
                return None
            a, b = a + factor * known[0], b + factor * known[1]
        return a, b

    def _coefficients(self, axis: int, inverses: Sequence[Inverse]) -> dict[Hashable, float]:
        """Return how much each question on an attribute counts with the strategies of all others fixed."""
        coefficients: dict[Hashable, float] = {}
        traces: dict[tuple[int, Hashable], float] = {}
        for weight, keys in self.products:
            factor = weight
            for other, key in enumerate(keys):
                if other != axis:
                    if (other, key) not in traces:
                        traces[other, key] = self.trace(other, key, inverses[other])
                    factor *= traces[other, key]
            coefficients[keys[axis]] = coefficients.get(keys[axis], 0.0) + factor
        return coefficients

    def _image(
        self, axes: tuple[int, ...], rows: Array, inverses: Sequence[Inverse], without: int | None
    ) -> tuple[Array, float]:
        """Return explicit queries times the inverses of all axes but one, and a factor of their squares."""
        image, factor = rows, 1.0
        for axis, inverse in enumerate(inverses):
            if axis == without:
                continue
            if axis not in axes:
                factor *= _total_trace(inverse, self.sizes[axis])
            elif isinstance(inverse, float):
                factor *= inverse
            else:
                image = along(image, axes.index(axis) + 1, inverse.T)
        return image, factor

    def explicit_surrogate(
        self, axis: int, axes: tuple[int, ...], rows: Array, inverses: Sequence[Inverse]
    ) -> Array:
        """Return the Gram matrix of explicit queries that an attribute sees with all others fixed."""
        image, factor = self._image(axes, rows, inverses, axis)
        if axis not in axes:
            return np.full((self.sizes[axis],) * 2, factor * float((image**2).sum()))
        flat = np.moveaxis(image, axes.index(axis) + 1, -1).reshape(-1, self.sizes[axis])
        return np.asarray(factor * (flat.T @ flat))

    def loss(self, inverses: Sequence[Inverse]) -> float:
        """Return the error with noise of variance 1 on every row of the product."""
        if not self.sizes:
            return math.fsum(weight for weight, _ in self.products)
        traces = [
            {key: self.trace(axis, key, inverse) for key in self.sets[axis]}
            for axis, inverse in enumerate(inverses)
        ]
        total = math.fsum(
            weight * math.prod(known[key] for known, key in zip(traces, keys, strict=True))
            for weight, keys in self.products
        )
        for weight, axes, rows in self.explicit:
            image, factor = self._image(axes, rows, inverses, None)
            total += weight * factor * float((image**2).sum())
        return total

    def row_energies(self, inverses: Sequence[Array]) -> Array:
        """Return d with error = sum(d / lambda) if rows are weighted by lambda: the diagonal of R'VR."""
        total = np.zeros([inverse.shape[1] for inverse in inverses])
        for coefficient, keys in self.products:
            product = np.full((), coefficient)
            for axis, (key, inverse) in enumerate(zip(keys, inverses, strict=True)):
                product = np.multiply.outer(product, energies(inverse, self.gram(axis, key)))
            total += product
        for weight, axes, tensor in self.explicit:
            image = tensor
            for place, axis in enumerate(axes):
                image = along(image, place + 1, inverses[axis].T)
            others = [axis for axis in range(len(inverses)) if axis not in axes]
            own = np.expand_dims(weight * (image**2).sum(axis=0), others)
            for axis in others:  # of which the total is asked
                shape = [-1 if axis == place else 1 for place in range(len(inverses))]
                own = own * (inverses[axis].sum(axis=0) ** 2).reshape(shape)
            total += own
        return np.maximum(total, 0.0)


def energies(inverse: Array, gram: Array) -> Array:
    """Return the diagonal of R'VR."""
    return np.asarray(np.einsum("ia,ia->a", inverse, gram @ inverse))


def _total_trace(inverse: Inverse, size: int) -> float:
    return inverse * size if isinstance(inverse, float) else float((inverse.sum(axis=0) ** 2).sum())


def product_terms(domain: Domain, groups: Sequence[Group]) -> ProductTerms[Question]:
    """Return query groups, attribute by attribute.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 4, "b": 3, "c": 2})
    >>> workload = mdp.Workload(domain, mdp.product(a="prefix"), mdp.product(a="identity", b="identity"))
    >>> terms = product_terms(domain, workload.groups)
    >>> terms.attributes, [len(sets) for sets in terms.sets]
    (('a', 'b'), [2, 2])
    """
    terms = [gram_terms(group) for group in groups]
    asked: set[str] = set()
    for group, own in zip(groups, terms, strict=True):
        if own is None:
            asked.update(group.attributes)
            continue
        for _, questions in own:
            for name, question, size in zip(group.attributes, questions, group.sizes, strict=True):
                if question.key(size) != Total().key(size):
                    asked.add(name)
    attributes = domain.sort(asked)
    sizes = tuple(domain[name].size for name in attributes)
    sets: list[dict[Hashable, Question]] = [{} for _ in attributes]
    products: dict[tuple[Hashable, ...], float] = {}
    explicit = []
    for group, own in zip(groups, terms, strict=True):
        if own is None:
            rows = group.rows()
            if group.query_weights is not None:
                rows = rows * np.sqrt(group.query_weights)[:, None]
            axes = tuple(attributes.index(name) for name in group.attributes)
            explicit.append((group.weight, axes, rows.reshape(len(rows), *group.sizes)))
            continue
        for coefficient, questions in own:
            given = dict(zip(group.attributes, questions, strict=True))
            keys = []
            for axis, (name, size) in enumerate(zip(attributes, sizes, strict=True)):
                question = given.get(name, Total())
                key = question.key(size)
                sets[axis].setdefault(key, question)
                keys.append(key)
            products[tuple(keys)] = products.get(tuple(keys), 0.0) + coefficient * group.weight
    return ProductTerms(attributes, sizes, sets, [(w, keys) for keys, w in products.items()], explicit)
