"""Scalar expressions of a statement, checked and put over columns that stand for attributes.

Only what has one value for each cell, on every machine and every day, is let through: operators and functions
of a list. DuckDB evaluates them, over the values of the domain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import final

from sqlglot import exp

from matrixdp.domain import Attribute, Bins, Categorical, Domain
from matrixdp.domain.canonical import number_text
from matrixdp.errors import EntryError
from matrixdp.forms import nearest
from matrixdp.statements.columns import column_values
from matrixdp.statements.written import Written

__all__ = ["Scalar", "Scope", "conjuncts", "unwrapped"]

_PLAIN: tuple[type[exp.Expr], ...] = (
    *(exp.And, exp.Or, exp.Not, exp.Paren, exp.Literal, exp.Boolean, exp.Null, exp.Identifier),
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is),
    *(exp.Between, exp.In, exp.Like, exp.ILike, exp.Escape, exp.StartsWith, exp.RegexpLike),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Floor, exp.Ceil),
    *(exp.Round, exp.Sign, exp.Greatest, exp.Least, exp.Coalesce, exp.Nullif, exp.Case, exp.If),
    *(exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.BitwiseCount),
    *(exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.Lower, exp.Upper, exp.Length, exp.Substring),
    *(exp.Left, exp.Right, exp.Trim, exp.Concat, exp.DPipe, exp.Tuple),
    *(exp.Year, exp.Quarter, exp.Month, exp.Week, exp.Day, exp.DayOfWeek, exp.DayOfYear),
)
"""What means the same in every version, and is a function of its arguments alone."""
_NAMED = ("bit_count", "date_part", "isodow")
"""Functions of the same kind that the parser has no class for."""
_TIMES: tuple[type[exp.Expr], ...] = (exp.Extract, exp.DateTrunc, exp.TimestampTrunc, exp.Interval)
_CASTS = {
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "VARCHAR",
    "TEXT",
    "DATE",
    "TIMESTAMP",
}
_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_MIRRORED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE}
_INSTEAD: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Subquery, "a list of values; there are no subqueries: `state IN ('NY', 'NJ')`"),
    (exp.Query, "a list of values; there are no subqueries: `state IN ('NY', 'NJ')`"),
    (exp.Exists, "a condition on the attributes of the record; there are no subqueries"),
    (exp.Window, "no window; ask for the counts and compute from the answers"),
    (exp.AggFunc, "a condition on the attributes of one record; counts stand in SELECT alone"),
)


@final
@dataclass(frozen=True)
class Scalar:
    """An expression over the columns ``c0``, ``c1``, ... of the domain.

    Attributes
    ----------
    node : expression
        As written.
    sql : str
        What DuckDB evaluates.
    names : tuple of str
        The attributes in it, in domain order.
    text : str
        As written, for names.
    column : str or None
        The attribute that it is, where it is nothing else.
    """

    node: exp.Expr = field(compare=False)
    sql: str
    names: tuple[str, ...]
    text: str = field(compare=False)
    column: str | None


@final
@dataclass(frozen=True)
class Scope:
    """The columns that expressions may name: the attributes of a domain, under the name of one table.

    Attributes
    ----------
    statement : Written
    domain : Domain
    tables : tuple of str
        What the table may be called.
    constant : callable
        From an SQL expression without attributes to its value as a number; None where it has none.
    """

    statement: Written
    domain: Domain
    tables: tuple[str, ...]
    constant: Callable[[str], float | None]

    def attribute(self, column: exp.Expr) -> Attribute:
        """Return the attribute that a column names; in another case of letters where only one is meant."""
        name, parts = (
            column.name,
            [part.name for part in column.parts] if isinstance(column, exp.Column) else [],
        )
        if len(parts) > 1 and (len(parts) > 2 or not _same(parts[0], self.tables)):
            expected = f"a column of {self.tables[-1]!r}, the one table"
            raise self.statement.error(column, repr(".".join(parts)), expected)
        if name in self.domain:
            return self.domain[name]
        alike = _same(name, self.domain.names)
        if len(alike) == 1:
            return self.domain[alike[0]]
        raise self.statement.error(
            column, repr(name), "an attribute of the domain", nearest(name, self.domain.names)
        )

    def scalar(self, node: exp.Expr) -> Scalar:
        """Return an expression, checked and put over the columns of the domain.

        Raises
        ------
        EntryError
            If it has a part that is not allowed; at that part.
        """
        for part in node.walk():
            self._check(part)
        plain = unwrapped(node)
        column = self.attribute(plain).name if isinstance(plain, exp.Column) else None
        names = {self.attribute(part).name for part in node.find_all(exp.Column)}
        text = node.sql(dialect="duckdb", comments=False)
        made = self._over_codes(node.copy(), alone=column is not None)
        for part in list(made.find_all(exp.Column)):
            place = self.domain.index(self.attribute(part).name)
            replacement = exp.column(f"c{place}")
            made = replacement if part is made else made
            part.replace(replacement)
        sql = made.sql(dialect="duckdb", comments=False)
        return Scalar(node, sql, self.domain.sort(names), text, column)

    def _check(self, part: exp.Expr) -> None:
        """Check one node of an expression."""
        parent = part.parent
        if isinstance(part, exp.Column):
            self.attribute(part)
            return
        if isinstance(part, exp.In) and (part.args.get("query") or not part.expressions):
            expected = "a list of values; there are no subqueries: `state IN ('NY', 'NJ')`"
            raise self.statement.error(part, self.statement.excerpt(part), expected)
        if isinstance(part, exp.Is):
            self._check_null(part)
        if isinstance(part, exp.EQ | exp.In | exp.If):
            self._check_values(part)
        if isinstance(part, (*_PLAIN, *_TIMES)):
            return
        if isinstance(part, exp.Anonymous) and part.name.lower() in _NAMED:
            return
        if isinstance(part, exp.Cast):
            if part.to.this.name in _CASTS and not part.to.expressions:
                return
            expected = f"a cast to one of {', '.join(sorted(_CASTS))}"
            raise self.statement.error(part, self.statement.excerpt(part), expected)
        if isinstance(part, exp.DataType) and isinstance(parent, exp.Cast):
            return
        if isinstance(part, exp.Var) and isinstance(parent, _TIMES):
            return
        instead = next((text for kind, text in _INSTEAD if isinstance(part, kind)), None)
        expected = instead or (
            "comparisons, BETWEEN, IN, LIKE, CASE, AND, OR, NOT, arithmetic, and functions such as abs, "
            "floor, coalesce, lower, substring"
        )
        raise self.statement.error(part, self.statement.excerpt(part), expected)

    def _check_null(self, part: exp.Is) -> None:
        """Check that what is asked to be NULL can be: records without a value are out of domain."""
        column = unwrapped(part.this)
        if not isinstance(part.expression, exp.Null) or not isinstance(column, exp.Column):
            return
        attribute = self.attribute(column)
        if isinstance(part.parent, exp.Not) or column_values(attribute).null_count:
            return
        expected = (
            f"no question for records without {attribute.name!r}: they are out of domain, unless a value of "
            "the domain stands for NULL"
        )
        raise self.statement.error(part, self.statement.excerpt(part), expected)

    def _check_values(self, part: exp.Expr) -> None:
        """Check that an attribute is asked to be what it can be: a slip of the pen is no count of 0."""
        if isinstance(part, exp.EQ):
            sides = (part.this, part.expression)
        elif isinstance(part, exp.In):
            sides = (part.this, *part.expressions)
        else:
            case = part.parent if isinstance(part.parent, exp.Case) else None
            if case is None or case.this is None:
                return
            sides = (case.this, part.this)
        columns = [side for side in map(unwrapped, sides) if isinstance(side, exp.Column)]
        if len(columns) != 1 or _denied(part):
            return
        attribute = self.attribute(columns[0])
        if isinstance(attribute, Bins):
            return
        texts, values = _values(attribute)
        for side in map(unwrapped, sides):
            if not isinstance(side, exp.Literal) or side.is_string != texts:
                continue
            if (side.name if texts else _number(side.name)) not in values:
                close = nearest(side.name, map(str, values)) if isinstance(attribute, Categorical) else ()
                expected = f"a value of {attribute.name!r}: {attribute.range_label(0, attribute.size - 1)}"
                raise self.statement.error(side, side.sql(), expected, close)

    def _over_codes(self, node: exp.Expr, *, alone: bool) -> exp.Expr:
        """Return an expression in which bins are compared by codes; `alone` if it is a column itself."""
        for part in list(node.find_all(exp.Column)):
            attribute = self.attribute(part)
            if not isinstance(attribute, Bins) or alone:
                continue
            within = part.parent
            while isinstance(within, exp.Paren):
                within = within.parent
            if isinstance(within, exp.Is):
                continue
            replacement = self._by_code(attribute, part, within)
            if within is node:
                node = replacement
            elif within is not None:
                within.replace(replacement)
        return node

    def _by_code(self, bins: Bins, column: exp.Column, within: exp.Expr | None) -> exp.Expr:
        """Return what a comparison of bins asks of their codes."""
        name = bins.name
        between = within if isinstance(within, exp.Between) and not within.args.get("symmetric") else None
        if between is not None and unwrapped(between.this) is column:
            low = self._comparison(bins, exp.GTE, between.args["low"], between)
            high = self._comparison(bins, exp.LTE, between.args["high"], between)
            return exp.paren(exp.and_(low, high))
        if isinstance(within, _COMPARISONS):
            left = unwrapped(within.this) is column
            other = within.expression if left else within.this
            if other.find(exp.Column) is None:
                kind = type(within) if left else _MIRRORED[type(within)]
                return exp.paren(self._comparison(bins, kind, other, within))
        first, second = number_text(bins.edges[0]), number_text(bins.edges[1])
        expected = (
            f"{name!r}, which has bins, compared with its edges, `{name} >= {first} AND {name} < {second}`, "
            f"or `GROUP BY {name}`"
        )
        place = column if within is None else within
        raise self.statement.error(column, self.statement.excerpt(place), expected)

    def _comparison(self, bins: Bins, kind: type[exp.Expr], other: exp.Expr, within: exp.Expr) -> exp.Expr:
        """Return the comparison of bins with a number, by codes; no bin may hold values of both answers."""
        number = self.constant(other.sql(dialect="duckdb", comments=False))
        edges, code = bins.edges, exp.column(bins.name)
        if number is None:
            raise self.statement.error(other, self.statement.excerpt(other), "a number")
        first = bisect_left(edges, number)  # bins of a lower code are below the number as a whole
        strict = issubclass(kind, exp.LT | exp.GTE)
        closed_end = bins.closed and number == edges[-1]
        exact = first > bins.size or number < edges[0]
        if strict:
            exact = exact or (edges[min(first, bins.size)] == number and not closed_end)
        else:
            exact = exact or closed_end or number == edges[-1]
        if not exact:
            raise self._between_edges(bins, kind, number, within)
        bound = exp.Literal.number(min(first, bins.size))
        return (exp.LT if issubclass(kind, exp.LT | exp.LTE) else exp.GTE)(this=code, expression=bound)

    def _between_edges(self, bins: Bins, kind: type[exp.Expr], number: float, within: exp.Expr) -> EntryError:
        """Return the error of a number that cuts a bin."""
        name, edges = bins.name, bins.edges
        if number in edges and not (bins.closed and number == edges[-1]):
            sign = "<" if issubclass(kind, exp.LTE) else ">="
            expected = f"`{name} {sign} {number_text(number)}`: the bins of {name!r} are [a, b)"
        else:
            place = min(max(bisect_left(edges, number), 1), bins.size)
            near = " or ".join(number_text(edge) for edge in edges[place - 1 : place + 1])
            expected = f"{name!r} compared with an edge of its bins; near it: {near}"
        return self.statement.error(within, self.statement.excerpt(within), expected)


def _same(name: str, names: tuple[str, ...]) -> list[str]:
    return [other for other in names if other.lower() == name.lower()]


@lru_cache(maxsize=256)
def _values(attribute: Attribute) -> tuple[bool, frozenset[object]]:
    """Return whether an attribute's values are texts, and the values that a literal can be."""
    values = frozenset(column_values(attribute).to_pylist())
    return any(isinstance(value, str) for value in values), values


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:  # an integer written with underscores, or to another base
        return float(int(text, 0))


def _denied(node: exp.Expr) -> bool:
    """Return whether a condition stands directly under NOT."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Not)


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Return an expression without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that must all hold for a condition to hold, in their order."""
    found: list[exp.Expr] = []
    rest = [node]
    while rest:
        part = unwrapped(rest.pop())
        inner = unwrapped(part.this) if isinstance(part, exp.Not) else None
        if isinstance(part, exp.And):
            rest += [part.expression, part.this]
        elif isinstance(inner, exp.Not):
            rest.append(inner.this)
        elif isinstance(inner, exp.Or):
            rest += [exp.Not(this=exp.paren(side.copy())) for side in (inner.expression, inner.this)]
        else:
            found.append(part)
    return found
