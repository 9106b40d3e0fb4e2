"""What every input must meet: it is taken, or refused by one of our errors with a short message."""

from __future__ import annotations

import resource
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from matrixdp.errors import MatrixDPError

Case = Callable[[bytes], None]
"""Gives one input to what is under test; what it raises is judged."""

MOST_SECONDS: float = 10
MOST_BYTES = 1_500_000_000
LONGEST_MESSAGE = 2_000


class Finding(AssertionError):  # noqa: N818 - an assertion that did not hold
    """An input that is neither taken nor refused as it should be."""


def hold(holds: object, words: str) -> None:
    """Raise a finding unless something holds."""
    if not holds:
        raise Finding(words)


class _TooLong(BaseException):
    """The clock ran out; no handler of errors catches it."""


def judge(case: Case, data: bytes) -> bool:
    """Return whether an input was taken; False if one of our errors refused it.

    Raises
    ------
    Finding
        If it raised anything else, said nothing or too much, warned, or took too long.
    """
    started = time.process_time()
    with warnings.catch_warnings(), _clock():
        warnings.simplefilter("error")
        try:
            case(data)
        except MatrixDPError as error:
            refusal: MatrixDPError | None = error
        except (Finding, KeyboardInterrupt, SystemExit):
            raise
        except _TooLong:
            raise Finding(f"more than {MOST_SECONDS} s of processor") from None
        except BaseException as error:
            raise Finding(f"{type(error).__name__}: {str(error)[:300]}") from error
        else:
            refusal = None
    hold(time.process_time() - started <= MOST_SECONDS, f"more than {MOST_SECONDS} s of processor")
    message = "taken" if refusal is None else str(refusal)
    if not message.strip():
        raise Finding(f"a {type(refusal).__name__} that says nothing") from refusal
    if len(message) > LONGEST_MESSAGE:
        raise Finding(f"a message of {len(message)} characters: {message[:300]}") from refusal
    return refusal is None


@contextmanager
def _clock() -> Iterator[None]:
    def out(number: int, frame: FrameType | None) -> NoReturn:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, out)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def limit_memory(most: int) -> None:
    """Let the address space of this process grow by this many bytes: more is a MemoryError, a finding."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + most, resource.RLIM_INFINITY))
