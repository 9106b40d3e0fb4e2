"""What is looked at before a publication closes its periods, and what is told of what it measured."""

import json
import shutil
from pathlib import Path
from typing import Any, cast

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from matrixdp.locks import Lock
from matrixdp.measure import noisy_answers
from matrixdp.measure.statement import clauses
from matrixdp.releases import release_schema
from tests.release.stopping import fail, run
from tests.release.test_series import MONTHS, SPEC, TABLE

MISREAD = {**TABLE, "month": [day.replace("-", "/") for day in TABLE["month"]]}
SMALL = mdp.Budget(rho=0.02)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    lines = [f"{month},{sex}" for month, sex in zip(TABLE["month"], TABLE["sex"], strict=True)]
    (tmp_path / "people.csv").write_text("\n".join(["month,sex", *lines]))
    ledger = mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(rho=1))
    mdp.Series.start(SPEC, tmp_path / "series", ledger=ledger)
    return tmp_path


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def rejected(code: str, act: Any, *given: Any, **named: Any) -> MatrixDPError:
    with pytest.raises(MatrixDPError) as caught:
        act(*given, **named)
    assert caught.value.code == code
    return caught.value


def test_a_rehearsal_spends_and_writes_nothing(home: Path, monkeypatch):
    series, ledger = mdp.Series.open(home / "series"), home / "ledger"
    monkeypatch.setattr(noisy_answers, "noisy", lambda *_, **__: pytest.fail("noise was drawn"))
    before = files(home)
    found: Any = series.check(home / "people.csv", "2025-03", ledger=ledger)
    assert found == (("2025-01", "2025-02", "2025-03"), 3 * 2 * 2 + 2 + 1, False)
    words = ["--data", home / "people.csv", "--through", "2025-03", "--ledger", ledger, "--check"]
    told = run("series", "publish", home / "series", *words)
    assert told.exit_code == 0
    assert files(home) == before
    monkeypatch.undo()
    release = series.publish(home / "people.csv", "2025-03", ledger=ledger)
    assert sum(one.rows for one in release.tables) == found.figures
    # as `publish` does, without a look at the table
    assert series.check(home / "people.csv", "2025-02", ledger=ledger) == ((), 0, False)
    assert series.check(home / "absent.csv", "2025-02", ledger=ledger) == ((), 0, False)


def test_a_rehearsal_finds_what_needs_no_record(home: Path):
    series, ledger = mdp.Series.open(home / "series"), home / "ledger"
    rejected("missing-column", series.check, {"month": []}, "2025-01", ledger=ledger)
    pq.write_table(pa.table({"month": [1.5], "sex": ["f"]}), home / "typed.parquet")
    rejected("wrong-kind", series.check, home / "typed.parquet", "2025-01", ledger=ledger)
    (home / "empty.csv").touch()
    rejected("empty", series.check, home / "empty.csv", "2025-01", ledger=ledger)
    rejected("missing-key", series.check, TABLE, "2025-01")
    rejected("unknown-name", series.check, TABLE, "2026-01", ledger=ledger)
    quarters = {**SPEC, "workload": [{"product": {"month": {"level": "quarter"}}}]}
    rejected("out-of-range", mdp.Series.start(quarters, home / "other").check, TABLE, "2025-02")
    copy = mdp.Series.open(shutil.copytree(series.folder, home / "copy"))
    series.publish(TABLE, "2025-01", ledger=ledger)
    rejected("already-spent", copy.check, TABLE, "2025-01", ledger=ledger)


def test_a_rehearsal_sees_publications_that_were_stopped(home: Path, monkeypatch):
    series, ledger = mdp.Series.open(home / "series"), home / "ledger"
    with monkeypatch.context() as patch:
        patch.setattr("matrixdp.releases.transaction.complete_release", fail)
        with pytest.raises(OSError, match="No space left"):
            series.publish(TABLE, "2025-01", ledger=ledger)
    assert series.check(TABLE, "2025-01", ledger=ledger) == (("2025-01",), 4, True)
    [left] = [path for path in home.iterdir() if path.name.endswith(".unfinished")]
    with Lock(left / "running"):
        rejected("already-spent", series.check, TABLE, "2025-01", ledger=ledger)


