"""Files that hold arrays: NumPy and SciPy files, told by how they begin, and CSV, by its ending."""

from __future__ import annotations

import csv
import math
import os
import zipfile
from pathlib import Path

import numpy as np

from matrixdp.errors import MatrixDPError, TooLargeError, WorkloadError
from matrixdp.queries import arrays
from matrixdp.queries.arrays import NOT_NUMPY, Array, real_array

__all__ = ["ARRAY_FILE", "read_array"]

ARRAY_FILE = "a NumPy file (.npy), a SciPy sparse matrix (.npz) or numbers without a header (.csv)"
"""What a file of an array may be, for messages."""

_NUMPY, _ZIP = b"\x93NUMPY", b"PK\x03\x04"
_UNREADABLE = (*NOT_NUMPY, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError)


def read_array(file: Path) -> Array:
    r"""Return the array that a file holds.

    Pickled objects are refused, and sizes are checked before the numbers are read.

    Raises
    ------
    WorkloadError
        If there is no such file, or it holds anything but real numbers.
    TooLargeError
        If they are too many.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "halves.csv")
    ...     _ = file.write_text("1, 1, 0, 0\n0, 0, 1, 1\n")
    ...     read_array(file)
    array([[1., 1., 0., 0.],
           [0., 0., 1., 1.]])
    """
    if not os.path.isfile(file):  # noqa: PTH113 - no error where the path is none
        raise WorkloadError.at((str(file),), "no such file", ARRAY_FILE)
    if file.suffix.lower() == ".csv":
        return real_array(_numbers(file), str(file))
    try:
        with file.open("rb") as stream:
            start = stream.read(6)
        if start[:4] == _ZIP:
            return _sparse(file)
        if start != _NUMPY:
            raise ValueError("not a NumPy file")
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except MatrixDPError:  # which may be a ValueError, or a MemoryError
        raise
    except _UNREADABLE:
        found = "a file that cannot be read as NumPy"
        raise WorkloadError.at((str(file),), found, f"an array of real numbers: {ARRAY_FILE}") from None
    return real_array(array, str(file))


def _sparse(file: Path) -> Array:
    """Return the only array of a NumPy archive, or the sparse matrix that it is, written out."""
    import scipy.sparse

    with zipfile.ZipFile(file) as archive:
        names = {info.filename.removesuffix(".npy") for info in archive.infolist()}
        _check_entries(sum(info.file_size for info in archive.infolist()) // 8, file)
    with np.load(file, allow_pickle=False) as held:
        if len(names) == 1:
            return real_array(held[names.pop()], str(file))
        if "format" not in names:
            found = f"a file of {len(names)} arrays"
            raise WorkloadError.at((str(file),), found, "one array, or a sparse matrix")
        _check_entries(math.prod(int(size) for size in held["shape"]), file)
    return real_array(scipy.sparse.load_npz(file).toarray(), str(file))


def _check_entries(entries: int, file: Path) -> None:
    if not 0 <= entries <= arrays.MAX_EXPLICIT_ENTRIES:
        raise TooLargeError(f"{file}: {entries} entries; the limit is {arrays.MAX_EXPLICIT_ENTRIES}")


def _numbers(file: Path) -> list[list[float]]:
    rows: list[list[float]] = []
    try:
        with file.open(encoding="utf-8-sig", newline="") as stream:
            for number, row in enumerate(csv.reader(stream, strict=True), 1):
                if row:
                    rows.append(_row(row, number, file))
                    _check_entries(len(rows) * len(row), file)
                    if len(row) != len(rows[0]):
                        found = f"{len(row)} numbers in line {number}, and {len(rows[0])} before"
                        raise WorkloadError.at((str(file),), found, "as many in every line")
    except (OSError, UnicodeDecodeError, csv.Error):
        raise WorkloadError.at((str(file),), "a file that cannot be read as CSV", ARRAY_FILE) from None
    return rows


def _row(row: list[str], number: int, file: Path) -> list[float]:
    try:
        return [float(cell) for cell in row]
    except ValueError:
        place = next(place for place, cell in enumerate(row, 1) if not _is_number(cell))
        found = f"{row[place - 1][:40]!r} in line {number}, column {place}"
        expected = "numbers alone, separated by commas, without a header"
        raise WorkloadError.at((str(file),), found, expected) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
