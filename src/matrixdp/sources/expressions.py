"""The encoding of raw values as codes in narwhals expressions, for engines of every kind.

The expressions hold on lazy frames too, and no value can make one raise an error: texts are matched against
the grammar of numerals before they are parsed, and numbers are brought into range before they become
integers.
"""

from collections.abc import Sequence

import narwhals as nw

from matrixdp.domain import Attribute, Bins, Categorical, Coded, Integers
from matrixdp.domain.canonical import float_of_text
from matrixdp.domain.encoding import NUMERAL, WHITESPACE
from matrixdp.sources.requests import Kind

__all__ = ["code", "frame_kind", "total", "value"]

_LARGEST = 2**63 - 1


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
    if dtype == nw.Boolean:
        return Kind.BOOLEAN
    if dtype == nw.Date:
        return Kind.DATE
    return Kind.OTHER


def value(attribute: Attribute, column: nw.Expr, kind: Kind) -> nw.Expr:
    """Return the expression from a raw value to what its code is found from.

    Parameters
    ----------
    attribute : Attribute
        The attribute.
    column : Expr
        The raw column.
    kind : Kind
        What it holds.

    Returns
    -------
    Expr
        For a numeric attribute the number as a float, NaN or null where there is none; for a categorical one
        the text, boolean, integer or float itself.
    """
    if kind is Kind.NULL:
        return column.is_null()
    if isinstance(attribute, Categorical):
        if kind is Kind.FLOAT:
            return column.cast(nw.Float64())
        if kind is Kind.DATE:
            return column.dt.to_string("%Y-%m-%d")
        return column.cast(nw.String()) if kind is Kind.TEXT else column
    if kind is Kind.TEXT:
        text = column.cast(nw.String()).str.strip_chars(WHITESPACE)
        numeral = nw.when(text.str.contains(NUMERAL)).then(text).otherwise(nw.lit("nan"))
        return numeral.str.replace_all(r"^\+", "").cast(nw.Float64())
    if kind is Kind.BOOLEAN:
        return nw.when(column).then(nw.lit(1.0)).otherwise(nw.when(~column).then(nw.lit(0.0)))
    return column.cast(nw.Float64())


def code(attribute: Attribute, column: nw.Expr, kind: Kind) -> nw.Expr:
    """Return the expression from a `value` to a code.

    Parameters
    ----------
    attribute : Attribute
        The attribute.
    column : Expr
        The column of values.
    kind : Kind
        What the raw column holds.

    Returns
    -------
    Expr
        Integers; -1 where the value is out of domain.
    """
    if kind is Kind.NULL:
        return nw.when(column).then(nw.lit(-1)).otherwise(nw.lit(-1))
    if isinstance(attribute, Categorical):
        found = [
            nw.when(condition).then(nw.lit(position + 1)).otherwise(nw.lit(0))
            for position, category in enumerate(attribute.categories)
            if (condition := _is_category(column, category, kind)) is not None
        ]
        # Where no category can match, a constant would lose the number of records.
        return total(found) - 1 if found else nw.when(column.is_null()).then(nw.lit(-1)).otherwise(nw.lit(-1))
    if isinstance(attribute, Bins):
        first, last = attribute.edges[0], attribute.edges[-1]
        inside = (column >= first) & ((column <= last) if attribute.closed else (column < last))
        above = [
            nw.when(column >= edge).then(nw.lit(1)).otherwise(nw.lit(0)) for edge in attribute.edges[1:-1]
        ]
        return nw.when(inside).then(total(above)).otherwise(nw.lit(-1))
    if not isinstance(attribute, Integers | Coded):
        raise TypeError(f"no encoding for {type(attribute).__name__}")
    low = int(attribute.value(0))
    inside = (column >= low) & (column <= low + attribute.size - 1) & (column == column.floor())
    return nw.when(inside).then(column - low).otherwise(nw.lit(-1.0)).cast(nw.Int64())


def total(terms: Sequence[nw.Expr]) -> nw.Expr:
    """Return the sum of expressions as a balanced tree, so that long ones are not deep."""
    if not terms:
        return nw.lit(0)
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return total(terms[:middle]) + total(terms[middle:])


def _is_category(column: nw.Expr, category: str, kind: Kind) -> nw.Expr | None:
    """Return the condition that a value has a category's canonical text; None where none can have it."""
    if kind in (Kind.TEXT, Kind.DATE):
        return column == nw.lit(category)
    if kind is Kind.BOOLEAN:
        return {"true": column, "false": ~column}.get(category)
    number = float_of_text(category)
    if kind is Kind.FLOAT:
        return None if number is None else column == number
    try:
        integer = int(category)
    except ValueError:
        return None
    return column == integer if str(integer) == category and abs(integer) <= _LARGEST else None
