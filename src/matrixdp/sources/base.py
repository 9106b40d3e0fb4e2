"""What a source is: a table that can be counted, and nothing else."""

from __future__ import annotations

import math
import os
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.display import listed
from matrixdp.domain import Attribute, Dates, Domain, OutOfDomain
from matrixdp.domain.rules import BOOLEANS, Kind, Listed, Rule, Texts
from matrixdp.errors import DEBUG, MatrixDPError, SourceError, TooLargeError
from matrixdp.privacy import Clause, Unit

OUT_OF_DOMAIN: tuple[str, ...] = ("",)
"""In the place of the attributes of a marginal, none of which is so called: the counts out of domain."""

_HOLDS = {Kind.DATE: "dates", Kind.BOOLEAN: "booleans", Kind.INTEGER: "integers", Kind.FLOAT: "numbers"}
_HOLDS |= dict.fromkeys((Kind.TIMESTAMP, Kind.NANOSECONDS, Kind.INSTANT), "timestamps")
MOST_CELLS = 2**31
"""The most cells of one marginal (16 GiB of counts)."""
MOST_WEIGHT = 2**90
"""The most that one record may weigh in a marginal: 128 bits hold the sum over 2^37 records."""


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
        are counted, those out of domain among them, and records without an id are not. With `per` those out
        of domain are not among them: see `matrixdp.sources.counting.bounded`.
    listed : Attribute, optional
        The attribute of the domain whose values are listed with their persons, in place of any count. With
        `per` it is the first `max_values` of a person's values, in whichever of her records they are.
    slices : (str, int), optional
        An attribute that is the first of every subset, and how many of its values are counted at a time.
    run : range, optional
        Which of its values are counted, where not all are.

    Raises
    ------
    DomainError
        If a subset names an unknown attribute or one twice, or the rule or the unit does not fit the domain.
    TooLargeError
        If a marginal has more than `MOST_CELLS` cells, or a record weighs more than `MOST_WEIGHT` there.

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
    listed: Attribute | None = None
    slices: tuple[str, int] | None = None
    run: range | None = None

    def __post_init__(self) -> None:
        self.out_of_domain.check(self.domain)
        self.unit.on(self.domain, self.out_of_domain)
        for subset in self.subsets:
            cells = self.domain.cells(subset)
            if self.slices is not None:
                cells = math.prod(self.shape(subset))
            if cells > MOST_CELLS:
                told = f"the marginal on {', '.join(subset)} has {cells} cells"
                raise TooLargeError(f"{told}; at most {MOST_CELLS} can be counted")
            if self.domain.weight(subset) > MOST_WEIGHT:
                told = f"the amounts of the marginal on {', '.join(subset)} have too many steps together"
                raise TooLargeError(f"{told}; at most 2^{MOST_WEIGHT.bit_length() - 1}: take larger steps")

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once: those of the attributes, then that of the id, if any."""
        return self.domain.columns if self.unit.id is None else (*self.domain.columns, self.unit.id)

    @property
    def counted(self) -> tuple[tuple[str, ...], ...]:
        """The tables to count: the subsets, then the counts out of domain if they are asked for."""
        return (*self.subsets, OUT_OF_DOMAIN) if self.out_of_domain.counts else self.subsets

    @property
    def used(self) -> tuple[str, ...]:
        """The attributes that are in some subset, or say which records count, in the order of the domain."""
        bounding = () if self.unit.id is None else self.unit.bounded
        return self.domain.sort({name for subset in (bounding, *self.subsets) for name in subset})

    def shape(self, subset: Sequence[str]) -> tuple[int, ...]:
        """Return the sizes of some attributes, in the order given; of the one that is sliced, a slice's."""
        name, width = self.slices or ("", 0)
        return tuple(width if own == name else self.domain[own].size for own in subset)

    def weighed(self, subset: Sequence[str]) -> bool:
        """Return whether a record weighs more than 1 in a marginal, as one with an `Amount` does."""
        return subset != OUT_OF_DOMAIN and self.domain.weight(subset) > 1

    def other(self, name: str) -> int | None:
        """Return the code of raw values that counts in place of those out of domain; None to drop these."""
        code = self.out_of_domain.code(name)
        return None if code is None else self.domain[name].raw_code(code)

    def array(
        self, subset: Sequence[str], keys: NDArray[np.integer], counts: NDArray[Any]
    ) -> NDArray[np.int64]:
        """Return the marginal from the row-major positions of its cells and their counts.

        Where records weigh more than 1 the counts are Python integers, which have any size.
        """
        outside = subset == OUT_OF_DOMAIN
        shape = (len(self.out_of_domain.counts),) if outside else self.shape(subset)
        kind: Any = object if self.weighed(subset) else np.int64
        result = np.zeros(math.prod(shape), dtype=kind)
        np.add.at(result, np.asarray(keys, dtype=np.int64), np.asarray(counts, dtype=kind))
        return result.reshape(shape)

    def near(self, kinds: Mapping[str, Kind]) -> tuple[str, Any, Any] | None:
        """Return the column of the run, and what no value of the run is below or above, as columns compare.

        None where not all values are asked for, or the order of a column does not tell which. Of a sorted
        file only a part is read then: it says what its row groups hold.
        """
        if self.run is None or self.slices is None or self.slices[0] not in self.domain.readings:
            return None
        attribute = self.domain.readings[self.slices[0]]
        kind = kinds[attribute.column]
        rule = attribute.rule(kind)
        if not isinstance(rule, Listed | Texts) or rule.trim or any(rule.folded):
            return None
        if {rule.null, self.other(attribute.name)} & {*self.run}:
            return None
        values: list[Any] = [value for value, code in rule.codes.items() if code in self.run]
        texts = isinstance(rule, Texts) or all(isinstance(own, str) and own not in BOOLEANS for own in values)
        numbers = kind is Kind.INTEGER and all(isinstance(value, float) for value in values)
        if not (numbers or (texts and kind is Kind.TEXT)):
            return None
        return attribute.column, min(values), max(values)

    def check_columns(self, columns: Iterable[str]) -> None:
        """Check that the table has a column for every attribute, and for the id.

        Raises
        ------
        SourceError
            If a column is missing or occurs twice. The message quotes no name from the table, as its header
            may be a record.
        """
        named = list(columns)
        listed = [column for column in named if isinstance(column, str)]
        missing = [name for name in self.columns if name not in listed]
        if missing:
            word = "column" if len(missing) == 1 else "columns"
            told = f"the table has no {word} {', '.join(map(repr, missing))}; {_NAMED}"
            near = {str(column).strip().casefold() for column in named}
            like = next((name for name in missing if name.strip().casefold() in near), None)
            if like is not None:
                told += (
                    f"; a name in the table differs from {like!r} only in case or surrounding spaces, or is "
                    "not a text"
                )
            if listed and listed[0].startswith("#"):
                told += "; the first name begins with '#': if that is a comment, delete its line"
            raise SourceError(told, code="missing-column")
        for name in self.columns:
            if listed.count(name) > 1:
                raise SourceError(f"the table has several columns named {name!r}", code="duplicate")

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
                column = self.domain.readings[attribute.name].column
                holds = f"column {column!r} holds {_HOLDS.get(kind, 'values of another kind')}"
                raise SourceError(f"{holds}; {_expected(attribute)}, so convert it first", code="wrong-kind")
            rules[attribute.name] = rule
        return rules


