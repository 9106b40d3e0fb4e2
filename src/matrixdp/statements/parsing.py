"""From a text to the trees of its statements; DuckDB's dialect."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time
from functools import lru_cache
from itertools import groupby
from typing import Any, final

import numpy as np
import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]  # re-exported without a word

from matrixdp.domain import Attribute, Bins, Categorical, Coded, Dates, Domain, Integers, Level
from matrixdp.domain.derived import typed
from matrixdp.domain.rules import number_text
from matrixdp.domain.scalars import not_allowed
from matrixdp.errors import EntryError, MatrixDPError
from matrixdp.forms import describe_value, nearest
from matrixdp.statements.engine import constant
from matrixdp.statements.query import Statement, error_at, sql_of

# Small questions to the trees of expressions.


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Return an expression without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def enclosing(node: exp.Expr) -> exp.Expr | None:
    """Return the parent of an expression, parentheses aside; None for a whole one."""
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


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


# What the names in a statement mean.


@final
@dataclass(frozen=True)
class Scope:
    """The columns that expressions may name: the attributes of a domain, under the name of one table.

    Attributes
    ----------
    statement : Statement
    domain : Domain
    table : str
        What the table is called.
    """

    statement: Statement
    domain: Domain
    table: str

    def named(self, column: exp.Expr) -> tuple[Attribute, Level | None]:
        """Return the attribute that a column names, and which of its levels if it names one of them.

        A name in another case of letters means what it can mean alone.

        Raises
        ------
        EntryError
            If there is none.
        """
        name = column.name
        parts = [part.name for part in column.parts] if isinstance(column, exp.Column) else [name]
        if len(parts) > 2 or (len(parts) == 2 and parts[0].lower() != self.table.lower()):
            expected = f"a column of {self.table!r}, the one table"
            raise self.statement.error(column, repr(".".join(parts)), expected)
        if name not in self.domain:
            names = (*self.domain.names, *self.domain.levels)
            alike = [other for other in names if other.lower() == name.lower()]
            if len(alike) != 1 and name not in names:
                expected = "an attribute of the domain"
                raise self.statement.error(column, repr(name), expected, nearest(name, names))
            name = name if name in names else alike[0]
        if name in self.domain:
            return self.domain[name], None
        attribute = self.domain.levels[name]
        return attribute, attribute.level(name)


def is_spell(attribute: Attribute) -> bool:
    """Return whether the values of an attribute are several days each, one after the other."""
    return isinstance(attribute, Dates) and attribute.by in ("week", "month", "quarter")


# The public values of an attribute as columns of SQL: what is evaluated in place of data.


def column_values(attribute: Attribute) -> pa.Array:
    """Return the column that stands for an attribute: its value at each code, null for missing values.

    Categories are texts, or numbers, booleans or dates where all of them are, or their type says so. Bins
    have no values of their own: nulls. Days are dates; weeks, months and quarters are texts.

    Examples
    --------
    >>> column_values(Categorical("rooms", ("2", "3"))).to_pylist()
    [2, 3]
    >>> column_values(Categorical("smokes", ("yes", "no"))).to_pylist()
    ['yes', 'no']
    """
    count = len(attribute.all_codes) - (attribute.null_code is not None)
    if isinstance(attribute, Bins):
        found = pa.nulls(count, pa.float64())
    elif isinstance(attribute, Categorical):
        found = pa.array(typed(attribute.type, [str(attribute.value(code)) for code in range(count)]))
    elif isinstance(attribute, Dates) and attribute.by == "day":
        days = [date.fromisoformat(str(attribute.value(code))) for code in range(count)]
        found = pa.array(days, pa.date32())
    elif isinstance(attribute, Integers | Coded):
        found = pa.array(np.arange(count) + int(attribute.value(0)))
    else:
        found = pa.array([attribute.value(code) for code in range(count)])
    missing = attribute.size - count
    return pa.concat_arrays([found, pa.nulls(missing, found.type)]) if missing else found


def labels(attribute: Attribute) -> pa.Array:
    """Return the labels of the values as they were written: statements have these, whatever readers see."""
    own = attribute.as_written
    return pa.array([own.label(code) for code in own.all_codes], pa.utf8())


def level_values(level: Level, size: int) -> pa.Array:
    """Return the value of a level that each value of its attribute is in."""
    names: list[str | None] = [None] * size
    for value, codes in level.groups:
        for code in codes:
            names[code] = value
    return pa.array(names, pa.utf8())


def key_values(attribute: Attribute) -> pa.Array:
    """Return the values of a grouping attribute as the result shows them.

    Its values; what they are called for bins, and where the domain has names for values or for missing ones.
    """
    if not named(attribute):
        return column_values(attribute)
    return pa.array([attribute.label(code) for code in attribute.all_codes], pa.utf8())


def named(attribute: Attribute) -> bool:
    """Return whether some values are called by names that they do not have in a table."""
    book = attribute.codebook
    return isinstance(attribute, Bins) or bool(book.labels) or book.null is not None


# Conditions on values that stand for many, such as bins: they are put over codes.
#
# A bin has no value that SQL could compare. Where a comparison has the same answer for all values of a bin,
# it is one of codes; where it has not, it is refused, with the edges that are near.

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
            new = _column(scope, "v", attribute, f"_{attribute.codebook.levels.index(level)}")
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
    """Return the labels in place of an attribute where it is compared with texts, else None."""
    plain = _sides(within)
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


def _sides(node: exp.Expr | None) -> list[exp.Expr]:
    """Return the operands of an equality or inequality, parentheses aside; none for other expressions."""
    sides: list[exp.Expr | None] = []
    if isinstance(node, exp.EQ | exp.NEQ | exp.NullSafeEQ | exp.NullSafeNEQ):
        sides = [node.this, node.expression]
    elif isinstance(node, exp.In):
        sides = [node.this, *node.expressions]
    elif isinstance(node, exp.Case):
        sides = [node.this, *(branch.this for branch in node.args["ifs"])]
    return [unwrapped(side) for side in sides if side is not None]


def _by_code(scope: Scope, bins: Attribute, column: exp.Column, within: exp.Expr | None) -> exp.Expr:
    """Translate a comparison of bins into one of their codes."""
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
        shown = bins.as_written.label(0)
        expected = f"{name!r} compared with one of its values, such as {shown!r}, or the first day of one"
    raise scope.statement.error(column, scope.statement.excerpt(within or column), expected)


def _comparison(
    scope: Scope, attribute: Attribute, kind: type[exp.Expr], other: exp.Expr, within: exp.Expr
) -> exp.Expr:
    """Return the comparison of an attribute with a constant, by codes; no value may lie on both sides.

    ``<=`` is ``<`` of the next number or day; a closed bin ends before the number after its edge.
    """
    after, ends = issubclass(kind, exp.LTE | exp.GT), attribute.ends
    assert ends is not None, "bins and days have ends"
    limit = _constant(scope, attribute, other, after)
    starts, last = ends.low.tolist(), ends.high.tolist()[-1]
    if isinstance(attribute, Bins):
        edges = [*starts, math.nextafter(last, math.inf) if attribute.closed else last]
    else:
        edges = [*map(date.toordinal, starts), last.toordinal() + 1]
    first = len(edges) if limit is None else bisect_left(edges, limit)  # values below the limit as a whole
    if limit is None or (0 < first < len(edges) and edges[first] != limit):
        raise scope.statement.unfit(within, _apart(scope, attribute, kind, other))
    sign = exp.LT if issubclass(kind, exp.LT | exp.LTE) else exp.GTE
    place = exp.Literal.number(min(first, len(starts)))
    return sign(this=_column(scope, "k", attribute), expression=place)


def _constant(scope: Scope, attribute: Attribute, other: exp.Expr, after: bool) -> Any:
    """Return the number or the day's with which an attribute is compared, or the next; None for no day."""
    if isinstance(attribute, Bins):
        number = _number(scope, other)
        return math.nextafter(number, math.inf) if after else number
    plain, ends = unwrapped(other), attribute.ends
    assert ends is not None, "days have ends"
    called = labels(attribute).to_pylist()[: len(ends.low)]  # without null
    if isinstance(plain, exp.Literal) and plain.is_string and plain.name in called:
        day = (ends.high if after else ends.low).tolist()[called.index(plain.name)]
    else:
        moment = constant(sql_of(other), "TIMESTAMP")
        if not isinstance(moment, datetime) or moment.time() != time():
            return None
        day = moment.date()
    return day.toordinal() + after


