"""The transaction against what callers do to it: arguments, callbacks, exits and other runs."""

import inspect
import json
import os
import shutil
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import matrixdp as mdp
from matrixdp.measure import measurement

DOMAIN = {"sex": ["female", "male"]}
SPECIFICATION = {"domain": DOMAIN, "workload": [{"marginals": [0, 1]}], "privacy": {"rho": 0.5}}
TABLE = {"sex": ["male", "female", "male"]}


def left(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@pytest.fixture
def ledger(tmp_path: Path) -> mdp.Ledger:
    return mdp.Ledger.create(tmp_path / "l.ledger", "people", mdp.Budget(rho=1))


def run(folder: Path, **options: Any) -> None:
    mdp.release(SPECIFICATION, folder / "out", table=TABLE, **options)


WRONG: list[tuple[str, str, Any]] = [
    *(("out-of-range", "expect", value) for value in (-5, 0, 2**53)),
    *(("wrong-type", "expect", value) for value in ("x", True, 3.0)),
    ("out-of-range", "max_answers", -1),
    ("wrong-type", "max_answers", None),
    ("wrong-type", "key", "x"),
]


def _failing(stage: str, _: float | None) -> None:
    if stage == "writing answers":
        raise RuntimeError


@pytest.mark.parametrize(("code", "name", "value"), WRONG)
def test_wrong_arguments_spend_nothing(code: str, name: str, value: Any, tmp_path: Path, ledger: mdp.Ledger):
    with pytest.raises(mdp.SpecificationError) as caught:
        run(tmp_path, ledger=ledger, **{name: value})
    assert (caught.value.code, caught.value.path) == (code, (name,))
    assert not ledger.entries
    assert left(tmp_path) == ["l.ledger"]


def test_numbers_of_other_types_are_taken(tmp_path: Path):
    run(tmp_path, expect=np.int64(3), max_answers=np.int64(5), csv=np.True_)
    assert mdp.verify_release(tmp_path / "out").holds


def test_a_whole_measurement_survives_a_callback_that_fails_while_answers_are_written(tmp_path: Path):
    with pytest.raises(RuntimeError) as caught:
        run(tmp_path, progress=_failing)
    assert "The measurement is whole" in caught.value.__notes__[0]
    assert mdp.recover_release(tmp_path / "out").is_dir()
    assert mdp.verify_release(tmp_path / "out").holds


def test_an_exit_after_the_budget_was_spent_stops_the_next_run(tmp_path: Path):
    def leave(stage: str, share: float | None) -> None:
        if stage == "measuring" and share:
            raise SystemExit(0)

    with pytest.raises(SystemExit):
        run(tmp_path, progress=leave)
    with pytest.raises(mdp.StorageError) as caught:
        run(tmp_path)
    assert caught.value.code == "already-spent"


def test_a_file_that_appears_in_the_folder_while_it_is_replaced_stays_there(tmp_path: Path):
    run(tmp_path)

    def put(stage: str, _: float | None) -> None:
        if stage == "writing answers":
            (tmp_path / "out" / "mine.txt").write_text("mine")

    with pytest.raises(mdp.StorageError) as caught:
        run(tmp_path, force=True, progress=put)
    assert caught.value.code == "file-exists"
    assert (tmp_path / "out" / "mine.txt").read_text() == "mine"
    (tmp_path / "out" / "mine.txt").unlink()
    assert mdp.verify_release(tmp_path / "out").holds
    mdp.recover_release(tmp_path / "out", force=True)
    assert left(tmp_path) == ["out"]


def test_a_folder_in_a_release_is_rejected(tmp_path: Path, ledger: mdp.Ledger):
    run(tmp_path)
    with pytest.raises(mdp.StorageError) as caught:
        run(tmp_path / "out" / "more", ledger=ledger)
    assert caught.value.code == "conflict"
    assert not ledger.entries
    assert mdp.verify_release(tmp_path / "out").holds


def test_a_disk_without_room_for_the_measurement_costs_nothing(
    tmp_path: Path, ledger: mdp.Ledger, monkeypatch: pytest.MonkeyPatch
):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=8))
    with pytest.raises(mdp.StorageError) as caught:
        run(tmp_path, ledger=ledger)
    assert caught.value.code == "no-place"
    assert not ledger.entries
    assert left(tmp_path) == ["l.ledger"]


@pytest.mark.skipif(not hasattr(os, "pathconf"), reason="limits of POSIX")
def test_a_path_too_long_for_the_files_of_a_release_costs_nothing(tmp_path: Path, ledger: mdp.Ledger):
    # the folder can be made, the file of the measurement in it cannot
    room = os.pathconf(tmp_path, "PC_PATH_MAX") - 60
    deep = tmp_path
    while len(str(deep)) < room - 1:
        deep /= "d" * min(room - len(str(deep)) - 1, 200)
    deep.mkdir(parents=True)
    with pytest.raises(mdp.StorageError) as caught:
        run(deep, ledger=ledger)
    assert caught.value.code == "no-place"
    assert not ledger.entries
    assert not left(deep)