_NAMED = "names are case-sensitive; if the column has another name, write `column: NAME` under the attribute"


def _expected(attribute: Attribute) -> str:
    if isinstance(attribute, Dates):
        if attribute.by == "hour":
            return "hours are read from timestamps, or texts such as 2020-01-31T17:30"
        return "it is read from dates, timestamps, or texts such as 2020-01-31 or 2020-01-31T17:30"
    if attribute.numeric:
        return "a numeric attribute is read from numbers, booleans or texts of numbers"
    if getattr(attribute, "type", None) == "text":
        return "categories of type text are compared with texts as they stand"
    return "categories are compared with texts, numbers, booleans or dates"


COMPUTED = Clause(
    "computed-rows",
    "The table is a view, a relation or a lazy frame, whose rows its engine computes. Assumption: adding or "
    "removing one row does not change any other row, and does not make the engine fail.",
)
"""What is assumed of every table that is computed from others."""

FAILED = "its engine failed on a record; let it read what may not parse as text"
"""The hint in an error where the engine of such a table fails."""

INFERRED = (
    "Assumption: the types of the columns were fixed in advance. If a program inferred them from the data, "
    "one record could change a type, and the guarantee does not cover that."
)
"""What is assumed of every table whose columns are not texts by its format."""

QUOTES_CLOSED = Clause(
    "quotes-closed",
    "Assumption: every quoted field of the CSV files is closed. An unclosed quote swallows the records after "
    "it, and the guarantee does not cover that.",
)
"""What is assumed of CSV files where quotes may hold line ends."""

