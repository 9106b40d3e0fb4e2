"""How much memory this process may use, and whether the matrices of a problem fit there."""

from __future__ import annotations

import math
import os
import re
import resource
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from matrixdp.errors import SourceError, TooLargeError

__all__ = ["MEMORY_LIMIT", "check_matrices", "granted_memory", "matrix_bytes", "memory_limit", "most_cells"]

MEMORY_LIMIT = "MATRIXDP_MEMORY_LIMIT"
"""The variable of the environment with the most memory for DuckDB, and for the matrices of selection."""

#: Without it, this share of the memory that the machine or its container has: DuckDB takes the same.
_SHARE = 0.8
#: Solving for n cells takes about so many matrices of n x n, the workspace of LAPACK included: 9 to 10.2 were
#: measured for 4,096 to 8,500 cells.
_MATRICES = 10
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,9})?) ?([KMGT])(i?)B", re.ASCII)
_GROUPS = Path("/proc/self/cgroup")
_MOUNT = Path("/sys/fs/cgroup")


def granted_memory() -> tuple[str, float] | None:
    """Return the memory that the environment grants, as written and in bytes; None if it does not say.

    Raises
    ------
    SourceError
        If the environment holds something else than a size.
    """
    text = os.environ.get(MEMORY_LIMIT, "")
    found = _SIZE.fullmatch(text)
    if found is not None:
        return text, float(found[1]) * (1024 if found[3] else 1000) ** ("KMGT".index(found[2]) + 1)
    if text:
        raise SourceError.at((MEMORY_LIMIT,), repr(text), "a size, such as 500MB or 4GB")
    return None


def memory_limit() -> float:
    """Return how many bytes the matrices of selection may take.

    What is free at the moment does not count: the strategy of a workload should not depend on it.

    Examples
    --------
    >>> memory_limit() > 0
    True
    """
    granted = granted_memory()
    return _machine_limit() if granted is None else granted[1]


@cache
def _machine_limit() -> float:
    held = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    own, _ = resource.getrlimit(resource.RLIMIT_AS)
    return _SHARE * min(held, *_container_limits(), *([] if own == resource.RLIM_INFINITY else [own]))


def _container_limits() -> Iterator[int]:
    """Yield the limits of the control groups that this process is in, of both versions."""
    lines = _GROUPS.read_text().splitlines() if _GROUPS.exists() else []
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers and "memory" not in controllers.split(","):
            continue
        kind, file = ("memory", "memory.limit_in_bytes") if controllers else ("", "memory.max")
        own = PurePosixPath(path)
        for group in (own, *own.parents):
            limit = _MOUNT / kind / group.relative_to("/") / file
            text = limit.read_text().strip() if limit.exists() else ""
            if text.isdecimal():
                yield int(text)


def matrix_bytes(cells: int) -> float:
    """Return about how many bytes it takes to solve a problem of so many cells."""
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
        of = "values" if len(names) == 1 else " ".join(["cells", " x ".join(names)]).strip()
        raise TooLargeError.at(
            ("domain", *names) if len(names) == 1 else ("domain",),
            f"{cells:,} {of}, with queries that take matrices of {cells:,} x {cells:,}, about "
            f"{matrix_bytes(cells) / 1e9:.3g} GB",
            f"at most {limit:,}, here with {memory_limit() / 1e9:.3g} GB: use coarser bins, or fewer values",
        )
