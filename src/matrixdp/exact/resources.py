"""How much memory this process may use, and whether the matrices of a problem fit there."""

from __future__ import annotations

import gc
import math
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from matrixdp.errors import SourceError, TooLargeError

MEMORY_LIMIT = "MATRIXDP_MEMORY_LIMIT"
"""The variable of the environment with the most memory for DuckDB, and for the matrices of selection."""

#: Without it, this share of the memory that the machine or its container has: DuckDB takes the same.
_SHARE = 0.8
#: Memory that is assumed where the system does not say: Windows has neither module nor call.
_UNTOLD = 8e9
#: Solving for n cells takes about this many matrices of n x n, LAPACK's workspace included: 9 to 10.2 were
#: measured for 4,096 to 8,500 cells.
_MATRICES = 10
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?) ?([KMGT])(i?)B", re.ASCII)
#: What a container may use, by control groups of version 2 and 1.
_CONTAINER = [Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")]


def granted_memory() -> float | None:
    """Return how many bytes the environment grants; None if it does not say.

    Raises
    ------
    SourceError
        If the environment holds something else than a size.
    """
    text = os.environ.get(MEMORY_LIMIT, "")
    found = _SIZE.fullmatch(text)
    if text and found is None:
        raise SourceError.at((MEMORY_LIMIT,), repr(text), "a size, such as 500MB or 4GB")
    return found and float(found[1]) * (1024 if found[3] else 1000) ** ("KMGT".index(found[2]) + 1)


def peak_memory_mb() -> float:
    """Return the largest memory that the process has held, in megabytes; 0 where the system does not tell."""
    told = Path("/proc/self/status")
    # what `getrusage` tells is at least what the process held from which this one came
    for line in told.read_text().splitlines() if told.exists() else []:
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    try:
        import resource
    except ImportError:  # on Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e6 / 1024)


def memory_limit() -> float:
    """Return how many bytes the matrices of selection may take.

    What is free at the moment does not count: the strategy of a workload should not depend on it.

    Examples
    --------
    >>> memory_limit() > 0
    True
    """
    granted = granted_memory()
    return _machine_limit() if granted is None else granted


@cache
def _machine_limit() -> float:
    texts = [file.read_text().strip() for file in _CONTAINER if file.exists()]
    limits = [int(text) for text in texts if text.isdecimal()]
    with suppress(ImportError, AttributeError):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        import resource

        limits += [own for own in resource.getrlimit(resource.RLIMIT_AS)[:1] if own != resource.RLIM_INFINITY]
    return _SHARE * min(limits, default=_UNTOLD)


def matrix_bytes(cells: int) -> float:
    """Return about how many bytes it takes to solve a problem of this many cells."""
    return 8.0 * _MATRICES * float(cells) ** 2


def most_cells() -> int:
    """Return how many cells a problem may have whose matrices fit."""
    return math.isqrt(int(memory_limit() / matrix_bytes(1)))


def check_matrices(names: Sequence[str], cells: int, most: float = math.inf) -> None:
    """Raise TooLargeError if the matrices over some attributes do not fit, or have more cells than `most`.

    Call it before the first of them is made.

    Examples
    --------
    >>> check_matrices(["age"], 100, most=99)
    Traceback (most recent call last):
        ...
    matrixdp.errors.TooLargeError: domain.age: found 100 values, with queries that take ...
    """
    limit = int(min(most, most_cells()))
    if cells > limit:
        about = f"matrices of {cells:,} x {cells:,}, about {matrix_bytes(cells) / 1e9:.3g} GB"
        raise TooLargeError.at(
            ("domain", " x ".join(names)) if names else ("domain",),
            f"{cells:,} values, with queries that take {about}",
            f"at most {limit:,}, here with {memory_limit() / 1e9:.3g} GB: use coarser bins, or fewer values",
        )


# How many threads are used: one for small products, which lose by several, else one for each processor.

#: Matrices of at least this many columns gain from several threads.
THREADED_CELLS = 1_000
#: Matrices of at least this many columns gain even on a busy machine.
ALWAYS_THREADED_CELLS = 4_000
#: The processor time of this process, and the clock, when it began to count.
_BEGUN = time.process_time(), time.monotonic()

#: Variables of the environment that limit the threads of the libraries.
_LIMITS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
_LOCK = Lock()
#: How many contexts threads are in, and the limiter of the one that was entered first.
_entered = 0
_first: Any = None


def processors() -> int:
    """Return the number of processors that this process may use: affinity and a container's quota count.

    Examples
    --------
    >>> processors() >= 1
    True
    """
    from joblib import cpu_count

    found: int = cpu_count()
    return found


def blas_threads(cells: int) -> AbstractContextManager[object]:
    """Return a context with one BLAS thread for each processor where matrices are large.

    The environment's limits on threads hold. Threads that wait for a busy processor spin, so only the largest
    matrices get more threads than processors are idle.

    Examples
    --------
    >>> with blas_threads(10):
    ...     pass
    """
    if cells < THREADED_CELLS:
        return nullcontext()
    asked = [os.environ.get(name, "") for name in _LIMITS]
    limits = [int(one) for one in asked if one.isdecimal() and int(one) > 0]
    idle = processors() if cells >= ALWAYS_THREADED_CELLS else max(_idle(), 1)
    return _limited(min([processors(), idle, *limits]))


def _idle() -> int:
    """Return how many processors other processes leave idle, by the last minute's load where it is known."""
    every = os.cpu_count() or 1
    try:
        load = os.getloadavg()[0]
    except (AttributeError, OSError):
        return every
    own = (time.process_time() - _BEGUN[0]) / max(time.monotonic() - _BEGUN[1], 1.0)
    return round(every - max(load - own, 0.0))


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context with one thread in each BLAS library and OpenMP pool, for many small products.

    A library that is loaded inside is limited by the next context that is entered.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    return _limited(1)


@contextmanager
def _limited(threads: int) -> Iterator[None]:
    import scipy.linalg  # noqa: F401  # its BLAS is not NumPy's, and would else be loaded inside

    global _entered, _first
    with _LOCK:
        # the search for libraries takes milliseconds, and finds more only where a module was loaded since
        own = _pools(len(sys.modules)).limit(limits=threads)
        _first = _first if _entered else own
        _entered += 1
    try:
        with own:
            yield
    finally:
        with _LOCK:
            _entered -= 1
            if not _entered:  # `own` may have found the limits of a thread that left before
                with _first:
                    pass  # leaving it restores what it found


# How often Python looks for garbage in cycles: what lives is walked each time, and selection has millions of
# small tuples that live.

_ALLOCATIONS_A_COLLECTION = 1_000_000, 30, 30
#: How many contexts threads are in, and the thresholds that the first of them found.
_unhurried = 0
_thresholds: tuple[int, int, int] = gc.get_threshold()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Return a context in which garbage in cycles is looked for rarely; thresholds that are higher stay.

    Examples
    --------
    >>> with rare_collections():
    ...     gc.get_threshold()[0] >= 200_000
    True
    """
    global _unhurried, _thresholds
    with _LOCK:
        if not _unhurried:
            _thresholds = gc.get_threshold()
            if _thresholds[0]:  # none at all are the caller's choice
                gc.set_threshold(*map(max, _thresholds, _ALLOCATIONS_A_COLLECTION))
        _unhurried += 1
    try:
        yield
    finally:
        with _LOCK:
            _unhurried -= 1
            if not _unhurried:
                gc.set_threshold(*_thresholds)


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:  # noqa: ARG001
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
