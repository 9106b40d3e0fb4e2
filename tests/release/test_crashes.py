"""Releases that are stopped, by a failure or a kill at each step: nothing half is served, nothing unsaid."""

import errno
import json
import os
import shutil
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import StorageError
from matrixdp.measure import noisy_answers
from matrixdp.releases import record, transaction
from matrixdp.storage import archive
from tests.builders import TABLE, strategy
from tests.release import stopping
from tests.release.stopping import fail, hidden, kill

BUDGET = "rho 0.5, add_remove neighbours"


@pytest.mark.parametrize(("force", "exchange"), [("new", "none"), ("force", "none"), ("force", "whole")])
def test_a_process_killed_at_each_step(tmp_path: Path, force: str, exchange: str):
    def check(home: Path) -> Hashable:
        out = home / "out"
        kinds = tuple(sorted(path.suffix for path in hidden(home)))
        for folder in hidden(home):
            with pytest.raises(StorageError, match=r"not served|put aside"):
                mdp.load_release(folder)
        confidence = mdp.load_release(out).confidence if out.exists() else None
        assert confidence is not None or force == "new" or exchange == "none"
        spent = [folder for folder in hidden(home) if (folder / record.SPENT).exists()]
        # what was paid for is in its place, or stands in the way of paying again
        if any((folder / record.MEASUREMENT).exists() for folder in spent):
            assert confidence != 0.8
            recovered = Path(shutil.copytree(home, tmp_path / "recovered")) / "out"
            mdp.recover_release(recovered, force=True)
            assert mdp.load_release(recovered).confidence == 0.95  # nothing else was asked
            assert hidden(recovered.parent) == []
            shutil.rmtree(recovered.parent)
        for folder in spent:
            with pytest.raises(StorageError, match=r"rho 0\.5.*was spent for it, and counts"):
                transaction.refuse_to_spend_again(out)
            transaction.remove_release(folder)
            for path in folder.iterdir() if folder.exists() else ():
                path.unlink()
            if folder.exists():
                folder.rmdir()
        transaction.refuse_to_spend_again(out)
        transaction.settle(out)
        assert hidden(home) == []
        assert out.exists() or force == "new"
        if out.exists():
            assert mdp.load_release(out).confidence in {0.8, 0.9}
            assert not (out / record.SPENT).exists()
        return confidence, kinds

    measured = strategy().measure(TABLE, mdp.Budget(rho=0.5))
    earlier = mdp.save_release(measured.reconstruct(confidence=0.9), tmp_path / "earlier")
    home = tmp_path / "home"
    home.mkdir()
    if force == "force":
        shutil.copytree(earlier, home / "out")
    seen = kill(home, "replace", earlier, exchange, force, check=check)
    assert seen.total() > 10
    assert mdp.load_release(home / "out").confidence == 0.8
    assert (None, (".replaced", ".unfinished")) in seen or (force, exchange) != ("force", "none")
    assert (0.8, (".unfinished",)) in seen or exchange == "none"


@dataclass
class Done:
    """What a run came to: of a function what it raised, told as a command tells it."""

    exit_code: int
    stderr: str


def command(home: Path, force: bool = False, seed: int | None = None) -> Done:
    words = ["release", str(home / "people.yaml"), "--out", str(home / "out"), "--noise", "gaussian"]
    words += ["--force"] * force + ([] if seed is None else ["--seed-not-private", str(seed)])
    result = stopping.run(*words)
    return Done(result.exit_code, result.stderr)


def function(home: Path, force: bool = False, seed: int | None = None) -> Done:
    try:
        mdp.release(home / "people.yaml", home / "out", noise="gaussian", force=force, seed_not_private=seed)
    except (mdp.MatrixDPError, OSError, KeyboardInterrupt) as error:
        told = getattr(error, "strerror", None) or str(error)
        notes = "".join(f"{note}.\n" for note in getattr(error, "__notes__", ()))
        return Done(2 if isinstance(error, mdp.MatrixDPError) else 1, f"Error: {told}\n{notes}")
    return Done(0, "")


Run = Callable[..., Done]


