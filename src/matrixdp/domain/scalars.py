"""Which scalar expressions of SQL are let through, here and in statements, and how DuckDB evaluates them.

Only what has one value for each cell, on every machine and every day: operators and functions of a list.
"""

from __future__ import annotations

from sqlglot import exp

SETTINGS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "threads": "1",
    "lock_configuration": "true",
}
"""What evaluates an expression reads and writes no file, and holds public values alone."""

_PLAIN: tuple[type[exp.Expr], ...] = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Literal, exp.Boolean, exp.Null, exp.Identifier),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Between, exp.In, exp.Is, exp.Like, exp.ILike, exp.Escape, exp.StartsWith, exp.RegexpLike),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Floor, exp.Ceil),
    *(exp.Round, exp.Sign, exp.Greatest, exp.Least, exp.Coalesce, exp.Nullif, exp.Case, exp.If),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseCount),
    *(exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Lower, exp.Upper, exp.Length, exp.Substring),
    *(exp.Left, exp.Right, exp.Trim, exp.Concat, exp.DPipe, exp.Tuple),
    *(exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek, exp.DayOfWeekIso),
    exp.DayOfYear,
)
"""What means the same in every version, and is a function of its arguments alone."""
_NAMED = ("bit_count", "date_part")
"""Functions of the same kind that the parser may have no class for."""
_TIMES: tuple[type[exp.Expr], ...] = (exp.Extract, exp.DateTrunc, exp.TimestampTrunc, exp.Interval)
_CASTS = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "VARCHAR", "TEXT"),
    *("DATE", "TIMESTAMP"),
)
_KNOWN = (
    "comparisons, BETWEEN, IN, LIKE, CASE, AND, OR, NOT, arithmetic, and functions such as abs, floor, "
    "coalesce, lower, substring"
)


def not_allowed(part: exp.Expr) -> str | None:
    """Return what to write in place of one node of an expression; None if it is allowed."""
    parent = part.parent
    if isinstance(part, exp.Cast):
        named = part.to.this.name.removesuffix("NTZ") in _CASTS and not part.to.expressions
        return None if named else f"a cast to one of {', '.join(_CASTS)}"
    plain = (
        isinstance(part, (*_PLAIN, *_TIMES, exp.Column))
        or (isinstance(part, exp.Anonymous) and part.name.lower() in _NAMED)
        or (isinstance(part, exp.DataType) and isinstance(parent, exp.Cast))
        or (isinstance(part, exp.Var) and isinstance(parent, _TIMES))
    )
    return None if plain else _KNOWN
