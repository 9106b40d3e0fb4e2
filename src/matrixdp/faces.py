"""Faces of rooms whose names are loaded when they are first used, so that a short command loads little."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["loaded_when_used"]


def loaded_when_used(room: str, homes: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a room, from its modules with the names that each has.

    No name may be that of a module of the room: once that is imported, it would stand in its place.

    Examples
    --------
    >>> loaded_when_used("matrixdp.privacy", {"budget": ["Budget"]})("Budget").__name__
    'Budget'
    """
    home_of = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(import_module(f"{room}.{home_of[name]}"), name)

    return load
