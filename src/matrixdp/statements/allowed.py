"""Which scalar expressions of a statement are let through, and what is told of the others."""

from __future__ import annotations

import math
from functools import lru_cache

from sqlglot import exp

from matrixdp.domain import Attribute, Categorical
from matrixdp.domain.scalars import not_allowed
from matrixdp.forms import nearest
from matrixdp.statements.columns import column_values, labels, named
from matrixdp.statements.scope import Scope
from matrixdp.statements.spells import is_spell
from matrixdp.statements.trees import enclosing, unwrapped

__all__ = ["check"]

_NO_SUBQUERY = "a list of values; there are no subqueries: `state IN ('NY', 'NJ')`"
_INSTEAD: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Exists, "a condition on the attributes of the record; there are no subqueries"),
    (exp.Subquery, _NO_SUBQUERY),
    (exp.Query, _NO_SUBQUERY),
    (exp.Window, "no window; ask for the counts and compute from the answers"),
    (exp.AggFunc, "a condition on the attributes of one record; counts stand in SELECT alone"),
)


def check(scope: Scope, part: exp.Expr) -> None:
    """Check one node of an expression.

    Raises
    ------
    EntryError
        If it is not allowed, or asks for a value that its attribute does not have.
    """
    if isinstance(part, exp.Column):
        scope.attribute(part)
        return
    told = None
    if isinstance(part, exp.In) and (part.args.get("query") or not part.expressions):
        told = _NO_SUBQUERY
    elif isinstance(part, exp.Is):
        _check_null(scope, part)
    elif isinstance(part, exp.EQ | exp.NEQ | exp.In | exp.If):
        _check_values(scope, part)
    if told is None and (told := not_allowed(part)) is None:
        return
    told = next((text for kind, text in _INSTEAD if isinstance(part, kind)), told)
    raise scope.statement.error(part, scope.statement.excerpt(part), told)


def _check_null(scope: Scope, part: exp.Is) -> None:
    """Check that what is asked to be NULL can be: records without a value are out of domain."""
    column = unwrapped(part.this)
    if not isinstance(part.expression, exp.Null) or not isinstance(column, exp.Column):
        return
    attribute, level = scope.named(column)
    if isinstance(enclosing(part), exp.Not) or (attribute.null_code is not None and level is None):
        return
    name = attribute.name
    expected = f"`null: unknown` for {name!r} in the domain; records without a value are out of domain"
    raise scope.statement.error(part, scope.statement.excerpt(part), expected)


def _check_values(scope: Scope, part: exp.Expr) -> None:
    """Check that an attribute is asked to be what it can be: a slip of the pen is no count of 0."""
    if isinstance(part, exp.EQ | exp.NEQ):
        sides = (part.this, part.expression)
    elif isinstance(part, exp.In):
        sides = (part.this, *part.expressions)
    elif isinstance(part.parent, exp.Case) and part.parent.this is not None:
        sides = (part.parent.this, part.this)
    else:
        return
    columns = [side for side in map(unwrapped, sides) if isinstance(side, exp.Column)]
    if len(columns) != 1:
        return
    attribute, level = scope.named(columns[0])
    if (isinstance(part, exp.NEQ) or isinstance(enclosing(part), exp.Not)) and not is_spell(attribute):
        return  # of what it is not, there may be more; the first day of a month is a slip there too
    kind, values, texts = _values(attribute)
    if level is not None:
        kind, texts = str, frozenset(dict(level.groups))
    for side in map(unwrapped, sides):
        if not isinstance(side, exp.Literal):
            continue
        text = side.is_string and (
            kind is str or attribute.codebook.labels or attribute.null_code is not None
        )
        number = not side.is_string and kind in (int, float)
        if (text and side.name not in texts) or (number and _number(side.name) not in values):
            listed = isinstance(attribute, Categorical) or level is not None
            close = nearest(side.name, texts) if listed else ()
            name, all_values = attribute.name, attribute.range_label(0, attribute.size - 1)
            if level is not None:
                name, all_values = level.name, ", ".join(value for value, _ in level.groups)
            expected = (
                f"a value of {name!r}: {all_values if len(all_values) < 80 else all_values[:80] + '...'}"
            )
            raise scope.statement.error(side, side.sql(), expected, close)


@lru_cache(maxsize=256)
def _values(attribute: Attribute) -> tuple[type, frozenset[object], frozenset[str]]:
    """Return the type of an attribute's values, the values, and the texts of them and their labels."""
    values = [value for value in column_values(attribute).to_pylist() if value is not None]
    called = labels(attribute).to_pylist() if named(attribute) else []
    kind = type(values[0]) if values else str
    return kind, frozenset(values), frozenset(map(str, [*values, *called]))


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # what the parser takes for a number and nobody else does is no value
        return math.nan
