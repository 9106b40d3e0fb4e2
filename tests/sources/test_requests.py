"""What is refused before counting, and that no message tells anything about the data."""

import inspect
import os
import sys
import traceback
from datetime import date
from functools import partial

import duckdb
import narwhals as nw
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
from matrixdp.sources.base import guarded
from tests.sources.ways import TYPED, WAYS

SECRET = "Waldemar-4711"  # noqa: S105
DOMAIN = Domain({"sex": ["female", "male"], "age": 10})
TABLE = pa.table({"sex": ["male", "female", None], "age": [1, 2, 3]})


NAMED = "names are compared letter by letter, and `column: name` is for attributes that are called otherwise"


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
    with pytest.raises(SourceError, match="no column 'Age'"):
        source.check(Domain({"sex": ["male"], "Age": 3}))
    with pytest.raises(SourceError, match="no column 'person'"):
        open_source(TABLE).check(DOMAIN, None, Unit(2, "person"))
    with pytest.raises(DomainError, match="code 7"):
        source.check(DOMAIN, OutOfDomain({"sex": 7}))


def test_objects_are_not_looked_at_when_columns_are_checked():
    columns = {"sex": Unread(["male"]), "age": Unread([1])}
    open_source(columns).check(DOMAIN)
    with pytest.raises(SourceError, match="AssertionError"):
        next(iter(open_source(columns).marginals(DOMAIN, [()], OutOfDomain())))
    frame = pd.DataFrame({"sex": ["male"], "age": pd.Series([1], dtype=object)})
    open_source(frame).check(DOMAIN)
    with pytest.raises(SourceError, match="column 'age' holds dates"):
        open_source(pl.DataFrame({"sex": ["male"], "age": [date(2020, 1, 31)]})).check(DOMAIN)


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
    with pytest.raises(SourceError) as caught:
        open_source(tmp_path / "t.csv").marginals(DOMAIN, [()], OutOfDomain())
    told = everything(caught.value).replace("\\x00", "").replace("\x00", "")
    assert "4711" not in told
    says = {"a name twice": "the table has several columns named 'sex'"}
    missing = "'age'" if case == "a name that is close" else "'sex', 'age'"
    expected = f"the table has no column{'s' if ',' in missing else ''} {missing}; {NAMED}"
    coded = {"UTF-16": "is UTF-16", "binary": "has zero bytes, as UTF-16 has"}
    if case in coded:
        said = f"the first line, which names the columns, {coded[case]}; save the table as CSV UTF-8, or"
        assert said in str(caught.value)
    else:
        assert str(caught.value) == says.get(case, expected)


NESTED = {
    "an enumeration": f"CAST('{SECRET}' AS ENUM('male', '{SECRET}'))",
    "a list of enumerations": f"[CAST('{SECRET}' AS ENUM('male', '{SECRET}'))]",
    "a structure": f"{{'{SECRET}': 1}}",
    "a union": f'union_value("{SECRET}" := 1)',
}


@pytest.mark.parametrize("case", sorted(NESTED))
def test_a_type_that_holds_values_is_not_quoted(case, tmp_path):
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT {NESTED[case]} AS sex, 3 AS age")
        refused(open_source(connection.table("people")), case)
    refused(open_source(tmp_path / "t.duckdb"), case)


def refused(source, case):
    if case == "an enumeration":
        assert dict(source.marginals(DOMAIN, [()], OutOfDomain()))[()] == 0
        return
    with pytest.raises(SourceError) as caught:
        source.marginals(DOMAIN, [()], OutOfDomain())
    assert SECRET not in everything(caught.value)
    assert str(caught.value).startswith("column 'sex' holds values of another kind; categories are compared")


@pytest.mark.parametrize("way", TYPED)
def test_types_that_cannot_be_read_are_named(way, tmp_path):
    table = pa.table({"sex": pa.array([0], pa.timestamp("us")), "age": [1]})
    with pytest.raises(SourceError, match=r"column 'sex' holds timestamps; .*convert it first"):
        WAYS[way].opens(table, tmp_path).check(DOMAIN)


