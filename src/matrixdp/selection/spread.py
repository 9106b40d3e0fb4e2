"""Independent problems, solved by several processes or machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from matrixdp.exact.threads import one_blas_thread

__all__ = ["spread"]

P = TypeVar("P")
R = TypeVar("R")


def spread(solve: Callable[[P], R], problems: Sequence[P], jobs: int) -> Iterator[R]:
    """Yield the solutions of problems in their order, as they are found.

    With several jobs they are spread by joblib, over the processes of this machine or whatever
    ``joblib.parallel_config`` says, a cluster of Dask, Ray or Spark for instance. The first error is raised
    as it is.

    Examples
    --------
    >>> list(spread(abs, [-1, 2], jobs=1))
    [1, 2]
    """
    if jobs == 1 or len(problems) < 2:
        yield from map(solve, problems)
        return
    import joblib

    # not every backend hands over what is found before all is
    lazy = joblib.parallel.get_active_backend()[0].supports_return_generator
    workers = joblib.Parallel(n_jobs=jobs, return_as="generator" if lazy else "list")
    yield from workers(joblib.delayed(_alone)(solve, problem) for problem in problems)


def _alone(solve: Callable[[P], R], problem: P) -> R:
    # as many threads as without processes, so that results are the same to the last digit
    with one_blas_thread():
        return solve(problem)
