"""Statistics of a series: each row is published when its last period is over, and never revised."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from tests.cli.commands import run

MONTHS = [f"2024-{month:02}" for month in (10, 11, 12)] + [f"2025-{month:02}" for month in range(1, 13)]
ONE, TWO = ({"product": {"month": "identity", "kind": {"sets": [[kind]]}}} for kind in "ab")
BY_MONTH: list[dict[str, Any]] = [
    {"mean": "cost", "by": ["month"], "name": "mean"},
    {"sum": "cost", "by": ["month"], "name": "sum"},
    {"variance": "cost", "by": ["month"], "name": "variance"},
    {"quantile": {"cost": [0.25, 0.5]}, "by": ["month"], "where": {"kind": ["a"]}, "name": "quantile"},
    {"cdf": "cost", "by": ["month"], "name": "cdf"},
    {"top": {"kind": 1}, "by": ["month"], "name": "top"},
    {"share": {"marginals": [["month", "kind"]]}, "of": ["month"], "name": "share"},
    {"ratio": {"numerator": ONE, "denominator": TWO}, "name": "ratio"},
    {"difference": {"left": ONE, "right": TWO}, "name": "difference"},
    {"simultaneous": {"marginals": [["month"]]}, "name": "simultaneous"},
    {"sql": "SELECT month, AVG(cost) - 1 FROM t GROUP BY month", "name": "sql"},
]
SPEC: dict[str, Any] = {
    "domain": {
        "month": {"from": "2024-10-01", "to": "2025-12-31", "by": "month", "levels": ["quarter", "year"]},
        "kind": ["a", "b", "c"],
        "cost": {"min": 0, "max": 5},
    },
    "workload": [
        {"marginals": [["month"]]},
        *BY_MONTH,
        {"percent_change": {"marginals": [["month"]]}, "over": "year", "name": "on a year before"},
        {"percent_change": {"marginals": [["quarter"]]}, "name": "on the quarter before"},
        {"mean": "cost", "by": ["year"], "name": "of a year"},
        {"mean": "cost", "where": {"month": {"range": ["2024-11", "2025-02"]}}, "name": "in winter"},
        {"share": {"marginals": [["month"]]}, "name": "of all"},
        {"mean": "cost", "name": "at the end"},
        {"combination": [[[1.0, 1, 1] + [0.0] * 12, {"marginals": [["month"]]}]], "name": "so far"},
    ],
    "series": "month",
}
RNG = np.random.default_rng(3)
TABLE = {
    "month": [f"{MONTHS[place]}-10" for place in RNG.integers(0, len(MONTHS), 6000)],
    "kind": RNG.choice([*"abc"], 6000).tolist(),
    "cost": RNG.integers(0, 6, 6000).tolist(),
}


def start(folder: Path, privacy: dict[str, float], **more: Any) -> mdp.Series:
    return mdp.Series.start({**SPEC, "privacy": privacy}, folder / "series", **more)


def figures(folder: Path) -> dict[Any, tuple[Any, ...]]:
    """Return the figures of all rows by what they are about and when they were published."""
    rows = pq.read_table(folder / "statistics.parquet").to_pylist()
    names = ("estimate", "stddev", "lower", "upper", "share", "share_stddev", "share_lower", "share_upper")
    found = {
        frozenset((name, value) for name, value in row.items() if value is not None and name not in names): (
            tuple(row.get(name) for name in names)
        )
        for row in rows
    }
    assert len(found) == len(rows)
    return found


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("privacy", [{"rho": 1}, {"epsilon": 2}], ids=["gaussian", "laplace"])
def test_rows_are_published_with_their_periods_and_never_revised(tmp_path: Path, privacy):
    series = start(tmp_path, privacy)
    rows = {row["table"]: row["queries"] for row in series.schedule().to_pylist()}
    earlier: dict[Any, tuple[Any, ...]] = {}
    for month in ("2024-12", "2025-11", "2025-12"):
        release = series.publish(TABLE, month)
        now = figures(series.folder)
        assert {key: now[key] for key in earlier} == earlier  # to the bit
        new = now.keys() - earlier.keys()
        assert {dict(key)["published"] for key in new} == {month}
        earlier, over = now, MONTHS.index(month) + 1
        tables = {one.name: one for one in release.tables if one.statistic is not None}
        for asked in BY_MONTH:
            one = tables[next(name for name in tables if name.startswith(asked["name"]))]
            assert one.rows == rows[one.name] // len(MONTHS) * over
            table = release.table(one)
            assert "month" not in table.column_names or {*table["month"].to_pylist()} == {*MONTHS[:over]}
        assert [name for name in ("of all", "at the end") if name in tables] == (
            ["of all", "at the end"] if month == MONTHS[-1] else []
        )
        assert ("in winter" in tables) == (over >= 5)
        assert ("so far" in tables) == (over >= 3)
        levels = {"of a year": (1, 1, 2), "on the quarter before": (0, 3, 4)}
        for name, numbers in levels.items():
            assert (len(release.table(name)) if name in tables else 0) == numbers[len(series.published) - 1]
    assert mdp.verify_release(series.folder).holds
    assert {row["table"]: row["published"] for row in series.schedule().to_pylist()} == rows


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> mdp.Release:
    return start(tmp_path_factory.mktemp("home"), {"rho": 1}).publish(TABLE, "2025-02")


def test_statistics_are_right_when_they_are_published(tmp_path: Path):
    series = start(tmp_path, {"rho": 1e7}, accept_weak_privacy=True)
    release = series.publish(TABLE, "2025-10")
    month = np.array([one[:7] for one in TABLE["month"]])
    cost, kind = np.array(TABLE["cost"]), np.array(TABLE["kind"])
    for row in release.table("mean").to_pylist():
        assert row["estimate"] == pytest.approx(cost[month == row["month"]].mean(), abs=0.01)
    for row in release.table("share").to_pylist():
        assert row["estimate"] == pytest.approx(
            (kind[month == row["month"]] == row["kind"]).mean(), abs=0.001
        )
    for row in release.table("on a year before").to_pylist():
        now = (month == row["month"]).sum()
        before = (month == f"{int(row['month'][:4]) - 1}{row['month'][4:]}").sum()
        assert row["estimate"] == pytest.approx(100 * (now / before - 1), abs=0.01)
    assert release.table("on a year before")["month"].to_pylist() == ["2025-10"]


def test_answers_are_those_of_the_periods_that_are_over(release: mdp.Release):
    by_year = release.answer({"marginals": [["year"]]})
    assert by_year["year"].to_pylist() == ["2024"]
    asked = release.answer({"mean": "cost", "by": ["month"]})
    assert asked.to_arrow().equals(release.table("mean").to_arrow())
    assert release.percent_change({"marginals": [["month"]]})["month"].to_pylist() == MONTHS[1:5]
    statement = "SELECT month, AVG(cost) AS mean, COUNT(*) AS n FROM t GROUP BY month"
    found = release.sql(statement)
    assert found["month"].to_pylist() == MONTHS[:5]
    assert found["mean"].to_pylist() == pytest.approx(asked["estimate"].to_pylist())
    counts = release.table("month")["estimate"].to_pylist()
    largest = release.sql(f"{statement} ORDER BY n DESC LIMIT 2")
    assert largest["n"].to_pylist() == pytest.approx(sorted(counts)[-1:-3:-1])
    combined = release.answer({"combination": [[np.eye(15).tolist(), {"marginals": [["month"]]}]]})
    said = json.loads(combined.to_arrow().schema.metadata[b"matrixdp"])
    assert (len(combined), np.shape(said["covariance"])) == (5, (5, 5))


def test_the_command_says_what_its_answers_are_through(release: mdp.Release, tmp_path: Path):
    told = run("answer", release.save(tmp_path / "out"), "marginals: [[year]]")
    assert "2024 " in told.stdout
    assert "2025 " not in told.stdout
    assert "Known through February 2025" in told.stdout


@pytest.mark.parametrize(
    "asked",
    [
        {"mean": "cost"},
        {"share": {"marginals": [["month"]]}},
        {"quantile": "month"},
        {"marginals": [["kind"]]},
        {"percent_change": {"marginals": [["month"]]}, "over": "year"},
        "SELECT kind, COUNT(*) FROM t GROUP BY kind",
        "SELECT AVG(cost) FROM t WHERE month >= '2024-12'",
    ],
)
def test_what_is_known_later_is_told_to_be(release: mdp.Release, asked):
    with pytest.raises(MatrixDPError) as caught:
        release.sql(asked) if isinstance(asked, str) else release.answer(asked)
    assert caught.value.code == "not-yet"


def test_a_publication_needs_a_table_of_its_own(tmp_path: Path):
    """Counts that only serve statistics are none."""
    asked = [{"mean": "cost", "by": ["year"]}, {"share": {"marginals": [["month"]]}}]
    series = mdp.Series.start({**SPEC, "workload": asked, "privacy": {"rho": 1}}, tmp_path / "series")
    with pytest.raises(MatrixDPError) as caught:
        series.publish(TABLE, "2024-11")
    assert caught.value.code == "out-of-range"
    release = series.publish(TABLE, "2024-12")
    assert [one.rows for one in release.tables] == [1]
    assert mdp.report_release(series.folder).startswith("<!doctype html>")
