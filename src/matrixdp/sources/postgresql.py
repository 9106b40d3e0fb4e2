"""Tables of PostgreSQL: the server encodes and counts, and only the groups of the marginals leave it."""

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, final
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.forms import shown
from matrixdp.sources.blocks import Counting
from matrixdp.sources.guard import guarded
from matrixdp.sources.lookups import attribute_codes
from matrixdp.sources.postgresql_sql import (
    code_expression,
    column_kind,
    identifier,
    missing_expression,
    value_expressions,
)
from matrixdp.sources.requests import OUT_OF_DOMAIN, Request
from matrixdp.sources.source import COMPUTED, FAILED, INFERRED, Marginal, Source

__all__ = ["PostgreSQLSource"]

_COUNTING = "count the table"
_CONNECTED = (
    "the address, PGPASSWORD or ~/.pgpass, and libpq's other settings say where and as whom; "
    "a pooler must let `options` through"
)
_ENCODINGS = ("UTF8", "SQL_ASCII")
_MOST_LISTED = 20
#: A password may hold a question mark.
_QUERY = re.compile(r"[^:]*://(?:[^@/]*@)?[^?]*(.*)", re.DOTALL)
#: Temporary tables come last: without their name here they come first.
_PATH = "pg_catalog, pg_temp"
#: What the statements mean must not depend on how the server, the database or the user is set up.
_SETTINGS = {
    "search_path": _PATH,
    "client_encoding": "'UTF8'",
    "standard_conforming_strings": "on",
    "jit": "off",
}
#: The groups of one statement fit into so many kilobytes; with fewer the server writes them to disk.
_ENOUGH = """
SELECT pg_catalog.set_config('work_mem', '65536', true)
WHERE pg_catalog.pg_size_bytes(pg_catalog.current_setting('work_mem')) < 65536 * 1024
"""
#: Partitions, and other tables whose records a table shows.
_CHILDREN = (
    "SELECT inhrelid AS child FROM pg_inherits WHERE inhparent = {} "
    "UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN children ON i.inhparent = child"
)
_TABLES = """
SELECT CAST(n.nspname AS text), CAST(c.relname AS text), c.oid,
  c.relkind IN ('v', 'm', 'f') OR c.relrowsecurity OR EXISTS (
    WITH RECURSIVE children AS ({children})
    SELECT 1 FROM children JOIN pg_class AS k ON k.oid = child WHERE k.relkind = 'f'
  )
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname <> 'information_schema'
  AND left(CAST(n.nspname AS text), 3) <> 'pg_' AND has_any_column_privilege(c.oid, 'SELECT')
ORDER BY 1, 2
""".format(children=_CHILDREN.format("c.oid"))  # noqa: S608
_COLUMNS = """
SELECT CAST(a.attname AS text),
  CASE WHEN s.nspname = 'pg_catalog' THEN CAST(t.typname AS text) ELSE '' END,
  t.typtype = 'e', a.attgenerated <> '' OR EXISTS (
    WITH RECURSIVE children AS ({children})
    SELECT 1 FROM children JOIN pg_attribute AS k ON k.attrelid = child
    WHERE k.attname = a.attname AND k.attgenerated <> ''
  )
FROM pg_attribute AS a JOIN pg_type AS d ON d.oid = a.atttypid
JOIN pg_type AS t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
JOIN pg_namespace AS s ON s.oid = t.typnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = """.format(children=_CHILDREN.format("a.attrelid"))  # noqa: S608


@final
@dataclass(frozen=True)
class _Table:
    """A table: how a statement names it, whether the server computes it, and its columns."""

    name: str
    computed: bool
    types: dict[str, str]
    listed: frozenset[str]
    generated: frozenset[str]

    @property
    def kinds(self) -> dict[str, Kind]:
        """What the columns hold."""
        return {column: column_kind(name, column in self.listed) for column, name in self.types.items()}


