"""From the clauses of a statement to query groups, statistics, and the shape of its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from matrixdp import queries
from matrixdp.domain import Attribute, Bins, Domain
from matrixdp.errors import EntryError, TooLargeError
from matrixdp.queries import Predicates
from matrixdp.queries.predicates import Array
from matrixdp.statements.aggregates import (
    FORMULAS,
    OPERATORS,
    Expression,
    Quantity,
    aggregates,
    increasing,
    is_aggregate,
    is_step,
    kind_of,
    monotone,
)
from matrixdp.statements.clauses import Groups, Item, items_of, table_name
from matrixdp.statements.evaluation import (
    MOST_CELLS,
    Condition,
    Key,
    conditions_of,
    key_of,
    nothing,
    values_at_cells,
)
from matrixdp.statements.layouts import Layout, connected, named_sets, part_of
from matrixdp.statements.parsing import Scope, conjuncts, number_of, scalar, unwrapped
from matrixdp.statements.query import Asked, SqlQuery, Statement, sql_of
from matrixdp.statements.rows import chosen
from matrixdp.statistics.attributes import MeanEntry
from matrixdp.statistics.statistic import StatisticEntry, statistics


@lru_cache(maxsize=32)
def translate(statement: Statement, domain: Domain) -> SqlQuery:
    """Translate a statement into queries over a domain and the shape of its result.

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
    clauses = Groups(statement, items_of(statement), (*domain.names, *domain.levels))
    return _Translation(statement, Scope(statement, domain, table), clauses).query()


Conditions = list[Condition]


@final
@dataclass(frozen=True)
class _Aggregate:
    """One aggregate: what it is, of which records, and but for counts of which attribute.

    A share is of those records that meet further conditions, ``ones``.
    """

    kind: str
    conditions: Conditions
    attribute: str = ""
    ones: Conditions = field(default_factory=list)


_ARITHMETIC = (
    "arithmetic on aggregates and numbers: + - * /, POWER, ROUND, FLOOR, CEIL, SQRT, LN, EXP, CAST, and "
    "COALESCE or NULLIF with a number"
)
_OUTERMOST = (
    "ROUND, FLOOR, CEIL or a CAST to integers around all arithmetic of several figures, as its steps leave "
    "no error to compute with: `ROUND(AVG(x) + AVG(y))`; numbers may follow: `ROUND(COUNT(*) / 10) * 10`"
)


@final
@dataclass(frozen=True)
class _Stratum:
    """One grouping set: the conditions of WHERE, its keys, and their layout."""

    where: Conditions
    keys: Sequence[Key]
    base: Layout

    def name(self, conditions: Conditions, of: str = "") -> str:
        """Return the name of a group within further conditions."""
        asked = ", ".join(key.text for key in self.keys)
        if of:
            asked = f"{of} by {asked}" if asked else of
        within = " and ".join(condition.text for condition in (*self.where, *conditions))
        return f"{asked or 'total'} where {within}" if within else asked or "total"


