"""What is measured, and the error that follows from it before any data is read."""

from matrixdp.plan.analysis import ErrorAnalysis
from matrixdp.plan.error import ViewAnalysis
from matrixdp.plan.part import Block, Part
from matrixdp.plan.plan import PLAN_KINDS, Direct, Local, Plan, Pooled, Split, residual_weights
from matrixdp.plan.quadratic_forms import GroupError

__all__ = [
    "PLAN_KINDS",
    "Block",
    "Direct",
    "ErrorAnalysis",
    "GroupError",
    "Local",
    "Part",
    "Plan",
    "Pooled",
    "Split",
    "ViewAnalysis",
    "residual_weights",
]
