"""The table that every question returns: an Arrow table that prints itself and becomes a data frame."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from math import isfinite
from typing import TYPE_CHECKING, Any, final

import pyarrow as pa

from matrixdp.answers.inference import METADATA
from matrixdp.answers.shown import QUALITY, Shown
from matrixdp.answers.table import plain_schema
from matrixdp.display import MAX_ROWS, Preview
from matrixdp.errors import needing
from matrixdp.storage.archive import write_whole

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@final
class ResultTable:
    """Figures with their errors, one row for each query.

    Printed, or as the last line of a notebook cell, it shows its first rows, with as many digits as the
    standard errors support. `to_arrow`, `to_pandas` and `to_polars` return the data with all digits; DuckDB
    and whatever else reads Arrow streams take it as it is. ``table["estimate"]`` is a column; ``len`` counts
    rows, and a loop goes over them, each a dictionary. The methods and attributes of `pyarrow.Table`
    (``column``, ``filter``, ``num_rows``, ``schema``, ``to_pylist``...) work on it too, and return what they
    return there.

    Parameters
    ----------
    table : pyarrow.Table
        The figures.

    Examples
    --------
    >>> import matrixdp as mdp
    >>> workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    >>> strategy, table = mdp.select(workload), {"sex": ["male"] * 30}
    >>> strategy.measure(table, mdp.Budget(rho=0.5), seed_not_private=1).reconstruct().answers
    sex     estimate  stddev  lower  upper
    female       2.0     1.0   -0.1    4.0
    male        29.3     1.0   27.3   31.3
    """

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def to_arrow(self) -> pa.Table:
        """Return the figures as an Arrow table, without a copy."""
        return self._table

    def to_pandas(self) -> pd.DataFrame:
        """Return the figures as a pandas data frame; texts are categories in the order of the domain.

        Raises
        ------
        SpecificationError
            If pandas is not installed.
        """
        with needing("pandas"):
            frame: pd.DataFrame = self._table.to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return the figures as a Polars data frame.

        Raises
        ------
        SpecificationError
            If Polars is not installed.
        """
        with needing("polars"):
            import polars as pl
        return pl.DataFrame(self._table)

    def as_dict(self) -> dict[str, object]:
        """Return the rows under ``answers``, and under ``made`` how those of a statistic were made.

        They are plain values for JSON, dates aside; what is not finite is None.
        """
        rows = self._table.to_pylist()
        for row in rows:
            row |= {name: None for name, own in row.items() if isinstance(own, float) and not isfinite(own)}
        said = (self._table.schema.metadata or {}).get(METADATA)
        return {"answers": rows} if said is None else {"made": json.loads(said), "answers": rows}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return `as_dict` as JSON, with every digit, and write it to a file where one is named."""
        text = json.dumps(self.as_dict(), ensure_ascii=False, default=str, allow_nan=False)
        if path is not None:
            write_whole(path, text)
        return text

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the figures as CSV, with every digit, and write them to a file where one is named.

        Examples
        --------
        >>> print(ResultTable(pa.table({"sex": ["f"], "estimate": [41.25]})).to_csv(), end="")
        "sex","estimate"
        "f",41.25
        """
        import pyarrow.csv as pacsv

        sink = io.BytesIO()
        pacsv.write_csv(self._table.cast(plain_schema(self._table.schema)), sink)
        text = sink.getvalue().decode()
        if path is not None:
            write_whole(path, text)
        return text

    def equals(self, other: object) -> bool:
        """Return whether another table holds the same columns and values."""
        table = other._table if isinstance(other, ResultTable) else other
        return isinstance(table, pa.Table) and bool(self._table.equals(table))

    def __eq__(self, other: object) -> bool:
        return self.equals(other)

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        if name == "_table":  # while it is copied or read from a pickle
            raise AttributeError(name)
        return getattr(self._table, name)

    def __getitem__(self, place: int | str) -> Any:
        """Return a column by its name, or a row by its place."""
        if isinstance(place, str):
            return self._table[place]
        [row] = self._table.slice(range(len(self))[place], 1).to_pylist()
        return row

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._table.to_batches():
            yield from batch.to_pylist()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self._preview().text()

    def _repr_html_(self) -> str:
        return self._preview().html()

    def _preview(self) -> Preview:
        """Return the first rows, rounded, without empty columns.

        Letters are among them where a figure is unbounded.
        """
        table, shown = self._table, Shown(self._table, first=MAX_ROWS)
        first = shown.table
        hidden = {name for name in first.column_names if 0 < len(first) == first[name].null_count}
        columns = {own.name: shown.texts(own.name) for own in shown.fields if own.name not in hidden}
        if shown.main is not None and shown.main.unbounded.any():
            columns[QUALITY] = shown.letters
        floats = {field.name for field in table.schema if pa.types.is_floating(field.type)}
        numbers = frozenset(place for place, name in enumerate(columns) if name in floats)
        return Preview(tuple(columns), list(zip(*columns.values(), strict=True)), table.num_rows, numbers)
