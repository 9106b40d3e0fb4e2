# ruff: noqa: S608
"""Statements count what DuckDB counts when it executes them."""

import random
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from itertools import product

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from matrixdp.domain import Domain, encode_value
from matrixdp.errors import EntryError
from matrixdp.queries import Group, ProductGroup
from matrixdp.statements import SqlQuery, read
from matrixdp.statements.translation import translate

Row = tuple[object, ...]


def counts(domain: Domain, table: pa.Table, group: Group) -> np.ndarray:
    """Return the true answers to a group: its rows on the counts of its cells."""
    cells = dict.fromkeys(product(*(range(domain[name].size) for name in group.attributes)), 0)
    for record in table.select(list(domain.names)).to_pylist():
        codes = tuple(encode_value(domain[name], record[name]) for name in domain.names)
        if None not in codes:
            cells[tuple(codes[domain.index(name)] for name in group.attributes)] += 1
    return group.rows() @ np.array(list(cells.values()), dtype=float)


def ours(domain: Domain, table: pa.Table, query: SqlQuery) -> list[Row]:
    """Return the result of a statement, in the order of its columns."""
    answers = [counts(domain, table, group) for group in query.groups]
    keys = iter(query.keys.columns)
    columns: list[list[object]] = []
    for column in query.columns:
        if column.aggregate is None:
            columns.append(next(keys).to_pylist())
        else:
            places = query.places[column.aggregate]
            columns.append(
                [
                    0 if place < 0 else int(answers[group][place])
                    for group, place in zip(places.asked, places.queries, strict=True)
                ]
            )
    return list(zip(*columns, strict=True))


def executed(connection: duckdb.DuckDBPyConnection, text: str) -> Counter[Row]:
    """Return what DuckDB answers, sums of nothing as 0."""
    found = connection.sql(text)
    sums = {place for place, name in enumerate(found.columns) if name.startswith("total")}
    rows = found.fetchall()
    return Counter(tuple(0 if v is None and i in sums else v for i, v in enumerate(row)) for row in rows)


