"""What is measured, and the error that follows from it before any data is read."""

from matrixdp.plan.analysis import ErrorAnalysis, views
from matrixdp.plan.error import ViewAnalysis
from matrixdp.plan.plan import Block, Part, Plan, residual_weights
from matrixdp.plan.quadratic_forms import GroupError

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