@pytest.mark.parametrize(("table", "agrees"), [(TABLE, True), (MISREAD, False)])
def test_records_are_counted_first_at_a_cost_of_their_own(home: Path, table: Any, agrees: bool):
    series, ledger = mdp.Series.open(home / "series"), mdp.Ledger.open(home / "ledger")
    before = files(series.folder)
    found = series.count(table, "2025-02", SMALL, expect=40, ledger=ledger)
    assert files(series.folder) == before
    assert found.agrees is agrees
    assert found.periods == ("2025-01", "2025-02")
    assert found.total is not None
    assert found.out_of_domain is not None
    for one, exact in ((found.total, 40 * agrees), (found.out_of_domain, 120 * (not agrees))):
        assert one.stddev == pytest.approx(5, rel=1e-3)  # 1 / sqrt(2 rho)
        assert abs(one.estimate - exact) < 6 * one.stddev
    first, second = ledger.entries
    assert second.budget.as_dict() == SMALL.as_dict()
    assert (second.state, first.state) == ("released", "measured")
    assert [one.entry for one in mdp.recover_ledger(ledger)] == [first.id]
    series.publish(TABLE, "2025-02", ledger=ledger)
    assert mdp.verify_release(series.folder, ledger=ledger).holds
    rejected("out-of-range", series.count, table, "2025-02", SMALL, ledger=ledger)
    assert len(ledger.entries) == 2


def test_a_count_needs_what_keeps_account_of_it(home: Path):
    series = mdp.Series.open(home / "series")
    rejected("missing-key", series.count, TABLE, "2025-01", SMALL)
    alone = mdp.Series.start(SPEC, home / "alone")
    rejected("missing-key", alone.count, TABLE, "2025-01", SMALL)
    assert alone.count(TABLE, "2025-01", SMALL, ledger=home / "ledger").total is not None
    rejected("budget-exceeded", series.count, TABLE, "2025-01", mdp.Budget(rho=0.6), ledger=home / "ledger")
    rejected("conflict", series.count, TABLE, "2025-01", SMALL, ledger=home / "ledger", seed_not_private=1)
    rejected("out-of-range", series.count, TABLE, "2025-01", mdp.Budget(mu=4), ledger=home / "ledger")


def test_a_count_is_for_the_unit_of_the_series(tmp_path: Path):
    unit: Any = {"id": "person", "max_records": 2}
    ledger = mdp.Ledger.create(tmp_path / "ledger", "p", mdp.Budget(rho=1, unit=mdp.Unit(2, "person")))
    series = mdp.Series.start({**SPEC, "unit": unit}, tmp_path / "series", ledger=ledger)
    table = {**TABLE, "person": [*range(60)] * 2}
    found = series.count(table, "2025-06", SMALL, ledger=ledger)
    assert found.total is not None
    assert found.total.stddev == pytest.approx(10, rel=1e-3)
    assert ledger.entries[1].budget.unit == mdp.Unit(2, "person")


def test_a_series_of_persons_is_published_counted_and_verified(tmp_path: Path):
    unit = mdp.Unit(id="person", per="month", max_values=6)
    ledger = mdp.Ledger.create(tmp_path / "ledger", "p", mdp.Budget(rho=1, unit=unit))
    specification = {**SPEC, "unit": {"id": "person", "per": "month", "max_values": 6}}
    series = mdp.Series.start(specification, tmp_path / "series", ledger=ledger)
    table = {**TABLE, "person": [*range(20)] * 6}
    found = series.count(table, "2025-02", SMALL, ledger=ledger)
    assert found.out_of_domain is None  # the unit bounds none of these
    assert found.total is not None
    assert found.total.stddev == pytest.approx(5 * 2, rel=1e-3)  # each has a record in both months
    pq.write_table(pa.table(table), tmp_path / "people.parquet")
    told = run("series", "count", series.folder, "--data", tmp_path / "people.parquet", "--through",
               "2025-02", "--ledger", tmp_path / "ledger", "--budget", "rho=0.02")  # fmt: skip
    assert (told.exit_code, "out of domain" in told.output) == (0, False)
    for month in ("2025-01", "2025-06"):
        release = series.publish(table, month, ledger=ledger)
        said = {name: {one.id for one in own} for name, own in clauses(release.statement).items()}
        assert "counted-anew" in said["covered"]
        assert not said["assumed"] & {"fixed-periods", "first-records-stay"}
    assert mdp.verify_release(series.folder, ledger=ledger).holds
    months = [row for row in release.answers.to_pylist() if row["sex"] == "f"][:6]
    assert max(abs(row["estimate"] - 10) for row in months) < 6 * months[0]["stddev"]


