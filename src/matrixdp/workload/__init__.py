"""Workloads: what is asked of a table, as query groups over a public domain."""

from matrixdp.workload import families
from matrixdp.workload.builders import dense, kway, marginals, pairwise, product
from matrixdp.workload.crossed import Crossed
from matrixdp.workload.disjunctions import CellSets, Disjunctions
from matrixdp.workload.entry_error import EntryError
from matrixdp.workload.groups import (
    MAX_EXPLICIT_ENTRIES,
    AbsoluteDifferences,
    DenseGroup,
    Group,
    MatrixRows,
    ProductGroup,
    Rows,
    Sums,
    check_weights,
    renamed,
)
from matrixdp.workload.merged_builders import cells, disjunction
from matrixdp.workload.permuted import Permuted
from matrixdp.workload.predicates import (
    AllRanges,
    Circular,
    Identity,
    Matrix,
    Predicates,
    Prefix,
    Ranges,
    Sets,
    Suffix,
    Total,
    Width,
)
from matrixdp.workload.stacked import Stacked
from matrixdp.workload.workload import Entry, Workload

__all__ = [
    "MAX_EXPLICIT_ENTRIES",
    "AbsoluteDifferences",
    "AllRanges",
    "CellSets",
    "Circular",
    "Crossed",
    "DenseGroup",
    "Disjunctions",
    "Entry",
    "EntryError",
    "Group",
    "Identity",
    "Matrix",
    "MatrixRows",
    "Permuted",
    "Predicates",
    "Prefix",
    "ProductGroup",
    "Ranges",
    "Rows",
    "Sets",
    "Stacked",
    "Suffix",
    "Sums",
    "Total",
    "Width",
    "Workload",
    "cells",
    "check_weights",
    "dense",
    "disjunction",
    "families",
    "kway",
    "marginals",
    "pairwise",
    "product",
    "renamed",
]
