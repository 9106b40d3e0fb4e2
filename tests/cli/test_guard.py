"""How commands end, what they show while they run, and which versions they name."""

import importlib.metadata
import platform
import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

import matrixdp as mdp
from matrixdp.cli.app import guarded, versions
from matrixdp.cli.console import Reporter
from matrixdp.errors import PrivacyError, TooLargeError


def raising(error: BaseException) -> Callable[[], None]:
    @guarded
    def command() -> None:
        raise error

    return command


def ending(error: BaseException) -> int:
    with pytest.raises(typer.Exit) as raised:
        raising(error)()
    return raised.value.exit_code


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("budget", "rho"), "privacy.rho"),
        (("budget", "least"), "privacy.least"),
        (("budget",), "privacy"),
        (("budget", "unit"), "unit"),
        (("budget", "unit", "records"), "unit.records"),
        (("ledger",), "ledger"),
    ],
)
def test_budgets_are_named_as_a_specification_has_them(
    path: tuple[str, ...], place: str, capsys: pytest.CaptureFixture[str]
):
    assert ending(PrivacyError.at(path, "none", "some")) == 2
    assert capsys.readouterr().err == f"Error: {place}: found none; expected some [privacy]\n"


def test_other_failures_end_with_1_and_quote_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("MATRIXDP_DEBUG", raising=False)
    assert ending(TooLargeError("too many cells")) == 2
    assert capsys.readouterr() == ("", "Error: too many cells [too-large]\n")
    panic = type("PanicException", (BaseException,), {})("a secret")
    for error in (ValueError("a secret"), panic, MemoryError("a secret"), OSError(28, "No space", "/out")):
        assert ending(error) == 1
    printed = capsys.readouterr()
    assert (printed.out, "secret" in printed.err) == ("", False)
    assert all(words in printed.err for words in ("ValueError", "PanicException", "/out: No space"))
    monkeypatch.setenv("MATRIXDP_DEBUG", "1")
    with pytest.raises(ValueError, match="everything"):
        raising(ValueError("everything"))()


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), typer.Abort(), typer.Exit(0)])
def test_interrupts_and_exits_pass(error: BaseException):
    with pytest.raises(type(error)):
        raising(error)()


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_shown_at_a_terminal_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
):
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with Reporter() as reporter:
        reporter._show()
        reporter.stage("selecting", 0.5)
        reporter.counter("writing")(1, 2)
    reporter._show()
    printed = capsys.readouterr()
    assert (printed.out, "writing" in printed.err, bool(printed.err)) == ("", terminal, terminal)


def test_memory_is_not_that_of_the_program_that_started_it():
    told = "from matrixdp.exact.resources import peak_memory_mb; print(peak_memory_mb())"
    program = f"""
import subprocess, sys
held = bytearray(400_000_000)
print(subprocess.run([sys.executable, "-c", {told!r}], capture_output=True, text=True).stdout)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 10 < float(done.stdout) < 300


def test_versions_of_what_is_used_are_told(monkeypatch: pytest.MonkeyPatch):
    own, python, needed, extras = versions().split("\n")
    assert own == f"matrixdp {mdp.__version__}"
    assert python.startswith(f"Python {platform.python_version()}")
    for name in ("numpy", "duckdb", "python-flint"):
        assert f"{name} {importlib.metadata.version(name)}" in needed
    assert f"matplotlib {importlib.metadata.version('matplotlib')}" in extras
    assert "matplotlib" not in needed
    required = ["numpy>=2", "absent-library>=1; extra == 'wanted'"]
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: required)
    numpy = importlib.metadata.version("numpy")
    assert versions().split("\n")[2:] == [f"needed: numpy {numpy}", "for extras: none"]

    def absent(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", absent)
    assert len(versions().split("\n")) == 2
