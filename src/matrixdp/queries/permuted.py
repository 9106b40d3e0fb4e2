"""A predicate set over the values of an attribute in another order."""

# ruff: noqa: D102 - the methods have the meaning and the signature that `Predicates` gives them

from __future__ import annotations

import hashlib
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from matrixdp.domain import Attribute, Categorical
from matrixdp.errors import WorkloadError
from matrixdp.queries.predicate_set import Array, Predicates

__all__ = ["Permuted", "seeded_order"]


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

    def squares(self, size: int) -> Array:
        return self.predicates.squares(size)

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
            raise WorkloadError(f"permuted: found an order that does not list each code from 0 to {size - 1}")
        self.predicates.check(size)
