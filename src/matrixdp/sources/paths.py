"""Tables at a path: files of the formats of `matrixdp.sources.formats`, and DuckDB databases.

Engines are imported once records are counted; that they can be is mostly told without.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, final

from matrixdp.domain import Domain
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.privacy import Unit
from matrixdp.sources.base import (
    FAILED,
    QUOTES_CLOSED,
    UNORDERED,
    Marginal,
    OrderedSource,
    Request,
    Table,
    TableSource,
    guarded,
)
from matrixdp.sources.engines import connect, connect_to_kept, settings
from matrixdp.sources.formats import CSV, DUCKDB, Files, expected_endings, find_format
from matrixdp.sources.sql import column_kind, identifier, literal

if TYPE_CHECKING:
    import duckdb


def open_path(
    path: str | os.PathLike[str], table_name: str | None = None, *, quoted_newlines: bool = False
) -> FileSource | DatabaseSource:
    """Return the source for a path.

    Parameters
    ----------
    path : str or PathLike
        Of a file, a glob of files of one format, or a DuckDB database.
    table_name : str, optional
        The table in the database, with its schema or without; needed only where there are several.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends.

    Raises
    ------
    SourceError
        If there is no such file, its format is not known, or an option does not go with it.
    """
    name = os.fspath(path)
    files = _files(name)
    formats = [find_format(file) for file in files]
    unknown = next((file for file, found in zip(files, formats, strict=True) if found is None), None)
    if unknown is not None:
        raise SourceError.at((), repr(unknown), expected_endings(), code="unknown-name")
    held, *others = dict.fromkeys(found[0] for found in formats if found)
    if others:
        raise SourceError(f"{name!r} matches files of several formats; name files of one", code="conflict")
    if held is not DUCKDB and table_name is not None:
        raise SourceError(f"{name!r} is no database, so it has no table to choose", code="conflict")
    if held is not CSV and quoted_newlines:
        raise SourceError(f"{name!r} is not CSV, so quoted_newlines does not apply to it", code="conflict")
    if held.opens is None:
        if len(files) > 1:
            raise SourceError(f"{name!r} matches several databases; name one", code="conflict")
        return DatabaseSource(files[0], table_name)
    if quoted_newlines:
        return FileSource(name, held.opens(files, quoted_newlines=True), (QUOTES_CLOSED,))
    return FileSource(name, held.opens(files), held.assumptions)


@final
class FileSource(OrderedSource):
    """A table in files of one format, counted by DuckDB.

    The columns of CSV files are texts, and nothing about their form is guessed from their records: the first
    line names the columns and, by the names that the domain wants, tells the delimiter. See
    `matrixdp.sources.csv` for what makes a record.
    """

    def __init__(self, path: str, files: Files, assumptions: tuple[str, ...]) -> None:
        self._path = path
        self._reading = f"read {path!r}"
        self._files = files
        self._assumptions = assumptions

    def __repr__(self) -> str:
        return f"FileSource({self._path!r})"

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return what the guarantee assumes of the table."""
        return self._assumptions

    def columns(self) -> Mapping[str, Kind]:
        """Return the names of the table's columns and what they hold, by its storage types."""
        open_database = connect_to_kept if guarded(self._files.is_small, self._reading) else connect
        return guarded(lambda: _columns(self, open_database()), self._reading)

    def records(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """Return all columns of the table as a relation that is not yet computed.

        Its records are for nobody who may not see them: it is for tables that are public, and for types.
        """
        return self._files.relation(connection)

    def check_columns(self, request: Request) -> None:
        """Reject what `count` rejects; what files say of their columns themselves is mostly enough."""
        settings()
        kinds = None
        if request.unit.id is None:
            kinds = guarded(partial(self._files.kinds, request.columns), self._reading)
        if kinds is None or any(own.rule(kinds[own.column]) is None for own in request.domain.readings):
            self.count(request)

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        from matrixdp.sources.counting import count

        few = guarded(self._files.is_small, self._reading)
        return count(request, partial(self._codes, request), self._reading, few=few)

    def _codes(self, request: Request, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        from matrixdp.sources.counting import encode
        from matrixdp.sources.memory import encode_batches

        headers, streams = self._files.read(request.columns, request.unit.id is not None)
        for header in headers:
            request.check_columns(header)
        if streams:
            codes = [encode_batches(request, stream.schema, stream, connection) for stream in streams]
            return reduce(lambda first, second: first.union(second), codes)
        stored = self._files.relation(connection)
        return encode(stored, request, columns=stored.columns)


@final
class DatabaseSource(TableSource["duckdb.DuckDBPyConnection"]):
    """A table of a DuckDB database."""

    bounds_contributions = True

    def _connect(self) -> duckdb.DuckDBPyConnection:
        return connect()

    def columns(self) -> Mapping[str, Kind]:
        """Return the names of the table's columns and what they hold, by its storage types."""
        return guarded(lambda: _columns(self, connect()), self._reading)

    def records(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """Return all columns of the table as a relation, as `FileSource.records` does."""
        return self._stored(connection, Unit())

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        from matrixdp.sources.counting import count

        hint = FAILED if self.table().computes(request.domain) else ""
        return count(request, partial(self._codes, request), self._reading, hint)

    def _codes(self, request: Request, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        from matrixdp.sources.counting import encode

        return encode(self._stored(connection, request.unit), request)

    def _stored(self, connection: duckdb.DuckDBPyConnection, unit: Unit) -> duckdb.DuckDBPyRelation:
        """Return the table; where an id is named, its last column is the place of each record."""
        table = self._find(connection)
        stored = connection.sql(f"SELECT * FROM {table.name}")  # noqa: S608
        if unit.id is None:
            return stored
        names = [name.lower() for name in stored.columns]
        if table.computed or "rowid" in names:
            found = "a view" if table.computed else "a table with a column 'rowid'"
            raise SourceError.at(
                ("unit", "id"), f"{found}, whose records have no order", UNORDERED, code="not-supported"
            )
        table.check_id(unit.id)
        place = next(f"place{i}" for i in range(len(names) + 1) if f"place{i}" not in names)
        return connection.sql(f"SELECT *, rowid AS {place} FROM {table.name}")  # noqa: S608

    def _find(self, connection: duckdb.DuckDBPyConnection) -> Table:
        connection.execute(f"ATTACH {literal(self._where)} AS source (READ_ONLY)")
        tables = connection.execute(
            "SELECT schema_name, table_name, false FROM duckdb_tables() "
            "WHERE database_name = 'source' AND NOT internal UNION ALL "
            "SELECT schema_name, view_name, true FROM duckdb_views() "
            "WHERE database_name = 'source' AND NOT internal ORDER BY ALL"
        ).fetchall()
        schema, name, is_view = self.choose(tables, "main")
        generated = connection.execute(
            "SELECT column_name FROM duckdb_columns() WHERE database_name = 'source' "
            "AND schema_name = ? AND table_name = ? AND is_generated",
            [schema, name],
        ).fetchall()
        # Quoted identifiers cannot end the statement.
        quoted = f"source.{identifier(schema)}.{identifier(name)}"
        return Table(quoted, is_view, {}, [column for (column,) in generated])


def _columns(source: FileSource | DatabaseSource, connection: duckdb.DuckDBPyConnection) -> dict[str, Kind]:
    with connection:
        held = source.records(connection)
        kinds = (column_kind(str(stored)) for stored in held.types)
        return dict(zip(held.columns, kinds, strict=True))


def _files(path: str) -> list[str]:
    if os.path.isfile(path):  # noqa: PTH113 - no error where the path is none
        return [path]
    if os.path.isdir(path):  # noqa: PTH112
        expected = f"a file, or a pattern of files such as {path}/*.parquet"
        raise SourceError.at((), f"{path!r}, a folder", expected)
    files = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())  # noqa: PTH207
    if files:
        return files
    if glob.has_magic(path):
        raise SourceError(f"no file matches {path!r}", code="file-missing")
    raise SourceError(f"there is no file {path!r}", code="file-missing")
