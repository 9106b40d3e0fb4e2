"""Large arrays that lie in files: the system reads what is used, and takes the memory back."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import StorageError, file_problem

#: Bytes up to which an array is in memory.
LARGEST_HELD = 2**26
_PIECE = 2**20


def room(size: int, dtype: type[np.integer[Any]] = np.int32) -> NDArray[Any]:
    """Return room for so many integers: in a file without a name where there are many, which ends with them.

    The disk space is taken at once.

    Raises
    ------
    StorageError
        If the temporary folder has no place for them.

    Examples
    --------
    >>> numbers = room(3)
    >>> numbers[:] = 1
    >>> int(numbers.sum())
    3
    """
    kind = np.dtype(dtype)
    if size * kind.itemsize <= LARGEST_HELD:
        return np.zeros(size, kind)
    try:
        with tempfile.TemporaryFile(prefix="matrixdp-") as file:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size * kind.itemsize)
            else:
                file.truncate(size * kind.itemsize)
            return mapped(file, 0, kind, size, writable=True)
    except OSError as error:
        told = f"the temporary folder has no place for {size:,} noisy answers ({file_problem(error)})"
        raise StorageError(f"{told}; name another one in the variable TMPDIR", "no-place") from None


def mapped(
    file: IO[bytes], offset: int, dtype: np.dtype[Any], size: int, *, writable: bool = False
) -> NDArray[Any]:
    """Return the numbers in a file from a place on; the file may be closed, and be removed, meanwhile."""
    access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
    start = offset - offset % mmap.ALLOCATIONGRANULARITY
    length = offset - start + size * dtype.itemsize
    held = mmap.mmap(file.fileno(), length, access=access, offset=start)
    return np.frombuffer(held, dtype, size, offset - start)


def let_go(array: NDArray[Any]) -> None:
    """Let the system take back the memory of an array that lies in a file; its numbers stay."""
    held: Any = array
    while isinstance(held, np.ndarray):
        held = held.base
    held = getattr(held, "obj", None)
    if isinstance(held, mmap.mmap) and hasattr(held, "madvise"):
        held.madvise(mmap.MADV_DONTNEED)


def in_pieces(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield consecutive pieces of an array, of which one at a time is in memory."""
    for start in range(0, len(array), _PIECE):
        yield array[start : start + _PIECE]
        let_go(array)


@final
class Multiples:
    """Many multiples of 2^power, kept as integers, most likely in a file; slices of them are read as floats.

    Examples
    --------
    >>> numbers = Multiples(room(3), -1)
    >>> numbers.put(slice(0, 2), np.array([3, 2**40]))
    >>> numbers[0:2].tolist(), numbers.steps.dtype
    ([1.5, 549755813888.0], dtype('int64'))
    """

    def __init__(self, steps: NDArray[Any], power: int, check: Callable[[], None] | None = None) -> None:
        self._steps = steps
        self.power = power
        self._check = check

    @property
    def steps(self) -> NDArray[Any]:
        """The integers, after a check of what they were read from."""
        if self._check is not None:
            self._check()
            self._check = None
        return self._steps

    def __getstate__(self) -> dict[str, Any]:
        return {"_steps": self.steps, "power": self.power, "_check": None}

    def put(self, rows: slice, steps: NDArray[np.int64]) -> None:
        """Write the integers of some rows."""
        if self.steps.dtype == np.int32 and int(np.abs(steps).max(initial=0)) >= 2**31:
            wide, done = room(len(self.steps), np.int64), 0
            for piece in in_pieces(self.steps):
                wide[done : done + len(piece)] = piece
                done += len(piece)
            self._steps = wide
        self.steps[rows] = steps
        let_go(self.steps)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._steps)

    def __getitem__(self, rows: slice) -> NDArray[np.float64]:
        found = np.ldexp(self.steps[rows].astype(np.float64), self.power)
        let_go(self.steps)
        return found

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype or np.float64, copy=False)
