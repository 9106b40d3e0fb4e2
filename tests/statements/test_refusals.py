# ruff: noqa: S608 - statements, none of which is executed
"""What is no workload of counts is refused where it stands, with the nearest thing that works."""

import pytest

from matrixdp.domain import Domain
from matrixdp.errors import EntryError, TooLargeError
from matrixdp.statements import read, read_all

DOMAIN = Domain(
    {
        "sex": ["female", "male"],
        "age": range(115),
        "hours": {"min": 0, "max": 100, "bins": 20},
        "income": {"edges": [0, 10, 20]},
        "state": ["NY", "NJ", "CA"],
        "wide": 10_000,
        "wider": 10_000,
    }
)
REFUSED = [
    ("SELECT COUNT(*) FROM t WHERE agee > 3", "agee", "'agee'", "did you mean 'age'?"),
    ("SELECT COUNT(*) FROM t p WHERE t.age > 3", "t.age", "'t.age'", "a column of 'p', the one table"),
    ("SELECT COUNT(*) FROM t WHERE state = 'ny'", "'ny'", "'ny'", "did you mean 'NY'?"),
    ("SELECT COUNT(*) FROM t WHERE age IN (3, 300)", "300", "300", "a value of 'age': 0-114"),
    ("SELECT COUNT(*) FROM t WHERE age = 1_000", "1_000", "1000", "a value of 'age': 0-114"),
    ("SELECT COUNT(*) FROM t WHERE CASE state WHEN 'TX' THEN age > 3 END", "'TX'", "'TX'", "NY..CA"),
    ("SELECT COUNT(*) FROM t WHERE age IS NULL", "age", "age IS NULL", "`null: unknown` for 'age'"),
    ("SELECT COUNT(*) FROM t WHERE random() < 0.5", "random", "RANDOM()", "expected comparisons, BETWEEN"),
    ("SELECT COUNT(*) FROM t WHERE now() > age", "now", "NOW()", "expected comparisons"),
    ("SELECT COUNT(*) FROM t WHERE getenv('HOME') = state", "getenv", "GETENV('HOME')", "comparisons"),
    ("SELECT COUNT(*) FROM t WHERE age = ANY([1, 2])", "1", "ANY([1, 2])", "expected comparisons"),
    ("SELECT COUNT(*) FROM t WHERE age::DECIMAL(3, 1) > 3", "age", "CAST(age AS DECIMAL(3, 1))", "DOUBLE"),
    ("SELECT COUNT(*) FROM t WHERE age IN (SELECT 3)", "age", "age IN (SELECT 3)", "there are no subqueries"),
    ("SELECT COUNT(*) FROM t WHERE age > (SELECT 3)", "3", "(SELECT 3)", "there are no subqueries"),
    ("SELECT COUNT(*) FROM t WHERE EXISTS (SELECT 3)", "3", "EXISTS(SELECT 3)", "there are no subqueries"),
    ("SELECT COUNT(*) FROM t WHERE COUNT(*) > 3", "COUNT(*) >", "COUNT(*)", "counts stand in SELECT alone"),
    ("SELECT COUNT(*) FROM t WHERE age > 'x'", "age", "age > 'x'", "a value everywhere in the domain"),
    ("SELECT COUNT(*) FROM t WHERE state > 3", "state", "state > 3", "a value everywhere in the domain"),
    ("SELECT COUNT(*) FROM t WHERE age > 3 AND FALSE", "age", "FALSE", "for every table"),
    ("SELECT COUNT(*) FROM t FOR UPDATE", "COUNT", "LOCKS", "no LOCKS"),
    ("SELECT COUNT(*) FROM t WHERE age < 0", "age", "age < 0", "is 0 for every table"),
    ("SELECT COUNT(*) FROM t WHERE age < 9 AND age > 9", "age", "age < 9 AND age > 9", "for every table"),
    ("SELECT COUNT(*) FILTER (WHERE age > 200), COUNT(*) FROM t", "age", "age > 200", "for every table"),
    ("SELECT COUNT(nullif(age, age)) FROM t", "COUNT", "COUNT(NULLIF(age, age))", "for every table"),
    ("SELECT COUNT(*) FROM t WHERE hours > 20", "hours", "hours > 20", "`hours >= 20`"),
    ("SELECT COUNT(*) FROM t WHERE 20 >= hours", "20", "20 >= hours", "`hours < 20`"),
    ("SELECT COUNT(*) FROM t WHERE hours < 17", "hours", "hours < 17", "near it: 15 or 20"),
    ("SELECT COUNT(*) FROM t WHERE hours < 100", "hours", "hours < 100", "`hours <= 100`: the last"),
    ("SELECT COUNT(*) FROM t WHERE hours >= 100", "hours", "hours >= 100", "`hours >= 95`: the last bin of"),
    ("SELECT COUNT(*) FROM t WHERE income BETWEEN 0 AND 15", "income", "0 AND 15", "near it: 10 or 20"),
    ("SELECT COUNT(*) FROM t WHERE hours < state", "hours", "hours < state", "compared with its edges"),
    ("SELECT COUNT(*) FROM t WHERE hours + 1 < 20", "hours", "hours + 1", "`hours >= 0 AND hours < 5`"),
    ("SELECT COUNT(*) FROM t WHERE hours < 'many'", "'many'", "'many'", "expected a number"),
    ("SELECT COUNT(*) FROM t WHERE hours BETWEEN SYMMETRIC 20 AND 0", "hours", "hours", "compared with"),
    ("SELECT AVG(age) FROM t", "AVG", "AVG(age)", "`mean: age"),
    ("SELECT SUM(hours) FROM t", "SUM", "SUM(hours)", "`sum: hours"),
    ("SELECT COUNT(*) FROM t WHERE age + hours > 3", "hours", "age + hours", "compared with its edges"),
    ("SELECT STDDEV(age) FROM t", "STDDEV", "STDDEV(age)", "expected COUNT(*), COUNT(*) FILTER"),
    ("SELECT COUNT(*) / 2 FROM t", "COUNT", "COUNT(*)", "a count alone; ask for the counts"),
    ("SELECT COUNT(DISTINCT age) FROM t", "COUNT", "COUNT(DISTINCT age)", "no distinct values"),
    ("SELECT SUM(age) FROM t", "SUM", "SUM(age)", "a sum of 1 and 0"),
    ("SELECT sex, RANK() OVER (ORDER BY sex), COUNT(*) FROM t GROUP BY 1", "RANK", "RANK()", "no window"),
    ("SELECT * FROM t", "*", "*", "a release has counts, and no records"),
    ("SELECT sex FROM t GROUP BY sex", "sex", "a SELECT that counts nothing", "at least one of COUNT(*)"),
    ("SELECT sex, COUNT(*) FROM t", "sex", "sex", "it in GROUP BY too"),
    ("SELECT COUNT(*) FROM t GROUP BY 'x'", "'x'", "'x'", "an expression of attributes"),
    ("SELECT sex, COUNT(*) FROM t GROUP BY 3", "3", "3", "a column from 1 to 2"),
    ("SELECT sex, COUNT(*) FROM t GROUP BY 2", "2", "2", "a count is no key"),
    ("SELECT sex, COUNT(*) n FROM t GROUP BY n", "n", "n", "a count is no key"),
    ("SELECT sex, COUNT(*) FROM t GROUP BY sexx", "sexx", "'sexx'", "did you mean 'sex'?"),
    ("SELECT COUNT(*) FROM t GROUP BY CUBE (" + ", ".join(["sex"] * 40) + ")", "sex", "2^40", "list"),
    ("SELECT COUNT(*) FROM t GROUP BY " + "CUBE (sex, age), " * 8 + "CUBE (sex)", "sex", "131,072", "most"),
    ("SELECT sex, COUNT(*) FROM t GROUP BY sex WITH TOTALS", "sex", "TOTALS", "ROLLUP"),
    ("SELECT COUNT(*) FROM t JOIN u ON t.a = u.a", "u ", "JOIN u", "one table; join beforehand"),
    ("SELECT COUNT(*) FROM t, u", "u", ", u", "one table; join beforehand"),
    ("SELECT COUNT(*) FROM (SELECT 1)", "1", "(SELECT 1)", "the name of one table"),
    ("SELECT COUNT(*) FROM read_csv('x.csv')", "read_csv", "READ_CSV('x.csv'", "the name of one table"),
    ("SELECT COUNT(*) FROM t TABLESAMPLE 10%", "t ", "t TABLESAMPLE", "the name of a table alone"),
    ("SELECT COUNT(*)", "COUNT", "no FROM", "FROM and a name for the table"),
    ("WITH a AS (SELECT 1) SELECT COUNT(*) FROM a", "a AS", "WITH a AS", "there are no subqueries"),
    ("SELECT COUNT(*) FROM t LIMIT 3", "3", "LIMIT 3", "every group is answered; take those you need"),
    ("SELECT COUNT(*) FROM t ORDER BY 1", "1", "ORDER BY 1", "sort the answers"),
    ("SELECT COUNT(*) FROM t HAVING COUNT(*) > 3", "COUNT(*) >", "HAVING", "filter the answers"),
    ("SELECT DISTINCT sex FROM t", "sex", "DISTINCT", "COUNT(*) with GROUP BY"),
    ("SELECT COUNT(*) FROM t USING SAMPLE 10%", "10", "SAMPLE", "expected no"),
    ("SELECT COUNT(*) FROM a UNION ALL SELECT COUNT(*) FROM b", "SELECT", "UNION", "by a semicolon"),
    ("SELECT COUNT(*) FRM t", "t", "'t'", "SQL that DuckDB can read"),
    ("SELECT COUNT(*\nFROM t", "FROM", "'FROM'", "SQL that DuckDB can read"),
    ("DELETE FROM t", "DELETE", "'DELETE'", "SQL that DuckDB can read"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "at", "found", "expected"), REFUSED, ids=[row[0][:60] for row in REFUSED])
