"""The rules of `matrixdp.domain.rules` in DuckDB's SQL.

Two steps, each one expression a column, so that a value is parsed once: from the raw value to a canonical
text, a number or both, and from there to a code, NULL where the value is out of domain. No expression can
raise an error, whatever the value.
"""

import math

from matrixdp.domain.canonical import canonical_text
from matrixdp.domain.rules import (
    BOOLEANS,
    DAYS,
    NUMERAL,
    SPELLINGS,
    WHITESPACE,
    Categories,
    Days,
    Kind,
    Listed,
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
    "value_expression",
]

_SIZES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_KINDS = {
    **dict.fromkeys((*_SIZES, *(f"U{size}" for size in _SIZES)), Kind.INTEGER),
    **dict.fromkeys(("FLOAT", "DOUBLE"), Kind.FLOAT),
    **dict.fromkeys(("NULL", '"NULL"'), Kind.NULL),
    "VARCHAR": Kind.TEXT,
    "BOOLEAN": Kind.BOOLEAN,
    "DATE": Kind.DATE,
}
_EXACT = 2**53
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
    >>> column_kind("DECIMAL(10,2)"), column_kind("TIMESTAMP")
    (<Kind.FLOAT: 'float'>, <Kind.OTHER: 'other'>)
    """
    if type_name.endswith(")"):
        sized = {"DECIMAL": Kind.FLOAT, "ENUM": Kind.TEXT}
        return sized.get(type_name.partition("(")[0], Kind.OTHER)
    return _KINDS.get(type_name, Kind.OTHER)


def value_expression(rule: Rule, column: str, kind: Kind) -> str:
    """Return the expression from a raw value, in a quoted column, to what its code is found from.

    A text or a number, or NULL; for texts that are compared with numbers too, a pair of both.
    """
    if never(rule, kind):
        return f"CAST(NULL AS {'VARCHAR' if isinstance(rule, Listed | Texts | Days) else 'DOUBLE'})"
    if kind is Kind.FLOAT:
        return f"CASE WHEN isfinite(CAST({column} AS DOUBLE)) THEN CAST({column} AS DOUBLE) END"
    if kind is Kind.DATE:
        first, last = (f"DATE '{day.isoformat()}'" for day in DAYS)
        return f"CASE WHEN {column} BETWEEN {first} AND {last} THEN CAST({column} AS VARCHAR) END"
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
    return text if isinstance(rule, Listed) and kind is Kind.BOOLEAN else f"TRY_CAST({column} AS DOUBLE)"


def missing_expression(rule: Rule, column: str, kind: Kind) -> str:
    """Return the expression for whether a raw value, in a quoted column, is missing; never NULL itself."""
    if kind is Kind.TEXT:
        return f"coalesce({_text(rule, column)} = '', true)"
    if kind is Kind.FLOAT:
        return f"coalesce(isnan(CAST({column} AS DOUBLE)), true)"
    return f"{column} IS NULL"


def _text(rule: Rule, column: str) -> str:
    text = f"CAST({column} AS VARCHAR)"
    return f"trim({text}, {literal(WHITESPACE)})" if rule.trim else text


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
        inside = f"{value} >= {rule.first} AND {value} <= {rule.last} AND {value} = floor({value})"
        return f"CASE WHEN {inside} THEN TRY_CAST({value} AS BIGINT) - ({rule.first}) END"
    first, last = _double(rule.edges[0]), _double(rule.edges[-1])
    below = "<=" if rule.closed else "<"
    tree = _search(rule.edges, value, 0, len(rule.edges) - 1)
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


def _search(edges: tuple[float, ...], value: str, first: int, end: int) -> str:
    """Return the binary search for the bin among those from `first` to `end`, as nested cases."""
    if end - first == 1:
        return str(first)
    middle = (first + end) // 2
    below = _search(edges, value, first, middle)
    above = _search(edges, value, middle, end)
    return f"CASE WHEN {value} < {_double(edges[middle])} THEN {below} ELSE {above} END"
