"""The rules of `matrixdp.domain.rules` in PostgreSQL's SQL.

Two steps, as in `matrixdp.sources.sql`: from the raw value to a canonical text, a number or both, and from
there to a code, NULL where the value is out of domain. No expression can raise an error, whatever the value:
what is cast has been matched against the grammar of numerals, or compared with the bounds of its type, by an
earlier branch of the same CASE. Texts are compared byte by byte, whatever the collation of a column.
"""

import math
import sys
from collections.abc import Callable, Mapping
from typing import Any

from matrixdp.domain.canonical import canonical_text
from matrixdp.domain.rules import (
    BOOLEANS,
    DAYS,
    MOMENT,
    NUMERAL,
    SPELLINGS,
    WHITESPACE,
    Categories,
    Days,
    Kind,
    Listed,
    Moments,
    Numbers,
    Rule,
    Texts,
    Whole,
    never,
)

__all__ = [
    "code_expression",
    "column_kind",
    "identifier",
    "literal",
    "missing_expression",
    "value_expressions",
]

_KINDS = {
    **dict.fromkeys(("int2", "int4", "int8"), Kind.INTEGER),
    **dict.fromkeys(("float4", "float8", "numeric"), Kind.FLOAT),
    **dict.fromkeys(("text", "varchar", "bpchar", "name"), Kind.TEXT),
    "bool": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp": Kind.TIMESTAMP,
    "timestamptz": Kind.INSTANT,
}
_SPACE = "E'" + "".join(f"\\x{ord(character):02x}" for character in WHITESPACE) + "'"
#: No numeral has more bytes, nor a boolean.
_LONGEST_NUMERAL, _LONGEST_BOOLEAN = 100, 5
#: Functions of texts fail on some that are a hundred times as long; no longer text has a number or a day.
_LONGEST_TEXT = 2**20
#: Above half of the least double: numbers of smaller size are nearest to 0, and casting them is an error.
_LEAST = "2.48e-324"


