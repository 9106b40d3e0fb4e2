"""What a stopped release measured becomes a release once, at no further cost, and nothing else does."""

import errno
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Hashable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.cli.release import UNEXPECTED
from matrixdp.errors import StorageError
from matrixdp.locks import Lock
from matrixdp.releases import record, transaction
from matrixdp.storage.archive import digest
from tests.release.stopping import fail, furnish, hidden, kill, run

MARKS = {"measurement.mdp", "request.json", "spent.txt"}


@pytest.fixture(scope="module", params=["command", "python"])
def stopped_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of a release that found the disk full after its measurement was written."""
    home = furnish(tmp_path_factory.mktemp("stopped") / "home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", fail)
        words = ["--confidence", "0.9", "--csv", "--noise", "laplace"]
        if request.param == "command":
            assert run("release", home / "people.yaml", "--out", home / "out", *words).exit_code == 1
        else:
            with pytest.raises(OSError, match="No space left"):
                mdp.release(home / "people.yaml", home / "out", confidence=0.9, csv=True, noise="laplace")
    return home


@pytest.fixture
def stopped(home: Path, stopped_home: Path) -> Path:
    """The folder that the stopped release left, in a home of its own."""
    shutil.copytree(stopped_home, home, dirs_exist_ok=True)
    (folder,) = hidden(home)
    assert {path.name for path in folder.iterdir()} == MARKS
    return folder


def test_what_was_expected_and_signed_is_told_by_a_recovery(home: Path, monkeypatch):
    words = ["--data", home / "people.csv", "--expect", "1000000"]
    with monkeypatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", fail)
        assert run("release", home / "people.yaml", "--out", home / "out", *words).exit_code == 1
    gc.collect()
    result = run("recover", home / "out")
    assert result.exit_code == UNEXPECTED
    assert "1,000,000 were expected" in result.stderr
    assert "`matrixdp sign " in result.stdout


def test_a_stopped_release_is_completed_as_it_was_asked_for(home: Path, stopped: Path):
    measured = (stopped / "measurement.mdp").read_bytes()
    result = run("recover", home / "out")
    assert result.exit_code == 0, result.output
    assert "nothing more was spent" in result.stdout
    assert hidden(home) == []
    files = {"answers.csv", "answers.parquet", "measurement.mdp", "release.json"}
    assert {path.name for path in (home / "out").iterdir()} == files
    assert (home / "out" / "measurement.mdp").read_bytes() == measured
    release = mdp.load_release(home / "out")
    assert release.confidence == 0.9
    assert release.private
    assert pq.read_table(home / "out" / "answers.parquet").num_rows == 17
    # the record is that of a release that was not stopped: how the strategy was chosen too
    other = run("release", home / "people.yaml", "--out", home / "other", "--confidence", "0.9", "--csv",
                "--noise", "laplace")  # fmt: skip
    assert other.exit_code == 0
    records = [json.loads((home / name / "release.json").read_text()) for name in ("out", "other")]
    for own in records:
        for part in ("files", "authorization", "size"):
            del own[part]
        for part in ("measurement", "time"):
            del own["privacy"][part]
    assert records[0] == records[1]
    again = run("recover", home / "out")
    assert again.exit_code == 2
    assert "found none, so there is nothing to recover" in again.stderr


def test_the_folder_that_was_left_can_be_named(home: Path, stopped: Path):
    assert mdp.recover_release(stopped) == home / "out"
    assert mdp.load_release(home / "out").private


def test_what_is_taken_by_another_release_is_not_replaced(home: Path, stopped: Path):
    others = run("release", home / "people.yaml", "--out", home / "others")
    assert others.exit_code == 0
    (home / "others").rename(home / "out")
    before = (home / "out" / "measurement.mdp").read_bytes()
    refused = run("recover", home / "out")
    assert refused.exit_code == 2
    assert "found an earlier release" in refused.stderr
    assert (home / "out" / "measurement.mdp").read_bytes() == before
    assert {path.name for path in stopped.iterdir()} == {*MARKS, "running"}
    assert run("recover", home / "out", "--force").exit_code == 0
    assert mdp.load_release(home / "out").confidence == 0.9
    assert hidden(home) == []


def test_two_that_were_stopped_are_not_mixed_up(home: Path, stopped: Path):
    twin = stopped.with_name(".out.ff-1.unfinished")
    shutil.copytree(stopped, twin)
    with pytest.raises(StorageError, match="found several: name one of them"):
        mdp.recover_release(home / "out")
    mdp.recover_release(twin)
    # the other one holds the same measurement: nothing is made twice
    before = (home / "out" / "release.json").stat().st_mtime_ns
    mdp.recover_release(home / "out")
    assert (home / "out" / "release.json").stat().st_mtime_ns == before
    assert hidden(home) == []


def test_a_damaged_measurement_is_refused_and_stays(home: Path, stopped: Path):
    path = stopped / "measurement.mdp"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(StorageError):
        mdp.recover_release(home / "out")
    assert not (home / "out").exists()
    assert hidden(home) == [stopped]


@pytest.mark.parametrize(
    "request_text",
    ["", "[]", "{}", '{"confidence": 2.5, "csv": false, "max_answers": 9, "origin": {}}',
     '{"confidence": 0.5, "csv": 1, "max_answers": 9, "origin": {}}', "[" * 100_000,
     '{"confidence": 0.5, "csv": false, "max_answers": 9, "origin": {"reason": 3}}',
     '{"confidence": 0.5, "csv": false, "max_answers": 9, "origin": {"reason": "\\udcff"}}',
     '{"confidence": 0.5, "csv": false, "max_answers": 9, "origin": {"certificate": {"loss": 1'
     + "0" * 400 + "}}}"],
)  # fmt: skip
def test_a_damaged_request_is_the_usual_one(home: Path, stopped: Path, request_text: str):
    (stopped / "request.json").write_text(request_text)
    mdp.recover_release(home / "out")
    assert mdp.load_release(home / "out").confidence == 0.95
    assert not (home / "out" / "answers.csv").exists()


def test_a_release_that_runs_is_left_alone(home: Path, stopped: Path):
    with Lock(stopped / record.RUNNING):
        refused = run("recover", home / "out")
    assert refused.exit_code == 2
    assert "still runs; nothing was changed" in refused.stderr
    assert not (home / "out").exists()


def test_a_release_holds_its_lock_until_it_is_in_its_place(tmp_path: Path):
    with transaction.transaction(tmp_path / "out", keep=False) as run:
        folder = run.folder
        assert Lock.is_held(folder / record.RUNNING)
        (folder / "release.json").write_text("{}")
        (folder / record.SPENT).write_text("a budget\n")
        (folder / record.MEASUREMENT).write_bytes(b"")
        with pytest.raises(StorageError, match="still runs"):
            mdp.recover_release(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"release.json", "measurement.mdp"}


def left(home: Path) -> frozenset[tuple[str, bytes | None]]:
    """Return all that is in a folder: every path with what it holds."""
    return frozenset(
        (str(path.relative_to(home)), path.read_bytes() if path.is_file() else None)
        for path in home.rglob("*")
    )


@pytest.mark.slow
def test_a_kill_at_each_step_of_a_recovery_loses_nothing(
    home: Path, stopped: Path, request: pytest.FixtureRequest
):
    """At every other step of what a command left, and at the others of what Python left."""
    first = int(request.node.callspec.params["stopped_home"] == "python")
    measured = digest(stopped / "measurement.mdp")
    seen, states = set(), set()

    def check(home: Path) -> Hashable:
        # before a file is only read, a kill leaves what the one before it left: that is recovered once
        state = left(home)
        if state in states:
            return None
        states.add(state)
        for folder in hidden(home):
            with pytest.raises(StorageError, match="not served"):
                mdp.load_release(folder)
        assert measured in map(digest, home.rglob("measurement.mdp"))
        out = home / "out"
        seen.add(out.exists())
        if any((folder / "measurement.mdp").exists() for folder in transaction.unfinished(out)):
            mdp.recover_release(out)
        assert digest(out / "measurement.mdp") == measured
        assert mdp.load_release(out).confidence == 0.9
        transaction.settle(out)
        assert [path for path in hidden(home) if any(path.iterdir())] == []
        return None

    assert kill(home, "recover", check=check, first=first, stride=2).total() > 7
    assert len(states) > 7
    assert seen == {False, True}


def test_locks_end_with_their_process(tmp_path: Path):
    path = tmp_path / "lock"
    assert not Lock.is_held(path)
    code = (
        "import sys, pathlib; from matrixdp.locks import Lock; lock = Lock(pathlib.Path(sys.argv[1])); "
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"held\n"
        assert Lock.is_held(path)
        with pytest.raises(StorageError, match="held by a process that still runs"):
            Lock(path)
        process.kill()
    assert not Lock.is_held(path)
    Lock(path).remove()
    assert not path.exists()


def test_what_cannot_be_locked_counts_as_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import fcntl

    with pytest.raises(StorageError, match=r"cannot be opened \(No such file"):
        Lock(tmp_path / "none" / "lock")
    with pytest.raises(StorageError, match="a name that is not a path"):
        Lock(Path("\0"))

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    (tmp_path / "lock").touch()
    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(StorageError, match=r"cannot be locked \(No locks available\)"):
        Lock(tmp_path / "lock")
    assert Lock.is_held(tmp_path / "lock")


def test_locks_follow_no_link(tmp_path: Path):
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="cannot be opened"):
        Lock(tmp_path / "lock")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", ["unfinished", "replaced"])
def test_a_link_to_another_release_is_no_leftover(home: Path, kind: str):
    """Who may write beside a release cannot let it remove another one."""
    assert run("release", home / "people.yaml", "--out", home / "theirs").exit_code == 0
    files = {path.name for path in (home / "theirs").iterdir()}
    (home / f".out.{2**22:x}-1.{kind}").symlink_to(home / "theirs")
    assert run("release", home / "people.yaml", "--out", home / "out").exit_code == 0
    assert {path.name for path in (home / "theirs").iterdir()} == files
    assert not (home / "out").is_symlink()


@pytest.mark.parametrize("name", ["request.json", "spent.txt", "measurement.mdp", "release.json"])
def test_pipes_are_not_waited_for(home: Path, stopped: Path, name: str):
    (stopped / name).unlink(missing_ok=True)
    os.mkfifo(stopped / name)
    (home / "out").mkdir()
    os.mkfifo(home / "out" / "release.json")
    signal.alarm(600)  # ends the tests, where a pipe is waited for
    try:
        for words in (("recover", home / "out"), ("release", home / "people.yaml", "--out", home / "out")):
            run(*words)
    finally:
        signal.alarm(0)
