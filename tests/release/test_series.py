"""Series: the budget is spent once, every row is measured once, and no figure is ever revised."""

import importlib
import json
import os
import re
import shutil
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import MatrixDPError
from matrixdp.measure import noisy_answers, statement
from matrixdp.releases import transaction
from matrixdp.sources import open_source
from matrixdp.storage import archive
from matrixdp.storage.formats import load_measurement
from tests.release.stopping import fail, hidden, kill, run

#: `make faults` kills at every step.
STRIDE = int(os.environ.get("MATRIXDP_STRIDE", "5"))
MONTHS = [f"2025-{month:02}" for month in range(1, 7)]
SPEC: dict[str, Any] = {
    "domain": {
        "month": {"from": "2025-01-01", "to": "2025-06-30", "by": "month", "levels": ["quarter"]},
        "sex": ["f", "m"],
    },
    "workload": [
        *({"product": {"month": one, "sex": "identity"}} for one in ("identity", "prefix", {"sliding": 3})),
        {"product": {"month": {"level": "quarter"}}},
        {"marginals": [["sex"]]},
    ],
    "series": {"attribute": "month"},
    "privacy": {"rho": 0.5},
}
TABLE = {
    "month": [f"{month}-{day:02}" for month in MONTHS for day in range(1, 21)],
    "sex": ["f", "m", "m", "f"] * 30,
}


def start(folder: Path, privacy: dict[str, float] | None = None, **more: Any) -> mdp.Series:
    return mdp.Series.start({**SPEC, "privacy": privacy or {"rho": 0.5}}, folder / "series", **more)


def debited(tmp_path: Path) -> tuple[mdp.Ledger, mdp.Series]:
    ledger = mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(rho=1))
    return ledger, start(tmp_path, ledger=ledger)


def published(folder: Path) -> dict[tuple[Any, ...], tuple[float, ...]]:
    """Return the figures of all answers by what they are about and when they were published."""
    rows = pq.read_table(folder / "answers.parquet").to_pylist()
    figures = ("estimate", "stddev", "lower", "upper")
    found = {
        tuple(value for name, value in row.items() if name not in figures): tuple(
            row[name] for name in figures
        )
        for row in rows
    }
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("privacy", [{"rho": 0.5}, {"epsilon": 1}, {"epsilon": 1, "delta": 1e-6}])
def test_figures_are_never_revised(tmp_path: Path, privacy: dict[str, float]):
    series = start(tmp_path, privacy)
    earlier: dict[tuple[Any, ...], tuple[float, ...]] = {}
    for month in MONTHS:
        series.publish(TABLE, month)
        now = published(series.folder)
        assert {key: now[key] for key in earlier} == earlier
        new = [
            line.split(",")[-1].strip('"') for line in (series.folder / "new.csv").read_text().splitlines()
        ]
        assert new == ["published", *[month] * (len(now) - len(earlier))]
        assert mdp.verify_release(series.folder).holds
        earlier = now
    assert series.published == tuple(MONTHS)
    assert len(earlier) == 2 * 6 + 2 * 6 + 2 * 4 + 2 + 2


def over_attributes(sizes: tuple[int, ...], *entries: dict[str, Any]) -> dict[str, Any]:
    """Return what to ask of three more attributes, in every month and cumulatively."""
    others = {name: {"min": 0, "max": size - 1} for name, size in zip("abc", sizes, strict=True)}
    return {
        "domain": {"month": SPEC["domain"]["month"], **others},
        "workload": [
            {"product": {"month": month, **entry}} for entry in entries for month in ("identity", "prefix")
        ],
        "series": {"attribute": "month"},
    }


TWO = over_attributes((3, 3, 3), {"a": "identity"}, {"b": "prefix"})
THREE = over_attributes(
    (16, 4, 4),
    {"a": "identity"},
    {"a": "prefix", "b": "identity", "c": "prefix"},
    {"b": "prefix", "c": "identity"},
)


