"""What `matrixdp release` tells and writes for a table, and for the same table with one record more."""

import gzip
import re
import shutil
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.commands import run

SPECIFICATION = """
data: {data}
domain:
  sex: [female, male]
  code: {{categories: ["1", "01"], type: text}}
  age: {{min: 0, max: 3}}
workload: [{{marginals: [0, 1]}}]
privacy: {{mu: 1.0}}
"""
RECORDS = [(b"male", b"01", b"3"), (b"female", b"1", b"2")] * 20
#: Records that are out of domain by one of their values at least.
OUT_OF_DOMAIN = [
    (b'"male', b'"', b'"3'),
    (b"Waldemar-4711", b"1.0", b"1e999999999"),
    (b"\xff\xfe\x00", b"\x00", b"3\x1a"),
    (b"x" * 100_000, b"0" * 100_000, b"9" * 5000),
]


def lines(records):
    return b"".join(b",".join(record) + b"\n" for record in [(b"sex", b"code", b"age"), *records])


def several(records, folder):
    (folder / "1.csv").write_bytes(lines(records[:9]))
    (folder / "2.csv").write_bytes(lines(records[9:]))


def parquet(records, folder):
    columns = [pa.array(list(column), pa.binary()).view(pa.string()) for column in zip(*records, strict=True)]
    pq.write_table(pa.table(columns, ["sex", "code", "age"]), folder / "t.parquet", write_statistics=False)


def database(records, folder):
    (folder / "t.duckdb").unlink(missing_ok=True)
    texts = [[value.decode(errors="replace") for value in record] for record in records]
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute("CREATE TABLE people (sex VARCHAR, code VARCHAR, age VARCHAR)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", texts)


WAYS = {
    "t.csv": lambda records, folder: (folder / "t.csv").write_bytes(lines(records)),
    "t.csv.gz": lambda records, folder: (folder / "t.csv.gz").write_bytes(gzip.compress(lines(records))),
    "[12].csv": several,
    "t.parquet": parquet,
    "t.duckdb": database,
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_one_record_changes_nothing_that_is_told(way, here, capfd):
    Path("s.yaml").write_text(SPECIFICATION.format(data=f"'{way}'"))
    WAYS[way](RECORDS, here)
    run("select", "s.yaml", "--save", "s.mdp")

    def release(records):
        WAYS[way](records, here)
        shutil.rmtree("out", ignore_errors=True)
        capfd.readouterr()
        options = ("--strategy", "s.mdp", "--out", "out", "--csv", "--seed-not-private", "7")
        result = run("release", "s.yaml", *options)
        files = {file.name: file.read_bytes() for file in Path("out").iterdir()}
        return (result.stdout, result.stderr, *capfd.readouterr()), files

    told, files = release(RECORDS)
    assert told[2:] == ("", "")
    for record in OUT_OF_DOMAIN:
        again, same = release([*RECORDS[:5], record, *RECORDS[5:]])
        assert again == told, record[0][:20]
        assert same.keys() == files.keys()
        for name in ("answers.csv", "answers.parquet"):
            assert same[name] == files[name], record[0][:20]
        sizes = [len(re.sub(rb'"time[^,}]*', b"", written["release.json"])) for written in (same, files)]
        assert sizes[0] == sizes[1]
    moved, other = release([*RECORDS, RECORDS[0]])
    assert other["answers.csv"] != files["answers.csv"]
    # Only the noisy figures differ.
    figures = [re.sub(r"[-+]?[0-9][0-9.,]*", "0", text) for text in (moved[0], told[0])]
    assert re.sub(r"\s+", " ", figures[0]) == re.sub(r"\s+", " ", figures[1])
    assert moved[1:] == told[1:]
