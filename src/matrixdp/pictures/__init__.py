"""Pictures of answers, strategies and comparisons, drawn with matplotlib where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matrixdp.faces import loaded_when_used

if TYPE_CHECKING:
    from matrixdp.pictures.answers import Answered, draw_answers
    from matrixdp.pictures.axes import Axis, axes_of
    from matrixdp.pictures.plotted import MAX_DRAWN, Plotted

__all__ = ["MAX_DRAWN", "Answered", "Axis", "Plotted", "axes_of", "draw_answers"]


if not TYPE_CHECKING:  # so that a misspelt name is an error to a checker, too
    __getattr__ = loaded_when_used(
        __name__,
        {
            "answers": ("Answered", "draw_answers"),
            "axes": ("Axis", "axes_of"),
            "plotted": ("MAX_DRAWN", "Plotted"),
        },
    )
