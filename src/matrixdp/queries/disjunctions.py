"""Queries that are no conjunctions: disjunctions, and predicates over merged attributes."""

# ruff: noqa: D102 - the methods have the meaning and the signature that `Rows` gives them

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from itertools import product

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.queries.arrays import MAX_EXPLICIT_ENTRIES
from matrixdp.queries.complements import Complement, Totals
from matrixdp.queries.predicate_set import Array, Indicators, Predicates
from matrixdp.queries.rows import Rows, Summands, WrittenRows

__all__ = ["CellSets", "Disjunctions"]


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
        if self.count > MAX_EXPLICIT_ENTRIES:
            raise TooLargeError(
                f"any: {self.count} disjunctions; the limit is {MAX_EXPLICIT_ENTRIES}. "
                "Use fewer predicates or attributes"
            )
        for predicates, size in zip(self.predicates, self.sizes, strict=True):
            if isinstance(predicates, Indicators):
                continue
            rows = predicates.rows(size)
            if not ((rows == 0) | (rows == 1)).all():
                raise WorkloadError("any: found a predicate with entries other than 0 and 1")

    @property
    def count(self) -> int:
        return math.prod(p.count(n) for p, n in zip(self.predicates, self.sizes, strict=True))

    def matrix(self) -> Array:
        cells = math.prod(self.sizes)
        if self.count * cells > MAX_EXPLICIT_ENTRIES:
            raise TooLargeError(
                f"any: {self.count} disjunctions over {cells} cells would be written out; the limit is "
                f"{MAX_EXPLICIT_ENTRIES} entries. Use fewer predicates or attributes"
            )
        outside: Array = np.ones((1, 1))
        for predicates, size in zip(self.predicates, self.sizes, strict=True):
            outside = np.asarray(np.kron(outside, 1.0 - predicates.rows(size)), dtype=np.float64)
        return np.asarray(1.0 - outside)

    @property
    def summands(self) -> Summands:
        every = tuple(Totals(p.count(n)) for p, n in zip(self.predicates, self.sizes, strict=True))
        outside = tuple(Complement(predicates) for predicates in self.predicates)
        return Summands(tuple(range(len(self.sizes))), ((1.0, every), (-1.0, outside)))

    @property
    def asks(self) -> bool:
        pairs = zip(self.predicates, self.sizes, strict=True)
        return any(bool(predicates.squares(size).any()) for predicates, size in pairs)

    def key(self) -> Hashable:
        return ("any", *(p.key(n) for p, n in zip(self.predicates, self.sizes, strict=True)))

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

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:  # noqa: ARG002
        return list(self.texts)
