"""Formats of files: one table of their endings, what reads them, and what the guarantee assumes of them.

A new format is one call of `register_format`: paths and addresses read it, and messages and help list it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Protocol, final

from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.sources.base import INFERRED
from matrixdp.sources.headers import column_names, read_header
from matrixdp.sources.sql import identifier

if TYPE_CHECKING:
    import duckdb

#: The most bytes of text that one thread counts sooner than a database is made.
_SMALL = 2**20
#: Records of the file at a position have their places from this multiple of it.
_PLACES = 2**40


class Files(Protocol):
    """Files of one format that hold one table, in the order given."""

    def kinds(self, wanted: Sequence[str]) -> Mapping[str, Kind] | None:
        """Return what columns hold where the files say so by themselves; None where that takes an engine."""

    def is_small(self) -> bool:
        """Return whether one thread reads these files sooner than a database is made."""

    def read(self, wanted: Sequence[str], placed: bool = False) -> tuple[list[list[str]], list[Any]]:
        """Return the names of columns, in lists where none may be missing or stand twice, and streams.

        A stream has the wanted columns, in that order, and with `placed` the place of each record. There are
        none where DuckDB reads `relation` without failing on any value.
        """

    def relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """Return all columns of the table as a relation that is not yet computed."""


@final
@dataclass(frozen=True)
class Format:
    """A format of files.

    Parameters
    ----------
    name : str
        Its name in messages.
    endings : tuple of str
        The endings of its files, in small letters, each with its point.
    opens : callable or None
        Returns the `Files` of paths; None for a database, which has tables of its own.
    assumptions : tuple of str
        What the guarantee assumes of its tables.
    """

    name: str
    endings: tuple[str, ...]
    opens: Callable[..., Files] | None
    assumptions: tuple[str, ...]


def register_format(
    name: str,
    *endings: str,
    reader: Callable[[str], Any],
    assumptions: Sequence[str] = (INFERRED,),
) -> None:
    """Add a format of files that paths, patterns of files and addresses may have from now on.

    Parameters
    ----------
    name : str
        The name of the format, as messages show it.
    *endings : str
        The endings of its files, such as ``.orc``.
    reader : callable
        Takes the path of a file and returns a `pyarrow.RecordBatchReader` or `pyarrow.Table` with all columns
        in the order of the records. One record must not change how others are read, or make the reader fail.
    assumptions : sequence of str
        What the guarantee assumes of such tables, as the statement of a release says it: by default that
        the types of the columns do not depend on any one record.

    Raises
    ------
    SourceError
        If another format has one of the endings.

    Examples
    --------
    >>> import pyarrow.orc
    >>> register_format("ORC", ".orc", reader=pyarrow.orc.read_table)
    >>> find_format("people.orc")[0].name
    'ORC'
    """
    taken = sorted({*endings} & {*_endings()})
    if taken or not endings:
        found = f"{taken[0]!r}, which another format has" if taken else "no ending"
        raise SourceError.at(("endings",), found, "endings of this format alone", code="duplicate")
    _FORMATS.append(Format(name, endings, partial(_ArrowFiles, reader), tuple(assumptions)))


def format_names(remote: bool = False) -> str:
    """Return the names of all formats in words; without databases where files are `remote`."""
    names = [one.name for one in _FORMATS if one.opens or not remote]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def find_format(name: str, remote: bool = False) -> tuple[Format, str] | None:
    """Return the format of a file, and its ending; None where no format has it."""
    found = (
        (one, ending)
        for one in _FORMATS
        for ending in one.endings
        if name.lower().endswith(ending) and (one.opens or not remote)
    )
    return next(found, None)


def expected_endings(remote: bool = False) -> str:
    """Return the endings of all formats in words."""
    return "a name that ends in " + ", ".join(_endings(remote))


def _endings(remote: bool = False) -> list[str]:
    return [ending for one in _FORMATS if one.opens or not remote for ending in one.endings]


@final
class _CSVFiles:
    def __init__(self, files: Sequence[str], quoted_newlines: bool = False) -> None:
        self._files = files
        self._quoted_newlines = quoted_newlines

    def kinds(self, wanted: Sequence[str]) -> Mapping[str, Kind] | None:
        headers = [read_header(file, wanted, self._quoted_newlines)[1] for file in self._files]
        once = all(header.count(name) == 1 for header in headers for name in wanted)
        return dict.fromkeys(wanted, Kind.TEXT) if once else None

    def is_small(self) -> bool:
        return sum(map(os.path.getsize, self._files)) <= _SMALL

    def read(self, wanted: Sequence[str], placed: bool = False) -> tuple[list[list[str]], list[Any]]:
        from matrixdp.sources.csv import read_texts

        headers, records = read_texts(self._files, wanted, self._quoted_newlines, placed)
        return headers, [records]

    def relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        names = column_names(self._files[0], self._quoted_newlines)
        return _relation(self, [name for name in dict.fromkeys(names) if name], connection)


@final
class _ParquetFiles:
    def __init__(self, files: Sequence[str]) -> None:
        self._files = files

    def kinds(self, wanted: Sequence[str]) -> Mapping[str, Kind] | None:
        from matrixdp.sources.columns import parquet_kinds

        return parquet_kinds(self._files, wanted)

    def is_small(self) -> bool:
        return False

    def read(self, wanted: Sequence[str], placed: bool = False) -> tuple[list[list[str]], list[Any]]:
        from matrixdp.sources.columns import read_parquet

        names, streams = read_parquet(self._files, wanted, placed)
        return [names], streams

    def relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        # A bracket in the name of a file that exists is not a pattern any more.
        return connection.read_parquet([glob.escape(file) for file in self._files], union_by_name=True)


@final
class _ArrowFiles:
    """Files of a format that was registered with a reader of its own."""

    def __init__(self, reader: Callable[[str], Any], files: Sequence[str]) -> None:
        self._reader = reader
        self._files = files

    def kinds(self, wanted: Sequence[str]) -> Mapping[str, Kind] | None:
        return None

    def is_small(self) -> bool:
        return False

    def read(self, wanted: Sequence[str], placed: bool = False) -> tuple[list[list[str]], list[Any]]:
        readers = [self._opened(file) for file in self._files]
        headers = [list(reader.schema.names) for reader in readers]
        once = all(header.count(name) == 1 for header in headers for name in wanted)
        own = enumerate(readers if once else ())
        return headers, [_stream(reader, wanted, _PLACES * i if placed else None) for i, reader in own]

    def relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        return _relation(self, self._opened(self._files[0]).schema.names, connection)

    def _opened(self, file: str) -> Any:
        held = self._reader(file)
        return held.to_reader() if hasattr(held, "to_reader") else held


def _stream(reader: Any, wanted: Sequence[str], first: int | None) -> Any:
    """Return the wanted columns as a stream; with the places of records, where that of the first is given."""
    from matrixdp.sources.columns import PLACE, arrow, numbered, plain, plain_type

    held = [reader.schema.field(name).type for name in wanted]
    schema = arrow.schema([(f"a{i}", plain_type(type_)) for i, type_ in enumerate(held)])

    def batches() -> Iterator[Any]:
        for batch in reader:
            columns = [plain(batch.column(name)) for name in wanted]
            yield arrow.record_batch(columns, schema=schema)

    if first is None:
        return arrow.RecordBatchReader.from_batches(schema, batches())
    return arrow.RecordBatchReader.from_batches(schema.append(PLACE), numbered(batches(), first))


def _relation(
    files: Files, names: Sequence[str], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    relations = map(connection.from_arrow, files.read(names)[1])
    held = reduce(lambda first, second: first.union(second), relations)
    own = zip(held.columns, names, strict=True)
    return held.project(", ".join(f"{identifier(column)} AS {identifier(name)}" for column, name in own))


_TEXTS = (".csv", ".tsv", ".txt")
CSV = Format("CSV", (*_TEXTS, *(f"{ending}.gz" for ending in _TEXTS)), _CSVFiles, ())
PARQUET = Format("Parquet", (".parquet", ".pq"), _ParquetFiles, (INFERRED,))
DUCKDB = Format("DuckDB", (".duckdb", ".ddb", ".db"), None, (INFERRED,))
_FORMATS = [CSV, PARQUET, DUCKDB]
