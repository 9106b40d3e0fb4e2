"""Tables of PostgreSQL: the server encodes and counts, and only the groups of the marginals leave it."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any, final
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Domain
from matrixdp.domain.rules import (
    DAYS,
    MOMENT,
    NUMERAL,
    WHITESPACE,
    Categories,
    IntegerRange,
    Kind,
    Listed,
    Numbers,
    Rule,
    Timestamps,
)
from matrixdp.errors import SourceError
from matrixdp.forms import shown
from matrixdp.sources.base import (
    FAILED,
    OUT_OF_DOMAIN,
    Marginal,
    Request,
    Table,
    TableSource,
    attribute_codes,
    guarded,
    strides,
)
from matrixdp.sources.sql import (
    LONGEST_TEXT,
    Dialect,
    canonical_texts,
    days,
    double,
    identifier,
    literal,
    outside,
)

# Counting many marginals in one statement of a server: few blocks of attributes first, marginals from
# those.
#
# A server groups the records by each block at once, and the few groups of a block by the marginals in it.
# What leaves the server are the marginals' own groups, each with one number that says which marginal and
# cell.

_CELLS = 2**13
_AT_ONCE = 32
_MOST_SHORT = 2**31


@final
@dataclass(frozen=True)
class Block:
    """Some attributes, and the marginals that are counted from the marginal on all of them."""

    names: tuple[str, ...]
    subsets: tuple[tuple[str, ...], ...]


def blocks(domain: Domain, subsets: Sequence[tuple[str, ...]], cells: int = _CELLS) -> list[Block]:
    """Gather marginals into blocks of at most so many cells, unless one alone has more.

    Examples
    --------
    >>> for block in blocks(Domain({"a": 2, "b": 3, "c": 4}), [("a", "b"), ("c",), ("b", "a"), ()], 12):
    ...     print(block)
    Block(names=('a', 'b'), subsets=(('a', 'b'), ('b', 'a'), ()))
    Block(names=('c',), subsets=(('c',),))
    """
    gathered: list[tuple[tuple[str, ...], list[tuple[str, ...]]]] = []
    for subset in sorted(dict.fromkeys(subsets), key=lambda subset: -domain.cells(subset)):
        joined = [domain.sort({*names, *subset}) for names, _ in gathered]
        growth = [
            domain.cells(join) // domain.cells(names)
            for join, (names, _) in zip(joined, gathered, strict=True)
        ]
        fits = [i for i, join in enumerate(joined) if growth[i] == 1 or domain.cells(join) <= cells]
        if fits:
            best = min(fits, key=lambda i: growth[i])
            gathered[best] = joined[best], [*gathered[best][1], subset]
        else:
            gathered.append((domain.sort(subset), [subset]))
    return [Block(names, tuple(members)) for names, members in gathered]


@final
@dataclass(frozen=True)
class Counting:
    """Some blocks that are counted by one statement.

    Examples
    --------
    >>> from matrixdp.domain import OutOfDomain
    >>> request = Request(Domain({"a": 2, "b": 3}), (("b",), ("a", "b")), OutOfDomain())
    >>> (counting,) = Counting.of(request)
    >>> counting.parts
    (Block(names=('a', 'b'), subsets=(('a', 'b'), ('b',))),)
    >>> keys, counts = np.array([2, 5, 8]), np.array([1, 4, 5])
    >>> for subset, marginal in counting.marginals(keys, counts):
    ...     print(subset, marginal.tolist())
    ('a', 'b') [[0, 0, 1], [0, 0, 4]]
    ('b',) [0, 0, 5]
    """

    request: Request
    parts: tuple[Block, ...]

    @classmethod
    def of(cls, request: Request) -> list[Counting]:
        """Return the blocks of a request, as many at once as a statement may have."""
        found = blocks(request.domain, request.subsets)
        return [cls(request, tuple(found[i : i + _AT_ONCE])) for i in range(0, len(found), _AT_ONCE)]

    def statement(self, codes: str) -> str:
        """Return the statement that counts, of a subquery with a column ``c0``, ``c1``, ... an attribute.

        Its rows are a number that says which marginal and cell, and the number of records there.
        """
        ends = self._ends([block.names for block in self.parts])
        keys = []
        for i, (block, first) in enumerate(zip(self.parts, ends, strict=False)):
            held = [f"c{self.request.domain.index(name)}" for name in block.names]
            keys.append(f"{self._packed(block.names, held, first)} AS b{i}")
        sets = [f"b{i}" for i in range(len(keys))]
        counted = (
            f"SELECT coalesce({', '.join(sets)}) AS block, count(*) AS records "  # noqa: S608
            f"FROM (SELECT {', '.join(keys)} FROM ({codes}) AS codes OFFSET 0) AS keys "
            f"GROUP BY GROUPING SETS (({'), ('.join(sets)}))"
        )
        starts = iter(self._ends(self._subsets()))
        marginals = [
            self._of_block(block.names, subset, first, end, next(starts))
            for block, first, end in zip(self.parts, ends, ends[1:], strict=False)
            for subset in block.subsets
        ]
        return f"WITH blocks AS MATERIALIZED ({counted}) " + " UNION ALL ".join(marginals)

    def marginals(self, keys: NDArray[np.int64], counts: NDArray[np.int64]) -> Iterator[Marginal]:
        """Yield the marginals of the statement's rows."""
        order = np.argsort(keys, kind="stable")
        keys, counts = keys[order], counts[order]
        subsets = self._subsets()
        starts = self._ends(subsets)
        places = np.searchsorted(keys, np.array(starts, dtype=np.int64))
        for subset, start, first, end in zip(subsets, starts, places, places[1:], strict=False):
            yield subset, self.request.array(subset, keys[first:end] - start, counts[first:end])

    def _subsets(self) -> list[tuple[str, ...]]:
        return [subset for block in self.parts for subset in block.subsets]

    def _ends(self, subsets: Sequence[tuple[str, ...]]) -> list[int]:
        return list(accumulate(map(self.request.domain.cells, subsets), initial=0))

    def _packed(self, names: Sequence[str], codes: Sequence[str], start: int) -> str:
        # Short integers are packed and grouped sooner.
        most = max(self._ends([block.names for block in self.parts])[-1], self._ends(self._subsets())[-1])
        kind = "integer" if most < _MOST_SHORT else "bigint"
        steps = strides(self.request.shape(names))
        terms = [f"CAST({code} AS {kind}) * {step}" for code, step in zip(codes, steps, strict=True)]
        return " + ".join([f"CAST({start} AS {kind})", *(term.removesuffix(" * 1") for term in terms)])

    def _of_block(
        self, names: tuple[str, ...], subset: tuple[str, ...], first: int, end: int, start: int
    ) -> str:
        """Return the query from the groups of a block, whose keys start at `first`, to a marginal."""
        shape = self.request.shape(names)
        code = {
            name: f"(block - {first}) / {step} % {size}"
            for name, step, size in zip(names, strides(shape), shape, strict=True)
        }
        key = self._packed(subset, [code[name] for name in subset], start)
        inside = f"FROM blocks WHERE block >= {first} AND block < {end}"
        if len(subset) == len(names):
            return f"SELECT {key} AS cell, records {inside}"
        return f"SELECT {key} AS cell, CAST(sum(records) AS bigint) AS records {inside} GROUP BY 1"


