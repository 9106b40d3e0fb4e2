"""From the clauses of a statement to query groups and the shape of its result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain, combinations, product
from operator import mul
from typing import final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from matrixdp import queries
from matrixdp.domain import Bins, Domain
from matrixdp.errors import MatrixDPError, TooLargeError
from matrixdp.forms import nearest
from matrixdp.queries import DenseGroup, Group, Predicates, ProductGroup, Rows
from matrixdp.queries.predicates import Array
from matrixdp.statements.evaluation import MOST_CELLS, Evaluation, Key, evaluation, in_order
from matrixdp.statements.parsing import Scalar, Scope, conjuncts, scalar, unwrapped
from matrixdp.statements.query import Column, SqlQuery, Statement, sql_of

# The clauses of a statement: what is counted, within which conditions, grouped by what.

_READ = {"expressions", "from_", "from", "where", "group", "kind"}
_INSTEAD = {
    "joins": "one table; join beforehand, and declare the columns of the joined table as attributes",
    "laterals": "one table",
    **dict.fromkeys(("with", "with_"), "one table; there are no subqueries"),
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


def table_name(statement: Statement) -> str:
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
        raise statement.unfit(table, "the name of one table; there are no subqueries")
    for name, value in table.args.items():
        if value and name not in ("this", "db", "catalog", "alias"):
            raise statement.unfit(table, _INSTEAD.get(name, "the name of a table alone"))
    return str(table.alias or table.name)


def _item(statement: Statement, node: exp.Expr) -> Item:
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
        raise statement.unfit(window, _INSTEAD["windows"])
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


def _no_count(statement: Statement, node: exp.Expr, *, alone: bool) -> MatrixDPError:
    """Return the error of an aggregate that counts no records, or of one in a larger expression."""
    if isinstance(node, exp.Avg):
        expected = f"counts; the statistic `{statistic('mean', node)}` answers it"
    elif isinstance(node, exp.Min | exp.Max | exp.Median | exp.Quantile | exp.PercentileCont):
        expected = f"counts; the statistic `{statistic('quantile', node)}` answers quantiles"
    elif not alone and isinstance(node, _AGGREGATES):
        expected = "a count alone; ask for the counts that you need and compute from the answers"
    else:
        expected = _COUNTS
    return statement.unfit(node, expected)


@final
@dataclass(frozen=True)
class _Groups:
    """What GROUP BY says; a name means an attribute, else a column of SELECT, and a number its place."""

    statement: Statement
    items: tuple[Item, ...]
    columns: Sequence[str]

    def read(self) -> tuple[list[exp.Expr], list[int | None], list[tuple[int, ...]]]:
        """Return each key once, for each item the place of its key, and the sets as places of keys."""
        tree = self.statement.tree
        group = tree.args.get("group")
        if not any(item.aggregate for item in self.items):
            raise self.statement.error(tree, "a SELECT that counts nothing", f"at least one of {_COUNTS}")
        nodes: dict[str, exp.Expr] = {}
        named = []
        for chosen in [()] if group is None else self._sets(group):
            named.append([self._text(node) for node in chosen])
            for text, node in zip(named[-1], chosen, strict=True):
                nodes.setdefault(text, node)
        keys = {text: place for place, text in enumerate(nodes)}
        sets = [tuple(dict.fromkeys(keys[text] for text in texts)) for texts in named]
        key_of = [None if item.aggregate else keys.get(self._text(item.node)) for item in self.items]
        for item, place in zip(self.items, key_of, strict=True):
            if not item.aggregate and place is None:
                found = self.statement.excerpt(item.node)
                raise self.statement.error(item.node, found, f"it in GROUP BY too, or one of {_COUNTS}")
        return list(nodes.values()), key_of, sets

    def _text(self, node: exp.Expr) -> str:
        """Return what tells one key from others: its SQL, the case of names aside."""
        plain = unwrapped(node).copy()
        for column in [plain] if isinstance(plain, exp.Column) else plain.find_all(exp.Column):
            column.set("table", None)
            column.this.set("quoted", False)
            column.this.set("this", column.name if column.name in self.columns else column.name.lower())
        return sql_of(plain)

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
        for count in accumulate(map(len, several), mul):
            if count > _MOST_SETS:
                raise self.statement.error(group, f"{count:,} grouping sets", f"at most {_MOST_SETS:,}")
        return [tuple(chain(*chosen)) for chosen in product(*several)]

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
        names = [item.name for item in self.items]
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) if node.name.isdigit() else 0
            if not 1 <= place <= len(self.items):
                expected = f"an attribute, or a column from 1 to {len(names)}"
                raise self.statement.error(node, node.name, expected)
            return self._selected(self.items[place - 1], node)
        if not isinstance(node, exp.Column) or node.table:
            return node
        if node.name.lower() in {name.lower() for name in self.columns}:
            return node
        alike = [item for item in self.items if item.name.lower() == node.name.lower()]
        if len(alike) == 1:
            return self._selected(alike[0], node)
        meant = nearest(node.name, dict.fromkeys((*self.columns, *names)))
        expected = "an attribute of the domain, or a column of SELECT"
        raise self.statement.error(node, repr(node.name), expected, meant)

    def _selected(self, item: Item, node: exp.Expr) -> exp.Expr:
        if item.aggregate:
            raise self.statement.unfit(
                node, "an attribute, or an expression of attributes; a count is no key"
            )
        return item.node


# Conditions and keys over a domain as one query group: connected sets of attributes, multiplied.

MOST_ROWS = 50_000_000
"""A result in memory has at most this many rows."""


@final
@dataclass(frozen=True)
class Condition:
    """A condition at the cells of its attributes, which are in domain order."""

    names: tuple[str, ...]
    holds: NDArray[np.bool_]
    text: str


@final
@dataclass(frozen=True)
class GroupedBy:
    """A key of a statement at the cells of its attributes, which are in domain order."""

    place: int
    names: tuple[str, ...]
    key: Key
    text: str


@final
@dataclass(frozen=True)
class _Part:
    """What is asked of one connected set of attributes.

    Attributes
    ----------
    names : tuple of str
        The attributes, in domain order.
    labels : ndarray of int
        The query that each cell counts in, -1 for none.
    combinations : ndarray of int
        The ranks of the keys of each query, of shape (queries, keys).
    keys : tuple of GroupedBy
    conditions : tuple of Condition
    """

    names: tuple[str, ...]
    labels: NDArray[np.int64]
    combinations: NDArray[np.int64]
    keys: tuple[GroupedBy, ...]
    conditions: tuple[Condition, ...]

    @property
    def count(self) -> int:
        """The number of queries."""
        return len(self.combinations)

    @cached_property
    def predicates(self) -> Predicates:
        """The queries as a predicate set of the only attribute."""
        inside = np.flatnonzero(self.labels >= 0)
        if self.count == 1 and len(inside) == len(self.labels):
            return queries.Total()
        if np.array_equal(self.labels, np.arange(len(self.labels))):
            return queries.Identity()
        codes = inside[np.argsort(self.labels[inside], kind="stable")]
        ends = np.cumsum(np.bincount(self.labels[inside], minlength=self.count))
        starts = np.concatenate([[0], ends[:-1]])
        first, last = codes[starts], codes[ends - 1]
        if np.array_equal(last - first, ends - starts - 1):
            return queries.Ranges(tuple(zip(first.tolist(), last.tolist(), strict=True)))
        return queries.Sets(tuple(tuple(part.tolist()) for part in np.split(codes, ends[:-1])))

    def rows(self, *, alone: bool) -> queries.CellSets:
        """Return the queries written out over the cells; `alone` if nothing is joined to their texts."""
        inside = np.flatnonzero(self.labels >= 0)
        matrix: Array = np.zeros((self.count, len(self.labels)))
        matrix[self.labels[inside], inside] = 1.0
        values = [key.key.values.to_pylist() for key in self.keys]
        asked = [condition.text for condition in self.conditions]
        alone = alone and len(self.conditions) + len(self.keys) == 1
        texts = []
        for ranks in self.combinations:
            own = [f"{k.text} = {v[rank]}" for k, v, rank in zip(self.keys, values, ranks, strict=True)]
            parts = (f"({part})" if " OR " in part and not alone else part for part in (*asked, *own))
            texts.append(" and ".join(parts))
        return queries.CellSets(matrix, tuple(texts))


@final
@dataclass(frozen=True)
class Layout:
    """The queries of some conditions and keys: every combination of one query of each part.

    Attributes
    ----------
    domain : Domain
    parts : tuple of _Part
        That of several attributes first, if there is one, then the others in domain order.
    """

    domain: Domain
    parts: tuple[_Part, ...] = field(repr=False)

    def group(self, name: str, statement: Statement, node: exp.Expr) -> Group:
        """Return the query group; its queries are row-major over the parts."""
        merged = [part for part in self.parts if len(part.names) > 1]
        single = {part.names[0]: part.predicates for part in self.parts if len(part.names) == 1}
        others = {name: own for name, own in single.items() if not isinstance(own, queries.Total)}
        names = self.domain.sort([*others, *(name for part in merged for name in part.names)])
        sizes = tuple(self.domain[name].size for name in names)
        if not merged:
            return ProductGroup(name, names, tuple(others.values()), sizes)
        [part] = merged
        count, cells = math.prod(p.count for p in self.parts), math.prod(sizes)
        if count * cells > queries.MAX_EXPLICIT_ENTRIES:
            found = f"{count:,} queries over the {cells:,} cells of {', '.join(names)}"
            expected = (
                f"at most {queries.MAX_EXPLICIT_ENTRIES:,} entries; use fewer attributes, or fewer values"
            )
            raise statement.error(node, found, expected, kind=TooLargeError)
        content: Rows = part.rows(alone=not others)
        if others:
            places = tuple(names.index(name) for name in part.names)
            content = queries.Crossed(content, places, tuple(others.values()), sizes)
        return DenseGroup(name, names, content, sizes)

    def codes(self, keys: int) -> NDArray[np.int64]:
        """Return the ranks of the keys, of shape (queries, keys), -1 where a query is not within one."""
        counts = tuple(part.count for part in self.parts)
        rows = math.prod(counts)
        if rows > MOST_ROWS:
            found = f"a result of {rows:,} rows"
            raise TooLargeError.at(("sql",), found, f"at most {MOST_ROWS:,}; ask for a part of it")
        codes = np.full((rows, keys), -1)
        for axis, part in enumerate(self.parts):
            position = np.arange(rows) // math.prod(counts[axis + 1 :]) % counts[axis]
            for column, part_key in enumerate(part.keys):
                codes[:, part_key.place] = part.combinations[position, column]
        return codes

    def sorted_codes(self, keys: int) -> NDArray[np.int64]:
        """Return the ranks sorted by the keys in their order, which is that of the rows of a result."""
        codes = self.codes(keys)
        return codes[np.lexsort(codes.T[::-1])] if keys else codes

    def queries_of(self, made: Layout, keys: int) -> NDArray[np.int64]:
        """Return for each row of a result the query of another layout, -1 where it has none."""
        rows, own = self.sorted_codes(keys), made.codes(keys)
        _, ids = np.unique(np.concatenate([rows, own]), axis=0, return_inverse=True)
        ids = ids.ravel()
        found = np.full(len(rows) + len(own), -1)
        found[ids[len(rows) :]] = np.arange(len(own))
        return found[ids[: len(rows)]]


def _connected(domain: Domain, sets: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the connected sets of attributes; those of several are merged to one, which comes first."""
    merged = {name for names in sets if len(names) > 1 for name in names}
    single = {name for names in sets for name in names} - merged
    return [*([domain.sort(merged)] if merged else []), *((name,) for name in domain.sort(single))]


