"""The program ``matrixdp``: its commands, and what its exit status means.

What is heavy is imported inside commands, so that help appears at once.
"""

from __future__ import annotations

import functools
import gc
import os
import platform
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from importlib import import_module, metadata
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar

import typer

from matrixdp import __version__
from matrixdp.errors import DEBUG, MatrixDPError, SafeNote

# From errors to exit statuses: one clear line on stderr, and never what a table says.

P = ParamSpec("P")
R = TypeVar("R")


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
        status = 1
        failed: BaseException
        try:
            return command(*args, **kwargs)
        except (typer.Exit, typer.Abort, KeyboardInterrupt, SystemExit) as error:
            _tell(error)
            raise
        except MatrixDPError as error:
            failed, status, says = error, 2, as_written(error)
        except BrokenPipeError as error:
            _tell(error)
            # Whoever read our output has seen enough; nothing more can be said to them.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(status) from None
        except OSError as error:
            failed, where = error, f"{error.filename}: " if error.filename else ""
            says = f"{where}{error.strerror or type(error).__name__}"
        except MemoryError as error:
            failed, says = error, "out of memory; ask for less, or on a machine with more"
        except BaseException as error:
            if os.environ.get(DEBUG):
                raise
            failed = error
            says = (
                f"unexpected {type(error).__name__} (what it says may quote the data and is withheld; set "
                f"{DEBUG}=1 to see it)"
            )
        typer.echo(f"Error: {says}", err=True)
        _tell(failed)
        raise typer.Exit(status)

    return run


def as_written(error: MatrixDPError) -> str:
    """Return what an error says, with a part of a budget named as the specification has it.

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
    from collections.abc import Iterable

    app: typer.Typer


_ALLOCATIONS_A_COLLECTION = 100_000

_HELP = """
Differentially private answers to every query of a workload, with their standard errors.

Write a specification (domain, workload, privacy) as YAML, or begin with a draft of it; then:

\b
  matrixdp draft health.csv > health.yaml
  matrixdp validate health.yaml
  matrixdp select health.yaml
  matrixdp compare health.yaml
  matrixdp ledger init health.ledger --dataset health --total rho=1
  matrixdp release health.yaml --out released --ledger health.ledger
  matrixdp show released 'age CDF by sex'
  matrixdp answer released 'product: {age: {ranges: [[0, 17]]}}'
  matrixdp verify released --ledger health.ledger
  matrixdp report released

The ledger may be left out; with it all releases of the data together keep to its total.

Exit status: 0 success; 2 wrong input, with one line that says what is wrong and where; 3 a release whose
total is not what --expect says; 1 anything else, such as a release that does not hold.
"""

_MODULES = {
    "draft": "specification",
    "validate": "specification",
    "select": "select",
    "compare": "compare",
    "release": "release",
    "answer": "read",
    "show": "read",
    "model": "model",
    "synthesize": "model",
    "verify": "read",
    "explain": "read",
    "report": "read",
    "keys": "release",
    "sign": "release",
    "recover": "release",
    "schema": "specification",
    "ledger": "ledger",
}
"""The commands, in the order of the help, and the module of each."""


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(versions())
        raise typer.Exit


def program(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Show the versions of this and of what it uses.",
        ),
    ] = False,
) -> None:
    """Take the options of the program itself; the help is `_HELP`."""


def _with(names: Iterable[str]) -> typer.Typer:
    """Return the program with some of its commands."""
    made = typer.Typer(
        name="matrixdp",
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # help without rich appears sooner
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(program)
    for name in names:
        command = getattr(import_module(f"matrixdp.cli.{_MODULES[name]}"), name)
        if isinstance(command, typer.Typer):
            made.add_typer(command)
        else:
            made.command()(command)
    return made


def __getattr__(name: str) -> typer.Typer:
    """Make the whole program when it is asked for: `main` needs one command of it."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = whole = _with(_MODULES)
    return whole


def main() -> None:
    """Run the program."""
    # of what a command imports nothing is garbage, and looking for it takes time
    gc.set_threshold(_ALLOCATIONS_A_COLLECTION)
    named = [name for name in sys.argv[1:2] if name in _MODULES]
    try:
        _with(named or _MODULES)()
    finally:
        # nor is it when the process ends, where Python looks several times; DuckDB's binding counts what is
        # not freed, and would complain
        if "duckdb" not in sys.modules:
            gc.freeze()


# Which versions run: this program's, Python's, and those of the libraries that it uses.

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def versions() -> str:
    """Return what a report of an error should begin with, a line each.

    Examples
    --------
    >>> versions().splitlines()[0] == f"matrixdp {__version__}"
    True
    """
    return "\n".join((f"matrixdp {__version__}", *_others()))


def _others() -> Iterator[str]:
    yield f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    try:
        required = metadata.requires("matrixdp") or []
    except metadata.PackageNotFoundError:
        return  # run from its files, without being installed
    needed = [text for text in required if "extra ==" not in text]
    yield "needed: " + ", ".join(_found(needed))
    yield "for extras: " + (", ".join(_found(text for text in required if "extra ==" in text)) or "none")


def _found(required: Iterable[str]) -> Iterator[str]:
    """Yield the names and versions of what is installed, each once."""
    for name in sorted({found[0] for text in required if (found := _NAME.match(text))}):
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