@pytest.fixture(params=[command, function], ids=["command", "python"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.param


def test_a_budget_is_marked_as_spent_before_noise_is_drawn(home: Path, run: Run, monkeypatch):
    marked, real = [], noisy_answers.noisy

    def noisy(*given: Any, **named: Any) -> Any:
        marked.append([(folder / record.SPENT).exists() for folder in hidden(home)])
        return real(*given, **named)

    monkeypatch.setattr(noisy_answers, "noisy", noisy)
    assert run(home).exit_code == 0
    assert marked
    assert all(one == [True] for one in marked)


def test_nothing_is_spent_where_the_budget_is_declined(home: Path, monkeypatch):
    monkeypatch.setattr(noisy_answers, "noisy", fail)
    asked = []

    def decline(budget: mdp.Budget) -> None:
        asked.append(budget)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mdp.release(home / "people.yaml", home / "out", before_measuring=decline)
    assert asked == [mdp.Budget(rho=0.5)]
    assert hidden(home) == []


def test_a_full_disk_before_the_noise_spends_nothing(home: Path, run: Run, monkeypatch):
    monkeypatch.setattr(os, "fsync", fail)
    result = run(home)
    assert result.exit_code == 1
    assert result.stderr == "Error: No space left on device\n"
    assert hidden(home) == []


def test_a_full_disk_after_the_noise_says_what_was_spent(home: Path, run: Run, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(archive.ArchiveWriter, "close", fail)
        result = run(home)
        assert result.exit_code == 1
        assert "No space left on device" in result.stderr
        assert f"The budget was spent: {BUDGET}. No measurement was kept.\n" in result.stderr
        assert hidden(home) == []
    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    result = run(home)
    assert result.exit_code == 1
    (folder,) = hidden(home)
    kept = folder / "measurement.mdp"
    recovery = f"`matrixdp recover {home / 'out'}` makes a release of it, at no further cost"
    assert f"The budget was spent: {BUDGET}. The measurement is whole: {kept}. {recovery}.\n" in result.stderr
    assert sorted(path.name for path in folder.iterdir()) == ["measurement.mdp", "request.json", "spent.txt"]
    assert not (home / "out").exists()
    monkeypatch.undo()
    answered = stopping.run("answer", folder, "marginals: [1]")
    assert answered.exit_code == 2
    assert "stopped before its folder took its place" in answered.stderr
    assert f"{BUDGET} was spent for it, and counts; the measurement is whole: {kept}" in answered.stderr
    again = run(home, force=True)
    assert again.exit_code == 2
    assert (
        f"the measurement is whole: {kept}. {recovery}. To spend a budget once more, remove that folder"
        in again.stderr
    )


@pytest.mark.parametrize("replaces", [False, True])
def test_each_failing_call_of_the_system_is_told(home: Path, run: Run, monkeypatch, replaces: bool):
    if replaces:
        assert run(home).exit_code == 0
    before = (home / "out" / "release.json").read_bytes() if replaces else None
    real = {name: getattr(os, name) for name in ("fsync", "replace", "rename")}
    spent = complete = 0
    for step in range(40):
        left = step
        failed = False

        def counted(name: str):
            def call(*arguments: object):
                nonlocal left, failed
                left -= 1
                if left == -1:
                    failed = True
                    raise OSError(errno.EIO, "Input/output error")
                return real[name](*arguments)

            return call

        with monkeypatch.context() as patch:
            for name in real:
                patch.setattr(os, name, counted(name))
            patch.setattr(transaction, "_exchange", lambda *_: False)
            result = run(home, force=True)
        if not failed:
            assert result.exit_code == 0
            break
        assert result.exit_code in {1, 2}, result.stderr
        if "The release is whole in" in result.stderr:
            complete += 1
            assert mdp.load_release(home / "out").private
            before = (home / "out" / "release.json").read_bytes() if replaces else None
        elif replaces:
            assert (home / "out" / "release.json").read_bytes() == before
        else:
            assert not (home / "out").exists()
        kept = [folder for folder in hidden(home) if (folder / record.SPENT).exists()]
        assert ("The measurement is whole" in result.stderr) == bool(kept)
        spent += f"The budget was spent: {BUDGET}" in result.stderr
        for folder in (*hidden(home), *([] if replaces else [home / "out"])):
            shutil.rmtree(folder, ignore_errors=True)
    else:
        raise AssertionError("never came to an end")
    assert spent > 5
    assert complete >= 1


def test_an_interrupt_after_the_noise_is_told(home: Path, run: Run, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pq.ParquetWriter, "write_table", interrupt)
    assert "The measurement is whole" in run(home).stderr


def test_a_failure_after_the_folder_is_in_place_is_told(home: Path, monkeypatch):
    monkeypatch.setattr("matrixdp.cli.release._print", fail)
    result = command(home)
    assert f"The budget was spent: {BUDGET}. The release is whole in {home / 'out'}.\n" in result.stderr
    assert json.loads((home / "out" / "release.json").read_text())["private"]


def test_seeded_demonstrations_spend_nothing(home: Path, run: Run, monkeypatch):
    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    assert "spent" not in run(home, seed=1).stderr
    assert hidden(home) == []
