"""From errors to exit statuses: one clear line on stderr, and never what a table says."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

import typer

from matrixdp.errors import DEBUG, MatrixDPError, SafeNote

__all__ = ["as_written", "guarded"]

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
