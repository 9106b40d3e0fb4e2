"""The transaction against what callers do to it: arguments, callbacks, exits and other runs."""

from pathlib import Path

import numpy as np
import pytest

import matrixdp as mdp

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
