"""How many threads are used: one for small products, which lose by several, else one for each processor."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from threading import Lock
from typing import Any

__all__ = ["THREADED_CELLS", "blas_threads", "one_blas_thread", "processors"]

#: Matrices of at least this many columns gain from several threads.
THREADED_CELLS = 1_000

#: Variables by which the libraries are told how many threads they may use.
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

    Where the environment limits the threads of the library, there are no more.

    Examples
    --------
    >>> with blas_threads(10):
    ...     pass
    """
    if cells < THREADED_CELLS:
        return nullcontext()
    asked = [os.environ.get(name, "") for name in _LIMITS]
    limits = [int(one) for one in asked if one.isdecimal() and int(one) > 0]
    return _limited(min([processors(), *limits]))


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


@lru_cache(maxsize=1)
def _pools(modules: int) -> Any:  # noqa: ARG001
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
