"""The encoding of raw values as codes in DuckDB's SQL.

Two steps, each one expression a column, so that a value is parsed once: from the raw value to a text or a
number, and from there to a code, NULL where the value is out of domain. No expression can raise an error,
whatever the value.
"""

import math

from matrixdp.domain import Attribute, Bins, Categorical, Coded, Integers
from matrixdp.domain.canonical import float_of_text
from matrixdp.domain.encoding import NUMERAL, WHITESPACE
from matrixdp.sources.requests import Kind

__all__ = ["code_expression", "column_kind", "identifier", "literal", "value_expression"]

_INTEGERS = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "", "BIG", "HUGE")} | {
    "INTEGER",
    "UINTEGER",
}
_EXACT = 2**53
_SPACED_NUMERAL = f"[{WHITESPACE}]*(?:{NUMERAL[1:-1]})[{WHITESPACE}]*"


def identifier(name: str) -> str:
    """Return a name as a quoted identifier.

    Examples
    --------
    >>> identifier('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a text as a quoted literal.

    Examples
    --------
    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"


def column_kind(type_name: str) -> Kind:
    """Return what a column of a DuckDB type holds.

    Examples
    --------
    >>> column_kind("DECIMAL(10,2)"), column_kind("TIMESTAMP")
    (<Kind.FLOAT: 'float'>, <Kind.OTHER: 'other'>)
    """
    if type_name.endswith("]"):
        return Kind.OTHER
    if type_name in _INTEGERS:
        return Kind.INTEGER
    if type_name in ("FLOAT", "DOUBLE") or type_name.startswith("DECIMAL("):
        return Kind.FLOAT
    if type_name == "VARCHAR" or type_name.startswith("ENUM("):
        return Kind.TEXT
    named = {"BOOLEAN": Kind.BOOLEAN, "DATE": Kind.DATE, '"NULL"': Kind.NULL, "NULL": Kind.NULL}
    return named.get(type_name, Kind.OTHER)


def value_expression(attribute: Attribute, column: str, kind: Kind) -> str:
    """Return the expression from a raw value to its text or number.

    Parameters
    ----------
    attribute : Attribute
        The attribute.
    column : str
        The column, quoted.
    kind : Kind
        What the column holds.

    Returns
    -------
    str
        An expression of type VARCHAR for a categorical attribute, unless the column holds floats, else
        DOUBLE; NULL for what has no text or number.
    """
    if kind is Kind.FLOAT:
        return f"CASE WHEN isfinite(CAST({column} AS DOUBLE)) THEN CAST({column} AS DOUBLE) END"
    if isinstance(attribute, Categorical):
        return f"CAST({column} AS VARCHAR)"
    if kind is Kind.TEXT:
        # DuckDB skips the same white space when it casts.
        matches = f"regexp_full_match(CAST({column} AS VARCHAR), {literal(_SPACED_NUMERAL)})"
        return f"CASE WHEN {matches} THEN TRY_CAST(CAST({column} AS VARCHAR) AS DOUBLE) END"
    return f"TRY_CAST({column} AS DOUBLE)"


def code_expression(attribute: Attribute, value: str, kind: Kind) -> str:
    """Return the expression from a text or number to a code.

    Parameters
    ----------
    attribute : Attribute
        The attribute.
    value : str
        The quoted column that holds the text or the number.
    kind : Kind
        What the raw column holds.

    Returns
    -------
    str
        An expression of some integer type, NULL where the value is out of domain.
    """
    if isinstance(attribute, Categorical):
        return _category_of_float(attribute, value) if kind is Kind.FLOAT else _category(attribute, value)
    if isinstance(attribute, Bins):
        first, last = _double(attribute.edges[0]), _double(attribute.edges[-1])
        below = "<=" if attribute.closed else "<"
        tree = _search(attribute.edges, value, 0, attribute.size)
        return f"CASE WHEN {value} >= {first} AND {value} {below} {last} THEN {tree} END"
    if not isinstance(attribute, Integers | Coded):
        raise TypeError(f"no encoding for {type(attribute).__name__}")
    low = int(attribute.value(0))
    high = low + attribute.size - 1
    inside = f"{value} >= {low} AND {value} <= {high} AND {value} = floor({value})"
    return f"CASE WHEN {inside} THEN TRY_CAST({value} AS BIGINT) - ({low}) END"


def _category(attribute: Categorical, value: str) -> str:
    listed = ", ".join(literal(category) for category in attribute.categories)
    return f"enum_code(TRY_CAST({value} AS ENUM({listed})))"


def _category_of_float(attribute: Categorical, value: str) -> str:
    """Integral floats go through the text of the integer; the few others are compared one by one."""
    integral = _category(attribute, f"CAST(TRY_CAST({value} AS BIGINT) AS VARCHAR)")
    others = [
        f" WHEN {_double(number)} THEN {code}"
        for code, category in enumerate(attribute.categories)
        if (number := float_of_text(category)) is not None
        and (abs(number) >= _EXACT or number != math.floor(number))
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
