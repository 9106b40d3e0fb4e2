"""Statements count what DuckDB counts when it executes them."""

import random
from collections.abc import Iterator
from contextlib import suppress

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from matrixdp.domain import Domain
from matrixdp.errors import EntryError
from matrixdp.statements import read
from tests.statements.agreement import agreed, executed, ours

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


def _table(records: int) -> pa.Table:
    draw = random.Random(5)  # noqa: S311 - a table for tests
    rows = [
        {
            "sex": draw.choice(["female", "male"]),
            "age": draw.randrange(6),
            "hours": draw.choice([0.0, 9.5, 10.0, 12.0, 20.0, 39.0, 40.0]),
            "state": draw.choice(["NY", "NJ", "CA"]),
            "code": draw.randrange(4),
            "smokes": draw.choice([True, False]),
        }
        for _ in range(records)
    ]
    return pa.Table.from_pylist(rows)


TABLE = _table(300)
WRITTEN = [
    "SELECT sex, COUNT(*) AS n FROM people WHERE age BETWEEN 1 AND 3 AND state IN ('NY','NJ') GROUP BY sex",
    "select People.SEX, count(*) from people where People.Age >= 2 group by 1",
    "SELECT p.state, COUNT(*) FROM people p WHERE NOT (p.age < 2 OR p.sex = 'male') GROUP BY p.state",
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
    "SELECT COUNT(*) FROM people WHERE sex = 'male' OR state = 'NY' OR age IN (1, 2)",
    "SELECT lower(state) || sex AS named, COUNT(*) FROM people WHERE age IS NOT NULL GROUP BY named",
    "SELECT nullif(state, 'CA') AS east, COUNT(*) FROM people GROUP BY east",
    "SELECT COUNT(*) FROM people WHERE CASE state WHEN 'NY' THEN age > 2 ELSE smokes END",
    "SELECT sex, COUNT(*) FROM people WHERE state NOT IN ('XX', 'CA') AND age <> 99 GROUP BY sex",
    "SELECT code & 1 bit, smokes, COUNT(*) FROM people WHERE coalesce(nullif(age, 2), 5) >= 3 GROUP BY 1, 2",
    "SELECT round(age / 4, 1) AS r, COUNT(*) FROM people WHERE age IS DISTINCT FROM 3 GROUP BY r",
    "FROM people SELECT sex, COUNT(*) WHERE (hours >= 10 AND sex = 'male') OR hours < 10 GROUP BY sex",
]


@pytest.fixture(scope="module")
def people() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        connection.register("people", TABLE)
        yield connection


@pytest.mark.parametrize("text", WRITTEN)
def test_statements_count_what_duckdb_counts(people: duckdb.DuckDBPyConnection, text: str) -> None:
    agreed(DOMAIN, TABLE, people, text)


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
    return f"SELECT {', '.join([*shown, 'COUNT(*)'])} FROM people{within}{group}"  # noqa: S608


@settings(max_examples=30, deadline=None)
@given(statements())
def test_any_statement_counts_what_duckdb_counts(people: duckdb.DuckDBPyConnection, text: str) -> None:
    query = None
    with suppress(EntryError):
        query = read(text).query(DOMAIN)
    if query is None:
        with pytest.raises(EntryError, match="for every table"):
            read(text).query(DOMAIN)
        counts = [count for row in executed(people, text) for count in row]
        assert not counts or 0 in counts
    else:
        agreed(DOMAIN, TABLE, people, text)


@pytest.fixture(scope="module")
def coded() -> Iterator[tuple[pa.Table, duckdb.DuckDBPyConnection]]:
    draw = random.Random(6)  # noqa: S311 - a table for tests
    rows = [
        {
            "sex": draw.randrange(2),
            "status": draw.choice(["on", "off", None]),
            "age": draw.choice([0, 1, 2, 3, 4, 5, None]),
            "hours": draw.choice([-5.0, 0.0, 3.5, 10.0, 99.0, None]),
            "county": draw.choice(["Kings", "Queens", "Orange"]),
        }
        for _ in range(300)
    ]
    table = pa.Table.from_pylist(rows)
    with duckdb.connect(":memory:") as connection:
        connection.register("people", table)
        yield table, connection


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("SELECT COUNT(*) FROM people WHERE sex = 'female'", "sex = 0"),
        ("SELECT COUNT(*) FROM people WHERE sex <> 'female' AND age IS NULL", "sex <> 0 AND age IS NULL"),
        ("SELECT COUNT(*) FROM people WHERE status = 'cancelled'", "status IS NULL"),
        ("SELECT COUNT(*) FROM people WHERE status <> 'on'", "status <> 'on'"),
        ("SELECT COUNT(*) FROM people WHERE status <> 'cancelled'", "status IS NOT NULL"),
        ("SELECT COUNT(*) FROM people WHERE status IN ('cancelled','on')", "status IS NULL OR status = 'on'"),
        ("SELECT COUNT(*) FROM people WHERE status NOT IN ('on') OR age > 3", "status <> 'on' OR age > 3"),
        ("SELECT COUNT(*) FROM people WHERE age <> 'unknown' AND NOT age > 2", "age <= 2"),
        ("SELECT COUNT(*) FROM people WHERE CASE sex WHEN 'male' THEN age > 2 ELSE hours < 0 END",
         "CASE sex WHEN 1 THEN age > 2 ELSE hours < 0 END"),
        ("SELECT COUNT(*) FROM people WHERE hours IS NULL OR hours < 10", "hours IS NULL OR hours < 10"),
        ("SELECT COUNT(*) FROM people WHERE hours = '[0, 10)' OR hours = 'none'",
         "(hours >= 0 AND hours < 10) OR hours IS NULL"),
        ("SELECT COUNT(age) FROM people", "age IS NOT NULL"),
        ("SELECT COUNT(hours) FROM people", "hours IS NOT NULL"),
        ("SELECT COUNT(*) FROM people WHERE sex IS NOT DISTINCT FROM 'female'", "sex = 0"),
        ("SELECT COUNT(*) FROM people WHERE status IS DISTINCT FROM 'cancelled'", "status IS NOT NULL"),
        ("SELECT COUNT(*) FROM people WHERE sex = '1' OR age IN ('2', 'unknown')",
         "sex = 1 OR age = 2 OR age IS NULL"),
        ("SELECT COUNT(*) FROM people WHERE State = 'NY' AND county <> 'Kings'", "county = 'Queens'"),
        ("SELECT COUNT(*) FROM people WHERE state LIKE 'C%' OR sex = 'male'", "county = 'Orange' OR sex = 1"),
    ],
)  # fmt: skip
def test_values_are_asked_for_by_what_they_are_called(
    coded: tuple[pa.Table, duckdb.DuckDBPyConnection], text: str, plain: str
) -> None:
    table, connection = coded
    [(mine,)] = ours(CODES, table, read(text).query(CODES))
    assert {(mine,)} == set(executed(connection, f"SELECT COUNT(*) FROM people WHERE {plain}"))  # noqa: S608


