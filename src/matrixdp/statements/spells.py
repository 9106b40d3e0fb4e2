"""Weeks, months and quarters compared with one of them, or with a day."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlglot import exp

from matrixdp.domain import Attribute, Dates, encode_value
from matrixdp.statements.scope import Scope
from matrixdp.statements.trees import unwrapped

__all__ = ["is_spell", "place_of_day"]


def is_spell(attribute: Attribute) -> bool:
    """Return whether the values of an attribute are several days each, one after the other."""
    return isinstance(attribute, Dates) and attribute.by in ("week", "month", "quarter")


def place_of_day(
    scope: Scope, attribute: Attribute, kind: type[exp.Expr], other: exp.Expr, within: exp.Expr
) -> int:
    """Return how many values are before a constant; for `<=` and `>` those up to it are among them.

    Raises
    ------
    EntryError
        If the constant is no value and no day, or a day on which no value begins.
    """
    inclusive = issubclass(kind, exp.LTE | exp.GT)
    values = {attribute.label(code): code for code in attribute.all_codes if code != attribute.null_code}
    plain = unwrapped(other)
    if isinstance(plain, exp.Literal) and plain.is_string and plain.name in values:
        return values[plain.name] + inclusive
    moment = scope.constant(other.sql(dialect="duckdb", comments=False), "TIMESTAMP")
    exact = isinstance(moment, datetime) and moment == datetime.combine(moment.date(), datetime.min.time())
    if isinstance(attribute, Dates) and isinstance(moment, datetime) and exact:
        day = moment.date()
        if day < attribute.first or (day == attribute.first and not inclusive):
            return 0
        if day > attribute.last or (day == attribute.last and inclusive):
            return len(values)
        after = day + timedelta(days=1) if inclusive else day
        code, before = encode_value(attribute, after), encode_value(attribute, after - timedelta(days=1))
        if code is not None and code != before:
            return code
    name, shown = attribute.name, next(iter(values))
    expected = (
        f"{name!r} compared with one of its values, such as {shown!r}, or with the day on which one begins"
    )
    raise scope.statement.error(within, scope.statement.excerpt(within), expected)
