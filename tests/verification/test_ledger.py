"""Releases and the ledger that they say they were debited to."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import matrixdp as mdp
from matrixdp.verification import Finding
from tests.forging import forge_measurement

WORKLOAD = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals([0, 1]))
STRATEGY = mdp.select(WORKLOAD, mechanism="residual")


def release(folder: Path, **given: Any) -> Path:
    measured = STRATEGY.measure({"sex": ["male"]}, mdp.Budget(rho=0.1), **given)
    mdp.save_release(measured.reconstruct(), folder)
    return folder


@pytest.fixture
def ledger(tmp_path: Path) -> mdp.Ledger:
    return mdp.Ledger.create(tmp_path / "a.ledger", "health", mdp.Budget(rho=1))


def told(folder: Path, ledger: Path | None) -> Finding:
    [finding] = [f for f in mdp.verify_release(folder, ledger=ledger) if f.subject == "ledger"]
    return finding


def test_a_debit_is_found(ledger: mdp.Ledger, tmp_path: Path) -> None:
    release(tmp_path / "first", ledger=ledger)
    folder = release(tmp_path / "out", ledger=ledger)
    finding = told(folder, ledger.path)
    assert finding.outcome == "ok"
    assert finding.words == "health holds the debit, entry 2 of 2: released"
    assert mdp.verify_release(folder, ledger=ledger.path).holds
    assert mdp.verify_release(folder, ledger=ledger).holds
    assert mdp.recover_ledger(ledger.path) == mdp.recover_ledger(ledger) == ()
    without = told(folder, None)
    assert without.outcome == "not checked"
    assert f"entry {ledger.entries[1].id}, which was not given" in without.words


def test_other_ledgers_do_not_hold_it(ledger: mdp.Ledger, tmp_path: Path) -> None:
    folder = release(tmp_path / "out", ledger=ledger)
    other = mdp.Ledger.create(tmp_path / "b.ledger", "health", mdp.Budget(rho=1))
    finding = told(folder, other.path)
    assert finding.outcome == "failed"
    assert finding.words == f"it has no entry {ledger.entries[0].id}"
    undebited = told(release(tmp_path / "none"), ledger.path)
    assert undebited.words == "the release says that it was debited to none"
    (tmp_path / "text").write_text("no ledger")
    assert told(folder, tmp_path / "text").outcome == "failed"


def without_triggers(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        triggers = connection.execute(query).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE entries SET measurement = replace(printf('%64d', 0), ' ', 'a')", "measurement is another"),
        ("UPDATE entries SET state = 'reserved', measurement = NULL", "its entry is reserved; expected"),
        ("UPDATE entries SET state = 'spent by crash'", "its entry is abandoned; expected measured"),
        ("UPDATE entries SET cost = '1/10'", "damaged or altered"),
        ("DELETE FROM entries", "it has no entry"),
    ],
)
def test_altered_entries_are_found(ledger: mdp.Ledger, tmp_path: Path, statement: str, words: str) -> None:
    folder = release(tmp_path / "out", ledger=ledger)
    without_triggers(ledger.path, statement)
    failed = [f.words for f in mdp.verify_release(folder, ledger=ledger.path).failed]
    assert any(words in one for one in failed)


def named(entry: dict[str, Any]) -> Any:
    """Return what lets a measurement name another entry."""
    return lambda header, _: header["authorization"].update(ledger=entry)


def test_a_release_that_names_the_entry_of_another_is_found(ledger: mdp.Ledger, tmp_path: Path) -> None:
    first = release(tmp_path / "first", ledger=ledger)
    second = release(tmp_path / "second")
    entry: dict[str, Any] = {}
    forge_measurement(first, lambda header, _: entry.update(header["authorization"]["ledger"]))
    forge_measurement(second, named(entry))
    failed = {f.words for f in mdp.verify_release(second, ledger=ledger.path).failed if f.subject == "ledger"}
    assert failed == {"the measurement is another than that of the release"}
    for other in ({"dataset": "wealth"}, {"digest": "0" * 64}):
        forge_measurement(first, named({**entry, **other}))
        failed = {f.words for f in mdp.verify_release(first, ledger=ledger.path).failed}
        assert any(words.endswith("is another than that of the release") for words in failed)
