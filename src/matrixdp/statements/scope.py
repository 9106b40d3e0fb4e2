"""What the names in a statement mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from sqlglot import exp

from matrixdp.domain import Attribute, Domain, Level
from matrixdp.forms import nearest
from matrixdp.statements.written import Written

__all__ = ["Scope"]


@final
@dataclass(frozen=True)
class Scope:
    """The columns that expressions may name: the attributes of a domain, under the name of one table.

    Attributes
    ----------
    statement : Written
    domain : Domain
    tables : tuple of str
        What the table may be called.
    constant : callable
        From an SQL expression without attributes, and a type of SQL, to its value of that type; None where it
        has none.
    """

    statement: Written
    domain: Domain
    tables: tuple[str, ...]
    constant: Callable[[str, str], object]

    def named(self, column: exp.Expr) -> tuple[Attribute, Level | None]:
        """Return the attribute that a column names, and which of its levels if it names one of them.

        A name in another case of letters means what it can mean alone.

        Raises
        ------
        EntryError
            If there is none.
        """
        name = column.name
        parts = [part.name for part in column.parts] if isinstance(column, exp.Column) else [name]
        if len(parts) > 2 or (len(parts) == 2 and not _same(parts[0], self.tables)):
            expected = f"a column of {self.tables[-1]!r}, the one table"
            raise self.statement.error(column, repr(".".join(parts)), expected)
        if name not in self.domain:
            names = (*self.domain.names, *self.domain.levels)
            alike = _same(name, names)
            if len(alike) != 1 and name not in names:
                expected = "an attribute of the domain"
                raise self.statement.error(column, repr(name), expected, nearest(name, names))
            name = name if name in names else alike[0]
        level = None if name in self.domain else self.domain.levels[name]
        attribute = self.domain[name] if level is None else level
        return attribute, None if level is None else level.level(name)

    def attribute(self, column: exp.Expr) -> Attribute:
        """Return the attribute that a column names, or one of whose levels it names."""
        return self.named(column)[0]


def _same(name: str, names: tuple[str, ...]) -> list[str]:
    return [other for other in names if other.lower() == name.lower()]
