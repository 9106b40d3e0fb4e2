"""Explicit queries over the cells of a few attributes: what they are, written out or by their structure."""

# ruff: noqa: D102, ARG002 - the methods have the meaning and the signature that `Rows` gives them

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from matrixdp.domain import Domain
from matrixdp.errors import WorkloadError
from matrixdp.queries.arrays import Array, content_key, real_array
from matrixdp.queries.predicate_set import Predicates

__all__ = ["AbsoluteDifferences", "MatrixRows", "Rows", "Summands", "Sums", "WrittenRows"]


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
        """Return what each query asks, as text."""


@dataclass(frozen=True)
class Sums(Rows):
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

    sizes: tuple[int, int]

    @property
    def count(self) -> int:
        return sum(self.sizes) - 1

    def matrix(self) -> Array:
        sums = np.add.outer(np.arange(self.sizes[0]), np.arange(self.sizes[1])).ravel()
        return np.asarray(sums[None, :] <= np.arange(self.count)[:, None], dtype=float)

    def key(self) -> Hashable:
        return self

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        return [f"{attributes[0]} + {attributes[1]} <= {c}" for c in range(self.count)]


@dataclass(frozen=True)
class AbsoluteDifferences(Rows):
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

    sizes: tuple[int, int]

    @property
    def count(self) -> int:
        return max(self.sizes)

    def matrix(self) -> Array:
        gaps = np.abs(np.subtract.outer(np.arange(self.sizes[0]), np.arange(self.sizes[1]))).ravel()
        return np.asarray(gaps[None, :] <= np.arange(self.count)[:, None], dtype=float)

    def key(self) -> Hashable:
        return self

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        return [f"|{attributes[0]} - {attributes[1]}| <= {c}" for c in range(self.count)]


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
        values = real_array(self.values, "dense")
        if values.ndim != 2 or 0 in values.shape or not np.isfinite(values).all():
            raise WorkloadError(
                f"dense: found an array of shape {values.shape}; expected a finite matrix, a row a query"
            )
        object.__setattr__(self, "values", values)

    def describe(self, domain: Domain, attributes: tuple[str, ...]) -> list[str]:
        return [f"query {row}" for row in range(self.count)]