# The rules of `matrixdp.domain.rules` in PostgreSQL's SQL.
#
# No expression can raise an error, whatever the value: what is cast has been matched against the grammar of
# numerals, or compared with the bounds of its type, by an earlier branch of the same CASE.

_ENUM = "enum"
_KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INTEGER),
    **dict.fromkeys(("float4", "float8", "numeric"), Kind.FLOAT),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", _ENUM), Kind.TEXT),
    "bool": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.INSTANT,
}
_SPACE = "E'" + "".join(f"\\x{ord(character):02x}" for character in WHITESPACE) + "'"
#: No numeral has more bytes.
_LONGEST_NUMERAL = 100
#: Above half of the least double: numbers of smaller size are nearest to 0, and casting them is an error.
_LEAST = "2.48e-324"


@final
class _PostgreSQL(Dialect):
    cast = "CAST"
    divide = "/"

    def kind(self, stored: str) -> Kind:
        return _KINDS.get(stored, Kind.OTHER)

    def text(self, rule: Rule, column: str) -> str:
        text = f'(CAST({column} AS text) COLLATE "C")'
        cleaned = self.trimmed(text) if rule.trim else text
        if rule.folded[0]:
            cleaned = f"translate({cleaned}, {literal(rule.folded[0])}, {literal(rule.folded[1])})"
        return text if cleaned == text else self.within(LONGEST_TEXT, text, cleaned)

    def trimmed(self, text: str) -> str:
        return f"btrim({text}, {_SPACE})"

    def within(self, longest: int, text: str, value: str) -> str:
        return f"CASE WHEN octet_length({text}) <= {longest} THEN {value} END"

    def numeral(self, text: str, otherwise: str = "NULL") -> str:
        numeral = self.trimmed(text)
        number = f"WHEN {numeral} ~ {literal(NUMERAL)} THEN CAST({numeral} AS double precision)"
        number = self.within(_LONGEST_NUMERAL, numeral, f"CASE {number} ELSE {otherwise} END")
        return self.within(LONGEST_TEXT, text, number)

    def finite(self, column: str, stored: str) -> str:
        value = f"CAST({column} AS double precision)"
        if stored != "numeric":
            inside = f"{value} > {double(-math.inf)} AND {value} < {double(math.inf)}"
            return f"CASE WHEN {inside} THEN {value} END"
        largest = f"CAST('{int(sys.float_info.max)}' AS numeric)"
        small = f"abs({column}) < CAST('{_LEAST}' AS numeric)"
        return f"CASE WHEN {small} THEN 0 WHEN {column} BETWEEN -{largest} AND {largest} THEN {value} END"

    def integer(self, rule: Rule, column: str) -> str:
        return f"CAST({column} AS {'bigint' if isinstance(rule, IntegerRange) else 'double precision'})"

    def day(self, column: str) -> str:
        return f"to_char(CAST({column} AS timestamp), 'YYYY-MM-DD')"

    def hours(self, rule: Timestamps, column: str, kind: Kind) -> str:
        if kind is Kind.TEXT:
            text = self.text(rule, column)
            return self.within(LONGEST_TEXT, text, _hours_of_text(rule, self.trimmed(text)))
        first, last = (day.isoformat() for day in DAYS)
        zone, offset = ("timestamptz", "+00") if kind is Kind.INSTANT else ("timestamp", "")
        moment = f"({column} AT TIME ZONE 'UTC')" if kind is Kind.INSTANT else column
        ends = f"{zone} '{first} 00:00:00{offset}' AND {zone} '{last} 23:59:59.999999{offset}'"
        hour = f"CAST(extract(hour FROM {moment}) AS integer)"
        return f"CASE WHEN {column} BETWEEN {ends} THEN {days(f'CAST({moment} AS date)')} * 24 + {hour} END"

    def missing(self, rule: Rule, column: str, kind: Kind) -> str:
        if kind is Kind.TEXT:
            return f"{column} IS NULL OR coalesce({self.text(rule, column)} = '', false)"
        return f"{column} IS NULL" + (f" OR {column} = 'NaN'" if kind is Kind.FLOAT else "")

    def code_of_text(self, rule: Categories, text: str) -> str:
        # No text of PostgreSQL's holds the character 0.
        texts = {held: code for held, code in canonical_texts(rule).items() if "\0" not in held}
        return _position(text, texts, literal)

    def code_of_number(self, rule: Listed | Numbers, number: str) -> str:
        numbers = {listed: code for listed, code in rule.codes.items() if isinstance(listed, float)}
        return _position(number, numbers, double)


