"""Which rows of a result are shown, in which order: HAVING, ORDER BY and LIMIT, after the noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sqlglot import exp

from matrixdp.domain.scalars import not_allowed
from matrixdp.errors import EntryError
from matrixdp.statements.aggregates import is_aggregate
from matrixdp.statements.evaluation import cursor
from matrixdp.statements.query import Statement, sql_of

_MOST = 2**62
_NUMBER = "a whole number of rows, 0 or more"
_KNOWN = "columns of SELECT, what is in GROUP BY, and aggregates"


class ColumnOf(Protocol):
    """From an expression, and whether rows are sorted by it, to the column that it is, or None."""

    def __call__(self, part: exp.Expr, *, sorts: bool) -> exp.Expr | None: ...


@final
@dataclass(frozen=True)
class Choice:
    """What HAVING, ORDER BY and LIMIT say, over columns that stand for those of a result.

    Attributes
    ----------
    condition : str or None
        Which rows are shown.
    order : tuple of str
        What they are sorted by.
    limit, offset : int or None, int
        How many are shown, and how many before them are not.
    noisy : bool
        Whether it depends on estimates.
    """

    condition: str | None
    order: tuple[str, ...]
    limit: int | None
    offset: int
    noisy: bool

    def rows(self, columns: pa.Table) -> NDArray[np.int64]:
        """Return the places of the rows that are shown, in their order; ties keep the order of the domain.

        Raises
        ------
        EntryError
            If a condition has no value.
        """
        text = "SELECT place FROM answers"
        if self.condition is not None:
            text += f" WHERE coalesce(CAST(({self.condition}) AS BOOLEAN), false)"
        text += f" ORDER BY {', '.join((*self.order, 'place'))} OFFSET {self.offset}"
        if self.limit is not None:
            text += f" LIMIT {self.limit}"
        with cursor() as database:
            database.register("answers", columns.append_column("place", pa.array(np.arange(len(columns)))))
            try:
                found: NDArray[np.int64] = database.sql(text).to_arrow_table()["place"].to_numpy()
            except duckdb.Error as error:
                told = str(error).partition("\n")[0]
                expected = f"conditions on the result ({told}); those on attributes stand in WHERE"
                raise EntryError.at(("sql",), "HAVING or ORDER BY", expected) from None
        return found


def chosen(
    statement: Statement,
    column_of: ColumnOf,
    selected: Sequence[exp.Expr],
) -> Choice | None:
    """Return what a statement says of the rows to show; None for nothing.

    Parameters
    ----------
    statement : Statement
    column_of : ColumnOf
    selected : sequence of expression
        The columns of SELECT, for their numbers in ORDER BY.

    Raises
    ------
    EntryError
        If a clause has a part that is not allowed, or is about something else than the result.
    """
    tree = statement.tree
    clauses = [tree.args.get(name) for name in ("having", "order", "limit", "offset")]
    if not any(clauses):
        return None
    having, order, limit, offset = clauses
    used: list[exp.Expr] = []

    def put(node: exp.Expr, *, sorts: bool) -> str:
        def column(part: exp.Expr) -> exp.Expr:
            found = column_of(part, sorts=sorts)
            if found is not None:
                used.append(found)
                return found
            if isinstance(part, exp.Column) or is_aggregate(part):
                raise statement.unfit(part, _KNOWN)
            told = not_allowed(part)
            if told is not None:
                raise statement.unfit(part, told)
            return part

        return sql_of(node.copy().transform(column))

    condition = None if having is None else put(having.this, sorts=False)
    sorted_by = []
    for item in [] if order is None else order.expressions:
        node = item.this
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdigit() else 0
            if not 1 <= place <= len(selected):
                raise statement.unfit(node, f"a column of SELECT, from 1 to {len(selected)}")
            node = selected[place - 1]
        way = "DESC" if item.args.get("desc") else "ASC"
        nulls = "FIRST" if item.args.get("nulls_first") else "LAST"
        sorted_by.append(f"{put(node, sorts=True)} {way} NULLS {nulls}")
    several = None if limit is None else _number(statement, limit)
    skipped = 0 if offset is None else _number(statement, offset)
    noisy = any(column.name.startswith("i") for column in used)
    return Choice(condition, tuple(sorted_by), several, skipped, noisy)


def _number(statement: Statement, clause: exp.Expr) -> int:
    """Return the number of LIMIT, FETCH or OFFSET."""
    options = clause.args.get("limit_options")
    node = clause.args.get("count") or clause.expression
    plain = isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()
    if not plain or (options is not None and (options.args.get("percent") or options.args.get("with_ties"))):
        raise statement.unfit(clause, _NUMBER)
    return min(int(node.name), _MOST)
