"""Several predicate sets on one attribute, one after the other."""

# ruff: noqa: D102 - the methods have the meaning and the signature that `Predicates` gives them

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from matrixdp.domain import Attribute
from matrixdp.errors import WorkloadError
from matrixdp.queries.predicate_set import Array, Predicates, Spans

__all__ = ["Stacked"]


@dataclass(frozen=True)
class Stacked(Predicates):
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
            raise WorkloadError("stack: found no predicate set; expected at least one")

    def count(self, size: int) -> int:
        return sum(predicates.count(size) for predicates in self.sets)

    def key(self, size: int) -> Hashable:
        if len(self.sets) == 1:
            return self.sets[0].key(size)
        return ("stack", *(predicates.key(size) for predicates in self.sets))

    def text_key(self, size: int) -> Hashable:
        return ("stack", *(predicates.text_key(size) for predicates in self.sets))

    def rows(self, size: int) -> Array:
        return np.vstack([predicates.rows(size) for predicates in self.sets])

    def apply(self, matrix: Array) -> Array:
        return np.vstack([predicates.apply(matrix) for predicates in self.sets])

    def gram(self, size: int) -> Array:
        return np.asarray(np.sum([predicates.gram(size) for predicates in self.sets], axis=0))

    def quadratic(self, form: Array) -> Array:
        return np.concatenate([predicates.quadratic(form) for predicates in self.sets])

    def squares(self, size: int) -> Array:
        return np.concatenate([predicates.squares(size) for predicates in self.sets])

    def column_sums(self, size: int, power: int) -> Array:
        return np.asarray(sum(predicates.column_sums(size, power) for predicates in self.sets))

    def spans(self, size: int) -> Spans:
        return Spans.joined(predicates.spans(size) for predicates in self.sets)

    def symmetric(self, size: int) -> tuple[float, float] | None:
        known = [predicates.symmetric(size) for predicates in self.sets]
        found = [pair for pair in known if pair is not None]
        if len(found) < len(known):
            return None
        return sum(a for a, _ in found), sum(b for _, b in found)

    def describe(self, attribute: Attribute) -> list[str]:
        return [text for predicates in self.sets for text in predicates.describe(attribute)]

    def check(self, size: int) -> None:
        for predicates in self.sets:
            predicates.check(size)
