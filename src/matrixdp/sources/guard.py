"""Errors of engines, without what they say.

An engine's message may quote the table. So the engine's error is dropped altogether, with its message, its
cause and its context; only the name of its type is kept.
"""

from collections.abc import Callable
from typing import TypeVar

from matrixdp.errors import MatrixDPError, SourceError

__all__ = ["guarded"]


Result = TypeVar("Result")


def guarded(action: Callable[[], Result], doing: str, hint: str = "") -> Result:
    """Return what an action returns, or raise an error that says nothing about the data.

    Examples
    --------
    >>> try:
    ...     guarded(lambda: int("a secret"), "read the table")
    ... except SourceError as error:
    ...     print(str(error)[:35])
    could not read the table (ValueErro
    """
    failure: str
    try:
        return action()
    except (MatrixDPError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001  a panic of an engine is no Exception
        failure = type(error).__name__
    # Raised outside the handler, so that the engine's error is not even the context of this one.
    withheld = "what it says may quote the data and is withheld"
    raise SourceError(f"could not {doing} ({failure}; {withheld})" + (f"; {hint}" if hint else ""))
