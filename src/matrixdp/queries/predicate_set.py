"""What all predicate sets on one attribute have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Attribute

__all__ = ["Array", "Indicators", "Predicates"]

Array = NDArray[np.float64]

#: Entries of the columns that `Predicates.squares` forms at a time.
_BLOCK = 1 << 22


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

    def symmetric(self, size: int) -> tuple[float, float] | None:
        """Return (a, b) if the Gram matrix is known to be a I + b 11', else None.

        Such an attribute needs no matrix of its size anywhere.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        """
        return (float(self.gram(1)[0, 0]), 0.0) if size == 1 else None

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
