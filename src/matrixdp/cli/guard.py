"""From errors to exit statuses: one clear line on stderr, and never what a table says."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import typer

from matrixdp.errors import MatrixDPError

__all__ = ["guarded"]

P = ParamSpec("P")
R = TypeVar("R")

#: Set this in the environment to see where an unexpected error comes from.
_DEBUG = "MATRIXDP_DEBUG"


def guarded(command: Callable[P, R]) -> Callable[P, R]:
    """Return a command that ends with status 2 on wrong input and 1 on any other failure.

    Parameters
    ----------
    command : callable
        The command.

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
        except MatrixDPError as error:
            _say(str(error))
            raise typer.Exit(2) from None
        except BrokenPipeError:
            # Whoever read our output has seen enough; nothing more can be said to them.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from None
        except (typer.Exit, typer.Abort, KeyboardInterrupt, SystemExit):
            raise
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            _say(f"{where}{error.strerror or type(error).__name__}")
            raise typer.Exit(1) from None
        except MemoryError:
            _say("out of memory; ask for less, or on a machine with more")
            raise typer.Exit(1) from None
        except BaseException as error:
            if os.environ.get(_DEBUG):
                raise
            _say(
                f"unexpected {type(error).__name__} (what it says may quote the data and is withheld; set "
                f"{_DEBUG}=1 to see it)"
            )
            raise typer.Exit(1) from None

    return run


def _say(text: str) -> None:
    typer.echo(f"Error: {text}", err=True)
