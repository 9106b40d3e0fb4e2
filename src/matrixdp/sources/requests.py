"""What all sources do alike: checks before counting, columns to read, and arrays from grouped counts."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Dates, Domain, OutOfDomain
from matrixdp.domain.rules import Kind, Rule
from matrixdp.errors import DomainError, SourceError, TooLargeError
from matrixdp.privacy import Unit

__all__ = ["MOST_CELLS", "OUT_OF_DOMAIN", "Request", "strides"]

OUT_OF_DOMAIN: tuple[str, ...] = ("",)
"""In the place of the attributes of a marginal, none of which is so called: the counts out of domain."""

_FROM_CATEGORIES = "categories are compared with texts, numbers, booleans or dates"
_FROM_TEXTS = "categories of type text are compared with texts as they stand"
_FROM_MOMENTS = "it is read from dates, timestamps, or texts such as 2020-01-31 or 2020-01-31T17:30"
_FROM_HOURS = "hours are read from timestamps, or texts such as 2020-01-31T17:30"
_FROM_NUMBERS = "a numeric attribute is read from numbers, booleans or texts of numbers"

_HOLDS = {
    Kind.DATE: "dates",
    Kind.BOOLEAN: "booleans",
    Kind.INTEGER: "integers",
    Kind.FLOAT: "numbers",
    Kind.TIMESTAMP: "timestamps",
    Kind.NANOSECONDS: "timestamps",
    Kind.INSTANT: "timestamps",
}

MOST_CELLS = 2**31
"""The most cells of one marginal (16 GiB of counts)."""


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return how far one step along each axis goes in a row-major array.

    Examples
    --------
    >>> strides((2, 3, 4))
    (12, 4, 1)
    """
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


@final
@dataclass(frozen=True)
class Request:
    """Marginals asked of a table, checked against the domain.

    Parameters
    ----------
    domain : Domain
        The declared domain.
    subsets : tuple of tuple of str
        The attributes of each marginal.
    out_of_domain : OutOfDomain
        What happens to values that are out of domain.
    unit : Unit
        If it names a column for persons, of each person the first `records` records in the order of the table
        are counted, those out of domain among them, and records without an id are not.

    Raises
    ------
    DomainError
        If a subset names an unknown attribute or one twice, the rule does not fit the domain, or the id is an
        attribute.
    TooLargeError
        If a marginal has more than `MOST_CELLS` cells.

    Examples
    --------
    >>> request = Request(Domain({"sex": ["f", "m"], "age": 9}), (("age", "sex"),), OutOfDomain())
    >>> request.shape(("age", "sex")), request.used
    ((9, 2), ('sex', 'age'))
    """

    domain: Domain
    subsets: tuple[tuple[str, ...], ...]
    out_of_domain: OutOfDomain
    unit: Unit = field(default_factory=Unit)

    def __post_init__(self) -> None:
        self.out_of_domain.check(self.domain)
        if self.unit.id in (*self.domain.names, *self.domain.columns):
            found = f"the attribute {self.unit.id!r}"
            raise DomainError.at(("unit", "id"), found, "a column that is no attribute of the domain")
        for subset in self.subsets:
            cells = self.domain.cells(subset)
            if cells > MOST_CELLS:
                raise TooLargeError(
                    f"the marginal on {', '.join(subset)} has {cells} cells; "
                    f"at most {MOST_CELLS} can be counted"
                )

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once: those of the attributes, then that of the id, if any."""
        return self.domain.columns if self.unit.id is None else (*self.domain.columns, self.unit.id)

    @property
    def counted(self) -> tuple[tuple[str, ...], ...]:
        """What is counted: the subsets, and after them the counts out of domain, if they are asked for."""
        return (*self.subsets, OUT_OF_DOMAIN) if self.out_of_domain.counts else self.subsets

    @property
    def used(self) -> tuple[str, ...]:
        """The attributes that are in some subset, in the order of the domain."""
        return self.domain.sort({name for subset in self.subsets for name in subset})

    def shape(self, subset: Sequence[str]) -> tuple[int, ...]:
        """Return the sizes of some attributes, in the order given."""
        return tuple(self.domain[name].size for name in subset)

    def array(
        self, subset: Sequence[str], keys: NDArray[np.integer], counts: NDArray[np.integer]
    ) -> NDArray[np.int64]:
        """Return the marginal from the row-major positions of its cells and their counts."""
        outside = subset == OUT_OF_DOMAIN
        shape = (len(self.out_of_domain.counts),) if outside else self.shape(subset)
        result = np.zeros(math.prod(shape), dtype=np.int64)
        np.add.at(result, np.asarray(keys, dtype=np.int64), np.asarray(counts, dtype=np.int64))
        return result.reshape(shape)

    def check_columns(self, columns: Iterable[str]) -> None:
        """Check that the table has a column for every attribute, and for the id.

        Raises
        ------
        SourceError
            Names those that are missing, or there twice, and nothing of the table: what stands where names of
            columns should may be a record.
        """
        listed = [str(column) for column in columns]
        missing = [name for name in self.columns if name not in listed]
        if missing:
            word = "column" if len(missing) == 1 else "columns"
            raise SourceError(f"the table has no {word} {', '.join(map(repr, missing))}; {_NAMED}")
        for name in self.columns:
            if listed.count(name) > 1:
                raise SourceError(f"the table has several columns named {name!r}")

    def rules(self, kinds: Mapping[str, Kind], encoders: Domain | None = None) -> dict[str, Rule]:
        """Return how the column of each of the domain's readings becomes codes.

        Parameters
        ----------
        kinds : mapping of str to Kind
            What each column holds.
        encoders : Domain, optional
            The attributes that say how the columns are read, where they are not the domain's readings.

        Raises
        ------
        SourceError
            If a column cannot be read: names it, what it holds, and what would be right. An engine's own
            name of a type is not told, as it may list values.
        """
        rules: dict[str, Rule] = {}
        for attribute in encoders or self.domain.readings:
            kind = kinds[attribute.column]
            rule = attribute.rule(kind)
            if rule is None:
                expected = _expected(attribute)
                holds = _HOLDS.get(kind, "values of another kind")
                column = self.domain.readings[attribute.name].column
                raise SourceError(f"column {column!r} holds {holds}; {expected}, so convert it first")
            rules[attribute.name] = rule
        return rules


_NAMED = "names are compared letter by letter, and `column: name` is for attributes that are called otherwise"


def _expected(attribute: Attribute) -> str:
    """Return what an attribute is read from."""
    if isinstance(attribute, Dates):
        return _FROM_HOURS if attribute.by == "hour" else _FROM_MOMENTS
    if attribute.numeric:
        return _FROM_NUMBERS
    return _FROM_TEXTS if getattr(attribute, "type", None) == "text" else _FROM_CATEGORIES
