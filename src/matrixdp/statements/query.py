"""What a statement asks: query groups, and the shape of its result."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import cycle
from typing import TYPE_CHECKING, Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import EntryError, MatrixDPError
from matrixdp.queries import Group

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

    from matrixdp.statements.translation import Layout

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

    def unfit(self, node: exp.Expr, expected: str, names: Names = ()) -> MatrixDPError:
        """Return the error of a part of the statement that is quoted as it stands."""
        return self.error(node, self.excerpt(node), expected, names)

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


@final
@dataclass(frozen=True)
class Column:
    """One column of a result.

    Attributes
    ----------
    name : str
        Its alias, else what it asks.
    key : int or None
        Which of the keys of the query it shows.
    aggregate : int or None
        Which of the aggregates of the query it shows.
    """

    name: str
    key: int | None = None
    aggregate: int | None = None


@final
@dataclass(frozen=True)
class Places:
    """Where the answers of one aggregate stand, for each row of the result.

    Attributes
    ----------
    groups : ndarray of int
        The group of each row.
    queries : ndarray of int
        The query of that group, -1 where the count is 0 whatever the data: no record of the domain fits.
    """

    groups: NDArray[np.int64]
    queries: NDArray[np.int64]


@final
@dataclass(frozen=True, eq=False)
class SqlQuery:
    """What a statement asks of a domain.

    Attributes
    ----------
    groups : tuple of Group
        What is asked: for each grouping set, for each aggregate, a group; none for what is 0 in any case.
    columns : tuple of Column
        The columns of the result in the order of SELECT.
    values : tuple of pyarrow.Array
        The values that each key has.
    """

    groups: tuple[Group, ...]
    columns: tuple[Column, ...]
    values: tuple[pa.Array, ...]
    _layouts: tuple[tuple[Layout, tuple[Layout, ...]], ...] = field(repr=False)
    _aliases: tuple[str, ...] = field(repr=False)

    @cached_property
    def keys(self) -> pa.Table:
        """The columns of the result that are no counts, with every row of it; null where rolled up."""
        import pyarrow as pa

        codes = np.concatenate([base.sorted_codes(len(self.values)) for base, _ in self._layouts])
        shown = [(column.name, column.key) for column in self.columns if column.key is not None]
        arrays = [self.values[key].take(pa.array(codes[:, key], mask=codes[:, key] < 0)) for _, key in shown]
        return pa.Table.from_arrays(arrays, names=[name for name, _ in shown])

    @cached_property
    def places(self) -> tuple[Places, ...]:
        """For each aggregate where the answer of each row stands."""
        found = []
        for aggregate in range(len(self._aliases)):
            own = [base.queries_of(made[aggregate], len(self.values)) for base, made in self._layouts]
            groups = np.arange(len(own)) * len(self._aliases) + aggregate
            found.append(Places(np.repeat(groups, list(map(len, own))), np.concatenate(own)))
        return tuple(found)

    def named(self, name: str | None, *, single: bool) -> list[Group]:
        """Return the groups by the names that they have in an entry of a workload.

        Parameters
        ----------
        name : str or None
            The name of the entry.
        single : bool
            Whether the entry stands for one group.
        """
        found = []
        for group, alias in zip(self.groups, cycle(self._aliases), strict=False):
            called = group.name if len(self._aliases) == 1 else f"{alias}: {group.name}"
            if name is not None:
                called = name if single else f"{name}: {called}"
            elif len(called) > _LONGEST_NAME:
                called = f"{called[: _LONGEST_NAME - 3]}..."
            found.append(replace(group, name=called))
        return found
