"""Arrays of numbers that a user gives: in memory, as lists, or as NumPy files."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from matrixdp.domain.canonical import describe_value
from matrixdp.errors import EntryError, TooLargeError, WorkloadError
from matrixdp.errors import Path as EntryPath

__all__ = ["MAX_EXPLICIT_ENTRIES", "given_array", "load_array", "real_array"]

Array = NDArray[np.float64]

#: Explicit queries (dense groups, groups with a weight for each query) hold at most this many numbers.
MAX_EXPLICIT_ENTRIES = 200_000_000


def real_array(values: object, what: str) -> Array:
    """Return a copy of an array of real numbers, as floats that cannot be written to.

    Parameters
    ----------
    values : object
        An array, or nested lists, of booleans, integers or floats.
    what : str
        What it is, for the message.

    Returns
    -------
    ndarray
        Same shape as `values`, read-only; the negative zero becomes the positive one.

    Raises
    ------
    WorkloadError
        If it is not an array of real numbers.
    TooLargeError
        If it has more than `MAX_EXPLICIT_ENTRIES` entries.

    Examples
    --------
    >>> real_array([[1, 0], [1, 1]], "the matrix")
    array([[1., 0.],
           [1., 1.]])
    """
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf":
        raise WorkloadError.at((what,), type(values).__name__, "an array of real numbers")
    if array.size > MAX_EXPLICIT_ENTRIES:
        raise TooLargeError(f"{what}: {array.size} entries; the limit is {MAX_EXPLICIT_ENTRIES}")
    result = np.asarray(array, dtype=float) + 0.0
    result.setflags(write=False)
    return result


def load_array(path: str | os.PathLike[str]) -> Array:
    """Return the array that a NumPy ``.npy`` file holds.

    Pickled objects are refused, and the size is checked before the numbers are read.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    ndarray
        Read-only floats.

    Raises
    ------
    WorkloadError
        If the file is not there, or is not a NumPy file of real numbers.
    TooLargeError
        If it has more than `MAX_EXPLICIT_ENTRIES` entries.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/queries.npy", np.eye(2))
    ...     load_array(f"{folder}/queries.npy")
    array([[1., 0.],
           [0., 1.]])
    """
    file = Path(path)
    if not file.is_file():
        raise WorkloadError.at((str(file),), "no such file", "a NumPy file (.npy)")
    try:
        with file.open("rb") as stream:
            if stream.read(6) != b"\x93NUMPY":
                raise ValueError("not a NumPy file")
        array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError, SyntaxError):
        found = "a file that cannot be read as NumPy"
        raise WorkloadError.at((str(file),), found, "an array of real numbers (.npy)") from None
    return real_array(array, str(file))


def given_array(value: object, path: EntryPath, expected: str, axes: int | None = None) -> Array:
    """Return an array given as a path of a NumPy file, an array or lists.

    Parameters
    ----------
    value : object
        What the user gave.
    path : tuple of str or int
        Where it stands, for messages.
    expected : str
        What is expected, in words.
    axes : int, optional
        The number of axes; any number where it is left out.

    Returns
    -------
    ndarray
        Finite, read-only, with that number of axes, none of them empty.

    Raises
    ------
    EntryError
        If there is no such file, or what is there is not such an array.
    TooLargeError
        If it has more than `MAX_EXPLICIT_ENTRIES` entries.

    Examples
    --------
    >>> given_array([1, 2], ("weights",), "a weight for each query", axes=1)
    array([1., 2.])
    """
    if isinstance(value, str | os.PathLike):
        try:
            array = load_array(value)
        except WorkloadError as error:
            found = f"{error.problem.found if error.problem else error} at {os.fspath(value)}"
            raise EntryError.at(path, found, f"a NumPy file (.npy) with {expected}") from None
    elif isinstance(value, np.ndarray | list | tuple):
        try:
            array = real_array(value, "array")
        except WorkloadError:
            raise EntryError.at(
                path, "entries that are not real numbers, or rows of unequal length", expected
            ) from None
    else:
        raise EntryError.at(path, describe_value(value), f"a NumPy file (.npy) or an array, {expected}")
    if array.ndim != (array.ndim if axes is None else axes) or 0 in array.shape:
        raise EntryError.at(path, f"an array of shape {array.shape}", expected)
    if not np.isfinite(array).all():
        raise EntryError.at(path, "an array with an entry that is NaN or infinite", expected)
    return array
