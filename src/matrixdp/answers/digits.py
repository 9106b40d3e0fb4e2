"""Figures with the digits that their errors justify."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from matrixdp.answers.columns import BOUND, FIGURES
from matrixdp.answers.tables import FIGURE

__all__ = ["decimals_of", "for_people", "least_error", "rounded_up"]

Array = NDArray[np.float64]
_ROUNDED: dict[str, Callable[[Array], Array]] = {
    "estimate": np.rint, "stddev": np.rint, "lower": np.floor, "upper": np.ceil,
}  # fmt: skip


def decimals_of(least: float) -> int | None:
    """Return how many digits behind the point a table needs, given its least standard error.

    Two significant digits of the standard error: rounding an estimate so adds at most a thousandth to its
    variance. Negative where digits before the point say nothing; None where there is no error.

    Examples
    --------
    >>> [decimals_of(stddev) for stddev in (0.034, 1.5, 12.3, 99.6, 4_321.0, 0.0)]
    [3, 1, 0, 0, -2, None]
    """
    return None if not 0 < least < math.inf else 1 - math.floor(math.log10(least))


def least_error(table: pa.Table) -> float:
    """Return the least standard error above 0 in a table, infinite where there is none."""
    least = np.inf
    for field, column in zip(table.schema, table.columns, strict=True):
        if "stddev" in ((field.metadata or {}).get(FIGURE, b"").decode(), field.name):
            values = column.to_numpy()
            least = min(least, float(values[values > 0].min(initial=np.inf)))
    return float(least)


def for_people(table: pa.Table, decimals: int | None) -> pa.Table:
    """Return a table with rounded figures, plain texts, and nothing where bins are open.

    Estimates and standard errors are rounded to the nearest, ends of intervals outward, so that the intervals
    hold what they did.

    Examples
    --------
    >>> table = pa.table({"estimate": [10.26], "stddev": [1.46], "lower": [7.41], "upper": [13.11]})
    >>> for_people(table, 0).to_pylist()
    [{'estimate': 10.0, 'stddev': 1.0, 'lower': 7.0, 'upper': 14.0}]
    """
    fields, columns = [], []
    for field, column in zip(table.schema, table.columns, strict=True):
        metadata = field.metadata or {}
        figure = metadata.get(FIGURE, field.name.encode() if field.name in FIGURES else b"").decode()
        if figure:
            made = _rounded(column.to_numpy(), decimals, _ROUNDED[figure])
        elif pa.types.is_dictionary(field.type):
            made = column.cast(pa.utf8())
        elif BOUND in metadata and pa.types.is_floating(field.type):
            values = column.to_numpy()
            made = pa.array(values, mask=~np.isfinite(values))
        else:
            made = column
        fields.append(pa.field(field.name, made.type, metadata=field.metadata))
        columns.append(made)
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, metadata=table.schema.metadata))


def rounded_up(values: Array, decimals: int | None) -> pa.Array:
    """Return lengths with the digits of a table, none of them shorter than it was."""
    return _rounded(values, decimals, np.ceil)


def _rounded(values: Array, decimals: int | None, towards: Callable[[Array], Array]) -> pa.Array:
    if decimals is None:
        return pa.array(values)
    scale = 10.0 ** abs(decimals)
    # 0 is added for there to be no -0
    return pa.array(
        (towards(values * scale) / scale if decimals > 0 else towards(values / scale) * scale) + 0
    )
