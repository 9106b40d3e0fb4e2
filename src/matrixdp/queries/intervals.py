"""Predicate sets whose queries are intervals of values, on a line or on a circle.

Sums over intervals are differences of cumulated sums, and their quadratic forms follow by inclusion and
exclusion, so that a query costs the same whatever its length.
"""

# ruff: noqa: D102, ARG002 - the methods have the meaning and the signature that `Predicates` gives them

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Attribute
from matrixdp.errors import WorkloadError
from matrixdp.queries.predicate_set import Array, Indicators, Spans

__all__ = ["AllRanges", "Circular", "Ranges", "Width"]


def _ranges_of(cumulated: Array, first: NDArray[np.intp], last: NDArray[np.intp]) -> Array:
    """Return sums over rows first..last from cumulated sums with a leading row of zeros."""
    return cumulated[last + 1] - cumulated[first]


def _range_forms(form: Array, first: NDArray[np.intp], last: NDArray[np.intp]) -> Array:
    """Return the quadratic forms of the ranges first..last, by inclusion and exclusion."""
    padded = np.zeros((len(form) + 1, len(form) + 1))
    padded[1:, 1:] = form.cumsum(axis=0).cumsum(axis=1)
    diagonal = np.diagonal(padded)
    low, high = first, last + 1
    return diagonal[high] - padded[low, high] - padded[high, low] + diagonal[low]


def _cumulated(matrix: Array) -> Array:
    return np.vstack([np.zeros((1, matrix.shape[1])), np.cumsum(matrix, axis=0)])


class _Intervals(Indicators):
    """Sets whose queries are intervals of codes."""

    @abstractmethod
    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the first and last code of each query."""

    def count(self, size: int) -> int:
        return len(self.bounds(size)[0])

    def apply(self, matrix: Array) -> Array:
        return _ranges_of(_cumulated(matrix), *self.bounds(len(matrix)))

    def quadratic(self, form: Array) -> Array:
        return _range_forms(form, *self.bounds(len(form)))

    def spans(self, size: int) -> Spans:
        return Spans.of_intervals(*self.bounds(size))

    def describe(self, attribute: Attribute) -> list[str]:
        first, last = self.bounds(attribute.size)
        return [attribute.range_label(int(a), int(b)) for a, b in zip(first, last, strict=True)]


@dataclass(frozen=True)
class AllRanges(_Intervals):
    """Every interval of values: n (n + 1) / 2 queries.

    Examples
    --------
    >>> AllRanges().gram(3)
    array([[3., 2., 1.],
           [2., 4., 2.],
           [1., 2., 3.]])
    """

    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        first, last = np.triu_indices(size)
        return first, last

    def count(self, size: int) -> int:
        return size * (size + 1) // 2

    def gram(self, size: int) -> Array:
        codes = np.arange(size)
        low, high = np.minimum.outer(codes, codes), np.maximum.outer(codes, codes)
        return np.asarray((low + 1) * (size - high), dtype=float)


@dataclass(frozen=True)
class Width(_Intervals):
    """Every interval of exactly ``width`` values: n - width + 1 queries.

    Parameters
    ----------
    width : int
        The number of values, at least 1 and at most the attribute's size.

    Raises
    ------
    WorkloadError
        If the width is not an integer of at least 1.

    Examples
    --------
    >>> Width(2).rows(3)
    array([[1., 1., 0.],
           [0., 1., 1.]])
    """

    width: int

    def __post_init__(self) -> None:
        if isinstance(self.width, bool) or not isinstance(self.width, int) or self.width < 1:
            raise WorkloadError(f"width: found {self.width!r}; expected an integer of at least 1")

    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        first = np.arange(self.count(size))
        return first, first + self.width - 1

    def count(self, size: int) -> int:
        return size - self.width + 1

    def check(self, size: int) -> None:
        if self.width > size:
            raise WorkloadError(f"width: found {self.width}; expected at most {size}, the attribute's size")


@dataclass(frozen=True)
class Ranges(_Intervals):
    """Listed intervals.

    Parameters
    ----------
    intervals : tuple of pairs of int
        The first and the last code of each query, both inclusive.

    Raises
    ------
    WorkloadError
        If there are no intervals.

    Examples
    --------
    >>> Ranges(((0, 1), (2, 2))).rows(3)
    array([[1., 1., 0.],
           [0., 0., 1.]])
    """

    intervals: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.intervals:
            raise WorkloadError("ranges: found an empty list; expected at least one range")

    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        array = np.asarray(self.intervals, dtype=np.intp).reshape(-1, 2)
        return array[:, 0], array[:, 1]

    def check(self, size: int) -> None:
        first, last = self.bounds(size)
        wrong = np.flatnonzero((first < 0) | (first > last) | (last >= size))
        if wrong.size:
            raise WorkloadError(
                f"ranges: found codes {first[wrong[0]]} to {last[wrong[0]]}; "
                f"expected first <= last within 0 to {size - 1}"
            )


@dataclass(frozen=True)
class Circular(Indicators):
    """Every interval on a circle: every start with lengths 1 to n, so n * n queries.

    The full circle is asked n times, once from every start, so that the Gram matrix is circulant.

    References
    ----------
    QuerySmasher (2026), circular range workloads.

    Examples
    --------
    >>> Circular().rows(2)
    array([[1., 0.],
           [1., 1.],
           [0., 1.],
           [1., 1.]])
    """

    def count(self, size: int) -> int:
        return size * size

    def _bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        first = np.repeat(np.arange(size), size)
        return first, first + np.tile(np.arange(size), size)

    def apply(self, matrix: Array) -> Array:
        return _ranges_of(_cumulated(np.vstack([matrix, matrix])), *self._bounds(len(matrix)))

    def quadratic(self, form: Array) -> Array:
        return _range_forms(np.tile(form, (2, 2)), *self._bounds(len(form)))

    def gram(self, size: int) -> Array:
        lengths = np.arange(1, size + 1)[:, None]
        gaps = np.arange(size)[None, :]
        counts = np.maximum(lengths - gaps, 0) + np.where(gaps > 0, np.maximum(lengths - (size - gaps), 0), 0)
        codes = np.arange(size)
        return np.asarray(counts.sum(axis=0)[np.abs(np.subtract.outer(codes, codes))], dtype=float)

    def spans(self, size: int) -> Spans:
        first, last = self._bounds(size)
        around = last >= size
        full = last - first + 1 == size
        return Spans(np.where(around, 0, first), np.where(around, size - 1, last), ~around | full)

    def describe(self, attribute: Attribute) -> list[str]:
        size = attribute.size
        texts = []
        for first, last in zip(*self._bounds(size), strict=True):
            if last < size:
                texts.append(attribute.range_label(int(first), int(last)))
            else:
                head = attribute.range_label(int(first), size - 1)
                texts.append(f"{head} and {attribute.range_label(0, int(last) - size)}")
        return texts