def _part(
    domain: Domain, names: tuple[str, ...], conditions: Sequence[Condition], keys: Sequence[GroupedBy]
) -> _Part:
    sizes = tuple(domain[name].size for name in names)

    def spread(own: tuple[str, ...], array: NDArray[np.generic]) -> NDArray[np.generic]:
        shape = tuple(size if name in own else 1 for name, size in zip(names, sizes, strict=True))
        return np.broadcast_to(array.reshape(shape), sizes).ravel()

    holds = np.ones(math.prod(sizes), dtype=bool)
    for condition in conditions:
        holds &= spread(condition.names, condition.holds).astype(bool)
    inside = np.flatnonzero(holds)
    labels = np.where(holds, 0, -1)
    combinations = np.zeros((min(len(inside), 1), 0), dtype=np.int64)
    if keys:
        ranks = np.stack([spread(key.names, key.key.ranks)[inside].astype(np.int64) for key in keys], axis=1)
        first, labels[inside] = in_order(ranks)
        combinations = ranks[first]
    return _Part(names, labels, combinations, tuple(keys), tuple(conditions))


def translate(statement: Statement, domain: Domain) -> SqlQuery:
    """Return what a statement asks of a domain, and the shape of its result.

    Parameters
    ----------
    statement : Statement
    domain : Domain
        The attributes, which are the columns that the statement knows.

    Raises
    ------
    EntryError
        If it asks what is no count of records of the domain; at its line and column.
    TooLargeError
        If a condition is over too many cells.

    Examples
    --------
    >>> from matrixdp.statements import read
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> adults = read("SELECT sex, COUNT(*) FROM people WHERE age >= 18 GROUP BY sex")
    >>> query = translate(adults, domain)
    >>> [group.queries for group in query.groups], query.keys.to_pydict()
    ([2], {'sex': ['female', 'male']})
    """
    table = table_name(statement)
    items = tuple(_item(statement, node) for node in statement.tree.expressions)
    groups = _Groups(statement, items, (*domain.names, *domain.levels))
    values = evaluation(domain)
    scope = Scope(statement, domain, table, values.constant)
    return _Translation(statement, scope, values).query(items, *groups.read())