@final
@dataclass(frozen=True)
class _Translation:
    statement: Statement
    scope: Scope
    clauses: Groups

    def query(self) -> SqlQuery:
        """Return the queries of every grouping set and aggregate, and the columns of the result."""
        nodes, items, sets = self.clauses.read()
        clause = self.statement.tree.args.get("where")
        condition = None if clause is None else clause.this
        where = [] if condition is None else self._conditions(condition)
        counted = [item for item in items if item.aggregate is not None]
        keys = [key_of(self.scope, place, node) for place, node in enumerate(nodes)]
        asked: list[Asked] = []
        layouts = []
        for places in sets:
            own = [keys[place] for place in places]
            stratum = _Stratum(where, own, self._layout(where, own, len(keys), condition))
            made = [self._asked(item.node, stratum) for item in counted]
            asked += [one for one, _ in made]
            layouts.append((stratum.base, tuple(layout for _, layout in made)))

        def alone(place: int) -> str:
            chosen_set, item = divmod(place, len(counted))
            return self._alone(counted[item], [nodes[key] for key in sets[chosen_set]])

        choice = chosen(self.clauses, self.scope, nodes, counted)
        values = tuple(key.values for key in keys)
        columns = tuple(item for item in items if item.shown)
        return SqlQuery(tuple(asked), columns, values, counted, choice, alone, tuple(layouts))

    def _alone(self, item: Item, keys: Sequence[exp.Expr]) -> str:
        """Return a statement that asks one aggregate by some keys, and nothing else."""
        tree = self.statement.tree.copy()
        for name in ("having", "order", "limit", "offset", "group"):
            tree.set(name, None)
        text = self.clauses.text
        named = {
            text(own.node): own.name for own in self.clauses.items if own.aggregate is None and own.called
        }
        selected = []
        for key in keys:
            own = key.copy()
            selected.append(exp.alias_(own, named[text(key)], quoted=True) if text(key) in named else own)
        tree.set("expressions", [*selected, exp.alias_(item.node.copy(), item.name, quoted=True)])
        if keys:
            tree.set("group", exp.Group(expressions=[key.copy() for key in keys]))
        return sql_of(tree)

    def _asked(self, node: exp.Expr, stratum: _Stratum) -> tuple[Asked, Layout]:
        """Translate an expression of aggregates; return it with the layout of its queries."""
        plain = unwrapped(node)
        one = self._aggregate(plain) if is_aggregate(plain) else None
        if one is not None and one.kind in ("count", "sum", "mean"):
            made = self._within(stratum, one.conditions, node)
            if one.kind == "count":
                return made.group(stratum.name(one.conditions), self.statement, node), made
            entry = self._statistic(one, made)
            if entry is not None:
                return entry, made
        found = self._expression(plain, stratum)
        if one is None:
            return found, stratum.base
        known = {"share": (0.0, 1.0), "count": (0.0, math.inf), "sum": (-math.inf, math.inf)}
        if one.kind == "mean":
            known["mean"] = MeanEntry(attribute=one.attribute).limits(self.scope.domain)
        measures = "share" if one.kind == "share" else "values"
        limits = known.get(one.kind, (0.0, math.inf))  # variances
        return replace(found, measures=measures, limits=limits), stratum.base

    def _within(self, stratum: _Stratum, conditions: Conditions, node: exp.Expr) -> Layout:
        if not conditions:
            return stratum.base
        return self._layout([*stratum.where, *conditions], stratum.keys, stratum.base.keys, node)

    def _statistic(self, one: _Aggregate, made: Layout) -> StatisticEntry | None:
        """Return the entry of a sum or a mean; None where no entry has such conditions or keys."""
        by: dict[str, object] = {}
        where: dict[str, object] = {}
        for part in made.parts:
            if len(part.names) > 1 or (part.keys and part.names[0] == one.attribute):
                return None
            attribute = self.scope.domain[part.names[0]]
            if part.keys:
                by[attribute.name] = _by(attribute, part.predicates)
                continue
            codes = np.flatnonzero(part.labels == 0)
            known = attribute.size - (attribute.null_code is not None)  # sums and means leave null out
            if len(codes) < (known if attribute.name == one.attribute else attribute.size):
                where[attribute.name] = _where(attribute, codes)
        entry = {one.kind: one.attribute} | ({"by": by} if by else {}) | ({"where": where} if where else {})
        return statistics()[one.kind].read(entry)

    def _expression(self, node: exp.Expr, stratum: _Stratum) -> Expression:
        """Return an expression of aggregates as one of sums and counts, by the formulas of aggregates."""
        quantities: dict[str, Quantity] = {}
        binned: dict[str, None] = {}

        def quantity(conditions: Conditions, name: str = "", power: int = 0, middle: float = 0.0) -> exp.Expr:
            """Return the column that stands for a count, or for the sum of a power of distances."""
            less = f" less {middle:g}" * bool(middle)
            called = stratum.name(
                conditions, f"sum of {'squares of ' * (power - 1)}{name}{less}" * bool(power)
            )
            if called not in quantities:
                made = self._within(stratum, conditions, node)
                summed, weight = None, 1.0
                if power:
                    summed = name, self._numbers(name, middle) ** power
                    weight = 1.0 / (float(np.abs(summed[1]).max()) ** 2 or 1.0)
                    binned.update({name: None} if isinstance(self.scope.domain[name], Bins) else {})
                group = replace(made.group(called, self.statement, node, summed), weight=weight)
                quantities[called] = Quantity(group, stratum.base.queries_of(made))
            return exp.column(called)

        def formula(one: _Aggregate) -> exp.Expr:
            middle = 0.0
            if one.attribute:
                numbers = self._numbers(one.attribute, 0.0)
                middle = float(numbers.min() + numbers.max()) / 2
            parts: dict[str, Callable[[], exp.Expr]] = {
                "records": lambda: quantity(one.conditions),
                "ones": lambda: quantity([*one.conditions, *one.ones]),
                "amount": lambda: quantity(one.conditions, one.attribute, 1),
                "total": lambda: quantity(one.conditions, one.attribute, 1, middle),
                "squares": lambda: quantity(one.conditions, one.attribute, 2, middle),
                "middle": lambda: exp.Literal.number(middle),
            }
            return FORMULAS[one.kind].transform(
                lambda part: parts[part.name]() if isinstance(part, exp.Column) else part
            )

        def over_quantities(part: exp.Expr, inner: bool = False) -> exp.Expr:
            plain = unwrapped(part)
            if is_aggregate(plain):
                return formula(self._aggregate(plain))
            made, binary = plain.copy(), type(plain) in OPERATORS
            if isinstance(plain, exp.Literal) and math.isfinite(number_of(plain.name)):
                return made
            function = increasing(plain)
            if not binary and not isinstance(plain, exp.Neg) and function is None:
                raise self.statement.unfit(plain, _ARITHMETIC)
            if inner and is_step(function) and any(aggregates(plain)):
                raise self.statement.unfit(plain, _OUTERMOST)
            inner = inner or monotone(plain) is None
            for operand in ("this", "expression") if binary else ("this",):
                made.set(operand, over_quantities(plain.args[operand], inner))
            return made

        made = over_quantities(node)
        note = f"numbers of {', '.join(binned)} count as the middles of their bins" if binned else ""
        return Expression(made, quantities, stratum.name([]), note)

    def _numbers(self, name: str, middle: float) -> Array:
        """Return how far the numbers of an attribute are from one, 0 where a value stands for none."""
        entry = MeanEntry(attribute=name)
        strata = entry.strata(self.scope.domain)
        found = np.zeros(strata.attribute.size)
        found[list(strata.codes)] = entry.numbers(strata.attribute, strata.codes)[1] - middle
        return found

    def _conditions(self, node: exp.Expr) -> list[Condition]:
        """Return the conditions that must all hold."""
        parts = (scalar(self.scope, part) for part in conjuncts(node))
        return [found for part in parts for found in conditions_of(self.scope, part)]

    def _aggregate(self, node: exp.Expr) -> _Aggregate:
        if isinstance(node, exp.Filter):
            inner = self._aggregate(unwrapped(node.this))
            return replace(inner, conditions=[*inner.conditions, *self._conditions(node.expression.this)])
        kind = kind_of(node)
        argument = next(iter(node.expressions), None) if isinstance(node, exp.Anonymous) else node.this
        if kind == "count":
            return _Aggregate(kind, self._counted(node))
        if (
            kind is None
            or not isinstance(argument, exp.Expr)
            or isinstance(argument, exp.Distinct | exp.Star)
        ):
            raise self.statement.unfit(node, _instead(node))
        # of a sum of CASE WHEN ... THEN x ELSE 0 END, those records that have an x
        conditions: Conditions = []
        branches = argument.args["ifs"] if isinstance(argument, exp.Case) and argument.this is None else []
        default = argument.args.get("default")
        none = default is None or isinstance(default, exp.Null) or (kind == "sum" and default.name == "0")
        if len(branches) == 1 and none and isinstance(unwrapped(branches[0].args["true"]), exp.Column):
            conditions, argument = self._conditions(branches[0].this), branches[0].args["true"]
        column = unwrapped(argument)
        attribute, level = self.scope.named(column) if isinstance(column, exp.Column) else (None, None)
        adds = [column.this, column.expression] if isinstance(column, exp.Add) else []
        if kind in ("sum", "mean") and not adds and (attribute is None or not attribute.numeric):
            flags = self._zeros_and_ones(node, argument)
            if flags is not None:
                ones, there = flags
                if kind == "sum":
                    return _Aggregate("count", [*conditions, *ones])
                return _Aggregate("share", [*conditions, *there], ones=ones)
        if attribute is None or level is not None:
            name = sql_of(node).partition("(")[0]
            several = " + ".join(f"{name}({sql_of(own)})" for own in adds or [exp.column("x")])
            expected = f"one attribute of numbers, with arithmetic around it: `{several}`"
            if kind in ("sum", "mean"):
                expected += f"; or 1 and 0 for each record, `{name}(CASE WHEN ... THEN 1 ELSE 0 END)`"
            raise self.statement.unfit(node, expected)
        try:
            self._numbers(attribute.name, 0.0)
        except EntryError as error:
            if error.problem is None:
                raise
            found = f"{self.statement.excerpt(node)} of {error.problem.found}"
            raise self.statement.error(node, found, error.problem.expected) from None
        if attribute.divided and kind not in ("sum", "mean"):
            expected = "`SUM` or `AVG` of an amount; the statistic `variance` takes one with `squares: true`"
            raise self.statement.unfit(node, expected)
        if attribute.null_code is not None and kind != "sum":
            conditions = [*conditions, *self._known(node, column)]
        return _Aggregate(kind, conditions, attribute.name)

    def _zeros_and_ones(self, node: exp.Expr, argument: exp.Expr) -> tuple[Conditions, Conditions] | None:
        """Return the conditions of an expression of 1 and 0 to be 1, and not to be NULL; else None."""
        made = scalar(self.scope, argument)
        if self.scope.domain.cells(made.names) > MOST_CELLS:
            return None
        number = f"TRY_CAST(({made.sql}) AS DOUBLE)"
        values = set(values_at_cells(self.scope, made, number).to_pylist())
        if values == {None} == set(values_at_cells(self.scope, made, made.sql).to_pylist()):
            raise nothing(self.statement, node)
        if not values <= {0.0, 1.0, None} or values == {None}:
            return None
        ones, there = (replace(made, node=node, sql=f"{number} {asked}") for asked in ("= 1", "IS NOT NULL"))
        return conditions_of(self.scope, ones), conditions_of(self.scope, there)

    def _known(self, node: exp.Expr, inner: exp.Expr) -> Conditions:
        """Return the condition that an expression is not NULL."""
        known = exp.Not(this=exp.Is(this=exp.paren(inner.copy()), expression=exp.Null()))
        return conditions_of(self.scope, replace(scalar(self.scope, known), node=node))

    def _counted(self, node: exp.Expr) -> Conditions:
        """Return the conditions under which a count counts a record."""
        inner = node.this
        if isinstance(node, exp.CountIf):
            return self._conditions(inner)
        if inner is None or isinstance(inner, exp.Star | exp.Literal):
            return []
        columns = {column.name.lower() for column in node.find_all(exp.Column)}
        distinct = bool(node.expressions) or isinstance(inner, exp.Distinct)
        known = columns & {name.lower() for name in (*self.scope.domain.names, *self.scope.domain.levels)}
        if not known and (distinct or isinstance(unwrapped(inner), exp.Column)):
            expected = (
                "COUNT(*), which counts records; COUNT(DISTINCT id) counts persons where the privacy unit "
                "has this `id`, and each query counts at most one record of a person"
            )
            raise self.statement.unfit(node, expected)
        if distinct:
            raise self.statement.unfit(node, _instead(node))
        return self._known(node, inner)

    def _layout(
        self, conditions: Conditions, keys: Sequence[Key], number: int, node: exp.Expr | None
    ) -> Layout:
        """Return the layout of conditions and keys; errors are those of a part of the statement."""
        domain, parts = self.scope.domain, []
        for names in connected(domain, [*(one.names for one in conditions), *(key.names for key in keys)]):
            cells = domain.cells(names)
            if len(names) > 1 and cells > MOST_CELLS:
                found = f"conditions that join {', '.join(names)}, {cells:,} cells"
                expected = f"at most {MOST_CELLS:,}; use fewer attributes, or fewer values"
                raise self.statement.error(node, found, expected, kind=TooLargeError)
            own = [condition for condition in conditions if set(condition.names) <= set(names)]
            part = part_of(domain, names, own, [key for key in keys if set(key.names) <= set(names)])
            if part.count == 0:
                raise nothing(self.statement, node or self.statement.tree)
            parts.append(part)
        return Layout(domain, tuple(parts), number)


