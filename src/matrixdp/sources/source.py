"""What a source is: a table that can be counted, and nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.privacy import Clause, Unit
from matrixdp.sources.requests import OUT_OF_DOMAIN, Request

__all__ = [
    "COMPUTED",
    "FAILED",
    "INFERRED",
    "OUT_OF_DOMAIN",
    "QUOTES_CLOSED",
    "UNORDERED",
    "ComputedSource",
    "Marginal",
    "Source",
    "native",
]

COMPUTED = Clause(
    "computed-rows",
    "The table is a view, a relation or a lazy frame, and its records are the rows that its engine computes: "
    "it is assumed that a row more or less changes no other row, and that the engine fails on none.",
)
"""What is assumed of every table that is computed from others."""

FAILED = "its engine failed on a record; let it read what may not parse as text"
"""What is told where the engine of such a table fails."""

INFERRED = (
    "The columns of the table have types that whoever made it chose: it is assumed that these, and what was "
    "read into them, do not depend on any one record, as they may where a program inferred types from values."
)
"""What is assumed of every table whose columns are not texts by its format."""

QUOTES_CLOSED = Clause(
    "quotes-closed",
    "It is assumed that every record of the CSV files closes the quotes that it opens, as quotes may hold "
    "line ends there: one that does not takes the records after it into itself, and no promise covers that.",
)
"""What is assumed of CSV files where quotes may hold line ends."""

UNORDERED = (
    "CSV or Parquet files, a table of a DuckDB or SQLite database, a data frame in memory or arrays: the "
    "order decides which records of a person are counted"
)
"""What is expected in the place of a table whose records have no order, where an id is named."""

Marginal = tuple[tuple[str, ...], NDArray[np.int64]]
"""The attributes of a marginal, and its counts: one axis an attribute, in that order."""


class Source(ABC):
    """A table that can be counted. An engine's own source says how, in `count`.

    Attributes
    ----------
    bounds_contributions : bool
        Whether `count` keeps to a `Unit` with an id. It must not say so unless the records have an order that
        no record changes for others.
    counts_out_of_domain : bool
        Whether `count` yields, where `OutOfDomain.counts` asks for it, how many records are out of domain: of
        those that are counted at all, every one either in its cell of each marginal, or in these numbers.
    derives_attributes : bool
        Whether `count` has counts of attributes that are derived from others: it reads `Domain.readings`, and
        looks the codes of the others up by theirs (`matrixdp.sources.lookups`).
    """

    bounds_contributions: ClassVar[bool] = False
    counts_out_of_domain: ClassVar[bool] = False
    derives_attributes: ClassVar[bool] = False

    @final
    def marginals(
        self,
        domain: Domain,
        subsets: Sequence[Sequence[str]],
        out_of_domain: OutOfDomain,
        unit: Unit | None = None,
    ) -> Iterator[Marginal]:
        """Count the records in every cell of some marginals.

        What the table and the subsets make impossible is raised by the call itself, before anything is
        counted.

        Parameters
        ----------
        domain : Domain
            The declared domain. A record is out of domain if any of its attributes is, whether it is in a
            subset or not.
        subsets : sequence of sequence of str
            The attributes of each marginal. The empty subset asks for the number of records.
        out_of_domain : OutOfDomain
            What happens to values that are out of domain.
        unit : Unit, optional
            If it names a column for persons, only the first records of each person are counted.

        Yields
        ------
        tuple of (tuple of str, numpy.ndarray)
            Each subset with its counts as an int64 array, one axis an attribute in the order of the subset,
            one entry a cell of the declared domain whether the table holds such records or not. The subsets
            come in any order. Where `out_of_domain` asks for counts, they come once as `OUT_OF_DOMAIN` with
            one entry for each of `OutOfDomain.counts`.

        Raises
        ------
        SourceError
            If a column is missing, has a type that cannot be read, the table cannot be read, or the records
            of a person cannot be bounded, as it has no determined order.
        DomainError
            If a subset names an unknown attribute, or one twice.
        TooLargeError
            If a marginal has too many cells to be held in memory.
        """
        return self.count(
            self._request(domain, tuple(tuple(subset) for subset in subsets), out_of_domain, unit)
        )

    @final
    def check(
        self, domain: Domain, out_of_domain: OutOfDomain | None = None, unit: Unit | None = None
    ) -> None:
        """Check that the table can be counted, by the names and the types of its columns; no record is read.

        Parameters
        ----------
        domain : Domain
            The declared domain.
        out_of_domain : OutOfDomain, optional
            What happens to values that are out of domain.
        unit : Unit, optional
            If it names a column for persons, the table must have it, and an order.

        Raises
        ------
        SourceError, DomainError
            As `marginals` does.

        Examples
        --------
        >>> from matrixdp.sources import open_source
        >>> open_source({"sex": ["male"]}).check(Domain({"Sex": ["female", "male"]}))  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        matrixdp.errors.SourceError: the table has no column 'Sex'; names are compared letter by ...
        """
        self.check_columns(self._request(domain, (), out_of_domain or OutOfDomain(), unit))

    def _request(
        self,
        domain: Domain,
        subsets: Sequence[Sequence[str]],
        out_of_domain: OutOfDomain,
        unit: Unit | None,
    ) -> Request:
        counted = unit or Unit()
        if counted.id is not None and not self.bounds_contributions:
            raise SourceError.at(("unit", "id"), "a table whose records have no determined order", UNORDERED)
        if out_of_domain.counts and not self.counts_out_of_domain:
            raise SourceError.at(
                ("out_of_domain", "count"),
                "a table whose engine does not count what is out of domain",
                "files, a DuckDB database or relation, a data frame, or arrays",
            )
        derived = next(iter(domain.parents), None)
        if derived is not None and not self.derives_attributes:
            expected = "attributes that the table has, in this engine; convert the table, or name its file"
            raise SourceError.at(("domain", derived), "an attribute that is derived from others", expected)
        return Request(domain, tuple(tuple(subset) for subset in subsets), out_of_domain, counted)

    def assumptions(self, domain: Domain) -> tuple[str, ...]:  # noqa: ARG002
        """Return what the promise assumes of the table, in sentences that quote nothing of it.

        A `matrixdp.privacy.Clause` is a sentence with an identifier for machines.
        A source whose records are counted one by one, each without regard to the others, assumes nothing.
        """
        return ()

    def columns(self) -> Mapping[str, Kind]:
        """Return the names of the table's columns and what they hold, by its storage types.

        No record is read. `draft` needs it; an engine need not have it.

        Raises
        ------
        SourceError
            If the table cannot be read, or is of a kind that does not tell.
        """
        raise SourceError(f"{self!r} does not tell its columns; give the path of a table")

    def check_columns(self, request: Request) -> None:
        """Refuse what `count` refuses before its iterator is returned, without reading a record.

        An engine that reads records before it returns the iterator has one of its own.

        Parameters
        ----------
        request : Request
            What would be asked: no marginals, of the columns of a domain.
        """
        self.count(request)

    @abstractmethod
    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts; see `marginals`.

        Parameters
        ----------
        request : Request
            What is asked, checked against the domain. `Request.check_columns` and `Request.rules` say
            whether the table can answer it, and are to be called before the iterator is returned;
            `Request.array` makes the counts of the groups that the table holds.
        """


class ComputedSource(Source):
    """A table that is computed from others, by the engine that it belongs to.

    Parameters
    ----------
    table : object
        The engine's own table, or what narwhals wraps it in.
    """

    counts_out_of_domain = True
    derives_attributes = True

    def __init__(self, table: Any) -> None:
        self._table: Any = native(table)

    def assumptions(self, domain: Domain) -> tuple[str, ...]:  # noqa: ARG002
        """Return what the promise assumes of the table."""
        return (COMPUTED, INFERRED)


def native(table: Any) -> Any:
    """Return what narwhals wraps; anything else as it is, without asking narwhals."""
    if type(table).__module__.partition(".")[0] != "narwhals":
        return table
    import narwhals as nw

    return nw.to_native(table, pass_through=True)
