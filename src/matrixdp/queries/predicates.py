"""Predicate sets on one attribute: rows of a matrix with one column for each value of the attribute.

Every set knows its Gram matrix, its product with a matrix and its quadratic forms, in closed form where
there is one, so that a set of a million ranges costs no more than the attribute's values squared.
"""

# ruff: noqa: D102, ARG002 - the methods have the meaning and the signature that `Predicates` gives them

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from matrixdp.domain import Attribute
from matrixdp.errors import WorkloadError
from matrixdp.queries.arrays import content_key, real_array
from matrixdp.queries.intervals import AllRanges, Circular, Ranges, Width
from matrixdp.queries.predicate_set import Array, Indicators, Predicates, Spans

__all__ = [
    "AllRanges",
    "Circular",
    "Identity",
    "Indicators",
    "Matrix",
    "Predicates",
    "Prefix",
    "Ranges",
    "Sets",
    "Suffix",
    "Total",
    "Width",
]


@dataclass(frozen=True)
class Identity(Indicators):
    """One query for each value.

    Examples
    --------
    >>> Identity().count(4)
    4
    """

    def count(self, size: int) -> int:
        return size

    def apply(self, matrix: Array) -> Array:
        return matrix

    def describe(self, attribute: Attribute) -> list[str]:
        return [attribute.label(code) for code in range(attribute.size)]

    def gram(self, size: int) -> Array:
        return np.eye(size)

    def quadratic(self, form: Array) -> Array:
        return np.asarray(np.diagonal(form)).copy()

    def spans(self, size: int) -> Spans:
        return Spans.of_intervals(np.arange(size), np.arange(size))

    def symmetric(self, size: int) -> tuple[float, float] | None:
        return (1.0, 0.0)


@dataclass(frozen=True)
class Total(Indicators):
    """One query that counts every value.

    Examples
    --------
    >>> Total().rows(3)
    array([[1., 1., 1.]])
    """

    def count(self, size: int) -> int:
        return 1

    def apply(self, matrix: Array) -> Array:
        return np.asarray(matrix.sum(axis=0, keepdims=True))

    def describe(self, attribute: Attribute) -> list[str]:
        return ["all"]

    def gram(self, size: int) -> Array:
        return np.ones((size, size))

    def quadratic(self, form: Array) -> Array:
        return np.array([form.sum()])

    def symmetric(self, size: int) -> tuple[float, float] | None:
        return (0.0, 1.0)


@dataclass(frozen=True)
class Prefix(Indicators):
    """For each value the number of records at or below it, the last being the total.

    Examples
    --------
    >>> Prefix().rows(3)
    array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 1., 1.]])
    """

    def count(self, size: int) -> int:
        return size

    def apply(self, matrix: Array) -> Array:
        return np.cumsum(matrix, axis=0)

    def describe(self, attribute: Attribute) -> list[str]:
        return [attribute.range_label(0, last) for last in range(attribute.size)]

    def gram(self, size: int) -> Array:
        codes = np.arange(size)
        return np.asarray(size - np.maximum.outer(codes, codes), dtype=float)

    def quadratic(self, form: Array) -> Array:
        return np.diagonal(form.cumsum(axis=0).cumsum(axis=1)).copy()

    def spans(self, size: int) -> Spans:
        return Spans.of_intervals(np.zeros(size, dtype=np.intp), np.arange(size))


@dataclass(frozen=True)
class Suffix(Indicators):
    """For each value the number of records at or above it, the first being the total.

    Examples
    --------
    >>> Suffix().rows(3)
    array([[1., 1., 1.],
           [0., 1., 1.],
           [0., 0., 1.]])
    """

    def count(self, size: int) -> int:
        return size

    def apply(self, matrix: Array) -> Array:
        return np.cumsum(matrix[::-1], axis=0)[::-1]

    def describe(self, attribute: Attribute) -> list[str]:
        return [attribute.range_label(first, attribute.size - 1) for first in range(attribute.size)]

    def gram(self, size: int) -> Array:
        codes = np.arange(size)
        return np.asarray(np.minimum.outer(codes, codes) + 1, dtype=float)

    def quadratic(self, form: Array) -> Array:
        return np.diagonal(form[::-1, ::-1].cumsum(axis=0).cumsum(axis=1))[::-1].copy()

    def spans(self, size: int) -> Spans:
        return Spans.of_intervals(np.arange(size), np.full(size, size - 1))