@pytest.mark.parametrize(
    ("of", "given"),
    [
        ({"unit": {"id": "person", "per": "sex", "max_values": 2}}, {}),
        ({"unit": {"id": "person", "per": ["month", "sex"], "max_values": 2}}, {}),
        ({"unit": {"id": "person", "per": "month", "max_values": 2}, "privacy": {"epsilon": 1}}, {}),
        ({"unit": {"id": "person", "per": "month", "max_values": 2}}, {"noise": "laplace"}),
    ],
)
def test_a_series_bounds_records_by_period_alone(tmp_path: Path, of: Any, given: Any):
    rejected("not-supported", mdp.Series.start, {**SPEC, **of}, tmp_path / "series", **given)
    assert not (tmp_path / "series").exists()


def test_a_series_with_seeds_counts_with_a_seed(tmp_path: Path):
    series = mdp.Series.start(SPEC, tmp_path / "series", seed_not_private=True)
    rejected("conflict", series.count, TABLE, "2025-01", SMALL)
    one, other = (series.count(TABLE, "2025-01", SMALL, seed_not_private=3) for _ in range(2))
    assert one.total == other.total


@pytest.mark.parametrize("stopped", [False, True])
def test_what_is_expected_is_compared_with_what_was_measured_last(home: Path, monkeypatch, stopped: bool):
    series, ledger = mdp.Series.open(home / "series"), home / "ledger"
    if stopped:
        with monkeypatch.context() as patch:
            patch.setattr("matrixdp.releases.transaction.complete_release", fail)
            with pytest.raises(OSError, match="No space left"):
                series.publish(TABLE, "2025-02", expect=4000, ledger=ledger)
    release = series.publish(TABLE, "2025-02", expect=cast("int", np.int64(4000)), ledger=ledger)
    assert release.size.agrees is False
    record = json.loads((series.folder / "release.json").read_text())
    jsonschema.Draft202012Validator(release_schema()).validate(record)
    assert record["size"]["periods"] == MONTHS[:2]
    assert (record["size"]["expect"], record["size"]["agrees"]) == (4000, False)
    [asked] = release.answer({"product": {"month": {"ranges": [MONTHS[:2]]}}}).to_pylist()
    assert record["size"]["total"]["estimate"] == pytest.approx(asked["estimate"], rel=1e-9)
    assert mdp.verify_release(series.folder).holds
    release = series.publish(TABLE, "2025-06", expect=80, ledger=ledger)
    assert (release.size.periods, release.size.agrees) == (("2025-03", "2025-06"), True)
    assert not release.warnings
    with pytest.raises(MatrixDPError):
        series.publish(TABLE, "2025-06", expect=0, ledger=ledger)


def test_a_misread_month_is_told_among_good_ones(home: Path):
    words = ["--ledger", home / "ledger", "--data"]
    good = [home / "people.csv", "--through", "2025-03", "--expect", 60]
    assert run("series", "publish", home / "series", *words, *good).exit_code == 0
    text = (home / "people.csv").read_text()
    (home / "bad.csv").write_text(text.replace("2025-04-", "2025/04/"))
    bad = [home / "bad.csv", "--through", "2025-04", "--expect", 200]
    counted = run("series", "count", home / "series", *words, *bad, "--budget", "rho=0.4")
    assert counted.exit_code == 3
    assert "2025-04" in counted.stderr
    told = run("series", "publish", home / "series", *words, *bad)
    assert told.exit_code == 3
    assert run("series", "publish", home / "series", *words, *bad).exit_code == 3
    assert "2025-04" in told.stderr
    assert mdp.Series.open(home / "series").published == ("2025-03", "2025-04")


def test_a_series_of_another_version_is_called_that(home: Path):
    path = home / "series" / "series.json"
    path.write_text(path.read_text().replace('"format_version": ', '"format_version": 9'))
    rejected("other-version", mdp.Series.open, home / "series")
