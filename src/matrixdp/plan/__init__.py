"""What is measured, and the estimates and errors that follow from it before any data is read."""

from matrixdp.plan.joint import Joint
from matrixdp.plan.part import Block, Part
from matrixdp.plan.plan import PLAN_KINDS, Analysis, Estimates, GroupError, Plan
from matrixdp.plan.pooled import Pooled
from matrixdp.plan.rounds import Rounds
from matrixdp.plan.split import Direct, Split, SplitAnalysis, TableAnalysis, residual_weights
from matrixdp.plan.union import Local, Union, UnionAnalysis

__all__ = [
    "PLAN_KINDS",
    "Analysis",
    "Block",
    "Direct",
    "Estimates",
    "GroupError",
    "Joint",
    "Local",
    "Part",
    "Plan",
    "Pooled",
    "Rounds",
    "Split",
    "SplitAnalysis",
    "TableAnalysis",
    "Union",
    "UnionAnalysis",
    "residual_weights",
]
