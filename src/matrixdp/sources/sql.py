"""The rules of `matrixdp.domain.rules` in DuckDB's SQL.

Two steps, each one expression a column, so that a value is parsed once: from the raw value to a canonical
text, a number or both, and from there to a code, NULL where the value is out of domain. No expression can
raise an error, whatever the value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

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
    canonical_text,
    never,
)

_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_KINDS = {
    **dict.fromkeys((*_SIZES, *(f"U{size}" for size in _SIZES)), Kind.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Kind.FLOAT),
    **dict.fromkeys(("NULL", '"NULL"'), Kind.NULL),
    "VARCHAR": Kind.TEXT,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"), Kind.TIMESTAMP),
    "TIMESTAMP_NS": Kind.NANOSECONDS,
    "TIMESTAMP WITH TIME ZONE": Kind.INSTANT,
}
_EXACT = 2**53
_FIRST, _LAST = (f"DATE '{day.isoformat()}'" for day in DAYS)
_EPOCH = date(1970, 1, 1).toordinal()
_HOUR = 3_600_000_000
_SPACED_NUMERAL = f"[{WHITESPACE}]*(?:{NUMERAL[1:-1]})[{WHITESPACE}]*"


def identifier(name: str) -> str:
    """Return a name as a quoted identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a quoted literal."""
    return "'" + text.replace("'", "''") + "'"


def column_kind(type_name: str) -> Kind:
    """Return what a column of a DuckDB type holds.

    Examples
    --------
    >>> column_kind("DECIMAL(10,2)"), column_kind("TIME")
    (<Kind.FLOAT: 'float'>, <Kind.OTHER: 'other'>)
    """
    if type_name.endswith(")"):
        sized = {"DECIMAL": Kind.FLOAT, "ENUM": Kind.TEXT}
        return sized.get(type_name.partition("(")[0], Kind.OTHER)
    return _KINDS.get(type_name, Kind.OTHER)


def value_expression(rule: Rule, column: str, kind: Kind) -> str:
    """Return the expression from a raw value, in a quoted column, to what its code is found from.

    A text or a number, of hours where moments are read, or NULL; for texts that are compared with numbers
    too, a pair of both.
    """
    if isinstance(rule, Moments):
        return "CAST(NULL AS BIGINT)" if never(rule, kind) else _hours(rule, column, kind)
    if never(rule, kind):
        return f"CAST(NULL AS {'VARCHAR' if isinstance(rule, Listed | Texts | Days) else 'DOUBLE'})"
    if kind is Kind.FLOAT:
        return f"CASE WHEN isfinite(CAST({column} AS DOUBLE)) THEN CAST({column} AS DOUBLE) END"
    if kind is Kind.DATE:
        return f"CASE WHEN {column} BETWEEN {_FIRST} AND {_LAST} THEN CAST({column} AS VARCHAR) END"
    text = _text(rule, column)
    if isinstance(rule, Texts | Days):
        return text if isinstance(rule, Texts) else f"trim({text}, {literal(WHITESPACE)})"
    if kind is Kind.TEXT:
        # DuckDB skips the same white space when it casts.
        matches = f"regexp_full_match({text}, {literal(_SPACED_NUMERAL)})"
        number = f"WHEN {matches} THEN TRY_CAST({text} AS DOUBLE)"
        if not isinstance(rule, Listed):
            spelled = " ".join(f"WHEN '{name}' THEN {BOOLEANS[same]}" for name, same in SPELLINGS.items())
            return f"CASE {number} ELSE CASE lower({text}) {spelled} END END"
        if not BOOLEANS.keys().isdisjoint(rule.codes):
            spelled = " ".join(f"WHEN '{name}' THEN '{same}'" for name, same in SPELLINGS.items())
            text = f"CASE lower({text}) {spelled} ELSE {text} END"
        return f"struct_pack(t := {text}, n := CASE {number} END)" if rule.numbers else text
    if isinstance(rule, Listed) and kind is Kind.BOOLEAN:
        # No cast: DuckDB may move one into its reader of CSV, and give the text of the file.
        return f"CASE WHEN {column} THEN 'true' WHEN NOT {column} THEN 'false' END"
    return f"TRY_CAST({column} AS DOUBLE)"


def missing_expression(rule: Rule, column: str, kind: Kind) -> str:
    """Return the expression for whether a raw value, in a quoted column, is missing; never NULL itself."""
    if kind is Kind.TEXT:
        return f"coalesce({_text(rule, column)} = '', true)"
    if kind is Kind.FLOAT:
        return f"coalesce(isnan(CAST({column} AS DOUBLE)), true)"
    return f"{column} IS NULL"


def _text(rule: Rule, column: str) -> str:
    # A collation of the column would make texts equal that are not.
    text = f"(CAST({column} AS VARCHAR) COLLATE C)"
    text = f"trim({text}, {literal(WHITESPACE)})" if rule.trim else text
    others, letters = map(literal, rule.folded)
    return f"translate({text}, {others}, {letters})" if rule.folded[0] else text


def _hours(rule: Moments, column: str, kind: Kind) -> str:
    """Return the expression from a raw value to the hour of a moment, as `Moments` counts them."""
    if kind is Kind.DATE:
        return f"CASE WHEN {column} BETWEEN {_FIRST} AND {_LAST} THEN {_days(column)} * 24 END"
    if kind is Kind.TEXT:
        return _hours_of_text(rule, f"trim({_text(rule, column)}, {literal(WHITESPACE)})")
    if kind is Kind.NANOSECONDS:
        since = f"CAST(epoch_ns({column}) AS HUGEINT) + {_EPOCH * 24 * _HOUR * 1000}"
        return f"CASE WHEN isfinite({column}) THEN CAST(({since}) // {_HOUR * 1000} AS BIGINT) END"
    zone, offset = (" WITH TIME ZONE", "+00") if kind is Kind.INSTANT else ("", "")
    moment = f"TRY_CAST({column} AS TIMESTAMP{zone})"
    first, last = (
        f"CAST('{text}{offset}' AS TIMESTAMP{zone})"
        for text in ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
    )
    since = f"(epoch_us({moment}) + {_EPOCH * 24 * _HOUR}) // {_HOUR}"
    return f"CASE WHEN {moment} BETWEEN {first} AND {last} THEN {since} END"


def _hours_of_text(rule: Moments, text: str) -> str:
    day = _days(f"TRY_CAST(substr({text}, 1, 10) AS DATE)")
    alone = "CAST(NULL AS BIGINT)" if rule.timed else f"{day} * 24"
    hour, minute = (f"TRY_CAST(substr({text}, {place}, 2) AS BIGINT)" for place in (12, 15))
    zone = f"regexp_extract(substr({text}, 17), '[+-].*')"
    apart = f"TRY_CAST(substr({zone}, 2, 2) AS BIGINT) * 60"
    apart += f" + coalesce(TRY_CAST(replace(substr({zone}, 4), ':', '') AS BIGINT), 0)"
    ahead = f"CASE substr({zone}, 1, 1) WHEN '+' THEN {apart} WHEN '-' THEN -({apart}) ELSE 0 END"
    timed = f"({day} * 1440 + {hour} * 60 + {minute} - ({ahead})) // 60"
    matches = f"regexp_full_match({text}, {literal(MOMENT[1:-1])})"
    return f"CASE WHEN {matches} THEN CASE WHEN length({text}) = 10 THEN {alone} ELSE {timed} END END"


def _days(date: str) -> str:
    """Return the expression for the days since the one before 0001-01-01."""
    return f"({date} - {_FIRST} + 1)"


def code_expression(rule: Rule, value: str, kind: Kind) -> str:
    """Return the expression from what `value_expression` gives, a column, to an integer code, or NULL."""
    if isinstance(rule, Texts | Days):
        return _position(rule, value)
    if isinstance(rule, Numbers):
        return _position_of_number(rule, value)
    if isinstance(rule, Listed):
        if kind is Kind.TEXT and rule.numbers:
            text, number = (f"struct_extract({value}, '{part}')" for part in "tn")
            return f"coalesce({_position(rule, text)}, {_position_of_number(rule, number)})"
        numeric = kind in (Kind.INTEGER, Kind.FLOAT)
        return _position_of_number(rule, value) if numeric else _position(rule, value)
    if isinstance(rule, Whole):
        whole = f"floor({value})"
        exact = f" AND {value} = {whole}" if rule.round is None else ""
        if rule.round == "nearest":
            whole = f"({whole} + CASE WHEN {value} - {whole} >= 0.5 THEN 1 ELSE 0 END)"
        inside = f"{whole} >= {rule.first} AND {whole} <= {rule.last}{exact}"
        return f"CASE WHEN {inside} THEN TRY_CAST({whole} AS BIGINT) - ({rule.first}) END"
    if isinstance(rule, Moments):
        return _code_of_hours(rule, value)
    first, last = _double(rule.edges[0]), _double(rule.edges[-1])
    below = "<=" if rule.closed else "<"
    tree = _search([_double(edge) for edge in rule.edges], value, 0, len(rule.edges) - 1)
    return f"CASE WHEN {value} >= {first} AND {value} {below} {last} THEN {tree} END"


def _position(rule: Categories, text: str) -> str:
    labels = (value if isinstance(value, str) else canonical_text(value) for value in rule.codes)
    return f"enum_code(TRY_CAST({text} AS ENUM({', '.join(map(literal, labels))})))"


def _position_of_number(rule: Listed | Numbers, value: str) -> str:
    """Integral numbers go through the text of the integer; the few others are compared one by one."""
    integral = _position(rule, f"CAST(TRY_CAST({value} AS BIGINT) AS VARCHAR)")
    others = [
        f" WHEN {_double(number)} THEN {code}"
        for number, code in rule.codes.items()
        if isinstance(number, float) and (abs(number) >= _EXACT or number != math.floor(number))
    ]
    rest = f" ELSE CASE {value}{''.join(others)} END" if others else ""
    return f"CASE WHEN abs({value}) < {_EXACT} AND {value} = floor({value}) THEN {integral}{rest} END"


def _double(number: float) -> str:
    return f"CAST({literal(repr(float(number)))} AS DOUBLE)"


def _code_of_hours(rule: Moments, hours: str) -> str:
    if rule.edges is not None:
        edges = ["", *map(str, rule.edges), ""]
        code = _search(edges, hours, 0, len(edges) - 1)
    else:
        code = f"(({hours} - {rule.start}) // {rule.width})"
    if rule.cycle is not None:
        code = f"{code} % {rule.cycle}"
    return f"CASE WHEN {hours} BETWEEN {rule.first} AND {rule.last} THEN {code} END"


def _search(edges: Sequence[str], value: str, first: int, end: int) -> str:
    """Return the binary search for the bin among those from `first` to `end`, as nested cases."""
    if end - first == 1:
        return str(first)
    middle = (first + end) // 2
    below = _search(edges, value, first, middle)
    above = _search(edges, value, middle, end)
    return f"CASE WHEN {value} < {edges[middle]} THEN {below} ELSE {above} END"
