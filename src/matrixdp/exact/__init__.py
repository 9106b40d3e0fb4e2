"""Matrices that are never larger than they must be: exact integer products and what strategies measure."""

from matrixdp.exact.explicit import DeficientMatrix, ExplicitMatrix, IntegerMatrix
from matrixdp.exact.grid_tree import GridTree
from matrixdp.exact.limbs import ExactMatrix, IntegerTensor, apply_kronecker
from matrixdp.exact.matrices import CenteredMatrix, IdentityMatrix, MeasuredMatrix
from matrixdp.exact.merged import MergedMatrix

__all__ = [
    "CenteredMatrix",
    "DeficientMatrix",
    "ExactMatrix",
    "ExplicitMatrix",
    "GridTree",
    "IdentityMatrix",
    "IntegerMatrix",
    "IntegerTensor",
    "MeasuredMatrix",
    "MergedMatrix",
    "apply_kronecker",
]
