"""Releases under a ledger that are stopped anywhere: no answer without its debit, and no debit lost."""

import gc
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import matrixdp as mdp
from matrixdp.errors import StorageError
from matrixdp.ledger import Ledger
from matrixdp.ledger.database import running_path
from matrixdp.locks import Lock
from matrixdp.noise import LAPLACE
from matrixdp.releases import record, transaction
from matrixdp.storage.archive import digest
from matrixdp.storage.formats import load_measurement, save_measurement
from tests.release.stopping import fail, furnish, kill, run

#: Which strategy is released does not matter, and this one is selected at once.
QUICK = ("--mechanism", "opt-m")
BUDGET = mdp.Budget(epsilon=0.25)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = furnish(tmp_path / "home", "{epsilon: 0.25, ledger: people.ledger}")
    Ledger.create(home / "people.ledger", "people", mdp.Budget(epsilon=1))
    return home


@pytest.fixture
def ledger(home: Path) -> Ledger:
    return Ledger.open(home / "people.ledger")


def release(home: Path, *arguments: object, out: str = "out"):
    return run("release", home / "people.yaml", "--out", home / out, *QUICK, *arguments)


def measure(ledger: Ledger) -> mdp.MeasuredStrategy:
    workload = mdp.Workload(mdp.Domain({"sex": ["female", "male"]}), mdp.marginals(1))
    strategy = mdp.select(workload, noise="laplace", mechanism="identity")
    return strategy.measure({"sex": ["male"]}, mdp.Budget(epsilon=0.5), ledger=ledger)


def entries(home: Path):
    return Ledger.open(home / "people.ledger").entries


