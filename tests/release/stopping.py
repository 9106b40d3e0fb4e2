"""Releases that are stopped: by a full disk, or killed at one step more each time.

Run as a program this acts in a home, each time in a process of its own, which is killed before one of the
files that it opens, renames, makes and removes, or before or after one of the statements of a ledger.
"""

import contextlib
import errno
import hashlib
import importlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

import matrixdp as mdp
from matrixdp.cli.app import app
from matrixdp.ledger import database
from matrixdp.releases import transaction
from matrixdp.storage.formats import load_measurement, save_measurement

SPEC = """
data: people.csv
domain: {sex: [female, male], age: 5}
workload:
  - marginals: [1, 2]
privacy: """


def furnish(home: Path, privacy: str = "{rho: 0.5}") -> Path:
    """Put a table and a specification into a new folder."""
    home.mkdir()
    (home / "people.csv").write_text("sex,age\n" + "female,1\nmale,3\n" * 40)
    (home / "people.yaml").write_text(SPEC + privacy)
    return home


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def fail(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def hidden(home: Path) -> list[Path]:
    return [path for path in home.iterdir() if path.name.startswith(".")]


def kill(
    home: Path,
    action: str,
    *words: object,
    check: Callable[[Path], Hashable],
    first: int = 0,
    stride: int = 1,
) -> Counter[Hashable]:
    """Count what a home comes to where an action is killed at some of its steps, and at last is not."""
    before = Path(shutil.copytree(home, home.with_name("before")))
    command = [sys.executable, "-W", "ignore", "-m", "tests.release.stopping"]
    command += [str(word) for word in (before, home, first, stride, action, *words)]
    seen: Counter[Hashable] = Counter()
    here = Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=here) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        for line in run.stdout:
            assert line == "stopped\n"
            seen[check(home)] += 1
            run.stdin.write("\n")
            run.stdin.flush()
    assert run.returncode == 0
    return seen


def _replace(home: Path, earlier: Path, exchange: str, force: str) -> None:
    """Release what another release measured, but for its limit of records and its confidence."""
    measurement, workload = load_measurement(earlier / "measurement.mdp")
    most = measurement.max_records
    stated = '"max_records": '
    text = (earlier / "release.json").read_text().replace(f"{stated}{most}", f"{stated}{most + 1}")
    old = hashlib.sha256((earlier / "measurement.mdp").read_bytes()).hexdigest()
    if exchange == "none":
        transaction._exchange = lambda one, other: False
    with transaction.transaction(home / "out", force=force == "force") as run:
        run.spend(mdp.Budget(rho=0.5))
        path = run.folder / "measurement.mdp"
        save_measurement(path, replace(measurement, max_records=most + 1), workload)
        text = text.replace(old, hashlib.sha256(path.read_bytes()).hexdigest())
        text = text.replace('"confidence": 0.9', '"confidence": 0.8')
        (run.folder / "release.json").write_text(text)


def _act(home: Path, action: str, *words: str) -> None:
    if action == "command":
        app([word.replace("HOME", str(home)) for word in words])
    elif action == "release":
        mdp.release(home / "people.yaml", home / "out", mechanism="opt-m")
    elif action == "recover":
        mdp.recover_release(home / "out")
    else:
        _replace(home, Path(words[0]), *words[1:])


def _watch(home: Path, left: int) -> None:
    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        steps = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "open"}
        if event in steps and str(home) in str(arguments[0]):
            step()

    real = database.Session.rows

    def rows(self: Any, sql: str, *parameters: Any) -> Any:
        if sql.startswith("PRAGMA"):
            return real(self, sql, *parameters)
        step()
        found = real(self, sql, *parameters)
        step()
        return found

    database.Session.rows = rows  # type: ignore[method-assign]
    sys.addaudithook(watch)


def _stopped(before: Path, home: Path, step: int | None, *words: str) -> int:
    """Return how a process ended that acts in the home as it was before, killed at a step."""
    # always in one place: what stands in the ledger, in marks and in locks are whole paths
    shutil.rmtree(home, ignore_errors=True)
    shutil.copytree(before, home)
    process = os.fork()
    if process == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        code = 0
        try:
            if step is not None:
                _watch(home, step)
            _act(home, *words)
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:  # noqa: BLE001
            traceback.print_exc()
            code = 1
        if step is None:
            (home / "modules").write_text(" ".join(sys.modules))
        os._exit(code)
    return os.waitpid(process, 0)[1]


def _main(before: str, home: str, first: str, stride: str, *words: str) -> int:
    # modules are imported once, and not by each process
    _stopped(Path(before), Path(home), None, *words)
    for name in (Path(home) / "modules").read_text().split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for step in itertools.count(int(first), int(stride)):
        status = _stopped(Path(before), Path(home), step, *words)
        print("stopped", flush=True)  # noqa: T201 - for the test
        sys.stdin.readline()
        if status != signal.SIGKILL:
            return os.waitstatus_to_exitcode(status)
    raise AssertionError


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