def _hours_of_text(rule: Timestamps, text: str) -> str:
    year, month, day, hour, minute = (
        f"CAST(substr({text}, {place}, {length}) AS integer)"
        for place, length in ((1, 4), (6, 2), (9, 2), (12, 2), (15, 2))
    )
    leap = f"CASE WHEN {year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0) THEN 29 ELSE 28 END"
    last = f"CASE {month} WHEN 2 THEN {leap} WHEN 4 THEN 30 WHEN 6 THEN 30 WHEN 9 THEN 30 WHEN 11 THEN 30"
    dated = f"{month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {last} ELSE 31 END"
    since = days(f"make_date({year}, {month}, {day})")
    zone = f"substring(substr({text}, 17) FROM '[+-].*')"
    apart = f"CAST(substr({zone}, 2, 2) AS integer) * 60 + "
    apart += f"CAST('0' || replace(substr({zone}, 4), ':', '') AS integer)"
    ahead = f"coalesce(CASE substr({zone}, 1, 1) WHEN '+' THEN {apart} WHEN '-' THEN -({apart}) END, 0)"
    timed = f"({since} * 1440 + {hour} * 60 + {minute} - {ahead}) / 60"
    alone = "NULL" if rule.timed else f"{since} * 24"
    found = f"CASE WHEN {dated} THEN CASE WHEN length({text}) = 10 THEN {alone} ELSE {timed} END END"
    return f"CASE WHEN {text} ~ {literal(MOMENT)} THEN {found} END"


def _position(value: str, codes: Mapping[Any, int], write: Callable[[Any], str]) -> str:
    """Return the binary search for one of some values, as nested cases; NULL where it is none of them."""
    listed = sorted(codes.items())

    def search(first: int, end: int) -> str:
        if end - first == 1:
            found, code = listed[first]
            return f"CASE WHEN {value} = {write(found)} THEN {code} END"
        middle = (first + end) // 2
        lower = f"{value} < {write(listed[middle][0])}"
        return f"CASE WHEN {lower} THEN {search(first, middle)} ELSE {search(middle, end)} END"

    return search(0, len(listed)) if listed else "CAST(NULL AS integer)"


