"""The error of a specification that is wrong at a place whose line is known."""

from __future__ import annotations

from typing import final

from matrixdp.errors import SpecificationError

__all__ = ["PlaceError"]


@final
class PlaceError(SpecificationError):
    """A specification that is wrong at a named place, on a known line.

    Parameters
    ----------
    place : str
        Where in the file, as a path: ``workload[2].product.age``.
    found : str
        What stands there.
    expected : str
        What would be right.
    line : int, optional
        The line of the file, from 1.

    Examples
    --------
    >>> str(PlaceError("privacy.delta", "1.5", "a number in (0, 1)", 12))
    'privacy.delta (line 12): found 1.5; expected a number in (0, 1)'
    """

    def __init__(self, place: str, found: str, expected: str, line: int | None = None) -> None:
        super().__init__(place, found, expected)
        self.line = line
        if line is not None:
            self.args = (f"{place} (line {line}): found {found}; expected {expected}",)
