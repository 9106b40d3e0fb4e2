"""Every way in which a table reaches an engine: what the tests of sources are parametrized over."""

from collections.abc import Callable, Mapping, Sequence
from csv import writer
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.domain.rules import Kind
from matrixdp.sources import Source, open_source
from matrixdp.testing.tables import HOSTILE_VALUES
from tests import servers
from tests.relations import relation

PEOPLE = Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 9}})
ALL = tuple(Kind(kind) for kind in HOSTILE_VALUES)
TEXT = (Kind.TEXT,)


@dataclass(frozen=True)
class Way:
    """How an Arrow table is opened, given an empty folder, by which engine, and what columns can hold."""

    engine: str
    opens: Callable[[Any, Path], Source]
    kinds: tuple[Kind, ...] = ALL


def counts(table: Any, domain: Domain, subset=None, rule=None, unit=None, **options) -> Any:
    """Return one marginal as lists: that of all attributes where none is given."""
    source = table if isinstance(table, Source) else open_source(table, **options)
    asked = domain.names if subset is None else subset
    ((found, counted),) = source.marginals(domain, [asked], rule or OutOfDomain(), unit)
    assert found == asked
    return counted.tolist()


def cells(table: Any, domain: Domain = PEOPLE, *arguments, **options) -> list[tuple[int, ...]]:
    """Return the codes of all attributes of each record that is counted, in order."""
    counted = np.array(counts(table, domain, *arguments, **options))
    return [tuple(cell) for cell in np.argwhere(counted).tolist() for _ in range(counted[tuple(cell)])]


def database(path: Path, *statements: str) -> Path:
    """Make a DuckDB database anew."""
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        for statement in statements:
            connection.execute(statement)
    return path


def database_of(table: pa.Table, path: Path) -> Path:
    """Make a DuckDB database of one table."""
    with duckdb.connect(str(database(path))) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    return path


def quoted_csv(table: pa.Table, folder: Path) -> Source:
    with (folder / "q.csv").open("w", newline="", encoding="utf-8") as file:
        writer(file).writerow(table.column_names)
        for record in zip(*(column.to_pylist() for column in table.columns), strict=True):
            # a record that ends early ends in nulls
            last = max((place for place, value in enumerate(record) if value is not None), default=0)
            writer(file).writerow(record[: last + 1])
    return open_source(folder / "q.csv", quoted_newlines=True)


def csv(table: pa.Table, folder: Path, name: str = "t.csv", delimiter: str = ",") -> Source:
    # A line end would make two records of one.
    columns = [pc.replace_substring(column.cast(pa.string()), "\n", " ") for column in table.columns]
    texts = pa.table(columns, names=table.column_names)
    opened = (
        pa.CompressedOutputStream(folder / name, "gzip")
        if name.endswith("gz")
        else (folder / name).open("wb")
    )
    with opened as file:
        pa.csv.write_csv(texts, file, pa.csv.WriteOptions(delimiter=delimiter))
    return open_source(folder / name)


def several_csv(table: pa.Table, folder: Path) -> Source:
    csv(table.slice(0, 1), folder, "1.csv", ";")
    csv(table.slice(1), folder, "2.csv", "|")
    return open_source(folder / "[12].csv")


def parquet(table, folder: Path, name="t.parquet", **options) -> Path:
    pq.write_table(table, folder / name, **options)
    return folder / name


def several_parquet(table: pa.Table, folder: Path) -> Source:
    parquet(table.slice(0, 2), folder, "1.parquet", row_group_size=1)
    parquet(table.slice(2), folder, "2.parquet", compression="zstd")
    return open_source(folder / "[12].parquet")


