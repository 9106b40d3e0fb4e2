"""Entries of a workload that are SQL statements."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Unpack, final

from matrixdp import forms
from matrixdp.domain import Domain
from matrixdp.errors import MatrixDPError
from matrixdp.forms import Form, FormError, ResolvePath, Schema, WriteArray, as_lists, key, record
from matrixdp.language.builders import Options
from matrixdp.language.entries import Entry, entry_form
from matrixdp.queries.groups import Group
from matrixdp.statements.query import Statement, error_at

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
            self.statements  # noqa: B018 - an error is told before there is a domain

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

    def groups(self, domain: Domain) -> list[Group]:
        """Return the groups of the statements in their order."""
        from matrixdp.statements.translation import translate

        with self._named():
            queries = [translate(statement, domain) for statement in self.statements]
        single = sum(len(query.groups) for query in queries) == 1
        return self.weighted([group for query in queries for group in query.named(self.name, single=single)])


@final
@entry_form
@record
class SqlEntry(_SqlEntries):
    """SQL statements, separated by semicolons; they are never executed on the data."""

    sql: str = key(forms.text("SQL: SELECT ..., COUNT(*) FROM table WHERE ... GROUP BY ..."))

    @property
    def text(self) -> str:
        """The statements."""
        return self.sql


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
    """Return an entry that asks what SQL statements count; they are parsed, and never executed on data.

    Parameters
    ----------
    statements : str
        ``SELECT ..., COUNT(*) FROM table WHERE ... GROUP BY ...``: one statement, or several separated by
        semicolons, in DuckDB's dialect. The columns are the attributes of the domain.
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
