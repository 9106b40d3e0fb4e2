"""What all predicate sets on one attribute have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Attribute

__all__ = ["Array", "Indicators", "Predicates", "Spans"]

Array = NDArray[np.float64]

#: Entries of the columns that `Predicates.squares` forms at a time.
_BLOCK = 1 << 22


@final
@dataclass(frozen=True, eq=False)
class Spans:
    """The first and the last value that each query of a set asks about.

    Attributes
    ----------
    first, last : ndarray of int, shape (count,)
        Codes, both inclusive; -1 where the query asks about nothing, or it is not known.
    whole : ndarray of bool, shape (count,)
        Whether the query counts each value from the first to the last once, and no other.

    Examples
    --------
    >>> spans = Spans.of_rows(np.array([[0.0, 1.0, 1.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))
    >>> spans.first.tolist(), spans.last.tolist(), spans.whole.tolist()
    ([1, 0, -1], [2, 2, -1], [True, False, False])
    """

    first: NDArray[np.intp]
    last: NDArray[np.intp]
    whole: NDArray[np.bool_]

    @classmethod
    def of_intervals(cls, first: NDArray[np.intp], last: NDArray[np.intp]) -> Self:
        """Return the spans of intervals."""
        return cls(first, last, np.ones(len(first), dtype=bool))

    @classmethod
    def of_rows(cls, rows: Array) -> Self:
        """Return the spans of the rows of a matrix."""
        asked = rows != 0
        some = asked.any(axis=1)
        first = np.where(some, asked.argmax(axis=1), -1)
        last = np.where(some, rows.shape[1] - 1 - asked[:, ::-1].argmax(axis=1), -1)
        once = ((rows == 1) == asked).all(axis=1)
        return cls(first, last, some & once & (asked.sum(axis=1) == last - first + 1))

    @classmethod
    def unknown(cls, count: int) -> Self:
        """Return those of queries of which no more is known."""
        nowhere = np.full(count, -1, dtype=np.intp)
        return cls(nowhere, nowhere, np.zeros(count, dtype=bool))

    @classmethod
    def joined(cls, parts: Iterable[Spans]) -> Self:
        """Return the spans of several sets, one after the other."""
        first, last, whole = zip(*((part.first, part.last, part.whole) for part in parts), strict=True)
        return cls(np.concatenate(first), np.concatenate(last), np.concatenate(whole))


class Predicates(ABC):
    """A set of queries on one attribute with ``size`` values.

    The queries are the rows of a matrix with one column for each value. A set is public, frozen, and does not
    know its attribute, so that attributes of one size share it.
    """

    @abstractmethod
    def count(self, size: int) -> int:
        """Return the number of queries.

        Parameters
        ----------
        size : int
            The number of values of the attribute, at least 1.
        """

    @abstractmethod
    def apply(self, matrix: Array) -> Array:
        """Return the queries times a matrix.

        Parameters
        ----------
        matrix : ndarray
            Shape (size, k).

        Returns
        -------
        ndarray
            Shape (count, k); may be `matrix` itself.
        """

    @abstractmethod
    def describe(self, attribute: Attribute) -> list[str]:
        """Return what each query asks about, as text, in the order of the rows.

        Parameters
        ----------
        attribute : Attribute
            The attribute, which names the values.
        """

    def key(self, size: int) -> Hashable:
        """Return a value that is equal for sets with equal content on ``size`` values.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        """
        return (self, size)

    def text_key(self, size: int) -> Hashable:
        """Return a value that is equal for sets that have equal content and describe it by equal texts.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        """
        return self.key(size)

    def rows(self, size: int) -> Array:
        """Return the queries as a dense matrix.

        Parameters
        ----------
        size : int
            The number of values of the attribute.

        Returns
        -------
        ndarray
            Shape (count, size).
        """
        return self.apply(np.eye(size))

    def gram(self, size: int) -> Array:
        """Return the Gram matrix W'W of the queries W.

        Parameters
        ----------
        size : int
            The number of values of the attribute.

        Returns
        -------
        ndarray
            Shape (size, size), symmetric.
        """
        rows = self.rows(size)
        return np.asarray(rows.T @ rows)

    def quadratic(self, form: Array) -> Array:
        """Return q form q' for every query q.

        Parameters
        ----------
        form : ndarray
            Shape (size, size), for instance the covariance of the estimated counts.

        Returns
        -------
        ndarray
            Shape (count,).
        """
        half = self.apply(form)
        return np.asarray(np.einsum("ij,ij->i", half, self.rows(len(form))))

    def squares(self, size: int) -> Array:
        """Return the sum of squared entries of each query.

        Parameters
        ----------
        size : int
            The number of values of the attribute.

        Returns
        -------
        ndarray
            Shape (count,).
        """
        count = self.count(size)
        width = max(1, _BLOCK // max(count, size))
        total = np.zeros(count)
        for first in range(0, size, width):
            columns = self.apply(np.eye(size, min(width, size - first), -first))
            total += np.einsum("ij,ij->i", columns, columns)
        return total

    def column_sums(self, size: int, power: int) -> Array:
        """Return for each value the sum of absolute entries of all queries, raised to a power.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        power : int
            At least 1.

        Returns
        -------
        ndarray
            Shape (size,).
        """
        width = max(1, _BLOCK // max(self.count(size), size))
        blocks = [
            (np.abs(self.apply(np.eye(size, min(width, size - first), -first))) ** power).sum(axis=0)
            for first in range(0, size, width)
        ]
        return np.concatenate(blocks)

    def symmetric(self, size: int) -> tuple[float, float] | None:
        """Return (a, b) if the Gram matrix is known to be a I + b 11', else None.

        Such an attribute needs no matrix of its size anywhere.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        """
        return (float(self.gram(1)[0, 0]), 0.0) if size == 1 else None

    def spans(self, size: int) -> Spans:
        """Return the first and the last value that each query asks about.

        What a table of answers has beside the text of a query, and is ordered by. Sets that would be too
        large as dense matrices say that they do not know, unless they have a form of their own.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        """
        count = self.count(size)
        return Spans.of_rows(self.rows(size)) if count * size <= _BLOCK else Spans.unknown(count)

    def check(self, size: int) -> None:  # noqa: B027 - most sets fit every size
        """Check that the set fits an attribute.

        Parameters
        ----------
        size : int
            The number of values of the attribute.

        Raises
        ------
        WorkloadError
            If it does not fit.
        """


class Indicators(Predicates):
    """Predicate sets whose every query is the count of a set of values: the entries are 0 and 1 alone."""

    def squares(self, size: int) -> Array:
        """Return the number of values of each query: the squares of 0 and 1 are 0 and 1."""
        return np.asarray(self.apply(np.ones((size, 1)))[:, 0])

    def column_sums(self, size: int, power: int) -> Array:  # noqa: ARG002 - the powers of 0 and 1 are 0 and 1
        """Return the number of queries about each value: the diagonal of the Gram matrix."""
        known = self.symmetric(size)
        return np.full(size, sum(known)) if known is not None else np.diagonal(self.gram(size)).copy()