@final
@dataclass(frozen=True)
class _Translation:
    statement: Statement
    scope: Scope
    values: Evaluation

    def query(
        self,
        items: Sequence[Item],
        nodes: Sequence[exp.Expr],
        key_of: Sequence[int | None],
        sets: Sequence[tuple[int, ...]],
    ) -> SqlQuery:
        """Return the groups of every grouping set and aggregate, and the columns of the result."""
        clause = self.statement.tree.args.get("where")
        condition = None if clause is None else clause.this
        where = [] if condition is None else self._conditions(condition)
        counted = [item for item in items if item.aggregate]
        filters = [self._counted(item.node) for item in counted]
        keys = [self._key(place, node) for place, node in enumerate(nodes)]
        groups: list[Group] = []
        layouts = []
        for chosen in sets:
            own = [keys[place] for place in chosen]
            base = self._layout(where, own, condition)
            counting = []
            for item, conditions in zip(counted, filters, strict=True):
                made = self._layout([*where, *conditions], own, item.node) if conditions else base
                asked = ", ".join(key.text for key in own) or "total"
                within = " and ".join(condition.text for condition in (*where, *conditions))
                name = f"{asked} where {within}" if within else asked
                groups.append(made.group(name, self.statement, item.node))
                counting.append(made)
            layouts.append((base, tuple(counting)))
        places = iter(range(len(counted)))
        columns = [
            Column(item.name, aggregate=next(places)) if item.aggregate else Column(item.name, key=key)
            for item, key in zip(items, key_of, strict=True)
        ]
        values = tuple(key.key.values for key in keys)
        return SqlQuery(tuple(groups), tuple(columns), values, tuple(layouts), tuple(i.name for i in counted))

    def _key(self, place: int, node: exp.Expr) -> GroupedBy:
        made = scalar(self.scope, node, key=True)
        if not made.names:
            raise self.statement.unfit(node, "an attribute, or an expression of attributes")
        return GroupedBy(place, made.names, self.values.key(self.statement, made), made.text)

    def _conditions(self, node: exp.Expr) -> list[Condition]:
        """Return the conditions that must all hold."""
        return [
            found for part in conjuncts(node) for found in self._condition(part, scalar(self.scope, part))
        ]

    def _condition(self, node: exp.Expr, made: Scalar) -> list[Condition]:
        """Return the condition that a part of the statement says; none where it always holds."""
        holds = self.values.condition(self.statement, made)
        if not holds.any():
            raise self._nothing(node)
        return [] if holds.all() else [Condition(made.names, holds, sql_of(node))]

    def _counted(self, node: exp.Expr) -> list[Condition]:
        """Return the conditions under which an aggregate counts a record."""
        if isinstance(node, exp.Filter):
            return [*self._counted(unwrapped(node.this)), *self._conditions(node.expression.this)]
        inner = node.this
        if isinstance(node, exp.Count):
            if node.expressions or isinstance(inner, exp.Distinct):
                expected = "COUNT(*); a release counts records, and no distinct values"
                raise self.statement.unfit(node, expected)
            if inner is None or isinstance(inner, exp.Star | exp.Literal):
                return []
            known = exp.Not(this=exp.Is(this=exp.paren(inner.copy()), expression=exp.Null()))
            return self._condition(node, scalar(self.scope, known))
        if isinstance(node, exp.CountIf):
            return self._conditions(inner)
        column = unwrapped(inner)
        # a bin has no value that SQL could add up
        adds = not (isinstance(column, exp.Column) and isinstance(self.scope.named(column)[0], Bins))
        if adds:
            made = scalar(self.scope, inner)
            number = replace(made, sql=f"CAST(({made.sql}) AS DOUBLE)")
            values = self.values.key(self.statement, number).values
            adds = set(values.to_pylist()) <= {0.0, 1.0, None}
        if not adds:
            expected = (
                "a sum of 1 and 0, SUM(CASE WHEN ... THEN 1 ELSE 0 END); the statistic "
                f"`{statistic('sum', node)}` answers the sum of an attribute"
            )
            raise self.statement.unfit(node, expected)
        return self._condition(node, replace(number, sql=f"{number.sql} = 1"))

    def _layout(
        self, conditions: Sequence[Condition], keys: Sequence[GroupedBy], node: exp.Expr | None
    ) -> Layout:
        """Return the layout of conditions and keys; errors are those of a part of the statement."""
        domain, parts = self.scope.domain, []
        for names in _connected(domain, [*(one.names for one in conditions), *(key.names for key in keys)]):
            cells = domain.cells(names)
            if len(names) > 1 and cells > MOST_CELLS:
                found = f"conditions that join {', '.join(names)}, {cells:,} cells"
                expected = f"at most {MOST_CELLS:,}; use fewer attributes, or fewer values"
                raise self.statement.error(node, found, expected, kind=TooLargeError)
            own = [condition for condition in conditions if set(condition.names) <= set(names)]
            part = _part(domain, names, own, [key for key in keys if set(key.names) <= set(names)])
            if part.count == 0:
                raise self._nothing(node or self.statement.tree)
            parts.append(part)
        return Layout(domain, tuple(parts))

    def _nothing(self, node: exp.Expr) -> MatrixDPError:
        expected = "conditions that some value of the domain meets; this count is 0 for every table"
        return self.statement.unfit(node, expected)
