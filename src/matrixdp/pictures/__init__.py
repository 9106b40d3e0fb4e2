"""Pictures of answers, strategies and comparisons, drawn with matplotlib where it is installed."""

from matrixdp.pictures.answers import Answered, draw_answers
from matrixdp.pictures.axes import Axis, axes_of
from matrixdp.pictures.plotted import MAX_DRAWN, Plotted

__all__ = ["MAX_DRAWN", "Answered", "Axis", "Plotted", "axes_of", "draw_answers"]
