"""In every table with an order the first records of a person are counted, whatever others are there."""

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import matrixdp as mdp
from matrixdp.sources import Source, open_source
from matrixdp.testing.tables import HOSTILE_IDS, check_persons, first_records
from tests.sources.ways import SHAPES, counts, database, objects, parquet

DOMAIN = mdp.Domain({"age": 4})


class Impostor(str):
    """A text that says that it is every other one."""

    __slots__ = ()

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash("ann")

    def lower(self):
        return Impostor("ann")

    def __str__(self):
        return self


class Broken:
    def __float__(self):
        raise RuntimeError

    __hash__ = None


def counted(table, most):
    return np.array(counts(table, DOMAIN, unit=mdp.Unit(records=most, id="person")))


def expected(ids, ages, most):
    kept = [
        age for age, first in zip(ages, first_records(ids, most), strict=True) if first and age in range(4)
    ]
    return np.bincount(kept, minlength=4) if kept else np.zeros(4, dtype=int)


OBJECTS = [
    *HOSTILE_IDS, 1, 1.0, True, False, np.int64(1), np.float32(0.1), 0.1, 2**53, 2**53 + 1, 10**400, b"ann",
    Broken(), float("nan"), float("-inf"), -0.0, Impostor("ben"), Impostor("1"), (1,), "\ud800",
    datetime(2020, 1, 1),
]  # fmt: skip
RECORDS = st.lists(
    st.tuples(st.one_of(st.sampled_from(OBJECTS), st.text(max_size=2)), st.integers(0, 5)), max_size=40
)


@given(RECORDS, st.integers(1, 4), st.data())
@settings(deadline=None, max_examples=40)
def test_one_person_changes_at_most_their_records_whatever_the_ids(records, most, data):
    person = data.draw(st.sampled_from(OBJECTS))
    places = data.draw(st.lists(st.integers(0, len(records)), max_size=9))
    more = list(records)
    for place in sorted(places, reverse=True):
        more.insert(place, (person, data.draw(st.integers(0, 5))))
    fewer = [record for record in more if not same(record[0], person)]
    found = []
    for rows in (fewer, more):
        table = {"person": [row[0] for row in rows], "age": [row[1] for row in rows]}
        found.append(counted(table, most))
        np.testing.assert_array_equal(found[-1], expected(table["person"], table["age"], most))
    assert np.abs(found[0] - found[1]).sum() <= most


def same(one, other):
    """Whether two ids name one person, as the plain rule has it."""
    return first_records([other, one], 1) == [True, False]


@given(st.lists(st.sampled_from("pqo"), max_size=30), st.integers(1, 5), st.integers(0, 30))
def test_a_shared_id_costs_twice_the_records_and_one_record_more_of_anybody_two(people, most, place):
    def kept(rows):
        first = first_records(["other" if who == "o" else "shared" for _, who in rows], most)
        return {name for (name, _), taken in zip(rows, first, strict=True) if taken}

    rows = list(enumerate(people))
    alone = [row for row in rows if row[1] != "p"]
    assert len(kept(rows) ^ kept(alone)) <= 2 * most
    assert len(kept(rows) ^ kept([*rows[:place], (-1, "p"), *rows[place:]])) <= 2


#: In text without quoted line ends, ids that have one are several.
PLAIN = [value for value in HOSTILE_IDS if value is None or '"' not in value]


@pytest.mark.parametrize("way", SHAPES)
def test_other_shapes_of_tables_count_the_same_records(way, tmp_path):
    check_persons(lambda table: SHAPES[way].opens(table, tmp_path), pa.array(PLAIN))


def test_a_person_with_a_million_records_counts_as_one_with_three():
    ids = np.concatenate([np.full(10**6, 7), [1, 2, 7, 2]])
    ages = np.concatenate([np.zeros(10**6, dtype=int), [1, 2, 3, 3]])
    assert counted({"person": ids, "age": ages}, 3).tolist() == [3, 1, 1, 1]
    assert counted({"person": ids[::-1].copy(), "age": ages[::-1].copy()}, 3).tolist() == [2, 1, 1, 2]


def test_files_of_several_types_have_one_order(tmp_path):
    for part, (ids, ages) in enumerate(
        [([1, 2, 1], [0, 1, 1]), (["1", "x", "02"], [2, 2, 2]), ([1.0, 2.0, None], [3, 3, 3])]
    ):
        parquet(pa.table({"person": ids, "age": ages}), tmp_path, f"{part}.parquet")
    ids, ages = [1, 2, 1, "1", "x", "02", 1.0, 2.0, None], [0, 1, 1, 2, 2, 2, 3, 3, 3]
    for most in (1, 2, 3, 4):
        found = counted(tmp_path / "*.parquet", most)
        assert found.tolist() == expected(ids, ages, most).tolist()


def test_bytes_that_are_no_text_name_nobody(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"age,person\n0,M\xfcller\n1,M\xf6ller\n2,Meier\n")
    assert counted(tmp_path / "t.csv", 1).tolist() == [0, 0, 1, 0]


def test_a_text_that_says_that_it_is_every_other_one_is_the_text_that_it_is():
    columns: dict[str, list[object]] = {
        "person": ["ann", Impostor("ben"), Impostor("cy"), "ann"],
        "age": [0, 1, 2, 3],
    }
    for table in (columns, objects(columns)):
        assert counted(table, 1).tolist() == [1, 1, 1, 0]


def test_names_of_columns_do_not_hide_the_order(tmp_path):
    made = "4 - i AS place, 4 - i AS place0, 1 AS inside, 'ann' AS person, i AS age, 'x' AS id_text"
    path = database(
        tmp_path / "t.duckdb",
        f"CREATE TABLE t AS SELECT {made}, i AS id_number FROM range(4) r(i)",  # noqa: S608
    )
    assert counted(path, 1).tolist() == [1, 0, 0, 0]


class Careless(Source):
    """An engine that says that it bounds, and does not."""

    bounds_contributions = True

    def __init__(self, table):
        self.source = open_source(table)

    def count(self, request):
        unbounded = self.source.marginals(request.domain, request.subsets, request.out_of_domain)
        request.check_columns(["record", "inside", "person"])
        return unbounded


def test_the_check_finds_an_engine_that_does_not_bound():
    with pytest.raises(AssertionError, match=r"of the id .*, 2 at most, a record is counted 1 times"):
        check_persons(Careless, pa.array(["ann", "ben"]))


def test_the_check_finds_an_engine_that_should_refuse(monkeypatch):
    monkeypatch.setattr(Careless, "bounds_contributions", False)
    monkeypatch.setattr(Careless, "marginals", lambda *_: iter(()))
    with pytest.raises(AssertionError, match="the id 'person' is not refused by the call"):
        check_persons(Careless, pa.array(["ann", "ben"]))


@pytest.mark.parametrize("collation", ["NOCASE", "NOACCENT"])
def test_collations_of_a_database_make_no_two_persons_one(collation, tmp_path):
    """Nor do they make two values one: a text is what it is, byte by byte."""
    path = database(
        tmp_path / "t.duckdb",
        f"CREATE TABLE t (person VARCHAR COLLATE {collation}, age INT)",
        "INSERT INTO t VALUES ('ann', 0), ('ANN', 1), ('änn', 2), ('trué', 3)",
    )
    assert counted(path, 1).tolist() == [1, 1, 1, 1]
    domain = mdp.Domain({"person": {"categories": ["ann", "true"], "null": "none"}})
    assert counts(path, domain) == [1, 0, 0]
