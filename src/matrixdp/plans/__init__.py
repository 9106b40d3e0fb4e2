"""What is measured, and the estimates and errors that follow from it before any data is read."""

from matrixdp.plans.joint import Joint as Joint
from matrixdp.plans.part import Block as Block
from matrixdp.plans.part import Part as Part
from matrixdp.plans.plan import PLAN_KINDS as PLAN_KINDS
from matrixdp.plans.plan import Analysis as Analysis
from matrixdp.plans.plan import Batch as Batch
from matrixdp.plans.plan import Estimates as Estimates
from matrixdp.plans.plan import GroupError as GroupError
from matrixdp.plans.plan import NoiseTerms as NoiseTerms
from matrixdp.plans.plan import Plan as Plan
from matrixdp.plans.pooled import Pooled as Pooled
from matrixdp.plans.rounds import Rounds as Rounds
from matrixdp.plans.slices import SlicedEstimates as SlicedEstimates
from matrixdp.plans.slices import Slices as Slices
from matrixdp.plans.slices import check_held as check_held
from matrixdp.plans.split import Direct as Direct
from matrixdp.plans.split import Split as Split
from matrixdp.plans.split import SplitAnalysis as SplitAnalysis
from matrixdp.plans.split import TableAnalysis as TableAnalysis
from matrixdp.plans.split import residual_weights as residual_weights
from matrixdp.plans.union import Local as Local
from matrixdp.plans.union import Union as Union
from matrixdp.plans.union import UnionAnalysis as UnionAnalysis
