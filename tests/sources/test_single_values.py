"""One record whose values nobody can read is out of domain, and changes nothing else."""

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.sources.base import COMPUTED, INFERRED
from tests.relations import relation

DOMAIN = Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 9}})


def counts(table, **options):
    ((_, found),) = open_source(table, **options).marginals(DOMAIN, [("sex", "age")], OutOfDomain())
    return found


def expected(*records):
    array = np.zeros((2, 10), dtype=np.int64)
    for record in records:
        array[record] += 1
    return array


def texts(values, kind):
    """A column whose bytes are not checked, as files hold them."""
    if kind == pa.string_view():
        return pa.array(values, pa.binary_view()).view(kind)
    held = pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(values), held.buffers())


SEXES = [b"male", b"m\xffale", None, b"\xed\xa0\x80", b"female", b"\xc3"]
AGES = [b"3", b"3", b"3", b"3", b"4", b"4"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
@pytest.mark.parametrize("column", ["sex", "age"])
def test_texts_that_are_not_utf_8(tmp_path, kind, column):
    if column == "sex":
        table = pa.table({"sex": texts(SEXES, kind), "age": texts(AGES, kind), "note": texts(SEXES, kind)})
    else:
        ages = [b"3", b"\xff", b"3\xff", b"\xff3", b"4", None]
        sexes = [b"male", b"male", b"male", b"male", b"female", b"male"]
        table = pa.table({"sex": texts(sexes, kind), "age": texts(ages, kind)})
    np.testing.assert_array_equal(counts(table), expected((1, 3), (0, 4)))
    pq.write_table(table, tmp_path / "t.parquet")
    np.testing.assert_array_equal(counts(tmp_path / "t.parquet"), expected((1, 3), (0, 4)))
    assert open_source(tmp_path / "t.parquet").assumptions(DOMAIN) == (INFERRED,)


def test_a_dictionary_that_is_not_utf_8(tmp_path):
    listed = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2]), texts([b"male", b"\xff", b"female"], pa.string())
    )
    table = pa.table({"sex": listed, "age": [3, 3, 3, 4]})
    np.testing.assert_array_equal(counts(table), expected((1, 3), (0, 4)))
    pq.write_table(table, tmp_path / "t.parquet")
    np.testing.assert_array_equal(counts(tmp_path / "t.parquet"), expected((1, 3), (0, 4)))


def test_parquet_files_of_different_types(tmp_path):
    tables = [
        {"sex": ["male", "x"], "age": [3, 3]},
        {"age": ["4", "oops"], "sex": texts([b"female", b"\xff"], pa.string()), "note": [1, 2]},
        {"sex": ["male"]},
        {"note": [1.5]},
        {"age": pa.array([5.0], pa.float16()), "sex": pa.array(["male"]).dictionary_encode()},
    ]
    for index, columns in enumerate(tables):
        pq.write_table(pa.table(columns), tmp_path / f"{index}.parquet")
    np.testing.assert_array_equal(counts(tmp_path / "*.parquet"), expected((1, 3), (0, 4), (1, 5)))
    rule = OutOfDomain({"sex": 0, "age": 0})
    ((_, total),) = open_source(tmp_path / "*.parquet").marginals(DOMAIN, [()], rule)
    assert total == 7
    for files in ("3.parquet", "2.parquet"):
        with pytest.raises(SourceError, match="the table has no column"):
            counts(tmp_path / files)


class Hostile:
    """Refuses whatever is asked of it."""

    __hash__ = None

    def __str__(self):
        raise RuntimeError

    __float__ = __int__ = __str__

    def __eq__(self, other):
        raise RuntimeError


class Text(str):
    """A text that cannot be looked up."""

    __slots__ = ()

    def __hash__(self):
        raise RuntimeError

    def __str__(self):
        return self

    def __eq__(self, other):
        raise RuntimeError


class Number(int):
    """A number that cannot be looked up, or read."""

    def __hash__(self):
        raise RuntimeError

    def __int__(self):
        raise RuntimeError


VALUES = {"any": Hostile(), "text": Text("?"), "number": Number(77), "surrogate": "\ud800", "long": 10**5000}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("column", ["sex", "age"])
def test_objects_that_raise(make, column, value):
    columns: dict[str, Any] = {"sex": ["male", "male", "female"], "age": [3, 3, 4]}
    columns[column][1] = value
    if make is pd.DataFrame:
        columns = {name: pd.Series(values, dtype=object) for name, values in columns.items()}
    if make is pl.DataFrame:
        columns = {name: pl.Series(name, values, dtype=pl.Object) for name, values in columns.items()}
    np.testing.assert_array_equal(counts(make(columns)), expected((1, 3), (0, 4)))


def test_texts_of_pandas_that_have_no_form_in_utf_8():
    sexes = pd.array(["male", "\ud800", None, "female"], dtype="string[python]")
    frame = pd.DataFrame({"sex": sexes, "age": [3, 3, 3, 4]})
    np.testing.assert_array_equal(counts(frame), expected((1, 3), (0, 4)))
    np.testing.assert_array_equal(counts(frame.astype({"sex": "category"})), expected((1, 3), (0, 4)))


def test_what_an_engine_computes_is_assumed_to_be_computed_record_by_record(tmp_path):
    with duckdb.connect(str(tmp_path / "t.db")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 'male' AS sex, '3' AS age")
        connection.execute("CREATE VIEW ages AS SELECT sex, CAST(age AS INTEGER) AS age FROM people")
    frame = pl.DataFrame({"sex": ["male"], "age": [3]})
    computed = [
        open_source(tmp_path / "t.db", table_name="ages"),
        open_source(frame.lazy()),
        open_source(relation(frame.to_arrow())),
    ]
    for source in computed:
        assert source.assumptions(DOMAIN) == (COMPUTED, INFERRED)
    for source in (open_source(tmp_path / "t.db", table_name="people"), open_source(frame)):
        assert source.assumptions(DOMAIN) == (INFERRED,)
