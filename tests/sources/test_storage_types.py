"""What is refused, read and assumed by the types of columns alone, before a record is read."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.sources.base import COMPUTED, INFERRED, QUOTES_CLOSED
from tests.sources.ways import TYPED, WAYS, counts, database, parquet

SEXES = Domain({"sex": ["female", "male"]})
BOTH = Domain({"sex": ["female", "male"], "age": 9})


def total(table, domain=BOTH, **options):
    return int(np.sum(counts(table, domain, **options)))


def with_enumeration(path: Path, name: str) -> None:
    """Turn the texts of a Parquet file into an enumeration of Parquet's, which PyArrow cannot write."""
    held = path.read_bytes()
    encoded = bytes([len(name)]) + name.encode()
    text, listed = bytes.fromhex("25004c1c0000"), bytes.fromhex("25084c4c0000")
    assert held.count(encoded + text) == 1
    path.write_bytes(held.replace(encoded + text, encoded + listed))


@pytest.mark.parametrize("way", TYPED)
@pytest.mark.parametrize("days", [[], [1, 2, None], [None, None, None], [10**9, -(10**9), 5]])
def test_dates_are_refused_for_numbers_whatever_the_records_are(way, days, tmp_path):
    table = pa.table(
        {"sex": ["male", "\x00", "x" * 9][: len(days)], "age": pa.array(days, pa.int32()).cast(pa.date32())}
    )
    for given, domain in ((table, BOTH), (table.drop_columns("sex"), Domain({"age": 9}))):
        with pytest.raises(SourceError, match="column 'age' holds dates; a numeric attribute") as caught:
            WAYS[way].opens(given, tmp_path).marginals(domain, [()], OutOfDomain())
        assert caught.value.code == "wrong-kind"


def test_what_cannot_be_read_is_told_before_records_that_cannot_be_read_either(tmp_path):
    table = pa.table({"sex": ["male"] * 9, "age": pa.array([1] * 9, pa.date32())})
    path = parquet(table, tmp_path, compression="none")
    held = path.read_bytes()
    # Everything but the first bytes and the footer is destroyed.
    footer = int.from_bytes(held[-8:-4], "little") + 8
    path.write_bytes(held[:4] + b"\xff" * (len(held) - footer - 4) + held[-footer:])
    with pytest.raises(SourceError, match="could not"):
        counts(path, SEXES)
    with pytest.raises(SourceError, match="column 'age' holds dates"):
        counts(path, BOTH)


def test_enumerations_of_parquet_are_texts_beside_texts_and_alone(tmp_path):
    texts = pa.array([b"male", b"\xff", None, b"female", b"male"], pa.binary()).view(pa.string())
    table = pa.table({"sex": texts, "note": ["x"] * 5, "age": [1, 2, 3, 4, 5]})
    options: Any = {"store_schema": False, "use_dictionary": False, "write_statistics": False}
    path = parquet(table, tmp_path, **options)
    with_enumeration(path, "sex")
    assert pq.read_schema(path).field("sex").type == pa.binary()
    assert counts(path, SEXES) == [1, 2]
    assert counts(path, Domain({"sex": ["female", "male"], "note": ["x"]})) == [[1], [2]]
    parquet(table, tmp_path, "u.parquet", **options)
    assert counts(tmp_path / "*.parquet", SEXES) == [2, 4]


def test_bytes_of_parquet_are_refused_beside_texts_and_alone(tmp_path):
    table = pa.table({"sex": pa.array([b"male"], pa.binary()), "note": ["x"]})
    path = parquet(table, tmp_path)
    for domain in (SEXES, Domain({"sex": ["female", "male"], "note": ["x"]})):
        with pytest.raises(SourceError, match="column 'sex' holds values of another kind"):
            counts(path, domain)


def test_columns_of_parquet_that_differ_in_case_alone(tmp_path):
    path = parquet(pa.table({"age": [1], "AGE": [2], "AGE_1": [3], "Age": [4]}), tmp_path)
    for name, code in (("age", 1), ("AGE", 2), ("AGE_1", 3), ("Age", 4)):
        assert counts(path, Domain({name: 9})) == [int(place == code) for place in range(9)]
    assert counts(path, Domain({"AGE": 3, "age": 3})) == [[0, 0, 0], [0, 0, 0], [0, 1, 0]]


def test_columns_of_several_parquet_files_that_differ_in_case_alone(tmp_path):
    parquet(pa.table({"age": [1, 1]}), tmp_path, "1.parquet")
    parquet(pa.table({"AGE": [2]}), tmp_path, "2.parquet")
    assert counts(tmp_path / "*.parquet", Domain({"age": 3})) == [0, 2, 0]
    assert counts(tmp_path / "*.parquet", Domain({"AGE": 3})) == [0, 0, 1]


@pytest.mark.parametrize("way", WAYS)
def test_types_may_have_been_inferred_everywhere_but_in_files_of_texts(way, tmp_path):
    source = WAYS[way].opens(pa.table({"sex": ["male"], "age": ["3"]}), tmp_path)
    expected: tuple[str, ...] = (INFERRED,)
    if way in ("lazy", "relation", "dask"):
        expected = (COMPUTED, INFERRED)
    if "csv" in way or way in ("tsv", "gzip"):
        expected = (QUOTES_CLOSED,) if "quoted" in way else ()
    assert source.assumptions(BOTH) == expected


def test_columns_that_a_database_computes_are_assumed_to_be_computed_record_by_record(tmp_path):
    path = database(
        tmp_path / "t.duckdb",
        "CREATE TABLE people (sex VARCHAR, raw VARCHAR, age INTEGER AS (CAST(raw AS INTEGER)))",
        "INSERT INTO people (sex, raw) VALUES ('male', '3')",
    )
    assert total(path) == 1
    assert open_source(path).assumptions(BOTH) == (COMPUTED, INFERRED)
    assert open_source(path).assumptions(SEXES) == (INFERRED,)


SPECIFICATION = (
    "data: t.duckdb\ntable: ages\ndomain: {sex: [female, male], age: 9}\nworkload: [{marginals: [1]}]\n"
    "privacy: {rho: 1.0}\n"
)


def test_a_cast_of_a_view_that_fails_tells_how_to_mend_it_and_nothing_else(tmp_path):
    (tmp_path / "s.yaml").write_text(SPECIFICATION)
    told = []
    for value in ("Waldemar", "4711x"):
        database(
            tmp_path / "t.duckdb",
            "CREATE TABLE people (sex VARCHAR, raw VARCHAR)",
            "INSERT INTO people VALUES ('male', '3')",
            f"INSERT INTO people VALUES ('male', '{value}')",  # noqa: S608
            "CREATE VIEW ages AS SELECT sex, CAST(raw AS INTEGER) AS age FROM people",
        )
        ran = subprocess.run(
            [sys.executable, "-m", "matrixdp", "release", "s.yaml", "--out", "out"],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 2
        assert not (tmp_path / "out").exists()
        told.append(ran.stderr)
    assert told[0] == told[1]
    assert "its engine failed on a record; let it read what may not parse as text" in told[0]
    assert "Waldemar" not in told[0]


def test_a_lazy_csv_file_that_fails_on_one_record(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sex,age\n" + "male,3\n" * 200 + "male,x\n")
    with pytest.raises(SourceError, match=r"could not count the table \(.*; .*its engine failed on a"):
        counts(pl.scan_csv(path), BOTH)
    assert total(pl.scan_csv(path, infer_schema=False)) == 200
