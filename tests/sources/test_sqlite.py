"""Tables of SQLite: values of any type in one column, what the database computes, and what is told of it."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import matrixdp as mdp
from tests.sources.ways import cells, counts

PEOPLE = (
    "CREATE TABLE people AS SELECT 'male' AS sex, 3 AS age UNION ALL VALUES ('female', '1'), ('male', 99)"
)


def database(folder: Path, *statements) -> str:
    path = folder / "t.sqlite"
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)
    return f"sqlite:///{path}"


def test_values_of_every_type_in_one_column(tmp_path):
    values = "VALUES ('3'), (3), (3.0), (x'33'), (NULL), (9e999), ('x'), (CAST(x'ff33' AS TEXT)), ('true')"
    address = database(tmp_path, "CREATE TABLE t (v)", f"INSERT INTO t {values}")
    for spec, expected in (
        (["3", "x", "true", "\ufffd3"], [3, 1, 1, 1]),
        ({"categories": ["3"], "type": "text"}, [1]),
        ({"categories": ["3"], "null": "none"}, [3, 1]),
        ({"min": 0, "max": 3}, [0, 1, 0, 3]),
    ):
        assert counts(address, mdp.Domain({"v": spec})) == expected


def test_more_values_than_are_remembered(tmp_path, monkeypatch):
    monkeypatch.setattr("matrixdp.sources.sqlite._KNOWN", 3)
    numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39999)"
    made = f"CREATE TABLE t AS {numbers} SELECT i % 8 AS code FROM n"  # noqa: S608
    address = database(tmp_path, made)
    assert counts(address, mdp.Domain({"code": 7})) == [5000] * 7


def test_the_order_of_the_records_of_a_person(tmp_path):
    address = database(
        tmp_path,
        "CREATE TABLE t (who, code, rowid)",
        "INSERT INTO t VALUES ('ann', 0, 9), ('01', 1, 8), ('ann', 1, 7)",
        "INSERT INTO t VALUES (1, 0, 6), ('ann', 1, 5), (NULL, 1, 4)",
    )
    for unit, expected in ((mdp.Unit(id="who"), [1, 1]), (mdp.Unit(id="who", records=2), [2, 2])):
        assert counts(address, mdp.Domain({"code": 2}), unit=unit, table_name="t") == expected


def test_a_named_table_is_read_and_nothing_is_written(tmp_path):
    address = database(tmp_path, PEOPLE, "CREATE TABLE more (sex, age)")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert cells(address, table_name="people") == [(0, 1), (1, 3)]
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_what_is_no_database_is_not_quoted(tmp_path):
    (tmp_path / "t.sqlite").write_text("a secret " * 99)
    with pytest.raises(mdp.SourceError) as caught:
        counts(f"sqlite:///{tmp_path / 't.sqlite'}", mdp.Domain({"code": 2}))
    assert caught.value.code == "engine-failed"
    assert "secret" not in str(caught.value)
