"""What becomes of a command whose output cannot be shown: its work, and its status, are its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import matrixdp as mdp
from tests.cli.commands import refused, run

SPECIFICATION = """
domain: {город: [Москва, 京都], age: {min: 0, max: 2}}
workload: [{marginals: [1]}, {mean: age}]
privacy: {mu: 2}
"""
TABLE = "город,age\nМосква,1\n京都,2\n"


@pytest.fixture
def asked(here: Path) -> Path:
    (here / "s.yaml").write_text(SPECIFICATION, encoding="utf-8")
    (here / "t.csv").write_text(TABLE, encoding="utf-8")
    return here


def program(*arguments: str, **options: object) -> "subprocess.CompletedProcess[bytes]":
    environment = os.environ | {"PYTHONIOENCODING": str(options.pop("encoding", "utf-8"))}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    command = [sys.executable, "-m", "matrixdp", *arguments]
    return subprocess.run(command, env=environment, check=False, **streams)  # type: ignore[call-overload]


def test_an_encoding_that_cannot_show_a_label_fails_no_command(asked: Path):
    released = program("release", "s.yaml", "--data", "t.csv", "--out", "out", encoding="ascii")
    assert released.returncode == 0, released.stderr
    shown = program("show", "out", "город", encoding="koi8-r")
    assert (shown.returncode, shown.stderr) == (0, b"")
    assert "Москва".encode("koi8-r") in shown.stdout
    assert rb"\u4eac\u90fd" in shown.stdout


def test_a_reader_who_goes_away_stops_no_release(asked: Path):
    reading, writing = os.pipe()
    os.close(reading)
    release = ("release", "s.yaml", "--data", "t.csv", "--out", "out")
    released = program(*release, stdout=writing, stderr=writing)
    assert released.returncode == 0
    assert mdp.verify_release(asked / "out").holds
    # the status is that of the command all the same
    assert program(*release, stdout=writing, stderr=writing).returncode == 2
    os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_is_lost_is_told_beside_a_release_that_is_whole(asked: Path):
    with Path("/dev/full").open("w") as full:
        released = program("release", "s.yaml", "--data", "t.csv", "--out", "out", stdout=full)
    assert released.returncode == 1
    assert (
        b"The budget was spent: mu 2, add_remove neighbours. The release is whole in out" in released.stderr
    )
    assert b"Traceback" not in released.stderr
    assert mdp.verify_release(asked / "out").holds


def test_a_system_without_file_locks_is_told_before_anything_is_spent(
    asked: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("fcntl", "resource"):
        monkeypatch.setitem(sys.modules, name, None)
    run("ledger", "init", "l.ledger", "--dataset", "people", "--total", "mu=9")
    run("validate", "s.yaml")
    run("select", "s.yaml", "--save", "s.mdp")
    assert refused("release", "s.yaml", "--data", "t.csv", "--out", "out").endswith("[not-supported]")
    assert not mdp.Ledger.open("l.ledger").entries
    assert {path.name for path in asked.iterdir()} == {"s.yaml", "t.csv", "s.mdp", "l.ledger"}


def test_help_is_a_command_too(here: Path):
    shown = program("help", "show")
    assert (shown.returncode, shown.stdout) == (0, program("show", "--help").stdout)
