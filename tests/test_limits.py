"""Limits and constants that the documentation names are those of the program, or follow from formulas."""

import math
import re
from pathlib import Path

import pytest

from matrixdp import draft
from matrixdp.answers import intervals
from matrixdp.domain import attribute, kinds
from matrixdp.language import predicates as keyed
from matrixdp.ledger import database
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.papers import (
    coa,
    exponential_smoothing,
    fourier,
    low_rank,
    matrix_mechanism,
    matrix_programs,
)
from matrixdp.papers.dawa import questions
from matrixdp.papers.privbayes import mechanism as privbayes
from matrixdp.papers.privbayes import network
from matrixdp.plans import least_squares, pair
from matrixdp.privacy import Budget
from matrixdp.queries.workload import MAX_ANSWERS
from matrixdp.releases import record
from matrixdp.report import accuracy, tables
from matrixdp.selection import custom, targets
from matrixdp.selection.bounds import lower_bound, triples
from matrixdp.selection.compose import coarse_weights, rounding
from matrixdp.selection.limits import GAP, LIMITS
from matrixdp.selection.problem import grams
from matrixdp.sources import postgresql as blocks
from matrixdp.sources.sql import LONGEST_TEXT
from matrixdp.statements import evaluation
from matrixdp.statistics import attributes, counts, statistic
from matrixdp.statistics import intervals as simulation


def short(number: float) -> str:
    """Write a number with one digit and its power of ten."""
    return re.sub(r"e([+-])0?", lambda sign: "e" + sign.group(1).strip("+"), f"{number:.0e}")


def slow(scale: int) -> str:
    """Write the slow path's probability (docs/noise.md): twice M, epsilon = 2^-39, and tails beyond 5.5."""
    return short(2 * (scale * 2.0**-39 + (24 * scale + 8) * 2.0**-53) + math.erfc(5.5 / math.sqrt(2)))


