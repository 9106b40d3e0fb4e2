"""Tables of PostgreSQL: the server encodes and counts, and only the groups of the marginals leave it."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import accumulate
from typing import Any, final
from urllib.parse import quote, unquote

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Amount, Domain
from matrixdp.domain.rules import NUMERAL, Categories, IntegerRange, Kind, Listed, Numbers, Rule
from matrixdp.errors import SourceError, needing
from matrixdp.forms import shown
from matrixdp.sources import base, sql
from matrixdp.sources.sql import double, identifier, literal

# Counting many marginals in one statement of a server: few blocks of attributes first, marginals from
# those.
#
# A server groups the records by each block at once, and the few groups of a block by the marginals in it.
# What leaves the server are the marginals' own groups, each with one number that says which marginal and
# cell.

_CELLS = 2**13
_AT_ONCE = 32
_MOST_SHORT = 2**31


Block = tuple[tuple[str, ...], list[tuple[str, ...]]]
"""Some attributes, and the marginals that are counted from the marginal on all of them."""


def blocks(domain: Domain, subsets: Sequence[tuple[str, ...]], cells: int = _CELLS) -> list[Block]:
    """Gather marginals into blocks of at most `cells` cells, unless one alone has more.

    Examples
    --------
    >>> for block in blocks(Domain({"a": 2, "b": 3, "c": 4}), [("a", "b"), ("c",), ("b", "a"), ()], 12):
    ...     print(block)
    (('a', 'b'), [('a', 'b'), ('b', 'a'), ()])
    (('c',), [('c',)])
    """
    gathered: list[Block] = []
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
    return gathered


def _ends(domain: Domain, subsets: Sequence[tuple[str, ...]]) -> list[int]:
    return list(accumulate(map(domain.cells, subsets), initial=0))


def divided(request: base.Request, amounts: Sequence[str], codes: str) -> str:
    """Return a subquery with a row for each cell that records are divided among, and what each weighs there.

    It is of a subquery with a column ``c0``, ``c1``, ... an attribute; those of the amounts become values.
    """
    columns = {f"c{i}": f"c{i}" for i in range(len(request.domain))}
    joined, weights = [], []
    for amount in (own for own in request.domain if isinstance(own, Amount) and own.name in amounts):
        column, steps = f"c{request.domain.index(amount.name)}", amount.steps
        columns[column] = f"v{column}"
        code = f"CAST({column} AS numeric)"
        rest = f"({steps} - {code})"
        shares = [rest, code]
        if amount.squares:
            shares = [f"{rest} * {rest}", f"2 * {rest} * {code}", f"{code} * {code}"]
        cases = " ".join(f"WHEN {value} THEN {share}" for value, share in enumerate(shares))
        share = f"CASE v{column} {cases} ELSE 0 END"
        if amount.null_code is not None:
            missing = f"WHEN v{column} = {amount.null_code} THEN {amount.weight} ELSE 0 END"
            share = f"CASE WHEN {column} <= {steps} THEN {share} {missing}"
        values = ", ".join(f"({place})" for place in range(amount.size))
        weights.append(f"({share})")
        joined.append(f" CROSS JOIN (VALUES {values}) AS j{column}(v{column})")
    listed = ", ".join(f"{value} AS {column}" for column, value in columns.items())
    product = " * ".join(weights)
    return f"SELECT {listed}, {product} AS weight FROM ({codes}) AS whole{''.join(joined)}"  # noqa: S608


def counting(request: base.Request, parts: Sequence[Block], codes: str, *, weighed: bool = False) -> str:
    """Return the statement that counts, of a subquery with a column ``c0``, ``c1``, ... an attribute.

    Its rows are a number that says which marginal and cell, and the number of records there; of records that
    are `divided`, the sum of their weights as a text.
    """
    one, extra, number = ("sum(weight)", ", weight", "text") if weighed else ("count(*)", "", "bigint")
    ends = _ends(request.domain, [names for names, _ in parts])
    starts = _ends(request.domain, [subset for _, subsets in parts for subset in subsets])
    # Short integers are packed and grouped sooner.
    kind = "integer" if max(ends[-1], starts[-1]) < _MOST_SHORT else "bigint"

    def packed(subset: tuple[str, ...], codes: Mapping[str, str], start: int) -> str:
        steps = zip(subset, base.strides(request.shape(subset)), strict=True)
        terms = [f"CAST({codes[name]} AS {kind}) * {step}".removesuffix(" * 1") for name, step in steps]
        return " + ".join([f"CAST({start} AS {kind})", *terms])

    keys, marginals, own_starts = [], [], iter(starts)
    for i, ((names, subsets), first, end) in enumerate(zip(parts, ends, ends[1:], strict=False)):
        own = {name: f"c{request.domain.index(name)}" for name in names}
        keys.append(f"{packed(names, own, first)} AS b{i}")
        shape = request.shape(names)
        places = zip(names, base.strides(shape), shape, strict=True)
        held = {name: f"(block - {first}) / {step} % {size}" for name, step, size in places}
        inside = f"FROM blocks WHERE block >= {first} AND block < {end}"
        for subset in subsets:
            key = packed(subset, held, next(own_starts))
            if len(subset) == len(names):
                whole = "CAST(records AS text) AS records" if weighed else "records"
                marginals.append(f"SELECT {key} AS cell, {whole} {inside}")
            else:
                added = f"CAST(sum(records) AS {number}) AS records"
                marginals.append(f"SELECT {key} AS cell, {added} {inside} GROUP BY 1")
    sets = [f"b{i}" for i in range(len(keys))]
    counted = (
        f"SELECT coalesce({', '.join(sets)}) AS block, {one} AS records "  # noqa: S608
        f"FROM (SELECT {', '.join(keys)}{extra} FROM ({codes}) AS codes OFFSET 0) AS keys "
        f"GROUP BY GROUPING SETS (({'), ('.join(sets)}))"
    )
    return f"WITH blocks AS MATERIALIZED ({counted}) " + " UNION ALL ".join(marginals)


def counted_marginals(
    request: base.Request, parts: Sequence[Block], keys: NDArray[np.int64], counts: NDArray[Any]
) -> Iterator[base.Marginal]:
    """Yield the marginals of the rows of a statement of `counting`.

    Examples
    --------
    >>> from matrixdp.domain import OutOfDomain
    >>> request = base.Request(Domain({"a": 2, "b": 3}), (("b",), ("a", "b")), OutOfDomain())
    >>> parts = blocks(request.domain, request.subsets)
    >>> parts
    [(('a', 'b'), [('a', 'b'), ('b',)])]
    >>> keys, counts = np.array([2, 5, 8]), np.array([1, 4, 5])
    >>> for subset, marginal in counted_marginals(request, parts, keys, counts):
    ...     print(subset, marginal.tolist())
    ('a', 'b') [[0, 0, 1], [0, 0, 4]]
    ('b',) [0, 0, 5]
    """
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    subsets = [subset for _, held in parts for subset in held]
    starts = _ends(request.domain, subsets)
    places = np.searchsorted(keys, np.array(starts, dtype=np.int64))
    for subset, start, first, end in zip(subsets, starts, places, places[1:], strict=False):
        yield subset, request.array(subset, keys[first:end] - start, counts[first:end])


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
#: No numeral has more bytes.
_LONGEST_NUMERAL = 100
#: Above half of the least double: numbers of smaller size are nearest to 0, and casting them is an error.
_LEAST = "2.48e-324"


@final
class _PostgreSQL(sql.Dialect):
    cast = "CAST"
    divide = "/"

    def kind(self, stored: str) -> Kind:
        return _KINDS.get(stored, Kind.OTHER)

    def within(self, longest: int, text: str, value: str) -> str:
        return f"CASE WHEN octet_length({text}) <= {longest} THEN {value} END"

    def numeral(self, text: str, otherwise: str = "NULL") -> str:
        numeral = sql.trimmed(text)
        number = f"WHEN {numeral} ~ {literal(NUMERAL)} THEN CAST({numeral} AS double precision)"
        number = self.within(_LONGEST_NUMERAL, numeral, f"CASE {number} ELSE {otherwise} END")
        return self.within(sql.LONGEST_TEXT, text, number)

    def finite(self, column: str, stored: str) -> str:
        value = f"CAST({column} AS double precision)"
        if stored != "numeric":
            inside = f"{value} > {double(-math.inf)} AND {value} < {double(math.inf)}"
            return f"CASE WHEN {inside} THEN {value} END"
        largest = f"CAST('{int(sys.float_info.max)}' AS numeric)"
        small = f"abs({column}) < CAST('{_LEAST}' AS numeric)"
        return f"CASE WHEN {small} THEN 0 WHEN {column} BETWEEN -{largest} AND {largest} THEN {value} END"

    def is_nan(self, column: str) -> str:
        return f"{column} = 'NaN'"

    def integer(self, rule: Rule, column: str) -> str:
        return f"CAST({column} AS {'bigint' if isinstance(rule, IntegerRange) else 'double precision'})"

    def day(self, column: str) -> str:
        return f"to_char(CAST({column} AS timestamp), 'YYYY-MM-DD')"

    def days_of_text(self, text: str) -> str:
        places = ((1, 4), (6, 2), (9, 2))
        year, month, day = (f"CAST(substr({text}, {at}, {length}) AS integer)" for at, length in places)
        leap = f"CASE WHEN {year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0) THEN 29 ELSE 28 END"
        last = f"CASE {month} WHEN 2 THEN {leap} WHEN 4 THEN 30 WHEN 6 THEN 30 WHEN 9 THEN 30 WHEN 11 THEN 30"
        dated = f"{month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {last} ELSE 31 END"
        return f"CASE WHEN {dated} THEN {sql.days(f'make_date({year}, {month}, {day})')} END"

    def since(self, column: str, kind: Kind, unit: int) -> str:
        zone, offset = ("timestamptz", "+00") if kind is Kind.INSTANT else ("timestamp", "")
        moment = f"({column} AT TIME ZONE 'UTC')" if kind is Kind.INSTANT else column
        ends = f"{zone} '0001-01-01 00:00:00{offset}' AND {zone} '9999-12-31 23:59:59.999999{offset}'"
        hour, minute = (f"CAST(extract({part} FROM {moment}) AS integer)" for part in ("hour", "minute"))
        minutes = f"{sql.days(f'CAST({moment} AS date)')} * 1440 + {hour} * 60 + {minute}"
        return f"CASE WHEN {column} BETWEEN {ends} THEN ({minutes}) / {unit // sql.MINUTE} END"

    def code_of_text(self, rule: Categories, text: str) -> str:
        # No text of PostgreSQL's holds the character 0.
        texts = {held: code for held, code in sql.canonical_texts(rule).items() if "\0" not in held}
        return _position(text, texts, literal)

    def code_of_number(self, rule: Listed | Numbers, number: str) -> str:
        numbers = {listed: code for listed, code in rule.codes.items() if isinstance(listed, float)}
        return _position(number, numbers, double)


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
#: The groups of one statement fit into this much memory; with less the server writes them to disk.
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
class PostgreSQLSource(base.TableSource):
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

    def check_columns(self, request: base.Request) -> None:
        """Reject a table that lacks columns, or has some that cannot be read."""
        _codes(request, self.table())

    def count(self, request: base.Request) -> Iterator[base.Marginal]:
        """Return every marginal of a request, with its counts."""
        return base.started(self._counted(request))

    def _counted(self, request: base.Request) -> Iterator[Any]:
        with self._connect() as cursor:
            codes = _codes(request, base.guarded(partial(self._find, cursor), self._reading))
            yield None
            inside = " AND ".join(f"c{i} IS NOT NULL" for i in range(len(request.domain)))
            if request.out_of_domain.counts:
                asked = partial(_rows, cursor, _outside(request, codes, inside))
                ((*counts,),) = base.guarded(asked, _COUNTING, base.FAILED)
                places = np.arange(len(counts))
                yield (
                    base.OUT_OF_DOMAIN,
                    request.array(base.OUT_OF_DOMAIN, places, np.array(counts, dtype=np.int64)),
                )
            kept = f"SELECT * FROM ({codes}) AS encoded WHERE {inside}"  # noqa: S608
            for amounts, subsets in _by_amounts(request).items():
                codes = divided(request, amounts, kept) if amounts else kept
                gathered = blocks(request.domain, subsets)
                for first in range(0, len(gathered), _AT_ONCE):
                    parts = gathered[first : first + _AT_ONCE]
                    statement = counting(request, parts, codes, weighed=bool(amounts))
                    found = base.guarded(partial(_groups, cursor, statement), _COUNTING, base.FAILED)
                    yield from counted_marginals(request, parts, *found)

    @contextmanager
    def _connect(self) -> Iterator[Any]:
        """Yield a cursor within one transaction that reads one state of the database."""
        with needing("driver of postgresql://", "postgresql", error=SourceError):
            from adbc_driver_postgresql import dbapi
        doing = f"connect to {self._where}"
        with ExitStack() as stack:
            connection = base.guarded(
                lambda: dbapi.connect(_fixed(self._address), autocommit=True), doing, _CONNECTED
            )
            stack.callback(_close, connection)
            cursor = base.guarded(connection.cursor, doing)
            stack.callback(_close, cursor)
            path = base.guarded(partial(_begin, cursor), doing)
            if path.replace(" ", "") != _PATH.replace(" ", ""):
                cure = f"let the pooler pass `options` on, or ALTER ROLE .. SET search_path = {_PATH}"
                found = "a connection with another search_path"
                raise SourceError.at(("data",), found, f"{_PATH}: {cure}")
            yield cursor

    def _find(self, cursor: Any) -> base.Table:
        ((encoding,),) = _rows(cursor, "SELECT current_setting('server_encoding')")
        if encoding not in _ENCODINGS:
            message = f"the database holds texts as {encoding}; one of UTF8 is needed"
            raise SourceError(message, code="not-supported")
        schema, name, oid, computed = self.choose(_rows(cursor, _TABLES), "public")
        columns = _rows(cursor, f"{_COLUMNS} {int(oid)} ORDER BY a.attnum")
        types = {column: type_name for column, type_name, _ in columns}
        generated = [column for column, _, is_generated in columns if is_generated]
        return base.Table(f"{identifier(schema)}.{identifier(name)}", computed, types, generated)


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


def _codes(request: base.Request, table: base.Table) -> str:
    """Return the query for the codes of the records, a column an attribute, NULL where out of domain."""
    request.check_columns(table.types)
    # A cast of an enumeration would run what the owner of the type may have put in its place.
    own = {
        name: f"(CASE WHEN {identifier(name)} IS NOT NULL THEN format('%s', {identifier(name)}) END)"
        if type_name == _ENUM
        else identifier(name)
        for name, type_name in table.types.items()
    }
    values, codes, own_codes = POSTGRESQL.encoded(request, request.domain.readings, table.types, own)
    listed = ", ".join(f"{code} AS c{i}" for i, code in enumerate(own_codes.values()))
    # Without OFFSET the server puts every value into each place of its code, and computes it that often.
    raw = f"SELECT {', '.join(values)} FROM {table.name} OFFSET 0"  # noqa: S608
    encoded = f"SELECT {', '.join(codes)} FROM ({raw}) AS source OFFSET 0"  # noqa: S608
    if not request.domain.parents:
        return encoded
    return f"SELECT {listed} FROM ({encoded}) AS read OFFSET 0"  # noqa: S608


def _outside(request: base.Request, codes: str, inside: str) -> str:
    """Return the query for the counts of records out of domain."""
    names = {name: f"c{i}" for i, name in enumerate(request.domain.names)}
    missing = sql.outside(request, names, inside)
    columns = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in missing)
    return f"SELECT {columns} FROM ({codes}) AS encoded"  # noqa: S608


def _by_amounts(request: base.Request) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the marginals by those of their attributes among whose values records are divided."""
    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    for subset in request.subsets:
        names = [name for name in subset if request.domain[name].divided]
        found.setdefault(request.domain.sort(names), []).append(subset)
    return found


def _groups(cursor: Any, statement: str) -> tuple[NDArray[np.int64], NDArray[Any]]:
    cursor.execute(statement)
    found = cursor.fetch_arrow_table()
    records = found["records"].to_numpy()
    if records.dtype == object:
        records = np.array([int(text) for text in records], dtype=object)
    return found["cell"].to_numpy(), records


def _rows(cursor: Any, query: str) -> list[tuple[Any, ...]]:
    cursor.execute(query)
    return [tuple(row) for row in cursor.fetchall()]


def _close(held: Any) -> None:
    with suppress(Exception):
        held.close()
