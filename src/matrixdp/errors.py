"""The errors that matrixdp raises.

::

    MatrixDPError
    ├── DomainError              an attribute or a value that the domain does not have
    ├── WorkloadError            an empty workload, a bad weight, a query that does not fit its attributes
    ├── SpecificationError       a specification file: names the place, what was found, what would be right
    ├── UnsupportedQueryError    a query outside the span of what was measured
    ├── PrivacyError             a budget, a cost or a noise scale that cannot be honoured
    ├── NumericalError           not converged, not finite, rank lost
    ├── TooLargeError            would need more cells than the named limit
    ├── SourceError              the table cannot be read (never quotes its contents)
    └── StorageError             a saved strategy or release that cannot be written or read back

No message quotes a value that was read from the data.
"""

__all__ = [
    "DomainError",
    "MatrixDPError",
    "NumericalError",
    "PrivacyError",
    "SourceError",
    "SpecificationError",
    "StorageError",
    "TooLargeError",
    "UnsupportedQueryError",
    "WorkloadError",
]


class MatrixDPError(Exception):
    """Any error that matrixdp raises on purpose."""


class DomainError(MatrixDPError, ValueError):
    """An attribute or a public value that the domain does not have."""


class WorkloadError(MatrixDPError, ValueError):
    """A workload that cannot be answered as written."""


class SpecificationError(MatrixDPError, ValueError):
    """A specification that is wrong at a named place.

    Parameters
    ----------
    place : str
        Where in the file, as a path: ``workload[2].product.age``.
    found : str
        What stands there.
    expected : str
        What would be right.

    Examples
    --------
    >>> str(SpecificationError("privacy.delta", "1.5", "a number in (0, 1)"))
    'privacy.delta: found 1.5; expected a number in (0, 1)'
    """

    def __init__(self, place: str, found: str, expected: str) -> None:
        super().__init__(f"{place}: found {found}; expected {expected}")
        self.place = place
        self.found = found
        self.expected = expected


class UnsupportedQueryError(MatrixDPError, ValueError):
    """A query that what was measured does not determine."""


class PrivacyError(MatrixDPError, ValueError):
    """A budget, a cost or a noise scale that cannot be honoured."""


class NumericalError(MatrixDPError, ArithmeticError):
    """A computation that did not reach its stated accuracy."""


class TooLargeError(MatrixDPError, MemoryError):
    """A computation that would exceed a stated size limit."""


class SourceError(MatrixDPError):
    """A table that cannot be read; never quotes its contents."""


class StorageError(MatrixDPError):
    """A saved strategy or release that cannot be written or read back."""
