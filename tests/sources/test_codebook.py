"""Columns of another name, columns that several attributes read, nulls and white space, in every source."""

import csv
from typing import Any

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import DomainError, SourceError
from matrixdp.privacy import Unit
from matrixdp.sources import open_source
from tests.relations import relation

DOMAIN = Domain(
    {
        "age": {"min": 0, "max": 3, "column": "Age, years", "null": "unknown"},
        "adult": {"edges": ["-inf", 2, "inf"], "column": "Age, years", "null": "unknown"},
        "sex": {"categories": ["f", "m"], "column": "age", "trim": True, "null": "unknown"},
    }
)
COLUMNS = {"Age, years": ["0", "3", "", None, "9", "x"], "age": ["f", " m ", " ", None, "m", "f"]}
EXPECTED = [(0, 0, 0), (3, 1, 1), (4, 2, 2), (4, 2, 2)]


def from_csv(columns, folder):
    with (folder / "t.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
    return open_source(folder / "t.csv")


def from_parquet(columns, folder):
    pq.write_table(pa.table(columns), folder / "t.parquet")
    return open_source(folder / "t.parquet")


def from_database(columns, folder):
    # A database does not tell upper from lower case in names.
    with duckdb.connect(str(folder / "t.db")) as connection:
        connection.register("given", pa.table(columns))
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return open_source(folder / "t.db")


WAYS: dict[str, Any] = {
    "csv": from_csv,
    "parquet": from_parquet,
    "database": from_database,
    "pandas": lambda columns, _: open_source(pd.DataFrame(columns)),
    "objects": lambda columns, _: open_source(pd.DataFrame(columns, dtype=object)),
    "polars": lambda columns, _: open_source(pl.DataFrame(columns)),
    "polars lazy": lambda columns, _: open_source(pl.LazyFrame(columns)),
    "dask": lambda columns, _: open_source(dd.from_pandas(pd.DataFrame(columns), npartitions=2)),
    "relation": lambda columns, _: open_source(relation(pa.table(columns))),
    "lists": lambda columns, _: open_source(columns),
}


@pytest.mark.parametrize("way", WAYS)
def test_counts(way, tmp_path):
    ((_, found),) = WAYS[way](COLUMNS, tmp_path).marginals(DOMAIN, [DOMAIN.names], OutOfDomain())
    expected = np.zeros(DOMAIN.shape, dtype=np.int64)
    np.add.at(expected, tuple(np.transpose(EXPECTED)), 1)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("way", [way for way in WAYS if way not in ("csv",)])
def test_numbers_that_are_missing(way, tmp_path):
    columns: dict[str, Any] = {"Age, years": [0.0, 3.0, float("nan"), None], "age": ["f", "m", "f", "m"]}
    ((_, found),) = WAYS[way](columns, tmp_path).marginals(DOMAIN, [("age",)], OutOfDomain())
    assert found.tolist() == [1, 0, 0, 1, 2]


@pytest.mark.parametrize("way", ["csv", "parquet", "database", "pandas", "objects", "lists"])
def test_with_an_id(way, tmp_path):
    columns = COLUMNS | {"person": ["1", "1", "2", "2", "3", "3"]}
    source = WAYS[way](columns, tmp_path)
    ((_, found),) = source.marginals(DOMAIN, [("age",)], OutOfDomain(), Unit(id="person", records=1))
    assert found.tolist() == [1, 0, 0, 0, 1]


def test_out_of_domain_is_no_null(tmp_path):
    ((_, found),) = from_csv(COLUMNS, tmp_path).marginals(
        DOMAIN, [("age",)], OutOfDomain({"age": 1, "adult": 0})
    )
    assert found.tolist() == [1, 2, 0, 1, 2]


def test_what_is_told(tmp_path):
    with pytest.raises(SourceError, match="the table has no column 'Age, years'"):
        open_source({"age": ["f"]}).marginals(DOMAIN, [()], OutOfDomain())
    domain = Domain({"a": {"min": 0, "max": 3, "column": "age"}})
    dates = open_source(pa.table({"age": pa.array([0], pa.date32())}))
    with pytest.raises(SourceError, match="column 'age' holds dates; a numeric"):
        dates.marginals(domain, [()], OutOfDomain())
    for name in ("age", "Age, years"):
        with pytest.raises(DomainError, match=r"unit.id: found the attribute"):
            open_source(COLUMNS).marginals(DOMAIN, [()], OutOfDomain(), Unit(id=name, records=1))