def test_a_date_is_not_a_number():
    table = pa.table({"sex": ["male"], "age": pa.array([1], pa.date32())})
    for source in (table, pl.DataFrame(table).lazy()):
        with pytest.raises(SourceError, match=r"column 'age' holds dates; a numeric"):
            open_source(source).marginals(DOMAIN, [()], OutOfDomain())


@pytest.mark.parametrize(
    "table", [None, 3, [1, 2], object(), np.zeros((2, 2)), pd.Series([1]), pl.Series([1])]
)
def test_what_is_no_table(table):
    with pytest.raises(SourceError, match="is not a table"):
        open_source(table)


def test_arrays_of_different_lengths():
    with pytest.raises(SourceError, match="one length"):
        open_source({"sex": ["male"], "age": [1, 2]}).marginals(DOMAIN, [()], OutOfDomain())


def test_two_columns_of_one_name(tmp_path):
    frame = pd.DataFrame([["male", "female", 1]], columns=["sex", "sex", "age"])
    with pytest.raises(SourceError, match="could not read the table"):
        open_source(frame).marginals(DOMAIN, [()], OutOfDomain())
    (tmp_path / "t.csv").write_text("sex,sex,age\nmale,female,1\n")
    with pytest.raises(SourceError, match="several columns named 'sex'"):
        open_source(tmp_path / "t.csv").marginals(DOMAIN, [()], OutOfDomain())


def test_wrapped_frames_are_taken():
    for wrapped in (nw.from_native(TABLE), nw.from_native(pl.DataFrame(TABLE).lazy())):
        ((_, total),) = open_source(wrapped).marginals(DOMAIN, [()], OutOfDomain())
        assert total == 2


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


def test_an_engines_error_leaves_nothing_behind():
    with pytest.raises(SourceError) as caught:
        guarded(lambda: int(SECRET), "read the table")
    assert SECRET not in everything(caught.value)
    assert caught.value.__context__ is None


class Panic(BaseException):
    """As an engine written in Rust raises it."""


def test_a_panic_is_held_and_an_interrupt_is_not():
    def act(error):
        raise error

    with pytest.raises(SourceError, match=r"could not read the table \(Panic;") as caught:
        guarded(lambda: act(Panic(SECRET)), "read the table")
    assert SECRET not in everything(caught.value)
    for error in (KeyboardInterrupt, SystemExit, GeneratorExit):
        with pytest.raises(error):
            guarded(partial(act, error()), "read the table")


@pytest.mark.parametrize("kind", ["lazy", "relation", "database"])
def test_an_engine_that_fails_on_a_value_does_not_tell_it(kind, tmp_path):
    columns = {"sex": ["male", "male"], "age": ["1", SECRET]}
    if kind == "lazy":
        frame = pl.LazyFrame(columns).with_columns(pl.col("age").cast(pl.Int64, strict=True))
        source = open_source(frame)
    else:
        path = tmp_path / "t.duckdb"
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE raw (sex VARCHAR, age VARCHAR)")
            connection.execute("INSERT INTO raw VALUES ('male', '1'), ('male', ?)", [SECRET])
            connection.execute("CREATE VIEW people AS SELECT sex, CAST(age AS INTEGER) AS age FROM raw")
        if kind == "database":
            source = open_source(path, table_name="people")
        else:
            relation = duckdb.connect(str(path), read_only=True).sql("SELECT * FROM people")
            source = open_source(relation)
    with pytest.raises(SourceError, match="could not") as caught:
        list(source.marginals(DOMAIN, [("sex",)], OutOfDomain()))
    assert SECRET not in everything(caught.value)
    assert caught.value.__context__ is None


def test_sources_hold_no_table_of_their_own():
    source = open_source(TABLE)
    before = sys.getrefcount(TABLE)
    list(source.marginals(DOMAIN, [("sex",)], OutOfDomain()))
    assert sys.getrefcount(TABLE) == before


def test_counting_leaves_no_files_in_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    list(open_source(TABLE).marginals(DOMAIN, [("sex",)], OutOfDomain()))
    assert os.listdir() == []  # noqa: PTH208


def test_call_checks_and_iteration_counts():
    for source in (open_source(TABLE), open_source(pl.DataFrame(TABLE).lazy())):
        assert inspect.isgenerator(source.marginals(DOMAIN, [()], OutOfDomain()))
