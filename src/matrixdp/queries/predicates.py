"""Predicate sets on one attribute: rows of a matrix with one column for each value of the attribute.

Every set knows its Gram matrix, its product with a matrix and its quadratic forms, in closed form where
there is one, so that a set of a million ranges costs no more than the attribute's values squared.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from tokenize import TokenError
from typing import Self, final

import numpy as np
import scipy
from numpy.typing import NDArray

from matrixdp.domain import Attribute
from matrixdp.errors import TooLargeError, WorkloadError
from matrixdp.exact.linear import Array as Array
from matrixdp.exact.linear import by_first, numbered
from matrixdp.exact.matrices import Entries
from matrixdp.texts import Words

# Arrays of real numbers, checked and copied.


#: What NumPy raises where a file is none of its own: the header is parsed as Python, which has limits.
NOT_NUMPY = (
    ValueError, OSError, EOFError, SyntaxError, TypeError, OverflowError, MemoryError, RecursionError,
    TokenError,
)  # fmt: skip
#: Explicit queries (dense groups, groups with a weight for each query) hold at most this many numbers.
MAX_EXPLICIT_ENTRIES = 200_000_000


def check_entries(what: str, queries: int, cells: int) -> None:
    """Raise TooLargeError if this many queries over this many cells cannot be written out."""
    if queries * cells > MAX_EXPLICIT_ENTRIES:
        raise TooLargeError(
            f"{what}: {queries} queries over {cells} cells; the limit is {MAX_EXPLICIT_ENTRIES} entries. "
            "Use fewer queries, predicates or attributes"
        )


def content_key(array: Array) -> str:
    """Return a text that is equal for arrays of equal shape and content."""
    return f"{array.shape}{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"


def real_array(values: object, what: str) -> Array:
    """Return a copy of an array of real numbers, as floats that cannot be written to.

    Examples
    --------
    >>> real_array([[1, 0], [1, 1]], "the matrix")
    array([[1., 0.],
           [1., 1.]])
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise WorkloadError.at((what,), type(values).__name__, "an array of real numbers", code="wrong-type")
    if array.size > MAX_EXPLICIT_ENTRIES:
        raise TooLargeError(f"{what}: {array.size} entries; the limit is {MAX_EXPLICIT_ENTRIES}")
    result = np.asarray(array, dtype=float) + 0.0
    result.setflags(write=False)
    return result


#: Between these squares of entries, and their products with weights, stay numbers.
_LEAST_ENTRY, _MOST_ENTRY = 1e-50, 1e50


def explicit_rows(values: object, what: str) -> Array:
    """Return a matrix with one row for each query, or raise WorkloadError.

    Examples
    --------
    >>> explicit_rows([[1, 0], [1, 1]], "the matrix")
    array([[1., 0.],
           [1., 1.]])
    """
    rows = real_array(values, what)
    found = "" if np.isfinite(rows).all() else " with entries that are not finite"
    sizes = np.abs(rows[rows != 0])
    if not found and sizes.size and (sizes.min() < _LEAST_ENTRY or sizes.max() > _MOST_ENTRY):
        found = f" with entries from {sizes.min():.3g} to {sizes.max():.3g}"
    if rows.ndim != 2 or 0 in rows.shape or found:
        expected = f"a row for each query, and entries that are 0 or of {_LEAST_ENTRY:g} to {_MOST_ENTRY:g}"
        code = "out-of-range" if found else "wrong-size"
        raise WorkloadError.at((what,), f"an array of shape {rows.shape}{found}", expected, code=code)
    return rows