def identifier(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a quoted literal, where `standard_conforming_strings` is on.

    Examples
    --------
    >>> print(literal("it's"))
    'it''s'
    """
    return "'" + text.replace("'", "''") + "'"


def column_kind(type_name: str, listed: bool) -> Kind:
    """Return what a column of a PostgreSQL type holds; that of an enumeration holds `listed` texts.

    Examples
    --------
    >>> column_kind("numeric", False), column_kind("mood", True), column_kind("jsonb", False)
    (<Kind.FLOAT: 'float'>, <Kind.TEXT: 'text'>, <Kind.OTHER: 'other'>)
    """
    return Kind.TEXT if listed else _KINDS.get(type_name, Kind.OTHER)


def value_expressions(rule: Rule, column: str, type_name: str, kind: Kind) -> Mapping[str, str]:
    """Return the expressions from a raw value, in a quoted column, to what its code is found from.

    Under ``t`` a text, under ``n`` a number, each NULL where there is none; for texts that are compared with
    numbers too, both.
    """
    if never(rule, kind):
        return {"t": "CAST(NULL AS text)"}
    if isinstance(rule, Moments):
        return {"n": _hours(rule, column, kind)}
    if kind is Kind.DATE:
        first, last = (f"DATE '{day.isoformat()}'" for day in DAYS)
        day = f"to_char(CAST({column} AS timestamp), 'YYYY-MM-DD')"
        return {"t": f"CASE WHEN {column} BETWEEN {first} AND {last} THEN {day} END"}
    if kind is Kind.INTEGER:
        return {"n": f"CAST({column} AS {'bigint' if isinstance(rule, Whole) else 'double precision'})"}
    if kind is Kind.FLOAT:
        return {"n": _finite(column, type_name)}
    if kind is Kind.BOOLEAN:
        write = literal if isinstance(rule, Listed) else _truth
        boolean = f"CASE WHEN {column} THEN {write('true')} WHEN NOT {column} THEN {write('false')} END"
        return {"t" if isinstance(rule, Listed) else "n": boolean}
    text = _text(rule, column)
    if not isinstance(rule, Categories) or isinstance(rule, Numbers):
        return {"n": _number(text, f"CASE lower({text}) {_spelled(_truth)} END")}
    if isinstance(rule, Days):
        return {"t": _within(_LONGEST_TEXT, text, f"btrim({text}, {_SPACE})")}
    longest = max(len(listed.encode()) for listed in ("", *_texts(rule)))
    if isinstance(rule, Texts) or BOOLEANS.keys().isdisjoint(rule.codes):
        found = {"t": _within(longest, text, text)}
    else:
        spelled = f"CASE lower({text}) {_spelled(literal)} ELSE {text} END"
        found = {"t": _within(max(longest, _LONGEST_BOOLEAN), text, spelled)}
    return {**found, "n": _number(text)} if isinstance(rule, Listed) and rule.numbers else found


def missing_expression(rule: Rule, column: str, kind: Kind) -> str:
    """Return the expression for whether a raw value, in a quoted column, is missing; never NULL itself."""
    if kind is Kind.TEXT:
        return f"{column} IS NULL OR coalesce({_text(rule, column)} = '', false)"
    return f"{column} IS NULL" + (f" OR {column} = 'NaN'" if kind is Kind.FLOAT else "")


def code_expression(rule: Rule, values: Mapping[str, str], kind: Kind) -> str:
    """Return the expression from what `value_expressions` gives, columns, to an integer code, or NULL."""
    if never(rule, kind):
        return "CAST(NULL AS integer)"
    if isinstance(rule, Whole):
        value = values["n"]
        whole = value if kind is Kind.INTEGER else f"floor({value})"
        exact = f" AND {value} = {whole}" if rule.round is None and kind is not Kind.INTEGER else ""
        if rule.round == "nearest" and kind is not Kind.INTEGER:
            whole = f"({whole} + CASE WHEN {value} - {whole} >= 0.5 THEN 1 ELSE 0 END)"
        inside = f"{whole} BETWEEN {rule.first} AND {rule.last}{exact}"
        return f"CASE WHEN {inside} THEN CAST({whole} AS bigint) - ({rule.first}) END"
    if isinstance(rule, Moments):
        return _code_of_hours(rule, values["n"])
    if isinstance(rule, Categories):
        found = []
        if "t" in values:
            found.append(_position(values["t"], _texts(rule), literal))
        if "n" in values:
            numbers = {number: code for number, code in rule.codes.items() if isinstance(number, float)}
            found.append(_position(values["n"], numbers, _double))
        return f"coalesce({', '.join(found)})"
    value, edges = values["n"], ", ".join(map(_double, rule.edges))
    first, last = _double(rule.edges[0]), _double(rule.edges[-1])
    closed = f" WHEN {value} = {last} THEN {len(rule.edges) - 2}" if rule.closed else ""
    inside = f"{value} >= {first} AND {value} < {last}"
    return f"CASE WHEN {inside} THEN width_bucket({value}, ARRAY[{edges}]) - 1{closed} END"


def _text(rule: Rule, column: str) -> str:
    text = f'(CAST({column} AS text) COLLATE "C")'
    cleaned = f"btrim({text}, {_SPACE})" if rule.trim else text
    if rule.folded[0]:
        cleaned = f"translate({cleaned}, {literal(rule.folded[0])}, {literal(rule.folded[1])})"
    return text if cleaned == text else _within(_LONGEST_TEXT, text, cleaned)


def _hours(rule: Moments, column: str, kind: Kind) -> str:
    """Return the expression from a raw value to the hour of a moment, as `Moments` counts them."""
    if kind is Kind.TEXT:
        text = _text(rule, column)
        return _within(_LONGEST_TEXT, text, _hours_of_text(rule, f"btrim({text}, {_SPACE})"))
    first, last = (day.isoformat() for day in DAYS)
    if kind is Kind.DATE:
        inside = f"{column} BETWEEN DATE '{first}' AND DATE '{last}'"
        return f"CASE WHEN {inside} THEN {_days(column)} * 24 END"
    zone, offset = ("timestamptz", "+00") if kind is Kind.INSTANT else ("timestamp", "")
    moment = f"({column} AT TIME ZONE 'UTC')" if kind is Kind.INSTANT else column
    ends = f"{zone} '{first} 00:00:00{offset}' AND {zone} '{last} 23:59:59.999999{offset}'"
    hour = f"CAST(extract(hour FROM {moment}) AS integer)"
    return f"CASE WHEN {column} BETWEEN {ends} THEN {_days(f'CAST({moment} AS date)')} * 24 + {hour} END"


def _hours_of_text(rule: Moments, text: str) -> str:
    year, month, day, hour, minute = (
        f"CAST(substr({text}, {place}, {length}) AS integer)"
        for place, length in ((1, 4), (6, 2), (9, 2), (12, 2), (15, 2))
    )
    leap = f"CASE WHEN {year} % 4 = 0 AND ({year} % 100 <> 0 OR {year} % 400 = 0) THEN 29 ELSE 28 END"
    last = f"CASE {month} WHEN 2 THEN {leap} WHEN 4 THEN 30 WHEN 6 THEN 30 WHEN 9 THEN 30 WHEN 11 THEN 30"
    dated = f"{month} BETWEEN 1 AND 12 AND {day} BETWEEN 1 AND {last} ELSE 31 END"
    days = _days(f"make_date({year}, {month}, {day})")
    zone = f"substring(substr({text}, 17) FROM '[+-].*')"
    apart = f"CAST(substr({zone}, 2, 2) AS integer) * 60 + "
    apart += f"CAST('0' || replace(substr({zone}, 4), ':', '') AS integer)"
    ahead = f"coalesce(CASE substr({zone}, 1, 1) WHEN '+' THEN {apart} WHEN '-' THEN -({apart}) END, 0)"
    timed = f"({days} * 1440 + {hour} * 60 + {minute} - {ahead}) / 60"
    alone = "NULL" if rule.timed else f"{days} * 24"
    found = f"CASE WHEN {dated} THEN CASE WHEN length({text}) = 10 THEN {alone} ELSE {timed} END END"
    return f"CASE WHEN {text} ~ {literal(MOMENT)} THEN {found} END"


def _days(date: str) -> str:
    """Return the expression for the days since the one before 0001-01-01."""
    return f"CAST({date} - DATE '{DAYS[0].isoformat()}' + 1 AS bigint)"


def _code_of_hours(rule: Moments, hours: str) -> str:
    if rule.edges is None:
        code = f"({hours} - {rule.start}) / {rule.width}"
    elif rule.edges:
        code = f"width_bucket({hours}, ARRAY[{', '.join(map(str, rule.edges))}]::bigint[])"
    else:
        code = "0"
    code = code if rule.cycle is None else f"({code}) % {rule.cycle}"
    return f"CASE WHEN {hours} BETWEEN {rule.first} AND {rule.last} THEN {code} END"


def _finite(column: str, type_name: str) -> str:
    """Return the expression from a number of any type to the nearest double, NULL where it is not finite."""
    double = f"CAST({column} AS double precision)"
    if type_name != "numeric":
        return (
            f"CASE WHEN {double} > {_double(-math.inf)} AND {double} < {_double(math.inf)} THEN {double} END"
        )
    largest = f"CAST('{int(sys.float_info.max)}' AS numeric)"
    small = f"abs({column}) < CAST('{_LEAST}' AS numeric)"
    return f"CASE WHEN {small} THEN 0 WHEN {column} BETWEEN -{largest} AND {largest} THEN {double} END"


def _number(text: str, otherwise: str = "NULL") -> str:
    """Return the expression from a text to the number that it is a numeral of."""
    numeral = f"btrim({text}, {_SPACE})"
    number = f"WHEN {numeral} ~ {literal(NUMERAL)} THEN CAST({numeral} AS double precision)"
    number = _within(_LONGEST_NUMERAL, numeral, f"CASE {number} ELSE {otherwise} END")
    return _within(_LONGEST_TEXT, text, number)


def _within(longest: int, text: str, value: str) -> str:
    """Return a value where a text has at most so many bytes, NULL elsewhere."""
    return f"CASE WHEN octet_length({text}) <= {longest} THEN {value} END"


def _spelled(meaning: Callable[[str], str]) -> str:
    return " ".join(f"WHEN {literal(name)} THEN {meaning(same)}" for name, same in SPELLINGS.items())


def _truth(name: str) -> str:
    return _double(BOOLEANS[name])


def _texts(rule: Categories) -> dict[str, int]:
    """Return the codes of canonical texts; no text of PostgreSQL's holds the character 0."""
    texts = {
        value if isinstance(value, str) else canonical_text(value): code for value, code in rule.codes.items()
    }
    return {text: code for text, code in texts.items() if "\0" not in text}


def _double(number: float) -> str:
    return f"CAST({literal(repr(float(number)))} AS double precision)"


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
