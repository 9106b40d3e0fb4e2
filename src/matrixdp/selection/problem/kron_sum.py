"""A workload as one sum: Kronecker products of Gram matrices, and Gram matrices of explicit queries.

Seen from one attribute, the strategies of all others make of the sum one Gram matrix. Each attribute's
strategy enters through a right inverse R of it, shape (n, m), with covariance R R'; a number c stands for the
covariance c I: 1 for the identity, 1/n for a strategy that is not known yet.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from weakref import WeakKeyDictionary, ref

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.exact.linear import Array, along, along_axes, kronecker, numbered, outer
from matrixdp.exact.resources import check_matrices
from matrixdp.queries import Group, ProductGroup, Total, Workload
from matrixdp.selection.limits import LIMITS
from matrixdp.selection.problem.grams import ExplicitGram, Gram, QueryGram, SumGram, gram_terms

Inverse = Array | float
#: From this many terms on products are added by matrix multiplications.
_LEAST_TERMS = 8
#: Entries of one side of a multiplication that adds products.
_KRON_SUM_ENTRIES = 1 << 22


@dataclass(frozen=True, eq=False)
class WrittenQueries:
    """Explicit queries (their square-rooted weights multiplied in), whatever attributes they are about.

    Parameters
    ----------
    source : Group or ndarray, shape (queries, sizes ...)
        A group is written out when its entries are first needed.
    """

    source: Group | Array

    @cached_property
    def tensor(self) -> Array:
        """The queries, shape (queries, sizes ...)."""
        if isinstance(self.source, np.ndarray):
            return self.source
        rows = self.source.rows()
        if self.source.query_weights is not None:
            rows = rows * np.sqrt(self.source.query_weights)[:, None]
        return rows.reshape(len(rows), *self.source.sizes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the attributes."""
        return self.source.shape[1:] if isinstance(self.source, np.ndarray) else self.source.sizes

    @property
    def queries(self) -> int:
        """How many there are."""
        return len(self.source) if isinstance(self.source, np.ndarray) else self.source.queries

    @cached_property
    def key(self) -> Hashable:
        """A value equal for equal queries."""
        if isinstance(self.source, np.ndarray):
            return id(self.source)
        own = self.source.query_weights
        weights = None if own is None else hashlib.sha256(np.ascontiguousarray(own).tobytes()).digest()
        return (type(self.source).__name__, self.source.key(), weights)

    @cached_property
    def exchangeable(self) -> bool:
        """Whether there are two axes and the queries stay the same when they are exchanged."""
        square = len(self.sizes) == 2 and self.sizes[0] == self.sizes[1]
        square = square and self.queries * math.prod(self.sizes) <= LIMITS.written_entries
        return square and bool(np.array_equal(self.tensor, np.swapaxes(self.tensor, 1, 2)))

    @cached_property
    def groups(self) -> tuple[NDArray[np.intp], ...]:
        """For each axis the number of each value: values that no query tells apart have the same."""
        found = []
        for axis, size in enumerate(self.sizes, 1):
            found.append(numbered(np.moveaxis(self.tensor, axis, 0).reshape(size, -1)))
        return tuple(found)

    def over(self, groups: tuple[NDArray[np.intp], ...]) -> Array:
        """Return the queries over one value of each group on every axis, shape (queries, groups ...)."""
        key = tuple(group.tobytes() for group in groups)
        if key not in self._over:
            tensor = self.tensor
            for axis, group in enumerate(groups, 1):
                chosen = np.unique(group, return_index=True)[1]
                if not np.array_equal(chosen, np.arange(len(group))):
                    tensor = np.take(tensor, chosen, axis=axis)
            self._over[key] = np.ascontiguousarray(tensor)
        return self._over[key]

    @cached_property
    def _over(self) -> dict[tuple[bytes, ...], Array]:
        return {}


@dataclass(frozen=True, eq=False)
class Rows:
    """weight x the Gram matrix of explicit queries about the attributes at some places."""

    weight: float
    axes: tuple[int, ...]
    queries: WrittenQueries


