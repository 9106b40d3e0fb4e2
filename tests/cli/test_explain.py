import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import matrixdp as mdp
from matrixdp.cli.app import app

RUNNER = CliRunner()


def run(*arguments: object):
    return RUNNER.invoke(app, [str(argument) for argument in arguments])


def test_into_a_pipe_and_into_a_file_it_is_markdown(released: Path, tmp_path: Path):
    text = mdp.explain_release(released)
    result = run("explain", released)
    assert result.exit_code == 0, result.stderr
    assert result.stdout == text
    result = run("explain", released, "--out", tmp_path / "page.md")
    assert result.exit_code == 0, result.stderr
    assert (tmp_path / "page.md").read_text(encoding="utf-8") == text
    again = run("explain", released, "--out", tmp_path / "page.md")
    assert again.exit_code == 2
    assert again.stderr.endswith("[file-exists]\n")


@pytest.mark.parametrize(("columns", "cut"), [("80", True), ("1000", False)])
def test_at_a_terminal_it_is_set(
    released: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, columns: str, cut: bool
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", columns)
    with pytest.raises(SystemExit) as ended:
        app(["explain", str(released)])
    assert ended.value.code == 0
    shown, told = capsys.readouterr()
    assert "What it costs" in shown
    assert "| --- |" not in shown
    # numbers are never cut without a word of where they are whole
    assert ("…" in shown, "--out FILE.md" in told) == (cut, cut)


def test_wrong_use(tmp_path: Path):
    assert run("explain", tmp_path / "none").exit_code == 2
