"""Large arrays that lie in files: the system reads what is used, and takes the memory back."""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, final

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import StorageError, file_problem

#: Bytes up to which an array is in memory.
LARGEST_HELD = 2**26
_PIECE = 2**20
_NONE: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def room(size: int) -> NDArray[np.int32]:
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
    kind = np.dtype(np.int32)
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


def may_hold(rows: Any, ends: Mapping[str, tuple[str, str]]) -> bool:
    """Return whether a row group of a Parquet file may hold rows with texts of columns between two ends.

    It says its least and largest bytes, which are compared as they stand: not all need be UTF-8.
    """
    for column in map(rows.column, range(rows.num_columns)):
        known = column.statistics if column.path_in_schema in ends else None
        if known is not None and known.has_min_max and isinstance(known.min_raw, bytes):
            low, high = (end.encode() for end in ends[column.path_in_schema])
            if high < known.min_raw or known.max_raw < low:
                return False
    return True


@final
class Multiples:
    """Many multiples of 2^power, kept as integers, most likely in a file; slices of them are read as floats.

    The few that 32 bits do not hold are kept apart, with their increasing places, and are 0 among the others.

    Examples
    --------
    >>> numbers = Multiples(room(3), -1)
    >>> numbers.put(slice(0, 2), np.array([3, 2**40]))
    >>> numbers[0:2].tolist(), numbers.steps.tolist(), numbers.places.tolist(), numbers.beyond.tolist()
    ([1.5, 549755813888.0], [3, 0, 0], [1], [1099511627776])
    """

    def __init__(
        self,
        steps: NDArray[Any],
        power: int,
        places: NDArray[Any] = _NONE,
        beyond: NDArray[Any] = _NONE,
        check: Callable[[], None] | None = None,
    ) -> None:
        self._steps = steps
        self.power = power
        self.places = places
        self.beyond = beyond
        self._check = check

    @property
    def steps(self) -> NDArray[Any]:
        """The integers, after a check of what they were read from."""
        if self._check is not None:
            self._check()
            self._check = None
        return self._steps

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_steps": self.steps, "_check": None}

    def put(self, rows: slice, steps: NDArray[np.int64]) -> None:
        """Write the integers of some rows, which were not written before."""
        far = np.flatnonzero((steps <= -(2**31)) | (steps >= 2**31))
        if far.size:
            places = np.append(self.places, rows.start + far)
            order = np.argsort(places)
            self.places, self.beyond = places[order], np.append(self.beyond, steps[far])[order]
            steps = steps.copy()
            steps[far] = 0
        self.steps[rows] = steps
        let_go(self.steps)

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._steps)

    def __getitem__(self, rows: slice) -> NDArray[np.float64]:
        found = self.steps[rows].astype(np.float64)
        let_go(self.steps)
        start, stop, _ = rows.indices(self.size)
        first, last = np.searchsorted(self.places, (start, stop))
        found[self.places[first:last] - start] = self.beyond[first:last]
        return np.ldexp(found, self.power)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self[:].astype(dtype or np.float64, copy=False)
