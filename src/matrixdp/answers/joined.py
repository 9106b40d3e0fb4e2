"""Several tables of answers as one: their rows below one another, under all of their columns."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from matrixdp.answers.columns import FIGURES

__all__ = ["joined"]


def joined(tables: Sequence[tuple[str, pa.Table]], column: str) -> pa.Table:
    """Return tables below one another, each with its name in a first column.

    What is asked stands before the figures; a column that a table does not have is null in its rows. Where a
    column is of several types it becomes text, numbers aside.

    Parameters
    ----------
    tables : sequence of (str, pyarrow.Table)
        Names and tables.
    column : str
        What the column of the names is called.

    Examples
    --------
    >>> ages = pa.table({"sex": ["female"], "estimate": [41.5]})
    >>> both = joined([("mean age", ages), ("people", pa.table({"estimate": [7]}))], "statistic")
    >>> both.column_names, both["sex"].to_pylist(), both["estimate"].to_pylist()
    (['statistic', 'sex', 'estimate'], ['female', None], [41.5, 7.0])
    """
    types: dict[str, pa.DataType] = {}
    for _, table in tables:
        for field in table.schema:
            types[field.name] = _common(types.get(field.name), field.type)
    behind = (*FIGURES, "warning")
    names = [name for name in types if name not in behind] + [name for name in behind if name in types]
    first = column
    while first in types:
        first += "_name"
    schema = pa.schema([(first, pa.utf8()), *((name, types[name]) for name in names)])
    if not tables:
        return schema.empty_table()
    parts = []
    for title, table in tables:
        rows = table.num_rows
        columns = [pa.array([title] * rows, pa.utf8())]
        for name in names:
            if name in table.schema.names:
                columns.append(_cast(table.column(name), types[name]))
            else:
                columns.append(pa.nulls(rows, types[name]))
        parts.append(pa.Table.from_arrays(columns, schema=schema))
    return pa.concat_tables(parts)


def _common(known: pa.DataType | None, other: pa.DataType) -> pa.DataType:
    own = pa.utf8() if pa.types.is_dictionary(other) or pa.types.is_null(other) else other
    if known is None or known == own:
        return own
    numbers = all(pa.types.is_integer(one) or pa.types.is_floating(one) for one in (known, own))
    return pa.float64() if numbers else pa.utf8()


def _cast(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    return column if column.type == to else column.cast(to)