@pytest.mark.parametrize(
    ("kind", "asked", "privacy"),
    [("split", TWO, {"rho": 0.5}), ("pooled", TWO, {"epsilon": 1}), ("direct", THREE, {"epsilon": 1})],
)
def test_every_kind_of_plan_keeps_its_figures(
    tmp_path: Path, kind: str, asked: dict[str, Any], privacy: dict[str, float]
):
    series = mdp.Series.start({**asked, "privacy": privacy}, tmp_path / "series")
    assert series.begun.plan.kind == kind
    values = np.random.default_rng(3).integers(0, 3, (3, len(TABLE["month"])))
    table = {"month": TABLE["month"], **dict(zip("abc", values, strict=True))}
    earlier: dict[tuple[Any, ...], tuple[float, ...]] = {}
    for month in MONTHS[::2] + MONTHS[-1:]:
        series.publish(table, month)
        now = published(series.folder)
        assert {key: now[key] for key in earlier} == earlier
        assert len(now) > len(earlier)
        earlier = now


def test_answers_are_right(tmp_path: Path):
    series = start(tmp_path, {"rho": 1e6}, accept_weak_privacy=True)
    for month in ("2025-02", "2025-06"):
        series.publish(TABLE, month)
    rows = pq.read_table(series.folder / "answers.parquet").to_pylist()
    for row in rows:
        first, last = (
            f"{row[name]:%Y-%m}" if row["month"] else own
            for name, own in (("month_from", MONTHS[0]), ("month_to", MONTHS[-1]))
        )
        exact = sum(
            first <= day[:7] <= last and row["sex"] in (None, sex)
            for day, sex in zip(TABLE["month"], TABLE["sex"], strict=True)
        )
        assert row["estimate"] == pytest.approx(exact, abs=0.05)


def test_a_period_is_measured_once(tmp_path: Path, monkeypatch):
    series = start(tmp_path)
    series.publish(TABLE, "2025-02")
    before = (series.folder / "measurement.mdp").read_bytes()
    monkeypatch.setattr(noisy_answers, "noisy", lambda *_, **__: pytest.fail("noise was drawn again"))
    again = mdp.Series.open(series.folder).publish({"month": [], "sex": []}, "2025-01")
    assert again.answers.num_rows == published(series.folder).__len__()
    assert (series.folder / "measurement.mdp").read_bytes() == before


def test_skipped_periods_come_with_the_next(tmp_path: Path):
    series = start(tmp_path)
    series.publish(TABLE, "2025-04")
    when = {key[-1] for key in published(series.folder)}
    assert when == {"2025-04"}


def test_what_is_not_measured_is_not_answered(tmp_path: Path):
    release = start(tmp_path).publish(TABLE, "2025-03")
    assert release.answer({"marginals": [["month"]]})["month"].to_pylist() == MONTHS[:3]
    for asked in ({"marginals": [["sex"]]}, {"product": {"month": {"ranges": [MONTHS[2:4]]}}}):
        with pytest.raises(MatrixDPError) as caught:
            release.answer(asked)
        assert caught.value.code == "not-yet"
    assert release.answer({"product": {"month": {"ranges": [["2025-01", "2025-03"]]}}}).num_rows == 1


def test_rows_that_are_not_due_are_not_measured(tmp_path: Path):
    series = start(tmp_path)
    series.publish(TABLE, "2025-02")
    found, _ = load_measurement(series.folder / "measurement.mdp")
    assert found.periods is not None
    for part, values in zip(found.plan.parts, found.values, strict=True):
        later = found.periods.due(part, 6)
        assert not values[later].any()
        assert values[~later].all()


def test_nothing_is_known_before_the_first_answer(tmp_path: Path):
    quarters = {**SPEC, "workload": [{"product": {"month": {"level": "quarter"}, "sex": "identity"}}]}
    series = mdp.Series.start(quarters, tmp_path / "series")
    with pytest.raises(MatrixDPError) as caught:
        series.publish(TABLE, "2025-02")
    assert caught.value.problem is not None
    assert caught.value.problem.path == ("through",)
    assert series.release is None
    series.publish(TABLE, "2025-03")
    assert series.published == ("2025-03",)


