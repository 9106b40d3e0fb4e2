"""Matrices that are never larger than they must be: exact integer products and what strategies measure."""

from matrixdp.exact.kronecker import IntegerTensor, apply_kronecker
from matrixdp.exact.matrices import (
    CenteredMatrix,
    DeficientMatrix,
    ExplicitMatrix,
    IdentityMatrix,
    IntegerMatrix,
    MeasuredMatrix,
)
from matrixdp.exact.structured import GridTree, MergedMatrix

__all__ = [
    "CenteredMatrix",
    "DeficientMatrix",
    "ExplicitMatrix",
    "GridTree",
    "IdentityMatrix",
    "IntegerMatrix",
    "IntegerTensor",
    "MeasuredMatrix",
    "MergedMatrix",
    "apply_kronecker",
]