def _number(scope: Scope, other: exp.Expr) -> float:
    number = constant(sql_of(other), "DOUBLE")
    if not isinstance(number, float) or math.isnan(number):
        raise scope.statement.unfit(other, "a number")
    return number


def _apart(scope: Scope, attribute: Attribute, kind: type[exp.Expr], other: exp.Expr) -> str:
    """Say what to compare an attribute with instead of a constant that cuts one of its values."""
    name = attribute.name
    if not isinstance(attribute, Bins):
        shown = attribute.as_written.label(0)
        return f"{name!r} compared with one of its values, such as {shown!r}, or the day on which one begins"
    edges, number = attribute.edges, _number(scope, other)
    if attribute.closed and number == edges[-1]:
        shown = f"{name} {'<=' if issubclass(kind, exp.LT) else '>='} "
        shown += number_text(edges[-1] if issubclass(kind, exp.LT) else edges[-2])
        return f"`{shown}`: the last bin of {name!r} holds its upper edge, too"
    if number in edges:
        sign = "<" if issubclass(kind, exp.LTE) else ">="
        return f"`{name} {sign} {number_text(number)}`: the bins of {name!r} are [a, b)"
    place = min(max(bisect_left(edges, number), 1), len(edges) - 1)
    near = " or ".join(number_text(edge) for edge in edges[place - 1 : place + 1])
    return f"{name!r} compared with an edge of its bins; near it: {near}"