POSTGRESQL = _PostgreSQL()
_COUNTING = "count the table"
_CONNECTED = (
    "the address, PGPASSWORD or ~/.pgpass, and libpq's other settings say where and as whom; "
    "a pooler must let `options` through"
)
_ENCODINGS = ("UTF8", "SQL_ASCII")
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
  CASE WHEN t.typtype = 'e' THEN 'enum'
    WHEN s.nspname = 'pg_catalog' THEN CAST(t.typname AS text) ELSE '' END,
  a.attgenerated <> '' OR EXISTS (
    WITH RECURSIVE children AS ({children})
    SELECT 1 FROM children JOIN pg_attribute AS k ON k.attrelid = child
    WHERE k.attname = a.attname AND k.attgenerated <> ''
  )
FROM pg_attribute AS a JOIN pg_type AS d ON d.oid = a.atttypid
JOIN pg_type AS t ON t.oid = CASE WHEN d.typtype = 'd' THEN d.typbasetype ELSE d.oid END
JOIN pg_namespace AS s ON s.oid = t.typnamespace
WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = """.format(children=_CHILDREN.format("a.attrelid"))  # noqa: S608


@final
class PostgreSQLSource(TableSource[Any]):
    """A table of a PostgreSQL database.

    The server reads the table in one transaction that can write nothing, and sees one state of it.

    Parameters
    ----------
    address : str
        ``postgresql://host/database``, as libpq takes it.
    table_name : str, optional
        The table, with its schema or without; needed only where there are several.
    """

    def __init__(self, address: str, table_name: str | None = None) -> None:
        super().__init__(shown(address), table_name)
        self._address = address

    def columns(self) -> dict[str, Kind]:
        """Return the names of the table's columns and what they hold."""
        return {name: POSTGRESQL.kind(type_name) for name, type_name in self.table().types.items()}

    def check_columns(self, request: Request) -> None:
        """Reject a table that lacks columns, or has some that cannot be read."""
        _codes(request, self.table())

    def count(self, request: Request) -> Iterator[Marginal]:
        """Return every marginal of a request, with its counts."""
        with ExitStack() as stack:
            cursor = stack.enter_context(self._connect())
            codes = _codes(request, guarded(partial(self._find, cursor), self._reading))
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

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        """Yield a cursor within one transaction that reads one state of the database."""
        try:
            from adbc_driver_postgresql import dbapi
        except ImportError:
            needed = "reading postgresql:// needs a driver: pip install 'matrixdp[postgresql]'"
            raise SourceError(needed, code="missing-library") from None
        doing = f"connect to {self._where}"
        with ExitStack() as stack:
            connection = guarded(
                lambda: dbapi.connect(_fixed(self._address), autocommit=True), doing, _CONNECTED
            )
            stack.callback(_close, connection)
            cursor = guarded(connection.cursor, doing)
            stack.callback(_close, cursor)
            path = guarded(partial(_begin, cursor), doing)
            if path.replace(" ", "") != _PATH.replace(" ", ""):
                expected = (
                    f"{_PATH}: let the pooler pass `options` on, or ALTER ROLE .. SET search_path = {_PATH}"
                )
                raise SourceError.at(("data",), "a connection with another search_path", expected)
            yield cursor

    def _find(self, cursor: Any) -> Table:
        ((encoding,),) = _rows(cursor, "SELECT current_setting('server_encoding')")
        if encoding not in _ENCODINGS:
            message = f"the database holds texts as {encoding}; one of UTF8 is needed"
            raise SourceError(message, code="not-supported")
        schema, name, oid, computed = self.choose(_rows(cursor, _TABLES), "public")
        columns = _rows(cursor, f"{_COLUMNS} {int(oid)} ORDER BY a.attnum")
        types = {column: type_name for column, type_name, _ in columns}
        generated = [column for column, _, is_generated in columns if is_generated]
        return Table(f"{identifier(schema)}.{identifier(name)}", computed, types, generated)


def _begin(cursor: Any) -> str:
    """Begin the transaction, and return the search path that the connection had."""
    cursor.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    # Utility commands and qualified names mean the same under every search path.
    ((path,),) = _rows(cursor, "SELECT pg_catalog.current_setting('search_path')")
    for name, value in _SETTINGS.items():
        cursor.execute(f"SET LOCAL {name} = {value}")
    _rows(cursor, _ENOUGH)
    return str(path)


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


def _codes(request: Request, table: Table) -> str:
    """Return the query for the codes of the records, a column an attribute, NULL where out of domain."""
    request.check_columns(table.types)
    # A cast of an enumeration would run what the owner of the type may have put in its place.
    own = {
        name: f"(CASE WHEN {identifier(name)} IS NOT NULL THEN format('%s', {identifier(name)}) END)"
        if type_name == _ENUM
        else identifier(name)
        for name, type_name in table.types.items()
    }
    values, codes, read = POSTGRESQL.encoded(request, request.domain.readings, table.types, own)
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
    names = {name: f"c{i}" for i, name in enumerate(request.domain.names)}
    columns = ", ".join(f"count(*) FILTER (WHERE {missing})" for missing in outside(request, names, inside))
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
