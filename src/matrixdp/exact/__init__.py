"""Matrices that are never larger than they must be: exact integer products and what strategies measure."""

from matrixdp.exact.kronecker import IntegerTensor as IntegerTensor
from matrixdp.exact.kronecker import apply_kronecker as apply_kronecker
from matrixdp.exact.matrices import CenteredMatrix as CenteredMatrix
from matrixdp.exact.matrices import DeficientMatrix as DeficientMatrix
from matrixdp.exact.matrices import ExplicitMatrix as ExplicitMatrix
from matrixdp.exact.matrices import IdentityMatrix as IdentityMatrix
from matrixdp.exact.matrices import IntegerMatrix as IntegerMatrix
from matrixdp.exact.matrices import MeasuredMatrix as MeasuredMatrix
from matrixdp.exact.matrices import RangeMatrix as RangeMatrix
from matrixdp.exact.row_trees import RowTrees as RowTrees
from matrixdp.exact.structured import GridTree as GridTree
from matrixdp.exact.structured import MergedMatrix as MergedMatrix
from matrixdp.exact.trees import TreeMatrix as TreeMatrix
from matrixdp.exact.walks import BlockWalkMatrix as BlockWalkMatrix
from matrixdp.exact.walks import TreeWalkMatrix as TreeWalkMatrix
from matrixdp.exact.walks import WalkMatrix as WalkMatrix
