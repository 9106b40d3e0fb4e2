"""What is measured, and the estimates and errors that follow from it before any data is read."""

from matrixdp.plan.joint import Joint as Joint
from matrixdp.plan.part import Block as Block
from matrixdp.plan.part import Part as Part
from matrixdp.plan.plan import PLAN_KINDS as PLAN_KINDS
from matrixdp.plan.plan import Analysis as Analysis
from matrixdp.plan.plan import Estimates as Estimates
from matrixdp.plan.plan import GroupError as GroupError
from matrixdp.plan.plan import NoiseTerms as NoiseTerms
from matrixdp.plan.plan import Plan as Plan
from matrixdp.plan.pooled import Pooled as Pooled
from matrixdp.plan.rounds import Rounds as Rounds
from matrixdp.plan.split import Direct as Direct
from matrixdp.plan.split import Split as Split
from matrixdp.plan.split import SplitAnalysis as SplitAnalysis
from matrixdp.plan.split import TableAnalysis as TableAnalysis
from matrixdp.plan.split import residual_weights as residual_weights
from matrixdp.plan.union import Local as Local
from matrixdp.plan.union import Union as Union
from matrixdp.plan.union import UnionAnalysis as UnionAnalysis
