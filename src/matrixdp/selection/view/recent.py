"""What was made last, kept for those who ask for the same again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

__all__ = ["Recent"]

T = TypeVar("T")


class Recent(Generic[T]):
    """The results of the last different requests, at most so many.

    Examples
    --------
    >>> recent = Recent[int](1)
    >>> [recent.of(key, lambda: made) for made, key in enumerate("aaba")]
    [0, 0, 2, 3]
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._found: dict[Hashable, T] = {}

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is known under a key, or make it."""
        found = self._found.pop(key) if key in self._found else make()
        if len(self._found) >= self._most:
            del self._found[next(iter(self._found))]
        self._found[key] = found
        return found
