"""Which rows of a result are shown, in which order: HAVING, ORDER BY and LIMIT, after the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from matrixdp.domain import Bins
from matrixdp.domain.scalars import not_allowed
from matrixdp.errors import EntryError
from matrixdp.statements.aggregates import is_aggregate
from matrixdp.statements.clauses import Groups, Item, numbered
from matrixdp.statements.engine import cursor
from matrixdp.statements.parsing import Scope, unwrapped
from matrixdp.statements.query import Statement, sql_of

_MOST = 2**62
_NUMBER = "a whole number of rows, 0 or more"
_KNOWN = "columns of SELECT, what is in GROUP BY, and aggregates"


@final
@dataclass(frozen=True)
class Choice:
    """What HAVING, ORDER BY and LIMIT say.

    Attributes
    ----------
    sql : str
        A statement of the places of rows, over columns that stand for those of a result.
    noisy : bool
        Whether it depends on estimates.
    """

    sql: str
    noisy: bool

    def rows(self, columns: pa.Table) -> NDArray[np.int64]:
        """Return the places of the rows that are shown, in their order; ties keep the order of the domain.

        Raises
        ------
        EntryError
            If a condition has no value.
        """
        with cursor() as database:
            database.register("answers", columns.append_column("place", pa.array(np.arange(len(columns)))))
            try:
                found: NDArray[np.int64] = database.sql(self.sql).to_arrow_table()["place"].to_numpy()
            except duckdb.Error as error:
                told = str(error).partition("\n")[0]
                expected = f"conditions on the result ({told}); those on attributes stand in WHERE"
                raise EntryError.at(("sql",), "HAVING or ORDER BY", expected) from None
        return found


def chosen(
    clauses: Groups, scope: Scope, keys: Sequence[exp.Expr], aggregates: Sequence[Item]
) -> Choice | None:
    """Return the choice of rows that a statement makes; None if it makes none.

    In the statement that is made of it the columns ``gi`` and ``ri`` have the values and the ranks of key i,
    and ``ii`` the estimates of aggregate i.

    Parameters
    ----------
    clauses : Groups
    scope : Scope
    keys : sequence of expression
    aggregates : sequence of Item

    Raises
    ------
    EntryError
        If a clause has a part that is not allowed, or is about something else than the result.
    """
    statement, text = clauses.statement, clauses.text
    parts = [statement.tree.args.get(name) for name in ("having", "order", "limit", "offset")]
    if not any(parts):
        return None
    having, order, limit, offset = parts
    shown = [item for item in clauses.items if item.shown]
    named = {item.name.lower(): item.node for item in reversed(shown) if item.constant is None}
    places = {text(key): place for place, key in enumerate(keys)}
    items = {sql_of(unwrapped(item.node)): place for place, item in reversed([*enumerate(aggregates)])}
    noisy = False

    def put(part: exp.Expr, sorts: bool) -> exp.Expr:
        nonlocal noisy
        meant = named.get(part.name.lower()) if isinstance(part, exp.Column) and not part.table else None
        meant = part if meant is None or (text(part) in places and not sorts) else meant
        key, item = places.get(text(meant)), items.get(sql_of(unwrapped(meant)))
        if key is not None:
            plain = unwrapped(keys[key])
            bins = isinstance(plain, exp.Column) and isinstance(scope.named(plain)[0], Bins)
            return exp.column(f"{'r' if sorts and bins else 'g'}{key}")
        if item is not None:
            noisy = True
            return exp.column(f"i{item}")
        told = _KNOWN if isinstance(part, exp.Column) or is_aggregate(part) else not_allowed(part)
        if told is not None:
            raise statement.unfit(part, told)
        return part

    made = exp.select("place").from_("answers")
    if having is not None:
        made = made.where(exp.cast(having.this.copy().transform(put, sorts=False), "BOOLEAN"))
    for one in [] if order is None else order.expressions:
        place = numbered(statement, one.this, len(shown), "a column of SELECT,")
        node = one.this if place is None else shown[place].node
        ordered = one.copy()
        ordered.set("this", node.copy().transform(put, sorts=True))
        made = made.order_by(ordered)
    made = made.order_by("place")
    if limit is not None:
        made = made.limit(_number(statement, limit))
    if offset is not None:
        made = made.offset(_number(statement, offset))
    return Choice(sql_of(made), noisy)


def _number(statement: Statement, clause: exp.Expr) -> int:
    """Return the number of LIMIT, FETCH or OFFSET."""
    options = clause.args.get("limit_options")
    node = clause.args.get("count") or clause.expression
    plain = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    if not plain or (options is not None and (options.args.get("percent") or options.args.get("with_ties"))):
        raise statement.unfit(clause, _NUMBER)
    return min(int(node.name), _MOST)
