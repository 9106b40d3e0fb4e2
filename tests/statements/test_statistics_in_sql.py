"""SQL in a workload asks for the statistics of YAML; its intervals hold; what to know is noted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.language import read_entry
from matrixdp.specification import load_specification
from matrixdp.statistics import StatisticEntry

DOMAIN = mdp.Domain(
    {
        "sex": ["female", "male"],
        "age": {"min": 0, "max": 19, "null": "unknown"},
        "pay": {"edges": [0, 10, 20, 50]},
        "level": {"min": 1, "max": 4},
    }
)
RANDOM = np.random.default_rng(3)
TABLE: dict[str, Any] = {
    "sex": RANDOM.choice(["female", "male"], 2000),
    "age": [None if age == 20 else int(age) for age in RANDOM.integers(0, 21, 2000)],
    "pay": RANDOM.uniform(0, 50, 2000),
    "level": RANDOM.integers(1, 5, 2000),
}
SAME = {
    "SELECT AVG(age) FROM t": {"mean": "age"},
    "SELECT sex, SUM(pay) FROM t GROUP BY sex": {"sum": "pay", "by": ["sex"]},
    "SELECT AVG(age) FILTER (WHERE sex = 'male') FROM t": {"mean": "age", "where": {"sex": "male"}},
    "SELECT level // 3 AS l, AVG(pay) FROM t WHERE age BETWEEN 3 AND 9 GROUP BY l": {
        "mean": "pay",
        "by": {"level": {"ranges": [[1, 2], [3, 4]]}},
        "where": {"age": {"range": [3, 9]}},
    },
    "SELECT AVG(pay) FROM t WHERE pay >= 10 AND level <> 2": {
        "mean": "pay",
        "where": {"pay": [10, 20], "level": [1, 3, 4]},
    },
}


def released(workload: mdp.Workload, mu: float = 1.0) -> mdp.Release:
    return mdp.select(workload).measure(TABLE, mdp.Budget(mu=mu)).reconstruct()


@pytest.mark.parametrize("text", SAME)
def test_a_statement_becomes_the_statistic_of_yaml(text: str) -> None:
    """The same groups are measured, and a release answers both to the last digit."""
    asked, same = (mdp.Workload(DOMAIN, entry) for entry in (mdp.sql(text), read_entry(SAME[text])))
    [entry] = asked.entries
    assert isinstance(entry, StatisticEntry)
    assert [type(entry).__name__] == [type(own).__name__ for own in same.entries]
    for mine, other in zip(asked, same, strict=True):
        assert (mine.attributes, mine.weight) == (other.attributes, other.weight)
        np.testing.assert_array_equal(mine.rows(), other.rows())
    release = released(asked)
    [table] = release.statistics.values()
    found = release.sql(text)
    last = next(name.removesuffix("_lower") for name in found.column_names if name.endswith("_lower"))
    for figure, ending in {"estimate": "", "stddev": "_stddev", "lower": "_lower", "upper": "_upper"}.items():
        assert table[figure].to_pylist() == found[f"{last}{ending}"].to_pylist()


SEVERAL = (
    "SELECT sex, COUNT(*) AS n, AVG(age) AS a, 100.0 * COUNT(*) FILTER (WHERE level > 2) / COUNT(*) AS high "
    "FROM t GROUP BY ROLLUP (sex) HAVING SUM(level) > 0; "
    "SELECT STDDEV(level) FROM t WHERE age > 3 OR sex = 'male'"
)


def test_each_statistic_of_an_entry_is_a_table_that_survives_the_folder(tmp_path: Path) -> None:
    release = released(mdp.Workload(DOMAIN, mdp.sql(SEVERAL)))
    titles = [one.title for one in release.tables]
    assert titles == [
        "n: sex", "a: mean of age by sex", "high: sex", "sum of level by sex",
        "n: total", "a: mean of age", "high: total", "sum of level",
        "STDDEV(level): total where age > 3 OR sex = 'male'",
    ]  # fmt: skip
    assert release.table("high: sex").column_names[:4] == ["sex", "estimate", "stddev", "lower"]
    release.save(tmp_path / "out")
    again = mdp.load_release(tmp_path / "out")
    assert [one.title for one in again.tables] == titles
    assert mdp.verify_release(tmp_path / "out").holds
    for text in SEVERAL.split(";"):
        assert again.sql(text).to_arrow().equals(release.sql(text).to_arrow(), check_metadata=True)
    named = mdp.Workload(DOMAIN, mdp.sql("SELECT AVG(age) AS a FROM t", name="mine", weight=4.0))
    assert [(own.name, own.weight) for own in named.entries] == [("mine", 4.0)]  # type: ignore[attr-defined]


def test_persons_are_counted_where_the_unit_makes_them_records() -> None:
    text = "domain: {age: 9}\nunit: {id: person, max_records: 1}\n"
    text += "workload:\n  - sql: SELECT COUNT(DISTINCT person) AS p, COUNT(person) FROM t\n"
    workload = load_specification(text).workload
    assert [group.name for group in workload] == ["p: total", "COUNT(person): total"]
    assert all(group.queries == 1 and not group.attributes for group in workload)


def test_what_to_know_is_noted() -> None:
    release = released(mdp.Workload(DOMAIN, mdp.marginals([["sex", "pay"], ["level"]])), mu=0.01)

    def notes(text: str) -> str:
        return str(json.loads(release.sql(text).schema.metadata[b"matrixdp"])["notes"])

    assert notes("SELECT sex, COUNT(*) FROM t GROUP BY sex HAVING sex = 'male' ORDER BY sex") == "[]"
    assert "depends on the noise" in notes("SELECT sex, COUNT(*) FROM t GROUP BY sex HAVING COUNT(*) > 3")
    assert "may be off by" in notes("SELECT AVG(pay) FROM t")
    assert "middles of their bins" in notes("SELECT 2 * AVG(pay) FROM t")
    assert "approximation" in notes("SELECT VAR_POP(level) FROM t")
    apart = "(COUNT(*) FILTER (WHERE pay < 10) - COUNT(*) FILTER (WHERE pay < 10 AND sex = 'male') * 2)"
    assert "1 of 1 denominators" in notes(f"SELECT COUNT(*) / {apart} FROM t")  # noqa: S608


def test_sums_of_filters_that_overlap_know_what_they_share() -> None:
    release = released(mdp.Workload(DOMAIN, mdp.marginals([["level"]])), mu=1)
    low, middle = "COUNT(*) FILTER (WHERE level <= 2)", "COUNT(*) FILTER (WHERE level BETWEEN 2 AND 3)"
    found = release.sql(f"SELECT level, {low} + {middle} AS n FROM t GROUP BY level")  # noqa: S608
    one = release.table("level")["stddev"].to_numpy()
    assert np.allclose(found["n_stddev"].to_numpy(), one * [1, 2, 1, 0])


RATES = {
    "SELECT AVG(level) - SUM(level) / 100 AS x FROM t": lambda level, male: level.mean() - level.sum() / 100,
    "SELECT COUNT(*) FILTER (WHERE sex = 'male') / SUM(level) AS x FROM t": lambda level, male: (
        male / level.sum()
    ),
    "SELECT VAR_SAMP(level) AS x FROM t": lambda level, male: level.var(ddof=1),
    "SELECT STDDEV_POP(level) AS x FROM t": lambda level, male: level.std(),
    "SELECT SQRT(COUNT(*)) AS x FROM t": lambda level, male: np.sqrt(len(level)),
    "SELECT POWER(AVG(level), 2) AS x FROM t": lambda level, male: level.mean() ** 2,
}


def test_intervals_cover() -> None:
    """About 95% of intervals hold over releases of 400 records, and errors are what they say."""
    level, sex = TABLE["level"][:400], TABLE["sex"][:400]
    domain = mdp.Domain({"sex": ["female", "male"], "level": {"min": 1, "max": 4}})
    strategy = mdp.select(mdp.Workload(domain, mdp.marginals(2)))
    truths = [truth(level, (sex == "male").sum()) for truth in RATES.values()]
    held, errors = np.zeros(len(RATES)), np.zeros(len(RATES))
    for seed in range(150):
        release = strategy.measure(
            {"sex": sex, "level": level}, mdp.Budget(mu=0.5), seed_not_private=seed
        ).reconstruct()
        for place, (text, truth) in enumerate(zip(RATES, truths, strict=True)):
            [row] = release.sql(text).to_pylist()
            held[place] += row["x_lower"] <= truth <= row["x_upper"]
            errors[place] += ((row["x"] - truth) / row["x_stddev"]) ** 2
    assert ((held / 150 > 0.91) & (held / 150 < 0.985)).all(), held
    assert ((errors / 150 > 0.8) & (errors / 150 < 1.35)).all(), errors


@pytest.mark.parametrize(
    "text",
    [
        'SELECT AVG(level) AS "a; DROP TABLE t" FROM t -- a comment; SELECT 1',
        'SELECT AVG(level) AS "naïve ü" /* ; */ FROM "t; t" LIMIT 99999999999999999999999999',
        "SELECT ((((((AVG(((level))))))))) AS a FROM t ORDER BY ((a)) OFFSET 0",
        "SELECT AVG(level) AS a, 'it''s; --' AS note FROM t HAVING 'x;' <> 'y' LIMIT 1",
    ],
)
def test_odd_texts_are_answered_right(text: str) -> None:
    release = released(mdp.Workload(DOMAIN, mdp.marginals([["level"]])), mu=9e3)
    [row] = release.sql(text).to_pylist()
    assert next(iter(row.values())) == pytest.approx(TABLE["level"].mean(), abs=1e-2)
    assert release.sql("SELECT AVG(level) FROM t LIMIT 0").num_rows == 0


def test_averages_of_amounts_leave_missing_ones_out():
    pay = {"amount": [0, 40_000], "null": "none"}
    workload = mdp.Workload(mdp.Domain({"pay": pay}), mdp.ask.mean("pay"))
    table = {"pay": [100, 250, None, 99_999]}
    release = mdp.select(workload).measure(table, mdp.Budget(mu=2000)).reconstruct()
    [row] = release.sql("SELECT AVG(pay) AS mean, COUNT(pay) AS n FROM t").to_pylist()
    assert row["mean"] == pytest.approx(40_350 / 3, rel=0.01)
    assert row["n"] == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize(
    ("aggregate", "unit"),
    [
        ("AVG(CASE WHEN age > 3 THEN 1 ELSE 0 END)", "share"),
        ("AVG(CASE WHEN age > 3 THEN 0 ELSE 1 END)", "share"),
        ("AVG(CASE WHEN age > 3 THEN 1 ELSE 0 END) * 2", "values"),
        ("AVG(age) / 2", "values"),
    ],
)
def test_an_average_of_zeros_and_ones_is_a_share(aggregate: str, unit: str) -> None:
    asked = mdp.sql(f"SELECT sex, {aggregate} AS p FROM t GROUP BY sex")  # noqa: S608
    workload = mdp.Workload(mdp.Domain({"sex": ["f", "m"], "age": range(8)}), asked)
    measured = mdp.select(workload).measure({"sex": ["f"], "age": [4]}, mdp.Budget(rho=1))
    assert measured.reconstruct().tables[0].unit == unit


def by_sex(release: mdp.Release, asked: str) -> list[dict[str, float]]:
    """Return the figures of an expression as the rows of a result."""
    rows = release.sql(f"SELECT sex, {asked} AS n FROM t GROUP BY sex").to_pylist()  # noqa: S608 - no data
    return [{name.removeprefix("n_"): row[name] for name in row if name != "sex"} for row in rows]


def test_standard_errors_of_quotients_by_constants_are_above_0() -> None:
    release = released(mdp.Workload(DOMAIN, mdp.marginals([["sex", "level"]])))
    for plain, half in zip(by_sex(release, "COUNT(*)"), by_sex(release, "COUNT(*) / -2"), strict=True):
        assert half["n"] == -plain["n"] / 2
        assert half["stddev"] == pytest.approx(plain["stddev"] / 2, rel=1e-12)
        assert (half["lower"], half["upper"]) == pytest.approx(
            (-plain["upper"] / 2, -plain["lower"] / 2), rel=1e-12
        )


@pytest.mark.parametrize("sign", [1, -1])
def test_a_count_that_can_only_be_0_adds_no_error(sign: int) -> None:
    """Of women no man is counted, and of men all, so that the difference is a count of its own."""
    release = released(mdp.Workload(DOMAIN, mdp.marginals([0, ["sex"], ["level"], ["sex", "level"]])))
    high, men = "COUNT(*) FILTER (WHERE level > 2)", "COUNT(*) FILTER (WHERE sex = 'male')"
    found = by_sex(release, f"{high} - {men}" if sign > 0 else f"{men} - {high}")
    women, men_below = by_sex(release, high)[0], by_sex(release, "COUNT(*) FILTER (WHERE level <= 2)")[1]
    for own, same, times in zip(found, (women, men_below), (sign, -sign), strict=True):
        assert own["n"] == pytest.approx(times * same["n"], abs=1e-9)
        assert own["stddev"] == pytest.approx(same["stddev"], rel=1e-9)


def test_rounded_figures_have_the_errors_and_the_rounded_ends_of_what_is_rounded() -> None:
    release = released(mdp.Workload(DOMAIN, mdp.marginals([["sex", "level"]])), mu=0.1)
    plain = by_sex(release, "COUNT(*)")
    for asked, step in (
        ("ROUND(COUNT(*), -1)", 10.0),
        ("ROUND(COUNT(*))", 1.0),
        ("CAST(COUNT(*) AS INT)", 1.0),
    ):
        for own, exact in zip(by_sex(release, asked), plain, strict=True):
            assert own["stddev"] == exact["stddev"]
            for name in ("n", "lower", "upper"):
                assert own[name] == np.round(exact[name] / step) * step


def test_numbers_around_rounded_figures_carry_the_interval_and_the_error_of_what_is_rounded() -> None:
    """Rounding to tens as offices write it: no figure is exact because it was rounded."""
    release = released(mdp.Workload(DOMAIN, mdp.marginals([["sex", "level"]])), mu=0.1)
    plain = by_sex(release, "COUNT(*)")
    for asked, function, factor in (
        ("ROUND(COUNT(*) / 10) * 10", lambda x: np.round(x / 10) * 10, 1.0),
        ("100 * ROUND(COUNT(*) / 100.0)", lambda x: np.round(x / 100) * 100, 1.0),
        ("1 - FLOOR(COUNT(*))", lambda x: 1 - np.floor(x), 1.0),
        ("-CEIL(COUNT(*) * 2)", lambda x: -np.ceil(x * 2), 2.0),
        ("ROUND(CAST(COUNT(*) AS INTEGER) / 2.0)", lambda x: np.round(np.round(x) / 2), 0.5),
        ("COALESCE(ROUND(COUNT(*)), 0) * -3", lambda x: np.round(x) * -3, 3.0),
    ):
        for own, exact in zip(by_sex(release, asked), plain, strict=True):
            assert own["stddev"] == pytest.approx(factor * exact["stddev"], rel=1e-9)
            ends = sorted(function(exact[name]) for name in ("lower", "upper"))
            assert [own["n"], own["lower"], own["upper"]] == pytest.approx([function(exact["n"]), *ends])
    root = by_sex(release, "SQRT(ROUND(COUNT(*)))")
    assert all(row["stddev"] > 0 and row["lower"] < row["n"] < row["upper"] for row in root)


def test_roots_beside_0_have_intervals_that_hold_or_none() -> None:
    """Of 2,000 counts of 0, as many are missed as a confidence of 95% allows, however a root is written."""
    strategy = mdp.select(mdp.Workload(mdp.Domain({"a": range(2000)}), mdp.marginals(1)))
    release = strategy.measure({"a": [0]}, mdp.Budget(rho=0.5), seed_not_private=1).reconstruct()
    for asked in (
        "SELECT a, SQRT(COUNT(*)) * 2 AS n FROM t WHERE a > 0 GROUP BY a",
        "SELECT a, POWER(COUNT(*), 1 / 2) AS n FROM t WHERE a > 0 GROUP BY a",
        "SELECT a, POWER(COUNT(*), 2) AS n FROM t WHERE a > 0 GROUP BY a",
    ):
        table = release.sql(asked).to_arrow()
        lower, upper = (table[name].to_numpy() for name in ("n_lower", "n_upper"))
        assert np.mean((lower > 1e-9) | (upper < -1e-9)) < 0.05
        assert np.mean(np.isfinite(lower)) > 0.01


def test_a_function_without_a_slope_has_no_error_of_0() -> None:
    """A spread that noise hides is estimated at 0, and so is the square of a difference that it hides."""
    strategy = mdp.select(mdp.Workload(DOMAIN, mdp.marginals([["sex", "level"], ["sex", "age"]])))
    release = strategy.measure(TABLE, mdp.Budget(mu=0.004), seed_not_private=1).reconstruct()
    seen = 0
    for where in ("level", "age"):
        for asked in (f"STDDEV_POP({where})", f"1 + STDDEV_POP({where})", f"STDDEV_POP({where}) / COUNT(*)"):
            for row in by_sex(release, asked):
                hidden = row["n"] in (None, 0.0, 1.0)
                seen += hidden
                assert row["stddev"] is None or row["stddev"] > 0
                if row["stddev"] is not None and asked.startswith("STDDEV") and "/" not in asked:
                    half = (row["upper"] - row["lower"]) / 2
                    assert row["stddev"] == pytest.approx(half / 1.959964, rel=1e-6)
                assert (row["stddev"] is None) == (row["lower"] is None) == (row["upper"] is None)
        # beside an error that is known the root of what may be 0 still has none
        spreads, sums = (by_sex(release, f"{count}STDDEV_POP({where})") for count in ("", "COUNT(*) + "))
        for spread, added in zip(spreads, sums, strict=True):
            assert (added["stddev"] is None) == (not spread["lower"])
    assert seen
    for row in by_sex(release, "POWER(COUNT(*) - COUNT(*), 2)"):
        assert row == {"n": 0.0, "stddev": None, "lower": None, "upper": None}