@final
class PostgreSQLSource(Source):
    """A table of a PostgreSQL database.

    The server reads the table in one transaction that can write nothing, and sees one state of it.

    Parameters
    ----------
    address : str
        ``postgresql://host/database``, as libpq takes it.
    table_name : str, optional
        The table, with its schema or without; needed only where there are several.
    """

    counts_out_of_domain = True
    derives_attributes = True

    def __init__(self, address: str, table_name: str | None = None) -> None:
        self._address = address
        self.table_name = table_name

    def __repr__(self) -> str:
        return f"PostgreSQLSource({shown(self._address)!r})"

    def assumptions(self, domain: Domain) -> tuple[str, ...]:
        """Return what the promise assumes of the table."""
        with ExitStack() as stack:
            table = self._table(self._cursor(stack))
        computed = table.computed or not table.generated.isdisjoint(domain.columns)
        return (COMPUTED, INFERRED) if computed else (INFERRED,)

    def columns(self) -> dict[str, Kind]:
        """Return the names of the table's columns and what they hold."""
        with ExitStack() as stack:
            return self._table(self._cursor(stack)).kinds

    def check_columns(self, request: Request) -> None:
        """Refuse a table that lacks columns, or has such as cannot be read."""
        with ExitStack() as stack:
            _codes(request, self._table(self._cursor(stack)))

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        with ExitStack() as stack:
            cursor = self._cursor(stack)
            table = self._table(cursor)
            codes = _codes(request, table)
            return self._marginals(stack.pop_all(), cursor, codes, request)

    def _marginals(self, stack: ExitStack, cursor: Any, codes: str, request: Request) -> Iterator[Marginal]:
        with stack:
            inside = " AND ".join(f"c{i} IS NOT NULL" for i in range(len(request.domain)))
            if request.out_of_domain.counts:
                asked = partial(_rows, cursor, _outside(request, codes, inside))
                ((*counts,),) = guarded(asked, _COUNTING, FAILED)
                places = np.arange(len(counts))
                yield OUT_OF_DOMAIN, request.array(OUT_OF_DOMAIN, places, np.array(counts, dtype=np.int64))
            kept = f"SELECT * FROM ({codes}) AS encoded WHERE {inside}"  # noqa: S608
            for counting in Counting.of(request):
                found = guarded(partial(_groups, cursor, counting.statement(kept)), _COUNTING, FAILED)
                yield from counting.marginals(*found)

    def _cursor(self, stack: ExitStack) -> Any:
        """Return a cursor within one transaction that reads one state of the database."""
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            needed = "reading postgresql:// needs a driver: pip install 'matrixdp[postgresql]'"
            raise SourceError(needed) from None
        doing = f"connect to {shown(self._address)}"
        connection = guarded(lambda: dbapi.connect(_fixed(self._address), autocommit=True), doing, _CONNECTED)
        stack.callback(_close, connection)
        cursor = guarded(connection.cursor, doing)
        stack.callback(_close, cursor)

        def begin() -> Any:
            cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            # Utility commands and qualified names mean the same under every search path.
            ((path,),) = _rows(cursor, "SELECT pg_catalog.current_setting('search_path')")
            for name, value in _SETTINGS.items():
                cursor.execute(f"SET LOCAL {name} = {value}")
            _rows(cursor, _ENOUGH)
            return path

        path = guarded(begin, doing)
        if path.replace(" ", "") != _PATH.replace(" ", ""):
            expected = (
                f"{_PATH}: let the pooler pass `options` on, or ALTER ROLE .. SET search_path = {_PATH}"
            )
            raise SourceError.at(("data",), "a connection with another search_path", expected)
        return cursor

    def _table(self, cursor: Any) -> _Table:
        reading = f"read {shown(self._address)}"
        ((encoding,),) = guarded(lambda: _rows(cursor, "SELECT current_setting('server_encoding')"), reading)
        if encoding not in _ENCODINGS:
            raise SourceError(f"the database holds texts as {encoding}; one of UTF8 is needed")
        schema, table, oid, computed = self._choose(guarded(lambda: _rows(cursor, _TABLES), reading))
        columns = guarded(lambda: _rows(cursor, f"{_COLUMNS} {int(oid)} ORDER BY a.attnum"), reading)
        return _Table(
            f"{identifier(schema)}.{identifier(table)}",
            computed,
            {name: type_name for name, type_name, _, _ in columns},
            frozenset(name for name, _, listed, _ in columns if listed),
            frozenset(name for name, _, _, generated in columns if generated),
        )

    def _choose(self, tables: list[tuple[Any, ...]]) -> tuple[Any, ...]:
        wanted = self.table_name
        matches = [found for found in tables if wanted in (None, found[1], f"{found[0]}.{found[1]}")]
        if len(matches) == 1:
            return matches[0]
        names = [table if schema == "public" else f"{schema}.{table}" for schema, table, *_ in tables]
        more = ", ..." if len(names) > _MOST_LISTED else ""
        listed = ", ".join(map(repr, names[:_MOST_LISTED])) or "none"
        asked = "no single table" if wanted is None else f"no table {wanted!r}"
        asked = asked if wanted is None or not matches else f"several tables {wanted!r}"
        raise SourceError(f"{shown(self._address)} has {asked}; name one of its tables: {listed}{more}")


