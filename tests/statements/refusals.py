# ruff: noqa: S608 - statements, none of which is executed
"""SQL that is no workload of counts, refused where it stands with the nearest thing that works."""

from collections.abc import Callable
from pathlib import Path

import matrixdp as mdp
from matrixdp.language import read_entry
from matrixdp.specification import load_specification
from matrixdp.statements import read, read_all
from matrixdp.statements.translation import translate
from tests.refusals import Refusal

DOMAIN = mdp.Domain(
    {
        "sex": ["female", "male"],
        "age": range(115),
        "hours": {"min": 0, "max": 100, "bins": 20},
        "income": {"edges": [0, 10, 20]},
        "state": {"categories": ["NY", "NJ", "CA"], "levels": {"coast": {"E": ["NY", "NJ"], "W": ["CA"]}}},
        "day": {"from": "2013-01-30", "to": "2013-05-10", "by": "day"},
        "month": {"from": "2013-01-30", "to": "2013-05-10", "by": "month", "column": "day"},
        "wide": 10_000,
        "wider": 10_000,
        "pay": {"amount": [0, 40_000]},
    }
)
CONDITIONS = [
    "agee > 3", "coas = 'E'", "coast IN ('N', 'W')", "state = 'ny'", "age IN (3, 300)", "age = 1_000",
    "CASE state WHEN 'TX' THEN age > 3 END", "age IS NULL", "random() < 0.5", "getenv('HOME') = state",
    "age = ANY([1, 2])", "age::DECIMAL(3, 1) > 3", "age IN (SELECT 3)", "COUNT(*) > 3", "age > 3 AND FALSE",
    "age < 0", "age < 9 AND age > 9", "hours > 20", "20 >= hours", "hours < 17", "hours < 100",
    "hours >= 100", "income BETWEEN 0 AND 15", "hours < state", "hours + 1 < 20", "hours < 'many'",
    # a month is neither its first day nor another one, and days within it do not divide it
    "NOT month = '2013-02-01'", "month < '2013-02-15'", "month > '2013-02-27'", "month < 'x'", "month < day",
    "month < TIMESTAMP '2013-02-01 12:00:00'", "pay > 5000",
]  # fmt: skip
STATEMENTS = [
    # the squares of an amount do not follow from its ends
    "SELECT VAR_POP(pay) FROM t", "SELECT sex, STDDEV(pay) FROM t GROUP BY sex",
    "", "SELECT 'x", "SELECT " + "(" * 3000 + "1" + ")" * 3000, "SELECT 1" + " " * 5_000_000,
    "SELECT COUNT(*) FROM a;\nSELECT COUNT(*) FROM b", "SELECT COUNT(*) FROM t p WHERE t.age > 3",
    "SELECT COUNT(*) FROM t FOR UPDATE", "SELECT COUNT(*) FILTER (WHERE age > 200), COUNT(*) FROM t",
    "SELECT COUNT(nullif(age, age)) FROM t", "SELECT MAX(age) FROM t", "SELECT AVG(state) FROM t",
    "SELECT SUM(Age + hours) FROM t", "SELECT SUM(age * 2) FROM t", "SELECT STDDEV(day) FROM t",
    "SELECT AVG(coast) FROM t", "SELECT SUM(DISTINCT age) FROM t", "SELECT VAR(*) FROM t",
    "SELECT CORR(age, hours) FROM t", "SELECT SUM(SUM(age)) FROM t",
    "SELECT age * COUNT(*) FROM t GROUP BY age",
    "SELECT COUNT(*) % 2 FROM t", "SELECT CASE WHEN COUNT(*) > 1 THEN 1 END FROM t",
    "SELECT COUNT(*) + 1e999 FROM t", "SELECT AVG(age)::TEXT FROM t", "SELECT ROUND(AVG(age), age) FROM t",
    # a step has no slope: its error would be 0
    "SELECT CAST(COUNT(*) AS INTEGER) / COUNT(*) FROM t", "SELECT (ROUND(AVG(age)) + AVG(age)) / 2 FROM t",
    "SELECT 1 / ROUND(AVG(age)) FROM t", "SELECT POWER(ROUND(COUNT(*), -1), 2) FROM t",
    "SELECT COUNT(*) // 10 FROM t",
    "SELECT SIGN(COUNT(*)) FROM t",
    "SELECT TRUNC(AVG(age)) FROM t", "SELECT ABS(AVG(age)) FROM t", "SELECT GREATEST(COUNT(*), 3) FROM t",
    "SELECT COUNT(*) > 3 FROM t",
    "SELECT COUNT(DISTINCT age) FROM t", "SELECT COUNT(DISTINCT person) FROM t",
    "SELECT COUNT(person) FROM t",
    "SELECT sex, RANK() OVER (ORDER BY sex), COUNT(*) FROM t GROUP BY 1", "SELECT * FROM t",
    "SELECT sex FROM t GROUP BY sex", "SELECT sex, COUNT(*) FROM t", "SELECT COUNT(*) FROM t GROUP BY 'x'",
    "SELECT sex, COUNT(*) FROM t GROUP BY 3", "SELECT sex, COUNT(*) FROM t GROUP BY 2",
    "SELECT sex, COUNT(*) n FROM t GROUP BY n", "SELECT sex, COUNT(*) FROM t GROUP BY sexx",
    "SELECT COUNT(*) FROM t GROUP BY CUBE (" + ", ".join(["sex"] * 40) + ")",
    "SELECT COUNT(*) FROM t GROUP BY " + "CUBE (sex, age), " * 8 + "CUBE (sex)",
    "SELECT sex, COUNT(*) FROM t GROUP BY sex WITH TOTALS", "SELECT COUNT(*) FROM t, u",
    "SELECT COUNT(*) FROM read_csv('x.csv')", "SELECT COUNT(*) FROM t TABLESAMPLE 10%", "SELECT COUNT(*)",
    "WITH a AS (SELECT 1) SELECT COUNT(*) FROM a", "SELECT COUNT(*) FROM t LIMIT -3",
    "SELECT COUNT(*) FROM t LIMIT 1 + 1", "SELECT COUNT(*) FROM t LIMIT 10%",
    "SELECT COUNT(*) FROM t OFFSET x",
    "SELECT COUNT(*) FROM t ORDER BY 2", "SELECT COUNT(*) FROM t ORDER BY random()",
    "SELECT COUNT(*) FROM t ORDER BY (SELECT 1)", "SELECT COUNT(*) FROM t HAVING sex = 'male'",
    "SELECT COUNT(*) FROM t HAVING COUNT(*) > (SELECT 3)", "SELECT COUNT(*) FROM t QUALIFY 1 = 1",
    "SELECT DISTINCT sex FROM t", "SELECT COUNT(*) FROM t USING SAMPLE 10%",
    "SELECT COUNT(*) FROM a UNION ALL SELECT COUNT(*) FROM b", "SELECT COUNT(*) FRM t",
    "SELECT COUNT(*\nFROM t", "DELETE FROM t",
]  # fmt: skip
TOO_LARGE = [
    "SELECT COUNT(*) FROM t WHERE wide < wider",
    "SELECT COUNT(*) FROM t WHERE (sex = 'male' OR wide < 9) AND (age < 9 OR hours < 5)",
    "SELECT wide, COUNT(*) FROM t WHERE age < 9 OR sex = 'male' GROUP BY wide",
    "SELECT wide, wider, COUNT(*) FROM t GROUP BY wide, wider",  # as soon as the rows are made
]
FILES: dict[str, bytes | None] = {
    "absent": None,
    "not UTF-8": b"\xff",
    "a column": b"SELECT\nCOUNT(*) FROM t WHERE agee > 3",
    "syntax": b"SELECT COUNT(*) FRM t",
}