def agreed(domain: Domain, table: pa.Table, connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Check that both count the same; the last column counts all records, and DuckDB has no empty groups."""
    mine = ours(domain, table, translate(read(text), domain))
    theirs = executed(connection, text)
    assert Counter(row for row in mine if row[-1] or row in theirs) == theirs


CODES = Domain(
    {
        "sex": {"categories": [0, 1], "labels": {0: "female", 1: "male"}},
        "status": {"categories": ["on", "off"], "null": "cancelled"},
        "age": {"min": 0, "max": 5, "null": "unknown"},
        "hours": {"edges": ["-inf", 0, 10, "inf"], "null": "none"},
        "county": {
            "categories": ["Kings", "Queens", "Orange"],
            "levels": {"state": {"NY": ["Kings", "Queens"], "CA": ["Orange"]}},
        },
    }
)
DOMAIN = Domain(
    {
        "sex": ["female", "male"],
        "age": range(6),
        "hours": {"edges": [0, 10, 20, 40], "closed": True},
        "state": ["NY", "NJ", "CA"],
        "code": 4,
        "smokes": [True, False],
    }
)


def drawn(seed: int, **values: Sequence[object]) -> pa.Table:
    draw = random.Random(seed)  # noqa: S311 - a table for tests
    return pa.table({name: [draw.choice(options) for _ in range(300)] for name, options in values.items()})


TABLE = drawn(
    5,
    sex=["female", "male"],
    age=range(6),
    hours=[0.0, 9.5, 10.0, 12.0, 20.0, 39.0, 40.0],
    state=["NY", "NJ", "CA"],
    code=range(4),
    smokes=[True, False],
)
CODED = drawn(
    6,
    sex=range(2),
    status=["on", "off", None],
    age=[*range(6), None],
    hours=[-5.0, 0.0, 3.5, 10.0, 99.0, None],
    county=["Kings", "Queens", "Orange"],
)
WRITTEN = [
    "SELECT sex, COUNT(*) AS n FROM people WHERE age BETWEEN 1 AND 3 AND state IN ('NY','NJ') GROUP BY sex",
    "select People.SEX, count(*) from people where People.Age >= 2 group by 1",
    "SELECT p.state, COUNT(*) FROM people p WHERE NOT (p.age < 2 OR p.sex = 'male') GROUP BY p.state",
    "SELECT state, COUNT(*) FROM people WHERE NOT (age < 4 AND sex = 'male') GROUP BY state",
    "SELECT age // 2 AS pair, state, COUNT(*) AS n FROM people GROUP BY CUBE (pair, state)",
    "SELECT state, sex, age, COUNT(*) FROM people WHERE age > code GROUP BY ROLLUP (state, (sex, age))",
    "SELECT sex, state, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex, state), ROLLUP (sex), ())",
    "SELECT sex, state, code, COUNT(*) FROM people GROUP BY sex, CUBE (state, code)",
    "SELECT sex, code % 2 = 0 AS even, COUNT(*) FROM people GROUP BY ALL",
    "SELECT CASE WHEN hours < 10 THEN 'low' WHEN hours >= 20 THEN 'up' END, COUNT(*) FROM people GROUP BY 1",
    "SELECT COUNT(*) FILTER (WHERE smokes) AS s, COUNT(CASE WHEN age > 4 THEN 1 END), COUNT(*) FROM people",
    "SELECT sex, SUM(CASE WHEN sex='male' THEN 1 ELSE 0 END) total, COUNT(1) FROM people GROUP BY 1",
    "SELECT state, SUM((age = code)::INT) total, COUNT_IF(hours <= 40), COUNT(age) FROM people GROUP BY 1",
    "SELECT COUNT(*) FROM people WHERE abs(age - code) < 2 AND age + code <= 5 AND state LIKE 'N%'",
    "SELECT COUNT(*) FROM people WHERE 20 > hours AND hours <= 40 AND NOT hours < 10 AND 1 = 1",
    "SELECT lower(state) || sex AS named, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY named",
    "SELECT COUNT(*) FROM people WHERE CASE state WHEN 'NY' THEN age > 2 ELSE smokes END",
    "SELECT code & 1 bit, smokes, COUNT(*) FROM people WHERE coalesce(nullif(age, 2), 5) >= 3 GROUP BY 1, 2",
    "SELECT round(age / 4, 1) AS r, COUNT(*) FROM people WHERE age IS DISTINCT FROM 3 GROUP BY r",
    "FROM people SELECT sex, COUNT(*) WHERE (hours >= 10 AND sex = 'male') OR hours < 10 GROUP BY sex",
]


def registered(table: pa.Table) -> duckdb.DuckDBPyConnection:
    return duckdb.connect().register("people", table)


PEOPLE, CODED_PEOPLE = registered(TABLE), registered(CODED)


@pytest.mark.parametrize("text", WRITTEN)
def test_statements_count_what_duckdb_counts(text: str) -> None:
    agreed(DOMAIN, TABLE, PEOPLE, text)


NUMBERS = st.integers(-1, 6).map(str)
ATOMS = st.one_of(
    st.builds("{} {} {}".format, st.sampled_from(["age", "code", "age + code", "age - code"]),
              st.sampled_from(["<", "<=", ">", ">=", "<>"]), NUMBERS),
    st.builds("age {}BETWEEN {} AND {}".format, st.sampled_from(["", "NOT "]), NUMBERS, NUMBERS),
    st.builds("state {}IN ({})".format, st.sampled_from(["", "NOT "]),
              st.lists(st.sampled_from(["'NY'", "'NJ'", "'CA'"]), min_size=1, max_size=2).map(", ".join)),
    st.builds("hours {} {}".format, st.sampled_from(["<", ">="]), st.sampled_from(["0", "10", "20", "-3"])),
    st.sampled_from(
        ["sex = 'male'", "smokes", "age <= code", "abs(age - code) <= 1", "state LIKE '%Y'", "hours <= 40",
         "nullif(age, 3) > 1", "sex < state", "age % 2 = code % 2", "CASE WHEN smokes THEN age > 2 END"]
    ),
)  # fmt: skip


def _joined(parts: SearchStrategy[str]) -> SearchStrategy[str]:
    several = st.lists(parts, min_size=2, max_size=3)
    together = st.builds(
        lambda word, some: f"({word.join(some)})", st.sampled_from([" AND ", " OR "]), several
    )
    return st.one_of(together, parts.map("NOT ({})".format))


CONDITIONS = st.recursive(ATOMS, _joined, max_leaves=4)
KEYS = st.one_of(
    st.sampled_from(["sex", "state", "code", "smokes", "age // 2", "age > code", "upper(left(state, 1))"]),
    st.builds("CASE WHEN {} THEN 'a' WHEN {} THEN 'b' END".format, ATOMS, ATOMS),
)


@st.composite
def statements(draw: DrawFn) -> str:
    keys = draw(st.lists(KEYS, max_size=3, unique=True))
    shown = [f"{key} AS k{place}" for place, key in enumerate(keys)]
    counted = [
        f"COUNT(*) FILTER (WHERE {draw(CONDITIONS)}) AS f",
        f"SUM(CASE WHEN {draw(CONDITIONS)} THEN 1 END) AS total",
    ]
    shown += draw(st.lists(st.sampled_from(counted), max_size=2, unique=True))
    where = draw(st.none() | CONDITIONS)
    names = ", ".join(f"k{place}" for place in range(len(keys)))
    forms = ["{}", "CUBE ({})", "ROLLUP ({})", "GROUPING SETS (({}), ())"]
    group = f" GROUP BY {draw(st.sampled_from(forms)).format(names)}" if keys else ""
    within = f" WHERE {where}" if where else ""
    return f"SELECT {', '.join([*shown, 'COUNT(*)'])} FROM people{within}{group}"


@settings(max_examples=30, deadline=None)
@given(statements())
def test_any_statement_counts_what_duckdb_counts(text: str) -> None:
    query = None
    with suppress(EntryError):
        query = translate(read(text), DOMAIN)
    if query is None:
        with pytest.raises(EntryError, match="for every table"):
            translate(read(text), DOMAIN)
        counts = [count for row in executed(PEOPLE, text) for count in row]
        assert not counts or 0 in counts
    else:
        agreed(DOMAIN, TABLE, PEOPLE, text)


@pytest.mark.parametrize(
    ("condition", "plain"),
    [
        ("sex <> 'female' AND age IS NULL", "sex <> 0 AND age IS NULL"),
        ("status = 'cancelled'", "status IS NULL"),
        ("status <> 'cancelled'", "status IS NOT NULL"),
        ("status IN ('cancelled','on')", "status IS NULL OR status = 'on'"),
        ("status NOT IN ('on') OR age > 3", "status <> 'on' OR age > 3"),
        ("age <> 'unknown' AND NOT age > 2", "age <= 2"),
        (
            "CASE sex WHEN 'male' THEN age > 2 ELSE hours < 0 END",
            "(sex = 1 AND age > 2) OR (sex = 0 AND hours < 0)",
        ),
        ("hours = '[0, 10)' OR hours = 'none'", "(hours >= 0 AND hours < 10) OR hours IS NULL"),
        ("sex IS NOT DISTINCT FROM 'female'", "sex = 0"),
        ("status IS DISTINCT FROM 'cancelled'", "status IS NOT NULL"),
        ("sex = '1' OR age IN ('2', 'unknown')", "sex = 1 OR age = 2 OR age IS NULL"),
        ("State = 'NY' AND county <> 'Kings'", "county = 'Queens'"),
        ("state LIKE 'C%' OR sex = 'male'", "county = 'Orange' OR sex = 1"),
    ],
)
def test_values_are_asked_for_by_what_they_are_called(condition: str, plain: str) -> None:
    query = translate(read(f"SELECT COUNT(*) FROM people WHERE {condition}"), CODES)
    text = f"SELECT COUNT(*) FROM people WHERE {plain}"
    assert set(ours(CODES, CODED, query)) == set(executed(CODED_PEOPLE, text))


def test_values_that_are_null_are_not_counted_by_their_column() -> None:
    agreed(CODES, CODED, CODED_PEOPLE, "SELECT COUNT(age), COUNT(hours), COUNT(*) FROM people")


def test_keys_show_what_values_are_called() -> None:
    query = translate(
        read("SELECT sex, status, hours, age + 1 AS next, COUNT(*) FROM people GROUP BY ALL"), CODES
    )
    first = {"sex": "female", "status": "on", "hours": "(-inf, 0)", "next": 1}
    assert query.keys.slice(0, 1).to_pylist() == [first]
    assert query.keys.slice(query.keys.num_rows - 1).to_pylist() == [
        {"sex": "male", "status": "cancelled", "hours": "none", "next": None}
    ]
    assert query.keys.num_rows == 2 * 3 * 4 * 7


def test_levels_are_columns() -> None:
    query = translate(read("SELECT state, sex, COUNT(*) FROM people GROUP BY ROLLUP (state, sex)"), CODES)
    assert [group.attributes for group in query.groups] == [("sex", "county"), ("county",), ()]
    assert query.groups[1].rows().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert query.keys.column("state").to_pylist() == ["NY", "NY", "CA", "CA", "NY", "CA", None]
    level, part = (
        translate(read(f"SELECT state, COUNT(*) FROM people {where} GROUP BY state"), CODES).groups[0]
        for where in ("", "WHERE county <> 'Kings'")
    )
    assert isinstance(level, ProductGroup)
    assert isinstance(part, ProductGroup)
    labels = [own.predicates[0].describe(CODES["county"]) for own in (level, part)]
    assert [list(own) for own in labels] == [["NY", "CA"], ["Queens", "Orange"]]


DATES = Domain(
    {
        "day": {"from": "2013-01-30", "to": "2013-05-10", "by": "day"},
        "month": {"from": "2013-01-30", "to": "2013-05-10", "by": "month", "column": "day"},
        "weekday": {"by": "weekday", "column": "day"},
    }
)


@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("day >= '2013-02-01' AND day < DATE '2013-03-01'", 2, 29),
        ("month(day) = 2", 2, 29),
        ("isodow(day) < 3 AND day < '2013-02-07'", 5, 6),
        ("date_trunc('month', day) = DATE '2013-02-01'", 2, 29),
        ("day + INTERVAL 1 DAY <= '2013-02-01'", 0, 1),
        ("month >= '2013-02' AND month <= '2013-03'", 1, 2),
        ("month < '2013-03-01' AND month > '2013-01'", 1, 1),
        ("month <= '2013-02-28'", 0, 1),
        ("DATE '2013-04-30' < month", 4, 4),
        ("month BETWEEN '2013-02-01' AND '2013-03'", 1, 2),
        ("month >= '2013-01-30' AND month < '2014-01-01' AND month < '2013-02'", 0, 0),
        ("month > '2012-12-31' AND month <= '2013-05-10' AND month IN ('2013-05')", 4, 4),
        ("month <= '9999-12-31' AND month > '2013-01'", 1, 4),
        ("weekday IN ('Saturday', 'Sunday')", 5, 6),
    ],
)
def test_dates_are_compared(condition: str, first: int, last: int) -> None:
    [group] = translate(read(f"SELECT COUNT(*) FROM t WHERE {condition}"), DATES).groups
    [row] = group.rows()
    assert [code for code, inside in enumerate(row) if inside] == list(range(first, last + 1))


def test_what_a_missing_day_is_called_has_no_place_in_time() -> None:
    days = Domain({"part": {"from": "9999-01-30", "to": "9999-12-31", "by": "quarter", "null": "none"}})
    [group] = translate(read("SELECT COUNT(*) FROM t WHERE part > '9999-03-31'"), days).groups
    assert group.rows()[0][:2].tolist() == [0, 1]
    with pytest.raises(EntryError, match="one of its values"):
        translate(read("SELECT COUNT(*) FROM t WHERE part < 'none'"), days)


def test_an_expression_without_a_value_is_refused() -> None:
    with pytest.raises(EntryError, match="a value everywhere in the domain"):
        translate(read("SELECT COUNT(*) FROM t WHERE age > 'x'"), DOMAIN)
