"""Errors of engines, without what they say.

An engine's message may quote the table. So the engine's error is dropped altogether, with its message, its
cause and its context; only the name of its type is kept. Whoever asks for it in the environment is shown it
on standard error, behind a warning, and nowhere else: what is raised in its place, and may be written down,
is the same.
"""

import os
import sys
import traceback
from collections.abc import Callable
from typing import TypeVar

from matrixdp.errors import DEBUG, MatrixDPError, SourceError

__all__ = ["guarded"]

_WARNING = (
    f"WARNING: {DEBUG} IS SET. WHAT FOLLOWS MAY QUOTE THE TABLE, AND NO NOISE PROTECTS IT: show it to nobody "
    "who may not see every record, and keep it out of logs and reports."
)
_END = f"WARNING: THE ABOVE MAY QUOTE THE TABLE. Unset {DEBUG} where others see what is printed."

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
        if os.environ.get(DEBUG):
            said = "".join(traceback.format_exception(error))
            sys.stderr.write(f"{_WARNING}\n{said}{_END}\n")
    # Raised outside the handler, so that the engine's error is not even the context of this one.
    withheld = f"what it says may quote the data and is withheld; {DEBUG}=1 shows it on standard error"
    raise SourceError(f"could not {doing} ({failure}; {withheld})" + (f"; {hint}" if hint else ""))
