"""Workloads: what is asked of a table, as query groups over a public domain."""

from matrixdp.queries.crossed import Crossed
from matrixdp.queries.disjunctions import CellSets, Disjunctions
from matrixdp.queries.groups import (
    MAX_EXPLICIT_ENTRIES,
    AbsoluteDifferences,
    DenseGroup,
    Group,
    MatrixRows,
    ProductGroup,
    Rows,
    Sums,
    check_weights,
)
from matrixdp.queries.labelled import Labelled
from matrixdp.queries.permuted import Permuted
from matrixdp.queries.predicate_set import Spans
from matrixdp.queries.predicates import (
    AllRanges,
    Circular,
    Identity,
    Indicators,
    Matrix,
    Predicates,
    Prefix,
    Ranges,
    Sets,
    Suffix,
    Total,
    Width,
)
from matrixdp.queries.stacked import Stacked
from matrixdp.queries.workload import Entry, Workload

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
    "Group",
    "Identity",
    "Indicators",
    "Labelled",
    "Matrix",
    "MatrixRows",
    "Permuted",
    "Predicates",
    "Prefix",
    "ProductGroup",
    "Ranges",
    "Rows",
    "Sets",
    "Spans",
    "Stacked",
    "Suffix",
    "Sums",
    "Total",
    "Width",
    "Workload",
    "check_weights",
]
