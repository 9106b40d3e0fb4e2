"""What sources reject, by names and types alone; a table of files is made in the folder of an attempt."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.exact.resources import MEMORY_LIMIT
from matrixdp.privacy import Unit
from matrixdp.sources import open_source, register_format, register_source
from matrixdp.sources.engines import THREADS
from tests.refusals import Refusal
from tests.sources.test_sqlite import database as made_by_sqlite
from tests.sources.ways import database, parquet

AGE = Domain({"age": 4})
PERSON = Unit(id="person")
SPAN = {"from": "2020-01-01", "to": "2020-12-31"}
READ = Domain({"age": {"min": 0, "max": 3, "column": "Age, years"}})
PEOPLE = "CREATE TABLE people AS SELECT 1 AS age, 'ann' AS person"


def checked(table: Any, domain: Domain = AGE, unit: Unit | None = None, rule=None) -> Callable[[], Any]:
    return lambda: open_source(table).check(domain, rule, unit)


def person(table: Any, name: str = "person") -> Callable[[], Any]:
    return checked(table, unit=Unit(id=name))


def held(column: Any, **spec: Any) -> Callable[[], Any]:
    """Return the check of a column for an attribute."""
    return checked(pa.table({"t": column}), Domain({"t": spec}))


def opened(name: str, made: dict[str, str] | None = None, **options: Any) -> Callable[[Path], Any]:
    """Return what opens a path below a folder that has some files."""

    def attempt(folder: Path) -> Any:
        for own, text in (made or {}).items():
            database(folder / own, text) if own.endswith(".db") else (folder / own).write_text(text)
        return open_source(str(folder / name) if name else folder, **options)

    return attempt


def asked(name: str, made: dict[str, str], domain=AGE, unit=None, **options: Any) -> Callable[[Path], Any]:
    return lambda folder: opened(name, made, **options)(folder).check(domain, unit=unit)


def sqlite(name: str | None, *statements: str, unit: Unit | None = None) -> Callable[[Path], Any]:
    def attempt(folder: Path) -> None:
        open_source(made_by_sqlite(folder, *statements), table_name=name).check(AGE, unit=unit)

    return attempt


def counted(table: Any) -> Any:
    return open_source(table).marginals(AGE, [("age",)], OutOfDomain())


def granted(variable: str, text: str) -> Callable[[], Any]:
    def attempt() -> None:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv(variable, text)
            counted({"age": [1]})

    return attempt


def lazily(version: str) -> Callable[[], Any]:
    def attempt() -> None:
        with pytest.MonkeyPatch.context() as environment:
            environment.setattr(pl, "__version__", version)
            counted(pl.LazyFrame({"age": [1]}))

    return attempt


def unread(_: pl.DataFrame) -> pl.DataFrame:
    raise AssertionError("the data was touched")


def header(head: bytes, quoted: bool = False, name: str = "t.csv") -> Callable[[Path], Any]:
    """Return what checks a file that begins with some bytes."""

    def attempt(folder: Path) -> Any:
        (folder / name).write_bytes(head)
        return open_source(folder / name, quoted_newlines=quoted).check(AGE)

    return attempt


def pattern(*tables: dict[str, Any], domain: Domain = AGE) -> Callable[[Path], Any]:
    """Return what checks a pattern of Parquet files."""

    def attempt(folder: Path) -> Any:
        for place, columns in enumerate(tables):
            parquet(pa.table(columns), folder, f"{place}.parquet")
        return open_source(folder / "*.parquet").check(domain)

    return attempt


def stored(column: Any, **others: Any) -> Callable[[Path], Any]:
    return lambda folder: open_source(parquet(pa.table({"age": column, **others}), folder)).check(
        Domain({"age": 4, **{name: ["x"] for name in others}})
    )


#: What follows the header of a file whose lines end in carriage returns: no record, and some.
MAC = (b"", b"3,m\r", b"\xff\0,\r", b'"\n\r')
OTHERS = (
    b"SQLite format 3\0", b"PAR1\x15\4", b"\x1f\x8b\x08", b"PK\3\4", b"BZh91AY&SY",
    b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0",
)  # fmt: skip
DAY = Domain({"age": SPAN | {"by": "day"}})
CSV = {"t.csv": "age,person\n1,ann\n"}
DB = {"t.db": PEOPLE, "u.db": PEOPLE}
SCHEMAS = "; ".join(f"CREATE SCHEMA {s}; CREATE TABLE {s}.u (age INT)" for s in ("r", "s"))
LIMITS = [(THREADS, text) for text in ("0", "-1", "all", "2.5")]
LIMITS += [(MEMORY_LIMIT, text) for text in ("80%", "4", "4GB'", "much", "9999999TB")]
#: By the code of the error, and its place where one is named.
REJECTED: dict[tuple[str, str], dict[str, Callable[..., Any]]] = {
    ("file-missing", ""): {
        "no file": opened("none.csv"),
        "no file of a pattern": opened("none*.parquet"),
        "no file of SQLite": lambda: open_source("sqlite:///none.sqlite"),
    },
    ("source", ""): {
        "a folder": opened(""),
        "a header in Windows-1252": header("age,größe\n".encode("cp1252")),
        "a header cut within a letter": header(b"age,\xe2\x82\n"),
        "a header in UTF-16": header("age\n3\n".encode("utf-16")),
        "a header in UTF-16 without a mark": header("age\n3\n".encode("utf-16-be")),
        "a header in UTF-16 of Windows": header("age\r\n3\r\n".encode("utf-16-le")),
        **{f"lines of Macs, {records!r}": header(b"age,sex\r" + records) for records in MAC},
        "lines of Macs behind a mark": header(b"\xef\xbb\xbfage\r3\r"),
        "lines that end in two carriage returns": header(b"age\r\r\n3\r\r\n"),
        "a line of Excel": header(b"sep=;\r\nage;sex\r\n3;m\r\n"),
        "a header without an end": header(b"age," + b"\xc3\xa9" * 2**21),
        "a header without an end, quoted": header(b'"age\n' + b"x\n" * 2**21, True),
        "a path of Parquet that is not UTF-8": header(b"PAR1", name=os.fsdecode(b"\xff.parquet")),
        "a path of DuckDB that is not UTF-8": header(b"", name=os.fsdecode(b"\xff.db")),
        "no gzip called .gz": header(b"age\n", name="t.csv.gz"),
        **{f"{start[:4]!r} called CSV": header(start + b"\n") for start in OTHERS},
        "SQLite called .db": header(OTHERS[0], name="t.db"),
        "SQLite called .sqlite3": header(OTHERS[0], name="t.sqlite3"),
        "Parquet called .db": header(OTHERS[1], name="t.db"),
        "gzip called .parquet": header(OTHERS[2], name="t.parquet"),
    },
    ("empty", ""): {"an empty file": header(b""), "an empty gzip file": asked("t.csv.gz", {"t.csv.gz": ""})},
    ("engine-failed", ""): {
        **{f"an empty file {name}": asked(name, {name: ""}) for name in ("t.parquet", "t.duckdb")},
    },
    ("not-supported", ""): {
        f"Polars {version}": lazily(version) for version in ("1.34.0", "1.36.1", "1.44.1", "1.9.0b2")
    },
    ("conflict", ""): {
        "formats together": opened("t.*", {**CSV, "t.parquet": ""}),
        "databases together": opened("*.db", DB),
        "a table of a file": opened("t.csv", CSV, table_name="people"),
        "a table of a frame": lambda: open_source(pa.table({"sex": ["male"]}), table_name="people"),
        "quotes in a database": opened("t.db", DB, quoted_newlines=True),
        "quotes in a frame": lambda: open_source(pa.table({"sex": ["male"]}), quoted_newlines=True),
        "quotes in Parquet": lambda: open_source("s3://bucket/a.parquet", quoted_newlines=True),
        "a table of an address": lambda: open_source("s3://bucket/a.parquet", table_name="people"),
    },
    ("unknown-name", ""): {
        "an unknown ending": opened("t.dat", {"t.dat": "age"}),
        "a table of several schemas": asked("t.db", {"t.db": SCHEMAS}, table_name="u"),
        "no single table": asked("t.db", {"t.db": f"{PEOPLE}; CREATE TABLE more AS FROM people"}),
        "no such table": asked("t.db", DB, table_name="persons"),
        "no single table of SQLite": sqlite(None, PEOPLE, "CREATE TABLE more (age)"),
        "no such table of SQLite": sqlite("less", PEOPLE),
    },
    ("unknown-name", "data"): {
        "an unknown scheme": lambda: open_source("gopher://ann:secret@host/a.csv"),
        "an address of no format": lambda: open_source("https://host/people.xlsx?key=secret"),
    },
    ("source", "data"): {"a host of SQLite": lambda: open_source("sqlite://host/people")},
    ("wrong-type", ""): {
        f"{type(table).__module__}.{type(table).__name__}": checked(table)
        for table in (None, 3, [1, 2], object(), np.zeros((2, 2)), pd.Series([1]), pl.Series([1]))
    },
    ("duplicate", ""): {
        "an engine twice": lambda: register_source("path", callable, "nothing:nothing"),
        "a column of pandas twice": checked(pd.DataFrame([[1, 2]], columns=["age", "age"])),
        "a column of PyArrow twice": checked(pa.table([[1], [2]], names=["age", "age"])),
        "a column twice": asked("t.csv", {"t.csv": "age,age\n1,2\n"}),
        "an id twice": asked("t.csv", {"t.csv": "age,person,person\n0,Waldemar,1\n"}, unit=PERSON),
        "a column to draft twice": lambda folder: opened("t.csv", {"t.csv": "a,b,a\n"})(folder).columns(),
    },
    ("duplicate", "endings"): {
        "an ending that another format has": lambda: register_format("x", ".csv", reader=id),
        "a format without an ending": lambda: register_format("x", reader=id),
    },
    ("missing-column", ""): {
        "no column": checked({"Age": [1]}),
        "no column but one with spaces": asked("t.csv", {"t.csv": "sex, age\nm,3\n"}),
        "no column below a comment": asked("t.csv", {"t.csv": "# of 2024\nage\n3\n"}),
        "no column with a text for its name": checked(
            pd.DataFrame([[1]]), Domain({"a": {"min": 0, "max": 3, "column": "0"}})
        ),
        "no array with a text for its name": checked(
            {0: [1]}, Domain({"a": {"min": 0, "max": 3, "column": "0"}})
        ),
        "no column in a file of a pattern": asked("*.csv", {"1.csv": "age\n1\n", "2.csv": "Age\n1\n"}),
        "no column in a Parquet file of a pattern": pattern({"age": [1]}, {"Age": [1], "sex": [1]}),
        "no column in the first Parquet file": pattern({"Age": [1], "sex": ["x"]}, {"age": [1]}),
        "no columns": checked(pa.table({"Age": [1]}), Domain({"sex": ["f"], "age": 4})),
        "no column of another name": checked({"age": [1]}, READ),
        "no id": person({"age": [0]}),
        "no id in a file": asked("t.csv", {"t.csv": "age,name\n0,Waldemar\n"}, unit=PERSON),
    },
    ("wrong-size", ""): {
        "arrays of two lengths": checked(
            {"sex": ["male"], "age": [1, 2]}, Domain({"sex": ["male"], "age": 4})
        ),
        "arrays of two dimensions": checked({"age": np.zeros((2, 2))}),
        "arrays of none": checked({"age": np.array(3)}),
        "structures of several values": checked(np.zeros(2, [("age", "i4", 2)])),
        "ids of another length": person({"age": [0, 1], "person": [0]}),
    },
    ("wrong-kind", ""): {
        **{f"arrays of {kind}": checked({"age": np.zeros(2, kind)}) for kind in ("c16", "m8[s]", "S1", "V4")},
        "a series of complex numbers": checked({"age": pd.Series([1j])}),
        "complex numbers of pandas": checked(pd.DataFrame({"age": [1j]})),
        "periods of pandas": checked(pd.DataFrame({"age": pd.period_range("2020", "2022", freq="Y")})),
        "integers for days in a file of a pattern": pattern(
            {"age": pa.array([1], pa.date32())}, {"age": [1]}, domain=DAY
        ),
        "integers for days": held(pa.array([1]), **SPAN, by="day"),
        "booleans for days": held(pa.array([True]), **SPAN, by="day"),
        "dates for hours": held(pa.array([1], pa.date32()), **SPAN, by="hour"),
        "times for hours": held(pa.array([1], pa.time32("s")), **SPAN, by="hour"),
        "timestamps for codes": held(pa.array([0], pa.timestamp("us")), size=3),
        "dates for codes": held(pa.array([1], pa.date32()), size=3),
        "dates of another name": checked(pa.table({"Age, years": pa.array([1], pa.date32())}), READ),
        "bytes of Parquet": stored(pa.array([b"1"], pa.binary())),
        "bytes of Parquet beside texts": stored(pa.array([b"1"], pa.binary()), note=["x"]),
        **{
            f"ids of {kind}": person(pa.table({"age": [0], "person": pa.array([None], kind)}))
            for kind in (pa.binary(), pa.timestamp("us"), pa.list_(pa.int64()))
        },
    },
    ("conflict", "unit.id"): {
        "an id that is an attribute": person({"age": [0]}, "age"),
        "an id that is read": checked({"Age, years": [0]}, READ, Unit(id="Age, years")),
    },
    ("not-supported", "unit.id"): {
        "ids of a lazy frame": person(pl.LazyFrame({"age": [0], "person": ["ann"]}).map_batches(unread)),
        "ids of a relation": person(duckdb.sql("SELECT error('read') AS age, 1 AS person")),
        **{
            f"ids of {name}": asked("t.db", {"t.db": made}, unit=PERSON, table_name=table)
            for name, table, made in (
                ("a view", "v", f"{PEOPLE}; CREATE VIEW v AS FROM people"),
                (
                    "a table beside a column 'rowid'",
                    None,
                    "CREATE TABLE t AS SELECT 1 AS age, 1 AS person, 1 AS RowId",
                ),
                (
                    "a table that computes them",
                    None,
                    "CREATE TABLE t (age INT, name TEXT, person TEXT AS (lower(name)))",
                ),
            )
        },
        "ids of a view of SQLite": sqlite(
            "v", "CREATE TABLE t (person, age)", "CREATE VIEW v AS SELECT * FROM t", unit=PERSON
        ),
        **{
            f"ids of SQLite, {table}": sqlite(None, f"CREATE TABLE t {table}", unit=PERSON)
            for table in (
                "(person PRIMARY KEY, age) WITHOUT ROWID",
                "(person, age, rowid, _rowid_, oid)",
                "(name, age, person AS (lower(name)) VIRTUAL)",
                "(name, age, person AS (lower(name)) STORED)",
            )
        },
    },
}
REFUSALS = [
    *(Refusal(name, *key, attempt) for key, own in REJECTED.items() for name, attempt in own.items()),
    *(Refusal(f"{name} of {text}", "source", name, granted(name, text)) for name, text in LIMITS),
]
