"""Matrices that are never larger than they must be: exact integer products and what strategies measure."""

from matrixdp.linops.exact import ExactMatrix, IntegerTensor, apply_kronecker
from matrixdp.linops.explicit import DeficientMatrix, ExplicitMatrix, IntegerMatrix
from matrixdp.linops.matrices import CenteredMatrix, IdentityMatrix, MeasuredMatrix

__all__ = [
    "CenteredMatrix",
    "DeficientMatrix",
    "ExactMatrix",
    "ExplicitMatrix",
    "IdentityMatrix",
    "IntegerMatrix",
    "IntegerTensor",
    "MeasuredMatrix",
    "apply_kronecker",
]
