"""SQL over public values: what an expression says of every combination of values of some attributes."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import date
from itertools import product
from threading import Event, Thread
from typing import Any

from matrixdp.domain.canonical import canonical_text
from matrixdp.domain.levels import Valued
from matrixdp.domain.rules import BOOLEANS, canonical_value
from matrixdp.errors import DomainError

__all__ = ["by_expression", "public_values"]

_EXPRESSION = "one expression of the parents' names, which has a value for every combination of theirs"
#: No expression of an ordinary size takes as long at a million combinations.
_MOST_SECONDS = 60.0
_LONGEST = 60


def public_values(attribute: Valued) -> list[Any]:
    """Return the value of each code as SQL has it: null for missing values, the lower edge for bins.

    Categories are numbers, booleans or dates where all of them are, or their type says so, otherwise texts.

    Examples
    --------
    >>> from matrixdp.domain import Bins, Categorical
    >>> public_values(Categorical("rooms", ("2", "3"))), public_values(Bins("pay", (0.0, 10.0)))
    ([2, 3], [0.0])
    """
    null = attribute.null_code
    values: list[Any] = [attribute.value(code) for code in attribute.all_codes if code != null]
    if values and all(isinstance(value, str) for value in values):
        values = _typed(getattr(attribute, "type", None), values)
    return values if null is None else [*values, None]


def _typed(declared: str | None, texts: list[str]) -> list[Any]:
    if declared == "date":
        return [date.fromisoformat(text) for text in texts]
    values = [canonical_value(text) for text in texts]
    if declared == "boolean" or (declared is None and set(texts) <= BOOLEANS.keys()):
        return [value == "true" or value == 1.0 for value in values]
    numbers = [value for value in values if isinstance(value, float)]
    if declared == "text" or len(numbers) < len(values):
        return list(texts)
    whole = all(number == math.floor(number) and abs(number) < 2**53 for number in numbers)
    return [int(number) for number in numbers] if whole else list(numbers)


def by_expression(parents: Sequence[Valued], expression: str) -> list[object]:
    """Return what an expression of SQL says of each combination of the parents' values, row-major.

    DuckDB evaluates it in a database of its own, which holds these public values alone and reads no file.

    Raises
    ------
    DomainError
        If it is not one expression of the parents, or fails on a combination.
    """
    import duckdb
    import pyarrow as pa

    from matrixdp.domain.scalars import SETTINGS

    columns = zip(*product(*(public_values(parent) for parent in parents)), strict=True)
    arrays = {parent.name: pa.array(list(column)) for parent, column in zip(parents, columns, strict=True)}
    place = next(name for n in range(len(arrays) + 1) if (name := f"place{n}") not in arrays)
    rows = math.prod(parent.size for parent in parents)
    table: Any = pa.table({**arrays, place: pa.array(range(rows))})
    made = _checked(expression, arrays)
    with duckdb.connect(config={**SETTINGS, "memory_limit": "2GB", "temp_directory": ""}) as connection:
        done = Event()

        def interrupt() -> None:
            while not done.wait(_MOST_SECONDS):
                connection.interrupt()

        clock = Thread(target=interrupt, daemon=True)
        clock.start()
        try:
            held = connection.from_arrow(table)
            found = held.project(f'({made}) AS "value", "{place}"').order(f'"{place}"').fetchall()
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise DomainError.at((), f"an expression that fails ({reason})", _EXPRESSION) from None
        finally:
            done.set()
            clock.join()
    return [row[0] for row in found]


def _checked(expression: str, parents: Collection[str]) -> str:
    """Return an expression, made anew of the parents, and of operators and functions of the list alone."""
    import sqlglot
    from sqlglot import exp

    from matrixdp.domain.scalars import not_allowed

    try:
        # The line end closes a comment; a second statement, or column, is no part of an expression.
        [tree] = sqlglot.parse(f"SELECT ({expression}\n)", dialect="duckdb")
        if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
            raise ValueError("several statements or columns")
        made: str = tree.expressions[0].sql(dialect="duckdb", comments=False, identify=True)
    except (sqlglot.errors.SqlglotError, RecursionError, ValueError):
        raise DomainError.at((), "what is no such expression", _EXPRESSION) from None
    names = {name.lower() for name in parents}
    for node in tree.walk():
        if isinstance(node, exp.Column):
            expected = None if node.name.lower() in names and not node.table else _EXPRESSION
        else:
            expected = None if node is tree else not_allowed(node)
        if expected is not None:
            found = node.sql(dialect="duckdb", comments=False)
            raise DomainError.at((), found if len(found) < _LONGEST else f"{found[:_LONGEST]}...", expected)
    return made


def text_of(value: object) -> str:
    """Return the text of a value that an expression gave, as a category."""
    if isinstance(value, date):
        return value.isoformat()
    return canonical_text(value)
