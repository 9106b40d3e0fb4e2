"""Scalar expressions of a statement, checked and put over columns that stand for attributes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import final

from sqlglot import exp

from matrixdp.statements.allowed import check
from matrixdp.statements.comparisons import over_columns
from matrixdp.statements.scope import Scope
from matrixdp.statements.trees import unwrapped

__all__ = ["Scalar", "scalar"]


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


def scalar(scope: Scope, node: exp.Expr, *, key: bool = False) -> Scalar:
    """Return an expression, checked and put over the columns of the domain.

    Parameters
    ----------
    scope : Scope
    node : expression
    key : bool
        Whether it is grouped by; then an attribute alone stands for its values, whatever they are.

    Raises
    ------
    EntryError
        If it has a part that is not allowed; at that part.
    """
    for part in node.walk():
        check(scope, part)
    names = {scope.attribute(part).name for part in node.find_all(exp.Column)}
    text = node.sql(dialect="duckdb", comments=False)
    plain = unwrapped(node)
    if key and isinstance(plain, exp.Column) and scope.named(plain)[1] is None:
        column = scope.attribute(plain).name
        return Scalar(node, f"c{scope.domain.index(column)}", (column,), text, column)
    sql = over_columns(scope, node).sql(dialect="duckdb", comments=False)
    return Scalar(node, sql, scope.domain.sort(names), text, None)