def statement(text: str, code: str = "workload") -> Refusal:
    return Refusal(
        text[:70].replace("\n", " ") or "no text", code, "sql", lambda: translate(read(text), DOMAIN).keys
    )


def file(content: bytes | None) -> Callable[[Path], object]:
    def attempt(folder: Path) -> object:
        if content is not None:
            (folder / "queries.sql").write_bytes(content)
        text = "domain: {age: 9}\nworkload:\n  - sql_file: queries.sql\n"
        return load_specification(text, base_path=folder)

    return attempt


def persons(folder: Path) -> object:
    text = "domain: {age: 9}\nunit: {id: person, max_records: 3}\n"
    text += "workload:\n  - marginals: 1\n  - sql: SELECT COUNT(DISTINCT person) FROM t\n"
    return load_specification(text, base_path=folder)


ALL = "SELECT COUNT(*) FROM t"
BOTH = mdp.sql(f"{ALL}; {ALL}", weights=[1])
TWO = "SELECT COUNT(*) FROM t;\n\n-- é\nSELECT COUNT(*) FROM t WHERE agé > 3"
REFUSALS = [
    *(statement("SELECT COUNT(*) FROM t WHERE " + condition) for condition in CONDITIONS),
    *(statement(text) for text in STATEMENTS),
    *(statement(text, "too-large") for text in TOO_LARGE),
    Refusal("the second of two", "workload", "sql", lambda: translate(read_all(TWO)[1], DOMAIN)),
    Refusal("weights of two", "wrong-size", "weights", lambda: BOTH.expand(DOMAIN)),
    Refusal(
        "statistics inside a ratio",
        "workload",
        "sql",
        lambda: mdp.sql("SELECT AVG(age) FROM t").expand(DOMAIN),
    ),
    Refusal("several records of a person", "conflict", "workload[1].sql", persons, line=5),
    Refusal("no file", "wrong-type", "sql_file", lambda: read_entry({"sql_file": 3})),
    *(
        Refusal(f"file: {name}", "specification", "workload[0].sql_file", file(content), line=3)
        for name, content in FILES.items()
    ),
]