@dataclass(frozen=True)
class Sets(Indicators):
    """Listed sets of codes.

    Parameters
    ----------
    sets : tuple of tuple of int
        The codes of each query, each at most once in a query; an empty one asks for nothing.

    Raises
    ------
    WorkloadError
        If there are no sets.

    Examples
    --------
    >>> Sets(((0, 2), (1,))).rows(3)
    array([[1., 0., 1.],
           [0., 1., 0.]])
    """

    sets: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if not self.sets:
            raise WorkloadError("sets: found an empty list; expected at least one set")

    def count(self, size: int) -> int:
        return len(self.sets)

    def rows(self, size: int) -> Array:
        rows = np.zeros((len(self.sets), size))
        for row, codes in zip(rows, self.sets, strict=True):
            row[list(codes)] = 1.0
        return rows

    def apply(self, matrix: Array) -> Array:
        return self.rows(len(matrix)) @ matrix

    def describe(self, attribute: Attribute) -> list[str]:
        return [" | ".join(attribute.label(code) for code in codes) or "none" for codes in self.sets]

    def spans(self, size: int) -> Spans:
        first = np.array([min(codes, default=-1) for codes in self.sets], dtype=np.intp)
        last = np.array([max(codes, default=-1) for codes in self.sets], dtype=np.intp)
        counts = np.array([len(codes) for codes in self.sets])
        return Spans(first, last, (counts > 0) & (last - first + 1 == counts))

    def check(self, size: int) -> None:
        for codes in self.sets:
            if any(not 0 <= code < size for code in codes):
                raise WorkloadError(f"sets: found codes {list(codes)}; expected codes within 0 to {size - 1}")
            if len(set(codes)) != len(codes):
                raise WorkloadError(f"sets: found codes {list(codes)}; expected each value once in a set")


@dataclass(frozen=True, eq=False)
class Matrix(Predicates):
    """Any real matrix, one row for each query.

    Parameters
    ----------
    matrix : ndarray
        Shape (count, size), finite.

    Raises
    ------
    WorkloadError
        If it is not a finite real matrix with at least one row and one column.
    TooLargeError
        If it has more entries than explicit queries may have.

    Examples
    --------
    >>> half = Matrix(np.array([[0.5, 0.5, 0.0]]))
    >>> half.gram(3)[0]
    array([0.25, 0.25, 0.  ])
    """

    matrix: Array

    def __post_init__(self) -> None:
        matrix = real_array(self.matrix, "matrix")
        if matrix.ndim != 2 or 0 in matrix.shape or not np.isfinite(matrix).all():
            raise WorkloadError(
                f"matrix: found an array of shape {matrix.shape}"
                f"{'' if np.isfinite(matrix).all() else ' with entries that are not finite'};"
                " expected a finite matrix with one row for each query"
            )
        object.__setattr__(self, "matrix", matrix)

    @cached_property
    def _key(self) -> str:
        return content_key(self.matrix)

    def key(self, size: int) -> Hashable:
        return ("matrix", self._key)

    def count(self, size: int) -> int:
        return len(self.matrix)

    def rows(self, size: int) -> Array:
        return self.matrix

    def apply(self, matrix: Array) -> Array:
        return np.asarray(self.matrix @ matrix)

    def squares(self, size: int) -> Array:
        return np.asarray(np.einsum("ij,ij->i", self.matrix, self.matrix))

    def describe(self, attribute: Attribute) -> list[str]:
        return [f"query {row}" for row in range(len(self.matrix))]

    def check(self, size: int) -> None:
        if self.matrix.shape[1] != size:
            raise WorkloadError(
                f"matrix: found {self.matrix.shape[1]} columns; expected {size}, the attribute's size"
            )
