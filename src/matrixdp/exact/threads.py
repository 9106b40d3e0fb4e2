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


def blas_threads(cells: int) -> AbstractContextManager[object]:
    """Return a context with one BLAS thread for each processor where matrices are large.

    Examples
    --------
    >>> with blas_threads(10):
    ...     pass
    """
    if cells < THREADED_CELLS:
        return nullcontext()
    return _limited(os.cpu_count())


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
