"""The ledger from the command line: made, shown, debited, refused; and what a release says of it."""

import json
import re
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.ledger import Ledger
from matrixdp.ledger import ledger as ledgers
from matrixdp.noise import GAUSSIAN
from matrixdp.sources.base import Source
from matrixdp.storage.formats import load_measurement

SPEC = """
data: people.parquet
domain: {sex: [female, male]}
workload:
  - marginals: [1]
privacy: {rho: 0.4, ledger: accounts/people.ledger}
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    pl.DataFrame({"sex": ["female", "male"] * 50}).write_parquet(tmp_path / "people.parquet")
    (tmp_path / "people.yaml").write_text(SPEC)
    (tmp_path / "accounts").mkdir()
    return tmp_path


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def init(home: Path, *words: object, total: str = "rho=1.0"):
    path = home / "accounts" / "people.ledger"
    return run("ledger", "init", path, "--dataset", "people", "--total", total, *words)


def release(home: Path, out: str, *words: object):
    return run("release", home / "people.yaml", "--out", home / out, "--noise", "gaussian", *words)


def shown(home: Path) -> dict:
    return json.loads(run("ledger", "show", home / "accounts" / "people.ledger", "--json").stdout)


def test_releases_are_debited_until_too_little_is_left(home: Path, monkeypatch: pytest.MonkeyPatch):
    made = init(home)
    assert made.exit_code == 0, made.output
    assert "the ledger of people, with a total of Budget(rho=1.0" in made.stdout
    empty = shown(home)
    assert (empty["total"], empty["spent"], empty["left"]) == ({"rho": 1.0}, {"rho": 0.0}, {"rho": 1.0})
    assert empty["entries"] == []
    assert "No release was debited yet." in run("ledger", "show", home / "accounts/people.ledger").stdout
    for out in ("one", "two"):
        assert release(home, out).exit_code == 0
        written = json.loads((home / out / "release.json").read_text())
        entry = shown(home)["entries"][-1]
        assert entry["state"] == "released"
        assert entry["release"] == str(home / out)
        assert entry["measurement"] == written["files"]["measurement.mdp"]["sha256"]
        assert entry["cost"] == written["privacy"]["cost"]
        told = written["authorization"]["ledger"]
        assert told == written["privacy"]["ledger"]
        assert (told["entry"], told["digest"]) == (entry["entry"], entry["digest"])
        assert load_measurement(home / out / "measurement.mdp")[0].authorization.ledger is not None
    full = shown(home)
    assert 0.79 < full["spent"]["rho"] <= 0.8
    assert 0.2 <= full["left"]["rho"] < 0.21
    frame = pd.DataFrame(full["entries"])
    assert list(frame["state"]) == ["released", "released"]
    table = run("ledger", "show", home / "accounts" / "people.ledger").stdout
    assert table.count("released") == 2
    assert ["spent", "rho", "0.8"] in [line.split() for line in table.splitlines()]
    assert ["left", "rho", "0.2"] in [line.split() for line in table.splitlines()]
    assert re.search(r"unit +one record a person", table)
    # no table is opened, and no strategy selected
    monkeypatch.setattr("matrixdp.sources.open_source", None)
    monkeypatch.setattr("matrixdp.strategy.strategy.select_strategy", None)
    refused = release(home, "three")
    assert refused.exit_code == 2
    assert "Error: ledger: found rho 0.4 with gaussian noise" in refused.stderr
    assert "expected at most rho 0.2, which is what" in refused.stderr
    assert not (home / "three").exists()
    assert len(shown(home)["entries"]) == 2


def test_a_saved_strategy_is_refused_before_the_data_are_counted(home: Path, monkeypatch: pytest.MonkeyPatch):
    init(home, total="rho=0.3")
    assert run("select", home / "people.yaml", "--save", home / "s.mdp").exit_code == 0
    monkeypatch.setattr(Source, "marginals", None)
    refused = release(home, "out", "--strategy", home / "s.mdp")
    assert refused.exit_code == 2
    assert "ledger: found rho 0.4 with gaussian noise" in refused.stderr


def test_the_option_takes_the_place_of_the_specification(home: Path):
    other = home / "other.ledger"
    run("ledger", "init", other, "--dataset", "others", "--total", "mu=2")
    assert release(home, "out", "--ledger", other).exit_code == 0
    assert [entry.state for entry in Ledger.open(other).entries] == ["released"]
    statement = json.loads((home / "out" / "release.json").read_text())["privacy"]
    assert "debited to the ledger of others" in statement["text"]
    told = {clause["id"]: clause["text"] for clause in statement["covered"] + statement["not_covered"]}
    assert "together keep to 2-GDP" in told["ledger"]
    assert "were not debited to the ledger of others, and their costs add up" in told["other-releases"]
    assert "no ledger" not in json.dumps(statement)


def test_seeded_noise_is_not_debited(home: Path):
    init(home)
    seeded = release(home, "out", "--seed-not-private", 1)
    assert seeded.exit_code == 0
    assert f"Seeded noise: {home / 'accounts' / 'people.ledger'} is not debited." in seeded.stderr
    assert shown(home)["entries"] == []
    written = json.loads((home / "out" / "release.json").read_text())
    assert written["authorization"]["ledger"] is None
    assert written["warning"].endswith("no ledger was debited")


def test_no_ledger_is_made_or_passed_over(home: Path):
    refused = release(home, "out")
    assert refused.exit_code == 2
    assert "no such file; expected a ledger, which `matrixdp ledger init` makes" in refused.stderr
    assert not (home / "out").exists()


def test_validate_and_select_say_whether_enough_is_left(home: Path):
    def told() -> list[dict]:
        return [
            json.loads(run(word, home / "people.yaml", "--json").stdout)["ledger"]
            for word in ("validate", "select")
        ]

    for ledger in told():
        assert ledger["enough"] is False
        assert "no such file" in ledger["says"]
    init(home, total="rho=0.5")
    for ledger in told():
        assert ledger["enough"] is True
        assert ledger["left"] == {"rho": 0.5}
    assert release(home, "out").exit_code == 0
    for ledger in told():
        assert ledger["enough"] is False
        assert "not enough: ledger: found rho 0.4 with gaussian noise" in ledger["says"]
    assert "ledger" in run("validate", home / "people.yaml").stdout
    assert "not enough" in " ".join(run("select", home / "people.yaml").stdout.split())
    targets = SPEC.replace("rho: 0.4", "minimize: rho") + "targets: {sex: 10}\n"
    (home / "people.yaml").write_text(targets)
    validated, selected = told()
    assert validated["enough"] is None
    assert selected["enough"] is True
    assert release(home, "least").exit_code == 0
    assert len(shown(home)["entries"]) == 2


def test_one_noise_of_two_may_have_enough_left(home: Path):
    """A total of (epsilon, delta) that Laplace noise has used up in part has more left for Laplace noise."""
    init(home, total="epsilon=1,delta=1e-6")
    (home / "people.yaml").write_text(SPEC.replace("rho: 0.4", "epsilon: 0.5, delta: 1.0e-6"))
    assert run("release", home / "people.yaml", "--out", home / "a", "--noise", "laplace").exit_code == 0
    told = json.loads(run("validate", home / "people.yaml", "--json").stdout)["ledger"]
    assert told["enough"] is True
    gaussian = release(home, "b")
    assert gaussian.exit_code == 2
    assert "at most epsilon 0.5, delta 1e-06 with the noise that it allows most, which" in gaussian.stderr
    assert run("release", home / "people.yaml", "--out", home / "b", "--noise", "laplace").exit_code == 0


@pytest.mark.parametrize(
    "total",
    [
        *("", "rho", "rho=", "rho=x", "sigma=1", "rho=1,rho=2", "rho=1,mu=1", "rho=0", "rho=-1", "rho=NaN"),
        *("delta=0.1", "rho=1e400000", "rho=1e-400000", "epsilon=1,delta=2", "rho=" + "9" * 200),
    ],
)
def test_totals_that_are_none(home: Path, total: str):
    refused = init(home, total=total)
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1
    assert not (home / "accounts" / "people.ledger").exists()


@pytest.mark.parametrize(
    "words", [("--neighbours", "swap"), ("--unit-records", "0"), ("--unit-id", ""), ("--dataset", " ")]
)
def test_terms_that_are_none(home: Path, words: tuple[str, str]):
    refused = init(home, *words)
    assert refused.exit_code == 2
    assert not (home / "accounts" / "people.ledger").exists()


@pytest.mark.parametrize(
    ("words", "total", "says"),
    [
        (("--unit-records", 0), "rho=1", "--unit-records: found 0"),
        (("--unit-id", ""), "rho=1", "--unit-id: found ''"),
        (("--neighbours", "some"), "rho=1", "--neighbours: found 'some'"),
        ((), "epsilon=1,delta=1", "--total.delta: found 1"),
        ((), "rho=1,mu=1", "--total: found rho and mu"),
    ],
)
def test_what_is_wrong_is_named_by_its_option(home: Path, words: tuple[object, ...], total: str, says: str):
    assert says in init(home, *words, total=total).stderr


def test_terms_are_those_of_every_release(home: Path):
    assert init(home, "--neighbours", "replace", total="epsilon=0.1,delta=1e-6").exit_code == 0
    assert init(home).exit_code == 2  # never over another
    found = shown(home)
    assert found["exact"]["total"] == {
        "epsilon": "1/10",
        "delta": "1/1000000",
        "neighbours": "replace",
        "unit": {"records": 1},
    }
    refused = release(home, "out")
    assert refused.exit_code == 2
    assert "privacy.neighbours: found add_remove; expected replace, which the ledger's total is for" in (
        refused.stderr
    )


def test_a_failure_after_the_debit_says_that_it_counts(home: Path, monkeypatch: pytest.MonkeyPatch):
    init(home)

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("matrixdp.measure.measurement.noisy", fail)
        failed = release(home, "out")
    assert failed.exit_code == 1
    (entry,) = shown(home)["entries"]
    assert entry["state"] == "reserved"
    assert f"people: entry {entry['entry']} counts as spent." in failed.stderr
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", fail)
        assert release(home, "out", "--force").exit_code != 0
    states = [entry["state"] for entry in shown(home)["entries"]]
    assert states[0] == "reserved"
    assert states[1:] in ([], ["measured"])


def test_a_release_that_its_ledger_cannot_be_told_of_is_whole(home: Path, monkeypatch: pytest.MonkeyPatch):
    init(home)

    def fail(*_: object) -> None:
        raise mdp.StorageError("the ledger is gone")

    monkeypatch.setattr(ledgers.Reservation, "released", fail)
    failed = release(home, "out")
    assert failed.exit_code == 2
    assert "counts as spent. The release is whole in" in failed.stderr
    assert mdp.load_release(home / "out").private
    assert [entry["state"] for entry in shown(home)["entries"]] == ["measured"]


def test_other_files_are_no_ledger(home: Path):
    for path in (home / "people.yaml", home / "people.parquet", home, home / "none"):
        told = run("ledger", "show", path)
        assert told.exit_code == 2
        assert told.stderr.count("\n") == 1
        assert told.stderr.startswith("Error: ")


def test_the_unit_of_a_ledger_is_that_of_every_release(home: Path):
    pl.DataFrame({"sex": ["female", "male"] * 50, "person": list(range(50)) * 2}).write_parquet(
        home / "people.parquet"
    )
    assert init(home, "--unit-records", 2, "--unit-id", "person", total="rho=0.4").exit_code == 0
    assert shown(home)["unit"] == {"id": "person", "records": 2}
    refused = release(home, "out")
    assert refused.exit_code == 2
    for told in (refused, run("validate", home / "people.yaml")):
        assert told.exit_code == 2
        assert "Error: unit: found Unit(records=1); expected Unit(records=2, id='person')" in told.stderr
        assert "`matrixdp ledger init` with --unit-records 1 [" in told.stderr
    (home / "people.yaml").write_text(SPEC + "unit: {id: person, max_records: 2}\n")
    assert release(home, "out").exit_code == 0
    (entry,) = shown(home)["entries"]
    assert entry["budget"]["unit"] == {"id": "person", "records": 2}
    assert json.loads((home / "out" / "release.json").read_text())["privacy"]["ledger"]["spent_after"]
    assert release(home, "more").exit_code == 2


def test_what_a_ledger_holds_does_not_control_a_terminal(home: Path):
    init(home)
    ledger = Ledger.open(home / "accounts" / "people.ledger")
    ledger.reserve(GAUSSIAN.cost(mdp.Budget(rho=0.1)), mdp.Budget(rho=0.1), home / "a\x1b[2Jb")
    for command in ("show", "recover"):
        result = run("ledger", command, ledger.path)
        assert result.exit_code == 0
        assert "\x1b[2J" not in result.stdout
