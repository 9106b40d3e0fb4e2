"""What a statement asks: query groups, and the shape of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, MatrixDPError
from matrixdp.language.periods import each_known_after
from matrixdp.queries import Group
from matrixdp.statistics import StatisticEntry

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from matrixdp.statements.aggregates import Expression
    from matrixdp.statements.clauses import Item
    from matrixdp.statements.layouts import Layout
    from matrixdp.statements.rows import Choice


# One SQL statement as written: its text, its tree, and where in the text each part of it stands.

_EXCERPT = 60
Names = tuple[str, ...]
Kind = type[MatrixDPError]


@final
@dataclass(frozen=True, eq=False)
class Statement:
    """One SELECT statement, parsed; nothing in it refers to a domain yet.

    Attributes
    ----------
    text : str
        The statement as written.
    whole : str
        The text that it is part of, in which places are told.
    tree : sqlglot.exp.Select
        What the parser made of it.
    start : int
        Where it starts in the whole text.
    """

    text: str
    whole: str = field(repr=False)
    tree: exp.Select = field(repr=False)
    start: int = field(default=0, repr=False)

    def error(
        self, node: exp.Expr | None, found: str, expected: str, names: Names = (), kind: Kind = EntryError
    ) -> MatrixDPError:
        """Return the error of a part of the statement, which tells its line and column.

        Parameters
        ----------
        node : expression or None
            The part; None for the whole statement.
        found, expected : str
            What stands there, and what would be right.
        names : tuple of str
            What may have been meant.
        kind : type of error
        """
        starts: list[int] = []
        while node is not None and not starts:  # the parser does not tell where every node stands
            starts = [int(part.meta["start"]) for part in node.walk() if "start" in part.meta]
            node = node.parent
        return error_at(self.whole, min(starts, default=self.start), found, expected, names, kind)

    def unfit(self, node: exp.Expr, expected: str) -> MatrixDPError:
        """Return the error of a part of the statement that is quoted as it stands."""
        return self.error(node, self.excerpt(node), expected)

    def excerpt(self, node: exp.Expr) -> str:
        """Return a part of the statement as SQL, cut where it is long."""
        from sqlglot import ErrorLevel

        text = sql_of(node, unsupported_level=ErrorLevel.IGNORE)
        return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 3]}..."


def error_at(
    whole: str, start: int, found: str, expected: str, names: Names = (), kind: Kind = EntryError
) -> MatrixDPError:
    """Return the error of a place in a text, by its line and column."""
    line, column = whole.count("\n", 0, start) + 1, start - whole.rfind("\n", 0, start)
    return kind.at(("sql",), f"{found} (line {line}, column {column})", expected, names)


def sql_of(node: exp.Expr, **options: Any) -> str:
    """Return an expression as SQL of DuckDB."""
    return node.sql(dialect="duckdb", comments=False, **options)


_LONGEST_NAME = 100


Asked: TypeAlias = "Group | StatisticEntry | Expression"


class Places(NamedTuple):
    """Where the answers of one aggregate stand, for each row of the result.

    Attributes
    ----------
    asked : ndarray of int
        For each row the place in what the query asks.
    queries : ndarray of int
        The query or the row of that, -1 where the answer is 0 whatever the data: no record can fit.
    """

    asked: NDArray[np.int64]
    queries: NDArray[np.int64]


class Known(NamedTuple):
    """What is known of something that a statement asks.

    Attributes
    ----------
    figures : ndarray, shape (4, queries)
        Estimates, standard errors, lower and upper ends of intervals.
    note : str
        How the intervals are made, where that is not as of counts, and what to know besides.
    warnings : list of str or None
        What to know of each query; nothing where there is nothing of any.
    measures : str
        What the figures are of: ``records``, ``share``, an attribute, or other ``values``.
    within : tuple of float or None
        Between what the true figures are, as is public; None for no end.
    """

    figures: NDArray[np.float64]
    note: str = ""
    warnings: Sequence[str | None] = ()
    measures: str = "values"
    within: Sequence[float | None] = (None, None)


@final
@dataclass(frozen=True, eq=False)
class SqlQuery:
    """What a statement asks of a domain.

    Attributes
    ----------
    asked : tuple of Group, StatisticEntry or Expression
        For each grouping set, for each aggregate: the counts, the statistic, or the expression of aggregates.
    columns : tuple of Item
        The columns of the result in the order of SELECT.
    values : tuple of pyarrow.Array
        The values that each key has.
    items : sequence of Item
        The aggregates; those that HAVING and ORDER BY alone need are the last.
    choice : Choice or None
        Which rows are shown, and in which order.
    alone : callable
        From a place in what is asked to a statement that asks this, and nothing else.
    """

    asked: tuple[Asked, ...]
    columns: tuple[Item, ...]
    values: tuple[pa.Array, ...]
    items: Sequence[Item]
    choice: Choice | None
    alone: Callable[[int], str] = field(repr=False)
    _layouts: tuple[tuple[Layout, tuple[Layout, ...]], ...] = field(repr=False)

    @property
    def groups(self) -> tuple[Group, ...]:
        """The query groups that the counts need; none for statistics and expressions."""
        return tuple(one for one in self.asked if isinstance(one, Group))

    @property
    def counts(self) -> bool:
        """Whether all that is asked are counts."""
        return len(self.groups) == len(self.asked)

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """The rank of each key in each row of the result, shape (rows, keys), -1 where it is rolled up."""
        return np.concatenate([base.codes[base.order] for base, _ in self._layouts])

    def key(self, key: int) -> pa.Array:
        """Return the values of a key in every row of the result; null where rolled up."""
        import pyarrow as pa

        return self.values[key].take(pa.array(self.ranks[:, key], mask=self.ranks[:, key] < 0))

    @cached_property
    def keys(self) -> pa.Table:
        """The columns of the result that are keys, with every row of it; null where rolled up."""
        import pyarrow as pa

        shown = [(column.name, column.key) for column in self.columns if column.key is not None]
        return pa.Table.from_arrays([self.key(key) for _, key in shown], names=[name for name, _ in shown])

    @cached_property
    def places(self) -> tuple[Places, ...]:
        """For each aggregate where the answer of each row stands."""
        found = []
        for place in range(len(self.items)):
            own = [base.queries_of(made[place])[base.order] for base, made in self._layouts]
            asked = np.arange(place, len(self.asked), len(self.items))
            found.append(Places(np.repeat(asked, list(map(len, own))), np.concatenate(own)))
        return tuple(found)

    def shown(
        self, estimates: Sequence[NDArray[np.float64]], known: NDArray[np.bool_] | None = None
    ) -> NDArray[np.int64]:
        """Return the places of the rows to show, given the estimates of each aggregate.

        Of those that are ``known``, where some are not, as of a series that goes on.
        """
        import pyarrow as pa

        rows = np.arange(len(self.ranks)) if known is None else np.flatnonzero(known)
        if self.choice is None:
            return rows
        columns = {f"i{place}": pa.array(own, mask=~np.isfinite(own)) for place, own in enumerate(estimates)}
        for key in range(len(self.values)):
            columns |= {f"g{key}": self.key(key), f"r{key}": pa.array(self.ranks[:, key])}
        return rows[self.choice.rows(pa.table(columns).take(rows))]

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        """Return the period of a series after which each row is known: the last that an aggregate needs."""
        each = [
            each_known_after(asked, attribute)
            if isinstance(asked, Group)
            else asked.known_after(domain, attribute)
            if isinstance(asked, StatisticEntry)
            else asked.known_after(attribute)
            for asked in self.asked
        ]
        starts = np.cumsum([0, *map(len, each)])
        every = np.concatenate([*each, [-1]])  # the last where no record can fit
        found = [every[np.where(own.queries < 0, -1, starts[own.asked] + own.queries)] for own in self.places]
        return np.asarray(np.max([np.full(len(self.ranks), -1), *found], axis=0))

    def titles(self, name: str | None, *, single: bool) -> list[str]:
        """Return the titles, given the name of an entry and whether it stands for one thing."""
        found = []
        for asked, item in zip(self.asked, cycle(self.items), strict=False):
            title = asked.name if isinstance(asked, Group) else asked.text
            if (
                len(self.items) > 1
                if self.counts
                else item.called or not isinstance(asked, Group | StatisticEntry)
            ):
                title = f"{item.name}: {title}"
            found.append(shortened(title) if name is None else name if single else f"{name}: {title}")
        return found


def shortened(name: str) -> str:
    """Return the name of a group that has none of its own, cut where it is long."""
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 3]}..."