def test_the_schedule(tmp_path: Path):
    series = start(tmp_path)
    series.publish(TABLE, "2025-01")
    rows = {row["table"]: row for row in series.schedule().to_pylist()}
    quarter = next(row for name, row in rows.items() if "quarter" in name)
    assert (quarter["published"], quarter["next"]) == (0, "2025-03")
    assert rows["sex"]["next"] == "2025-06"
    assert all(row["stddev"] > 0 for row in rows.values())


# Ledgers: what was measured last is known beside the folder.


def test_a_backup_is_rejected(tmp_path: Path):
    ledger, series = debited(tmp_path)
    backups = []
    for month in ("2025-01", "2025-02"):
        backups.append(shutil.copytree(series.folder, tmp_path / f"backup {month}"))
        series.publish(TABLE, month, ledger=ledger)
    for backup in backups:
        rejected(backup, "2025-03", ledger)
    with pytest.raises(MatrixDPError) as caught:
        series.publish(TABLE, "2025-03")
    assert caught.value.code == "missing-key"
    series.publish(TABLE, "2025-06", ledger=ledger)
    [entry] = ledger.entries
    assert entry.state == "released"
    assert ledger.spent is not None
    assert 0.49999 < ledger.spent.rho <= 0.5
    assert mdp.verify_release(series.folder, ledger=ledger).holds


def test_a_recovery_leaves_a_series_that_goes_on(tmp_path: Path):
    ledger, series = debited(tmp_path)
    for month in ("2025-01", "2025-02"):
        assert [one.state for one in mdp.recover_ledger(ledger)] == ["measured"]
        series.publish(TABLE, month, ledger=ledger)


def home_of(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "people.json").write_text(json.dumps(SPEC))
    lines = [f"{month},{sex}" for month, sex in zip(TABLE["month"], TABLE["sex"], strict=True)]
    (home / "people.csv").write_text("\n".join(["month,sex", *lines]))
    ledger = mdp.Ledger.create(home / "ledger", "people", mdp.Budget(rho=1))
    mdp.Series.start(home / "people.json", home / "series", ledger=ledger)
    return home


@pytest.mark.slow
def test_a_publication_that_is_killed_at_any_step(tmp_path: Path):
    home = home_of(tmp_path)
    ledger = mdp.Ledger.open(home / "ledger")
    mdp.Series.open(home / "series").publish(home / "people.csv", "2025-01", ledger=ledger)
    first = published(home / "series")

    seen: list[tuple[int, int, bool]] = []

    def check(stopped: Path) -> Hashable:
        whole = [one for one in hidden(stopped) if (one / "measurement.mdp").exists()]
        drawn = []
        for folder in whole:
            try:
                found, _ = load_measurement(folder / "measurement.mdp")
            except MatrixDPError:
                continue
            if found.periods is not None and found.periods.through == 2:  # not the one that is replaced
                drawn.append(found.values)
        book = mdp.Ledger.open(stopped / "ledger")
        last = book.entries[0].measurement
        claimed = last not in {
            archive.digest(one / "measurement.mdp") for one in (stopped / "series", *whole)
        }
        state = (len(drawn), len(mdp.Series.open(stopped / "series").published), claimed)
        seen.append(state)
        copy = shutil.copytree(stopped / "series", stopped / "copy")
        if claimed:  # only the folder that claimed the period may go on
            rejected(copy, "2025-02", book)
        if len(seen) % 2:
            [entry] = mdp.recover_ledger(book)
            assert entry.state == "measured"
        mdp.Series.open(stopped / "series").publish(stopped / "people.csv", "2025-02", ledger=book)
        if state[1] == 1:
            rejected(copy, "2025-02", book)
        now = published(stopped / "series")
        assert {key: now[key] for key in first} == first
        assert mdp.verify_release(stopped / "series", ledger=book).holds
        assert len(book.entries) == 1
        found = load_measurement(stopped / "series" / "measurement.mdp")[0]
        for values in drawn:  # what was drawn is kept
            assert all(np.array_equal(one, other) for one, other in zip(values, found.values, strict=True))
        assert hidden(stopped) == [one for one in hidden(stopped) if one.name.endswith(".running")]
        return state

    words = ["series", "publish", "HOME/series", "--data", "HOME/people.csv", "--through", "2025-02"]
    kill(home, "command", *words, "--ledger", "HOME/ledger", check=check, stride=STRIDE)
    assert len(seen) > 60 // STRIDE
    assert {(0, 1, False), (0, 1, True), (1, 1, True), (0, 2, False)} <= {*seen}


