"""Counts of a run of values: a part of the counts of all, from whatever part of a file holds it."""

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.sources import columns, open_source

AREAS = [f"area {number:02}" for number in range(40)]
random = np.random.default_rng(3)
NUMBERS = np.sort(random.integers(-2, 42, 4_000))
SEX = random.integers(0, 2, len(NUMBERS))
TEXTS = [f"area {number:02}" for number in NUMBERS]
WAYS = {
    "texts": (AREAS, TEXTS, {}),
    "typed": ({"categories": [f"{n}" for n in range(40)], "type": "text"}, [f"{n}" for n in NUMBERS], {}),
    "numbers": ([*range(40)], NUMBERS, {}),
    "numerals": ([*range(40)], [f"{number:03}" for number in NUMBERS], {}),
    "spaces": ({"categories": AREAS, "trim": True}, [f" {text} " for text in TEXTS], {}),
    "booleans": ([*AREAS[:30], "no", *AREAS[31:]], [t if t != "area 30" else "F" for t in TEXTS], {}),
    "missing": (
        {"categories": AREAS, "null": "unknown"},
        [None if number % 7 == 0 else text for number, text in zip(NUMBERS, TEXTS, strict=True)],
        {},
    ),
    "others": (AREAS, TEXTS, {"geo": {"other": "area 12"}}),
}


@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb", "memory"])
@pytest.mark.parametrize("way", WAYS)
def test_a_run_is_a_part_of_all_counts(way, form, tmp_path):
    described, values, rule = WAYS[way]
    domain = Domain.from_spec({"geo": described, "sex": {"size": 2}})
    others = OutOfDomain.from_spec(domain, rule or None)
    table = pa.table({"geo": pa.array(values), "sex": SEX})
    path = tmp_path / f"people.{form}"
    if form == "parquet":
        pq.write_table(table, path, row_group_size=100)
    elif form == "csv":
        table.to_pandas().to_csv(path, index=False)
    elif form == "duckdb":
        with duckdb.connect(path) as database:
            database.from_arrow(table).create("people")
    source = open_source(table if form == "memory" else path)
    [(_, whole)] = source.marginals(domain, [("geo", "sex")], others)
    assert whole.sum() > 3_000
    for run in (range(len(whole)), range(12, 27), range(13, 14), range(30, len(whole)), range(3)):
        slices = source.marginals(domain, [("geo", "sex")], others, slices=("geo", 4), run=run)
        found = np.concatenate([counts for _, counts in slices])
        assert found[: len(run)].tolist() == whole[run.start : run.stop].tolist()
        assert not found[len(run) :].any()


def test_of_a_sorted_file_only_a_part_is_read(tmp_path, monkeypatch):
    read, real = [], columns.parquet.ParquetFile.iter_batches

    def noted(self, *given, row_groups=None, **named):
        read.append(len(row_groups))
        return real(self, *given, row_groups=row_groups, **named)

    monkeypatch.setattr(columns.parquet.ParquetFile, "iter_batches", noted)
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"geo": TEXTS}), path, row_group_size=100)
    for run, most in ((range(12, 15), 6), (range(39, 40), 4)):
        list(
            open_source(path).marginals(
                Domain({"geo": AREAS}), [("geo",)], OutOfDomain(), slices=("geo", 4), run=run
            )
        )
        assert 0 < read.pop() <= most


def test_texts_that_are_not_utf_8_keep_nothing_from_being_counted(tmp_path):
    raw = pa.array([b"area 01", b"\xff bad", b"area 02", b"area 03"], pa.binary()).view(pa.string())
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"geo": raw}), path, row_group_size=2)
    asked = Domain({"geo": AREAS}), [("geo",)], OutOfDomain()
    [(_, counts)] = open_source(path).marginals(*asked, slices=("geo", 40), run=range(1, 3))
    assert counts[:2].tolist() == [1, 1]


def test_the_collation_of_a_column_decides_on_nothing(tmp_path):
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as database:
        database.execute("CREATE TABLE people (geo VARCHAR COLLATE NOCASE)")
        database.execute("INSERT INTO people VALUES ('B'), ('a'), ('a'), ('c'), ('C')")
    asked = Domain({"geo": ["B", "a", "c"]}), [("geo",)], OutOfDomain()
    [(_, counts)] = open_source(path).marginals(*asked, slices=("geo", 2), run=range(2))
    assert counts.tolist() == [1, 2]
