"""The public values of an attribute as columns of SQL: what is evaluated in place of data."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date

import numpy as np
import pyarrow as pa

from matrixdp.domain import Attribute, Bins, Categorical, Coded, Dates, Integers, Level
from matrixdp.domain.canonical import canonical_text
from matrixdp.domain.rules import BOOLEANS, canonical_value

__all__ = ["column_values", "key_values", "labels", "level_values", "named"]


def column_values(attribute: Attribute) -> pa.Array:
    """Return the column that stands for an attribute: its value at each code, null for missing values.

    Categories are texts, or numbers, booleans or dates where all of them are, or their type says so. Bins
    have no values of their own: nulls. Days are dates; weeks, months and quarters are texts.

    Examples
    --------
    >>> column_values(Categorical("rooms", ("2", "3"))).to_pylist()
    [2, 3]
    >>> column_values(Categorical("smokes", ("yes", "no"))).to_pylist()
    ['yes', 'no']
    """
    count = len(attribute.all_codes) - (attribute.null_code is not None)
    if isinstance(attribute, Bins):
        found = pa.nulls(count, pa.float64())
    elif isinstance(attribute, Categorical):
        found = _categories(attribute.type, [str(attribute.value(code)) for code in range(count)])
    elif isinstance(attribute, Dates) and attribute.by == "day":
        days = [date.fromisoformat(str(attribute.value(code))) for code in range(count)]
        found = pa.array(days, pa.date32())
    elif isinstance(attribute, Integers | Coded):
        found = pa.array(np.arange(count) + int(attribute.value(0)))
    else:
        found = pa.array([attribute.value(code) for code in range(count)])
    missing = attribute.size - count
    return pa.concat_arrays([found, pa.nulls(missing, found.type)]) if missing else found


def labels(attribute: Attribute) -> pa.Array:
    """Return what the values are called."""
    return pa.array([attribute.label(code) for code in attribute.all_codes], pa.utf8())


def level_values(level: Level, size: int) -> pa.Array:
    """Return the value of a level that each value of its attribute is in."""
    names: list[str | None] = [None] * size
    for value, codes in level.groups:
        for code in codes:
            names[code] = value
    return pa.array(names, pa.utf8())


def key_values(attribute: Attribute) -> pa.Array:
    """Return what a result has in the column of an attribute that it is grouped by.

    Its values; what they are called for bins, and where the domain has names for values or for missing ones.
    """
    return labels(attribute) if named(attribute) else column_values(attribute)


def named(attribute: Attribute) -> bool:
    """Return whether some values are called by names that they do not have in a table."""
    book = attribute.codebook
    return isinstance(attribute, Bins) or bool(book.labels) or book.null is not None


def _categories(declared: str | None, texts: Sequence[str]) -> pa.Array:
    if declared == "date":
        return pa.array([date.fromisoformat(text) for text in texts], pa.date32())
    values = [canonical_value(text) for text in texts]
    if declared == "boolean" or (declared is None and texts and set(texts) <= BOOLEANS.keys()):
        truths = [BOOLEANS[value] if isinstance(value, str) else value for value in values]
        return pa.array([value == 1.0 for value in truths], pa.bool_())
    numbers = [value for value in values if isinstance(value, float)]
    if declared == "text" or not texts or len(numbers) < len(values):
        return pa.array(texts, pa.utf8())
    # as the reader of a file would type a column of these
    exact = all(number == math.floor(number) and abs(number) < 2.0**53 for number in numbers)
    whole = exact and all("." not in canonical_text(number) for number in numbers)
    return pa.array([int(number) for number in numbers], pa.int64()) if whole else pa.array(numbers)
