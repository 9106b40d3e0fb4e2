"""An engine of one's own, from one file: what it reads, it says; everything else is there."""

import json
import subprocess
import sys
from functools import partial
from typing import cast

import numpy as np
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.domain import encode_value
from matrixdp.domain.rules import Kind
from matrixdp.privacy import Clause
from matrixdp.sources import (
    Source,
    engine_names,
    engines,
    formats,
    open_source,
    register_format,
    register_source,
)
from matrixdp.testing import check_neighbours, check_source
from tests.sources.ways import counts


class Ledger:
    """A third party's table: a list of records."""

    def __init__(self, records):
        self.records = records


class LedgerSource(Source):
    def __init__(self, ledger):
        self.records = ledger.records

    def count(self, request):
        request.check_columns(self.records[0] if self.records else request.domain.names)
        return self._marginals(request)

    def _marginals(self, request):
        codes = [code for record in self.records if (code := self._codes(request, record))]
        for subset in request.subsets:
            places = [request.domain.index(name) for name in subset]
            chosen = [[code[place] for place in places] for code in codes]
            keys = [int(np.ravel_multi_index(own, request.shape(subset))) if own else 0 for own in chosen]
            yield subset, request.array(subset, np.array(keys, dtype=int), np.ones(len(keys), dtype=int))

    def _codes(self, request, record):
        codes = []
        for attribute in request.domain:
            code = encode_value(attribute, record[attribute.column])
            codes.append(request.out_of_domain.code(attribute.name) if code is None else code)
        return None if None in codes else codes


@pytest.fixture
def registered(monkeypatch):
    monkeypatch.setattr(engines, "_ENGINES", dict(engines._ENGINES))
    register_source("ledger", lambda table: isinstance(table, Ledger), f"{__name__}:LedgerSource")


def test_an_engine_joins_by_registering(registered):
    check_source(lambda table: open_source(Ledger(table.to_pylist())))
    ledger = Ledger([{"code": 0}, {"code": 2}, {"code": 2}])
    strategy = mdp.select(mdp.Workload(mdp.Domain({"code": 3}), mdp.marginals(1)))
    release = strategy.measure(ledger, mdp.Budget(mu=1e4)).reconstruct()
    np.testing.assert_allclose(release.answers["estimate"].to_numpy(), [1, 0, 2], atol=0.1)


def test_the_last_engine_is_asked_first(registered):
    opened: list[object] = []
    register_source("every mapping", lambda table: isinstance(table, dict), opened.append)
    open_source({"code": [1]})
    assert opened == [{"code": [1]}]
    assert engine_names()[-2:] == ("ledger", "every mapping")


def test_the_name_of_a_table_is_for_engines_that_take_one(registered):
    with pytest.raises(mdp.SourceError, match="the name of a table"):
        open_source(Ledger([]), table_name="people")
    register_source("named", lambda table: table == 7, lambda *given: cast("Source", given), named=True)
    assert cast("object", open_source(7, table_name="people")) == (7, "people")
    assert cast("object", open_source(7)) == (7, None)


def test_engines_that_are_not_used_are_not_loaded():
    code = (
        "import sys, matrixdp.sources as s; "
        "assert not {'duckdb', 'narwhals', 'pyarrow'} & set(sys.modules), sys.modules; "
        "s.engine_names()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_check_finds_an_engine_that_reads_otherwise(registered):
    def careless(table):
        records = table.to_pylist()
        for record in records:
            for name, value in record.items():
                record[name] = value.strip() if isinstance(value, str) else value
        return open_source(Ledger(records))

    with pytest.raises(AssertionError, match="category: the text ' true' has the code 13, and is counted as"):
        check_source(careless, [Kind.TEXT])


# Formats of files join by one call: paths, addresses, checks, persons and messages know them.

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


@pytest.fixture
def lines(monkeypatch):
    monkeypatch.setattr(formats, "_FORMATS", list(formats._FORMATS))
    register_format("Lines of JSON", ".jsonl", reader=read_lines, assumptions=(ASSUMED,))


def opened(table, path):
    return open_source(write_lines(path, table))


def test_it_is_read_as_every_other_format(lines, tmp_path):
    check_source(partial(opened, path=tmp_path / "t.jsonl"), [Kind.TEXT])
    check_neighbours(partial(opened, path=tmp_path / "t.jsonl"), [Kind.TEXT, Kind.INTEGER], together=30)


def test_files_of_a_pattern_hold_one_table_with_one_order(lines, tmp_path):
    for place, ages in enumerate([[0, 1], [2, 3], [3]]):
        write_lines(tmp_path / f"{place}.jsonl", pa.table({"age": ages, "who": ["ann", "ben"][: len(ages)]}))
    source = open_source(tmp_path / "*.jsonl")
    domain = mdp.Domain({"age": 4})
    for most, expected in ((1, [1, 1, 0, 0]), (2, [1, 1, 1, 1]), (9, [1, 1, 1, 2])):
        assert counts(source, domain, unit=mdp.Unit(most, "who")) == expected
    assert ASSUMED in source.assumptions(domain)
    assert source.columns() == {"age": Kind.INTEGER, "who": Kind.TEXT}


def test_checks_and_messages_know_it(lines, tmp_path):
    path = write_lines(tmp_path / "t.jsonl", pa.table({"age": [1]}))
    for code, attempt in (
        ("missing-column", lambda: open_source(path).check(mdp.Domain({"sex": 2}))),
        ("conflict", lambda: open_source(path, quoted_newlines=True)),
    ):
        with pytest.raises(mdp.SourceError) as caught:
            attempt()
        assert caught.value.code == code
    assert formats.format_names() == "CSV, Parquet, DuckDB or Lines of JSON"
    (tmp_path / "t.xlsx").touch()
    for name in (tmp_path / "t.xlsx", "https://host/t.xlsx"):
        with pytest.raises(mdp.SourceError, match=r"\.jsonl"):
            open_source(name)
