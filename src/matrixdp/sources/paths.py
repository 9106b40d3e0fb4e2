"""Tables at a path: CSV, Parquet, DuckDB databases.

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
    COMPUTED,
    FAILED,
    INFERRED,
    QUOTES_CLOSED,
    UNORDERED,
    Marginal,
    Request,
    Source,
    guarded,
)
from matrixdp.sources.engines import connect, connect_to_kept, settings
from matrixdp.sources.headers import column_names, read_header
from matrixdp.sources.sql import column_kind, identifier, literal

if TYPE_CHECKING:
    import duckdb

_TEXT = (".csv", ".tsv", ".txt")
_PARQUET = (".parquet", ".pq")
_DATABASE = (".duckdb", ".ddb", ".db")
#: The most bytes of texts that one thread counts sooner than a database is made.
_SMALL = 2**20


@final
class PathSource(Source):
    """A table at a path, counted by DuckDB.

    The columns of CSV files are texts, and nothing about their form is guessed from their records: the first
    line names the columns and, by the names that the domain wants, tells the delimiter. See
    `matrixdp.sources.csv` for what makes a record.

    Parameters
    ----------
    path : str or PathLike
        Of a CSV or Parquet file, a glob of such files, or a DuckDB database.
    table_name : str, optional
        The table in the database, with its schema or without; needed only where there are several.
    quoted_newlines : bool
        Whether quotes in CSV files may hold line ends.

    Raises
    ------
    SourceError
        If there is no such file, its kind is not known, or another kind is meant.
    """

    bounds_contributions = True
    counts_out_of_domain = True
    derives_attributes = True

    def __init__(
        self, path: str | os.PathLike[str], table_name: str | None = None, *, quoted_newlines: bool = False
    ) -> None:
        self.path = os.fspath(path)
        self.table_name = table_name
        self._quoted_newlines = quoted_newlines
        self._files = _find(self.path)
        self._format = _format(self._files[0])
        if self._format == "duckdb" and len(self._files) > 1:
            raise SourceError(f"{self.path!r} matches several databases; name one")
        if self._format != "duckdb" and table_name is not None:
            raise SourceError(f"{self.path!r} is not a DuckDB database, so it has no table to choose")
        if self._format != "csv" and quoted_newlines:
            raise SourceError(f"{self.path!r} is not CSV, so quoted_newlines says nothing about it")
        for file in self._files:
            if _format(file) != self._format:
                raise SourceError(f"{self.path!r} matches files of several kinds; name files of one kind")

    def __repr__(self) -> str:
        return f"PathSource({self.path!r})"

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return what the promise assumes of the table."""
        if self._format == "csv":
            return (QUOTES_CLOSED,) if self._quoted_newlines else ()
        return (COMPUTED, INFERRED) if self._computed(domain) else (INFERRED,)

    def _computed(self, domain: Domain) -> bool:
        """Return whether a database computes what is read: the table is a view, or a column is generated."""
        if self._format != "duckdb":
            return False

        def ask() -> bool:
            with connect() as connection:
                schema, table, view = self._choose(connection)
                return view or not _generated(connection, schema, table).isdisjoint(domain.columns)

        return guarded(ask, f"read {self.path!r}")

    def columns(self) -> Mapping[str, Kind]:
        """Return the names of the table's columns and what they hold, by its storage types."""

        def ask() -> dict[str, Kind]:
            with connect_to_kept() if self._is_small() else connect() as connection:
                held = self.records(connection)
                kinds = (column_kind(str(stored)) for stored in held.types)
                return dict(zip(held.columns, kinds, strict=True))

        return guarded(ask, f"read {self.path!r}")

    def records(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """Return all columns of the table as a relation that is not yet computed.

        Its records are for nobody who may not see them: it is for tables that are public, and for types.
        """
        if self._format == "duckdb":
            return self._stored(connection, Unit())
        if self._format == "parquet":
            return connection.read_parquet([glob.escape(file) for file in self._files], union_by_name=True)
        from matrixdp.sources.csv import read_texts

        names = list(dict.fromkeys(filter(None, column_names(self._files[0], self._quoted_newlines))))
        texts = connection.from_arrow(read_texts(self._files, names, self._quoted_newlines)[1])
        own = zip(texts.columns, names, strict=True)
        return texts.project(", ".join(f"{identifier(held)} AS {identifier(name)}" for held, name in own))

    def check_columns(self, request: Request) -> None:
        """Refuse what `count` refuses; what files say of their columns themselves is mostly enough."""
        settings()
        kinds = guarded(partial(self._kinds, request), f"read {self.path!r}")
        if kinds is None or any(own.rule(kinds[own.column]) is None for own in request.domain.readings):
            self.count(request)

    def _kinds(self, request: Request) -> Mapping[str, Kind] | None:
        """Return what the columns of a request hold by the files alone; None where that takes an engine."""
        if self._format == "duckdb" or request.unit.id is not None:
            return None
        if self._format == "parquet":
            from matrixdp.sources.columns import parquet_kinds

            return parquet_kinds(self._files, request.columns)
        headers = [read_header(file, request.columns, self._quoted_newlines)[1] for file in self._files]
        once = all(header.count(name) == 1 for header in headers for name in request.columns)
        return dict.fromkeys(request.columns, Kind.TEXT) if once else None

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        from matrixdp.sources.counting import count

        hint = FAILED if self._computed(request.domain) else ""
        few = guarded(self._is_small, f"read {self.path!r}")
        return count(request, partial(self._codes, request), f"read {self.path!r}", hint, few=few)

    def _is_small(self) -> bool:
        """Return whether this is a short text, which is read here and not by the engine."""
        return self._format == "csv" and sum(map(os.path.getsize, self._files)) <= _SMALL

    def _codes(self, request: Request, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        from matrixdp.sources.counting import encode

        domain, placed = request.domain, request.unit.id is not None
        if self._format == "duckdb":
            return encode(self._stored(connection, request.unit), request, domain)
        from matrixdp.sources.memory import encode_batches

        if self._format == "parquet":
            from matrixdp.sources.columns import read_parquet

            names, streams = read_parquet(self._files, request.columns, placed)
            request.check_columns(names)
            if streams:
                codes = [encode_batches(request, stream.schema, stream, connection) for stream in streams]
                return reduce(lambda first, second: first.union(second), codes)
            # A bracket in the name of a file that exists is not a pattern any more.
            files = [glob.escape(file) for file in self._files]
            stored = connection.read_parquet(files, union_by_name=True)
            return encode(stored, request, domain, stored.columns)
        from matrixdp.sources.csv import read_texts

        headers, records = read_texts(self._files, request.columns, self._quoted_newlines, placed)
        for header in headers:
            request.check_columns(header)
        return encode_batches(request, records.schema, records, connection)

    def _stored(self, connection: duckdb.DuckDBPyConnection, unit: Unit) -> duckdb.DuckDBPyRelation:
        """Return a table of the database; with an id its last column is the place of each record."""
        schema, table, is_view = self._choose(connection)
        # Quoted identifiers cannot end the statement.
        origin = f"FROM source.{identifier(schema)}.{identifier(table)}"
        stored = connection.sql(f"SELECT * {origin}")
        if unit.id is None:
            return stored
        names = [name.lower() for name in stored.columns]
        if is_view or "rowid" in names:
            found = "a view" if is_view else "a table with a column 'rowid'"
            raise SourceError.at(("unit", "id"), f"{found}, whose records have no order", UNORDERED)
        if unit.id in _generated(connection, schema, table):
            found = f"{unit.id!r}, a column that the database computes"
            raise SourceError.at(("unit", "id"), found, "a column that is stored")
        place = next(f"place{i}" for i in range(len(names) + 1) if f"place{i}" not in names)
        return connection.sql(f"SELECT *, rowid AS {place} {origin}")

    def _choose(self, connection: duckdb.DuckDBPyConnection) -> tuple[str, str, bool]:
        """Attach the database, and return the schema and name of the table, and whether it is a view."""
        connection.execute(f"ATTACH {literal(self._files[0])} AS source (READ_ONLY)")
        rows = connection.execute(
            "SELECT schema_name, table_name, false FROM duckdb_tables() "
            "WHERE database_name = 'source' AND NOT internal UNION ALL "
            "SELECT schema_name, view_name, true FROM duckdb_views() "
            "WHERE database_name = 'source' AND NOT internal ORDER BY ALL"
        ).fetchall()
        tables = [(str(schema), str(table), bool(view)) for schema, table, view in rows]
        listed = ", ".join(repr(_short(schema, table)) for schema, table, _ in tables) or "none"
        wanted = self.table_name
        matches = [found for found in tables if wanted in (None, found[1], f"{found[0]}.{found[1]}")]
        if len(matches) != 1:
            asked = f"no table {wanted!r}" if wanted is not None else "no single table"
            several = len(matches) > 1 and wanted is not None
            found = f"several tables {wanted!r}" if several else asked
            raise SourceError(f"the database {self.path!r} has {found}; name one of its tables: {listed}")
        return matches[0]


def _generated(connection: duckdb.DuckDBPyConnection, schema: str, table: str) -> set[str]:
    """Return the names of the columns of a table that the database computes."""
    query = (
        "SELECT column_name FROM duckdb_columns() WHERE database_name = 'source' "
        "AND schema_name = ? AND table_name = ? AND is_generated"
    )
    return {str(name) for (name,) in connection.execute(query, [schema, table]).fetchall()}


def _short(schema: str, table: str) -> str:
    return table if schema == "main" else f"{schema}.{table}"


def _find(path: str) -> list[str]:
    if os.path.isfile(path):  # noqa: PTH113 - no error where the path is none
        return [path]
    if os.path.isdir(path):  # noqa: PTH112
        raise SourceError(f"{path!r} is a folder; name its files by a pattern such as {path}/*.parquet")
    files = sorted(file for file in glob.glob(path, recursive=True) if Path(file).is_file())  # noqa: PTH207
    if files:
        return files
    if glob.has_magic(path):
        raise SourceError(f"no file matches {path!r}")
    raise SourceError(f"there is no file {path!r}")


def _format(file: str) -> str:
    name = file.lower().removesuffix(".gz")
    for suffixes, kind in ((_TEXT, "csv"), (_PARQUET, "parquet"), (_DATABASE, "duckdb")):
        if name.endswith(suffixes):
            return kind
    known = ", ".join((*_TEXT, *_PARQUET, *_DATABASE))
    raise SourceError(f"the kind of {file!r} is told by its ending, which must be one of {known}")