def test_statements_are_refused_at_their_place(text: str, at: str, found: str, expected: str) -> None:
    with pytest.raises(EntryError) as caught:
        read(text).query(DOMAIN)
    problem = caught.value.problem
    assert problem is not None
    start = text.rindex(at) if at in ("t", "3", "2", "1", "n") or "TOTALS" in text else text.index(at)
    line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
    assert f"(line {line}, column {column})" in problem.found
    assert found in problem.found
    assert expected in str(problem)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "^sql: found no statement"),
        ("SELECT MAX(age) FROM t", r"^sql: found MAX\(age\) \(line 1, .*`quantile: {age"),
        ("-- nothing", "^sql: found no statement"),
        ("SELECT 'x", "^sql: found a quote or a comment that is not closed"),
        ("SELECT " + "(" * 3000 + "1" + ")" * 3000, "^sql: found expressions nested too deeply"),
        ("SELECT COUNT(*) FROM t WHERE " + "NOT " * 400 + "age > 3", "nested too deeply|whatever|expected"),
        ("SELECT 1" + " " * 5_000_000, "^sql: found a text of 5,000,008 characters"),
        ("SELECT COUNT(*) FROM a;\nSELECT COUNT(*) FROM b", r"^sql: found 2 statements \(line 2, column 1\)"),
    ],
)
def test_texts_that_are_no_statement(text: str, message: str) -> None:
    with pytest.raises(EntryError, match=message):
        read(text).query(DOMAIN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT COUNT(*) FROM t WHERE wide < wider", "found a condition on the 100,000,000 cells of wide"),
        ("SELECT COUNT(*) FROM t WHERE (sex = 'male' OR wide < 9) AND (age < 9 OR hours < 5)",
         r"^sql: found conditions that join sex, age, hours, wide, 46,000,000 cells \(line 1, column"),
        ("SELECT wide, COUNT(*) FROM t WHERE age < 9 OR sex = 'male' GROUP BY wide",
         r"^sql: found 10,000 queries over the 2,300,000 cells of sex, age, wide \(line 1, column 14\)"),
    ],
)  # fmt: skip
def test_what_is_too_large_is_told_with_its_place(text: str, message: str) -> None:
    with pytest.raises(TooLargeError, match=message):
        read(text).query(DOMAIN)


def test_results_of_too_many_rows_are_refused_where_they_are_made() -> None:
    query = read("SELECT wide, wider, COUNT(*) FROM t GROUP BY wide, wider").query(DOMAIN)
    assert query.groups[0].queries == 10**8
    with pytest.raises(TooLargeError, match=r"^sql: found a result of 100,000,000 rows"):
        _ = query.keys


def test_places_are_those_in_the_whole_text() -> None:
    first, second = read_all("SELECT COUNT(*) FROM t;\n\n-- é\nSELECT COUNT(*) FROM t WHERE agé > 3")
    assert first.query(DOMAIN).groups[0].queries == 1
    with pytest.raises(EntryError, match=r"found 'agé' \(line 4, column 30\)"):
        second.query(DOMAIN)
