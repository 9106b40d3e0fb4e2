"""The rules of `matrixdp.domain.rules` in narwhals expressions, for engines of every kind.

The expressions hold on lazy frames too, and no value can make one raise an error: texts are matched against
the grammar of numerals before they are parsed, and numbers are brought into range before they become
integers.
"""

from collections.abc import Sequence

import narwhals as nw

from matrixdp.domain.rules import DAYS, NUMERAL, WHITESPACE, Kind, Listed, Rule, Whole

__all__ = ["code", "frame_kind", "total", "value"]

_INT64 = range(-(2**63), 2**63)


def frame_kind(dtype: nw.dtypes.DType) -> Kind:
    """Return what a column of a narwhals type holds.

    Examples
    --------
    >>> frame_kind(nw.Int32()), frame_kind(nw.Enum(["a"]))
    (<Kind.INTEGER: 'integer'>, <Kind.TEXT: 'text'>)
    """
    if dtype.is_integer():
        return Kind.INTEGER
    if dtype.is_numeric():
        return Kind.FLOAT
    if dtype in (nw.String, nw.Categorical) or isinstance(dtype, nw.Enum):
        return Kind.TEXT
    return {nw.Boolean: Kind.BOOLEAN, nw.Date: Kind.DATE}.get(type(dtype), Kind.OTHER)


def value(rule: Rule, column: nw.Expr, kind: Kind) -> nw.Expr:
    """Return the expression from a raw value of a kind to what its code is found from.

    For numbers a float, NaN or null where there is none; for listed values the text, boolean, integer or
    float itself.
    """
    if kind is Kind.NULL:
        return column.is_null()
    if isinstance(rule, Listed):
        if kind is Kind.FLOAT:
            return column.cast(nw.Float64())
        if kind is Kind.DATE:
            return nw.when(column.is_between(*DAYS)).then(column).dt.to_string("%Y-%m-%d")
        return column.cast(nw.String()) if kind is Kind.TEXT else column
    if kind is Kind.TEXT:
        text = column.cast(nw.String()).str.strip_chars(WHITESPACE)
        numeral = nw.when(text.str.contains(NUMERAL)).then(text).otherwise(nw.lit("nan"))
        return numeral.str.replace_all(r"^\+", "").cast(nw.Float64())
    if kind is Kind.BOOLEAN:
        return nw.when(column).then(nw.lit(1.0)).otherwise(nw.when(~column).then(nw.lit(0.0)))
    return column.cast(nw.Float64())


def code(rule: Rule, column: nw.Expr, kind: Kind) -> nw.Expr:
    """Return the expression from a `value` to an integer code, -1 where the value is out of domain."""
    if kind is Kind.NULL:
        return nw.when(column).then(nw.lit(-1)).otherwise(nw.lit(-1))
    if isinstance(rule, Listed):
        found = [
            nw.when(_equal(column, listed)).then(nw.lit(position + 1)).otherwise(nw.lit(0))
            for listed, position in rule.codes.items()
        ]
        # Where no category can match, a constant would lose the number of records.
        return total(found) - 1 if found else nw.when(column.is_null()).then(nw.lit(-1)).otherwise(nw.lit(-1))
    if isinstance(rule, Whole):
        inside = (column >= rule.first) & (column <= rule.last) & (column == column.floor())
        return nw.when(inside).then(column - rule.first).otherwise(nw.lit(-1.0)).cast(nw.Int64())
    first, *inner, last = rule.edges
    inside = (column >= first) & ((column <= last) if rule.closed else (column < last))
    above = [nw.when(column >= edge).then(nw.lit(1)).otherwise(nw.lit(0)) for edge in inner]
    return nw.when(inside).then(total(above)).otherwise(nw.lit(-1))


def total(terms: Sequence[nw.Expr]) -> nw.Expr:
    """Return the sum of expressions as a balanced tree, so that long ones are not deep."""
    if not terms:
        return nw.lit(0)
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return total(terms[:middle]) + total(terms[middle:])


def _equal(column: nw.Expr, listed: str | bool | float) -> nw.Expr:
    if isinstance(listed, bool):
        return column if listed else ~column
    if isinstance(listed, int) and listed not in _INT64:
        # No engine takes such a literal; columns of wider integers have texts all the same.
        return column.cast(nw.String()) == nw.lit(str(listed))
    return column == nw.lit(listed) if isinstance(listed, str) else column == listed
