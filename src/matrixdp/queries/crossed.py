"""Explicit queries over merged attributes, each asked within every predicate of further attributes."""

# ruff: noqa: D102 - the methods have the meaning and the signature that `Rows` gives them

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError
from matrixdp.queries.arrays import MAX_EXPLICIT_ENTRIES
from matrixdp.queries.predicate_set import Array, Predicates
from matrixdp.queries.predicates import Total
from matrixdp.queries.rows import Rows, Summands

__all__ = ["Crossed"]


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
        products that need not be written out; or if there are more than so many queries.

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
        if self.content.summands is None:
            self._check_entries()
        if self.count > MAX_EXPLICIT_ENTRIES:
            raise TooLargeError(
                f"by: {self.count} queries; the limit is {MAX_EXPLICIT_ENTRIES}. "
                "Use fewer predicates or attributes"
            )

    def _check_entries(self) -> None:
        cells = math.prod(self.sizes)
        if self.count * cells > MAX_EXPLICIT_ENTRIES:
            raise TooLargeError(
                f"by: {self.count} queries over {cells} cells; the limit is {MAX_EXPLICIT_ENTRIES} entries. "
                "Use fewer predicates or attributes"
            )

    @property
    def others(self) -> tuple[int, ...]:
        """The places of the attributes that are not merged."""
        return tuple(place for place in range(len(self.sizes)) if place not in self.merged)

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of explicit queries, then that of the predicates on each other attribute."""
        sizes = (self.sizes[place] for place in self.others)
        return (self.content.count, *(p.count(n) for p, n in zip(self.predicates, sizes, strict=True)))

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
        sizes = (self.sizes[place] for place in self.others)
        pairs = zip(self.predicates, sizes, strict=True)
        return self.content.asks and all(bool(own.squares(size).any()) for own, size in pairs)

    def matrix(self) -> Array:
        self._check_entries()
        places = (*self.merged, *self.others)
        rows = self.content.matrix()
        for predicates, place in zip(self.predicates, self.others, strict=True):
            rows = np.asarray(np.kron(rows, predicates.rows(self.sizes[place])), dtype=np.float64)
        tensor = rows.reshape(len(rows), *(self.sizes[place] for place in places))
        axes = [0, *(1 + int(axis) for axis in np.argsort(places))]
        return np.ascontiguousarray(tensor.transpose(axes)).reshape(len(rows), -1)

    def key(self) -> Hashable:
        sizes = (self.sizes[place] for place in self.others)
        keys = (p.key(n) for p, n in zip(self.predicates, sizes, strict=True))
        return ("by", self.content.key(), self.merged, *keys)

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
