"""The clauses of a statement: what SELECT asks, of which table, grouped by what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, combinations, count, product
from operator import mul
from typing import final

from sqlglot import exp

from matrixdp.forms import nearest
from matrixdp.statements.aggregates import aggregates
from matrixdp.statements.parsing import number_of, unwrapped
from matrixdp.statements.query import Statement, sql_of

_READ = {"expressions", "from_", "from", "where", "group", "kind", "having", "order", "limit", "offset"}
_INSTEAD = {
    "joins": "one table; join beforehand, and declare the columns of the joined table as attributes",
    "laterals": "one table",
    **dict.fromkeys(("with", "with_"), "one table; there are no subqueries"),
    "distinct": "COUNT(*) with GROUP BY, which has a row for each combination of values",
    "qualify": "HAVING, which filters the groups",
    "windows": "no window; ask for the counts and compute from the answers",
}
_AGGREGATES = (
    "COUNT(*), SUM(x), AVG(x), VAR_POP(x), STDDEV(x), each with FILTER (WHERE ...), or arithmetic on them"
)
_MOST_SETS = 100_000


@final
@dataclass(frozen=True)
class Item:
    """One expression of SELECT, or one that HAVING or ORDER BY needs besides.

    Attributes
    ----------
    name : str
        What its column is called: its alias, else what it asks.
    node : expression
    aggregate : int or None
        Its place among the expressions of aggregates; None for others.
    constant : str, int, float or None
        Its value, where it is the same in all rows.
    shown : bool
        Whether it is in SELECT.
    key : int or None
        Which of the keys it is.
    """

    name: str
    node: exp.Expr
    aggregate: int | None = None
    constant: str | float | None = None
    shown: bool = True
    key: int | None = None

    @property
    def called(self) -> bool:
        """Whether the user named it."""
        return isinstance(self.node.parent, exp.Alias)


def table_name(statement: Statement) -> str:
    """Return the name of a statement's one table."""
    tree = statement.tree
    for name, value in tree.args.items():
        if value and name not in _READ:
            part = value[0] if isinstance(value, list) else value
            node = part if isinstance(part, exp.Expr) else tree
            clause = name.rstrip("_").upper()
            found = "" if node is tree else statement.excerpt(node)
            raise statement.error(node, found or clause, _INSTEAD.get(name, f"no {clause}"))
    source = tree.args.get("from_") or tree.args.get("from")
    if source is None:
        raise statement.error(tree, "no FROM", "FROM and a name for the table")
    table = source.this
    if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        raise statement.unfit(table, "the name of one table; there are no subqueries")
    for name, value in table.args.items():
        if value and name not in ("this", "db", "catalog", "alias"):
            raise statement.unfit(table, _INSTEAD.get(name, "the name of a table alone"))
    return str(table.alias or table.name)


def items_of(statement: Statement) -> tuple[Item, ...]:
    """Return the expressions of SELECT, and behind them the aggregates that only HAVING and ORDER BY name."""
    number = count()
    items = [_item(statement, node, number) for node in statement.tree.expressions]
    known = {sql_of(unwrapped(item.node)) for item in items}
    for clause in filter(None, (statement.tree.args.get("having"), statement.tree.args.get("order"))):
        for node in aggregates(clause):
            if (text := sql_of(node)) not in known:
                known.add(text)
                items.append(Item(text, node, next(number), shown=False))
    return tuple(items)


def _item(statement: Statement, node: exp.Expr, number: Iterator[int]) -> Item:
    inner = node.this if isinstance(node, exp.Alias) else node
    plain = unwrapped(inner)
    name = plain.name if isinstance(plain, exp.Column) else statement.excerpt(inner)
    name = node.alias if isinstance(node, exp.Alias) else name
    if isinstance(plain, exp.Star):
        expected = f"attributes that are grouped by, and {_AGGREGATES}; a release has no records"
        raise statement.error(inner, "*", expected)
    window = inner.find(exp.Window)
    if window is not None:
        raise statement.unfit(window, _INSTEAD["windows"])
    if isinstance(inner, exp.Literal):
        value = inner.name if inner.is_string else number_of(inner.name)
        whole = isinstance(value, float) and value.is_integer()
        return Item(name, inner, constant=int(value) if whole else value)
    return Item(name, inner, next(number) if any(aggregates(inner)) else None)


def numbered(statement: Statement, node: exp.Expr, count: int, expected: str) -> int | None:
    """Return the place that a number in GROUP BY or ORDER BY stands for; None where it is no number."""
    if not isinstance(node, exp.Literal) or node.is_string:
        return None
    place = int(node.name) if node.name.isdigit() else 0
    if not 1 <= place <= count:
        raise statement.unfit(node, f"{expected} from 1 to {count}")
    return place - 1


