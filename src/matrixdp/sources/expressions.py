"""The rules of `matrixdp.domain.rules` in narwhals expressions, for engines of every kind.

The expressions hold on lazy frames too, and no value can make one raise an error: texts are matched against
the grammar of numerals before they are parsed, and numbers are brought into range before they become
integers.
"""

from collections.abc import Mapping, Sequence

import narwhals as nw

from matrixdp.domain.rules import (
    BOOLEANS,
    DAYS,
    NUMERAL,
    SPELLINGS,
    WHITESPACE,
    Days,
    Kind,
    Listed,
    Numbers,
    Rule,
    Texts,
    Whole,
    never,
)

__all__ = ["code", "frame_kind", "total", "values"]


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


def values(rule: Rule, column: nw.Expr, kind: Kind) -> list[nw.Expr]:
    """Return the expressions from a raw value of a kind to what its code is found from.

    A number as a float, NaN or null where there is none, the boolean or the canonical text itself; for texts
    that are compared with numbers too, the text and the number.
    """
    if never(rule, kind):
        return [column.is_null()]
    if kind is Kind.DATE:
        return [nw.when(column.is_between(*DAYS)).then(column).dt.to_string("%Y-%m-%d")]
    if kind is Kind.TEXT:
        text = column.cast(nw.String())
        if isinstance(rule, Texts):
            return [text]
        if isinstance(rule, Days):
            return [text.str.strip_chars(WHITESPACE)]
        if not isinstance(rule, Listed):
            return [_number(_with_booleans(text, {name: str(BOOLEANS[name]) for name in BOOLEANS}))]
        spelled = not BOOLEANS.keys().isdisjoint(rule.codes)
        canonical = _with_booleans(text, {name: name for name in BOOLEANS}) if spelled else text
        return [canonical, _number(text)] if rule.numbers else [canonical]
    if kind is not Kind.BOOLEAN:
        return [column.cast(nw.Float64())]
    if isinstance(rule, Listed):
        return [column]
    return [nw.when(column).then(nw.lit(1.0)).otherwise(nw.when(~column).then(nw.lit(0.0)))]


def code(rule: Rule, columns: Sequence[nw.Expr], kind: Kind) -> nw.Expr:
    """Return the expression from `values` to an integer code, -1 where the value is out of domain."""
    column = columns[0]
    if never(rule, kind):
        return nw.when(column).then(nw.lit(-1)).otherwise(nw.lit(-1))
    if isinstance(rule, Listed | Texts | Days | Numbers):
        # Every kind has the number of a listed number.
        held = Kind.FLOAT if isinstance(rule, Numbers) else kind
        found = [
            nw.when(equal).then(nw.lit(position + 1)).otherwise(nw.lit(0))
            for listed, position in rule.codes.items()
            if (equal := _equal(columns, held, listed)) is not None
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


def _with_booleans(text: nw.Expr, names: Mapping[str, str]) -> nw.Expr:
    """Return texts with those that are a boolean replaced by the name of the boolean."""
    lower, result = text.str.to_lowercase(), text
    for boolean, name in names.items():
        spelled = [spelling for spelling, same in SPELLINGS.items() if same == boolean]
        result = nw.when(lower.is_in(spelled)).then(nw.lit(name)).otherwise(result)
    return result


def _number(text: nw.Expr) -> nw.Expr:
    text = text.str.strip_chars(WHITESPACE)
    numeral = nw.when(text.str.contains(NUMERAL)).then(text).otherwise(nw.lit("nan"))
    return numeral.str.replace_all(r"^\+", "").cast(nw.Float64())


def _equal(columns: Sequence[nw.Expr], kind: Kind, listed: str | float) -> nw.Expr | None:
    """Return whether a value is a listed one; None where no value of the kind can be."""
    if isinstance(listed, float):
        return columns[-1] == listed if kind in (Kind.TEXT, Kind.INTEGER, Kind.FLOAT) else None
    if kind is Kind.BOOLEAN:
        return {"true": columns[0], "false": ~columns[0]}.get(listed)
    return columns[0] == nw.lit(listed) if kind in (Kind.TEXT, Kind.DATE) else None
