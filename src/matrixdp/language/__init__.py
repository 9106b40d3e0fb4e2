"""The query language: every form of workload entry and predicate set, read, checked, written and expanded."""

from matrixdp.errors import EntryError
from matrixdp.language.builders import cells, dense, disjunction, kway, marginals, pairwise, product
from matrixdp.language.entries import (
    ENTRY,
    CellsEntry,
    DenseEntry,
    DisjunctionEntry,
    Entry,
    KwayEntry,
    MarginalsEntry,
    PairwiseEntry,
    ProductEntry,
    entry_form,
    read_entry,
)
from matrixdp.language.predicates import (
    NAMED_PREDICATES,
    PREDICATES,
    KeyedPredicates,
    PredicateForm,
    RangesForm,
    SetsForm,
    keyed_predicates,
)

__all__ = [
    "ENTRY",
    "NAMED_PREDICATES",
    "PREDICATES",
    "CellsEntry",
    "DenseEntry",
    "DisjunctionEntry",
    "Entry",
    "EntryError",
    "KeyedPredicates",
    "KwayEntry",
    "MarginalsEntry",
    "PairwiseEntry",
    "PredicateForm",
    "ProductEntry",
    "RangesForm",
    "SetsForm",
    "cells",
    "dense",
    "disjunction",
    "entry_form",
    "keyed_predicates",
    "kway",
    "marginals",
    "pairwise",
    "product",
    "read_entry",
]
