"""The table that every question returns: an Arrow table that prints itself and becomes a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, final

import pyarrow as pa

from matrixdp.answers.intervals import decimals_by_subject, for_people
from matrixdp.answers.table import BOUND, figure_of, subject_of
from matrixdp.display import MAX_ROWS, Preview, rounded
from matrixdp.errors import SpecificationError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


@final
class ResultTable:
    """Figures with their errors, one row for each query.

    Printed, or as the last line of a notebook cell, it shows its first rows, with as many digits as the
    standard errors support. `to_arrow`, `to_pandas` and `to_polars` return the data with all digits; DuckDB
    and whatever else reads Arrow streams take it as it is. The methods and attributes of `pyarrow.Table`
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
        try:
            frame: pd.DataFrame = self._table.to_pandas()
        except ImportError:
            raise _not_installed("pandas") from None
        return frame

    def to_polars(self) -> pl.DataFrame:
        """Return the figures as a Polars data frame.

        Raises
        ------
        SpecificationError
            If Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError:
            raise _not_installed("polars") from None
        return pl.DataFrame(self._table)

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

    def __getitem__(self, name: int | str) -> pa.ChunkedArray:
        return self._table[name]

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self._preview().text()

    def _repr_html_(self) -> str:
        return self._preview().html()

    def _preview(self) -> Preview:
        """Return the first rows, rounded, without empty columns, ends of bins, or the name of one group."""
        table, first = self._table, self._table.slice(0, MAX_ROWS)
        decimals = decimals_by_subject(table)
        people = for_people(first, decimals)
        empty = [0 < len(first) == own.null_count for own in first.columns]
        ends = [BOUND in (field.metadata or {}) for field in table.schema]
        alone = [name == "group" and len(table[name].unique()) == 1 for name in table.column_names]
        shown = [
            place for place, hidden in enumerate(zip(empty, ends, alone, strict=True)) if not any(hidden)
        ]
        numbers = (at for at, place in enumerate(shown) if pa.types.is_floating(people.field(place).type))
        digits = [decimals[subject_of(field)] if figure_of(field) else None for field in people.schema]
        columns = [_texts(people.column(place), digits[place]) for place in shown]
        names = tuple(table.schema.names[place] for place in shown)
        return Preview(names, list(zip(*columns, strict=True)), table.num_rows, frozenset(numbers))


def _texts(column: pa.ChunkedArray, decimals: int | None) -> list[str]:
    """Return the values of a column as texts: its numbers with given digits, or as many as any has."""
    values = column.to_pylist()
    if not pa.types.is_floating(column.type):
        return ["" if value is None else str(value) for value in values]
    if decimals is None:
        ends = (f"{value:.10g}".partition(".")[2] for value in values if value is not None)
        decimals = max(map(len, ends), default=0)
    return ["" if value is None else rounded(value, decimals) for value in values]


def _not_installed(library: str) -> SpecificationError:
    expected = f"an installation with it: pip install {library}"
    return SpecificationError.at((), f"no {library}", expected, code="missing-library")