def rejected(folder: Path, through: str, ledger: mdp.Ledger | None) -> None:
    before = ledger and ledger.entries
    with pytest.raises(MatrixDPError) as caught:
        mdp.Series.open(folder).publish(TABLE, through, ledger=ledger)
    assert caught.value.code == "already-spent"
    assert (ledger and ledger.entries) == before
    assert not [one for one in hidden(folder.parent) if one.name.startswith(f".{folder.name}.")]


def test_a_publication_beside_another_measures_nothing(tmp_path: Path, monkeypatch):
    series = start(tmp_path)
    place = "matrixdp.strategy.series.open_source"

    def meanwhile(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(place, open_source)
        mdp.Series.open(series.folder).publish(TABLE, "2025-02")
        return open_source(*given, **named)

    monkeypatch.setattr(place, meanwhile)
    with pytest.raises(MatrixDPError) as caught:
        series.publish(TABLE, "2025-02")
    assert caught.value.code == "already-spent"
    before = published(series.folder)
    series.publish(TABLE, "2025-03")
    assert before.items() <= published(series.folder).items()


def within_noise(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[object]:
    """Act once while the next publication has claimed its period and draws noise; list what is drawn."""
    drawn: list[object] = []
    real = noisy_answers.noisy

    def noisy(*given: Any, **named: Any) -> Any:
        drawn.append(given)
        if len(drawn) == 1:
            act()
        return real(*given, **named)

    monkeypatch.setattr(noisy_answers, "noisy", noisy)
    return drawn


def test_of_two_copies_at_once_one_draws_no_noise(tmp_path: Path, monkeypatch):
    ledger, series = debited(tmp_path)
    copy = mdp.Series.open(shutil.copytree(series.folder, tmp_path / "copy"))
    place = "matrixdp.strategy.series.open_source"

    def meanwhile(*given: Any, **named: Any) -> Any:
        monkeypatch.setattr(place, open_source)
        copy.publish(TABLE, "2025-02", ledger=ledger)
        del drawn[:]
        return open_source(*given, **named)

    monkeypatch.setattr(place, meanwhile)
    drawn = within_noise(monkeypatch, lambda: None)
    with pytest.raises(MatrixDPError) as caught:
        series.publish(TABLE, "2025-02", ledger=ledger)
    assert caught.value.code == "already-spent"
    assert not drawn
    assert not hidden(tmp_path)
    assert mdp.verify_release(copy.folder, ledger=ledger).holds
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("ledgers", [True, False])
def test_a_folder_that_is_published_from_is_nobody_elses(tmp_path: Path, monkeypatch, ledgers: bool):
    """Neither under another name, nor by a link, nor as a copy that the ledger tells from it."""
    home = tmp_path / "home"
    home.mkdir()
    ledger = mdp.Ledger.create(home / "ledger", "people", mdp.Budget(rho=1)) if ledgers else None
    series = start(home, ledger=ledger)
    key = mdp.SigningKey.load(mdp.make_keys(tmp_path / "key")[0])
    series.publish(TABLE, "2025-01", ledger=ledger)
    (tmp_path / "link").symlink_to(home)

    def others() -> None:
        assert mdp.verify_release(series.folder, ledger=ledger).holds
        if ledger is not None:
            [entry] = mdp.recover_ledger(ledger)
            assert (entry.state, entry.settled) == ("measured", False)
            rejected(shutil.copytree(series.folder, home / "copy"), "2025-02", ledger)
        rejected(series.folder.rename(home / "moved"), "2025-02", ledger)
        (home / "moved").rename(series.folder)
        with pytest.raises(MatrixDPError) as caught:
            mdp.Series.open(tmp_path / "link" / "series").publish(TABLE, "2025-02", ledger=ledger)
        assert caught.value.code == "already-spent"
        with pytest.raises(MatrixDPError) as caught:
            mdp.sign_release(series.folder, key)
        assert caught.value.code == "already-spent"

    drawn = within_noise(monkeypatch, others)
    before = published(series.folder)
    series.publish(TABLE, "2025-02", ledger=ledger)
    assert len(drawn) == len(series.begun.plan.parts)
    assert before.items() <= published(series.folder).items()
    assert mdp.verify_release(series.folder, ledger=ledger).holds


def test_what_is_claimed_elsewhere_meanwhile_is_thrown_away(tmp_path: Path, monkeypatch):
    """A copy of all there is, made while a publication runs, can claim its period; then only it publishes."""
    home = tmp_path / "home"
    home.mkdir()
    ledger = mdp.Ledger.create(tmp_path / "ledger", "people", mdp.Budget(rho=1))
    series = start(home, ledger=ledger)
    elsewhere = tmp_path / "elsewhere"

    def claim() -> None:
        shutil.copytree(home, elsewhere)
        mdp.Series.open(elsewhere / "series").publish(TABLE, "2025-02", ledger=ledger)

    within_noise(monkeypatch, claim)
    with pytest.raises(MatrixDPError) as caught:
        series.publish(TABLE, "2025-02", ledger=ledger)
    assert caught.value.code == "already-spent"
    assert not hidden(home)
    assert not hidden(elsewhere)
    rejected(series.folder, "2025-02", ledger)
    assert mdp.verify_release(elsewhere / "series", ledger=ledger).holds


def test_a_recovery_beside_a_publication_that_takes_its_place(tmp_path: Path, monkeypatch):
    ledger, series = debited(tmp_path)
    sync, says = archive.sync_files, list[Any]()

    def recovered(staged: Path) -> None:
        says.append(mdp.recover_ledger(ledger)[0])
        sync(staged)

    monkeypatch.setattr(transaction, "sync_files", recovered)
    series.publish(TABLE, "2025-01", ledger=ledger)
    assert [(one.state, one.settled) for one in says] == [("measured", False)]
    assert ledger.entries[0].state == "measured"


def test_no_recovery_ends_a_series_that_has_periods_left(tmp_path: Path, monkeypatch):
    ledger, series = debited(tmp_path)
    series.publish(TABLE, "2025-01", ledger=ledger)
    # as where the folder is moved back a moment later
    monkeypatch.setattr(transaction._Recovery, "_goes_on", lambda *_: False)
    assert [one.state for one in mdp.recover_ledger(ledger)] == ["abandoned"]
    series.publish(TABLE, "2025-02", ledger=ledger)
    assert ledger.entries[0].state == "measured"


@pytest.mark.parametrize("mark", ["rho 0.5\n" + "[" * 100_000, 'rho 0.5\n"ledger"\n' + "[" * 100_000])
def test_a_mark_that_is_none_is_in_nobodys_way(tmp_path: Path, mark: str):
    ledger, series = debited(tmp_path)
    series.publish(TABLE, "2025-01", ledger=ledger)
    beside = tmp_path / ".series.1-1.unfinished"
    beside.mkdir()
    (beside / "spent.txt").write_text(mark)
    assert mdp.verify_release(series.folder, ledger=ledger).holds
    assert [one.state for one in mdp.recover_ledger(ledger)] == ["measured"]
    series.publish(TABLE, "2025-02", ledger=ledger)


@pytest.mark.parametrize("recovers", [True, False])
@pytest.mark.parametrize(
    "place", ["releases.transaction.complete_release", "releases.transaction.save_measurement"]
)
def test_a_failed_publication_is_made_again_or_completed(
    tmp_path: Path, monkeypatch, recovers: bool, place: str
):
    ledger, series = debited(tmp_path)
    private, public = mdp.make_keys(tmp_path / "key")
    with monkeypatch.context() as patch:
        patch.setattr(f"matrixdp.{place}", fail)
        with pytest.raises(OSError, match="No space left"):
            series.publish(TABLE, "2025-01", ledger=ledger)
    if recovers:
        assert [one.state for one in mdp.recover_ledger(ledger)] == ["measured"]
    series.publish(TABLE, "2025-01", ledger=ledger, key=mdp.SigningKey.load(private))
    assert mdp.verify_release(series.folder, ledger=ledger, key=public).holds
    series.publish(TABLE, "2025-02", ledger=ledger)
    assert mdp.verify_release(series.folder, ledger=ledger).holds
    assert not hidden(tmp_path)


def test_a_publication_warns_of_an_empty_table(tmp_path: Path):
    home_of(tmp_path)
    (tmp_path / "home" / "people.csv").write_text("month,sex\n2025/01/04,f\n")
    words = ["--data", tmp_path / "home" / "people.csv", "--through", "2025-01"]
    told = run(
        "series", "publish", tmp_path / "home" / "series", *words, "--ledger", tmp_path / "home" / "ledger"
    )
    assert told.exit_code == 0
    assert "Warning: " in told.stderr
    assert "out_of_domain" not in told.stderr  # a series cannot count them


@pytest.mark.parametrize("unit", [mdp.Unit(), mdp.Unit(id="person")])
def test_a_series_that_assumes_too_little_is_noticed(tmp_path: Path, monkeypatch, unit: mdp.Unit):
    specification = {**SPEC, "unit": {"id": unit.id, "max_records": 1}} if unit.id else SPEC
    table = {**TABLE, "person": [*range(120)]}
    for name, writer in (("honest", statement._over_time), ("dishonest", lambda unit: iter(()))):
        with monkeypatch.context() as patch:
            patch.setattr(statement, "_over_time", writer)
            series = mdp.Series.start(specification, tmp_path / name)
            series.publish(table, "2025-01")
        record = json.loads((series.folder / "release.json").read_text())
        named = {one["id"] for one in record["privacy"]["assumed"]}
        follows = {"fixed-periods", *(["first-records-stay"] if unit.id else [])}
        assert named & {"fixed-periods", "first-records-stay"} == (follows if name == "honest" else set())
        failed = {one.subject for one in mdp.verify_release(series.folder).failed}
        assert failed == (set() if name == "honest" else {"statement"})


@pytest.mark.parametrize("name", ["measurement.mdp", "series.mdp", "series.json", "new.csv"])
def test_an_altered_file_is_noticed(tmp_path: Path, name: str):
    series = start(tmp_path)
    series.publish(TABLE, "2025-02")
    other = start(tmp_path / "other", {"rho": 2})
    other.publish(TABLE, "2025-03")
    shutil.copyfile(other.folder / name, series.folder / name)
    assert not mdp.verify_release(series.folder).holds


def test_another_series_does_not_go_on(tmp_path: Path):
    """A measurement whose record lists it is that of the series which it lies beside."""
    series, other = start(tmp_path), start(tmp_path / "other", {"rho": 2})
    for one in (series, other):
        one.publish(TABLE, "2025-01")
    for name in ("series.mdp", "series.json"):
        shutil.copyfile(other.folder / name, series.folder / name)
    record = json.loads((series.folder / "release.json").read_text())
    for name in ("series.mdp", "series.json"):
        record["files"][name] = archive.entry(series.folder / name)
    (series.folder / "release.json").write_text(json.dumps(record))
    failed = mdp.verify_release(series.folder).failed
    assert [one.subject for one in failed] == ["series"]


def test_of_two_publications_at_once_one_is_rejected(tmp_path: Path, monkeypatch):
    module: Any = importlib.import_module("matrixdp.strategy.series")
    series = start(tmp_path)
    series.publish(TABLE, MONTHS[0])
    opened = module.open_source

    def meanwhile(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(module, "open_source", opened)
        mdp.Series.open(series.folder).publish(TABLE, MONTHS[1])
        return opened(*arguments, **options)

    monkeypatch.setattr(module, "open_source", meanwhile)
    with pytest.raises(MatrixDPError) as refused:
        series.publish(TABLE, MONTHS[1])
    assert refused.value.code == "already-spent"
    assert series.published == tuple(MONTHS[:2])


@pytest.mark.parametrize(("over", "step"), [("period", 1), ("year", 12)])
def test_changes_are_differences_of_published_counts(tmp_path: Path, over: Any, step: int):
    months = [f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13)]
    domain = {"month": {"from": "2024-01-01", "to": "2025-12-31", "by": "month"}, "sex": ["f", "m"]}
    workload = [{"product": {"month": "identity", "sex": "identity"}}]
    series = mdp.Series.start({**SPEC, "domain": domain, "workload": workload}, tmp_path / "series")
    table = {"month": [f"{month}-03" for month in months] * 2, "sex": ["f"] * 24 + ["m"] * 24}
    release = series.publish(table, "2025-03")
    counts = release.table("month, sex")["estimate"].to_numpy().reshape(15, 2)
    changes = release.changes("month, sex", over)
    assert changes["estimate"].to_numpy() == pytest.approx((counts[step:] - counts[:-step]).ravel())
    asked = {"product": {"month": {"ranges": [[month, month] for month in months[:15]]}, "sex": "identity"}}
    for place, stddev in enumerate(changes["stddev"].to_numpy()):
        pair = (place, place + 2 * step)
        own = [[release.covariance(asked, a, asked, b) for b in pair] for a in pair]
        assert stddev**2 == pytest.approx(own[0][0] + own[1][1] - 2 * own[0][1])
    ends = zip(*(changes[name].to_pylist() for name in ("lower", "upper", "clear")), strict=True)
    assert all(clear == (low > 0 or high < 0) for low, high, clear in ends)


def test_a_series_has_a_model_when_it_has_ended(tmp_path: Path):
    series = start(tmp_path)
    for month, ended in (("2025-03", False), ("2025-06", True)):
        release = series.publish(TABLE, month)
        if ended:
            assert release.model(components=2, steps=50) is not None
            continue
        with pytest.raises(MatrixDPError) as caught:
            release.model(components=2, steps=50)
        assert caught.value.code == "not-yet"


@pytest.mark.filterwarnings("error")
def test_a_first_publication_has_a_page(tmp_path: Path):
    series = start(tmp_path)
    series.publish(TABLE, "2025-01")
    assert mdp.report_release(series.folder).startswith("<!doctype html>")


def test_the_page_says_what_is_new(tmp_path: Path):
    series = start(tmp_path, {"rho": 1e4}, accept_weak_privacy=True)
    rows = [one[:7] != "2025-02" or place % 2 == 0 for place, one in enumerate(TABLE["month"])]
    fewer = {name: [one for one, kept in zip(own, rows, strict=True) if kept] for name, own in TABLE.items()}
    for month in MONTHS[:2]:
        series.publish(fewer, month)
    page = mdp.report_release(series.folder)
    assert "New in this publication: through February 2025" in page
    assert "January 2025 to February 2025" in page
    assert "New figures: 4." in page
    assert "Periods left: 4." in page
    found = [float(one) for one in re.findall(r"<dd>down ([\d.]+) ± ", page)]
    assert found == pytest.approx([5, 5], abs=0.1)


def test_a_series_replaces_nothing(tmp_path: Path):
    start(tmp_path)
    with pytest.raises(MatrixDPError) as caught:
        start(tmp_path)
    assert caught.value.code == "file-exists"
    assert "force" not in str(caught.value)


def test_only_a_series_takes_the_name_of_its_column(tmp_path: Path):
    named = mdp.Workload(mdp.Domain({"published": ["no", "yes"]}), mdp.marginals(1))
    release = mdp.select(named).measure({"published": ["no"]}, mdp.Budget(rho=0.5)).reconstruct()
    assert "published" in release.answers.column_names
    domain = {"month": SPEC["domain"]["month"], "published": ["no", "yes"]}
    asked = [{"marginals": [["month", "published"]]}]
    series = mdp.Series.start({**SPEC, "domain": domain, "workload": asked}, tmp_path / "series")
    found = series.publish({"month": TABLE["month"], "published": ["no", "yes"] * 60}, "2025-01").answers
    assert {"published", "published_attribute"} <= {*found.column_names}