@dataclass(eq=False)
class KronSum:
    """The Gram matrix of queries as a sum of Kronecker products and of Gram matrices of explicit queries.

    Parameters
    ----------
    attributes : tuple of str
        Those about which more than the total is asked, in domain order.
    sizes : tuple of int
    sets : sequence of dict
        For each attribute the Gram matrices of what is asked about it, by key.
    terms : sequence of (float, dict)
        Coefficients, of either sign, with the keys of attributes by place; of others the total is asked.
    rows : sequence of Rows
    widths : tuple of int
        How many values the attributes have in a matrix over several: see `Domain.width`.
    """

    attributes: tuple[str, ...]
    sizes: tuple[int, ...]
    sets: Sequence[dict[Hashable, Gram]]
    terms: Sequence[tuple[float, dict[int, Hashable]]]
    rows: Sequence[Rows] = ()
    widths: tuple[int, ...] = ()
    #: The cells of the attributes in a table, where others stand for their values.
    counted: int = 0
    #: By axis, the right inverse that was last asked about, and its covariance R R'.
    _covariances: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    @classmethod
    def whole(cls, workload: Workload) -> KronSum:
        """Return a workload as one sum, made once for all who hold it at a time; see `of`."""
        found = _WHOLE[workload]() if workload in _WHOLE else None
        if found is None:
            found = cls.of(workload.domain, workload.groups)
            _WHOLE[workload] = ref(found)
        return found

    @classmethod
    def of(cls, domain: Domain, groups: Iterable[Group]) -> KronSum:
        """Return query groups as one sum.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"a": 4, "b": 3, "c": 2})
        >>> workload = mdp.Workload(domain, mdp.product(a="prefix"), mdp.product(a="identity", b="identity"))
        >>> terms = KronSum.of(domain, workload.groups)
        >>> terms.attributes, [len(sets) for sets in terms.sets]
        (('a', 'b'), [2, 2])
        """
        grams: dict[str, dict[Hashable, Gram]] = {}
        merged: dict[tuple[tuple[str, Hashable], ...], float] = {}
        written: list[tuple[float, tuple[str, ...], WrittenQueries]] = []
        contents: dict[Hashable, WrittenQueries] = {}

        def add(asked: list[tuple[str, Hashable]], weight: float) -> None:
            key = tuple(asked)
            merged[key] = merged.get(key, 0.0) + weight

        for group in groups:
            if isinstance(group, ProductGroup) and group.query_weights is None:
                asked = []  # there may be a million of these: no Gram matrix is made twice
                for name, own, size in zip(group.attributes, group.predicates, group.sizes, strict=True):
                    if not isinstance(own, Total):
                        known, key = grams.setdefault(name, {}), own.key(size)
                        if key not in known:
                            known[key] = QueryGram(own, size)
                        asked.append((name, key))
                add(asked, group.weight)
                continue
            terms = gram_terms(group)
            if terms is None:
                rest = _without_totals(group)
                queries = WrittenQueries(rest)
                written.append((rest.weight, rest.attributes, contents.setdefault(queries.key, queries)))
            for coefficient, found in terms or ():
                asked = []
                for name, gram in zip(group.attributes, found, strict=True):
                    if not gram.total_only:
                        grams.setdefault(name, {}).setdefault(gram.key, gram)
                        asked.append((name, gram.key))
                add(asked, group.weight * coefficient)
        attributes = domain.sort({*grams}.union(*(own for _, own, _ in written)))
        place = {name: axis for axis, name in enumerate(attributes)}
        sizes = tuple(domain[name].size for name in attributes)
        sets = [grams.get(name, {}) for name in attributes]
        kept = [(weight, {place[name]: key for name, key in asked}) for asked, weight in merged.items()]
        times = Counter(chain.from_iterable(asked for _, asked in kept))
        for axis, (known, size) in enumerate(zip(sets, sizes, strict=True)):
            if times[axis] < len(kept):
                total = QueryGram(Total(), size)
                known.setdefault(total.key, total)
        rows = [
            Rows(weight, tuple(place[name] for name in names), queries) for weight, names, queries in written
        ]
        widths = tuple(domain.width(name) for name in attributes)
        return cls(attributes, sizes, sets, kept, rows, widths, domain.counted(attributes))

    @cached_property
    def products(self) -> list[tuple[float, tuple[Hashable, ...]]]:
        """The terms with a key for every attribute."""
        totals = [Total().key(size) for size in self.sizes]
        return [
            (weight, tuple([asked.get(axis, total) for axis, total in enumerate(totals)]))
            for weight, asked in self.terms
        ]

    @cached_property
    def explicit(self) -> list[tuple[float, tuple[int, ...], Array]]:
        """The weights of explicit queries, their axes, and their tensors."""
        return [(own.weight, own.axes, own.queries.tensor) for own in self.rows]

    # Which attributes factor out.

    @cached_property
    def factored(self) -> dict[str, Gram]:
        """The attributes with proportional queries everywhere, and which."""
        if self.rows:
            return {}
        alone = zip(self.attributes, self.sets, strict=True)
        return {name: next(iter(sets.values())) for name, sets in alone if len(sets) == 1}

    @cached_property
    def joint(self) -> tuple[str, ...]:
        """The other attributes."""
        return tuple(name for name in self.attributes if name not in self.factored)

    @property
    def cells(self) -> int:
        """The number of cells of the attributes that do not factor out."""
        return math.prod(self.sizes[self.attributes.index(name)] for name in self.joint)

    @property
    def columns(self) -> int:
        """The number of columns of a matrix over them."""
        if len(self.joint) < 2:
            return self.cells
        return math.prod(self.widths[self.attributes.index(name)] for name in self.joint)

    @property
    def weight(self) -> float:
        """The sum of the coefficients of all products."""
        return sum(weight for weight, _ in self.terms)

    def on(self, names: Sequence[str]) -> KronSum:
        """Return the sum restricted to some attributes, with all explicit queries."""
        axes = [self.attributes.index(name) for name in names]
        merged: dict[tuple[Hashable, ...], float] = {}
        for weight, keys in self.products:
            own = tuple(keys[axis] for axis in axes)
            merged[own] = merged.get(own, 0.0) + weight
        terms = [(weight, dict(enumerate(own))) for own, weight in merged.items()]
        rows = [Rows(one.weight, tuple(map(axes.index, one.axes)), one.queries) for one in self.rows]
        sizes = tuple(self.sizes[axis] for axis in axes)
        return KronSum(tuple(names), sizes, [self.sets[axis] for axis in axes], terms, rows)

    def dense(self, names: Sequence[str]) -> Array:
        """Return the Gram matrix on some attributes over their cells.

        Examples
        --------
        >>> import matrixdp as mdp
        >>> domain = mdp.Domain({"a": 2, "b": 2})
        >>> workload = mdp.Workload(domain, mdp.product(a="prefix"), mdp.product(b="identity"))
        >>> KronSum.of(domain, workload.groups).dense(["b"])
        array([[2., 1.],
               [1., 2.]])
        """
        own = self.on(names)
        cells = math.prod(own.sizes)
        check_matrices(tuple(names), cells)
        total = np.zeros((cells, cells))
        for weight, axes, tensor in own.explicit:
            shape = [size if axis in axes else 1 for axis, size in enumerate(own.sizes)]
            order = [0, *(1 + place for place in np.argsort(axes))]
            spread = np.broadcast_to(tensor.transpose(order).reshape(-1, *shape), (len(tensor), *own.sizes))
            flat = spread.reshape(-1, cells)
            total += weight * (flat.T @ flat)
        if own.terms:
            terms = [
                (weight, [own.gram(axis, key) for axis, key in enumerate(keys)])
                for weight, keys in own.products
            ]
            total += sum_of_products(terms)
        return total

    # What one attribute sees of the others' strategies.

    def gram(self, axis: int, key: Hashable) -> Array:
        """Return the Gram matrix of what is asked about an attribute, shape (n, n)."""
        check_matrices(self.attributes[axis : axis + 1], self.sizes[axis])
        return self.sets[axis][key].explicit.entries

    @property
    def unknown(self) -> list[Inverse]:
        """Placeholders for strategies about which nothing is known."""
        return [1.0 / size for size in self.sizes]

    def proportional(self) -> bool:
        """Return whether the whole is one product: every attribute is asked the same in every group."""
        return not self.rows and all(len(sets) == 1 for sets in self.sets)

    def plain(self) -> bool:
        """Return whether every query set of every attribute has a Gram matrix a I + b 11'."""
        return all(map(self.symmetric, range(len(self.sizes))))

    def symmetric(self, axis: int) -> bool:
        """Return the same of one attribute."""
        explicit = any(axis in rows.axes for rows in self.rows)
        return not explicit and all(gram.symmetric is not None for gram in self.sets[axis].values())

    def large(self, axis: int, most: int | None = None) -> bool:
        """Return whether an attribute is too large for explicit strategies, so that it is measured whole.

        Past ``most`` values it is where nothing tells its values apart.
        """
        size, asked = self.sizes[axis], self.sets[axis].values()
        whole = most is not None and size > most and all(gram.symmetric is not None for gram in asked)
        return whole or size > LIMITS.axis_cells

    def trace(self, axis: int, key: Hashable, inverse: Inverse) -> float:
        """Return tr(V R R') of what is asked about one attribute."""
        gram = self.sets[axis][key]
        if isinstance(inverse, float):
            return inverse * gram.trace()
        if gram.symmetric is not None:
            a, b = gram.symmetric
            return a * float(np.vdot(inverse, inverse)) + b * _total_trace(inverse, len(inverse))
        return float(np.vdot(self._covariance(axis, inverse), self.gram(axis, key)))

    def _covariance(self, axis: int, inverse: Array) -> Array:
        if axis not in self._covariances or self._covariances[axis][0] is not inverse:
            self._covariances[axis] = inverse, inverse @ inverse.T
        return self._covariances[axis][1]

    def surrogate(self, axis: int, inverses: Sequence[Inverse]) -> SumGram:
        """Return the Gram matrix that an attribute sees with the strategies of all others fixed."""
        asked = self.sets[axis]
        if self.rows or any(gram.symmetric is None for gram in asked.values()):
            check_matrices(self.attributes[axis : axis + 1], self.sizes[axis])
        coefficients = self._coefficients(axis, inverses).items()
        parts: list[tuple[float, Gram]] = [(factor, asked[key]) for key, factor in coefficients]
        for weight, axes, rows in self.explicit:
            parts.append((weight, ExplicitGram(self.explicit_surrogate(axis, axes, rows, inverses))))
        return SumGram(tuple(parts))

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
            return math.fsum(weight for weight, _ in self.terms)
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
            grams = [self.gram(axis, key) for axis, key in enumerate(keys)]
            total += coefficient * outer(map(energies, inverses, grams))
        for weight, axes, tensor in self.explicit:
            image = along_axes(tensor, (inverses[axis].T for axis in axes), 1)
            others = [axis for axis in range(len(inverses)) if axis not in axes]
            own = np.expand_dims(weight * (image**2).sum(axis=0), others)
            for axis in others:  # of which the total is asked
                shape = [-1 if axis == place else 1 for place in range(len(inverses))]
                own = own * (inverses[axis].sum(axis=0) ** 2).reshape(shape)
            total += own
        return np.maximum(total, 0.0)


