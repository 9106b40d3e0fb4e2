"""Lazy frames whose engine hands over batches: what is refused, and when they run."""

import polars as pl
import pyarrow as pa
import pytest

from matrixdp.domain import Domain, OutOfDomain
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.testing import check_source

DOMAIN = Domain({"age": 4})


def total(table):
    ((_, found),) = open_source(table).marginals(DOMAIN, [()], OutOfDomain())
    return int(found)


class Table:
    """The calls of a table of Ibis that are used, on an Arrow table."""

    def __init__(self, table):
        self.table = table

    @property
    def columns(self):
        return tuple(self.table.column_names)

    def select(self, *names):
        return Table(self.table.select(names))

    def limit(self, records):
        return Table(self.table.slice(0, records))

    def schema(self):
        return self

    def to_pyarrow(self):
        return self.table.schema

    def to_pyarrow_batches(self):
        return self.table.to_reader(max_chunksize=2)


Table.__module__ = "ibis.expr.types.relations"


def test_tables_of_ibis_are_counted_from_their_batches():
    check_source(lambda table: open_source(Table(table)))


def test_an_engine_that_does_not_go_with_ibis_is_told_by_the_call(monkeypatch):
    def fails(_):
        raise AttributeError("fetch_record_batch")

    source = open_source(Table(pa.table({"age": [1]})))
    monkeypatch.setattr(Table, "to_pyarrow_batches", fails)
    with pytest.raises(SourceError, match=r"could not read the table \(AttributeError; "):
        source.marginals(DOMAIN, [()], OutOfDomain())


def test_a_lazy_frame_runs_once_and_not_before_it_is_counted():
    ran = []

    def seen(frame):
        ran.append(1)
        return frame

    frame = pl.LazyFrame({"age": [1, 2, 9]}).map_batches(seen)
    found = open_source(frame).marginals(DOMAIN, [(), ("age",)], OutOfDomain())
    assert not ran
    assert [int(counts.sum()) for _, counts in found] == [2, 2]
    assert ran == [1]


def test_names_that_mean_something_to_polars():
    columns = {"^.*$": [1, 2, 9], "*": [3, 3, 9]}
    domain = Domain({"^.*$": 4, "*": 4})
    ((_, counts),) = open_source(pl.LazyFrame(columns)).marginals(domain, [("^.*$", "*")], OutOfDomain())
    assert {(1, 3), (2, 3)} == set(zip(*map(list, counts.nonzero()), strict=True))


def test_integers_that_arrow_does_not_have():
    frame = pl.LazyFrame({"age": [0, 3, 2**70, None]}, schema={"age": pl.Int128})
    assert total(frame) == 2


@pytest.mark.parametrize("version", ["1.34.0", "1.36.1", "1.44.1", "1.9.0b2"])
def test_polars_that_may_cut_a_table_short_is_refused(version, monkeypatch):
    monkeypatch.setattr(pl, "__version__", version)
    with pytest.raises(
        SourceError, match=r"Polars .* does not reliably tell .*; collect it first, or use Polars 1"
    ):
        total(pl.LazyFrame({"age": [1]}))


def test_texts_that_are_not_utf_8_are_one_records_affair():
    texts = pa.array([b"1", b"\xff", b"2"]).view(pa.string())
    assert total(Table(pa.table({"age": texts}))) == 2