NAMES = [b"p\xe9", b"a\"b'c", b"two\nlines", b"%20 #", b"q?x=1", b"file:x"]


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_may_have_any_name(name: bytes, tmp_path: Path):
    out = tmp_path / os.fsdecode(name)
    ledger = mdp.Ledger.create(f"{out}.ledger", "people", mdp.Budget(rho=1))
    statistics = {**SPECIFICATION, "workload": [{"marginals": [0, 1]}, {"share": {"marginals": [["sex"]]}}]}
    with pytest.raises(RuntimeError):
        mdp.release(statistics, out, table=TABLE, ledger=ledger, csv=True, progress=_failing)
    assert [one.state for one in mdp.recover_ledger(ledger)] == ["released"]
    assert mdp.verify_release(out, ledger=ledger).holds
    release = mdp.load_release(out)
    for format in ("csv", "parquet", "xlsx", "ddi"):  # noqa: A001
        assert left(release.save_tables(out / "tables" / format, format=format))
    shutil.rmtree(out / "tables")
    model = release.model()
    model.save(f"{out}.model")
    assert mdp.verify_model(f"{out}.model").holds
    for ending in ("csv", "parquet"):
        made = mdp.Model.load(f"{out}.model").save_records(f"{out}.{ending}")
        assert json.loads(Path(f"{made}.json").read_bytes())["files"].keys() == {made.name}


@pytest.mark.parametrize("force", [False, True])
def test_two_runs_for_one_folder_never_both_spend(force, tmp_path: Path):
    second: list[mdp.StorageError] = []

    def another(_: mdp.Budget) -> None:
        with pytest.raises(mdp.StorageError) as caught:
            run(tmp_path, force=force)
        second.append(caught.value)

    run(tmp_path, force=force, before_measuring=another)
    assert [error.code for error in second] == ["already-spent"]
    assert left(tmp_path) == ["out"]


def test_a_ledger_behind_a_link_has_the_lock_of_the_ledger(tmp_path: Path, ledger: mdp.Ledger):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.ledger"
    link.symlink_to(tmp_path / "l.ledger")

    def recover(_: str, share: float | None) -> None:
        if share:
            assert not any(one.settled for one in mdp.recover_ledger(ledger))

    run(tmp_path, ledger=link, progress=recover)
    assert [entry.state for entry in ledger.entries] == ["released"]


def test_a_folder_that_a_callback_deletes_leaves_a_note_of_the_spent_budget(tmp_path: Path):
    home = tmp_path / "home"

    def remove(stage: str, share: float | None) -> None:
        if stage == "measuring" and share:
            shutil.rmtree(home, ignore_errors=True)

    with pytest.raises(OSError, match="No such file") as caught:
        run(home, progress=remove)
    assert "The budget was spent: rho 0.5, add_remove neighbours. No" in caught.value.__notes__[0]


@pytest.mark.parametrize("function", [mdp.release, mdp.Strategy.measure])
def test_what_a_place_means_beyond_a_link_is_what_the_system_means(
    tmp_path: Path, ledger: mdp.Ledger, function: object
):
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
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
def test_an_interrupt_as_the_debit_returns_is_told(tmp_path: Path, ledger: mdp.Ledger, event: str):
    debited = False

    def trace(frame: FrameType, what: str, _: Any) -> Any:
        nonlocal debited
        if frame.f_code is measurement.debit.__code__ and what == "return":
            debited = True
            if event == "return":
                raise KeyboardInterrupt
        elif debited and frame.f_code is inspect.unwrap(measurement.measure).__code__ and what == "line":
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            run(tmp_path, ledger=ledger)
    finally:
        sys.settrace(before)
    assert len(ledger.entries) == 1
    assert str(ledger.path) in caught.value.__notes__[0]


def test_a_release_in_memory_has_all_options_of_the_specification_and_is_debited(tmp_path: Path):
    ledger = mdp.Ledger.create(tmp_path / "l.ledger", "people", mdp.Budget(rho=200))
    wider = {
        **SPECIFICATION,
        "privacy": {"rho": 60, "ledger": str(ledger.path)},
        "out_of_domain": {"sex": {"other": "male"}},
    }
    found = mdp.release(wider, table={"sex": [*TABLE["sex"], "x", "x"]}, accept_weak_privacy=True)
    assert [round(value) for value in found.table("sex")["estimate"].to_pylist()] == [1, 4]
    assert round(ledger.left.rho) == 140


@pytest.mark.parametrize("option", ["csv", "force", "key"])
def test_options_of_a_folder_need_one(option: str, ledger: mdp.Ledger, tmp_path: Path):
    given: Any = mdp.SigningKey.load(mdp.make_keys(tmp_path / "k")[0]) if option == "key" else True
    with pytest.raises(mdp.SpecificationError) as caught:
        mdp.release(SPECIFICATION, table=TABLE, ledger=ledger, **{option: given})
    assert (caught.value.code, caught.value.path) == ("conflict", ("out",))
    assert not ledger.entries
