"""Several threads for products of large matrices; small ones lose by them."""

from __future__ import annotations

import os
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

__all__ = ["THREADED_CELLS", "blas_threads", "one_blas_thread"]

#: Matrices of at least this many columns gain from several threads.
THREADED_CELLS = 1_000

#: The BLAS libraries of this process, by the number of modules when they were looked for.
_FOUND: dict[int, ThreadpoolController] = {}


#: Variables by which the libraries are told how many threads they may use.
_LIMITS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


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
    return _limited(_most_threads())


def _most_threads() -> int:
    """Return the number of processors, or the limit that the environment sets."""
    asked = [os.environ.get(name, "") for name in _LIMITS]
    limits = [int(one) for one in asked if one.isdecimal() and int(one) > 0]
    return min([os.cpu_count() or 1, *limits])


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context with one BLAS thread, for many small products.

    Examples
    --------
    >>> with one_blas_thread():
    ...     pass
    """
    return _limited(1)


def _limited(threads: int | None) -> AbstractContextManager[object]:
    from threadpoolctl import ThreadpoolController

    # the search for libraries takes milliseconds, and finds more only where a module was loaded since
    modules = len(sys.modules)
    libraries = _FOUND.get(modules)
    if libraries is None:
        libraries = ThreadpoolController()
        _FOUND.clear()
        _FOUND[modules] = libraries
    context: AbstractContextManager[object] = libraries.limit(limits=threads, user_api="blas")
    return context