def stop(home: Path, *words: object) -> Path:
    """Let a release find the disk full once its measurement is written; return the folder that it left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", fail)
        told = release(home, *words).stderr
    assert f"`matrixdp ledger recover {home / 'people.ledger'}` makes a release of it" in told
    gc.collect()  # what failed refers to its reservation, as if it went on
    (folder,) = (path for path in home.iterdir() if path.name.endswith(".unfinished"))
    return folder


def answers(home: Path) -> list[Path]:
    """All files that hold noisy values, wherever they are."""
    names = {"measurement.mdp", "answers.parquet", "answers.csv"}
    return [path for path in home.rglob("*") if path.name in names or path.suffix == ".partial"]


def check_debits(home: Path) -> None:
    known = {entry.id for entry in entries(home)}
    for path in answers(home):
        if path.name == "measurement.mdp":
            named = load_measurement(path)[0].authorization.ledger
            assert named is not None
            assert named.entry in known, "an answer without its debit"


def check(home: Path) -> str:
    """Check what a stopped release left, recover it, and return what it came to."""
    before = entries(home)
    found = answers(home)
    check_debits(home)
    assert before or not found, "an answer without its debit"
    whole = any(path.name == "measurement.mdp" for path in found)
    states = [entry.state for entry in before]
    done = mdp.recover_ledger(Ledger.open(home / "people.ledger"))
    assert all(one.settled for one in done)
    after = entries(home)
    assert [entry.digest for entry in after] == [entry.digest for entry in before], "a debit was lost"
    assert {entry.state for entry in after} <= {"released", "abandoned"}
    released = [entry for entry in after if entry.state == "released"]
    out = home / "out"
    if released:
        loaded = mdp.load_release(out).measurement.authorization.ledger
        assert loaded is not None
        assert loaded.entry == released[0].id
        assert digest(out / "measurement.mdp") == released[0].measurement
        assert {path.parent for path in answers(home)} == {out}
        assert not set(record.MARKS) & {path.name for path in out.iterdir()}
    else:
        assert not whole
        assert answers(home) == [], "what is not released is not thrown away"
    assert mdp.recover_ledger(Ledger.open(home / "people.ledger")) == ()
    assert not list(home.glob(".people.ledger.*.running"))
    return f"{states} to {[entry.state for entry in after]}"


#: What a stopped release can come to.
LEFT = {
    "[] to []",
    "['reserved'] to ['abandoned']",
    "['reserved'] to ['released']",
    "['measured'] to ['released']",
    "['released'] to ['released']",
}


#: `make faults` kills at every step.
STRIDE = int(os.environ.get("MATRIXDP_STRIDE", "17"))


RECOVER = ("command", "ledger", "recover", "HOME/people.ledger")
COMMAND = ("release", "HOME/people.yaml", "--out", "HOME/out", *QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("words", [("command", *COMMAND), ("release",)], ids=["command", "python"])
def test_a_release_killed_at_its_steps(home: Path, words: tuple[str, ...]):
    seen = kill(home, *words, check=check, first=STRIDE // 2, stride=STRIDE)
    assert set(seen) <= LEFT
    assert seen.total() > 60 // STRIDE
    assert set(seen) == LEFT or STRIDE > 1


@pytest.mark.slow
def test_a_recovery_killed_at_each_step(home: Path):
    stop(home)
    step = min(STRIDE, 7)
    seen = kill(home, *RECOVER, check=check, stride=step)
    assert set(seen) <= {"['measured'] to ['released']", "['released'] to ['released']"}
    assert seen.total() > 30 // step


def thrown_away(home: Path) -> str:
    mdp.recover_ledger(Ledger.open(home / "people.ledger"))
    assert [entry.state for entry in entries(home)] == ["abandoned"]
    assert answers(home) == []
    assert not transaction.unfinished(home / "out")
    return "thrown away"


@pytest.mark.slow
def test_a_throwing_away_killed_at_each_step(home: Path):
    folder = stop(home)
    content = bytearray((folder / "measurement.mdp").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "measurement.mdp").write_bytes(content)
    (folder / "answers.parquet").write_bytes(b"")
    step = min(STRIDE, 5)
    seen = kill(home, *RECOVER, check=thrown_away, stride=step)
    assert seen.total() > 15 // step


#: Each release has a process of its own; the modules are imported once.
LIMITED = """
import os, resource, sys
sys.dont_write_bytecode = True  # half a file of it would be read by the next process
from matrixdp.cli.app import app
import matrixdp.releases, matrixdp.strategy, matrixdp.specification, matrixdp.sources
from matrixdp.strategy.pipeline import release
face, *homes = sys.argv[1:]
for home, limit in zip(homes[::2], map(int, homes[1::2])):
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        if face == "python":
            try:
                release(home + "/people.yaml", home + "/out", mechanism="opt-m")
            except (OSError, matrixdp.errors.MatrixDPError):
                sys.exit(1)
            sys.exit(0)
        app(["release", home + "/people.yaml", "--out", home + "/out", "--mechanism", "opt-m"])
    print(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]), flush=True)
