"""Columns as they are stored: bytes that are no text, types that cannot be read, and what is assumed."""

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.sources import open_source
from matrixdp.sources.base import COMPUTED, INFERRED, QUOTES_CLOSED
from tests.sources.test_sqlite import database as sqlite
from tests.sources.ways import PEOPLE, TYPED, WAYS, cells, counts, database, parquet

SEXES = mdp.Domain({"sex": ["female", "male"]})


def texts(values, kind):
    """A column whose bytes are not checked, as files hold them."""
    if kind == "dictionary":
        distinct = list(dict.fromkeys(values))
        codes = pa.array([distinct.index(value) for value in values])
        return pa.DictionaryArray.from_arrays(codes, texts(distinct, pa.string()))
    if kind == pa.string_view():
        return pa.array(values, pa.binary_view()).view(kind)
    held = pa.array(values, pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(values), held.buffers())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), "dictionary"])
def test_texts_that_are_not_utf_8_are_out_of_domain_alone(tmp_path, kind):
    sexes = [b"male", b"m\xffale", b"\xed\xa0\x80", b"female", b"\xc3", b"male", b"male", b"male"]
    ages = [b"3", b"3", b"3", b"4", b"4", b"\xff", b"3\xff", b"\xff3"]
    table = pa.table({"sex": texts(sexes, kind), "age": texts(ages, kind), "note": texts(sexes, kind)})
    for way in ("pyarrow", "parquet", "ibis"):
        assert cells(WAYS[way].opens(table, tmp_path)) == [(0, 4), (1, 3)], way


def test_texts_of_pandas_that_have_no_form_in_utf_8():
    sexes = pd.array(["male", "\ud800", None, "female"], dtype="string[python]")
    frame = pd.DataFrame({"sex": sexes, "age": [3, 3, 3, 4]})
    assert cells(frame) == cells(frame.astype({"sex": "category"})) == [(0, 4), (1, 3)]


def test_parquet_files_of_different_types(tmp_path):
    tables = [
        {"sex": ["male", "x"], "age": [3, 3]},
        {"age": ["4", "oops"], "sex": texts([b"female", b"\xff"], pa.string()), "note": [1, 2]},
        {"sex": ["male"], "age": pa.nulls(1)},
        {"sex": ["male"], "age": [True], "Sex": [1.5]},
        {"age": pa.array([5.0], pa.float16()), "sex": pa.array(["male"]).dictionary_encode()},
    ]
    for index, columns in enumerate(tables):
        parquet(pa.table(columns), tmp_path, f"{index}.parquet")
    assert cells(tmp_path / "*.parquet") == [(0, 4), (1, 1), (1, 3), (1, 5)]
    assert counts(tmp_path / "*.parquet", PEOPLE, (), mdp.OutOfDomain({"sex": 0, "age": 0})) == 7


def test_every_file_of_a_pattern_is_read_by_its_own_types(tmp_path):
    domain = mdp.Domain({"a": ["1", "true", "2020-01-01"]})
    for index, values in enumerate(([1, 2], [True], [date(2020, 1, 1)])):
        parquet(pa.table({"a": values}), tmp_path, f"{index}.parquet")
    assert counts(tmp_path / "*.parquet", domain) == [1, 1, 1]


def test_sparse_columns_of_pandas_are_read_as_what_they_hold():
    sexes = pd.arrays.SparseArray(["male", None, 3], dtype=pd.SparseDtype("object"))
    frame = pd.DataFrame({"sex": sexes, "age": pd.arrays.SparseArray([3, 0, 0])})
    assert cells(frame) == [(1, 3)]


def with_enumeration(path: Path, name: str) -> None:
    """Turn the texts of a Parquet file into an enumeration of Parquet's, which PyArrow cannot write."""
    held = path.read_bytes()
    encoded = bytes([len(name)]) + name.encode()
    text, listed = bytes.fromhex("25004c1c0000"), bytes.fromhex("25084c4c0000")
    assert held.count(encoded + text) == 1
    path.write_bytes(held.replace(encoded + text, encoded + listed))


def test_enumerations_of_parquet_are_texts_beside_texts_and_alone(tmp_path):
    sexes = texts([b"male", b"\xff", None, b"female", b"male"], pa.string())
    table = pa.table({"sex": sexes, "note": ["x"] * 5, "age": [1, 2, 3, 4, 5]})
    options: Any = {"store_schema": False, "use_dictionary": False, "write_statistics": False}
    path = parquet(table, tmp_path, **options)
    with_enumeration(path, "sex")
    assert pq.read_schema(path).field("sex").type == pa.binary()
    assert counts(path, SEXES) == [1, 2]
    assert counts(path, mdp.Domain({"sex": ["female", "male"], "note": ["x"]})) == [[1], [2]]
    parquet(table, tmp_path, "u.parquet", **options)
    assert counts(tmp_path / "*.parquet", SEXES) == [2, 4]


