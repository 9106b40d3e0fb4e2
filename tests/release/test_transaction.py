"""The transaction against what callers do to it: arguments, callbacks, exits and other runs."""

import shutil
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.measure import measurement

SPECIFICATION = {
    "domain": {"sex": ["female", "male"]},
    "workload": [{"marginals": [0, 1]}],
    "privacy": {"rho": 0.5},
}
TABLE = {"sex": ["male", "female", "male"]}


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"expect": -5}, "out-of-range"),
        ({"expect": 0}, "out-of-range"),
        ({"expect": 2**53}, "out-of-range"),
        ({"expect": "x"}, "wrong-type"),
        ({"expect": True}, "wrong-type"),
        ({"expect": 3.0}, "wrong-type"),
        ({"max_answers": -1}, "out-of-range"),
        ({"max_answers": None}, "wrong-type"),
        ({"key": "x"}, "wrong-type"),
    ],
)
def test_wrong_arguments_spend_nothing(asked, code, tmp_path: Path):
    ledger = mdp.Ledger.create(tmp_path / "l.ledger", "people", mdp.Budget(rho=1))
    with pytest.raises(mdp.SpecificationError) as caught:
        mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE, ledger=ledger, **asked)
    assert (caught.value.code, caught.value.path) == (code, tuple(asked))
    assert not ledger.entries
    assert left(tmp_path) == ["l.ledger"]


def test_numbers_of_other_types_are_taken(tmp_path: Path):
    asked = {"expect": np.int64(3), "max_answers": np.int64(5), "csv": np.True_}
    mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE, **asked)  # type: ignore[arg-type]
    assert mdp.verify_release(tmp_path / "out").holds


def test_a_whole_measurement_survives_a_callback_that_fails_while_answers_are_written(tmp_path: Path):
    def progress(stage: str, _: float | None) -> None:
        if stage == "writing answers":
            raise RuntimeError

    with pytest.raises(RuntimeError) as caught:
        mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE, progress=progress)
    assert "The measurement is whole" in caught.value.__notes__[0]
    assert mdp.recover_release(tmp_path / "out").is_dir()
    assert mdp.verify_release(tmp_path / "out").holds


def test_an_exit_after_the_budget_was_spent_stops_the_next_run(tmp_path: Path):
    def leave(stage: str, share: float | None) -> None:
        if stage == "measuring" and share:
            raise SystemExit(0)

    with pytest.raises(SystemExit):
        mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE, progress=leave)
    with pytest.raises(mdp.StorageError) as caught:
        mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE)
    assert caught.value.code == "already-spent"


@pytest.mark.parametrize("force", [False, True])
def test_two_runs_for_one_folder_never_both_spend(force, tmp_path: Path):
    second: list[mdp.StorageError] = []

    def another(_: mdp.Budget) -> None:
        with pytest.raises(mdp.StorageError) as caught:
            mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE, force=force)
        second.append(caught.value)

    mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE, force=force, before_measuring=another)
    assert [error.code for error in second] == ["already-spent"]
    assert left(tmp_path) == ["out"]


def test_a_ledger_behind_a_link_has_the_lock_of_the_ledger(tmp_path: Path):
    ledger = mdp.Ledger.create(tmp_path / "l.ledger", "people", mdp.Budget(rho=1))
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.ledger"
    link.symlink_to(tmp_path / "l.ledger")

    def recover(_: str, share: float | None) -> None:
        if share:
            assert not any(one.settled for one in mdp.recover_ledger(ledger))

    mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE, ledger=link, progress=recover)
    assert [entry.state for entry in ledger.entries] == ["released"]


def test_a_folder_that_a_callback_deletes_leaves_a_note_of_the_spent_budget(tmp_path: Path):
    home = tmp_path / "home"

    def remove(stage: str, share: float | None) -> None:
        if stage == "measuring" and share:
            shutil.rmtree(home, ignore_errors=True)

    with pytest.raises(OSError, match="No such file") as caught:
        mdp.release(SPECIFICATION, home / "out", table=TABLE, progress=remove)
    assert "The budget was spent: Budget(rho=0.5, neighbours='add_remove'). No" in caught.value.__notes__[0]


@pytest.mark.parametrize("function", [mdp.release, mdp.Strategy.measure])
def test_what_a_place_means_beyond_a_link_is_what_the_system_means(tmp_path: Path, function):
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    ledger = mdp.Ledger.create(tmp_path / "l.ledger", "people", mdp.Budget(rho=1))
    out = tmp_path / "link" / ".." / "out"
    if function is mdp.release:
        mdp.release(SPECIFICATION, out, table=TABLE, ledger=ledger)
        assert mdp.load_release(tmp_path / "far" / "out").private
        assert [entry.state for entry in ledger.entries] == ["released"]
    else:
        workload = mdp.load_specification(SPECIFICATION).workload
        mdp.select(workload).measure(TABLE, mdp.Budget(rho=0.5), ledger=ledger, release=out)
    assert [entry.release for entry in ledger.entries] == [str(tmp_path / "far" / "out")]


@pytest.mark.parametrize("event", ["return", "line"])
def test_an_interrupt_as_the_debit_returns_is_told(tmp_path: Path, event: str):
    ledger = mdp.Ledger.create(tmp_path / "l.ledger", "people", mdp.Budget(rho=1))
    debited = False

    def trace(frame: FrameType, what: str, _: Any) -> Any:
        nonlocal debited
        if frame.f_code is measurement.debit.__code__ and what == "return":
            debited = True
            if event == "return":
                raise KeyboardInterrupt
        elif debited and frame.f_code is measurement.measure.__code__ and what == "line":
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            mdp.release(SPECIFICATION, tmp_path / "out", table=TABLE, ledger=ledger)
    finally:
        sys.settrace(before)
    assert len(ledger.entries) == 1
    assert str(ledger.path) in caught.value.__notes__[0]
