"""Files: CSV, Parquet and DuckDB databases."""

import csv
import gzip
from datetime import date

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.sources.base import QUOTES_CLOSED
from matrixdp.sources.columns import parquet_kinds
from matrixdp.sources.engines import THREADS

DOMAIN = Domain({"sex": ["female", "male"], "age": {"min": 0, "max": 9}})
BOTH = ("sex", "age")


def counts(path, domain=DOMAIN, subset=BOTH, rule=None, **options):
    ((found, array),) = open_source(path, **options).marginals(domain, [subset], rule or OutOfDomain.drop())
    assert found == subset
    return array


def expected(*records):
    array = np.zeros((2, 10), dtype=np.int64)
    for record in records:
        array[record] += 1
    return array


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
    np.testing.assert_array_equal(counts(path), expected((1, 3), (0, 4)))
    np.testing.assert_array_equal(counts(str(path)), expected((1, 3), (0, 4)))


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
    np.testing.assert_array_equal(counts(path), expected((0, 1), (0, 2), (0, 3), *meant))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quotes_hold_line_ends_where_that_is_said(tmp_path, end):
    lines = [
        "age,sex,note",
        '3,male,"two',
        'male,9,x"',
        '4,female,"a',
        'b"',
        '5,male,"never closed',
        "6,male,x",
    ]
    path = write(tmp_path / "t.csv", end.join(lines))
    np.testing.assert_array_equal(counts(path, quoted_newlines=True), expected((1, 3), (0, 4), (1, 5)))
    np.testing.assert_array_equal(counts(path), expected((1, 3), (0, 4), (1, 5), (1, 6)))
    assert open_source(path).assumptions(DOMAIN) == ()
    assert open_source(path, quoted_newlines=True).assumptions(DOMAIN) == (QUOTES_CLOSED,)


fields = st.text(alphabet="ab\",;\n\t '\\é3", max_size=5)


