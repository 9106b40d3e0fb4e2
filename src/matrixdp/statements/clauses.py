"""The clauses of a statement: what is counted, within which conditions, grouped by what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import final

from sqlglot import exp

from matrixdp.errors import EntryError
from matrixdp.forms import nearest
from matrixdp.statements.trees import unwrapped
from matrixdp.statements.written import Written

__all__ = ["Clauses", "Item", "clauses", "statistic", "table_names"]

_READ = {"expressions", "from_", "from", "where", "group", "kind"}
_INSTEAD = {
    "joins": "one table; join beforehand, and declare the columns of the joined table as attributes",
    "laterals": "one table",
    "with_": "one table; there are no subqueries",
    "with": "one table; there are no subqueries",
    "having": "no HAVING: every group is answered; filter the answers",
    "order": "no ORDER BY: rows come in the order of GROUP BY and of the domain; sort the answers",
    "limit": "no LIMIT: every group is answered; take those you need",
    "offset": "no OFFSET: every group is answered",
    "distinct": "COUNT(*) with GROUP BY, which has a row for each combination of values",
    "qualify": "no QUALIFY: every group is answered; filter the answers",
    "windows": "no window; ask for the counts and compute from the answers",
}
_AGGREGATES = (exp.Count, exp.CountIf, exp.Sum)
_COUNTS = "COUNT(*), COUNT(*) FILTER (WHERE ...) or SUM(CASE WHEN ... THEN 1 ELSE 0 END)"
_MOST_SETS = 100_000


@final
@dataclass(frozen=True)
class Item:
    """One expression of SELECT, and what its column is called."""

    name: str
    node: exp.Expr
    aggregate: bool


@final
@dataclass(frozen=True)
class Clauses:
    """What a statement says.

    Attributes
    ----------
    items : tuple of Item
        The columns of its result.
    where : expression or None
    keys : tuple of expression
        What is grouped by, each once.
    key_of : tuple of (int or None)
        For each item the place of its key; None for aggregates.
    sets : tuple of tuple of int
        The grouping sets, as places of keys.
    """

    items: tuple[Item, ...]
    where: exp.Expr | None
    keys: tuple[exp.Expr, ...]
    key_of: tuple[int | None, ...]
    sets: tuple[tuple[int, ...], ...]


def table_names(statement: Written) -> tuple[str, ...]:
    """Return what the one table of a statement may be called in it."""
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
        raise statement.error(
            table, statement.excerpt(table), "the name of one table; there are no subqueries"
        )
    for name, value in table.args.items():
        if value and name not in ("this", "db", "catalog", "alias"):
            raise statement.error(
                table, statement.excerpt(table), _INSTEAD.get(name, "the name of a table alone")
            )
    alias = table.alias
    return (alias,) if alias else (table.name,)


def clauses(statement: Written, columns: Sequence[str]) -> Clauses:
    """Return what a statement says.

    Parameters
    ----------
    statement : Written
    columns : sequence of str
        The attributes, which names in GROUP BY mean before they mean columns of the result.
    """
    tree = statement.tree
    items = tuple(_item(statement, node) for node in tree.expressions)
    where = tree.args.get("where")
    return _Groups(statement, items, columns).clauses(None if where is None else where.this)


def _item(statement: Written, node: exp.Expr) -> Item:
    inner = node.this if isinstance(node, exp.Alias) else node
    name = node.alias if isinstance(node, exp.Alias) else inner.output_name or statement.excerpt(inner)
    plain = unwrapped(inner)
    counted = unwrapped(plain.this) if isinstance(plain, exp.Filter) else plain
    if isinstance(counted, _AGGREGATES):
        return Item(name, plain, aggregate=True)
    if isinstance(plain, exp.Star):
        expected = f"attributes that are grouped by, and {_COUNTS}; a release has counts, and no records"
        raise statement.error(plain, "*", expected)
    window = inner.find(exp.Window)
    if window is not None:
        raise statement.error(window, statement.excerpt(window), _INSTEAD["windows"])
    aggregate = inner.find(exp.AggFunc)
    if aggregate is not None:
        raise _no_count(statement, aggregate, alone=aggregate is counted)
    return Item(name, plain, aggregate=False)


def statistic(kind: str, node: exp.Expr) -> str:
    """Return the entry of a statistic that stands in the place of an aggregate."""
    column = unwrapped(node.this) if isinstance(node.this, exp.Expr) else None
    name = column.name if isinstance(column, exp.Column) else "x"
    asked = f"{{{name}: [0.5]}}" if kind == "quantile" else name
    return f"{kind}: {asked}, by: [...], where: {{...}}"


def _no_count(statement: Written, node: exp.Expr, *, alone: bool) -> EntryError:
    """Return the error of an aggregate that counts no records, or of one in a larger expression."""
    if isinstance(node, exp.Avg):
        expected = f"counts; the statistic `{statistic('mean', node)}` answers it"
    elif isinstance(node, exp.Min | exp.Max | exp.Median | exp.Quantile | exp.PercentileCont):
        expected = f"counts; the statistic `{statistic('quantile', node)}` answers quantiles"
    elif not alone and isinstance(node, _AGGREGATES):
        expected = "a count alone; ask for the counts that you need and compute from the answers"
    else:
        expected = _COUNTS
    return statement.error(node, statement.excerpt(node), expected)


@final
@dataclass(frozen=True)
class _Groups:
    """What GROUP BY says; a name means an attribute, else a column of SELECT, and a number its place."""

    statement: Written
    items: tuple[Item, ...]
    columns: Sequence[str]

    def clauses(self, where: exp.Expr | None) -> Clauses:
        """Return the clauses, with each key once and the grouping sets as places of keys."""
        group, tree = self.statement.tree.args.get("group"), self.statement.tree
        if not any(item.aggregate for item in self.items):
            raise self.statement.error(tree, "a SELECT that counts nothing", f"at least one of {_COUNTS}")
        keys: dict[str, int] = {}
        nodes: list[exp.Expr] = []
        sets = []
        for nodes_of_set in [()] if group is None else self._sets(group):
            places = []
            for node in nodes_of_set:
                text = self._text(node)
                if text not in keys:
                    keys[text] = len(nodes)
                    nodes.append(node)
                places.append(keys[text])
            sets.append(tuple(dict.fromkeys(places)))
        key_of = [None if item.aggregate else keys.get(self._text(item.node)) for item in self.items]
        for item, key in zip(self.items, key_of, strict=True):
            if not item.aggregate and key is None:
                found = self.statement.excerpt(item.node)
                raise self.statement.error(item.node, found, f"it in GROUP BY too, or one of {_COUNTS}")
        return Clauses(self.items, where, tuple(nodes), tuple(key_of), tuple(sets))

    def _text(self, node: exp.Expr) -> str:
        """Return what tells one key from others: its SQL, the case of names aside."""
        plain = unwrapped(node).copy()
        for column in [plain] if isinstance(plain, exp.Column) else plain.find_all(exp.Column):
            column.set("table", None)
            column.this.set("quoted", False)
            column.this.set("this", column.name if column.name in self.columns else column.name.lower())
        return plain.sql(dialect="duckdb", comments=False)

    def _sets(self, group: exp.Expr) -> list[tuple[exp.Expr, ...]]:
        """Return the grouping sets: every combination of those of each element of GROUP BY."""
        if group.args.get("all"):
            return [tuple(item.node for item in self.items if not item.aggregate)]
        elements = [*group.expressions]
        for name in ("grouping_sets", "cube", "rollup"):
            elements += [node for node in group.args.get(name) or () if isinstance(node, exp.Expr)]
        if group.args.get("totals"):
            raise self.statement.error(group, "TOTALS", "ROLLUP")
        several = [self._sets_of(element) for element in elements]
        count = 1
        for found in several:
            count *= len(found)
            if count > _MOST_SETS:
                raise self.statement.error(group, f"{count:,} grouping sets", f"at most {_MOST_SETS:,}")
        return [tuple(node for part in chosen for node in part) for chosen in product(*several)]

    def _sets_of(self, element: exp.Expr) -> list[tuple[exp.Expr, ...]]:
        """Return the grouping sets of one element."""
        if isinstance(element, exp.GroupingSets):
            return [found for part in element.expressions for found in self._sets_of(part)]
        if isinstance(element, exp.Cube | exp.Rollup):
            parts = [self._keys(part) for part in element.expressions]
            if isinstance(element, exp.Cube) and 2 ** len(parts) > _MOST_SETS:
                expected = f"at most {_MOST_SETS:,}; list those you need with GROUPING SETS"
                raise self.statement.error(element, f"a CUBE of 2^{len(parts)} grouping sets", expected)
            sizes = range(len(parts), -1, -1)
            chosen: Iterator[tuple[tuple[exp.Expr, ...], ...]]
            if isinstance(element, exp.Rollup):
                chosen = (tuple(parts[:size]) for size in sizes)
            else:
                chosen = (some for size in sizes for some in combinations(parts, size))
            return [tuple(node for part in some for node in part) for some in chosen]
        return [self._keys(element)]

    def _keys(self, element: exp.Expr) -> tuple[exp.Expr, ...]:
        """Return the keys of one element: one, or those of a list in parentheses."""
        if isinstance(element, exp.Tuple):
            return tuple(self._key(part) for part in element.expressions)
        return (self._key(unwrapped(element)),)

    def _key(self, node: exp.Expr) -> exp.Expr:
        """Return the expression that one key means."""
        names = [item.name for item in self.items]
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdigit() else 0
            if not 1 <= place <= len(self.items):
                raise self.statement.error(
                    node, node.name, f"an attribute, or a column from 1 to {len(names)}"
                )
            return self._selected(self.items[place - 1], node)
        if not isinstance(node, exp.Column) or node.table:
            return node
        lowered = [name.lower() for name in names]
        if node.name.lower() not in {name.lower() for name in self.columns}:
            if lowered.count(node.name.lower()) == 1:
                return self._selected(self.items[lowered.index(node.name.lower())], node)
            meant = nearest(node.name, dict.fromkeys((*self.columns, *names)))
            expected = "an attribute of the domain, or a column of SELECT"
            raise self.statement.error(node, repr(node.name), expected, meant)
        return node

    def _selected(self, item: Item, node: exp.Expr) -> exp.Expr:
        if item.aggregate:
            expected = "an attribute, or an expression of attributes; a count is no key"
            raise self.statement.error(node, self.statement.excerpt(node), expected)
        return item.node
