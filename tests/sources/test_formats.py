"""A format of files joins by one call: paths, addresses, checks, persons, messages and help know it."""

import json
from functools import partial

import pyarrow as pa
import pytest

from matrixdp.domain import Domain
from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.privacy import Clause, Unit
from matrixdp.sources import formats, open_source, register_format
from matrixdp.testing import check_neighbours, check_source
from tests.refusals import Refusal, refused
from tests.sources.ways import counts

DOMAIN = Domain({"sex": ["female", "male"], "age": 4})
ASSUMED = Clause("lines-of-json", "It is assumed that each line holds one record.")


def read_lines(path):
    with open(path, encoding="utf-8") as file:  # noqa: PTH123
        names, *rows = map(json.loads, file)
    return pa.table({name: pa.array([row[i] for row in rows]) for i, name in enumerate(names)})


def write_lines(path, table):
    rows = zip(*(column.to_pylist() for column in table.columns), strict=True)
    lines = [table.column_names, *map(list, rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(autouse=True)
def lines(monkeypatch):
    monkeypatch.setattr(formats, "_FORMATS", list(formats._FORMATS))
    register_format("Lines of JSON", ".jsonl", reader=read_lines, assumptions=(ASSUMED,))


def opened(table, path):
    return open_source(write_lines(path, table))


def test_it_is_read_as_every_other_format(tmp_path):
    check_source(partial(opened, path=tmp_path / "t.jsonl"), [Kind.TEXT])
    check_neighbours(partial(opened, path=tmp_path / "t.jsonl"), [Kind.TEXT, Kind.INTEGER], together=30)


def test_files_of_a_pattern_hold_one_table_with_one_order(tmp_path):
    for place, ages in enumerate([[0, 1], [2, 3], [3]]):
        write_lines(tmp_path / f"{place}.jsonl", pa.table({"age": ages, "who": ["ann", "ben"][: len(ages)]}))
    source = open_source(tmp_path / "*.jsonl")
    domain = Domain({"age": 4})
    for most, expected in ((1, [1, 1, 0, 0]), (2, [1, 1, 1, 1]), (9, [1, 1, 1, 2])):
        assert counts(source, domain, unit=Unit(most, "who")) == expected
    assert ASSUMED in source.assumptions(domain)
    assert source.columns() == {"age": Kind.INTEGER, "who": Kind.TEXT}


REFUSALS = [
    Refusal("a missing column", "missing-column", "", lambda: open_source("t.jsonl").check(DOMAIN)),
    Refusal("a taken ending", "duplicate", "endings", lambda: register_format("x", ".csv", reader=id)),
    Refusal("no ending", "duplicate", "endings", lambda: register_format("x", reader=id)),
    Refusal(
        "quotes", "conflict", "", lambda: open_source("t.jsonl", quoted_newlines=True)
    ),
    Refusal("an unknown ending", "unknown-name", "", lambda: open_source("t.xlsx")),
]  # fmt: skip


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.name)
def test_what_is_rejected(refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "t.jsonl", pa.table({"age": [1]}))
    (tmp_path / "t.xlsx").touch()
    refused(refusal, tmp_path)


def test_messages_and_help_list_it(tmp_path):
    assert formats.format_names() == "CSV, Parquet, DuckDB or Lines of JSON"
    (tmp_path / "t.xlsx").touch()
    for name in (tmp_path / "t.xlsx", "https://host/t.xlsx"):
        with pytest.raises(SourceError, match=r"\.jsonl"):
            open_source(name)
