"""What is refused before counting, when tables are read, and that no message tells anything of the data."""

import os
import sys
import traceback
from functools import partial
from typing import Any

import dask.dataframe as dd
import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.domain import Domain, OutOfDomain
from matrixdp.sources import open_source
from matrixdp.sources.base import guarded
from tests.sources.ways import TYPED, WAYS, Table, counts, database

SECRET = "Waldemar-4711"  # noqa: S105
DOMAIN = Domain({"sex": ["female", "male"], "age": 10})
TABLE = pa.table({"sex": ["male", "female", None], "age": [1, 2, 3]})


class Unread(list):
    """A column whose values nobody may look at."""

    def __iter__(self):
        raise AssertionError("a record was read")

    __getitem__ = __reversed__ = __iter__  # type: ignore[assignment]


@pytest.mark.parametrize("way", ["csv", "lists", *TYPED])
def test_columns_are_checked_without_reading_a_record(way, tmp_path, monkeypatch):
    source = WAYS[way].opens(TABLE, tmp_path)

    def read(*_, **__):
        raise AssertionError("a record was read")

    monkeypatch.setattr("matrixdp.sources.csv.arrow.record_batch", read, raising=False)
    monkeypatch.setattr("matrixdp.sources.counting._groups", read)
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", read)
    monkeypatch.setattr(pl.LazyFrame, "collect", read)
    source.check(DOMAIN)
    with pytest.raises(mdp.SourceError, match="no column 'Age'"):
        source.check(Domain({"sex": ["male"], "Age": 3}))
    with pytest.raises(mdp.SourceError, match="no column 'person'"):
        open_source(TABLE).check(DOMAIN, None, mdp.Unit(2, "person"))
    with pytest.raises(mdp.DomainError, match="code 7"):
        source.check(DOMAIN, OutOfDomain({"sex": 7}))


def test_objects_are_not_looked_at_when_columns_are_checked():
    columns = {"sex": Unread(["male"]), "age": Unread([1])}
    open_source(columns).check(DOMAIN)
    with pytest.raises(mdp.SourceError, match="could not read"):
        next(iter(open_source(columns).marginals(DOMAIN, [()], OutOfDomain())))
    frame = pd.DataFrame({"sex": ["male"], "age": pd.Series([1], dtype=object)})
    open_source(frame).check(DOMAIN)


FIRST_LINES = {
    "no header": f"male,{SECRET}\nfemale,3\n".encode(),
    "one record": f"{SECRET}".encode(),
    "a preamble": f"Records of {SECRET}\n\nsex,age\nmale,3\n".encode(),
    "an opened quote": f'"sex,age\nmale,{SECRET}\n'.encode(),
    "a name that is close": f"sex,age {SECRET}\nmale,3\n".encode(),
    "UTF-16": f"sex,age\nmale,{SECRET}\n".encode("utf-16"),
    "binary": b"\x00\x89PNG" + SECRET.encode() + b"\xff\x00\n",
    "a name twice": f"sex,sex,age,{SECRET}\nmale,male,3,x\n".encode(),
}


@pytest.mark.parametrize("case", sorted(FIRST_LINES))
def test_a_first_line_that_is_no_header_is_not_quoted(case, tmp_path):
    (tmp_path / "t.csv").write_bytes(FIRST_LINES[case])
    with pytest.raises(mdp.SourceError) as caught:
        open_source(tmp_path / "t.csv").marginals(DOMAIN, [()], OutOfDomain())
    told = everything(caught.value).replace("\\x00", "").replace("\x00", "")
    assert "4711" not in told
    codes = {"UTF-16": "source", "binary": "source", "a name twice": "duplicate"}
    assert caught.value.code == codes.get(case, "missing-column")


NESTED = {
    "an enumeration": f"CAST('{SECRET}' AS ENUM('male', '{SECRET}'))",
    "a list of enumerations": f"[CAST('{SECRET}' AS ENUM('male', '{SECRET}'))]",
    "a structure": f"{{'{SECRET}': 1}}",
    "a union": f'union_value("{SECRET}" := 1)',
}


@pytest.mark.parametrize("case", sorted(NESTED))
def test_a_type_that_holds_values_is_not_quoted(case, tmp_path):
    path = database(tmp_path / "t.duckdb", f"CREATE TABLE people AS SELECT {NESTED[case]} AS sex, 3 AS age")
    with duckdb.connect(str(path), read_only=True) as connection:
        for source in (open_source(connection.table("people")), open_source(path)):
            if case == "an enumeration":
                assert counts(source, DOMAIN, ()) == 0
                continue
            with pytest.raises(mdp.SourceError) as caught:
                source.marginals(DOMAIN, [()], OutOfDomain())
            assert caught.value.code == "wrong-kind"
            assert SECRET not in everything(caught.value)


