"""A predicate set whose queries have names of their own."""

# ruff: noqa: D102 - the methods have the meaning and the signature that `Predicates` gives them

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from matrixdp.domain import Attribute
from matrixdp.errors import WorkloadError
from matrixdp.queries.predicate_set import Array, Predicates, Spans

__all__ = ["Labelled"]


@dataclass(frozen=True)
class Labelled(Predicates):
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

    def count(self, size: int) -> int:
        return self.predicates.count(size)

    def key(self, size: int) -> Hashable:
        return self.predicates.key(size)

    def text_key(self, size: int) -> Hashable:
        return ("labelled", self.labels, self.key(size))

    def rows(self, size: int) -> Array:
        return self.predicates.rows(size)

    def apply(self, matrix: Array) -> Array:
        return self.predicates.apply(matrix)

    def gram(self, size: int) -> Array:
        return self.predicates.gram(size)

    def quadratic(self, form: Array) -> Array:
        return self.predicates.quadratic(form)

    def squares(self, size: int) -> Array:
        return self.predicates.squares(size)

    def column_sums(self, size: int, power: int) -> Array:
        return self.predicates.column_sums(size, power)

    def spans(self, size: int) -> Spans:
        return self.predicates.spans(size)

    def symmetric(self, size: int) -> tuple[float, float] | None:
        return self.predicates.symmetric(size)

    def describe(self, attribute: Attribute) -> list[str]:  # noqa: ARG002
        return list(self.labels)

    def check(self, size: int) -> None:
        self.predicates.check(size)
        if self.count(size) != len(self.labels):
            found = f"{len(self.labels)} names for {self.count(size)} queries"
            raise WorkloadError.at((), found, "a name for each query")
