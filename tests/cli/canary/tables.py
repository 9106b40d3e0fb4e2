"""Tables full of canaries, for every reader: in the domain's own columns, out of it, and beside it."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from tests.cli.canary.search import DATES, IN_NAMES, NUMBERS, TEXTS
from tests.relations import relation

DOMAIN = """domain:
  sex: [female, male]
  age: {min: 0, max: 9}
  day: ["2001-02-03", "2004-05-06"]
"""


def table(records: int = 40) -> Any:
    """Return the table, one record in four out of domain in each column."""
    out, aside = "out of domain", "not asked"
    date = pa.scalar("2001-02-03").cast(pa.date32()).as_py()
    columns = {
        "sex": ["male", TEXTS[out], "female", None] * (records // 4),
        "age": [3, 7, NUMBERS[out], 5] * (records // 4),
        "day": [date, DATES[out], date, None] * (records // 4),
        IN_NAMES: [TEXTS[aside]] * records,
        "figure": [NUMBERS[aside], NUMBERS["small"]] * (records // 2),
        "when": [DATES[aside]] * records,
        "person": [TEXTS["id"] % (i // 2) for i in range(records)],
    }
    return pa.table(columns)


def texts(given: Any) -> Any:
    """Return a table with every column as text, as CSV has it."""
    columns = given.to_pydict().items()
    return pa.table({name: [None if v is None else str(v) for v in own] for name, own in columns})


def _csv(given: Any, path: Path, delimiter: str = ",") -> Path:
    pacsv.write_csv(given, path, pacsv.WriteOptions(delimiter=delimiter))
    return path


def _gz(given: Any, folder: Path) -> Path:
    plain = _csv(given, folder / "t.csv").read_bytes()
    (folder / "t.csv.gz").write_bytes(gzip.compress(plain))
    return folder / "t.csv.gz"


def _glob(given: Any, folder: Path) -> Path:
    _csv(given.slice(0, 10), folder / "part-1.csv")
    _csv(given.slice(10), folder / "part-2.csv")
    return folder / "part-*.csv"


def _parquet(given: Any, folder: Path) -> Path:
    listed = given.set_column(0, given.column_names[0], given.column(0).dictionary_encode())
    pq.write_table(listed.replace_schema_metadata({"by": TEXTS["not asked"]}), folder / "t.parquet")
    return folder / "t.parquet"


def _database(given: Any, folder: Path, made: str = "CREATE TABLE people AS SELECT * FROM given") -> Path:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", given)
        connection.execute(made)
    return folder / "t.duckdb"


def _enum(given: Any, folder: Path) -> Path:
    """Write a database in which the first column is an ENUM of its values."""
    first = given.column_names[0]
    listed = given.set_column(0, first, given.column(0).cast(pa.string()).dictionary_encode())
    return _database(listed, folder)


def _view(given: Any, folder: Path) -> Path:
    made = "CREATE TABLE kept AS SELECT * FROM given; CREATE VIEW people AS SELECT * FROM kept"
    return _database(given, folder, made)


READERS: dict[str, tuple[Callable[[Any, Path], Path], str]] = {
    "csv": (lambda given, folder: _csv(given, folder / "t.csv"), ""),
    "csv with semicolons": (lambda given, folder: _csv(given, folder / "t.csv", ";"), ""),
    "csv with quoted line ends": (
        lambda given, folder: _csv(given, folder / "t.csv"),
        "quoted_newlines: true",
    ),
    "tsv": (lambda given, folder: _csv(given, folder / "t.tsv", "\t"), ""),
    "packed csv": (_gz, ""),
    "several csv": (_glob, ""),
    "parquet": (_parquet, ""),
    "database": (_database, ""),
    "view": (_view, "table: people"),
    "enum": (_enum, ""),
}
"""How a table is written, and what the specification says beside its path."""

FRAMES: dict[str, Callable[[Any], Any]] = {
    "pandas": lambda given: given.to_pandas(),
    "pandas of arrow": lambda given: given.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.from_arrow,
    "polars lazy": lambda given: pl.DataFrame(pl.from_arrow(given)).lazy(),
    "dask": lambda given: dd.from_pandas(given.to_pandas(), npartitions=2),
    "pyarrow": lambda given: given,
    "relation": relation,
    "arrays": lambda given: {
        name: np.array(given[name].to_pylist(), dtype=object) for name in given.column_names
    },
    "lists": lambda given: given.to_pydict(),
}
"""How a table in memory is made."""
