"""Tables of SQLite, by Python's own library: it runs in this process, and DuckDB counts what it reads.

A column of SQLite holds values of any type, each record its own. So values are encoded one by one in Python,
as objects are, and each that was met before is looked up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, final

import duckdb

from matrixdp.domain import encode_value
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.forms import shown
from matrixdp.sources.base import FAILED, UNORDERED, Marginal, Request, Table, TableSource, guarded
from matrixdp.sources.columns import arrow, stream
from matrixdp.sources.counting import count
from matrixdp.sources.memory import encode_codes, person_numbers
from matrixdp.sources.sql import identifier

_PREFIX = "sqlite:///"
_BATCH = 2**14
_KNOWN = 2**16
_ROWIDS = ("rowid", "_rowid_", "oid")


def _known(code: Callable[[object], int | None], most: int | None) -> Callable[[object], int | None]:
    """Decode the texts of SQLite, which are bytes, before a code is looked up."""

    def of_raw(raw: object) -> int | None:
        return code(raw.decode(errors="replace") if isinstance(raw, bytes) else raw)

    return lru_cache(most)(of_raw)


@final
class SQLiteSource(TableSource):
    """A table of an SQLite database.

    Parameters
    ----------
    address : str
        ``sqlite:///path``; an absolute path has a fourth slash.
    table_name : str, optional
        The table; needed only where there are several.

    Raises
    ------
    SourceError
        If there is no such file.
    """

    bounds_contributions = counts_slices = True

    def __init__(self, address: str, table_name: str | None = None) -> None:
        self._path = Path(address[len(_PREFIX) :])
        super().__init__(str(self._path), table_name)
        if not address.lower().startswith(_PREFIX) or not self._path.name:
            raise SourceError.at(("data",), shown(address), "sqlite:/// and the path of a file")
        if not self._path.is_file():
            raise SourceError(f"there is no file {self._where!r}", code="file-missing")

    def columns(self) -> dict[str, Kind]:
        """Return the names of the table's columns; as SQLite's types bind nobody, each may hold any text."""
        return dict.fromkeys(self.table().types, Kind.TEXT)

    def check_columns(self, request: Request) -> None:
        """Reject a table that lacks columns, or whose records have no order where that is asked for."""
        self._query(request)

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        query, table = self._query(request)
        hint = FAILED if table.computes(request.domain) else ""
        return count(request, partial(self._read, query, request), self._reading, hint)

    def _read(
        self, query: str, request: Request, connection: duckdb.DuckDBPyConnection
    ) -> duckdb.DuckDBPyRelation:
        placed = request.unit.id is not None
        codes = [_known(partial(encode_value, attribute), _KNOWN) for attribute in request.domain.readings]
        # Never forgotten: one person has one number.
        codes += [_known(person_numbers(), None)] if placed else []
        held = stream([arrow.int64()] * len(codes), [(0, self._columns(query, codes))], placed)
        return encode_codes(request, held, request.domain.readings.names, connection)

    def _columns(self, query: str, codes: list[Callable[[object], int | None]]) -> Iterator[list[Any]]:
        """Read the table, in one statement, which sees one state of it."""
        with self._connect() as connection, closing(connection.execute(query)) as cursor:
            while rows := cursor.fetchmany(_BATCH):
                found = zip(codes, zip(*rows, strict=True), strict=True)
                yield [arrow.array(map(code, raw), type=arrow.int64()) for code, raw in found]

    def _connect(self) -> closing[sqlite3.Connection]:
        def connect() -> sqlite3.Connection:
            address = f"{self._path.resolve().as_uri()}?mode=ro"
            # DuckDB reads in threads of its own, one at a time.
            connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
            # Texts that are no UTF-8 would raise an error.
            connection.text_factory = bytes
            return connection

        return closing(guarded(connect, f"open {self._where!r}"))

    def _query(self, request: Request) -> tuple[str, Table]:
        table = self.table()
        request.check_columns(table.types)
        wanted, order = [attribute.column for attribute in request.domain.readings], ""
        if request.unit.id is not None:
            table.check_id(request.unit.id)
            wanted.append(request.unit.id)
            order = f" ORDER BY {self._place(table)}"
        # Bytes are no text, and text is read as bytes: an infinity, which no attribute has, stands for them.
        values = [f"CASE typeof({c}) WHEN 'blob' THEN 9e999 ELSE {c} END" for c in map(identifier, wanted)]
        return f"SELECT {', '.join(values)} FROM {table.name}{order}", table  # noqa: S608

    def _place(self, table: Table) -> str:
        """Return the expression for the place of a record in the table, which is its own."""
        taken = {column.lower() for column in table.types}
        places = [place for place in _ROWIDS if place not in taken and not table.computed]
        with self._connect() as connection:
            for place in places:
                with suppress(sqlite3.OperationalError):
                    connection.execute(f"SELECT {place} FROM {table.name} LIMIT 0")  # noqa: S608
                    return place
        found = "a view, or a table without row ids"
        raise SourceError.at(("unit", "id"), found, UNORDERED, code="not-supported")

    def _find(self, connection: sqlite3.Connection) -> Table:
        tables = connection.execute(
            "SELECT name, coalesce(rootpage, 0) = 0 FROM main.sqlite_master "
            "WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
        )
        named = [("main", name.decode(errors="replace"), bool(computed)) for name, computed in tables]
        _, name, computed = self.choose(named, "main")
        query = "SELECT name, hidden FROM pragma_table_xinfo(?) WHERE hidden <> 1"
        columns = {column.decode(errors="replace"): h for column, h in connection.execute(query, [name])}
        generated = [column for column, hidden in columns.items() if hidden]
        return Table(f"main.{identifier(name)}", computed, dict.fromkeys(columns, ""), generated)