@final
@dataclass(frozen=True)
class Groups:
    """What GROUP BY says; a name means an attribute, else a column of SELECT, and a number its place."""

    statement: Statement
    items: tuple[Item, ...]
    columns: Sequence[str]

    def read(self) -> tuple[list[exp.Expr], list[Item], list[tuple[int, ...]]]:
        """Return each key once, the items with the places of their keys, and the sets as places of keys."""
        tree = self.statement.tree
        group = tree.args.get("group")
        if all(item.aggregate is None for item in self.items):
            raise self.statement.error(tree, "a SELECT without aggregates", f"at least one of {_AGGREGATES}")
        chosen = [()] if group is None else self._sets(group)
        nodes = {self.text(node): node for nodes in reversed(chosen) for node in reversed(nodes)}
        keys = dict.fromkeys(self.text(node) for nodes in chosen for node in nodes)
        places = {text: place for place, text in enumerate(keys)}
        sets = [tuple(dict.fromkeys(places[self.text(node)] for node in nodes)) for nodes in chosen]
        items = [
            item if item.aggregate is not None else replace(item, key=places.get(self.text(item.node)))
            for item in self.items
        ]
        for item in items:
            if item.aggregate is item.key is item.constant is None:
                found = self.statement.excerpt(item.node)
                raise self.statement.error(item.node, found, f"it in GROUP BY too, or {_AGGREGATES}")
        return [nodes[text] for text in keys], items, sets

    def text(self, node: exp.Expr) -> str:
        """Return the text that identifies a key: its SQL, the case of names aside."""
        plain = unwrapped(node).copy()
        for column in [plain] if isinstance(plain, exp.Column) else plain.find_all(exp.Column):
            column.set("table", None)
            column.this.set("quoted", False)
            column.this.set("this", column.name if column.name in self.columns else column.name.lower())
        return sql_of(plain)

    def _sets(self, group: exp.Expr) -> list[tuple[exp.Expr, ...]]:
        """Return the grouping sets: every combination of those of each element of GROUP BY."""
        if group.args.get("all"):
            return [tuple(i.node for i in self.items if i.aggregate is i.constant is None)]
        elements = [*group.expressions]
        for name in ("grouping_sets", "cube", "rollup"):
            elements += [node for node in group.args.get(name) or () if isinstance(node, exp.Expr)]
        if group.args.get("totals"):
            raise self.statement.error(group, "TOTALS", "ROLLUP")
        several = [self._sets_of(element) for element in elements]
        for number in accumulate(map(len, several), mul):
            if number > _MOST_SETS:
                raise self.statement.error(group, f"{number:,} grouping sets", f"at most {_MOST_SETS:,}")
        return [tuple(chain(*chosen)) for chosen in product(*several)]

    def _sets_of(self, element: exp.Expr) -> list[tuple[exp.Expr, ...]]:
        if isinstance(element, exp.GroupingSets):
            return [found for part in element.expressions for found in self._sets_of(part)]
        if isinstance(element, exp.Cube | exp.Rollup):
            parts = [self._keys(part) for part in element.expressions]
            if isinstance(element, exp.Cube) and 2 ** len(parts) > _MOST_SETS:
                expected = f"at most {_MOST_SETS:,}; list those you need with GROUPING SETS"
                raise self.statement.error(element, f"a CUBE of 2^{len(parts)} grouping sets", expected)
            sizes = range(len(parts), -1, -1)
            if isinstance(element, exp.Rollup):
                return [tuple(chain(*parts[:size])) for size in sizes]
            return [tuple(chain(*some)) for size in sizes for some in combinations(parts, size)]
        return [self._keys(element)]

    def _keys(self, element: exp.Expr) -> tuple[exp.Expr, ...]:
        """Return the keys of one element: one, or those of a list in parentheses."""
        if isinstance(element, exp.Tuple):
            return tuple(self._key(part) for part in element.expressions)
        return (self._key(unwrapped(element)),)

    def _key(self, node: exp.Expr) -> exp.Expr:
        """Return the expression that one key means."""
        place = numbered(self.statement, node, len(self.items), "an attribute, or a column")
        if place is not None:
            return self._selected(self.items[place], node)
        if not isinstance(node, exp.Column) or node.table:
            return node
        if node.name.lower() in {name.lower() for name in self.columns}:
            return node
        alike = [item for item in self.items if item.name.lower() == node.name.lower()]
        if len(alike) == 1:
            return self._selected(alike[0], node)
        meant = nearest(node.name, dict.fromkeys((*self.columns, *(item.name for item in self.items))))
        expected = "an attribute of the domain, or a column of SELECT"
        raise self.statement.error(node, repr(node.name), expected, meant)

    def _selected(self, item: Item, node: exp.Expr) -> exp.Expr:
        if item.aggregate is not None:
            raise self.statement.unfit(
                node, "an attribute, or an expression of attributes; a count is no key"
            )
        return item.node


# Counts of persons, where each has one record.


def of_persons(statement: Statement, column: str) -> tuple[Statement, bool]:
    """Return a statement with counts of ids as counts of records, and whether it counts distinct ids.

    Records without an id are not counted anyway.
    """
    tree = statement.tree.copy()
    found = [node for node in tree.find_all(exp.Count) if _ids(node) == column.lower()]
    distinct = any(isinstance(node.this, exp.Distinct) for node in found)
    for item in tree.expressions:
        if not isinstance(item, exp.Alias) and any(unwrapped(item) is node for node in found):
            item.replace(exp.alias_(item.copy(), statement.excerpt(item), quoted=True))
    for node in tree.find_all(exp.Count):
        if _ids(node) == column.lower():
            node.set("this", exp.Star())
    return (replace(statement, tree=tree) if found else statement), distinct


def _ids(node: exp.Expr) -> str | None:
    """Return the one column of which a COUNT is, in lower case."""
    inner = node.this if isinstance(node, exp.Count) and not node.expressions else None
    if isinstance(inner, exp.Distinct) and len(inner.expressions) == 1:
        [inner] = inner.expressions
    return inner.name.lower() if isinstance(inner, exp.Column) else None
