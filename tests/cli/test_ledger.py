"""The ledger from the command line: made, shown, debited, refused; and what a release says of it."""

import json
import re
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.ledger import Ledger
from matrixdp.ledger import ledger as ledgers
from matrixdp.noise import GAUSSIAN
from matrixdp.sources.base import Source
from matrixdp.storage.formats import load_measurement
from tests.cli.commands import figures, refused, run, words

SPEC = """
data: people.parquet
domain: {sex: [female, male]}
workload:
  - marginals: [1]
privacy: {rho: 0.4, ledger: accounts/people.ledger}
"""
SPENT = "ledger: found rho 0.4 with gaussian noise"


@pytest.fixture(autouse=True)
def home(here: Path) -> Path:
    pl.DataFrame({"sex": ["female", "male"] * 50, "person": list(range(50)) * 2}).write_parquet(
        "people.parquet"
    )
    Path("people.yaml").write_text(SPEC)
    Path("accounts").mkdir()
    return here


def init(*options: object, total: str = "rho=1.0", path: str = "accounts/people.ledger"):
    return run("ledger", "init", path, "--dataset", "people", "--total", total, *options)


def release(out: str, *options: object, noise: str = "gaussian", status: int = 0):
    return run("release", "people.yaml", "--out", out, "--noise", noise, *options, status=status)


def shown() -> dict:
    return figures("ledger", "show", "accounts/people.ledger")


def record(out: str) -> dict:
    return json.loads(Path(out, "release.json").read_text())


def states() -> list[str]:
    return [entry["state"] for entry in shown()["entries"]]


def fail(*_: object, **__: object) -> None:
    raise OSError(5, "Input/output error")


def test_releases_are_debited_until_too_little_is_left(home: Path, monkeypatch: pytest.MonkeyPatch):
    assert "the ledger of people, with a total of rho 1" in init().stdout
    refused("ledger", "init", "accounts/people.ledger", "--dataset", "people", "--total", "rho=2")
    empty = shown()
    assert (empty["total"], empty["spent"], empty["left"]) == ({"rho": 1.0}, {"rho": 0.0}, {"rho": 1.0})
    assert empty["entries"] == []
    assert "No release was debited yet." in run("ledger", "show", "accounts/people.ledger").stdout
    for out in ("one", "two"):
        release(out)
        written, entry = record(out), shown()["entries"][-1]
        assert (entry["state"], entry["release"]) == ("released", str(home / out))
        assert entry["measurement"] == written["files"]["measurement.mdp"]["sha256"]
        assert entry["cost"] == written["privacy"]["cost"]
        told = written["authorization"]["ledger"]
        assert told == written["privacy"]["ledger"]
        assert (told["entry"], told["digest"]) == (entry["entry"], entry["digest"])
        assert load_measurement(Path(out, "measurement.mdp"))[0].authorization.ledger is not None
    full = shown()
    assert 0.79 < full["spent"]["rho"] <= 0.8
    assert 0.2 <= full["left"]["rho"] < 0.21
    assert states() == ["released", "released"]
    table = run("ledger", "show", "accounts/people.ledger").stdout
    assert table.count("released") == 2
    for row in (["spent", "rho", "0.8"], ["left", "rho", "0.2"]):
        assert row in [line.split() for line in table.splitlines()]
    assert re.search(r"unit +one record a person", table)
    # no table is opened, and no strategy selected
    monkeypatch.setattr("matrixdp.sources.open_source", None)
    monkeypatch.setattr("matrixdp.strategy.strategy.select_strategy", None)
    told = release("three", status=2).stderr
    assert f"Error: {SPENT}" in told
    assert "expected at most rho 0.2, which is what" in told
    assert (Path("three").exists(), len(states())) == (False, 2)


def test_a_saved_strategy_is_refused_before_the_data_are_counted(monkeypatch: pytest.MonkeyPatch):
    init(total="rho=0.3")
    run("select", "people.yaml", "--save", "s.mdp")
    monkeypatch.setattr(Source, "marginals", None)
    assert SPENT in release("out", "--strategy", "s.mdp", status=2).stderr


def test_the_option_takes_the_place_of_the_specification():
    init(path="other.ledger", total="mu=2")
    release("out", "--ledger", "other.ledger")
    assert [entry.state for entry in Ledger.open("other.ledger").entries] == ["released"]
    statement = record("out")["privacy"]
    assert "debited to the ledger of people" in statement["text"]
    told = {clause["id"]: clause["text"] for clause in statement["covered"] + statement["not_covered"]}
    assert "together keep to 2-GDP" in told["ledger"]
    assert "were not debited to the ledger of people, and their costs add up" in told["other-releases"]
    assert "no ledger" not in json.dumps(statement)


def test_seeded_noise_is_not_debited(home: Path):
    init()
    seeded = release("out", "--seed-not-private", 1)
    assert f"Seeded noise: {home / 'accounts' / 'people.ledger'} is not debited." in seeded.stderr
    assert (states(), record("out")["authorization"]["ledger"]) == ([], None)
    assert record("out")["warning"].endswith("no ledger was debited")


