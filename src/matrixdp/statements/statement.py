"""Statements, and reading them from a text.

The parser is imported when a statement is first read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from matrixdp.domain import Domain
from matrixdp.statements.written import Written, error_at

if TYPE_CHECKING:
    from matrixdp.statements.query import SqlQuery

__all__ = ["Statement", "read", "read_all"]


@final
@dataclass(frozen=True, eq=False)
class Statement(Written):
    """One SELECT statement, parsed; it meets its domain in `query`."""

    def query(self, domain: Domain) -> SqlQuery:
        """Return what the statement asks of a domain, and the shape of its result.

        Parameters
        ----------
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
        >>> domain = Domain({"sex": ["female", "male"], "age": range(115)})
        >>> query = read("SELECT sex, COUNT(*) FROM people WHERE age >= 18 GROUP BY sex").query(domain)
        >>> [group.queries for group in query.groups], query.keys.to_pydict()
        ([2], {'sex': ['female', 'male']})
        """
        from matrixdp.statements.translation import translate

        return translate(self, domain)


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
