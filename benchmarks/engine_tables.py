"""One table of random records in every form that is counted, and the statements that count it by hand."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

import matrixdp as mdp

__all__ = ["BASE", "DOMAIN", "ENGINES", "PAIRS", "Engine", "by_hand", "write"]

arrow: Any = pa
"""PyArrow, whose own types are incomplete."""

_ROOT = Path(__file__).parent.parent
_BATCH = 10**6
#: The most records that differ; a larger table is several files with the same ones.
_LARGEST_FILE = 10**7
#: The files of a table, of which a small one is the only one.
_FILES = "people*.parquet"
_BIN = 5000
_TEXTS = {
    "sex": ["female", "male"],
    "race": [f"race {i}" for i in range(7)],
    "state": [f"S{i:02}" for i in range(51)],
    "marital": ["single", "married", "widowed", "divorced", "separated"],
}
_NUMBERS = {"age": 100, "education": 16, "hours": 99}
_FORMS: dict[str, object] = {
    "age": 100,
    "sex": _TEXTS["sex"],
    "race": _TEXTS["race"],
    "state": _TEXTS["state"],
    "income": {"min": 0, "max": 40 * _BIN, "bins": 40},
    "education": 16,
    "hours": 99,
    "marital": _TEXTS["marital"],
}
DOMAIN = mdp.Domain(_FORMS)
PAIRS = list(combinations(DOMAIN.names, 2))


@dataclass(frozen=True)
class Engine:
    """One row: what is counted.

    Attributes
    ----------
    name : str
        For ``--only``.
    title : str
        For the page.
    table : callable, optional
        Returns what is opened, given the folder of the table's forms; none where it is counted by hand.
    target : float, optional
        The ratio to counting by hand that is to be reached.
    needs : tuple of str
        Packages and, after a ``$``, programs that it does not go without.
    """

    name: str
    title: str
    table: Callable[[Path], Any] | None
    target: float | None = None
    needs: tuple[str, ...] = ()

    @property
    def missing(self) -> list[str]:
        """What it needs that is not here."""
        path = os.environ.get("PATH", os.defpath) + f"{os.pathsep}{os.environ.get('JAVA_HOME', '')}/bin"
        return [
            one.removeprefix("$")
            for one in self.needs
            if (shutil.which(one[1:], path=path) if one.startswith("$") else find_spec(one)) is None
        ]


def write(folder: Path, rows: int, forms: set[str]) -> None:
    """Write a table as Parquet files, and a small one in other forms."""
    files, rows = max(1, rows // _LARGEST_FILE), min(rows, _LARGEST_FILE)
    random = np.random.default_rng(1)
    file = folder / "people.parquet"
    group = min(_BATCH, -(-rows // 8))
    with pq.ParquetWriter(file, _records(random, 0).schema) as writer:
        for first in range(0, rows, _BATCH):
            writer.write_table(_records(random, min(_BATCH, rows - first)), row_group_size=group)
    for number in range(1, files):
        shutil.copyfile(file, folder / f"people-{number}.parquet")
    if "csv" in forms:
        for style in ("none", "needed"):
            options = pacsv.WriteOptions(quoting_style=style)
            pacsv.write_csv(pq.read_table(file), folder / f"people-{style}.csv", options)
    if "duckdb" in forms:
        with duckdb.connect(folder / "people.duckdb") as connection:
            connection.execute(f"CREATE TABLE people AS FROM '{file}'")
    if "sqlite" in forms:
        _write_sqlite(file, folder / "people.sqlite")


def _records(random: np.random.Generator, rows: int) -> Any:
    """Return random records, all of them in the domain, with one column more than is counted."""
    columns: dict[str, Any] = {name: random.integers(0, size, rows) for name, size in _NUMBERS.items()}
    for name, texts in (_TEXTS | {"note": [f"note {i}" for i in range(1000)]}).items():
        places = arrow.array(random.integers(0, len(texts), rows, dtype=np.int32))
        columns[name] = arrow.DictionaryArray.from_arrays(places, arrow.array(texts)).cast(arrow.string())
    columns["income"] = np.minimum(random.gamma(2, 20_000, rows).round(2), 40 * _BIN - 1)
    return arrow.table(columns)


def _write_sqlite(file: Path, path: Path) -> None:
    table = pq.read_table(file)
    kinds = {name: "REAL" if name == "income" else "INTEGER" for name in ("income", *_NUMBERS)}
    columns = ", ".join(f"{name} {kinds.get(name, 'TEXT')}" for name in table.column_names)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE people ({columns})")
        places = ", ".join("?" * table.num_columns)
        for batch in table.to_batches():
            records = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            connection.executemany(f"INSERT INTO people VALUES ({places})", records)  # noqa: S608


def by_hand(name: str, folder: Path) -> dict[tuple[str, str], Any]:
    """Return the groups of every pair, as somebody writes it who knows that no record is out of domain."""
    file = folder / _FILES
    bins = f"CAST(floor(income / {_BIN}) AS INTEGER)"
    own = {one: f"{bins} AS income" if one == "income" else one for one in DOMAIN.names}
    with duckdb.connect() as connection:
        if name == "sets":
            sets = ", ".join(f"({a}, {b})" for a, b in PAIRS)
            coded = f"SELECT {', '.join(own.values())} FROM '{file}'"  # noqa: S608
            places = ", ".join(DOMAIN.names)
            query = (
                f"SELECT {places}, grouping({places}) AS pair, count(*) AS n "  # noqa: S608
                f"FROM ({coded}) GROUP BY GROUPING SETS ({sets})"
            )
            return _by_pair(connection.sql(query).to_arrow_table())
        table = f"'{file}'"
        if name == "copied":
            connection.execute(f"CREATE TABLE people AS SELECT {', '.join(DOMAIN.names)} FROM {table}")  # noqa: S608
            table = "people"
        return {
            (a, b): connection.sql(
                f"SELECT {own[a]}, {own[b]}, count(*) AS n FROM {table} GROUP BY ALL"  # noqa: S608
            ).to_arrow_table()
            for a, b in PAIRS
        }


def _by_pair(table: Any) -> dict[tuple[str, str], Any]:
    last = len(DOMAIN.names) - 1
    masks = dict.fromkeys(PAIRS, 2 ** (last + 1) - 1)
    for pair in PAIRS:
        masks[pair] -= sum(2 ** (last - DOMAIN.names.index(name)) for name in pair)
    bits = table["pair"].to_numpy()
    return {
        pair: table.filter(arrow.array(bits == mask)).select([*pair, "n"]) for pair, mask in masks.items()
    }


def _address(folder: Path) -> str:
    return (folder / "postgresql").read_text(encoding="utf-8")


def serve(folder: Path) -> int:
    """Start a PostgreSQL server of our own with the table, and return the number of its process."""
    sys.path.append(str(_ROOT))
    from tests import servers

    servers.fill(pq.read_table(folder / "people.parquet"))
    # What the server does after a table is filled is no part of counting it.
    servers.execute("VACUUM ANALYZE people", "CHECKPOINT")
    (folder / "postgresql").write_text(servers.address(), encoding="utf-8")
    data = Path(servers.address().partition("host=")[2].partition("&")[0]) / "data"
    return int((data / "postmaster.pid").read_text(encoding="utf-8").split()[0])


def _pandas(folder: Path) -> Any:
    import pandas as pd

    return pd.read_parquet(folder / "people.parquet")


def _polars(folder: Path) -> Any:
    import polars as pl

    return pl.read_parquet(folder / "people.parquet")


def _polars_lazy(folder: Path) -> Any:
    import polars as pl

    return pl.scan_parquet(folder / "people.parquet")


def _dask(folder: Path, split: bool) -> Any:
    import dask.dataframe as dd

    return dd.read_parquet(folder / "people.parquet", split_row_groups=split)


def _spark(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    # Spark takes the first python3 of the path for its workers, whatever is installed there.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session.read.parquet(str(folder / "people.parquet"))


_SERVED = ("adbc_driver_postgresql", "$initdb", "$pg_ctl")
#: What all others are compared to.
BASE = "statements"
ENGINES = {
    engine.name: engine
    for engine in (
        Engine(BASE, "by hand in DuckDB: one GROUP BY a marginal on the Parquet file", None),
        Engine("copied", "by hand in DuckDB: the columns copied to a table, one GROUP BY a marginal", None),
        Engine("sets", "by hand in DuckDB: one statement of GROUPING SETS on the Parquet file", None),
        Engine("parquet", "Parquet", lambda folder: str(folder / _FILES), 1.5),
        Engine("csv", "CSV", lambda folder: str(folder / "people-none.csv"), 3),
        Engine("csv-quoted", "CSV, texts in quotes", lambda folder: str(folder / "people-needed.csv"), 3),
        Engine("duckdb", "DuckDB database", lambda folder: str(folder / "people.duckdb"), 1.5),
        Engine("arrow", "Arrow table", lambda folder: pq.read_table(folder / "people.parquet"), 1.5),
        Engine("pandas", "pandas", _pandas, 1.5, ("pandas",)),
        Engine("polars", "Polars", _polars, 1.5, ("polars",)),
        Engine("polars-lazy", "Polars, lazy", _polars_lazy, 1.5, ("polars",)),
        Engine("dask-1", "Dask, 1 partition", lambda folder: _dask(folder, split=False), 3, ("dask",)),
        Engine("dask-8", "Dask, 8 partitions", lambda folder: _dask(folder, split=True), 3, ("dask",)),
        Engine("spark", "Spark, in a session that has counted before", _spark, 15, ("pyspark", "$java")),
        Engine("postgresql", "PostgreSQL, client and server", _address, 10, _SERVED),
        Engine("sqlite", "SQLite", lambda folder: f"sqlite:///{folder / 'people.sqlite'}"),
    )
}
