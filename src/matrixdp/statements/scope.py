"""What the names in a statement mean."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

from sqlglot import exp

from matrixdp.domain import Attribute, Domain
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

    def attribute(self, column: exp.Expr) -> Attribute:
        """Return the attribute that a column names; in another case of letters where only one is meant.

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
        if name in self.domain:
            return self.domain[name]
        alike = _same(name, self.domain.names)
        if len(alike) == 1:
            return self.domain[alike[0]]
        close = nearest(name, self.domain.names)
        raise self.statement.error(column, repr(name), "an attribute of the domain", close)


def _same(name: str, names: tuple[str, ...]) -> list[str]:
    return [other for other in names if other.lower() == name.lower()]
