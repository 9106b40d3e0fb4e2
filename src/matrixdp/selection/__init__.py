"""Selection: from a workload to a plan, without the data. Names are loaded when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrixdp.faces import loaded_when_used

if TYPE_CHECKING:
    from matrixdp.selection.auto import select
    from matrixdp.selection.mechanisms.table import MECHANISMS
    from matrixdp.selection.selection import Certificate, Selection

__all__ = ["MECHANISMS", "Certificate", "Selection", "select"]


if not TYPE_CHECKING:  # so that a misspelt name is an error to a checker, too
    __getattr__ = loaded_when_used(
        __name__,
        {
            "auto": ("select",),
            "mechanisms.table": ("MECHANISMS",),
            "selection": ("Certificate", "Selection"),
        },
    )
