"""Every reader: a table and the same table with one hostile record more differ by that record alone."""

import os
import sys
import warnings

import dask.dataframe as dd
import duckdb
import narwhals as nw
import numpy as np
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
from matrixdp.testing import HOSTILE_OBJECTS, HOSTILE_VALUES, check_neighbours
from tests import servers
from tests.relations import relation


def texts(table):
    # A line end would make two records of one.
    columns = [pc.replace_substring(column.cast(pa.string()), "\n", " ") for column in table.columns]
    return pa.table(columns, names=table.column_names)


def csv(table, folder, name="t.csv", delimiter=",", **options):
    with (
        pa.CompressedOutputStream(folder / name, "gzip")
        if name.endswith("gz")
        else (folder / name).open("wb") as file
    ):
        pa.csv.write_csv(table if options else texts(table), file, pa.csv.WriteOptions(delimiter=delimiter))
    return open_source(folder / name, **options)


def several_csv(table, folder):
    csv(table.slice(0, 1), folder, "1.csv", ";")
    csv(table.slice(1), folder, "2.csv", "|")
    return open_source(folder / "[12].csv")


def parquet(table, folder):
    pq.write_table(table, folder / "t.parquet")
    return open_source(folder / "t.parquet")


def several_parquet(table, folder):
    pq.write_table(table.slice(0, 2), folder / "1.parquet")
    pq.write_table(table.slice(2), folder / "2.parquet", compression="zstd")
    return open_source(folder / "[12].parquet")


def database(table, folder):
    (folder / "t.duckdb").unlink(missing_ok=True)
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return open_source(folder / "t.duckdb")


def pandas(change):
    def reader(table, _):
        frame = table.to_pandas() if isinstance(table, pa.Table) else _objects(table)
        return open_source(change(frame))

    return reader


def _objects(columns):
    series = {name: pd.Series(np.empty(len(values), dtype=object)) for name, values in columns.items()}
    for name, values in columns.items():
        for place, value in enumerate(values):
            series[name].array[place] = value
    return pd.DataFrame(series)


def object_arrays(columns, _):
    return open_source({name: series.to_numpy() for name, series in _objects(columns).items()})


def polars_objects(columns, _):
    series = [pl.Series(name, values, dtype=pl.Object) for name, values in columns.items()]
    return open_source(pl.DataFrame(series))


def dask(table, _):
    return open_source(dd.from_pandas(table.to_pandas(types_mapper=pd.ArrowDtype), npartitions=3))


def structured(table, _):
    columns = {name: np.asarray(table[name].to_pylist()) for name in table.column_names}
    kinds = [(name, column.dtype) for name, column in columns.items()]
    records = np.empty(table.num_rows, dtype=kinds)
    for name, column in columns.items():
        records[name] = column
    return open_source(records)


#: How many hostile records are added at once; one, which takes minutes, by `make neighbours`.
TOGETHER = int(os.environ.get("MATRIXDP_TOGETHER", "100"))
ALL = tuple(Kind(kind) for kind in HOSTILE_VALUES)
TEXT = (Kind.TEXT,)
#: Every reader, and what its columns can hold.
READERS = {
    "csv": (csv, TEXT),
    "csv with quoted line ends": (lambda table, folder: csv(table, folder, quoted_newlines=True), TEXT),
    "tsv": (lambda table, folder: csv(table, folder, "t.tsv", "\t"), TEXT),
    "gzip": (lambda table, folder: csv(table, folder, "t.csv.gz"), TEXT),
    "several csv": (several_csv, TEXT),
    "parquet": (parquet, ALL),
    "several parquet": (several_parquet, ALL),
    "database": (database, ALL),
    "pandas": (pandas(lambda frame: frame), ALL),
    "pandas of objects": (pandas(lambda frame: frame.astype(object)), ALL),
    "pandas nullable": (pandas(lambda frame: frame.convert_dtypes()), ALL),
    "pandas categories": (pandas(lambda frame: frame.astype("category")), ALL),
    "pandas of arrow": (
        lambda table, _: open_source(table.to_pandas(types_mapper=pd.ArrowDtype)), ALL
    ),
    "polars": (lambda table, _: open_source(pl.from_arrow(table)), ALL),
    "polars categories": (
        lambda table, _: open_source(pl.DataFrame(table).with_columns(pl.all().cast(pl.Categorical))), TEXT
    ),
    "lazy": (lambda table, _: open_source(pl.DataFrame(table).lazy()), ALL),
    "pyarrow": (lambda table, _: open_source(table), ALL),
    "pyarrow dictionaries": (
        lambda t, _: open_source(pa.table([c.dictionary_encode() for c in t.columns], t.column_names)), TEXT
    ),
    "narwhals": (lambda table, _: open_source(nw.from_native(table)), ALL),
    "relation": (lambda table, _: open_source(relation(table)), ALL),
    "dask": (dask, ALL),
    "lists": (lambda table, _: open_source(table if isinstance(table, dict) else table.to_pydict()), ALL),
    "structured arrays": (structured, ALL),
    "postgresql": (lambda table, _: servers.from_postgresql(table), ALL),
    "sqlite": (
        lambda table, folder: servers.from_sqlite(table, folder / "t.sqlite"),
        (Kind.TEXT, Kind.INTEGER, Kind.FLOAT),
    ),
}  # fmt: skip
OBJECTS = {
    "lists": READERS["lists"][0],
    "arrays of objects": object_arrays,
    "pandas of objects": pandas(lambda frame: frame),
    "polars of objects": polars_objects,
}


@pytest.mark.parametrize("reader", [reader for reader, (_, kinds) in READERS.items() if kinds is ALL])
def test_one_record_changes_one_count(reader, tmp_path):
    opened, _ = READERS[reader]
    assert check_neighbours(lambda table: opened(table, tmp_path), [Kind.BOOLEAN]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
def test_no_hostile_record_changes_more_than_one_count(reader, tmp_path):
    opened, kinds = READERS[reader]
    assert check_neighbours(lambda table: opened(table, tmp_path), kinds, together=TOGETHER) > 100


@pytest.mark.parametrize("reader", OBJECTS)
def test_no_hostile_object_changes_more_than_one_count(reader, tmp_path):
    found = check_neighbours(lambda t: OBJECTS[reader](t, tmp_path), [], objects=True, together=TOGETHER)
    assert found == len(HOSTILE_OBJECTS)


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
        (reads_none, "boolean None changes the counts of category by 31"),
        (warns, "boolean None changes what is told, from .*there is a True.* to .*there is a None"),
        (prints, r"what is told, from \(None, \[\], '31'"),
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


def test_several_records_at_once_may_move_as_many_counts():
    assert check_neighbours(open_source, [Kind.BOOLEAN], together=3) == 3
    with pytest.raises(
        AssertionError, match="3 records of booleans, the first None: that changes the counts"
    ):
        check_neighbours(reads_none, [Kind.BOOLEAN], together=3)
