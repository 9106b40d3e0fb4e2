"""Frames that workers count in parts: only counts leave them, and nothing is told but that one failed."""

import dask
import dask.dataframe as dd
import pandas as pd
import pyarrow as pa
import pytest

import matrixdp as mdp
from matrixdp.sources import Request, clusters, open_source

DOMAIN = mdp.Domain({"sex": ["f", "m"], "age": 3})
REQUEST = Request(DOMAIN, (("sex",), ("age", "sex"), ()), mdp.OutOfDomain())
COUNTER = clusters.Counter(REQUEST)
FRAME = pd.DataFrame({"sex": ["f", "m", "m", "x"], "age": [0, 2, 2, 1]})
COUNTS = [[1, 2], [[1, 0], [0, 0], [0, 2]], 3]


def counted(tables):
    return [counts.tolist() for _, counts in clusters.marginals(REQUEST, lambda: clusters.merge(tables))]


def test_parts_add_up():
    parts = [COUNTER.frame(FRAME[start : start + 1]) for start in range(4)]
    assert parts[3].num_rows == 0
    # what a worker sends is integers alone
    assert parts[0].schema == clusters.COUNTS
    assert parts[0].to_pylist()[:1] == [{"marginal": 0, "key": 0, "records": 1}]
    assert counted(parts) == COUNTS
    batches = pa.Table.from_pandas(FRAME).to_batches(max_chunksize=3)
    assert counted([pa.Table.from_batches(COUNTER.batches(batches))]) == COUNTS
    assert list(COUNTER.batches([])) == []


@pytest.mark.parametrize("frame", [FRAME.drop(columns="age"), 7])
def test_a_worker_that_cannot_count_says_so_and_no_more(frame):
    failed = COUNTER.frame(frame)
    assert failed.to_pylist() == [{"marginal": -1, "key": 0, "records": 0}]
    with pytest.raises(mdp.SourceError, match="a worker could not count its part of the table; every"):
        counted([COUNTER.frame(FRAME), failed])


def test_workers_have_the_same_version(monkeypatch):
    monkeypatch.setattr(clusters, "version", lambda _: "0")
    with pytest.raises(mdp.SourceError, match="every worker must have this version of matrixdp"):
        counted([COUNTER.frame(FRAME)])


@pytest.mark.parametrize("parts", [1, 40])
def test_dask_counts_partitions_and_objects(parts):
    table = pd.concat([FRAME] * 20, ignore_index=True).astype({"sex": object})
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.from_pandas(table, npartitions=parts)
        found = open_source(frame).marginals(DOMAIN, REQUEST.subsets, mdp.OutOfDomain())
        assert [(counts // 20).tolist() for _, counts in found] == COUNTS


def test_a_partition_that_fails_does_not_tell_its_values():
    def fails(frame):
        raise ValueError("Waldemar-4711")

    frame = dd.from_pandas(FRAME, npartitions=1).map_partitions(fails, meta=FRAME[:0])
    with pytest.raises(mdp.SourceError, match=r"could not count the table \(the engine") as caught:
        list(open_source(frame).marginals(DOMAIN, REQUEST.subsets, mdp.OutOfDomain()))
    assert "Waldemar" not in str(caught.value)
    assert caught.value.__context__ is None


class Panic(BaseException):
    """What engines in Rust raise is no Exception."""


@pytest.mark.parametrize("kind", [Panic, GeneratorExit, MemoryError, KeyboardInterrupt])
def test_whatever_happens_on_a_worker_stays_there_but_for_an_interrupt(kind, monkeypatch):
    def fails(*_, **__):
        raise kind("Waldemar-4711")

    monkeypatch.setattr(clusters, "groups", fails)
    if kind is KeyboardInterrupt:
        with pytest.raises(KeyboardInterrupt):
            COUNTER.frame(FRAME)
        return
    failed = COUNTER.frame(FRAME).to_pylist()
    assert failed == [{"marginal": -1, "key": 0, "records": 0}]
    batches = pa.Table.from_pandas(FRAME).to_batches()
    assert [row for batch in COUNTER.batches(batches) for row in batch.to_pylist()] == failed
