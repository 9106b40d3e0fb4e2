"""Every size, effort and tolerance of selection: what it bounds, and where its value comes from.

Sizes decide which method a problem gets, efforts how long a search goes on, and tolerances what counts as
rounding. Sections are the modules that read them. Where a comment gives no reason, the value was chosen on
the workloads of the benchmarks.
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

    # sizes of problems, of all methods
    #: Sub-workloads that do not factor are solved jointly up to this many cells.
    joint_cells: int = 2_000
    #: Explicit queries, fewer than cells, are solved by themselves up to this many.
    rows: int = 1_000
    #: Cells over which explicit queries are solved, and over which what is found over groups of values
    #: is measured: a matrix of as many columns takes half a gigabyte.
    row_cells: int = 8_000
    #: Cells of an explicit problem; an attribute of more values is measured whole.
    axis_cells: int = 4_096
    #: A part on several attributes is measured over the data vector of their table, up to so many cells.
    max_table_cells: int = 100_000_000
    #: A measured matrix has at least as many rows as columns: past this many it would take gigabytes.
    max_measured_cells: int = 9_000

    # auto
    #: Percent less error that another strategy may have, from which trying others is advised.
    auto_much: float = 5.0
    #: No search is hoped to end below a fast trial of generalized marginals divided by this (1.10 was
    #: the most on the workloads on which they were compared).
    auto_hope: float = 1.15
    #: As accurate as ``dense`` within this share, the decomposition is taken: it measures each marginal
    #: apart.
    auto_even: float = 2e-6

    # bounds/lattice
    #: Sets of up to this many attributes are numbers of one bit for each; of more, sums of random
    #: numbers.
    most_bits: int = 63

    # bounds/lower_bound
    #: The relative gap of the sub-workloads whose solutions prove a bound.
    lower_bound_gap: float = 1e-4
    #: How often what depends on the distributions is made again at better ones, and the least relative
    #: gain.
    lower_bound_rounds: int = 3
    lower_bound_gain: float = 2e-3
    #: Of joint strategies over more cells it is done only where the loss is above the bound by a factor
    #: between.
    lower_bound_large_cells: int = 1_000
    lower_bound_near: float = 1.02
    lower_bound_far: float = 1.5
    #: Steps by which distributions are tuned, few where those take long; the relative gain of the last.
    lower_bound_steps: int = 30
    few_steps: int = 5
    step_gain: float = 1e-5
    #: Distributions are kept above this share of the uniform one.
    least_distribution: float = 1e-7
    #: The cubes of the dimensions of sectors whose eigenvalues are computed, in all; the second to
    #: certify.
    lower_bound_most_work: float = 4e8
    thorough_work: float = 4e9
    #: The least eigenvalue of the metric of a sector, relative to its dimension and the largest.
    metric_rank: float = 1e-13
    #: What floating point may add to a bound of positive terms, generously, and where terms have signs.
    lower_bound_rounding: float = 1e-11
    signed_rounding: float = 1e-9
    #: Cells that do not factor, up to which the spectrum of a workload is computed; and multiplications.
    max_spectral_cells: int = 2_000
    most_spectral_work: float = 1e11

    # bounds/terms
    #: Entries of explicit queries, at most.
    most_row_entries: int = 10_000_000
    #: Eigenvalues below this share of the largest are those of what is not measured.
    terms_rank: float = 1e-10
    #: The relative gap of the products that take the place of joint strategies: it enters the bound
    #: squared.
    product_gap: float = 1e-2
    #: Tensors that an exchange of attributes changes by less than this are the same.
    terms_same: float = 1e-12

    # bounds/traces
    #: Attributes whose covariances are written out and multiplied have up to this many values.
    traced_values: int = 2_000
    #: How far a matrix may be from the diagonal one that it is taken for, as far as vectors tell.
    traces_same: float = 1e-5

    # bounds/triples
    #: Entries of the tables by subset and attribute, at most.
    most_entries: int = 30_000_000
    #: Traces that do not fall apart by attribute, at most.
    most_tied: int = 200
    #: Pairs of subsets that are looked through for all subsets, and triples that are kept, at most.
    most_looks: int = 100_000_000
    most_triples: int = 5_000_000

    # compose/coarse_weights
    #: Attributes of more values are searched on a grid of ``grid_points``.
    max_searched_size: int = 512
    grid_points: int = 160
    #: The cosine between neighbouring columns of a workload, on average, from which on it is taken to be
    #: smooth.
    coarse_weights_smooth: float = 0.9

    # compose/decomposition
    #: The relative gap of the sub-solver ``fast``, and up to how many cells it solves jointly.
    fast_gap: float = 1e-2
    fast_joint_cells: int = 3_000
    #: The singular value bound of a block is computed up to this many cells.
    max_bounded_cells: int = 2_000

    # compose/joint_tables
    #: Independent queries on a table, its one-way marginals included, up to which it is designed whole.
    max_table_rank: int = 600
    #: Cells of such a table.
    max_designed_cells: int = 8_000
    #: Entries of a group's queries, written out.
    joint_tables_max_written_entries: int = 20_000_000
    #: Unknowns of the one-way marginals, those of attributes that can be exchanged counted once, in the
    #: search, and all of them.
    max_searched_unknowns: int = 1_500
    max_shared_unknowns: int = 4_000
    #: Of an orthonormal basis of queries: singular values below this share of the largest are rounding
    #: errors.
    joint_tables_span: float = 1e-9
    #: Eigenvalues of C'C below this share of the largest are lifted to it: such directions fade, never
    #: vanish.
    joint_tables_floor: float = 1e-11
    #: The search ends when a round gains less than this share of the error, or after so many rounds.
    joint_tables_gain: float = 2e-5
    max_rounds: int = 80
    #: The relative gap of the tables' own problems: what the last round gained, within these limits.
    least_gap: float = 1e-4
    largest_gap: float = 1e-2

    # compose/product
    #: Rounds of alternation at most, and the relative decrease of the loss at which it stops.
    product_sweeps: int = 12
    product_tolerance: float = 1e-5
    #: Steps of the search for row weights at most, and its gap; a gain below it is worth no weights.
    weight_steps: int = 400
    weight_gap: float = 1e-4
    #: For searches from several starts: rounds of each start before the best goes on, tolerance,
    #: and gap of the problems within.
    first_sweeps: int = 3
    loose_tolerance: float = 1e-4
    loop_gap: float = 1e-5
    #: After a round a loss this many times what is wanted does not fall to it.
    product_hopeless: float = 1.3
    #: What a strategy leaves of a Gram matrix that is in its row space, relative to its largest entry.
    product_span: float = 1e-9
    #: Cells of a sub-workload, up to which bases are freed.
    max_free_cells: int = 250_000
    #: The powers of the mean that stands for the largest column norm, one descent after the other.
    product_powers: tuple[float, ...] = (30.0, 300.0)
    #: Evaluations of each descent, and multiplications of all together, at most.
    product_max_evaluations: int = 400
    product_most_work: float = 2e10
    #: The relative decrease at which one stops.
    free_tolerance: float = 2e-9

    # compose/rounding
    #: Up to this share of the rows of a large factor, missing directions are found without its
    #: factorization.
    few_missing: float = 0.25
    #: How far they may be from orthogonal to the rows, beside the longest of these.
    rounding_orthogonal: float = 1e-10
    #: From so many missing directions on every cell is measured weakly, not the directions themselves.
    many_missing: int = 256
    #: Real rows whose entries are multiples of one number, up to this, are measured as integers exactly.
    rounding_small: int = 1 << 12
    #: Singular values below this share of the largest are what a strategy does not measure.
    rounding_rank: float = 1e-9

    # compose/sub_solver
    #: Explicit queries of which the largest entry and a hash are kept.
    most_told: int = 8

    # compose/weight_vectors
    #: While weights are searched, larger sub-workloads that do not factor are solved by structure.
    weight_vectors_max_searched_cells: int = 420
    max_searched_row_cells: int = 1_000
    #: The gap to which the optimum of a large attribute's own queries is solved for the weights that it
    #: gives.
    weight_vectors_large_gap: float = 1e-5
    #: The gap of joint sub-solutions of an evaluation of phi.
    joint_gap: float = 1e-5
    #: Evaluations of phi by a descent, after those of its starting points.
    weight_vectors_max_evaluations: int = 80
    #: Its relative tolerance; and both for a descent that starts where the search for other weights of
    #: the same queries ended.
    weight_vectors_tolerance: float = 3e-8
    again_evaluations: int = 30
    again_tolerance: float = 1e-7
    #: With more groups of explicit queries than so many an evaluation is dear, and fewer must do.
    many_explicit: int = 8
    few_evaluations: int = 25
    #: Then the gap of joint sub-solutions.
    loose_gap: float = 1e-3
    #: Beyond it a step of a search went astray, and Gram matrices are rounding errors; phi grows by the
    #: square.
    largest_weight: float = 1e6
    #: Powers of the norms that take the place of a single query's largest entry, and evaluations with
    #: each.
    smooth_powers: tuple[float, ...] = (10.0, 100.0)
    smooth_evaluations: int = 40
    #: Values of the attributes whose weights are searched, up to which the norms are tried.
    max_smoothed_values: int = 100

    # compose/whole_table
    #: The dense optimum is solved up to this many cells that do not factor.
    max_dense_cells: int = 8_500
    #: Values of an attribute, and rows of the whole table, each with a weight of its own, that a product
    #: with weighted rows may have.
    max_axis_values: int = 1_000
    max_table_rows: int = 10_000_000
    #: What counts as a sum of few products: on how many attributes, and how many terms.
    max_few_axes: int = 3
    max_few_terms: int = 4

    # custom
    #: Numbers over a common denominator are kept exactly while numerators stay below this.
    most_exact: int = 1 << 24
    #: Different numbers of a matrix, up to which a common denominator is looked for.
    most_numbers: int = 4_096
    #: Entries of a matrix that a part is written out as.
    custom_max_written_entries: int = 50_000_000
    #: Several parts are one matrix up to so many cells and entries.
    max_stacked_cells: int = 2_048
    max_stacked_entries: int = 20_000_000
    #: Their entries are less than this.
    most_stacked: int = 1 << 31
    #: By what the least precise of stacked parts is multiplied at least, where no small integers do.
    custom_multiplier: int = 4_096

    # gram/chains
    #: Smaller chains are solved like all other problems.
    min_chain_cells: int = 512
    #: Larger chains start from the optimum on a grid of every so many values, found in the same way.
    min_refined_cells: int = 1_024
    chains_coarser: int = 4
    #: Problems of more cells are solved to this gap, whatever smaller one is asked for.
    chains_large_cells: int = 4_096
    chains_large_gap: float = 1e-3
    #: The power of g in a step; steps that the acceleration looks back on; steps at most.
    chains_power: float = 3.0
    chains_memory: int = 6
    most_steps: int = 40
    #: Cells keep at least this share of the uniform distribution.
    chains_floor: float = 1e-9
    #: The gap on a coarser grid.
    coarse_gap: float = 1e-4
    #: How far the Gram matrix of what was solved may be from the one that was asked for.
    chains_solved: float = 1e-8
    #: Relative differences from the form of a chain below this are rounding errors.
    chains_same: float = 1e-9
    #: Smaller relative differences of products have lost too many digits.
    chains_cancelled: float = 1e-6
    #: Largest entries that a tridiagonal matrix is scaled to, one after another.
    chains_scales: tuple[float, ...] = (2.0**18, 1.0, 2.0**36)
    #: Parts of an update of rank one below this share have no effect.
    no_part: float = 1e-16

    # gram/dual
    #: Relative gap at which the interior point stops.
    gap: float = 1e-6
    max_iterations: int = 80
    #: Eigenvalues of M below this share of the largest are lifted to it (they only arise off the
    #: optimum).
    dual_floor: float = 1e-15
    #: A start whose own error is more than so many times its bound is worse than the uniform
    #: distribution.
    useful_start: float = 10.0
    #: Gaps that differ by less than this are the same but for rounding: the first point is kept.
    dual_tie: float = 1e-13

    # gram/factor
    #: Eigenvalues of a Gram matrix below this share of the largest are noise of the eigendecomposition.
    factor_rank: float = 1e-12
    #: The same of the singular values of a strategy, which are roots of those of its Gram matrix with
    #: errors of rounding of their own.
    factor_unmeasured: float = 1e-10

    # gram/operators
    #: Products with smaller matrices are quick as they are.
    min_cells: int = 256
    #: A matrix is a band where this many of its widths fit into it.
    operators_narrow: int = 8
    #: Entries of rows that are summed at a time: they stay in the cache.
    operators_at_once: int = 1 << 15
    #: Columns of a band's pieces, at least.
    min_piece: int = 128

    # gram/opt_0
    #: Sub-workloads are solved jointly for Laplace noise up to this many cells.
    max_sum_cells: int = 400
    #: Explicit queries that are solved fast, up to this many cells.
    max_fast_cells: int = 100
    #: Up to this many cells random starts are tried by default; beyond it trees alone.
    random_cells: int = 400
    #: Beyond this many cells searches are cut short.
    opt_0_large_cells: int = 2_048
    #: Kinds of starts that are looked at further where a search goes on from a known strategy.
    opt_0_followed: int = 8
    #: The same where cells are many.
    few_followed: int = 3
    #: Pairs of rows of a workload of low rank that are rotated, in all and for each pair.
    opt_0_rotations: int = 10_000
    opt_0_sweeps: int = 40
    #: Angles that a pair of rows is turned by, on the coarser grid.
    opt_0_angles: int = 24
    #: Workloads of this rank and more are not rotated: the sensitivity of many rows stays far above 1.
    rotated_rows: int = 256
    #: Bytes of strategies that are kept at most, and of Gram matrices that are looked up.
    most_bytes: int = 64_000_000
    most_gram_bytes: int = 16_000_000

    # gram/optimum
    #: Gram matrices with larger entries, or smaller ones than its inverse, are scaled before they are
    #: solved.
    optimum_extreme: float = 1e75
    #: Gram matrices that are off by less than this share of the largest entry are the same but for
    #: rounding.
    optimum_same: float = 1e-13
    #: Entries of symmetric Gram matrices differ by this share of the largest.
    optimum_symmetric: float = 1e-11
    #: Classes of cells that may trade places are looked for among so many cells, and given up past so
    #: many classes of less than two on average.
    many_cells: int = 64
    most_classes: int = 8

    # gram/p_identity
    #: Weights of rows stay below this, so that the identity's never vanish beside them: then the loss
    #: would be a difference of large numbers.
    max_weight: float = 1e3
    #: Up to this many cells every start is followed to its end.
    p_identity_small: int = 128
    #: Rows of the Gaussian optimum that a start takes, at most.
    most_parts: int = 32
    #: Random rows beyond this many take long and gain little.
    most_dimensions: int = 128
    #: How much longer than the first look the second one is.
    p_identity_further: int = 4

    # gram/singular_values
    #: Singular values below this share of the largest count for no dimension.
    singular_values_rank: float = 1e-5

    # minimax
    #: Predicates of one attribute are weighted one by one up to this many entries of their matrix.
    max_weighed_entries: int = 20_000_000
    #: Sums of products over more entries than this are weighted by products, as products are.
    max_single_entries: int = 20_000_000
    #: Weights below this share of the largest of their set are raised to it: every query stays
    #: supported.
    least_weight: float = 1e-9
    #: Without a bound it stops where so many reweightings have gained less than this share of the
    #: variance.
    minimax_patience: int = 12
    minimax_gain: float = 5e-3

    # noise_choice
    #: Of the intervals by which noises are compared: what releases report by default.
    noise_choice_confidence: float = 0.95

    # problem/grams
    #: Weights that are a sum of more products than this are written out.
    max_weight_terms: int = 4
    #: Terms that queries over merged attributes within predicates of others may have, else they are
    #: written out.
    max_box_terms: int = 100
    #: How far the products may be from the weights, relative to each weight.
    weight_error: float = 1e-10
    #: Rows of a Gram matrix are different where one combination of them differs by this share of its
    #: entries.
    told_apart: float = 1e-9

    # problem/kron_sum
    #: From so many terms on they are added by matrix multiplications, of so many entries of one side at
    #: a time.
    least_terms: int = 8
    kron_sum_entries: int = 1 << 22

    # problem/merge_groups
    #: Fewer groups over the same attributes stay as they are.
    least_gathered: int = 8
    #: Entries of a matrix that rows are gathered to, and its rows for each group that it replaces.
    max_gathered_entries: int = 10_000_000
    max_rows_a_group: int = 8

    # problem/residual_traces
    #: Pairs of a product and a subset of its attributes, for strategies that are searched.
    max_axis_pieces: int = 2_000_000
    #: Pairs of a marginal and a residual in it, over the marginals that are asked; 3^15 is below.
    max_pieces: int = 15_000_000
    #: Entries of explicit queries over the cells of their attributes.
    residual_traces_max_written_entries: int = 4_000_000
    #: Of a trace, what is left of a difference of equal numbers.
    residual_traces_rounding: float = 1e-13

    # problem/residuals
    #: Terms below this share of the largest of their sub-workload are floating-point noise.
    residuals_negligible: float = 1e-14
    #: Arrays of pieces of explicit queries that are kept.
    most_kept: int = 8

    # rules
    #: The whole table is solved too up to this many cells that do not factor: other mechanisms take
    #: their lower bound from it.
    max_compared_cells: int = 1_100
    #: Under Gaussian noise no product has less error than the decomposition at its optimum. Where its
    #: weights end in a local minimum one may: a product is compared on tables up to this many cells, one
    #: with weighted rows where it takes few of them, and only where at least so much may be gained.
    max_product_cells: int = 100_000
    max_weighted_cells: int = 10_000_000
    rules_worthwhile: float = 1e-3
    #: With a proved gap below this nothing else is tried.
    rules_settled: float = 1e-6
    #: Under Laplace noise the whole table is searched where queries tell so many of its cells apart, or
    #: where so few are asked.
    max_searched_cells: int = 400
    max_searched_queries: int = 64
    #: Unions, products and parts of one attribute are strategies for its one Gram matrix: with more
    #: values than this it is searched once. With few, a total beside differences may win, and all
    #: searches are fast.
    max_few_values: int = 100

    # searches/coverage
    #: Attributes up to which every marginal may be measured.
    few_attributes: int = 10
    #: Pairs of a marginal and a residual in it, up to which larger marginals than asked ones may be
    #: measured, and those of two attributes and more beyond the asked ones.
    coverage_pairs: int = 2_000_000
    more_pairs: int = 400_000
    #: Multiplicative steps at most, and the relative gap at which they stop.
    coverage_steps: int = 4_000
    coverage_gap: float = 1e-6
    #: Logarithms of shares lie above that of this part of their sum.
    least_share: float = 1e-9
    #: Spreads of the lognormal noise on the scores of a greedy cover, in turn.
    coverage_spreads: tuple[float, ...] = (0.03, 0.08, 0.15, 0.5)
    #: Marginals up to which there are so many times the random covers.
    coverage_few: int = 64
    coverage_times: int = 3
    #: Covers that moves start from: the best few, and where marginals hold few residuals as many as have
    #: together so many; one where they hold very many.
    coverage_finalists: int = 5
    coverage_work: int = 8_000
    coverage_large: int = 400_000
    #: Rounds of moves at most, the least relative gain of a move, and of a round that is worth another.
    coverage_rounds: int = 40
    least_gain: float = 1e-7
    least_round: float = 1e-5
    #: Marginals up to which each may be added; pairs of measured ones up to which any two are merged;
    #: attributes of the marginals that are looked for within another; moves that are scored at once.
    coverage_addable: int = 5_000
    coverage_merged: int = 4_000_000
    coverage_deepest: int = 8
    coverage_at_once: int = 20_000
    #: Steps and relative tolerance of a descent that only compares supports.
    coverage_screen_steps: int = 60
    coverage_screen_tolerance: float = 1e-5
    #: A share below this is dropped where nothing is lost by it.
    coverage_negligible: float = 1e-6

    # searches/marginals
    #: Larger marginals are measured only if the workload asks for them.
    max_marginal_cells: int = 10_000_000
    #: No marginal of more cells is counted.
    max_counted_cells: int = 100_000_000
    #: Larger attributes keep the strategy that is best for them alone.
    max_searched: int = 1_024
    #: The norm of the columns of the identity that gives a Gaussian strategy full rank.
    marginals_regular: float = 1e-3
    #: The relative gain that is worth another round.
    marginals_gain: float = 1e-4
    #: The norm of the columns of a total that is measured only for the sake of an exact row space.
    marginals_faint: float = 2.0**-7
    #: Squared share of the total that may lie outside the row space of a matrix that measures it.
    marginals_outside: float = 1e-18

    # searches/unions
    #: With more sets than this, sets are only folded into others that hold their attributes.
    max_merged_sets: int = 24
    #: Steps of the search for the shares of the cost, and where each is dear what all may cost but for
    #: the least.
    share_steps: int = 60
    least_steps: int = 4
    share_work: float = 3e10
    #: A product that is measured so much less precisely than another would add rounding errors alone.
    least_precision: float = 1e-8
    #: Attributes of more values that nothing tells apart are measured whole: totals have products of
    #: their own.
    most_symmetric: int = 500
    #: Up to so many groups are also measured by a product each, and so many marginals under Gaussian
    #: noise.
    most_apart: int = 8
    most_marginals: int = 1_000
    #: Least squares of which one evaluation takes more multiplications than this leave their place to
    #: averages.
    unions_most_work: float = 1e10

    # targets
    #: Groups without a target may have standard errors this many times the largest target.
    other_groups: float = 10.0


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