"""


@pytest.mark.parametrize("face", ["command", "python"])
def test_a_disk_that_takes_no_larger_files(tmp_path: Path, face: str):
    homes: dict[Path, int] = {}
    for limit in (0, 4000, 24_500):
        home = furnish(tmp_path / f"home {limit}", "{epsilon: 0.25, ledger: people.ledger}")
        Ledger.create(home / "people.ledger", "people", mdp.Budget(epsilon=1))
        homes[home] = limit
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        LIMITED,
        face,
        *(word for own in homes.items() for word in own),
    ]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    codes = [int(line) for line in done.stdout.splitlines() if line.lstrip("-").isdecimal()]
    for (home, limit), code in zip(homes.items(), codes, strict=True):
        assert code in ({1, 2} if limit < 15_000 else {0, 1, 2}), done.stderr
        assert check(home) in LEFT


@pytest.mark.slow
def test_two_at_once_that_are_killed_at_any_time(home: Path):
    chance = random.Random(7)  # noqa: S311 - repeatable
    debited, nowhere = 0, subprocess.DEVNULL
    for trial in range(4):
        words = [sys.executable, "-W", "ignore", "-m", "matrixdp", "release", str(home / "people.yaml")]
        running = [
            subprocess.Popen([*words, *QUICK, "--out", str(home / out)], stdout=nowhere, stderr=nowhere)
            for out in (f"out-{trial}-0", f"out-{trial}-1")
        ]
        time.sleep(chance.uniform(0.5, 2.0))
        for process in running:
            process.kill()
        for process in running:
            process.wait()
        ledger = Ledger.open(home / "people.ledger")
        debited = len(ledger.entries)
        check_debits(home)
        mdp.recover_ledger(ledger)
        assert [entry.id for entry in ledger.entries][:debited] == [entry.id for entry in ledger.entries]
        assert ledger.account.within
    assert debited <= 4  # of epsilon 0.25 each
    while release(home, out=f"last-{len(entries(home))}").exit_code == 0:
        assert len(entries(home)) <= 4
    assert len(entries(home)) == 4


def test_a_stopped_release_is_told_and_recovered(home: Path):
    stop(home, "--confidence", "0.9")
    ledger = home / "people.ledger"
    again = release(home)
    assert again.exit_code == 2
    assert f"`matrixdp ledger recover {ledger}` makes a release of it" in again.stderr
    refused = run("recover", home / "out")
    assert refused.exit_code == 2
    assert "`matrixdp ledger recover LEDGER` recovers what a ledger was debited for" in refused.stderr
    assert not (home / "out").exists()
    spent = Ledger.open(ledger).spent
    done = run("ledger", "recover", ledger)
    assert done.exit_code == 0, done.output
    (entry,) = entries(home)
    assert done.stdout == (
        f"{entry.id}: released: its measurement was whole: the release is now complete in {home / 'out'}.\n"
    )
    assert mdp.load_release(home / "out").confidence == 0.9
    assert Ledger.open(ledger).spent == spent
    assert run("ledger", "recover", ledger).stdout == "Nothing to recover: every debit is settled.\n"


def test_a_run_that_goes_on_is_left_alone(home: Path, ledger: Ledger):
    measured = measure(ledger)
    (one,) = mdp.recover_ledger(ledger)
    assert (one.state, one.settled) == ("reserved", False)
    assert one.says == "its run still goes on, and was left alone"
    # it saves what it measured where no ledger was told of, and fails before its folder is in its place
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq.ParquetWriter, "write_table", fail)
        with pytest.raises(OSError, match="No space left"):
            mdp.save_release(measured.reconstruct(), home / "elsewhere")
    assert ledger.entries[0].state == "measured"
    mdp.save_release(measured.reconstruct(), home / "elsewhere")
    assert ledger.entries[0].state == "released"
    assert not list(home.glob(".people.ledger.*"))
    # another form of the same release is nothing new
    mdp.save_release(measured.reconstruct(confidence=0.5), home / "again")
    assert len(ledger.entries) == 1


def test_a_recovery_that_was_too_early_takes_nothing_back(home: Path, ledger: Ledger):
    """The lock of a run was lost: the ledger was moved, or its folder cleared."""
    measured = measure(ledger)
    running_path(ledger.path, ledger.entries[0].id).unlink()
    assert [one.state for one in mdp.recover_ledger(ledger)] == ["abandoned"]
    mdp.save_release(measured.reconstruct(), home / "elsewhere")
    assert ledger.entries[0].state == "released"
    assert ledger.spent == mdp.Budget(epsilon=0.5)


def test_what_python_saves_elsewhere_is_found(home: Path, tmp_path: Path):
    ledger = home / "people.ledger"
    code = f"""