GAUSSIAN_95, LAPLACE_95 = (f"{noise.largest_quantile(0.95):.3f}" for noise in (GAUSSIAN, LAPLACE))
SCALE = 1 / math.sqrt(GAUSSIAN.cost(Budget(epsilon=1, delta=1e-6)).value)
DOCS = Path(__file__).parents[1] / "docs"
TEXTS = {
    "command-line.md": [
        f"up to {draft._FEW_INTEGERS} integers with gaps; texts, up to {draft._MOST_CATEGORIES} |",
        f"integers within a range of {draft._MOST_INTEGERS}",
        f"with more than {fourier.MAX_FOURIER_CELLS:,} pairs of values are rejected",
        f"up to {LIMITS.max_dense_cells:,} cells that do not factor",
        f"beyond {LIMITS.chains_large_cells:,} to a gap of {100 * LIMITS.loose_gap:g}%",
        f"up to {LIMITS.max_free_cells:,} cells that do not factor",
        f"over the data vector (up to 10^{math.log10(LIMITS.max_table_cells):g} cells)",
        f"parts that have at most {custom.MAX_STACKED_CELLS:,} cells together",
        f"by a search of ours, and completed, up to {matrix_mechanism.MAX_ROTATED_CELLS} cells",
        f"under Gaussian noise; up to {matrix_programs.MAX_ERROR_CELLS} cells",
        f"L1 sensitivity found, up to {matrix_programs.MAX_SENSITIVITY_CELLS} cells",
        f"its authors' program, up to {low_rank.MAX_CELLS:,} cells",
        f"with constants of ours, up to {exponential_smoothing.MAX_CELLS:,} cells",
        f"is Algorithm 3), up to {coa.MAX_CELLS:,} cells",
        f"one attribute of up to {questions.MOST_CELLS:,} values",
        f"groups have up to {network.MOST_CELLS:,} cells each",
        f"is fewer where more than {privbayes._MOST_SETS:,} tables would have to be read",
        f"(groups of up to {record._QUERIES:,} queries, {record._QUERIES_OF_ALL:,} in all",
        f"than noise does once in {1 / record._CHANCE:,.0f} times",
        f"one waits for another for up to {database.PATIENCE // 1000} s",
        f"At most {tables.MAX_GROUPS} tables are shown",
        f"{tables.MAX_GROUP_ROWS:,} answers of one table and {tables.MAX_ROWS:,} of all",
        f"the first {tables._FIRST_ROWS} answers",
        f"Errors are shown for {accuracy.MAX_ACCURACIES} tables",
        f"{MAX_ANSWERS:,}",
    ],
    "specification.md": [
        f"equal bins [a, b), at most {kinds._MOST_BINS:,};",
        f"There are at most {attribute._MOST_COMBINATIONS:,} combinations",
        f"A quantile or CDF is of at most {statistic.MAX_VALUES:,} values",
        f"is about an attribute of more than {attribute._MOST_LISTED:,}.",
        f"up to {keyed._MOST_PERMUTED:,} values)",
        f"over their cells, at most {evaluation.MOST_CELLS:,}.",
        {10.0: "as if its target were ten times the largest one"}[targets.OTHER_GROUPS],
    ],
    "servers.md": [
        f"for each {blocks._AT_ONCE} blocks of marginals",
        f"attributes with at most {blocks._CELLS:,} cells together",
        f"texts of more than {LONGEST_TEXT / 2**20:g} MiB",
    ],
    "results.md": [
        f"Up to {counts._MOST_CORRELATED} normal estimates, and {attributes._MOST_STRATA} strata of a CDF",
        f"by {simulation._DRAWS:,} draws",
    ],
    "measurement.md": [
        f"It is scaled by 2^{rounding.BITS}",
        f"two parts of up to {pair.MAX_CELLS / 1e6:g} million cells each ({pair.MAX_VALUES:,} values",
        f"several with up to {least_squares.MAX_COMMON:,} unknowns in common",
        f"groups of up to {intervals.MAX_EXACT_QUERIES:,} queries",
        f"enough for *every* combination: {LAPLACE_95} standard deviations at 95%",
        f"a single Laplace variable needs {math.log(20) / math.sqrt(2):.3f} and many terms {GAUSSIAN_95}",
    ],
    "privacy.md": [
        f"{GAUSSIAN_95} of Gaussian noise, at most {LAPLACE_95} of Laplace noise",
        f"it asks for noise of {SCALE:.4f} per unit",
        f"asks for {math.sqrt(2 * math.log(1.25e6)):.4f}.",
    ],
    "noise.md": [f"{slow(2**12)} to {slow(2**13)} for 4096 <= s < 8192 and {slow(2**20)} at s = 2^20"],
    "model.md": [f"about {math.sqrt(1 / 6):.1f} times the root of the number of components"],
    "mathematics.md": [
        f"It stops at a relative gap of {short(GAP)}",
        f"it is taken from {LIMITS.min_chain_cells} values on",
        f"more than {LIMITS.chains_large_cells:,} cells stop at a gap of {short(LIMITS.loose_gap)}",
        f"more than {LIMITS.max_searched_size} values at {coarse_weights.GRID_POINTS} of them",
        f"Up to {grams.MAX_BOX_TERMS} pairs of boxes",
        f"of up to {LIMITS.max_measured_cells:,} cells",
        f"(up to {LIMITS.max_compared_cells:,} cells that do not factor)",
        f"solved jointly up to {LIMITS.joint_cells:,} cells",
        f"optimized together, up to {LIMITS.max_free_cells:,} cells",
        f"add up to at most {short(lower_bound.MOST_SECTOR_WORK)}",
        f"at most {short(lower_bound.THOROUGH_WORK)} with `--certify`",
        f"attributes of more than {LIMITS.spectral_cells:,} values",
        f"over more than {LIMITS.spectral_cells:,} cells",
        f"explicit queries of more than {LIMITS.written_entries / 1e6:g} million entries",
        f"of more than {triples.MOST_ENTRIES / 1e6:g} million entries",
        f"more than {triples.MOST_LOOKS / 1e6:g} million pairs of subsets or"
        f" {triples.MOST_TRIPLES / 1e6:g} million triples",
        f"or {triples.MOST_TIED} different tensor contractions",
    ],
}


@pytest.mark.parametrize("page", TEXTS)
def test_what_a_page_says_of_limits_is_so(page: str) -> None:
    written = (DOCS / page).read_text(encoding="utf-8")
    assert [text for text in TEXTS[page] if text not in written] == []
