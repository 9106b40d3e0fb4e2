"""The program ``matrixdp``: its commands, and its exit status.

What is heavy is imported inside commands, so that help appears at once.
"""

from __future__ import annotations

import functools
import gc
import io
import os
import platform
import re
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar

import typer
from typer import Option

from matrixdp import __version__
from matrixdp.errors import DEBUG, MatrixDPError, SafeNote, SpecificationError, explained

P = ParamSpec("P")
R = TypeVar("R")

JsonOption = Annotated[bool, Option("--json", help="Print one JSON object.")]
CsvOption = Annotated[bool, Option("--csv", help="Print CSV, with every row.")]
AllOption = Annotated[bool, Option("--all", help="Show every row, however many.")]
ForceOption = Annotated[bool, Option("--force", help="Replace what is there.")]


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Return a command that ends with status 2 on wrong input and 1 on any other failure.

    Examples
    --------
    >>> @guarded
    ... def command() -> None:
    ...     raise MatrixDPError("domain.age: found nothing; expected an attribute")
    >>> try:
    ...     command()
    ... except typer.Exit as end:
    ...     print(end.exit_code)
    2
    """

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, KeyboardInterrupt, SystemExit) as error:
            _tell(error)
            raise
        except BaseException as error:
            if os.environ.get(DEBUG) and not isinstance(error, MatrixDPError | OSError | MemoryError):
                raise
            failed, status, says, code = error, 1, explained(error), ""
            if isinstance(error, MatrixDPError):
                status, says, code = 2, as_written(error), f" [{error.code}]"
        typer.echo(f"Error: {says}{code}", err=True)
        _tell(failed)
        raise typer.Exit(status)

    return run


def wrong(place: str, found: str, expected: str, code: str | None = None) -> SpecificationError:
    """Return the error of an option or an argument."""
    return SpecificationError.at((place,), found, expected, code=code)


def as_written(error: MatrixDPError) -> str:
    """Return the message of an error, with a part of a budget named as the specification has it.

    Examples
    --------
    >>> from matrixdp.errors import PrivacyError
    >>> as_written(PrivacyError.at(("budget", "delta"), "none", "a delta in (0, 1)"))
    'privacy.delta: found none; expected a delta in (0, 1)'
    >>> as_written(PrivacyError.at(("budget", "unit"), "Unit(records=1)", "Unit(records=3)"))
    'unit: found Unit(records=1); expected Unit(records=3)'
    """
    problem = error.problem
    if problem is None or problem.path[:1] != ("budget",):
        return str(error)
    path = problem.path[1:] if problem.path[1:2] == ("unit",) else ("privacy", *problem.path[1:])
    return str(MatrixDPError(replace(problem, path=path)))


def _tell(error: BaseException) -> None:
    """Print the notes of an error that quote no data."""
    for note in getattr(error, "__notes__", ()):
        if isinstance(note, SafeNote):
            typer.echo(f"{note}.", err=True)


if TYPE_CHECKING:
    app: typer.Typer


_ALLOCATIONS_A_COLLECTION = 100_000

_HELP = """
Differentially private answers to every query of a workload, with their standard errors.

Write a specification (domain, workload, privacy) as YAML, or begin with a draft of it; then:

\b
  matrixdp draft health.csv > health.yaml
  matrixdp validate health.yaml
  matrixdp select health.yaml
  matrixdp plan health.yaml --public-table lastyear.csv --budgets 0.5,1,2
  matrixdp design health.yaml --public-table lastyear.csv
  matrixdp compare health.yaml
  matrixdp ledger init health.ledger --dataset health --total rho=1
  matrixdp release health.yaml --out released --ledger health.ledger
  matrixdp show released 'age CDF by sex'
  matrixdp answer released 'product: {age: {ranges: [[0, 17]]}}'
  matrixdp verify released --ledger health.ledger
  matrixdp report released

A ledger is optional; with one, all releases of the data together stay within its total.

