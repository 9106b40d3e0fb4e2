"""Predicate sets that are made of others: stacked, named, in another order, complements."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Categorical
from matrixdp.errors import WorkloadError
from matrixdp.exact.matrices import Entries
from matrixdp.queries.predicates import Array, Indicators, Predicates, Spans, alike_in_all
from matrixdp.texts import Words


class _Several(Predicates):
    """The queries of some sets, those of one after those of another."""

    @abstractmethod
    def _parts(self) -> tuple[Predicates, ...]:
        """Return the sets, at least one."""

    def count(self, size: int) -> int:
        return sum(part.count(size) for part in self._parts())

    def key(self, size: int) -> Hashable:
        keys = [part.key(size) for part in self._parts()]
        return keys[0] if len(keys) == 1 else ("stack", *keys)

    def rows(self, size: int) -> Array:
        return np.vstack([part.rows(size) for part in self._parts()])

    def apply(self, matrix: Array) -> Array:
        return np.vstack([part.apply(matrix) for part in self._parts()])

    def entries(self, size: int) -> Entries | None:
        found, first = [], 0
        for part in self._parts():
            own = part.entries(size)
            if own is None:
                return None
            found.append((own[0] + first, *own[1:]))
            first += part.count(size)
        query, value, entry = (np.concatenate(one) for one in zip(*found, strict=True))
        return query, value, entry

    def gram(self, size: int) -> Array:
        return np.asarray(np.sum([part.gram(size) for part in self._parts()], axis=0))

    def quadratic(self, form: Array) -> Array:
        return np.concatenate([part.quadratic(form) for part in self._parts()])

    def weighted_squares(self, weights: Array) -> Array:
        return np.concatenate([part.weighted_squares(weights) for part in self._parts()])

    def alike(self, size: int) -> NDArray[np.intp] | None:
        return alike_in_all(self._parts(), size)

    def column_sums(self, size: int, power: int) -> Array:
        return np.asarray(sum(part.column_sums(size, power) for part in self._parts()))

    @property
    def subtracts(self) -> bool:
        return any(part.subtracts for part in self._parts())

    def spans(self, size: int) -> Spans:
        return Spans.joined(part.spans(size) for part in self._parts())

    def symmetric(self, size: int) -> tuple[float, float] | None:
        known = [part.symmetric(size) for part in self._parts()]
        found = [pair for pair in known if pair is not None]
        if len(found) < len(known):
            return None
        return sum(a for a, _ in found), sum(b for _, b in found)

    def check(self, size: int) -> None:
        for part in self._parts():
            part.check(size)


@dataclass(frozen=True)
class Stacked(_Several):
    """The queries of several sets: its matrix is theirs on top of one another.

    Parameters
    ----------
    sets : tuple of Predicates
        At least one.

    Raises
    ------
    WorkloadError
        If there are none.

    Examples
    --------
    >>> from matrixdp.queries.predicates import Identity, Total
    >>> Stacked((Identity(), Total())).rows(2)
    array([[1., 0.],
           [0., 1.],
           [1., 1.]])
    """

    sets: tuple[Predicates, ...]

    def __post_init__(self) -> None:
        if not self.sets:
            raise WorkloadError("stack: found no predicate set; expected at least one", code="empty")

    def _parts(self) -> tuple[Predicates, ...]:
        return self.sets

    def title(self, size: int, say: Words) -> str:
        words = {"": say("values"), None: say("title_total")}
        kinds = [part.title(size, say) for part in self.sets]
        return say.listed([words.get(own) or str(own).strip() for own in kinds])

    def text_key(self, size: int) -> Hashable:
        return ("stack", *(predicates.text_key(size) for predicates in self.sets))

    def describe(self, attribute: Attribute) -> list[str]:
        return [text for predicates in self.sets for text in predicates.describe(attribute)]


@dataclass(frozen=True)
class Labelled(_Several):
    """A predicate set whose queries are called by names that the user gave.

    Parameters
    ----------
    predicates : Predicates
        The set.
    labels : tuple of str
        What each query is called, in the order of the rows.

    Raises
    ------
    WorkloadError
        If there is not one name for each query; by `check`.

    Examples
    --------
    >>> from matrixdp.domain import Integers
    >>> from matrixdp.queries.predicates import Ranges
    >>> Labelled(Ranges(((0, 17),)), ("minors",)).describe(Integers("age", 0, 99))
    ['minors']
    """

    predicates: Predicates
    labels: tuple[str, ...]

    def _parts(self) -> tuple[Predicates, ...]:
        return (self.predicates,)

    def text_key(self, size: int) -> Hashable:
        return ("labelled", self.labels, self.key(size))

    def describe(self, attribute: Attribute) -> list[str]:
        return list(map(attribute.shown, self.labels))

    def check(self, size: int) -> None:
        super().check(size)
        if self.count(size) != len(self.labels):
            found = f"{len(self.labels)} names for {self.count(size)} queries"
            raise WorkloadError.at((), found, "a name for each query", code="wrong-size")


@final
@dataclass(frozen=True)
class Chosen(Predicates):
    """Some queries of a set, whose answers and texts are those of the whole set.

    Parameters
    ----------
    predicates : Predicates
        The set.
    positions : tuple of int
        The places of the queries among its own, increasing.

    Raises
    ------
    WorkloadError
        If there are none.

    Examples
    --------
    >>> from matrixdp.queries.predicates import Prefix
    >>> Chosen(Prefix(), (0, 2)).rows(3)
    array([[1., 0., 0.],
           [1., 1., 1.]])
    """

    predicates: Predicates
    positions: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.positions:
            raise WorkloadError("chosen: found no query; expected at least one", code="empty")

    @property
    def _places(self) -> NDArray[np.intp]:
        return np.array(self.positions)

    @property
    def subtracts(self) -> bool:
        return self.predicates.subtracts

    def count(self, size: int) -> int:
        return len(self.positions)

    def key(self, size: int) -> Hashable:
        return ("chosen", self.positions, self.predicates.key(size))

    def text_key(self, size: int) -> Hashable:
        return ("chosen", self.positions, self.predicates.text_key(size))

    def apply(self, matrix: Array) -> Array:
        return self.predicates.apply(matrix)[self._places]

    def quadratic(self, form: Array) -> Array:
        return self.predicates.quadratic(form)[self._places]

    def weighted_squares(self, weights: Array) -> Array:
        return self.predicates.weighted_squares(weights)[self._places]

    def spans(self, size: int) -> Spans:
        own = self.predicates.spans(size)
        return Spans(own.first[self._places], own.last[self._places], own.whole[self._places])

    def describe(self, attribute: Attribute) -> list[str]:
        texts = self.predicates.describe(attribute)
        return [texts[place] for place in self.positions]

    def check(self, size: int) -> None:
        self.predicates.check(size)
        count = self.predicates.count(size)
        if self.positions[0] < 0 or self.positions[-1] >= count or (np.diff(self.positions) < 1).any():
            raise WorkloadError(f"chosen: found places that do not increase within 0 to {count - 1}")


# A predicate set over the values of an attribute in another order.


def seeded_order(size: int, seed: int) -> tuple[int, ...]:
    """Return the order of the codes that a seed stands for.

    The codes are sorted by the SHA-256 digests of ``seed:code``, so that a seed means the same order with
    every version of every library, and a saved workload asks the same queries for ever.

    Examples
    --------
    >>> seeded_order(5, 1)
    (4, 2, 3, 0, 1)
    """
    return tuple(sorted(range(size), key=lambda code: hashlib.sha256(f"{seed}:{code}".encode()).digest()))


@dataclass(frozen=True)
class Permuted(Predicates):
    """A predicate set that sees the values in another order.

    Parameters
    ----------
    predicates : Predicates
        The set.
    order : tuple of int
        Every code once: the set's first column is about the first code listed, and so on.

    References
    ----------
    Li et al., The Matrix Mechanism (VLDB Journal 2015), and McKenna et al. (VLDB 2018), table 3: permuted
    ranges, on which mechanisms that rely on the order of the values fail.

    Examples
    --------
    >>> from matrixdp.queries.predicates import Prefix
    >>> Permuted(Prefix(), (2, 0, 1)).rows(3)
    array([[0., 0., 1.],
           [1., 0., 1.],
           [1., 1., 1.]])
    """

    predicates: Predicates
    order: tuple[int, ...]

    def count(self, size: int) -> int:
        return self.predicates.count(size)

    @property
    def subtracts(self) -> bool:
        return self.predicates.subtracts

    def title(self, size: int, say: Words) -> str | None:
        inner = self.predicates.title(size, say)
        return say("permuted", kind=inner) if inner and not inner.startswith(" ") else inner

    def key(self, size: int) -> Hashable:
        return ("permuted", self.order, self.predicates.key(size))

    def text_key(self, size: int) -> Hashable:
        return ("permuted", self.order, self.predicates.text_key(size))

    def apply(self, matrix: Array) -> Array:
        return self.predicates.apply(matrix[list(self.order)])

    def gram(self, size: int) -> Array:
        places = np.argsort(self.order)
        return self.predicates.gram(size)[np.ix_(places, places)]

    def quadratic(self, form: Array) -> Array:
        return self.predicates.quadratic(form[np.ix_(self.order, self.order)])

    def weighted_squares(self, weights: Array) -> Array:
        return self.predicates.weighted_squares(weights[list(self.order)])

    def column_sums(self, size: int, power: int) -> Array:
        return self.predicates.column_sums(size, power)[np.argsort(self.order)]

    def symmetric(self, size: int) -> tuple[float, float] | None:
        return self.predicates.symmetric(size)

    def describe(self, attribute: Attribute) -> list[str]:
        labels = tuple(attribute.label(code) for code in self.order)
        texts = self.predicates.describe(Categorical(attribute.name, labels, type="text"))
        return [f"{text} (permuted)" if ".." in text else text for text in texts]

    def check(self, size: int) -> None:
        if sorted(self.order) != list(range(size)):
            told = f"permuted: found an order that does not list each code from 0 to {size - 1}"
            raise WorkloadError(told, code="wrong-size")
        self.predicates.check(size)


# Predicate sets that sums of products are made of: complements, and totals asked many times.


@dataclass(frozen=True)
class Totals(Indicators):
    """So many queries, each of which counts every value.

    Examples
    --------
    >>> Totals(2).rows(3)
    array([[1., 1., 1.],
           [1., 1., 1.]])
    """

    number: int

    def count(self, size: int) -> int:
        return self.number

    def apply(self, matrix: Array) -> Array:
        return np.repeat(matrix.sum(axis=0, keepdims=True), self.number, axis=0)

    def describe(self, attribute: Attribute) -> list[str]:
        return ["all"] * self.number

    def gram(self, size: int) -> Array:
        return np.full((size, size), float(self.number))

    def quadratic(self, form: Array) -> Array:
        return np.full(self.number, form.sum())

    def symmetric(self, size: int) -> tuple[float, float] | None:
        return (0.0, float(self.number))


@dataclass(frozen=True)
class Complement(Indicators):
    """For each query of a set of indicators, the values that it does not count.

    Parameters
    ----------
    predicates : Predicates
        Of entries 0 and 1.

    Examples
    --------
    >>> from matrixdp.queries.predicates import Prefix
    >>> Complement(Prefix()).rows(3)
    array([[0., 1., 1.],
           [0., 0., 1.],
           [0., 0., 0.]])
    """

    predicates: Predicates

    def count(self, size: int) -> int:
        return self.predicates.count(size)

    def key(self, size: int) -> Hashable:
        return ("complement", self.predicates.key(size))

    def rows(self, size: int) -> Array:
        return np.asarray(1.0 - self.predicates.rows(size))

    def apply(self, matrix: Array) -> Array:
        return np.asarray(matrix.sum(axis=0, keepdims=True) - self.predicates.apply(matrix))

    def describe(self, attribute: Attribute) -> list[str]:
        return [f"not {text}" for text in self.predicates.describe(attribute)]

    def column_sums(self, size: int, power: int) -> Array:
        return np.asarray(self.count(size) - self.predicates.column_sums(size, power))

    def gram(self, size: int) -> Array:
        # the diagonal of a Gram matrix of entries 0 and 1 are the sums of the columns
        gram = self.predicates.gram(size)
        sums = np.diagonal(gram)
        return np.asarray(self.count(size) - sums[:, None] - sums[None, :] + gram)

    def quadratic(self, form: Array) -> Array:
        within = self.predicates.apply(np.stack([form.sum(axis=0), form.sum(axis=1)], axis=1)).sum(axis=1)
        return np.asarray(form.sum() - within + self.predicates.quadratic(form))

    def symmetric(self, size: int) -> tuple[float, float] | None:
        known = self.predicates.symmetric(size)
        if known is None:
            return None
        a, b = known
        return a, self.count(size) - 2.0 * (a + b) + b
