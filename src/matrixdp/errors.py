"""The errors that matrixdp raises.

::

    MatrixDPError
    ├── DomainError              an attribute or a value that the domain does not have
    ├── WorkloadError            an empty workload, a bad weight, a query that does not fit its attributes
    │   └── EntryError           an entry of it that is wrong at a named place
    ├── SpecificationError       a specification file: names the place, what was found, what would be right
    ├── UnsupportedQueryError    a query outside the span of what was measured
    ├── PrivacyError             a budget, a cost or a noise scale that cannot be honoured
    ├── NumericalError           not converged, not finite, rank lost
    ├── TooLargeError            would need more cells than the named limit
    ├── SourceError              the table cannot be read (never quotes its contents)
    ├── StorageError             a saved strategy or release that cannot be written or read back
    └── SignatureError           a key that cannot be used, or a signature that does not hold

Every error has a `code` that stays the same when its message is reworded, and a `path` where a place is
named; docs/troubleshooting.md lists the codes, each with its cause and its cure. No message quotes a value
that was read from the data. An error that a user's words caused carries a `Problem`: the place, what was
found and what would be right, as data; its prose is made here alone.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import wraps
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import ParamSpec, Self, TypeVar, final

DEBUG = "MATRIXDP_DEBUG"
"""Set in the environment, this lets be seen what is withheld otherwise, as it may quote the table."""

Path = tuple[str | int, ...]
"""Keys of mappings and positions in lists, from the outside in."""

A = TypeVar("A")
B = TypeVar("B")
E = TypeVar("E", bound="MatrixDPError")
P = ParamSpec("P")
#: Longer messages are cut in the middle: what they quote of an input stays an excerpt.
_LONGEST_MESSAGE = 1_000
_PACKAGE = __file__.removesuffix("errors.py")
_PLAIN_KEY = re.compile(r"[^\W\d][\w-]*")


def format_place(path: Iterable[str | int]) -> str:
    """Return a place in a specification as text.

    Examples
    --------
    >>> format_place(("workload", 2, "product", "age", "ranges", 0))
    'workload[2].product.age.ranges[0]'
    >>> format_place(("domain", "hours a week"))
    "domain['hours a week']"
    """
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif not text:
            text = step
        else:
            text += f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{step!r}]"
    return text


def file_problem(error: Exception) -> str:
    """Return what is wrong with a file that cannot be opened or written, without its name.

    Examples
    --------
    >>> file_problem(FileNotFoundError(2, "No such file or directory")), file_problem(ValueError())
    ('No such file or directory', 'a name that is not a path')
    """
    return getattr(error, "strerror", None) or "a name that is not a path"


@contextmanager
def reading(path: object, what: str) -> Iterator[None]:
    """Let whatever is wrong with a part of a file that is read be one `StorageError`."""
    try:
        yield
    except StorageError:
        raise
    except MatrixDPError as error:
        raise StorageError(f"{path}: damaged or altered: {what}: {error}", "damaged-file") from None
    except (MemoryError, RecursionError):
        raise StorageError(f"{path}: {what} needs more memory than there is", "too-large") from None
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError):
        why = f"{what} is not in the form that it should have"
        raise StorageError(f"{path}: damaged or altered: {why}", "damaged-file") from None


def did_you_mean(suggestions: Iterable[str]) -> str:
    """Return the end of a message: the names that may have been meant; empty if there are none."""
    names = " or ".join(map(repr, suggestions))
    return f"; did you mean {names}?" if names else ""


@final
@dataclass(frozen=True)
class Problem:
    """What is wrong with what a user wrote, as data; `str` turns it into prose.

    Parameters
    ----------
    path : tuple of str or int
        Where it stands, as keys and positions from the outside in; empty for the whole.
    found : str
        What stands there.
    expected : str
        What would be right.
    suggestions : tuple of str
        Names that may have been meant, the closest first.
    position : str, optional
        Where that is in the user's own text: ``line 12``. A front end fills it in, from the path.
    code : str, optional
        Which of the listed codes it is, where that is known.

    Examples
    --------
    >>> str(Problem(("privacy", "delta"), "1.5", "a number in (0, 1)", position="line 12"))
    'privacy.delta (line 12): found 1.5; expected a number in (0, 1)'
    >>> str(Problem(("pairwise",), "'abz'", "affine or abs", ("abs",)))
    "pairwise: found 'abz'; expected affine or abs; did you mean 'abs'?"
    """

    path: Path
    found: str
    expected: str
    suggestions: tuple[str, ...] = ()
    position: str | None = None
    code: str | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> str:
        """The path as text."""
        return format_place(self.path)

    def within(self, *steps: str | int) -> Problem:
        """Return the problem as seen from outside, where what it is about stands under these steps."""
        return replace(self, path=(*steps, *self.path))

    def __str__(self) -> str:
        place = self.place
        if self.position is not None:
            place = f"{place} ({self.position})" if place else self.position
        told = f"found {self.found}; expected {self.expected}{did_you_mean(self.suggestions)}"
        return f"{place}: {told}" if place else told


class MatrixDPError(Exception):
    """Any error that matrixdp raises on purpose.

    Parameters
    ----------
    message : str or Problem
        What is wrong.
    code : str, optional
        Which of the listed codes it is; by default that of the problem, or of the class.

    Attributes
    ----------
    code : str
        A short name that stays the same when messages are reworded.
    path : tuple of str or int
        Where it is, from the outside in; empty where no place is named.
    problem : Problem or None
        What is wrong as data, where it is something that a user wrote.
    """

    code = "error"
    problem: Problem | None

    def __init__(self, message: str | Problem = "", code: str | None = None) -> None:
        super().__init__(message)
        self.problem = message if isinstance(message, Problem) else None
        own = code or (self.problem.code if self.problem else None)
        if own is not None:
            self.code = own

    @property
    def path(self) -> Path:
        """Where it is, from the outside in."""
        return () if self.problem is None else self.problem.path

    def __str__(self) -> str:
        text, half = super().__str__(), _LONGEST_MESSAGE // 2
        return text if len(text) <= 2 * half else f"{text[:half]} ... {text[-half:]}"

    def _render_traceback_(self) -> list[str]:
        """Show a notebook the last line of its own, and what is wrong with it."""
        frames = traceback.extract_tb(self.__traceback__)
        inside = [frame.filename.startswith(_PACKAGE) for frame in frames] + [True]
        own = frames[: inside.index(True)][-1:]
        text = [*traceback.format_list(own), *traceback.format_exception_only(self)]
        return "".join(text).splitlines()

    @classmethod
    def at(
        cls,
        path: Path,
        found: str,
        expected: str,
        suggestions: tuple[str, ...] = (),
        *,
        code: str | None = None,
    ) -> Self:
        """Return the error of a `Problem`.

        Examples
        --------
        >>> str(WorkloadError.at(("kway",), "5", "at most 3"))
        'kway: found 5; expected at most 3'
        """
        return cls(Problem(path, found, expected, suggestions, code=code))


class DomainError(MatrixDPError, ValueError):
    """An attribute or a public value that the domain does not have."""

    code = "domain"


class WorkloadError(MatrixDPError, ValueError):
    """A workload that cannot be answered as written."""

    code = "workload"


class EntryError(WorkloadError):
    """A workload entry that is wrong at a named place; always has a `Problem`."""


class SpecificationError(MatrixDPError, ValueError):
    """A specification, or what a command was given, that is wrong at a named place."""

    code = "specification"


class UnsupportedQueryError(MatrixDPError, ValueError):
    """A query that what was measured does not determine."""

    code = "unsupported-query"


class PrivacyError(MatrixDPError, ValueError):
    """A budget, a cost or a noise scale that cannot be honoured."""

    code = "privacy"


class NumericalError(MatrixDPError, ArithmeticError):
    """A computation that did not reach its stated accuracy."""

    code = "not-converged"


class TooLargeError(MatrixDPError, MemoryError):
    """A computation that would exceed a stated size limit."""

    code = "too-large"


class SourceError(MatrixDPError):
    """A table that cannot be read; never quotes its contents."""

    code = "source"


class StorageError(MatrixDPError):
    """A saved strategy or release that cannot be written or read back."""

    code = "storage"

    @classmethod
    def unwritable(cls, path: object, error: Exception) -> Self:
        """Return the error of a path that the system does not let be written."""
        return cls(f"{path}: cannot be written ({file_problem(error)})", "no-place")


class SignatureError(MatrixDPError):
    """A key that cannot be used, or a signature that does not hold."""

    code = "signature"


class SafeNote(str):
    """A note on an error that quotes no data, so that commands print it."""


def explained(error: BaseException) -> str:
    """Return what may be shown of an error: nothing that quotes a table."""
    if isinstance(error, MatrixDPError):
        return str(error)
    if isinstance(error, MemoryError):
        return "out of memory; ask for less, or use a machine with more"
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or type(error).__name__}"
    withheld = f"its message may quote the data and is withheld; set {DEBUG}=1 to see it"
    return f"unexpected {type(error).__name__} ({withheld})"


def placed(error: E, *steps: str | int) -> E:
    """Return an error as it is told from outside, where what it is about stands under these steps.

    What is wrong with a file has the file as its place.
    """
    if isinstance(error, StorageError):
        return error
    if error.problem is None:
        return type(error)(f"{format_place(steps)}: {error}", error.code) if steps else error
    return type(error)(error.problem.within(*steps), error.code)


def each(function: Callable[[A], B], items: Iterable[A]) -> list[B]:
    """Return what a function makes of each item; its errors tell the position of the item.

    Examples
    --------
    >>> each(lambda number: number + 1, [1, 2])
    [2, 3]
    """
    made: list[B] = []
    try:
        for item in items:
            made.append(function(item))  # noqa: PERF401 - an error tells how far it came
    except MatrixDPError as error:
        raise placed(error, len(made)) from None
    return made


@contextmanager
def within(*steps: str | int) -> Iterator[None]:
    """Let errors raised inside tell their place as seen from outside.

    Parameters
    ----------
    *steps : str or int
        Where what is done inside stands.

    Examples
    --------
    >>> with within("workload", 0):
    ...     raise WorkloadError.at(("kway",), "5", "at most 3")
    Traceback (most recent call last):
        ...
    matrixdp.errors.WorkloadError: workload[0].kway: found 5; expected at most 3
    """
    try:
        yield
    except MatrixDPError as error:
        raise placed(error, *steps) from None


@contextmanager
def needing(
    library: str, extra: str | None = None, *place: str, error: type[MatrixDPError] = SpecificationError
) -> Iterator[None]:
    """Say what installs a library whose import fails inside: an optional extra, or pip by its name."""
    try:
        yield
    except ImportError:
        what = library if extra is None else f"'.[{extra}]' in a clone of matrixdp"
        expected = f"an installation with it: pip install {what}"
        raise error.at(place, f"no {library}", expected, code="missing-library") from None


# Tracebacks keep the local variables of every function that an error left, and so would keep exact counts:
# error collectors, debuggers and notebooks show them.


def withholding(function: Callable[P, B]) -> Callable[P, B]:
    """Return a function that reads data, with errors that keep none of it.

    The local variables of every function that it called are cleared in the traceback of an error, and in
    those of its context and its causes. Functions among its arguments, such as ``progress``, keep theirs.
    With `DEBUG` set nothing is cleared.

    Examples
    --------
    >>> @withholding
    ... def count(ages):
    ...     return len(ages) / 0
    >>> try:
    ...     count([33, 61])
    ... except ZeroDivisionError as error:
    ...     [frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
    {}
    """

    @wraps(function)
    def door(*args: P.args, **kwargs: P.kwargs) -> B:
        given = [*args, *kwargs.values()]
        told = {getattr(own, "__code__", None) for own in given if isinstance(own, FunctionType | MethodType)}
        earlier = sys.exception()
        raised = None if earlier is None else earlier.__traceback__
        try:
            return function(*args, **kwargs)
        except BaseException as error:
            del args, kwargs, given
            if not os.environ.get(DEBUG):
                _forget(error, told, earlier, raised)
            raise

    return door


def _forget(
    error: BaseException,
    told: set[CodeType | None],
    earlier: BaseException | None,
    raised: TracebackType | None,
) -> None:
    """Clear the frames of an error and of its causes, except those of the functions `told`.

    What such a function calls, or raises again, keeps its frames too. The `earlier` error was being handled
    when the door opened: only its frames before `raised` are new.
    """
    left, seen, kept = [error], set[int](), set[FrameType | None]()
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        mark, own = one.__traceback__, False
        while mark is not None and mark is not raised:
            frame, mark = mark.tb_frame, mark.tb_next
            own = own or frame.f_code in told or frame.f_back in kept
            if own:
                kept.add(frame)
            else:
                with suppress(RuntimeError):  # it still runs
                    frame.clear()
        if isinstance(one, AttributeError):
            one.obj = None
        if one is not earlier:
            led = (one.__context__, one.__cause__, *getattr(one, "exceptions", ()))
            left += [each for each in led if isinstance(each, BaseException)]
