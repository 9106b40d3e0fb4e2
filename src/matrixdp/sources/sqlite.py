"""Tables of SQLite, by Python's own library: it runs in this process, and DuckDB counts what it reads.

A column of SQLite holds values of any type, each record its own. So values are encoded one by one in Python,
as objects are, and each that was met before is looked up.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from itertools import count as numbers
from pathlib import Path
from typing import Any, final

import duckdb

from matrixdp.domain import Coded, Domain, encode_value, person_id
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.forms import shown
from matrixdp.sources.base import (
    COMPUTED,
    FAILED,
    INFERRED,
    UNORDERED,
    Marginal,
    Request,
    Source,
    choose_table,
    guarded,
)
from matrixdp.sources.columns import PLACE, arrow
from matrixdp.sources.counting import count, encode
from matrixdp.sources.sql import identifier

_PREFIX = "sqlite:///"
_BATCH = 2**14
_KNOWN = 2**16
_ROWIDS = ("rowid", "_rowid_", "oid")


class _Codes(dict[Any, int | None]):
    """The codes of raw values of SQLite, found when they are first met; texts are bytes."""

    def __init__(self, code: Callable[[object], int | None], most: int | None) -> None:
        super().__init__()
        self._code = code
        self._most = most

    def __missing__(self, raw: object) -> int | None:
        if len(self) == self._most:
            self.clear()
        value = raw.decode(errors="replace") if isinstance(raw, bytes) else raw
        code = self[raw] = self._code(value)
        return code


@final
class SQLiteSource(Source):
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

    bounds_contributions = True
    counts_out_of_domain = True
    derives_attributes = True

    def __init__(self, address: str, table_name: str | None = None) -> None:
        self._path = Path(address[len(_PREFIX) :])
        self._reading = f"read {str(self._path)!r}"
        if not address.lower().startswith(_PREFIX) or not self._path.name:
            raise SourceError.at(("data",), shown(address), "sqlite:/// and the path of a file")
        if not self._path.is_file():
            raise SourceError(f"there is no file {str(self._path)!r}", code="file-missing")
        self.table_name = table_name

    def __repr__(self) -> str:
        return f"SQLiteSource({str(self._path)!r})"

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return what the guarantee assumes of the table."""
        return (COMPUTED, INFERRED) if self._computed(domain) else (INFERRED,)

    def _computed(self, domain: Domain) -> bool:
        with closing(self._connect()) as connection:
            name, stored = self._choose(connection)
            columns = self._columns(connection, name)
        return not stored or any(columns.get(column, False) for column in domain.columns)

    def columns(self) -> dict[str, Kind]:
        """Return the names of the table's columns; as SQLite's types bind nobody, each may hold any text."""
        with closing(self._connect()) as connection:
            name, _ = self._choose(connection)
            return dict.fromkeys(self._columns(connection, name), Kind.TEXT)

    def check_columns(self, request: Request) -> None:
        """Reject a table that lacks columns, or whose records have no order where that is asked for."""
        with closing(self._connect()) as connection:
            self._query(connection, request)

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        with closing(self._connect()) as connection:
            query = self._query(connection, request)
        hint = FAILED if self._computed(request.domain) else ""
        return count(request, partial(self._read, query, request), self._reading, hint)

    def _read(
        self, query: str, request: Request, connection: duckdb.DuckDBPyConnection
    ) -> duckdb.DuckDBPyRelation:
        encoders = Domain([Coded(attribute.name, attribute.size) for attribute in request.domain.readings])
        names = list(request.domain.readings.names)
        fields = [(f"a{i}", arrow.int64()) for i in range(len(names))]
        if request.unit.id is not None:
            names.append(request.unit.id)
            fields += [("id", arrow.int64()), (PLACE.name, PLACE.type)]
        schema = arrow.schema(fields)
        batches = self._batches(query, request, schema)
        records = connection.from_arrow(arrow.RecordBatchReader.from_batches(schema, batches))
        return encode(records, request, encoders, names)

    def _batches(self, query: str, request: Request, schema: Any) -> Iterator[Any]:
        """Read the table, in one statement, which sees one state of it."""
        readings = request.domain.readings
        codes = [_Codes(partial(encode_value, attribute), _KNOWN) for attribute in readings]
        if request.unit.id is not None:
            # Never forgotten: one person has one number.
            codes.append(_Codes(_numbered(), None))
        first = 0
        with closing(self._connect()) as connection, closing(connection.execute(query)) as cursor:
            while rows := cursor.fetchmany(_BATCH):
                found = zip(codes, zip(*rows, strict=True), strict=True)
                columns = [
                    arrow.array(map(known.__getitem__, raw), type=arrow.int64()) for known, raw in found
                ]
                if request.unit.id is not None:
                    columns.append(arrow.array(range(first, first + len(rows)), type=PLACE.type))
                    first += len(rows)
                yield arrow.record_batch(columns, schema=schema)

    def _connect(self) -> sqlite3.Connection:
        def connect() -> sqlite3.Connection:
            address = f"{self._path.resolve().as_uri()}?mode=ro"
            # DuckDB reads in threads of its own, one at a time.
            connection = sqlite3.connect(address, uri=True, check_same_thread=False, isolation_level=None)
            # Texts that are no UTF-8 would raise an error.
            connection.text_factory = bytes
            return connection

        return guarded(connect, f"open {str(self._path)!r}")

    def _query(self, connection: sqlite3.Connection, request: Request) -> str:
        name, stored = self._choose(connection)
        columns = self._columns(connection, name)
        request.check_columns(columns)
        wanted = [attribute.column for attribute in request.domain.readings]
        order = ""
        if request.unit.id is not None:
            if columns[request.unit.id]:
                found = f"{request.unit.id!r}, a column that the database computes"
                raise SourceError.at(("unit", "id"), found, "a column that is stored", code="not-supported")
            wanted.append(request.unit.id)
            order = f" ORDER BY {self._place(connection, name, stored, columns)}"
        # Bytes are no text, and text is read as bytes: an infinity, which no attribute has, stands for them.
        values = [f"CASE typeof({c}) WHEN 'blob' THEN 9e999 ELSE {c} END" for c in map(identifier, wanted)]
        return f"SELECT {', '.join(values)} FROM main.{identifier(name)}{order}"  # noqa: S608

    def _place(self, connection: sqlite3.Connection, name: str, stored: bool, columns: Iterable[str]) -> str:
        """Return the expression for the place of a record in the table, which is its own."""
        taken = {column.lower() for column in columns}
        for place in _ROWIDS if stored else ():
            if place in taken:
                continue
            try:
                connection.execute(f"SELECT {place} FROM main.{identifier(name)} LIMIT 0")  # noqa: S608
            except sqlite3.OperationalError:
                continue
            return place
        raise SourceError.at(
            ("unit", "id"), "a view, or a table without row ids", UNORDERED, code="not-supported"
        )

    def _columns(self, connection: sqlite3.Connection, table: str) -> dict[str, bool]:
        """Return the columns of a table, and whether the database computes them."""
        query = "SELECT name, hidden FROM pragma_table_xinfo(?)"
        rows = guarded(lambda: connection.execute(query, [table]).fetchall(), self._reading)
        return {name.decode(errors="replace"): hidden in (2, 3) for name, hidden in rows if hidden != 1}

    def _choose(self, connection: sqlite3.Connection) -> tuple[str, bool]:
        """Return the name of the table, and whether its records are stored as they are."""
        query = (
            "SELECT name, coalesce(rootpage, 0) <> 0 FROM main.sqlite_master "
            "WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY name"
        )
        rows = guarded(lambda: connection.execute(query).fetchall(), self._reading)
        tables = [("main", name.decode(errors="replace"), bool(stored)) for name, stored in rows]
        _, name, stored = choose_table(f"the database {str(self._path)!r}", tables, self.table_name, "main")
        return name, stored


def _numbered() -> Callable[[object], int | None]:
    """Return what numbers persons in the order in which they are met."""
    known: dict[str | float, int] = {}
    places = numbers()

    def number(value: object) -> int | None:
        person = person_id(value)
        return None if person is None else known.setdefault(person, next(places))

    return number
