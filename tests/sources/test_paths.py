"""Files: CSV, Parquet and DuckDB databases."""

import gzip
import re
import tracemalloc

import duckdb
import pyarrow as pa
import pytest

from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.sources.columns import parquet_kinds
from tests.sources.ways import PEOPLE, cells, counts, database, parquet


def write(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.csv", "age,sex\n3,male\n4,female\n"),
        ("windows.csv", "age,sex\r\n3,male\r\n4,female\r\n"),
        ("no_last_newline.csv", "age,sex\n3,male\n4,female"),
        ("semicolons.csv", "age;sex\n3;male\n4;female\n"),
        ("pipes.txt", "age|sex\n3|male\n4|female\n"),
        ("tabs.csv", "age\tsex\n3\tmale\n4\tfemale\n"),
        ("tabs.tsv", "age\tsex\n3\tmale\n4\tfemale\n"),
        ("marked.csv", b"\xef\xbb\xbfage,sex\n3,male\n4,female\n"),
        ("quoted.csv", '"age","sex","a ""note"""\n"3","male","a,b"\n 4.0 ,"female","x"\n'),
        ("more_columns.csv", "x,age,y,sex\n1,3,2,male\n1,4,2,female\n"),
        ("null_fields.csv", "age,sex\n3,male\n,male\n4,\n4,female\n"),
        ("packed.csv.gz", gzip.compress(b"age,sex\n3,male\n4,female\n", mtime=0)),
        ("it's [1] odd?.csv", "age,sex\n3,male\n4,female\n"),
    ],
)
def test_csv(tmp_path, name, text):
    path = write(tmp_path / name, text)
    assert cells(path) == cells(str(path)) == [(0, 4), (1, 3)]


MALFORMED = {
    "short": (b"male,4\n", [(1, 4)]),
    "long": (b"male,5,x,y,z\n", [(1, 5)]),
    "one field": (b"male\n", []),
    "empty": (b"\n\n", []),
    "quote closed too early": (b'"un"closed",7,q\n', []),
    "quote inside": (b'male,6,ab"c\n', [(1, 6)]),
    "quote after a space": (b'male, "6",x "\n', []),
    "two lines": (b'female,8,"two\nmale,9"\n', [(0, 8)]),
    "two lines of Windows": (b'female,8,"two\r\nlines"\r\n', [(0, 8)]),
    "an opened quote": (b'"\n', []),
    "an opened quote in the last field": (b'male,8,"\n', [(1, 8)]),
    "an opened quote in the first field": (b'"male,8,x\r\n', []),
    "not UTF-8": (b"male,7,\xff\n", [(1, 7)]),
    "not UTF-8 in a category": (b"m\xffale,7,x\n", []),
    "UTF-16": (b"\xff\xfem\0a\0,3\0\n", []),
    "null characters": (b"male,\x007,x\nmale,7,\x00\n", [(1, 7)]),
    "carriage returns": (b"male,7,x\rmale,7,x\rmale,7,x\n", [(1, 7)]),
    "a carriage return near the end": (b"male,7,x\r3\n", [(1, 7)]),
    "a long field": (b"male,6," + b"x" * 3_000_000 + b"\n", [(1, 6)]),
    "a long field that holds records": (b'male,6,"' + b"male,6,x " * 30_000 + b'"\n', [(1, 6)]),
}


@pytest.mark.parametrize("case", sorted(MALFORMED))
def test_a_malformed_record_changes_no_other(tmp_path, case):
    record, meant = MALFORMED[case]
    path = write(tmp_path / "t.csv", b"sex,age,note\nfemale,1,a\n" + record + b"female,2,b\nfemale,3,c\n")
    assert cells(path) == sorted([(0, 1), (0, 2), (0, 3), *meant])


@pytest.mark.parametrize(
    "records", [b"", b"male,3\r", b"m\xffle,3\r", b"\0\r", b'"\n,\r', b"male,3\r" * 2**20]
)
@pytest.mark.parametrize("quoted", [False, True])
def test_where_lines_end_in_carriage_returns_no_record_is_told_or_decides_what_is(tmp_path, records, quoted):
    source = open_source(write(tmp_path / "t.csv", b"sex,age\r" + records), quoted_newlines=quoted)
    for reads in (source.columns, lambda: source.check(PEOPLE), lambda: counts(source, PEOPLE)):
        with pytest.raises(SourceError) as caught:
            reads()
        assert str(caught.value).endswith("convert it by `tr '\\r' '\\n' < OLD > NEW`")
        assert not {"sex", "male"} & {*re.findall(r"\w+", str(caught.value))}