# Which scalar expressions of a statement are allowed, and the errors about others.

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
        # whether a record has a number at all is a condition on it whole
        if scope.named(part)[0].divided and not isinstance(enclosing(part), exp.Is):
            expected = "another attribute: an amount has no values to compare, only `SUM` and `AVG`"
            raise scope.statement.unfit(part, expected)
        return
    if isinstance(part, exp.Is):
        _check_null(scope, part)
    elif isinstance(part, exp.EQ | exp.NEQ | exp.In | exp.If):
        _check_values(scope, part)
    asks = isinstance(part, exp.In) and (part.args.get("query") or not part.expressions)
    told = _NO_SUBQUERY if asks else not_allowed(part)
    if told is not None:
        told = next((text for kind, text in _INSTEAD if isinstance(part, kind)), told)
        raise scope.statement.unfit(part, told)


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
    raise scope.statement.unfit(part, expected)


def _check_values(scope: Scope, part: exp.Expr) -> None:
    """Check that an attribute is asked to be what it can be: a slip of the pen is no count of 0."""
    sides = _sides(part)
    if isinstance(part, exp.If) and isinstance(part.parent, exp.Case) and part.parent.this is not None:
        sides = [unwrapped(part.parent.this), unwrapped(part.this)]
    columns = [side for side in sides if isinstance(side, exp.Column)]
    if len(columns) != 1:
        return
    attribute, level = scope.named(columns[0])
    if (isinstance(part, exp.NEQ) or isinstance(enclosing(part), exp.Not)) and not is_spell(attribute):
        return  # of what it is not, there may be more; the first day of a month is a slip there too
    kind, values, texts = _values(attribute)
    if level is not None:
        kind, texts = str, frozenset(dict(level.groups))
    for side in sides:
        if not isinstance(side, exp.Literal):
            continue
        text = side.is_string and (kind is str or named(attribute))
        number = not side.is_string and kind in (int, float)
        if (text and side.name not in texts) or (number and number_of(side.name) not in values):
            listed = isinstance(attribute, Categorical) or level is not None
            close = nearest(side.name, texts) if listed else ()
            name, known = attribute.name, attribute.range_label(0, attribute.size - 1)
            if level is not None:
                name, known = level.name, ", ".join(value for value, _ in level.groups)
            known = known if len(known) < 80 else f"{known[:80]}..."
            raise scope.statement.error(side, side.sql(), f"a value of {name!r}: {known}", close)


@lru_cache(maxsize=256)
def _values(attribute: Attribute) -> tuple[type, frozenset[object], frozenset[str]]:
    """Return the type of an attribute's values, the values, and the texts of them and their labels."""
    values = [value for value in column_values(attribute).to_pylist() if value is not None]
    called = labels(attribute).to_pylist() if named(attribute) else []
    kind = type(values[0]) if values else str
    return kind, frozenset(values), frozenset(map(str, [*values, *called]))


