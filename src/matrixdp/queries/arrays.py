"""Arrays of real numbers, checked and copied."""

from __future__ import annotations

import hashlib
from tokenize import TokenError

import numpy as np
from numpy.typing import NDArray

from matrixdp.errors import TooLargeError, WorkloadError

__all__ = ["MAX_EXPLICIT_ENTRIES", "NOT_NUMPY", "Array", "content_key", "real_array"]

Array = NDArray[np.float64]

#: What NumPy raises where a file is none of its own: the header is parsed as Python, which has limits.
NOT_NUMPY = (
    ValueError, OSError, EOFError, SyntaxError, TypeError, OverflowError, MemoryError, RecursionError,
    TokenError,
)  # fmt: skip
#: Explicit queries (dense groups, groups with a weight for each query) hold at most this many numbers.
MAX_EXPLICIT_ENTRIES = 200_000_000


def content_key(array: Array) -> str:
    """Return a text that is equal for arrays of equal shape and content."""
    return f"{array.shape}{hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()}"


def real_array(values: object, what: str) -> Array:
    """Return a copy of an array of real numbers, as floats that cannot be written to.

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
