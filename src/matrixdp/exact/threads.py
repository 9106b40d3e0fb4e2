"""Several threads for products of large matrices; small ones lose by them."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext

__all__ = ["THREADED_CELLS", "blas_threads"]

#: Matrices of at least this many columns gain from several threads.
THREADED_CELLS = 1_000


def blas_threads(cells: int) -> AbstractContextManager[object]:
    """Return a context with one BLAS thread for each processor where matrices are large.

    Examples
    --------
    >>> with blas_threads(10):
    ...     pass
    """
    if cells < THREADED_CELLS:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    context: AbstractContextManager[object] = threadpool_limits(limits=os.cpu_count(), user_api="blas")
    return context
