"""Entries of a workload that are SQL statements, and the statistic that SQL alone can say."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack, cast, final

import numpy as np
from numpy.typing import NDArray

from matrixdp import forms
from matrixdp.domain import Attribute, Domain
from matrixdp.errors import EntryError, MatrixDPError
from matrixdp.forms import Form, FormError, ResolvePath, Schema, WriteArray, as_lists, key, record
from matrixdp.language.builders import Options
from matrixdp.language.entries import Entry, entry_form
from matrixdp.queries.groups import Group
from matrixdp.statements.query import SqlQuery, Statement, error_at, sql_of
from matrixdp.statistics.statistic import Column, StatisticEntry, Table, figures

if TYPE_CHECKING:
    from matrixdp.answers.inference import Inference
    from matrixdp.statements.aggregates import Expression

# Statements, and reading them from a text.
#
# The parser is imported when a statement is first read.


def read(text: str) -> Statement:
    """Return the one statement of a text.

    Parameters
    ----------
    text : str
        A SELECT statement; a semicolon may end it.

    Raises
    ------
    EntryError
        If it is not exactly one statement that SQL can have.

    Examples
    --------
    >>> read("SELECT COUNT(*) FROM people;").text
    'SELECT COUNT(*) FROM people'
    >>> read("SELECT COUNT(*) FRM people")
    Traceback (most recent call last):
        ...
    matrixdp.errors.EntryError: sql: found 'people' (line 1, column 21); expected SQL that ...
    """
    statements = read_all(text)
    if len(statements) > 1:
        found = f"{len(statements)} statements"
        raise error_at(text, statements[1].start, found, "one")
    return statements[0]


def read_all(text: str) -> tuple[Statement, ...]:
    """Return the statements of a text, separated by semicolons.

    Parameters
    ----------
    text : str
        SELECT statements.

    Raises
    ------
    EntryError
        If there is none, or one is not a SELECT statement.

    Examples
    --------
    >>> [statement.start for statement in read_all("SELECT COUNT(*) FROM a; SELECT COUNT(*) FROM b")]
    [0, 24]
    """
    from matrixdp.statements.parsing import parsed

    return tuple(Statement(text[first:last], text, tree, first) for first, last, tree in parsed(text))


@record
class _SqlEntries(Entry):
    """One statement or several; each asks a group for each of its grouping sets and counts."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The statements."""

    @cached_property
    def statements(self) -> tuple[Statement, ...]:
        """The statements, parsed."""
        return read_all(self.text)

    def check(self) -> None:
        super().check()
        with self._named():
            self.statements  # noqa: B018 - errors are raised before there is a domain

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Let errors inside statements tell the key under which these stand."""
        try:
            yield
        except MatrixDPError as error:
            problem = error.problem
            if problem is None or problem.path[:1] != ("sql",):
                raise
            raise type(error)(replace(problem, path=(self.main_key(), *problem.path[1:]))) from None

    def to_spec(self, write_array: WriteArray = as_lists) -> dict[str, object]:
        """Return the entry with its statements, wherever they were read from."""
        spec = super().to_spec(write_array)
        spec.pop(self.main_key())
        return {"sql": self.text} | spec

    def _queries(self, domain: Domain) -> list[SqlQuery]:
        from matrixdp.statements.translation import translate

        with self._named():
            return [translate(statement, domain) for statement in self.statements]

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of the statements in their order.

        Raises
        ------
        EntryError
            If they ask anything but counts; such an entry stands for several, see `split`.
        """
        queries = self._queries(domain)
        if not all(query.counts for query in queries):
            found, expected = "statistics", "counts alone; statistics in SQL are an entry of their own"
            raise EntryError.at((self.main_key(),), found, expected)
        single = sum(len(query.groups) for query in queries) == 1
        titles = [title for query in queries for title in query.titles(self.name, single=single)]
        groups = [group for query in queries for group in query.groups]
        return self.weighted([replace(own, name=title) for own, title in zip(groups, titles, strict=True)])

    def split(self, domain: Domain) -> list[Entry]:
        """Return the entry, or where statistics are asked one entry for each count and each statistic."""
        queries = self._queries(domain)
        if all(query.counts for query in queries):
            return [self]
        if self.count == "persons":
            found, expected = "statistics beside persons", "statements of their own for counts of persons"
            raise EntryError.at((self.main_key(),), found, expected, code="not-supported")
        number = sum(len(query.asked) for query in queries)
        self.check_single(number)
        weight = {} if self.weight == 1.0 else {"weight": self.weight}
        if self.budget_share is not None:
            weight = {"budget_share": self.budget_share / number}
        made: list[Entry] = []
        for query in queries:
            titles = query.titles(self.name, single=number == 1)
            for place, (asked, title) in enumerate(zip(query.asked, titles, strict=True)):
                form: type[Entry] = SqlEntry if isinstance(asked, Group) else SqlExpression
                spec: dict[str, object] = {"sql": query.alone(place)}
                if isinstance(asked, StatisticEntry):
                    form, spec = type(asked), asked.to_spec()
                made.append(form.read(spec | weight | {"name": title}))
        return made

    def of_persons(self, column: str, *, single: bool) -> Entry:
        """Return the entry with counts of ids as counts of records, of which a person has a `single` one.

        Where she may have several, it counts persons if it counts distinct ids.
        """
        from matrixdp.statements.clauses import of_persons

        made, distinct = zip(*(of_persons(own, column) for own in self.statements), strict=True)
        if all(new is old for new, old in zip(made, self.statements, strict=True)):
            return self
        text = ";\n".join(sql_of(statement.tree) for statement in made)
        count = "persons" if any(distinct) and not single else self.count
        return SqlEntry.read(self.to_spec() | {"sql": text, "count": count})


