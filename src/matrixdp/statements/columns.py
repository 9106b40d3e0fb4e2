"""The public values of an attribute as a column of SQL: what a condition is evaluated on in place of data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

import pyarrow as pa

from matrixdp.domain import Attribute, Bins, Categorical
from matrixdp.domain.canonical import canonical_text
from matrixdp.domain.rules import BOOLEANS, canonical_value

__all__ = ["column_values", "key_values"]


def column_values(attribute: Attribute) -> pa.Array:
    """Return the column that stands for an attribute: its value at each code; for bins, their codes.

    Categories are texts, or numbers, booleans or dates where all of them are, or their type says so.

    Examples
    --------
    >>> column_values(Categorical("rooms", ("2", "3"))).to_pylist()
    [2, 3]
    >>> column_values(Categorical("smokes", ("yes", "no"))).to_pylist()
    ['yes', 'no']
    """
    if isinstance(attribute, Bins):
        return pa.array(range(attribute.size), pa.int64())
    values = [attribute.value(code) for code in range(attribute.size)]
    if isinstance(attribute, Categorical):
        return _categories(attribute.type, [str(value) for value in values])
    return pa.array(values)


def key_values(attribute: Attribute) -> pa.Array:
    """Return what a result has in the column of an attribute that it is grouped by: bins by their labels."""
    if isinstance(attribute, Bins):
        return pa.array([attribute.label(code) for code in range(attribute.size)], pa.utf8())
    return column_values(attribute)


def _categories(declared: str | None, texts: Sequence[str]) -> pa.Array:
    if declared == "date":
        return pa.array([date.fromisoformat(text) for text in texts], pa.date32())
    values = [canonical_value(text) for text in texts]
    if declared == "boolean" or (declared is None and set(texts) <= BOOLEANS.keys()):
        truths = [BOOLEANS[value] if isinstance(value, str) else value for value in values]
        return pa.array([value == 1.0 for value in truths], pa.bool_())
    numbers = [value for value in values if isinstance(value, float)]
    if declared == "text" or len(numbers) < len(values):
        return pa.array(texts, pa.utf8())
    # as the reader of a file would type a column of these
    if all(number == math.floor(number) and "." not in canonical_text(number) for number in numbers):
        return pa.array([int(number) for number in numbers], pa.float64() if _wide(numbers) else pa.int64())
    return pa.array(numbers, pa.float64())


def _wide(numbers: Sequence[float]) -> bool:
    return any(abs(number) >= 2.0**53 for number in numbers)
