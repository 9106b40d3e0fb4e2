"""What is measured, and the error that follows from it before any data is read."""

from matrixdp.strategy.analysis import ErrorAnalysis, views
from matrixdp.strategy.error import ViewAnalysis
from matrixdp.strategy.forms import GroupError
from matrixdp.strategy.plan import Block, Part, Plan, residual_weights

__all__ = [
    "Block",
    "ErrorAnalysis",
    "GroupError",
    "Part",
    "Plan",
    "ViewAnalysis",
    "residual_weights",
    "views",
]