#: The sums of workloads, as long as somebody holds them.
_WHOLE: WeakKeyDictionary[Workload, ref[KronSum]] = WeakKeyDictionary()


def _without_totals(group: Group) -> Group:
    """Return products without the attributes of which they ask the total alone."""
    if not isinstance(group, ProductGroup):
        return group
    asked = zip(group.attributes, group.predicates, group.sizes, strict=True)
    kept = [one for one in asked if not QueryGram(one[1], one[2]).total_only]
    names, predicates, sizes = zip(*kept, strict=True)
    return replace(group, attributes=names, predicates=predicates, sizes=sizes)


def energies(inverse: Array, gram: Array) -> Array:
    """Return the diagonal of R'VR."""
    return np.asarray(np.einsum("ia,ia->a", inverse, gram @ inverse))


def _total_trace(inverse: Inverse, size: int) -> float:
    return inverse * size if isinstance(inverse, float) else float((inverse.sum(axis=0) ** 2).sum())


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
            total = total + coefficient * kronecker(own)
        return total
    outer = len(factors[0])
    inner = int(np.prod([len(factor) for factor in factors[1:]]))
    flat = np.zeros((outer * outer, inner * inner))
    step = max(1, _KRON_SUM_ENTRIES // (inner * inner))
    for first in range(0, len(terms), step):
        some = terms[first : first + step]
        left = np.stack([coefficient * own[0].ravel() for coefficient, own in some])
        flat += left.T @ np.stack([kronecker(own[1:]).ravel() for _, own in some])
    return flat.reshape(outer, outer, inner, inner).transpose(0, 2, 1, 3).reshape(outer * inner, -1)


def check_table(workload: Workload, names: tuple[str, ...], mechanism: str) -> None:
    """Raise TooLargeError if the table of some attributes has more cells than can be counted."""
    check_cells(workload.domain.counted(names), names, mechanism)


def check_cells(cells: int, names: Sequence[str], mechanism: str, most: float | None = None) -> None:
    """Raise TooLargeError if a table has more cells than can be counted, or than a limit."""
    limit = LIMITS.max_table_cells if most is None else most
    if cells > limit:
        raise TooLargeError(
            f"{mechanism}: {' x '.join(names)} has {cells:.3g} cells; the limit is {limit:,}. Use residual, "
            "which never forms the whole table"
        )