import os, signal, sys
import matrixdp as mdp, pyarrow.parquet as pq
def stop(*_, **__): os.kill(os.getpid(), signal.SIGKILL)
pq.ParquetWriter.write_table = stop
workload = mdp.Workload(mdp.Domain({{"sex": ["female", "male"]}}), mdp.marginals(1))
ledger = mdp.Ledger.open({str(ledger)!r})
strategy = mdp.select(workload, noise="laplace", mechanism="identity")
measured = strategy.measure({{"sex": ["male"]}}, mdp.Budget(epsilon=0.5), ledger=ledger)
mdp.save_release(measured.reconstruct(), {str(tmp_path / "far" / "away")!r})
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False)
    assert done.returncode == -signal.SIGKILL
    assert entries(home)[0].release is None
    (one,) = mdp.recover_ledger(Ledger.open(ledger))
    assert one.state == "released"
    assert mdp.load_release(tmp_path / "far" / "away").private


def test_what_is_taken_by_another_release_waits(home: Path, ledger: Ledger):
    folder = stop(home)
    assert release(home, out="other").exit_code == 0
    (home / "other").rename(home / "out")
    kept = (home / "out" / "measurement.mdp").read_bytes()
    for _ in range(2):
        (one,) = mdp.recover_ledger(ledger)
        assert (one.state, one.settled) == ("measured", False)
        assert "no release was made of it" in one.says
        assert "found an earlier release" in one.says
        assert (home / "out" / "measurement.mdp").read_bytes() == kept
        assert (folder / "measurement.mdp").exists()
    assert run("ledger", "recover", ledger.path, "--force").exit_code == 0
    assert [entry.state for entry in ledger.entries] == ["released", "released"]
    assert (home / "out" / "measurement.mdp").read_bytes() != kept


def test_the_same_measurement_is_adopted_once(home: Path, ledger: Ledger):
    folder = stop(home)
    twin = folder.with_name(".out.ff-1.unfinished")
    shutil.copytree(folder, twin)
    assert [one.state for one in mdp.recover_ledger(ledger)] == ["released"]
    shutil.rmtree(twin, ignore_errors=True)
    shutil.copytree(home / "out", home / ".far.ff-1.unfinished")
    (home / ".far.ff-1.unfinished" / "spent.txt").write_text("a budget\n")
    with pytest.raises(StorageError, match="`matrixdp ledger recover LEDGER`"):
        mdp.recover_release(home / "far")
    assert mdp.recover_ledger(ledger) == ()
    assert not (home / "far").exists()


def forged(home: Path, **changes: object) -> None:
    """Put a measurement that names the waiting entry, but for some changes, where the run left its own."""
    folder = stop(home)
    measurement, workload = load_measurement(folder / "measurement.mdp")
    authorization = measurement.authorization
    named = authorization.ledger
    assert named is not None
    if "private" in changes:
        measurement = replace(measurement, private=False)
    if "digest" in changes:
        named = replace(named, digest="0" * 64)
    if "entry" in changes:
        named = replace(named, entry="0" * 32)
    if "values" in changes:
        measurement = replace(measurement, values=tuple(value + 64 for value in measurement.values))
    save_measurement(
        folder / "measurement.mdp",
        replace(measurement, authorization=replace(authorization, ledger=named)),
        workload,
    )


@pytest.mark.parametrize("change", ["private", "digest", "values"])
def test_a_forged_measurement_is_thrown_away(home: Path, ledger: Ledger, change: str):
    forged(home, **{change: True})
    (one,) = mdp.recover_ledger(ledger)
    assert one.state == "abandoned"
    assert "what its run had left was removed" in one.says
    assert answers(home) == []
    assert ledger.spent == mdp.Budget(epsilon=Fraction(ledger.entries[0].cost.value))


def test_a_measurement_of_an_entry_in_no_ledger_is_left_and_never_served(home: Path, ledger: Ledger):
    forged(home, entry=True)
    (one,) = mdp.recover_ledger(ledger)
    assert one.state == "abandoned"
    (path,) = answers(home)
    with pytest.raises(StorageError, match="not served"):
        mdp.load_release(path.parent)
    with pytest.raises(StorageError, match=r"entry 0{32} of the ledger of people"):
        mdp.recover_release(home / "out")