def test_validate_and_select_say_whether_enough_is_left():
    def told() -> list[dict]:
        return [figures(command, "people.yaml")["ledger"] for command in ("validate", "select")]

    def enough() -> list[bool | None]:
        return [ledger["enough"] for ledger in told()]

    assert all("no such file" in ledger["says"] for ledger in told())
    assert enough() == [False, False]
    init(total="rho=0.5")
    assert [ledger["left"] for ledger in told()] == [{"rho": 0.5}] * 2
    assert enough() == [True, True]
    release("out")
    assert all(f"not enough: {SPENT}" in ledger["says"] for ledger in told())
    assert enough() == [False, False]
    assert "ledger" in words("validate", "people.yaml")
    assert "not enough" in words("select", "people.yaml")
    targets = SPEC.replace("rho: 0.4", "minimize: rho") + "targets: {sex: 10}\n"
    Path("people.yaml").write_text(targets)
    assert enough() == [None, True]
    release("least")
    assert len(states()) == 2


def test_one_noise_of_two_may_have_enough_left():
    """A total of (epsilon, delta) that Laplace noise has used up in part has more left for Laplace noise."""
    init(total="epsilon=1,delta=1e-6")
    Path("people.yaml").write_text(SPEC.replace("rho: 0.4", "epsilon: 0.5, delta: 1.0e-6"))
    release("a", noise="laplace")
    assert figures("validate", "people.yaml")["ledger"]["enough"] is True
    told = release("b", status=2).stderr
    assert "at most epsilon 0.5, delta 1e-06 with the noise that it allows most, which" in told
    release("b", noise="laplace")


def test_terms_are_those_of_every_release():
    init("--neighbours", "replace", total="epsilon=0.1,delta=1e-6")
    budget = {"epsilon": "1/10", "delta": "1/1000000", "neighbours": "replace", "unit": {"records": 1}}
    assert shown()["exact"]["total"] == budget
    told = release("out", status=2).stderr
    assert "privacy.neighbours: found add_remove; expected replace, which the ledger's total is for" in told


def test_the_unit_of_a_ledger_is_that_of_every_release():
    init("--unit-records", 2, "--unit-id", "person", total="rho=0.4")
    unit = {"id": "person", "records": 2}
    assert shown()["unit"] == unit
    for told in (release("out", status=2), run("validate", "people.yaml", status=2)):
        assert "Error: unit: found Unit(records=1); expected Unit(records=2, id='person')" in told.stderr
        assert "`matrixdp ledger init` with --unit-records 1 [" in told.stderr
    Path("people.yaml").write_text(SPEC + "unit: {id: person, max_records: 2}\n")
    release("out")
    (entry,) = shown()["entries"]
    assert entry["budget"]["unit"] == unit
    assert record("out")["privacy"]["ledger"]["spent_after"]
    release("more", status=2)


def test_a_ledger_bounds_the_values_of_an_attribute():
    options = ("--unit-id", "person", "--unit-per", "age", "--unit-max-values", 3, "--unit-constant", "sex")
    init(*options, total="rho=0.4")
    bounds = {"per": ["age"], "max_values": 3, "max_records_each": 1, "constant": ["sex"]}
    assert shown()["unit"] == {"id": "person", "records": 3} | bounds
    spec = SPEC.replace("data: people.parquet", "").replace("{sex", "{age: 9, sex")
    spec += "unit: {id: person, per: age, max_values: 4, constant: sex}\n"
    Path("people.yaml").write_text(spec)
    asked = run("validate", "people.yaml", status=2).stderr
    assert "--unit-id person --unit-per age --unit-max-values 4 --unit-max-records-each 1" in asked
    assert "--unit-constant sex [conflict]" in asked
    for most in (2, 3):
        Path("people.yaml").write_text(spec.replace("values: 4", f"values: {most}"))
        assert figures("validate", "people.yaml")["ledger"]["enough"] is True
    wrong = run("ledger", "init", "other", "--dataset", "p", "--total", "rho=1", "--unit-per", "a", status=2)
    assert "--unit-max-values: found per without it" in wrong.stderr


def test_a_failure_after_the_debit_says_that_it_counts(monkeypatch: pytest.MonkeyPatch):
    init()
    # what is written fails after what is measured
    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with monkeypatch.context() as patch:
        patch.setattr("matrixdp.measure.noisy_answers.noisy", fail)
        failed = release("out", status=1)
    (entry,) = shown()["entries"]
    assert entry["state"] == "reserved"
    assert f"people: entry {entry['entry']} counts as spent." in failed.stderr
    release("out", "--force", status=1)
    assert states() == ["reserved", "measured"]


def test_a_release_that_its_ledger_cannot_be_told_of_is_whole(monkeypatch: pytest.MonkeyPatch):
    init()

    def gone(*_: object) -> None:
        raise mdp.StorageError("the ledger is gone")

    monkeypatch.setattr(ledgers.Reservation, "released", gone)
    assert "counts as spent. The release is whole in" in release("out", status=2).stderr
    assert mdp.load_release("out").private
    assert states() == ["measured"]


def test_what_a_ledger_holds_does_not_control_a_terminal(home: Path):
    init()
    ledger = Ledger.open(home / "accounts" / "people.ledger")
    ledger.reserve(GAUSSIAN.cost(mdp.Budget(rho=0.1)), mdp.Budget(rho=0.1), home / "a\x1b[2Jb")
    for command in ("show", "recover"):
        assert "\x1b[2J" not in run("ledger", command, ledger.path).stdout
