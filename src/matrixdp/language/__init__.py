"""The query language: every form of workload entry and predicate set, read, checked, written and expanded."""

from matrixdp.errors import EntryError
from matrixdp.language import ask
from matrixdp.language.builders import cells, dense, disjunction, kway, marginals, pairwise, product
from matrixdp.language.combinations import KwayEntry, MarginalsEntry
from matrixdp.language.comparisons import (
    CombinationEntry,
    DifferenceEntry,
    RatioEntry,
    ShareEntry,
    SimultaneousEntry,
    in_words,
)
from matrixdp.language.distributions import CdfEntry, MeanEntry, QuantileEntry, SumEntry, TopEntry
from matrixdp.language.entry import ENTRY, Entry, entry_form, read_entry
from matrixdp.language.keyed import RangesForm, SetsForm
from matrixdp.language.merged import CellsEntry, DisjunctionEntry
from matrixdp.language.predicates import (
    NAMED_PREDICATES,
    PREDICATES,
    KeyedPredicates,
    PredicateForm,
    keyed_predicates,
)
from matrixdp.language.products import DenseEntry, PairwiseEntry, ProductEntry
from matrixdp.language.statistic import StatisticEntry, Statistics

__all__ = [
    "ENTRY",
    "NAMED_PREDICATES",
    "PREDICATES",
    "CdfEntry",
    "CellsEntry",
    "CombinationEntry",
    "DenseEntry",
    "DifferenceEntry",
    "DisjunctionEntry",
    "Entry",
    "EntryError",
    "KeyedPredicates",
    "KwayEntry",
    "MarginalsEntry",
    "MeanEntry",
    "PairwiseEntry",
    "PredicateForm",
    "ProductEntry",
    "QuantileEntry",
    "RangesForm",
    "RatioEntry",
    "SetsForm",
    "ShareEntry",
    "SimultaneousEntry",
    "StatisticEntry",
    "Statistics",
    "SumEntry",
    "TopEntry",
    "ask",
    "cells",
    "dense",
    "disjunction",
    "entry_form",
    "in_words",
    "keyed_predicates",
    "kway",
    "marginals",
    "pairwise",
    "product",
    "read_entry",
]
