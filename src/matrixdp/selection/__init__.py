"""Selection: from a workload to a plan, without the data. Names are loaded when they are first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matrixdp.selection.auto import select
    from matrixdp.selection.mechanisms.table import MECHANISMS
    from matrixdp.selection.selection import Certificate, Selection

__all__ = ["MECHANISMS", "Certificate", "Selection", "select"]

_HOMES = {
    "MECHANISMS": "mechanisms.table",
    "Certificate": "selection",
    "Selection": "selection",
    "select": "auto",
}


if not TYPE_CHECKING:  # so that a misspelt name is an error to a checker, too

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