@pytest.mark.slow
@given(
    records=st.lists(st.tuples(fields, st.sampled_from(["male", "female", "x"]), st.integers(0, 11), fields)),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    delimiter=st.sampled_from(",;\t|"),
)
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_written_well_is_read_exactly(tmp_path, records, end, quoting, delimiter):
    with (tmp_path / "t.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=end, quoting=quoting, delimiter=delimiter)
        writer.writerows([("first", "sex", "age", "last"), *records])
    good = [(int(sex == "male"), age) for _, sex, age, _ in records if sex != "x" and age < 10]
    np.testing.assert_array_equal(counts(tmp_path / "t.csv", quoted_newlines=True), expected(*good))


@pytest.mark.parametrize("body", ["", "\x00\x00\n", '"', "\n\n\n", ",,,,,,\n", '"a""\n', "\\\n"])
def test_no_body_of_a_csv_file_raises(tmp_path, body):
    path = write(tmp_path / "t.csv", "sex,age\n" + body)
    np.testing.assert_array_equal(counts(path), expected())


@pytest.mark.parametrize(
    ("head", "coding"),
    [
        ("sex,age,größe\n".encode("cp1252"), "WINDOWS-1252"),
        ("sex,age\nmale,3\n".encode("utf-16"), "UTF-16"),
        ("sex,age\nmale,3\n".encode("utf-16-be"), "UTF-16"),
        (b"sex,age,\xe2\x82\n", "WINDOWS-1252"),
    ],
)
def test_a_header_that_is_not_utf_8_is_refused_with_what_to_do(tmp_path, head, coding):
    path = write(tmp_path / "t.csv", head)
    for ask in (
        counts,
        lambda path: open_source(path).columns(),
        lambda path: open_source(path).check(DOMAIN),
    ):
        with pytest.raises(
            SourceError, match=f"first line, which names the columns.*iconv -f {coding}"
        ) as told:
            ask(path)
        assert "age" not in str(told.value)


@pytest.mark.parametrize(
    "record", [b"male,\xff\n", b"\xff\xfe\n", b"m\0a\0,3\0\n", "größe,3\n".encode("cp1252")]
)
def test_a_record_that_is_not_utf_8_is_out_of_domain_alone(tmp_path, record):
    path = write(tmp_path / "t.csv", b"sex,age\nmale,3\n" + record + b"female,4\n")
    np.testing.assert_array_equal(counts(path), expected((1, 3), (0, 4)))
    assert list(open_source(path).columns()) == ["sex", "age"]


def test_columns_without_a_name_are_left_out(tmp_path):
    assert list(open_source(write(tmp_path / "u.csv", "sex;age;;\n")).columns()) == ["sex", "age"]


@pytest.mark.slow
def test_random_bytes_do_not_raise(tmp_path):
    rng = np.random.default_rng(1)
    for _ in range(30):
        noise = rng.choice(np.frombuffer(b'\x00\xff",\n\rab3"', np.uint8), 300).tobytes()
        counts(write(tmp_path / "t.csv", b"sex,age\nmale,3\n" + noise))


def test_nothing_is_guessed_from_records(tmp_path):
    rows = "".join(f"female,{i % 10}\n" for i in range(50_000))
    path = write(tmp_path / "t.csv", "sex,age\n" + rows + "male,three\nmale,3\n")
    array = counts(path)
    assert array.sum() == 50_001
    assert array[1, 3] == 1


def test_a_glob_counts_every_file_once(tmp_path):
    write(tmp_path / "a.csv", "sex,age\nmale,3\nmale,3\n")
    write(tmp_path / "b.csv", "age;note;sex\n3;x;male\n")
    write(tmp_path / "c.csv", "sex,age\nmale,3\n")
    np.testing.assert_array_equal(counts(tmp_path / "*.csv"), expected(*[(1, 3)] * 4))
    write(tmp_path / "d.csv.gz", gzip.compress(b"sex,age\nmale,3\n"))
    np.testing.assert_array_equal(counts(tmp_path / "*.csv*"), expected(*[(1, 3)] * 5))
    for name in "ab":
        pq.write_table(pa.table({"sex": ["male"], "age": [3]}), tmp_path / f"{name}.parquet")
    np.testing.assert_array_equal(counts(tmp_path / "*.parquet"), expected((1, 3), (1, 3)))


def test_a_parquet_file_whose_name_is_a_pattern(tmp_path):
    pq.write_table(pa.table({"sex": ["male"], "age": [3]}), tmp_path / "w[1].parquet")
    pq.write_table(pa.table({"sex": ["female"], "age": [4]}), tmp_path / "w1.parquet")
    np.testing.assert_array_equal(counts(tmp_path / "w[1].parquet"), expected((1, 3)))


def database(path):
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (sex VARCHAR, age INTEGER)")
        connection.execute("INSERT INTO people VALUES ('male', 3), ('female', 4), (NULL, 4), ('male', 99)")
    return path


def test_a_database(tmp_path):
    path = database(tmp_path / "it's.duckdb")
    before = path.read_bytes()
    np.testing.assert_array_equal(counts(path), expected((1, 3), (0, 4)))
    np.testing.assert_array_equal(counts(path, table_name="people"), expected((1, 3), (0, 4)))
    np.testing.assert_array_equal(counts(path, table_name="main.people"), expected((1, 3), (0, 4)))
    assert path.read_bytes() == before
    assert sorted(file.name for file in tmp_path.iterdir()) == ["it's.duckdb"]


def test_a_database_of_several_tables(tmp_path):
    path = database(tmp_path / "t.db")
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE SCHEMA other; CREATE VIEW other."a ""b""" AS SELECT * FROM main.people')
    np.testing.assert_array_equal(counts(path, table_name='a "b"'), expected((1, 3), (0, 4)))
    np.testing.assert_array_equal(counts(path, table_name="people"), expected((1, 3), (0, 4)))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.db", "t.csv.gz"])
def test_files_that_are_not_what_they_say(tmp_path, name):
    path = write(tmp_path / name, b"")
    with pytest.raises(SourceError):
        counts(path)


def test_out_of_domain_values_of_a_file_become_the_named_one(tmp_path):
    path = write(tmp_path / "t.csv", "sex,age\nmale,3\nx,3\nfemale,oops\n")
    rule = OutOfDomain.from_spec(DOMAIN, {"sex": {"other": "male"}, "age": {"other": 9}})
    np.testing.assert_array_equal(counts(path, rule=rule), expected((1, 3), (1, 3), (0, 9)))


HELD = [
    pa.array([1, None], pa.int8()),
    pa.array([1, None], pa.uint64()),
    pa.array([1.5, None], pa.float32()),
    pa.array([1.5, None], pa.float64()),
    pa.array([True, None]),
    pa.array(["a", None]),
    pa.array(["a", None], pa.large_string()),
    pa.array(["a", None]).dictionary_encode(),
    pa.array([1, None]).dictionary_encode(),
    pa.array([18_000, None], pa.date32()),
]
OTHERS = [
    pa.array([1, None], pa.timestamp("ns")),
    pa.array([1, None], pa.timestamp("us", "UTC")),
    pa.array([1, None], pa.time64("us")),
    pa.array([1, None], pa.duration("us")),
    pa.array([1, None], pa.decimal128(9, 2)),
    pa.array([[1], None]),
    pa.array([b"a", None]),
    pa.nulls(2),
]


def test_parquet_tells_what_its_columns_hold_as_duckdb_does(tmp_path):
    names = [f"c{i}" for i in range(len(HELD))]
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table(HELD, names=names), path)
    assert parquet_kinds([str(path)], names) == open_source(path).columns()