def number_of(text: str) -> float:
    """Return the number that a literal is; nan where it is none."""
    try:
        return float(text)
    except ValueError:  # what the parser takes for a number and nobody else does is no value
        return math.nan


# Scalar expressions of a statement, checked and put over columns that stand for attributes.


@final
@dataclass(frozen=True)
class Scalar:
    """An expression over the columns of the domain; see `over_columns`.

    Attributes
    ----------
    node : expression
        As written.
    sql : str
        What DuckDB evaluates.
    names : tuple of str
        The attributes in it, in domain order.
    """

    node: exp.Expr
    sql: str
    names: tuple[str, ...]


def scalar(scope: Scope, node: exp.Expr) -> Scalar:
    """Return an expression, checked and put over the columns of the domain.

    Raises
    ------
    EntryError
        If it has a part that is not allowed; at that part.
    """
    for part in node.walk():
        check(scope, part)
    names = {scope.named(part)[0].name for part in node.find_all(exp.Column)}
    return Scalar(node, sql_of(over_columns(scope, node)), scope.domain.sort(names))


DIALECT = "duckdb"


class _WithTop(DuckDB):
    """DuckDB's dialect, and SELECT TOP n as SQL Server has it."""

    class Tokenizer(DuckDB.Tokenizer):
        KEYWORDS = DuckDB.Tokenizer.KEYWORDS | {"TOP": TokenType.TOP}


_LONGEST = 5_000_000
_EXPECTED = "SQL that DuckDB can read: SELECT ..., COUNT(*) FROM table WHERE ... GROUP BY ..."
_STARTS = (TokenType.SELECT, TokenType.FROM, TokenType.L_PAREN, TokenType.WITH)


def parsed(text: str) -> list[tuple[int, int, exp.Select]]:
    """Return the first and the last place, exclusive, and the tree of each statement of a text."""
    if not isinstance(text, str):
        raise EntryError.at(("sql",), describe_value(text), _EXPECTED)
    if len(text) > _LONGEST:
        raise EntryError.at(("sql",), f"a text of {len(text):,} characters", f"at most {_LONGEST:,}")
    try:
        spans = list(_spans(text, sqlglot.tokenize(text, dialect=DIALECT)))
        if not spans:
            raise EntryError.at(("sql",), "no statement", _EXPECTED)
        try:
            parts = sqlglot.parse(text, dialect=DIALECT)
        except ParseError:
            if "top" not in text.lower():
                raise
            parts = sqlglot.parse(text, dialect=_WithTop)
        trees = [part for part in parts if part is not None and not isinstance(part, exp.Semicolon)]
    except TokenError:
        raise EntryError.at(("sql",), "a quote or a comment that is not closed", _EXPECTED) from None
    except ParseError as error:
        raise _unparsed(text, error) from None
    except RecursionError:
        raise EntryError.at(("sql",), "expressions nested too deeply", "a flatter statement") from None
    made = []
    for (first, last), tree in zip(spans, trees, strict=True):
        if not isinstance(tree, exp.Select):
            what = "UNION" if isinstance(tree, exp.SetOperation) else "what is no SELECT"
            expected = "one SELECT; several statements stand one after the other, each closed by a semicolon"
            raise error_at(text, first, what, expected)
        made.append((first, last, tree))
    return made


def _spans(text: str, tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """Yield where the statements stand."""
    for ends, part in groupby(tokens, lambda token: token.token_type is TokenType.SEMICOLON):
        if ends:
            continue
        listed = list(part)
        if listed[0].token_type not in _STARTS:
            raise error_at(text, listed[0].start, repr(listed[0].text), _EXPECTED)
        yield listed[0].start, listed[-1].end + 1


def _unparsed(text: str, error: ParseError) -> MatrixDPError:
    """Return the error of a text that is no SQL, at the first place where it is none."""
    told = error.errors[0] if error.errors else {}
    word = str(told.get("highlight") or "")
    lines = text.split("\n")
    line = min(int(told.get("line") or 1), len(lines))
    column = max(int(told.get("col") or 1) - len(word), 0)
    start = sum(len(row) + 1 for row in lines[: line - 1]) + column
    return error_at(text, min(start, len(text)), repr(word) if word else "what is no SQL", _EXPECTED)