# What all predicate sets on one attribute have in common.

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
        """Return the spans of queries about which nothing more is known."""
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
        """Describe each query, in the order of the rows.

        Parameters
        ----------
        attribute : Attribute
            The attribute, which names the values.
        """

    def title(self, size: int, say: Words) -> str | None:
        """Return what is asked of an attribute in words: nothing for its values, None for its total.

        It becomes part of the title of a table. Words that begin with a space follow the attribute, as by
        default how many groups there are; others stand before it.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        say : Words
            The words of a language.
        """
        return f" {say.counted('in_groups', self.count(size))}"

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
        return np.concatenate(list(self._columns(size)), axis=1)

    def entries(self, size: int) -> Entries | None:
        """Return the entries other than 0: the query, the value and the entry of each.

        None where that would be too many, unless a set has a form of its own.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        """
        if self.count(size) * size > _BLOCK:
            return None
        rows = self.rows(size)
        query, value = np.nonzero(rows)
        return query, value, rows[query, value]

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
        return self.weighted_squares(np.ones(size))

    def weighted_squares(self, weights: Array) -> Array:
        """Return the sum of squared entries of each query, those of each value times a weight.

        Parameters
        ----------
        weights : ndarray
            Shape (size,).

        Returns
        -------
        ndarray
            Shape (count,).
        """
        total, first = np.zeros(self.count(len(weights))), 0
        for columns in self._columns(len(weights)):
            total += (columns * columns) @ weights[first : first + columns.shape[1]]
            first += columns.shape[1]
        return total

    def alike(self, size: int) -> NDArray[np.intp] | None:
        """Return a number for each value: those with the same may trade places; None if that is not known.

        Then the Gram matrix stays as it is. It is not known of sets that would be too large as dense
        matrices, unless they have a form of their own; of others `symmetric` may say that all may.

        Parameters
        ----------
        size : int
            The number of values of the attribute.

        Returns
        -------
        ndarray of int or None
            Shape (size,).
        """
        if self.count(size) * size > _BLOCK:
            return None
        return numbered(self.rows(size).T)

    def _columns(self, size: int) -> Iterator[Array]:
        """Yield the columns of the matrix, as many at a time as memory is meant to hold."""
        width = max(1, _BLOCK // max(self.count(size), size))
        for first in range(0, size, width):
            yield self.apply(np.eye(size, min(width, size - first), -first))

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
        return np.concatenate([(np.abs(own) ** power).sum(axis=0) for own in self._columns(size)])

    def symmetric(self, size: int) -> tuple[float, float] | None:
        """Return (a, b) if the Gram matrix is known to be a I + b 11', else None.

        Such an attribute needs no matrix of its size anywhere.

        Parameters
        ----------
        size : int
            The number of values of the attribute.
        """
        return (float(self.gram(1)[0, 0]), 0.0) if size == 1 else None

    @property
    def subtracts(self) -> bool:
        """Whether some entry is below 0, as far as it is known: an answer below 0 then means something."""
        return False

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


def alike_in_all(sets: Iterable[Predicates], size: int) -> NDArray[np.intp] | None:
    """Return `Predicates.alike` for several sets together.

    Examples
    --------
    >>> alike_in_all([Identity(), Sets(((0, 2),)), Sets(((0, 1, 2),))], 5).tolist()
    [0, 1, 0, 2, 2]
    """
    told = [one.alike(size) for one in sets if one.symmetric(size) is None]
    if any(own is None for own in told):
        return None  # without an array of the attribute's size, which may be huge
    return groups_of_all([np.zeros(size, dtype=np.intp), *told])


def groups_of_all(groups: Sequence[NDArray[np.intp] | None]) -> NDArray[np.intp] | None:
    """Return the groups of values that share one in each of several groupings, or None where one is None.

    They are numbered by their first values.

    Examples
    --------
    >>> groups_of_all([np.array([0, 1, 0, 0]), np.array([0, 0, 1, 0])]).tolist()
    [0, 1, 2, 0]
    """
    told = [own for own in groups if own is not None]
    if len(told) < len(groups):
        return None
    codes = told[0]
    for own in told[1:]:
        codes = np.unique(codes * (own.max() + 1) + own, return_inverse=True)[1]
    return by_first(codes)


class Indicators(Predicates):
    """Predicate sets whose every query is the count of a set of values: the entries are 0 and 1 alone."""

    def weighted_squares(self, weights: Array) -> Array:
        """Return the weights of the values of each query: the squares of 0 and 1 are 0 and 1."""
        return np.asarray(self.apply(weights[:, None])[:, 0])

    def column_sums(self, size: int, power: int) -> Array:
        """Return the number of queries about each value: the diagonal of the Gram matrix."""
        known = self.symmetric(size)
        return np.full(size, sum(known)) if known is not None else np.diagonal(self.gram(size)).copy()


# Predicate sets whose queries are intervals of values, on a line or on a circle.
#
# Sums over intervals are differences of cumulated sums, and their quadratic forms follow by inclusion and
# exclusion, so that a query costs the same whatever its length.


def _range_sums(matrix: Array, first: NDArray[np.intp], last: NDArray[np.intp]) -> Array:
    """Return the sums over the rows first..last of a matrix."""
    cumulated = np.vstack([np.zeros((1, matrix.shape[1])), np.cumsum(matrix, axis=0)])
    return cumulated[last + 1] - cumulated[first]


def _range_forms(form: Array, first: NDArray[np.intp], last: NDArray[np.intp]) -> Array:
    """Return the quadratic forms of the ranges first..last, by inclusion and exclusion."""
    padded = np.zeros((len(form) + 1, len(form) + 1))
    padded[1:, 1:] = form.cumsum(axis=0).cumsum(axis=1)
    diagonal = np.diagonal(padded)
    low, high = first, last + 1
    return diagonal[high] - padded[low, high] - padded[high, low] + diagonal[low]


class _Intervals(Indicators):
    """Sets whose queries are intervals of codes."""

    @abstractmethod
    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the first and last code of each query."""

    def rows(self, size: int) -> Array:
        first, last = (ends[:, None] for ends in self.bounds(size))
        codes = np.arange(size)
        return np.asarray((first <= codes) & (codes <= last), dtype=np.float64)

    def entries(self, size: int) -> Entries | None:
        if self.count(size) > _BLOCK:
            return None
        first, last = self.bounds(size)
        lengths = last - first + 1
        if int(lengths.sum()) > _BLOCK:
            return None
        query = np.repeat(np.arange(len(first)), lengths)
        before = np.cumsum(lengths) - lengths - first
        return query, np.arange(len(query)) - before[query], np.ones(len(query))

    def apply(self, matrix: Array) -> Array:
        return _range_sums(matrix, *self.bounds(len(matrix)))

    def quadratic(self, form: Array) -> Array:
        return _range_forms(form, *self.bounds(len(form)))

    def spans(self, size: int) -> Spans:
        return Spans.of_intervals(*self.bounds(size))

    def describe(self, attribute: Attribute) -> list[str]:
        ends = (codes.tolist() for codes in self.bounds(attribute.size))
        return list(map(attribute.range_label, *ends))


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

    def title(self, size: int, say: Words) -> str:
        return say("ranges")


@dataclass(frozen=True)
class Sliding(_Intervals):
    """The interval of ``width`` values up to each value: n - width + 1 queries, as the first are left out.

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
    >>> Sliding(2).rows(3)
    array([[1., 1., 0.],
           [0., 1., 1.]])
    """

    width: int

    def __post_init__(self) -> None:
        if isinstance(self.width, bool) or not isinstance(self.width, int) or self.width < 1:
            told = f"sliding: found {self.width!r}; expected an integer of at least 1"
            raise WorkloadError(told, code="out-of-range")

    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        first = np.arange(self.count(size))
        return first, first + self.width - 1

    def count(self, size: int) -> int:
        return size - self.width + 1

    def check(self, size: int) -> None:
        if self.width > size:
            told = f"sliding: found {self.width}; expected at most {size}, the attribute's size"
            raise WorkloadError(told, code="out-of-range")

    def title(self, size: int, say: Words) -> str:
        return say("ranges_of", width=self.width)


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
            raise WorkloadError("ranges: found an empty list; expected at least one range", code="empty")

    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        array = np.asarray(self.intervals, dtype=np.intp).reshape(-1, 2)
        return array[:, 0], array[:, 1]

    def count(self, size: int) -> int:
        return len(self.intervals)

    def check(self, size: int) -> None:
        first, last = self.bounds(size)
        wrong = np.flatnonzero((first < 0) | (first > last) | (last >= size))
        if wrong.size:
            raise WorkloadError(
                f"ranges: found codes {first[wrong[0]]} to {last[wrong[0]]}; "
                f"expected first <= last within 0 to {size - 1}"
            )


@final
@dataclass(frozen=True)
class YearToDate(Ranges):
    """Listed intervals from the first period of a year to each of its periods.

    Examples
    --------
    >>> YearToDate(((0, 0), (0, 1), (2, 2))).rows(3)
    array([[1., 0., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """

    def title(self, size: int, say: Words) -> str:
        return say("year_to_date")


@final
@dataclass(frozen=True)
class Changes(Predicates):
    """Differences between two values: the count of the later one less that of the earlier one.

    Parameters
    ----------
    pairs : tuple of pairs of int
        The earlier and the later code of each query.

    Raises
    ------
    WorkloadError
        If there are no pairs.

    Examples
    --------
    >>> Changes(((0, 1), (0, 2))).rows(3)
    array([[-1.,  1.,  0.],
           [-1.,  0.,  1.]])
    """

    pairs: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if not self.pairs:
            raise WorkloadError("change: found an empty list; expected at least one pair", code="empty")

    @property
    def subtracts(self) -> bool:
        return True

    def _ends(self) -> NDArray[np.intp]:
        """Return the earlier and the later codes."""
        return np.asarray(self.pairs, dtype=np.intp).T

    def count(self, size: int) -> int:
        return len(self.pairs)

    def apply(self, matrix: Array) -> Array:
        earlier, later = self._ends()
        return np.asarray(matrix[later] - matrix[earlier])

    def spans(self, size: int) -> Spans:
        earlier, later = self._ends()
        return Spans(earlier, later, np.zeros(len(self.pairs), dtype=bool))

    def describe(self, attribute: Attribute) -> list[str]:
        pairs = [(attribute.label(earlier), attribute.label(later)) for earlier, later in self.pairs]
        return [attribute.say("less", later=later, earlier=earlier) for earlier, later in pairs]

    def check(self, size: int) -> None:
        for earlier, later in self.pairs:
            if not 0 <= earlier < later < size:
                found = f"change: found codes {earlier} and {later}"
                raise WorkloadError(f"{found}; expected an earlier and a later one within 0 to {size - 1}")

    def title(self, size: int, say: Words) -> str:
        steps = {later - earlier for earlier, later in self.pairs}
        name = "change_of_year" if len(steps) > 1 else "change" if steps == {1} else "change_over"
        return say(name, steps=min(steps))


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
        return _range_sums(np.vstack([matrix, matrix]), *self._bounds(len(matrix)))

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
        for first, last in zip(*(ends.tolist() for ends in self._bounds(size)), strict=True):
            text = attribute.range_label(first, min(last, size - 1))
            texts.append(f"{text} and {attribute.range_label(0, last - size)}" if last >= size else text)
        return texts

    def title(self, size: int, say: Words) -> str:
        return say("circular_ranges")


@dataclass(frozen=True)
class Identity(_Intervals):
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

    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.arange(size), np.arange(size)

    def entries(self, size: int) -> Entries:
        return np.arange(size), np.arange(size), np.ones(size)

    def gram(self, size: int) -> Array:
        return np.eye(size)

    def quadratic(self, form: Array) -> Array:
        return np.asarray(np.diagonal(form)).copy()

    def key(self, size: int) -> Hashable:
        return Identity, size

    def symmetric(self, size: int) -> tuple[float, float] | None:
        return (1.0, 0.0)

    def title(self, size: int, say: Words) -> str:
        return ""


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

    def entries(self, size: int) -> Entries:
        return np.zeros(size, dtype=np.intp), np.arange(size), np.ones(size)

    def gram(self, size: int) -> Array:
        return np.ones((size, size))

    def quadratic(self, form: Array) -> Array:
        return np.array([form.sum()])

    def key(self, size: int) -> Hashable:
        return Total, size

    def symmetric(self, size: int) -> tuple[float, float] | None:
        return (0.0, 1.0)

    def title(self, size: int, say: Words) -> None:
        return None


@dataclass(frozen=True)
class Prefix(_Intervals):
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

    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.zeros(size, dtype=np.intp), np.arange(size)

    def gram(self, size: int) -> Array:
        codes = np.arange(size)
        return np.asarray(size - np.maximum.outer(codes, codes), dtype=float)

    def quadratic(self, form: Array) -> Array:
        return np.diagonal(form.cumsum(axis=0).cumsum(axis=1)).copy()

    def title(self, size: int, say: Words) -> str:
        return say("cdf")


@dataclass(frozen=True)
class Suffix(_Intervals):
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

    def bounds(self, size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        return np.arange(size), np.full(size, size - 1)

    def gram(self, size: int) -> Array:
        codes = np.arange(size)
        return np.asarray(np.minimum.outer(codes, codes) + 1, dtype=float)

    def quadratic(self, form: Array) -> Array:
        return np.diagonal(form[::-1, ::-1].cumsum(axis=0).cumsum(axis=1))[::-1].copy()

    def title(self, size: int, say: Words) -> str:
        return say("complementary_cdf")


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
            raise WorkloadError("sets: found an empty list; expected at least one set", code="empty")

    def count(self, size: int) -> int:
        return len(self.sets)

    def rows(self, size: int) -> Array:
        rows = np.zeros((len(self.sets), size))
        for row, codes in zip(rows, self.sets, strict=True):
            row[list(codes)] = 1.0
        return rows

    @cached_property
    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The query and the code of each entry."""
        query = np.repeat(np.arange(len(self.sets)), [len(codes) for codes in self.sets])
        return query, np.fromiter(chain.from_iterable(self.sets), np.intp, len(query))

    def entries(self, size: int) -> Entries:
        query, code = self._places
        return query, code, np.ones(len(code))

    def apply(self, matrix: Array) -> Array:
        size = len(matrix)
        if len(self.sets) * size <= _BLOCK:
            return self.rows(size) @ matrix
        query, code = self._places
        sparse = scipy.sparse.csr_array((np.ones(len(code)), (query, code)), shape=(len(self.sets), size))
        return np.asarray(sparse @ matrix)

    def column_sums(self, size: int, power: int) -> Array:
        return np.bincount(self._places[1], minlength=size).astype(np.float64)

    def describe(self, attribute: Attribute) -> list[str]:
        return [" | ".join(attribute.label(code) for code in codes) or "none" for codes in self.sets]

    def spans(self, size: int) -> Spans:
        first = np.array([min(codes, default=-1) for codes in self.sets], dtype=np.intp)
        last = np.array([max(codes, default=-1) for codes in self.sets], dtype=np.intp)
        counts = np.array([len(codes) for codes in self.sets])
        return Spans(first, last, (counts > 0) & (last - first + 1 == counts))

    @cached_property
    def _ends(self) -> tuple[int, int, bool]:
        """The least and the largest code, and whether a query has one twice."""
        codes = [*chain.from_iterable(self.sets)]
        again = any(len(set(own)) < len(own) for own in self.sets)
        return min(codes, default=0), max(codes, default=-1), again

    def check(self, size: int) -> None:
        least, largest, again = self._ends
        if least >= 0 and largest < size and not again:
            return
        for codes in self.sets:
            found = f"sets: found codes {list(codes)}"
            if any(not 0 <= code < size for code in codes):
                raise WorkloadError(f"{found}; expected codes within 0 to {size - 1}", code="out-of-range")
            if len(set(codes)) != len(codes):
                raise WorkloadError(f"{found}; expected each value once in a set", code="duplicate")


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
        object.__setattr__(self, "matrix", explicit_rows(self.matrix, "matrix"))

    @cached_property
    def _key(self) -> str:
        return content_key(self.matrix)

    def key(self, size: int) -> Hashable:
        return ("matrix", self._key)

    @property
    def subtracts(self) -> bool:
        return bool((self.matrix < 0).any())

    def count(self, size: int) -> int:
        return len(self.matrix)

    def rows(self, size: int) -> Array:
        return self.matrix

    def entries(self, size: int) -> Entries:
        query, value = np.nonzero(self.matrix)
        return query, value, self.matrix[query, value]

    def apply(self, matrix: Array) -> Array:
        return np.asarray(self.matrix @ matrix)

    def weighted_squares(self, weights: Array) -> Array:
        return np.asarray((self.matrix**2) @ weights)

    def describe(self, attribute: Attribute) -> list[str]:
        return [f"query {row}" for row in range(len(self.matrix))]

    def check(self, size: int) -> None:
        if self.matrix.shape[1] != size:
            found = self.matrix.shape[1]
            raise WorkloadError(f"matrix: found {found} columns; expected {size}, the attribute's size")

    def title(self, size: int, say: Words) -> str:
        return say("combinations")
