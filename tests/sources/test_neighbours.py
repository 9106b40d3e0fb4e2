"""Every reader: a table and the same table with one hostile record more differ by that record alone."""

import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.testing import check_neighbours
from matrixdp.testing.tables import HOSTILE_OBJECTS
from tests.sources.ways import ALL, WAYS, objects

#: How many hostile records are added at once; one, which takes minutes, by `make neighbours`.
TOGETHER = int(os.environ.get("MATRIXDP_TOGETHER", "100"))
OBJECTS: dict[str, Callable[[Any], Any]] = {
    "lists": dict,
    "arrays of objects": lambda columns: {name: s.to_numpy() for name, s in objects(columns).items()},
    "pandas of objects": objects,
    "polars of objects": lambda columns: pl.DataFrame(
        [pl.Series(name, values, dtype=pl.Object) for name, values in columns.items()]
    ),
}


@pytest.mark.parametrize("way", [way for way, own in WAYS.items() if own.kinds is ALL])
def test_one_record_changes_one_count(way, tmp_path):
    assert check_neighbours(lambda table: WAYS[way].opens(table, tmp_path), [Kind.BOOLEAN]) == 3


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_no_hostile_record_changes_more_than_one_count(way, tmp_path):
    own = WAYS[way]
    assert check_neighbours(lambda table: own.opens(table, tmp_path), own.kinds, together=TOGETHER) > 100


@pytest.mark.parametrize("reader", OBJECTS)
def test_no_hostile_object_changes_more_than_one_count(reader):
    found = check_neighbours(lambda t: open_source(OBJECTS[reader](t)), [], objects=True, together=TOGETHER)
    assert found == len(HOSTILE_OBJECTS)


def reads_none(table):
    return open_source(table.slice(0, 0) if table.column(0).null_count else table)


def warns(table):
    for value in table.column(0).unique().to_pylist():
        warnings.warn(f"there is a {value}", stacklevel=1)
    return open_source(table)


def prints(table):
    sys.stdout.write(f"{table.num_rows}")
    return open_source(table)


def writes(table):
    os.write(2, b"a null" * table.column(0).null_count)
    return open_source(table)


def refuses(table):
    if table.column(0).null_count:
        raise SourceError("there is a null")
    return open_source(table)


@pytest.mark.parametrize(
    ("reader", "together", "message"),
    [
        (reads_none, 1, "boolean None changes the counts of category by 31"),
        (reads_none, 3, "3 records of booleans, the first None: that changes the counts"),
        (warns, 1, "boolean None changes what is told, from .*there is a True.* to .*there is a None"),
        (prints, 1, r"what is told, from \(None, \[\], '31'"),
        (writes, 1, "what is told, .*a null"),
        (refuses, 1, "what is told, .*there is a null"),
        (lambda table: open_source(table.drop_columns("category")), 1, "cannot be counted"),
    ],
)
def test_the_check_finds_what_one_record_moves(reader, together, message):
    with pytest.raises(AssertionError, match=message):
        check_neighbours(reader, [Kind.BOOLEAN], together=together)
