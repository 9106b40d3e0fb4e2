"""Every size, effort and tolerance of selection: what it bounds, and where its value comes from.

Tolerances say what counts as rounding, gaps and gains when a solver or a search has done enough, sizes which
method a problem gets, efforts how long a search goes on. A comment that speaks of a measurement says where
the value comes from; all other values are not tuned: they were set once, and the workloads of the benchmarks
show no harm. Facts of arithmetic, and the form of an algorithm, are constants beside their use.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields

__all__ = ["LIMITS", "Limits", "override"]


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
    #: Singular values of a workload below this count for no dimension: roots of ``rank`` with a margin, for
    #: they are computed as roots of eigenvalues.
    singular_values_rank: float = 1e-5
    #: Entries of matrices, tensors and weights that differ by less are the same.
    same: float = 1e-11
    #: A Gram matrix that is this near to a I + b 11', or to one query, has the closed form. Not ``same``: a
    #: wider one takes what is merely near, and lowered the bound of a product of two attributes by 4.5%.
    closed_form: float = 1e-13
    #: The same where each entry is a ratio or a combination of many: rows that no query tells apart, and
    #: Gram matrices in the form of a chain.
    alike: float = 1e-9
    #: What is left of a difference of equal numbers: of traces, of coefficients, of gaps.
    rounding: float = 1e-13
    #: Shares and weights stay above this part of the uniform or the largest one, so that nothing vanishes.
    least_share: float = 1e-9

    #: weights: directions in which phi curves less than this part of the most count as if it curved so much.
    flattest: float = 1e-2

    #: bounds: distributions are kept above this share of the uniform one.
    least_distribution: float = 1e-7
    #: bounds: what rounding may add to a bound of positive terms, generously, and where terms have signs.
    lower_bound_rounding: float = 1e-11
    signed_rounding: float = 1e-9
    #: bounds: how far a matrix may be from the diagonal one that it is taken for, as far as vectors tell.
    traces_same: float = 1e-5
    #: joint tables: eigenvalues of C'C below this are lifted to it; such directions fade, and never vanish.
    joint_tables_floor: float = 1e-11
    #: dual: the same of M, where they only arise off the optimum: below ``rank``, so that no optimum changes.
    dual_floor: float = 1e-15
    #: dual: a start whose error is more than so many times its bound is worse than the uniform distribution.
    useful_start: float = 10.0
    #: chains: how far the Gram matrix of what was solved may be from the one that was asked for.
    chains_solved: float = 1e-8
    #: chains: smaller relative differences of products have lost too many digits.
    chains_cancelled: float = 1e-6
    #: p-Identity: weights of rows stay below this, so that the identity's never vanish beside them.
    max_weight: float = 1e3
    #: weights: beyond it a step went astray, and Gram matrices are rounding errors; phi grows by the square.
    largest_weight: float = 1e6
    #: rounding: how far missing directions may be from orthogonal to the rows, beside the longest of these.
    rounding_orthogonal: float = 1e-10
    #: unions: a product that is measured so much less precisely than another would add rounding errors alone.
    least_precision: float = 1e-8
    #: coverage: a share below this is dropped where nothing is lost by it.
    coverage_negligible: float = 1e-6
    #: marginals: the norm of the columns of the identity that gives a Gaussian strategy full rank.
    marginals_regular: float = 1e-3
    #: marginals: the norm of the columns of a total that is measured for an exact row space alone.
    marginals_faint: float = 2.0**-7
    #: marginals: squared share of the total that may lie outside the row space of a matrix that measures it.
    marginals_outside: float = 1e-18

    # 2. GAPS of certified problems: error over lower bound, less 1. One ladder, by what the answer is for.

    #: A strategy that is measured.
    gap: float = 1e-6
    #: Problems within a search, whose end is solved again to ``gap``.
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
    #: weights: tolerance of their descent, and of free bases. Finer, as phi is flat near its optimum.
    weight_vectors_tolerance: float = 3e-8
    free_tolerance: float = 2e-9
    #: bounds: what depends on the distributions is made again at better ones while that gains so much.
    lower_bound_gain: float = 2e-3
    #: minimax: without a bound it stops where so many reweightings have gained less than this.
    minimax_patience: int = 12
    minimax_gain: float = 5e-3
    #: products: after a round a loss this many times what is wanted does not fall to it.
    product_hopeless: float = 1.3
    #: auto: no search is hoped to end below a fast trial of generalized marginals divided by this: 1.10 was
    #: the most on the workloads on which they were compared.
    auto_hope: float = 1.15
    #: auto: percent less error that another strategy may have, from which trying others is advised.
    auto_much: float = 5.0
    #: A bound with a larger gap than this may be a poor one: another is looked for.
    auto_doubted: float = 0.5
    #: targets: groups without one may have standard errors this many times the largest.
    other_groups: float = 10.0

    # 4. SIZES that choose a method.

    #: Attributes that do not factor are solved jointly up to this many cells.
    joint_cells: int = 2_000
    #: The same while weights are searched; of explicit queries, and of joint strategies in a bound.
    weight_vectors_max_searched_cells: int = 420
    slow_cells: int = 1_000
    #: Joint solutions of more cells need only be within ``inner_gap`` where no bound is made of theirs.
    loose_cells: int = 700
    #: Explicit queries, fewer than cells, are solved by themselves up to this many.
    rows: int = 1_000
    #: Cells over which explicit queries are solved, and over which what is found over groups of values is
    #: measured; cells of a table of pairs: a matrix of as many columns takes half a gigabyte.
    row_cells: int = 8_000
    max_designed_cells: int = 8_000
    #: Cells of an explicit problem under Laplace noise; in products an attribute of more is measured whole.
    axis_cells: int = 4_096
    #: dense: cells that do not factor; each matrix takes half a gigabyte there.
    max_dense_cells: int = 8_500
    #: auto: the whole table is solved too up to this many cells that do not factor. There it led the
    #: decomposition by 0.3% to 5.8% on the tables of W-Marginal, and others take their bound from it.
    max_compared_cells: int = 1_100
    #: auto: one product is compared on tables up to this many cells.
    max_product_cells: int = 100_000
    #: Rows with a weight each that a product may have.
    max_table_rows: int = 10_000_000
    #: Values of an attribute, and cells, up to which bases of such a product are optimized.
    max_axis_values: int = 1_000
    max_free_cells: int = 250_000
    #: A sum of few products: on so many attributes, of so many terms. Weights of more are written out.
    max_few_axes: int = 3
    few_terms: int = 4
    #: Laplace: tables of so many cells (or told apart by queries), and of so few queries, are searched whole,
    #: and random starts are tried by default.
    searched_cells: int = 400
    max_searched_queries: int = 64
    #: With few values all searches are fast: one attribute is searched in several ways, explicit queries by
    #: their cells too, and single queries smoothed.
    few_values: int = 100
    #: p-Identity: up to this many cells every start is followed to its end, and random rows tried.
    small_cells: int = 128
    #: p-Identity: beyond this many cells searches are cut short.
    opt_0_large_cells: int = 2_048
    #: p-Identity: workloads of this rank and more are not rotated: the sensitivity of many rows stays far
    #: above 1. Rotation gains 17% at rank 6.
    rotated_rows: int = 256
    #: p-Identity: rows of the Gaussian optimum that a start takes.
    most_parts: int = 32
    #: chains: smaller ones are solved as other problems are, with equal error; prefixes of 1,024 values take
    #: 0.7 s as a chain and 4.4 s without.
    min_chain_cells: int = 512
    #: chains: larger ones start from a grid of every so many values.
    min_refined_cells: int = 1_024
    chains_coarser: int = 4
    #: Larger problems take one eigendecomposition a step, and stop at ``loose_gap``.
    chains_large_cells: int = 4_096
    #: weights: larger attributes are searched on a grid first, where neighbouring columns are this alike
    #: (mean cosine): on distribution functions of 600 values 1.7 s instead of 11 s, 0.0003% more error.
    max_searched_size: int = 512
    grid_points: int = 160
    coarse_weights_smooth: float = 0.9
    #: weights: with more groups of explicit queries evaluations take long, and ``few_evaluations`` must do.
    many_explicit: int = 8
    #: Pairs stand for the values that may trade places of attributes of more values: past half of
    #: ``joint_cells``, so that no joint strategy would fit with another attribute.
    most_unpaired: int = 1_000
    #: Classes of cells that trade places are looked for among so many cells, and given up past so many
    #: classes of less than two on average.
    many_cells: int = 4
    most_classes: int = 8
    #: Products with smaller Gram matrices are quick without structure.
    min_cells: int = 256
    #: joint tables: independent queries on a table, up to which it is designed whole.
    max_table_rank: int = 600
    #: joint tables: unknowns of one-way marginals, exchangeable ones counted once, and all of them.
    max_searched_unknowns: int = 1_500
    max_shared_unknowns: int = 4_000
    #: Fewer groups over the same attributes stay apart; merged ones have so many rows for each.
    least_gathered: int = 8
    max_rows_a_group: int = 8
    #: From so many terms on products are added by matrix multiplications.
    least_terms: int = 8
    #: Terms of queries over merged attributes within predicates of others; else they are written out.
    max_box_terms: int = 100
    #: rounding: up to this share of the rows of a large factor, missing directions are found without its
    #: factorization; from so many on every cell is measured weakly instead.
    few_missing: float = 0.25
    many_missing: int = 256
    #: marginals: larger attributes keep the strategy that is best for them alone.
    max_searched: int = 1_024
    #: marginals: larger ones are measured only if the workload asks for them.
    max_marginal_cells: int = 10_000_000
    #: coverage: attributes up to which every marginal may be measured; pairs of a marginal and a residual in
    #: it up to which larger ones than asked are tried, and those of two attributes beyond the asked ones.
    few_attributes: int = 10
    coverage_pairs: int = 2_000_000
    more_pairs: int = 400_000
    #: coverage: marginals up to which there are so many times the random covers.
    coverage_few: int = 64
    coverage_times: int = 3
    #: unions: with more sets, sets are only folded into others that hold their attributes.
    max_merged_sets: int = 24
    #: unions: attributes of more values that nothing tells apart are measured whole.
    most_symmetric: int = 500
    #: unions: groups that are also measured by a product each, and marginals under Gaussian noise.
    most_apart: int = 8
    most_marginals: int = 1_000
    #: custom: different numbers of a matrix, up to which a common denominator is looked for.
    most_numbers: int = 4_096

    # 5. SIZES that memory sets.

    #: Cells of a table, or a marginal, that is counted: its counts take a gigabyte.
    max_table_cells: int = 100_000_000
    #: A measured matrix has at least as many rows as columns: past this many it would take gigabytes.
    max_measured_cells: int = 9_000
    #: Entries of queries that are written out, merged or weighted one by one.
    written_entries: int = 20_000_000
    #: The same of strategies that search marginals, for each evaluation, and of a strategy that is given.
    max_axis_entries: int = 4_000_000
    max_given_entries: int = 50_000_000
    #: custom: several parts are one matrix up to so many cells.
    max_stacked_cells: int = 2_048
    #: Pairs of a product and a subset of its attributes; of a marginal and a residual in it (3^15 is below).
    max_axis_pieces: int = 2_000_000
    max_pieces: int = 15_000_000
    #: Entries of one side of a multiplication that adds products.
    kron_sum_entries: int = 1 << 22
    #: Arrays of explicit queries that a solver keeps; bytes of strategies, and of Gram matrices looked up.
    kept_arrays: int = 8
    most_bytes: int = 64_000_000
    most_gram_bytes: int = 16_000_000
    #: bounds: cells of a spectrum, and values of covariances that are written out and multiplied.
    spectral_cells: int = 2_000
    #: bounds: entries of the tables by subset and attribute; traces that do not fall apart by attribute (with
    #: 5,000 the bound of two products each pair came out 90% low); pairs of subsets looked through; triples.
    most_entries: int = 30_000_000
    most_tied: int = 200
    most_looks: int = 100_000_000
    most_triples: int = 5_000_000

    # 6. EFFORTS: how long a search goes on.

    #: Steps of a loop that ends by its gap or gain long before.
    max_iterations: int = 80
    #: Evaluations of a descent over bases, and steps of one over row weights.
    descent_steps: int = 400
    #: products: rounds of alternation, and of each start before the best goes on.
    product_sweeps: int = 12
    first_sweeps: int = 3
    #: products: multiplications of all descents over bases together.
    product_most_work: float = 2e10
    #: weights: evaluations after those of the starting points: 10 came within 0.007% on eight workloads, 5
    #: within 0.18%. Half of them with more than ``few_values``, as the other half gained 0.01% on ranges of
    #: twenty attributes; fewer from where a search for other weights of the same queries ended, and where
    #: evaluations take long.
    weight_vectors_max_evaluations: int = 80
    few_evaluations: int = 25
    #: weights: evaluations with each smoothed norm.
    smooth_evaluations: int = 40
    #: bounds: how often what depends on the distributions is made again; over ``slow_cells`` cells joint
    #: strategies only where the loss is above the bound by a factor between.
    lower_bound_rounds: int = 3
    lower_bound_near: float = 1.02
    lower_bound_far: float = 1.5
    #: bounds: steps by which distributions are tuned, few where those take long.
    lower_bound_steps: int = 30
    few_steps: int = 5
    #: bounds: cubes of the dimensions of sectors whose eigenvalues are computed, in all; with ``certify``
    #: (on differences of five attributes it takes the gap from 21.4% to 5.8%), and of a whole spectrum.
    lower_bound_most_work: float = 4e8
    thorough_work: float = 4e9
    most_spectral_work: float = 1e11
    #: p-Identity: families of starts that are looked at further from a known strategy, and of many cells; how
    #: much longer the second look is than the first.
    opt_0_followed: int = 8
    few_followed: int = 3
    p_identity_further: int = 4
    #: p-Identity: pairs of rows that are rotated, in all and for each pair.
    opt_0_rotations: int = 10_000
    opt_0_sweeps: int = 40
    #: coverage: steps of a descent, and of one that only compares supports; rounds of moves.
    coverage_steps: int = 4_000
    coverage_screen_steps: int = 60
    coverage_rounds: int = 40
    #: coverage: covers that moves start from: the best few, and where marginals hold few residuals as many as
    #: have together so many; one past ``more_pairs``.
    coverage_finalists: int = 5
    coverage_work: int = 8_000
    #: coverage: marginals up to which each may be added; pairs of measured ones up to which any two are
    #: merged; attributes of marginals looked for within another.
    coverage_addable: int = 5_000
    coverage_merged: int = 4_000_000
    coverage_deepest: int = 8
    #: unions: steps of the search for shares, and the least where each takes long; multiplications of all,
    #: and of one evaluation, past which averages take the place of least squares.
    share_steps: int = 60
    least_steps: int = 4
    share_work: float = 3e10
    unions_most_work: float = 1e10


LIMITS = Limits()
"""The limits in use."""


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