def _fixed(address: str) -> str:
    """Return an address that fixes the search path before the driver asks the server anything."""
    found = _QUERY.fullmatch(address)
    query = (found and found[1]) or ""
    pairs = (pair.partition("=") for pair in query[1:].split("&"))
    given = [unquote(value) for name, _, value in pairs if unquote(name) == "options"]
    # libpq takes the last `options` alone, and the server the last value of a setting.
    options = f"{(given or [os.environ.get('PGOPTIONS', '')])[-1]} -csearch_path={_PATH.replace(' ', '')}"
    between = "" if query.endswith(("?", "&")) else "&" if query else "?"
    return f"{address}{between}options={quote(options)}"


def _codes(request: Request, table: _Table) -> str:
    """Return the query for the codes of the records, a column an attribute, NULL where out of domain."""
    request.check_columns(table.types)
    kinds, values, codes, read = table.kinds, [], [], {}
    for i, (name, rule) in enumerate(request.rules(kinds).items()):
        column = request.domain.readings[name].column
        quoted, kind = identifier(column), kinds[column]
        if column in table.listed:
            # A cast would run what the owner of the type may have put in its place.
            quoted = f"(CASE WHEN {quoted} IS NOT NULL THEN format('%s', {quoted}) END)"
        found = value_expressions(rule, quoted, table.types[column], kind)
        values += [f"{value} AS {part}{i}" for part, value in found.items()]
        code = code_expression(rule, {part: f"{part}{i}" for part in found}, kind)
        if rule.null is not None:
            values.append(f"{missing_expression(rule, quoted, kind)} AS m{i}")
            code = f"CASE WHEN m{i} THEN {rule.null} ELSE {code} END"
        other = request.out_of_domain.code(name)
        codes.append(f"{code if other is None else f'coalesce({code}, {other})'} AS c{i}")
        read[name] = f"c{i}"
    own_codes = attribute_codes(request.domain, request.out_of_domain, read).values()
    listed = ", ".join(f"{code} AS c{i}" for i, code in enumerate(own_codes))
    # Without OFFSET the server puts every value into each place of its code, and computes it that often.
    raw = f"SELECT {', '.join(values)} FROM {table.name} OFFSET 0"  # noqa: S608
    encoded = f"SELECT {', '.join(codes)} FROM ({raw}) AS source OFFSET 0"  # noqa: S608
    if not request.domain.parents:
        return encoded
    return f"SELECT {listed} FROM ({encoded}) AS read OFFSET 0"  # noqa: S608


def _outside(request: Request, codes: str, inside: str) -> str:
    """Return the query for the counts of records out of domain."""
    missing = [
        f"NOT ({inside})" if name is None else f"c{request.domain.index(name)} IS NULL"
        for name in request.out_of_domain.counts
    ]
    columns = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in missing)
    return f"SELECT {columns} FROM ({codes}) AS encoded"  # noqa: S608


def _groups(cursor: Any, statement: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    cursor.execute(statement)
    found = cursor.fetch_arrow_table()
    return found["cell"].to_numpy(), found["records"].to_numpy()


def _rows(cursor: Any, query: str) -> list[tuple[Any, ...]]:
    cursor.execute(query)
    return [tuple(row) for row in cursor.fetchall()]


def _close(held: Any) -> None:
    with suppress(Exception):
        held.close()
