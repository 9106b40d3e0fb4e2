"""What decides which path selection takes: what each limit bounds, and where its value comes from.

Sizes say which method a problem gets; tolerances what counts as rounding; gaps and gains when a solver or a
search has done enough. A comment that speaks of a measurement says where the value comes from; all other
values are not tuned: they were set once, and the workloads of the benchmarks show no harm. What one module
alone uses, without choosing between methods by it, is a constant of that module.

A limit is read when it is used, never at import, so that `override` holds everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """The limits of selection; `LIMITS` are those in use.

    Examples
    --------
    >>> LIMITS.joint_cells
    2000
    """

    # 1. TOLERANCES: what counts as rounding. Relative to the largest entry, eigenvalue or weight.

    #: Eigenvalues of a Gram matrix below this are noise of the eigendecomposition. All ranges of many
    #: values have small true ones.
    rank: float = 1e-12
    #: Singular values of a strategy below this are directions that it does not measure; also what a strategy
    #: may leave of a Gram matrix in its row space.
    span: float = 1e-9
    #: Entries of matrices, tensors and weights that differ by less are the same.
    same: float = 1e-11
    #: A Gram matrix that is this near to a I + b 11', to one query or to a chain u v' has that form. Not
    #: ``same``: a looser tolerance also matches near misses, which once lowered a bound by 4.5%.
    closed_form: float = 1e-13
    #: The same where each entry combines many: rows that no query tells apart, and chains without their mean.
    alike: float = 1e-9
    #: What is left of a difference of equal numbers: of traces, of coefficients, of gaps.
    rounding: float = 1e-13
    #: Shares and weights stay above this part of the uniform or the largest one, so that nothing vanishes.
    least_share: float = 1e-9

    # 2. GAPS of certified problems: error over lower bound, less 1. One ladder, by what the answer is for.

    #: Problems within a search, whose end is solved again to `GAP`.
    search_gap: float = 1e-5
    #: Problems whose error enters a result in second order: points of a bound, row weights, coarser grids.
    inner_gap: float = 1e-4
    #: Chains of more than ``chains_large_cells``, and evaluations that take long.
    loose_gap: float = 1e-3
    #: The sub-solver ``fast``, products in place of joint strategies in a bound (which their gap
    #: enters squared), and the first rounds of joint tables.
    fast_gap: float = 1e-2
    #: auto: with a proved gap below this nothing else is tried; products only where this may be gained: no
    #: product has less error than the decomposition at its optimum, but its weights may end in a local one.
    rules_settled: float = 1e-6
    rules_worthwhile: float = 1e-3

    # 3. GAINS: relative decreases of the error at which a search stops.

    #: A round of an alternation or of a descent.
    gain: float = 1e-5
    #: A round that only compares starts, or is repeated in another search.
    first_gain: float = 1e-4
    #: A single step of many.
    fine_gain: float = 1e-7
    #: auto: with a larger gap than this candidates that were left out for their size are tried too.
    far: float = 2.0

    # 4. SIZES that choose a method.

    #: Cells of a table, and free numbers of all tables, that share one radius of noise: larger tables gain
    #: less than 0.1% by it.
    radius_cells: int = 60
    radius_dimension: int = 1_000
    #: auto: one radius is left out where more marginals in marginals are asked.
    radius_marginals: int = 20_000
    #: Queries times the marginals that they have pieces on: so many variances are formed for one radius.
    radius_variances: int = 50_000_000

    #: Attributes that do not factor are solved jointly up to this many cells.
    joint_cells: int = 2_000
    #: The same while weights are searched; of explicit queries, and of joint strategies in a bound.
    search_joint_cells: int = 420
    slow_cells: int = 1_000
    #: Joint solutions of more cells need only be within ``inner_gap`` where no bound is made of theirs.
    loose_cells: int = 700
    #: Explicit queries, fewer than cells, are solved by themselves up to this many.
    rows: int = 1_000
    #: Cells over which explicit queries are solved, and over which what is found over groups of values is
    #: measured: a matrix of as many columns takes half a gigabyte.
    row_cells: int = 8_000
    #: Cells of an explicit problem under Laplace noise; in products an attribute of more is measured whole.
    axis_cells: int = 4_096
    #: dense: cells that do not factor; each matrix takes half a gigabyte there.
    max_dense_cells: int = 8_500
    #: auto: the whole table is solved too up to this many cells that do not factor. There it led the
    #: decomposition by 0.3% to 5.8% on the tables of W-Marginal, and others take their bound from it.
    max_compared_cells: int = 1_100
    #: auto: the same, and tables under Laplace noise, where what is found is ``far`` from the bound: 20 s and
    #: half a gigabyte for 2,000 cells were measured. 1,200 random queries on 2,500 cells have 0.44 times the
    #: squared error then, crossed ranges on 40 x 40 cells 0.80 times under Laplace noise.
    far_cells: int = 2_500
    #: auto: one product is compared on tables up to this many cells.
    max_product_cells: int = 100_000
    #: Rows with a weight each that a product may have.
    max_table_rows: int = 10_000_000
    #: Values of an attribute, and cells, up to which bases of such a product are optimized.
    max_axis_values: int = 1_000
    max_free_cells: int = 250_000
    #: Values for which pairs stand in such a product: error analysis takes a second for 3,000 of them, and 26
    #: for 12,000.
    max_weighted_values: int = 3_000
    #: A sum of few products has at most this many terms. Weights of more are written out.
    few_terms: int = 4
    #: Laplace: tables of at most this many cells (or cells that queries tell apart), or with at most this
    #: many queries, are searched whole, with random starts by default.
    searched_cells: int = 400
    max_searched_queries: int = 64
    #: With few values all searches are fast: one attribute is searched in several ways, explicit queries by
    #: their cells too, and single queries smoothed.
    few_values: int = 100
    #: p-Identity: up to this many cells every start is followed to its end, and random rows tried.
    small_cells: int = 128
    #: chains: smaller ones are solved as other problems are, with equal error; prefixes of 1,024 values take
    #: 0.7 s as a chain and 4.4 s without.
    min_chain_cells: int = 512
    #: Larger problems take one eigendecomposition a step, and stop at ``loose_gap``.
    chains_large_cells: int = 4_096
    #: weights: larger attributes are searched on a grid first, where neighbouring columns are alike.
    max_searched_size: int = 512
    #: Pairs stand for the values that may trade places of attributes of more values. From 200 places in 10
    #: areas on, by 8 to 12 ages, this takes a quarter of the time for up to 0.8% less error; with fewer all
    #: searches are fast.
    most_unpaired: int = 100
    #: tree: cells of other attributes of which levels ask several kinds, up to which their rows have trees of
    #: their own; the bound has a matrix of as many rows for each node above the leaves.
    row_cells_of_trees: int = 64
    #: The same: shares of rows at nodes, and entries of the matrices of nodes above the leaves.
    row_entries_of_trees: int = 1 << 26
    #: marginals: larger ones are measured only if the workload asks for them.
    max_marginal_cells: int = 10_000_000

    # 5. SIZES that memory sets.

    #: Cells of a table, or a marginal, that is counted: its counts take a gigabyte.
    max_table_cells: int = 100_000_000
    #: A measured matrix has at least as many rows as columns: past this many it would take gigabytes.
    max_measured_cells: int = 9_000
    #: Entries of queries that are written out, merged or weighted one by one.
    written_entries: int = 20_000_000
    #: The same of strategies that search marginals, for each evaluation.
    max_axis_entries: int = 4_000_000
    #: Pairs of a product and a subset of its attributes; of a marginal and a residual in it (3^15 is below).
    max_axis_pieces: int = 2_000_000
    max_pieces: int = 15_000_000
    #: Arrays of explicit queries that a solver keeps.
    kept_arrays: int = 8
    #: bounds: cells of a spectrum, and values of covariances that are written out and multiplied.
    spectral_cells: int = 2_000

    # 6. EFFORTS: how long a search goes on.

    #: Steps of a loop that ends by its gap or gain long before.
    max_iterations: int = 80


LIMITS = Limits()
"""The limits in use."""

GAP = 1e-6
"""The gap of a strategy that is measured, where no other is given: no limit, but the default of options."""


@contextmanager
def override(**values: object) -> Iterator[None]:
    """Change limits within a block: for experiments and tests, in one thread.

    Raises
    ------
    AttributeError
        If there is no such limit.

    Examples
    --------
    >>> with override(joint_cells=100):
    ...     LIMITS.joint_cells
    100
    >>> LIMITS.joint_cells
    2000
    """
    unknown = values.keys() - {field.name for field in fields(Limits)}
    if unknown:
        raise AttributeError(f"no limits of selection: {', '.join(sorted(unknown))}")
    before = {name: getattr(LIMITS, name) for name in values}
    try:
        for name, value in values.items():
            object.__setattr__(LIMITS, name, value)
        yield
    finally:
        for name, value in before.items():
            object.__setattr__(LIMITS, name, value)