@final
@entry_form
@record
class SqlEntry(_SqlEntries):
    """SQL statements, separated by semicolons; they are never executed on the data."""

    text: str = key(forms.text("SQL: SELECT ..., COUNT(*) FROM table WHERE ... GROUP BY ..."), name="sql")


@final
@record
class SqlExpression(StatisticEntry):
    """One expression of aggregates, by some keys: a statement that asks nothing else."""

    text: str = key(forms.text("SQL of one expression of aggregates"), name="sql")

    @property
    def kind(self) -> str:
        return "expression"

    @property
    def measures(self) -> str:
        from sqlglot import exp

        [item, *_] = [own.unalias() for own in read(self.text).tree.selects if own.find(exp.AggFunc)]
        case = item.this if isinstance(item, exp.Avg) else None
        # what has an ELSE is 1 and 0
        return "share" if isinstance(case, exp.Case) and case.args.get("default") else "values"

    def _asked(self, domain: Domain) -> tuple[SqlQuery, Expression]:
        from matrixdp.statements.translation import translate

        query = translate(read(self.text), domain)
        return query, cast("Expression", query.asked[0])

    def limits(self, domain: Domain) -> tuple[float, float]:
        return self._asked(domain)[1].limits

    def groups(self, domain: Domain) -> list[Group]:
        return self.weighted(self._asked(domain)[1].groups)

    def known_after(self, domain: Domain, attribute: Attribute) -> NDArray[np.intp]:
        query, expression = self._asked(domain)
        [places] = query.places
        return expression.known_after(attribute)[places.queries]

    def evaluate(self, inference: Inference) -> Table:
        query, expression = self._asked(inference.domain)
        known, [places] = expression.known(inference), query.places
        warnings = [known.warnings[place] for place in places.queries] if known.warnings else []
        columns = [
            *figures(*known.figures[:, places.queries]),
            Column("warning", warnings or [None] * len(places.queries)),
        ]
        return inference.table(query.keys, columns, known.note, statistic=self.text)


@final
@dataclass(frozen=True)
class _FileOfText(Form[str]):
    """A file, of which the text is kept."""

    def read(self, written: object, resolve: ResolvePath) -> str:
        value = resolve(written)
        if not isinstance(value, str | os.PathLike) or not os.fspath(value):
            raise FormError.at((), forms.describe_value(written), "a file of SQL statements")
        try:
            return Path(value).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            reason = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else "cannot be read"
            found = f"a file that {reason} at {os.fspath(value)}"
            raise FormError.at((), found, "a file of SQL statements") from None

    def schema(self, definitions: Schema) -> Schema:
        return {"type": "string", "minLength": 1}


@final
@entry_form
@record
class SqlFileEntry(_SqlEntries):
    """A file of SQL statements, separated by semicolons; what is recorded is its text."""

    text: str = key(_FileOfText(), name="sql_file", about="a file of SQL statements")


def sql(statements: str, **options: Unpack[Options]) -> SqlEntry:
    """Return an entry that asks what SQL statements ask; they are parsed, and never executed on data.

    Counts are query groups. A statement with sums, averages, variances or arithmetic on aggregates stands in
    a workload for one entry for each count and each statistic.

    Parameters
    ----------
    statements : str
        ``SELECT ..., COUNT(*), AVG(x) FROM table WHERE ... GROUP BY ...``: one statement, or several
        separated by semicolons, in DuckDB's dialect. The columns are the attributes of the domain.
    **options : Options
        The weight, the weights and the name.

    Raises
    ------
    EntryError
        If it is no SQL; what it asks is checked when the entry meets its domain. At its line and column.

    Examples
    --------
    >>> from matrixdp.domain import Domain
    >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
    >>> entry = sql("SELECT sex, COUNT(*) FROM people WHERE age BETWEEN 18 AND 64 GROUP BY sex")
    >>> [(group.name, group.queries) for group in entry.expand(domain)]
    [('sex where age BETWEEN 18 AND 64', 2)]
    """
    return SqlEntry.read({"sql": statements, **options})