def _instead(node: exp.Expr) -> str:
    """Return advice on what to use instead of an aggregate that cannot be answered."""
    column = unwrapped(node.this) if isinstance(node.this, exp.Expr) else None
    name = column.name if isinstance(column, exp.Column) else "x"
    if isinstance(
        node, exp.Min | exp.Max | exp.Median | exp.Quantile | exp.PercentileCont | exp.PercentileDisc
    ):
        return f"the statistic `quantile: {{{name}: [0.5]}}, by: [...], where: {{...}}`"
    if isinstance(node, exp.Count):
        values = ", ".join(part.name for part in node.find_all(exp.Column)) or "x"
        return (
            f"`SELECT {values}, COUNT(*) ... GROUP BY {values}`, a count for each value: counts that noise "
            "hides do not tell how many values some record has"
        )
    return "COUNT(*), SUM(x), AVG(x), VAR_POP(x), VAR_SAMP(x), STDDEV_POP(x) or STDDEV_SAMP(x)"


# What a predicate set of a statement is in the entry of a statistic.


def _by(attribute: Attribute, predicates: Predicates) -> object:
    """Return predicates as the entry of a statistic has them under `by`."""
    if isinstance(predicates, queries.Identity):
        return "identity"
    sets = [np.flatnonzero(row).tolist() for row in predicates.rows(attribute.size)]
    named = named_sets(attribute, predicates)
    if isinstance(named, queries.Labelled):
        pairs = zip(named.labels, sets, strict=True)
        return {"sets": {name: [attribute.value(code) for code in own] for name, own in pairs}}
    if isinstance(predicates, queries.Ranges) and all(_in_order(attribute, own) for own in sets):
        return {"ranges": [[attribute.value(own[0]), attribute.value(own[-1])] for own in sets]}
    return {"sets": [[attribute.value(code) for code in own] for own in sets]}


def _where(attribute: Attribute, codes: NDArray[np.int64]) -> object:
    """Return the values that a condition allows as the entry of a statistic has them under `where`."""
    listed = codes.tolist()
    if len(listed) > 2 and listed[-1] - listed[0] == len(listed) - 1 and _in_order(attribute, listed):
        return {"range": [attribute.value(listed[0]), attribute.value(listed[-1])]}
    return [attribute.value(code) for code in listed]


def _in_order(attribute: Attribute, codes: Sequence[int]) -> bool:
    """Return whether a range of codes is written by its ends: not of bins, and null has no place."""
    return not isinstance(attribute, Bins) and attribute.null_code not in codes
