"""From the clauses of a statement to query groups and the shape of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from matrixdp.domain import Bins, Domain
from matrixdp.errors import EntryError, TooLargeError
from matrixdp.queries import Group
from matrixdp.statements.clauses import Clauses, Item, clauses, statistic, table_names
from matrixdp.statements.evaluation import Evaluation, evaluation
from matrixdp.statements.layout import Condition, GroupedBy, Layout, layout
from matrixdp.statements.query import Block, Column, SqlQuery
from matrixdp.statements.scalars import scalar
from matrixdp.statements.scope import Scope
from matrixdp.statements.trees import conjuncts, unwrapped
from matrixdp.statements.written import Written

__all__ = ["translate"]


def translate(statement: Written, domain: Domain) -> SqlQuery:
    """Return what a statement asks of a domain; see `Statement.query`."""
    tables = table_names(statement)
    parts = clauses(statement, (*domain.names, *domain.levels))
    values = evaluation(domain)
    return _Translation(statement, Scope(statement, domain, tables, values.constant), values, parts).query()


@final
@dataclass(frozen=True)
class _Translation:
    statement: Written
    scope: Scope
    values: Evaluation
    parts: Clauses

    def query(self) -> SqlQuery:
        """Return the groups of every grouping set and aggregate, and the columns of the result."""
        where = [] if self.parts.where is None else self._conditions(self.parts.where)
        counted = [item for item in self.parts.items if item.aggregate]
        filters = [self._counted(item.node) for item in counted]
        keys = [self._key(place, node) for place, node in enumerate(self.parts.keys)]
        groups: list[Group] = []
        aliases: list[str | None] = []
        blocks, group_of = [], []
        for chosen in self.parts.sets:
            own = [keys[place] for place in chosen]
            base = self._layout(where, own, self.parts.where)
            queries, numbers = [], []
            for item, conditions in zip(counted, filters, strict=True):
                made = self._layout([*where, *conditions], own, item.node) if conditions else base
                numbers.append(len(groups))
                groups.append(self._group(made, [*where, *conditions], own, item))
                aliases.append(item.name if len(counted) > 1 else None)
                queries.append(_queries(base, made, len(keys)))
            blocks.append(Block(_keys(base, len(keys)), tuple(queries)))
            group_of.append(tuple(numbers))
        return SqlQuery(
            tuple(groups),
            tuple(self._columns()),
            tuple(key.key.values for key in keys),
            tuple(blocks),
            tuple(group_of),
            tuple(aliases),
        )

    def _columns(self) -> Sequence[Column]:
        places = iter(range(len(self.parts.items)))
        return [
            Column(item.name, aggregate=next(places)) if item.aggregate else Column(item.name, key=key)
            for item, key in zip(self.parts.items, self.parts.key_of, strict=True)
        ]

    def _key(self, place: int, node: exp.Expr) -> GroupedBy:
        made = scalar(self.scope, node, key=True)
        if not made.names:
            expected = "an attribute, or an expression of attributes"
            raise self.statement.error(node, self.statement.excerpt(node), expected)
        return GroupedBy(place, made.names, self.values.key(self.statement, made), made.text)

    def _conditions(self, node: exp.Expr) -> list[Condition]:
        """Return the conditions that must all hold."""
        found = []
        for part in conjuncts(node):
            made = scalar(self.scope, part)
            holds = self.values.condition(self.statement, made)
            if not holds.any():
                raise self._nothing(part)
            if not holds.all():
                found.append(Condition(made.names, holds, made.text))
        return found

    def _counted(self, node: exp.Expr) -> list[Condition]:
        """Return the conditions under which an aggregate counts a record."""
        if isinstance(node, exp.Filter):
            return [*self._counted(unwrapped(node.this)), *self._conditions(node.expression.this)]
        inner = node.this
        if isinstance(node, exp.Count):
            if node.expressions or isinstance(inner, exp.Distinct):
                expected = "COUNT(*); a release counts records, and no distinct values"
                raise self.statement.error(node, self.statement.excerpt(node), expected)
            if inner is None or isinstance(inner, exp.Star | exp.Literal):
                return []
            known = exp.Not(this=exp.Is(this=exp.paren(inner.copy()), expression=exp.Null()))
            return self._made(node, known, str)
        if isinstance(node, exp.CountIf):
            return self._conditions(inner)
        column = unwrapped(inner)
        binned = isinstance(column, exp.Column) and isinstance(self.scope.named(column)[0], Bins)
        values: set[object] = {None}
        if not binned:  # a bin has no value that SQL could add up
            made = scalar(self.scope, inner)
            found = self.values.key(self.statement, replace(made, sql=f"CAST(({made.sql}) AS DOUBLE)"))
            values = set(found.values.to_pylist())
        if binned or not values <= {0.0, 1.0, None}:
            expected = (
                "a sum of 1 and 0, SUM(CASE WHEN ... THEN 1 ELSE 0 END); the statistic "
                f"`{statistic('sum', node)}` answers the sum of an attribute"
            )
            raise self.statement.error(node, self.statement.excerpt(node), expected)
        return self._made(node, inner, lambda sql: f"CAST(({sql}) AS DOUBLE) = 1")

    def _made(self, node: exp.Expr, inner: exp.Expr, condition: Callable[[str], str]) -> list[Condition]:
        """Return the condition that an argument of an aggregate makes."""
        plain = scalar(self.scope, inner)
        made = replace(plain, sql=condition(plain.sql))
        holds = self.values.condition(self.statement, made)
        if not holds.any():
            raise self._nothing(node)
        return [] if holds.all() else [Condition(made.names, holds, node.sql("duckdb", comments=False))]

    def _layout(
        self, conditions: Sequence[Condition], keys: Sequence[GroupedBy], node: exp.Expr | None
    ) -> Layout:
        try:
            made = layout(self.scope.domain, conditions, keys)
        except TooLargeError as error:
            raise self._placed(error, node) from None
        if isinstance(made, Layout):
            return made
        raise self._nothing(self.statement.tree if node is None else node)

    def _nothing(self, node: exp.Expr) -> EntryError:
        expected = "conditions that some values of the domain meet; its count is 0 whatever the data"
        return self.statement.error(node, self.statement.excerpt(node), expected)

    def _group(
        self, made: Layout, conditions: Sequence[Condition], keys: Sequence[GroupedBy], item: Item
    ) -> Group:
        asked = ", ".join(key.text for key in keys) or "total"
        within = " and ".join(condition.text for condition in conditions)
        try:
            return made.group(f"{asked} where {within}" if within else asked)
        except TooLargeError as error:
            raise self._placed(error, item.node) from None

    def _placed(self, error: TooLargeError, node: exp.Expr | None) -> TooLargeError:
        """Return the error of a part of the statement that is too large, with its line and column."""
        problem = error.problem
        found, expected = (problem.found, problem.expected) if problem else (str(error), "less")
        return TooLargeError(self.statement.error(node, found, expected).problem or "")


def _keys(base: Layout, keys: int) -> Callable[[], NDArray[np.int64]]:
    """Return what makes the keys of the rows of a grouping set, sorted by the keys in their order."""

    def made() -> NDArray[np.int64]:
        codes = base.codes(keys)
        return codes[_order(codes)]

    return made


def _queries(base: Layout, made: Layout, keys: int) -> Callable[[], NDArray[np.int64]]:
    """Return what makes the query of each row of a grouping set, -1 where there is none."""

    def queries() -> NDArray[np.int64]:
        rows = base.codes(keys)
        rows = rows[_order(rows)]
        own = made.codes(keys)
        _, ids = np.unique(np.concatenate([rows, own]), axis=0, return_inverse=True)
        ids = ids.ravel()
        found = np.full(len(rows) + len(own), -1)
        found[ids[len(rows) :]] = np.arange(len(own))
        return found[ids[: len(rows)]]

    return queries


def _order(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.lexsort(codes.T[::-1]) if codes.shape[1] else np.arange(len(codes))
