"""Limits of selection that tests change."""

from typing import Protocol


class Override(Protocol):
    """Changes limits of selection until a test ends."""

    def __call__(self, **values: object) -> None:
        """Change limits, and constants of modules, by their names."""