TEXT = {"categories": ["1", "01"], "type": "text"}
REFUSED: dict[str, tuple[Any, Any]] = {
    "no dates": (pa.array([], pa.date32()), 9),
    "nulls of dates": (pa.nulls(3, pa.date32()), 9),
    "dates of no year": (pa.array([10**9, -(10**9), 5], pa.int32()).cast(pa.date32()), 9),
    "timestamps": (pa.array([0], pa.timestamp("us")), ["x"]),
    "integers": ([1, 2], TEXT),
    "numbers": ([1.0, 0.5], TEXT),
    "booleans": ([True, False], TEXT),
}


@pytest.mark.parametrize("way", TYPED)
@pytest.mark.parametrize("case", REFUSED)
def test_types_that_cannot_be_read_are_refused_whatever_the_records_are(way, case, tmp_path):
    column, spec = REFUSED[case]
    source = WAYS[way].opens(pa.table({"other": ["\x00"] * len(column), "held": column}), tmp_path)
    for domain in (mdp.Domain({"held": spec}), mdp.Domain({"other": ["x"], "held": spec})):
        for attempt in (source.check, lambda asked: source.marginals(asked, [()], mdp.OutOfDomain())):
            with pytest.raises(mdp.SourceError, match="column 'held' holds ") as caught:
                attempt(domain)
            assert caught.value.code == "wrong-kind"


def test_what_cannot_be_read_is_told_before_records_that_cannot_be_read_either(tmp_path):
    table = pa.table({"sex": ["male"] * 9, "age": pa.array([1] * 9, pa.date32())})
    path = parquet(table, tmp_path, compression="none")
    held = path.read_bytes()
    # Everything but the first bytes and the footer is destroyed.
    footer = int.from_bytes(held[-8:-4], "little") + 8
    path.write_bytes(held[:4] + b"\xff" * (len(held) - footer - 4) + held[-footer:])
    for domain, code in ((SEXES, "engine-failed"), (PEOPLE, "wrong-kind")):
        with pytest.raises(mdp.SourceError) as caught:
            counts(path, domain)
        assert caught.value.code == code


@pytest.mark.parametrize("way", WAYS)
def test_types_may_have_been_inferred_everywhere_but_in_files_of_texts(way, tmp_path):
    source = WAYS[way].opens(pa.table({"sex": ["male"], "age": ["3"]}), tmp_path)
    computed = WAYS[way].engine in ("dask", "ibis", "polars lazy", "relation")
    expected: tuple[str, ...] = (COMPUTED, INFERRED) if computed else (INFERRED,)
    if "csv" in way or way in ("tsv", "gzip"):
        expected = (QUOTES_CLOSED,) if "quoted" in way else ()
    assert source.assumptions(PEOPLE) == expected


@pytest.mark.parametrize("engine", ["DuckDB", "SQLite"])
def test_columns_that_a_database_computes_are_assumed_to_be_computed_record_by_record(engine, tmp_path):
    made = (
        "CREATE TABLE people (sex VARCHAR, raw VARCHAR, age INTEGER AS (CAST(raw AS INTEGER)))",
        "INSERT INTO people (sex, raw) VALUES ('male', '3')",
        "CREATE VIEW seen AS SELECT sex FROM people",
    )
    path = database(tmp_path / "t.duckdb", *made) if engine == "DuckDB" else sqlite(tmp_path, *made)
    assert cells(path, table_name="people") == [(1, 3)]
    for name, domain, computed in (("people", PEOPLE, True), ("people", SEXES, False), ("seen", SEXES, True)):
        expected = (COMPUTED, INFERRED) if computed else (INFERRED,)
        assert open_source(path, table_name=name).assumptions(domain) == expected


def test_a_lazy_frame_that_fails_on_one_record_reads_it_as_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sex,age\n" + "male,3\n" * 200 + "male,x\n")
    frame = pl.scan_csv(path, infer_schema=False)
    for failing in (pl.scan_csv(path), frame.with_columns(pl.col("age").cast(pl.Int64))):
        with pytest.raises(mdp.SourceError, match=r"its engine failed on a") as caught:
            counts(failing, PEOPLE)
        assert caught.value.code == "engine-failed"
    assert np.sum(counts(frame, PEOPLE)) == 200