Exit status: 0: success. 1: any other failure, e.g. verification failed. 2: wrong input; one line says what is
wrong and where, and ends with the code of the error. 3: the released total differs from --expect by more than
noise.
"""

_COMMANDS = {
    "draft": ("specification", "Print a first specification for a table, without reading a record of it."),
    "validate": ("specification", "Check a specification without the data, and say what to expect."),
    "select": ("select", "Choose the strategy for a workload, without touching the data."),
    "plan": ("plan", "Say how good every table will be, before anything is spent."),
    "design": (
        "design",
        "Design a release on a page in the browser, and see how good every table will be before spending.",
    ),
    "compare": ("compare", "Compare the expected error of mechanisms, without the data."),
    "discover": ("discover", "Find a domain in private columns, for a price, before any selection."),
    "release": ("release", "Measure a table once and write the answer to every query."),
    "answer": (
        "read",
        "Answer new queries from a release, without the data: counts, and statistics of counts.",
    ),
    "show": ("read", "Show what a release holds, or one of its tables, or write each as a file."),
    "model": ("model", "Make non-negative, consistent answers of a release, without the data."),
    "synthesize": ("model", "Write synthetic records."),
    "verify": (
        "read",
        "Check a release, a model of one, or a discovered domain, without the data: all is computed again.",
    ),
    "report": ("read", "Write a release as one HTML page."),
    "keys": ("release", "Make a pair of Ed25519 keys for signatures, in two PEM files."),
    "sign": ("release", "Sign an existing release, after checking it."),
    "recover": ("release", "Complete a release that was stopped after its measurement was written whole."),
    "schema": (
        "specification",
        "Print the JSON Schema of specifications, of discoveries, of strategy files, or of release.json.",
    ),
    "series": (
        "series",
        "Publish releases over time under one budget: every period once, and no figure ever revised.",
    ),
    "ledger": ("ledger", "Keep account of what all releases of one dataset spend together."),
}
"""The commands, in the order of the help: the module of each, and what its help begins with, for the list."""
_GROUPS = ("series", "ledger")
"""The commands that have commands of their own, the `COMMANDS` of their module."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(versions())
        raise typer.Exit


def program(
    version: Annotated[
        bool,
        Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Show the versions of matrixdp and of its libraries.",
        ),
    ] = False,
) -> None:
    """Take the options of the program itself; the help is `_HELP`."""


def _with(names: Collection[str]) -> typer.Typer:
    """Return the program with some of its commands; without any it lists them all, and runs none."""
    made = typer.Typer(
        name="matrixdp",
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # help without rich appears sooner
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(program)
    for name, (_, told) in ({} if names else _COMMANDS).items():
        made.command(name, help=told)(lambda: None)
    for name in names:
        module, told = _COMMANDS[name]
        found = import_module(f"matrixdp.cli.{module}")
        group = made
        if name in _GROUPS:
            group = typer.Typer(name=name, help=told, no_args_is_help=True, rich_markup_mode=None)
            made.add_typer(group)
        for command in found.COMMANDS if name in _GROUPS else [getattr(found, name)]:
            group.command()(guarded(command))
    return made


def __getattr__(name: str) -> typer.Typer:
    """Make the whole program when it is asked for: `main` needs one command of it."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = whole = _with(_COMMANDS)
    return whole


class _Output(io.FileIO):
    """A stream whose reader may go away: what a command does, and its status, do not depend on it."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data) or 0
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            if not isinstance(error, BrokenPipeError):
                raise  # once: what is still buffered goes nowhere
            return len(data)


def _open_output() -> None:
    """Let no text fail because the encoding of the terminal cannot show it, or because nobody reads on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None:  # closed before the program began
            raw = io.BufferedWriter(_Output(stream.fileno(), "wb", closefd=False))
            lines = stream.line_buffering
            made = io.TextIOWrapper(raw, stream.encoding, "backslashreplace", line_buffering=lines)
            setattr(sys, name, made)


def main() -> None:
    """Run the program."""
    _open_output()
    # imports make no garbage, and looking for it takes time
    gc.set_threshold(_ALLOCATIONS_A_COLLECTION)
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    named = [name for name in sys.argv[1:2] if name in _COMMANDS]
    listed = (
        sys.argv[1:2] in ([], ["-h"], ["--help"], ["--version"]) and "_MATRIXDP_COMPLETE" not in os.environ
    )
    try:
        _with([] if listed else named or _COMMANDS)()
    except KeyboardInterrupt:  # while modules are imported; `typer` ends a command so
        sys.exit(130)
    finally:
        # nor at the end, where Python looks several times; DuckDB's binding complains of what is not freed
        if "duckdb" not in sys.modules:
            gc.freeze()


_NAME = re.compile(r"[A-Za-z0-9._-]+")


def versions() -> str:
    """Return the versions that a bug report should begin with, one a line.

    Examples
    --------
    >>> versions().splitlines()[0] == f"matrixdp {__version__}"
    True
    """
    lines = [f"matrixdp {__version__}"]
    lines.append(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    with suppress(metadata.PackageNotFoundError):  # run from its files, without being installed
        required = metadata.requires("matrixdp") or []
        extras = [text for text in required if "extra ==" in text]
        lines.append("needed: " + _found(text for text in required if text not in extras))
        lines.append("for extras: " + (_found(extras) or "none"))
    return "\n".join(lines)


def _found(required: Iterable[str]) -> str:
    """Return the names and versions of what is installed, each once."""
    found = []
    for name in sorted({match[0] for match in map(_NAME.match, required) if match}):
        with suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    return ", ".join(found)
