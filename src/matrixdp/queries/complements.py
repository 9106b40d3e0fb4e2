"""Predicate sets that sums of products are made of: complements, and totals asked many times."""

# ruff: noqa: D102, ARG002 - the methods have the meaning and the signature that `Predicates` gives them

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from matrixdp.domain import Attribute
from matrixdp.queries.predicate_set import Array, Indicators, Predicates

__all__ = ["Complement", "Totals"]


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
