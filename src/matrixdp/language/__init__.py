"""The query language: every form of workload entry and predicate set, read, checked, written and expanded."""

from matrixdp.errors import EntryError as EntryError
from matrixdp.language.builders import cells as cells
from matrixdp.language.builders import dense as dense
from matrixdp.language.builders import disjunction as disjunction
from matrixdp.language.builders import kway as kway
from matrixdp.language.builders import marginals as marginals
from matrixdp.language.builders import pairwise as pairwise
from matrixdp.language.builders import product as product
from matrixdp.language.entries import ENTRY as ENTRY
from matrixdp.language.entries import CellsEntry as CellsEntry
from matrixdp.language.entries import DenseEntry as DenseEntry
from matrixdp.language.entries import DisjunctionEntry as DisjunctionEntry
from matrixdp.language.entries import Entry as Entry
from matrixdp.language.entries import KwayEntry as KwayEntry
from matrixdp.language.entries import MarginalsEntry as MarginalsEntry
from matrixdp.language.entries import PairwiseEntry as PairwiseEntry
from matrixdp.language.entries import ProductEntry as ProductEntry
from matrixdp.language.entries import entry_form as entry_form
from matrixdp.language.entries import read_entry as read_entry
from matrixdp.language.periods import schedule_in_words as schedule_in_words
from matrixdp.language.periods import workload_through as workload_through
from matrixdp.language.predicates import KeyedPredicates as KeyedPredicates
from matrixdp.language.predicates import PredicateForm as PredicateForm
from matrixdp.language.predicates import RangesForm as RangesForm
from matrixdp.language.predicates import SetsForm as SetsForm
from matrixdp.language.predicates import keyed_predicates as keyed_predicates
