"""A union of products, attribute by attribute: what the strategy of one attribute sees of all others.

Each attribute's strategy enters through a right inverse R of it, shape (n, m), with covariance R R'; a number
c stands for the covariance c I: 1 for the identity, 1/n for a strategy that is not known yet.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import along
from matrixdp.exact.resources import check_matrices
from matrixdp.queries import Group, Total, Workload
from matrixdp.selection.problem.grams import Question, gram_terms

__all__ = [
    "MAX_AXIS_CELLS",
    "MAX_TABLE_CELLS",
    "GivenGram",
    "Inverse",
    "KronSum",
    "TableShape",
    "check_cells",
    "check_table",
    "energies",
    "joint_gram",
    "sum_of_products",
    "table_shape",
]

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
class KronSum(Generic[A]):
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

    @classmethod
    def of(cls, domain: Domain, groups: Sequence[Group]) -> KronSum[Question]:
        """Return query groups, attribute by attribute.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"a": 4, "b": 3, "c": 2})
        >>> workload = mdp.Workload(domain, mdp.product(a="prefix"), mdp.product(a="identity", b="identity"))
        >>> terms = KronSum.of(domain, workload.groups)
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
        return KronSum(attributes, sizes, sets, [(w, keys) for keys, w in products.items()], explicit)

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


#: From so many terms on they are added by matrix multiplications, of so many entries of one side at a time.
_LEAST_TERMS = 8
_ENTRIES = 1 << 22


def sum_of_products(terms: Sequence[tuple[float, Sequence[Array]]]) -> Array:
    """Return the sum of coefficients times Kronecker products of square matrices.

    Parameters
    ----------
    terms : sequence of (float, sequence of ndarray)
        At least one; the factors of every term have the same shapes.

    Examples
    --------
    >>> sum_of_products([(2.0, [np.eye(1), np.eye(2)]), (1.0, [np.ones((1, 1)), np.ones((2, 2))])])
    array([[3., 1.],
           [1., 3.]])
    """
    factors = terms[0][1]
    if not factors:
        return np.full((1, 1), sum(coefficient for coefficient, _ in terms))
    if len(terms) < _LEAST_TERMS or len(factors) < 2:
        total: Array = np.zeros(())
        for coefficient, own in terms:
            total = total + coefficient * reduce(_kron, own)
        return total
    outer = len(factors[0])
    inner = int(np.prod([len(factor) for factor in factors[1:]]))
    flat = np.zeros((outer * outer, inner * inner))
    step = max(1, _ENTRIES // (inner * inner))
    for first in range(0, len(terms), step):
        some = terms[first : first + step]
        left = np.stack([coefficient * own[0].ravel() for coefficient, own in some])
        flat += left.T @ np.stack([reduce(_kron, own[1:]).ravel() for _, own in some])
    return flat.reshape(outer, outer, inner, inner).transpose(0, 2, 1, 3).reshape(outer * inner, -1)


def _kron(left: Array, right: Array) -> Array:
    return np.asarray(np.kron(left, right), dtype=np.float64)


#: A part on several attributes is measured over the data vector of their table: up to this many cells.
MAX_TABLE_CELLS = 100_000_000


def check_table(workload: Workload, names: tuple[str, ...], mechanism: str) -> None:
    """Raise TooLargeError if the table of some attributes has more cells than can be counted."""
    check_cells(workload.domain.cells(names), names, mechanism)


def check_cells(cells: int, names: Sequence[str], mechanism: str, most: float | None = None) -> None:
    """Raise TooLargeError if a table has more cells than can be counted, or than a limit."""
    limit = MAX_TABLE_CELLS if most is None else most
    if cells > limit:
        raise TooLargeError(
            f"{mechanism}: {' x '.join(names)} has {cells:.3g} cells; the limit is {limit:,}. Use residual, "
            "which never forms the whole table"
        )


@dataclass(frozen=True)
class TableShape:
    """How a workload looks as one table.

    Attributes
    ----------
    factored : dict of str to Question
        Attributes with proportional queries in every group, and which.
    joint : tuple of str
        The others.
    cells : int
        Cells of the joint attributes.
    weight : float
        What the products of the factored attributes count together, weights and coefficients of all terms.
    """

    factored: dict[str, Question]
    joint: tuple[str, ...]
    cells: int
    weight: float


def table_shape(workload: Workload) -> TableShape:
    """Return which attributes factor out of a workload.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> domain = mdp.Domain({"a": 10, "b": 10})
    >>> table_shape(mdp.Workload(domain, mdp.product(a="prefix", b="range"))).cells
    1
    """
    weight, terms = 0.0, 0
    explicit: set[str] = set()
    asked: defaultdict[str, dict[Hashable, Question]] = defaultdict(dict)
    times: Counter[str] = Counter()
    for group in workload:
        own = gram_terms(group)
        if own is None:
            terms += 1
            explicit.update(group.attributes)
            continue
        for coefficient, questions in own:
            terms += 1
            weight += coefficient * group.weight
            times.update(group.attributes)
            for name, question, size in zip(group.attributes, questions, group.sizes, strict=True):
                asked[name].setdefault(question.key(size), question)
    factored, joint = {}, []
    for name in workload.domain.sort({*explicit, *asked}):
        size = workload.domain[name].size
        known = asked[name]
        if times[name] < terms:  # the other terms ask for its total
            known.setdefault(Total().key(size), Total())
        if name in explicit or len(known) > 1:
            joint.append(name)
        elif Total().key(size) not in known:
            [factored[name]] = known.values()
    return TableShape(factored, tuple(joint), workload.domain.cells(tuple(joint)), weight)


def joint_gram(workload: Workload, joint: tuple[str, ...]) -> Array:
    """Return the sum over groups of the Gram matrices on the joint attributes, weights included."""
    terms = KronSum.of(workload.domain, workload.groups)
    axes = [terms.attributes.index(name) for name in joint]
    sizes = tuple(terms.sizes[axis] for axis in axes)
    merged: dict[tuple[Hashable, ...], float] = {}
    for weight, keys in terms.products:
        own = tuple(keys[axis] for axis in axes)
        merged[own] = merged.get(own, 0.0) + weight
    check_matrices(joint, math.prod(sizes))
    total = np.zeros((math.prod(sizes),) * 2)
    for weight, places, rows in terms.explicit:
        shape = [size if axis in places else 1 for axis, size in zip(axes, sizes, strict=True)]
        spread = np.broadcast_to(rows.reshape(len(rows), *shape), (len(rows), *sizes))
        flat = spread.reshape(len(rows), len(total))
        total += weight * (flat.T @ flat)
    if merged:
        total += sum_of_products(
            [
                (weight, [terms.gram(axis, key) for axis, key in zip(axes, own, strict=True)])
                for own, weight in merged.items()
            ]
        )
    return total
