"""Every reader: a table and the same table with one hostile record more differ by that record alone."""

import os
import sys
import warnings

import duckdb
import narwhals as nw
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.sources.lazy import LazySource
from matrixdp.testing import check_neighbours


def csv(table, folder, **options):
    if not options:
        # A line end would make two records of one.
        texts = [pc.replace_substring(column.cast(pa.string()), "\n", " ") for column in table.columns]
        table = pa.table(texts, names=table.column_names)
    pa.csv.write_csv(table, folder / "t.csv")
    return open_source(folder / "t.csv", **options)


def parquet(table, folder):
    pq.write_table(table, folder / "t.parquet")
    return open_source(folder / "t.parquet")


def database(table, folder):
    (folder / "t.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return open_source(folder / "t.duckdb")


READERS = {
    "csv": csv,
    "csv with quoted line ends": lambda table, folder: csv(table, folder, quoted_newlines=True),
    "parquet": parquet,
    "database": database,
    "pandas": lambda table, _: open_source(table.to_pandas()),
    "pandas of arrow": lambda table, _: open_source(table.to_pandas(types_mapper=pd.ArrowDtype)),
    "polars": lambda table, _: open_source(pl.from_arrow(table)),
    "lazy": lambda table, _: open_source(pl.DataFrame(table).lazy()),
    "pyarrow": lambda table, _: open_source(table),
    "relation": lambda table, _: open_source(duckdb.connect().from_arrow(table)),
    "relation by narwhals": lambda table, _: LazySource(nw.from_native(duckdb.connect().from_arrow(table))),
    "objects": lambda table, _: open_source(table.to_pydict()),
}


@pytest.mark.parametrize("reader", READERS)
def test_one_record_changes_one_count(reader, tmp_path):
    check_neighbours(lambda table: READERS[reader](table, tmp_path), [Kind.DATE, Kind.BOOLEAN])


def reads_none(table):
    return open_source(table.slice(0, 0) if table.column(0).null_count else table)


def warns(table):
    for value in table.column(0).unique().to_pylist():
        warnings.warn(f"there is a {value}", stacklevel=1)
    return open_source(table)


def prints(table):
    sys.stdout.write(f"{table.num_rows}")
    return open_source(table)


def writes(table):
    os.write(2, b"a null" * table.column(0).null_count)
    return open_source(table)


def refuses(table):
    if table.column(0).null_count:
        raise SourceError("there is a null")
    return open_source(table)


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (reads_none, "boolean None changes the counts of category by 2"),
        (warns, "boolean None changes what is told, from .*there is a True.* to .*there is a None"),
        (prints, r"what is told, from \(None, \[\], '2'"),
        (writes, "what is told, .*a null"),
        (refuses, "what is told, .*there is a null"),
    ],
)
def test_the_check_finds_what_one_record_moves(reader, message):
    with pytest.raises(AssertionError, match=message):
        check_neighbours(reader, [Kind.BOOLEAN])


def test_the_check_needs_a_table_that_can_be_counted():
    with pytest.raises(AssertionError, match="cannot be counted"):
        check_neighbours(lambda table: open_source(table.drop_columns("category")), [Kind.BOOLEAN])