def test_a_bomb_without_a_line_end_is_read_no_further_than_a_header_may_go(tmp_path):
    path = write(tmp_path / "t.csv.gz", gzip.compress(b"x" * 2**26))
    tracemalloc.start()
    with pytest.raises(SourceError, match="4194304"):
        open_source(path).check(PEOPLE)
    assert tracemalloc.get_traced_memory()[1] < 2**26
    tracemalloc.stop()


def test_columns_without_a_name_are_left_out(tmp_path):
    assert list(open_source(write(tmp_path / "u.csv", "sex;age;;\n")).columns()) == ["sex", "age"]


def test_a_pattern_counts_every_file_once(tmp_path):
    write(tmp_path / "a.csv", "sex,age\nmale,3\nmale,3\n")
    write(tmp_path / "b.csv", "age;note;sex\n3;x;male\n")
    write(tmp_path / "c.csv.gz", gzip.compress(b"sex,age\nmale,3\n"))
    assert cells(tmp_path / "*.csv") == [(1, 3)] * 3
    assert cells(tmp_path / "*.csv*") == [(1, 3)] * 4
    for name in ("w[1]", "w1"):
        parquet(pa.table({"sex": ["male"], "age": [3]}), tmp_path, f"{name}.parquet")
    assert cells(tmp_path / "*.parquet") == [(1, 3)] * 2
    assert cells(tmp_path / "w[1].parquet") == [(1, 3)]


def test_a_database_of_several_tables(tmp_path):
    path = database(
        tmp_path / "it's.duckdb",
        "CREATE TABLE people (sex VARCHAR, age INTEGER)",
        "INSERT INTO people VALUES ('male', 3), ('female', 4), (NULL, 4), ('male', 99)",
    )
    before = path.read_bytes()
    assert cells(path) == [(0, 4), (1, 3)]
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["it's.duckdb"]
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE SCHEMA other; CREATE VIEW other."a ""b""" AS SELECT * FROM main.people')
    for name in ('a "b"', "people", "main.people"):
        assert cells(path, table_name=name) == [(0, 4), (1, 3)]


def test_the_exact_name_of_a_table_is_meant_before_that_of_another_schema(tmp_path):
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t AS SELECT 'male' AS sex, 3 AS age; CREATE SCHEMA s",
        "CREATE TABLE s.t AS SELECT 'male' AS sex, 4 AS age",
        "CREATE TABLE \"s.t\" AS SELECT 'male' AS sex, 5 AS age",
    )
    found = {name: cells(path, table_name=name) for name in ("t", "main.t", "s.t", "main.s.t")}
    assert found == {"t": [(1, 3)], "main.t": [(1, 3)], "s.t": [(1, 4)], "main.s.t": [(1, 5)]}


TOLD = (
    pa.int8(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
    pa.date32(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int32(), pa.int64()),
)  # fmt: skip
OTHERS = (
    pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.time64("us"), pa.duration("us"), pa.decimal128(9, 2),
    pa.list_(pa.int64()), pa.binary(), pa.null(),
)  # fmt: skip


@pytest.mark.parametrize("held", [*TOLD, *OTHERS], ids=str)
def test_parquet_tells_what_its_columns_hold_as_duckdb_does_or_leaves_it_to_it(held, tmp_path):
    path = parquet(pa.table({"c": pa.nulls(2, held)}), tmp_path)
    assert parquet_kinds([str(path)], ["c"]) == (open_source(path).columns() if held in TOLD else None)


def test_files_that_differ_are_left_to_duckdb(tmp_path):
    tables = [pa.table({"c": [1]}), pa.table({"c": ["a"]}), pa.table({"c": [2]})]
    tables.append(pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["c", "c"]))
    one, text, other, twice = (
        str(parquet(table, tmp_path, f"{place}.parquet")) for place, table in enumerate(tables)
    )
    assert parquet_kinds([one, other], ["c"]) == {"c": Kind.INTEGER}
    for files, name in (([one, text, other], "c"), ([one, other], "d"), ([twice], "c")):
        assert parquet_kinds(files, [name]) is None
