"""Runs of the program in this process, each with the exit status that it must have."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from matrixdp.cli.app import app


def run(*arguments: object, status: int = 0) -> Result:
    """Run a command and hold it to its exit status; a comparison has all the time that it needs."""
    patience = ("--time-limit", 10_000, "--time-limit-each", 10_000) if arguments[0] == "compare" else ()
    words = [str(argument) for argument in (arguments[0], *patience, *arguments[1:])]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == status, result.output
    return result


def spec(text: str, name: str = "s.yaml") -> str:
    """Write a specification into the working folder, and return the name of its file."""
    assert not Path("pyproject.toml").exists(), "a test writes into the tree: it needs the fixture `here`"
    Path(name).write_text(text)
    return name


def words(*arguments: object, status: int = 0) -> str:
    """Return the standard output of a command, however its lines are broken."""
    return " ".join(run(*arguments, status=status).stdout.split())


def figures(*arguments: object, status: int = 0) -> Any:
    """Return the JSON that a command prints."""
    return json.loads(run(*arguments, "--json", status=status).stdout)


def refused(*arguments: object) -> str:
    """Return the one line that a command says when it ends with status 2, having printed nothing else."""
    result = run(*arguments, status=2)
    [line] = result.stderr.splitlines()
    assert (result.stdout, line.startswith("Error: ")) == ("", True)
    return line.removeprefix("Error: ")