def objects(columns: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Return a frame of Python objects, none of which pandas looks at."""
    series = {name: pd.Series([None] * len(values), dtype=object) for name, values in columns.items()}
    for name, values in columns.items():
        for place, value in enumerate(values):
            series[name].array[place] = value
    return pd.DataFrame(series)


def nullable(table: pa.Table) -> pd.DataFrame:
    types = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype(), pa.string(): pd.StringDtype()}
    plain = (pa.float64(), pa.null())
    return table.to_pandas(types_mapper=lambda t: types.get(t) or (None if t in plain else pd.ArrowDtype(t)))


def of_arrow(table: pa.Table) -> pd.DataFrame:
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def structured(table: pa.Table, _: Path) -> Source:
    columns = {name: np.asarray(table[name].to_pylist()) for name in table.column_names}
    records = np.empty(table.num_rows, dtype=[(name, column.dtype) for name, column in columns.items()])
    for name, column in columns.items():
        records[name] = column
    return open_source(records)


def dictionaries(table: pa.Table, _: Path) -> Source:
    return open_source(pa.table([c.dictionary_encode() for c in table.columns], table.column_names))


class Table:
    """The calls of a table of Ibis that are used, on an Arrow table."""

    def __init__(self, table):
        self.table = table

    @property
    def columns(self):
        return tuple(self.table.column_names)

    def select(self, *names):
        return Table(self.table.select(names))

    def limit(self, records):
        return Table(self.table.slice(0, records))

    def schema(self):
        return self

    def to_pyarrow(self):
        return self.table.schema

    def to_pyarrow_batches(self):
        return self.table.to_reader(max_chunksize=64)


Table.__module__ = "ibis.expr.types.relations"
#: Every way in which an engine of the table of engines is given a table.
MATRIX = {
    "lists": Way("arrays", lambda table, _: open_source(table.to_pydict())),
    "pandas": Way("frame", lambda table, _: open_source(nullable(table))),
    "pandas of objects": Way("frame", lambda table, _: open_source(objects(table.to_pydict()))),
    "pandas categories": Way("frame", lambda table, _: open_source(nullable(table).astype("category"))),
    "polars": Way("frame", lambda table, _: open_source(pl.from_arrow(table))),
    "pyarrow": Way("frame", lambda table, _: open_source(table)),
    "lazy": Way("polars lazy", lambda table, _: open_source(pl.DataFrame(table).lazy())),
    "dask": Way("dask", lambda table, _: open_source(dd.from_pandas(of_arrow(table), npartitions=2))),
    "ibis": Way("ibis", lambda table, _: open_source(Table(table))),
    "relation": Way("relation", lambda table, _: open_source(relation(table))),
    "csv with quoted line ends": Way("path", quoted_csv, TEXT),
    "parquet": Way("path", lambda table, folder: open_source(parquet(table, folder))),
    "database": Way("path", lambda table, folder: open_source(database_of(table, folder / "t.duckdb"))),
    "postgresql": Way("postgresql", lambda table, _: servers.from_postgresql(table)),
    "sqlite": Way(
        "sqlite",
        lambda table, folder: servers.from_sqlite(table, folder / "t.sqlite"),
        (Kind.TEXT, Kind.INTEGER, Kind.FLOAT),
    ),
}
#: Other shapes of the same tables.
SHAPES = {
    "csv": Way("path", csv, TEXT),
    "tsv": Way("path", lambda table, folder: csv(table, folder, "t.tsv", "\t"), TEXT),
    "gzip": Way("path", lambda table, folder: csv(table, folder, "t.csv.gz"), TEXT),
    "several csv": Way("path", several_csv, TEXT),
    "several parquet": Way("path", several_parquet),
    "pandas of numpy": Way("frame", lambda table, _: open_source(table.to_pandas())),
    "pandas of mixed objects": Way("frame", lambda table, _: open_source(table.to_pandas().astype(object))),
    "pandas of categories": Way("frame", lambda table, _: open_source(table.to_pandas().astype("category"))),
    "pandas of arrow": Way("frame", lambda table, _: open_source(of_arrow(table))),
    "polars categories": Way(
        "frame",
        lambda table, _: open_source(pl.DataFrame(table).with_columns(pl.all().cast(pl.Categorical))),
        TEXT,
    ),
    "pyarrow dictionaries": Way("frame", dictionaries, TEXT),
    "narwhals": Way("frame", lambda table, _: open_source(nw.from_native(table))),
    "narwhals of a lazy frame": Way(
        "polars lazy", lambda table, _: open_source(nw.from_native(pl.DataFrame(table).lazy()))
    ),
    "structured arrays": Way("arrays", structured),
}
WAYS = MATRIX | SHAPES
IN_MEMORY = [way for way, own in MATRIX.items() if own.engine not in ("path", "postgresql", "sqlite")]
#: Those whose columns have a type that is stored with them, and where a database need not be made.
TYPED = ("pandas", "polars", "pyarrow", "lazy", "relation", "parquet", "database")