UNORDERED = (
    "CSV or Parquet files, a table of a DuckDB or SQLite database, a data frame in memory or arrays: the "
    "order decides which records of a person are counted"
)
"""What is expected in place of a table whose records have no order, where an id is named."""


@final
@dataclass(frozen=True)
class Values:
    """Which values persons have in a column: none of it is public.

    Attributes
    ----------
    persons, places : ndarray of int64, shape (n,)
        The number of a person, and the place of one of her values among the texts: one person after the
        other, each value once, in the order of her records.
    texts : tuple of (str or float)
        The canonical values, each once, by number and then by text.
    """

    persons: NDArray[np.int64]
    places: NDArray[np.int64]
    texts: tuple[str | float, ...]


Marginal = tuple[tuple[str, ...], NDArray[np.int64]]
"""The attributes of a marginal, and its counts: one axis an attribute, in that order."""
Result = TypeVar("Result")


class Source(ABC):
    """A table that can be counted. An engine's own source says how, in `count`.

    Attributes
    ----------
    bounds_contributions : bool
        Whether `count` keeps to a `Unit` with an id. It must not say so unless the records have an order that
        no record changes for others.
    lists_values : bool
        Whether `count` yields, for a request with `Request.listed`, the `Values` in place of marginals.
    counts_out_of_domain : bool
        Whether `count` yields, where `OutOfDomain.counts` asks for it, how many records are out of domain: of
        those that are counted at all, every one either in its cell of each marginal, or in these numbers.
    divides_records : bool
        Whether `count` divides records among the values of an `Amount`: marginals with amounts hold, in the
        place of counts, the sums of what `Amount.weights` says of each record, as Python integers.
    derives_attributes : bool
        Whether `count` has counts of attributes that are derived from others: it reads `Domain.readings`, and
        looks the codes of the others up by theirs.
    counts_slices : bool
        Whether `count` yields, for a request with `Request.slices`, every marginal once for each slice of the
        values, in their order. Each has the width of a slice; the last has zeros beyond the last value.
    opens_anywhere : bool
        Whether another process can be sent the source, which holds no record, and opens the table itself.
    """

    bounds_contributions: ClassVar[bool] = False
    lists_values: ClassVar[bool] = False
    counts_out_of_domain: ClassVar[bool] = False
    derives_attributes: ClassVar[bool] = False
    divides_records: ClassVar[bool] = False
    counts_slices: ClassVar[bool] = False
    opens_anywhere: ClassVar[bool] = False

    @final
    def marginals(
        self,
        domain: Domain,
        subsets: Sequence[Sequence[str]],
        out_of_domain: OutOfDomain,
        unit: Unit | None = None,
        slices: tuple[str, int] | None = None,
        run: range | None = None,
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
        slices : (str, int), optional
            The first attribute of every subset, and how many of its values may be counted at a time. Then a
            marginal comes in slices of these, the last with zeros beyond the last value or shorter.
        run : range, optional
            Which of its values are counted; all where it is left out.

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
        request = self._request(domain, subsets, out_of_domain, unit)
        if slices is None or self.counts_slices:
            return self.count(replace(request, slices=slices, run=run))
        first, stop = (0, None) if run is None else (run.start, run.stop)
        every = (
            (subset, counts[first:stop] if subset != OUT_OF_DOMAIN else counts)
            for subset, counts in self.count(request)
        )
        return (
            (subset, counts[start : start + slices[1]])
            for subset, counts in every
            for start in range(0, len(counts), len(counts) if subset == OUT_OF_DOMAIN else slices[1])
        )

    @final
    def person_values(self, attribute: Attribute, unit: Unit) -> Callable[[], Values]:
        """Return what lists the values of a column with their persons.

        The values are read by the rule of the attribute, whatever it lists itself. A value of more than 1,000
        characters, an empty one and one with U+FFFD count as none. What the table makes impossible is raised
        by the call itself, before any record is read.

        Raises
        ------
        SourceError
            As `marginals`, or if the table is of a kind whose values cannot be listed.
        """
        if not self.lists_values:
            expected = "CSV or Parquet files, a DuckDB database, a data frame in memory or arrays"
            found = "a table whose engine does not list values"
            raise SourceError.at(("domain", attribute.name), found, expected, code="not-supported")
        asked = self._request(Domain([attribute]), (), OutOfDomain(), unit)
        listed: Any = self.count(replace(asked, listed=attribute))
        return lambda: guarded(lambda: next(listed)[1])

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
        matrixdp.errors.SourceError: the table has no column 'Sex'; names are case-sensitive; ...
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
            found = "a table whose records have no determined order"
            raise SourceError.at(("unit", "id"), found, UNORDERED, code="not-supported")
        if out_of_domain.counts and not self.counts_out_of_domain:
            found = "a table whose engine does not count what is out of domain"
            expected = "files, a DuckDB database or relation, a data frame, or arrays"
            raise SourceError.at(("out_of_domain", "count"), found, expected, code="not-supported")
        derived = next(iter(domain.parents), None)
        if derived is not None and not self.derives_attributes:
            expected = "attributes that the table has, in this engine; convert the table, or name its file"
            found = "an attribute that is derived from others"
            raise SourceError.at(("domain", derived), found, expected, code="not-supported")
        amount = next((attribute.name for attribute in domain if attribute.divided), None)
        if amount is not None and not self.divides_records:
            expected = "bins, as {edges: [0, 1000, 5000]}; files, databases and data frames have amounts"
            found = "an amount, of a table whose engine does not add up amounts"
            raise SourceError.at(("domain", amount), found, expected, code="not-supported")
        return Request(domain, tuple(tuple(subset) for subset in subsets), out_of_domain, counted)

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return the assumptions of the guarantee about the table, in sentences that quote nothing of it.

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
        message = f"{self!r} does not tell its columns; give the path of a table"
        raise SourceError(message, code="not-supported")

    def check_columns(self, request: Request) -> None:
        """Reject what `count` rejects before its iterator is returned, without reading a record.

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

    counts_out_of_domain = derives_attributes = divides_records = True

    def __init__(self, table: Any) -> None:
        self._table: Any = native(table)

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return the assumptions of the guarantee about the table."""
        return (COMPUTED, INFERRED)


class OrderedSource(Source):
    """A table whose records have an order that no record changes for others."""

    bounds_contributions = counts_out_of_domain = derives_attributes = divides_records = True
    lists_values = True

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return the assumptions of the guarantee about the table."""
        return (INFERRED,)


@final
@dataclass(frozen=True)
class Table:
    """A table of a database.

    Parameters
    ----------
    name : str
        What a statement calls it.
    computed : bool
        Whether the database computes its records.
    types : mapping of str to str
        The type that each column is stored as.
    generated : collection of str
        The columns that the database computes.
    """

    name: str
    computed: bool
    types: Mapping[str, str]
    generated: Collection[str]

    def computes(self, domain: Domain) -> bool:
        """Return whether the database computes anything of what a domain reads."""
        return self.computed or not set(domain.columns).isdisjoint(self.generated)

    def check_id(self, name: str) -> None:
        """Reject an id that the database computes."""
        if name in self.generated:
            found = f"{name!r}, a column that the database computes"
            raise SourceError.at(("unit", "id"), found, "a column that is stored", code="not-supported")


class TableSource(Source):
    """A table of a database: the one that is named, or the only one.

    Parameters
    ----------
    where : str
        The path or the address of the database, without secrets.
    table_name : str, optional
        The table, with its schema or without; needed only where there are several.
    """

    counts_out_of_domain = derives_attributes = divides_records = True

    def __init__(self, where: str, table_name: str | None = None) -> None:
        self._where = where
        self._reading = f"read {where!r}"
        self.table_name = table_name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._where!r})"

    @abstractmethod
    def _connect(self) -> Any:
        """Return, for a `with`, a connection that reads one state of the database."""

    @abstractmethod
    def _find(self, connection: Any) -> Table:
        """Return the table that is meant; no record is read."""

    def table(self) -> Table:
        """Return the table that is meant, over a connection of its own."""
        with self._connect() as connection:
            return guarded(partial(self._find, connection), self._reading)

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return the assumptions of the guarantee about the table."""
        return (COMPUTED, INFERRED) if self.table().computes(domain) else (INFERRED,)

    def choose(self, tables: Sequence[tuple[Any, ...]], default: str) -> tuple[Any, ...]:
        """Return the one of all tables that is meant: its schema, its name, and what else is known of it.

        Names leave out the default schema.
        """
        wanted = self.table_name
        whole = [f"{schema}.{name}" for schema, name, *_ in tables]
        names = [
            table[1] if table[0] == default and table[1] not in whole else own
            for table, own in zip(tables, whole, strict=True)
        ]
        if wanted in names:
            return tables[names.index(wanted)]
        found = [table for table, own in zip(tables, whole, strict=True) if wanted in (None, table[1], own)]
        if len(found) == 1:
            return found[0]
        there = listed(map(repr, names), len(names)) or "none"
        number = "several tables" if found else "no table"
        asked = "no single table" if wanted is None else f"{number} {wanted!r}"
        message = f"the database {self._where!r} has {asked}; name one of its tables: {there}"
        raise SourceError(message, code="unknown-name")


def native(table: Any) -> Any:
    """Unwrap a frame of narwhals; return anything else as it is, without asking narwhals."""
    if type(table).__module__.partition(".")[0] != "narwhals":
        return table
    import narwhals as nw

    return nw.to_native(table, pass_through=True)


def started(marginals: Iterator[Any]) -> Iterator[Any]:
    """Run a generator up to its first ``yield``, by which all is checked, and return what comes then.

    What it opened until then stays open until all is counted.
    """
    next(marginals)
    return marginals


# Errors of engines, without what they say.
#
# An engine's message may quote the table, and which class of error it raises may depend on a value. So the
# engine's error is dropped altogether. A variable of the environment shows it on standard error, behind a
# warning, and nowhere else: what is raised in its place, and may be written down, is the same.

_WARNING = (
    f"WARNING: {DEBUG} IS SET. WHAT FOLLOWS MAY QUOTE THE TABLE, AND NO NOISE PROTECTS IT: show it to nobody "
    "who may not see every record, and keep it out of logs and reports."
)
_END = f"WARNING: THE ABOVE MAY QUOTE THE TABLE. Unset {DEBUG} where others see what is printed."


def guarded(action: Callable[[], Result], doing: str = "read the table", hint: str = "") -> Result:
    """Run an action; replace an engine's error by one that says nothing about the data.

    Examples
    --------
    >>> try:
    ...     guarded(lambda: int("a secret"))
    ... except SourceError as error:
    ...     print(str(error)[:45])
    could not read the table (the engine's own me
    """
    try:
        return action()
    except (MatrixDPError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  a panic of an engine is no Exception
        if os.environ.get(DEBUG):
            said = "".join(traceback.format_exception(error))
            sys.stderr.write(f"{_WARNING}\n{said}{_END}\n")
    # Raised outside the handler, so that the engine's error is not even the context of this one.
    withheld = "the engine's own message may quote the data and is withheld"
    message = f"could not {doing} ({withheld}; {DEBUG}=1 shows it on standard error)"
    raise SourceError(f"{message}; {hint}" if hint else message, code="engine-failed")
