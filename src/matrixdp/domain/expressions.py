"""SQL over public values: what an expression says of every combination of values of some attributes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from itertools import product
from typing import Any

from matrixdp.domain.canonical import canonical_text
from matrixdp.domain.levels import Valued
from matrixdp.domain.rules import BOOLEANS, canonical_value
from matrixdp.errors import DomainError

__all__ = ["by_expression", "public_values"]

_EXPRESSION = "one expression of the parents' names, which has a value for every combination of theirs"
#: The names in an expression, and the functions whose values do not follow from their arguments alone.
_NAMES = """
SELECT unnest(json_extract_string(json_serialize_sql(?::VARCHAR), '$..function_name'))
UNION ALL SELECT unnest(json_extract_string(json_serialize_sql(?::VARCHAR), '$..column_names[0]'))
"""
_UNSTABLE = "SELECT DISTINCT function_name FROM duckdb_functions() WHERE stability <> 'CONSISTENT'"


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
    values: list[Any] = [attribute.value(code) for code in range(attribute.size) if code != null]
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

    columns = zip(*product(*(public_values(parent) for parent in parents)), strict=True)
    arrays = {parent.name: pa.array(list(column)) for parent, column in zip(parents, columns, strict=True)}
    place = next(name for n in range(len(arrays) + 1) if (name := f"place{n}") not in arrays)
    rows = math.prod(parent.size for parent in parents)
    table: Any = pa.table({**arrays, place: pa.array(range(rows))})
    settings: Any = {"enable_external_access": False, "autoinstall_known_extensions": False, "threads": 1}
    with duckdb.connect(config=settings) as connection:
        try:
            names = connection.execute(_NAMES, [f"SELECT ({expression}\n)"] * 2).fetchall()
            used = {str(name).lower() for (name,) in names} - {parent.lower() for parent in arrays}
            unstable = {name for (name,) in connection.execute(_UNSTABLE).fetchall()} if used else set()
            changing = sorted(used & unstable)
            if changing:
                expected = f"{_EXPRESSION}, and the same one every time and every day"
                raise DomainError.at((), f"{changing[0]}, which has other values at other times", expected)
            held = connection.from_arrow(table)
            found = held.project(f'({expression}\n) AS "value", "{place}"').order(f'"{place}"').fetchall()
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise DomainError.at((), f"an expression that fails ({reason})", _EXPRESSION) from None
    if [row[-1] for row in found] != list(range(rows)) or any(len(row) != 2 for row in found):
        raise DomainError.at((), "what is no such expression", _EXPRESSION)
    return [row[0] for row in found]


def text_of(value: object) -> str:
    """Return the text of a value that an expression gave, as a category."""
    if isinstance(value, date):
        return value.isoformat()
    return canonical_text(value)
