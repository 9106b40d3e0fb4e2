"""One SQL statement as written: its text, its tree, and where in the text each part of it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from matrixdp.errors import EntryError

if TYPE_CHECKING:
    from sqlglot import exp

__all__ = ["Written", "error_at"]

_EXCERPT = 60


@dataclass(frozen=True, eq=False)
class Written:
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
        self, node: exp.Expr | None, found: str, expected: str, names: tuple[str, ...] = ()
    ) -> EntryError:
        """Return the error of a part of the statement, which tells its line and column.

        Parameters
        ----------
        node : expression or None
            The part; None for the whole statement.
        found, expected : str
            What stands there, and what would be right.
        names : tuple of str
            What may have been meant.
        """
        starts: list[int] = []
        while node is not None and not starts:  # the parser does not tell where every node stands
            starts = [int(part.meta["start"]) for part in node.walk() if "start" in part.meta]
            node = node.parent
        return error_at(self.whole, min(starts, default=self.start), found, expected, names)

    def excerpt(self, node: exp.Expr) -> str:
        """Return a part of the statement as SQL, cut where it is long."""
        from sqlglot import ErrorLevel

        text = node.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE)
        return text if len(text) <= _EXCERPT else f"{text[: _EXCERPT - 3]}..."


def error_at(whole: str, start: int, found: str, expected: str, names: tuple[str, ...] = ()) -> EntryError:
    """Return the error of a place in a text, by its line and column."""
    line, column = whole.count("\n", 0, start) + 1, start - whole.rfind("\n", 0, start)
    return EntryError.at(("sql",), f"{found} (line {line}, column {column})", expected, names)