@pytest.mark.parametrize("array", OTHERS, ids=lambda array: str(array.type))
def test_other_types_are_left_to_duckdb(tmp_path, array):
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table([array], names=["c"]), path)
    assert parquet_kinds([str(path)], ["c"]) is None


def test_files_that_differ_are_left_to_duckdb(tmp_path):
    files = [str(tmp_path / f"{i}.parquet") for i in range(3)]
    for file, array in zip(files, ([1], ["a"], [2]), strict=True):
        pq.write_table(pa.table({"c": array}), file)
    assert parquet_kinds(files, ["c"]) is None
    assert parquet_kinds(files[::2], ["c"]) == {"c": Kind.INTEGER}
    assert parquet_kinds(files[::2], ["d"]) is None
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["c", "c"])
    pq.write_table(twice, files[0])
    assert parquet_kinds(files[:1], ["c"]) is None


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_check_refuses_what_counting_refuses(tmp_path, monkeypatch, name):
    path = tmp_path / name
    table = pa.table({"sex": ["male"], "age": [3], "day": [date(2020, 1, 1)]})
    pacsv.write_csv(table, path) if name.endswith("csv") else pq.write_table(table, path)
    source = open_source(path)
    source.check(DOMAIN)
    wrong = Domain({"sex": ["male"], "Age": 4})
    with pytest.raises(SourceError, match="no column 'Age'") as checked:
        source.check(wrong)
    with pytest.raises(SourceError) as counted:
        source.marginals(wrong, [], OutOfDomain.drop())
    assert str(checked.value) == str(counted.value)
    days = Domain({"day": {"min": 0, "max": 9}})
    if name.endswith("parquet"):
        with pytest.raises(SourceError, match="column 'day' holds dates"):
            source.check(days)
    else:
        source.check(days)  # texts are out of domain one by one
    monkeypatch.setenv(THREADS, "many")
    with pytest.raises(SourceError, match=f"^{THREADS}: found"):
        source.check(DOMAIN)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet"])
def test_a_check_of_a_file_that_is_no_table_withholds_what_it_holds(tmp_path, name):
    path = write(tmp_path / name, b"")
    with pytest.raises(SourceError) as raised:
        open_source(path).check(DOMAIN)
    assert raised.value.__context__ is None
    assert "is empty" in str(raised.value) or "could not read" in str(raised.value)
