"""Conditions on values that stand for many, such as bins: they are put over codes.

A bin has no value that SQL could compare. Where a comparison has the same answer for all values of a bin, it
is one of codes; where it has not, it is refused, with the edges that are near.
"""

from __future__ import annotations

from bisect import bisect_left

from sqlglot import exp

from matrixdp.domain import Attribute, Bins
from matrixdp.domain.canonical import number_text
from matrixdp.errors import EntryError
from matrixdp.statements.columns import column_values, labels, named
from matrixdp.statements.scope import Scope
from matrixdp.statements.spells import is_spell, place_of_day
from matrixdp.statements.trees import enclosing, unwrapped

__all__ = ["over_columns"]

_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_ORDERED = (*_COMPARISONS, exp.Between)
_MIRRORED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}


def over_columns(scope: Scope, node: exp.Expr) -> exp.Expr:
    """Return an expression over the columns that stand for attributes.

    That of place i in the domain has its values in the column ``ci``, its codes in ``ki`` and what they are
    called in ``li``, and those of its level j in ``vi_j``.

    Raises
    ------
    EntryError
        If a comparison has not one answer for each value of its attribute.
    """
    made = node.copy()
    stands: list[tuple[exp.Expr, exp.Expr]] = []  # put in at the end: errors quote what was written
    for part in list(made.find_all(exp.Column)):
        (attribute, level), within = scope.named(part), enclosing(part)
        old: exp.Expr = part
        new: exp.Expr = _column(scope, "c", attribute)
        called = _called(scope, attribute, part, within) if named(attribute) and level is None else None
        if level is not None:
            new = exp.column(
                f"v{scope.domain.index(attribute.name)}_{attribute.codebook.levels.index(level)}"
            )
        elif called is not None:
            new = called
        elif isinstance(attribute, Bins) and isinstance(within, exp.Is):
            new = _column(scope, "k", attribute)
        elif isinstance(attribute, Bins) or (is_spell(attribute) and isinstance(within, _ORDERED)):
            old = part if within is None else within
            new = _by_code(scope, attribute, part, within)
        stands.append((old, new))
    for old, new in stands:
        if old is made:
            return new
        old.replace(new)
    return made


def _column(scope: Scope, kind: str, attribute: Attribute, more: str = "") -> exp.Column:
    return exp.column(f"{kind}{scope.domain.index(attribute.name)}{more}")


def _called(scope: Scope, attribute: Attribute, column: exp.Expr, within: exp.Expr | None) -> exp.Expr | None:
    """Return what stands for an attribute that is asked for what its values are called, else None."""
    if isinstance(within, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ):
        sides = [within.this, within.expression]
    elif isinstance(within, exp.In):
        sides = [within.this, *within.expressions]
    elif isinstance(within, exp.Case):
        sides = [within.this, *(branch.this for branch in within.args["ifs"])]
    else:
        return None
    plain = [unwrapped(side) for side in sides if side is not None]
    others = [side for side in plain if side is not column]
    texts = {side.name for side in others if isinstance(side, exp.Literal) and side.is_string}
    if len(others) == len(plain) or len(texts) < len({side.sql() for side in others}):
        return None
    if texts <= set(column_values(attribute).to_pylist()) or not texts <= set(labels(attribute).to_pylist()):
        return None
    found, null = _column(scope, "l", attribute), attribute.codebook.null
    if null is None or null in texts:
        return found
    return exp.Nullif(this=found, expression=exp.Literal.string(null))  # NULL is not another value


def _by_code(scope: Scope, bins: Attribute, column: exp.Column, within: exp.Expr | None) -> exp.Expr:
    """Return what a comparison of bins asks of their codes."""
    name = bins.name
    between = within if isinstance(within, exp.Between) and not within.args.get("symmetric") else None
    if between is not None and unwrapped(between.this) is column:
        low = _comparison(scope, bins, exp.GTE, between.args["low"], between)
        high = _comparison(scope, bins, exp.LTE, between.args["high"], between)
        return exp.paren(exp.and_(low, high))
    if isinstance(within, _COMPARISONS):
        left = unwrapped(within.this) is column
        other = within.expression if left else within.this
        if other.find(exp.Column) is None:
            kind = type(within) if left else _MIRRORED[type(within)]
            return exp.paren(_comparison(scope, bins, kind, other, within))
    if isinstance(bins, Bins):
        finite = [number_text(edge) for edge in bins.edges if abs(edge) != float("inf")]
        shown = " AND ".join(f"{name} {sign} {edge}" for sign, edge in zip((">=", "<"), finite, strict=False))
        expected = f"{name!r}, which has bins, compared with its edges, `{shown}`, or `GROUP BY {name}`"
    else:
        shown = bins.label(0)
        expected = (
            f"{name!r} compared with one of its values, such as {shown!r}, or with the first day of one"
        )
    raise scope.statement.error(column, scope.statement.excerpt(within or column), expected)


def _comparison(
    scope: Scope, attribute: Attribute, kind: type[exp.Expr], other: exp.Expr, within: exp.Expr
) -> exp.Expr:
    """Return the comparison of an attribute with a constant, by codes."""
    if isinstance(attribute, Bins):
        first = _place(scope, attribute, kind, other, within)
    else:
        first = place_of_day(scope, attribute, kind, other, within)
    sign = exp.LT if issubclass(kind, exp.LT | exp.LTE) else exp.GTE
    return sign(this=_column(scope, "k", attribute), expression=exp.Literal.number(first))


def _place(scope: Scope, bins: Bins, kind: type[exp.Expr], other: exp.Expr, within: exp.Expr) -> int:
    """Return how many bins are below a number; no bin may hold values of both answers."""
    number = scope.constant(other.sql(dialect="duckdb", comments=False), "DOUBLE")
    if not isinstance(number, float) or number != number:
        raise scope.statement.error(other, scope.statement.excerpt(other), "a number")
    edges, count = bins.edges, len(bins.edges) - 1
    first = bisect_left(edges, number)  # bins of a lower code are below the number as a whole
    closed_end = bins.closed and number == edges[-1]
    exact = first > count or number < edges[0]
    if issubclass(kind, exp.LT | exp.GTE):
        exact = exact or (edges[min(first, count)] == number and not closed_end)
    else:
        exact = exact or number == edges[-1]
    if not exact:
        raise _between_edges(scope, bins, kind, number, within)
    return min(first, count)


def _between_edges(
    scope: Scope, bins: Bins, kind: type[exp.Expr], number: float, within: exp.Expr
) -> EntryError:
    """Return the error of a number that cuts a bin."""
    name, edges = bins.name, bins.edges
    if bins.closed and number == edges[-1]:
        shown = f"{name} {'<=' if issubclass(kind, exp.LT) else '>='} "
        shown += number_text(edges[-1] if issubclass(kind, exp.LT) else edges[-2])
        expected = f"`{shown}`: the last bin of {name!r} holds its upper edge, too"
    elif number in edges:
        sign = "<" if issubclass(kind, exp.LTE) else ">="
        expected = f"`{name} {sign} {number_text(number)}`: the bins of {name!r} are [a, b)"
    else:
        place = min(max(bisect_left(edges, number), 1), len(edges) - 1)
        near = " or ".join(number_text(edge) for edge in edges[place - 1 : place + 1])
        expected = f"{name!r} compared with an edge of its bins; near it: {near}"
    return scope.statement.error(within, scope.statement.excerpt(within), expected)
