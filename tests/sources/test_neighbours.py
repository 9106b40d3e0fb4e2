"""Every reader: a table and the same table with one hostile record more differ by that record alone."""

import os
import sys
import warnings

import polars as pl
import pytest

from matrixdp.domain.rules import Kind
from matrixdp.errors import SourceError
from matrixdp.sources import open_source
from matrixdp.testing import HOSTILE_OBJECTS, check_neighbours
from tests.sources.ways import ALL, WAYS, objects


def object_arrays(columns, _):
    return open_source({name: series.to_numpy() for name, series in objects(columns).items()})


def polars_objects(columns, _):
    series = [pl.Series(name, values, dtype=pl.Object) for name, values in columns.items()]
    return open_source(pl.DataFrame(series))


#: How many hostile records are added at once; one, which takes minutes, by `make neighbours`.
TOGETHER = int(os.environ.get("MATRIXDP_TOGETHER", "100"))
OBJECTS = {
    "lists": lambda columns, _: open_source(columns),
    "arrays of objects": object_arrays,
    "pandas of objects": lambda columns, _: open_source(objects(columns)),
    "polars of objects": polars_objects,
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
def test_no_hostile_object_changes_more_than_one_count(reader, tmp_path):
    found = check_neighbours(lambda t: OBJECTS[reader](t, tmp_path), [], objects=True, together=TOGETHER)
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
    ("reader", "message"),
    [
        (reads_none, "boolean None changes the counts of category by 31"),
        (warns, "boolean None changes what is told, from .*there is a True.* to .*there is a None"),
        (prints, r"what is told, from \(None, \[\], '31'"),
        (writes, "what is told, .*a null"),
        (refuses, "what is told, .*there is a null"),
    ],
)
def test_the_check_finds_what_one_record_moves(reader, message):
    with pytest.raises(AssertionError, match=message):
        check_neighbours(reader, [Kind.BOOLEAN])


def test_the_check_needs_a_table_that_can_be_counted():
    with pytest.raises(AssertionError, match="cannot be counted"):
        check_neighbours(lambda table: open_source(table.drop_columns("category")), [Kind.BOOLEAN])


def test_several_records_at_once_may_move_as_many_counts():
    assert check_neighbours(open_source, [Kind.BOOLEAN], together=3) == 3
    with pytest.raises(
        AssertionError, match="3 records of booleans, the first None: that changes the counts"
    ):
        check_neighbours(reads_none, [Kind.BOOLEAN], together=3)