def test_a_ledger_that_was_put_back_does_not_know_the_entry(home: Path):
    """An older copy of a ledger is a ledger; a release that it does not know of gives it away."""
    ledger = home / "people.ledger"
    old = ledger.read_bytes()
    folder = stop(home)
    ledger.write_bytes(old)
    assert mdp.recover_ledger(Ledger.open(ledger)) == ()
    assert not (home / "out").exists()
    with pytest.raises(StorageError, match="not served"):
        mdp.load_release(folder)
    assert release(home).exit_code == 2  # what was spent stands in the way


def test_a_note_that_leads_nowhere_is_passed_over(home: Path, ledger: Ledger):
    for text in ("", "elsewhere", str(home), str(home / ".none.1-1.unfinished"), "\0" * 9, "x" * 5000):
        reservation = ledger.reserve(LAPLACE.cost(BUDGET), BUDGET)
        with Lock(home / "note") as note:
            note.write(text)
        path = running_path(ledger.path, reservation.record.entry)
        del reservation
        shutil.copy(home / "note", path)
        assert [one.state for one in mdp.recover_ledger(ledger)] == ["abandoned"]
        if len(ledger.entries) == 4:
            break
    assert len(ledger.entries) == 4


def test_what_is_swapped_while_it_is_recovered_is_not_released(
    home: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    stop(home)
    assert release(home, out="other").exit_code == 0
    other, copy = home / "other" / "measurement.mdp", shutil.copyfile
    monkeypatch.setattr(shutil, "copyfile", lambda _, target: copy(other, target))
    (one,) = mdp.recover_ledger(ledger)
    assert (one.state, one.settled) == ("measured", False)
    assert "found another measurement than that of the entry" in one.says
    assert not (home / "out").exists()


@pytest.mark.parametrize("debited", [None, "other.ledger"])
def test_what_others_spent_for_the_same_place_stays_told(home: Path, ledger: Ledger, debited: str | None):
    """A run that measured nothing whole, under another ledger or none, still counts where it was to go."""
    ledger.reserve(LAPLACE.cost(BUDGET), BUDGET, home / "out")
    folder = home / f".out.{2**22:x}-1.unfinished"
    folder.mkdir()
    other = None if debited is None else Ledger.create(home / debited, "others", mdp.Budget(epsilon=1))
    transaction.Transaction(folder).spend(BUDGET, other)
    (one,) = mdp.recover_ledger(ledger)
    assert (one.state, one.says) == (
        "abandoned", "no measurement of it is whole; its run had left nothing; its budget counts as spent"
    )  # fmt: skip
    assert (folder / "spent.txt").exists()
    assert release(home).exit_code == 2


@pytest.mark.parametrize("damaged", [False, True])
def test_a_note_that_leads_through_a_link_removes_nothing(home: Path, ledger: Ledger, damaged: bool):
    assert release(home, out="theirs").exit_code == 0
    if damaged:
        (home / "theirs" / "measurement.mdp").write_bytes(b"of a newer version")
    files = {path.name for path in (home / "theirs").iterdir()}
    link = home / f".mine.{2**22:x}-1.unfinished"
    link.symlink_to(home / "theirs")
    reservation = ledger.reserve(LAPLACE.cost(BUDGET), BUDGET)
    path = running_path(ledger.path, reservation.record.entry)
    del reservation
    path.write_text(str(link))
    assert [one.state for one in mdp.recover_ledger(ledger)] == ["abandoned"]
    assert {path.name for path in (home / "theirs").iterdir()} == files


def test_what_cannot_be_removed_stops_no_other_entry(home: Path, ledger: Ledger):
    for name in ("one", "two"):
        ledger.reserve(LAPLACE.cost(BUDGET), BUDGET, home / name)
    folder = home / f".one.{2**22:x}-1.unfinished"
    (folder / "measurement.mdp").mkdir(parents=True)
    (folder / "spent.txt").touch()
    result = run("ledger", "recover", ledger.path)
    assert result.exit_code == 0
    assert "cannot be settled" in result.stdout
    assert [entry.state for entry in ledger.entries] == ["reserved", "abandoned"]