def test_keys_show_what_values_are_called() -> None:
    query = read("SELECT sex, status, hours, age + 1 AS next, COUNT(*) FROM people GROUP BY ALL").query(CODES)
    first = {"sex": "female", "status": "on", "hours": "(-inf, 0)", "next": 1}
    assert query.keys.slice(0, 1).to_pylist() == [first]
    assert query.keys.slice(query.keys.num_rows - 1).to_pylist() == [
        {"sex": "male", "status": "cancelled", "hours": "none", "next": None}
    ]
    assert query.keys.num_rows == 2 * 3 * 4 * 7


def test_levels_are_columns() -> None:
    query = read("SELECT state, sex, COUNT(*) FROM people GROUP BY ROLLUP (state, sex)").query(CODES)
    assert [group.attributes for group in query.groups] == [("sex", "county"), ("county",), ()]
    assert query.groups[1].rows().tolist() == [[1, 1, 0], [0, 0, 1]]
    assert query.keys.column("state").to_pylist() == ["NY", "NY", "CA", "CA", "NY", "CA", None]
    with pytest.raises(EntryError, match=r"found 'NV' \(line 1, .* a value of 'state': NY, CA"):
        read("SELECT COUNT(*) FROM people WHERE state IN ('NV', 'CA')").query(CODES)
    with pytest.raises(EntryError, match=r"did you mean 'state'"):
        read("SELECT COUNT(*) FROM people WHERE stat = 'NY'").query(CODES)


DATES = Domain(
    {
        "day": {"from": "2013-01-30", "to": "2013-05-10", "by": "day"},
        "month": {"from": "2013-01-30", "to": "2013-05-10", "by": "month", "column": "day"},
        "weekday": {"by": "weekday", "column": "day"},
        "year": {"from": "2012-01-01", "to": "2014-12-31", "by": "year", "column": "day"},
    }
)


@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("day >= '2013-02-01' AND day < DATE '2013-03-01'", 2, 29),
        ("day BETWEEN '2013-01-30' AND '2013-01-31'", 0, 1),
        ("month(day) = 2", 2, 29),
        ("isodow(day) < 3 AND day < '2013-02-07'", 5, 6),
        ("date_trunc('month', day) = DATE '2013-02-01'", 2, 29),
        ("day + INTERVAL 1 DAY <= '2013-02-01'", 0, 1),
        ("month = '2013-02'", 1, 1),
        ("month >= '2013-02' AND month <= '2013-03'", 1, 2),
        ("month < '2013-03-01' AND month > '2013-01'", 1, 1),
        ("month <= '2013-02-28'", 0, 1),
        ("DATE '2013-04-30' < month", 4, 4),
        ("month BETWEEN '2013-02-01' AND '2013-03'", 1, 2),
        ("month >= '2013-01-30' AND month < '2014-01-01' AND month < '2013-02'", 0, 0),
        ("month > '2012-12-31' AND month <= '2013-05-10' AND month IN ('2013-05')", 4, 4),
        ("weekday IN ('Saturday', 'Sunday')", 5, 6),
        ("year >= 2013", 1, 2),
    ],
)
def test_dates_are_compared(condition: str, first: int, last: int) -> None:
    [group] = read(f"SELECT COUNT(*) FROM t WHERE {condition}").query(DATES).groups  # noqa: S608
    [row] = group.rows()
    assert [code for code, inside in enumerate(row) if inside] == list(range(first, last + 1))


@pytest.mark.parametrize(
    "condition",
    ["month <> '2013-02-01'", "NOT month = '2013-02-01'", "month NOT IN ('2013-02-01', '2013-03')"],
)
def test_a_month_is_neither_its_first_day_nor_another_one(condition: str) -> None:
    with pytest.raises(EntryError, match=r"found '2013-02-01' .* a value of 'month': 2013-01..2013-05"):
        read(f"SELECT COUNT(*) FROM t WHERE {condition}").query(DATES)  # noqa: S608


@pytest.mark.parametrize(
    "condition", ["month < '2013-02-15'", "month > '2013-02-27'", "month < 'x'", "month < 3", "month < day",
                  "month < TIMESTAMP '2013-02-01 12:00:00'"]
)  # fmt: skip
def test_days_within_a_month_do_not_divide_it(condition: str) -> None:
    with pytest.raises(EntryError, match=r"'month' compared with one of its values, such as '2013-01'"):
        read(f"SELECT COUNT(*) FROM t WHERE {condition}").query(DATES)  # noqa: S608