def everything(error):
    """All texts that a handler or a log could get at."""
    seen, texts, pending = set(), [], [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        texts += [str(current), repr(current), repr(current.args), *getattr(current, "__notes__", [])]
        pending += [current.__cause__, current.__context__]
    return "\n".join([*texts, *traceback.format_exception(error)])


class Panic(BaseException):
    """As an engine written in Rust raises it."""


def test_a_panic_is_held_and_an_interrupt_is_not():
    def act(error):
        raise error

    told = set()
    # which class an engine raises may depend on a value
    for failure in (Panic(SECRET), ValueError(SECRET), type(SECRET, (MemoryError,), {})()):
        with pytest.raises(mdp.SourceError) as caught:
            guarded(partial(act, failure))
        assert SECRET not in everything(caught.value)
        assert caught.value.__context__ is None
        told.add(str(caught.value))
    assert len(told) == 1
    for error in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(error):
            guarded(partial(act, error()), "read the table")


@pytest.mark.parametrize("kind", ["lazy", "relation", "database"])
def test_an_engine_that_fails_on_a_value_does_not_tell_it(kind, tmp_path):
    told = []
    for place, secret in enumerate((SECRET, "4711x")):
        path = database(
            tmp_path / f"{place}.duckdb",
            "CREATE TABLE raw (sex VARCHAR, age VARCHAR)",
            f"INSERT INTO raw VALUES ('male', '1'), ('male', '{secret}')",  # noqa: S608
            "CREATE VIEW people AS SELECT sex, CAST(age AS INTEGER) AS age FROM raw",
        )
        frame = pl.LazyFrame({"sex": ["male", "male"], "age": ["1", secret]})
        tables: dict[str, Any] = {
            "lazy": frame.with_columns(pl.col("age").cast(pl.Int64)),
            "relation": duckdb.connect(str(path), read_only=True).sql("SELECT * FROM people"),
            "database": path,
        }
        source = open_source(tables[kind], table_name="people" if kind == "database" else None)
        with pytest.raises(mdp.SourceError, match="could not") as caught:
            list(source.marginals(DOMAIN, [("sex",)], OutOfDomain()))
        assert secret not in everything(caught.value)
        assert caught.value.__context__ is None
        told.append(str(caught.value))
    # which thread of Polars fails first decides the class of its error, and a value may
    assert len({text.replace(str(tmp_path / f"{i}.duckdb"), "") for i, text in enumerate(told)}) == 1


def test_counting_leaves_no_table_and_no_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = open_source(TABLE)
    before = sys.getrefcount(TABLE)
    list(source.marginals(DOMAIN, [("sex",)], OutOfDomain()))
    assert sys.getrefcount(TABLE) == before
    assert os.listdir() == []  # noqa: PTH208


def test_an_engine_that_does_not_go_with_ibis_is_told_by_the_call(monkeypatch, tmp_path):
    def fails(_):
        raise AttributeError("fetch_record_batch")

    source = WAYS["ibis"].opens(TABLE, tmp_path)
    monkeypatch.setattr(Table, "to_pyarrow_batches", fails)
    with pytest.raises(mdp.SourceError, match=r"could not read the table \(the engine"):
        source.marginals(DOMAIN, [()], OutOfDomain())


@pytest.mark.parametrize("engine", ["polars", "dask"])
def test_a_lazy_frame_runs_once_and_not_before_it_is_counted(engine):
    ran = []

    def seen(frame):
        ran.append(1)
        return frame

    columns = {"sex": ["male"] * 3, "age": [1, 2, 99]}
    if engine == "polars":
        frame: Any = pl.LazyFrame(columns).map_batches(seen)
    else:
        whole = pd.DataFrame(columns)
        frame = dd.from_pandas(whole, npartitions=1).map_partitions(seen, meta=whole[:0])
    found = open_source(frame).marginals(DOMAIN, [(), ("age",)], OutOfDomain())
    assert not ran
    assert [int(counts.sum()) for _, counts in found] == [2, 2]
    assert ran == [1]


def test_integers_that_arrow_does_not_have():
    frame = pl.LazyFrame({"age": [0, 3, 2**70, None]}, schema={"age": pl.Int128})
    assert sum(counts(frame, Domain({"age": 4}))) == 2
